"""What both files of tests make of what was found."""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go

from dpcore.answer import Answer
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.per_group.answer import DistributionSolution, PerGroupSolution, build_answer
from dpcore.report import plotly_figures

SHOP = samples.load("shop-events")


def card(of: PerGroupSolution | DistributionSolution, data: Dataset = SHOP) -> Answer:
    """The answer made of what was found."""
    return build_answer(data, of.parameters, of)


def drawn(of: PerGroupSolution, key: str = "per-group-error") -> go.Figure:
    """A figure of it."""
    return plotly_figures.draw(card(of).plots[key]())


def choice_of(of: PerGroupSolution | DistributionSolution, data: Dataset) -> Any:
    """Its file."""
    made = card(of, data).choice
    assert made is not None
    return json.loads(made())
