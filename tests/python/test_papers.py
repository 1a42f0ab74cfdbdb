"""The papers: the language of claims, what a cell depends on, and a reproduction that is stopped and goes on."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mptcplab import api
from mptcplab.errors import EngineError, MptcplabError, OutputError
from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.planner import Planner, algorithm_names
from mptcplab.studies.papers.predicate import Domain, evaluate, parse
from mptcplab.studies.papers.reproduce import reproduce
from mptcplab.studies.papers.selectors import SelectorResolver
from mptcplab.studies.papers.treatments import treatment
from mptcplab.study import cell as cells
from mptcplab.study import execute, workers
from mptcplab.study.cell import Cell
from mptcplab.study.statistics import RESAMPLES, resamples
from mptcplab.study.store import Store
from mptcplab.study.values import CellValues, DependencyRecorder, NotTestableError

LIBRARY = catalog.load()
# Values by metric and algorithm (or sweep point), different in everything that a mix-up could confuse.
VALUES = {
    ("goodput", "lia", ""): [4.0, 5.0, 6.0],
    ("goodput", "olia", ""): [7.0, 8.0, 9.5],
    ("goodput", "balia", ""): [6.5, 8.4, 9.0],
    ("retx", "lia", ""): [30.0, 50.0, 40.0],
    ("goodput", "lia", "a"): [1.0, 1.1, 1.2],
    ("goodput", "lia", "b"): [2.0, 2.1, 2.2],
    ("goodput", "lia", "c"): [4.0, 4.1, 4.4],
}
DOMAIN = Domain(("lia", "olia", "balia"), (("a", 1.0), ("b", 2.0), ("c", 4.0)))


def lookup(metric: str, keys: dict[str, str]) -> np.ndarray:
    return np.array(VALUES[metric, keys["cc"], keys.get("sweep", "")])


def share(text: str, tolerance: float | None = None) -> float:
    return evaluate(parse(text), lookup, DOMAIN, tolerance).share


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean(goodput{cc=lia}) < mean(goodput{cc=olia})", True),
        ("mean(goodput{cc=lia}) + 3.2 * 1 < mean(goodput{cc=olia})", False),
        ("min(goodput{cc=olia}) == 7 and max(goodput{cc=olia}) == 9.5", True),
        ("median(retx{cc=lia}) in [39, 41]", True),
        ("-(2 - 5) * 2 == 6", True),
        ("2 + 3 * 4 - 6 / 2 == 11", True),
        ("max(3, 7) - min(3, 7) == 4", True),
        ("argmin_cc(mean(goodput{cc=*}), over=[lia,olia,balia]) == 'lia'", True),
        ("max_cc(mean(goodput{cc=*}), over=[lia,balia]) == mean(goodput{cc=balia})", True),
        ("all(a in [olia,balia]: mean(goodput{cc=$a}) > mean(goodput{cc=lia}))", True),
        ("any(p in pairs([lia,olia,balia]): mean(goodput{cc=$p.0}) > mean(goodput{cc=$p.1}))", True),
        ("mean_sweep(mean(goodput{cc=lia,sweep=*})) in [2.45, 2.46]", True),
        ("spearman_sweep(mean(goodput{cc=lia,sweep=*})) == 1", True),
        ("r2_sweep(mean(goodput{cc=lia,sweep=*})) >= 0.99", True),
        ("abs(log(1)) == 0", True),
        ("1 < 2 < 3", True),
        ("1 < 2 < 2", False),
        ("'left' == 'right'", False),
        ("[46,19] != [46,20]", True),
        ("false", False),
    ],
)
def test_predicates_mean_what_they_say(text: str, expected: bool) -> None:
    evaluation = evaluate(parse(text), lookup, DOMAIN)
    assert bool(evaluation.truth[0]) is expected


def test_a_predicate_is_as_sure_as_its_repetitions() -> None:
    """olia beats balia in repetitions 1 and 3, by 0.5 each, and loses 0.4 in repetition 2.

    Of the 27 equally likely resamples the mean difference is negative where repetition 2 was drawn twice with one other
    (-0.3: 6 of 27) or three times (1 of 27).
    """
    found = share("mean(goodput{cc=olia}) > mean(goodput{cc=balia})")
    assert math.isclose(found, 20 / 27, abs_tol=0.015)


def test_statistics_of_the_resamples_are_paired() -> None:
    table = resamples(3)
    assert table.shape == (RESAMPLES + 1, 3)
    assert table[0].tolist() == [0, 1, 2]
    assert share("mean(goodput{cc=olia}) - mean(goodput{cc=lia}) >= 3") == 1.0


def test_equal_with_a_tolerance_and_equivalence() -> None:
    assert share("mean(goodput{cc=lia}) == 5", 0.3) == 1.0
    assert share("mean(goodput{cc=lia}) == 5.4", 0.01) < 0.2
    # The 90 % interval of the ratio of lia to olia is about 0.57 to 0.63.
    assert share("equiv(mean(goodput{cc=lia}), mean(goodput{cc=olia}), 0.5)") == 1.0
    assert share("equiv(mean(goodput{cc=lia}), mean(goodput{cc=olia}), 0.1)") == 0.0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("mean(goodput{cc=lia}) >=", "''"),
        ("mean(goodput{cc=lia} >= 1", "'>= 1'"),
        ("average(goodput{cc=lia}) >= 1", "'average("),
        ("all(a of [lia]: 1 < 2)", "'of [lia]"),
        ("1 < 2 ) ", "')"),
        ("1 ? 2", "'? 2"),
    ],
)
def test_a_mistake_in_a_predicate_is_shown_where_it_is(text: str, place: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"predicate: {place}")


def test_facts_are_told_with_names_filled_in() -> None:
    facts = evaluate(parse("all(a in [olia]: mean(goodput{cc=$a}) > 100)"), lookup, DOMAIN).facts
    assert [(f.left, f.operator, f.right, f.held) for f in facts] == [("mean(goodput{cc=olia})", ">", "100", False)]
    assert facts[0].left_value.startswith("8.17 (")


# The library


def test_every_claim_of_every_paper_can_be_evaluated() -> None:
    planner = Planner(LIBRARY, "sim", quick=False)
    claims = [claim for paper in LIBRARY.papers.values() for claim in paper.claims]
    assert len(claims) == 169
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        tree = parse(claim.predicate)
        if claim.experiment is None:
            evaluate(tree, lookup, Domain((), ()), claim.tolerance)
            continue
        experiment = LIBRARY.experiments[claim.experiment]
        recorder = DependencyRecorder()
        evaluate(tree, SelectorResolver(planner, recorder, experiment), Domain.of(experiment), claim.tolerance)
        for cell in recorder.cells:
            assert (
                cell.label in LIBRARY.experiments[cell.experiment].algorithms or "@" in cell.label or "-" in cell.label
            )


def test_every_claim_is_explained_unless_it_holds() -> None:
    for paper in LIBRARY.papers.values():
        for claim in paper.claims:
            if claim.expect != "holds":
                assert claim.why, f"{claim.id} is expected to be {claim.expect!r}, and nothing says why"


def test_every_cell_of_every_experiment_has_a_run_spec() -> None:
    planner = Planner(LIBRARY, "sim", quick=True)
    for experiment in LIBRARY.experiments.values():
        for label in experiment.algorithms:
            for point in experiment.labels if experiment.view_of is None else ():
                cell = Cell(experiment.id, label, point, experiment.profile, "")
                runs = planner.spec(cell).resolved()
                assert len(runs) == planner.repetitions(experiment)
        for variant in experiment.variants:
            assert planner.spec(Cell(experiment.id, "lia", "", experiment.profile, variant)).resolved()


def test_ideals_and_fairness_name_flows_that_exist() -> None:
    planner = Planner(LIBRARY, "sim", quick=False)
    for experiment in LIBRARY.experiments.values():
        topology = planner.topology(experiment)
        flows = {flow.name for flow in topology.flows}
        names = flows | {f"{flow.name}/{part.name}" for flow in topology.flows for part in flow.subflows}
        assert set(experiment.ideal) <= flows, experiment.id
        assert {n for groups in experiment.fairness.values() for group in groups for n in group} <= names, experiment.id


def test_the_papers_ideals_of_kim_are_max_min_over_subflows_where_links_are_separate() -> None:
    from mptcplab.metrics.allocation import max_min, max_min_subflows
    from mptcplab.metrics.proportional import proportional_fair

    topology = Planner(LIBRARY, "sim", quick=False).topology(LIBRARY.experiments["ADW-2"])
    rates = {name: link.rate_bps / 1e6 for name, link in topology.links.items()}
    paths = {flow.name: flow.paths for flow in topology.connections}
    assert {name: sum(parts) for name, parts in max_min_subflows(rates, paths).items()} == pytest.approx(
        {"mp": 60, "h3": 30, "h5": 30}
    )
    assert max_min(rates, paths) == pytest.approx({"mp": 40, "h3": 40, "h5": 40})
    assert proportional_fair(rates, paths) == pytest.approx({"mp": 40, "h3": 40, "h5": 40}, rel=1e-4)


def _copy(tmp_path: Path, paper: str = "dubey2023") -> Path:
    root = tmp_path / "papers"
    shutil.copytree(catalog.directory() / paper, root / paper)
    return root


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("paper.toml", 'title = "Cong', 'titel = "Cong', "paper.toml: title: missing"),
        ("paper.toml", 'profile = "linux-legacy"', 'profile = "legacy"', "profile: not right: 'legacy'"),
        ("paper.toml", "three-namespaces.toml", "four.toml", "DUB-3N.scenario: not right: 'four.toml'"),
        ("paper.toml", 'kind = "bars"', 'kind = "pie"', "experiments.DUB-3N.figures[0].kind: not right: 'pie'"),
        ("claims.toml", 'kind = "shape"', 'kind = "form"', "claim[0].kind: not right: 'form'"),
        ("claims.toml", 'experiment = "DUB-3N"', 'experiment = "DUB-4N"', "no such experiment: 'DUB-4N'"),
        ("claims.toml", "[[claim]]", "[[claim]]\nsure = 1", "claim[0].sure: unknown key"),
    ],
)
def test_a_mistake_in_a_papers_files_names_file_and_key(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    root = _copy(tmp_path)
    path = root / "dubey2023" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(MptcplabError) as caught:
        catalog.load(root)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


# What is compared


@pytest.mark.parametrize(
    ("experiment", "label", "cc", "transport", "paths"),
    [
        ("DOL-2", "ref-tcp@sf2", "cubic", "tcp", [("B2", "e2")]),
        ("ADW-2", "ref-tcp@sf2", "reno", "tcp", [("m2", "N2", "x2")]),
        ("ZUH-S1", "tcp-cubic@3g", "cubic", "tcp", [("core_s", "GD", "ran_l")]),
        ("ADW-1", "independent-reno", "reno", "tcp", [("m1", "SB", "x2")]),
        ("ADW-1", "uncoupled-reno", "reno", "mptcp", [("m1", "SB", "x2"), ("m2", "SB", "x2")]),
        ("DOL-1", "dolia-text", "dolia(gamma=text)", "mptcp", [("B1", "e1"), ("B2", "e2")]),
        ("KK-TCP", "sctp", None, "cmt-sctp", [("i1", "core", "o1")]),
        ("KK-TCP", "cmt-sctp", None, "cmt-sctp", [("i1", "core", "o1"), ("i2", "core", "o2")]),
        ("WIS-TRI", "ewtcp", "ewtcp(weight=fair)", None, None),
        ("ZUH-C1", "rx-balia", "lia", "mptcp", [("core_s", "WD", "ap_l"), ("core_s", "GD", "ran_l")]),
    ],
)
def test_a_label_changes_the_multipath_connection_and_nothing_else(
    experiment: str, label: str, cc: str | None, transport: str | None, paths: list[tuple[str, ...]] | None
) -> None:
    planner = Planner(LIBRARY, "sim", quick=True)
    found = LIBRARY.experiments[experiment]
    point = found.labels[0]
    cell = Cell(experiment, label, point, found.profile, "")
    spec = planner.spec(cell)
    assert spec.cc == cc
    before, after = planner.topology(found), spec.topology
    others = [(f.name, f.cc, f.paths) for f in before.flows if f.name != "mp" and len(f.subflows) == 1]
    assert [(f.name, f.cc, f.paths) for f in after.flows if f.name != "mp" and len(f.subflows) == 1] == others
    if paths is not None:
        (flow,) = (flow for flow in after.flows if flow.name == "mp")
        assert (flow.transport, list(flow.paths)) == (transport, paths)


def test_a_label_that_nothing_stands_for_is_refused() -> None:
    topology = Planner(LIBRARY, "sim", quick=True).topology(LIBRARY.experiments["DOL-1"])
    with pytest.raises(MptcplabError, match="no such algorithm or treatment: 'uncoupled-oila'"):
        treatment("uncoupled-oila", topology, algorithm_names())
    with pytest.raises(MptcplabError, match="flow mp has no subflow 'sf3'; it has sf1, sf2"):
        treatment("ref-tcp@sf3", topology, algorithm_names())


# What a result is stored by


def _digest(cell: Cell, library: catalog.Library = LIBRARY, *, quick: bool = True) -> str:
    planner = Planner(library, "sim", quick)
    return planner.spec(cell).digest("sim")


def test_a_changed_algorithm_touches_its_own_results_only(monkeypatch: pytest.MonkeyPatch) -> None:
    olia, lia = (Cell("DOL-2", cc, "q100", "rfc", "") for cc in ("olia", "lia"))
    before = _digest(olia), _digest(lia)
    sources = {entry["name"]: entry["source"] for entry in json.loads(cells._core.algorithms_json())}
    monkeypatch.setattr(cells, "algorithm_digests", lambda: {**sources, "olia": "changed"})
    assert _digest(olia) != before[0]
    assert _digest(lia) == before[1]
    # The CUBIC flow beside it is part of what ran.
    monkeypatch.setattr(cells, "algorithm_digests", lambda: {**sources, "cubic": "changed"})
    assert _digest(lia) != before[1]


def test_a_digest_tells_apart_what_differs_and_joins_what_does_not() -> None:
    cell = Cell("ADW-2", "lia", "", "linux-pre4", "")
    others = [
        Cell("ADW-2", "lia", "", "linux-pre4", "", 1),
        Cell("ADW-2", "lia", "", "rfc", ""),
        Cell("ADW-CUB-N", "lia", "", "linux-pre4", ""),
        Cell("ADW-LOSS-N", "lia", "p0.1", "linux-pre4", ""),
    ]
    digests = {_digest(other) for other in [cell, *others]}
    assert len(digests) == 1 + len(others)
    # The same network under another name, and a sweep point that changes nothing, are the same runs.
    assert _digest(Cell("ADW-F2B", "lia", "", "linux-pre4", "")) == _digest(cell)
    assert _digest(cell, quick=False) != _digest(cell)


# Values


def test_values_of_two_blocks_follow_one_another() -> None:
    def block(values: list[float | None]) -> pl.DataFrame:
        row = {"span": "", "metric": "goodput", "flow": "mp", "subflow": None, "link": None}
        return pl.DataFrame([{"rep": i, **row, "value": value} for i, value in enumerate(values)])

    both = CellValues.of([block([1.0, None]), block([3.0, 4.0])])
    assert both.repetitions == 4
    found = both.get("goodput", flow="mp")
    assert found[[0, 2, 3]].tolist() == [1.0, 3.0, 4.0]
    assert np.isnan(found[1])
    assert np.isnan(both.get("goodput", flow="tcp")).all()


class _Fixed:
    """A source with the same values for every cell."""

    def __init__(self, values: dict[tuple[str, str, str | None, str | None, str | None], list[float]]) -> None:
        self.found = CellValues(2, {key: np.array(value) for key, value in values.items()})

    def values(self, _: Cell) -> CellValues:
        return self.found


def _rate(flow: str, subflow: str | None, values: list[float], span: str = "") -> dict:
    return {(span, "throughput", flow, subflow, None): values}


def test_a_resolver_answers_by_flow_subflow_group_and_span() -> None:
    planner = Planner(LIBRARY, "sim", quick=True)
    values = _rate("mp", None, [9.0, 18.0]) | _rate("mp", "sf1", [4.0, 8.0]) | _rate("mp", "sf2", [5.0, 10.0])
    values |= _rate("h3", None, [6.0, 4.0]) | _rate("h5", None, [5.0, 5.0])
    values |= {("", "loss", None, None, "N1"): [1.0, 3.0], ("", "loss", None, None, "N2"): [2.0, 4.0]}
    resolve = SelectorResolver(planner, _Fixed(values), LIBRARY.experiments["ADW-2"])
    assert resolve("throughput", {"cc": "lia", "sf": "sf1+sf2"}).tolist() == [9.0, 18.0]
    assert resolve("throughput_kBps", {"flow": "h3"}).tolist() == [750.0, 500.0]
    assert resolve("ratio_wire", {"flow": "mp"}).tolist() == [9.0 / 60, 18.0 / 60]
    assert resolve("share", {"sf": "sf2"}).tolist() == pytest.approx([5 / 9, 5 / 9])
    assert resolve("loss_ratio", {"links": "N1/N2"}).tolist() == [0.5, 0.75]
    # The mean over both links; in the first repetition (4 + 6)^2 / (2 (16 + 36)) and (5 + 5)^2 / (2 * 50).
    assert resolve("jain", {"flows": "nsb"})[0] == pytest.approx((100 / 104 + 1) / 2)
    assert resolve("jain", {"flows": "[mp,h3,h5]"})[0] == pytest.approx(20**2 / (3 * (81 + 36 + 25)))
    with pytest.raises(NotTestableError, match="goodput has no value in ADW-2"):
        resolve("goodput", {"flow": "mp"})
    with pytest.raises(NotTestableError, match="no flow 'h7'"):
        resolve("throughput", {"flow": "h7"})


def test_a_metric_that_claims_do_not_have_is_an_error_that_lists_them() -> None:
    resolve = SelectorResolver(Planner(LIBRARY, "sim", quick=True), DependencyRecorder(), LIBRARY.experiments["ADW-2"])
    with pytest.raises(MptcplabError, match="no such metric in claims: 'gootput'") as caught:
        resolve("gootput", {"flow": "mp"})
    assert "goodput" in str(caught.value)


def test_active_flows_are_those_that_live_through_the_whole_bin() -> None:
    planner = Planner(LIBRARY, "sim", quick=True)
    values = {}
    for i in range(1, 6):
        values |= _rate(f"tcp{i}", None, [float(i), 2.0 * i], "bin 2")
    resolve = SelectorResolver(planner, _Fixed(values), LIBRARY.experiments["DOL-SC"])
    # From 40 s to 60 s three CUBIC flows are there.
    assert resolve("throughput", {"flow": "tcp_active", "bin": "2"}).tolist() == [2.0, 4.0]


# A reproduction


def _small(tmp_path: Path) -> catalog.Library:
    """Dubey's paper with shorter runs of fewer algorithms."""
    root = _copy(tmp_path)
    path = root / "dubey2023" / "paper.toml"
    text = path.read_text().replace("[experiments.DUB-3N]", '[experiments.DUB-3N]\nsettings = { duration = "5 s" }')
    path.write_text(text)
    return catalog.load(root)


