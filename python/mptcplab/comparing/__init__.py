"""Two results, or two algorithms of one result, side by side: the differences of all metrics, with intervals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from mptcplab.arguments import texts
from mptcplab.errors import MptcplabError, ResultsError, with_hint
from mptcplab.merging import setup, setup_differences
from mptcplab.metrics import REGISTRY, compute, find
from mptcplab.metrics.differences import compared, is_relative, of_means, of_pairs
from mptcplab.paths import path_of
from mptcplab.results import Results
from mptcplab.scenario import as_names
from mptcplab.text import Table, counted, mean_and_interval, number, some_of

# The metrics of tables and pages unless asked for others.
SHOWN = ("goodput", "rtt_mean", "retx_rate", "rto_count", "total_goodput", "jain")
_ENTITY = ("flow", "subflow", "link")
_KEYS = ("config", "metric", *_ENTITY)
# The first of two results, which is the reference.
_A, _B = "a", "b"
# So many differences of scenarios are listed, and so many names of configurations.
_SHOWN, _NAMED = 5, 6
# Letters of a name in a legend.
_LONGEST_NAME = 24
# Digits behind the point of a difference.
_MOST_DIGITS = 9
# The columns of `Comparison.differences`.
SCHEMA = pl.Schema(
    {
        **dict.fromkeys(_KEYS, pl.String),
        "unit": pl.String,
        "paired": pl.Boolean,
        "n_a": pl.UInt32,
        "n_b": pl.UInt32,
        "mean_a": pl.Float64,
        "mean_b": pl.Float64,
        "difference": pl.Float64,
        "half": pl.Float64,
    }
)


# The columns of `Comparison.values`.
VALUES = pl.Schema(
    {**dict.fromkeys(("config", "side", "pair", "metric", *_ENTITY), pl.String), "value": pl.Float64},
)


@dataclass(frozen=True)
class About:
    """What one of the results is: its directory, and of the runs that count their number and what they are."""

    directory: str
    titles: tuple[str, ...]
    engines: tuple[str, ...]
    builds: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: int


@dataclass(frozen=True)
class Comparison:
    """The differences between two results, or between two algorithms of one result.

    `differences` has a row per configuration, metric and entity: config, metric, flow, subflow, link, unit, paired,
    n_a, n_b, mean_a, mean_b, difference, half. `difference` is mean_b - mean_a in percent of mean_a, or in the unit of
    a metric that is a fraction itself; `half` is half of its 95 % interval, null with fewer than two repetitions.
    `notes` say in what the results differ besides their numbers. `values` has the value of every repetition: config,
    side ("a" or "b"), pair, metric, flow, subflow, link, value. The words of `command` make the comparison again;
    `about` and `names` say what the sides are, the latter in a legend.
    """

    a: str
    b: str
    differences: pl.DataFrame
    notes: list[str]
    title: str = ""
    names: tuple[str, str] = ("A", "B")
    command: tuple[str, ...] = ()
    about: tuple[About, ...] = ()
    values: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=VALUES), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {"a": self.a, "b": self.b, "notes": self.notes, "differences": self.differences.to_dicts()}

    def table(self, metrics: Iterable[str]) -> Table:
        """The differences of some metrics as text."""
        # A terminal that is too narrow shows the first columns.
        head = [("Algorithm", ""), ("Metric", ""), ("Flow", ""), ("Subflow", ""), ("Difference", "")]
        head += [("A", ""), ("B", ""), ("Pairs", "")]
        rows = self.differences.filter(pl.col("metric").is_in(list(metrics)))
        star = (
            "The 95 % interval of a difference with * does not contain 0; if A and B did not differ, that would be so "
            "in 1 of 20 rows."
        )
        notes = (*self.notes, star)
        cells = tuple(_cells(row) for row in rows.iter_rows(named=True))
        return Table(tuple(head), cells, notes if "*" in str(cells) else tuple(self.notes))

    def report(self, path: str | PathLike[str], metrics: str | Iterable[str] = SHOWN) -> Path:
        """Write a page about it, a single HTML file that needs nothing else, and return its path.

        `metrics` are those of its table and figures, by name; all others are in a table at its end. An earlier page of
        a comparison is replaced, and no other file.
        """
        from mptcplab.comparing.page import write_comparison

        names = [find(name).name for name in texts("metrics", metrics, "goodput")]
        if not names:
            raise MptcplabError(with_hint("metrics: none is named", "such as goodput, or leave the argument out"))
        return write_comparison(self, path_of(path, "path"), list(dict.fromkeys(names)))


def compare(
    a: str | PathLike[str], b: str | PathLike[str] | None = None, *, cc: str | Iterable[str] | None = None
) -> Comparison:
    """Compare the results of two directories, configuration by configuration; `a` is the reference.

    Where both have the same seeds and repetitions, differences are taken in pairs; elsewhere the means are compared,
    with Welch's interval. If each has one configuration only, these are compared whatever their names are. With `cc`
    instead of `b`, two algorithms of one result are compared, the first of which is the reference, for every
    combination of the other axes. The method `report` of what is returned writes a page with figures.

    >>> import mptcplab, tempfile
    >>> place, scenario = tempfile.mkdtemp(), "scenarios/dolia-scenario-1.toml"
    >>> for cc in ("lia", "reno"):
    ...     _ = mptcplab.run(scenario, cc, 3, duration="12 s", out=f"{place}/{cc}")
    >>> found = mptcplab.compare(f"{place}/lia", f"{place}/reno")
    >>> found.differences.filter(metric="goodput", flow="mp")["paired"].unique().to_list()
    [True]
    >>> _ = mptcplab.run(scenario, "lia,reno", 3, duration="12 s", out=f"{place}/both")
    >>> mptcplab.compare(f"{place}/both", cc="lia,reno").differences["config"].unique().to_list()
    ['lia → reno']
    """
    if b is None or cc is not None:
        return _of_one_result(a, b, cc)
    paths = [path_of(path, name) for path, name in ((a, _A), (b, _B))]
    results = [Results.open(path) for path in paths]
    sides = [_Side.of(one) for one in results]
    common = [name for name in sides[0].configs if name in sides[1].configs]
    names = {name: (name, name) for name in common} | _renamed(sides)
    if not common and all(len(side.configs) == 1 for side in sides):
        one, other = sides[0].configs[0], sides[1].configs[0]
        names = {f"{one} \N{RIGHTWARDS ARROW} {other}": (one, other)}
    if not names:
        hint = "; ".join(f"{path} has {some_of(side.configs, _NAMED)}" for path, side in zip(paths, sides, strict=True))
        raise ResultsError(with_hint(f"nothing to compare: {paths[0]} and {paths[1]} have no run in common", hint))
    rows, values = _of_configs(sides, names)
    left = [
        sum(name not in {pair[at] for pair in names.values()} for name in side.configs) for at, side in enumerate(sides)
    ]
    return Comparison(
        str(paths[0]),
        str(paths[1]),
        rows,
        _notes(sides, names, left),
        names=_short_names(*(path.resolve().name for path in paths)),
        title=f"Comparison of {paths[0]} and {paths[1]}",
        command=("mptcplab", "compare", *map(str, paths)),
        about=tuple(side.about([pair[at] for pair in names.values()]) for at, side in enumerate(sides)),
        values=values,
    )


def _of_one_result(
    directory: str | PathLike[str], other: str | PathLike[str] | None, cc: str | Iterable[str] | None
) -> Comparison:
    if other is not None or cc is None:
        hint = "name two results directories; or one of them, and with --cc (in Python cc) two of its algorithms"
        raise ResultsError(
            with_hint("compare needs either a second directory or two algorithms of the first one", hint)
        )
    two = as_names(cc, "cc", "lia,olia")
    if len(set(two)) != 2 or len(two) != 2:
        raise ResultsError(with_hint(f"cc: {','.join(two)!r} does not name two algorithms", "for example lia,olia"))
    path = path_of(directory, _A)
    side = _Side.of(Results.open(path))
    names = side.of_algorithms(*two)
    if not names:
        known = side.runs["cc"].unique(maintain_order=True).to_list()
        hint = f"its algorithms are {some_of(known, _NAMED)}"
        raise ResultsError(with_hint(f"nothing to compare: {path} has no runs of {two[0]} and {two[1]} that fit", hint))
    rows, values = _of_configs([side, side], names)
    return Comparison(
        f"{two[0]} of {path}",
        f"{two[1]} of {path}",
        rows,
        _excluded([side], ["it"]),
        names=_short_names(*two),
        title=f"Comparison of {two[0]} and {two[1]}",
        command=("mptcplab", "compare", str(path), "--cc", ",".join(two)),
        about=tuple(side.about([pair[at] for pair in names.values()]) for at in range(2)),
        values=values,
    )


def _short_names(one: str, other: str) -> tuple[str, str]:
    """The sides in a legend, which has no room for long names, or for two that are the same.

    >>> _short_names("lia", "olia"), _short_names("results", "results")
    (('A: lia', 'B: olia'), ('A', 'B'))
    """
    if one == other or max(len(one), len(other)) > _LONGEST_NAME:
        return "A", "B"
    return f"A: {one}", f"B: {other}"


@dataclass(frozen=True)
class _Side:
    """One of the results: its values, and the run table with the name of every configuration."""

    results: Results
    runs: pl.DataFrame
    values: pl.DataFrame

    @classmethod
    def of(cls, results: Results) -> _Side:
        excluded = [run.run for run in results.excluded_runs]
        configs = results.configs.select("run", "config")
        runs = results.runs.join(configs, on="run", maintain_order="left").filter(~pl.col("run").is_in(excluded))
        pair = pl.format("{} {}", "seed", "rep").alias("pair")
        return cls(results, runs.with_columns(pair), compute(results))

    @property
    def configs(self) -> list[str]:
        return self.results.configs["config"].unique(maintain_order=True).to_list()

    def of_config(self, name: str) -> pl.DataFrame:
        return self.runs.filter(config=name)

    def of_algorithms(self, one: str, other: str) -> dict[str, tuple[str, str]]:
        """Pairs of configurations that differ in the algorithm only."""
        rows = self.runs.unique("config", keep="first", maintain_order=True)
        named = {}
        for cc, axes, engine, config in rows.select("cc", "axes", "engine", "config").iter_rows():
            rest = {key: value for key, value in json.loads(axes).items() if key != "cc"}
            named[cc, json.dumps(rest), engine] = config
        pairs = [
            (config, named[other, rest, engine])
            for (cc, rest, engine), config in named.items()
            if cc == one and (other, rest, engine) in named
        ]
        return {
            f"{one} \N{RIGHTWARDS ARROW} {other}{config.removeprefix(one)}": (config, found) for config, found in pairs
        }

    def about(self, configs: Iterable[str]) -> About:
        """What is compared of it: the runs of these configurations."""
        runs = self.runs.filter(pl.col("config").is_in(list(configs)))

        def distinct(column: str) -> tuple[Any, ...]:
            return tuple(runs[column].unique(maintain_order=True))

        engines = runs.select(pl.format("{} {}", "engine", "engine_version").unique(maintain_order=True)).to_series()
        titles = tuple(
            title or name for title, name in runs.select("title", "scenario").unique(maintain_order=True).rows()
        )
        return About(
            directory=str(self.results.directory),
            titles=titles,
            engines=tuple(engines),
            builds=distinct("build"),
            seeds=distinct("seed"),
            runs=runs.height,
        )

    def setups(self) -> dict[str, tuple[str, str]]:
        """The engine and the scenario of every configuration that has runs."""
        rows = self.runs.unique("config", keep="first", maintain_order=True).select("config", "engine", "resolved")
        return {name: (engine, json.dumps(setup(text))) for name, engine, text in rows.iter_rows()}


def _renamed(sides: list[_Side]) -> dict[str, tuple[str, str]]:
    """Configurations that are the same under two names.

    Runs of a file that has its algorithm in it have the names of all flows' algorithms, such as lia+reno, and runs of a
    command that names algorithms have the name of one of them.
    """
    ones, others = (side.setups() for side in sides)
    free = {what: name for name, what in others.items() if name not in ones}
    names = [(name, free.pop(what)) for name, what in ones.items() if name not in others and what in free]
    return {f"{name} = {other}": (name, other) for name, other in names}


def _of_configs(sides: list[_Side], names: dict[str, tuple[str, str]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The differences of pairs of configurations, and the values behind them."""
    found = [_of_config(sides, label, pair) for label, pair in names.items()]
    rows, values = (pl.concat(frames) for frames in zip(*found, strict=True))
    return rows, values


