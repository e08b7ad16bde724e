"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore import mean
from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.gap_examples.answer import GapSolution, build_answer, examples, solve
from dpcore.gap_examples.answer.answer import ValueRange
from dpcore.gap_examples.compare import Comparison, compare
from dpcore.gap_examples.parameters import GapParameters
from pages.shared.base.cache import cached, cached_for_all


@cached(max_entries=16)
def _found(digest: str, asked: mean.MeanParameters, _data: Dataset) -> GapSolution:
    return solve(_data, asked)


def gap_answer(data: Dataset, parameters: GapParameters, ends: ValueRange | None) -> Answer:
    """Return the answer on the person's data; what is entered in the steps on instances is no part of what is
    kept.
    """
    return build_answer(data, parameters, _found(data.digest, parameters.mean_parameters(), data), ends)


@cached_for_all(max_entries=16)
def gap_comparison(problem: mean.MeanProblem) -> Comparison:
    """Compute both optima of an instance that does not depend on data."""
    return compare(problem)


@cached_for_all(max_entries=4)
def gap_growth(example: int) -> examples.Growth:
    """Return how the gap of a regression example grows; it depends on no data."""
    return examples.compute_growth(example)


@cached_for_all(max_entries=32)
def gap_regression(example: int, g: int) -> examples.RegressionStep:
    """Return a regression example at one g; it depends on no data."""
    return examples.solve_regression_step(example, g)
