"""The paper's experiment on the page Many tasks: test error against mu, figures and sentences."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray
from dpcore.multitask.experiment import Algorithm, ExperimentResult, run
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.report import charts
from pages.multitask import inputs
from pages.multitask.question import QUESTION
from pages.shared import cards, figures, jobs, tables
from pages.shared.figures import Picture

LINES = (charts.CAP, charts.SMOOTH, charts.SAMPLING, charts.PRIVACY)
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "diamond", "square", "triangle-up")
ALGORITHM_NAMES = {
    Algorithm.SUFFICIENT_STATISTICS: "Algorithm 1, sufficient statistics",
    Algorithm.GRADIENT_DESCENT: "Algorithm 2, noisy gradient descent",
}


def error_columns(
    result: ExperimentResult, algorithm: int, power: int, relative: bool
) -> dict[str, FloatArray]:
    """Mean test error and its standard error over mu, per epsilon; or relative to that of mu = 0."""
    experiment = result.experiment
    mean, error = result.relative() if relative else (result.mean(), result.standard_error())
    name = "relative_rmse" if relative else "rmse"
    columns = {"mu": np.array(experiment.exponents)}
    for at, epsilon in enumerate(experiment.epsilons):
        columns[f"{name}_epsilon_{wording.digits(epsilon)}"] = mean[algorithm, power, at]
        columns[f"standard_error_epsilon_{wording.digits(epsilon)}"] = error[algorithm, power, at]
    return columns


def error_axis(result: ExperimentResult, relative: bool) -> dict[str, object]:
    """One axis for all panels."""
    if not relative:
        mean = result.mean()
        limits = float(np.nanmin(mean)) / 1.15, float(np.nanmax(mean)) * 1.15
        return charts.log_axis("Test error (RMSE)", limits)
    ratio, error = result.relative()
    half_width = 2.0 * np.nan_to_num(error)
    low, high = float(np.nanmin(ratio - half_width)), float(np.nanmax(ratio + half_width))
    return charts.linear_axis("Test error (1 = uniform)", (low - 0.03, high + 0.03))


def error_picture(result: ExperimentResult, algorithm: int, power: int, relative: bool) -> Picture:
    """Test error against mu, one curve per epsilon; whiskers are two standard errors."""
    columns = error_columns(result, algorithm, power, relative)
    title = ALGORITHM_NAMES[result.experiment.algorithms[algorithm]]
    skew = wording.entered(result.experiment.powers[power])
    return Picture(
        f"many-tasks-experiment-{algorithm + 1}-{wording.digits(result.experiment.powers[power])}",
        f"**{title}**, a = {skew}",
        lambda: _error_figure(result, columns, relative),
        f"Test error against the exponent for {title} at skew a = {skew}.",
        columns,
        Disclosure.PUBLIC,
    )


def _error_figure(result: ExperimentResult, columns: dict[str, FloatArray], relative: bool) -> go.Figure:
    name = "relative_rmse" if relative else "rmse"
    across = charts.linear_axis("Exponent μ", (-0.04, 1.04))
    upwards = error_axis(result, relative)
    fig = charts.figure(across, upwards, 300)
    fig.update_xaxes(tickvals=[0, 0.25, 0.5, 0.75, 1], ticktext=["0", "1/4", "1/2", "3/4", "1"])
    for at, epsilon in enumerate(result.experiment.epsilons):
        line = {"color": LINES[at]["color"], "dash": DASHES[at], "width": 2}
        y = columns[f"{name}_epsilon_{wording.digits(epsilon)}"]
        if not np.isfinite(y).any():
            continue
        spread = np.nan_to_num(2.0 * columns[f"standard_error_epsilon_{wording.digits(epsilon)}"])
        charts.add_curve(
            fig,
            f"ε = {wording.entered(epsilon)}",
            columns["mu"],
            y,
            line,
            "%{fullData.name}<br>μ = %{x:.3g}: %{y:.3~g}",
            symbol=SYMBOLS[at],
            error_y=charts.whiskers(spread),
        )
    return fig


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


def show(parameters: MultitaskParameters) -> None:
    """The tab: inputs, Run, figures."""
    st.markdown(
        "Appendix C of the paper, run here: 100 linear regressions in 5 dimensions, each user in 20 of them "
        "on average; 80 % of the pairs train, 20 % test. **Which μ predicts best?** Weights are scaled so "
        "that every user spends the whole budget; within a repeat all μ share data and noise."
    )
    start = inputs.experiment()
    question = parameters.experiment
    if start:
        jobs.start(
            QUESTION.key("experiment_job"), question, lambda progress, stop: run(question, progress, stop)
        )
    if jobs.watch(QUESTION.key("experiment_job"), "Running"):
        return
    done = jobs.result_of(QUESTION.key("experiment_job"))
    if done is None:
        st.caption("It has not run yet. With these defaults it takes about ten seconds.")
        return
    asked, result = done
    if asked != question:
        st.caption(":material/history: These results are for earlier settings; run again for the new ones.")
    if not np.isfinite(result.rmse).any():
        st.info("Stopped before the first run was done.", icon=":material/stop_circle:")
        return
    _figures(result)


def _figures(result: ExperimentResult) -> None:
    experiment = result.experiment
    done = int(np.isfinite(result.rmse).sum())
    if not result.finished:
        st.caption(f":material/stop_circle: Stopped after {done:,} of {result.rmse.size:,} runs.")
    relative = st.toggle(
        "Relative to uniform weights (μ = 0)",
        value=True,
        key=QUESTION.key("relative"),
        persist_state="session",
        help="Each repeat's error over that of μ = 0 on the same data and noise. Off: the errors themselves.",
    )
    for a in range(len(experiment.algorithms)):
        for p, column in enumerate(st.columns(len(experiment.powers))):
            if not np.isfinite(result.rmse[a, p]).any():
                continue
            with column:
                picture = error_picture(result, a, p, relative)
                st.markdown(picture.title)
                figures.show_picture(picture)
    alt = "Best exponent per algorithm, skew and privacy budget, and what 1/2 gains over 0 and 1"
    tables.show(table(result), alt, formats={"Its RMSE": "%.4f"})
    st.caption(
        f"{wording.counted(done, 'run')}; whiskers and ± are two standard errors over "
        f"{wording.counted(experiment.repeats, 'repeat')}, the last two columns paired: a minus sign means "
        f"that μ = 1/2 has the smaller error. δ = {wording.entered(experiment.delta)}. The paper gives neither "
        "regularisation nor clipping bounds nor steps; those used here were chosen on other seeds."
    )
    cards.label(Disclosure.PUBLIC)
