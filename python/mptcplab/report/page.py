"""HTML pages from templates. A page is one file and requests nothing (a content security policy enforces it)."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import jinja2

from mptcplab.plots.styles import css_palette


def render(package: str, name: str, style: str = "", **context: Any) -> str:
    """A page from a template of a package, which extends `base.html`; `style` follows the common style sheet."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader(__package__)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    style = template_text(__package__, "page.css") + style
    for scheme in ("light", "dark"):
        style = style.replace(f"/*{scheme}*/", css_palette(dark=scheme == "dark"))
    return environment.get_template(name).render(style=style, **context)


def template_text(package: str, name: str) -> str:
    """A file beside the templates of a package."""
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")
