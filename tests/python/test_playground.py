"""The playground: its simulator gives the numbers of the package to the last bit, and its page works in Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chromium import CHROMIUM, HOW_TO_GET_IT, watch
from conftest import ROOT

import mptcplab
from mptcplab import _core
from mptcplab.output import OPTIONAL_TABLES

PLAYGROUND = ROOT / "playground"
PAGE = ROOT / "build" / "playground" / "index.html"
MODULE = PAGE.with_name("mptcplab.wasm")
# `make playground-check` sets this: what is missing is an error there.
REQUIRED = os.environ.get("MPTCPLAB_PLAYGROUND") == "required"
DESKTOP, PHONE = (1280, 900), (360, 780)
TYPES = {"u8": "u1", "u32": "<u4", "i32": "<i4", "u64": "<u8"}
# Columns of codes, which have words on disk.
CODES = ("state", "kind")


def missing(what: str) -> None:
    if REQUIRED:
        pytest.fail(what)
    pytest.skip(f"SKIPPED, NOT TESTED: {what}")


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        missing("Node.js is not installed")
    return found


TINY = """\
duration = "1 s"
cc = "reno"
[links.A]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "7 ms"
[flows.f]
path = ["A"]
"""


@dataclass
class Delivered:
    """What the module delivered: the digest of its sources, totals, and the tables as numbers."""

    engine: str
    totals: dict[str, Any]
    tables: dict[str, pl.DataFrame]
    # The numbers that are null on disk, by table and column.
    nulls: dict[tuple[str, str], int]


@dataclass
class Module:
    """The simulator of the page, run by Node.js."""

    node: str

    def simulate(self, request: dict[str, Any], run: int, scratch: Path) -> Delivered:
        asked, output = scratch / "request.json", scratch / "columns.bin"
        asked.write_text(json.dumps(request))
        script = PLAYGROUND / "tests" / "columns.mjs"
        words = [self.node, str(script), str(MODULE), str(asked), str(run), str(output)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        head, _, data = output.read_bytes().partition(b"\n")
        index = json.loads(head)
        tables: dict[str, dict[str, np.ndarray]] = {}
        nulls = {}
        for column in index["columns"]:
            raw, data = data[: column["bytes"]], data[column["bytes"] :]
            table, name = column["table"], column["column"]
            tables.setdefault(table, {})[name] = np.frombuffer(raw, TYPES[column["type"]])
            if column["null"] is not None:
                nulls[table, name] = int(column["null"])
        assert not data
        frames = {name: pl.DataFrame(columns) for name, columns in tables.items()}
        return Delivered(index["engine"], index["totals"], frames, nulls)


@pytest.fixture(scope="module")
def module(node: str, tmp_path_factory: pytest.TempPathFactory) -> Module:
    """The simulator of the page, which must be of the package's own sources."""
    if not MODULE.exists():
        missing("the playground is not built (make playground)")
    found = Module(node)
    tiny = found.simulate({"name": "tiny.toml", "text": TINY}, 0, tmp_path_factory.mktemp("engine"))
    if tiny.engine != _core.build_info()["engine"]:
        missing("the playground was built from other sources (make playground)")
    return found


@cache
def page_scenarios() -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        ["node", str(PLAYGROUND / "tests" / "scenarios.mjs")], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def repository_scenario(name: str, seconds: str) -> dict[str, Any]:
    """A scenario of the repository, shortened, with the files that it names."""
    folder = ROOT / "scenarios"
    text = (folder / f"{name}.toml").read_text()
    text = re.sub(r'(?m)^duration = ".*"', f'duration = "{seconds}"', text)
    text = re.sub(r'(?m)^warmup = ".*"', 'warmup = "1 s"', text)
    path = folder / f"{name}.toml"
    return {"text": text, "files": _core.scenario_files(path, "{}")}


# The page's own networks, and scenarios that use what these do not: Mahimahi traces, bursts of loss, AQM with ECN,
# random transfers, video, UDP, SCTP, handovers, BBR, requests and messages.
CASES = ["private", "shared", "walk", "triangle"]
REPOSITORY = [
    ("wifi-lte-varying-rate", "12 s"),
    ("queue-management-delay", "4 s"),
    ("web-and-bulk", "6 s"),
    ("video-beside-download", "24 s"),
    ("cmt-sctp-against-mptcp", "5 s"),
    ("wifi-handover", "22 s"),
    ("bbr-random-loss", "4 s"),
    ("slow-lte-page-loads", "6 s"),
    ("game-updates-bursty-wifi", "6 s"),
]


@pytest.mark.parametrize("network", CASES)
def test_the_page_and_the_package_agree_to_the_last_bit(network: str, module: Module, tmp_path: Path) -> None:
    agree(page_scenarios()[network], 1, ROOT / "scenarios" / "traces" / "walk", module, tmp_path)


