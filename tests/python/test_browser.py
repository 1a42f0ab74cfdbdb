"""The report in Chromium: zoom, selection, saving figures, keyboard, narrow screens, and no errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
import synthetic as s
from chromium import CHROMIUM, HOW_TO_GET_IT, watch
from conftest import SCENARIO
from test_interfaces import MANY

import mptcplab
from mptcplab.report.page import template_text
from mptcplab.results import Results

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW_TO_GET_IT)
DESKTOP, PHONE = (1280, 900), (360, 740)
# The points of every line, in the order in which they are drawn.
LINES = """() => document.getElementById("time-plot").data.map((one) => ({...one.meta, x: [...one.x], y: [...one.y],
    dash: one.line.dash, colour: one.line.color, label: one.name}))"""

PANELS = """() => [...new Set(document.getElementById("time-plot").data.map((one) => one.meta.panel))]"""

# As the reader finds the page.
RESET = """() => {
    document.getElementById("time-lines").open = false;
    for (const box of document.querySelectorAll("#time-controls input[type=checkbox]"))
        if (box.checked !== box.defaultChecked) box.click();
    const rep = document.getElementById("rep");
    rep.selectedIndex = 0;
    rep.dispatchEvent(new Event("change"));
    document.getElementById("whole").click();
}"""


@dataclass
class Browser:
    """One browser for all tests; it collects what pages report and ask for."""

    browser: Any
    problems: list[str] = field(default_factory=list)
    pages: dict[Path, Any] = field(default_factory=dict)

    def open(self, path: Path, size: tuple[int, int] = DESKTOP) -> Any:
        """A page as it is at first. It stays open for the next test."""
        if path not in self.pages:
            self.pages[path] = self._load(path, size)
        page = self.pages[path]
        resize(page, *size)
        page.evaluate(RESET)
        settle(page, "repetition 1, 0 to")
        return page

    def _load(self, path: Path, size: tuple[int, int]) -> Any:
        context = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="light", accept_downloads=True
        )
        page = context.new_page()
        page.set_default_timeout(60_000)
        watch(page, self.problems)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        return page


@pytest.fixture(scope="module")
def running(chromium: Any) -> Browser:
    return Browser(chromium)


@pytest.fixture
def browser(running: Browser) -> Iterator[Browser]:
    """Every test asserts that its pages reported nothing and asked nobody."""
    yield running
    problems, running.problems = running.problems, []
    assert problems == []


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two algorithms, two repetitions, 4,000 samples of every line."""
    directory = tmp_path_factory.mktemp("two")
    (directory / "two-paths.toml").write_text(SCENARIO.replace('duration = "3 s"', 'duration = "40 s"'))
    results = mptcplab.run(directory / "two-paths.toml", out=directory / "results", progress=False)
    results.report(figures=False)
    return results


