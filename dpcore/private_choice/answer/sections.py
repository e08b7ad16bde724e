"""The tabs on choosing privately, and the simulation of private copies beside a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpcore.answer import Answer
from dpcore.answer.section import Cached, Label, Parts, Search, SearchResult, Sections, Solver
from dpcore.answer.stage import Stage
from dpcore.common.progress import Progress, ShouldStop
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.answer import plots, words
from dpcore.private_choice.comparison import Copies
from dpcore.private_choice.parameters import PrivateParameters

SIMULATING = "Simulating private copies"


def solve_beside_page(dataset: Dataset, parameters: PrivateParameters) -> Solver:
    """Solve exactly, and simulate copies beside the page; the curve of earlier settings stands until there is one."""
    curve_parameters, histogram = comparison.with_usual_budget(parameters), dataset.histogram
    over_epsilon = yield Cached(comparison.regret_over_epsilon, (curve_parameters, histogram))
    solution = yield Cached(comparison.solve_exactly, (dataset, parameters, over_epsilon))

    def simulate(curve: Copies, progress: Progress, should_stop: ShouldStop) -> Copies:
        copies = comparison.simulate(histogram, parameters, curve.over_epsilon, progress, should_stop)
        return replace(copies, cancelled=copies.cancelled or curve.cancelled)

    def simulate_curve(progress: Progress, should_stop: ShouldStop) -> Copies:
        return comparison.simulate_curves(curve_parameters, histogram, progress, should_stop, scales=())

    search = replace(
        _search_copies("curves_job", parameters, simulate),
        before=_search_copies("curve", curve_parameters, simulate_curve),
        first=lambda curve: curve,
    )
    found: SearchResult = yield search
    copies, is_earlier = found.value or Copies(), found.stage is Stage.EARLIER
    if is_earlier:
        copies = replace(copies, at_budget=None, earlier=True)
    return SearchResult(replace(solution, copies=copies), Stage.EARLIER if is_earlier else Stage.FINAL)


def _search_copies(key: str, parameters: PrivateParameters, work: Callable[..., Copies]) -> Search:
    return Search(
        key,
        parameters,
        work,
        SIMULATING,
        doing_at={Stage.EARLIER: f"{SIMULATING}; pale: settings before"},
        is_complete=lambda copies: not copies.cancelled,
        kept=32,
        seconds=0.0,
        soon=0.0,
        light=True,
    )


def show_leak(answer: Answer, dataset: Dataset) -> Parts:
    """Show why a number chosen in the clear leaks."""
    solution = answer.solution
    effect = yield Cached(
        comparison.compute_leak, (dataset.histogram, comparison.with_usual_budget(solution.parameters))
    )
    yield (f"{words.describe_leak(solution, effect)} The ε of the release does not cover that.")
    yield plots.plot_leak(effect, dataset)
    yield Label()


def show_numbers_of_users(answer: Answer, dataset: Dataset) -> Parts:
    """Show what either way would cost with fewer users or more."""
    yield "Every user is taken so many times."
    parameters, histogram = answer.solution.parameters, dataset.histogram
    direct = yield Cached(comparison.regret_over_users, (parameters, histogram))

    def simulate(progress: Progress, should_stop: ShouldStop) -> Copies:
        return comparison.simulate_curves(parameters, histogram, progress, should_stop, epsilons=())

    copies: Copies | None = yield _search_copies("users_job", parameters, simulate)
    yield plots.plot_over_users(answer.solution, direct, copies or Copies())
    yield Label()


SECTIONS: Sections = {
    "Leak and size": {"Why the number leaks": show_leak, "More or fewer users": show_numbers_of_users}
}
