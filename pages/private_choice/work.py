"""The cached work of this page, and the simulated copies, which are jobs beside the page.

The curves before stand until the new ones are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpcore.answer.stage import Stage
from dpcore.common.progress import ShouldStop
from dpcore.data.totals_per_user import amounts_of
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, comparison, release_bounds
from dpcore.private_choice.choice import ChoiceRegret
from dpcore.private_choice.comparison import Copies, Leak
from dpcore.private_choice.parameters import PrivateParameters
from pages.private_choice.question import QUESTION
from pages.shared.base.cache import cached
from pages.shared.fields import jobs
from pages.shared.fields.search import Search
from pages.shared.session import session

CURVES, USERS = Search[Copies](QUESTION.key("curves_job")), Search[Copies](QUESTION.key("users_job"))

forecasts = cached(max_entries=16)(choice.forecast)
range_costs = cached(max_entries=16)(release_bounds.compare_ways)


@cached(max_entries=16)
def _direct_over_epsilon(digest: str, without_budget: PrivateParameters, _dataset: Dataset) -> ChoiceRegret:
    return comparison.direct_over_epsilon(without_budget, _dataset.histogram)


@cached(max_entries=16)
def solve(digest: str, parameters: PrivateParameters, _dataset: Dataset) -> comparison.PrivateSolution:
    """Return the solution without simulation."""
    curve = _direct_over_epsilon(digest, comparison.without_budget(parameters), _dataset)
    return comparison.compute(_dataset, parameters, curve)


@cached(max_entries=16)
def direct_over_users(digest: str, parameters: PrivateParameters, _dataset: Dataset) -> ChoiceRegret:
    """Return the exact costs over numbers of users."""
    return comparison.direct_over_users(parameters, _dataset.histogram)


@cached(max_entries=16)
def leak(digest: str, without_budget: PrivateParameters, _dataset: Dataset) -> Leak:
    """Return the effect of one more user on the number chosen in the clear."""
    return comparison.leak(_dataset.histogram, without_budget)


@cached(max_entries=16)
def dropped_cells(digest: str, _dataset: Dataset) -> dict[str, int]:
    """Return the numbers of cells of these data that a selection leaves out or counts as 0."""
    return amounts_of(_dataset).dropped


def copies_over_epsilon(data: Dataset, parameters: PrivateParameters) -> Copies:
    """Return the costs of copies over budgets of the choice, as far as they are known."""
    histogram, (key, previous) = data.histogram, CURVES.get_last_result() or (None, Copies())
    same = (
        key is not None and _curve_key(*key) == _curve_key(data.digest, parameters) and not previous.cancelled
    )
    curve = previous.over_epsilon if same else ()
    _simulate(
        CURVES,
        data,
        parameters,
        lambda progress, stop: comparison.simulate(histogram, parameters, curve, progress, stop),
    )
    result = CURVES.get_state(lambda key: bool(key[0] == data.digest))
    if result.value is None:
        return Copies()
    return (
        result.value
        if result.stage is Stage.FINAL
        else replace(result.value, at_budget=None, earlier=not same)
    )


def copies_over_users(data: Dataset, parameters: PrivateParameters) -> Copies:
    """Return the costs of copies over numbers of users."""
    histogram = data.histogram

    def simulate(progress: jobs.Progress, stop: ShouldStop) -> Copies:
        return comparison.copy_curves(parameters, histogram, progress, stop, epsilons=())

    _simulate(USERS, data, parameters, simulate)
    return USERS.get_state().value or Copies()


def _simulate(
    search: Search[Copies],
    data: Dataset,
    parameters: PrivateParameters,
    simulate: Callable[[jobs.Progress, ShouldStop], Copies],
) -> None:
    """Simulate beside the page, unless it was done before."""
    key, for_all = (data.digest, parameters), session.is_same_for_all()
    search.ask(key, simulate, lambda curves: not curves.cancelled, for_all, light=True)


def _curve_key(digest: str, parameters: PrivateParameters) -> tuple[str, PrivateParameters]:
    return digest, comparison.without_budget(parameters)
