"""How the files of a paper are read: every key, what is left out, every mistake, and the log of changes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from mptcplab.errors import MptcplabError
from mptcplab.studies.papers import before, catalog
from mptcplab.studies.papers.catalog import Claim, Experiment, FigureSpec, Library, Paper, Point, Reading, Sweep
from mptcplab.studies.papers.changes import Change
from mptcplab.studies.papers.reasons import NO_REASON
from mptcplab.study.verdict import Verdict

PAPER = """\
title = " A rule "
cite = "Doe 2024"
about = "One rule."
profile = "rfc"
dialect = "mptcp-0.95"

[[readings]]
of = ["olia", "lia"]
name = "OLIA"
says = "its step is small"
others = ["step=large", "step=none"]

[[readings]]
of = ["balia"]
name = "Balia"
says = "as in the draft"

[experiments.ONE]
title = "All keys"
where = "section 3"
scenario = "pair.toml"
profile = "linux-pre4"
dialect = "spec"
algorithms = ["lia", "olia"]
settings = { "links.A.rate" = "8 Mbit/s", reps = 2, on = true, off = false, list = [1.5, "a"], part = { k = "v" } }
repetitions = 7
sample = "100 ms"
ideal = { mp = 8, tcp = 4.5 }
fairness = { all = [["mp", "tcp"], ["mp/sf1", "tcp"]], one = [["mp"]] }
published = "the rule gets 6"
sweep_axis = "Rate (Mbit/s)"
sweep = [{ label = "r1", x = 1, settings = { "links.B.rate" = "1 Mbit/s" } }, { label = "r5", x = 5.5 }]
variants = { slow = { "links.A.delay" = "9 ms" }, plain = {} }
phases = [[0, 10], [12, 40.5]]
bins = [0, 10, 30]
view_of = "TWO"
reading = "as in the text"
figures = [
    { kind = "box", of = "Fig. 1", metric = "ratio", flows = ["mp"], algorithms = ["lia"], title = "T", MORE },
    { kind = "time", of = "Fig. 2" },
]

[experiments.TWO]
title = "As few as possible"
where = ""
scenario = "pair.toml"
""".replace("MORE", "stack = true, published = { lia = 12 }")

CLAIMS = """\
[[claim]]
id = "C-1"
experiment = "ONE"
where = "section 3"
origin = "paper"
kind = "number"
statement = "OLIA gets 6"
predicate = "mean(goodput{cc=olia}) == 6"
published = "6.0"
tolerance = 0.05
headline = true
cannot_fail = "calibrated"
expect = "not testable"
why = "Its  step\\nis {mean(goodput{cc=olia}):.1f}."
why_if = "mean(goodput{cc=olia}) > 2"

[[claim]]
id = "C-2"
origin = "lab"
kind = "shape"
statement = "One is one"
predicate = "1 == 1"
expect = "holds"
"""

CHANGES = """\
[[change]]
claim = "C-1"
date = "2026-11-23"
what = "tolerance"
before = "0.1"
after = "0.07"
reason = "So."

[[change]]
claim = "C-2"
date = "2026-11-23"
after = "1 == 1"
reason = "It was new."

[[change]]
claim = "C-1"
date = "2026-11-24"
what = "tolerance"
before = "0.07"
after = "0.05"
reason = "So again."

[[change]]
claim = "C-2"
date = "2026-11-24"
what = "statement"
before = "Two is two"
after = "One is one"
reason = "Plainer."

