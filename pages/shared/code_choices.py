"""What each page's answer is to the tab Code: the chosen bound with the names that the data have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dpcore.code import Choice, Released
from dpcore.code.choice import MAX_LENGTH
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours, Sensitivity
from dpcore.data import samples
from dpcore.dataset import Contribution, Dataset
from dpcore.multitask.fit import Fit
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import Wanted
from dpcore.quantile import WeightKind
from dpcore.quantile.parameters import BoundFrom, Weighting
from pages.shared.code_panel import CodeChoice

if TYPE_CHECKING:  # The views import this module.
    from dpcore.mean import MeanParameters
    from dpcore.total.parameters import TotalParameters
    from pages.gap_examples.answer import GapView
    from pages.learning.answer import LearningView
    from pages.mean.answer import MeanView
    from pages.multitask.answer import MultitaskView
    from pages.quantile.answer import QuantileView
    from pages.regression.answer import RegressionView
    from pages.total.answer import TotalView
    from pages.total.grouped import GroupedView
    from pages.total.signed import SignedView

ROWS = 10_000_000
"""What OpenDP takes the data to have at most where they are far smaller; a smaller number saves little noise."""
_ROWS_OF_THE_FILE = {"row_is": ""}
"""Of programs that read the file as it is, whatever is counted as a contribution: they add up a column's values
themselves, or count a user once in a group."""
Form = tuple[str, Released, Mapping[str, Any]]


def of_data(dataset: Dataset) -> dict[str, Any]:
    """The fields of a `Choice` that come from the data; placeholders where they have no names."""
    fields: dict[str, Any] = {"sensitivity": dataset.provenance}
    if dataset.privacy_unit:
        fields |= {"privacy_unit": dataset.privacy_unit, "known_columns": True, "file": file_of(dataset)}
    if dataset.values is not None:
        fields["value_column"] = dataset.values.column
    if dataset.pairs is not None:
        fields["group_column"] = dataset.pairs.column
    elif dataset.tasks is not None:
        fields["group_column"] = dataset.tasks.column
    if dataset.contribution is Contribution.DISTINCT_TASKS:
        fields["row_is"] = "one distinct task of a user, whatever its number of rows in the file"
    elif dataset.contribution is Contribution.TOTAL:
        fields["row_is"] = "one unit of the column that was added up, not a row of the file"
    rows = ROWS
    # Of private data it must not tell the size: the same number for all, unless the data have more rows than that.
    least = (1 if dataset.is_private else 10) * dataset.histogram.num_rows
    while rows < least and rows < MAX_LENGTH:
        rows = min(10 * rows, MAX_LENGTH)
    return {name: value for name, value in fields.items() if value} | {"max_length": rows}


def file_of(dataset: Dataset) -> str:
    """What the data's file is called."""
    named = {sample.title: f"sample_data/{sample.file_name}" for sample in samples.SAMPLES.values()}
    return named.get(dataset.name, dataset.name) or "events.csv"


def _forms(epsilon: float, base: Mapping[str, Any], forms: Iterable[Form]) -> CodeChoice | None:
    """Those of the forms that can be written; None where none can."""
    found = []
    for name, released, fields in forms:
        try:
            found.append((name, Choice(released, epsilon, **{**base, **fields})))
        except InvalidInput:  # A bound of 0 rows, an empty range: nothing that code could apply.
            continue
    return CodeChoice(tuple(found)) if found else None


def _cap(rows: float) -> str:
    return f"Cap, {wording.counted(rows, 'row')}"


def _smooth(threshold: float) -> str:
    return f"Smooth weights, h = {wording.number(threshold)}"


def of_mean(view: MeanView, dataset: Dataset, parameters: MeanParameters) -> CodeChoice | None:
    """The best cap and the best smooth weights for a mean."""
    relation = Neighbours.ADD_OR_REMOVE_USER if view.private_counts else Neighbours.REPLACE_VALUES
    return _mean(view.cap.max_contributions, view.smooth.threshold, relation, dataset, parameters)


def of_gap(view: GapView, dataset: Dataset, parameters: MeanParameters) -> CodeChoice | None:
    """The two choices for a mean that the page on the largest gap compares."""
    both = view.comparison
    relation = Neighbours.REPLACE_VALUES
    return _mean(both.cap.max_contributions, both.smooth.threshold, relation, dataset, parameters)


def _mean(
    cap: int, smooth: float, relation: Neighbours, dataset: Dataset, parameters: MeanParameters
) -> CodeChoice | None:
    base = of_data(dataset) | {
        "lower": parameters.lower,
        "upper": parameters.upper,
        "neighbours": relation,
    }
    return _forms(
        parameters.epsilon,
        base,
        [
            (_cap(cap), Released.MEAN, {"max_rows": cap}),
            (_smooth(smooth), Released.MEAN, {"threshold": smooth}),
        ],
    )


def of_private(
    drawn: PrivateChoice, wanted: Wanted, epsilon: float, dataset: Dataset, lower: float, upper: float
) -> CodeChoice | None:
    """A number that was chosen privately; None for a quantile of sizes, which bounds no release of its own.

    Args:
        drawn: The number with its label.
        wanted: What it is for.
        epsilon: Of the release that will use it.
        dataset: Gives the names of file and columns.
        lower: Value bound of a mean.
        upper: Value bound of a mean.
    """
    base = of_data(dataset) | {
        "sensitivity": drawn.facts,
        "neighbours": drawn.facts.neighbours,
        "max_length": ROWS,  # Else it would tell how many rows the private data have.
    }
    if wanted is Wanted.SMOOTH:
        fields = {"threshold": drawn.value, "lower": lower, "upper": upper}
        return _forms(epsilon, base, [(_smooth(drawn.value), Released.MEAN, fields)])
    rows = {"max_rows": int(drawn.value)}
    if wanted is Wanted.CAP:
        form = (_cap(drawn.value), Released.MEAN, {**rows, "lower": lower, "upper": upper})
        return _forms(epsilon, base, [form])
    return (
        _forms(epsilon, base, [(_cap(drawn.value), Released.COUNT, rows)]) if wanted is Wanted.SUM else None
    )


