"""Files that a person takes away: table of runs and released models as CSV, the choice as JSON, with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpcore.common.documents import finite_or_none, write_choice_document
from dpcore.common.privacy import Provenance
from dpcore.common.text_fields import to_values
from dpcore.common.weights import smooth_losses
from dpcore.data.column_names import escape_formula
from dpcore.dataset import Dataset
from dpcore.training.excess import TheoryBound
from dpcore.training.experiment import BestBound, References, Side, Table
from dpcore.training.parameters import TrainingParameters, list_assumptions
from dpcore.training.release import Model
from dpcore.training.rows import Scaling
from dpcore.training.scores import Measure, ScoreUnit
from dpcore.training.weighting import Method

CHOICE_SCHEMA = "sweetspot/training/2"
_SIDES = ("trained_on", "held_out")


def write_table(table: Table, disclosure: Provenance) -> str:
    """Write every finished run: ``method``, ``bound``, ``row_clip``, ``run``, ``split``, eight scores, ``label``.

    Scores are named after their side, what they are a mean over, and the measure: ``held_out_rows_loss``.
    """
    cells, runs = np.nonzero(np.isfinite(table.scores[:, :, 0, 0, 0]))
    experiment_cells = [table.experiment.cells[cell_index] for cell_index in cells]
    table_columns: dict[str, object] = {
        "method": [cell.method.value for cell in experiment_cells],
        "bound": [cell.reach for cell in experiment_cells],
        "row_clip": [cell.clip for cell in experiment_cells],
        "run": runs,
        "split": runs % len(table.experiment.splits),
    }
    for side_index, side in enumerate(_SIDES):
        for over_index, unit in enumerate(ScoreUnit):
            for measure_index, measure in enumerate(Measure):
                table_columns[f"{side}_{unit.value}_{measure.value}"] = table.scores[
                    cells, runs, side_index, over_index, measure_index
                ]
    table_columns["label"] = disclosure.label
    return pd.DataFrame(table_columns).to_csv(index=False, lineterminator="\n")


@dataclass(frozen=True, eq=False)
class ReleaseRecord:
    """A release as it was made, kept so that it is never repeated unasked.

    Attributes:
        question: What it answers: digest of the rows, mechanism, method and bound.
        names: Of the features, shape (num_features,).
        scaling: How features are brought to norm 1 before the model is applied.
        model: What was drawn.
        positive_meaning: What a score above 0 says of a row, as ``kind = cat``.
    """

    question: object
    names: tuple[str, ...]
    scaling: Scaling
    model: Model
    positive_meaning: str


def write_models(records: Sequence[ReleaseRecord]) -> str:
    """Write every released model, one line per feature.

    Columns: ``draw``, ``feature``, its range, ``norm``, ``theta``, ``positive``, method and bounds, ``label``.

    A feature with a range is clipped to it and mapped to [-1, 1]; then a row longer than ``norm`` is shortened
    to it, and all are divided by it. A score above 0 means the class in ``positive``.
    """
    frames = []
    for number, record in enumerate(records, 1):
        ranges = [
            (np.nan, np.nan) if value_range is None else value_range for value_range in record.scaling.ranges
        ]
        frames.append(
            pd.DataFrame(
                {
                    "draw": number,
                    "feature": [escape_formula(name) for name in record.names],
                    "lowest": [low for low, _ in ranges],
                    "highest": [high for _, high in ranges],
                    "norm": record.scaling.norm,
                    "theta": record.model.theta,
                    "positive": escape_formula(record.positive_meaning),
                    "method": record.model.cell.method.value,
                    "bound": record.model.cell.reach,
                    "last_bound": record.model.last_bound,
                    "label": record.model.facts.label,
                }
            )
        )
    return pd.concat(frames).to_csv(index=False, lineterminator="\n")


def write_choice(
    dataset: Dataset,
    parameters: TrainingParameters,
    table: Table,
    references: References,
    theory: TheoryBound,
    best: BestBound | None,
) -> str:
    """Write the question and its answer as JSON, indented, with a schema version and every cell of the table."""
    experiment = table.experiment
    losses, users = (
        table.summarise(Measure.LOSS, ScoreUnit.ROWS),
        table.summarise(Measure.LOSS, ScoreUnit.USERS),
    )
    accuracy_summary = table.summarise(Measure.ACCURACY, ScoreUnit.ROWS)
    cell = None if best is None else experiment.cells[best.cell_index]
    histogram = experiment.train.histogram
    bound_follows = cell is not None and cell.method is Method.FOLLOWED
    held_out_loss = (Side.HELD_OUT, ScoreUnit.ROWS, Measure.LOSS)
    answer = {
        "method": None if cell is None else cell.method.value,
        "bound": None if cell is None or bound_follows else cell.reach,
        "good_enough": None if best is None or bound_follows else [best.low, best.high],
        "loss_without_privacy": references.average(references.no_privacy, *held_out_loss),
        "loss_of_guessing": references.average(references.guessing, *held_out_loss),
        "loss_without_noise": references.average(references.without_noise, *held_out_loss),
        "loss_without_noise_and_clipping": references.average(
            references.without_noise_and_clipping, *held_out_loss
        ),
        "proved_relative_gap": finite_or_none(references.certificate.relative_gap),
        "trade_off_of_theory": finite_or_none(theory.trade_off),
        "bound_of_theory": theory.threshold.bound,
        "methods": [
            {
                "method": cell.method.value,
                "bound": None if cell.method is Method.FOLLOWED else cell.reach,
                "row_clip": cell.clip,
                "largest_user_weight": None
                if cell.method is Method.FOLLOWED
                else float(smooth_losses(histogram, min(cell.bound, histogram.max_size)).largest_weight),
                "runs": int(losses.runs[cell_index]),
                "loss": finite_or_none(float(losses.mean[cell_index])),
                "half_width_95": finite_or_none(float(losses.half_width[cell_index])),
                "half_width_95_users": finite_or_none(float(losses.users_half_width[cell_index])),
                "loss_over_users": finite_or_none(float(users.mean[cell_index])),
                "rows_told_right": finite_or_none(float(accuracy_summary.mean[cell_index])),
            }
            for cell_index, cell in enumerate(experiment.cells)
        ],
    }
    data = {
        "users_held_out": experiment.test.num_users,
    }
    release = "private linear classifier"
    question = {
        **to_values(parameters),
        "data_source": parameters.source.value,  # ``source`` is the work that the method is from, in every choice.
        "mechanism": "noisy full-batch gradient descent",
        "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 4 and appendix E.2",
    }
    return write_choice_document(
        dataset, release, question, data, answer, list_assumptions(parameters), CHOICE_SCHEMA
    )
