"""The compiled part. Structured data is passed as JSON text."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

class MptcplabError(Exception):
    """Base of all errors; the text is `what failed: value`, and possibly a blank line and `hint: what to do`."""

class ScenarioError(MptcplabError):
    """The input is wrong: a scenario, an override, a file of vectors."""

class EngineError(MptcplabError):
    """A run could not be completed."""

class OutputError(MptcplabError):
    """The output cannot be written to the given place."""

def version() -> str:
    """Version of the package."""

def build_info() -> dict[str, str]:
    """Provenance of the build: version, revision, rustc, target, profile, engine.

    `engine` is a digest (SHA-256, 64 hexadecimal digits) of everything besides scenario, seed and algorithm files that
    determines a simulated run's numbers: sources and manifests of the simulator's crates, the locked versions of all
    other crates, the compile profile. It covers no path, time or revision, so that equal sources have equal digests
    everywhere. The compiler and the machine are not in it; they are `rustc` and `target`.
    """

def load_algorithm(name: str, text: str, place: str) -> None:
    """Compile the text of an algorithm's C file and register it under `name`, in place of an earlier one of that name.

    `place` is the file in messages. Raises ScenarioError for a file that cannot be used, and EngineError where there is
    no compiler.
    """

def added_algorithms(path: str | PathLike[str], overrides_json: str) -> list[tuple[str, str, str]]:
    """The algorithms of a scenario's runs that `load_algorithm` has added: name, place and text of each, by name."""

def algorithms_json() -> str:
    """List of {name, title, coupled, oldest_kernel, source, sections: [{name, text}], incomplete, params, fields}.

    `source` is a digest (SHA-256, 64 hexadecimal digits) of the algorithm's C file and of every header of its folder
    that the file includes with `#include "..."`, in any build. It changes with these files only.

    `params` is a list of {name, default, min, max, scale, values, doc}. Parameter values are raw integers, `scale` is
    the raw value of 1.0, `values` maps the names of an enumeration to raw values (empty for a number). `fields` is a
    list of {name, unit}: the members of a subflow's state that test vectors can name. `incomplete` says what the
    header comment of the C file lacks, or is null.
    """

def schedulers_json() -> str:
    """List of {name, title, default, sections: [{name, text}], params}, as of `algorithms_json`."""

def trace_schema_json() -> str:
    """Object {tables: [{name, file, columns: [{name, type, nullable, unit, doc}]}]}, in the order of the files."""

def unknown_name(kind: str, name: str, known: list[str]) -> str:
    """The error text about a name that is not among the known ones: `no algorithm "bali"` and what may be meant.

    `kind` is the singular of what is named, such as `algorithm`.
    """

def schema_json() -> str:
    """JSON Schema of scenario files."""

def format_doc() -> str:
    """The scenario format as Markdown."""

def check(path: str | PathLike[str], overrides_json: str) -> str:
    """Validate a scenario: object {text: a description, resolved: every unit explicit, defaults filled in}.

    `overrides_json` is an object with any of cc, reps, seed, profile, duration, set: [[key path, value], ...].
    """

def vectors_json(path: str | PathLike[str]) -> str:
    """Run a file of test vectors against the native algorithms and the schedulers.

    Object {passed, failed, skipped, algorithms: [{name, passed, failed, skipped, skip_reason, worst, failures: [{id,
    deviations}]}]}; `worst` (possibly null) and each deviation are {id, what, got, expected, tolerance, ratio}.
    """

def run_scratch(
    path: str | PathLike[str], trace: str | PathLike[str], overrides_json: Sequence[str], jobs: int = 0
) -> str:
    """Like `run`, for all runs of a scenario: one trace, `trace`, which is there only if all runs are.

    The runs of one set of overrides after the other are numbered through. The trace is made to be read once: larger,
    without checksums, and it does not survive a power failure.
    """

def run(
    path: str | PathLike[str],
    kept_dir: str | PathLike[str],
    overrides_json: str = "{}",
    jobs: int = 0,
    progress: Callable[[int, int, float, float], object] | None = None,
    only: list[int] | None = None,
    digests: list[str] | None = None,
    low_priority: bool = False,
) -> str:
    """Simulate every run of a scenario, or only those of some numbers, on `jobs` threads (0: one per core).

    Finished runs are added to `kept_dir` as traces that are numbered on (000001, ...), each with one run or several,
    also if anything is raised. `digests` are those of all runs. With `low_priority`, other processes go before these
    threads. `progress` gets (runs done, runs, simulated seconds, seconds to simulate) about five times a second. Ctrl-C
    raises KeyboardInterrupt. Returns an object {scenario, runs, jobs, simulated_s, events, packet_hops}.
    """

def run_digests(path: str | PathLike[str], overrides_json: str, engine: str) -> list[str]:
    """The digest of every run: of its resolved scenario, the sources of its algorithms, and `engine`, with dashes."""

def runs_json(path: str | PathLike[str], overrides_json: str) -> str:
    """Every run of a scenario, resolved as by `check`, with `starts_ns`: the start time that each flow draws."""

def scenario_files(path: str | PathLike[str], overrides_json: str) -> list[str]:
    """The files that the runs of a scenario use, as paths relative to the scenario file, sorted."""

def merge_traces(
    runs: list[tuple[Path, int]],
    out_dir: str | PathLike[str],
    texts: list[dict[str, str]] | None = None,
) -> None:
    """Write runs of other traces (directory and number) to `out_dir`, in this order and numbered from 0.

    `texts` has for each run what replaces columns of its row in the run table. If anything is raised, `out_dir` does
    not appear.
    """

def assemble_trace(
    path: str | PathLike[str],
    overrides_json: str,
    runs: dict[int, tuple[Path, int]],
    out_dir: str | PathLike[str],
) -> None:
    """Write the trace of a scenario from runs of other traces (directory and number), by their numbers in the scenario.

    It has the bytes of a trace whose runs were all made at once. If anything is raised, `out_dir` does not appear.
    """

def reject_settings(path: str | PathLike[str], overrides_json: str, settings_json: str) -> None:
    """Raise ScenarioError for a list of {keys, message, hint}, with their places in the file; nothing for an empty one.

    Of `keys` (key paths, the most specific first), the error names the first that the file or an override sets.
    """

def write_fluid(
    path: str | PathLike[str],
    kept_dir: str | PathLike[str],
    overrides_json: str,
    libraries: str,
    solve: Callable[[int], tuple[dict[str, dict[str, bytes]], str, int]],
    only: list[int] | None = None,
    digests: list[str] | None = None,
) -> None:
    """Add the traces of the fluid engine to `kept_dir`, as `run` does.

    `solve` is called with the number of every run, in order, and returns its tables (columns of little-endian numbers
    of the declared types; columns that may be null may be left out), the run table's `host` (a JSON object), and the
    number of evaluations of the equations. `libraries` is appended to the run table's `build`.
    """
