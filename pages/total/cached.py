"""What a rerun of this page repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.dataset import Dataset
from dpcore.total import TotalProblem
from dpcore.total import parameters as total_parameters
from dpcore.total import strategies as total_strategies
from dpcore.total.strategies import NoiseComparison, StrategyCurves
from pages.shared.cache import cached
from pages.total import answer as total_view
from pages.total import signed
from pages.total import strategies as total_strategies_view


@cached(max_entries=8)
def held_totals(
    digest: str, summed: total_parameters.Summed, _dataset: Dataset
) -> total_parameters.UserTotals:
    """What every user adds to the sum."""
    return total_parameters.user_totals(_dataset, summed)


def total_answer(
    data: Dataset, held: total_parameters.UserTotals, asked: total_parameters.TotalParameters
) -> total_view.TotalView:
    """The answer of Sum and count, where no total is negative."""
    return _total_answer(
        data.digest, _only(asked, "measure"), held, _axis_limits(data.digest, asked.summed, held)
    )


@cached(max_entries=16)
def _total_answer(
    digest: str,
    parameters: total_parameters.TotalParameters,
    _held: total_parameters.UserTotals,
    _limits: total_view.Limits,
) -> total_view.TotalView:
    return total_view.compute(_held, parameters, _limits)


@cached(max_entries=4)
def _axis_limits(
    digest: str, summed: total_parameters.Summed, _held: total_parameters.UserTotals
) -> total_view.Limits:
    assert _held.amounts is not None
    return total_view.axis_limits(_held.amounts)


def signed_answer(
    data: Dataset, held: total_parameters.UserTotals, asked: total_parameters.TotalParameters
) -> signed.SignedView:
    """The answer of Sum and count, where some totals are negative."""
    return _signed_answer(data.digest, _only(asked, "lower", "upper"), held)


@cached(max_entries=16)
def _signed_answer(
    digest: str, parameters: total_parameters.TotalParameters, _held: total_parameters.UserTotals
) -> signed.SignedView:
    return signed.compute(_held, parameters)


def _only(asked: total_parameters.TotalParameters, *names: str) -> total_parameters.TotalParameters:
    """What an answer depends on; a bound of the person's own, say, moves a marker only and is no part of a key."""
    kept = ("epsilon", "summed", "mechanism", "delta", *names)
    return total_parameters.TotalParameters(**{name: getattr(asked, name) for name in kept})


@cached(max_entries=16)
def noise_comparison(
    digest: str,
    summed: total_parameters.Summed,
    epsilon: float,
    measure: Measure,
    delta: float,
    _problem: TotalProblem,
) -> NoiseComparison:
    """The best bound under either noise."""
    return total_strategies.compare_noises(_problem, delta)


@cached(max_entries=16)
def strategy_curves(
    digest: str,
    summed: total_parameters.Summed,
    noise: tuple[NoiseKind, float | None],
    measure: Measure,
    share: float,
    _problem: TotalProblem,
) -> StrategyCurves:
    """Relative error of four strategies over epsilon."""
    return total_strategies_view.curves_of_strategies(_problem, share)
