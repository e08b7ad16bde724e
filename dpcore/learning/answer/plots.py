"""Plots of a learner under a cap as data. Pure functions of the solution; those of a population are all public."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Band, Curve, Item, Level, Mark, Plot, Points, Style, share_axis
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, STYLES
from dpcore.answer.axes import ROWS_UNIT, sample_users
from dpcore.answer.handle import Handle
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap, population
from dpcore.learning.answer.population import (
    FRACTIONS,
    PopulationSolution,
    describe_cost,
    is_floor_zero,
    list_cost_columns,
    list_mass_columns,
    list_simulated_columns,
)
from dpcore.learning.answer.solution import LearningSolution
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.parameters import TERM_NAMES, LearningParameters
from dpcore.learning.participation import Draws

TRIVIAL_BOUND = Level("1: above, it promises nothing", 1.0)
"""Above it a bound on losses in [0, 1] says nothing."""
PART_COLUMNS = {BIAS: "bias_twice", SAMPLING: "finite_sample", NOISE: "privacy_noise"}
# One colour a way, dash patterns within it. The smaller of two bounds stands in the table and is no line of its own.
TERMS = {
    BiasTerm.WORST_CASE: (Style.CAP, "solid", 2.5),
    BiasTerm.CUT_SHARE: (Style.CAP, "dash", 2.0),
    BiasTerm.LOG_KEPT: (Style.SMOOTH, "solid", 2.0),
    BiasTerm.VARIANCE_KEPT: (Style.SAMPLING, "dash", 2.0),
    BiasTerm.CHI_SQUARED: (Style.SAMPLING, "solid", 2.5),
    BiasTerm.LOG_FRACTION: (Style.ENTERED, "solid", 1.5),
    BiasTerm.VARIANCE_FRACTION: (Style.ENTERED, "dash", 1.5),
    BiasTerm.COROLLARY_1: (Style.SMOOTH, "dot", 2.0),
}
MARKED_CAPS = (("Best bound", Style.CAP, "diamond"), ("Your own bound", Style.ENTERED, "square"))
FAMILY_STYLES = {
    0.25: (Style.CUSTOMARY, "dot"),
    0.5: (Style.SAMPLING, "dash"),
    1.0: (Style.SMOOTH, "dashdot"),
    2.0: (Style.PRIVACY, "longdash"),
    3.0: (Style.ENTERED, "longdashdot"),
}
"""Colour and dash of every alpha of `FAMILY`."""
ERROR_LIMITS, USER_LIMITS, COST_LIMITS = (1e-2, 1e2), (1e-1, 1e4), (1e-5, 1e2)
"""Where axes start and end before anything is chosen."""


# --- on data ------------------------------------------------------------------------------------------------


def plot_bound(solution: LearningSolution, dataset: Dataset, own_bound: int | None) -> Plot:
    """Plot the bound over the cap, in its parts, with the best cap and the person's own: the main figure."""
    best, curves, histogram = solution.choice, solution.curves, solution.problem.histogram
    caps, parts = curves["cap_rows"], {name: curves[column] for name, column in PART_COLUMNS.items()}
    items: list[Item] = [
        Curve("Excess risk, all three", caps, curves["bound"], Style.TOTAL),
        *(Curve(name, caps, values, STYLES[name]) for name, values in parts.items()),
        TRIVIAL_BOUND,
    ]
    if solution.near_optimal[0] < solution.near_optimal[1]:
        items.append(Band(f"Within 5{wording.PERCENT}", *solution.near_optimal))
    for (name, style, symbol), cap in zip(MARKED_CAPS, (best.max_contributions, own_bound), strict=True):
        # Under Corollary 1 a low cap has no bound; on a log axis 0 has no place.
        if cap is not None and 0.0 < (height := float(solution.error_parts_at(cap).total)) < math.inf:
            items.append(Mark(name, cap, height, style, symbol))
    handle = Handle(  # Nothing is released, so there are no dots.
        "Bound",
        caps,
        curves["bound"],
        own_bound or best.max_contributions,
        "own_bound",
        is_integer=True,
        parts=parts,
        is_sum=True,
        users=(sample_users(histogram.sizes, histogram.users, "rows"),),
    )
    return Plot(
        "learning-bound",
        "Excess risk against the bound",
        f"The excess risk, at most, is smallest at {wording.counted(best.max_contributions, 'row')} per user, "
        f"{wording.number(best.total)}: bias {wording.number(best.bias)}, sampling "
        f"{wording.number(best.finite_sample)}, noise {wording.number(best.privacy)}. Lower bounds bias more, "
        "higher ones need more noise.",
        *_build_axes(solution, "excess risk, at most"),
        items,
        dataset.provenance,
        curves,
        is_main=True,
        handle=handle,
    )


