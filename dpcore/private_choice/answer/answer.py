"""The answer on choosing privately: its texts for a methods section, its figures, and the tabs of its page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer.answer import Answer
from dpcore.answer.limits import fit_limits
from dpcore.answer.methods import NEIGHBOUR_TEXTS, ChoiceSource, Methods
from dpcore.answer.plot import Axis, Column, Curve, Item, Level, Plot, Style, linear_axis
from dpcore.answer.section import Cached, Label, Parts, Search, SearchResult, Sections, Solver
from dpcore.common import wording
from dpcore.common.privacy import Ledger, format_rounded_up
from dpcore.common.progress import Progress, ShouldStop, Stage
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.answer import words
from dpcore.private_choice.answer.words import error_name
from dpcore.private_choice.choice import ChoiceRegret, PrivateChoice
from dpcore.private_choice.comparison import EPSILONS, SCALES, Copies, CostCurve, Leak, PrivateSolution, solve
from dpcore.private_choice.parameters import NUMBER_NAMES, OF_MEAN, BoundPurpose, PrivateParameters

FLOOR, CEILING = 1e-5, 100.0
"""Costs below and above are shown at the edge of the axis."""
EARLIER = 0.4
"""Opacity of simulated curves of the settings before."""
DECADES = tuple((10.0**k, f"{10.0 ** (k + 2):,.{max(-k - 2, 0)}f}%") for k in range(-5, 3))
"""Ticks in per cent."""
DIRECT, COPY = "direct choice, exact", "private copy, simulated"


def plot_over_epsilon(solution: PrivateSolution) -> Plot:
    """Plot the cost of both ways over the budget of the choice."""
    curve, copies = solution.over_epsilon, solution.copies
    return _plot_costs(
        solution,
        "private-cost-epsilon",
        ("Cost over ε of the choice", "the larger the budget of the choice"),
        ("selection_epsilon", Axis("ε of the choice", "", (EPSILONS[0], EPSILONS[-1]))),
        (curve.epsilons, curve.median[0], curve.percentile_95[0]),
        copies.over_epsilon,
        (solution.parameters.selection_epsilon, "ε as chosen"),
        copies.earlier,
    )


def plot_over_users(solution: PrivateSolution, curve: ChoiceRegret, copies: Copies) -> Plot:
    """Plot the cost of both ways over the number of users, each of them taken so many times."""
    users = float(solution.data.histogram.num_users)
    return _plot_costs(
        solution,
        "private-cost-users",
        ("Cost over the number of users, each taken so many times", "the more users there are"),
        ("users", Axis("users", "", (SCALES[0] * users, SCALES[-1] * users), number_format=",.3~r")),
        (curve.scales * users, curve.median[:, 0], curve.percentile_95[:, 0]),
        tuple((times * users, cost) for times, cost in copies.over_users),
        (users, "These data"),
    )


def _plot_costs(
    solution: PrivateSolution,
    key: str,
    texts: tuple[str, str],
    axis_column: tuple[str, Axis],
    direct: tuple[FloatArray, FloatArray, FloatArray],
    copied: CostCurve,
    current: tuple[float, str],
    is_earlier: bool = False,
) -> Plot:
    """Plot the costs over a column with its axis; ``direct``: its places, median and 95th percentile."""
    (title, cheaper_with), (column_name, axis) = texts, axis_column
    exact = np.array(direct)
    rows = [(place, cost.median, cost.percentile_95) for place, cost in copied]
    simulated = np.array(rows).reshape(-1, 3).T
    places, medians, percentiles = costs = np.hstack((exact, simulated))
    ways = [DIRECT] * exact.shape[1] + [COPY] * simulated.shape[1]
    columns: dict[str, npt.ArrayLike] = {"way": ways, column_name: places, "median": medians}
    columns["percentile_95"] = percentiles
    items: list[Item] = []
    looks: dict[str, Any] = {"symbol": "circle", "opacity": EARLIER if is_earlier else 1.0}
    for name, curves, style, options in (
        ("Direct choice", exact, Style.CAP, {}),
        ("Private copy", simulated, Style.SMOOTH, looks),
    ):
        if curves.size:
            x, median, high = curves[0], _keep_visible(curves[1]), _keep_visible(curves[2])
            items.append(Curve(f"{name}, median", x, median, style, **options))
            dotted = {"dash": "dot", "width": 1.5, **options}
            items.append(Curve(f"{name}, 95th percentile", x, high, style, **dotted))
    if axis.contains(current[0]):
        items.append(Level(current[1], current[0], is_vertical=True, dash="longdash"))
    low, high_end = fit_limits(_keep_visible(costs[1:]).ravel())
    is_rank = solution.is_rank_error
    limits = max(low, FLOOR), min(high_end, 1.0 if is_rank else CEILING)
    cost_name = "rank error, share of users" if is_rank else f"extra {error_name(solution.parameters)}"
    return Plot(
        key,
        title,
        f"Choosing privately costs less {cheaper_with}: median and 95th percentile of the cost.",
        axis,
        Axis(cost_name, "", limits, number_format=".2%", named_ticks=DECADES),
        items,
        solution.data.provenance,
        columns,
        is_main=True,
    )


def _keep_visible(costs: npt.ArrayLike) -> FloatArray:
    """Return the costs that the axis can show; what is infinite is left out."""
    visible = np.asarray(costs, dtype=np.float64)
    return np.where(np.isfinite(visible), np.clip(visible, FLOOR, None), np.nan)


def plot_leak(effect: Leak, dataset: Dataset) -> Plot:
    """Return the number chosen in the clear, with one more user."""
    numbers, number = np.append(effect.with_user, effect.without), NUMBER_NAMES[effect.number]
    margin = 0.15 * float(np.ptp(numbers)) or 0.5
    limits = float(numbers.min()) - margin, float(numbers.max()) + margin
    added = Column("rows_of_added_user", effect.added)
    alt = f"The {number} chosen in the clear moves with the rows of one user more."
    name = "quantile" if effect.number is BoundPurpose.QUANTILE else "bound"
    rows = (1.0, max(float(effect.added[-1]), 2.0))
    return Plot(
        "private-leak",
        "The number with one more user",
        alt,
        Axis("rows of the user who is added", "", rows, number_format=","),
        linear_axis(name, limits, "rows per user", number_format=",.4g"),
        (
            Curve("Without that user", added, np.full(effect.added.size, effect.without), Style.ENTERED),
            Curve("With that user", added, Column("chosen_with", effect.with_user), Style.CAP),
        ),
        dataset.provenance,
    )


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
    result: SearchResult = yield search
    copies, is_earlier = result.value or Copies(), result.stage is Stage.EARLIER
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
    yield plot_leak(effect, dataset)
    yield Label()


def show_numbers_of_users(answer: Answer, dataset: Dataset) -> Parts:
    """Show what either way would cost with fewer users or more."""
    yield "Every user is taken so many times."
    parameters, histogram = answer.solution.parameters, dataset.histogram
    direct = yield Cached(comparison.regret_over_users, (parameters, histogram))

    def simulate(progress: Progress, should_stop: ShouldStop) -> Copies:
        return comparison.simulate_curves(parameters, histogram, progress, should_stop, epsilons=())

    copies: Copies | None = yield _search_copies("users_job", parameters, simulate)
    yield plot_over_users(answer.solution, direct, copies or Copies())
    yield Label()


SECTIONS: Sections = {
    "Leak and size": {"Why the number leaks": show_leak, "More or fewer users": show_numbers_of_users}
}


def build_methods(
    solution: PrivateSolution,
    selections: Sequence[tuple[BoundPurpose, PrivateChoice]] = (),
    ledger: Ledger | None = None,
) -> Methods | None:
    """Write the methods section of the latest number that was drawn, or of the best one on a release in use.

    Return None if neither is there: the best number on private data is no choice of this page.

    Args:
        solution: What either way costs.
        selections: Numbers drawn so far from the data behind it, oldest first.
        ledger: What all draws on these cost.
    """
    p, name = solution.parameters, NUMBER_NAMES[solution.parameters.purpose]
    latest = next((choice for number, choice in reversed(selections) if number is p.purpose), None)
    if latest is not None:
        return _describe_draw(name, latest, _describe_rule(p), ledger or Ledger())
    if solution.data.release is None:
        return None
    return Methods(
        guarantee=f"The {name} for a release at ε = {wording.entered(p.epsilon)} was taken from a differentially "
        "private release of how many users have how many rows.",
        sentences=f"The {name} is {wording.number(solution.best, 6)}.",
        public_sentences="",
        disclosure=solution.data.provenance,
        rule=f"It {_describe_rule(p)}",
        subject="The number",
    )


def _describe_draw(number: str, latest: PrivateChoice, rule: str, ledger: Ledger) -> Methods:
    facts, spending = latest.facts, ""
    if ledger.total is not None and len(ledger.releases) > 1:
        total = words.format_cost(ledger.total.epsilon, ledger.total.delta)
        spending = f" All that was drawn from these data so far spent {total} together."
    return Methods(
        guarantee=f"The {number} was itself chosen with user-level ε-differential privacy at "
        f"ε = {format_rounded_up(facts.epsilon)}. Two data sets are neighbours {NEIGHBOUR_TEXTS[facts.neighbours]}.",
        sentences=f"The {number} is {choice.format_choice(latest)}. It was drawn by the exponential mechanism "
        f"[@mcsherry2007] of the [@opendp] from public candidates of at most {wording.number(latest.problem.largest)} "
        "rows. By basic composition [@dwork2014] its budget and that of the release that uses it add up."
        f"{spending}",
        public_sentences="",
        disclosure=facts,
        rule=f"The exact optimum, which the choice aims at, {rule}",
        subject="The number",
        choice_source=ChoiceSource.DRAWN,
    )


def _describe_rule(p: PrivateParameters) -> str:
    if p.user_share and p.purpose in OF_MEAN:
        weights = "plain smooth weights" if p.purpose is BoundPurpose.SMOOTH else "a bound on rows"
        return (
            f"minimises the expected squared error under {weights} about the mean of the rows at hand, where a share "
            f"of {wording.entered(p.user_share)} of the variance lies between users."
        )
    of_mean = "minimises the expected squared error of a released mean"
    return {
        BoundPurpose.SMOOTH: f"{of_mean} under smooth weights [@epasto2020, section 3].",
        BoundPurpose.CAP: f"{of_mean} [@epasto2020, section 3].",
        BoundPurpose.SUM: "minimises bias plus mean noise of a released sum [@amin2019, section 3].",
        BoundPurpose.QUANTILE: "is the quantile of rows per user that was asked for.",
    }[p.purpose]


def build_answer(
    dataset: Dataset, parameters: PrivateParameters, solution: PrivateSolution | None = None
) -> Answer:
    """Compute what it costs to choose a bound with an epsilon of its own, directly or on a private copy.

    This draws no number: `dpcore.private_choice.choice.choose` and `private_histogram.release_histogram` do that.

    Args:
        dataset: How many users have how many rows.
        parameters: The question.
        solution: What `solve` returns for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `PrivateSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have more users than the mechanisms can hold.

    Examples:
        >>> import dpcore as ss
        >>> ss.private_bound([1] * 90 + [10] * 10, epsilon=1).headline
        'Choose the number directly.'

    Source: McSherry and Talwar 2007 for the draw; Epasto et al. 2020, section 3, and Amin et al. 2019, section 3, for
        what it aims at.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=words.list_assumptions(dataset.disclosure, parameters),
        disclosure=dataset.provenance,
        facts=words.list_facts(solution),
        parameters=parameters,
        solution=solution,
        plots={"private-cost-epsilon": lambda: plot_over_epsilon(solution)},
        sections=SECTIONS,
        make_methods=lambda: build_methods(solution),
        setting=parameters.setting,
        # The number itself is drawn, and costs; here it is only said what that would cost.
        bound=lambda: None,
    )
