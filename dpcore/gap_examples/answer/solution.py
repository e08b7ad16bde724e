"""The solution for the gain of weights over the best cap, and its plots, which are pure functions of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpcore import mean
from dpcore.answer.against import BoundComparison
from dpcore.answer.axes import ROWS_UNIT, build_bound_axis, choose_curve_bounds
from dpcore.answer.limits import fit_limits
from dpcore.answer.plot import Axis, Column, Curve, Level, Mark, Plot, Style, linear_axis, share_axis
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.wording import format_entered
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.gap_examples import two_groups
from dpcore.gap_examples.compare import (
    PAPER_BOUND,
    Comparison,
    FourfoldProof,
    carry_out_fourfold_proof,
    compare,
    compute_variance_ratios,
)
from dpcore.gap_examples.parameters import REGRESSION_G, THEOREM_G, GapParameters
from dpcore.gap_examples.regression import RegressionStep


@dataclass(frozen=True)
class GapSolution:
    """All results that depend on data and parameters.

    Attributes:
        comparison: The best cap and the best weights.
        near_optimal_caps: Smallest and largest cap within 5 % of the best cap's standard error.
        proof: The paper's proof carried out.
        domination: The two groups that are at least as bad; None without sampling error.
    """

    comparison: Comparison
    near_optimal_caps: tuple[int, int]
    proof: FourfoldProof
    domination: two_groups.Domination | None


def solve(dataset: Dataset, parameters: mean.MeanParameters) -> GapSolution:
    """Compare the best cap with the best weights, and carry out the proofs."""
    mean_problem = parameters.build_problem(dataset.histogram)
    comparison = compare(mean_problem)
    domination = two_groups.find_dominating_groups(comparison) if mean_problem.value_variance > 0.0 else None
    proof = carry_out_fourfold_proof(comparison)
    return GapSolution(comparison, mean.find_caps_within(mean_problem), proof, domination)


def compare_over_epsilon(dataset: Dataset, parameters: GapParameters) -> BoundComparison:
    """Build the comparison over epsilon of the best cap and its error, as a ratio to that of the best weights."""
    mean_problem = parameters.build_mean_parameters().build_problem(dataset.histogram)

    def find_best_cap(epsilon: float) -> tuple[float, float]:
        """Return (best cap, its standard error over that of the best weights) at another epsilon."""
        comparison = compare(replace(mean_problem, epsilon=epsilon))
        return float(comparison.cap_choice.max_contributions), math.sqrt(comparison.ratio)

    def compute_errors(epsilon: float, caps: FloatArray) -> FloatArray:
        """Compute the standard error of each cap over that of the best weights."""
        epsilon_problem = replace(mean_problem, epsilon=epsilon)
        smooth_variance = mean.find_best_smooth(epsilon_problem).squared_error
        return np.asarray(np.sqrt(mean.compute_capped_variance(epsilon_problem, caps) / smooth_variance))

    sizes, users = dataset.histogram.sizes, dataset.histogram.users
    bound_and_error_titles = "Best bound (rows per user)", "Error (1 = best weights)"
    return BoundComparison(*bound_and_error_titles, find_best_cap, compute_errors, sizes, users)


# --- plots --------------------------------------------------------------------------------------------------

RATIO_TITLE, SHARE_TITLE = "Variance, best bound : best weights", "Share p of light users"
RATIO_AXIS = linear_axis("ratio", (1.0, 1.62), title=RATIO_TITLE, number_format=".4f")
SMOOTH_WEIGHTS, BOUNDED_ROWS = "Smooth weights, v(h) (claim 1)", "Bounded rows, v′(h) (claim 2)"
SHARE_AXIS = share_axis("share of light users", (0.0, 1.0), title=SHARE_TITLE, number_format=".1%")
SHARES = np.linspace(0.005, 0.995, 199)


def _build_supremum_line() -> Level:
    """Build the horizontal line at the largest ratio that any data have."""
    largest_ratio = two_groups.compute_supremum().ratio
    return Level(f"At most {largest_ratio:.5f}", largest_ratio, dash="longdash")


def plot_variances(
    comparison: Comparison, disclosure: Provenance = Disclosure.PUBLIC, key: str = "gap-data"
) -> Plot:
    """Plot over the bound h the variances v(h) of smooth weights and v'(h) of caps, with their minima.

    A level shows the limit of theorem 3.

    Args:
        comparison: The problem with its best cap and its best weights.
        disclosure: Of the data behind it.
        key: Of the plot; that of the default is the main figure of the answer.
    """
    problem, cap_choice, smooth_choice = comparison.problem, comparison.cap_choice, comparison.smooth_choice
    best_bounds = [cap_choice.max_contributions, smooth_choice.threshold]
    curve_bounds = np.unique(np.concatenate((choose_curve_bounds(problem.histogram), best_bounds)))
    bound_column, smallest_variance = Column("bound", curve_bounds), smooth_choice.squared_error
    smooth_column = Column("smooth_variance", mean.compute_smooth_variance(problem, curve_bounds))
    capped_column = Column("capped_variance", mean.compute_capped_variance(problem, curve_bounds))
    axis_title = f"Variance of the mean (B = {problem.value_bound:g}, σ² = {problem.value_variance:g})"
    variance_limits = fit_limits(np.array([0.5, 10.0]) * smallest_variance)
    return Plot(
        key,
        "Smooth weights, v(h), and bounded rows, v′(h)",
        f"Bounded rows have at least {comparison.ratio:.4f} times the least variance of smooth weights.",
        replace(build_bound_axis(problem.histogram), title="Bound h (rows per user)"),
        Axis("variance", "", variance_limits, title=axis_title, number_format=".4g"),
        (
            Curve(BOUNDED_ROWS, bound_column, capped_column, Style.CAP),
            Curve(SMOOTH_WEIGHTS, bound_column, smooth_column, Style.SMOOTH),
            Level(
                f"{PAPER_BOUND:g} min v (theorem 3)",
                PAPER_BOUND * smallest_variance,
                label=f"Theorem 3: ≤ {PAPER_BOUND:g}×",
            ),
            Mark("Best bound", cap_choice.max_contributions, cap_choice.squared_error, Style.CAP),
            Mark("Best weights", smooth_choice.threshold, smallest_variance, Style.SMOOTH, "circle"),
        ),
        disclosure,
        is_main=key == "gap-data",
    )


def plot_theorem_2(g: int) -> Plot:
    """Plot the ratio of the paper's example over g, which approaches 3/2."""
    g_values = np.unique(np.rint(np.geomspace(THEOREM_G[0], THEOREM_G[-1], 150)))
    variance_ratios = [float(two_groups.compute_theorem_2(int(g_value)).ratio) for g_value in g_values]
    chosen_ratio = float(two_groups.compute_theorem_2(g).ratio)
    g_limits = THEOREM_G[0] * 0.9, THEOREM_G[-1] * 1.05
    return Plot(
        "gap-theorem-2",
        "The paper's example",
        f"The ratio approaches 3/2; at g = {g:,} it is {chosen_ratio:.4f}.",
        Axis("rows of a heavy user g", ROWS_UNIT, g_limits, number_format=","),
        RATIO_AXIS,
        (
            Curve("3g / (2g + 1)", Column("g", g_values), Column("ratio", variance_ratios), Style.CAP),
            Level("3/2", 1.5, dash="longdash"),
            Mark("Here", g, chosen_ratio, Style.CAP),
        ),
        Disclosure.PUBLIC,
        height=420,
    )


