"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.data.user_amounts import amounts_of
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison, range_cost
from dpcore.private_choice import forecast as public_forecast
from dpcore.private_choice.answer import found as core
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.release_bounds import BoundDraw
from pages.shared.base.cache import cached


@cached(max_entries=16)
def over_epsilon(digest: str, without_budget: PrivateParameters, _dataset: Dataset) -> ChoiceRegret:
    """Exact costs over budgets of the choice, on which they do not depend."""
    return comparison.direct_over_epsilon(without_budget, _dataset.histogram)


@cached(max_entries=16)
def found(digest: str, parameters: PrivateParameters, _dataset: Dataset) -> core.PrivateFound:
    """Return what is found without simulation."""
    return core.compute(_dataset, parameters, over_epsilon(digest, core.without_budget(parameters), _dataset))


@cached(max_entries=16)
def over_users(digest: str, parameters: PrivateParameters, _dataset: Dataset) -> ChoiceRegret:
    """Exact costs over numbers of users."""
    return comparison.direct_over_users(parameters, _dataset.histogram)


@cached(max_entries=16)
def leak(digest: str, without_budget: PrivateParameters, _dataset: Dataset) -> core.Leak:
    """Return how one user more moves the number chosen in the clear."""
    return core.leak(_dataset.histogram, without_budget)


@cached(max_entries=16)
def forecasts(parameters: PrivateParameters | BoundDraw) -> tuple[public_forecast.Forecast, ...]:
    """Return what a draw costs on public samples."""
    return public_forecast.forecast(parameters)


@cached(max_entries=16)
def range_ways(problem: RangeProblem, users: float) -> range_cost.RangeWays:
    """Return what ways to a range cost on public samples."""
    return range_cost.ways(problem, users)


@cached(max_entries=16)
def dropped_cells(digest: str, _dataset: Dataset) -> dict[str, int]:
    """Return what a selection leaves out or counts as 0 of these data."""
    return amounts_of(_dataset).dropped
