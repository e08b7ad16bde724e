"""The figures and tables of the four papers that can be made again, some of them on the user's data."""

from __future__ import annotations

from dpcore.answer.paper_figure import PaperFigure
from dpcore.data_owners import paper as huang
from dpcore.factorisation import paper as krichene
from dpcore.factorisation import paper_recall as krichene_recall
from dpcore.learning import paper as amin_learning
from dpcore.multitask import experiment as krichene_tasks
from dpcore.regression import paper as epasto
from dpcore.total import paper as amin
from dpcore.training import paper as epasto_training

FIGURES: tuple[PaperFigure, ...] = (
    *epasto.FIGURES,
    *epasto_training.FIGURES,
    *amin.FIGURES,
    *amin_learning.FIGURES,
    *huang.FIGURES,
    *krichene.FIGURES,
    *krichene_recall.FIGURES,
    *krichene_tasks.FIGURES,
)
"""All, by paper and in its order."""


def find_figure(key: str) -> PaperFigure:
    """Return the figure with this key.

    Raises:
        KeyError: There is none.
    """
    return {figure.key: figure for figure in FIGURES}[key]
