"""What a person enters on the Regression page, bounds and sigma^2, as one validated parameters object."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dpcore.common import wording
from dpcore.regression.parameters import RegressionParameters, ResidualVarianceSource
from pages.regression import cached
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import RegressionData
from pages.shared import fields
from pages.shared.text import plain

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


def read(loaded: RegressionData) -> RegressionParameters | None:
    """Show bounds and sigma^2. Returns None, with the sentences on the page, where they do not fit together."""
    _propose(loaded)
    table = loaded.dataset.table
    assert table is not None
    unit = plain(table.label, 20)
    columns = st.columns([3, 3, 5])
    for column, name in zip(columns, ("lower", "upper"), strict=False):
        with column:
            fields.draw(QUESTION, name, f"{QUESTION.field(name).label} ({unit})")
    with columns[2]:
        source = fields.draw(QUESTION, "variance_source")
        if source is ResidualVarianceSource.ENTERED:
            fields.draw(QUESTION, "residual_variance", f"σ² ({unit}, squared)")
    state = st.session_state
    if loaded.dataset.is_private and state[QUESTION.key("lower")] is state[QUESTION.key("upper")] is None:
        st.info(
            "Enter the lowest and the highest label that are possible. Take them from what the quantity is (a "
            "rating may run from 1 to 10), not from the data, which are private.",
            icon=":material/edit:",
        )
        return None
    parameters = _parameters()
    if parameters is not None:
        _show_what_is_used(loaded, parameters)
    return parameters


def _parameters() -> RegressionParameters | None:
    state = st.session_state
    # Empty fields of the generator are named where the data are made, and matter to no upload.
    unused = {name for name in GENERATOR_FIELDS if state[QUESTION.key(name)] is None}
    if state[QUESTION.key("variance_source")] is not ResidualVarianceSource.ENTERED:
        unused.add("residual_variance")
    found: RegressionParameters | None = fields.build(QUESTION, unused=unused)
    return found


def residual_variance(loaded: RegressionData, parameters: RegressionParameters) -> float:
    """sigma^2 in use."""
    if parameters.residual_variance is not None:
        return parameters.residual_variance
    data = loaded.dataset
    assert data.table is not None
    return cached.regression_variance(data.digest, parameters.lower, parameters.upper, data.table)


def _show_what_is_used(loaded: RegressionData, parameters: RegressionParameters) -> None:
    data = loaded.dataset
    table = data.table
    assert table is not None
    variance = residual_variance(loaded, parameters)
    clipped = int(np.count_nonzero((table.labels < parameters.lower) | (table.labels > parameters.upper)))
    rows = table.labels.size
    private = parameters.variance_source is ResidualVarianceSource.ORDINARY and data.is_private
    st.caption(
        f"{wording.counted(rows, 'row')} of {wording.counted(data.histogram.num_users, 'user')}, "
        f"{wording.counted(table.features.shape[1], 'feature')}. "
        f"B = {wording.number(parameters.value_bound)}, σ² = {wording.number(variance)}"
        + (" (read from private labels: do not publish)" if private else "")
        + f". {wording.counted(clipped, 'label')} ({wording.percent(clipped / rows)}) outside [L, U]"
        + (" clipped to it." if clipped else ".")
    )
    if clipped > WARN_CLIPPED * rows:
        st.warning(
            f"{wording.percent(clipped / rows)} of the labels are clipped: the coefficients will be off by more than "
            "any number below says. Set L and U from what you know of the quantity.",
            icon=":material/warning:",
        )
