"""Known differences between the simulator and the kernel: what is read from which file, and how they are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import biases
from mptcplab.studies.papers.biases import Bias

ENGINES = ["sim", "vm:bookworm"]
APART = """\
[[difference]]
algorithm = "wvegas"
kernel = 11
scenario = "scenarios/a.toml"
why = "delays vary less"

[[difference]]
algorithm = "olia"
kernel = -8.5
half = 9
scenario = "scenarios/b.toml"
"""


def row(**given: Any) -> dict[str, Any]:
    """A row of a comparison; the algorithms are those of the flows, in their order."""
    return {"metric": "goodput", "flow": "mp", "base": "lia+cubic", "difference": -2.5, "half": 1.25, **given}


def compared(*rows: dict[str, Any], engines: list[str] | None = None, name: str = "papers/x.toml") -> str:
    return json.dumps({"engines": engines or ENGINES, "entries": [{"name": name, "evidence": rows}]})


def written(folder: Path, **files: str) -> Path:
    place = folder / "docs" / "agreement"
    place.mkdir(parents=True)
    for stem, text in files.items():
        (place / {"apart": "algorithms.toml", "compared": "agreement.json"}[stem]).write_text(text)
    return folder


# Reading


def test_differences_are_those_measured_apart_and_then_those_of_the_comparison(tmp_path: Path) -> None:
    text = compared(row(), row(base="olia", difference=3, half=0.5))
    apart = (
        Bias("wvegas", "scenarios/a.toml", 11.0, None, "delays vary less"),
        Bias("olia", "scenarios/b.toml", -8.5, 9.0),
    )
    rest = (Bias("lia", "papers/x.toml", -2.5, 1.25), Bias("olia", "papers/x.toml", 3.0, 0.5))
    assert biases.load(written(tmp_path / "both", apart=APART, compared=text)) == (*apart, *rest)
    assert biases.load(written(tmp_path / "one", apart=APART)) == apart
    assert biases.load(written(tmp_path / "other", compared=text)) == rest
    assert biases.load(tmp_path / "none") == ()


@pytest.mark.parametrize("given", [{"metric": "loss"}, {"flow": "tcp"}, {"difference": None}, {"half": None}])
def test_of_a_comparison_only_the_multipath_connections_measured_goodput_counts(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    text = compared(row(**given), row(base="olia"))
    assert [one.algorithm for one in biases.load(written(tmp_path, compared=text))] == ["olia"]


@pytest.mark.parametrize("engines", [["vm:bookworm", "sim"], ["sim", "sim"], ["sim"], ["sim", "kernel", "kernel"]])
def test_only_a_comparison_of_the_simulator_with_a_kernel_counts(tmp_path: Path, engines: list[str]) -> None:
    assert biases.load(written(tmp_path, compared=compared(row(), engines=engines))) == ()


@pytest.mark.parametrize(
    ("stem", "file", "text", "problem"),
    [
        ("apart", "algorithms.toml", "[[difference]", "Expected ']]'"),
        ("apart", "algorithms.toml", "[other]", "'difference'"),
        ("apart", "algorithms.toml", "difference = 3", "'int' object is not iterable"),
        ("apart", "algorithms.toml", APART.replace("-8.5", "'less'"), "could not convert string to float: 'less'"),
        ("compared", "agreement.json", "{}", "'engines'"),
        ("compared", "agreement.json", '{"engines": ["sim", "kernel"], "entries": 3}', "'int' object is not iterable"),
    ],
)
def test_a_file_that_is_not_right_is_named(tmp_path: Path, stem: str, file: str, text: str, problem: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        biases.load(written(tmp_path, **{stem: text}))
    path = tmp_path / "docs" / "agreement" / file
    assert str(caught.value).startswith(f"{path}: not right: {problem}")


# Telling


@pytest.mark.parametrize(
    ("bias", "text"),
    [
        (Bias("lia", "a.toml", 33.0, None), "lia gets 33 % more in the kernel on a.toml"),
        (Bias("lia", "a.toml", -27.6, 3.6), "lia gets 28 % (± 4) less in the kernel on a.toml"),
        (Bias("lia", "a.toml", -0.6, None), "lia gets 1 % less in the kernel on a.toml"),
        (
            Bias("olia", "b.toml", 0.6, 0.0, "it is late"),
            "olia gets 1 % (± 0) more in the kernel on b.toml: it is late",
        ),
        (Bias("olia", "b.toml", 5.9, 0.18), "olia gets 6 % (± 0.2) more in the kernel on b.toml"),
        (Bias("olia", "b.toml", 5.9, 0.51), "olia gets 6 % (± 1) more in the kernel on b.toml"),
        (Bias("olia", "b.toml", 5.9, 0.5), "olia gets 6 % (± 0.5) more in the kernel on b.toml"),
        (
            Bias("olia", "b.toml", -21.4, 2.4, one_trajectory=True),
            "olia gets 21 % (one trajectory) less in the kernel on b.toml",
        ),
    ],
)
def test_a_difference_says_in_which_direction_and_why(bias: Bias, text: str) -> None:
    assert str(bias) == text


@pytest.mark.parametrize(
    ("percent", "half", "clear"),
    [(-5.0, 4.9, True), (-5.0, 5.0, False), (5.0, 5.1, False), (5.0, 4.9, True), (0.1, None, True)],
)
def test_a_difference_is_clear_if_it_is_larger_than_its_spread(percent: float, half: float | None, clear: bool) -> None:
    assert Bias("lia", "a.toml", percent, half).clear == clear


@pytest.mark.parametrize(
    ("spreads", "one"),
    [
        ({"spread_reference": 13.0, "spread": 0.0}, True),
        ({"spread_reference": 13.0, "spread": 0.2}, False),
        ({"spread_reference": None, "spread": 0.0}, True),
        ({"spread_reference": None, "spread": None}, False),
        ({}, False),
    ],
)
def test_a_difference_of_one_trajectory_is_not_clear(tmp_path: Path, spreads: dict[str, Any], one: bool) -> None:
    """Before, ten repetitions that were the same to the last byte had an interval of the simulator's spread alone."""
    text = compared(row(reference=0.59, mean=0.464, difference=-21.4, half=2.4, **spreads))
    [bias] = biases.load(written(tmp_path, compared=text))
    assert (bias.one_trajectory, bias.clear) == (one, not one)
