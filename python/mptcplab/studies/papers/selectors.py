"""From what a predicate or a figure asks for to numbers: one per repetition, of the cells that were run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np
import polars as pl

from mptcplab.errors import MptcplabError, with_hint
from mptcplab.metrics.fairness import jain_index
from mptcplab.studies.papers.catalog import Experiment, Profile
from mptcplab.studies.papers.planner import METRICS, SOCKET, Planner
from mptcplab.studies.papers.treatments import MULTIPATH
from mptcplab.study.cell import Cell
from mptcplab.study.values import CellValues, NotTestableError, Source
from mptcplab.trace.topology import Flow, Topology

_IDEALS = {"maxmin_connection": "ideal", "maxmin_subflow": "ideal_subflow", "propfair": "ideal_propfair"}
# Names in predicates whose metric has another name, and the factor from its unit to the predicate's.
_PERCENT = 0.01
_RENAMED = {"pearson": ("rtt_correlation", 1.0), "region_bc_share": ("decrease_mild", _PERCENT)}
_KBPS_PER_MBPS = 125.0
_KNOWN = {*METRICS, *_RENAMED, "jain", "loss_ratio", "ratio", "ratio_wire", "share", "pkt_share"}
_KNOWN |= {"throughput_kBps", "subflows"}
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
                with_hint(f"no such metric in claims: {metric!r}", f"one of {', '.join(sorted(_KNOWN))}")
            )
        for key in keys:
            _one_of("key", key, _KEYS)
        chosen = self._chosen_cell(keys)
        chosen.check(keys)
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
        label = keys.get("cc") or own.algorithms[0]
        point = _one_of("sweep", keys.get("sweep") or own.labels[0], own.labels)
        profile = _one_of("profile", keys.get("profile") or self.profile or own.profile, get_args(Profile))
        variant = _one_of("variant", keys.get("variant", ""), ("", *own.variants))
        cell = Cell(own.id, label, point, profile, variant)
        return _ChosenCell(own, self.planner.spec(cell).topology, self.source.values(cell))


def _one_of(key: str, value: str, known: Iterable[str]) -> str:
    if value not in known:
        hint = f"one of {', '.join(sorted(name for name in known if name))}"
        raise MptcplabError(with_hint(f"no such {key} in claims: {value!r}", hint))
    return value


def _described(keys: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in keys.items())


@dataclass(frozen=True)
class _ChosenCell:
    """The values of one cell, with its flows and subflows."""

    experiment: Experiment
    topology: Topology
    values: CellValues | None

    def check(self, keys: Mapping[str, str]) -> None:
        """Refuse what the experiment does not have: a mistake in a claim must not look like a missing value."""
        if span := _span(keys):
            _one_of("part of the run", span, self.experiment.spans)
        for key in ("link", "links"):
            for link in keys[key].split("/") if key in keys else ():
                _one_of(key, link, self.topology.links)
        for flow in self._flows(keys) if "sf" in keys else ():
            for part in keys["sf"].split("+"):
                _one_of(f"subflow of {flow.name}", part, [subflow.name for subflow in flow.subflows])

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
        named = keys.get("flows", "default")
        if named.startswith("["):
            groups: tuple[tuple[str, ...], ...] = (tuple(name.strip() for name in named[1:-1].split(",")),)
        elif named in self.experiment.fairness:
            groups = self.experiment.fairness[named]
        else:
            groups = (tuple(flow.name for flow in self.topology.connections),)
        columns = []
        for group in groups:
            rates = np.stack([self._rate(name, _span(keys)) for name in group])
            repetitions = np.broadcast_to(np.arange(rates.shape[1]), rates.shape)
            frame = pl.DataFrame({"rep": repetitions.ravel(), "rate": rates.ravel()})
            found = frame.group_by("rep", maintain_order=True).agg(jain_index(pl.col("rate")))
            # A repetition in which nobody got anything has no index.
            columns.append(found["rate"].to_numpy())
        return np.asarray(np.mean(columns, axis=0))

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
        if name == "*":
            chosen = flows
        elif name == "tcp_active":
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
