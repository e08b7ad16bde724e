"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.multitask.budget import BudgetComparison
from dpcore.multitask.data_cell import data_cell
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.report.content import Line, data_lines
from dpcore.report.script import Source
from pages.multitask import answer as multitask_view
from pages.multitask import card
from pages.multitask import figures as multitask_charts
from pages.multitask.compare import Optima
from pages.multitask.question import QUESTION, generator_fields
from pages.shared.report_content import ReportContent


def multitask_report(
    view: multitask_view.MultitaskView,
    data: Dataset,
    parameters: MultitaskParameters,
    budgets: BudgetComparison,
    optima: Optima | None,
    source: Source,
) -> ReportContent:
    """The report of the page Many tasks."""
    tasks = view.tasks
    sizes = multitask_charts.size_picture(tasks)
    pictures = [
        multitask_charts.bucket_picture(view, budgets.exact),
        multitask_charts.weight_picture(view),
        multitask_charts.exponent_picture(view, optima),
        replace(
            sizes, columns=multitask_charts.drawn_sizes(tasks)
        ),  # As they are drawn: a report stays small.
    ]
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        asked=_tasks_asked(parameters),
        cards=[("", card.card(view, budgets, optima))],
        pictures=pictures,
        source=replace(source, cell=data_cell(parameters)),
        summary=_tasks_lines(view, data, parameters),
    )


def _tasks_asked(parameters: MultitaskParameters) -> dict[str, str]:
    constant = ("log_constant",) if parameters.fit is BudgetFit.LOGARITHMIC else ()
    return QUESTION.asked(
        "delta",
        "source",
        "loss",
        "exponent",
        "fit",
        *constant,
        "max_tasks",
        *generator_fields(parameters.source),
    )


def _tasks_lines(
    view: multitask_view.MultitaskView, data: Dataset, parameters: MultitaskParameters
) -> tuple[Line, ...]:
    graph, kind = view.tasks.graph, view.tasks.disclosure
    own = parameters.source is TaskSource.DATA
    lines = [
        Line(name, wording.number(number), kind, number=number)
        for name, number in (
            ("Users of the graph", graph.num_users),
            ("Tasks", graph.num_tasks),
            ("Pairs of a user and a task", graph.num_pairs),
            ("Users of the largest task", int(graph.task_sizes.max())),
            ("Users of the median task", float(np.median(graph.task_sizes))),
            ("Tasks of the busiest user", int(graph.tasks_per_user.max())),
        )
    ]
    named = data_lines(data) if own else (Line("Data", "generated users and tasks", kind),)
    return (*named, *lines)