def _of_config(sides: list[_Side], label: str, names: tuple[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The differences of one configuration, and the values behind them."""
    runs = [side.of_config(name) for side, name in zip(sides, names, strict=True)]
    pairs = [sorted(one["pair"]) for one in runs]
    paired = pairs[0] == pairs[1] and len(set(pairs[0])) == len(pairs[0])
    found = pl.concat(
        side.values.join(one.select("run", rep="pair"), on="run").with_columns(engine=pl.lit(name))
        for side, one, name in zip(sides, runs, (_A, _B), strict=True)
    )
    # Nulls would match no row in a join.
    found = found.drop_nulls("value").with_columns(config=pl.lit(label))
    values = found.select("config", "metric", *_ENTITY, "value", side="engine", pair="rep")
    found = found.with_columns(pl.col(_ENTITY).fill_null(""))
    error = of_pairs if paired else of_means
    rows = compared(error(found, _A, (*_KEYS, "engine")))
    rows = rows.rename({"reference": "mean_a", "mean": "mean_b", "n_reference": "n_a", "n": "n_b"})
    rows = rows.with_columns(pl.col(_ENTITY).replace("", None), paired=pl.lit(paired))
    order = {name: at for at, name in enumerate(REGISTRY)}
    position = pl.col("metric").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    rows = rows.select(*SCHEMA).cast(SCHEMA).sort(position, maintain_order=True)
    return rows, values.select(*VALUES).cast(VALUES)


def _notes(sides: list[_Side], names: dict[str, tuple[str, str]], left: list[int]) -> list[str]:
    """In what the results differ besides their numbers."""
    notes = []
    for what, column in (("engine", "engine"), ("build", "build"), ("version", "engine_version")):
        one, other = (side.results.runs[column].unique(maintain_order=True).to_list() for side in sides)
        if sorted(one) != sorted(other):
            notes.append(f"the {what} differs: {', '.join(one)} in A, {', '.join(other)} in B")
    for label, pair in names.items():
        texts = [side.of_config(name)["resolved"] for side, name in zip(sides, pair, strict=True)]
        if all(len(text) for text in texts):
            found = [
                text for text in setup_differences(setup(texts[0][0]), setup(texts[1][0])) if not _is_told(text, pair)
            ]
            more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
            if found:
                notes.append(f"the scenario of {label} differs: {'; '.join([*found[:_SHOWN], *more])}")
    for name, number_left in zip("AB", left, strict=True):
        if number_left:
            are = "is" if number_left == 1 else "are"
            notes.append(f"{counted(number_left, 'configuration')} of {name} {are} not in the other one")
    return notes + _excluded(sides, "AB")


def _is_told(difference: str, names: tuple[str, str]) -> bool:
    """Whether a difference is said already: by the names of what is compared, or by the text of an algorithm.

    >>> _is_told('flows.mp.cc.text: "lia" and "olia"', ("lia", "olia"))
    True
    >>> _is_told('flows.mp.cc.text: "lia" and "olia"', ("lia+reno", "olia+reno"))
    False
    >>> _is_told('flows.mp.cc.name: "lia" and "olia"', ("lia+reno", "olia+reno"))
    True
    """
    key, _, values = difference.partition(": ")
    one, other = map(json.dumps, names)
    is_named = key.endswith(".cc.text") and values == f"{one} and {other}"
    return is_named or key.endswith(".cc.name") or ".cc.params_raw" in key


def _excluded(sides: list[_Side], names: Sequence[str]) -> list[str]:
    notes = []
    for name, side in zip(names, sides, strict=True):
        if excluded := len(side.results.excluded_runs):
            notes.append(f"{counted(excluded, 'run')} in {name} {'does' if excluded == 1 else 'do'} not count")
    return notes


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    metric = REGISTRY[row["metric"]]
    unit = f" {metric.unit}" if metric.unit else ""
    difference, half = row["difference"], row["half"]
    shown = "\N{EN DASH}"
    if difference is not None:
        relative = is_relative(metric.name)
        # A difference of two percentages is no percentage.
        in_unit = " %" if relative else " points" if metric.unit else ""
        sign = "+" if difference > 0 else ""
        certain = " *" if half is not None and abs(difference) > half else ""
        least = 1 if relative else metric.digits + 1
        digits = _digits(difference, least) if certain else least
        shown = f"{sign}{mean_and_interval(difference, half, digits)}{in_unit}{certain}"
    means = [number(row[name], metric.digits, metric.unit) + unit for name in ("mean_a", "mean_b")]
    entity = row["subflow"] or row["link"] or ""
    return (
        row["config"],
        metric.title,
        row["flow"] or "",
        entity,
        shown,
        *means,
        f"{row['n_b']}" if row["paired"] else "no",
    )


def _digits(value: float, least: int) -> int:
    """So many digits behind the point that a value is not shown as zero.

    >>> _digits(-0.0004, 3), _digits(0.25, 3)
    (4, 3)
    """
    return next((digits for digits in range(least, _MOST_DIGITS) if round(value, digits)), _MOST_DIGITS)
