"""All mutants of some functions in one build, with a number in the environment that chooses one.

A function with mutants gets a body per mutant beside its own, and takes the one that `MPTCPLAB_MUTANT` names. So the
sources are compiled once and not once per mutant, which would take nearly all of the time. (Untch, Offutt and Harrold,
"Mutation analysis using mutant schemata", ISSTA 1993.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

# The environment variable that holds the number of a mutant; 0, and its absence, is the program as it is.
CHOICE = "MPTCPLAB_MUTANT"


@dataclass(frozen=True)
class Change:
    """One mutant: a piece of a file's text and what takes its place."""

    number: int
    file: str
    start: int
    end: int
    text: str
    # From the opening to behind the closing brace of the function around it; None for a constant.
    body: tuple[int, int] | None
    # What a person reads: the change, without its place.
    name: str
    # The line of the file that it begins in.
    line: str = ""

    @property
    def key(self) -> str:
        """What a list says of it."""
        return f"{self.file}: {self.name} | {self.line}"

    def on(self, text: str) -> str:
        """The file's text with the change."""
        return text[: self.start] + self.text + text[self.end :]

    def new_body(self, text: str) -> str:
        """What stands between the function's braces after the change."""
        opening, end = self.body or (0, 0)
        return text[opening + 1 : self.start] + self.text + text[self.end : end - 1]


@dataclass(frozen=True)
class Switch:
    """How a language chooses among several bodies."""

    head: str
    case: str
    default: str
    end: str


@dataclass
class Mutated:
    """A file with all its mutants, and which lines belong to which."""

    text: str = ""
    # First lines of pieces of the text, and the mutants that an error in each speaks of.
    begins: list[int] = field(default_factory=lambda: [1])
    owners: list[tuple[int, ...]] = field(default_factory=lambda: [()])

    def add(self, text: str, *owners: int) -> None:
        """Append lines that belong to these mutants."""
        self.text += "\n"
        self.begins.append(self.text.count("\n") + 1)
        self.owners.append(owners)
        self.text += text

    def owners_of(self, line: int) -> tuple[int, ...]:
        """One mutant for a line in its body, all of the function for one between bodies, and none elsewhere."""
        return self.owners[bisect_right(self.begins, line) - 1]


def write(tree: Path, changes: Sequence[Change], switch: Switch) -> dict[str, Mutated]:
    """Put changes that lie in functions into the files below `tree`, which are as they were when they were listed."""
    by_file = defaultdict(list)
    for change in changes:
        by_file[change.file].append(change)
    written = {file: _mutated((tree / file).read_text(), of, switch) for file, of in by_file.items()}
    for file, mutated in written.items():
        (tree / file).write_text(mutated.text)
    return written


def _mutated(text: str, changes: Sequence[Change], switch: Switch) -> Mutated:
    made, done = Mutated(), 0
    for (opening, end), of in _outermost(changes):
        everyone = [change.number for change in of]
        made.text += text[done : opening + 1]
        made.add(f"{switch.head}\n", *everyone)
        for change in of:
            made.add(switch.case.format(change.number, change.new_body(text)) + "\n", change.number)
        made.add(switch.default.format(text[opening + 1 : end - 1]) + f"\n{switch.end}\n", *everyone)
        made.add("")
        done = end - 1
    made.text += text[done:]
    return made


def line_of(text: str, at: int) -> str:
    """The line around a place in a text."""
    return text[text.rfind("\n", 0, at) + 1 : text.find("\n", at)].strip()


def _outermost(changes: Sequence[Change]) -> list[tuple[tuple[int, int], list[Change]]]:
    """The bodies that lie in no other, in order, each with its changes and those of functions inside."""
    groups: list[tuple[tuple[int, int], list[Change]]] = []
    in_bodies = [(change.body, change) for change in changes if change.body]
    for body, change in sorted(in_bodies, key=lambda pair: (pair[0][0], -pair[0][1], pair[1].number)):
        if groups and body[1] <= groups[-1][0][1]:
            outer, of = groups[-1]
            of.append(replace(change, body=outer))
        else:
            groups.append((body, [change]))
    return groups
