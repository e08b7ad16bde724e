"""What a person enters on the Regression page: bounds and sigma^2; as one validated parameters object."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dpcore.common import wording
from dpcore.regression.parameters import DataSource, NoiseSource, RegressionParameters
from pages.regression import cached
from pages.regression.data import GENERATOR_FIELDS, generator_key
from pages.regression.upload import Loaded
from pages.shared import fields, keys
from pages.shared.text import plain

NOISE_NAMES = {NoiseSource.ORDINARY: "From labels", NoiseSource.ENTERED: "Entered"}
WARN_CLIPPED = 0.05
"""Share of clipped labels above which the page warns."""


def defaults() -> None:
    """Values of all widgets before anything was entered or linked."""
    fields.defaults(
        {
            keys.REGRESSION_SOURCE: DataSource.GENERATED,
            **{generator_key(field): getattr(RegressionParameters, field) for field in GENERATOR_FIELDS},
            keys.REGRESSION_LOWER: None,
            keys.REGRESSION_UPPER: None,
            keys.REGRESSION_VARIANCE: None,
            keys.REGRESSION_NOISE: NoiseSource.ORDINARY,
        }
    )


def _propose(loaded: Loaded) -> None:
    """Label bounds for public data, rounded out; none for private data. What a person entered stays."""
    state, table = st.session_state, loaded.dataset.table
    assert table is not None
    now = (state[keys.REGRESSION_LOWER], state[keys.REGRESSION_UPPER])
    if now not in (state.get(keys.REGRESSION_PROPOSED, (None, None)), (None, None)):
        return
    proposed: tuple[float | None, float | None] = (None, None)
    if not loaded.dataset.is_private:
        proposed = rounded_out(float(table.labels.min()), float(table.labels.max()))
    before = state.get(keys.REGRESSION_PROPOSED)
    # Only where it differs: an assignment that reaches the browser late undoes a key press. And where the
    # person has cleared what was proposed, the page says so instead of filling it in again.
    if before != proposed:
        state[keys.REGRESSION_LOWER], state[keys.REGRESSION_UPPER] = proposed
        state[keys.REGRESSION_PROPOSED] = proposed


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Bounds of two significant digits that contain [low, high]; an interval of some length in any case."""
    largest = max(abs(low), abs(high))
    unit = 10.0 ** (math.floor(math.log10(largest)) - 1) if largest > 0.0 else 1.0
    lower, upper = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return float(f"{lower:.6g}"), float(f"{upper if upper > lower else lower + unit:.6g}")


def read(loaded: Loaded) -> RegressionParameters | None:
    """Draw bounds and sigma^2. Returns None, with the sentences on the page, where they do not fit together."""
    _propose(loaded)
    table = loaded.dataset.table
    assert table is not None
    unit = plain(table.label, 20)
    columns = st.columns([3, 3, 5])
    for column, key, label, help_text in (
        (columns[0], keys.REGRESSION_LOWER, "Lowest label L", "Labels below are raised to it."),
        (columns[1], keys.REGRESSION_UPPER, "Highest label U", "Labels above are lowered to it."),
    ):
        with column:
            fields.number(
                f"{label} ({unit})",
                key,
                f"{help_text} From what the quantity is, not from data. B = U − L sets the noise.",
            )
    with columns[2]:
        noise = fields.choice(
            "Variance of a label around the model, σ²",
            NOISE_NAMES,
            keys.REGRESSION_NOISE,
            "From labels: by ordinary least squares, as private as the labels. Entered: what you know.",
        )
        if noise is NoiseSource.ENTERED:
            fields.number(f"σ² ({unit}, squared)", keys.REGRESSION_VARIANCE)
    state = st.session_state
    if loaded.dataset.is_private and state[keys.REGRESSION_LOWER] is state[keys.REGRESSION_UPPER] is None:
        st.info(
            "Enter the lowest and the highest label that can be: from what the quantity is (1 and 10 for a rating, "
            "say), not from the data, which are private.",
            icon=":material/edit:",
        )
        return None
    parameters = _parameters()
    if parameters is not None:
        _say_what_is_used(loaded, parameters)
    return parameters


LABELS = {
    "epsilon": "Privacy budget ε",
    "lower": "Lowest label L",
    "upper": "Highest label U",
    "noise_variance": "Variance σ²",
}


def _parameters() -> RegressionParameters | None:
    state = st.session_state
    # Empty fields of the generator are named where the data are made, and matter to no upload.
    unused = {field for field in GENERATOR_FIELDS if state[generator_key(field)] is None}
    if state[keys.REGRESSION_NOISE] is not NoiseSource.ENTERED:
        unused.add("noise_variance")
    found: RegressionParameters | None = fields.build("Regression", LABELS, unused=unused)
    return found


def noise_variance(loaded: Loaded, parameters: RegressionParameters) -> float:
    """sigma^2 in use."""
    if parameters.noise_variance is not None:
        return parameters.noise_variance
    data = loaded.dataset
    assert data.table is not None
    return cached.regression_variance(data.digest, parameters.lower, parameters.upper, data.table)


def _say_what_is_used(loaded: Loaded, parameters: RegressionParameters) -> None:
    data = loaded.dataset
    table = data.table
    assert table is not None
    variance = noise_variance(loaded, parameters)
    clipped = int(np.count_nonzero((table.labels < parameters.lower) | (table.labels > parameters.upper)))
    rows = table.labels.size
    private = parameters.noise is NoiseSource.ORDINARY and data.is_private
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