def plot_two_groups(num_light_users: int, heavy_size: int, light_size: int) -> Plot:
    """Plot the ratio over the share of light users, at rho = q m / s.

    There are two limits of many rows, and the ratio for the chosen numbers of rows.
    """
    group_sizes = [light_size, light_size * heavy_size]
    group_shares, light_share = np.stack((SHARES, 1.0 - SHARES), axis=-1), num_light_users / 100.0
    integer_cap_limit = two_groups.compute_integer_cap_limit(SHARES)
    real_cap_limit = two_groups.compute_real_cap_limit(SHARES)
    ratios = compute_variance_ratios(group_sizes, group_shares, (1.0 - SHARES) / light_size).ratios
    chosen_shares = [light_share, 1.0 - light_share]
    chosen_ratio = compute_variance_ratios(group_sizes, chosen_shares, chosen_shares[1] / light_size).ratios
    paper_ratio, largest_ratio = (float(two_groups.compute_integer_cap_limit(p).ratios) for p in (0.5, 0.4))
    return Plot(
        "gap-two-groups",
        "Two groups",
        "The ratio is largest, 25/16, if 40 % of the users are light.",
        SHARE_AXIS,
        RATIO_AXIS,
        (
            Curve("R → ∞, s = 1", SHARES, integer_cap_limit.ratios, Style.CAP),
            Curve("R → ∞, s → ∞", SHARES, real_cap_limit.ratios, Style.CUSTOMARY, dash="dash", width=2),
            Curve(f"R = {heavy_size:,}, s = {light_size:,}", SHARES, ratios, Style.CAP, dash="dot", width=2),
            _build_supremum_line(),
            Mark("The paper's, 3/2", 0.5, paper_ratio, Style.ENTERED, "square"),
            Mark("Maximum, 25/16", 0.4, largest_ratio, Style.CUSTOMARY, "circle"),
            Mark("Here", light_share, float(chosen_ratio), Style.CAP),
        ),
        Disclosure.PUBLIC,
        {
            "light_share": SHARES,
            "ratio_limit_whole_caps": integer_cap_limit.ratios,
            "best_cap_of_that_limit": integer_cap_limit.best_caps,
            "ratio_limit_finely_scaled_caps": real_cap_limit.ratios,
            "ratio_with_these_rows": ratios,
        },
        height=460,
    )


