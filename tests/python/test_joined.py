"""Results that are joined, compared and listed."""

from __future__ import annotations

import errno
import html
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from command_line import lab
from conftest import ROOT

import mptcplab
from mptcplab import kept
from mptcplab.cli import results as commands
from mptcplab.comparing import SHOWN
from mptcplab.comparing import page as page_of_comparison
from mptcplab.errors import MixedResultsWarning, MptcplabError, OutputError, ResultsError
from mptcplab.output import TABLES
from mptcplab.report.parameters import over_parameter

TEXT = """\
title = "Joined"
duration = "2 s"
warmup = "500 ms"
repetitions = 3
cc = "lia"

[links.A]
from = "S"
to = "D"
rate = "4 Mbit/s"
delay = "7 ms"
loss = "0.5 %"

[links.B]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "13 ms"

[flows.mp]
paths = [["A"], ["B"]]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results: lia, olia, both, lia with another seed, and lia with another rate; one engine, and two."""
    directory = tmp_path_factory.mktemp("joined")
    scenario = directory / "joined.toml"
    scenario.write_text(TEXT)

    def run(name: str, **changes: object) -> None:
        mptcplab.run(scenario, out=directory / name, jobs=1, progress=False, **changes)  # type: ignore[arg-type]

    run("lia", cc="lia")
    run("olia", cc="olia")
    run("both", cc="lia,olia")
    run("seeded", cc="lia", seed=7, reps=2)
    run("faster", cc="lia", settings={"links.A.rate": "5 Mbit/s"})
    run("engines", cc="lia", engine="sim,fluid")
    return directory


def test_joined_results_have_the_bytes_of_one_sweep(place: Path, tmp_path: Path) -> None:
    results = mptcplab.merge(place / "lia", place / "olia", out=tmp_path / "out")
    for table in TABLES[1:]:
        one, other = ((path / f"{table}.parquet").read_bytes() for path in (place / "both", tmp_path / "out"))
        assert one == other, table
    assert results.runs.equals(mptcplab.load(place / "both").runs)
    assert "mptcplab merge" in results.report(figures=False).read_text()
    # As results of a sweep: the tables are sealed.
    assert set(json.loads((tmp_path / "out" / "checksums.json").read_text())) == {
        f"{table}.parquet" for table in TABLES
    }


def test_a_run_that_several_have_is_taken_once_and_other_seeds_are_repetitions(place: Path, tmp_path: Path) -> None:
    results = mptcplab.merge(place / "both", place / "lia", place / "seeded", out=tmp_path / "out")
    assert results.runs.group_by("cc", "seed", maintain_order=True).len().rows() == [
        ("lia", 1, 3),
        ("olia", 1, 3),
        ("lia", 7, 2),
    ]
    summary = results.summary().filter(pl.col("subflow").is_null(), metric="goodput")
    assert summary.select("cc", "n").rows() == [("lia", 5), ("olia", 3)]
    # A joined result is one like others: what it has is not joined again.
    assert mptcplab.merge(tmp_path / "out", place / "olia", out=tmp_path / "again").runs.height == 8


@pytest.mark.parametrize("order", [("lia", "swept"), ("swept", "lia")])
def test_a_point_of_a_sweep_keeps_its_runs_beside_the_same_settings(
    place: Path, tmp_path: Path, order: tuple[str, str]
) -> None:
    """The sweep has the rate of the file among its values, and fewer repetitions."""
    rates = {"links.A.rate": ["4 Mbit/s", "5 Mbit/s", "6 Mbit/s"]}
    mptcplab.run(place / "joined.toml", reps=2, sweep=rates, out=tmp_path / "swept", progress=False)
    parts = {"lia": place / "lia", "swept": tmp_path / "swept"}
    results = mptcplab.merge(*(parts[name] for name in order), out=tmp_path / "out")
    summary = results.summary().filter(pl.col("subflow").is_null(), metric="goodput")
    found = dict(summary.select("config", "n").iter_rows())
    swept = {f"lia, links.A.rate = {rate} Mbit/s": 2 for rate in (4, 5, 6)}
    assert found == {"lia": 3, **swept}
    # The curve over the rate has three points; what has no rate of its own is not on it.
    (plot,) = over_parameter(results).plots
    assert [point.x for curve in plot.curves for point in curve.points] == [4, 5, 6]
    page = results.report().read_text(encoding="utf-8")
    assert "It joins the results of these directories again." in page
    assert "Save the scenario file below" not in page


