"""Quantile: the exact distribution of a private median or quantile, and the bound that serves it best."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.axes import RANGE_SOURCE_PHRASE, OutsideCounts
from dpcore.common.programs import Program
from dpcore.common.wording import format_digits
from dpcore.dataset import Dataset, Values
from dpcore.quantile.answer import build_answer, words
from dpcore.quantile.answer.answer import solve
from dpcore.quantile.parameters import BaseKind, QuantileParameters, Weighting
from dpcore.quantile.programs import WEIGHTED_PROGRAMS
from pages.quantile.question import QUESTION
from pages.shared.base import question
from pages.shared.base.cache import cache_for_session
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.render import question_page
from pages.shared.render.question_page import Needs, Page
from pages.shared.screen import layout
from pages.shared.session import session

RANGE_TEXT_BY_BASE = {
    BaseKind.UNIFORM: "L and U",
    BaseKind.NORMAL: "the mean of ν and its standard deviation",
    BaseKind.HISTOGRAM: "the bins",
}
"""Fields of the range of answers."""
END_NAMES_BY_BASE = {
    BaseKind.UNIFORM: {"low": "L", "high": "U"},
    BaseKind.NORMAL: {"center": "the mean of ν", "spread": "its standard deviation"},
    BaseKind.HISTOGRAM: {"edges": "the edges of the bins"},
}
"""Fields of the base that private values need, with their names in a sentence."""


class QuantilePage(Page):
    """The page *Quantile*."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> QuantileParameters | None:
        """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused."""
        uses_session_data = dataset is session.get_dataset()
        fields.initialise_fields(QUESTION, uses_session_data)
        _fill_empty_fields(dataset)
        state = st.session_state

        def is_unused(field_name: str) -> bool:
            """Return True if a field has no effect under the other settings."""
            if field_name == "bound_from":
                program, weighting = state[QUESTION.get_key("program")], state[QUESTION.get_key("weighting")]
                is_unbounded = program in WEIGHTED_PROGRAMS and weighting is Weighting.NONE
                return is_unbounded or program is Program.BIGQUERY
            return field_name in ("low", "high") and state[QUESTION.get_key("base")] is not BaseKind.UNIFORM

        def ask_range(unused_names: Collection[str]) -> bool:
            """Ask for the range of the base and return True if values need it and it is missing; else return False."""
            base_kind = state[QUESTION.get_key("base")]
            end_name_by_key = {
                QUESTION.get_key(end_name): end_text
                for end_name, end_text in END_NAMES_BY_BASE[base_kind].items()
            }
            return dataset.values is not None and question_page.ask_for_range(dataset, end_name_by_key)

        parameters: QuantileParameters | None = question_page.read_inputs(
            QUESTION, slots, is_hidden=is_unused, ask_first=ask_range, shares_settings=uses_session_data
        )
        # Warn if many values lie where no answer can fall.
        if parameters is not None and parameters.answer_range is not None and dataset.values is not None:
            with slots.notes:
                outside_counts = count_outside(dataset.digest, *parameters.answer_range, dataset.values)
                if outside_counts.exceeds_warning:
                    warning_text = (
                        "of the values lie outside the base distribution, so no answer can be among them."
                    )
                    remedy_text = f"Set {RANGE_TEXT_BY_BASE[parameters.base]} {RANGE_SOURCE_PHRASE}"
                    st.warning(
                        f"{outside_counts.percent_text} {warning_text} {remedy_text}",
                        icon=":material/warning:",
                    )
                    if dataset.is_private:
                        cards.draw_label(dataset.provenance)
        return parameters

    def describe_files(self, answer: Answer) -> str:
        """Describe the content of the files of weights and of the choice."""
        return (
            "**Weights** hold the weight of a row by the number of rows of its user, **Choice** the question and the "
            f"answer. Label: *{answer.disclosure.label}*."
        )


@cache_for_session(max_entries=8)
def count_outside(digest: str, lower: float, upper: float, _values: Values) -> OutsideCounts:
    """Return the numbers of values below and above [lower, upper], and of all rows."""
    num_below, num_above = (
        int(_values.weigh(side_mask).sum()) for side_mask in (_values.values < lower, _values.values > upper)
    )
    return OutsideCounts(num_below, num_above, _values.num_rows)


def _fill_empty_fields(dataset: Dataset) -> None:
    """Fill empty fields: the range of public values, and the other forms of the base by what fits into that range.

    A link leaves out what does not apply: those fields hold a proposal by the time they come into use. A field in use
    that was emptied stays empty, and a sentence says so.
    """
    state, get_key = st.session_state, QUESTION.get_key
    low, high = state[get_key("low")], state[get_key("high")]
    if low is None and high is None and dataset.values is not None and not dataset.is_private:
        # The data that the page shows may be a demonstration, of which `propose_values` knows nothing.
        low, high = question.round_range_outward(*dataset.values.limits)
        state[get_key("low")], state[get_key("high")] = state[get_key("proposed")] = low, high
    if low is None or high is None or not low < high:
        return
    center = (low + high) / 2.0
    values_by_field = {
        "center": center,
        "spread": (high - low) / 4.0,
        "edges": ", ".join(map(format_digits, (low, center, high))),
        "masses": QUESTION.get_initial_value("masses"),
    }
    for field_name in question_page.list_unused_fields(QUESTION):
        if state[get_key(field_name)] is None:
            state[get_key(field_name)] = values_by_field[field_name]


QuantilePage(
    QUESTION,
    solve,
    build_answer,
    needs=Needs(
        lambda data: data.values is None, "values, one per row", "Upload data with values", words.write_detail
    ),
).show()
