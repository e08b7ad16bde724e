"""What a person enters on the Regression page, bounds and sigma^2, as one validated parameters object."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.regression.answer import RegressionSolution
from dpcore.regression.answer.found import ErrorOf, table_of
from dpcore.regression.answer.words import FIT
from dpcore.regression.parameters import RegressionParameters, ResidualVarianceSource
from pages.regression import cached
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import RegressionData
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import layout

WARN_CLIPPED = 0.05
"""Share of clipped labels above which the page warns."""


def _propose(loaded: RegressionData) -> None:
    """Label bounds for public data, rounded out; none for private data. What a person entered stays."""
    state, table = st.session_state, loaded.dataset.table
    assert table is not None
    now = (state[QUESTION.key("lower")], state[QUESTION.key("upper")])
    if now not in (state.get(QUESTION.key("proposed"), (None, None)), (None, None)):
        return
    proposed: tuple[float | None, float | None] = (None, None)
    if not loaded.dataset.is_private:
        proposed = rounded_out(float(table.labels.min()), float(table.labels.max()))
    before = state.get(QUESTION.key("proposed"))
    # Only where it differs: an assignment that reaches the browser late undoes a key press. And where the
    # person has cleared what was proposed, the page says so instead of filling it in again.
    if before != proposed:
        state[QUESTION.key("lower")], state[QUESTION.key("upper")] = proposed
        state[QUESTION.key("proposed")] = proposed


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Bounds of two significant digits that contain [low, high]; an interval of some length in any case."""
    largest = max(abs(low), abs(high))
    unit = 10.0 ** (math.floor(math.log10(largest)) - 1) if largest > 0.0 else 1.0
    lower, upper = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return float(f"{lower:.6g}"), float(f"{upper if upper > lower else lower + unit:.6g}")


def read(loaded: RegressionData, places: layout.Places) -> tuple[RegressionParameters | None, ErrorOf]:
    """Show the inputs; returns the question and which error to show.

    The question is None, with the sentences on the page, where the inputs do not fit together.
    """
    _propose(loaded)
    table = table_of(loaded.dataset)
    with places.line:
        fields.draw_all(QUESTION, "lower", "upper")
    with places.more("regression_more"):
        source = fields.draw(QUESTION, "variance_source")
        if source is ResidualVarianceSource.ENTERED:
            fields.draw(QUESTION, "residual_variance", f"σ² ({wording.plain(table.label, 20)}, squared)")
        of = _error_control()
    with places.notes:
        state = st.session_state
        empty = state[QUESTION.key("lower")] is state[QUESTION.key("upper")] is None
        if loaded.dataset.is_private and empty:
            st.info(
                "**What range can a label have?** Enter L and U from what the quantity is (a rating may run from 1 to "
                "10). Do not read them off the data, which are private. The answer follows.",
                icon=":material/straighten:",
            )
            return None, of
        parameters = _parameters()
        if parameters is not None:
            _warn(loaded, parameters)
    return parameters, of


ERROR_NAMES = {ErrorOf.COEFFICIENTS: "Coefficients", ErrorOf.PREDICTIONS: "Predictions"}


def _error_control() -> ErrorOf:
    """Return which error the figures show."""
    key = QUESTION.key("error")
    st.session_state.setdefault(key, ErrorOf.COEFFICIENTS)
    of: ErrorOf = fields.choice("Figures show the error of", ERROR_NAMES, key, FIT)
    return of


def _parameters() -> RegressionParameters | None:
    state = st.session_state
    # Empty fields of the generator are named where the data are made, and matter to no upload.
    unused = {name for name in GENERATOR_FIELDS if state[QUESTION.key(name)] is None}
    if state[QUESTION.key("variance_source")] is not ResidualVarianceSource.ENTERED:
        unused.add("residual_variance")
    parameters: RegressionParameters | None = fields.build(QUESTION, unused=unused)
    return parameters


def residual_variance(loaded: RegressionData, parameters: RegressionParameters) -> float:
    """sigma^2 in use."""
    if parameters.residual_variance is not None:
        return parameters.residual_variance
    data = loaded.dataset
    return cached.regression_variance(data.digest, parameters.lower, parameters.upper, table_of(data))


def _clipped(data: Dataset, parameters: RegressionParameters) -> int:
    """Labels outside [L, U]."""
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
