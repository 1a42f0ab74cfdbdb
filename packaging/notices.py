"""Writes the notices of the kernel program without libraries, or of what is compiled in the wheel: copyright and licence
of all that is linked.

usage: notices.py OUT program|wheel TARGET ZIG CRATE...

The file is machine-readable, as Debian's copyright format 1.0 says: the package installs it as its `copyright`, it lies
beside the program in dist/, and the wheel has it among its licences. What is linked comes from the bill of materials
(sbom.py), and every text from the sources that are compiled: the crates, the C libraries in the crate libbpf-sys, what
zig (in the directory ZIG) adds, and Rust's own library. Something that is linked without a text of its licence is an
error.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sbom

ROOT = sbom.ROOT
FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
# Files of a crate that have a licence or a notice.
NOTICE_FILE = re.compile(r"(licen[sc]e|copying|copyright|notice|unlicense)([-._].*)?$", re.IGNORECASE)
# A line that says who has the copyright: not a sentence of a licence, nor an example in one.
COPYRIGHT = re.compile(r"[\s/*#-]*(?:Copyright\s+(?:\([cC]\)|©|\d{4}|[A-Z])|\([cC]\)\s*\d{4})")
NO_COPYRIGHT = re.compile(
    r"copyright (?:notice|license|owner|holder|law|statement)|[\[{<]?\byear\b|yyyy|%s|free software found", re.I
)
# Who, after the years.
HOLDER = re.compile(r"Copyright\s+(?:\([cC]\)|©)?\s*(?:[\d\s,r-]*\d{4}[\d\s,r-]*)?(?P<who>.*)")
# Above the text of a licence in a file of this size, there is nothing but its title and who has the copyright.
PLAIN_BYTES = 2_000
# What a text has to contain to be that of a licence.
PHRASES = {
    "Apache-2.0": "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION",
    "BSD-2-Clause": "Redistribution and use in source and binary forms",
    "BSD-3-Clause": "Neither the name",
    "GPL-2.0-only": "GNU GENERAL PUBLIC LICENSE Version 2",
    "ISC": "Permission to use, copy, modify, and",
    # Of files that may be linked into any program, which is the exception that follows in glibc's files.
    "LGPL-2.1-or-later": "unlimited permission to link the compiled version of this file",
    "LGPL-3.0-or-later": "GNU LESSER GENERAL PUBLIC LICENSE Version 3",
    "MIT": "Permission is hereby granted, free of charge",
    "Unicode-3.0": "UNICODE LICENSE V3",
    "Unlicense": "This is free and unencumbered software",
    "Zlib": "This software is provided 'as-is'",
}
# Its text stands once at the end, because many crates have it and it names nobody. It has 11,358 bytes.
SHARED = "Apache-2.0"
SHARED_BYTES = 12_000
# Debian's names of licences, where they differ.
DEBIAN = {
    "MIT": "Expat",
    "BSD-2-Clause": "BSD-2-clause",
    "BSD-3-Clause": "BSD-3-clause",
    "GPL-2.0-only": "GPL-2",
    "GPL-2.0-or-later": "GPL-2+",
    "LGPL-2.1-only": "LGPL-2.1",
    "LGPL-2.1-or-later": "LGPL-2.1+",
    "LGPL-3.0-or-later": "LGPL-3+",
    "LLVM-exception": "LLVM exception",
    "linking-exception": "linking exception",
}
# What the notices are of, by the second argument.
SUBJECTS = {
    "program": """\
These are the notices of the program mptcplab-kernel {version}, which is linked statically and contains all that is
named below. Where a licence leaves a choice ("or"), the program is distributed under those whose text is in this file,
and whoever gets it keeps the choice.

It is built by `make static` from the sources of mptcplab {version}.""",
    "wheel": """\
These are the notices of the compiled files of this wheel, mptcplab/_core.abi3.so and mptcplab/_bin/mptcplab-kernel of
mptcplab {version}, which contain all that is named below. Where a licence leaves a choice ("or"), the files are
distributed under those whose text is in this file, and whoever gets them keeps the choice.

They are built by `make wheel` from the sources of mptcplab {version}.""",
}
HEADER = """\
{subject} Directories below vendor/ are those of the crates,
named as `cargo vendor --versioned-dirs` names them: the file Cargo.lock of these sources has the version and the digest
of each. libbpf, libelf and zlib are compiled from the crate libbpf-sys. To use a changed libelf, as the LGPL allows,
change it there and build again. Directories below ziglang/ are those of the package ziglang of PyPI, and those below
rust/ are those of the sources of Rust.

