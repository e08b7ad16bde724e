"""What a person enters on the Mean page, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore import mean
from dpcore.answer import Answer
from dpcore.answer.value_range import Outside
from dpcore.common import wording
from dpcore.common.privacy import ReleaseFacts
from dpcore.dataset import Dataset
from dpcore.mean.private_counts import PrivateCountsProblem
from pages.mean.question import QUESTION
from pages.shared.fields import fields
from pages.shared.screen import layout, value_range
from pages.shared.session import stand_ins

FROM_VALUES = mean.VarianceSource.FROM_VALUES


def read(data: Dataset, places: layout.Places) -> mean.MeanParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION)
    state, source_key = st.session_state, QUESTION.key("variance_source")
    if data.release is not None and state[source_key] is FROM_VALUES:
        state[source_key] = mean.VarianceSource.WORST_CASE  # A release has no values.
    with places.line:
        fields.draw_all(QUESTION, "lower", "upper")
    with places.more("mean_more"):
        fields.draw(QUESTION, "counts")
        sources = [s for s in mean.VarianceSource if data.release is None or s is not FROM_VALUES]
        source = fields.draw(QUESTION, "variance_source", options=sources)
        entered = source is mean.VarianceSource.ENTERED
        if entered:
            fields.draw(QUESTION, "value_variance")
    with places.notes:
        ends = {QUESTION.key("lower"): "L", QUESTION.key("upper"): "U"}
        if value_range.ask(data, ends):
            return None
        stand_ins.say_cleared(ends | {QUESTION.key("value_variance"): "σ²"} if entered else ends)
        parameters: mean.MeanParameters | None = fields.build(
            QUESTION, unused=() if entered else ("value_variance",), aside=QUESTION.own
        )
        if parameters is not None and data.values is None and parameters.variance_source is FROM_VALUES:
            st.caption("These data have no values to read σ² from: the worst case stands in for it.")
    return parameters


def what_is_used(answer: Answer) -> str:
    """The quantities that the answer is computed with, and where they come from."""
    parameters, problem, clamped = answer.parameters, answer.found.problem, answer.found.clamped
    words = [
        f"B = {wording.number(parameters.value_bound)}, σ² = {wording.number(problem.value_variance)}"
        f" (at most B²/4 = {wording.number(parameters.largest_variance)})."
    ]
    if clamped is not None:
        outside = Outside(clamped.num_below, clamped.num_above, problem.histogram.num_rows)
        words.append(outside.sentence("[L, U]", " and is clamped", " and are clamped"))
    else:
        released = isinstance(answer.disclosure, ReleaseFacts)
        which = "A DP release has" if released else "These data have"
        words.append(f"{which} no values, only counts: σ² cannot be read from them.")
        if parameters.variance_source is FROM_VALUES:
            words.append("The worst case stands in for it.")
    if isinstance(problem, PrivateCountsProblem):
        words.append(
            "The effect of the noise is computed for the mean at which it is largest (L or U)."
            if problem.value_mean is None
            else "The effect of the noise is computed at the mean of the values, "
            f"{wording.number(parameters.lower + problem.value_mean)}."
        )
    return " ".join(words)
