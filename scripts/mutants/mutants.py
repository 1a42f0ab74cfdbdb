"""Changes the sources one small step at a time and sees whether a test notices: `make mutants [PART=...]`.

A change that no test notices survives. A file per part, beside this one, lists the survivors that
are known, each with the reason why it may survive; another one is an error. A list has the text of the changed line and
no line number, so that other changes leave it valid. Everything happens in copies below target/mutants.

Rust is changed by cargo-mutants, Python by cosmic-ray, and C by this file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "mutants"
LISTS = ROOT / "scripts" / "mutants"
SIM, SCHEDULERS = "crates/mptcplab-sim/src/", "crates/mptcplab-model/src/sched/"
# What a part needs at least, in percent of its mutants.
LEAST = 90
KILLED, SURVIVED, UNVIABLE = "killed", "survived", "unviable"


@dataclass(frozen=True)
class Part:
    """Files (patterns below the root), and how their tests run."""

    files: Sequence[str]
    # Rust and C: arguments of `cargo test`. Python: files of tests.
    tests: Sequence[str]
    package: str = ""
    # Other files that take part in a pattern but not in the part.
    without: Sequence[str] = field(default=())
    # Rust: arguments of `cargo test` for slower tests, which see only what survives the others.
    slower: Sequence[str] = field(default=())


_RECOVERY = ("recovery", "sack", "scoreboard", "rtt", "rtx_timer", "receiver", "sack_compression", "classic_recovery")
_SIM_TESTS, _SIM_SLOWER = ("--lib",), ("--test", "simulations")
PARTS: Mapping[str, Part] = {
    "recovery": Part([f"{SIM}tcp/{name}.rs" for name in _RECOVERY], _SIM_TESTS, "mptcplab-sim", slower=_SIM_SLOWER),
    "tcp": Part(
        [f"{SIM}tcp/*.rs"],
        _SIM_TESTS,
        "mptcplab-sim",
        [f"{SIM}tcp/{name}.rs" for name in _RECOVERY],
        slower=_SIM_SLOWER,
    ),
    "mptcp": Part([f"{SIM}mptcp/*.rs", f"{SIM}stream/*.rs"], _SIM_TESTS, "mptcplab-sim", slower=_SIM_SLOWER),
    "net": Part([f"{SIM}net/*.rs"], _SIM_TESTS, "mptcplab-sim", slower=_SIM_SLOWER),
    "schedulers": Part(
        [f"{SCHEDULERS}*.rs"],
        (*_SIM_TESTS, "--test", "schedulers"),
        "mptcplab-model,mptcplab-sim",
    ),
    "algorithms": Part(
        ["algorithms/*.c", "algorithms/*.h"],
        (
            *("-p", "mptcplab-cc", "-p", "mptcplab-sim", "--lib", "--test", "algorithms", "--"),
            *(
                word
                for slow in ("fuzz", "laws", "variants", "load", "new_algorithm")
                for word in ("--skip", f"{slow}::")
            ),
        ),
        without=["algorithms/template*"],
    ),
    "metrics": Part(
        ["python/mptcplab/metrics/*.py"],
        [
            *("test_golden_metrics.py", "test_thresholds.py", "test_metrics.py", "test_stats.py", "test_allocation.py"),
            *("test_dynamics.py", "test_transfers.py", "test_requests.py", "test_goal_rules.py"),
        ],
    ),
    "verdicts": Part(
        ["python/mptcplab/study/*.py", "python/mptcplab/studies/papers/*.py", "python/mptcplab/studies/papers/*/*.py"],
        ["test_thresholds.py", "test_decision.py", "test_papers.py", "test_paper_claims.py", "test_store.py"],
        without=["python/mptcplab/studies/papers/report/*"],
    ),
}


@dataclass(frozen=True)
class Mutant:
    """A change with its outcome; `key` tells it from others without a line number."""

    key: str
    outcome: str


def fail(message: str, hint: str) -> None:
    """End with the project's form of an error message."""
    sys.exit(f"error: {message}\n\nhint: {hint}")


def files_of(part: Part) -> list[str]:
    """The part's files, from the root, sorted."""
    found = {path for pattern in part.files for path in ROOT.glob(pattern)}
    found -= {path for pattern in part.without for path in ROOT.glob(pattern)}
    return sorted(str(path.relative_to(ROOT)) for path in found)


