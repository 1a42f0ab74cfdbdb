"""From what a predicate or a figure asks for to numbers: one per repetition, of the cells that were run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import get_args

import numpy as np
import polars as pl

from mptcplab.errors import MptcplabError, with_hint, within
from mptcplab.metrics.fairness import jain_index
from mptcplab.studies.papers.catalog import Experiment, FigureSpec, Profile
from mptcplab.studies.papers.planner import METRICS, SOCKET, Planner
from mptcplab.studies.papers.treatments import MULTIPATH
from mptcplab.study.cell import Cell
from mptcplab.study.values import CellValues, DependencyRecorder, NotTestableError, Source
from mptcplab.trace.topology import Flow, Topology

_IDEALS = {"maxmin_connection": "ideal", "maxmin_subflow": "ideal_subflow", "propfair": "ideal_propfair"}
# Names in predicates whose metric has another name, and the factor from its unit to the predicate's.
_PERCENT = 0.01
_RENAMED = {"pearson": ("rtt_correlation", 1.0), "region_bc_share": ("decrease_mild", _PERCENT)}
_KBPS_PER_MBPS = 125.0
_KNOWN = {*METRICS, *_RENAMED, "jain", "loss_ratio", "ratio", "ratio_wire", "share", "pkt_share"}
_KNOWN |= {"throughput_kBps", "subflows"}
# Keys without which a metric has no meaning, with what they are, and how many links `links` names there.
_NEEDED = {
    "ideal": ("kind", f"one of {', '.join(_IDEALS)}"),
    "loss": ("link", "a link"),
    "utilisation": ("link", "a link"),
    "loss_ratio": ("links", "two links, such as A/B"),
}
_LINKS = 2
# Words in place of the name of a flow, and of a set of flows.
_ANY, _ACTIVE = "*", "tcp_active"
_SETS = ("default", "all")
_KEYS = ("exp", "cc", "flow", "sf", "link", "links", "flows", "sweep", "bin", "phase", "profile", "variant", "kind")


@dataclass(frozen=True)
class SelectorResolver:
    """Resolves selectors such as `goodput{cc=lia,flow=mp}` for one experiment in one profile."""

    planner: Planner
    source: Source
    experiment: Experiment
    # Instead of each experiment's own profile; None leaves it.
    profile: str | None = None

    def __call__(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        """The values of a selector, one per repetition. Raises `NotTestableError` where there are none."""
        if metric not in _KNOWN:
            raise MptcplabError(
                with_hint(f"no such metric in claims and figures: {metric!r}", f"one of {', '.join(sorted(_KNOWN))}")
            )
        for key in keys:
            _one_of("key", key, _KEYS)
        chosen = self._chosen_cell(keys)
        chosen.check(metric, keys)
        if chosen.values is None:
            return np.ones(2)
        found, where = chosen.select(metric, keys), f"{chosen.experiment.id} ({_described(keys)})"
        if np.isnan(found).all() and metric in SOCKET:
            raise NotTestableError(f"{metric}: only kernel engines have a socket of the connection, which iperf3 reads")
        if np.isnan(found).all():
            raise NotTestableError(f"{metric} has no value in {where}")
        # A repetition without a value (an invalid run, a file that did not arrive) must not decide by being left out.
        if np.isnan(found).any():
            missing = f"{int(np.isnan(found).sum())} of {len(found)} repetitions"
            raise NotTestableError(f"{metric} is missing in {missing} of {where}")
        return found

    def _chosen_cell(self, keys: Mapping[str, str]) -> _ChosenCell:
        library = self.planner.library
        name = _one_of("exp", keys.get("exp", self.experiment.id), library.experiments)
        own = library.source(library.experiments[name])
        label = keys.get("cc") or next(iter(own.algorithms), "")
        if not label:
            raise MptcplabError(with_hint(f"{own.id} has no algorithms", "write cc=NAME, or give it algorithms"))
        point = _one_of("sweep", keys.get("sweep") or own.labels[0], own.labels)
        profile = _one_of("profile", keys.get("profile") or self.profile or own.profile, get_args(Profile))
        variant = _one_of("variant", keys.get("variant", ""), ("", *own.variants))
        cell = Cell(own.id, label, point, profile, variant)
        return _ChosenCell(own, self.planner.spec(cell).topology, self.source.values(cell))


def check_figures(planner: Planner, experiment: Experiment) -> None:
    """Refuse a figure of what the experiment does not have, before anything is run for it."""
    file, name = experiment.scenario.parent / "paper.toml", f"experiments.{experiment.id}"
    if experiment.figures and not planner.library.source(experiment).algorithms:
        raise MptcplabError(
            with_hint(f"{file}: {name}.algorithms: missing", "figures show the algorithms of this list")
        )
    for cell in planner.drawn_cells(experiment):
        planner.spec(cell)
    resolver = SelectorResolver(planner, DependencyRecorder(), experiment)
    for at, figure in enumerate(experiment.figures):
        with within(f"{file}: {name}.figures[{at}]", NotTestableError):
            for flow in figure.flows or (None,):
                with suppress(NotTestableError):
                    resolver(*_shown(experiment, figure, flow))


def _shown(experiment: Experiment, figure: FigureSpec, flow: str | None) -> tuple[str, dict[str, str]]:
    """What a figure shows of a flow, as metric and keys of a selector; windows and rates over time have no metric."""
    if not figure.metric and figure.kind != "time":
        raise MptcplabError("metric: missing")
    metric, _, links = (figure.metric or "throughput").partition(" ")
    keys = {"links": links} if links else {}
    if flow is not None:
        name, _, part = flow.partition("/")
        keys |= {"flow": name} | ({"sf": part} if part else {})
    if figure.kind == "spans":
        span = next(iter(experiment.spans), "bin 0")
        keys |= dict([span.split()])
    return metric, keys


def _one_of(key: str, value: str, known: Iterable[str]) -> str:
    if value not in known:
        hint = f"one of {', '.join(sorted(name for name in known if name))}"
        raise MptcplabError(with_hint(f"no such {key}: {value!r}", hint))
    return value


def _described(keys: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in keys.items())


@dataclass(frozen=True)
class _ChosenCell:
    """The values of one cell, with its flows and subflows."""

    experiment: Experiment
    topology: Topology
    values: CellValues | None

    def check(self, metric: str, keys: Mapping[str, str]) -> None:
        """Refuse what the experiment does not have: a mistake in a claim must not look like a missing value."""
        needed, meaning = _NEEDED.get(metric, ("", ""))
        if needed and needed not in keys:
            raise MptcplabError(with_hint(f"{metric} without {needed}", f"write {metric}{{{needed}=...}}: {meaning}"))
        if metric == "ideal":
            _one_of("kind", keys["kind"], _IDEALS)
        if metric == "loss_ratio" and len(keys["links"].split("/")) != _LINKS:
            raise MptcplabError(with_hint(f"links of {metric}: not right: {keys['links']!r}", f"it is {meaning}"))
        if span := _span(keys):
            _one_of("part of the run", span, self.experiment.spans)
        for key in ("link", "links"):
            for link in keys[key].split("/") if key in keys else ():
                _one_of(key, link, self.topology.links)
        if "flow" in keys:
            self._check_flow(keys)
        if metric == "jain":
            self._check_set(keys.get("flows", "default"))
        for flow in self._flows(keys) if "sf" in keys else ():
            for part in keys["sf"].split("+"):
                _one_of(f"subflow of {flow.name}", part, [subflow.name for subflow in flow.subflows])

    def _check_flow(self, keys: Mapping[str, str]) -> None:
        names = [flow.name for flow in self.topology.connections]
        groups = [name.rpartition("-")[0] for name in names]
        _one_of("flow", keys["flow"], dict.fromkeys([*names, *groups, _ANY, _ACTIVE]))
        if keys["flow"] == _ACTIVE and not _span(keys):
            hint = "write bin=N or phase=N: the part of the run in which they send"
            raise MptcplabError(with_hint(f"flow={_ACTIVE} without a part of the run", hint))

    def _check_set(self, named: str) -> None:
        """A set of flows that Jain's index is over: one with a name, or the flows and subflows themselves."""
        if not named.startswith("["):
            _one_of("flows", named, dict.fromkeys([*_SETS, *self.experiment.fairness]))
        for group in self._groups(named):
            for name in group:
                _one_of("flow or subflow", name, self._rated())

    def _rated(self) -> list[str]:
        """What Jain's index may be over: flows, FLOW/SUBFLOW, and subflows of the multipath connection."""
        flows = self.topology.connections
        own = [part.name for flow in flows if flow.name == MULTIPATH for part in flow.subflows]
        parts = [f"{flow.name}/{part.name}" for flow in flows for part in flow.subflows]
        return list(dict.fromkeys([*(flow.name for flow in flows), *own, *parts]))

    def select(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        if metric in _RENAMED:
            name, scale = _RENAMED[metric]
            return scale * self._get(name, keys)
        if metric == "ideal":
            return self._get(_IDEALS[keys["kind"]], keys)
        if metric == "jain":
            return self._jain(keys)
        if metric == "loss_ratio":
            one, other = (self._value("loss", link=link) for link in keys["links"].split("/"))
            found: np.ndarray = np.divide(one, other, out=np.full_like(one, np.nan), where=other > 0)
            return found
        if metric == "utilisation":
            return _PERCENT * self._value(metric, link=keys["link"])
        if metric == "loss":
            return self._value(metric, link=keys["link"])
        if metric == "subflows":
            return self._subflows(keys)
        if metric in ("ratio", "ratio_wire"):
            return self._ratio("goodput" if metric == "ratio" else "throughput", keys)
        if metric in ("share", "pkt_share"):
            return self._share("throughput" if metric == "share" else "pps", keys)
        if metric == "throughput_kBps":
            return _KBPS_PER_MBPS * self._get("throughput", keys)
        return self._get(metric, keys)

    def _get(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        """The mean over the flows that are meant; subflows joined by + add up."""
        span = _span(keys)
        parts = keys["sf"].split("+") if "sf" in keys else [None]
        columns = [
            np.sum([self._value(metric, flow=flow.name, subflow=part, span=span) for part in parts], axis=0)
            for flow in self._flows(keys)
        ]
        found: np.ndarray = np.mean(columns, axis=0)
        return found

    def _value(self, metric: str, **keys: str | None) -> np.ndarray:
        assert self.values is not None
        return self.values.get(metric, **keys)  # type: ignore[arg-type]

    def _subflows(self, keys: Mapping[str, str]) -> np.ndarray:
        """The number of subflows of a flow in which data arrived, as the trace has them."""
        (flow,) = self._flows(keys)
        assert self.values is not None
        names = {key[3] for key in self.values.by_key if key[1:3] == ("pps", flow.name) and key[3] is not None}
        if not names:
            return np.full(self.values.repetitions, np.nan)
        rates = np.array([self._value("pps", flow=flow.name, subflow=name) for name in sorted(names)])
        # A repetition without a value was not measured: it has no number of subflows.
        found: np.ndarray = np.where(np.isnan(rates).all(axis=0), np.nan, (rates > 0).sum(axis=0))
        return found

    def _ratio(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        columns = []
        for flow in self._flows(keys):
            ideal = self.experiment.ideal.get(flow.name)
            if ideal is None:
                raise NotTestableError(f"{self.experiment.id}: the paper names no ideal for {flow.name}")
            columns.append(self._value(metric, flow=flow.name) / ideal)
        found: np.ndarray = np.mean(columns, axis=0)
        return found

    def _share(self, metric: str, keys: Mapping[str, str]) -> np.ndarray:
        whole = {key: value for key, value in keys.items() if key != "sf"}
        found: np.ndarray = self._get(metric, keys) / self._get(metric, whole)
        return found

    def _jain(self, keys: Mapping[str, str]) -> np.ndarray:
        """Jain's index of throughputs, the mean over the groups of the set that is named."""
        columns = []
        for group in self._groups(keys.get("flows", "default")):
            rates = np.stack([self._rate(name, _span(keys)) for name in group])
            repetitions = np.broadcast_to(np.arange(rates.shape[1]), rates.shape)
            frame = pl.DataFrame({"rep": repetitions.ravel(), "rate": rates.ravel()})
            found = frame.group_by("rep", maintain_order=True).agg(jain_index(pl.col("rate")))
            # A repetition in which nobody got anything has no index.
            columns.append(found["rate"].to_numpy())
        return np.asarray(np.mean(columns, axis=0))

    def _groups(self, named: str) -> tuple[tuple[str, ...], ...]:
        if named.startswith("["):
            return (tuple(name.strip() for name in named[1:-1].split(",")),)
        if named in self.experiment.fairness:
            return self.experiment.fairness[named]
        return (tuple(flow.name for flow in self.topology.connections),)

    def _rate(self, name: str, span: str) -> np.ndarray:
        """Throughput of a flow, of FLOW/SUBFLOW, or of a subflow of the multipath connection."""
        flow, _, subflow = name.partition("/")
        if subflow:
            return self._value("throughput", flow=flow, subflow=subflow, span=span)
        if any(one.name == name for one in self.topology.flows):
            return self._value("throughput", flow=name, span=span)
        return self._value("throughput", flow=MULTIPATH, subflow=name, span=span)

    def _flows(self, keys: Mapping[str, str]) -> list[Flow]:
        """The flows that are meant: one, all of a group NAME-1, NAME-2, ..., or all of a kind."""
        name = keys.get("flow", MULTIPATH)
        flows = list(self.topology.connections)
        if name == _ANY:
            chosen = flows
        elif name == _ACTIVE:
            chosen = [flow for flow in flows if len(flow.subflows) == 1 and self._is_active(flow, _span(keys))]
        else:
            chosen = [flow for flow in flows if flow.name == name]
            chosen = chosen or [flow for flow in flows if flow.name.rpartition("-")[0] == name]
            if not chosen and "flow" not in keys:
                chosen = [flow for flow in flows if len(flow.subflows) > 1]
        if not chosen:
            raise NotTestableError(f"{self.experiment.id} has no flow {name!r}")
        return chosen

    def _is_active(self, flow: Flow, span: str) -> bool:
        """Whether a flow sends during the whole span."""
        begin, end = self.experiment.spans[span]
        stop = self.topology.duration_ns if flow.stop_ns is None else flow.stop_ns
        return flow.start_ns <= begin * 1e9 and end * 1e9 <= stop


def _span(keys: Mapping[str, str]) -> str:
    for key in ("bin", "phase"):
        if key in keys:
            return f"{key} {keys[key]}"
    return ""
