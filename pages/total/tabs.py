"""What stands below the answer of Sum and count: measures, ways to choose T, files."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.report import csv_files
from dpcore.total import TotalProblem
from dpcore.total.answer import strategies, words
from dpcore.total.paper import FIGURES
from dpcore.total.parameters import Summed, TotalParameters
from dpcore.total.strategies import StrategyPoints, simulate_strategies
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.report import report_content, take_away
from pages.shared.screen import paper, plots
from pages.total import cached
from pages.total.question import QUESTION


def show_measures(answer: Answer) -> None:
    """The error by every measure, and which noise has the smaller one."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(words.write_measures_table(answer.solution))
        st.markdown(words.describe_bound(answer.solution))
        st.markdown(words.compare_noises(answer.solution, has_delta=answer.parameters.delta is not None))
    with right:
        figures.show_picture(plots.picture(answer.plots["total-measures"]()))
    cards.label(answer.disclosure)


def show_strategies(data: Dataset, answer: Answer) -> None:
    """The tab on four ways to choose T (figure 1 of the paper): on the data in use, and at the paper's setting."""
    _strategies(data, answer)
    st.divider()
    paper.show(FIGURES)


def _strategies(data: Dataset, answer: Answer) -> None:
    st.markdown(
        "A fixed quantile of the users' totals is a near-best bound only around one ε: at smaller ε its error is "
        "nearly all noise, at larger ε nearly all bias, and its curve is flat there. The best bound moves with ε. "
        "*This is figure 1 of Amin et al. 2019, drawn for your data.*"
    )
    columns = fields.columns(QUESTION, [4, 4, 3, 4], "own_share", "runs", "seed")
    with columns[3]:
        start = st.button("Simulate", key="total_simulate", icon=":material/casino:", width="stretch")
    parameters, problem = answer.parameters, answer.solution.problem
    curves = cached.strategy_curves(data, parameters, problem)
    question = _simulated_question(data, parameters)
    if start:
        _simulate(problem, parameters, question)
    running = jobs.watch(QUESTION.key("job"), "Simulating")
    done = None if running else jobs.result_of(QUESTION.key("job"))
    points: StrategyPoints | None = done[1] if done is not None and done[0] == question else None
    plots.show(strategies.plot_strategies(curves, data, parameters.epsilon, points))
    st.markdown("\n".join(f"- {s}" for s in strategies.write_sentences(curves, points)))
    if points is None and not running:
        changed = "Settings have changed since the simulation; it is not shown. " if done is not None else ""
        st.caption(
            f"{changed}The curves are exact. *Simulate* runs the mechanism and lays its errors over them."
        )
    if points is not None:
        notes = figures.question_notes()
        cards.file_button(
            "Simulated points (CSV)",
            "total_simulated.csv",
            data.provenance,
            lambda: csv_files.write_columns(strategies.list_point_columns(points), data.provenance, notes),
            quiet=True,
        )
    cards.label(data.provenance)


def _simulated_question(data: Dataset, parameters: TotalParameters) -> Any:
    p = parameters
    return data.digest, p.summed, p.mechanism, p.delta, p.measure, p.own_share, p.runs, p.seed


def _simulate(problem: TotalProblem, parameters: TotalParameters, question: Any) -> None:
    epsilons = strategies.simulated_epsilons(problem.amounts)
    ways = strategies.list_strategies(parameters.own_share)
    jobs.start(
        QUESTION.key("job"),
        question,
        lambda progress, stop: simulate_strategies(
            problem, epsilons, ways, parameters.runs, parameters.seed, progress, stop
        ),
    )


ASKED = ("mechanism", "delta", "summed", "measure", "own_bound", "lower", "upper", "highest_total")


def show_files(data: Dataset, answer: Answer, signed: bool) -> None:
    """The tab of downloads."""
    source = take_away.source(rows=answer.parameters.summed is Summed.VALUES)
    asked = QUESTION.asked(*ASKED, *(() if signed else ("own_share",)))
    take_away.draw(
        "total_signed" if signed else "total",
        data.provenance,
        lambda: report_content.of_answer(QUESTION, answer, source, asked=asked),
        answer.methods,
        words.describe_files(data, signed),
    )
