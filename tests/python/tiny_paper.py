"""One experiment through the whole of a reproduction, with runs that are too short for its claims to mean anything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mptcplab.studies.papers import catalog, planner
from mptcplab.studies.papers.claims import JudgedClaim
from mptcplab.studies.papers.reproduce import reproduce


def one_experiment(engine: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> JudgedClaim:
    """Reproduce an experiment with one run of one algorithm on an engine; return its only claim."""
    root = directory / "papers"
    shutil.copytree(catalog.directory() / "dubey2023", root / "dubey2023")
    path = root / "dubey2023" / "paper.toml"
    text = path.read_text().replace("[experiments.DUB-NSB]", '[experiments.DUB-NSB]\nsettings = { duration = "11 s" }')
    all_five = 'algorithms = ["lia", "olia", "balia", "wvegas", "uncoupled-cubic"]'
    path.write_text(text.replace(all_five, 'algorithms = ["lia"]'))
    # The claim looks at four algorithms; the log of changes repeats it.
    for name in ("claims.toml", "changes.toml"):
        file = root / "dubey2023" / name
        claim = "[lia,olia,balia,uncoupled-cubic]: mean(goodput{cc=$a,flow=mp}) >= 1.7"
        assert claim in file.read_text()
        file.write_text(file.read_text().replace(claim, claim.replace("lia,olia,balia,uncoupled-cubic", "lia")))
    library = catalog.load(root)
    monkeypatch.setattr(planner, "QUICK_REPETITIONS", 1)
    papers = library.choose("dubey2023")
    (found,) = reproduce(library, papers, engine, directory / "out", experiment="DUB-NSB", quick=True)
    assert not found.outcome.refused
    assert found.planner.engine == engine
    records = [json.loads(file.read_text())["record"] for file in (directory / "out" / "store").glob("*.json")]
    assert {record["engine"] for record in records} == {engine}
    assert all(entry["cc"] == "lia" for record in records for entry in record["subflow_cc"])
    (judged,) = found.claims
    return judged
