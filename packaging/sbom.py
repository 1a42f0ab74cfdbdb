"""Writes the bill of materials of a package (CycloneDX 1.6): what was compiled into it, with versions and licences.

usage: sbom.py OUT NAME TARGET [NAME@VERSION:LICENCE] CRATE...

The crates and what they depend on come from cargo for a target of Rust, and the C libraries from the crate libbpf-sys,
whose sources they are compiled from. What neither knows, such as the C library, is named in the call.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The kind of the dependencies that end up in a package, as cargo says it; build scripts and tests have others.
NORMAL = None
# The C files of algorithms/, which are compiled into this crate.
ALGORITHMS = ("mptcplab-cc", "mptcplab-algorithms", "GPL-2.0-only OR BSD-2-Clause")


def metadata(target: str) -> dict[str, Any]:
    """What cargo knows of the workspace and of what it depends on, for one target."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def compiled(target: str, crates: list[str]) -> set[str]:
    """The references of the crates and of all that is compiled into them, with their features.

    The metadata have features that other crates of the workspace ask for, and more dependencies because of these.
    """
    command = ["cargo", "tree", "--locked", "--edges=normal", "--prefix=none", "--format={p}", f"--target={target}"]
    chosen = [f"--package={name}" for name in crates]
    done = subprocess.run([*command, *chosen], cwd=ROOT, capture_output=True, text=True, check=True)
    return {"@".join(line.replace(" v", " ", 1).split()[:2]) for line in done.stdout.splitlines() if line}


def linked(facts: dict[str, Any], chosen: set[str]) -> dict[str, list[str]]:
    """The ids of the chosen crates, with those of them that each depends on."""
    references = {package["id"]: reference(package) for package in facts["packages"]}
    return {
        node["id"]: [
            one["pkg"]
            for one in node["deps"]
            if references[one["pkg"]] in chosen and any(kind["kind"] is NORMAL for kind in one["dep_kinds"])
        ]
        for node in facts["resolve"]["nodes"]
        if references[node["id"]] in chosen
    }


def component(package: dict[str, Any], digests: dict[tuple[str, str], str]) -> dict[str, Any]:
    """A crate."""
    name, version = package["name"], package["version"]
    entry = {"type": "library", "bom-ref": reference(package), "name": name, "version": version}
    # The older way to write "or".
    if package["license"]:
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package["source"] is not None:
        entry["purl"] = f"pkg:cargo/{name}@{version.replace('+', '%2B')}"
        entry["hashes"] = [{"alg": "SHA-256", "content": digests[name, version]}]
    return entry


def reference(package: dict[str, Any]) -> str:
    """How entries of the file name a crate."""
    return f"{package['name']}@{package['version']}"


def digests() -> dict[tuple[str, str], str]:
    """The SHA-256 of every crate from a registry, as Cargo.lock has it."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    return {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}


def libraries(sources: Path) -> Iterator[dict[str, Any]]:
    """The C libraries in the crate libbpf-sys, with the versions that their sources say."""
    known = (
        ("libbpf", "libbpf/src/libbpf.map", r"LIBBPF_([\d.]+) \{", "LGPL-2.1-only OR BSD-2-Clause"),
        (
            "libelf",
            "elfutils/configure.ac",
            r"AC_INIT\(\[elfutils\],\[([\d.]+)\]",
            "LGPL-3.0-or-later OR GPL-2.0-or-later",
        ),
        ("zlib", "zlib/zlib.h", r'#define ZLIB_VERSION "([\d.]+)"', "Zlib"),
    )
    for name, file, pattern, licence in known:
        found = re.findall(pattern, (sources / file).read_text(encoding="utf-8"))
        if not found:
            sys.exit(f"error: no version of {name} in {sources / file}")
        version = max(found, key=lambda text: [int(part) for part in text.split(".")])
        yield plain(name, version, licence)


def plain(name: str, version: str, licence: str) -> dict[str, Any]:
    """Something that is no crate."""
    ref = f"{name}@{version}"
    return {"type": "library", "bom-ref": ref, "name": name, "version": version, "licenses": [{"expression": licence}]}


def native(package: dict[str, Any]) -> list[dict[str, Any]]:
    """What is not Rust and is compiled into a crate."""
    if package["name"] == "libbpf-sys":
        return list(libraries(Path(package["manifest_path"]).parent))
    crate, name, licence = ALGORITHMS
    return [plain(name, package["version"], licence)] if package["name"] == crate else []


def bill(name: str, target: str, crates: list[str], others: list[dict[str, Any]]) -> dict[str, Any]:
    """The bill of materials of a package that has these crates of the workspace, and others besides."""
    facts = metadata(target)
    packages = {package["id"]: package for package in facts["packages"]}
    graph = linked(facts, compiled(target, crates))
    known = digests()
    components = [component(packages[crate], known) for crate in graph] + others
    edges = {one["bom-ref"]: [] for one in others}
    for crate, needed in graph.items():
        inside = native(packages[crate])
        components += inside
        edges |= {one["bom-ref"]: [] for one in inside}
        edges[reference(packages[crate])] = [reference(packages[one]) for one in needed] + [
            one["bom-ref"] for one in inside
        ]
    (version,) = {package["version"] for package in packages.values() if package["name"] in crates}
    root = {"type": "application", "bom-ref": name + ".package", "name": name, "version": version}
    chosen = [reference(packages[crate]) for crate in graph if packages[crate]["name"] in crates]
    edges[root["bom-ref"]] = chosen + [one["bom-ref"] for one in others]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).isoformat(),
            "component": root,
            "properties": [{"name": "rust:target", "value": target}],
        },
        "components": sorted(components, key=lambda one: one["bom-ref"]),
        "dependencies": [{"ref": ref, "dependsOn": sorted(edges[ref])} for ref in sorted(edges)],
    }


def main() -> None:
    """Writes the file."""
    out, name, target, *words = sys.argv[1:]
    crates = [word for word in words if "@" not in word]
    others = [plain(*re.split("[@:]", word)) for word in words if "@" in word]
    Path(out).write_text(json.dumps(bill(name, target, crates, others), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
