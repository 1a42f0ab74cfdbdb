"""Sphinx's settings for the site: the pages of docs/ and the project's own, where they are in the clone.

The clone is the root of the sources, so that the same link works in the clone and on the site. `make site` calls Sphinx
(scripts/site.sh).
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import mptcplab  # noqa: E402

project = "mptcplab"
author = "The mptcplab authors"
project_copyright = author
version = release = mptcplab.__version__
language = "en"
root_doc = "docs/index"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "playground"]
# Pages of the project itself that are of use to readers of the site.
PROJECT_PAGES = (
    "README.md",
    "LIMITATIONS.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "STYLE.md",
    "SECURITY.md",
    "CHANGELOG.md",
)
# What is assumed in the experiments of each paper, and the format of their files.
PAPERS_PAGES = ("papers/README.md", "papers/*/README.md")
include_patterns = ["docs/**.md", *PROJECT_PAGES, *PAPERS_PAGES]
# Sphinx walks through every folder that is not excluded.
exclude_patterns = [path.name for path in ROOT.iterdir() if path.name not in ("docs", "papers", *PROJECT_PAGES)]

# Links to headings are written as forges write them.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

# Text stays as it is written: "--reps" with a dash and curly quotes around values would not work in a shell.
smartquotes = False
# What is copied from examples of docstrings can be pasted into Python.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Docstrings write code between single backticks, and are in Google's form.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# A parameter per line, where all together are too long for one.
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"mptcplab {release}"
html_copy_source = False
html_show_sphinx = False
# For summaries, the search would fetch pages, which browsers refuse where there is no server.
html_show_search_summary = False
html_static_path = ["static"]
html_css_files = ["site.css"]