def copy_tree(to: Path) -> Path:
    """A copy of everything that is under version control, with what was built and generated for it."""
    shutil.rmtree(to, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    made = (ROOT.glob(pattern) for pattern in ("python/mptcplab/*.so", "papers/*/walk/*"))
    built = [str(path.relative_to(ROOT)) for paths in made for path in paths]
    for name in [*listed.split("\0")[:-1], *built]:
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def environment() -> dict[str, str]:
    """Builds of their own that compile fast."""
    return {
        **os.environ,
        "CARGO_TARGET_DIR": str(WORK / "build"),
        "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
        "CARGO_PROFILE_TEST_DEBUG": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "RUST_BACKTRACE": "0",
    }


_FIELD = "delete field"


def rust(name: str, part: Part, files: Sequence[str], shard: str) -> Iterator[Mutant]:
    """Every mutant of cargo-mutants."""
    shutil.rmtree(WORK / f"{name}-slower", ignore_errors=True)
    options = [option for file in files for option in ("--file", file)]
    options += ["--shard", shard, "--sharding", "round-robin"] if shard else []
    cargo_mutants(WORK / name, part, part.tests, options, timeout_s=60)
    meet_slower_tests(name, part)
    yield from rust_outcomes(name)


def meet_slower_tests(name: str, part: Part) -> None:
    """Run the slower tests of a part on what has survived its others."""
    survivors = [mutant for mutant, outcome in cargo_outcomes(WORK / name) if outcome == SURVIVED]
    if not part.slower or not survivors:
        return
    chosen = [option for one in survivors for option in ("--re", f"^{escaped(one['name'])}$")]
    chosen += [option for file in sorted({one["file"] for one in survivors}) for option in ("--file", file)]
    # cargo-mutants 27 takes these whatever --re says.
    chosen += [] if any(_FIELD in one["name"] for one in survivors) else ["--exclude-re", _FIELD]
    cargo_mutants(WORK / f"{name}-slower", part, part.slower, chosen, timeout_s=300)


def escaped(text: str) -> str:
    """A regular expression of Rust that matches just this text."""
    return re.sub(r"[^\w\s<>=!&/:,'\"%-]", r"\\\g<0>", text)


def cargo_mutants(out: Path, part: Part, tests: Sequence[str], options: Sequence[str], *, timeout_s: int) -> None:
    """Run cargo-mutants; its files are in `out` afterwards."""
    shutil.rmtree(out / "mutants.out", ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    command = [
        "cargo",
        "mutants",
        "--output",
        str(out),
        "--timeout",
        str(timeout_s),
        "--colors",
        "never",
        "--no-shuffle",
    ]
    for package in part.package.split(","):
        command += ["--test-package", package]
    # To cargo itself: what comes after `--` counts for running the tests only, and everything would be built.
    command += [*options, *(f"--cargo-arg={word}" for word in tests)]
    code = subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode
    # 2: some survive, 3: some take too long.
    if code not in (0, 2, 3):
        fail(f"cargo mutants ended with {code}", f"see {out}/mutants.out/log")


def rust_outcomes(name: str) -> Iterator[Mutant]:
    """The mutants in the files that cargo-mutants has written so far, by all tests that have seen them."""
    slower = {mutant["name"]: outcome for mutant, outcome in cargo_outcomes(WORK / f"{name}-slower")}
    for mutant, outcome in cargo_outcomes(WORK / name):
        line = (ROOT / mutant["file"]).read_text().splitlines()[mutant["span"]["start"]["line"] - 1].strip()
        what = re.sub(r"^\S+?:\d+:\d+: ", "", mutant["name"])
        yield Mutant(f"{mutant['file']}: {what} | {line}", slower.get(mutant["name"], outcome))


def cargo_outcomes(out: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """What cargo-mutants has tried, with the outcome."""
    kinds = {"CaughtMutant": KILLED, "Timeout": KILLED, "MissedMutant": SURVIVED}
    path = out / "mutants.out" / "outcomes.json"
    for one in json.loads(path.read_text())["outcomes"] if path.exists() else ():
        if isinstance(one["scenario"], dict):
            yield one["scenario"]["Mutant"], kinds.get(one["summary"], UNVIABLE)


# A token of C and what it becomes; a minus, a plus or a comparison has spaces on both sides.
_C = {
    " < ": [" <= ", " > "],
    " <= ": [" < "],
    " > ": [" >= ", " < "],
    " >= ": [" > "],
    " == ": [" != "],
    " != ": [" == "],
    " && ": [" || "],
    " || ": [" && "],
    " + ": [" - "],
    " - ": [" + "],
    " * ": [" / "],
    " / ": [" * "],
    " << ": [" >> "],
    " >> ": [" << "],
    " += ": [" -= "],
    " -= ": [" += "],
    "cc_min(": ["cc_max("],
    "cc_max(": ["cc_min("],
    "return true;": ["return false;"],
    "return false;": ["return true;"],
    "if (!": ["if ("],
}


def c_changes(text: str) -> Iterator[tuple[int, str, str]]:
    """Place, old and new text of every change of a C file, outside comments and preprocessor lines."""
    hidden = [match.span() for match in re.finditer(r"/\*.*?\*/|^[ \t]*#[^\n]*$|\"[^\"\n]*\"", text, re.S | re.M)]
    for old, news in _C.items():
        for match in re.finditer(re.escape(old), text):
            if not any(start <= match.start() < end for start, end in hidden):
                yield from ((match.start(), old, new) for new in news)


def c(_name: str, part: Part, files: Sequence[str], shard: str) -> Iterator[Mutant]:
    """Every change of C, each with a build of its own."""
    tree = copy_tree(WORK / "tree")
    changes = [(file, *change) for file in files for change in sorted(c_changes((ROOT / file).read_text()))]
    number, count = map(int, shard.split("/")) if shard else (0, 1)
    command = ["cargo", "test", "--quiet", *part.tests]
    if _run(command, tree) != 0:
        fail("the tests fail without a change", " ".join(command))
    for file, at, old, new in changes[number::count]:
        text = (ROOT / file).read_text()
        line = text[text.rfind("\n", 0, at) + 1 : text.find("\n", at)].strip()
        (tree / file).write_text(text[:at] + new + text[at + len(old) :])
        try:
            compiles = _run(["cargo", "test", "--quiet", "--no-run", *part.tests], tree) == 0
            outcome = (SURVIVED if _run(command, tree) == 0 else KILLED) if compiles else UNVIABLE
        finally:
            (tree / file).write_text(text)
        yield Mutant(f"{file}: replace {old.strip()} with {new.strip()} | {line}", outcome)


def _run(command: Sequence[str], tree: Path) -> int:
    try:
        asked = {**environment(), "CARGO_TERM_COLOR": "never"}
        return subprocess.run(command, cwd=tree, env=asked, timeout=300, check=False, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        return 1


_COSMIC_RAY = """\
[cosmic-ray]
module-path = {modules}
timeout = 120.0
excluded-modules = []
test-command = "{python} -m pytest -n0 -q -x -p no:cacheprovider {tests}"

[cosmic-ray.distributor]
name = "local"

[cosmic-ray.filters.operators-filter]
exclude-operators = ["core/ReplaceBinaryOperator_BitOr_.*"]
"""


def python(name: str, part: Part, files: Sequence[str], shard: str) -> Iterator[Mutant]:
    """Every mutant of cosmic-ray but those of `|`, which stands in annotations nearly everywhere."""
    tree, venv = copy_tree(WORK / "tree"), WORK / "venv"
    if not (venv / "bin" / "cosmic-ray").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "pip"), "install", "--quiet", "cosmic-ray"], check=True)
    tests = [test for test in (f"tests/python/{name}" for name in part.tests) if (tree / test).exists()]
    config = _COSMIC_RAY.format(modules=json.dumps(files), python=sys.executable, tests=" ".join(tests))
    (tree / "mutants.toml").write_text(config)
    session = WORK / f"{name}.sqlite"
    session.unlink(missing_ok=True)
    # The copy comes before the installed package.
    env = {**os.environ, "PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}

    def tool(program: str, *words: str) -> str:
        command = [str(venv / "bin" / program), *words]
        return subprocess.run(command, cwd=tree, env=env, check=True, capture_output=True, text=True).stdout

    tool("cosmic-ray", "init", "mutants.toml", str(session))
    tool("cr-filter-operators", str(session), "mutants.toml")
    if shard:
        keep_shard(session, shard)
    tool("cosmic-ray", "baseline", "mutants.toml")
    tool("cosmic-ray", "exec", "mutants.toml", str(session))
    yield from python_outcomes(tool("cosmic-ray", "dump", str(session)))


def keep_shard(session: Path, shard: str) -> None:
    """Take the mutants of other shards, and those that are filtered out, from a session of cosmic-ray."""
    number, count = map(int, shard.split("/"))
    order = "module_path, start_pos_row, start_pos_col, operator_name, occurrence"
    with closing(sqlite3.connect(session)) as database, database:
        asked = "select job_id from mutation_specs where job_id not in (select job_id from work_results)"
        jobs = {job for (job,) in database.execute(f"{asked} order by {order}").fetchall()[number::count]}
        for table in ("work_results", "mutation_specs", "work_items"):
            for (job,) in database.execute(f"select job_id from {table}").fetchall():
                if job not in jobs:
                    database.execute(f"delete from {table} where job_id = ?", (job,))


def python_outcomes(dump: str) -> Iterator[Mutant]:
    """The mutants in what `cosmic-ray dump` prints."""
    for line in dump.splitlines():
        work, result = json.loads(line)
        (mutation,) = work["mutations"]
        if result is None or result["worker_outcome"] == "skipped":
            continue
        changed = [text for text in (result["diff"] or "").splitlines() if re.match(r"[-+](?![-+])", text)]
        text = " ".join(f"{text[0]} {text[1:].strip()}" for text in changed)
        if result["test_outcome"] not in (SURVIVED, KILLED):
            fail(f"a mutant could not be tested: {mutation['module_path']}: {text}", result["output"] or "no output")
        outcome = result["test_outcome"]
        yield Mutant(f"{mutation['module_path']}: {text}", outcome)


def listed_lines(name: str) -> list[str]:
    """The lines of a part's list, which may not be there yet."""
    path = LISTS / f"{name}.txt"
    return path.read_text().splitlines() if path.exists() else []


def known(name: str) -> tuple[Counter[str], dict[str, str]]:
    """The survivors that are listed, and the reason of each."""
    found, reasons = Counter[str](), {}
    for line in listed_lines(name):
        if line and not line.startswith("#"):
            key, _, reason = line.partition("  # ")
            found[key] += 1
            reasons[key] = reason
    return found, reasons


def shards(name: str) -> dict[str, str]:
    """What the list says of the shards that were run: a summary of each, by shard."""
    return dict(
        found.groups() for line in listed_lines(name) if (found := re.fullmatch(r"# shard (\d+/\d+): (.*)", line))
    )


def heading(name: str, shard: str, summary: str) -> list[str]:
    """The first lines of a list. A shard adds to the others of as many shards; all mutants take their place."""
    title = f"# Survivors of `make mutants PART={name}`, see CONTRIBUTING.md."
    if not shard:
        return [title, f"# {summary}"]
    count = shard.partition("/")[2]
    found = {key: text for key, text in shards(name).items() if key.endswith(f"/{count}")} | {shard: summary}
    ordered = sorted(found.items(), key=lambda item: int(item[0].partition("/")[0]))
    return [title, *(f"# shard {key}: {text}" for key, text in ordered)]


def former_heading(name: str) -> list[str]:
    """What the list begins with: some files of a part say nothing about the whole."""
    return [line for line in listed_lines(name) if line.startswith("#")]


def compare(name: str, mutants: Sequence[Mutant], *, shard: str, whole: bool, accept: bool) -> bool:
    """Print the kill rate and what is new; write the list if asked to. Returns whether all is well."""
    count = Counter(mutant.outcome for mutant in mutants)
    total = count[KILLED] + count[SURVIVED]
    rate = 100 * count[KILLED] / max(total, 1)
    summary = f"{total} mutants, {count[KILLED]} killed ({rate:.1f} %), {count[UNVIABLE]} that do not compile"
    print(f"{name}: {summary}")
    survivors = Counter(mutant.key for mutant in mutants if mutant.outcome == SURVIVED)
    listed, reasons = known(name)
    new, gone = survivors - listed, (listed - survivors) if whole else Counter[str]()
    for key in sorted(new.elements()):
        print(f"  new: {key}")
    for key in sorted(gone.elements()):
        print(f"  no longer: {key}")
    if accept:
        kept = survivors if whole else survivors | listed
        lines = [f"{key}  # {reasons.get(key) or 'not looked at yet'}" for key in sorted(kept.elements())]
        head = heading(name, shard, summary) if whole or shard else former_heading(name)
        (LISTS / f"{name}.txt").write_text("\n".join([*head, "", *lines]) + "\n")
        return True
    if new:
        print("\nhint: write a test that notices, or list them with ACCEPT=1 and say why they may survive")
    return not new and (rate >= LEAST or not whole)


def main() -> int:
    """Run the parts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all without")
    parser.add_argument("--file", action="append", default=[], help="only files with this in their names")
    parser.add_argument("--shard", default="", help="k/n: only every n-th mutant, from the k-th")
    parser.add_argument("--accept", action="store_true", help="write the list of survivors")
    parser.add_argument("--again", action="store_true", help="compare the outcomes of the last run (Rust only)")
    asked = parser.parse_args()
    unknown = [name for name in asked.parts if name not in PARTS]
    if unknown:
        fail(f"no part {unknown[0]!r}", f"one of {', '.join(PARTS)}")
    if shutil.which("cargo-mutants") is None:
        subprocess.run(["cargo", "install", "--locked", "cargo-mutants"], check=True)
    good = True
    for name in asked.parts or PARTS:
        part = PARTS[name]
        files = [file for file in files_of(part) if not asked.file or any(text in file for text in asked.file)]
        make = c if files[0].startswith("algorithms") else python if files[0].endswith(".py") else rust
        mutants = list(rust_outcomes(name) if asked.again else make(name, part, files, asked.shard))
        whole = not (asked.file or asked.shard or asked.again)
        good &= compare(name, mutants, shard=asked.shard, whole=whole, accept=asked.accept)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
