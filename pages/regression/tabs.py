"""The Regression page's tabs but those with work of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.privacy import Ledger
from dpcore.regression import draw as regression_draw
from dpcore.regression import working_set
from dpcore.regression.answer import RegressionSolution
from dpcore.regression.answer.plots import list_weights, plot_directions, plot_gap
from dpcore.regression.draw import Draw
from dpcore.regression.parameters import DataSource
from dpcore.report.content import Line, Report
from dpcore.report.script import Code, Source, write_table_cell
from pages.regression import inputs, release, work
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import RegressionData
from pages.shared.base import tables
from pages.shared.card import cards, solver_check
from pages.shared.card.expenditure import lost_sentence, released_lines, spent_lines
from pages.shared.fields import fields, jobs
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots

METHODS = {"ours": "Best weights", "best bound": "Best bound", "no bound": "No bound"}


def show_behind(answer: Answer) -> None:
    """How sure the answer is, what it assumes, what it used, and all methods beside each other."""
    cards.behind(answer)
    st.caption(inputs.what_is_used(answer.solution))
    _show_methods(answer.solution)


def _show_methods(found: RegressionSolution) -> None:
    unit = wording.plain(found.unit, 20)
    least = found.methods[0].coefficients
    table = pd.DataFrame(
        {
            "Method": [method.name for method in found.methods],
            "Standard error, coefficients": [method.coefficients for method in found.methods],
            "Times the best": [method.coefficients / least for method in found.methods]
            if least > 0.0
            else None,
            "Error, predictions": [method.predictions for method in found.methods],
            "Privacy noise": [100.0 * method.noise_share for method in found.methods],
            "What it is": [method.note for method in found.methods],
        }
    )
    st.markdown("**All methods beside each other**")
    tables.show(
        table,
        "Errors of the best weights, the best bound, no bound, one row per user and user averages",
        "regression_methods",
        {
            "Standard error, coefficients": "%.4g",
            "Times the best": "%.3g",
            "Error, predictions": "%.4g",
            "Privacy noise": "%.2g %%",
        },
    )
    st.caption(
        f"Standard error over all coefficients together ({unit} per unit of feature); root mean squared error of "
        f"predictions ({unit}); share of the variance that is privacy noise. Bounds are averaged over "
        f"{wording.counted(found.draws.num_draws, 'draw')}, "
        "each bound's prediction error at the bound that is best for the coefficients."
    )


def show_weights(answer: Answer) -> None:
    """What each user's rows weigh, by size and by direction."""
    st.markdown(
        "**Look at** the heavy users on the right: with no bound one of them weighs far more than all others and sets "
        "the noise. The best weights hold everybody at one level and let light users count for more."
    )
    left, right = st.columns(2)
    with left:
        plots.draw_titled(answer.plots["regression-weights"]())
    with right:
        title = st.container()
        key, there = QUESTION.key("weights_of"), list_weights(answer.solution)
        if st.session_state.get(key) not in there:
            st.session_state[key] = "ours"
        names = {method: words for method, words in METHODS.items() if method in there}
        of: str = fields.choice("Share of each coefficient's weight, under", names, key)
        plot = plot_directions(answer.solution, of)
        title.markdown(f"**{plot.title}**")
        plots.draw(plot)
    cards.label(answer.disclosure)


def show_search(found: RegressionSolution) -> None:
    """The gap by iteration, live while the search goes on."""
    st.markdown(
        "After each iteration the best weights so far, and a bound that no weights go below, are computed from the "
        "data. The figure shows the gap between them."
    )
    if work.SOLVE.running:
        _show_live_gap(found)
        return
    steps = found.best_estimate.steps
    st.markdown(
        f"{found.best_estimate.stop_reason} {wording.counted(len(steps), 'iteration')} in {steps[-1].seconds:.2f} "
        "seconds."
    )
    plots.draw(plot_gap(steps, found.data.provenance))
    problem, most = found.problem, working_set.MOST_ENTRIES
    entries = problem.num_rows * problem.num_features
    solver_check.show(
        QUESTION.key("cvxpy"),
        problem.digest,
        lambda stop: working_set.compare_solvers(problem, stop),
        "Total variance",
        f"A general solver takes too long for the {entries:,} entries of C; the comparison is offered up to {most:,}."
        if entries > most
        else "",
    )
    cards.label(found.data.provenance)


@st.fragment(run_every=jobs.POLL_SECONDS)
def _show_live_gap(found: RegressionSolution) -> None:
    if steps := list(st.session_state[work.STEPS]):
        plots.draw(plot_gap(steps, found.data.provenance))


def content(answer: Answer, loaded: RegressionData, made: Sequence[Draw], ledger: Ledger) -> Report:
    """Return what the page contributes to its report, with the latest of ``made``, if any, and all that was
    spent.
    """

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if is_generated:
            return "data = None  # Features, labels and owners are generated, as the settings say."
        return write_table_cell(code, source, public_only, loaded.design, "dpcore.regression")

    is_generated = answer.parameters.source is DataSource.GENERATED
    asked = ["lower", "upper", "source", "variance_source", "residual_variance"]
    asked += GENERATOR_FIELDS if is_generated else ()
    source = Source(answer.solution.data, needs_rows=True, write_cell=cell)
    of = report_content.of_answer(QUESTION, answer, source, setting_labels=QUESTION.asked(*asked))
    return replace(of, releases=_released(made, ledger))


def _released(made: Sequence[Draw], ledger: Ledger) -> tuple[Line, ...]:
    """Return the latest draw, and all that was spent: releases that ended in an error, too."""
    spent = spent_lines(ledger, lost_sentence(ledger, len(made), "these labels"))
    if not made:
        return spent
    draw = made[-1].coefficients
    note = f"Draw {len(made)} of these labels; Laplace noise of scale {wording.number(draw.release.scale)}."
    return released_lines(made[-1].names, draw.release.values, note, draw.facts.label, spent)


def show_files(answer: Answer, loaded: RegressionData) -> None:
    """The whole answer; C and the choice as files."""
    disclosure, found = answer.disclosure, answer.solution
    of = release.releases(loaded)
    draws, ledger = tuple(of.made), of.ledger
    take_away.draw(
        "regression",
        disclosure,
        lambda: content(answer, loaded, draws, ledger),
        answer.methods,
        "**C** holds one line per complete row of the table and one column per coefficient: the sums over rows of "
        "entry × clipped label are the coefficients before noise. **Choice** holds the question and the answer. "
        f"Label in both: *{disclosure.label}*. Released coefficients are under *Release*; each figure has its data "
        "below it.",
        [
            (
                "C (Parquet)",
                "regression_matrix.parquet",
                lambda: regression_draw.matrix_parquet(found.problem, found.best_estimate, disclosure),
            )
        ],
    )
    rows, features = found.problem.num_rows, found.problem.num_features
    st.caption(f"C has {wording.counted(rows, 'line')} and {wording.counted(features, 'coefficient')}.")