def test_the_same_call_goes_on_with_what_it_has_joined(place: Path, tmp_path: Path) -> None:
    parts = (place / "engines", place / "olia")
    mptcplab.merge(*parts, out=tmp_path / "m")
    former = (tmp_path / "m" / "sim" / "run.parquet").stat()
    # As after a kill before the report was written.
    again = lab("merge", *parts, "--out", tmp_path / "m", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert f"nothing to join: {tmp_path / 'm'} has these 9 runs; --force joins them again" in again.stderr
    assert (tmp_path / "m" / "report.html").is_file()
    assert (tmp_path / "m" / "sim" / "run.parquet").stat() == former
    mptcplab.merge(*parts, out=tmp_path / "m", force=True)
    assert not (tmp_path / "m" / "report.html").exists()
    # Other runs under the same names are not what was joined.
    shutil.copytree(place / "lia", tmp_path / "one")
    shutil.copytree(place / "olia", tmp_path / "two")
    mptcplab.merge(tmp_path / "one", tmp_path / "two", out=tmp_path / "n")
    shutil.rmtree(tmp_path / "one")
    shutil.copytree(place / "seeded", tmp_path / "one")
    with pytest.raises(OutputError, match="not empty"):
        mptcplab.merge(tmp_path / "one", tmp_path / "two", out=tmp_path / "n")


def test_results_of_several_engines_are_joined_engine_by_engine(place: Path, tmp_path: Path) -> None:
    results = mptcplab.merge(place / "engines", place / "olia", out=tmp_path / "out")
    assert results.engines == ["sim", "fluid"]
    assert results.runs.group_by("engine", "cc", maintain_order=True).len().rows() == [
        ("sim", "lia", 3),
        ("sim", "olia", 3),
        ("fluid", "lia", 3),
    ]


def test_one_name_for_two_scenarios_is_an_error(place: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ResultsError, match=r"lia is not the same in .*lia and .*faster: links\.A\.rate_bps: 4000000 and 5"
    ):
        mptcplab.merge(place / "lia", place / "faster", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_joined_is_refused_before_anything_is_written(place: Path, tmp_path: Path) -> None:
    with pytest.raises(mptcplab.MptcplabError, match="two results directories or more"):
        mptcplab.merge(place / "lia", out=tmp_path / "out")
    with pytest.raises(mptcplab.MptcplabError, match="would replace a part of them"):
        mptcplab.merge(place / "lia", place / "olia", out=place / "lia", force=True)
    with pytest.raises(OutputError, match="not empty"):
        mptcplab.merge(place / "lia", place / "olia", out=place / "both")
    with pytest.raises(ResultsError, match="no such results directory"):
        mptcplab.merge(place / "lia", place / "nowhere", out=tmp_path / "out")
    broken = tmp_path / "broken"
    shutil.copytree(place / "olia", broken)
    table = bytearray((broken / "link.parquet").read_bytes())
    table[len(table) // 2] ^= 1
    (broken / "link.parquet").write_bytes(table)
    with pytest.raises(ResultsError, match=r"damaged: .*link\.parquet"):
        mptcplab.merge(place / "lia", broken, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_builds_are_mentioned(place: Path, tmp_path: Path) -> None:
    from mptcplab import _core

    older = tmp_path / "older"
    rows = pl.read_parquet(place / "olia" / "run.parquet")
    texts = [{"build": "f00"} for _ in range(rows.height)]
    _core.merge_traces([(place / "olia", run) for run in rows["run"]], older, texts)
    with pytest.warns(MixedResultsWarning, match="runs on sim are of 2 builds: .*f00"):
        mptcplab.merge(place / "lia", older, out=tmp_path / "out")
    notes = mptcplab.compare(place / "olia", older).notes
    assert any(line.startswith("the build differs: ") and line.endswith("f00 in B") for line in notes)


def test_the_same_seeds_are_compared_in_pairs(place: Path) -> None:
    found = mptcplab.compare(place / "lia", place / "faster")
    row = found.differences.filter(pl.col("subflow").is_null(), metric="goodput").row(0, named=True)
    one, other = (
        mptcplab.load(place / name).metrics(["goodput"]).filter(pl.col("subflow").is_null())["value"]
        for name in ("lia", "faster")
    )
    assert row["paired"]
    assert (row["n_a"], row["n_b"]) == (3, 3)
    assert row["mean_a"] == pytest.approx(one.mean())
    assert row["difference"] == pytest.approx(100 * (other.mean() / one.mean() - 1))
    # The quotient's interval from the residuals of the three pairs; t of two degrees of freedom is 4.3027.
    residuals = other - other.mean() / one.mean() * one
    assert row["half"] == pytest.approx(100 * 4.302653 * residuals.std() / 3**0.5 / one.mean(), rel=1e-5)
    (note,) = found.notes
    assert note.startswith("the scenario of lia differs: links.A.rate_bps: 4000000 and 5000000; links.A~.rate_bps: ")


def test_other_seeds_are_compared_by_their_means(place: Path) -> None:
    found = mptcplab.compare(place / "lia", place / "seeded")
    assert not found.differences["paired"].any()
    row = found.differences.filter(metric="ratio").row(0, named=True)
    assert (row["n_a"], row["n_b"], row["unit"]) == (3, 2, "")
    assert found.notes == []


def test_links_are_compared_and_identical_results_do_not_differ(place: Path) -> None:
    found = mptcplab.compare(place / "lia", place / "both")
    assert found.differences["difference"].drop_nulls().abs().max() == 0
    assert set(found.differences["link"].drop_nulls()) >= {"A", "B"}
    assert found.notes == ["1 configuration of B is not in the other one"]


def test_two_algorithms_are_compared_and_what_has_nothing_in_common_is_not(place: Path, tmp_path: Path) -> None:
    found = mptcplab.compare(place / "lia", place / "olia")
    assert set(found.differences["config"]) == {"lia \N{RIGHTWARDS ARROW} olia"}
    # That the algorithms differ is what is compared; it was noted, twice, as a difference of the scenarios.
    assert found.notes == []
    mptcplab.run(place / "joined.toml", "reno,cubic", 1, out=tmp_path / "others", progress=False)
    with pytest.raises(ResultsError, match=r"no run in common\n\nhint: .*both has lia, olia; .*others has reno, cubic"):
        mptcplab.compare(place / "both", tmp_path / "others")


def test_two_algorithms_of_one_result_are_compared_as_those_of_two(place: Path) -> None:
    found = mptcplab.compare(place / "both", cc=["lia", "olia"])
    apart = mptcplab.compare(place / "lia", place / "olia")
    assert found.differences.equals(apart.differences)
    assert found.differences["paired"].all()
    assert (found.a, found.b) == (f"lia of {place / 'both'}", f"olia of {place / 'both'}")
    assert found.notes == []


def test_algorithms_are_compared_for_every_combination_of_the_other_axes(place: Path, tmp_path: Path) -> None:
    swept = tmp_path / "swept"
    rates = {"links.A.rate": ["11 Mbit/s", "14 Mbit/s"]}
    several = ["lia", "olia", "ewtcp(weight=sqrt)"]
    mptcplab.run(place / "joined.toml", several, 2, sweep=rates, out=swept, progress=False)
    found = mptcplab.compare(swept, cc=["olia", "ewtcp(weight=sqrt)"]).differences
    arrow = "olia \N{RIGHTWARDS ARROW} ewtcp(weight=sqrt), links.A.rate = "
    assert set(found["config"]) == {f"{arrow}11 Mbit/s", f"{arrow}14 Mbit/s"}
    done = lab("compare", "swept", "--cc", "olia,ewtcp(weight=sqrt)", "--metrics", "jain", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["differences"] == found.to_dicts()
    assert mptcplab.compare(swept, cc="olia, ewtcp(weight=sqrt)").differences.equals(found)
    for cc in (["lia"], ["lia", "lia"], "lia", "lia,lia", "lia,olia,lia"):
        with pytest.raises(ResultsError, match="does not name two algorithms"):
            mptcplab.compare(swept, cc=cc)
    with pytest.raises(ResultsError, match=r"no runs of lia and reno that fit\n\nhint: its algorithms are lia, olia, "):
        mptcplab.compare(swept, cc=["lia", "reno"])
    for words in ({}, {"b": swept, "cc": ["lia", "olia"]}):
        with pytest.raises(ResultsError, match="either a second directory or two algorithms"):
            mptcplab.compare(swept, **words)


def test_a_difference_has_its_unit_and_enough_digits(place: Path) -> None:
    """Of 0.19 % and 0.62 %, it was +0.429 beside +1.4 %; a certain one was -0.000 ± 0.000 with a star."""
    found = mptcplab.compare(place / "lia", place / "faster")
    values = {"retx_rate": (0.19, 0.62, 0.43, 0.07), "plr": (0.04, 0.04, -0.000042, 0.00001)}
    values |= {"goodput": (4.0, 5.0, 25.0, 2.0), "jain": (0.8, 0.9, 0.1, 0.2)}
    names = ("mean_a", "mean_b", "difference", "half")
    one = found.differences.row(0, named=True)
    rows = [
        {**one, "metric": metric, "unit": "%" * (metric == "goodput"), **dict(zip(names, numbers, strict=True))}
        for metric, numbers in values.items()
    ]
    table = replace(found, differences=pl.DataFrame(rows, schema=found.differences.schema)).table(values)
    (at,) = (column for column, (title, _) in enumerate(table.head) if title == "Difference")
    assert [row[at] for row in table.rows] == [
        "+0.430 ± 0.070 points *",
        "-0.00004 ± 0.00001 points *",
        "+25.0 ± 2.0 % *",
        "+0.1000 ± 0.2000",
    ]


def test_a_comparison_has_a_page_with_its_table_its_figures_and_its_command(place: Path, tmp_path: Path) -> None:
    """`run`, `agree` and `reproduce` had a page to look at, and `compare` a table alone."""
    done = lab("compare", str(place / "lia"), str(place / "olia"), "--report", "sub/page.html", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["report"] == "sub/page.html"
    page = html.unescape((tmp_path / "sub/page.html").read_text())
    found = mptcplab.compare(place / "lia", place / "olia")
    rows = found.table(["goodput", "rtt_mean", "total_goodput"]).rows
    assert len(rows) == 7
    for row in rows:
        assert all(f">{cell}</td>" in page for cell in row[4:])
    assert f"mptcplab compare {place / 'lia'} {place / 'olia'} --report sub/page.html</code>" in page
    figures = re.findall(r'data-figure="(.*?)"', page)
    assert {"goodput", "rtt-mean"} <= set(figures)
    # That of the total of a single flow would be that of the flow.
    assert "total-goodput" not in figures
    assert re.search(r"has no figure: .*Total goodput", page)
    assert "A: lia" in page
    assert "B: olia" in page
    visible = page[page.index("<body>") :]
    assert not re.search(r"""\b(?:src|href)\s*=\s*"(?!#)|@import|url\((?!#)|https?://""", visible)
    assert "default-src 'none'" in page


def test_the_figures_of_a_comparison_have_every_pair_and_its_difference(place: Path) -> None:
    found = mptcplab.compare(place / "lia", place / "faster")
    data, left = page_of_comparison._data(found, "goodput")
    assert left == 0
    [row] = data.rows
    one, other = (
        mptcplab.load(place / name).metrics(["goodput"]).filter(pl.col("subflow").is_null()).sort("rep")["value"]
        for name in ("lia", "faster")
    )
    assert (row.a.points, row.b.points) == (tuple(one), tuple(other))
    assert row.a.mean == pytest.approx(one.mean())
    # t of two degrees of freedom.
    assert row.b.half == pytest.approx(4.302653 * other.std() / 3**0.5)
    shown = found.differences.filter(pl.col("subflow").is_null(), metric="goodput").row(0, named=True)
    assert (row.difference, row.half, row.paired) == (shown["difference"], shown["half"], True)
    # Of links, and of what has no pairs.
    links, _ = page_of_comparison._data(mptcplab.compare(place / "lia", place / "seeded"), "utilisation")
    assert {"A", "B"} <= {row.label for row in links.rows}
    assert not any(row.paired for row in links.rows)
    assert {(len(row.a.points), len(row.b.points)) for row in links.rows} == {(3, 2)}


def test_the_page_of_a_comparison_replaces_a_former_one_and_no_other_file(place: Path, tmp_path: Path) -> None:
    found = mptcplab.compare(place / "both", cc="lia,olia")
    path = found.report(tmp_path / "page.html", "jain")
    first = path.read_text()
    assert f"--cc lia,olia --metrics jain --report {path}</code>" in first
    assert found.report(path).read_text() != first
    other = tmp_path / "notes.html"
    other.write_text("mine")
    for given, message in (
        (other, "the file exists already: .*notes.html\n\nhint: only an earlier page of a comparison is replaced"),
        (tmp_path, "this is a directory: .*\n\nhint: .*/comparison.html"),
        (other / "page.html", "cannot write the page: .*notes.html: File exists"),
        (tmp_path / "caf\udce9.html", "not a name in UTF-8: .*caf"),
    ):
        with pytest.raises(OutputError, match=message):
            found.report(given)
    assert other.read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["notes.html", "page.html"]
    for metrics, message in (([], "metrics: none is named"), ("speed", "speed")):
        with pytest.raises(MptcplabError, match=message):
            found.report(path, metrics)


def test_the_page_of_one_repetition_and_of_equal_results_says_what_is_missing(place: Path, tmp_path: Path) -> None:
    same = mptcplab.compare(place / "lia", place / "lia").report(tmp_path / "same.html").read_text()
    assert "0.0 ± 0.0 %" in same
    single = tmp_path / "single"
    mptcplab.run(place / "joined.toml", "lia,olia", 1, out=single, progress=False)
    page = mptcplab.compare(single, cc="lia,olia").report(tmp_path / "single.html").read_text()
    assert "With one repetition, there are no intervals" in page
    assert "one repetition</text>" not in page


def test_the_page_of_many_configurations_leaves_out_rows_and_says_so(place: Path, tmp_path: Path) -> None:
    rates = {"links.A.rate": [f"{rate} Mbit/s" for rate in range(3, 30)]}
    mptcplab.run(place / "joined.toml", ["lia", "olia"], 1, duration="600 ms", sweep=rates, out=tmp_path / "swept")
    page = mptcplab.compare(tmp_path / "swept", cc="lia,olia").report(tmp_path / "page.html").read_text()
    assert "3 of 27 rows are not drawn." in page
    assert re.search(r"\d+ more rows are in what `mptcplab compare --json` prints", page)
    # Names of configurations have what differs in them.
    assert '<th scope="row">links.A.rate = 3 Mbit/s</th>' in page


def test_a_list_of_configurations_that_is_cut_off_says_so_and_names_every_algorithm(
    place: Path, tmp_path: Path
) -> None:
    """The first six of 18 looked like all, as if there were one algorithm."""
    rates = {"links.A.rate": [f"{rate} Mbit/s" for rate in range(11, 17)]}
    reno = "ewtcp(weight=sqrt)"
    swept = mptcplab.run(place / "joined.toml", [reno, "lia", "olia"], 1, sweep=rates, out=tmp_path / "swept")
    pattern = r"hint: (\S+) has lia, olia; (\S+) has ('.*') and 12 more$"
    with pytest.raises(ResultsError) as caught:
        mptcplab.compare(place / "both", tmp_path / "swept")
    found = re.search(pattern, str(caught.value), re.MULTILINE)
    assert found is not None
    assert found[3].count("'") == 2 * 6
    shown = [f"{cc}, links.A.rate = " for cc in (reno, "lia", "olia")]
    assert all(name in found[3] for name in shown)
    assert repr(swept).startswith(f"Results(18 runs of 'joined': '{shown[0]}11 Mbit/s', ")
    assert repr(swept).endswith("16 Mbit/s' and 10 more)")
    assert all(name in repr(swept) for name in shown)
    with pytest.raises(MptcplabError, match=r"there are: .* and 6 more$") as unknown:
        swept.plot.over_time("lia")
    assert all(name in str(unknown.value) for name in shown)


def test_one_algorithm_has_the_name_that_it_has_among_several(tmp_path: Path) -> None:
    """Its runs were called ewtcp+reno, after the algorithms of all flows and without parameters."""
    beside = tmp_path / "beside.toml"
    beside.write_text(TEXT + '\n[flows.tcp]\npath = ["A"]\ncc = "reno"\n')
    one, several = "ewtcp(weight=sqrt)", ["ewtcp(weight=sqrt)", "lia"]
    for out, cc in (("one", one), ("several", several), ("file", None)):
        mptcplab.run(beside, cc, 2, out=tmp_path / out, progress=False)
    assert mptcplab.load(tmp_path / "one").configs["config"].unique().to_list() == [one]
    found = mptcplab.compare(tmp_path / "one", tmp_path / "several")
    assert set(found.differences["config"]) == {one}
    assert found.notes == ["1 configuration of B is not in the other one"]
    assert set(found.differences["difference"].drop_nulls()) == {0.0}
    both = mptcplab.merge(tmp_path / "one", tmp_path / "several", out=tmp_path / "both")
    assert both.runs["cc"].to_list() == [one, one, "lia", "lia"]
    # The command that repeats it is the one that was given; a file that names no axis has the algorithms of its flows.
    assert json.loads(mptcplab.load(tmp_path / "one").overrides or "") == {"cc": [one], "reps": 2}
    assert mptcplab.load(tmp_path / "file").runs["cc"].to_list() == ["lia+reno"] * 2


def test_the_commands_print_tables_and_json(place: Path, tmp_path: Path) -> None:
    joined = lab("merge", place / "lia", place / "olia", "--out", tmp_path / "m", "--no-report", "--json", cwd=tmp_path)
    assert json.loads(joined.stdout)["runs"] == 6
    compared = lab("compare", place / "lia", place / "faster", "--metrics", "goodput", cwd=tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert compared.stdout.count("Goodput") == 3
    assert "the scenario of lia differs" in compared.stderr
    wrong = lab("compare", place / "lia", place / "faster", "--metrics", "godput", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr) == (2, "error: no such metric: 'godput'\n\nhint: did you mean 'goodput'?\n")
    for none in ("", " ,"):
        refused = lab("compare", place / "lia", place / "faster", "--metrics", none, cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"error: no metric in this list: {none!r}\n\nhint: all, or some of ")
        assert ", goodput, " in refused.stderr
    listed = lab("ls", place, cwd=tmp_path)
    assert [line.split()[1] for line in listed.stdout.splitlines()[2:]] == ["complete"] * 6


def test_the_list_has_results_and_what_is_left_of_others(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "both", tmp_path / "deep" / "both")
    with kept.workspace(tmp_path / "late") as space:
        shutil.copytree(place / "lia", space.place("sim") / "000001")
        shutil.copytree(place / "olia", space.place("sim") / "000002")
        (used,) = mptcplab.ls(tmp_path / "late.partial")
        assert (used.state, used.remark) == ("in use", "a command is making it")
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    shutil.copytree(place / "engines", tmp_path / f"x.former-{child.pid}")
    shutil.copytree(place / "lia", tmp_path / "broken")
    (tmp_path / "broken" / "run.parquet").write_text("no")
    (tmp_path / "notes").mkdir()
    found = {Path(one.directory).name.partition(".former")[0]: one for one in mptcplab.ls(tmp_path)}
    assert {name: one.state for name, one in found.items()} == {
        "broken": "damaged",
        "both": "complete",
        "late.partial": "unfinished",
        "x": "left behind",
    }
    assert found["late.partial"].algorithms == ("lia", "olia")
    assert (found["late.partial"].runs, found["late.partial"].repetitions) == (6, 3)
    assert "goes on with it" in found["late.partial"].remark
    assert found["x"].engines == ("sim", "fluid")
    both = tmp_path / "deep" / "both"
    assert found["both"].bytes == sum(path.stat().st_size for path in both.iterdir())
    with pytest.raises(ResultsError, match="no such directory"):
        mptcplab.ls(tmp_path / "nowhere")


def test_what_a_user_may_not_read_hides_no_results_from_a_list(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One such directory ended the list with an error about a file run.parquet in it."""
    shutil.copytree(place / "lia", tmp_path / "good")
    (tmp_path / "closed").mkdir()
    shutil.copytree(place / "olia", tmp_path / "other")
    is_file, scan = Path.is_file, pl.scan_parquet

    def refused(path: Path) -> bool:
        # As the system answers; the superuser may read everything.
        if path.parent == tmp_path / "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return is_file(path)

    def scanned(source: Path) -> pl.LazyFrame:
        if source.parent == tmp_path / "other":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(source))
        return scan(source)

    monkeypatch.setattr(Path, "is_file", refused)
    monkeypatch.setattr(pl, "scan_parquet", scanned)
    states = {Path(one.directory).name: one.state for one in mptcplab.ls(tmp_path)}
    assert states == {"good": "complete", "other": "unreadable"}
    said = capsys.readouterr().err
    assert said == f"note: cannot look into a directory: {tmp_path / 'closed'}: Permission denied\n"
    with pytest.raises(ResultsError, match=r"^cannot look into a directory: .*closed: Permission denied"):
        mptcplab.ls(tmp_path / "closed")


def test_a_narrow_terminal_shows_the_differences(place: Path) -> None:
    """It showed names, and left out the differences, for which one had asked."""
    head = [name for name, _ in mptcplab.compare(place / "lia", place / "olia").table(["goodput"]).head]
    assert head.index("Difference") < head.index("A")


TWO = """
duration = "12 s"
warmup = "2 s"

[links.A]
from = "S"
to = "D"
rate = "4 Mbit/s"
delay = "5 ms"

[flows.mp]
transport = "mptcp"
paths = [["A"], ["A"]]

[flows.tcp]
path = ["A"]
cc = "cubic"
"""


def test_runs_that_are_named_by_all_algorithms_are_compared_with_those_that_are_named_by_one(tmp_path: Path) -> None:
    """A file that names the algorithm itself calls its runs otherwise than a command, so that nothing was compared."""
    (tmp_path / "two.toml").write_text(TWO)
    (tmp_path / "own.toml").write_text('cc = "lia"\n' + TWO)
    with chdir(tmp_path):
        mptcplab.run("two.toml", "lia,olia", 2, out="both", progress=False)
        mptcplab.run("own.toml", reps=2, out="one", progress=False)
        same = mptcplab.compare("both", "one")
    assert set(same.differences["config"]) == {"lia = lia+cubic"}
    assert same.differences["difference"].drop_nulls().abs().max() == 0
    assert same.notes == ["1 configuration of A is not in the other one"]


def test_c_files_are_compared_across_results(tmp_path: Path) -> None:
    """Sources were shown as digests."""
    (tmp_path / "two.toml").write_text(TWO)
    for place, name, increase in (("p", "own", 1), ("p", "rising", 2), ("q", "own", 4)):
        (tmp_path / place).mkdir(exist_ok=True)
        text = (ROOT / "algorithms" / "template.c").read_text().replace("template", name)
        text = text.replace("increase, .initial = 1", f"increase, .initial = {increase}")
        (tmp_path / place / f"{name}.c").write_text(text)
    with chdir(tmp_path):
        both = mptcplab.run("two.toml", "p/own.c,p/rising.c", 2, out="both", progress=False)
        mptcplab.run("two.toml", "p/own.c", 2, out="one", progress=False)
        mptcplab.run("two.toml", "q/own.c", 2, out="other", progress=False)
        assert both.configs["config"].unique(maintain_order=True).to_list() == ["own", "rising"]
        same = mptcplab.compare("both", "one")
        other = mptcplab.compare("one", "other")
    assert set(same.differences["config"]) == {"own"}
    assert same.differences["difference"].drop_nulls().abs().max() == 0
    assert same.notes == ["1 configuration of A is not in the other one"]
    row = other.differences.filter(pl.col("subflow").is_null(), metric="goodput", flow="mp").row(0, named=True)
    assert (row["n_a"], row["n_b"], row["paired"]) == (2, 2, True)
    assert row["difference"] is not None
    (note,) = other.notes
    said = r"the scenario of own differs: flows\.mp\.cc: two C files of one name \(their SHA-256 begins with \w{8} "
    assert re.match(said, note), note


def test_the_command_shows_the_metrics_that_a_page_has() -> None:
    # Written twice, because the command must not import what reads tables.
    assert commands._SHOWN.split(", ") == list(SHOWN)
