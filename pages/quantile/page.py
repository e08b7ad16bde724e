"""Quantile: the exact distribution of a private median or quantile, and the bound that serves it best."""

from dpcore.answer import Answer
from dpcore.dataset import Dataset
from dpcore.quantile.answer import build_answer, words
from dpcore.quantile.answer.answer import solve
from dpcore.quantile.parameters import QuantileParameters
from pages.quantile import inputs
from pages.quantile.question import QUESTION
from pages.shared.render.question_page import Needs, Page
from pages.shared.screen import layout


class QuantilePage(Page):
    """The page."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> QuantileParameters | None:
        """Draw the fields that go with the base."""
        return inputs.read_inputs(dataset, slots)

    def describe_files(self, answer: Answer) -> str:
        """Say what weights and choice hold."""
        return (
            "**Weights** hold one line per number of rows a user can have: the weight of each row of such a user. "
            f"**Choice** holds the question and the answer. Label in both: *{answer.disclosure.label}*."
        )


QuantilePage(
    QUESTION,
    solve,
    build_answer,
    needs=Needs(
        lambda data: data.values is None,
        "values, one per row",
        "Bring data with values",
        words.write_detail,
    ),
).show()
