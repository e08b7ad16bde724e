"""The Regression page's tabs but those with work of their own."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.markdown import plain
from dpcore.regression import files
from pages.regression import figures as regression_charts
from pages.regression import inputs, methods, release, report, weight_figures, work
from pages.regression.answer import RegressionView
from pages.regression.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.figures import figures
from pages.shared.report import take_away

METHODS = {"ours": "Best weights C", "best cap": "Best cap", "no cap": "No cap"}


def show_behind(view: RegressionView, answer: Answer) -> None:
    """How sure the answer is, what it assumes, what it used, and all methods beside each other."""
    cards.behind(answer)
    st.caption(inputs.what_is_used(view))
    _show_methods(view)


def _show_methods(view: RegressionView) -> None:
    unit = plain(view.unit, 20)
    least = view.methods[0].coefficients
    table = pd.DataFrame(
        {
            "Method": [method.name for method in view.methods],
            "Standard error, coefficients": [method.coefficients for method in view.methods],
            "Times the best": [method.coefficients / least for method in view.methods]
            if least > 0.0
            else None,
            "Error, predictions": [method.predictions for method in view.methods],
            "Privacy noise": [100.0 * method.noise_share for method in view.methods],
            "What it is": [method.note for method in view.methods],
        }
    )
    st.markdown("**All methods beside each other**")
    tables.show(
        table,
        "Errors of the best weights, the best cap, no cap, one row per user and user averages",
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
        f"predictions ({unit}); share of the variance that is privacy noise. Caps are averaged over "
        f"{wording.counted(view.draws.num_draws, 'draw')}, "
        "each cap's prediction error at the cap that is best for the coefficients."
    )


def show_weights(view: RegressionView) -> None:
    """What each user's rows weigh, by size and by direction."""
    st.markdown(
        "**Look at** the heavy users on the right: with no cap one of them weighs far more than all others and sets "
        "the noise. The best weights hold everybody at one level and let light users count for more."
    )
    left, right = st.columns(2)
    with left:
        weights = weight_figures.weights_picture(view)
        st.markdown(f"**{weights.title}**")
        figures.show_picture(weights)
    with right:
        title = st.container()
        key, there = QUESTION.key("weights_of"), weight_figures.weights_of(view)
        if st.session_state.get(key) not in there:
            st.session_state[key] = "ours"
        offered = {method: words for method, words in METHODS.items() if method in there}
        of: str = fields.choice("Share of each coefficient's weight, under", offered, key)
        directions = weight_figures.direction_picture(view, of)
        title.markdown(f"**{directions.title}**")
        figures.show_picture(directions)
    cards.label(view.loaded.dataset.provenance)


def show_search(view: RegressionView) -> None:
    """The gap by iteration, live while the search goes on."""
    st.markdown(
        "After each iteration the best C so far, and a bound that no C goes below, are computed from the data. The "
        "figure shows the gap between them."
    )
    if work.running():
        _show_live_gap(view)
        return
    steps = view.ours.steps
    st.markdown(
        f"{view.ours.ended} {wording.counted(len(steps), 'iteration')} in {steps[-1].seconds:.2f} seconds."
    )
    figures.show_picture(regression_charts.gap_picture(steps, view.loaded.dataset.provenance))


@st.fragment(run_every=jobs.POLL_SECONDS)
def _show_live_gap(view: RegressionView) -> None:
    if steps := list(work.so_far().steps):
        figures.show_picture(regression_charts.gap_picture(steps, view.loaded.dataset.provenance))


def show_files(view: RegressionView) -> None:
    """The whole answer; C and the choice as files."""
    disclosure = view.loaded.dataset.provenance
    of = release.releases(view)
    draws, ledger = tuple(of.made), of.ledger
    take_away.draw(
        "regression",
        disclosure,
        lambda: report.regression_report(view, draws, ledger),
        methods.methods(view),
        "**C** holds one line per complete row of the table and one column per coefficient: the sums over rows of "
        "entry × clipped label are the coefficients before noise. **Choice** holds the question and the answer. "
        f"Label in both: *{disclosure.label}*. Released coefficients are under *Release*; each figure has its data "
        "below it.",
        [
            (
                "C (Parquet)",
                "regression_matrix.parquet",
                lambda: files.matrix_parquet(view.problem, view.ours, disclosure),
            )
        ],
    )
    rows, features = view.problem.num_rows, view.problem.num_features
    st.caption(f"C has {wording.counted(rows, 'line')} and {wording.counted(features, 'coefficient')}.")
