"""What a person enters on the Mean page, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore import mean
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean.private_counts import PrivateCountsProblem
from pages.mean import cached
from pages.mean.question import QUESTION
from pages.shared import fields, missing, value_range

FROM_VALUES = mean.VarianceSource.FROM_VALUES


def read(data: Dataset) -> mean.MeanParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION)
    if data.release is not None and st.session_state[QUESTION.key("variance_source")] is FROM_VALUES:
        st.session_state[QUESTION.key("variance_source")] = (
            mean.VarianceSource.WORST_CASE
        )  # A release has no values.
    with st.container(border=True, key="mean_inputs"):
        with fields.row():
            fields.draw(QUESTION, "counts")
            sources = [s for s in mean.VarianceSource if data.release is None or s is not FROM_VALUES]
            source = fields.draw(QUESTION, "variance_source", options=sources)
            if source is mean.VarianceSource.ENTERED:
                fields.draw(QUESTION, "value_variance")
        with fields.row():
            fields.draw(QUESTION, "lower")
            fields.draw(QUESTION, "upper")
            fields.draw(QUESTION, "own_cap")
        ends = {QUESTION.key("lower"): "L", QUESTION.key("upper"): "U"}
        missing.say_cleared(
            ends | {QUESTION.key("value_variance"): "σ²"} if source is mean.VarianceSource.ENTERED else ends
        )
        unused = () if source is mean.VarianceSource.ENTERED else ("value_variance",)
        parameters: mean.MeanParameters | None = fields.build(QUESTION, unused=unused)
        if parameters is not None:
            _say_what_is_used(data, parameters)
    return parameters


def _say_what_is_used(data: Dataset, parameters: mean.MeanParameters) -> None:
    clamped = cached.clamped_values(data.digest, parameters.lower, parameters.upper, data)
    problem = (
        parameters.problem(data.histogram, clamped.variance, clamped.mean)
        if clamped
        else parameters.problem(data.histogram)
    )
    words = [
        f"B = {wording.number(parameters.value_bound)}, σ² = {wording.number(problem.value_variance)}"
        f" (at most B²/4 = {wording.number(parameters.largest_variance)})."
    ]
    outside = None
    if clamped is not None:
        outside = value_range.Outside(clamped.num_below, clamped.num_above, data.histogram.num_rows)
        words.append(outside.sentence("[L, U]", " and is clamped", " and are clamped"))
    elif data.values is None:
        which = "A DP release has" if data.release is not None else "These data have"
        words.append(f"{which} no values, only counts: σ² cannot be read from them.")
        if parameters.variance_source is mean.VarianceSource.FROM_VALUES:
            words.append("The worst case stands in for it.")
    if isinstance(problem, PrivateCountsProblem):
        words.append(
            "The effect of the noise is computed for the mean at which it is largest (L or U)."
            if problem.value_mean is None
            else "The effect of the noise is computed at the mean of the values, "
            f"{wording.number(parameters.lower + problem.value_mean)}."
        )
    value_range.say(
        data,
        words,
        outside,
        "are clamped: the mean released will be far from the mean of the values. Set L and U "
        f"{value_range.KNOW}",
    )
