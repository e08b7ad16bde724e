"""The gain of weights: the person's data, the paper's example and bound, and the sharp bound."""

from __future__ import annotations

from collections.abc import Collection

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.gap_examples.answer import GapSolution, build_answer
from dpcore.gap_examples.answer.answer import solve_beside_page
from dpcore.gap_examples.parameters import GapParameters
from pages.gap_examples.question import QUESTION
from pages.mean import elsewhere
from pages.mean.question import QUESTION as MEAN
from pages.shared.fields import setting
from pages.shared.render import question_page
from pages.shared.render.question_page import Page
from pages.shared.screen import layout
from pages.shared.session import session


def build_answer_with_range(dataset: Dataset, parameters: GapParameters, solution: GapSolution) -> Answer:
    """Build the answer; its programs have the range that stands on *Mean*, if both ends are there."""
    lower, upper = setting.read_value(MEAN, "lower"), setting.read_value(MEAN, "upper")
    value_range = None if lower is None or upper is None else (lower, upper)
    return build_answer(dataset, parameters, solution, value_range)


def explain_cleared_variance(unused_names: Collection[str]) -> bool:
    """Say why the variance is empty, if a release emptied it; return False, as no field was drawn."""
    if "value_variance" not in unused_names:
        session.explain_cleared({QUESTION.get_key("value_variance"): "σ²"})
    return False


class GapPage(Page):
    """The page *Weights vs. caps*."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> GapParameters | None:
        """Draw the variance of a value, and return the parameters; None if they are refused."""
        return question_page.read_inputs(QUESTION, slots, ask_first=explain_cleared_variance)

    def list_report_fields(self, answer: Answer) -> tuple[str, ...]:
        """Return the fields for the report: not those that only the steps on instances ask for."""
        return ("variance_source", "value_variance")

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Say why *Mean* finds another bound, if it does."""
        cap = answer.solution.comparison.cap_choice.max_contributions
        if reason := elsewhere.explain_difference(session.get_dataset(), answer.setting, cap):
            slots.notes.caption(reason)


GapPage(QUESTION, solve_beside_page, build_answer_with_range, stem="gap").show()
