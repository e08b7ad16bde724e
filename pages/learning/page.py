"""Learning under a bound: how many rows of one user a private learner may see, and what that costs."""

from dpcore.answer import Answer
from dpcore.common.parameters import Place
from dpcore.learning.answer import build_answer, solve
from pages.learning.question import QUESTION
from pages.shared.render.question_page import Page

GLOSSARY = """
**Risk** is the expected loss of a model, between 0 and 1. **Var(H)** is the variance over users of a model's risk: 0
where all users are alike, at most 1/4. The **VC dimension d** says how rich the models are that the learner chooses
from: linear classifiers with 9 features have d = 10.
"""


class LearningPage(Page):
    """The page."""

    def describe_files(self, answer: Answer) -> str:
        """Describe what curves and choice hold."""
        return (
            "**Choice** holds the question, the best bound, what each part contributes, and the proof. **Curves** hold "
            "the excess risk in its parts and every limit on the bias, twice, one line per bound; what does not apply "
            f"is `inf`. Label in both: *{answer.disclosure.label}*."
        )

    def fields_in_report(self, answer: Answer) -> list[str]:
        """Leave out what tabs ask for."""
        return self.question.list_fields(*(set(Place) - {Place.TAB}))


LearningPage(QUESTION, solve, build_answer, GLOSSARY).show()