def test_a_reproduction_goes_on_where_it_was_and_is_the_same(tmp_path: Path) -> None:
    library = _small(tmp_path)

    def run(out: str, jobs: int) -> list:
        papers = library.choose("dubey2023")
        return reproduce(library, papers, "sim", tmp_path / out, experiment="DUB-3N", quick=True, jobs=jobs)

    (first,) = run("a", 2)
    assert first.outcome.made > 0
    assert first.outcome.reused == 0
    (again,) = run("a", 1)
    assert (again.outcome.made, again.outcome.reused) == (0, first.outcome.made)
    assert again.claims == first.claims
    # What is gone is made again, and only that.
    store = tmp_path / "a" / "store"
    lost = sorted(store.glob("*.json"))[0]
    lost.unlink()
    (third,) = run("a", 2)
    assert (third.outcome.made, third.outcome.reused) == (1, first.outcome.made - 1)
    assert third.claims == first.claims
    assert not list(store.glob("*.partial"))
    (elsewhere,) = run("b", 1)
    assert elsewhere.claims == first.claims
    for name in sorted(path.name for path in store.iterdir()):
        assert (store / name).read_bytes() == (tmp_path / "b" / "store" / name).read_bytes(), name
    record = json.loads(next(store.glob("*.json")).read_text())
    assert record["engine"] == "sim"
    assert {entry["flow"] for entry in record["subflow_cc"]} == {"mp"}


