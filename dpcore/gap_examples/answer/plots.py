"""The solution for the gain of weights over the best cap as plots. Pure functions of the solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.answer.axes import ROWS_UNIT, build_bound_axis
from dpcore.answer.plot import Axis, Column, Curve, Level, Mark, Plot, Style, linear_axis, share_axis
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray, IntArray
from dpcore.dataset import Dataset
from dpcore.gap_examples import regression
from dpcore.gap_examples.answer.solution import GapSolution
from dpcore.gap_examples.compare import PAPER_BOUND, variance_ratios
from dpcore.gap_examples.parameters import REGRESSION_G, THEOREM_G
from dpcore.gap_examples.two_groups import fine_cap_limit, supremum, theorem_2, whole_cap_limit, worst_noise
from dpcore.regression import examples, working_set

MAX_SOLVED_ROWS = 11_000
"""Regression examples of so many rows are solved while the person waits: under a second."""


@dataclass(frozen=True)
class RegressionStep:
    """A regression example at one g.

    Attributes:
        example: The instance with the paper's C.
        thresholds: 1 .. g, shape (g,).
        limited_variances: Expected variance of sample limiting at each, given a sample that determines the
            coefficients.
        guaranteed_probability: Example 3: smallest probability over the thresholds that sample limiting reaches the
            paper's bound; 1 in example 1, where all samples have one variance.
        certificate: The best C's variance as the solver of the page Regression finds it, with its lower bound; None
            where there are more than `MAX_SOLVED_ROWS` rows.
    """

    example: regression.Example
    thresholds: IntArray
    limited_variances: FloatArray
    guaranteed_probability: float
    certificate: Certificate | None

    @property
    def best_threshold(self) -> int:
        """Return the threshold with the smallest variance."""
        return int(self.thresholds[int(self.limited_variances.argmin())])

    @property
    def ratio(self) -> float:
        """Return the variance of sample limiting at its best threshold over that of the paper's C."""
        return float(self.limited_variances.min()) / self.example.feasible_variance

    @property
    def best_ratio(self) -> float:
        """Return the variance of sample limiting at its best threshold over that of the best C."""
        return float(self.limited_variances.min()) / self.example.optimum


def solve_regression_step(number: int, g: int) -> RegressionStep:
    """Compute closed forms at every threshold; solve for the best C up to a size."""
    if number == 1:
        example = regression.example_1(g)
        thresholds, limited_variances = regression.limit_variances_1(g)
        guaranteed_probability = 1.0
    else:
        example = regression.example_3(g)
        thresholds = np.arange(1, g + 1)
        limits = [regression.limit_samples_3(g, int(h)) for h in thresholds]
        limited_variances = np.array([limit.mean_variance for limit in limits])
        guaranteed_probability = min(limit.probability_at_least(example.limiting_bound) for limit in limits)
    certificate = None
    if example.num_rows <= MAX_SOLVED_ROWS:
        problem = examples.example_1(g) if number == 1 else examples.example_3(g)
        certificate = working_set.solve(problem).certificate
    return RegressionStep(example, thresholds, limited_variances, guaranteed_probability, certificate)


@dataclass(frozen=True)
class Growth:
    """How the gap of a regression example grows with g; all of shape (points,).

    Attributes:
        g: The example's parameter.
        ratio: Sample limiting at its best threshold over the paper's C.
        best_ratio: The same over the best C.
        guaranteed: What the paper's two bounds guarantee.
    """

    g: IntArray
    ratio: FloatArray
    best_ratio: FloatArray
    guaranteed: FloatArray


def compute_growth(number: int) -> Growth:
    """Compute the ratio over the slider's values of g."""
    ratios, best_ratios, bounds = [], [], []
    for g in REGRESSION_G:
        if number == 1:
            example, best_variance = regression.example_1(g), float(regression.limit_variances_1(g)[1].min())
        else:
            example = regression.example_3(g)
            best_variance = min(regression.limit_samples_3(g, h).mean_variance for h in range(1, g + 1))
        ratios.append(best_variance / example.feasible_variance)
        best_ratios.append(best_variance / example.optimum)
        bounds.append(example.limiting_bound / example.weights_bound)
    return Growth(np.array(REGRESSION_G), np.array(ratios), np.array(best_ratios), np.array(bounds))


