"""Sections whose simulator runs anew beside a machine's kept numbers."""

import math
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import mptcplab
from mptcplab.metrics import compute
from mptcplab.studies.agreement import page, renew
from mptcplab.studies.agreement.matrix import Entry, Matrix, Row
from mptcplab.study.verdict import Verdict

ENGINES = ("sim", "vm:trixie-backports")
NAME = "papers/dubey2023/beside-tcp.toml"
COMMAND = f"mptcplab agree {NAME} --engines sim,vm:trixie-backports --cc reno,lia --reps 10 --sim-reps 20"


def row(base: str, metric: str, flow: str | None, mean: float, spread: float | None, n: int = 10) -> Row:
    return Row(base, metric, flow, 1.0, mean, 9.0, 5.0, 20, n, Verdict.HOLDS, None, spread)


ROWS = tuple(
    row(base, metric, flow, mean, spread, n)
    for base, of_flows in {
        "reno+x": {"mp": (4.1, 7.0, 10), "tcp": (5.2, 3.0, 10)},
        "lia+x": {"mp": (2.9, 11.0, 9), "tcp": (6.3, 6.0, 9)},
    }.items()
    for flow, (mean, spread, n) in of_flows.items()
    for metric in ("goodput",)
)
INDICES = (row("reno+x", "jain", None, 0.97, 2.0), row("lia+x", "jain", None, 0.88, 5.0, 9))


def entry(**changes: object) -> Entry:
    made = Entry(
        NAME,
        Verdict.HOLDS,
        (*ROWS, *INDICES),
        command=COMMAND,
        causes={"lia+x": ["perhaps something"]},
        builds={"sim": "old", ENGINES[1]: "kept"},
        host_delay_ns=8_800,
        send_jitter_ns=5_000,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def renewed() -> Entry:
    found = renew.measure(Matrix(ENGINES, "mptcplab agree --all", (entry(),)))
    return found.entries[0]


def test_the_machines_means_stay_and_the_simulators_are_those_of_its_own_command(renewed: Entry) -> None:
    settings = {
        "warmup": '"7500 ms"',
        "scheduler": '"linger"',
        "tcp.tso": "true",
        "tcp.comp_sack": "true",
        "tcp.like": '"linux-7.3"',
        "tcp.host_delay": '"8800 ns"',
        "tcp.send_jitter": '"5000 ns"',
    }
    results = mptcplab.run(mptcplab.bundle.root() / NAME, "reno,lia", 100, duration="30 s", settings=settings)
    values = compute(results, ("goodput",)).join(results.runs.select("run", "cc"), on="run").filter(flow="mp")
    whole = values.filter(pl.col("subflow").is_null())
    own = {cc: whole.filter(cc=cc)["value"].to_list() for cc in ("reno", "lia")}
    for base, (mean, spread, n) in {"reno": (4.1, 7.0, 10), "lia": (2.9, 11.0, 9)}.items():
        found = next(one for one in renewed.evidence if (one.base, one.flow) == (base, "mp"))
        assert (found.mean, found.n, found.n_reference) == (pytest.approx(mean), n, 100)
        assert found.spread == pytest.approx(spread)
        assert (type(found.n), type(found.n_reference)) == (int, int)
        reference = statistics.mean(own[base])
        assert found.reference == pytest.approx(reference)
        assert found.difference == pytest.approx(100 * (mean / reference - 1))
        # Welch's interval of the quotient, linearised.
        one = (mean * spread / 100) ** 2 / n
        other = (mean / reference) ** 2 * statistics.variance(own[base]) / 100
        degrees = (one + other) ** 2 / (one**2 / (n - 1) + other**2 / 99)
        quantile = 1.959964 + (1.959964**3 + 1.959964) / (4 * degrees) + 4.1 / degrees**2
        assert found.half == pytest.approx(100 * quantile * math.sqrt(one + other) / reference, rel=0.03)


def test_the_section_says_what_made_it(renewed: Entry) -> None:
    assert "--cc reno,lia" in renewed.command and "--sim-reps 100" in renewed.command
    assert renewed.builds[ENGINES[1]] == "kept"
    assert renewed.builds["sim"] not in ("old", "")
    assert renewed.causes == {}
    told = "noise: sim delayed every packet by 8.8 µs and at random by up to 5 µs more; vm:trixie-backports"
    assert renewed.noise.startswith(told)
    jain = [one for one in renewed.evidence if one.metric == "jain"]
    assert [(one.base, one.mean) for one in jain] == [("reno", pytest.approx(0.97)), ("lia", pytest.approx(0.88))]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"evidence": ()}, "it has no numbers"),
        ({"send_jitter_ns": None}, "what the machine's hosts took was not recorded"),
        ({"evidence": (row("reno+x", "goodput", "mp", 4.1, None), *ROWS[1:])}, "the spread of its repetitions"),
        ({"command": COMMAND.replace(" --sim-reps 20", "")}, "every repetition has links of its own"),
    ],
)
def test_what_cannot_be_renewed_stays_as_it_is(changes: dict[str, object], why: str) -> None:
    said: list[str] = []

    class Announced:
        def __init__(self, text: str) -> None:
            said.append(text)

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    one = entry(**changes)
    found = renew.measure(Matrix(ENGINES, "", (one,)), announce=Announced)  # type: ignore[arg-type]
    assert found.entries == (one,)
    assert said[0].startswith(f"{NAME} stays as it is: {why}")


def test_a_section_stays_when_its_scenario_became_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    @contextmanager
    def announce(what: str) -> Iterator[None]:
        said.append(what)
        yield

    monkeypatch.setattr(renew.matrix, "short", lambda *_: None)
    one = entry()
    found = renew.measure(Matrix(ENGINES, "", (one,)), announce=announce)  # type: ignore[arg-type]
    assert found.entries == (one,)
    assert said == [f"{NAME} stays as it is: its last flow starts too late now"]


def test_random_delays_of_a_section_stay() -> None:
    """The simulator runs with the same random delays as the machine did."""
    delays = {"d": 1_111_000}
    one = entry(evidence=(*ROWS[2:], INDICES[1]), random_delays=delays, command=COMMAND.replace("reno,lia", "lia"))
    [found] = renew.measure(Matrix(ENGINES, "", (one,))).entries
    assert found.random_delays == delays
    assert 'links.d.reorder={ probability = "100 %", delay = "uniform(0 ms, 1111000 ns)" }' in found.command
    [without] = renew.measure(Matrix(ENGINES, "", (replace(one, random_delays={}),))).entries
    assert "reorder" not in without.command
    assert [row.reference for row in found.flows] != [row.reference for row in without.flows]


def test_other_sections_stay_with_only() -> None:
    one = entry()
    found = renew.measure(Matrix(ENGINES, "", (one,)), only=["papers/kim2021/shared-60.toml"])
    assert found.entries == (one,)


def test_without_a_page_of_a_machine_there_is_nothing_to_keep(tmp_path: Path) -> None:
    with pytest.raises(mptcplab.MptcplabError, match="no numbers of a machine"):
        mptcplab.agree_all(tmp_path, engines="sim,vm:trixie-backports", simulator_only=True)
    page.write(Matrix(("sim", "fluid"), "mptcplab agree --all --engines sim,fluid", (entry(),)), tmp_path)
    with pytest.raises(mptcplab.MptcplabError, match="no numbers of a machine"):
        mptcplab.agree_all(tmp_path, engines="sim,fluid", simulator_only=True)