@pytest.fixture(scope="module")
def pages(two: Results, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of all kinds: bars, families, a sweep with 21 configurations, eight subflows and twenty flows."""
    directory = tmp_path_factory.mktemp("pages")
    found = {"bars": two.directory / "report.html"}
    sweep = {"links.A.loss": "0.01 %, 0.1 %, 0.3 %, 1 %, 2 %, 3 %, 5 %"}
    wide = mptcplab.Scenario(duration="4 s", warmup="1 s", repetitions=1, cc=["lia"])
    for number in range(1, 9):
        wide = wide.link(f"P{number}", "S", "D", rate=f"{1 + number} Mbit/s", delay=f"{2 * number} ms", queue="1 BDP")
    eight = wide.flow("mp", [[f"P{number}"] for number in range(1, 9)])
    twenty = wide
    for number in range(1, 21):
        twenty = twenty.flow(f"host{number}", [f"P{1 + number % 8}"])
    (directory / "many.toml").write_text(MANY)
    (directory / "two-paths.toml").write_text(SCENARIO)
    for name, scenario, more in (
        ("families", directory / "many.toml", {}),
        ("sweep", directory / "two-paths.toml", {"cc": "lia,olia,balia", "reps": 2, "sweep": sweep}),
        ("eight", eight, {}),
        ("twenty", twenty, {}),
    ):
        results = mptcplab.run(scenario, out=directory / name, progress=False, **more)
        found[name] = results.report(figures=False)
    return found


def samples(results: Results, config: str, rep: int, subflow: str, column: str) -> pl.DataFrame:
    """Seconds and values of a column, as the trace has them."""
    run = results.configs.filter(config=config, rep=rep)["run"].item()
    rows = results.subflow.filter(run=run, flow="mp", subflow=subflow).drop_nulls(column)
    # Polars multiplies by 1e-9, which is not the nearest number.
    return pl.DataFrame({"t": [ns / 1e9 for ns in rows["t_ns"]], "value": rows[column]})


def line(page: Any, panel: str, name: str, config: str = "lia") -> dict[str, Any]:
    (found,) = (
        one for one in page.evaluate(LINES) if (one["panel"], one["line"], one["config"]) == (panel, name, config)
    )
    return found


def drawn(page: Any) -> list[tuple[str, str, int]]:
    """Panel and line and number of points of everything that is drawn over time."""
    return [(one["config"], one["line"], one["rep"]) for one in page.evaluate(LINES) if one["panel"] == "cwnd"]


def settle(page: Any, text: str) -> None:
    """Wait until the page says what it draws."""
    page.wait_for_function("(text) => document.getElementById('time-shown').textContent.includes(text)", arg=text)


def resize(page: Any, width: int, height: int) -> None:
    """Change the size of the window, and wait until the plots have theirs."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function(
        """() => [...document.querySelectorAll(".js-plotly-plot")].every((plot) =>
            Math.abs(plot.clientWidth - plot.querySelector(".main-svg").clientWidth) <= 1)"""
    )


def test_the_overview_keeps_every_extreme_and_zooming_gives_every_sample(browser: Browser, two: Results) -> None:
    page = browser.open(two.directory / "report.html")
    truth = samples(two, "lia", 0, "sf1", "cwnd_pkts")
    overview = line(page, "cwnd", "mp sf1")
    # 4,001 samples become two points per pixel at most, the highest and the lowest among them.
    assert len(overview["x"]) < 2200 < truth.height
    assert set(zip(overview["x"], overview["y"], strict=True)) <= set(truth.iter_rows())
    assert (max(overview["y"]), min(overview["y"])) == (truth["value"].max(), truth["value"].min())
    assert "smallest and largest value of every" in page.inner_text("#time-shown")

    page.locator("#time-plot .nsewdrag").first.scroll_into_view_if_needed()
    box = page.locator("#time-plot .nsewdrag").first.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.55 * box["width"], y, steps=4)
    page.mouse.up()
    settle(page, "every sample, 10 ms apart")
    first, last = (float(page.input_value(name)) for name in ("#from", "#to"))
    assert first == pytest.approx(20, abs=0.2)
    assert last == pytest.approx(22, abs=0.2)
    for panel, column, unit in (("cwnd", "cwnd_pkts", 1), ("rtt", "rtt_us", 1e-3)):
        for subflow in ("sf1", "sf2"):
            window = samples(two, "lia", 0, subflow, column).filter(pl.col("t").is_between(first, last))
            seen = line(page, panel, f"mp {subflow}")
            inside = [(t, v) for t, v in zip(seen["x"], seen["y"], strict=True) if first <= t <= last]
            assert window.height >= 190
            assert [t for t, _ in inside] == pytest.approx(window["t"].to_list())
            assert [v for _, v in inside] == pytest.approx([unit * v for v in window["value"]])

    page.mouse.dblclick(box["x"] + 0.3 * box["width"], y)
    settle(page, "0 to 40 s")
    assert line(page, "cwnd", "mp sf1") == overview


