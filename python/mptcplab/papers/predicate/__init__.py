"""The language of claims: a comparison of metrics, read once and evaluated on every resampled set of repetitions."""

from mptcplab.papers.predicate.evaluate import Evaluation, Fact, evaluate
from mptcplab.papers.predicate.parse import Selector, parse

__all__ = ["Evaluation", "Fact", "Selector", "evaluate", "parse"]