def plot_terms(solution: LearningSolution, dataset: Dataset, own_bound: int | None) -> Plot:
    """Plot twice every bound on the bias over the cap."""
    curves, best_terms = (
        solution.curves,
        optimal_cap.compute_bias_terms(solution.problem, solution.choice.fraction),
    )
    worst, cut, log = (
        wording.number(2.0 * float(best_terms[term]))
        for term in (BiasTerm.WORST_CASE, BiasTerm.CUT_SHARE, BiasTerm.LOG_KEPT)
    )
    items: list[Item] = []
    for term, (style, dash, width) in TERMS.items():
        bias = curves[f"twice_{term.value}"]
        items.append(Curve(TERM_NAMES[term], curves["cap_rows"], bias, style, dash=dash, width=width))
    for (name, style, _), cap in zip(
        MARKED_CAPS, (solution.choice.max_contributions, own_bound), strict=True
    ):
        if cap is not None:
            items.append(Level(name, cap, is_vertical=True, style=style))
    return Plot(
        "learning-terms",
        "All bounds on the bias",
        f"At the best bound twice the worst case is {worst}, twice the share of rows cut {cut}, and Proposition 1's "
        f"log form {log}.",
        *_build_axes(solution, "twice the limit on the bias"),
        (*items, TRIVIAL_BOUND),
        dataset.provenance,
        curves,
        height=520,
    )


def _build_axes(solution: LearningSolution, bound_name: str) -> tuple[Axis, Axis]:
    """Build the axes of the cap, in rows per user, and of a bound; no number that is entered moves them.

    The cap's axis ends where nobody has more rows, or at n where the bound on the bias goes on falling. The
    bound's axis starts below what sampling alone costs at d = 1, since a smaller bound would be of no interest,
    and ends at 10: above 1 a bound says nothing.
    """
    n, heaviest = float(solution.problem.histogram.num_rows), float(solution.problem.histogram.max_size)
    largest_cap = n if solution.problem.bias.needs_only_the_fraction else min(n, 2.0 * heaviest)
    limits = (1.0, max(largest_cap, 2.0))
    smallest_bound = max(math.sqrt(math.log(20.0 * n) / n), 1e-9) / 2.0
    cap_axis = Axis(
        "bound",
        ROWS_UNIT,
        limits,
        title="Bound (rows per user)",
        # A cap of the person's own may lie where nobody has as many rows.
        limits_range=(limits[0], max(limits[1], n)),
        number_format=",.4~g",
    )
    return cap_axis, Axis(bound_name, "", (10.0 ** math.floor(math.log10(smallest_bound)), 10.0))


# --- on a population ----------------------------------------------------------------------------------------


def plot_mass(alpha: float) -> Plot:
    """Plot figure 2: mass of uncapped users over tau_0."""
    columns, chosen = list_mass_columns(alpha), f"α = {wording.entered(alpha)}"
    fractions = columns["tau_0"]
    items: list[Item] = []
    for other, (style, dash) in FAMILY_STYLES.items():
        if other != alpha:
            name, mass = (
                f"α = {wording.entered(other)}",
                columns[f"uncapped_mass_alpha_{wording.digits(other)}"],
            )
            items.append(Curve(name, fractions, mass, style, dash=dash, width=1.5, steps="hv"))
    items += [
        Curve(f"{chosen}, users who lose none", fractions, columns["uncapped_mass"], Style.TOTAL, steps="hv"),
        Curve(
            f"{chosen}, all rows kept",
            fractions,
            columns["kept_share_in_the_limit"],
            Style.TOTAL,
            dash="dash",
        ),
    ]
    return Plot(
        "learning-figure-2",
        "Mass of users below the bound",
        "The larger α, the larger the bound must be before most rows come from users below it.",
        _build_fraction_axis(FRACTIONS),
        share_axis("share of all rows", (0.0, 1.02), number_format=".3p"),
        items,
        Disclosure.PUBLIC,
        columns,
        height=460,
    )