def test_payload_is_the_growth_of_the_counter_at_every_zoom(browser: Browser, two: Results) -> None:
    page = browser.open(two.directory / "report.html")
    counter = {round(1000 * t): value for t, value in samples(two, "lia", 0, "sf2", "rx_payload_bytes").iter_rows()}
    for first, last, width in ((0, 40, 0.1), (10, 11, 0.01)):
        page.fill("#from", str(first))
        page.fill("#to", str(last))
        page.press("#to", "Enter")
        settle(page, f"{first} to {last} s")
        seen = line(page, "payload", "mp sf2")
        inside = [(t, v) for t, v in zip(seen["x"], seen["y"], strict=True) if first < t < last]
        assert len(inside) == pytest.approx((last - first) / width, abs=1)
        for t, mbps in inside[::7]:
            grown = counter[round(1000 * (t + width / 2))] - counter[round(1000 * (t - width / 2))]
            assert mbps == pytest.approx(8e-6 * grown / width)


def test_the_buttons_move_the_window_and_stay_within_the_run(browser: Browser, two: Results) -> None:
    page = browser.open(two.directory / "report.html")
    for button, window in (
        ("Zoom in", "10 to 30 s"),
        ("Zoom in", "15 to 25 s"),
        ("Earlier", "10 to 20 s"),
        ("Later", "15 to 25 s"),
        ("Zoom out", "10 to 30 s"),
        ("Later", "20 to 40 s"),
        ("Later", "20 to 40 s"),
        ("Whole run", "0 to 40 s"),
    ):
        page.get_by_role("button", name=button, exact=True).click()
        settle(page, window)
    # A window that is none is the whole run, one that is too small is widened.
    for first, last, window in (("30", "10", "0 to 40 s"), ("39.99", "40", "39.9 to 40 s"), ("-5", "3", "0 to 3 s")):
        page.fill("#from", first)
        page.fill("#to", last)
        page.press("#to", "Enter")
        settle(page, window)


def test_runs_and_lines_are_chosen_together(browser: Browser, two: Results) -> None:
    page = browser.open(two.directory / "report.html")
    one = [("lia", name, 0) for name in ("mp sf1", "mp sf2", "tcp")]
    assert drawn(page) == one
    page.get_by_label("reno").check()
    settle(page, "lia, reno, repetition 1")
    assert drawn(page) == [*one, *(("reno", name, 0) for _, name, _ in one)]
    lines = [line for line in page.evaluate(LINES) if line["panel"] == "cwnd"]
    assert [line["label"] for line in lines][3:] == ["reno mp sf1", "reno mp sf2", "reno tcp"]
    assert len({(line["colour"], line["dash"]) for line in lines}) == len({line["colour"] for line in lines}) == 6
    page.get_by_label("Repetition").select_option("2")
    settle(page, "lia, reno, repetition 2")
    assert {rep for _, _, rep in drawn(page)} == {1}
    other = line(page, "cwnd", "mp sf1", "reno")
    truth = samples(two, "reno", 1, "sf1", "cwnd_pkts")
    assert set(zip(other["x"], other["y"], strict=True)) <= set(truth.iter_rows())
    page.click("#time-lines summary")
    page.get_by_role("button", name="None: Subflows").click()
    page.get_by_label("mp sf2").check()
    page.wait_for_function("() => document.getElementById('lines-count').textContent.startsWith('1 of 3 subflows')")
    assert drawn(page) == [("lia", "mp sf2", 1), ("reno", "mp sf2", 1)]
    page.get_by_label("lia").uncheck()
    page.get_by_label("reno").uncheck()
    settle(page, "No run is chosen.")
    assert drawn(page) == []


