"""Runs a program as root on another kernel, for example to find out what that kernel accepts.

    .venv/bin/python tests/kernels/program.py SUITE [--with FILE]... PROGRAM [ARGUMENT...]

    program.py bookworm target/debug/deps/mptcplab_bpf-0123456789abcdef --nocapture
    program.py bookworm --with lia.bpf.o bpftool -d prog loadall lia.bpf.o /sys/fs/bpf/lia

SUITE is a Debian suite, whose cloud kernel is used. PROGRAM and every FILE are copied into a virtual machine, to the
directory in which the program starts. The output and the exit code are those of the program.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from run import busybox, exit_with, run_one

from mptcplab import errors
from mptcplab.engines.vm import initramfs, kernels, machine

PATIENCE_S = 600.0


def main() -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(description="Runs a program as root on another kernel.")
    parser.add_argument("suite", metavar="SUITE")
    parser.add_argument("--with", dest="files", action="append", default=[], type=Path, metavar="FILE")
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    asked = parser.parse_args()
    found = shutil.which(asked.program)
    if found is None:
        raise errors.MptcplabError(
            errors.with_hint(f"no such program: {asked.program}", "give its path, or install it")
        )
    program = Path(found)
    words = shlex.join([f"./{program.name}", *asked.arguments])
    files = {path.name: path.read_bytes() for path in (*asked.files, program)}
    files |= {f"lib/{path.name}": path.read_bytes() for path in initramfs.libraries(program)}
    files |= {"busybox": busybox().read_bytes(), "main": _SCRIPT.format(words=words).encode()}
    job = machine.Job(("sh", "/job/main"), files, 1, PATIENCE_S, "/job/busybox")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        outcome = run_one(job, out, kernels.find(f"vm:{asked.suite}"))
        sys.stdout.write((out / "output").read_text(errors="replace"))
    return outcome.code


_SCRIPT = """\
/job/busybox --install -s /bin
export PATH=/bin HOME=/tmp LD_LIBRARY_PATH=/job/lib
{words} >/out/output 2>&1
"""

if __name__ == "__main__":
    exit_with(main)
