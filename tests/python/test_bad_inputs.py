"""Wrong inputs and their messages: every message is in `bad_inputs.txt`, and none of them is an internal error.

After a change that is meant, MPTCPLAB_SNAPSHOTS=write rewrites the file: pytest tests/python/test_bad_inputs.py -n0.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, SCENARIO

import mptcplab
from mptcplab.cli.exit_codes import ERROR

SNAPSHOTS = Path(__file__).with_name("bad_inputs.txt")
WRITE = os.environ.get("MPTCPLAB_SNAPSHOTS") == "write"
SHORT = "run two-paths.toml --duration '3 s' --reps 1 --cc lia"
CHECK = "check two-paths.toml"

# Command lines. Values of keys are given with --set, so that one line is one mistake.
COMMANDS = (
    # Numbers and units.
    f"{CHECK} --set 'links.A.delay=-10 ms'",
    f"{CHECK} --set 'links.A.delay=10'",
    f"{CHECK} --set 'links.A.delay=10 msec'",
    f"{CHECK} --set 'links.A.delay=ten ms'",
    f"{CHECK} --set 'links.A.delay=.5 ms'",
    f"{CHECK} --set 'links.A.delay=10 Mbit/s'",
    f"{CHECK} --set 'links.A.delay=2 h'",
    f"{CHECK} --set 'links.A.delay=0.0000001 ms'",
    f"{CHECK} --set 'links.A.delay=true'",
    f"{CHECK} --set 'links.A.delay=1e-3 s'",
    f"{CHECK} --set 'links.A.rate=10,5 Mbit/s'",
    f"{CHECK} --set 'links.A.rate=1,000 kbit/s'",
    f"{CHECK} --set 'links.A.rate=10 Mbps'",
    f"{CHECK} --set 'links.A.rate=10 mb/s'",
    f"{CHECK} --set 'links.A.rate=10MBIT'",
    f"{CHECK} --set 'links.A.rate=-1 Mbit/s'",
    f"{CHECK} --set 'links.A.rate=0 Mbit/s'",
    f"{CHECK} --set 'links.A.rate=1e7 bit/s'",
    f"{CHECK} --set 'links.A.rate=900 Gbit/s'",
    f"{CHECK} --set 'links.A.rate=10 ms'",
    f"{CHECK} --set 'links.A.loss=0.01'",
    f"{CHECK} --set 'links.A.loss=150 %'",
    f"{CHECK} --set 'links.A.loss=-1 %'",
    f"{CHECK} --set 'links.A.loss=0,1 %'",
    f"{CHECK} --set 'links.A.loss=1 percent'",
    f"{CHECK} --set 'links.A.loss=lots'",
    f"{CHECK} --set 'links.A.queue=100'",
    f"{CHECK} --set 'links.A.queue=-5 packets'",
    f"{CHECK} --set 'links.A.queue=0 packets'",
    f"{CHECK} --set 'links.A.queue=1 bdp'",
    f"{CHECK} --set 'links.A.queue=1,5 BDP'",
    f"{CHECK} --set 'links.A.queue=10 pkts'",
    f"{CHECK} --set 'links.A.queue=full'",
    f"{CHECK} --duration 3",
    f"{CHECK} --duration '-3 s'",
    f"{CHECK} --duration '3 seconds'",
    f"{CHECK} --duration '48 h'",
    f"{CHECK} --duration forever",
    f"{CHECK} --duration '1 s' --set 'warmup=2 s'",
    f"{CHECK} --set 'flows.tcp.start=-1 s'",
    f"{CHECK} --set 'flows.tcp.start=uniform(1 s, 0 s)'",
    f"{CHECK} --set 'flows.tcp.start=normal(0 s, 1 s)'",
    f"{CHECK} --set 'flows.tcp.stop=0 s'",
    f"{CHECK} --set 'sample=0 ms'",
    f"{CHECK} --set 'sample=never'",
    f"{CHECK} --set seed=-1",
    f"{CHECK} --set seed=1.5",
    f"{CHECK} --set repetitions=0",
    f"{CHECK} --set repetitions=many",
    # Keys and names.
    f"{CHECK} --set links.A.rat=9",
    f"{CHECK} --set 'link.A.rate=9 Mbit/s'",
    f"{CHECK} --set 'links.C.rate=9 Mbit/s'",
    f"{CHECK} --set 'flows.mpp.cc=lia'",
    f"{CHECK} --set tcp.tsoo=true",
    f"{CHECK} --set tcp.tso=yes",
    f"{CHECK} --set tcp.tso=true",
    f"{CHECK} --set links.A.rate=",
    f"{CHECK} --set links.A.reorder=",
    f"{CHECK} --set links.A.rate",
    f"{CHECK} --set =3",
    f"{CHECK} --set 'links.A.loss=1 %' --set 'links.A.loss=2 %'",
    f"{CHECK} --set '..=3'",
    f"{CHECK} --set links=3",
    f'{CHECK} --set \'flows.mp.paths=[["A"], ["C"]]\'',
    f"{CHECK} --set 'flows.mp.paths=[\"A\"'",
    f"{CHECK} --set 'flows.mp.paths=[]'",
    f"{CHECK} --set 'flows.mp.paths=A'",
    f"{CHECK} --set flows.tcp.count=0",
    f"{CHECK} --set flows.tcp.count=1000000",
    f"{CHECK} --set flows.tcp.count=two",
    f"{CHECK} --set scheduler=minrt",
    f"{CHECK} --set 'scheduler=minrtt(penalize=true)'",
    f"{CHECK} --set profile=linux",
    f"{CHECK} --profile linux",
    f"{CHECK} --profile ''",
    f"{CHECK} --cc bali",
    f"{CHECK} --cc lia,lia",
    f"{CHECK} --cc ','",
    f"{CHECK} --cc 'ewtcp(wieght=fair)'",
    f"{CHECK} --cc 'ewtcp(weight=-1)'",
    f"{CHECK} --cc 'ewtcp(weight'",
    f"{CHECK} --cc 'lia(x=1)'",
    f"{CHECK} --cc ./nowhere.c",
    f"{CHECK} --cc ./two-paths.toml",
    f"{CHECK} --cc kernel:cubic",
    f"{CHECK} --cc lia --set cc=olia",
    f"{CHECK} --seed 3 --set seed=5",
    f"{CHECK} --reps 3 --sweep repetitions=3,4",
    f"{CHECK} --sweep seed=1..4",
    f"{CHECK} --reps abc",
    f"{CHECK} --seed 1.5",
    f"{CHECK} --seed 99999999999999999999",
    f"{CHECK} --reps 99999999999",
    # Sweeps.
    f"{CHECK} --sweep links.A.loss",
    f"{CHECK} --sweep 'links.A.loss='",
    f"{CHECK} --sweep 'links.A.loss=0.01 %..5 %'",
    f"{CHECK} --sweep 'links.A.queue=10..50 packets'",
    f"{CHECK} --sweep flows.tcp.count=1..4",
    f"{CHECK} --sweep flows.tcp.count=1,2,4",
    f"{CHECK} --sweep 'links.A.loss=0 %..5 % log 7'",
    f"{CHECK} --sweep 'links.A.loss=0.01 %..5 ms log 7'",
    f"{CHECK} --sweep 'links.A.loss=0.01 %..5 % log 1'",
    f"{CHECK} --sweep 'links.A.loss=0.01 %..5 % log 99999'",
    f"{CHECK} --sweep 'links.A.loss=a..b 3'",
    f"{CHECK} --sweep 'links.A.loss=..5 % 3'",
    f"{CHECK} --sweep 'links.A.loss=1 %..1 % 3'",
    f"{CHECK} --sweep 'links.A.loss=1 %..5 % exponential 3'",
    f"{CHECK} --sweep 'links.A.los=1 %, 2 %'",
    f"{CHECK} --sweep 'flows.mp.paths=A, B'",
    f'{CHECK} --sweep \'flows.tcp.path=["A"], ["B"]\'',
    f"{CHECK} --sweep 'links.A.loss=1 %, 2'",
    f"{CHECK} --sweep 'links.A.loss=1 %, 1 %'",
    f"{CHECK} --sweep 'links.A.loss=1 %' --set 'links.A.loss=2 %'",
    f"{CHECK} --sweep 'links.A.loss=1 %' --sweep 'links.A.loss=2 %'",
    f"{CHECK} --sweep 'flows.tcp.count=1..1000 999' --sweep 'links.A.loss=1 %..2 % 999' --reps 999",
    # Files.
    "check nowhere.toml",
    "check .",
    "check binary.toml",
    "check empty.toml",
    "check broken.toml",
    "check typo.toml",
    "check no-flows.toml",
    "check loop.toml",
    "run nowhere.toml",
    "report nowhere",
    "report full",
    "report two-paths.toml",
    "report truncated",
    "report truncated-unsealed",
    "report bad-json",
    "vectors nowhere.json",
    "vectors two-paths.toml",
    "vectors .",
    # Engines.
    f"{SHORT} --engine simulator",
    f"{SHORT} --engine sim,sim",
    f"{SHORT} --engine ''",
    f"{SHORT} --engine fluid --set per_ack=true",
    f"{SHORT} --traffic iperf3",
    f"{SHORT} --traffic netperf",
    f"{SHORT} --sim-reps 3",
    f"{SHORT} --set tcp.tso=true",
    # The kernel's program is not asked: the error is the simulator's or the fluid's.
    f"{CHECK} --engine fluid --cc cubic --set per_ack=true",
    f"{CHECK} --engine kernel",
    f"{CHECK} --engine sim,vm:bookworm",
    f"{CHECK} --engine simulator",
    f"{CHECK} --engine ''",
    # Output.
    f"{SHORT} --out full",
    f"{SHORT} --out full --force",
    f"{SHORT} --out two-paths.toml",
    f"{SHORT} --out two-paths.toml/below",
    f"{SHORT} --out good",
    # Results.
    "merge good --out joined",
    "merge good nowhere --out joined",
    "merge good good --out good",
    "merge good full --out joined",
    "merge good truncated --out joined",
    "merge good other --out joined",
    "compare good nowhere",
    "compare good full",
    "compare good good --metrics godput",
    "ls nowhere",
    "ls two-paths.toml",
    # Other commands.
    "algorithms bali",
    "schedulers minrt",
    "schedulers minrtt --compare",
    "goals bali",
    "agree two-paths.toml --engines sim",
    "agree two-paths.toml --engines sim,sim",
    "agree",
    "agree --all --cc lia",
    "agree --all --only papers/kim2021/shared-61.toml",
    "agree dolia-scenario-1 --only papers/kim2021/shared-60.toml",
    "agree two-paths.toml --quick",
    "kernels two-paths.toml --kernels bookworm",
    "reproduce kim2022",
    "reproduce all --experiment ADW-1",
    "reproduce all --claim ADW-01",
    "reproduce kim2021 --engine sim,fluid --accept",
    "reproduce kim2021 --engine sim,fluid --sensitivity",
    "reproduce kim2021 --engine fluid --sensitivity",
    "hunt bali --property harms",
    "goals lia --profile rfc,linux-acked",
    "hunt lia --property harm",
    "hunt lia,olia",
    "hunt lia --evaluations 0",
    "hunt lia --confirm simulator",
    "hunt lia --out .",
    # Clusters.
    f"{SHORT} --on slurm",
    f"{SHORT} --on dask:",
    f"{SHORT} --on dask:nowhere",
    f"{SHORT} --on dask:tcp://10.0.0.1",
    f"{SHORT} --on dask --store nothing://runs",
    f"{SHORT} --store runs",
    "goals lia --store runs",
    "reproduce kim2021 --on dusk",
    "agree two-paths.toml --engines sim,fluid --on dusk",
    "walk --reps 0",
    "walk --duration-s long",
    "walk --wifi-mbps -3",
    "completion tcsh",
    "new two-paths.toml",
    "new --rates ''",
    "new --rates '10 Mbps'",
    "new --rates 10",
    "new --losses 0,1",
    "new --queue 7",
    "new --rates '10 Mbit/s' --delays '1 ms, 2 ms'",
    "new --cc bali",
    "new --title ''  --duration 5",
)
# Calls from Python.
CALLS: dict[str, Callable[[], object]] = {
    'run("two-paths.toml", cc=3)': lambda: mptcplab.run("two-paths.toml", cc=3),  # type: ignore[arg-type]
    'run("two-paths.toml", cc=[3])': lambda: mptcplab.run("two-paths.toml", cc=[3]),  # type: ignore[list-item]
    'run("two-paths.toml", cc=[])': lambda: mptcplab.run("two-paths.toml", cc=[]),
    'run("two-paths.toml", profile=())': lambda: mptcplab.run("two-paths.toml", profile=()),
    'run("two-paths.toml", jobs=-1)': lambda: mptcplab.run("two-paths.toml", jobs=-1),
    'run("two-paths.toml", reps=0)': lambda: mptcplab.run("two-paths.toml", reps=0),
    'run("two-paths.toml", reps=2.5)': lambda: mptcplab.run("two-paths.toml", reps=2.5),  # type: ignore[arg-type]
    'run("two-paths.toml", seed=-1)': lambda: mptcplab.run("two-paths.toml", seed=-1),
    'run("two-paths.toml", duration=-1)': lambda: mptcplab.run("two-paths.toml", duration=-1),
    "run(3)": lambda: mptcplab.run(3),  # type: ignore[arg-type]
    'run("duration = ...")': lambda: mptcplab.run('duration = "3 s"\n[links.A]\n'),
    "run({})": lambda: mptcplab.run({}),
    'run("two-paths.toml", engine=3)': lambda: mptcplab.run("two-paths.toml", engine=3),  # type: ignore[arg-type]
    "settings: a list": lambda: mptcplab.check("two-paths.toml", settings=["tcp.tso"]),  # type: ignore[arg-type]
    "settings: an object": lambda: mptcplab.check("two-paths.toml", settings={"tcp.tso": b"true"}),  # type: ignore[dict-item]
    "settings: infinity": lambda: mptcplab.check("two-paths.toml", settings={"links.A.loss": float("inf")}),
    "settings: a number": lambda: mptcplab.check("two-paths.toml", settings={"links.A.loss": 0.01}),
    "settings: a negative time": lambda: mptcplab.check("two-paths.toml", settings={"flows.tcp.stop": -2.5}),
    "sweep: a number": lambda: mptcplab.check("two-paths.toml", sweep={"links.A.loss": 3}),  # type: ignore[dict-item]
    "sweep: nothing": lambda: mptcplab.check("two-paths.toml", sweep={"links.A.loss": []}),
    "sweep: a text": lambda: mptcplab.check("two-paths.toml", sweep="links.A.loss=1 %"),  # type: ignore[arg-type]
    "Scenario: a path": lambda: mptcplab.Scenario("two-paths.toml"),  # type: ignore[arg-type]
    "Scenario: two links": lambda: (
        mptcplab.Scenario().link("A", "S", "D", rate="1 Mbit/s", delay="1 ms").link("A", "S", "D", rate="1", delay="1")
    ),
    "Scenario: neither rate nor trace": lambda: (
        mptcplab.Scenario(duration=9).link("A", "S", "D", delay="1 ms").flow("tcp", ["A"]).check()
    ),
    "Scenario: changes in a list": lambda: mptcplab.Scenario().set(["links.A.loss"]),  # type: ignore[arg-type]
    "Scenario: paths as text": lambda: mptcplab.Scenario().flow("mp", "A"),
    "Scenario: a wrong rate": lambda: (
        mptcplab.Scenario(duration=9).link("A", "S", "D", rate="9 Mbps", delay="1 ms").flow("tcp", ["A"]).check()
    ),
    "Scenario: no flow": lambda: (
        mptcplab.Scenario(duration=9).link("A", "S", "D", rate="9 Mbit/s", delay="1 ms").check()
    ),
    "from_toml: not TOML": lambda: mptcplab.Scenario.from_toml("duration ="),
    "from_dict: an unknown key": lambda: mptcplab.Scenario.from_dict({"duraton": "3 s"}),
    "from_file: nowhere": lambda: mptcplab.Scenario.from_file("nowhere.toml"),
    "load: nowhere": lambda: mptcplab.load("nowhere"),
    "merge: one": lambda: mptcplab.merge("good", out="joined"),
    "compare: nowhere": lambda: mptcplab.compare("nowhere", "good"),
    "ls: nowhere": lambda: mptcplab.ls("nowhere"),
    "metrics: an unknown name": lambda: mptcplab.load("good").metrics(["godput"]),
    "plot: an unknown metric": lambda: mptcplab.load("good").plot.over("links.A.loss", "godput"),
    "plot: an unknown parameter": lambda: mptcplab.load("good").plot.over("links.A.los"),
    "plot: an unknown flow": lambda: mptcplab.load("good").plot.over("links.A.loss", flows="mpp"),
    "plot: one parameter": lambda: mptcplab.load("good").plot.map(),
    "plot: an unknown style": lambda: mptcplab.load("good").plot.goodput(style="poster"),
    "plot: an unknown configuration": lambda: mptcplab.load("good").plot.over_time("bali"),
    "plot: the number of a configuration": lambda: mptcplab.load("good").plot.over_time(0),  # type: ignore[arg-type]
    "plot: no configurations": lambda: mptcplab.load("good").plot.over_time([]),
    "plot: no quantities": lambda: mptcplab.load("good").plot.over_time(quantities=()),
    "from_source: no algorithm": lambda: mptcplab.Algorithm.from_source("int x;"),
    "goals: jobs": lambda: mptcplab.goals("lia", jobs=-1),
    "new: no rates": lambda: mptcplab.new(rates=""),
    "load: nothing": lambda: mptcplab.load(None),  # type: ignore[arg-type]
    "load: an empty text": lambda: mptcplab.load(""),
    "load: bytes": lambda: mptcplab.load(b"good"),  # type: ignore[arg-type]
    "ls: a number": lambda: mptcplab.ls(5),  # type: ignore[arg-type]
    "merge: a number": lambda: mptcplab.merge("good", 5, out="joined"),  # type: ignore[arg-type]
    "merge: out": lambda: mptcplab.merge("good", "other", out=5),  # type: ignore[arg-type]
    "compare: a number": lambda: mptcplab.compare("good", 5),  # type: ignore[arg-type]
    "vectors: a number": lambda: mptcplab.vectors(5),  # type: ignore[arg-type]
    "walk: a number": lambda: mptcplab.walk(5),  # type: ignore[arg-type]
    "run: out": lambda: mptcplab.run("two-paths.toml", out=5),  # type: ignore[arg-type]
    "run: an empty text": lambda: mptcplab.run(""),
    "goals: out": lambda: mptcplab.goals("lia", 5),  # type: ignore[arg-type]
    "hunt: out": lambda: mptcplab.hunt("lia", out=5),  # type: ignore[arg-type]
    "reproduce: docs": lambda: mptcplab.reproduce("kim2021", docs=5),  # type: ignore[arg-type]
    "fidelity: out": lambda: mptcplab.fidelity(5),  # type: ignore[arg-type]
    "agree_all: out": lambda: mptcplab.agree_all(5),  # type: ignore[arg-type]
    "agree: engines": lambda: mptcplab.agree("two-paths.toml", 5),  # type: ignore[arg-type]
    "kernels: a number": lambda: mptcplab.kernels("two-paths.toml", 5),  # type: ignore[arg-type]
    "report: a number": lambda: mptcplab.load("good").report(5),  # type: ignore[arg-type]
    "report: a directory": lambda: mptcplab.load("good").report("full"),
    "from_file: a number": lambda: mptcplab.Scenario.from_file(5),  # type: ignore[arg-type]
    "from_toml: a number": lambda: mptcplab.Scenario.from_toml(5),  # type: ignore[arg-type]
    "Scenario: a number": lambda: mptcplab.Scenario(directory=5),  # type: ignore[arg-type]
    "from_file: a number as an algorithm": lambda: mptcplab.Algorithm.from_file(5),  # type: ignore[arg-type]
    "from_source: a number": lambda: mptcplab.Algorithm.from_source(5),  # type: ignore[arg-type]
    "new: rates": lambda: mptcplab.new(rates=5),  # type: ignore[arg-type]
}
CASES = {**{f"mptcplab {words}": words for words in COMMANDS}, **{f">>> {name}": call for name, call in CALLS.items()}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a good scenario, faulty files and damaged results."""

    directory = tmp_path_factory.mktemp("bad")
    (directory / "two-paths.toml").write_text(SCENARIO)
    (directory / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (directory / "empty.toml").write_text("")
    (directory / "broken.toml").write_text('duration = "3 s\n')
    (directory / "typo.toml").write_text(SCENARIO.replace("delay", "dealy", 1))
    (directory / "no-flows.toml").write_text(SCENARIO.partition("[flows.mp]")[0])
    (directory / "loop.toml").write_text(SCENARIO.replace('to = "D"', 'to = "S"', 1))
    (directory / "full").mkdir()
    (directory / "full" / "thesis.tex").write_text("dear")
    sweep = {"links.A.loss": "0.1 %, 1 %, 5 %"}
    good = directory / "good"
    mptcplab.run(directory / "two-paths.toml", "lia", 1, duration="2 s", sweep=sweep, out=good, jobs=1)
    # The same names in the tables, but another delay of a link.
    slower = {"links.B.delay": "19 ms"}
    mptcplab.run(
        directory / "two-paths.toml",
        "lia",
        1,
        duration="2 s",
        sweep=sweep,
        settings=slower,
        out=directory / "other",
        jobs=1,
        progress=False,
    )
    for name in ("truncated", "truncated-unsealed", "bad-json"):
        shutil.copytree(good, directory / name)
    for name in ("truncated", "truncated-unsealed"):
        table = directory / name / "subflow.parquet"
        table.write_bytes(table.read_bytes()[:300])
    (directory / "truncated-unsealed" / "checksums.json").unlink()
    (directory / "bad-json" / "overrides.json").write_text("{")
    return directory


def snapshots() -> dict[str, str]:
    if not SNAPSHOTS.is_file():
        return {}
    parts = SNAPSHOTS.read_text(encoding="utf-8").split("\n=== ")[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


def message(case: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(place)
    monkeypatch.setenv("NO_COLOR", "1")
    asked = CASES[case]
    if isinstance(asked, str):
        monkeypatch.setattr(sys, "argv", ["mptcplab", *shlex.split(asked)])
        module = importlib.import_module("mptcplab.cli.app")
        # The signals of this process are pytest's.
        monkeypatch.setattr(module, "_handle", lambda *_: None)
        code = module._run_command()
        printed = capsys.readouterr()
        assert (code, printed.out) == (ERROR, ""), printed
        text = printed.err
    else:
        with pytest.raises(mptcplab.MptcplabError) as error:
            asked()
        text = f"{type(error.value).__name__}: {error.value}\n"
    # An earlier test may have loaded algorithms into this process, which are listed after those of the build.
    last = max(path.stem for path in (ROOT / "algorithms").glob("*.c"))
    text = re.sub(rf"(?<=\b{last})(?:,\s+[\w-]+)+", "", text)
    # Polars, since it knows encrypted files.
    text = text.replace("must end with PAR1 or PARE", "must end with PAR1")
    return re.sub(r"/tmp/\S*?/(?=[\w.-]+\.toml)", "", text)


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 120


@pytest.mark.skipif(WRITE, reason="the snapshots are written, not compared")
@pytest.mark.parametrize("case", CASES)
def test_a_wrong_input_gets_its_message(
    case: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = message(case, place, capsys, monkeypatch)
    assert "internal error" not in text
    assert "Traceback" not in text
    assert "hint: " in text
    assert text.strip() == snapshots().get(case, "").strip()


@pytest.mark.skipif(WRITE, reason="the snapshots are written, not compared")
def test_no_snapshot_is_left_over() -> None:
    assert set(snapshots()) == set(CASES)


@pytest.mark.skipif(not WRITE, reason="writes the snapshots: MPTCPLAB_SNAPSHOTS=write")
def test_write_the_snapshots(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ["Wrong inputs and their messages; written by test_bad_inputs.py.\n"]
    parts += [f"\n=== {case}\n{message(case, place, capsys, monkeypatch).rstrip()}\n" for case in CASES]
    SNAPSHOTS.write_text("".join(parts), encoding="utf-8")
