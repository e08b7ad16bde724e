"""What stands below the answer of Sum and count: ways to choose T, files."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.report import csv_files
from dpcore.total import TotalProblem
from dpcore.total import strategies as total_strategies
from dpcore.total.parameters import DEFAULT_DELTA, Summed, TotalParameters, UserTotals
from dpcore.total.strategies import StrategyCurves, StrategyPoints
from pages.shared import cards, figures, file_button, jobs, ranges, session, take_away
from pages.total import cached, card, methods, report, signed
from pages.total import figures as total_figures
from pages.total import inputs as total_inputs
from pages.total import strategies as total_strategies_view
from pages.total.answer import Limits, TotalView
from pages.total.question import QUESTION


def show_measures(data: Dataset, view: TotalView, parameters: TotalParameters) -> None:
    """The error by every measure, and which noise has the smaller one."""
    words, picture = st.columns(2, gap="large")
    with words:
        st.markdown(card.measures_table(view))
        st.markdown(card.bound_sentence(view))
        st.markdown(mechanisms_sentence(data, view.problem, parameters))
    with picture:
        figures.show_picture(total_figures.measures_picture(view, data))
    cards.label(data.provenance)


def mechanisms_sentence(data: Dataset, problem: TotalProblem, parameters: TotalParameters) -> str:
    """Which noise has the smaller error."""
    delta = parameters.delta if parameters.delta is not None else DEFAULT_DELTA
    found = cached.noise_comparison(
        data.digest, parameters.summed, parameters.epsilon, parameters.measure, delta, problem
    )
    if found.laplace.max_total == found.gaussian.max_total == 0.0:
        return "**Which noise?** Neither: under both, publishing 0 is no worse."
    how = "" if parameters.delta is not None else "; choose Gaussian in *More settings* to change it"
    return (
        f"**Which noise?** {found.sentence} (Gaussian noise is taken at δ = {wording.entered(delta)}{how}.)"
    )


def axis_ranges(
    stem: str, labels: tuple[str, str], limits: Limits
) -> tuple[Limits, DeltaGenerator, DeltaGenerator]:
    """The from/to control of a figure's two log axes, with the places of the figure and of what stands below it.

    Args:
        stem: Key of the figure; a further part that changes with the data keeps their ranges apart.
        labels: What the axes show, with units.
        limits: Where they start and end before anything is chosen.
    """
    version = session.data_version()
    with ranges.under_figure(f"{stem}_ranges") as (chart, below):
        x = ranges.range_control(labels[0], f"{stem}_x_{version}", *limits[0])
        y = ranges.range_control(labels[1], f"{stem}_y_{version}", *limits[1])
    return (x, y), chart, below


def show_strategies(data: Dataset, problem: TotalProblem, parameters: TotalParameters) -> None:
    """The tab on four ways to choose T (figure 1 of the paper)."""
    st.markdown(
        "A fixed quantile as T is near the best only around one ε: at smaller ε its error is nearly all noise, at "
        "larger ε nearly all bias, and its curve is flat there. The best T moves with ε. *This is figure 1 of Amin et "
        "al. 2019, drawn for your data.*"
    )
    start = total_inputs.strategies()
    curves = cached.strategy_curves(
        data.digest,
        parameters.summed,
        (parameters.mechanism, parameters.delta),
        parameters.measure,
        parameters.own_share,
        problem,
    )
    question = _simulated_question(data, parameters)
    if start:
        _simulate(problem, parameters, question)
    running = jobs.watch(QUESTION.key("job"), "Simulating")
    done = None if running else jobs.result_of(QUESTION.key("job"))
    points: StrategyPoints | None = done[1] if done is not None and done[0] == question else None
    # What the axis shows depends on the best curve, hence on noise and measure: a key of its own for each.
    stem = (
        f"total_strategies_{parameters.summed.value}_{parameters.mechanism.value}_{parameters.measure.value}"
    )
    first = total_figures.strategy_limits(curves)
    limits, chart, below = axis_ranges(stem, ("ε", "Relative error"), first)
    picture = total_figures.strategy_picture(curves, points, parameters.epsilon, data, limits)
    figures.show_picture(picture, below, chart)
    st.markdown("\n".join(f"- {s}" for s in _strategy_sentences(curves, points)))
    if points is None and not running:
        changed = "Settings have changed since the simulation; it is not shown. " if done is not None else ""
        st.caption(
            f"{changed}The curves are exact. *Simulate* runs the mechanism and lays its errors over them."
        )
    if points is not None:
        notes = figures.question_notes()
        file_button.draw(
            "Simulated points (CSV)",
            "total_simulated.csv",
            data.provenance,
            lambda: csv_files.columns_csv(total_figures.point_columns(points), data.provenance, notes),
            quiet=True,
        )
    cards.label(data.provenance)


def _simulated_question(data: Dataset, parameters: TotalParameters) -> Any:
    p = parameters
    return data.digest, p.summed, p.mechanism, p.delta, p.measure, p.own_share, p.runs, p.seed


def _simulate(problem: TotalProblem, parameters: TotalParameters, question: Any) -> None:
    epsilons = total_strategies_view.simulated_epsilons(problem.amounts)
    ways = total_strategies_view.strategies(parameters.own_share)
    runs, seed = parameters.runs, parameters.seed
    jobs.start(
        QUESTION.key("job"),
        question,
        lambda progress, stop: total_strategies.simulate_strategies(
            problem, epsilons, ways, runs, seed, progress, stop
        ),
    )


def _strategy_sentences(curves: StrategyCurves, points: StrategyPoints | None) -> list[str]:
    found = []
    for row in range(1, len(curves.strategies)):
        name = total_figures.strategy_name(curves, row)
        near = total_strategies_view.near_best(curves, row)
        ten = f"10{wording.PERCENT}"
        found.append(
            f"**{name}:** more than {ten} worse than the best T at every ε."
            if near is None
            else f"**{name}:** within {ten} of the best T's error for ε from {wording.number(near[0], 2)} "
            f"to {wording.number(near[1], 2)}."
        )
    if points is not None:
        stopped = "Stopped early. " if points.cancelled else ""
        found.append(
            f"{stopped}{wording.counted(points.runs, 'run')} of each simulated point; bars are ± 2 standard errors. "
            "The noise comes from NumPy, so this is not a release."
        )
    return found


def show_files(data: Dataset, view: TotalView, parameters: TotalParameters) -> None:
    """The tab of downloads."""
    source = take_away.source(rows=parameters.summed is Summed.VALUES)
    take_away.draw(
        "total",
        data.provenance,
        lambda: report.total_report(view, data, parameters, source),
        methods.methods(view, data, parameters),
        "**Choice** holds the question, the best T with its errors, and the proof. The numbers behind each figure are "
        f"below the figure. Label in all: *{data.provenance.label}*.",
    )


def show_signed_files(
    data: Dataset, held: UserTotals, view: signed.SignedView, parameters: TotalParameters
) -> None:
    """The tab of downloads where totals have both signs."""
    source = take_away.source(rows=True)
    take_away.draw(
        "total_signed",
        data.provenance,
        lambda: report.signed_report(view, held, data, parameters, source),
        methods.signed_methods(view, data, parameters),
        f"**Choice** holds the question, the range and what it costs. Label: *{data.provenance.label}*.",
    )
