"""The site: broken links are found, and in Chromium it can be searched, read on a phone and played with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, HOW_TO_GET_IT, watch
from conftest import ROOT

SITE = ROOT / "build" / "site"
# `make site-check` sets this. Elsewhere a site that is there may be of other sources, and is not tested.
REQUIRED = os.environ.get("MPTCPLAB_SITE") == "required"
DESKTOP, PHONE = (1280, 900), (360, 780)
READ_ON_A_PHONE = (
    "index",
    "first-steps",
    "tutorial",
    "cookbook/topology",
    "reviewers",
    "glossary",
    "api",
    "reference/cli",
)


# --- Links -----------------------------------------------------------------------------------------


def links(site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "site" / "links.py"), str(site)], capture_output=True, text=True, check=False
    )


def test_links_to_pages_places_and_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "data file.csv").touch()
    (tmp_path / "index.html").write_text(
        '<p id="here"><a href="#here">1</a><a href="more/page.html#there">2</a><a href="data%20file.csv">3</a>'
        '<a href="https://example.org/#nothing">4</a><a href="#">5</a>'
    )
    (tmp_path / "more" / "page.html").write_text('<h2 id="there"><a href="../index.html">up</a>')
    assert (links(tmp_path).returncode, links(tmp_path).stderr) == (0, "")


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ('<a href="gone.html">', "index.html:2: no such file: gone.html"),
        ('<a href="more">', "index.html:2: no such file: more"),
        ('<a href="#gone">', "index.html:2: no such place: #gone"),
        ('<a href="other.html#gone">', "index.html:2: no such place: other.html#gone"),
        ('<img src="gone.png">', "index.html:2: no such file: gone.png"),
        ('<script src="https://example.org/x.js">', "index.html:2: loaded from elsewhere: https://example.org/x.js"),
    ],
)
def test_a_link_that_leads_nowhere_is_named_with_its_page_and_line(tmp_path: Path, tag: str, message: str) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "other.html").write_text("<p>")
    (tmp_path / "index.html").write_text(f"<p>\n{tag}")
    done = links(tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "error: broken links: 1" in done.stderr


def test_every_page_is_in_a_table_of_contents() -> None:
    """Otherwise Sphinx warns, and nobody finds the page."""
    docs = ROOT / "docs"
    listed: set[Path] = set()
    for page in (docs / "index.md", docs / "cookbook" / "index.md"):
        for contents in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            for line in contents.splitlines():
                if line and not line.startswith(":"):
                    listed |= {path.resolve() for path in page.parent.glob(f"{line}.md")}
    pages = {path.resolve() for path in docs.rglob("*.md")} - {docs / "index.md"}
    assert sorted(pages - listed) == []


def test_links_between_pages_stay_on_the_site() -> None:
    """A link to a page that the site does not have is a warning of Sphinx, with which `make site` fails."""
    project = re.search(r"PROJECT_PAGES = \((.*?)\)", (ROOT / "site" / "conf.py").read_text(), re.DOTALL)
    assert project
    pages = {*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in re.findall(r'"(.+?)"', project[1]))}
    pages |= {*(ROOT / "papers").rglob("README.md")}
    strays = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in sorted(pages)
        for link in re.findall(r"\]\(([^)#\s]+\.md)[)#]", page.read_text())
        if "://" not in link and (page.parent / link).resolve() not in pages
    ]
    assert strays == []


# --- The site in a browser -------------------------------------------------------------------------


@dataclass
class Browser:
    """A browser for all tests; it collects what pages report and ask for."""

    browser: Any
    problems: list[str] = field(default_factory=list)

    def open(self, page: str, size: tuple[int, int] = DESKTOP) -> Any:
        opened = self.browser.new_context(viewport={"width": size[0], "height": size[1]}).new_page()
        opened.set_default_timeout(30_000)
        watch(opened, self.problems)
        opened.goto((SITE / page).as_uri())
        return opened


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Every test asserts that its pages reported nothing and asked nobody."""
    if not REQUIRED:
        pytest.skip("SKIPPED, NOT TESTED: the site (make site-check builds and tests it)")
    assert CHROMIUM is not None, HOW_TO_GET_IT
    found = Browser(request.getfixturevalue("chromium"))
    yield found
    for context in found.browser.contexts:
        context.close()
    assert found.problems == []


def test_the_first_page_leads_to_the_tutorial(site: Browser) -> None:
    page = site.open("index.html")
    page.wait_for_url("**/docs/index.html")
    page.get_by_role("link", name="tutorial", exact=True).first.click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("Tutorial: one connection, several paths")


def test_the_search_finds_pages_without_a_server(site: Browser) -> None:
    page = site.open("docs/index.html")
    page.get_by_role("textbox", name="Search").fill("bandwidth-delay product")
    page.keyboard.press("Enter")
    page.wait_for_selector("ul.search li a")
    assert "Glossary" in page.locator("ul.search li a").all_inner_texts()


def test_every_experiment_of_the_tutorial_runs_in_the_page(site: Browser) -> None:
    page = site.open("docs/tutorial.html")
    frames = page.locator(".playground iframe")
    count = frames.count()
    assert count >= 5
    for at in range(count):
        frames.nth(at).scroll_into_view_if_needed()
        inside = page.frame_locator(".playground iframe").nth(at)
        inside.locator("#status", has_text="Goodput of MPTCP").wait_for()
        # The page around it says what the playground is.
        assert not inside.locator(".top").is_visible()
    first = page.frame_locator(".playground iframe").first
    # The tutorial's first table is what the first experiment shows.
    goodput = re.search(r"^\| connection \| ([0-9.]+) \|", (ROOT / "docs/tutorial.md").read_text(), re.MULTILINE)
    assert goodput is not None
    assert first.locator("#shares tbody tr:first-child td").first.inner_text() == goodput[1]


def test_options_are_shown_as_they_are_typed(site: Browser) -> None:
    """Typographers' quotes and dashes made `--set 'links.B1.queue=1 BDP'` a text that no shell understands."""
    text = site.open("docs/reference/cli.html").inner_text("article")
    assert "--set 'links.B1.queue=1 BDP'. Text needs no further quotes." in text
    assert "or removed with --no-report." in text


def test_an_example_is_copied_without_prompts_and_output(site: Browser) -> None:
    page = site.open("docs/api.html")
    page.evaluate("() => document.addEventListener('copy', (event) => { window.copied = event.target.value; })")
    block = page.locator("div.highlight", has_text=">>> scenario = (").first
    block.hover()
    block.locator("button.copybtn").click()
    page.wait_for_function("window.copied !== undefined")
    copied = page.evaluate("window.copied")
    assert copied.startswith("scenario = (")
    assert "..." not in copied and 'duration = "30 s"' not in copied


@pytest.mark.parametrize("name", READ_ON_A_PHONE)
def test_a_page_fits_a_phone(name: str, site: Browser) -> None:
    page = site.open(f"docs/{name}.html", PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]


def test_the_reference_of_python_has_every_public_name(site: Browser) -> None:
    import mptcplab

    page = site.open("docs/api.html")
    ids = set(page.eval_on_selector_all("[id^='mptcplab.']", "found => found.map(one => one.id)"))
    assert {f"mptcplab.{name}" for name in mptcplab.__all__} - ids == set()
