"""Damaged predicates and claim files never end in an internal error: they are refused in words, or they mean something.

The same damage in each run; `MPTCPLAB_FUZZ_EXAMPLES` makes more of it. What Rust reads has targets in fuzz/.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import catalog
from mptcplab.studies.papers.predicate import Domain, evaluate, parse
from mptcplab.study.verdict import Verdict

LIBRARY = catalog.load()
PREDICATES = sorted({claim.predicate for paper in LIBRARY.papers.values() for claim in paper.claims if claim.predicate})
DOMAIN = Domain(("lia", "olia", "balia"), (("a", 1.0), ("b", 2.0), ("c", 4.0)))
PAPER = "dubey2023"
FILES = {name: (catalog.directory() / PAPER / name).read_text() for name in ("claims.toml", "paper.toml")}
# Single pieces of the language and of TOML, and some that belong to neither.
PIECES = re.findall(r"\w+|\S", " ".join(PREDICATES))
PIECE = st.sampled_from(
    [*sorted(set(PIECES)), "", "1e309", "-1", "0", "''", "$p.1", "{cc=*}", "\u00b5", "\0", "[[", "= =", "\n"]
)
EXAMPLES = int(os.environ.get("MPTCPLAB_FUZZ_EXAMPLES", "40"))
REPEATABLE = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES == 40, suppress_health_check=list(HealthCheck)
)


@st.composite
def damaged(draw: st.DrawFn, texts: list[str]) -> str:
    """A text with one to four of its pieces replaced, left out or doubled."""
    parts = re.split(r"(\w+)", draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(parts) - 1))
        parts[at] = draw(st.one_of(PIECE, st.just(parts[at] * 2), st.sampled_from(parts)))
    return "".join(parts)


def numbers(metric: str, keys: dict[str, str]) -> np.ndarray:
    """Three repetitions of any metric, different for each, and some not numbers."""
    start = sum(map(ord, metric + "".join(keys.values())))
    return np.array([np.nan, 1.0, 2.0]) if start % 17 == 0 else np.array([start, start + 1.5, start - 0.25])


@REPEATABLE
@given(damaged(PREDICATES))
def test_a_damaged_predicate_is_refused_or_has_a_verdict(text: str) -> None:
    try:
        evaluation = evaluate(parse(text), numbers, DOMAIN)
    except MptcplabError as error:
        assert str(error)
    else:
        assert evaluation.verdict in set(Verdict)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("15*5 and 6 == 4", "'15*5': a number where a comparison should be"),
        ("(1 < 2) + 1 > 3", "'1 < 2': a comparison where a number should be"),
        ("2 * 'lia' > 3", "'lia'\": a word where a number should be"),
        ("any(a in [lia]: 1)", "'1': a number where a comparison should be"),
        ("7 in [1,2,3]", "'[1,2,3]': after `in` there are two numbers in brackets"),
        ("7 in [1,b]", "'[1,b]': after `in` there are two numbers in brackets"),
        ("7", "'7': a number where a comparison should be"),
        ("[1,2] == 7", "'7': a number and a set cannot be compared"),
    ],
)
def test_what_is_no_number_or_no_comparison_is_named(text: str, why: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        parse(text)
    assert why in str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_of_a_paper_is_refused_with_its_name_or_read(name: str, tmp_path: Path) -> None:
    root = tmp_path / "papers"
    shutil.copytree(catalog.directory() / PAPER, root / PAPER)

    @REPEATABLE
    @given(damaged([FILES[name]]))
    def read(text: str) -> None:
        (root / PAPER / name).write_text(text, encoding="utf-8")
        try:
            library = catalog.load(root)
        except MptcplabError as error:
            assert str(root) in str(error)
        else:
            assert set(library.papers) == {PAPER}

    read()
