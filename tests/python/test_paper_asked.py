"""What may be asked of `reproduce`, and the command that asks for it."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers.asked import Asked

WHOLE = Asked("doe2024")


@pytest.mark.parametrize(
    ("asked", "engine", "docs"),
    [
        (WHOLE, "vm:bookworm", True),
        (Asked("all", sensitivity=True), "sim", True),
        (Asked("doe2024", experiment="E-1"), "sim,fluid", True),
        (Asked("doe2024", claim="C-1"), "fluid", False),
    ],
)
def test_what_goes_together_is_no_error(asked: Asked, engine: str, docs: bool) -> None:
    asked.check(engine, docs=docs)


@pytest.mark.parametrize(
    ("asked", "engine", "docs", "message"),
    [
        (Asked("all", experiment="E-1"), "sim", False, "an experiment is one of a paper's: 'E-1'"),
        (Asked("all", claim="C-1"), "sim", False, "one claim is run by itself: 'C-1'"),
        (Asked("doe2024", "E-1", "C-1"), "sim", False, "one claim is run by itself: 'C-1'"),
        (Asked("doe2024", claim="C-1"), "sim", True, "one claim is run by itself: 'C-1'"),
        (Asked("doe2024", sensitivity=True), "vm", False, "other choices are simulated, not run on vm"),
        (Asked("doe2024", sensitivity=True), "sim,vm", False, "other choices are simulated, not run on sim,vm"),
    ],
)
def test_what_does_not_go_together_is_said(asked: Asked, engine: str, docs: bool, message: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        asked.check(engine, docs=docs)
    assert str(caught.value).startswith(f"{message}\n\nhint: ")


def test_expected_verdicts_are_about_whole_papers_in_the_simulator() -> None:
    assert WHOLE.is_reference("sim")
    assert not WHOLE.is_reference("fluid")
    for part in ({"experiment": "E-1"}, {"quick": True}):
        assert not replace(WHOLE, **part).is_reference("sim")
        assert not replace(WHOLE, **part).is_reference("fluid")


@pytest.mark.parametrize(
    ("asked", "engine", "words"),
    [
        (WHOLE, "sim", "doe2024"),
        (Asked("all", sensitivity=True), "sim", "all --sensitivity"),
        (Asked("doe2024", "E-1", quick=True), "sim,vm", "doe2024 --engine sim,vm --experiment E-1 --quick"),
        (Asked("doe2024", "E-1"), "/my kernel", "doe2024 --engine '/my kernel' --experiment E-1"),
    ],
)
def test_a_command_asks_for_the_same(asked: Asked, engine: str, words: str) -> None:
    assert shlex.split(asked.command(engine)) == ["mptcplab", "reproduce", *shlex.split(words)]