@pytest.mark.parametrize(("name", "seconds"), REPOSITORY)
def test_scenarios_of_the_repository_agree_to_the_last_bit(
    name: str, seconds: str, module: Module, tmp_path: Path
) -> None:
    agree(repository_scenario(name, seconds), 0, ROOT / "scenarios", module, tmp_path)


def agree(scenario: dict[str, Any], run: int, folder: Path, module: Module, scratch: Path) -> None:
    """Compares all rows of all tables, and the totals. The files that the scenario names are in the folder."""
    texts = {name: (folder / name).read_text() for name in scenario["files"]}
    for name, text in texts.items():
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_text(text)
    path, kept = scratch / "playground.toml", scratch / "kept"
    path.write_text(scenario["text"])
    totals = json.loads(_core.run(path, kept, "{}", 1, None, [run]))
    (out,) = kept.iterdir()
    found = module.simulate({"name": path.name, "text": scenario["text"], "files": texts}, run, scratch)
    assert (found.totals["packet_hops"], found.totals["events"]) == (totals["packet_hops"], totals["events"])
    names = Names(json.loads(pl.read_parquet(out / "run.parquet")["resolved"][0]))
    for name, table in found.tables.items():
        path = out / f"{name}.parquet"
        if name in OPTIONAL_TABLES and not path.exists():
            assert table.is_empty(), name
        else:
            same_table(name, names.of(table), pl.read_parquet(path).drop("run"), found.nulls)
    assert sum(table.height for table in found.tables.values()) > 1000


class Names:
    """The names for which the numbers of flows, subflows and links stand; -1 is none."""

    def __init__(self, run: dict[str, Any]) -> None:
        self.flow = {i: flow["name"] for i, flow in enumerate(run["flows"])} | {-1: None}
        self.link = {i: link["name"] for i, link in enumerate(run["links"])} | {-1: None}
        self.subflow = {-1: None}
        for i, flow in enumerate(run["flows"]):
            self.subflow |= {1000 * i + k: subflow["name"] for k, subflow in enumerate(flow.get("subflows", []))}

    def of(self, table: pl.DataFrame) -> pl.DataFrame:
        flow, subflow, link = (pl.col(name).cast(pl.Int64) for name in ("flow", "subflow", "link"))
        numbers = {"flow": flow, "link": link}
        # Subflows of different flows may have one name.
        numbers["subflow"] = pl.when(subflow < 0).then(subflow).otherwise(1000 * flow + subflow)
        return table.with_columns(
            number.replace_strict(getattr(self, name), return_dtype=pl.String).alias(name)
            for name, number in numbers.items()
            if name in table.columns
        )


def same_table(name: str, found: pl.DataFrame, expected: pl.DataFrame, nulls: dict[tuple[str, str], int]) -> None:
    assert found.columns == expected.columns
    assert found.height == expected.height, name
    entities = [column for column in ("flow", "subflow", "link") if column in found.columns]
    expected = expected.with_columns(pl.col(*entities).cast(pl.String))
    if name != "event":
        # On disk, samples of one flow, subflow or link stand together in each row group.
        found, expected = (table.sort(*entities, "t_ns", maintain_order=True) for table in (found, expected))
    for column in found.columns:
        place = f"{name}.{column}"
        if column in CODES:
            # On disk there are words: one for each number.
            pairs = pl.DataFrame({"code": found[column], "word": expected[column].cast(pl.String)}).unique()
            assert pairs["code"].n_unique() == pairs["word"].n_unique() == pairs.height, f"{place}: {pairs}"
        else:
            numbers = expected[column].fill_null(nulls[name, column]) if (name, column) in nulls else expected[column]
            assert found[column].equals(numbers.cast(found[column].dtype)), place