def test_an_outlier_of_the_round_trip_time_leaves_its_plot_and_is_noted(browser: Browser, tmp_path: Path) -> None:
    """After 10 s without a path, one sample of 10 s made a line at zero of all others."""
    outage = "schedule = [{ at = '12 s', up = false }, { at = '22 s', up = true }]\n"
    text = SCENARIO.replace('duration = "3 s"', 'duration = "40 s"').replace("[links.B]", f"{outage}[links.B]")
    (tmp_path / "outage.toml").write_text(text)
    results = mptcplab.run(tmp_path / "outage.toml", "lia", 1, out=tmp_path / "results", progress=False)
    page = browser.open(results.report(figures=False))
    jump = max(samples(results, "lia", 0, "sf1", "rtt_us")["value"]) / 1000
    assert jump > 9000
    settle(page, f"Round-trip time: values of up to {float(f'{jump:.4g}'):,.0f} ms are above the axis")
    assert max(line(page, "rtt", "mp sf1")["y"], key=lambda value: value or 0) > 9000
    (place,) = (k for k, one in enumerate(page.evaluate(PANELS)) if one == "rtt")
    axis = "yaxis" + (str(place + 1) if place else "")
    assert page.evaluate(f"() => document.getElementById('time-plot').layout.{axis}.range[1]") < 1000


def test_dense_lines_are_solid_and_dashes_come_where_they_can_be_seen(browser: Browser, two: Results) -> None:
    page = browser.open(two.directory / "report.html")
    assert line(page, "cwnd", "tcp")["dash"] == "solid"
    # A saw tooth of the slow path takes seconds.
    assert line(page, "cwnd", "mp sf2")["dash"] == "dash"
    page.fill("#from", "20")
    page.fill("#to", "20.3")
    page.press("#to", "Enter")
    settle(page, "20 to 20.3 s")
    assert line(page, "cwnd", "tcp")["dash"] == "dot"