def test_what_an_engine_refuses_is_not_testable_and_says_why(tmp_path: Path) -> None:
    library = _small(tmp_path)
    papers = library.choose("dubey2023")
    (found,) = reproduce(library, papers, "fluid", tmp_path / "out", experiment="DUB-3N", quick=True, jobs=1)
    by_id = {verdict.claim.id: verdict for verdict in found.claims}
    wvegas = by_id["DUB-09"]
    assert wvegas.verdict == "not testable"
    assert "wvegas" in wvegas.findings[0].reason
    assert found.outcome.refused


def test_a_full_disk_ends_a_reproduction_and_leaves_whole_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two results the second has room for one of its two files: nothing of it stays."""
    room, write = [3], Path.write_bytes

    def written(path: Path, content: bytes) -> int:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", written)
    store = Store(tmp_path / "store")
    store.prepare()
    store.put("one", {"engine": "sim"}, values=pl.DataFrame({"a": [1]}))
    said = r"cannot store a result in .*: No space left on device\n\nhint: what is stored stays"
    with pytest.raises(OutputError, match=said):
        store.put("two", {"engine": "sim"}, values=pl.DataFrame({"a": [2]}))
    assert sorted(path.name for path in store.directory.iterdir()) == ["one.json", "one.values.parquet"]
    library = _small(tmp_path)
    papers = library.choose("dubey2023")
    # Also where a run's own directory has no room: that is no verdict.
    with pytest.raises(OutputError, match="No space left on device"):
        reproduce(library, papers, "sim", tmp_path / "out", experiment="DUB-3N", quick=True, jobs=2)


def test_the_fluid_s_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes, each with sweeps of one result, keep what one process does."""
    library = _small(tmp_path)
    papers = library.choose("dubey2023")
    asked = []

    def noted(workers: int, *, processes: bool) -> Executor:
        asked.append((workers, processes))
        return begin(workers, processes=processes)

    begin = workers._pool
    monkeypatch.setattr(workers, "_pool", noted)
    (one,) = reproduce(library, papers, "fluid", tmp_path / "one", experiment="DUB-3N", jobs=1)
    monkeypatch.setattr(execute, "_SWEEP_WORK", 0.0)
    (two,) = reproduce(library, papers, "fluid", tmp_path / "two", experiment="DUB-3N", jobs=2)
    assert asked == [(2, True)]
    assert one.claims == two.claims
    kept = sorted((tmp_path / "one" / "store").iterdir())
    assert kept
    for path in kept:
        assert path.read_bytes() == (tmp_path / "two" / "store" / path.name).read_bytes(), path.name


