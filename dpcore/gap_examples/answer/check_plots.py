"""The figures that check the gain of weights over caps: the regression examples, and simulations. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import Axis, Curve, Item, Level, Look, Mark, Plot, Points, Scale
from dpcore.answer.axes import bound_axis
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import FloatArray, log_spaced
from dpcore.gap_examples.answer.examples import Growth, RegressionStep
from dpcore.gap_examples.answer.plots import VARIANCE
from dpcore.gap_examples.parameters import REGRESSION_G
from dpcore.gap_examples.simulation import Estimate, SimulationResult
from dpcore.gap_examples.two_groups import supremum

METHODS = (
    ("Bounded rows", "cap", Look.CAP, "diamond", 0.985),
    ("Weights", "smooth", Look.SMOOTH, "circle", 1.015),
)
"""Name, columns, look and symbol of what is simulated, and how far beside its bound it is drawn."""
MARKED_THRESHOLDS = 30


def growth(of: Growth, step: RegressionStep) -> Plot:
    """The ratio grows without bound."""
    return Plot(
        "gap-growth",
        "The gap grows",
        f"The ratio grows with g without bound; at g = {step.example.g} it is {step.ratio:.3g} to the paper's C, "
        f"{step.best_ratio:.3g} to the best.",
        Axis("size g of the example", "", (REGRESSION_G[0] * 0.95, REGRESSION_G[-1] * 1.05), number=",.3~r"),
        Axis("ratio", "", (0.3, 1_000.0), title="Variance, sample limiting : C", number=".4g"),
        {
            "g": of.g.astype(np.float64),
            "ratio": of.ratio,
            "ratio_to_best_c": of.best_ratio,
            "ratio_guaranteed": of.guaranteed,
        },
        (
            Curve("To the paper's C", "g", "ratio", Look.CAP),
            # Dotted and on top: for large g in example 1 the two lie on each other.
            Curve("To the best C", "g", "ratio_to_best_c", Look.SMOOTH, dash="dot"),
            Curve("Paper's bounds", "g", "ratio_guaranteed", Look.OWN),
            Level("The most for a mean", supremum().ratio),
            Mark("Here", step.example.g, step.ratio, Look.CAP),
        ),
        Disclosure.PUBLIC,
        height=400,
    )


def thresholds(step: RegressionStep) -> Plot:
    """Sample limiting at every threshold, in units of the paper's C."""
    unit = step.example.feasible.variance
    return Plot(
        "gap-thresholds",
        "Sample limiting",
        f"The best bound of sample limiting, {step.best}, has {step.ratio:.3g} times the variance of the "
        "paper's C.",
        Axis(
            "bound",
            "rows kept per user",
            (0.9, REGRESSION_G[-1] * 1.1),
            title="Bound (rows kept per user)",
            number=",.3~r",
        ),
        Axis("variance", "1 = with the paper's C", (0.3, 10_000.0), number=".4g"),
        {"threshold": step.thresholds.astype(np.float64), "sample_limiting_over_c": step.limiting / unit},
        (
            Curve(
                "Sample limiting",
                "threshold",
                "sample_limiting_over_c",
                Look.CAP,
                symbol="circle" if step.thresholds.size <= MARKED_THRESHOLDS else "",
            ),
            Level("The paper's C", 1.0),
            Level("Paper's bound for it", step.example.limiting_bound / unit, dash="longdash"),
            Mark("Best bound", step.best, step.ratio, Look.CAP),
        ),
        Disclosure.PUBLIC,
        height=400,
    )


def _estimates(results: Sequence[SimulationResult], key: str) -> tuple[Estimate, ...]:
    return tuple(r.capped if key == "cap" else r.smooth for r in results)


def hits(results: Sequence[SimulationResult]) -> tuple[int, int]:
    """In how many intervals the formula lies, and how many there are."""
    estimates = [estimate for _, key, *_ in METHODS for estimate in _estimates(results, key)]
    return sum(estimate.covers for estimate in estimates), len(estimates)


def simulated(
    problem: mean.MeanProblem, results: Sequence[SimulationResult], kind: Provenance
) -> tuple[Plot, Plot]:
    """Simulated variances with their intervals: on the curves of the formulas, and over them, where 1 is the formula.

    Args:
        problem: What was simulated.
        results: What came of it, a bound each, ascending.
        kind: Of the data behind the problem.
    """
    unit = mean.best_smooth(problem).variance
    low, high = results[0].threshold, max(results[-1].threshold, 2.0 * results[0].threshold)
    curves = log_spaced(low, high, 200)
    columns: dict[str, FloatArray] = {"bound": np.array([r.threshold for r in results])}
    over_best: dict[str, npt.ArrayLike] = {"bounds": curves}
    over_formula: dict[str, npt.ArrayLike] = {}
    on_curves: list[Item] = []
    beside: list[Item] = [Level("Formula", 1.0, dash="longdash")]
    for (name, key, look, symbol, nudge), formula in zip(
        METHODS, (mean.capped_variance, mean.smooth_variance), strict=True
    ):
        estimates = _estimates(results, key)
        for part in ("variance", "low", "high", "formula"):
            columns[f"{key}_{part}"] = np.array([getattr(one, part) for one in estimates])
        for part in ("variance", "low", "high"):
            over_best[f"{key}_{part}_over_best"] = columns[f"{key}_{part}"] / unit
            over_formula[f"{key}_{part}_over_formula"] = columns[f"{key}_{part}"] / columns[f"{key}_formula"]
        over_best[f"{key}_curve"] = formula(problem, curves) / unit
        on_curves.append(Curve(f"{name}, formula", "bounds", f"{key}_curve", look, width=1.5))
        for items, over in ((on_curves, "best"), (beside, "formula")):
            y, least, most = (f"{key}_{part}_over_{over}" for part in ("variance", "low", "high"))
            points = Points(f"{name}, simulated", "bound", y, look, least, most, symbol=symbol, nudge=nudge)
            items.append(points)
    # The squared error of Laplace noise alone varies by 5 times its mean squared: no interval is much longer.
    reach = 4.5 * (5.0 / results[0].runs) ** 0.5
    (hit, number), across = hits(results), bound_axis((low * 0.9, high * 1.1))
    return (
        Plot(
            "gap-overlay",
            "Simulated variances",
            "The simulated variances lie on the curves of the formulas.",
            across,
            VARIANCE,
            columns,
            tuple(on_curves),
            kind,
            over_best,
            height=420,
        ),
        Plot(
            "gap-quotient",
            "Simulated : formula",
            f"The formula lies in {hit} of {number} intervals.",
            across,
            Axis("simulated : formula", "", (1.0 - reach, 1.0 + reach), Scale.LINEAR, number=".4g"),
            columns,
            tuple(beside),
            kind,
            over_formula,
            height=420,
        ),
    )
