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
) -> quantile.QuantileProblem:
    """A question with its rows sorted; ``base`` is all of ``_parameters`` that the rows depend on."""
    problem = quantile.QuantileProblem(_values, 0.5, 1.0, _parameters.base_distribution())
    _ = problem.rows
    return problem


@cached(max_entries=2)
def quantile_answer(
    digest: str,
    parameters: QuantileParameters,
    tried: tuple[int, int],
    _problem: quantile.QuantileProblem,
    _choices: quantile_view.Choices,
) -> quantile_view.QuantileView:
    """The Quantile page's answer. ``tried``: how many bounds the search got to, since it can be stopped."""
    return quantile_view.compute(parameters, _problem, _choices)
