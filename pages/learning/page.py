"""Bias curves over τ₀: how many rows of one user a private learner may see, and what that costs."""

from dpcore.answer import Answer
from dpcore.common.parameters import Place
from dpcore.learning.answer import build_answer, solve
from pages.learning.question import QUESTION
from pages.shared.render.question_page import Page

GLOSSARY = """
**Risk** is the expected loss of a model, between 0 and 1. **Var(H)** is the variance of the risk between users. The
**VC dimension d** says how rich the models are: linear classifiers with 9 features have d = 10.
"""


class LearningPage(Page):
    """The page *Bias curves over τ₀*."""

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
