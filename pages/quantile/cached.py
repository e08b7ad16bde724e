"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore import quantile
from dpcore.dataset import Values
from dpcore.quantile.parameters import QuantileParameters
from pages.quantile import answer as quantile_view
from pages.shared.cache import cached


@cached(max_entries=2, spinner="Sorting the values")
def quantile_rows(
    digest: str, base: tuple[object, ...], _parameters: QuantileParameters, _values: Values
) -> tuple[quantile.QuantileProblem, quantile.QuantileProblem | None]:
    """A question with its rows sorted, and the one for a first answer; ``base`` is all that the rows depend on."""
    problem = quantile.QuantileProblem(_values, 0.5, 1.0, _parameters.base_distribution())
    _ = problem.rows
    return problem, quantile_view.with_few_subsamples(problem)


@cached(max_entries=8)
def first_answer(
    digest: str,
    parameters: QuantileParameters,
    searched: bool,
    _few: quantile.QuantileProblem,
    _choices: quantile_view.Choices | None,
) -> quantile_view.QuantileView:
    """The answer that is shown until the exact one is there; ``searched``: whether the best bounds are known."""
    found = _choices or quantile_view.first_search(_few, parameters.asked)
    return quantile_view.compute(parameters, _few, found)
