"""Checks that every link of a built site leads to a file of the site, and to a place that the file has.

usage: python site/links.py DIRECTORY
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a page loads. A site that works without a network loads nothing from elsewhere.
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href")}
LINKED = {("a", "href"), *LOADED}
# The fragment of these pages is not a place in them.
APPLICATIONS = ("playground/index.html",)


class Page(HTMLParser):
    """The links of a page, and its places."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[tuple[int, bool, str]] = []
        self.places = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for every tag."""
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif value and (tag, name) in LINKED:
                self.links.append((self.getpos()[0], (tag, name) in LOADED, value))


@cache
def page(path: Path) -> Page:
    """A page, read once."""
    return Page(path)


def broken(root: Path) -> Iterator[str]:
    """A line for each link that leads nowhere, and for everything that is loaded from elsewhere."""
    for path in sorted(root.rglob("*.html")):
        name = path.relative_to(root).as_posix()
        if name in APPLICATIONS:
            continue
        for line, loaded, link in page(path).links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                if loaded and address.scheme != "data":
                    yield f"{name}:{line}: loaded from elsewhere: {link}"
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if target.is_dir() or not target.exists():
                yield f"{name}:{line}: no such file: {link}"
            elif (
                target.suffix == ".html"
                and target.relative_to(root).as_posix() not in APPLICATIONS
                and unquote(address.fragment) not in page(target).places
            ):
                yield f"{name}:{line}: no such place: {link}"


def main() -> int:
    """Prints what is broken."""
    root = Path(sys.argv[1]).resolve()
    found = list(broken(root))
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    if found:
        print(f"error: broken links: {len(found)}\n\nhint: each is above, with page, line and address", file=sys.stderr)
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
