"""The figures of a learner under a cap on a population: 2, 3, and the cost of privacy. All is public. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Mark, Plot, Points, Scale, Style
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.learning import LearningParameters, population
from dpcore.learning.answer.plots import NOTHING
from dpcore.learning.answer.population import (
    FAMILY,
    FRACTIONS,
    PopulationSolution,
    Simulated,
    describe_cost_over_rows,
    floor_vanishes,
    list_cost_columns,
    list_cost_over_rows,
    list_mass_columns,
    list_simulated_columns,
)

FAMILY_LOOKS = (
    (Style.CUSTOMARY, "dot"),
    (Style.SAMPLING, "dash"),
    (Style.SMOOTH, "dashdot"),
    (Style.PRIVACY, "longdash"),
    (Style.ENTERED, "longdashdot"),
)
ERRORS, USERS, COSTS = (1e-2, 1e2), (1e-1, 1e4), (1e-5, 1e2)
"""Where axes start and end before anything is chosen."""


def plot_mass(alpha: float) -> Plot:
    """Draw figure 2: the mass of uncapped users over tau_0."""
    chosen_label = f"α = {wording.entered(alpha)}"
    other_curves = tuple(
        Curve(
            f"α = {wording.entered(other_alpha)}",
            "tau_0",
            f"uncapped_mass_alpha_{wording.digits(other_alpha)}",
            style,
            dash=dash,
            width=1.5,
            is_step=True,
        )
        for other_alpha, (style, dash) in zip(FAMILY, FAMILY_LOOKS, strict=True)
        if other_alpha != alpha
    )
    return Plot(
        "learning-figure-2",
        "Mass of users below the bound",
        "The larger α, the larger the bound must be before most rows come from users below it.",
        _fractions(FRACTIONS),
        Axis("share of all rows", "", (0.0, 1.02), Scale.PERCENT, number_format=".3p"),
        list_mass_columns(alpha),
        (
            *other_curves,
            Curve(
                f"{chosen_label}, users who lose none", "tau_0", "uncapped_mass", Style.TOTAL, is_step=True
            ),
            Curve(
                f"{chosen_label}, all rows kept", "tau_0", "kept_share_in_the_limit", Style.TOTAL, dash="dash"
            ),
        ),
        Disclosure.PUBLIC,
        height=460,
    )


def plot_cost(solution: PopulationSolution, simulated: Simulated | None) -> Plot:
    """Draw figure 3a: bias plus privacy noise over tau_0."""
    guides: dict[str, npt.ArrayLike] = {
        "sum": solution.error_parts.bias + solution.error_parts.privacy,
        "limit_sum": solution.limit_error_parts.bias + solution.limit_error_parts.privacy,
    }
    best = solution.best
    items: list[Item] = [
        Curve("Sum", "tau_0", "sum", Style.TOTAL),
        Curve("Bias, twice", "tau_0", "bias_twice", Style.BIAS),
        Curve("Privacy noise", "tau_0", "privacy_noise", Style.PRIVACY),
        Curve("Sum, n → ∞", "tau_0", "limit_sum", Style.ENTERED),
    ]
    if simulated is not None:
        simulated_points = list_simulated_columns(solution, simulated)
        guides |= {
            "drawn_tau_0": simulated_points["tau_0"],
            "drawn_sum": simulated_points["bias_plus_privacy"],
        }
        items.append(_simulated("drawn_tau_0", "drawn_sum"))
    return Plot(
        "learning-figure-3a",
        "Bias and privacy noise",
        f"Bias falls and privacy noise rises with the bound; their sum is at least {wording.number(best.total)}.",
        _fractions((1.0 / solution.parameters.population_rows, 1.0)),
        Axis("bias and privacy noise", "", ERRORS),
        list_cost_columns(solution),
        (*items, NOTHING, Mark("Smallest", best.fraction, best.total, Style.CAP)),
        Disclosure.PUBLIC,
        guides,
        height=440,
    )


def plot_capped(solution: PopulationSolution, simulated: Simulated | None) -> Plot:
    """Draw figure 3b: users capped over tau_0; its file holds the simulated numbers, where there are any."""
    exact = list_cost_columns(solution)
    items: list[Item] = [
        Curve("Users who lose rows", "exact_tau_0", "expected_users_capped", Style.TOTAL),
        Curve("n → ∞", "exact_tau_0", "limit_users_capped", Style.ENTERED),
    ]
    columns: Mapping[str, npt.ArrayLike] = exact
    if simulated is not None:
        columns = list_simulated_columns(solution, simulated)
        items.append(_simulated("tau_0", "users_capped"))
    if solution.capped_at_best > 0.0:
        items.append(Mark("At the smallest sum", solution.best.fraction, solution.capped_at_best, Style.CAP))
    return Plot(
        "learning-figure-3b",
        "Users who lose rows",
        f"Users expected to lose rows at the best bound: {wording.number(solution.capped_at_best, 2)}.",
        _fractions((1.0 / solution.parameters.population_rows, 1.0)),
        Axis("users who lose rows", "expected number", USERS),
        columns,
        tuple(items),
        Disclosure.PUBLIC,
        {**exact, "exact_tau_0": solution.fractions},
        height=440,
    )


def plot_cost_over_rows(cost: population.CostOfPrivacy, parameters: LearningParameters) -> Plot:
    """Draw the smallest bias plus privacy noise over n, beside the finite-sample term, which falls to zero."""
    columns = list_cost_over_rows(cost, parameters)
    curves = (
        Curve("Smallest sum: cost of privacy", "num_rows", "smallest_sum", Style.TOTAL, symbol="circle"),
        Curve("its bias, twice", "num_rows", "bias_twice", Style.BIAS),
        Curve("its privacy noise", "num_rows", "privacy_noise", Style.PRIVACY),
        Curve("Finite-sample term, no bound", "num_rows", "finite_sample_without_a_cap", Style.SAMPLING),
    )
    items = [curve for curve in curves if np.any(columns[curve.y] != 0.0)]
    if not floor_vanishes(cost, parameters) and cost.limit.complete:
        items.append(Curve("Floor, n → ∞", "num_rows", "floor", Style.ENTERED))
    return Plot(
        "learning-cost",
        "Cost of privacy",
        describe_cost_over_rows(cost, parameters).replace("**", ""),
        Axis(
            "rows n", "", (population.ROWS_FOR_COST[0], population.ROWS_FOR_COST[-1]), number_format=",.3~g"
        ),
        Axis("bound", "", COSTS, title="Smallest bias + privacy noise over all τ₀"),
        columns,
        tuple(items),
        Disclosure.PUBLIC,
        height=480,
    )


def _fractions(limits: tuple[float, float]) -> Axis:
    title = "bound as a share of all rows"
    return Axis(
        "bound, as a share of all rows", "share of all rows", limits, title=title, limits_range=limits
    )


def _simulated(x: str, y: str) -> Points:
    return Points("Simulated", x, y, Style.CUSTOMARY, symbol="circle-open")