[[change]]
claim = "C-2"
date = "2026-11-24"
what = "kind"
before = "number"
after = "shape"
reason = "No number."
"""


def loaded(root: Path, paper: str = PAPER, claims: str = CLAIMS, changes: str | None = None) -> Library:
    folder = root / "doe2024"
    folder.mkdir()
    (folder / "pair.toml").touch()
    (folder / "paper.toml").write_text(paper)
    (folder / "claims.toml").write_text(claims)
    if changes is not None:
        (folder / "changes.toml").write_text(changes)
    return catalog.load(root)


def paper_in(root: Path) -> Paper:
    return loaded(root).papers["doe2024"]


# What is right


def test_a_paper_is_read_with_all_its_keys(tmp_path: Path) -> None:
    found = paper_in(tmp_path)
    # White space around a text is no part of it.
    assert (found.id, found.title, found.cite, found.about) == ("doe2024", "A rule", "Doe 2024", "One rule.")
    assert found.directory == tmp_path / "doe2024"
    assert list(found.experiments) == ["ONE", "TWO"]
    assert found.readings == (
        Reading(("olia", "lia"), "OLIA", "its step is small", ("step=large", "step=none")),
        Reading(("balia",), "Balia", "as in the draft"),
    )
    assert found.changes == ()


def test_an_experiment_is_read_with_all_its_keys(tmp_path: Path) -> None:
    settings = {"links.A.rate": '"8 Mbit/s"', "reps": "2", "on": "true", "off": "false", "list": '[1.5, "a"]'}
    assert paper_in(tmp_path).experiments["ONE"] == Experiment(
        id="ONE",
        paper="doe2024",
        title="All keys",
        where="section 3",
        scenario=tmp_path / "doe2024" / "pair.toml",
        profile="linux-pre4",
        dialect="spec",
        algorithms=("lia", "olia"),
        settings={**settings, "part": '{ k = "v" }'},
        repetitions=7,
        sample="100 ms",
        ideal={"mp": 8.0, "tcp": 4.5},
        fairness={"all": (("mp", "tcp"), ("mp/sf1", "tcp")), "one": (("mp",),)},
        published="the rule gets 6",
        sweep=Sweep("Rate (Mbit/s)", (Point("r1", 1.0, {"links.B.rate": '"1 Mbit/s"'}), Point("r5", 5.5))),
        variants={"slow": {"links.A.delay": '"9 ms"'}, "plain": {}},
        # Phases count from 1, and bins, which follow one another, from 0.
        spans={"phase 1": (0.0, 10.0), "phase 2": (12.0, 40.5), "bin 0": (0.0, 10.0), "bin 1": (10.0, 30.0)},
        figures=(
            FigureSpec("box", "Fig. 1", "ratio", ("mp",), ("lia",), "T", True, {"lia": 12.0}),
            FigureSpec("time", "Fig. 2"),
        ),
        view_of="TWO",
        reading="as in the text",
    )


def test_what_an_experiment_leaves_out_is_the_papers_or_nothing(tmp_path: Path) -> None:
    found = paper_in(tmp_path).experiments["TWO"]
    scenario = tmp_path / "doe2024" / "pair.toml"
    assert found == Experiment("TWO", "doe2024", "As few as possible", "", scenario, "rfc", "mptcp-0.95")
    assert (found.repetitions, found.sample, found.spans, found.sweep) == (10, "1 s", {}, None)
    assert (found.points, found.labels) == ((), ("",))
    assert not FigureSpec("bars", "Fig. 3").stack


def test_points_are_found_by_their_labels(tmp_path: Path) -> None:
    found = paper_in(tmp_path).experiments["ONE"]
    assert found.labels == ("r1", "r5")
    assert [point.x for point in found.points] == [1.0, 5.5]
    assert found.point("r5") == Point("r5", 5.5)


def test_the_dialect_of_a_paper_goes_with_its_own_profile_only(tmp_path: Path) -> None:
    found = paper_in(tmp_path).experiments["TWO"]
    assert found.dialect_in("rfc") == "mptcp-0.95"
    assert found.dialect_in("linux-acked") == "spec"
    spec = loaded_with(tmp_path, 'dialect = "mptcp-0.95"\n\n', "\n")
    assert spec.experiments["TWO"].dialect == "spec"


def loaded_with(root: Path, old: str, new: str) -> Paper:
    """The paper with another text, in a directory of its own."""
    other = root / "other"
    other.mkdir()
    assert PAPER.count(old) == 1
    return loaded(other, PAPER.replace(old, new)).papers["doe2024"]


def test_claims_are_read_with_all_their_keys(tmp_path: Path) -> None:
    first, second = paper_in(tmp_path).claims
    assert second == Claim("C-2", "lab", "shape", "One is one", "1 == 1", Verdict.HOLDS)
    assert (second.experiment, second.tolerance, second.headline, second.why) == (None, None, False, NO_REASON)
    assert (first.id, first.experiment, first.where, first.origin, first.kind) == (
        *("C-1", "ONE", "section 3", "paper", "number"),
    )
    assert (first.statement, first.predicate) == ("OLIA gets 6", "mean(goodput{cc=olia}) == 6")
    assert (first.published, first.tolerance, first.headline) == ("6.0", 0.05, True)
    assert (first.cannot_fail, first.expect, first.why_if) == (
        *("calibrated", Verdict.NOT_TESTABLE, "mean(goodput{cc=olia}) > 2"),
    )
    # Its lines are joined.
    assert [one if isinstance(one, str) else one.expression for one in first.why.pieces] == [
        *("Its step is ", "mean(goodput{cc=olia})", "."),
    ]


@pytest.mark.parametrize(
    "value",
    [
        *("true", "false", "-3", "2.5", '"8 Mbit/s"', "[]", '["a", [1, 2]]', '{ a = 1, b = { c = "d" } }'),
        r'"a \"quoted\" \\ word"',
    ],
)
def test_a_setting_is_what_the_scenario_file_would_have(tmp_path: Path, value: str) -> None:
    paper = loaded_with(tmp_path, "reps = 2", f"key = {value}")
    written = paper.experiments["ONE"].settings["key"]
    found, expected = (tomllib.loads(f"key = {text}")["key"] for text in (written, value))
    assert (found, type(found)) == (expected, type(expected))


# The library


def test_papers_are_chosen_by_name_or_all_in_order(tmp_path: Path) -> None:
    loaded(tmp_path)
    second = tmp_path / "roe2023"
    second.mkdir()
    (second / "pair.toml").touch()
    (second / "paper.toml").write_text(PAPER.replace("ONE", "THREE").replace("TWO", "FOUR"))
    # A claim may look at another paper's experiment.
    (second / "claims.toml").write_text(CLAIMS.replace("C-", "D-"))
    library = catalog.load(tmp_path)
    assert library.root == tmp_path
    assert [paper.id for paper in library.choose("all")] == ["doe2024", "roe2023"]
    assert library.choose("roe2023") == [library.papers["roe2023"]]
    assert list(library.experiments) == ["ONE", "TWO", "THREE", "FOUR"]
    for name, source in {"ONE": "TWO", "TWO": "TWO", "THREE": "FOUR"}.items():
        assert library.source(library.experiments[name]).id == source
    with pytest.raises(MptcplabError) as caught:
        library.choose("doe")
    assert str(caught.value) == (
        "no such paper: 'doe'\n\nhint: all, or one of doe2024, roe2023; "
        "one of your own is a folder with a paper.toml, in papers/ below this directory"
    )


@pytest.mark.parametrize(
    ("what", "paper", "claims"),
    [("experiment ONE", PAPER.replace("TWO", "THREE"), CLAIMS.replace("C-", "D-")), ("claim C-2", None, CLAIMS)],
)
def test_a_name_is_there_once_in_all_papers(tmp_path: Path, what: str, paper: str | None, claims: str) -> None:
    """The second one took the results and the verdicts of the first one's name."""
    loaded(tmp_path)
    second = tmp_path / "roe2023"
    second.mkdir()
    (second / "pair.toml").touch()
    (second / "paper.toml").write_text(paper or PAPER.replace("ONE", "THREE").replace("TWO", "FOUR"))
    (second / "claims.toml").write_text(claims.replace("C-1", "D-1"))
    file = "paper.toml" if paper else "claims.toml"
    with pytest.raises(MptcplabError) as caught:
        catalog.load(tmp_path)
    other = tmp_path / "doe2024" / file
    hint = f"every {what.split()[0]} of all papers has a name of its own; the other one is in {other}"
    assert str(caught.value) == f"{second / file}: {what}: there is another one of this name\n\nhint: {hint}"


