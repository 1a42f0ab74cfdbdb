"""Debian's cloud kernels: apt downloads and verifies the packages with sources, lists and caches of its own.

The system's configuration is read, for the mirror and settings such as a proxy, but never changed. Nothing here needs
root.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mptcplab import terminal
from mptcplab.engines.vm import modules
from mptcplab.engines.vm.cache import cache, locked
from mptcplab.errors import EngineError, with_hint

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
META_PACKAGE = "linux-image-cloud-amd64"
# The package with the kernel, or the packages into which it is split.
_PACKAGES = re.compile(r"linux-(image|base|binary|modules)-[0-9].*-cloud-amd64$")
_SUITE = re.compile(r"[a-z][a-z0-9-]*$")
# What apt says when a mirror answers but does not have the suite.
_NO_SUITE = "does not have a Release file"
# Suites that are suggested for a misspelt name.
_SUITES = ("bookworm", "bookworm-backports", "trixie", "trixie-backports", "forky", "sid")
# Similar enough for a mistake: bookworm-updates is none for bookworm-backports.
_SIMILAR = 0.85
# Package lists are refreshed once a day.
_FRESH_S = 24 * 3600
_APT_LIMIT_S = 300
_SETTINGS = """\
Dir::Etc::sourcelist "{apt}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "{apt}/state";
Dir::State::status "{apt}/status";
Dir::Cache "{apt}/cache";
APT::Architecture "amd64";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "3";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


@dataclass(frozen=True)
class Unpacked:
    """A kernel on disk: its image, its modules in load order, and what it is."""

    image: Path
    modules: tuple[Path, ...]
    release: str
    package: str


def kernel(suite: str) -> Unpacked:
    """The current cloud kernel of a suite; at most once a day the mirror is asked whether there is a newer one."""
    if not _SUITE.match(suite):
        raise EngineError(with_hint(f"not the name of a Debian suite: {suite!r}", "such as bookworm or sid"))
    kernels = cache() / "kernels"
    apt = kernels / "apt" / suite
    for name in ("state/lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    current = kernels / "unpacked" / f"{suite}.json"
    with locked(apt / "lock"):
        known = json.loads(current.read_text()) if current.is_file() else None
        if known is not None and time.time() - current.stat().st_mtime < _FRESH_S:
            return _load(current.parent / known["directory"])
        if not _refresh(apt, suite):
            if known is None:
                raise _unread(apt, suite)
            found = _load(current.parent / known["directory"])
            terminal.note(f"{suite}: apt cannot reach a mirror; using the kernel from before: {found.release}")
            return found
        directory = _fetch(apt, suite, current.parent)
        partial = current.with_name(f"{current.name}.{os.getpid()}")
        partial.write_text(json.dumps({"directory": directory.name}) + "\n")
        partial.replace(current)
        return _load(directory)


def _unread(apt: Path, suite: str) -> EngineError:
    """Why no mirror gave the package lists of a suite, for which there is no kernel from before either."""
    mirrors, missing = _mirrors(), (apt / "log").read_text().count(_NO_SUITE)
    instead = "vm:PATH takes a kernel image and modules/ beside it instead"
    if not mirrors:
        return EngineError(with_hint(f"no package mirror of this system for the suite {suite}", instead))
    if missing == len(mirrors):
        close = difflib.get_close_matches(suite, _SUITES, n=1, cutoff=_SIMILAR)
        meant = [f"did you mean {name}?" for name in close if name != suite]
        others = "not every mirror has all suites, which have names such as bookworm-backports;"
        message = f"no suite {suite!r} on this system's package mirrors: {', '.join(mirrors)}"
        return EngineError(with_hint(message, " ".join([*(meant or [others]), instead])))
    return _failed(
        apt,
        f"apt cannot read the suite {suite} from this system's package mirrors: {', '.join(mirrors)}",
        f"check the name of the suite and the connection to the mirrors; {instead}",
    )


def _load(directory: Path) -> Unpacked:
    """A kernel that was unpacked before."""
    found = json.loads((directory / "kernel.json").read_text())
    paths = tuple(directory / "modules" / name for name in found["modules"])
    return Unpacked(directory / "vmlinuz", paths, found["release"], found["package"])


def _refresh(apt: Path, suite: str) -> bool:
    """Make sure that today's package lists are present, from the first mirror that has the suite."""
    (apt / "log").write_text("")
    lists = apt / "state" / "lists"
    if any(time.time() - path.stat().st_mtime < _FRESH_S for path in lists.glob("*InRelease")):
        return True
    for mirror in _mirrors():
        (apt / "status").write_text("")
        (apt / "sources.list").write_text(f"deb [arch=amd64 signed-by={KEYRING}] {mirror} {suite} main\n")
        (apt / "apt.conf").write_text(_SETTINGS.format(apt=apt))
        if _apt(apt, "apt-get", "-o", "APT::Update::Error-Mode=any", "update").returncode == 0:
            for path in lists.glob("*InRelease"):
                # apt sets the time of the mirror's file.
                path.touch()
            return True
    return False


def _mirrors() -> list[str]:
    """The system's package mirrors, those first that apt recognises as Debian's."""
    fields = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    words = ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]
    lines = _run(words).stdout.splitlines()
    codename = _codename()
    found = set()
    for line in lines:
        origin, mirror, release, component = (line.split("|") + [""] * 4)[:4]
        if component == "main" and release in {codename, "stable", "testing", "unstable", "sid"}:
            found.add((origin != "Debian", mirror))
    return [mirror for _, mirror in sorted(found)]


