"""What a test run skipped: `record FILE` passes the output of a check on and notes it, `count FILE` counts it.

A test program of Rust says what a passed test printed only if it shows all of that (--show-output); `record` reads that
part and does not pass it on.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

# pytest's `SKIPPED [2] file:line: reason`.
_PYTEST = re.compile(r"SKIPPED \[(?P<count>\d+)\] \S+: (?P<reason>.*)")
# `SKIPPED: reason` and `SKIPPED, NOT TESTED: reason`, after `-- ` if a script says it.
_MARK = re.compile(r"SKIPPED(, NOT TESTED)?: *")
# `SKIPPED: name_of_the_test needs reason`.
_NAMED = re.compile(r"^\w+ needs ")


def record(lines: Iterable[str], log: Path) -> None:
    """Pass lines on to stdout, without what Rust's tests printed that passed; append those about skips to `log`."""
    hidden = False
    with log.open("a", encoding="utf-8") as file:
        for line in lines:
            if "SKIPPED" in line:
                file.write(line)
                file.flush()
            if line.startswith("successes:"):
                hidden = True
            elif line.startswith(("failures:", "test result: ")):
                hidden = False
            if not hidden:
                sys.stdout.write(line)
                sys.stdout.flush()


def count(lines: Iterable[str]) -> Counter[str]:
    """Number of skipped tests by reason. What scripts say counts once, however often they say it."""
    counts: Counter[str] = Counter()
    for line in lines:
        found = _PYTEST.match(line)
        reason = _MARK.split(found["reason"] if found else line)[-1].strip()
        reason = _NAMED.sub("this needs ", reason)
        if line.startswith("-- "):
            counts[reason] = 1
        else:
            counts[reason] += int(found["count"]) if found else 1
    return counts


def summary(counts: Counter[str]) -> str:
    """The counts as text for the end of a test run."""
    if not counts:
        return "-- Skipped: nothing"
    rows = [f"   {number:4}  {reason}" for reason, number in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]
    return "\n".join([f"-- Skipped, and therefore NOT TESTED: {counts.total()}", *rows])


if __name__ == "__main__":
    command, log = sys.argv[1], Path(sys.argv[2])
    if command == "record":
        record(sys.stdin, log)
    else:
        sys.stderr.write(summary(count(log.read_text(encoding="utf-8").splitlines())) + "\n")
