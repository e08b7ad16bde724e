"""Plots of the gain of weights over caps, on the person's data and on instances. Pure functions."""

from __future__ import annotations

import functools

import numpy as np

from dpcore.answer import Axis, Curve, Level, Mark, Plot, Scale, Style
from dpcore.answer.axes import ROWS_UNIT, build_bound_axis
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.gap_examples.answer.found import GapSolution
from dpcore.gap_examples.batch import variance_ratios
from dpcore.gap_examples.compare import PAPER_BOUND
from dpcore.gap_examples.parameters import THEOREM_G
from dpcore.gap_examples.two_groups import WorstNoise, fine_cap_limit, supremum, whole_cap_limit, worst_noise
from dpcore.gap_examples.two_groups import theorem_2 as theorem_2
from dpcore.mean.answer.found import choose_bound_limits

RATIO = Axis(
    "ratio", "", (1.0, 1.62), Scale.LINEAR, "Variance with the best bound : best weights", number_format=".4f"
)
VARIANCE = Axis("variance", "1 = with the best weights", (0.9, 10.0), number_format=".4g")
SHARES = np.linspace(0.005, 0.995, 199)


def _supremum_line() -> Level:
    """Build the line at the largest ratio of any data."""
    largest_ratio = supremum().ratio
    return Level(f"At most {largest_ratio:.5f}", largest_ratio, dash="longdash")


def _share_axis(title: str) -> Axis:
    """Build the axis of the share of light users."""
    return Axis("share of light users", "", (0.0, 1.0), Scale.PERCENT, title, number_format=".1%")


# --- the person's data --------------------------------------------------------------------------------------


def plot_variances(solution: GapSolution, dataset: Dataset) -> Plot:
    """Plot both variances over the bound, in units of the best weights', with the proof's cap h'."""
    comparison, proof, paper_bound = solution.comparison, solution.proof, PAPER_BOUND
    bounds = choose_bound_limits(comparison.problem.histogram)
    return Plot(
        "gap-data",
        "Variance against the bound",
        f"The best bound has {comparison.ratio:.4f} times the variance of the best weights; the paper's proof takes "
        f"the bound {wording.number(proof.max_contributions)} with {proof.ratio:.3f} times, at most 4.",
        build_bound_axis(bounds),
        VARIANCE,
        {
            "bound": solution.bounds,
            "cap_variance_over_best_weights": solution.cap_variances,
            "smooth_variance_over_best_weights": solution.smooth_variances,
        },
        (
            Curve("Bounded rows", "bound", "cap_variance_over_best_weights", Style.CAP),
            Curve("Smooth weights", "bound", "smooth_variance_over_best_weights", Style.SMOOTH),
            _supremum_line(),
            Level(f"Paper: at most {wording.entered(paper_bound)}", paper_bound),
            Mark(
                f"Proof's h′ (case {proof.case})",
                proof.max_contributions,
                proof.ratio,
                Style.ENTERED,
                "square",
            ),
            Mark("Best bound", comparison.cap.max_contributions, comparison.ratio, Style.CAP),
            Mark("Best weights, h*", comparison.smooth.threshold, 1.0, Style.SMOOTH, "circle"),
        ),
        dataset.provenance,
        is_main=True,
    )


# --- the steps on instances ---------------------------------------------------------------------------------


def plot_theorem_2(g: int) -> Plot:
    """Plot the ratio of the paper's example over g, which approaches 3/2."""
    g_values = np.unique(np.rint(np.geomspace(THEOREM_G[0], THEOREM_G[-1], 150)))
    ratio = theorem_2(g).ratio
    return Plot(
        "gap-theorem-2",
        "The paper's example",
        f"The ratio approaches 3/2; at g = {g:,} it is {ratio:.4f}.",
        Axis(
            "rows of a heavy user g",
            ROWS_UNIT,
            (THEOREM_G[0] * 0.9, THEOREM_G[-1] * 1.05),
            title="g: rows of a heavy user (rows per user)",
            number_format=",",
        ),
        RATIO,
        {"g": g_values, "ratio": np.array([theorem_2(int(g_value)).ratio for g_value in g_values])},
        (
            Curve("3g / (2g + 1)", "g", "ratio", Style.CAP),
            Level("3/2", 1.5, dash="longdash"),
            Mark("Here", g, ratio, Style.CAP),
        ),
        Disclosure.PUBLIC,
        height=420,
    )