def plot_cost(solution: PopulationSolution, draws: Draws | None) -> Plot:
    """Plot figure 3a: bias plus privacy noise over tau_0."""
    columns, best = solution.columns, solution.best
    fractions, bias, noise = columns["tau_0"], columns["bias_twice"], columns["privacy_noise"]
    limit = columns["limit_bias_twice"] + columns["limit_privacy_noise"]
    items: list[Item] = [
        Curve("Sum", fractions, bias + noise, Style.TOTAL),
        Curve("Bias, twice", fractions, bias, Style.BIAS),
        Curve("Privacy noise", fractions, noise, Style.PRIVACY),
        Curve("Sum, n → ∞", fractions, limit, Style.ENTERED),
    ]
    if draws is not None:
        items.append(_build_simulated(list_simulated_columns(solution, draws), "bias_plus_privacy"))
    return Plot(
        "learning-figure-3a",
        "Bias and privacy noise",
        f"Bias falls and privacy noise rises with the bound; their sum is at least {wording.number(best.total)}.",
        _build_fraction_axis((1.0 / solution.parameters.population_rows, 1.0)),
        Axis("bias and privacy noise", "", ERROR_LIMITS),
        (*items, TRIVIAL_BOUND, Mark("Smallest", best.fraction, best.total, Style.CAP)),
        Disclosure.PUBLIC,
        columns,
        height=440,
    )


def plot_capped(solution: PopulationSolution, draws: Draws | None) -> Plot:
    """Plot figure 3b: users capped over tau_0; if samples were simulated, its file holds these."""
    columns, fractions = solution.columns, solution.columns["tau_0"]
    items: list[Item] = [
        Curve("Users who lose rows", fractions, columns["expected_users_capped"], Style.TOTAL),
        Curve("n → ∞", fractions, columns["limit_users_capped"], Style.ENTERED),
    ]
    if draws is not None:
        columns = list_simulated_columns(solution, draws)
        items.append(_build_simulated(columns, "users_capped"))
    if solution.capped_at_best > 0.0:
        items.append(Mark("At the smallest sum", solution.best.fraction, solution.capped_at_best, Style.CAP))
    return Plot(
        "learning-figure-3b",
        "Users who lose rows",
        f"Users expected to lose rows at the best bound: {wording.number(solution.capped_at_best, 2)}.",
        _build_fraction_axis((1.0 / solution.parameters.population_rows, 1.0)),
        Axis("users who lose rows", "expected number", USER_LIMITS),
        items,
        Disclosure.PUBLIC,
        columns,
        height=440,
    )


def plot_cost_over_rows(cost: population.CostOfPrivacy, parameters: LearningParameters) -> Plot:
    """Plot the smallest bias plus privacy noise over n, beside what falls to zero."""
    columns = list_cost_columns(cost, parameters)
    rows, finite_sample = columns["num_rows"], columns["finite_sample_without_a_cap"]
    curves = (
        Curve("Smallest sum: cost of privacy", rows, columns["smallest_sum"], Style.TOTAL, symbol="circle"),
        Curve("its bias, twice", rows, columns["bias_twice"], Style.BIAS),
        Curve("its privacy noise", rows, columns["privacy_noise"], Style.PRIVACY),
        Curve("Finite-sample term, no bound", rows, finite_sample, Style.SAMPLING),
    )
    items = [curve for curve in curves if np.any(np.asarray(curve.y))]
    if not is_floor_zero(cost, parameters) and cost.limit.complete:
        items.append(Curve("Floor, n → ∞", rows, columns["floor"], Style.ENTERED))
    return Plot(
        "learning-cost",
        "Cost of privacy",
        describe_cost(cost, parameters).replace("**", ""),
        Axis(
            "rows n", "", (population.ROWS_FOR_COST[0], population.ROWS_FOR_COST[-1]), number_format=",.3~g"
        ),
        Axis("bound", "", COST_LIMITS, title="Smallest bias + privacy noise over all τ₀"),
        items,
        Disclosure.PUBLIC,
        columns,
        height=480,
    )


def _build_fraction_axis(limits: tuple[float, float]) -> Axis:
    name, title = "bound, as a share of all rows", "bound as a share of all rows"
    return Axis(name, "share of all rows", limits, title=title, limits_range=limits)


def _build_simulated(columns: Mapping[str, npt.ArrayLike], column: str) -> Points:
    """Build the points of simulated samples."""
    return Points("Simulated", columns["tau_0"], columns[column], Style.CUSTOMARY, symbol="circle-open")
