"""Bias curves over τ₀: how many rows of one user a private learner may see, and what that costs."""

import math

import streamlit as st

from dpcore.answer import Answer
from dpcore.common.parameters import Place
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_number
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.learning.answer import build_answer, solve
from dpcore.learning.answer.solution import find_least_epsilon
from pages.learning.question import QUESTION
from pages.shared.base import keys
from pages.shared.fields import fields
from pages.shared.render.question_page import Page
from pages.shared.screen import layout

GLOSSARY = """
**Risk** is the expected loss of a model, between 0 and 1. **Var(H)** is the variance of the risk between users. The
**VC dimension d** says how rich the models are: linear classifiers with 9 features have d = 10.
"""


class LearningPage(Page):
    """The page *Bias curves over τ₀*."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> LearningParameters | None:
        """Draw the inputs, and the axis' unit, which the answer ignores; return None if the inputs are refused."""
        parameters: LearningParameters | None = super().read_inputs(slots, dataset)
        with slots.line:
            fields.draw_field(QUESTION, "cap_unit")
        return parameters

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Draw a button that enters the least ε at which the excess risk is below 1.

        There is no button if the risk is below 1 already, if no finite ε does it, or for private data: links hold ε.
        """
        epsilon = find_least_epsilon(answer.solution)
        if (
            answer.solution.best_choice.total >= 1.0
            and math.isfinite(epsilon)
            and answer.disclosure is not Disclosure.PRIVATE
        ):
            button_label = f"Use ε = {format_number(epsilon)}"
            with slots.answer:
                fields.draw_button(
                    button_label,
                    "learning_epsilon_use",
                    "check",
                    st.session_state.update,
                    {keys.EPSILON: epsilon},
                )

    def describe_files(self, answer: Answer) -> str:
        """Describe what the files of curves and choice hold."""
        return (
            "**Choice** holds the best bound and its proof, **Curves** the excess risk and every limit on the bias, "
            f"twice; `inf` does not apply. Label in both: *{answer.disclosure.label}*."
        )

    def list_report_fields(self, answer: Answer) -> list[str]:
        """List the fields for the report, without those of tabs."""
        return self.question.list_fields(*(set(Place) - {Place.TAB}))


LearningPage(QUESTION, solve, build_answer, GLOSSARY).show()
