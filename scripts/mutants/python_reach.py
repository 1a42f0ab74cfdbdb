"""Which tests reach a line of Python, and how long each of them takes."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import coverage
import pytest
from python_statements import statement

# A test that takes longer is left out, and so are those that no longer fit into the time for all that reach a line.
_LONGEST_S = 3.0
_ALL_S = 30.0
# The context of what is reached while a module is imported.
_IMPORT = "import"


@dataclass
class Reach:
    """Which tests reach which lines, and how long each takes. Tests are in the order of their collection."""

    # Seconds of a test and of the fixtures that are made for it alone.
    took_s: dict[str, float] = field(default_factory=dict)
    # Names of the fixtures that a test shares with others, and seconds of each.
    shared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shared_s: dict[str, float] = field(default_factory=dict)
    # by[file][line]: names of tests and of shared fixtures
    by: Mapping[str, Mapping[int, Sequence[str]]] = field(default_factory=dict)

    def of(self, file: str, line: int) -> list[str]:
        """The tests that reach the statement around a line, or behind those of its file all, if an import reaches it.

        The fastest are chosen, and come file by file, so that shared fixtures are made once.
        """
        reached = self.by.get(file, {})
        found = {name for one in statement(file, line) for name in reached.get(one, ())}
        own = self._tests_of(found)
        others = set[str]()
        if _IMPORT in found:
            own |= self._tests_of({name for names in reached.values() for name in names})
            others = self.took_s.keys() - own
        return [test for tests in (own, others) for test in self._by_file(self._within_time(self._fastest(tests)))]

    def at_import(self, file: str, line: int) -> bool:
        """Whether the statement around a line runs while a module is imported."""
        return any(_IMPORT in self.by.get(file, {}).get(one, ()) for one in statement(file, line))

    def is_short(self, test: str) -> bool:
        """Whether a test takes part at all."""
        return self.took_s[test] <= _LONGEST_S

    def limit_s(self, tests: Sequence[str]) -> float:
        """Seconds after which these tests hang."""
        return 5 + 5 * self._seconds(tests)

    def _tests_of(self, names: Collection[str]) -> set[str]:
        """The tests among these names, and those that share a fixture among them."""
        return {test for test in self.took_s if test in names or not set(names).isdisjoint(self.shared[test])}

    def _fastest(self, tests: Collection[str]) -> list[str]:
        return sorted(filter(self.is_short, tests), key=lambda test: (self._seconds([test]), test))

    def _within_time(self, tests: Sequence[str]) -> set[str]:
        chosen, made, spent_s = set[str](), set[str](), 0.0
        for test in tests:
            cost_s = self.took_s[test] + sum(self.shared_s[one] for one in self.shared[test] if one not in made)
            if spent_s + cost_s <= _ALL_S:
                spent_s += cost_s
                made.update(self.shared[test])
                chosen.add(test)
        return chosen

    def _by_file(self, tests: Collection[str]) -> list[str]:
        files: dict[str, list[str]] = {}
        for test in self.took_s:
            if test in tests:
                files.setdefault(test.partition("::")[0], []).append(test)
        return [test for file in sorted(files.values(), key=self._seconds) for test in file]

    def _seconds(self, tests: Collection[str]) -> float:
        shared = {one for test in tests for one in self.shared[test]}
        return sum(self.took_s[test] for test in tests) + sum(self.shared_s[one] for one in shared)


class Watcher:
    """A plugin of pytest that measures the reach of every test."""

    def __init__(self, files: Sequence[str]) -> None:
        self.reach = Reach()
        self._coverage = coverage.Coverage(data_file=None, include=files)
        self._files = files
        self._contexts = [_IMPORT]

    def watch(self, words: Sequence[str]) -> int:
        """Run pytest with these words. Returns its code."""
        self._coverage.start()
        self._coverage.switch_context(_IMPORT)
        code = pytest.main([*words], plugins=[self])
        self._coverage.stop()
        data = self._coverage.get_data()
        self.reach.by = {file: data.contexts_by_lineno(file) for file in self._files}
        return code

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure one test with what is made for it alone."""
        shared_s = sum(self.reach.shared_s.values())
        start = time.monotonic()
        with self._within(item.nodeid):
            result = yield
        shared_s -= sum(self.reach.shared_s.values())
        self.reach.took_s[item.nodeid] = max(time.monotonic() - start + shared_s, 0.0)
        self.reach.shared[item.nodeid] = tuple(
            name for name in self.reach.shared_s if _uses(item, *name.rpartition("::")[::2])
        )
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        """Measure a fixture that several tests share. What another one needs is made before it."""
        if fixturedef.scope == "function":
            return (yield)
        name = f"{fixturedef.baseid}::{fixturedef.argname}"
        start = time.monotonic()
        with self._within(name):
            try:
                return (yield)
            finally:
                self.reach.shared_s[name] = self.reach.shared_s.get(name, 0.0) + time.monotonic() - start

    @contextmanager
    def _within(self, context: str) -> Iterator[None]:
        self._contexts.append(context)
        self._coverage.switch_context(context)
        try:
            yield
        finally:
            self._contexts.pop()
            self._coverage.switch_context(self._contexts[-1])


def _uses(item: pytest.Item, place: str, fixture: str) -> bool:
    """Whether a test needs the fixture of this name that is defined in this file or folder."""
    return item.nodeid.startswith(place) and fixture in getattr(item, "fixturenames", ())
