"""What a rerun of this page repeats, cached by content, and the first answer; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.dataset import Values
from dpcore.quantile import QuantileProblem, WeightKind, optimal_bound
from dpcore.quantile.answer.found import SEARCH_POINTS, Choices, QuantileFound, compute
from dpcore.quantile.parameters import QuantileParameters
from pages.shared.base.cache import cached

# A first answer is computed while the person waits: on two cores 3 million rows times bounds take about 0.1 s.
FIRST_CELLS, FIRST_ROWS = 3_000_000, 200_000
FIRST_SUBSAMPLES, FIRST_CAPS = 8, 6


@cached(max_entries=2, spinner="Sorting the values")
def quantile_rows(
    digest: str, base: tuple[object, ...], _parameters: QuantileParameters, _values: Values
) -> tuple[QuantileProblem, QuantileProblem | None]:
    """Return a question with its rows sorted, and the one for a first answer; ``base`` is all that the rows
    depend on.
    """
    problem = QuantileProblem(_values, 0.5, 1.0, _parameters.base_distribution())
    _ = problem.rows
    return problem, with_few_subsamples(problem)


def with_few_subsamples(problem: QuantileProblem) -> QuantileProblem | None:
    """Return the question for a first answer; None where there are too many rows for one."""
    rows = problem.values.values.size
    if rows > FIRST_ROWS:
        return None
    return problem.with_subsamples(max(min(FIRST_CELLS // (16 * rows), FIRST_SUBSAMPLES), 2))


@cached(max_entries=8)
def first_answer(
    digest: str,
    parameters: QuantileParameters,
    searched: bool,
    _few: QuantileProblem,
    _choices: Choices | None,
) -> QuantileFound:
    """Return what is shown until the exact answer is there; ``searched``: whether the best bounds are
    known.
    """
    return compute(parameters, _few, _choices or first_search(_few, parameters.asked))


def first_search(few: QuantileProblem, quantiles: tuple[float, ...]) -> Choices:
    """Return the best bounds of a first answer: among fewer bounds where there are many rows, and among few
    caps.
    """
    rows = few.values.values.size
    points, caps = (
        min(max(FIRST_CELLS // (2 * rows * times), 3), most)
        for times, most in ((1, SEARCH_POINTS), (few.rows.subsamples, FIRST_CAPS))
    )
    return Choices(
        optimal_bound.best_bound(few, WeightKind.SMOOTH, points, quantiles=quantiles),
        optimal_bound.best_bound(few, WeightKind.CAP, caps, quantiles=quantiles, all_caps=0),
    )
