"""Changes the sources one small step at a time and sees whether a test notices: `make mutants [PART=...]`.

A change that no test notices survives. A file per part, beside this one, lists the survivors that are known, each with
the reason why it may survive; another one is an error. A list has the text of the changed line and no line number, so
that other changes leave it valid. Everything happens in copies below target/mutants.

cargo-mutants says how Rust can be changed, cosmic-ray says it of Python, and `c_sources.py` of C.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parent))

import c_sources
import python_sources
import rust_sources
from known import Known
from schemata import Change
from trials import Program, passes, survivors, with_limits

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
    # Rust and C: what `cargo test` builds. Python: files of tests.
    tests: Sequence[str]
    # Other files that take part in a pattern but not in the part.
    without: Sequence[str] = field(default=())
    # Rust and C: parts of the names of tests that are left out.
    skipped: Sequence[str] = field(default=())


_RECOVERY = ("recovery", "sack", "scoreboard", "rtt", "rtx_timer", "receiver", "sack_compression", "classic_recovery")
_RECOVERY_FILES = [f"{SIM}tcp/{name}.rs" for name in _RECOVERY]
_SIM_TESTS = ("-p", "mptcplab-sim", "--lib", "--test", "simulations")
# Long runs with averages, nine tenths of the time of all tests: a mutant that they alone notice counts as a survivor.
_LONG = (
    "fairness::",
    "integrity::",
    "cubic::another_curve",
    "cubic::the_window_follows",
    "profiles::a_profile_halves_the_growth",
    "single_path::reno_follows_the_square_root_law",
    "tso::a_subflow_that_has_nothing_to_send",
    "tso::waiting_for_a_larger_group",
)
PARTS: Mapping[str, Part] = {
    "recovery": Part(_RECOVERY_FILES, _SIM_TESTS, skipped=_LONG),
    "tcp": Part([f"{SIM}tcp/*.rs"], _SIM_TESTS, without=_RECOVERY_FILES, skipped=_LONG),
    "mptcp": Part([f"{SIM}mptcp/*.rs", f"{SIM}stream/*.rs"], _SIM_TESTS, skipped=_LONG),
    "sctp": Part([f"{SIM}sctp/*.rs"], _SIM_TESTS, skipped=_LONG),
    "net": Part([f"{SIM}net/*.rs"], _SIM_TESTS, skipped=_LONG),
    "engine": Part([f"{SIM}*.rs", f"{SIM}engine/*.rs", f"{SIM}app/*.rs"], _SIM_TESTS, skipped=_LONG),
    "schedulers": Part(
        [f"{SCHEDULERS}*.rs"],
        ("-p", "mptcplab-model", *_SIM_TESTS, "--test", "schedulers"),
        # It reads the test vectors of other implementations, and is no part of a scheduler.
        without=[f"{SCHEDULERS}vectors.rs"],
        skipped=_LONG,
    ),
    "algorithms": Part(
        ["algorithms/*.c", "algorithms/*.h"],
        ("-p", "mptcplab-cc", *_SIM_TESTS, "--test", "algorithms"),
        # What an eBPF program has in place of the native one's parts.
        without=["algorithms/template*", "algorithms/cc_bpf.h"],
        # They compile algorithms of their own, or run many random cases.
        skipped=(*_LONG, "fuzz::", "load::", "new_algorithm::"),
    ),
    "metrics": Part(
        ["python/mptcplab/metrics/*.py"],
        [
            *("test_golden_metrics.py", "test_thresholds.py", "test_metrics.py", "test_stats.py", "test_allocation.py"),
            *("test_dynamics.py", "test_transfers.py", "test_requests.py", "test_goal_rules.py", "test_fluid.py"),
            *("test_agree.py", "test_joined.py", "test_phases.py", "test_window.py", "test_registry.py"),
            "test_student.py",
        ],
    ),
    "verdicts": Part(
        ["python/mptcplab/study/*.py", "python/mptcplab/studies/papers/*.py", "python/mptcplab/studies/papers/*/*.py"],
        [
            *("test_thresholds.py", "test_decision.py", "test_papers.py", "test_paper_claims.py"),
            *("test_paper_evidence.py", "test_paper_report.py", "test_paper_sensitivity.py", "test_papers_kernel.py"),
            *("test_store.py", "test_predicates.py", "test_statistics.py", "test_values.py", "test_sweeps.py"),
            *("test_cell.py", "test_execute.py", "test_measure.py", "test_workers.py", "test_paper_catalog.py"),
            *("test_paper_planner.py", "test_paper_reproduce.py", "test_frozen.py", "test_paper_choices.py"),
            *("test_paper_priors.py", "test_paper_biases.py", "test_paper_summary.py", "test_paper_selectors.py"),
            *("test_paper_side_by_side.py", "test_paper_asked.py"),
        ],
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
        "RUSTFLAGS": "--cap-lints=allow",
    }


def compiled(part: Part, files: Sequence[str], shard: str, before: Known | None) -> Iterator[Mutant]:
    """The mutants of Rust or C: those in functions in one build, each of the others in a build of its own."""
    language = c_sources if files[0].endswith((".c", ".h")) else rust_sources
    tree = copy_tree(WORK / "tree")
    changes = of_shard(language.listed(ROOT, files), shard)
    settings = {**environment(), **language.flags(tree)}
    together, alone = put_viable(language, tree, changes, part, settings)
    outcomes = {change.number: UNVIABLE for change in changes}
    assumed = {change.number: before.survived(change.key) if before else None for change in [*together, *alone]}
    outcomes |= {number: SURVIVED if survived else KILLED for number, survived in assumed.items()}
    together, alone = ([one for one in of if assumed[one.number] is None] for of in (together, alone))
    outcomes |= tried(built(tree, part, settings), [change.number for change in together])
    restore(tree, files)
    outcomes |= {change.number: tried_alone(change, tree, part, settings) for change in alone}
    yield from (Mutant(change.key, outcomes[change.number]) for change in changes)


def of_shard(changes: Sequence[Change], shard: str) -> Sequence[Change]:
    """Every n-th change from the k-th, where the shard is k/n."""
    number, count = map(int, shard.split("/")) if shard else (0, 1)
    return changes[number::count]


def put_viable(
    language: ModuleType, tree: Path, changes: Sequence[Change], part: Part, settings: Mapping[str, str]
) -> tuple[list[Change], list[Change]]:
    """Write the changes into the tree, without those that the compiler refuses.

    Returns the ones that are written, and the ones that need a build each: constants, and functions that are refused as
    a whole once they have several bodies.
    """
    left, alone = [change for change in changes if change.body], [change for change in changes if not change.body]
    while True:
        restore(tree, sorted({change.file for change in changes}))
        written = language.put(tree, left)
        refused: set[int] = set()
        for file, line, text in language.errors(tree, part.tests, settings):
            owners = written[file].owners_of(line) if file in written else ()
            if not owners:
                fail(f"{file}:{line}: {text}", f"see {tree}; no mutant is in this line")
            refused.update(owners)
            alone += [change for change in left if len(owners) > 1 and change.number in owners and change not in alone]
        if not refused:
            return left, alone
        left = [change for change in left if change.number not in refused]


def restore(tree: Path, files: Sequence[str]) -> None:
    """Take the changes out of these files and out of the libraries of their crates."""
    libraries = {str(Path(*Path(file).parts[:2], "src", "lib.rs")) for file in files if file.endswith(".rs")}
    for file in {*files, *libraries}:
        shutil.copy(ROOT / file, tree / file)


def built(tree: Path, part: Part, settings: Mapping[str, str]) -> list[Program]:
    """The test programs of a part; none if they do not compile."""
    command = ["cargo", "test", "--no-run", "--message-format=json", *part.tests]
    done = subprocess.run(command, cwd=tree, env=settings, check=False, capture_output=True, text=True)
    made = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    skipped = [word for name in part.skipped for word in ("--skip", name)]
    return [
        # Tests that compile C themselves need the settings as well.
        Program(Path(one["executable"]), Path(one["manifest_path"]).parent, settings, skipped)
        for one in made
        if one.get("executable")
    ]


def tried(programs: Sequence[Program], numbers: Sequence[int]) -> dict[int, str]:
    """The outcome of every mutant that was compiled, by its number."""
    if not programs:
        fail("the tests do not compile", "see cargo test")
    found = {}
    for number, survived in survivors(with_limits(programs), numbers):
        found[number] = SURVIVED if survived else KILLED
        if len(found) % 100 == 0:
            print(f"  {len(found)} of {len(numbers)}: {Counter(found.values())[SURVIVED]} survive", flush=True)
    return found


def tried_alone(change: Change, tree: Path, part: Part, settings: Mapping[str, str]) -> str:
    """The outcome of a mutant that needs a build of its own."""
    path = tree / change.file
    path.write_text(change.on(path.read_text()))
    try:
        programs = built(tree, part, settings)
        return (SURVIVED if passes([(one, 300.0) for one in programs], 0) else KILLED) if programs else UNVIABLE
    finally:
        restore(tree, [change.file])


def interpreted(part: Part, files: Sequence[str], shard: str, before: Known | None) -> Iterator[Mutant]:
    """Every mutant of Python."""
    tree = copy_tree(WORK / "tree")
    tests = [f"tests/python/{name}" for name in part.tests]
    survive = 0
    for number, one in enumerate(python_sources.outcomes(tree, WORK / "venv", files, tests, shard, before), 1):
        survive += one["survived"]
        if number % 100 == 0:
            print(f"  {number}: {survive} survive", flush=True)
        yield Mutant(f"{one['file']}: {one['change']}", SURVIVED if one["survived"] else KILLED)


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


def require_lists(names: Sequence[str]) -> None:
    """End unless these parts were run before."""
    for name in names:
        if not (LISTS / f"{name}.txt").exists():
            fail(f"{name} has no list yet", f"make mutants PART={name} ACCEPT=1 writes it")


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
    elsewhere = Counter[str]() if whole else listed - Counter(mutant.key for mutant in mutants)
    new, gone = survivors - listed, listed - elsewhere - survivors
    for key in sorted(new.elements()):
        print(f"  new: {key}")
    for key in sorted(gone.elements()):
        print(f"  no longer: {key}")
    if accept:
        kept = survivors + elsewhere
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
    some = parser.add_mutually_exclusive_group()
    some.add_argument(
        "--listed",
        action="store_true",
        help="after a change of tests only: try those that are listed, and count the others as killed",
    )
    some.add_argument(
        "--unlisted",
        action="store_true",
        help="after a change of sources: try those that are not listed, and count the listed ones as survivors",
    )
    asked = parser.parse_args()
    unknown = [name for name in asked.parts if name not in PARTS]
    if unknown:
        fail(f"no part {unknown[0]!r}", f"one of {', '.join(PARTS)}")
    if asked.listed or asked.unlisted:
        require_lists(asked.parts or list(PARTS))
    good = True
    for name in asked.parts or PARTS:
        part = PARTS[name]
        files = [file for file in files_of(part) if not asked.file or any(text in file for text in asked.file)]
        outcomes = interpreted if files[0].endswith(".py") else compiled
        before = Known(known(name)[0], again=asked.listed) if asked.listed or asked.unlisted else None
        mutants = list(outcomes(part, files, asked.shard, before))
        whole = not (asked.file or asked.shard)
        good &= compare(name, mutants, shard=asked.shard, whole=whole, accept=asked.accept)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
