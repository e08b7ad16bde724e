"""The classifier with the names that the data have, for *Code for your library*."""

from __future__ import annotations

import math
from dataclasses import replace

from dpcore.code import Released, Training
from dpcore.code.choice import Rule
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, forms, of_data
from dpcore.common import wording
from dpcore.data.design_matrix import FeatureKind
from dpcore.training import account, descent, followed, pace
from dpcore.training.answer.found import TrainingFound
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


def of_training(found: TrainingFound) -> CodeChoice | None:
    """The answer, then the best weights and clipped sums; None where nobody knows what the columns mean."""
    assert found.best is not None
    cells = [found.cell(found.best.at)] + [
        found.cell(found.best_of[method].at)
        for method in (Method.FOLLOWED, Method.SMOOTH, Method.CLIPPED_SUM)
        if method in found.best_of
    ]
    # With steps as entered there is a program for weights; that of a bound that follows has its own steps anyway.
    written = FORM_NAMES if found.parameters.pace is Pace.RULE else (Method.FOLLOWED, Method.SMOOTH)
    cells = [cell for cell in dict.fromkeys(cells) if cell.method in written]
    # Of the question, not of a first look, whose noise is that of fewer users.
    loaded, mechanism = found.data, found.parameters.mechanism
    table, scaling, design = loaded.dataset.table, loaded.scaling, loaded.design
    assert table is not None
    assert scaling is not None
    if design is None and found.parameters.source is not DataSource.GENERATED:
        return None
    if design is None:  # Generated: the first feature is the intercept.
        numbers = tuple(
            (name, pair)
            for name, pair in zip(table.feature_names, scaling.ranges, strict=True)
            if pair is not None
        )
        levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    else:
        numbers = tuple((column, loaded.ranges[column]) for column in loaded.numbers)
        categories = [f.column for f in design.features if f.kind is FeatureKind.CATEGORIES]
        levels = tuple(
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
    whole = Training(
        numbers=numbers,
        levels=levels,
        intercept=True if design is None else design.intercept,
        norm=scaling.norm,
        positive_above=found.parameters.positive_above,
        positive="" if design is None else design.positive,
        slope=SLOPES[mechanism.loss],
        steps=mechanism.steps,
        rate=mechanism.rate,
        first=mechanism.average.first(mechanism.steps),
        radius=mechanism.radius,
        gradient_noise=0.0,
        weight_noise=0.0,
        sampled=mechanism.sampled,
    )
    base = of_data(loaded.dataset) | {
        **ROWS_OF_THE_FILE,
        "value_column": table.label,
        "neighbours": mechanism.neighbours,
        "delta": mechanism.delta,
    }
    if found.parameters.source is DataSource.SAMPLE:
        base |= {"file": f"sample_data/{FILE}", "layout": None}  # which knows its name alone
    return forms(
        mechanism.epsilon,
        base,
        [
            (
                FORM_NAMES[cell.method].format(wording.number(cell.reach)),
                Released.CLASSIFIER,
                {"threshold": cell.bound, "training": _trained_by(whole, mechanism, cell)},
            )
            for cell in cells
        ],
    )


def _trained_by(whole: Training, mechanism: Mechanism, cell: Cell) -> Training:
    """The program's training with the noise of a method."""
    if mechanism.pace is Pace.ENTERED and cell.method is Method.SMOOTH:
        noise = descent.noise_plan(mechanism, cell.bound)
        return replace(whole, gradient_noise=noise.gradient, weight_noise=noise.weight)
    follows, mechanism = cell.method is Method.FOLLOWED, pace.by_rule(mechanism)
    plan = account.rule_plan(
        mechanism.epsilon, mechanism.delta, mechanism.neighbours, mechanism.steps, follows
    )
    rule = Rule(
        bounds_by={
            Method.FOLLOWED: "followed",
            Method.CLIPPED_SUM: "sums",
            Method.CAP: "cap",
            Method.SMOOTH: "weights",
        }[cell.method],
        clip=cell.clip,
        one=plan.one,
        count_noise=plan.count,
        number_noise=plan.number,
        momentum=pace.MOMENTUM,
        travel=(1.0 - pace.MOMENTUM) * pace.NOISE_NORM / mechanism.steps,
        longest=pace.STABLE / mechanism.loss.smoothness * (1.0 if follows else min(cell.reach, 1.0)),
        settled=math.floor(pace.SETTLED * mechanism.steps),
        fade=pace.FADE,
        agreeing=pace.AGREEING * pace.variance_of_noise(plan.gradient),
        moving=pace.MOVING * pace.variance_of_noise(plan.gradient),
        growth=pace.GROWTH,
        most_growth=pace.LONGEST,
        start=followed.START,
        clipped=followed.CLIPPED,
        turn=followed.TURN,
        largest=followed.LARGEST,
        ends=followed.ENDS,
    )
    return replace(
        whole,
        steps=mechanism.steps,
        first=1,
        gradient_noise=plan.gradient,
        sampled=1.0,
        rule=rule,
    )
