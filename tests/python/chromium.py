"""The system's Chromium for tests of pages, and what a page must not do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOW_TO_GET_IT = "chromium is not installed: as root, apt-get install -y chromium"
ARGUMENTS = [
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


@contextmanager
def started() -> Iterator[Any]:
    """A browser, controlled by playwright."""
    from playwright.sync_api import sync_playwright

    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, *root])
        yield browser
        browser.close()


def watch(page: Any, problems: list[str]) -> None:
    """Note everything that a page writes to its console, its errors, and what it asks of others."""
    page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith(("file:", "blob:", "data:")) or problems.append(asked.url))
