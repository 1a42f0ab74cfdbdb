"""The language of claims: a comparison of metrics, read once and evaluated on every resampled set of repetitions."""

from mptcplab.studies.papers.predicate.evaluate import Domain, Evaluation, Fact, Lookup, evaluate, look_up, value
from mptcplab.studies.papers.predicate.parse import parse

__all__ = ["Domain", "Evaluation", "Fact", "Lookup", "evaluate", "look_up", "parse", "value"]