def test_a_claim_is_there_once_in_a_paper(tmp_path: Path) -> None:
    """Both claims of a name were not testable."""
    with pytest.raises(MptcplabError, match=r"claims\.toml: claim C-1: there is another one of this name"):
        loaded(tmp_path, claims=CLAIMS.replace('"C-2"', '"C-1"'))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("repetitions = 7", "repetitions = 0", "repetitions: not right: '0'\n\nhint: it is from 1 to 30"),
        # There were 30 of 31, without a word.
        ("repetitions = 7", "repetitions = 31", "repetitions: not right: '31'\n\nhint: it is from 1 to 30"),
        ('label = "r5"', 'label = "r1"', "sweep[1].label: not right: 'r1'\n\nhint: it is another one for every point"),
    ],
)
def test_repetitions_and_labels_are_checked(tmp_path: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(MptcplabError) as caught:
        loaded_with(tmp_path, before, after)
    assert str(caught.value) == f"{tmp_path / 'other' / 'doe2024' / 'paper.toml'}: experiments.ONE.{message}"


def test_experiments_and_claims_are_found_by_name_or_are_listed(tmp_path: Path) -> None:
    paper = paper_in(tmp_path)
    assert paper.experiment("TWO").id == "TWO"
    assert paper.claim("C-2").id == "C-2"
    for find, name, message in (
        (paper.experiment, "C-2", "no such experiment of doe2024: 'C-2'\n\nhint: one of ONE, TWO"),
        (paper.claim, "TWO", "no such claim of doe2024: 'TWO'\n\nhint: one of C-1, C-2"),
    ):
        with pytest.raises(MptcplabError) as caught:
            find(name)
        assert str(caught.value) == message


def test_the_papers_are_those_of_the_current_directory_or_of_the_package(tmp_path: Path) -> None:
    place = tmp_path / "papers"
    place.mkdir()
    # A directory of the name without papers is not what is looked for.
    assert catalog.directory(tmp_path) == catalog.directory(tmp_path / "none") != place
    loaded(place)
    assert catalog.directory(tmp_path) == place


# Mistakes


def said(root: Path, file: str, message: str, hint: str) -> str:
    return f"{root / 'doe2024' / file}: {message}" + (f"\n\nhint: {hint}" if hint else "")


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('title = "All keys"\n', "", "experiments.ONE.title: missing", ""),
        ("repetitions = 7", 'repetitions = "7"', "experiments.ONE.repetitions: not right: '7'", "it is a whole number"),
        (
            "repetitions = 7",
            "repetitions = 7.5",
            "experiments.ONE.repetitions: not right: '7.5'",
            "it is a whole number",
        ),
        (
            "repetitions = 7",
            "repetitions = true",
            "experiments.ONE.repetitions: not right: 'True'",
            "it is a whole number",
        ),
        ('sample = "100 ms"', "sample = 1", "experiments.ONE.sample: not right: '1'", "it is a text"),
        ("x = 1,", "x = true,", "experiments.ONE.sweep[0].x: not right: 'True'", "it is a number"),
        ("x = 5.5", 'x = "5"', "experiments.ONE.sweep[1].x: not right: '5'", "it is a number"),
        ("stack = true", "stack = 1", "experiments.ONE.figures[0].stack: not right: '1'", "it is true or false"),
        (
            '"lia", "olia"]\nsettings',
            '"lia", 3]\nsettings',
            "experiments.ONE.algorithms: not right: \"['lia', 3]\"",
            "it is a list of texts",
        ),
        (
            '["lia", "olia"]\nsettings',
            '"lia"\nsettings',
            "experiments.ONE.algorithms: not right: 'lia'",
            "it is a list of texts",
        ),
        (
            "ideal = { mp = 8, ",
            "ideal = { mp = true, ",
            "experiments.ONE.ideal: not right: \"{'mp': True, 'tcp': 4.5}\"",
            "it is a table of numbers",
        ),
        (
            "ideal = { mp = 8, tcp = 4.5 }",
            "ideal = 8",
            "experiments.ONE.ideal: not right: '8'",
            "it is a table of numbers",
        ),
        (
            "plain = {} }",
            "plain = 1 }",
            "experiments.ONE.variants: not right: \"{'slow': {'links.A.delay': '9 ms'}, 'plain': 1}\"",
            "it is a table of tables of settings",
        ),
        (
            'one = [["mp"]] }',
            'one = ["mp"] }',
            "experiments.ONE.fairness: not right: \"{'all': [['mp', 'tcp'], ['mp/sf1', 'tcp']], 'one': ['mp']}\"",
            "it is a table of lists of lists",
        ),
        (
            '{ label = "r5", x = 5.5 }',
            '{ label = "r5", x = 5.5, settings = 1 }',
            "experiments.ONE.sweep[1].settings: not right: '1'",
            "it is a table of settings",
        ),
        (
            "[[0, 10], [12, 40.5]]",
            "[[0, 10], [40, 40]]",
            "experiments.ONE.phases: not right: '[40, 40]'",
            "it is times in s that go up",
        ),
        ("[0, 10, 30]", "[0, 10, 9.5]", "experiments.ONE.bins: not right: '[10, 9.5]'", "it is times in s that go up"),
        ("bins = [0, 10, 30]", "bins = 3", "experiments.ONE.bins: not right: '3'", "it is a list"),
        ('where = ""', 'where = ""\nwhen = ""', "experiments.TWO.when: unknown key", ""),
        ('cite = "Doe 2024"', 'cite = "Doe 2024"\nyear = 2024\ndoi = ""', "doi: unknown key", ""),
        (
            'kind = "time"',
            'kind = "times"',
            "experiments.ONE.figures[1].kind: not right: 'times'",
            "it is one of box, bars, time, sweep, spans",
        ),
        (
            'profile = "rfc"',
            'profile = "linux"',
            "profile: not right: 'linux'",
            "it is one of rfc, linux-acked, linux-legacy, linux-pre4",
        ),
        (
            'profile = "linux-pre4"',
            'profile = "linux"',
            "experiments.ONE.profile: not right: 'linux'",
            "it is one of rfc, linux-acked, linux-legacy, linux-pre4",
        ),
        (
            'dialect = "spec"',
            'dialect = "0.95"',
            "experiments.ONE.dialect: not right: '0.95'",
            "it is one of spec, mptcp-0.95",
        ),
        ('name = "Balia"\n', "", "readings[1].name: missing", ""),
        (
            '"pair.toml"\nprofile',
            '"pairs.toml"\nprofile',
            "experiments.ONE.scenario: not right: 'pairs.toml'",
            "it is a file beside paper.toml",
        ),
        ('title = " A rule "', "title = ", "Invalid value (at line 1, column 9)", ""),
    ],
)
def test_a_mistake_in_the_file_of_a_paper_is_named_with_what_would_be_right(
    tmp_path: Path, old: str, new: str, message: str, hint: str
) -> None:
    assert old in PAPER
    with pytest.raises(MptcplabError) as caught:
        loaded(tmp_path, PAPER.replace(old, new, 1))
    assert str(caught.value) == said(tmp_path, "paper.toml", message, hint)


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        (
            'expect = "holds"',
            'expect = "true"',
            "claim[1].expect: not right: 'true'",
            "it is one of holds, fails, open, not testable",
        ),
        ('expect = "holds"', 'expect = "holds"\nexpected = "holds"', "claim[1].expected: unknown key", ""),
        ("tolerance = 0.05", 'tolerance = "5 %"', "claim[0].tolerance: not right: '5 %'", "it is a number"),
        ("headline = true", "headline = 1", "claim[0].headline: not right: '1'", "it is true or false"),
        ('experiment = "ONE"', "experiment = 1", "claim[0].experiment: not right: '1'", "it is a text"),
        ('experiment = "ONE"', 'experiment = "THREE"', "C-1: experiment: no such experiment: 'THREE'", ""),
        (
            "{mean(goodput{cc=olia}):.1f}",
            "3",
            "C-1: claim[0].why: a typed number: '3' in 'Its step is 3.'",
            "a measured one is {EXPRESSION:FORMAT}; one of the paper or of the setup is {=3}",
        ),
    ],
)
def test_a_mistake_in_the_claims_is_named_with_what_would_be_right(
    tmp_path: Path, old: str, new: str, message: str, hint: str
) -> None:
    assert old in CLAIMS
    with pytest.raises(MptcplabError) as caught:
        loaded(tmp_path, claims=CLAIMS.replace(old, new, 1))
    assert str(caught.value) == said(tmp_path, "claims.toml", message, hint)


