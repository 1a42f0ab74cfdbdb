"""The command line in tests.

Most tests run it in their own process, which has loaded all libraries; that takes a fraction of the time. What
depends on the process, such as signals, encodings and closed pipes, is tested in one of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from unittest.mock import patch

from mptcplab import cli

Done = subprocess.CompletedProcess[str]
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def program(*words: str | Path) -> list[str]:
    """The command line as a program with its arguments."""
    return [sys.executable, "-m", "mptcplab", *map(str, words)]


def in_process(*words: str | Path, cwd: Path, **env: str) -> Done:
    """Run the command line in a process of its own; not in a terminal, so no colours and no bars."""
    environment = {**os.environ, **env}
    return subprocess.run(program(*words), cwd=cwd, capture_output=True, text=True, env=environment, check=False)


def lab(*words: str | Path, cwd: Path, text: str = "", **env: str) -> Done:
    """Run the command line in this process, with the same output and exit code; `text` is its standard input."""
    given = list(map(str, words))
    with ExitStack() as stack:
        source, out, err = (
            stack.enter_context(TemporaryFile("w+", encoding="utf-8", errors="surrogateescape")) for _ in range(3)
        )
        source.write(text)
        source.seek(0)
        for entered in (
            chdir(cwd),
            patch.dict(os.environ, env),
            patch.multiple(sys, argv=["mptcplab", *given], stdin=source, stdout=out, stderr=err),
            patch.multiple(sys, unraisablehook=sys.unraisablehook),
            _descriptors(source, out, err),
            _signals(),
        ):
            stack.enter_context(entered)
        code = _code()
        return subprocess.CompletedProcess(given, code, _written(out), _written(err))


def _code() -> int:
    """The exit code of the command line."""
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    raise AssertionError("the command line always ends with a code")


@contextmanager
def _descriptors(*files: IO[str]) -> Iterator[None]:
    """Child processes and libraries that are not Python use descriptors 0 to 2."""
    former = [os.dup(number) for number in range(len(files))]
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        yield
    finally:
        for number, copy in enumerate(former):
            os.dup2(copy, number)
            os.close(copy)


@contextmanager
def _signals() -> Iterator[None]:
    """A command handles signals until the end of its process."""
    former = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _written(file: IO[str]) -> str:
    file.flush()
    file.seek(0)
    return file.read()
