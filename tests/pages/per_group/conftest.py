"""Parameters, solutions, answers and figures of the sample of shop events."""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go

from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.per_group.answer import build_answer
from dpcore.per_group.answer import solve as solve_typed
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.report import plotly_figures

SHOP: Any = samples.load("shop-events")


def solve(data: Any, parameters: Any, **options: Any) -> Any:
    """Return the solution; untyped, as the tests know which optional parts it has."""
    return solve_typed(data, parameters, **options)


def answer_from(solution: Any, data: Dataset = SHOP) -> Any:
    """Return the answer with this solution."""
    return build_answer(data, solution.parameters, solution)


def draw_plot(solution: Any, key: str = "per-group-error") -> go.Figure:
    """Return a figure of the answer."""
    return plotly_figures.draw_plot(answer_from(solution).plots[key]())


def read_choice_file(solution: Any, data: Dataset = SHOP) -> Any:
    """Return the content of the file *Choice*."""
    return json.loads(answer_from(solution, data).write_json())


def build_parameters(
    statistic: Statistic = Statistic.ROWS, epsilon: float = 1.0, **more: object
) -> PerGroupParameters:
    if statistic is Statistic.MEAN:
        more = {"lower": 0.0, "upper": 100.0, **more}
    return PerGroupParameters(epsilon, statistic, **more)  # type: ignore[arg-type]