On Debian systems, the texts of Apache-2.0, GPL-2, GPL-3, LGPL-2.1 and LGPL-3 are in /usr/share/common-licenses.
"""


@dataclass
class Linked:
    """Something that is linked into the program."""

    name: str
    # Its files, as in the sources.
    files: tuple[str, ...]
    # An expression of SPDX.
    licence: str
    # Name and content of each file with a licence or a notice.
    texts: list[tuple[str, str]] = field(default_factory=list)
    # Who has the copyright, where the texts do not say it.
    holders: list[str] = field(default_factory=list)

    def copyrights(self) -> list[str]:
        """The lines that say who has the copyright."""
        found = [line for _, text in self.texts for line in holders(text)]
        return list(dict.fromkeys([*found, *self.holders])) or [f"Copyright the authors of {self.name}"]

    def own_texts(self) -> list[tuple[str, str]]:
        """The texts, without those lines where nothing is lost, and without that which stands at the end."""
        return [(name, without_holders(text)) for name, text in self.texts if not is_shared(text)]


def holders(text: str) -> list[str]:
    """The lines of a text that say who has the copyright."""
    return [strip(line) for line in text.splitlines() if is_holder(line)]


def is_holder(line: str) -> bool:
    """Whether a line says who has the copyright."""
    return COPYRIGHT.match(line) is not None and NO_COPYRIGHT.search(line) is None


def strip(line: str) -> str:
    """A line without the marks of a comment around it."""
    return line.strip().strip("/*#").strip()


def without_holders(text: str) -> str:
    """A text without blanks around it. Of a plain one only the licence, so that all that have it share an entry."""
    is_plain = len(text) < PLAIN_BYTES and any(phrase in flat(text) for phrase in PHRASES.values())
    lines = [line.rstrip() for line in text.expandtabs().splitlines() if not (is_plain and is_holder(line))]
    return re.sub(r"\n{3,}", "\n\n", textwrap.dedent("\n".join(lines).strip("\n")))


def flat(text: str) -> str:
    """A text without line breaks, to find phrases in."""
    return " ".join(text.split())


def is_shared(text: str) -> bool:
    """Whether a text is the licence at the end and nothing else."""
    return len(text) < SHARED_BYTES and PHRASES[SHARED] in flat(text) and PHRASES["MIT"] not in flat(text)


def suffices(licence: str, texts: Iterable[str]) -> bool:
    """Whether the texts are those of a licence: of one in every choice, and of all where all apply."""
    known = [flat(text) for text in texts]

    def has(name: str) -> bool:
        return name in PHRASES and any(PHRASES[name] in text for text in known)

    tokens = re.findall(r"[()]|[^\s()]+", licence.replace("/", " OR "))

    def choice() -> bool:
        result = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            result = both() or result
        return result

    def both() -> bool:
        result = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            result = one() and result
        return result

    def one() -> bool:
        token = tokens.pop(0)
        if token == "(":
            result = choice()
            tokens.pop(0)
            return result
        if tokens and tokens[0] == "WITH":
            del tokens[:2]
        return has(token)

    return choice()


def debian(licence: str) -> str:
    """An expression of SPDX as Debian's format writes it: a comma where SPDX has brackets, and other names."""
    text = licence.replace("/", " OR ").replace("(", "").replace(")", ",")
    words = [DEBIAN.get(word.rstrip(","), word.rstrip(",")) + word[len(word.rstrip(",")) :] for word in text.split()]
    return " ".join(word.lower() if word in ("OR", "AND", "WITH") else word for word in words).rstrip(",")


