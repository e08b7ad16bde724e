"""The classifier with the names that the data have, for *Code for your library*."""

from __future__ import annotations

from dpcore.code import Released, Training
from dpcore.code.forms import ROWS_OF_THE_FILE, CodeChoice, forms, of_data, smooth_form
from dpcore.data.design_matrix import FeatureKind
from dpcore.training.answer.found import TrainingFound
from dpcore.training.descent import noise_plan
from dpcore.training.losses import HINGE_WIDTH, LossKind
from dpcore.training.parameters import DataSource
from dpcore.training.sample import FILE

SLOPES = {
    LossKind.LOGISTIC: "-1 / (1 + np.exp(np.minimum(margin, 700.0)))",
    LossKind.SQUARED: "margin - 1.0",
    LossKind.HINGE: f"np.clip((margin - 1.0) / {HINGE_WIDTH!r}, -1.0, 0.0)",
}


def of_training(found: TrainingFound) -> CodeChoice | None:
    """Smooth weights of the best bound; None where nobody knows what the columns mean."""
    assert found.best is not None
    bound = found.cell(found.best.at).bound
    loaded, mechanism = found.data, found.table.experiment.mechanism
    table, scaling, design = loaded.dataset.table, loaded.scaling, loaded.design
    assert table is not None
    assert scaling is not None
    if design is None and found.parameters.source is not DataSource.GENERATED:
        return None
    noise = noise_plan(mechanism, bound)
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
    training = Training(
        numbers=numbers,
        levels=levels,
        intercept=True if design is None else design.intercept,
        norm=scaling.norm,
        positive_above=found.parameters.positive_above,
        slope=SLOPES[mechanism.loss],
        steps=mechanism.steps,
        rate=mechanism.rate,
        first=mechanism.average.first(mechanism.steps),
        radius=mechanism.radius,
        gradient_noise=noise.gradient,
        weight_noise=noise.weight,
        sampled=mechanism.sampled,
    )
    base = of_data(loaded.dataset) | {
        **ROWS_OF_THE_FILE,
        "value_column": table.label,
        "neighbours": mechanism.neighbours,
        "delta": mechanism.delta,
        "training": training,
    }
    if found.parameters.source is DataSource.SAMPLE:
        base |= {"file": f"sample_data/{FILE}", "layout": None}  # which knows its name alone
    return forms(mechanism.epsilon, base, [(smooth_form(bound), Released.CLASSIFIER, {"threshold": bound})])