RATIO_TITLE = "Variance with the best bound : best weights"
RATIO_AXIS = linear_axis("ratio", (1.0, 1.62), title=RATIO_TITLE, number_format=".4f")
VARIANCE_AXIS = Axis("variance", "1 = with the best weights", (0.9, 10.0), number_format=".4g")
SHARE_AXIS = share_axis(
    "share of light users", (0.0, 1.0), title="Share p of light users", number_format=".1%"
)
MARKED_THRESHOLDS = 30
SHARES = np.linspace(0.005, 0.995, 199)


def _supremum_line() -> Level:
    """Build the line at the largest ratio of any data."""
    largest_ratio = supremum().ratio
    return Level(f"At most {largest_ratio:.5f}", largest_ratio, dash="longdash")


# --- the person's data --------------------------------------------------------------------------------------


def plot_variances(solution: GapSolution, dataset: Dataset) -> Plot:
    """Plot both variances over the bound, in units of the best weights', with the proof's cap h'."""
    comparison, proof, paper_bound = solution.comparison, solution.proof, PAPER_BOUND
    bounds = Column("bound", solution.bounds)
    capped = Column("cap_variance_over_best_weights", solution.cap_variances)
    smooth = Column("smooth_variance_over_best_weights", solution.smooth_variances)
    proof_name = f"Proof's h′ (case {proof.case})"
    return Plot(
        "gap-data",
        "Variance against the bound",
        f"The best bound has {comparison.ratio:.4f} times the variance of the best weights; the paper's proof takes "
        f"the bound {wording.number(proof.max_contributions)} with {proof.ratio:.3f} times, at most 4.",
        build_bound_axis(comparison.problem.histogram),
        VARIANCE_AXIS,
        (
            Curve("Bounded rows", bounds, capped, Style.CAP),
            Curve("Smooth weights", bounds, smooth, Style.SMOOTH),
            _supremum_line(),
            Level(f"Paper: at most {wording.entered(paper_bound)}", paper_bound),
            Mark(proof_name, proof.max_contributions, proof.ratio, Style.ENTERED, "square"),
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
    ratios, ratio = [float(theorem_2(int(g_value)).ratio) for g_value in g_values], float(theorem_2(g).ratio)
    return Plot(
        "gap-theorem-2",
        "The paper's example",
        f"The ratio approaches 3/2; at g = {g:,} it is {ratio:.4f}.",
        Axis(
            "rows of a heavy user g", ROWS_UNIT, (THEOREM_G[0] * 0.9, THEOREM_G[-1] * 1.05), number_format=","
        ),
        RATIO_AXIS,
        (
            Curve("3g / (2g + 1)", Column("g", g_values), Column("ratio", ratios), Style.CAP),
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
    ratios = variance_ratios(sizes, shares, (1.0 - SHARES) / light_size).ratio
    ratio = variance_ratios(sizes, [light_share, 1.0 - light_share], (1.0 - light_share) / light_size).ratio
    paper_ratio, largest_ratio = (float(whole_cap_limit(share).ratio) for share in (0.5, 0.4))
    of_these_rows = f"R = {heavy_size:,}, s = {light_size:,}"
    return Plot(
        "gap-two-groups",
        "Two groups",
        "Two groups of users: the ratio is largest, 25/16, where 40 % of the users are light.",
        SHARE_AXIS,
        RATIO_AXIS,
        (
            Curve("R → ∞, s = 1", SHARES, integer_limit.ratio, Style.CAP),
            Curve("R → ∞, s → ∞", SHARES, fine_limit.ratio, Style.CUSTOMARY, dash="dash", width=2),
            Curve(of_these_rows, SHARES, ratios, Style.CAP, dash="dot", width=2),
            _supremum_line(),
            Mark("The paper's, 3/2", 0.5, paper_ratio, Style.ENTERED, "square"),
            Mark("Maximum, 25/16", 0.4, largest_ratio, Style.CUSTOMARY, "star"),
            Mark("Here", light_share, float(ratio), Style.CAP),
        ),
        Disclosure.PUBLIC,
        {
            "light_share": SHARES,
            "ratio_limit_whole_caps": integer_limit.ratio,
            "best_cap_of_that_limit": integer_limit.cap,
            "ratio_limit_finely_scaled_caps": fine_limit.ratio,
            "ratio_with_these_rows": ratios,
        },
        height=460,
    )


def find_worst_share(noise: float) -> float:
    """Find the share of light users at which the ratio is largest for this noise, to a thousandth."""
    shares = np.linspace(0.001, 0.999, 999)
    return float(shares[int(whole_cap_limit(shares, noise).ratio.argmax())])


def plot_any_noise(noise: float) -> Plot:
    """Plot the limit over the share of light users at the chosen noise, and the maximum over all noises."""
    largest, limit, worst = supremum(), whole_cap_limit(SHARES, noise), worst_noise(SHARES)
    share = find_worst_share(noise)
    hover = ("t", worst.noise_per_user)
    largest_name = f"Largest of all: {largest.ratio:.5f}"
    return Plot(
        "gap-any-noise",
        "Any noise",
        f"Over all shares of light users and all noises the ratio stays below {largest.ratio:.5f}.",
        SHARE_AXIS,
        RATIO_AXIS,
        (
            Curve(f"t = {wording.entered(noise)}", SHARES, limit.ratio, Style.CAP),
            Curve(
                "Worst t for each p", SHARES, worst.ratio, Style.CUSTOMARY, dash="dash", width=2, hover=hover
            ),
            Mark("Worst p at this t", share, float(whole_cap_limit(share, noise).ratio), Style.CAP),
            Mark(largest_name, largest.light_share, largest.ratio, Style.CUSTOMARY, "star"),
        ),
        Disclosure.PUBLIC,
        {
            "light_share": SHARES,
            "ratio_at_this_noise": limit.ratio,
            "best_cap": limit.cap,
            "ratio_at_worst_noise": worst.ratio,
            "worst_noise_per_user": worst.noise_per_user,
        },
        height=460,
    )


# --- the regression examples --------------------------------------------------------------------------------


def plot_growth(growth: Growth, step: RegressionStep) -> Plot:
    """Plot the ratio over g, which grows without bound."""
    g = Column("g", growth.g.astype(np.float64))
    to_best = Column("ratio_to_best_c", growth.best_ratio)
    limits = REGRESSION_G[0] * 0.95, REGRESSION_G[-1] * 1.05
    return Plot(
        "gap-growth",
        "The gap grows",
        f"The ratio grows with g without bound; at g = {step.example.g} it is {step.ratio:.3g} to the paper's C, "
        f"{step.best_ratio:.3g} to the best.",
        Axis("size g of the example", "", limits, number_format=",.3~r"),
        Axis("ratio", "", (0.3, 1_000.0), title="Variance, sample limiting : C", number_format=".4g"),
        (
            Curve("To the paper's C", g, Column("ratio", growth.ratio), Style.CAP),
            # Dotted and on top: for large g in example 1 the two lie on each other.
            Curve("To the best C", g, to_best, Style.SMOOTH, dash="dot"),
            Curve("Paper's bounds", g, Column("ratio_guaranteed", growth.guaranteed), Style.ENTERED),
            Level("The most for a mean", supremum().ratio),
            Mark("Here", step.example.g, step.ratio, Style.CAP),
        ),
        Disclosure.PUBLIC,
        height=400,
    )


def plot_thresholds(step: RegressionStep) -> Plot:
    """Plot sample limiting at every threshold, in units of the variance of the paper's C."""
    unit = step.example.feasible_variance
    thresholds = Column("threshold", step.thresholds.astype(np.float64))
    limited = Column("sample_limiting_over_c", step.limited_variances / unit)
    symbol = "circle" if step.thresholds.size <= MARKED_THRESHOLDS else ""
    return Plot(
        "gap-thresholds",
        "Sample limiting",
        f"The best bound of sample limiting, {step.best_threshold}, has {step.ratio:.3g} times the variance of the "
        "paper's C.",
        Axis("bound", "rows kept per user", (0.9, REGRESSION_G[-1] * 1.1), number_format=",.3~r"),
        Axis("variance", "1 = with the paper's C", (0.3, 10_000.0), number_format=".4g"),
        (
            Curve("Sample limiting", thresholds, limited, Style.CAP, symbol=symbol),
            Level("The paper's C", 1.0),
            Level("Paper's bound for it", step.example.limiting_bound / unit, dash="longdash"),
            Mark("Best bound", step.best_threshold, step.ratio, Style.CAP),
        ),
        Disclosure.PUBLIC,
        height=400,
    )
