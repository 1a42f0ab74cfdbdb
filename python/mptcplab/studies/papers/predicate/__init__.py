"""The language of claims: a comparison of metrics, read once and evaluated on every resampled set of repetitions."""

from mptcplab.studies.papers.predicate.evaluate import Evaluation, Fact, evaluate
from mptcplab.studies.papers.predicate.parse import Selector, parse

__all__ = ["Evaluation", "Fact", "Selector", "evaluate", "parse"]