@pytest.mark.parametrize("key", ["predicate", "why_if"])
def test_a_mistake_in_a_predicate_is_named_with_its_claim(tmp_path: Path, key: str) -> None:
    name = f'{key} = "mean(goodput'
    with pytest.raises(MptcplabError) as caught:
        loaded(tmp_path, claims=CLAIMS.replace(name, f'{key} = "average(goodput'))
    file = tmp_path / "doe2024" / "claims.toml"
    assert str(caught.value).startswith(f"{file}: C-1: claim[0].{key}: predicate: 'average(goodput")


@pytest.mark.parametrize(
    ("key", "text", "hint"),
    [
        ("cannot_fail", "by construction", "it is explained by why"),
        ("why_if", "1 == 1", "it is the condition of a why"),
    ],
)
def test_what_rests_on_a_reason_needs_one(tmp_path: Path, key: str, text: str, hint: str) -> None:
    claims = f'{CLAIMS}{key} = "{text}"\n'
    with pytest.raises(MptcplabError) as caught:
        loaded(tmp_path, claims=claims)
    assert str(caught.value) == said(tmp_path, "claims.toml", f"claim[1].{key}: not right: {text!r}", hint)
    (tmp_path / "with").mkdir()
    assert loaded(tmp_path / "with", claims=f'{claims}why = "So."\n')