def _codename() -> str:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2].strip('"') for line in lines if line.startswith("VERSION_CODENAME=")), "")


def _fetch(apt: Path, suite: str, into: Path) -> Path:
    """The directory of the suite's kernel, which is downloaded and unpacked if it is not there."""
    names = _kernel_packages(apt)
    if not names:
        raise EngineError(with_hint(f"the suite {suite} has no package {META_PACKAGE}", "name another suite"))
    facts = _apt(apt, "apt-cache", "show", "--no-all-versions", *names).stdout
    lines = [line for line in facts.splitlines() if line.startswith(("Package: ", "Version: ", "SHA256: "))]
    # The list of modules decides the content of the directory as well.
    fingerprint = "\n".join([*lines, f"Modules: {' '.join(modules.NEEDED)}"])
    directory = into / f"{suite}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:12]}"
    if (directory / "kernel.json").is_file():
        return directory
    terminal.note(f"{suite}: fetching {names[0]}")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{suite}.", dir=into) as scratch:
        work = Path(scratch)
        if _apt(apt, "apt-get", "download", *names, cwd=work).returncode != 0:
            raise _failed(apt, f"apt cannot download: {' '.join(names)}", "see the last lines of its output above")
        version = next((line.removeprefix("Version: ") for line in lines if line.startswith("Version: ")), "")
        _unpack(work, f"{names[0]} {version}")
        shutil.rmtree(directory, ignore_errors=True)
        (work / "kernel").rename(directory)
    return directory


def _kernel_packages(apt: Path) -> list[str]:
    without = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    found = _apt(apt, "apt-cache", "depends", "--recurse", *without, META_PACKAGE).stdout.splitlines()
    names = {line.strip() for line in found if _PACKAGES.match(line.strip())}
    # The package with the image names the kernel.
    return sorted(names, key=lambda name: (not name.startswith("linux-image-"), name))


def _unpack(work: Path, package: str) -> None:
    """Unpack the packages in a directory to its subdirectory `kernel`."""
    root, kernel = work / "root", work / "kernel"
    for archive in sorted(work.glob("*.deb")):
        done = _run(["dpkg-deb", "-x", str(archive), str(root)])
        if done.returncode != 0:
            raise EngineError(f"dpkg-deb cannot unpack {archive.name}: {done.stderr.strip()}")
    # Newer packages install everything in /usr/lib/modules.
    trees = [tree for place in ("usr/lib/modules", "lib/modules") for tree in sorted((root / place).glob("*"))]
    if not trees:
        raise EngineError(with_hint(f"no modules in the packages of {package}", "their content may have changed"))
    release = trees[0].name
    images = [root / "boot" / f"vmlinuz-{release}", *(tree / "vmlinuz" for tree in trees)]
    image = next((path for path in images if path.is_file()), None)
    if image is None:
        raise EngineError(with_hint(f"no kernel image in the packages of {package}", "their content may have changed"))
    kernel.mkdir()
    shutil.copyfile(image, kernel / "vmlinuz")
    names = [path.name for path in modules.extract(trees[0], kernel / "modules")]
    facts = {"release": release, "package": package, "modules": names}
    (kernel / "kernel.json").write_text(json.dumps(facts, indent=1) + "\n")


def _apt(apt: Path, program: str, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run apt with the suite's own directories; its output is also appended to the log."""
    done = _run([program, "-c", str(apt / "apt.conf"), *words], cwd)
    with (apt / "log").open("a") as log:
        log.write(done.stdout + done.stderr)
    return done


def _run(words: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words, cwd=cwd, env=_environment(), capture_output=True, text=True, check=False, timeout=_APT_LIMIT_S
        )
    except FileNotFoundError as error:
        raise EngineError(
            with_hint(
                f"no program {words[0]}: kernels of Debian suites come through apt",
                "on other systems give a kernel image with modules/ beside it: vm:/path/to/vmlinuz",
            )
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EngineError(
            with_hint(
                f"{' '.join(words[:1])} did not end within {_APT_LIMIT_S} s", "check the connection to the mirror"
            )
        ) from error


def _environment() -> dict[str, str]:
    """In English: apt translates its messages."""
    return {name: value for name, value in os.environ.items() if name != "LANGUAGE"} | {"LC_ALL": "C.UTF-8"}


def _failed(apt: Path, message: str, hint: str) -> EngineError:
    last = "\n".join((apt / "log").read_text().splitlines()[-20:])
    return EngineError(with_hint(f"{message}\n{last}".rstrip(), hint))
