"""Sum and count: the best bound on what one user adds to a sum or a count."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer, Plot
from dpcore.answer.section import Cached
from dpcore.common.wording import escape_text
from dpcore.dataset import Dataset
from dpcore.total.answer import SignedSolution, build_answer, build_refused_answer, explain_refusal
from dpcore.total.answer.answer import solve_beside_page
from dpcore.total.parameters import Summed, TotalParameters, UserTotals, compute_user_totals
from pages.shared.base import cache, catalogue
from pages.shared.card import cards
from pages.shared.render import question_page
from pages.shared.render.question_page import Page
from pages.shared.screen import layout
from pages.shared.session import session
from pages.total.question import QUESTION

REPORTED_FIELDS = (
    "mechanism",
    "delta",
    "summed",
    "objective",
    "own_bound",
    "lower",
    "upper",
    "highest_total",
)


def compute_totals(dataset: Dataset) -> UserTotals:
    """Return what all users add, rows or values as the field of the session says; cached."""
    summed = st.session_state[QUESTION.get_key("summed")]
    user_totals: UserTotals = cache.compute_cached(Cached(compute_user_totals, (dataset, summed)))
    return user_totals


def is_signed(answer: Answer) -> bool:
    """Return True if some user's total is negative."""
    return isinstance(answer.solution, SignedSolution)


class TotalPage(Page):
    """The page *Sum and count*."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> TotalParameters | None:
        """Draw the inputs, with L and U if some total is negative, and return the parameters; None if refused."""

        def is_hidden(field_name: str) -> bool:
            """Return True for the ends of a range if no total is negative."""
            return field_name in ("lower", "upper") and compute_totals(dataset).signed_totals is None

        return question_page.read_inputs(QUESTION, slots, is_hidden=is_hidden)

    def refuse(self, slots: layout.PageSlots, dataset: Dataset, parameters: TotalParameters) -> bool:
        """Say why there is nothing to add up and return True, else False; for private values offer to draw a bound."""
        user_totals = compute_totals(dataset)
        if not (reason_sentence := explain_refusal(user_totals)):
            return False
        with slots.notes:
            st.info(escape_text(reason_sentence, 400), icon=":material/info:")
            if user_totals.amounts is None:
                session.draw_data_link("Upload values")
        if user_totals.column_name and dataset.is_private:
            with slots.answer:
                cards.draw_answer(build_refused_answer(dataset, parameters), "total_card")
        return True

    def draw_main(self, answer: Answer, label_text: str) -> Plot:
        """Draw the error over the bound; say so if the best bound is off its axis or cannot be dragged."""
        plot = super().draw_main(answer, label_text)
        if not is_signed(answer) and answer.solution.choice.max_total == 0.0:
            st.caption("The best bound, 0, is off the log axis.")
        elif plot.handle is None:
            st.caption("You can drag the bound only for ranges [−T, T].")
        return plot

    def describe_files(self, answer: Answer) -> str:
        """Describe the content of the file *Choice*."""
        return f"**Choice** holds the question, the bound and its errors. Label: *{answer.disclosure.label}*."

    def list_report_fields(self, answer: Answer) -> tuple[str, ...]:
        """Return the names of the fields for the report, without what only the simulation asks for."""
        return REPORTED_FIELDS if is_signed(answer) else (*REPORTED_FIELDS, "own_share")

    def reads_rows(self, answer: Answer) -> bool:
        """Return True if values are added up."""
        return answer.parameters.summed is Summed.VALUES

    def name_variant(self, answer: Answer) -> str:
        """Return "signed" if some user's total is negative; else an empty text."""
        return "signed" if is_signed(answer) else ""

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Draw a link to *Group by* below everything, unless some user's total is negative."""
        if not is_signed(answer):
            with slots.bottom:
                st.page_link(
                    catalogue.find_page("Group by").page_path, label="Group by", icon=":material/table_rows:"
                )


TotalPage(QUESTION, solve_beside_page, build_answer).show()
