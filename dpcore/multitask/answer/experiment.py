"""The result of the paper's experiment: plots of test error over mu, and a table."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Plot, Style, linear_axis
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.multitask.experiment import Algorithm, ExperimentResult

EPSILON_STYLES = (
    (Style.CAP, "solid", "circle"),
    (Style.SMOOTH, "dash", "diamond"),
    (Style.SAMPLING, "dot", "square"),
    (Style.PRIVACY, "dashdot", "triangle-up"),
)
"""One per epsilon; at most so many are asked for."""
ALGORITHM_NAMES = {
    Algorithm.SUFFICIENT_STATISTICS: "Algorithm 1, sufficient statistics",
    Algorithm.GRADIENT_DESCENT: "Algorithm 2, noisy gradient descent",
}


def make_error_axis(result: ExperimentResult, relative: bool) -> Axis:
    """Make one axis for all panels."""
    if not relative:
        mean = result.average()
        limits = float(np.nanmin(mean)) / 1.15, float(np.nanmax(mean)) * 1.15
        return Axis("test error", "RMSE", limits)
    ratio, error = result.compare_with_uniform()
    half_width = 2.0 * np.nan_to_num(error)
    low, high = float(np.nanmin(ratio - half_width)), float(np.nanmax(ratio + half_width))
    return linear_axis("test error", (low - 0.03, high + 0.03), "1 = uniform")


def plot_errors(result: ExperimentResult, algorithm: int, power: int, relative: bool) -> Plot:
    """Plot mean test error over mu, per epsilon, or relative to mu = 0; whiskers are two standard errors."""
    experiment = result.experiment
    mean, error = (
        result.compare_with_uniform() if relative else (result.average(), result.compute_standard_error())
    )
    exponents, curves = np.array(experiment.exponents), []
    columns: dict[str, npt.ArrayLike] = {"mu": exponents}
    for epsilon_index, (epsilon, (style, dash, symbol)) in enumerate(
        zip(experiment.epsilons, EPSILON_STYLES, strict=False)
    ):
        suffix = f"epsilon_{wording.digits(epsilon)}"
        means, errors = mean[algorithm, power, epsilon_index], error[algorithm, power, epsilon_index]
        columns |= {
            f"{'relative_rmse' if relative else 'rmse'}_{suffix}": means,
            f"standard_error_{suffix}": errors,
        }
        if np.isfinite(means).any():
            name, spread = f"ε = {wording.entered(epsilon)}", np.nan_to_num(2.0 * errors)
            ends = means - spread, means + spread
            curves.append(Curve(name, exponents, means, style, *ends, dash=dash, width=2.0, symbol=symbol))
    title, skew = ALGORITHM_NAMES[experiment.algorithms[algorithm]], wording.entered(experiment.powers[power])
    ticks = tuple(zip(np.arange(5) / 4.0, ("0", "1/4", "1/2", "3/4", "1"), strict=True))
    return Plot(
        f"many-tasks-experiment-{algorithm + 1}-{wording.digits(experiment.powers[power])}",
        f"{title}, a = {skew}",
        f"Test error against the exponent for {title} at skew a = {skew}.",
        linear_axis("exponent μ", (-0.04, 1.04), named_ticks=ticks),
        make_error_axis(result, relative),
        curves,
        Disclosure.PUBLIC,
        columns,
        height=300,
    )


def tabulate_errors(result: ExperimentResult) -> dict[str, list[object]]:
    """Tabulate per panel and epsilon the exponent of the smallest error, and the paired gain of 1/2 over 0 and 1."""
    experiment, mean = result.experiment, result.average()
    gain_over_zero, gain_over_one = result.compare_exponents(0.5, 0.0), result.compare_exponents(0.5, 1.0)
    rows: dict[str, list[object]] = {
        name: []
        for name in ("Algorithm", "a", "ε", "Best μ", "Its RMSE", "μ = 1/2 against 0", "μ = 1/2 against 1")
    }
    for algorithm_index, algorithm in enumerate(experiment.algorithms):
        for power_index, power in enumerate(experiment.powers):
            for epsilon_index, epsilon in enumerate(experiment.epsilons):
                errors = mean[algorithm_index, power_index, epsilon_index]
                if not np.isfinite(errors).any():
                    continue
                best = int(np.nanargmin(errors))
                row = (
                    ALGORITHM_NAMES[algorithm],
                    power,
                    epsilon,
                    experiment.exponents[best],
                    float(errors[best]),
                    _format_gain(
                        gain_over_zero[0][algorithm_index, power_index, epsilon_index],
                        gain_over_zero[1][algorithm_index, power_index, epsilon_index],
                    ),
                    _format_gain(
                        gain_over_one[0][algorithm_index, power_index, epsilon_index],
                        gain_over_one[1][algorithm_index, power_index, epsilon_index],
                    ),
                )
                for name, value in zip(rows, row, strict=True):
                    rows[name].append(value)
    return rows


def _format_gain(gain: float, error: float) -> str:
    """Format how much smaller the error is, with two standard errors."""
    if not math.isfinite(gain):
        return "not reached"
    sign = "−" if gain >= 0 else "+"
    spread = f" ± {2.0 * error:.4f}" if math.isfinite(error) else ""
    return f"{sign}{abs(gain):.4f}{spread}"