def test_a_paper_without_claims_is_an_error(tmp_path: Path) -> None:
    loaded(tmp_path)
    claims = tmp_path / "doe2024" / "claims.toml"
    claims.unlink()
    with pytest.raises(MptcplabError) as caught:
        catalog.load(tmp_path)
    assert str(caught.value) == f"no such file: {claims}"


# The log of changes


def test_a_log_of_changes_may_have_several_parts_of_several_claims(tmp_path: Path) -> None:
    found = loaded(tmp_path, changes=CHANGES).papers["doe2024"].changes
    assert len(found) == 5
    assert found[1] == Change("C-2", "2026-11-23", "1 == 1", "It was new.", "predicate", "")
    assert found[2] == Change("C-1", "2026-11-24", "0.05", "So again.", "tolerance", "0.07")


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('claim = "C-2"', 'claim = "C-3"', "change[1].claim: no such claim: 'C-3'", "an id of claims.toml"),
        (
            'date = "2026-11-24"',
            'date = "2026-11-31"',
            "change[2].date: not right: '2026-11-31'",
            "it is like 2026-11-23",
        ),
        ('reason = "So again."', 'reason = ""', "change[2].reason: missing", ""),
        ('before = "0.1"', 'before = "0.07"', "change[0]: C-1: nothing changes: before and after are the same", ""),
        (
            'before = "0.07"',
            'before = "0.08"',
            "change[2].before: not right: '0.08'",
            "the change before it ended with '0.07'",
        ),
        (
            'after = "0.05"',
            'after = "0.06"',
            "the last change of the tolerance of C-1 ends with '0.06'",
            "claims.toml has '0.05'; add a change with its reason",
        ),
        (
            'after = "One is one"',
            'after = "1 is 1"',
            "the last change of the statement of C-2 ends with '1 is 1'",
            "claims.toml has 'One is one'; add a change with its reason",
        ),
        (
            'after = "shape"',
            'after = "consistency"',
            "the last change of the kind of C-2 ends with 'consistency'",
            "claims.toml has 'shape'; add a change with its reason",
        ),
        (
            'after = "1 == 1"',
            'after = "1 == 2"',
            "the last change of the predicate of C-2 ends with '1 == 2'",
            "claims.toml has '1 == 1'; add a change with its reason",
        ),
    ],
)
def test_a_mistake_in_the_log_of_changes_is_named(tmp_path: Path, old: str, new: str, message: str, hint: str) -> None:
    assert old in CHANGES
    with pytest.raises(MptcplabError) as caught:
        loaded(tmp_path, changes=CHANGES.replace(old, new, 1))
    assert str(caught.value) == said(tmp_path, "changes.toml", message, hint)