def test_every_figure_is_saved_as_png_and_svg(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    for kind, figures in (
        ("bars", {"topology", "goodput", "over-time"}),
        ("sweep", {"topology", "goodput", "rtt_mean", "over-time"}),
    ):
        page = browser.open(pages[kind])
        page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        shown = page.locator("[data-figure]")
        names = {shown.nth(i).get_attribute("data-figure") for i in range(shown.count())}
        assert figures <= names
        for name in sorted(figures):
            for form in ("PNG", "SVG"):
                with page.expect_download() as waiting:
                    page.get_by_role("button", name=f"Save {name} as {form}").click()
                path = tmp_path / waiting.value.suggested_filename
                waiting.value.save_as(path)
                assert path.name == f"two-paths-{name}.{form.lower()}"
                if form == "SVG":
                    root = ElementTree.fromstring(path.read_text())
                    assert root.tag == "{http://www.w3.org/2000/svg}svg"
                    assert "var(" not in path.read_text()
                    assert len(list(root.iter())) > 20
                else:
                    assert path.read_bytes().startswith(b"\x89PNG")
                    # Twice the size on the page, and not blank.
                    assert int.from_bytes(path.read_bytes()[16:20], "big") > 800
                    assert path.stat().st_size > 8000


@pytest.mark.parametrize("kind", ["bars", "families", "sweep", "eight", "twenty"])
def test_a_phone_needs_no_sideways_scrolling(browser: Browser, pages: dict[str, Path], kind: str) -> None:
    page = browser.open(pages[kind], PHONE)
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    plot = page.locator("#time-plot").bounding_box()
    assert plot["x"] >= 0 and plot["x"] + plot["width"] <= PHONE[0]
    # Without a mouse there are buttons.
    page.get_by_role("button", name="Zoom in", exact=True).click()
    settle(page, "10 to 30 s" if kind == "bars" else "1 to 3 s" if kind != "sweep" else "0.75 to 2.25 s")


def test_long_names_fit_a_phone(browser: Browser, tmp_path: Path) -> None:
    """A title without spaces made the page wider than the screen, and names of flows were cut off beside their bars."""
    one, two = "a-download-over-both-of-the-networks", "a-download-beside-it-over-the-second"
    scenario = mptcplab.Scenario(title="w" * 120, duration="3 s", warmup="1 s", repetitions=1, cc=["lia"])
    for name, rate in (("a_link_with_a_long_name_of_its_own", 8), ("b", 5)):
        scenario = scenario.link(name, "S", "D", rate=f"{rate} Mbit/s", delay="7 ms", queue="1 BDP")
    scenario = scenario.flow(one, [["a_link_with_a_long_name_of_its_own"], ["b"]]).flow(two, ["b"])
    results = mptcplab.run(scenario, out=tmp_path / "results", progress=False)
    page = browser.open(results.report(figures=False), PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    labels = page.locator("#goodput-plot .ytick text, #goodput-plot .legendtext, #time-plot .legendtext")
    assert labels.count() > 4
    for label in labels.all():
        box = label.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE[0], label.text_content()


# The least room to the right of an entry of a list in columns: to the next entry beside it, or to its bullet.
LEAST_ROOM = """() => {
    const entries = [...document.querySelectorAll(".contents li")];
    const bullet = getComputedStyle(entries[0]).listStyleType === "none" ? 0 : 17;
    const boxes = entries.flatMap((one) => [...one.querySelector("a").getClientRects()].map((box) => ({ one, box })));
    const row = (a, b) => a.one !== b.one && a.box.top < b.box.bottom && b.box.top < a.box.bottom;
    const after = (a) => boxes.filter((b) => row(a, b) && a.box.left < b.box.left);
    return Math.min(1e6, ...boxes.flatMap((a) => after(a).map((b) => b.box.left - bullet - a.box.right)));
}"""


@pytest.mark.parametrize(
    "names",
    [
        ["Summary", *(f"ADW-LOSS-{letter}" for letter in "NSTUVW"), "Figures over several experiments", "How to cite"],
        [
            "Experimental Evaluation of Congestion Control Algorithms of Multipath TCP",
            "Design of fair windows",
            "Priors",
        ],
        ["Adaptive decrease window for BALIA", "a_name_without_spaces_that_is_wider_than_a_column", "Headline claims"],
    ],
)
def test_the_contents_of_papers_do_not_overlap_at_any_width(browser: Browser, names: list[str]) -> None:
    """Before, the bullets of a column stood in the gap between two, on the last letters of the column before."""
    entries = "".join(f'<li><a href="#{number}">{name}</a></li>' for number, name in enumerate(names))
    style = template_text("mptcplab.report", "page.css") + template_text("mptcplab.studies.papers.report", "papers.css")
    page = browser.browser.new_page()
    page.set_content(f'<style>{style}</style><main><nav><ul class="contents">{entries}</ul></nav></main>')
    for width in range(320, 1640, 40):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(LEAST_ROOM) >= 16, width
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_bars_have_their_labels_in_the_middle_at_any_width(browser: Browser, two: Results) -> None:
    middles = """() => [...document.querySelectorAll("#goodput-plot .bars .point")].map((point) => {
        const text = point.querySelector("text"), bar = point.querySelector("path").getBoundingClientRect();
        if (!text || !text.textContent || !text.getBoundingClientRect().width) return null;
        const box = text.getBoundingClientRect();
        return [text.textContent, (box.left + box.right - bar.left - bar.right) / 2, box.width / bar.width];
    }).filter(Boolean)"""
    page = browser.open(two.directory / "report.html")
    for width in (1280, 500, 360, 900):
        resize(page, width, 800)
        found = page.evaluate(middles)
        assert any(text == "mp sf1" for text, _, _ in found)
        for text, off, part in found:
            assert abs(off) < 2, (width, text)
            assert part < 1, (width, text)


def test_what_the_pointer_shows_of_a_small_goodput_is_not_zero(browser: Browser, tmp_path: Path) -> None:
    """As in the table: a flow of 1.2 kbit/s was shown as 0.00 Mbit/s."""
    links = [s.link("A", "S", "D", 9)]
    scenario = s.resolved(links, [s.tcp("mp", s.subflow("sf1", "A"), cc="lia")], duration_s=4)
    runs = [s.run_row(rep, scenario, cc="lia", rep=rep, sample_ms=4000) for rep in range(2)]
    rows: dict[str, list[dict[str, Any]]] = {"flow": [], "subflow": []}
    for rep, rate in enumerate((130, 170)):
        for t in (0, 4):
            rows["flow"].append({"run": rep, "t": t, "flow": "mp", "delivered_bytes": rate * t})
            sizes = {"rx_wire_bytes": rate * t, "rx_payload_bytes": rate * t, "cwnd_pkts": 9, "rtt_us": 20_000}
            rows["subflow"].append({"run": rep, "t": t, "flow": "mp", "subflow": "sf1", **sizes})
    s.write(tmp_path, runs, **rows)
    page = browser.open(Results.open(tmp_path).report(figures=False))
    texts = page.evaluate("() => document.getElementById('goodput-plot').data.flatMap((one) => one.hovertemplate)")
    plain = {text.partition("<")[0] for text in texts}
    assert {"mean: 0.0012 Mbit/s", "one repetition: 0.0010 Mbit/s", "fair share: 9.00 Mbit/s"} <= plain


def test_no_interval_and_no_circle_crosses_the_label_of_a_bar(browser: Browser, tmp_path: Path) -> None:
    """Before, the line of a wide interval went through the names of the parts. Now these are in the legend."""
    links = [s.link("A", "S", "D", 9, delay_ms=4), s.link("B", "S", "D", 6, delay_ms=15)]
    flow = s.tcp("mp", s.subflow("first", "A"), s.subflow("other", "B"), cc="lia")
    # lia: 12 and 4 Mbit/s, whose interval covers everything; olia: 12 and 12.1.
    mbit_s = {"lia": ((8, 4), (2, 2)), "olia": ((7, 5), (7.1, 5))}
    runs: list[dict[str, Any]] = []
    rows: dict[str, list[dict[str, Any]]] = {"flow": [], "subflow": []}
    for cc, reps in mbit_s.items():
        for rep, rates in enumerate(reps):
            run = len(runs)
            runs.append(s.run_row(run, s.resolved(links, [flow], duration_s=8), cc=cc, rep=rep, sample_ms=4000))
            for t in (0, 4, 8):
                grown = [round(rate * 1e6 / 8 * t) for rate in rates]
                rows["flow"].append({"run": run, "t": t, "flow": "mp", "delivered_bytes": sum(grown)})
                for name, size in zip(("first", "other"), grown, strict=True):
                    sizes = {"rx_wire_bytes": size, "rx_payload_bytes": size, "cwnd_pkts": 9, "rtt_us": 20_000}
                    rows["subflow"].append({"run": run, "t": t, "flow": "mp", "subflow": name, **sizes})
    s.write(tmp_path, runs, **rows)
    page = browser.open(Results.open(tmp_path).report(figures=False))
    inside = [text for text in page.locator("#goodput-plot .bars text").all_text_contents() if text]
    assert inside == ["first", "other"]
    assert page.locator("#goodput-plot .legendtext").all_text_contents() == ["first", "other"]


def test_the_keyboard_reaches_everything_and_everything_has_a_name(browser: Browser, pages: dict[str, Path]) -> None:
    page = browser.open(pages["bars"])
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, [tabindex], svg[role=img]")].filter((one) =>
            !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim()))
            .map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    # The table had the name of the part of the page that it is in, and the scenario file scrolled by mouse only.
    regions = page.get_by_role("region").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('aria-label') ?? one.querySelector('h2').textContent)"
    )
    assert len(regions) == len(set(regions)) and "Table of results" in regions
    unreached = page.evaluate(
        """() => [...document.querySelectorAll("main :not(.choices, .command)")].filter((one) =>
            one.tabIndex < 0 && ["auto", "scroll"].includes(getComputedStyle(one).overflowX))
            .map((one) => one.outerHTML)"""
    )
    assert unreached == []
    reached: list[str] = []
    page.evaluate("() => { const title = document.querySelector('h1'); title.tabIndex = -1; title.focus(); }")
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.textContent.trim().slice(0, 20)")
        )
        if reached[-1] == "zoom-in":
            break
    assert {"rep", "from", "to", "zoom-in", "PNG", "goodput-plot"} <= set(reached)
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    settle(page, "10 to 30 s")
    assert page.get_by_role("status").inner_text().startswith("lia, repetition 1, 10 to 30 s")