def test_links_and_scenarios_in_javascript(node: str) -> None:
    done = subprocess.run([node, "--test", "tests/"], cwd=PLAYGROUND, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout


# --- The page in a browser -------------------------------------------------------------------------


@dataclass
class Browser:
    """A browser for all tests; it collects what pages report and ask for."""

    browser: Any
    problems: list[str] = field(default_factory=list)

    def open(self, fragment: str = "", size: tuple[int, int] = DESKTOP, scheme: str = "light") -> Any:
        """The page, with the results of its first run."""
        context = self.browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(20_000)
        watch(page, self.problems)
        page.goto(f"{PAGE.as_uri()}{fragment}")
        told(page)
        return page


def told(page: Any, what: str = "Goodput of MPTCP") -> str:
    """What the page says of its newest run."""
    page.wait_for_function("what => document.getElementById('status').textContent.includes(what)", arg=what)
    return page.inner_text("#status")


# A page of other sources is not tested.
@pytest.fixture(scope="module")
def running(module: Module, request: pytest.FixtureRequest) -> Browser:  # noqa: ARG001
    if CHROMIUM is None:
        missing(HOW_TO_GET_IT)
    return Browser(request.getfixturevalue("chromium"))


@pytest.fixture
def browser(running: Browser) -> Iterator[Browser]:
    """Every test asserts that its pages reported nothing and asked nobody."""
    yield running
    problems, running.problems = running.problems, []
    for context in running.browser.contexts:
        context.close()
    assert problems == []


def cells(page: Any) -> list[list[str]]:
    """All rows of the tables of results, without their headings."""
    return page.eval_on_selector_all(
        "#shares tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def test_the_table_shows_the_metrics_of_the_scenario_that_the_page_offers(browser: Browser, tmp_path: Path) -> None:
    page = browser.open("#net=shared&a=cubic&b=balia&b-scheduler=blest&tcp=2&extra=15&duration=20&neck-loss=0.1&seed=5")
    path = tmp_path / "playground.toml"
    path.write_text(page.text_content("#toml"))
    results = mptcplab.run(path, out=tmp_path / "out", progress=False)
    goodput = results.metrics(["goodput"])
    expected = []
    for cc, scheduler in (("cubic", "minrtt"), ("balia", "blest")):
        of_run = goodput.filter((pl.col("cc") == cc) & (pl.col("scheduler") == scheduler))
        for flow, subflow in (("mp", None), ("mp", "sf1"), ("mp", "sf2"), ("tcp-1", None), ("tcp-2", None)):
            rows = of_run.filter((pl.col("flow") == flow) & pl.col("subflow").eq_missing(subflow))
            expected.append(f"{rows['value'].item():.2f}")
    assert [row[1] for row in cells(page)] == expected


def test_the_files_that_the_page_offers_run_on_the_command_line(browser: Browser, tmp_path: Path) -> None:
    page = browser.open("#net=walk&b=none&duration=20&walk=3")
    page.click("#scenario summary")
    for link in page.locator("#scenario a[download]").all():
        with page.expect_download() as download:
            link.click()
        download.value.save_as(tmp_path / download.value.suggested_filename)
    assert page.inner_text("#usage code") == "mptcplab run playground.toml"
    results = mptcplab.run(tmp_path / "playground.toml", out=tmp_path / "out", progress=False)
    goodput = results.metrics(["goodput"]).filter(pl.col("subflow").is_null())["value"].item()
    assert cells(page)[0][1] == f"{goodput:.2f}"


def test_a_slider_moved_by_keyboard_changes_the_results_the_scenario_and_the_link(browser: Browser) -> None:
    page = browser.open("#duration=20")
    before = cells(page)
    slider = page.get_by_role("slider", name="Rate, Path 1")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("old => document.querySelector('#shares tbody td').textContent !== old", arg=before[0][1])
    assert slider.get_attribute("aria-valuetext") == "8 Mbit/s"
    assert page.url.endswith("#duration=20&p1-rate=8")
    assert 'rate = "8 Mbit/s"' in page.text_content("#toml")
    assert page.inner_text(".slider:has(#p1-rate) .tip") == "How many bits the link can send per second."
    page.keyboard.press("Escape")
    assert not page.is_visible(".slider:has(#p1-rate) .tip")
    told(page)
    assert cells(browser.open(page.url[page.url.index("#") :])) == cells(page)


def test_links_to_parts_of_the_page_keep_the_settings(browser: Browser) -> None:
    page = browser.open("#a=reno&duration=20")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "shares-title"
    assert page.url.endswith("#a=reno&duration=20")
    assert not page.get_by_role("alert").is_visible()


def test_on_a_phone_one_touch_leads_from_settings_to_charts_and_back(browser: Browser) -> None:
    page = browser.open("#net=triangle&a=reno&duration=20", PHONE)
    for name, place in (("Charts", "#charts"), ("Settings", "#settings"), ("Numbers", "#shares-title")):
        page.get_by_role("link", name=name, exact=True).click()
        bars = page.locator(".bars").bounding_box()
        assert bars["y"] + bars["height"] <= page.locator(place).bounding_box()["y"] < PHONE[1] / 2, name
    assert page.url.endswith("#net=triangle&a=reno&duration=20")


def test_quick_changes_end_with_the_results_of_the_last_one(browser: Browser) -> None:
    expected = cells(browser.open("#net=shared&neck-rate=4&duration=20"))
    page = browser.open("#duration=20")
    # Among them are other networks, whose runs have other lines, and runs that are given up.
    page.evaluate(
        """async () => {
            const wait = (ms) => new Promise((done) => setTimeout(done, ms));
            for (const [hash, ms] of [["net=triangle&all-delay=1&duration=180", 600], ["net=walk", 30],
                ["net=shared", 5], ["net=private&b=none", 40], ["net=shared&tcp=4", 20],
                ["net=shared&neck-rate=4&duration=20", 0]]) {
                location.hash = hash;
                await wait(ms);
            }
        }"""
    )
    rows = "expected => JSON.stringify([...document.querySelectorAll('#shares tbody tr')]"
    rows += ".map(row => [...row.cells].map(cell => cell.textContent))) === JSON.stringify(expected)"
    page.wait_for_function(rows, arg=expected)


def test_networks_and_candidates_are_chosen_by_keyboard(browser: Browser) -> None:
    page = browser.open("#duration=20")
    page.get_by_role("radio", name="Two private paths").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("radio", name="Shared bottleneck").is_checked()
    page.wait_for_function("document.querySelectorAll('#shares tbody tr').length === 8")
    second = page.get_by_role("group", name="Candidate B")
    second.get_by_label("Congestion control").select_option("none")
    page.wait_for_function("document.querySelectorAll('#shares tbody tr').length === 4")
    assert second.get_by_label("Scheduler").is_disabled()
    page.keyboard.press("Tab")
    assert "b=none" in page.url


def test_a_screen_reader_gets_names_for_everything_and_hears_results(browser: Browser) -> None:
    page = browser.open("#net=triangle&duration=20")
    for role in ("slider", "combobox", "radio", "spinbutton", "button", "link"):
        for one in page.get_by_role(role).all():
            assert one.evaluate(
                "one => one.getAttribute('aria-label') || one.labels?.[0]?.textContent || one.textContent"
            ), role
    assert page.get_by_role("table").count() == 2
    charts = page.get_by_role("img").all()
    assert len(charts) == 8
    labels = [chart.get_attribute("aria-label") for chart in charts]
    assert labels[2].startswith("Congestion window over time with lia, minrtt, means in packets: conn 1 short ")
    status = page.get_by_role("status")
    assert re.match(r"Goodput of MPTCP after the first 10 s: A, lia: \d+\.\d\d Mbit/s; B, olia: ", status.inner_text())
    explained = page.locator("main .term[tabindex]").first
    explained.focus()
    tip = page.locator(f"#{explained.get_attribute('aria-describedby')}")
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_within_its_width(scheme: str, browser: Browser) -> None:
    page = browser.open("#net=walk&a=westwood&b=mcompound&duration=20", PHONE, scheme)
    page.click("#scenario summary")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    # The bars stay in sight while sliders are moved.
    page.locator("#wifi-delay").scroll_into_view_if_needed()
    box = page.locator("#bars").bounding_box()
    assert 0 <= box["y"] < 120
    for term in page.locator(".term[tabindex]:visible").all():
        term.focus()
        tip = page.locator(f"#{term.get_attribute('aria-describedby')}").bounding_box()
        assert tip["x"] >= 0 and tip["x"] + tip["width"] <= PHONE[0]
    drawn = page.evaluate("[...document.querySelectorAll('.charts canvas')].every(one => one.width > 250)")
    assert drawn


def test_a_link_with_mistakes_names_them_and_shows_the_rest(browser: Browser) -> None:
    page = browser.open("#a=reno&b=nonsense&p1-rate=7000&duration=20")
    problem = page.get_by_role("alert").inner_text()
    assert "b=nonsense (an algorithm of this build)" in problem
    assert "p1-rate=7000 (a number from 1 to 50)" in problem
    assert "A, reno: " in page.inner_text("#status")


def test_what_the_simulator_refuses_is_shown_as_on_the_command_line(browser: Browser) -> None:
    page = browser.open("#duration=20")
    page.evaluate("document.getElementById('p1-rate').max = 99")
    page.locator("#p1-rate").evaluate("one => { one.value = 99; one.dispatchEvent(new Event('input')); }")
    problem = page.get_by_role("alert")
    problem.wait_for()
    assert "playground.toml:" in problem.inner_text()
    assert "hint: " in problem.inner_text()
    # Numbers of the settings before, which stay in sight, do not look like those of these settings.
    assert page.locator(".bars.former, .shares.former").count() == 2
    assert page.inner_text("#status") == ""
    # The page goes on.
    page.locator("#p1-rate").evaluate("one => { one.value = 3; one.dispatchEvent(new Event('input')); }")
    problem.wait_for(state="hidden")
    told(page)
    assert page.locator(".former").count() == 0


def test_without_javascript_the_page_says_what_it_needs(browser: Browser) -> None:
    """The message was below empty boxes."""
    page = browser.browser.new_context(java_script_enabled=False).new_page()
    page.goto(PAGE.as_uri())
    needs = page.locator("noscript p")
    assert needs.text_content() == "This page needs JavaScript and WebAssembly."
    assert needs.bounding_box()["y"] < 400
    assert not page.get_by_text("Two candidates").is_visible()
