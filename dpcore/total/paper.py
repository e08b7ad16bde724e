"""Figure 1 of Amin et al. 2019: the error of a private count by three ways to bound it."""

from __future__ import annotations

import functools
import math

import numpy as np

from dpcore.answer import Axis, Style
from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.data.generators import LogNormalSizes
from dpcore.data.totals_per_user import Amounts
from dpcore.total.nonnegative import TotalProblem
from dpcore.total.strategies import BEST, MEDIAN, NINETY_FIVE, strategy_curves

PAPER = "Amin et al. 2019"
USERS, MEDIAN_ROWS, MEAN_ROWS = 138_493, 68, 144.4
"""MovieLens 20M, as its makers describe it: users, and the median and the mean of their ratings."""
SPREAD = math.sqrt(2.0 * math.log(MEAN_ROWS / MEDIAN_ROWS))
"""Standard deviation of the logarithm of a log-normal law with that median and that mean."""
EPSILONS = tuple(float(x) for x in np.geomspace(1e-6, 1.0, 13))
STRATEGIES = {
    "best": ("Quantile 1 − 1/(nε), the paper's", BEST, Style.SMOOTH, "circle"),
    "median": ("Median", MEDIAN, Style.ENTERED, "square"),
    "quantile_95": ("95 % quantile", NINETY_FIVE, Style.CAP, "diamond"),
}


@functools.lru_cache(maxsize=8)
def _ratings(seed: int) -> Amounts:
    histogram = LogNormalSizes(math.log(MEDIAN_ROWS), SPREAD, USERS, seed).histogram()
    return Amounts.from_histogram(histogram)


def relative_errors(amounts: Amounts, epsilon: float) -> dict[str, float]:
    """Compute the expected relative error of the released number of ratings under each bound."""
    curves = strategy_curves(
        TotalProblem(amounts, epsilon), [epsilon], [strategy for _, strategy, *_ in STRATEGIES.values()]
    )
    return dict(zip(STRATEGIES, map(float, curves.relative_error[:, 0]), strict=True))


FIGURES = (
    PaperFigure(
        "amin-figure-1",
        PAPER,
        "Figure 1",
        "error of a private count by three ways to bound it",
        "Neighbours add or remove one user; Laplace noise; errors are expectations. The paper counts the ratings of "
        f"MovieLens 20M. Its data may not be passed on: these are {USERS:,} "
        f"generated users whose ratings have its median ({MEDIAN_ROWS}) and its mean ({MEAN_ROWS:g}), by a "
        "log-normal law; "
        "5 draws of them.",
        "Sum and count",
        "Four ways to choose a bound",
        Axis("privacy budget ε", "", (EPSILONS[0], EPSILONS[-1])),
        Axis("relative error of the count"),
        EPSILONS,
        tuple(Line(key, name, style, symbol) for key, (name, _, style, symbol) in STRATEGIES.items()),
        lambda epsilon, seed: relative_errors(_ratings(seed), epsilon),
        5,
        "The paper prints no numbers of this figure. What it says holds: a fixed quantile is best at one ε only, "
        "flat by bias above it and with noise that grows as 1/ε below.",
    ),
)
