"""The plots of the regression examples."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Curve, Level, Mark, Plot, Style
from dpcore.common.privacy import Disclosure
from dpcore.gap_examples.answer.examples import Growth, RegressionStep
from dpcore.gap_examples.parameters import REGRESSION_G
from dpcore.gap_examples.two_groups import supremum

MARKED_THRESHOLDS = 30


def plot_growth(growth: Growth, step: RegressionStep) -> Plot:
    """Plot the ratio over g, which grows without bound."""
    return Plot(
        "gap-growth",
        "The gap grows",
        f"The ratio grows with g without bound; at g = {step.example.g} it is {step.ratio:.3g} to the paper's C, "
        f"{step.best_ratio:.3g} to the best.",
        Axis(
            "size g of the example",
            "",
            (REGRESSION_G[0] * 0.95, REGRESSION_G[-1] * 1.05),
            number_format=",.3~r",
        ),
        Axis("ratio", "", (0.3, 1_000.0), title="Variance, sample limiting : C", number_format=".4g"),
        {
            "g": growth.g.astype(np.float64),
            "ratio": growth.ratio,
            "ratio_to_best_c": growth.best_ratio,
            "ratio_guaranteed": growth.guaranteed,
        },
        (
            Curve("To the paper's C", "g", "ratio", Style.CAP),
            # Dotted and on top: for large g in example 1 the two lie on each other.
            Curve("To the best C", "g", "ratio_to_best_c", Style.SMOOTH, dash="dot"),
            Curve("Paper's bounds", "g", "ratio_guaranteed", Style.ENTERED),
            Level("The most for a mean", supremum().ratio),
            Mark("Here", step.example.g, step.ratio, Style.CAP),
        ),
        Disclosure.PUBLIC,
        height=400,
    )


def plot_thresholds(step: RegressionStep) -> Plot:
    """Plot sample limiting at every threshold, in units of the variance of the paper's C."""
    unit = step.example.feasible.variance
    return Plot(
        "gap-thresholds",
        "Sample limiting",
        f"The best bound of sample limiting, {step.best_threshold}, has {step.ratio:.3g} times the variance of the "
        "paper's C.",
        Axis(
            "bound",
            "rows kept per user",
            (0.9, REGRESSION_G[-1] * 1.1),
            title="Bound (rows kept per user)",
            number_format=",.3~r",
        ),
        Axis("variance", "1 = with the paper's C", (0.3, 10_000.0), number_format=".4g"),
        {
            "threshold": step.thresholds.astype(np.float64),
            "sample_limiting_over_c": step.limited_variances / unit,
        },
        (
            Curve(
                "Sample limiting",
                "threshold",
                "sample_limiting_over_c",
                Style.CAP,
                symbol="circle" if step.thresholds.size <= MARKED_THRESHOLDS else "",
            ),
            Level("The paper's C", 1.0),
            Level("Paper's bound for it", step.example.limiting_bound / unit, dash="longdash"),
            Mark("Best bound", step.best_threshold, step.ratio, Style.CAP),
        ),
        Disclosure.PUBLIC,
        height=400,
    )
