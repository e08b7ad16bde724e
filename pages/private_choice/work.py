"""The cached work of this page, and the simulated copies, which are jobs beside the page.

The curves before stand until the new ones are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpcore.answer.section import Search
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
from pages.shared.fields import jobs, runner
from pages.shared.session import session

DOING = "Simulating private copies"

forecasts = cached(max_entries=16)(choice.forecast)
range_costs = cached(max_entries=16)(release_bounds.compare_range_costs)


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


def copies_over_epsilon(data: Dataset, parameters: PrivateParameters) -> tuple[Copies, runner.Run]:
    """Return the costs of copies over budgets of the choice, as far as they are known, and their simulation."""
    histogram, curve_parameters = data.histogram, comparison.without_budget(parameters)

    def simulate(curve: Copies, progress: jobs.Progress, stop: ShouldStop) -> Copies:
        copies = comparison.simulate(histogram, parameters, curve.over_epsilon, progress, stop)
        return replace(copies, cancelled=copies.cancelled or curve.cancelled)

    curve = _search(
        "curve",
        curve_parameters,
        lambda progress, stop: comparison.copy_curves(curve_parameters, histogram, progress, stop, scales=()),
    )
    search = replace(_search("curves_job", parameters, simulate), before=curve, first=lambda known: known)
    return _simulate(search, data)


def copies_over_users(data: Dataset, parameters: PrivateParameters) -> tuple[Copies, runner.Run]:
    """Return the costs of copies over numbers of users, as far as they are known, and their simulation."""
    return _simulate(
        _search(
            "users_job",
            parameters,
            lambda progress, stop: comparison.copy_curves(
                parameters, data.histogram, progress, stop, epsilons=()
            ),
        ),
        data,
    )


def _search(key: str, parameters: PrivateParameters, work: Callable[..., Copies]) -> Search:
    return Search(
        key,
        parameters,
        work,
        DOING,
        doing_at={Stage.EARLIER: f"{DOING}; pale: settings before"},
        is_complete=lambda copies: not copies.cancelled,
        kept=32,
        seconds=0.0,
        soon=0.0,
        light=True,
    )


def _simulate(search: Search, data: Dataset) -> tuple[Copies, runner.Run]:
    run = runner.Run(QUESTION, search, data, session.is_same_for_all())
    run.ask()
    state = run.get_state()
    copies = Copies() if state.value is None else state.value
    return replace(copies, at_budget=None, earlier=True) if state.stage is Stage.EARLIER else copies, run
