"""Writes the man page and the bash completion of `mptcplab-kernel` from what its `--help` says.

usage: python packaging/kernel_pages.py DIRECTORY PROGRAM...

PROGRAM may follow the words that start it, such as those of an emulator.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NAME = "mptcplab-kernel"
HEADING = re.compile(r"^(Arguments|Options|Commands):$", re.MULTILINE)
# An entry begins with at most six blanks, and its text is in the same line or below.
ENTRY = re.compile(r"^ {2,6}(?P<name>[-<\[\w].*?)(?:  +(?P<text>\S.*))?$")


@dataclass(frozen=True)
class Help:
    """The help of one command, with its entries by heading."""

    words: tuple[str, ...]
    about: str
    usage: str
    entries: dict[str, list[tuple[str, str]]]

    @property
    def commands(self) -> list[str]:
        """The commands below this one."""
        return [name for name, _ in self.entries.get("Commands", []) if name != "help"]

    @property
    def options(self) -> list[str]:
        """The long options."""
        return [found for name, _ in self.entries.get("Options", []) for found in re.findall(r"--[\w-]+", name)]


def read(program: list[str], words: tuple[str, ...] = ()) -> Iterator[Help]:
    """The help of a command and of all below it."""
    text = subprocess.run([*program, *words, "--help"], capture_output=True, text=True, check=True).stdout
    about, _, rest = text.partition("\nUsage: ")
    usage, _, rest = rest.partition("\n")
    # It begins with the name of the file, which is another one once the program is installed.
    usage = usage.replace(usage.split()[0], NAME, 1)
    parts = HEADING.split(rest)
    found = Help(
        words, about.strip(), usage.strip(), {name: list(entries(body)) for name, body in zip(parts[1::2], parts[2::2])}
    )
    yield found
    for name in found.commands:
        yield from read(program, (*words, name))


def entries(body: str) -> Iterator[tuple[str, str]]:
    """Name and text of every entry below a heading."""
    name, texts = None, []
    for line in body.splitlines():
        begun = ENTRY.match(line)
        if begun and (begun["name"].startswith(("-", "<", "[")) or begun["text"]):
            if name is not None:
                yield name, " ".join(texts)
            name, texts = begun["name"], [begun["text"]] if begun["text"] else []
        elif line.strip():
            texts.append(line.strip())
    if name is not None:
        yield name, " ".join(texts)


def man_page(helps: list[Help], version: str) -> str:
    """The man page, in the macros of man(7)."""
    first, *rest = helps
    lines = [
        f'.TH {NAME.upper()} 8 "" "mptcplab {version}" "System Administration"',
        ".SH NAME",
        f"{roff(NAME)} \\- {roff(first.about[0].lower() + first.about[1:])}",
        ".SH SYNOPSIS",
        *(f"{roff(one.usage)}\n.br" for one in rest if not one.commands),
        ".SH DESCRIPTION",
        roff(
            "Loads congestion control algorithms for Multipath TCP into the kernel, checks whether the machine can use "
            "them, and runs scenarios of mptcplab on its kernel. Loading needs CAP_BPF and CAP_PERFMON."
        ),
        ".SH COMMANDS",
    ]
    for one in rest:
        if one.commands:
            continue
        lines += [f".SS {roff(' '.join(one.words))}", roff(one.about)]
        for name, text in one.entries.get("Arguments", []) + one.entries.get("Options", []):
            lines += [".TP", f"\\fB{roff(name)}\\fR", roff(text)]
    lines += [
        ".SH FILES",
        ".TP",
        roff("/usr/lib/systemd/system/mptcplab-cc@.service"),
        roff("Loads an algorithm at boot: systemctl enable --now mptcplab-cc@olia.service"),
        ".SH EXIT STATUS",
        "0 done, 1 a check failed, 2 error, 130 interrupted.",
        ".SH SEE ALSO",
        ".BR ip-mptcp (8),",
        ".BR mptcpize (8)",
    ]
    return "\n".join(lines) + "\n"


def roff(text: str) -> str:
    """Text as it is, for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


def completion(helps: list[Help]) -> str:
    """A script for bash, which completes commands, options and files."""
    cases = [f'\t"{" ".join(one.words)}") words="{" ".join([*one.commands, *one.options])}" ;;' for one in helps]
    known = " ".join("|".join(sorted({word for one in helps for word in one.words})).split())
    return "\n".join(
        [
            f"# bash completion of {NAME}",
            "_mptcplab_kernel() {",
            '\tlocal word path="" words current=${COMP_WORDS[COMP_CWORD]}',
            '\tfor word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            f'\t\tcase $word in {known}) path+="${{path:+ }}$word" ;; esac',
            "\tdone",
            "\tcase $path in",
            *cases,
            "\tesac",
            '\tmapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")',
            "}",
            f"complete -o default -F _mptcplab_kernel {NAME}",
            "",
        ]
    )


def main() -> int:
    """Writes both files."""
    directory, program = Path(sys.argv[1]), sys.argv[2:]
    helps = list(read(program))
    version = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{NAME}.8").write_text(man_page(helps, version), encoding="utf-8")
    (directory / f"{NAME}.bash").write_text(completion(helps), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