def test_many_lines_have_a_legend_and_none_is_dropped(browser: Browser, pages: dict[str, Path]) -> None:
    page = browser.open(pages["twenty"])
    assert len(drawn(page)) == 12
    assert "plots over time first show 12 of 20 subflows" in page.inner_text(".warnings")
    page.click("#time-lines summary")
    page.get_by_role("button", name="All: Subflows").click()
    page.wait_for_function("() => document.getElementById('lines-count').textContent.startsWith('20 of 20 subflows')")
    assert len(drawn(page)) == 20
    names = page.locator("#time-plot .legendtext").all_text_contents()
    assert {f"host{number}" for number in range(1, 21)} <= set(names)
    looks: dict[str, set[tuple[str, str]]] = {}
    for one in page.evaluate(LINES):
        if one["panel"] != "queue":
            looks.setdefault(one["panel"], set()).add((one["colour"], one["dash"]))
    # Dense lines are solid, so that only their colours differ.
    assert min(map(len, looks.values())) < 20
    assert "some of the 20 lines look alike, so point at one to read its name" in page.inner_text("#time-shown")
    eight = browser.open(pages["eight"])
    assert len(drawn(eight)) == 8
    assert "look alike" not in browser.open(pages["bars"]).inner_text("#time-shown")
    assert eight.locator("#time-plot .legendtext").count() == 0


