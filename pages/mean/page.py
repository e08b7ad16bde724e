"""Mean: the best cap and the best smooth weights for releasing a mean."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.mean import Likeness, MeanParameters, Target, VarianceSource
from dpcore.mean.answer import build_answer
from dpcore.mean.answer.answer import solve_beside_page
from pages.mean.question import OPTIONS_WITHOUT_VALUES, QUESTION
from pages.shared.base import catalogue
from pages.shared.fields import fields
from pages.shared.render import question_page
from pages.shared.render.question_page import Page
from pages.shared.screen import layout
from pages.shared.session import session

WEIGHTS_LABEL = "Weights vs. caps"


class MeanPage(Page):
    """The page *Mean*."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> MeanParameters | None:
        """Draw the inputs that go with the values at hand, and return the parameters.

        Return None if they are refused, or if L or U must be entered first.
        """
        state, get_key = st.session_state, QUESTION.get_key

        def is_read_off_table(field_name: str) -> bool:
            """Return True for a field that is hidden because the values of the table tell what it would say."""
            targets_table = state[get_key("target")] is Target.TABLE and dataset.values is not None
            reads_values = state[get_key("variance_source")] is VarianceSource.FROM_VALUES
            return field_name in ("likeness", "user_share") and targets_table and reads_values

        def ask_range(unused_names: Collection[str]) -> bool:
            """Ask for L and U and return True if they must be entered; else return False.

            For a release that needs no range, also say which fields it has emptied.
            """
            end_name_by_key = {get_key("lower"): "L", get_key("upper"): "U"}
            if question_page.ask_for_range(dataset, end_name_by_key):
                return True
            if dataset.release is not None:
                if "value_variance" not in unused_names:
                    end_name_by_key[get_key("value_variance")] = "σ²"
                session.explain_cleared(end_name_by_key)
            return False

        parameters: MeanParameters | None = question_page.read_inputs(
            QUESTION,
            slots,
            options_by_field=OPTIONS_WITHOUT_VALUES if dataset.release is not None else {},
            is_hidden=is_read_off_table,
            draw_more=lambda: fields.draw_button(
                "Independent rows, as in the paper", "mean_as_in_paper", "menu_book", _set_paper_model
            ),
            ask_first=ask_range,
        )
        if parameters is not None and dataset.values is None and parameters.reads_values:
            slots.notes.caption(
                "There are no values to read: the worst case stands in for σ², the assumed share for ρ."
            )
        return parameters

    def choose_formula_file(self, answer: Answer) -> str:
        """Return the formula file's name: for this table, users who differ, private counts, or independent rows."""
        solution = answer.solution
        if solution.problem.table_values is not None:
            return "formula_table"
        if solution.is_about_table or solution.problem.user_share:
            return "formula_users"
        return "formula_private" if solution.has_private_counts else "formula"

    def describe_files(self, answer: Answer) -> str:
        """Describe the contents of the files of weights and of the choice."""
        counts_text, sums_text = "public", "Over the file, users × size × row_weight adds up to 1."
        if answer.solution.has_private_counts:
            counts_text, sums_text = "private too", "Weights are not divided by their sum, which is private."
        return (
            "**Weights** hold one line per number of rows: give each row of such a user the weight `row_weight`, or "
            f"keep `rows_kept_at_cap` of them at random. {sums_text} Counts are **{counts_text}**. Label of both "
            f"files: *{answer.disclosure.label}*."
        )

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Draw a link to v(h) and v'(h) of the paper for the same data."""
        slots.answer.page_link(
            catalogue.find_page("Weights vs. caps").page_path, label=WEIGHTS_LABEL, icon=":material/trophy:"
        )

    def reads_rows(self, answer: Answer) -> bool:
        """Return True if the variance is computed from the values."""
        reads_values = answer.parameters.variance_source is VarianceSource.FROM_VALUES
        return reads_values and answer.solution.clamped_values is not None


def _set_paper_model() -> None:
    """Set the model of Epasto et al. 2020: the mean of a distribution that all rows are independent draws of."""
    st.session_state[QUESTION.get_key("target")] = Target.POPULATION
    st.session_state[QUESTION.get_key("likeness")] = Likeness.INDEPENDENT


MeanPage(QUESTION, solve_beside_page, build_answer).show()
