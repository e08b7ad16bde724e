"""What the pages on models, and the one on the largest gain, contribute to their reports. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcore import gap_examples
from dpcore.common import wording
from dpcore.common.privacy import Sensitivity, rounded_up
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.multitask.budget import BudgetComparison
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.regression import files
from dpcore.regression.draw import Draw, together
from dpcore.regression.parameters import DataSource
from dpcore.report import csv_files, script_bodies
from dpcore.report.content import Line, data_lines
from dpcore.report.markup import literal
from dpcore.report.script import Source
from pages.gap_examples import answer as gap_view
from pages.gap_examples import figures as gap_charts
from pages.gap_examples.formula import FORMULA as GAP_FORMULA
from pages.learning import answer as learning_view
from pages.learning import figures as learning_charts
from pages.learning.formula import FORMULA as LEARNING_FORMULA
from pages.mean.answer import axis_limits
from pages.multitask import answer as multitask_view
from pages.multitask import card
from pages.multitask import figures as multitask_charts
from pages.multitask.compare import Optima
from pages.multitask.formula import FORMULA as MULTITASK_FORMULA
from pages.regression import answer as regression_view
from pages.regression import figures as regression_charts
from pages.regression import weight_figures
from pages.regression.answer import ErrorOf, RegressionView
from pages.regression.formula import FORMULA as REGRESSION_FORMULA
from pages.shared.choice_reports import EPSILON, OWN_CAP
from pages.shared.report_content import Picture, ReportContent, distribution


def learning_report(
    view: learning_view.LearningView, data: Dataset, parameters: LearningParameters, source: Source
) -> ReportContent:
    """Of the page Learning under a cap."""
    limits, columns = learning_view.axis_limits(view), learning_charts.bound_columns(view)
    pictures = [
        Picture(
            "learning-bound",
            "Bound on the excess risk against the cap",
            lambda: learning_charts.bound_figure(view, limits, parameters.own_cap),
            learning_charts.bound_alt(view),
            columns,
            data.provenance,
        ),
        Picture(
            "learning-terms",
            "All bounds on the bias",
            lambda: learning_charts.terms_figure(view, limits, parameters.own_cap),
            learning_charts.terms_alt(view),
            columns,
            data.provenance,
        ),
        distribution(data),
    ]
    return ReportContent(
        page="Learning under a cap",
        parameters=parameters,
        asked={
            "epsilon": EPSILON,
            "bias": "Bound on the bias",
            "loss_variance": "Var(H), variance of users' losses",
            "vc_dimension": "VC dimension d",
            "failure_probability": "Failure probability δ",
            "privacy_form": "Shape of the privacy term",
            "privacy_constant": "Constant of the privacy term",
            "privacy_power": "Power of the privacy term",
            "finite_sample_constant": "Constant of the finite-sample term",
            "own_cap": OWN_CAP,
        },
        cards=[("", learning_view.card(view, data, parameters))],
        pictures=pictures,
        formula=LEARNING_FORMULA,
        source=source,
        bodies=[script_bodies.LEARNING],
        summary=data_lines(data),
        choice=lambda: csv_files.learning_choice_json(data, parameters, view.choice, view.within),
    )


def regression_report(view: RegressionView, made: Sequence[Draw]) -> ReportContent:
    """Of the page Regression, with the latest of the draws ``made``, if there is one."""
    data, kind, of = view.loaded.dataset, view.loaded.dataset.provenance, ErrorOf.COEFFICIENTS
    found = {name: w for name in ("no cap", "best cap", "ours") if (w := view.weights(name)) is not None}
    weights = weight_figures.weights_columns(found)
    limits = regression_charts.cap_limits(view, of)
    pictures = [
        Picture(
            "regression-caps",
            "Error against the cap",
            lambda: regression_charts.cap_figure(view, of, limits),
            regression_charts.cap_alt(view, of),
            regression_charts.cap_columns(view, of),
            kind,
        ),
        Picture(
            "regression-weights",
            "Weight of a user, by their rows",
            lambda: weight_figures.weights_figure(weights),
            weight_figures.WEIGHTS_ALT,
            weights,
            kind,
        ),
        distribution(data),
    ]
    generated = view.parameters.source is DataSource.GENERATED
    asked = {
        "epsilon": EPSILON,
        "lower": "Lowest label, L",
        "upper": "Highest label, U",
        "source": "Data",
        "noise": "Variance of a label around the model",
        "noise_variance": "Variance entered",
    }
    if generated:
        asked |= {
            "num_rows": "Rows generated",
            "informative": "Features with a coefficient",
            "uninformative": "Features without",
            "label_noise": "Noise of the labels",
            "exponent": "Exponent of rows per user",
            "seed": "Seed",
        }
    return ReportContent(
        page="Regression",
        parameters=view.parameters,
        asked=asked,
        cards=[("", regression_view.card(view))],
        pictures=pictures,
        formula=REGRESSION_FORMULA,
        source=Source(data, design=view.loaded.design, rows=True),
        bodies=[script_bodies.REGRESSION],
        summary=data_lines(data),
        releases=_released(made),
        choice=lambda: files.choice_json(data, view.parameters, view.problem, view.ours, view.caps),
    )


def _released(made: Sequence[Draw]) -> tuple[Line, ...]:
    if not made:
        return ()
    release, names = made[-1].coefficients.release, made[-1].names
    label = made[-1].coefficients.facts.label
    drawn = f"Draw {len(made)} of these labels"
    if len(made) > 1:
        spent = together(draw.coefficients.release.epsilon for draw in made)
        drawn += f" (all {len(made)} together: ε = {rounded_up(spent)})"
    return tuple(
        Line(
            literal(name),
            wording.number(float(value), 4),
            Sensitivity.DP_RELEASE,
            f"{drawn}; Laplace noise of scale {wording.number(release.scale)}.",
            number=float(value),
            label=label,
        )
        for name, value in zip(names, release.values, strict=True)
    )


def multitask_report(
    view: multitask_view.MultitaskView,
    data: Dataset,
    parameters: MultitaskParameters,
    budgets: BudgetComparison,
    optima: Optima | None,
    source: Source,
) -> ReportContent:
    """Of the page Many tasks."""
    kind, tasks = view.tasks.sensitivity, view.tasks
    optimum = None if optima is None else view.total(optima.of_kind(view.rule.fit))
    sampling = multitask_charts.uniform_sampling(view)
    errors = multitask_charts.bucket_limits(view.curve, [sampling])
    weights = multitask_charts.weight_limits(view.curve)
    pictures = [
        Picture(
            "many-tasks-buckets",
            "Error bounds from tail to head",
            lambda: multitask_charts.bucket_figure(
                f"μ = {wording.entered(view.rule.exponent)}", view.buckets, [sampling], errors
            ),
            multitask_charts.bucket_alt(view),
            multitask_charts.bucket_columns(view.buckets, [sampling]),
            kind,
        ),
        Picture(
            "many-tasks-weights",
            "Weight against the size of the task",
            lambda: multitask_charts.weight_figure(view, weights),
            multitask_charts.WEIGHT_ALT,
            multitask_charts.weight_columns(view),
            kind,
        ),
        Picture(
            "many-tasks-exponents",
            "Which μ is best",
            lambda: multitask_charts.exponent_figure(view, optimum),
            multitask_charts.exponent_alt(view),
            multitask_charts.exponent_columns(view, optimum),
            kind,
        ),
        Picture(
            "many-tasks-sizes",
            "How large the tasks are",
            lambda: multitask_charts.size_figure(tasks),
            multitask_charts.SIZE_ALT,
            multitask_charts.drawn_sizes(tasks),  # In the file as it is drawn: a report stays small.
            kind,
        ),
    ]
    return ReportContent(
        page="Many tasks",
        parameters=parameters,
        asked=_tasks_asked(parameters),
        cards=[("", card.card(view, budgets, optima))],
        pictures=pictures,
        formula=MULTITASK_FORMULA,
        source=source,
        bodies=[script_bodies.MULTITASK],
        summary=_tasks_lines(view, data, parameters),
    )


def _tasks_asked(parameters: MultitaskParameters) -> dict[str, str]:
    asked = {
        "epsilon": EPSILON,
        "delta": "δ",
        "source": "Users and tasks",
        "loss": "Loss",
        "exponent": "Exponent μ",
        "fit": "How weights are fitted to the budget",
        "max_tasks": "Tasks per user of your own sampling",
    }
    if parameters.source is not TaskSource.DATA:
        asked |= {
            "num_users": "Users generated",
            "num_tasks": "Tasks generated",
            "tasks_per_user": "Tasks per user, on average",
            "graph_seed": "Seed",
        }
    return asked


def _tasks_lines(
    view: multitask_view.MultitaskView, data: Dataset, parameters: MultitaskParameters
) -> tuple[Line, ...]:
    graph, kind = view.tasks.graph, view.tasks.sensitivity
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


def gap_report(
    view: gap_view.GapView, data: Dataset, parameters: gap_examples.GapParameters, source: Source
) -> ReportContent:
    """Of the step of *How much can weights gain?* on the person's own data."""
    bounds, _ = axis_limits(data.histogram, 1.0)
    picture = Picture(
        "gap-data",
        "Variance against the bound",
        lambda: gap_charts.data_figure(view, (bounds, gap_charts.RATIO_RANGE)),
        gap_charts.data_alt(view),
        gap_charts.data_columns(view),
        data.provenance,
    )
    asked = {
        "epsilon": EPSILON,
        "noise": "Variance of one row's value, values in [0, 1]",
        "noise_variance": "Variance entered",
    }
    return ReportContent(
        page="How much can weights gain?",
        parameters=parameters,
        asked=asked,
        cards=[("", gap_view.card(view, data, parameters.mean_parameters()))],
        pictures=[picture, distribution(data)],
        formula=GAP_FORMULA,
        source=source,
        bodies=[script_bodies.GAP],
        summary=data_lines(data),
        choice=lambda: csv_files.instance_json(view.comparison, data.provenance),
    )