def test_a_dark_page_has_dark_plots(browser: Browser, two: Results) -> None:
    page = browser.open(two.directory / "report.html")
    page.emulate_media(color_scheme="dark")
    fill = "document.querySelector('#time-plot .main-svg').style.background"
    page.wait_for_function(f"() => {fill} === 'rgb(21, 24, 28)'")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"() => {fill} === 'rgb(255, 255, 255)'")


def test_a_printed_page_is_light_and_complete(browser: Browser, pages: dict[str, Path]) -> None:
    """Printed from a dark screen, it was light grey on white. Open figures were left out, and tables were cut off."""
    page = browser.open(pages["sweep"])
    page.evaluate("document.querySelectorAll('details').forEach((one, number) => one.open = number < 2)")
    shown = """() => [...document.querySelectorAll("details")].map((one) => [one.open, one.checkVisibility()])"""
    fill = "document.querySelector('#time-plot .main-svg').style.background"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => {fill} === 'rgb(21, 24, 28)'")
    page.emulate_media(color_scheme="dark", media="print")
    page.wait_for_function(f"() => {fill} === 'rgb(255, 255, 255)'")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 31, 35)"
    assert {(True, True), (False, False)} == {tuple(one) for one in page.evaluate(shown)}
    assert not page.locator("#details").is_visible()
    assert page.locator("h2#results ~ .scroll").evaluate("(one) => getComputedStyle(one).overflowX") == "visible"
    page.emulate_media(color_scheme="light", media="screen")
    assert page.locator("#details").is_visible()


def test_a_table_is_legible_in_a_dark_notebook(browser: Browser, two: Results) -> None:
    """Its heading was white on white, because JupyterLab's text colour of tables took effect on our background."""
    page = browser.browser.new_page()
    # What JupyterLab's style sheets say of tables, with the values of its dark theme.
    page.set_content(
        f"""<style>.jp-RenderedHTMLCommon table {{ color: white; }}
            .jp-RenderedHTMLCommon tbody tr:nth-child(odd) {{ background: #111111; }}</style>
        <div class="jp-RenderedHTMLCommon">{two._repr_html_()}</div>"""
    )
    for cell in ("th", "tbody td"):
        assert page.locator(cell).first.evaluate("(one) => getComputedStyle(one).color") == "rgb(28, 31, 35)"
    row = page.locator("tbody tr").first
    assert row.evaluate("(one) => getComputedStyle(one).backgroundColor") == "rgba(0, 0, 0, 0)"
    page.close()
