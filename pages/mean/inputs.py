"""What a person enters on the Mean page, as one validated parameters object, and the answer to it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import streamlit as st

from dpcore import mean
from dpcore.answer import Answer
from dpcore.answer.value_range import OutsideCounts
from dpcore.common import wording
from dpcore.common.privacy import ReleaseFacts
from dpcore.dataset import Dataset
from dpcore.mean.answer import MeanSolution, build_answer, solve, words
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.read_values import ValueSummary
from pages.mean.question import QUESTION, WITHOUT_VALUES
from pages.shared.base.cache import cached
from pages.shared.fields import fields
from pages.shared.screen import inputs, layout, value_range
from pages.shared.session import stand_ins

FROM_VALUES = mean.VarianceSource.FROM_VALUES


def read(data: Dataset, places: layout.Places) -> mean.MeanParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    key = QUESTION.key

    def reads_values(name: str) -> bool:
        state = st.session_state
        reads_table = (
            state[key("target")] is mean.Target.TABLE and state[key("variance_source")] is FROM_VALUES
        )
        return name in ("likeness", "user_share") and reads_table and data.values is not None

    def ask_range(unused: Collection[str]) -> bool:
        ends = {key("lower"): "L", key("upper"): "U"}
        if value_range.ask(data, ends):
            return True
        if data.release is not None:
            stand_ins.say_cleared(
                ends if "value_variance" in unused else ends | {key("value_variance"): "σ²"}
            )
        return False

    parameters: mean.MeanParameters | None = inputs.read(
        QUESTION,
        places,
        options=WITHOUT_VALUES if data.release is not None else {},
        hidden=reads_values,
        more=lambda: fields.button(
            "Independent rows, as in the paper", "mean_as_in_paper", "menu_book", _as_in_paper
        ),
        ask_first=ask_range,
    )
    if parameters is not None and data.values is None and words.reads_values(parameters):
        with places.notes:
            st.caption(
                "These data have no values to read: the worst case stands in for σ², and the assumed share for ρ."
            )
    return parameters


def _as_in_paper() -> None:
    """The model of Epasto et al. 2020: the mean of a distribution that all rows are independent draws of."""
    st.session_state[QUESTION.key("target")] = mean.Target.POPULATION
    st.session_state[QUESTION.key("likeness")] = mean.Likeness.INDEPENDENT


def what_is_used(answer: Answer) -> str:
    """Return the quantities that the answer is computed with, and where they come from."""
    parameters, problem, clamped = answer.parameters, answer.solution.problem, answer.solution.clamped
    said = [
        f"B = {wording.number(parameters.value_bound)}, σ² = {wording.number(problem.value_variance)}"
        f" (at most B²/4 = {wording.number(parameters.largest_variance)})"
        + (
            ", the values themselves."
            if problem.table is not None
            else f", ρ = {wording.number(problem.user_share, 2)}."
        )
    ]
    if clamped is not None:
        outside = OutsideCounts(clamped.num_below, clamped.num_above, problem.histogram.num_rows)
        said.append(outside.write_sentence("[L, U]", " and is clamped", " and are clamped"))
    else:
        released = isinstance(answer.disclosure, ReleaseFacts)
        which = "A DP release has" if released else "These data have"
        said.append(f"{which} no values, only counts: σ² cannot be read from them.")
        if parameters.variance_source is FROM_VALUES:
            said.append("The worst case stands in for it.")
    if isinstance(problem, PrivateCountsProblem):
        said.append(
            "The effect of the noise is computed for the mean at which it is largest (L or U)."
            if problem.value_mean is None
            else "The effect of the noise is computed at the mean of the values, "
            f"{wording.number(parameters.lower + problem.value_mean)}."
        )
    return " ".join(said)


def formula(answer: Answer) -> str:
    """Return the file that says how this is computed."""
    found = answer.solution
    if found.problem.table is not None:
        name = "formula_table"
    elif found.is_about_table or found.problem.user_share:
        name = "formula_users"
    else:
        name = "formula"
    return f"{name}_private" if found.has_private_counts and name == "formula" else name


# --- The answer, of which a rerun repeats parts; see `pages.shared.base.cache` ----------------------------------------


@cached(max_entries=8)
def _read(digest: str, lower: float, upper: float, _data: Dataset) -> ValueSummary | None:
    return ValueSummary.from_dataset(_data, lower, upper)


@cached(max_entries=16)
def _found(digest: str, parameters: mean.MeanParameters, _data: Dataset) -> MeanSolution:
    return solve(_data, parameters, _read(digest, parameters.lower, parameters.upper, _data))


def mean_answer(data: Dataset, parameters: mean.MeanParameters) -> Answer:
    """Return the answer; a cap of the person's own moves one mark and is no part of what is kept."""
    asked = parameters if parameters.own_cap is None else replace(parameters, own_cap=None)
    return build_answer(data, parameters, _found(data.digest, asked, data))
