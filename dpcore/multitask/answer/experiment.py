"""The tab of the experiment on generated tasks: its plots, its table, and its sentences."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Plot, Style, linear_axis
from dpcore.answer.answer import Answer
from dpcore.answer.section import Choice, Figures, Label, Note, PaperFigures, Parts, Search, Table
from dpcore.common import wording
from dpcore.common.noise_error import Summary
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.multitask.experiment import FIGURES, Algorithm, ExperimentResult, run_experiment

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
EXPONENT_TICKS = ((0.0, "0"), (0.25, "1/4"), (0.5, "1/2"), (0.75, "3/4"), (1.0, "1"))


def plot_errors(result: ExperimentResult, is_relative: bool) -> list[tuple[Plot, ...]]:
    """Plot mean test error over mu: a row of plots per algorithm, a plot per skew, a curve per epsilon.

    Args:
        result: The experiment.
        is_relative: True if errors are those relative to mu = 0, paired over repeats.
    """
    experiment = result.experiment
    summaries = {panel: result.summarise(panel, is_relative) for panel in result.errors}
    means = np.array([summary.mean for summary in summaries.values()])
    # All panels have one axis.
    if is_relative:
        whiskers = np.nan_to_num([2.0 * summary.standard_error for summary in summaries.values()])
        limits = float(np.nanmin(means - whiskers)) - 0.03, float(np.nanmax(means + whiskers)) + 0.03
        axis = linear_axis("test error", limits, "1 = uniform")
    else:
        axis = Axis("test error", "RMSE", (float(np.nanmin(means)) / 1.15, float(np.nanmax(means)) * 1.15))

    def plot_panels(number: int, algorithm: Algorithm, power: float) -> Plot:
        exponents, curves = np.array(experiment.exponents), []
        columns: dict[str, npt.ArrayLike] = {"mu": exponents}
        # Fewer epsilons than styles.
        for epsilon, (style, dash, symbol) in zip(experiment.epsilons, EPSILON_STYLES, strict=False):
            summary, suffix = summaries[algorithm, power, epsilon], f"epsilon_{wording.digits(epsilon)}"
            columns[f"{'relative_rmse' if is_relative else 'rmse'}_{suffix}"] = summary.mean
            columns[f"standard_error_{suffix}"] = summary.standard_error
            spread = np.nan_to_num(2.0 * summary.standard_error)
            ends, name = (summary.mean - spread, summary.mean + spread), f"ε = {wording.entered(epsilon)}"
            curves.append(
                Curve(name, exponents, summary.mean, style, *ends, dash=dash, width=2.0, symbol=symbol)
            )
        title = f"{ALGORITHM_NAMES[algorithm]}, a = {wording.entered(power)}"
        return Plot(
            f"many-tasks-experiment-{number}-{wording.digits(power)}",
            title,
            f"Test error against the exponent for {title}.",
            linear_axis("exponent μ", (-0.04, 1.04), named_ticks=EXPONENT_TICKS),
            axis,
            curves,
            Disclosure.PUBLIC,
            columns,
            height=300,
        )

    return [
        tuple(plot_panels(number, algorithm, power) for power in experiment.powers)
        for number, algorithm in enumerate(experiment.algorithms, 1)
    ]


def tabulate_errors(result: ExperimentResult) -> list[dict[str, object]]:
    """Tabulate per panel the exponent of the smallest error, and the paired gain of 1/2 over 0 and 1."""
    rows: list[dict[str, object]] = []
    for panel, errors in result.errors.items():
        if not np.isfinite(errors).any():
            continue
        mean = result.summarise(panel).mean
        best = int(np.nanargmin(mean))
        rows.append(
            {
                "Algorithm": ALGORITHM_NAMES[panel[0]],
                "a": panel[1],
                "ε": panel[2],
                "Best μ": result.experiment.exponents[best],
                "Its RMSE": float(mean[best]),
                "μ = 1/2 against 0": _format_gain(result.compare_exponents(panel, 0.5, 0.0)),
                "μ = 1/2 against 1": _format_gain(result.compare_exponents(panel, 0.5, 1.0)),
            }
        )
    return rows


def _format_gain(gain: Summary) -> str:
    """Format how much smaller the error is, with two standard errors."""
    if not math.isfinite(gain.mean):
        return "not reached"
    spread = f" ± {2.0 * float(gain.standard_error):.4f}" if math.isfinite(gain.standard_error) else ""
    return f"{'−' if gain.mean >= 0 else '+'}{abs(float(gain.mean)):.4f}{spread}"


def show_experiment(answer: Answer, dataset: Dataset) -> Parts:
    """Show the experiment, and below it the paper's figure at its setting."""
    experiment = answer.parameters.experiment
    yield (
        "Appendix C of the paper, run here: 100 linear regressions in 5 dimensions, each user in 20 of them on "
        "average; 80 % of the pairs train, 20 % test. **Which μ predicts best?** Weights are scaled so that every user "
        "spends the whole budget; within a repeat all μ share data and noise."
    )
    result: ExperimentResult | None = yield Search(
        "experiment_job",
        experiment,
        lambda progress, stop: run_experiment(experiment, progress, stop),
        "Running",
        "Run",
        fields=("experiment_epsilons", "experiment_users", "experiment_repeats", "experiment_seed"),
        idle="It has not run yet. With these defaults it takes about ten seconds.",
        shows_outdated=True,
        of_data=False,
    )
    if result is not None:
        yield from _show_errors(result)
    yield PaperFigures(FIGURES)


def _show_errors(result: ExperimentResult) -> Parts:
    if not result.num_done:
        yield Note("Stopped before the first run was done.", "stop_circle")
        return
    if not result.is_finished:
        yield Note(f":material/stop_circle: Stopped after {result.num_done:,} of {result.num_runs:,} runs.")
    is_relative = yield Choice(
        "relative", "Test error", {True: "Relative to that of uniform weights (μ = 0)", False: "As it is"}
    )
    for row in plot_errors(result, is_relative):
        yield Figures(row, titled=True)
    yield Table(
        tabulate_errors(result),
        "Best exponent per algorithm, skew and privacy budget, and what 1/2 gains over 0 and 1",
        {"Its RMSE": "%.4f"},
    )
    yield Note(
        f"{wording.counted(result.num_done, 'run')}; whiskers and ± are two standard errors over "
        f"{wording.counted(result.experiment.repeats, 'repeat')}, the last two columns paired: a minus sign means that "
        f"μ = 1/2 has the smaller error. δ = {wording.entered(result.experiment.delta)}. The paper gives neither "
        "regularisation nor clipping bounds nor steps; those used here were chosen on other seeds."
    )
    yield Label(Disclosure.PUBLIC)
