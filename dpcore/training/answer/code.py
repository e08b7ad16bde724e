"""The classifier as programs, with the names that the data have."""

from __future__ import annotations

import math
from dataclasses import replace

from dpcore.code import Quantity, Training
from dpcore.code.choice import Rule
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, build_forms, fields_of_data
from dpcore.common import wording
from dpcore.data.design_matrix import FeatureKind
from dpcore.training import account, descent, followed, pace
from dpcore.training.answer.found import TrainingSolution
from dpcore.training.losses import HINGE_WIDTH, LossKind
from dpcore.training.mechanism import Mechanism, Pace
from dpcore.training.parameters import DataSource
from dpcore.training.sample import FILE
from dpcore.training.weighting import Cell, Method

SLOPES = {
    LossKind.LOGISTIC: "-1 / (1 + np.exp(np.minimum(margin, 700.0)))",
    LossKind.SQUARED: "margin - 1.0",
    LossKind.HINGE: f"np.clip((margin - 1.0) / {HINGE_WIDTH!r}, -1.0, 0.0)",
}


FORM_NAMES = {
    Method.FOLLOWED: "Clipped sums, bound follows",
    Method.CLIPPED_SUM: "Clipped sums, h = {}",
    Method.CAP: "Cap, h = {}",
    Method.SMOOTH: "Smooth weights, h = {}",
}


def choose_programs(solution: TrainingSolution) -> CodeChoice | None:
    """Return programs for the answer, then for the best weights and clipped sums; None without column meanings."""
    assert solution.best is not None
    cells = [solution.get_cell(solution.best.cell_index)] + [
        solution.get_cell(solution.best_by_method[method].cell_index)
        for method in (Method.FOLLOWED, Method.SMOOTH, Method.CLIPPED_SUM)
        if method in solution.best_by_method
    ]
    # If steps are entered, only weights have a program with them; a bound that follows always has its own steps.
    program_methods = (
        FORM_NAMES if solution.parameters.pace is Pace.RULE else (Method.FOLLOWED, Method.SMOOTH)
    )
    cells = [cell for cell in dict.fromkeys(cells) if cell.method in program_methods]
    # The mechanism of the question, not that of a first look, whose noise is for fewer users.
    data, mechanism = solution.data, solution.parameters.mechanism
    table, scaling, design = data.dataset.table, data.scaling, data.design
    assert table is not None
    assert scaling is not None
    if design is None and solution.parameters.source is not DataSource.GENERATED:
        return None
    if design is None:  # Generated: the first feature is the intercept.
        numeric_ranges = tuple(
            (name, value_range)
            for name, value_range in zip(table.feature_names, scaling.ranges, strict=True)
            if value_range is not None
        )
        category_levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    else:
        numeric_ranges = tuple((column, data.ranges[column]) for column in data.numbers)
        categories = [
            feature.column for feature in design.features if feature.encoding is FeatureKind.CATEGORIES
        ]
        category_levels = tuple(
            (
                column,
                tuple(
                    name.removeprefix(f"{column}: ")
                    for name in table.feature_names
                    if name.startswith(f"{column}: ")
                ),
            )
            for column in categories
        )
    training_without_noise = Training(
        numbers=numeric_ranges,
        levels=category_levels,
        intercept=True if design is None else design.intercept,
        norm=scaling.norm,
        positive_above=solution.parameters.positive_above,
        positive="" if design is None else design.positive,
        slope=SLOPES[mechanism.loss],
        steps=mechanism.steps,
        rate=mechanism.learning_rate,
        first=mechanism.average.first_step(mechanism.steps),
        radius=mechanism.radius,
        gradient_noise=0.0,
        weight_noise=0.0,
        sampled=mechanism.sampled,
    )
    settings = fields_of_data(data.dataset) | {
        **ROWS_OF_THE_FILE,
        "value_column": table.label,
        "neighbours": mechanism.neighbours,
        "delta": mechanism.delta,
    }
    if solution.parameters.source is DataSource.SAMPLE:
        settings |= {"file": f"sample_data/{FILE}", "layout": None}  # which knows its name alone
    return build_forms(
        mechanism.epsilon,
        settings,
        [
            (
                FORM_NAMES[cell.method].format(wording.number(cell.reach)),
                Quantity.CLASSIFIER,
                {"threshold": cell.bound, "training": _set_noise(training_without_noise, mechanism, cell)},
            )
            for cell in cells
        ],
    )


def _set_noise(training: Training, mechanism: Mechanism, cell: Cell) -> Training:
    """Return the program's training with the noise of a method."""
    if mechanism.pace is Pace.ENTERED and cell.method is Method.SMOOTH:
        noise_of_steps = descent.plan_noise(mechanism, cell.bound)
        return replace(training, gradient_noise=noise_of_steps.gradient, weight_noise=noise_of_steps.weight)
    bound_follows, mechanism = cell.method is Method.FOLLOWED, pace.apply_rule(mechanism)
    rule_noise = account.plan_rule_noise(
        mechanism.epsilon, mechanism.delta, mechanism.neighbours, mechanism.steps, bound_follows
    )
    rule = Rule(
        bounds_by={
            Method.FOLLOWED: "followed",
            Method.CLIPPED_SUM: "sums",
            Method.CAP: "cap",
            Method.SMOOTH: "weights",
        }[cell.method],
        clip=cell.clip,
        unit_noise=rule_noise.unit_noise,
        count_noise=rule_noise.count,
        number_noise=rule_noise.number,
        momentum=pace.MOMENTUM,
        travel=(1.0 - pace.MOMENTUM) * pace.NOISE_NORM / mechanism.steps,
        longest=pace.STABLE_SHARE
        / mechanism.loss.smoothness
        * (1.0 if bound_follows else min(cell.reach, 1.0)),
        settled=math.floor(pace.SETTLED_SHARE * mechanism.steps),
        fade=pace.FADE,
        agreeing=pace.AGREEMENT_TO_GROW * pace.compute_faded_variance(rule_noise.gradient),
        moving=pace.AGREEMENT_TO_FORGET * pace.compute_faded_variance(rule_noise.gradient),
        growth=pace.GROWTH,
        most_growth=pace.MAX_GROWTH,
        start=followed.START_DIVISOR,
        clipped=followed.CLIPPED_USERS,
        turn=followed.BOUND_RATE,
        largest=followed.MAX_LOG_CHANGE,
        ends=followed.BOUND_RANGE,
    )
    return replace(
        training,
        steps=mechanism.steps,
        first=1,
        gradient_noise=rule_noise.gradient,
        sampled=1.0,
        rule=rule,
    )
