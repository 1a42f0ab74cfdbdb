"""A Sphinx directive that shows the playground inside a page, with settings from its links.

    ```{playground} net=shared&a=reno&b=lia
    ```

If the playground was not built, the page says so in its place.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

# Where the playground is, seen from the root of the site; scripts/site.sh copies it there.
PLACE = "playground/index.html"


class Playground(SphinxDirective):
    """The playground in a frame, and a link that opens it in a tab of its own, where a phone has more room."""

    required_arguments = 1
    final_argument_whitespace = False
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """The frame as HTML."""
        if not self.env.config.playground_is_built:
            words = "This site was built without the playground. `make playground` builds it, and says what it needs."
            warning = nodes.note()
            warning += self.parse_text_to_nodes(words)
            return [warning]
        up = "../" * self.env.docname.count("/")
        address = escape(f"{up}{PLACE}#{self.arguments[0]}", quote=True)
        html = (
            f'<figure class="playground"><iframe src="{address}" title="Playground" loading="lazy"></iframe>'
            f'<figcaption><a href="{address}" target="_blank">Open this experiment in a tab of its own</a></figcaption>'
            "</figure>"
        )
        return [nodes.raw("", html, format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    built = (Path(app.srcdir) / "build" / PLACE).is_file()
    app.add_config_value("playground_is_built", built, "env", types=frozenset({bool}))
    app.add_directive("playground", Playground)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
