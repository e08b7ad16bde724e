"""The search for quantiles beside a page: first from fewer bounds and subsamples, then the exact one."""

from __future__ import annotations

from dataclasses import replace

from dpcore.answer.section import Cached, Found, Search, Solver
from dpcore.answer.stage import Stage
from dpcore.common.progress import Progress, ShouldStop
from dpcore.dataset import Dataset
from dpcore.quantile import QuantileProblem, WeightKind, optimal_bound
from dpcore.quantile.answer import found as core
from dpcore.quantile.answer.found import SEARCH_POINTS, Choices, QuantileFound
from dpcore.quantile.parameters import QuantileParameters

# A first answer is computed while the person waits: on two cores 3 million rows times bounds take about 0.1 s.
FIRST_CELLS, FIRST_ROWS = 3_000_000, 200_000
FIRST_SUBSAMPLES, FIRST_CAPS = 8, 6
AT_ONCE_SECONDS, FIRST_VISIT_SECONDS = 0.03, 0.4
"""What is done so soon is shown at once, without a first answer before it. Where nothing is shown yet, it may take
longer than after a slider has moved."""
AT_ONCE_ROWS = 500
"""Up to so many rows a search ends so soon: 6 ms of processor time for 30 rows, 17 for 300, 160 for the shop purchases.
Of more rows it is not waited for where a first answer can be computed."""
KEPT, KEPT_ROWS = 8, 20_000
"""Answers that are kept, of so many rows at most: 80 bytes a row."""
KEPT_CHOICES = 64
"""Searches whose best bounds are kept; each holds a few hundred numbers."""
DOING_AT = {
    Stage.FIRST: "A first answer, from fewer bounds and subsamples. The exact one follows",
    Stage.EARLIER: "The answer for the settings before. The new one follows",
}
"""What is said beside an answer that stands in for the exact one."""


def without_epsilon(parameters: QuantileParameters) -> QuantileParameters:
    """Return the parameters without what the sorted rows do not depend on, which is all that a slider moves."""
    default = QuantileParameters(1.0)
    unused = ("epsilon", "quantiles", "neighbours")
    return replace(with_defaults(parameters), **{name: getattr(default, name) for name in unused})


def with_defaults(parameters: QuantileParameters) -> QuantileParameters:
    """Return the parameters without what the search for the best bounds does not depend on."""
    default = QuantileParameters(1.0)
    unused = ("weighting", "bound_from", "own_bound", "alpha", "beta", "gamma", "population")
    return replace(parameters, **{name: getattr(default, name) for name in unused})


def sort_rows(
    data: Dataset, parameters: QuantileParameters
) -> tuple[QuantileProblem, QuantileProblem | None]:
    """Return the problem with its rows sorted, and the one for a first answer."""
    assert data.values is not None
    problem = QuantileProblem(data.values, 0.5, 1.0, parameters.base_distribution())
    _ = problem.rows
    return problem, with_few_subsamples(problem)


def with_few_subsamples(problem: QuantileProblem) -> QuantileProblem | None:
    """Return the problem for a first answer; None if there are too many rows for one."""
    rows = problem.values.values.size
    if rows > FIRST_ROWS:
        return None
    return problem.with_subsamples(max(min(FIRST_CELLS // (16 * rows), FIRST_SUBSAMPLES), 2))


def first_choices(few: QuantileProblem, quantiles: tuple[float, ...]) -> Choices:
    """Return the best bounds of a first answer, from fewer bounds if there are many rows, and from few caps."""
    rows = few.values.values.size
    points, caps = (
        min(max(FIRST_CELLS // (2 * rows * times), 3), most)
        for times, most in ((1, SEARCH_POINTS), (few.rows.subsamples, FIRST_CAPS))
    )
    return Choices(
        optimal_bound.best_bound(few, WeightKind.SMOOTH, points, quantiles=quantiles),
        optimal_bound.best_bound(few, WeightKind.CAP, caps, quantiles=quantiles, all_caps=0),
    )


def solve(data: Dataset, parameters: QuantileParameters) -> Solver:
    """Search for the best bounds, and evaluate them; until then a first answer stands if the rows are few enough."""
    sorted_rows, few = yield Cached(sort_rows, (data, without_epsilon(parameters)), kept=2)
    rows, epsilon, neighbours = sorted_rows.values.values.size, parameters.epsilon, parameters.neighbours
    problem = sorted_rows.under(neighbours).with_epsilon(epsilon)
    choices = Search(
        "choices",
        with_defaults(parameters),
        lambda tell, stop: core.search(problem, parameters.asked, tell, stop),
        "",
        is_complete=lambda choices: not choices.cancelled,
        kept=KEPT_CHOICES,
    )

    def compute(choices: Choices, tell: Progress, stop: ShouldStop) -> QuantileFound:
        return core.compute(parameters, problem, choices)

    def compute_first(choices: Choices | None) -> QuantileFound:
        first = few.under(neighbours).with_epsilon(epsilon)
        return core.compute(parameters, first, choices or first_choices(first, parameters.asked))

    search = Search(
        "search_job",
        parameters,
        compute,
        "Trying bounds on your values",
        before=choices,
        first=None if few is None else compute_first,
        is_complete=lambda solution: not solution.choices.cancelled,
        kept=KEPT if rows <= KEPT_ROWS else 0,
        seconds=FIRST_VISIT_SECONDS,
        soon=AT_ONCE_SECONDS if few is None or rows <= AT_ONCE_ROWS else 0.0,
        light=True,
        doing_at=DOING_AT,
    )
    found: Found = yield search
    return found