def find_worst_share(noise_per_user: float) -> float:
    """Find the share of light users with the largest ratio at this noise, among thousandths."""
    light_shares = np.linspace(0.001, 0.999, 999)
    limit_ratios = two_groups.compute_integer_cap_limit(light_shares, noise_per_user).ratios
    return float(light_shares[int(limit_ratios.argmax())])


def plot_any_noise(noise_per_user: float) -> Plot:
    """Plot the ratio over the share of light users, at this noise and at the worst.

    Heavy users have unlimited rows.
    """
    supremum = two_groups.compute_supremum()
    integer_cap_limit = two_groups.compute_integer_cap_limit(SHARES, noise_per_user)
    worst_noise, worst_share = two_groups.find_worst_noise(SHARES), find_worst_share(noise_per_user)
    worst_share_ratio = float(two_groups.compute_integer_cap_limit(worst_share, noise_per_user).ratios)
    hover, maxima = ("t", worst_noise.noise_per_user), worst_noise.ratios
    largest_name, worst_name = f"Largest of all: {supremum.ratio:.5f}", "Worst t for each p"
    return Plot(
        "gap-any-noise",
        "Any noise",
        f"For all p and t the ratio stays below {supremum.ratio:.5f}.",
        SHARE_AXIS,
        RATIO_AXIS,
        (
            Curve(f"t = {format_entered(noise_per_user)}", SHARES, integer_cap_limit.ratios, Style.CAP),
            Curve(worst_name, SHARES, maxima, Style.CUSTOMARY, dash="dash", width=2, hover_number=hover),
            Mark("Worst p at this t", worst_share, worst_share_ratio, Style.CAP),
            Mark(largest_name, supremum.light_share, supremum.ratio, Style.CUSTOMARY, "circle"),
        ),
        Disclosure.PUBLIC,
        {
            "light_share": SHARES,
            "ratio_at_this_noise": integer_cap_limit.ratios,
            "best_cap": integer_cap_limit.best_caps,
            "ratio_at_worst_noise": maxima,
            "worst_noise_per_user": worst_noise.noise_per_user,
        },
        height=460,
    )


def plot_growth(growth_columns: Mapping[str, FloatArray], regression_step: RegressionStep) -> Plot:
    """Plot the ratio of sample limiting to the paper's C and to the best C, over g."""
    g, ratios_to_paper, ratios_to_best, guaranteed_ratios = growth_columns.values()
    g_limits, paper_ratio = (REGRESSION_G[0] * 0.95, REGRESSION_G[-1] * 1.05), regression_step.ratio
    best_ratio = regression_step.best_ratio
    return Plot(
        "gap-growth",
        "The gap grows",
        f"At g = {regression_step.example.g} it is {paper_ratio:.3g} to the paper's C, {best_ratio:.3g} to the best.",
        Axis("size g of the example", "", g_limits, number_format=",.3~r"),
        Axis("ratio", "", (0.3, 1_000.0), title="Variance, sample limiting : C", number_format=".4g"),
        (
            Curve("To the paper's C", g, ratios_to_paper, Style.CAP),
            # Dotted and on top: for large g in example 1 the two lie on each other.
            Curve("To the best C", g, ratios_to_best, Style.SMOOTH, dash="dot"),
            Curve("Paper's bounds", g, guaranteed_ratios, Style.ENTERED),
            Level("The most for a mean", two_groups.compute_supremum().ratio),
            Mark("Here", regression_step.example.g, paper_ratio, Style.CAP),
        ),
        Disclosure.PUBLIC,
        growth_columns,
        height=400,
    )
