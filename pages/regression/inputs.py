"""The inputs of the page Regression, and the range of labels that it proposes."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.regression.answer import RegressionSolution
from dpcore.regression.answer.solution import FIT, ErrorOf, table_of
from dpcore.regression.parameters import RegressionParameters
from pages.regression import cached
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import RegressionData
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import inputs, layout

WARN_CLIPPED = 0.05
"""Share of clipped labels above which the page warns."""


def _propose(loaded: RegressionData) -> None:
    """Propose the range of public labels, rounded out, and none for private labels. A range that was entered stays."""
    state, key = st.session_state, QUESTION.key
    before = state.get(key("proposed"))
    if (state[key("lower")], state[key("upper")]) not in (before or (None, None), (None, None)):
        return
    labels = table_of(loaded.dataset).labels
    proposed = (None, None) if loaded.dataset.is_private else rounded_out(labels.min(), labels.max())
    # Only where it differs: an assignment that reaches the browser late undoes a key press. And where the
    # person has cleared what was proposed, the page says so instead of filling it in again.
    if before != proposed:
        state[key("lower")], state[key("upper")] = state[key("proposed")] = proposed


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Return an interval that contains [low, high], with ends of two significant digits and a positive length."""
    largest = max(abs(low), abs(high))
    unit = 10.0 ** (math.floor(math.log10(largest)) - 1) if largest > 0.0 else 1.0
    lower, upper = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return float(f"{lower:.6g}"), float(f"{upper if upper > lower else lower + unit:.6g}")


def read(loaded: RegressionData, places: layout.Places) -> tuple[RegressionParameters | None, ErrorOf]:
    """Draw the inputs; return the parameters, and which error to show.

    The parameters are None, with the sentences on the page, if they are refused.
    """
    _propose(loaded)
    state, key = st.session_state, QUESTION.key
    squared = f"σ² ({wording.plain(table_of(loaded.dataset).label, 20)}, squared)"

    def ask_range(unused: Collection[str]) -> bool:
        if not loaded.dataset.is_private or not state[key("lower")] is state[key("upper")] is None:
            return False
        st.info(
            "**What range can a label have?** Enter L and U from what the quantity is (a rating may run from 1 to "
            "10). Do not read them off the data, which are private. The answer follows.",
            icon=":material/straighten:",
        )
        return True

    parameters: RegressionParameters | None = inputs.read(
        QUESTION,
        places,
        # Empty fields of the generator are named where the data are made, and matter to no upload.
        hidden=GENERATOR_FIELDS.__contains__,
        widgets={"residual_variance": lambda: fields.draw(QUESTION, "residual_variance", squared)},
        more=_draw_error_choice,
        ask_first=ask_range,
    )
    if parameters is not None:
        with places.notes:
            _warn(loaded, parameters)
    return parameters, state[key("error")]


ERROR_NAMES = {ErrorOf.COEFFICIENTS: "Coefficients", ErrorOf.PREDICTIONS: "Predictions"}


def _draw_error_choice() -> None:
    """Draw the choice of the error that the figures show."""
    key = QUESTION.key("error")
    st.session_state.setdefault(key, ErrorOf.COEFFICIENTS)
    fields.choice("Figures show the error of", ERROR_NAMES, key, FIT)


def residual_variance(loaded: RegressionData, parameters: RegressionParameters) -> float:
    """Return sigma^2 as entered, or as estimated from the labels."""
    if parameters.residual_variance is not None:
        return parameters.residual_variance
    data = loaded.dataset
    return cached.regression_variance(data.digest, parameters.lower, parameters.upper, table_of(data))


def _clipped(data: Dataset, parameters: RegressionParameters) -> int:
    """Return the number of labels outside [L, U]."""
    table = table_of(data)
    return int(np.count_nonzero((table.labels < parameters.lower) | (table.labels > parameters.upper)))


def _warn(loaded: RegressionData, parameters: RegressionParameters) -> None:
    rows, clipped = loaded.dataset.histogram.num_rows, _clipped(loaded.dataset, parameters)
    if clipped > WARN_CLIPPED * rows:
        st.warning(
            f"{wording.percent(clipped / rows)} of the labels are clipped: the coefficients will be off by more than "
            "any number below says. Set L and U from what you know of the quantity.",
            icon=":material/warning:",
        )
        if loaded.dataset.is_private:
            cards.label(loaded.dataset.provenance)


def what_is_used(found: RegressionSolution) -> str:
    """Return the quantities that the answer is computed with, and where they come from."""
    data, problem = found.data, found.problem
    clipped = _clipped(data, found.parameters)
    return (
        f"{wording.plain(data.source, 600)} {wording.counted(problem.num_rows, 'row')} of "
        f"{wording.counted(problem.num_users, 'user')}, {wording.counted(problem.num_features, 'feature')}. "
        f"B = {wording.number(problem.value_bound)}, σ² = {wording.number(problem.residual_variance)}"
        + (" (read from private labels: do not publish)" if found.variance_is_private else "")
        + f". {wording.counted(clipped, 'label')} ({wording.percent(clipped / problem.num_rows)}) "
        + f"{wording.agreeing(clipped, 'lies', 'lie')} outside [L, U]"
        + (f" and {wording.agreeing(clipped, 'is', 'are')} clipped." if clipped else ".")
    )
