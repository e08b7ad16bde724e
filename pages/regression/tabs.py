"""The Regression page's short tabs: weights, methods, search, downloads; and which error is shown."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.regression import files as downloads
from dpcore.regression.estimate import UserWeights
from pages.regression import figures as regression_charts
from pages.regression import release, report, weight_figures
from pages.regression.answer import ErrorOf, RegressionView
from pages.regression.card import FIT
from pages.regression.question import QUESTION
from pages.shared import cards, figures, file_button, take_away
from pages.shared.text import plain

ERROR_NAMES = {ErrorOf.COEFFICIENTS: "Coefficients", ErrorOf.PREDICTIONS: "Predictions"}
METHODS = {"ours": "Ours", "best cap": "Best cap", "no cap": "No cap"}


def error_control() -> ErrorOf:
    """Which error the figures show."""
    of: ErrorOf = st.segmented_control(
        "Error of the",
        list(ERROR_NAMES),
        key=QUESTION.key("error"),
        default=ErrorOf.COEFFICIENTS,
        format_func=ERROR_NAMES.__getitem__,
        required=True,
        persist_state="session",
        help=FIT,
    )
    return of


def weights(view: RegressionView) -> None:
    """Leverage: what each user's rows weigh, by size and by direction."""
    st.markdown(
        "**Look at** the heavy users on the right: with no cap one of them weighs far more than all others and sets "
        "the noise; ours holds everybody at one level and lets light users count for more."
    )
    found: dict[str, UserWeights] = {}
    for method in ("no cap", "best cap", "ours"):
        weighed = view.weights(method)
        if weighed is not None:
            found[method] = weighed
    sensitivity = view.loaded.dataset.provenance
    columns = weight_figures.weights_columns(found)
    left, right = st.columns(2)
    with left:
        st.markdown("**Weight of a user, by their rows**")
        figures.show(
            weight_figures.weights_figure(columns),
            "regression_weights",
            weight_figures.WEIGHTS_ALT,
            columns,
            sensitivity,
        )
    with right:
        st.markdown("**Who speaks for which direction**")
        of: str = st.segmented_control(
            "Share of each coefficient's weight, under",
            [method for method in METHODS if method in found],
            key=QUESTION.key("weights_of"),
            default="ours",
            format_func=METHODS.__getitem__,
            required=True,
            persist_state="session",
        )
        names = view.problem.feature_names
        shares = weight_figures.direction_columns(found.get(of, found["ours"]), names)
        figures.show(
            weight_figures.direction_figure(shares, names),
            "regression_directions",
            "Which users' rows each coefficient rests on, by how many rows they have.",
            shares,
            sensitivity,
        )
    cards.label(sensitivity)


def methods(view: RegressionView) -> None:
    """All methods side by side."""
    unit = plain(view.unit, 20)
    table = pd.DataFrame(
        {
            "Method": [method.name for method in view.methods],
            "Standard error, coefficients": [method.coefficients for method in view.methods],
            "Times ours": [method.coefficients / view.methods[0].coefficients for method in view.methods]
            if view.methods[0].coefficients > 0.0
            else None,
            "Error, predictions": [method.predictions for method in view.methods],
            "Privacy noise": [100.0 * method.noise_share for method in view.methods],
            "What it is": [method.note for method in view.methods],
        }
    )
    number = st.column_config.NumberColumn(format="%.4g")
    st.dataframe(
        table,
        hide_index=True,
        key="regression_methods",
        column_config={
            "Standard error, coefficients": number,
            "Times ours": st.column_config.NumberColumn(format="%.3g"),
            "Error, predictions": number,
            "Privacy noise": st.column_config.NumberColumn(format="%.2g %%"),
        },
        alt="Errors of ours, the best cap, no cap, one row per user and user averages",
    )
    st.caption(
        f"Standard error over all coefficients together ({unit} per unit of feature); root mean squared error of "
        f"predictions ({unit}); share of the variance that is privacy noise. Caps are averaged over "
        f"{wording.counted(view.draws.num_draws, 'draw')}, "
        "each cap's prediction error at the cap that is best for the coefficients."
    )
    cards.label(view.loaded.dataset.provenance)


def search(view: RegressionView) -> None:
    """The gap by iteration."""
    steps = view.ours.steps
    st.markdown(
        f"{view.ours.ended} {wording.counted(len(steps), 'iteration')} in {steps[-1].seconds:.2f} seconds. After each, "
        "the best C so far and a bound that no C goes below are computed from the data; their distance is the gap."
    )
    figures.show(
        regression_charts.gap_figure(steps),
        "regression_gap",
        regression_charts.gap_alt(steps),
        regression_charts.gap_columns(steps),
        view.loaded.dataset.provenance,
    )


def files(view: RegressionView) -> None:
    """The whole answer; C and the choice as files."""
    data, sensitivity = view.loaded.dataset, view.loaded.dataset.provenance
    draws, spent = tuple(release.draws_of(view)), release.spent_on(view)
    take_away.draw(
        "regression", sensitivity, data.digest, lambda: report.regression_report(view, draws, spent)
    )
    st.markdown(
        "**C** holds one line per complete row of the table and one column per coefficient: the sums over rows of "
        "entry × clipped label are the coefficients before noise. **Choice** holds the question and the answer. "
        f"Label in both: *{sensitivity.label}*. Released coefficients are under *Release*; each figure has its data "
        "below it."
    )
    with st.container(horizontal=True):
        file_button.draw(
            "C (Parquet)",
            "regression_matrix.parquet",
            sensitivity,
            lambda: downloads.matrix_parquet(view.problem, view.ours, sensitivity),
        )
        file_button.draw(
            "Choice (JSON)",
            "regression_choice.json",
            sensitivity,
            lambda: downloads.choice_json(data, view.parameters, view.problem, view.ours, view.caps),
        )
    rows, features = view.problem.num_rows, view.problem.num_features
    st.caption(f"C has {wording.counted(rows, 'line')} and {wording.counted(features, 'coefficient')}.")
