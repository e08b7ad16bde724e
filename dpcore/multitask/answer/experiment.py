"""What the paper's experiment has shown: test error against mu as data, and a table in words."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Axis, Curve, Look, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray
from dpcore.multitask.experiment import Algorithm, ExperimentResult

LOOKS = (
    (Look.CAP, "solid", "circle"),
    (Look.SMOOTH, "dash", "diamond"),
    (Look.SAMPLING, "dot", "square"),
    (Look.PRIVACY, "dashdot", "triangle-up"),
)
"""One per epsilon; at most so many are asked for."""
ALGORITHM_NAMES = {
    Algorithm.SUFFICIENT_STATISTICS: "Algorithm 1, sufficient statistics",
    Algorithm.GRADIENT_DESCENT: "Algorithm 2, noisy gradient descent",
}


def error_axis(result: ExperimentResult, relative: bool) -> Axis:
    """One axis for all panels."""
    if not relative:
        mean = result.mean()
        limits = float(np.nanmin(mean)) / 1.15, float(np.nanmax(mean)) * 1.15
        return Axis("test error", "RMSE", limits)
    ratio, error = result.relative()
    half_width = 2.0 * np.nan_to_num(error)
    low, high = float(np.nanmin(ratio - half_width)), float(np.nanmax(ratio + half_width))
    return Axis("test error", "1 = uniform", (low - 0.03, high + 0.03), Scale.LINEAR)


def errors(result: ExperimentResult, algorithm: int, power: int, relative: bool) -> Plot:
    """Mean test error over mu, per epsilon, or relative to that of mu = 0; whiskers are two standard errors."""
    experiment = result.experiment
    mean, error = result.relative() if relative else (result.mean(), result.standard_error())
    columns: dict[str, FloatArray] = {"mu": np.array(experiment.exponents)}
    guides: dict[str, FloatArray] = {}
    curves = []
    for at, (epsilon, (look, dash, symbol)) in enumerate(zip(experiment.epsilons, LOOKS, strict=False)):
        of = f"epsilon_{wording.digits(epsilon)}"
        name = f"{'relative_rmse' if relative else 'rmse'}_{of}"
        columns[name], columns[f"standard_error_{of}"] = (
            mean[algorithm, power, at],
            error[algorithm, power, at],
        )
        if not np.isfinite(columns[name]).any():
            continue
        spread = np.nan_to_num(2.0 * columns[f"standard_error_{of}"])
        guides |= {f"low {of}": columns[name] - spread, f"high {of}": columns[name] + spread}
        said = f"ε = {wording.entered(epsilon)}"
        curves.append(
            Curve(
                said,
                "mu",
                name,
                look,
                dash=dash,
                width=2.0,
                symbol=symbol,
                low=f"low {of}",
                high=f"high {of}",
            )
        )
    title, skew = ALGORITHM_NAMES[experiment.algorithms[algorithm]], wording.entered(experiment.powers[power])
    words = ("0", "1/4", "1/2", "3/4", "1")
    return Plot(
        f"many-tasks-experiment-{algorithm + 1}-{wording.digits(experiment.powers[power])}",
        f"{title}, a = {skew}",
        f"Test error against the exponent for {title} at skew a = {skew}.",
        Axis(
            "exponent μ",
            "",
            (-0.04, 1.04),
            Scale.LINEAR,
            marked=tuple(zip(np.arange(5) / 4.0, words, strict=True)),
        ),
        error_axis(result, relative),
        columns,
        tuple(curves),
        Disclosure.PUBLIC,
        guides,
        height=300,
    )


def table(result: ExperimentResult) -> dict[str, list[object]]:
    """One row per panel and epsilon: where the error is smallest, and what 1/2 gains over 0 and 1, paired."""
    experiment, mean = result.experiment, result.mean()
    half_zero, half_one = result.advantage(0.5, 0.0), result.advantage(0.5, 1.0)
    rows: dict[str, list[object]] = {
        name: []
        for name in ("Algorithm", "a", "ε", "Best μ", "Its RMSE", "μ = 1/2 against 0", "μ = 1/2 against 1")
    }
    for a, algorithm in enumerate(experiment.algorithms):
        for p, power in enumerate(experiment.powers):
            for e, epsilon in enumerate(experiment.epsilons):
                errors = mean[a, p, e]
                if not np.isfinite(errors).any():
                    continue
                best = int(np.nanargmin(errors))
                row = (
                    ALGORITHM_NAMES[algorithm],
                    power,
                    epsilon,
                    experiment.exponents[best],
                    float(errors[best]),
                    _paired(half_zero[0][a, p, e], half_zero[1][a, p, e]),
                    _paired(half_one[0][a, p, e], half_one[1][a, p, e]),
                )
                for name, value in zip(rows, row, strict=True):
                    rows[name].append(value)
    return rows


def _paired(gain: float, error: float) -> str:
    """How much smaller the error is, with two standard errors."""
    if not math.isfinite(gain):
        return "not reached"
    sign = "−" if gain >= 0 else "+"
    spread = f" ± {2.0 * error:.4f}" if math.isfinite(error) else ""
    return f"{sign}{abs(gain):.4f}{spread}"