def test_a_process_that_ends_is_an_error_with_a_hint() -> None:
    with pytest.raises(EngineError, match=r"process that solved the fluid.s equations has ended\n\nhint: .*--jobs 1"):
        list(workers.each(os._exit, [3, 4], 2, processes=True))


def test_no_more_begin_than_may_run_and_none_after_an_error() -> None:
    """The third of six fails; with two at a time, the fourth may have begun by then, but no other."""
    begun = []

    def task(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise ValueError(item)
        return 10 * item

    seen = []
    with pytest.raises(ValueError, match="3"):
        seen += workers.each(task, [1, 2, 3, 4, 5, 6], 2, processes=False)
    assert begun[:3] == [1, 2, 3]
    assert set(begun) <= {1, 2, 3, 4}


def test_the_fluid_has_no_shorter_answer(tmp_path: Path) -> None:
    library = _small(tmp_path)
    papers = library.choose("dubey2023")
    for engine, shortens in (("fluid", False), ("sim", True)):
        place = tmp_path / engine
        (found,) = reproduce(library, papers, engine, place, experiment="DUB-3N", quick=True, jobs=1)
        assert found.planner.quick == shortens


# What is asked for


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paper": "kim2012"}, "no such paper: 'kim2012'\n\nhint: all, or one of dubey2023, kim2021"),
        ({"paper": "kim2021", "experiment": "ADW-9"}, "no such experiment of kim2021: 'ADW-9'\n\nhint: one of ADW-F2A"),
        ({"paper": "all", "experiment": "ADW-1"}, "an experiment is one of a paper's: 'ADW-1'"),
        ({"paper": "kim2021", "engine": "ns3"}, "no such engine: 'ns3'"),
        ({"paper": "kim2021", "engine": "sim,fluid"}, "one engine at a time: 'sim,fluid'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(tmp_path: Path, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        api.reproduce(**arguments, out=tmp_path / "out")
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "out").exists()