def test_a_tolerance_that_was_taken_away_is_empty(tmp_path: Path) -> None:
    changes = CHANGES.replace('after = "0.05"', 'after = ""')
    claims = CLAIMS.replace("tolerance = 0.05\n", "")
    assert len(loaded(tmp_path, claims=claims, changes=changes).papers["doe2024"].changes) == 5


# Verdicts of an earlier version

EARLIER = {
    "version": "0.1",
    "commit": "abcdef",
    "date": "2026-11-20",
    "since": ["All is new.", "Nothing is old."],
    "claims": {
        "C-1": {"verdict": "not testable", "profile": "rfc", "predicate": "1 == 2", "tolerance": 0.25},
        "C-2": {"verdict": "holds", "profile": "", "predicate": "1 == 1"},
    },
}


def test_verdicts_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    assert before.load(tmp_path) == before.Snapshot("", "", "", (), {})
    (tmp_path / before.FILE).write_text(json.dumps(EARLIER))
    assert before.load(tmp_path) == before.Snapshot(
        "0.1",
        "abcdef",
        "2026-11-20",
        ("All is new.", "Nothing is old."),
        {
            "C-1": before.Earlier(Verdict.NOT_TESTABLE, "rfc", "1 == 2", 0.25),
            "C-2": before.Earlier(Verdict.HOLDS, "", "1 == 1", None),
        },
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claims": {"C-1": {"verdict": "holds", "predicate": ""}}}, "'profile'"),
        ({"claims": {"C-1": {"verdict": "true", "profile": "", "predicate": ""}}}, "'true' is not a valid Verdict"),
        ({"since": 3}, "'int' object is not iterable"),
        ({"claims": {"C-1": 3}}, "'int' object is not subscriptable"),
        ({"claims": ["C-1"]}, "'list' object has no attribute 'items'"),
    ],
)
def test_a_mistake_in_the_verdicts_of_an_earlier_version_names_the_file(
    tmp_path: Path, change: Mapping[str, object], message: str
) -> None:
    path = tmp_path / before.FILE
    path.write_text(json.dumps(EARLIER | change))
    with pytest.raises(MptcplabError) as caught:
        before.load(tmp_path)
    assert str(caught.value) == f"{path}: not right: {message}"
