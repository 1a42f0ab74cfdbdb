"""Tries mutants that change functions only, in processes that are forked after pytest has collected the tests."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from forks import Job, done, in_child, processors
from python_code import Functions, changed

if TYPE_CHECKING:
    from python_mutants import Trial
    from python_reach import Reach

# The number of the trial that changes nothing: it shows that processes which are forked after the collection work.
_NO_MUTANT = -1
# How many of the tests that noticed the latest mutants of a file come first.
_LAST_KILLERS = 4
_PASSED = "passed"


class Killers:
    """The tests that failed last, by the file of the mutant. Each test is noted before it runs, in this folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._last: dict[str, list[str]] = {}

    def begin(self, number: int, test: str) -> None:
        """Note, in the process of a mutant, which test will have noticed it if the process ends now."""
        (self._folder / f"{number}.test").write_text(test)

    def latest(self, number: int) -> str:
        """The test that ran last in the process of a mutant."""
        return (self._folder / f"{number}.test").read_text()

    def learn(self, number: int, file: str, *, passed: bool) -> None:
        """Read what the process of a mutant has noted."""
        if not passed:
            test = self.latest(number)
            others = [one for one in self._last.get(file, ()) if one != test]
            self._last[file] = [test, *others][:_LAST_KILLERS]

    def first(self, trial: Trial) -> list[str]:
        """The tests of a trial, those first that will fail most likely."""
        likely = [test for test in self._last.get(trial.file, ()) if test in trial.tests]
        return likely + [test for test in trial.tests if test not in likely]


class Collected:
    """A plugin of pytest that tries mutants in place of running the tests that were collected."""

    def __init__(
        self, trials: Sequence[Trial], reach: Reach, killers: Killers, tell: Callable[[int, str], None]
    ) -> None:
        self._trials = trials
        self._reach = reach
        self._killers = killers
        self._tell = tell
        # What this process tries, if it is one of a mutant.
        self._number: int | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Try all, unless this is the process of one of them."""
        if self._number is not None:
            return None
        items = {item.nodeid: item for item in session.items}
        short = [name for name in items if self._reach.is_short(name)]
        unchanged = partial(self._passes, session, items, short, _NO_MUTANT)
        if not all(passed for _, passed in done([Job(_NO_MUTANT, self._reach.limit_s(short), unchanged)], 1)):
            self._tell(_NO_MUTANT, self._killers.latest(_NO_MUTANT))
            pytest.exit("the tests fail without a change", 1)
        functions = Functions()
        jobs = (self._job(number, trial, session, items, functions) for number, trial in enumerate(self._trials))
        for number, passed in done((job for job in jobs if job is not None), processors()):
            self._killers.learn(number, self._trials[number].file, passed=passed)
            self._tell(number, _PASSED if passed else "")
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Give the test its time, after which the process is killed."""
        if self._number is not None:
            self._killers.begin(self._number, item.nodeid)
            signal.setitimer(signal.ITIMER_REAL, self._reach.limit_s([item.nodeid]))

    def _job(
        self,
        number: int,
        trial: Trial,
        session: pytest.Session,
        items: Mapping[str, pytest.Item],
        functions: Functions,
    ) -> Job[int] | None:
        """What tries a mutant; nothing if it has no tests, has an effect at import, or changes no function here."""
        if trial.at_import or not trial.tests:
            return None
        codes = changed(trial.before, trial.after, trial.path)
        if not codes or not functions.have(codes):
            return None

        def work(folder: Path) -> int:
            functions.change(codes)
            return self._passes(session, items, self._killers.first(trial), number, folder)

        return Job(number, self._reach.limit_s(trial.tests), work)

    def _passes(
        self,
        session: pytest.Session,
        items: Mapping[str, pytest.Item],
        names: Sequence[str],
        number: int,
        folder: Path,
    ) -> int:
        """Run these tests until one fails; 0 if none does."""
        self._number = number
        session.items[:] = [items[name] for name in names]
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        with suppress(session.Failed):
            session.config.hook.pytest_runtestloop(session=session)
        return int(session.testsfailed > 0)


def tried_collected(trials: Sequence[Trial], reach: Reach, words: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """The trials that change functions only, by their numbers, with whether all tests passed."""
    reads, writes = os.pipe()

    def tell(number: int, outcome: str) -> None:
        os.write(writes, f"{number} {outcome}\n".encode())

    def work() -> int:
        # Otherwise it would not notice that nobody reads any more, and go on alone.
        os.close(reads)
        with tempfile.TemporaryDirectory(prefix="mptcplab-mutant-") as folder:
            return pytest.main([*words, "-x"], plugins=[Collected(trials, reach, Killers(folder), tell)])

    child = in_child(work)
    os.close(writes)
    failed = ""
    with os.fdopen(reads) as lines:
        for number, _, outcome in (line.rstrip("\n").partition(" ") for line in lines):
            if int(number) == _NO_MUTANT:
                failed = outcome
            else:
                yield int(number), outcome == _PASSED
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if failed:
        raise RuntimeError(
            f"without a change, in a process that is forked after the tests were collected: {failed} fails"
        )
    if code:
        raise RuntimeError(f"the process that has collected the tests ended with {code}")
