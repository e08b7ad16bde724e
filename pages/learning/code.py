"""The chosen bound with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Released
from dpcore.code.forms import CodeChoice, cap_form, forms, of_data
from dpcore.dataset import Dataset
from pages.learning.answer import LearningView


def of_learning(view: LearningView, dataset: Dataset, epsilon: float) -> CodeChoice | None:
    """The best cap for a learner."""
    rows = view.choice.max_contributions
    return forms(epsilon, of_data(dataset), [(cap_form(rows), Released.MODEL, {"max_rows": rows})])
