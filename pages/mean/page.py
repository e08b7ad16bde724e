"""Mean: the best cap and the best smooth weights for releasing a mean."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, VarianceSource
from dpcore.mean.answer import build_answer, words
from dpcore.mean.answer.answer import solve_beside_page
from pages.mean import inputs
from pages.mean.question import QUESTION
from pages.shared.render.question_page import Page
from pages.shared.screen import layout


class MeanPage(Page):
    """The page."""

    def read_inputs(self, slots: layout.PageSlots, data: Dataset) -> MeanParameters | None:
        """Draw the inputs that go with the values at hand."""
        return inputs.read_inputs(data, slots)

    def formula(self, answer: Answer) -> str:
        """Return the file on the error on this table, on users who differ, or on independent rows."""
        solution = answer.solution
        if solution.problem.table is not None:
            return "formula_table"
        if solution.is_about_table or solution.problem.user_share:
            return "formula_users"
        return "formula_private" if solution.has_private_counts else "formula"

    def describe_files(self, answer: Answer) -> str:
        """Say what weights and choice hold."""
        return f"{words.describe_files(answer.solution)} Label in both: *{answer.disclosure.label}*."

    def reads_rows(self, answer: Answer) -> bool:
        """Return True if the variance is read off the values."""
        reads_values = answer.parameters.variance_source is VarianceSource.FROM_VALUES
        return reads_values and answer.solution.clamped is not None


MeanPage(QUESTION, solve_beside_page, build_answer).show()
