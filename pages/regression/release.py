"""One DP draw of the coefficients, on request, counted; and the table of coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.privacy import Charge, format_rounded_up
from dpcore.data.column_names import escape_formula
from dpcore.regression import draw as regression_draw
from dpcore.regression.answer import RegressionSolution
from dpcore.regression.answer.solution import table_of
from dpcore.regression.draw import Draw, draw_coefficients, interval_half_widths
from dpcore.regression.estimate import coefficient_variances
from pages.regression.question import QUESTION
from pages.regression.upload import RegressionData
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.card.releases import Releases
from pages.shared.fields import fields


def show(loaded: RegressionData, found: RegressionSolution) -> None:
    """What a draw would be, the button, and the latest draw with its label."""
    of = releases(loaded)
    made = of.made
    epsilon = format_rounded_up(found.problem.epsilon)
    st.markdown(
        f"A draw adds fresh Laplace noise of scale **{wording.number(found.best_estimate.noise.scale)}** to each "
        f"coefficient, by OpenDP, and spends **ε = {epsilon}**. The page keeps it and draws again only when you ask; "
        "every further draw of the same labels spends more."
    )
    if found.variance_is_private:
        st.warning(
            "σ² was read from private labels, and C depends on it: ε would not cover that. Enter a σ² that you may "
            "publish under *More settings*, then draw.",
            icon=":material/lock:",
        )
    again = f"Draw once more: spends another ε = {epsilon}"
    st.button(
        again if made else f"Draw the coefficients: spends ε = {epsilon}",
        key="regression_draw",
        on_click=_draw,
        args=(loaded, found),
        type="secondary" if made else fields.main_button(),
        icon=":material/casino:",
        disabled=found.variance_is_private or found.stage is not Stage.FINAL,
        help=None if found.stage is Stage.FINAL else "It waits for the end of the search.",
    )
    of.say_refused()
    of.show_account(
        made[-1].coefficients.facts if made else None,
        bool(made) and made[-1].question != found.problem.digest,
    )
    _show_table(loaded, found, made[-1] if made else None)
    if not made:
        cards.label(found.data.provenance)
    else:
        of.file_button(
            "Released coefficients (CSV)", lambda: regression_draw.released_csv(made), "released-coefficients"
        )


def releases(loaded: RegressionData) -> Releases:
    """Those of the labels in use."""
    return Releases(QUESTION, loaded.account, "these labels")


def _draw(loaded: RegressionData, found: RegressionSolution) -> None:
    labels = table_of(found.data).labels
    # From public figures: before anything is spent.
    half_widths = interval_half_widths(found.problem, found.best_estimate)

    def draw(charge: Charge) -> Draw:
        drawn = draw_coefficients(
            found.problem, found.best_estimate, labels, found.parameters.lower, charge=charge
        )
        return Draw(found.problem.digest, found.problem.feature_names, drawn, half_widths)

    releases(loaded).draw(draw)


def _show_table(loaded: RegressionData, found: RegressionSolution, draw: Draw | None) -> None:
    columns: dict[str, Any]
    if draw is None:
        errors = np.sqrt(coefficient_variances(found.problem, found.best_estimate))
        columns = {
            "Coefficient": [escape_formula(name) for name in found.problem.feature_names],
            "Noise scale b": np.full(errors.size, found.best_estimate.noise.scale),
            "Standard error": errors,
        }
    else:
        values, half = draw.coefficients.release.values, draw.half_widths
        columns = {
            "Coefficient": [escape_formula(name) for name in draw.names],
            "Released": values,
            "95 % from": values - half,
            "95 % to": values + half,
            "Noise scale b": np.full(half.size, draw.coefficients.release.scale),
            "Standard error": draw.coefficients.standard_errors,
        }
    truth = loaded.coefficients
    if truth is not None and len(columns["Coefficient"]) == truth.size:
        columns["True (generated)"] = truth
    tables.show(
        pd.DataFrame(columns),
        "Coefficients with noise scale, standard error and, once drawn, released value and interval",
        "regression_coefficients",
        dict.fromkeys([name for name in columns if name != "Coefficient"], "%.4g"),
    )
    unit = wording.plain(found.unit, 30)
    st.caption(
        f"A coefficient is in {unit} per unit of its feature; that of a one-hot feature is in {unit}, compared with "
        "the reference level. Standard error and interval contain sampling error and noise, take σ² as given and "
        "hold for each coefficient alone, where the labels follow the model and few are clipped."
    )
