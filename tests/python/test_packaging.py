"""What goes into packages, and the files of the repository that name the version."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import kernel_program as k
import pytest
from conftest import ROOT

import mptcplab
from mptcplab import bundle


def module(path: str) -> ModuleType:
    """A script of the repository that is not part of a package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_every_file_names_the_same_version() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert mptcplab.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert json.loads((ROOT / ".zenodo.json").read_text())["version"] == version
    newest = re.search(r"^## (\S+) - (\d{4}-\d\d-\d\d|unreleased)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version
    tags = subprocess.run(
        ["git", "tag", "--points-at", "HEAD", "v*"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert tags.stdout.split() in ([], [f"v{version}"])


RELEASE = (
    "scripts/release.sh",
    "scripts/address.sh",
    "scripts/common.sh",
    "packaging/common.sh",
    "Cargo.toml",
    ".zenodo.json",
)
ADDRESSES = ("pyproject.toml", "CITATION.cff", "README.md")
CHECK = "The public address of the repository is in all files"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """What the first checks of a release read, without a public address."""
    for name in (*RELEASE, *ADDRESSES, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    without = {
        "pyproject.toml": (r'\n\[project.urls\]\nRepository = ".*"\n', ""),
        "CITATION.cff": (r"\nrepository-code: .*", ""),
        "README.md": (r"git clone .* mptcplab", "git clone <this repository> mptcplab"),
    }
    for name, (pattern, text) in without.items():
        (tmp_path / name).write_text(re.sub(pattern, text, (tmp_path / name).read_text()))
    return tmp_path


def test_a_release_names_every_place_where_the_public_address_is_missing(release: Path) -> None:
    before = {name: (release / name).read_text() for name in ADDRESSES}
    assert with_address(release, "https://example.org/lab/mptcplab").returncode == 0
    for name in ADDRESSES:
        after = (release / name).read_text()
        (release / name).write_text(before[name])
        done = release_checks(release)
        assert f"{CHECK}: FAILED" in done.stderr
        missing = list(ADDRESSES) if name == "pyproject.toml" else [name]
        assert re.findall(r"^ {7}(\S+?)[:,]", done.stderr, re.MULTILINE) == missing
        (release / name).write_text(after)
    assert f"{CHECK}: passed" in release_checks(release).stderr


def test_a_public_address_takes_the_place_of_another(release: Path) -> None:
    texts = []
    for address in (
        "https://example.org/lab/mptcplab",
        "https://example.net/~me/lab.git",
        "git@example.net:~me/lab.git",
    ):
        assert with_address(release, address).returncode == 0
        assert f"{CHECK}: passed" in release_checks(release).stderr
        texts.append([(release / name).read_text() for name in ADDRESSES])
    assert texts[0] != texts[1] == texts[2]
    urls = tomllib.loads(texts[1][0])["project"]["urls"]
    assert urls == {"Repository": "https://example.net/~me/lab"}
    assert "example.org" not in "".join(texts[1])


def test_an_address_that_leads_nowhere_changes_no_file(release: Path) -> None:
    before = [(release / name).read_text() for name in ADDRESSES]
    done = with_address(release, "/srv/mptcplab")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: not a public address: '/srv/mptcplab'")
    (release / "README.md").write_text("nothing about cloning\n")
    done = with_address(release, "https://example.org/lab/mptcplab")
    assert done.returncode == 2
    assert "README.md has no line" in done.stderr
    assert [(release / name).read_text() for name in ADDRESSES[:2]] == before[:2]


def with_address(folder: Path, address: str) -> subprocess.CompletedProcess[str]:
    """`make address ADDRESS=...`."""
    environment = os.environ | {"ADDRESS": address}
    words = ["scripts/address.sh"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def release_checks(folder: Path) -> subprocess.CompletedProcess[str]:
    """What `make release` checks first; it never gets further here, because the folder is no repository."""
    words = ["scripts/release.sh", "quick"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    return done


def test_a_wheel_has_the_program_and_every_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, extension, program = (tmp_path / name for name in ("mptcplab", "extension", "program"))
    extension.write_bytes(b"ELF 1")
    program.write_bytes(b"ELF 2")
    module("packaging/make_wheel.py").fill(package, extension, program)
    assert (package / "_core.abi3.so").read_bytes() == b"ELF 1"
    assert (package / "cli/app.py").read_bytes() == (ROOT / "python/mptcplab/cli/app.py").read_bytes()
    assert os.access(package / "_bin/mptcplab-kernel", os.X_OK)
    in_clone = [entry["name"] for entry in bundle.scenarios()]
    monkeypatch.setattr(bundle, "_SHARE", package / "_share")
    entries = bundle.scenarios()
    assert [entry["name"] for entry in entries] == in_clone
    assert all(Path(entry["path"]).is_relative_to(tmp_path) for entry in entries)
    assert (package / "_share/algorithms/cc.h").is_file()
    # Setup makes these; a scenario of the paper reads them.
    assert mptcplab.check("zuhairi2022/moving")["resolved"]


def test_the_package_is_installed_as_a_pointer_to_its_sources(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(module("scripts/editable.py").editable_wheel(tmp_path)) as wheel:
        names = wheel.namelist()
        assert wheel.read("mptcplab.pth").decode() == f"{ROOT / 'python'}\n"
        (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
        assert sorted(wheel.read(record).decode().split(",,\n")[:-1]) == sorted(names)
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        assert f"\nVersion: {mptcplab.__version__}\n" in wheel.read(metadata).decode()


def test_a_wheel_is_named_after_the_processor_that_it_was_compiled_for(tmp_path: Path) -> None:
    metadata = tmp_path / "mptcplab-0.1.0.dist-info" / "WHEEL"
    metadata.parent.mkdir()
    metadata.write_text("Wheel-Version: 1.0\nTag: cp311-abi3-linux_x86_64\n")
    module("packaging/make_wheel.py").name_processor(tmp_path, "aarch64")
    assert metadata.read_text() == "Wheel-Version: 1.0\nTag: cp311-abi3-linux_aarch64\n"
    metadata.write_text("Tag: cp311-abi3-any\n")
    with pytest.raises(SystemExit, match="another tag than expected"):
        module("packaging/make_wheel.py").name_processor(tmp_path, "aarch64")


@pytest.mark.parametrize("script", ["wheel", "static", "deb", "cross_check"])
def test_a_processor_for_which_no_package_is_built_is_refused(script: str) -> None:
    env = {**os.environ, "ARCH": "riscv64"}
    done = subprocess.run([f"packaging/{script}.sh"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: packages are not built for this processor: ARCH=riscv64\n\nhint: ARCH=x86_64 or ARCH=aarch64\n"
    )


@pytest.mark.parametrize("script", ["wheel_check", "deb_check"])
def test_a_package_for_another_processor_is_not_installed_here(script: str) -> None:
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    env = {**os.environ, "ARCH": other}
    done = subprocess.run([f"packaging/{script}.sh"], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: packages for {other} cannot be installed here, because this machine is {platform.machine()}\n\n"
        f"hint: make cross-check ARCH={other}\n"
    )


PACKAGED_UNIT = "[Service]\nExecStart=/usr/sbin/mptcplab-kernel cc load --pin olia\n"
# systemctl of a system whose systemd answers, and of one whose systemd does not.
ANSWERS = 'echo "$@" >>LOG\nif [ "$1" = disable ]; then rm -f ETC/*.wants/"$2"; fi\n'
FAILS = 'echo "$@" >>LOG\necho "Failed to connect to bus" >&2\nexit 1\n'


class Installed:
    """The scripts of the Debian package with a directory in place of the system, and with a systemctl of their own."""

    def __init__(self, root: Path, systemctl: str, *, systemd: bool) -> None:
        self.root = root
        self.etc, self.log = root / "etc/systemd/system", root / "log"
        (self.etc / "multi-user.target.wants").mkdir(parents=True)
        if systemd:
            (root / "run/systemd/system").mkdir(parents=True)
        self.log.touch()
        program = root / "bin/systemctl"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n" + systemctl.replace("LOG", str(self.log)).replace("ETC", str(self.etc)))
        program.chmod(0o755)
        for name in ("mptcplab-cc@olia.service", "mptcplab-cc@lia.service", "mptcplab-cc.service", "ssh.service"):
            (self.etc / "multi-user.target.wants" / name).symlink_to(f"/usr/lib/systemd/system/{name}")
        self.persisted = self.etc / "mptcplab-cc.service"
        self.persisted.write_text(PACKAGED_UNIT)

    def run(self, script: str, *words: str) -> list[str]:
        """Run a script, which has to succeed; return the calls of systemctl."""
        self.log.write_text("")
        text = (ROOT / "packaging/debian" / script).read_text()
        for folder in ("/etc/systemd", "/run/systemd"):
            text = text.replace(folder, f"{self.root}{folder}")
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        command = ["sh", "-c", text, script, *words]
        done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return self.log.read_text().splitlines()

    def links(self) -> list[str]:
        return sorted(path.name for path in (self.etc / "multi-user.target.wants").iterdir())


def test_the_package_is_installed_and_removed_although_systemctl_fails(tmp_path: Path) -> None:
    """In a container that shares /run, the package could be neither configured nor removed."""
    system = Installed(tmp_path, FAILS, systemd=True)
    assert system.run("postinst", "configure", "") == ["daemon-reload"]
    assert "stop mptcplab-cc@*.service" in system.run("prerm", "remove")
    assert (system.links(), system.persisted.exists()) == (["ssh.service"], False)
    assert system.run("postrm", "remove") == ["daemon-reload"]


def test_removal_without_systemd_leaves_no_enabled_unit(tmp_path: Path) -> None:
    """The links stayed, because nothing was disabled where systemd did not run."""
    system = Installed(tmp_path, ANSWERS, systemd=False)
    assert system.run("postinst", "configure", "") == []
    assert system.run("prerm", "remove") == [
        "disable mptcplab-cc.service",
        "disable mptcplab-cc@lia.service",
        "disable mptcplab-cc@olia.service",
    ]
    assert (system.links(), system.persisted.exists()) == (["ssh.service"], False)
    assert system.run("postrm", "remove") == []


def test_an_upgrade_keeps_units_and_removal_keeps_those_of_another_program(tmp_path: Path) -> None:
    system = Installed(tmp_path, ANSWERS, systemd=True)
    before = system.links()
    assert system.run("prerm", "upgrade", "0.2.0") == []
    assert (system.links(), system.persisted.read_text()) == (before, PACKAGED_UNIT)
    system.persisted.write_text(PACKAGED_UNIT.replace("/usr/sbin", "/usr/local/sbin"))
    assert system.run("prerm", "remove") == [
        "stop mptcplab-cc@*.service",
        "disable mptcplab-cc@lia.service",
        "disable mptcplab-cc@olia.service",
    ]
    assert system.links() == ["mptcplab-cc.service", "ssh.service"]


def test_the_bill_of_materials_has_all_that_is_compiled_into_the_kernel_program() -> None:
    target = "x86_64-unknown-linux-gnu"
    sbom = module("packaging/sbom.py")
    bill = sbom.bill("mptcplab-kernel", target, ["mptcplab-kernel"], [sbom.plain("musl", "1.2.5", "MIT")])
    entries = {one["bom-ref"]: one for one in bill["components"]}
    others = {"libbpf", "libelf", "zlib", "musl", "mptcplab-algorithms"}
    names = {one["name"] for one in entries.values()}
    # Some that it has; and some that it does not have: of the simulator, of tests, of build scripts, of another system.
    assert names >= {*others, "mptcplab-kernel", "mptcplab-bpf", "clap", "parquet", "libbpf-sys"}
    assert not names & {"mptcplab-sim", "mptcplab-py", "pyo3", "proptest", "tempfile", "cc", "windows-sys"}
    # Every entry has a licence, every crate of a registry a digest, and every dependency leads to an entry.
    assert all(one["licenses"][0]["expression"] for one in entries.values())
    assert all(len(one["hashes"][0]["content"]) == 64 for one in entries.values() if "purl" in one)
    leads_to = {ref for one in bill["dependencies"] for ref in one["dependsOn"]}
    assert leads_to == set(entries)


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script that writes the notices, which imports another one beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    # Before its classes are made, which look for their module.
    spec = importlib.util.spec_from_file_location("notices", ROOT / "packaging/notices.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "notices", loaded)
    spec.loader.exec_module(loaded)
    return loaded


def test_everything_that_is_linked_into_the_kernel_program_has_its_notice(notices: ModuleType) -> None:
    """The package's copyright file had four lines, and the program beside it had none."""
    target = "x86_64-unknown-linux-musl"
    linked = notices.sources(target, ["mptcplab-kernel"])
    text = notices.document("0.1.0", None, linked)
    # As the bill of materials names it.
    bill = module("packaging/sbom.py").bill("mptcplab-kernel", target, ["mptcplab-kernel"], [])
    crates = {f"vendor/{one['name']}-{one['version']}/*" for one in bill["components"] if "purl" in one}
    files = {file for stanza in stanzas(text) if "Files" in stanza for file in stanza["Files"].split()}
    assert crates - files == set()
    assert len(crates) > 50
    others = {one["name"] for one in bill["components"] if "purl" not in one}
    # The crates of the workspace are mptcplab.
    assert {name for name in others if not name.startswith("mptcplab-")} == {"libbpf", "libelf", "zlib"}
    assert others - {one.name for one in linked} == others - {"libbpf", "libelf", "zlib", "mptcplab-algorithms"}
    entries = {file: stanza for stanza in stanzas(text) for file in stanza.get("Files", "").split()}
    assert "Copyright (c) 2015 The Libbpf Authors" in entries["vendor/" + libbpf_sys(bill) + "/libbpf/*"]["Copyright"]
    assert "Redistributions in binary form" in entries["algorithms/*"]["License"]
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in entries["vendor/" + libbpf_sys(bill) + "/elfutils/*"]["License"]
    assert "TERMS AND CONDITIONS FOR USE" in stanzas(text)[-1]["License"]
    assert all(entry["Copyright"].strip() for entry in entries.values())
    assert text.count("NOTICE.txt:\n") >= 1


def libbpf_sys(bill: dict[str, Any]) -> str:
    """The directory of the crate with the C libraries, as the notices name it."""
    (found,) = [one for one in bill["components"] if one["name"] == "libbpf-sys"]
    return f"{found['name']}-{found['version']}"


def stanzas(text: str) -> list[dict[str, str]]:
    """The fields of each entry of a file in Debian's format."""
    found = []
    for stanza in text.strip().split("\n\n"):
        assert all(re.match(r"[A-Z][\w-]*:| \S|  +\S", line) for line in stanza.splitlines()), stanza
        fields = re.split(r"^([A-Z][\w-]*):", stanza, flags=re.MULTILINE)
        found.append(dict(zip(fields[1::2], fields[2::2], strict=True)))
    assert "Format" in found[0]
    assert all("License" in one for one in found[1:])
    return found


@pytest.mark.parametrize(
    ("licence", "file", "content"),
    [
        ("MIT", "README.md", "Permission is hereby granted, free of charge, to any person"),
        ("MIT", "LICENSE", "See the file COPYING."),
        ("MIT AND Unicode-3.0", "LICENSE-MIT", "Permission is hereby granted, free of charge, to any person"),
        ("MPL-2.0", "LICENSE", "Mozilla Public License Version 2.0"),
        (None, "src.rs", ""),
    ],
)
def test_a_crate_without_the_text_of_its_licence_ends_the_build(
    notices: ModuleType, tmp_path: Path, licence: str | None, file: str, content: str
) -> None:
    (tmp_path / file).write_text(content)
    package = {
        "name": "bare",
        "version": "3.1.4",
        "license": licence,
        "manifest_path": str(tmp_path / "Cargo.toml"),
        "authors": ["A. Nobody"],
    }
    with pytest.raises(SystemExit, match=r"no text of the licence of bare \("):
        notices.document("0.1.0", None, [notices.crate(package)])


def test_a_choice_of_licences_needs_the_text_of_one_of_them(notices: ModuleType) -> None:
    mit = "Permission is hereby granted,\n free of charge, to any person"
    unicode = "UNICODE LICENSE V3"
    assert notices.suffices("Apache-2.0 OR MIT", [mit])
    assert notices.suffices("MIT/Apache-2.0", [mit])
    assert notices.suffices("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", [mit])
    assert notices.suffices("(MIT OR Apache-2.0) AND Unicode-3.0", [unicode, mit])
    assert not notices.suffices("(MIT OR Apache-2.0) AND Unicode-3.0", [mit])
    assert not notices.suffices("Apache-2.0 AND MIT", [mit])
    assert notices.debian("(MIT OR Apache-2.0) AND Unicode-3.0") == "Expat or Apache-2.0, and Unicode-3.0"


@pytest.fixture
def zig(tmp_path: Path) -> Path:
    """The licences in the package ziglang, and the files that name their own."""
    mit = "Permission is hereby granted, free of charge"
    for name, text in (
        ("lib/libc/musl/COPYRIGHT", f"Copyright © 2005 Rich\n{mit}"),
        ("LICENSE", f"Copyright (c) Zig contributors\n{mit}"),
        ("lib/libunwind/LICENSE.TXT", (ROOT / "LICENSE-APACHE").read_text()),
        (
            "lib/libc/glibc/stdlib/atexit.c",
            "/* Copyright (C) 1991-2021 Free Software Foundation, Inc.\n   Gives you unlimited\n"
            "   permission to link the compiled version of this file.  */\n\nint atexit;\n",
        ),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "lib/compiler_rt").mkdir()
    return tmp_path


def test_the_toolchain_adds_its_notices(notices: ModuleType, zig: Path) -> None:
    page = notices.rustc("--print", "sysroot") / "share/doc/rust/COPYRIGHT-library.html"
    if not page.is_file():
        pytest.skip("SKIPPED, NOT TESTED: this Rust has no page with the notices of its library")
    rust = notices.of_rust("x86_64-unknown-linux-gnu")
    linked = [*notices.of_zig(zig, "x86_64-unknown-linux-musl"), *rust]
    entries = {
        file for one in stanzas(notices.document("0.1.0", None, linked)) for file in one.get("Files", "").split()
    }
    assert entries >= {"ziglang/lib/libc/musl/*", "ziglang/lib/libunwind/*", "rust/library/*"}
    # Rust's page leaves out what it took from LLVM and libm.
    assert "rust/library/compiler-builtins/*" in entries
    assert not any("glibc" in file for file in entries)
    names = {one.name.rpartition("-")[0] for one in rust}
    # Of the crates on the page, those for another system are left out.
    assert names >= {"gimli", "hashbrown", "libc"}
    assert not names & {"wasi", "windows-sys", "r-efi"}


def test_a_program_for_glibc_has_the_notice_of_the_part_that_is_linked_into_it(notices: ModuleType, zig: Path) -> None:
    linked = notices.of_zig(zig, "x86_64-unknown-linux-gnu")
    entries = {
        file: one
        for one in stanzas(notices.document("0.1.0", None, linked, "wheel"))
        for file in one.get("Files", "").split()
    }
    assert not any("musl" in file for file in entries)
    glibc = entries["ziglang/lib/libc/glibc/csu/*"]
    assert "Copyright (C) 1991-2021 Free Software Foundation, Inc." in glibc["Copyright"]
    assert glibc["License"].startswith(" LGPL-2.1+ with linking exception\n atexit.c:\n .\n Gives you unlimited\n")
    assert "int atexit" not in glibc["License"]


def test_a_wheel_has_the_notices_of_what_is_compiled_into_it_among_its_licences(tmp_path: Path) -> None:
    """The wheel had the project's own licences only, and contains a hundred crates and three C libraries."""
    make_wheel = module("packaging/make_wheel.py")
    metadata, notices = tmp_path / "mptcplab-0.1.0.dist-info" / "METADATA", tmp_path / "notices"
    (metadata.parent / "licenses").mkdir(parents=True)
    notices.write_text("libelf and others\n")
    metadata.write_text("Metadata-Version: 2.4\nLicense-File: LICENSE-MIT\nLicense-File: A/B.txt\nSummary: a lab\n")
    make_wheel.add_notices(tmp_path, notices)
    assert metadata.read_text().splitlines()[1:4] == [
        "License-File: NOTICES",
        "License-File: LICENSE-MIT",
        "License-File: A/B.txt",
    ]
    assert (metadata.parent / "licenses/NOTICES").read_text() == "libelf and others\n"
    metadata.write_text("Metadata-Version: 2.4\n")
    with pytest.raises(SystemExit, match="named no licences"):
        make_wheel.add_notices(tmp_path, notices)


def test_the_man_page_and_the_completion_of_the_kernel_program_have_all_that_its_help_has(tmp_path: Path) -> None:
    # The name of the file beside the package, which all commands of the man page had.
    program = str(tmp_path / "mptcplab-kernel-0.1.0-linux-x86_64")
    Path(program).symlink_to(k.program())
    words = [sys.executable, "packaging/kernel_pages.py", str(tmp_path), program]
    subprocess.run(words, cwd=ROOT, check=True)
    page = (tmp_path / "mptcplab-kernel.8").read_text().replace("\\-", "-")
    assert "\nmptcplab-kernel cc unload [OPTIONS] [NAME]...\n" in page
    assert "linux-x86_64" not in page
    completion = (tmp_path / "mptcplab-kernel.bash").read_text()
    for command in ("run", "doctor", "cc load", "cc list", "cc unload", "cc persist"):
        said = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
        options = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", said, re.MULTILINE))
        assert "--help" in options
        section = page.partition(f".SS {command}\n")[2].partition(".SS ")[0]
        (offered,) = re.findall(rf'^\t"{command}"\) words="(.*)" ;;$', completion, re.MULTILINE)
        assert options == set(offered.split())
        assert options == set(re.findall(r"\\fB(?:-\w, )?(--[\w-]+)", section)), command
    if shutil.which("groff"):
        words = ["groff", "-man", "-Tascii", "-ww", "-z", str(tmp_path / "mptcplab-kernel.8")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_both_engines_are_compiled_from_the_same_dependencies() -> None:
    """Otherwise `make setup` after `make demo` compiles most of them again."""
    alone, both = features("mptcplab-py"), features("mptcplab-py", "mptcplab-kernel")
    assert alone - both == set()


def features(*packages: str) -> set[str]:
    """The dependencies of crates, with the features that they are compiled with."""
    chosen = [f"--package={name}" for name in packages]
    command = ["cargo", "tree", "--locked", "--offline", "--edges=normal,build", "--prefix=none", "--format={p} {f}"]
    done = subprocess.run([*command, *chosen], cwd=ROOT, capture_output=True, text=True, check=True)
    return {line.removesuffix(" (*)") for line in done.stdout.splitlines() if line}