def read(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8", errors="replace")


def apache() -> tuple[str, str]:
    """The licence at the end, where a crate has no copy of it."""
    return ("LICENSE-APACHE", read(ROOT / "LICENSE-APACHE"))


def headers(folder: Path, *patterns: str) -> list[str]:
    """Who has the copyright of C or Rust files, as their first lines say, with the first and the last year of each."""
    years: dict[str, set[str]] = {}
    for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
        for line in filter(is_holder, read(path).splitlines()[:40]):
            found = HOLDER.match(strip(line))
            if found and found["who"]:
                years.setdefault(found["who"], set()).update(re.findall(r"\b\d{4}\b", line))
    return [
        f"Copyright {'-'.join(sorted({min(known), max(known)}))} {who}" if known else f"Copyright {who}"
        for who, known in sorted(years.items())
    ]


def crate(package: dict[str, Any]) -> Linked:
    """A crate of a registry."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and NOTICE_FILE.match(path.name))
    found = Linked(
        package["name"],
        (f"vendor/{package['name']}-{package['version']}/*",),
        package["license"] or "",
        [(path.name, read(path)) for path in files],
    )
    if not found.texts and "Apache-2.0" in found.licence:
        # Some crates have no copy of it, and it is the same everywhere.
        found.texts = [apache()]
    if not any(holders(text) for _, text in found.texts):
        authors = [f"Copyright {author}" for author in package["authors"]]
        found.holders = headers(folder, "src/**/*.rs") or authors
    return found


def c_libraries(package: dict[str, Any]) -> list[Linked]:
    """What the crate libbpf-sys brings."""
    folder, place = Path(package["manifest_path"]).parent, f"vendor/{package['name']}-{package['version']}"
    licences = {one["name"]: one["licenses"][0]["expression"] for one in sbom.libraries(folder)}
    parts = (
        ("libbpf", "libbpf", ["libbpf/LICENSE.BSD-2-Clause"], ["libbpf/src/*.[ch]"]),
        (
            "libelf",
            "elfutils",
            ["elfutils/COPYING-LGPLV3", "elfutils/COPYING"],
            ["elfutils/libelf/*.[ch]", "elfutils/lib/*.[ch]"],
        ),
        ("zlib", "zlib", ["zlib/LICENSE"], ["zlib/*.[ch]"]),
    )
    return [
        Linked(
            name,
            (f"{place}/{inside}/*",),
            licences[name],
            [(Path(file).name, read(folder / file)) for file in files],
            headers(folder, *sources),
        )
        for name, inside, files, sources in parts
    ]


def sources(target: str, crates: list[str]) -> list[Linked]:
    """What is compiled from the sources of mptcplab and of the crates."""
    facts = sbom.metadata(target)
    packages = {package["id"]: package for package in facts["packages"]}
    graph = [packages[one] for one in sbom.linked(facts, sbom.compiled(target, crates))]
    algorithms = [(name, read(ROOT / "LICENSES" / name)) for name in ("BSD-2-Clause.txt",)]
    found = [
        Linked("mptcplab", ("*",), "MIT OR Apache-2.0", [("LICENSE-MIT", read(ROOT / "LICENSE-MIT"))]),
        Linked(sbom.ALGORITHMS[1], ("algorithms/*",), sbom.ALGORITHMS[2], algorithms),
    ]
    for package in sorted(graph, key=lambda one: (one["name"], one["version"])):
        if package["source"] is not None:
            found.append(crate(package))
        if package["name"] == "libbpf-sys":
            found += c_libraries(package)
    return found


def of_zig(zig: Path, target: str) -> list[Linked]:
    """What zig links: musl or the part of glibc that is in no library of the system, and what compiled code calls."""
    parts = [
        ("compiler-rt of zig", "MIT", "lib/compiler_rt", "../../LICENSE"),
        ("libunwind", "Apache-2.0 WITH LLVM-exception", "lib/libunwind", "LICENSE.TXT"),
    ]
    if target.endswith("musl"):
        parts.insert(0, ("musl", "MIT", "lib/libc/musl", "COPYRIGHT"))
    found = [
        Linked(name, (f"ziglang/{folder}/*",), licence, [(Path(file).name, read(zig / folder / file))])
        for name, licence, folder, file in parts
    ]
    return found if target.endswith("musl") else [of_glibc(zig), *found]


def of_glibc(zig: Path) -> Linked:
    """The start of a program, and functions such as `atexit`, which glibc has in a static library."""
    folder = "lib/libc/glibc"
    notice = read(zig / folder / "stdlib/atexit.c").partition("*/")[0].removeprefix("/*")
    holder, _, text = notice.partition("\n")
    return Linked(
        "glibc",
        tuple(f"ziglang/{folder}/{inside}/*" for inside in ("csu", "io", "stdlib", "sysdeps")),
        "LGPL-2.1-or-later WITH linking-exception",
        [("atexit.c", textwrap.dedent(text))],
        [holder.strip()],
    )


def rustc(*words: str) -> Path:
    """A path that the compiler prints."""
    return Path(subprocess.run(["rustc", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip())


def of_rust(target: str) -> list[Linked]:
    """Rust's own library and the crates in it, from the page that comes with the compiler."""
    folder = rustc("--print", "sysroot") / "share/doc/rust"
    page = folder / "COPYRIGHT-library.html"
    if not page.is_file():
        sys.exit(f"error: no notices of Rust's library: {page}\n\nhint: use Rust from rustup, of which it is part")
    inside, _, outside = read(page).partition('<h2 id="out-of-tree-dependencies">')
    texts = [(name, read(folder / "licenses" / name)) for name in ("MIT.txt", "Unicode-3.0.txt", "BSD-2-Clause.txt")]
    built = rustc("--print", "target-libdir", "--target", target)
    known = [f"Copyright {plain(one)}" for one in re.findall(r"<b>Copyright:</b>(.*?)</p>", inside, re.DOTALL)]
    licence = "(MIT OR Apache-2.0) AND Unicode-3.0 AND BSD-2-Clause"
    return [
        # The copyright lines in the texts are examples.
        Linked("Rust", ("rust/library/*",), licence, [(n, without_holders(t)) for n, t in texts], sorted(set(known))),
        compiler_builtins(folder),
        *crates_of_rust(outside, {path.name.partition("-")[0] for path in built.glob("lib*.rlib")}),
    ]


def compiler_builtins(folder: Path) -> Linked:
    """What compiled code calls, which Rust took from LLVM and libm. The page of its library does not name it."""
    page = read(folder / "COPYRIGHT.html")
    # That of the compiler has libm as a crate, with the notices of musl, FreeBSD and others.
    found = max(crates_of_rust(page, {"liblibm"}), key=lambda one: [int(part) for part in re.findall(r"\d+", one.name)])
    return Linked(
        "compiler-builtins",
        ("rust/library/compiler-builtins/*",),
        "MIT AND Apache-2.0 WITH LLVM-exception",
        [*found.texts, ("LLVM-exception.txt", read(folder / "licenses/LLVM-exception.txt")), apache()],
        ["Copyright (c) 2009-2019 the contributors to the LLVM Project's compiler-rt"],
    )


def crates_of_rust(page: str, built: set[str]) -> Iterator[Linked]:
    """The crates in Rust's library, of which the page has those for all systems, and `built` those for this one."""
    for part in page.split("<h3>")[1:]:
        # "📦 NAME-VERSION".
        title = plain(part.partition("</h3>")[0]).split()[-1]
        if "lib" + title.rpartition("-")[0].replace("-", "_") not in built:
            continue
        (licence,) = re.findall(r"<b>License:</b>(.*?)</p>", part, re.DOTALL)
        authors = re.findall(r"<b>Authors:</b>(.*?)</p>", part, re.DOTALL)
        notices = re.findall(r"<summary>(.*?)</summary>\s*<pre>\n?(.*?)</pre>", part, re.DOTALL)
        texts = [(plain(name), html.unescape(text)) for name, text in notices]
        if not texts and "Apache-2.0" in licence:
            texts = [apache()]
        named = any(holders(text) for _, text in texts)
        known = [] if named else [f"Copyright {plain(one)}" for one in authors if plain(one)]
        yield Linked(title, (f"rust/vendor/{title}/*",), plain(licence), texts, known)


def plain(markup: str) -> str:
    """The text of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup)).strip()


def require_texts(linked: Iterable[Linked]) -> None:
    """End with an error if the text of a licence is missing."""
    lacking = [f"{one.name} ({one.licence or 'no licence'})" for one in linked if not complete(one)]
    if lacking:
        sys.exit(
            f"error: no text of the licence of {', '.join(lacking)}\n\n"
            "hint: packaging/notices.py looks for files such as LICENSE-MIT in the sources of each"
        )


def complete(one: Linked) -> bool:
    """Whether its texts are those of its licence."""
    return bool(one.licence) and suffices(one.licence, [text for _, text in one.texts])


def document(version: str, address: str | None, linked: list[Linked], kind: str = "program") -> str:
    """The whole file."""
    require_texts(linked)
    head = [f"Format: {FORMAT}", "Upstream-Name: mptcplab", *([f"Source: {address}"] if address else [])]
    head.append("Comment:\n" + indented(HEADER.format(subject=SUBJECTS[kind].format(version=version))))
    stanzas = ["\n".join(head)]
    # What has the same licence, in the same words, shares an entry. The first one, which is for all files, comes first.
    groups: dict[tuple[str, str], list[Linked]] = {}
    for one in linked:
        same = "\n".join(flat(text) for _, text in one.own_texts())
        groups.setdefault((one.licence, same) if one.files != ("*",) else ("*", ""), []).append(one)
    stanzas += map(stanza, groups.values())
    stanzas.append(f"License: {SHARED}\n" + indented(read(ROOT / "LICENSE-APACHE")))
    return "\n\n".join(stanzas) + "\n"


def stanza(group: list[Linked]) -> str:
    """The entry of things with the same licence."""
    files = [file for one in group for file in one.files]
    lines = ["Files: " + "\n ".join(files)]
    known = [(one.name, line) for one in group for line in one.copyrights()]
    lines.append("Copyright:\n" + indented("\n".join(f"{line} ({name})" for name, line in known)))
    texts = group[0].own_texts()
    lines.append(f"License: {debian(group[0].licence)}")
    text = "\n\n".join(f"{name}:\n\n{text}" for name, text in texts)
    lines.append(indented(text or "The text is at the end of this file."))
    return "\n".join(lines)


def indented(text: str) -> str:
    """Text as it has to be in a field: every line begins with a blank, and an empty one has a point."""
    return "\n".join(
        f" {line.rstrip()}" if line.strip() else " ." for line in text.strip("\n").expandtabs().splitlines()
    )


def main() -> None:
    """Writes the file."""
    out, kind, target, zig, *crates = sys.argv[1:]
    linked = [*sources(target, crates), *of_zig(Path(zig), target), *of_rust(target)]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Repository")
    text = document(workspace["package"]["version"], address, linked, kind)
    Path(out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