def plot_two_groups(light_users: int, heavy_size: int, light_size: int) -> Plot:
    """Plot the ratio over the share of light users at rho = q m / s: two limits, and the chosen numbers of rows."""
    sizes = [light_size, light_size * heavy_size]
    shares, light_share = np.stack((SHARES, 1.0 - SHARES), axis=-1), light_users / 100.0
    integer_limit, fine_limit = whole_cap_limit(SHARES), fine_cap_limit(SHARES)
    marks = [
        Mark(name, share, float(whole_cap_limit(share).ratio), style, symbol)
        for name, share, style, symbol in (
            ("The paper's, 3/2", 0.5, Style.ENTERED, "square"),
            ("Maximum, 25/16", 0.4, Style.CUSTOMARY, "star"),
        )
    ]
    finite_ratio = float(
        variance_ratios(sizes, [light_share, 1.0 - light_share], (1.0 - light_share) / light_size).ratio
    )
    return Plot(
        "gap-two-groups",
        "Two groups",
        "Two groups of users: the ratio is largest, 25/16, where 40 % of the users are light.",
        _share_axis("Share p of light users"),
        RATIO,
        {
            "light_share": SHARES,
            "ratio_limit_whole_caps": integer_limit.ratio,
            "best_cap_of_that_limit": integer_limit.cap,
            "ratio_limit_finely_scaled_caps": fine_limit.ratio,
            "ratio_with_these_rows": variance_ratios(sizes, shares, (1.0 - SHARES) / light_size).ratio,
        },
        (
            Curve("R → ∞, s = 1", "light_share", "ratio_limit_whole_caps", Style.CAP),
            Curve(
                "R → ∞, s → ∞",
                "light_share",
                "ratio_limit_finely_scaled_caps",
                Style.CUSTOMARY,
                dash="dash",
                width=2,
            ),
            Curve(
                f"R = {heavy_size:,}, s = {light_size:,}",
                "light_share",
                "ratio_with_these_rows",
                Style.CAP,
                dash="dot",
                width=2,
            ),
            _supremum_line(),
            *marks,
            Mark("Here", light_share, finite_ratio, Style.CAP),
        ),
        Disclosure.PUBLIC,
        height=460,
    )


@functools.cache
def _worst_noise() -> WorstNoise:
    """Compute the worst noise for each of `SHARES`, once."""
    return worst_noise(SHARES)


def find_worst_share(noise: float) -> float:
    """Find the share of light users at which the ratio is largest for this noise, to a thousandth."""
    shares = np.linspace(0.001, 0.999, 999)
    return float(shares[int(whole_cap_limit(shares, noise).ratio.argmax())])


def plot_any_noise(noise: float) -> Plot:
    """Plot the limit over the share of light users at the chosen noise, and the maximum over all noises."""
    largest, limit, worst = supremum(), whole_cap_limit(SHARES, noise), _worst_noise()
    share = find_worst_share(noise)
    return Plot(
        "gap-any-noise",
        "Any noise",
        f"Over all shares of light users and all noises the ratio stays below {largest.ratio:.5f}.",
        _share_axis("Share p of light users"),
        RATIO,
        {
            "light_share": SHARES,
            "ratio_at_this_noise": limit.ratio,
            "best_cap": limit.cap,
            "ratio_at_worst_noise": worst.ratio,
            "worst_noise_per_user": worst.noise_per_user,
        },
        (
            Curve(f"t = {wording.entered(noise)}", "light_share", "ratio_at_this_noise", Style.CAP),
            Curve(
                "Worst t for each p",
                "light_share",
                "ratio_at_worst_noise",
                Style.CUSTOMARY,
                dash="dash",
                width=2,
                hover_column=("t", "worst_noise_per_user"),
            ),
            Mark("Worst p at this t", share, float(whole_cap_limit(share, noise).ratio), Style.CAP),
            Mark(
                f"Largest of all: {largest.ratio:.5f}",
                largest.light_share,
                largest.ratio,
                Style.CUSTOMARY,
                "star",
            ),
        ),
        Disclosure.PUBLIC,
        height=460,
    )