def of_total(view: TotalView, dataset: Dataset) -> CodeChoice | None:
    """The best bound for a count of rows or a sum."""
    problem, bound = view.problem, view.bound
    base = of_data(dataset) | {"noise": problem.noise, "delta": problem.delta}
    if view.unit.column:
        fields = {"max_total": bound, "value_column": view.unit.column} | _ROWS_OF_THE_FILE
        return _forms(problem.epsilon, base, [("Clamp", Released.SUM, fields)])
    return _forms(problem.epsilon, base, [(_cap(bound), Released.COUNT, {"max_rows": bound})])


def of_signed(
    view: SignedView, dataset: Dataset, column: str, parameters: TotalParameters
) -> CodeChoice | None:
    """The range for totals of both signs; one that the person entered is a public input."""
    fields = {"max_total": view.clipped.high, "min_total": view.clipped.low, "value_column": column}
    fields |= _ROWS_OF_THE_FILE
    base = of_data(dataset) | {"noise": parameters.noise, "delta": parameters.delta}
    if view.entered:
        base["sensitivity"] = Sensitivity.PUBLIC
    return _forms(parameters.epsilon, base, [("Clamp", Released.SUM, fields)])


def of_groups(view: GroupedView, dataset: Dataset) -> CodeChoice | None:
    """The best number of groups per user."""
    problem = view.problem
    base = of_data(dataset) | {"noise": problem.noise, "delta": problem.delta} | _ROWS_OF_THE_FILE
    fields = {"max_groups": view.choice.max_groups}
    return _forms(problem.epsilon, base, [("Groups", Released.GROUP_COUNTS, fields)])


def of_quantile(view: QuantileView, dataset: Dataset) -> CodeChoice | None:
    """The bound in use first, then the best of the other kind."""
    p = view.parameters
    low, high = _ends(view)
    base = of_data(dataset) | {
        "lower": low,
        "upper": high,
        "quantiles": p.asked,
        "neighbours": Neighbours.REPLACE_VALUES,
    }
    in_use = {"sensitivity": Sensitivity.PUBLIC} if p.bound_from is BoundFrom.OWN else {}
    forms: list[Form] = []
    for kind in (view.kind, WeightKind.CAP if view.kind is WeightKind.SMOOTH else WeightKind.SMOOTH):
        bounded = kind is view.kind and p.weighting is not Weighting.NONE
        bound = view.bound if bounded else view.choices.of(kind).bound
        own = in_use if bounded else {}
        if kind is WeightKind.CAP:
            forms.append((_cap(bound), Released.QUANTILE, {"max_rows": bound, **own}))
        else:
            forms.append((_smooth(bound), Released.QUANTILE, {"threshold": bound, **own}))
    return _forms(p.epsilon, base, forms)


def _ends(view: QuantileView) -> tuple[float, float]:
    """Between which values the answer is looked for: the base's ends, or where a normal base has all its mass."""
    breaks, spread = view.problem.base.breaks, 4.0 * (view.parameters.spread or 0.0)
    return float(breaks[0]) - spread, float(breaks[-1]) + spread


def of_learning(view: LearningView, dataset: Dataset, epsilon: float) -> CodeChoice | None:
    """The best cap for a learner."""
    rows = view.choice.max_contributions
    return _forms(epsilon, of_data(dataset), [(_cap(rows), Released.MODEL, {"max_rows": rows})])


def of_regression(view: RegressionView) -> CodeChoice | None:
    """The best weights; only plain Python has them."""
    base = of_data(view.loaded.dataset) | {
        **_ROWS_OF_THE_FILE,
        "lower": view.parameters.lower,
        "upper": view.parameters.upper,
        "value_column": view.unit,
        "neighbours": Neighbours.REPLACE_VALUES,
        "largest_user_weight": view.ours.largest_user_weight,
        "coefficients": view.problem.num_features,
    }
    return _forms(view.problem.epsilon, base, [("Weights", Released.COEFFICIENTS, {})])


def of_tasks(view: MultitaskView, epsilon: float, delta: float, dataset: Dataset | None) -> CodeChoice | None:
    """Task weights, and the number of tasks per user of the best uniform sampling.

    Args:
        view: The answer.
        epsilon: Of the page.
        delta: Of the page.
        dataset: Whose tasks they are; None where they were generated.
    """
    base = of_data(dataset) if dataset is not None else {"group_column": "task"}
    base |= {"sensitivity": view.tasks.sensitivity, "delta": delta} | _ROWS_OF_THE_FILE
    sizes, weights = view.problem.task_sizes, view.chosen.task_weights
    task_weights = {
        "exponent": view.rule.exponent,
        "budget": view.problem.budget,
        # c of equation 10: for what part of the budget the weights are scaled.
        "inflation": float(view.problem.num_users * view.problem.budget / (sizes @ weights**2)),
        "every_user_full": view.rule.fit is Fit.FULL,
    }
    sampling = view.own_sampling or view.sampling
    most = round(view.problem.budget / float(sampling.task_weights[0]) ** 2)
    groups = {"max_groups": most, "noise": NoiseKind.GAUSSIAN}
    return _forms(
        epsilon,
        base,
        [
            (f"Task weights, μ = {wording.entered(view.rule.exponent)}", Released.TASK_WEIGHTS, task_weights),
            (f"At most {wording.counted(most, 'task')}", Released.GROUP_COUNTS, groups),
        ],
    )
