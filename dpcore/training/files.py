"""Files to take away: the table of runs as CSV, released models as CSV, the choice as JSON. Each carries its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpcore.common.documents import choice_document, finite
from dpcore.common.privacy import Provenance
from dpcore.common.text_fields import to_values
from dpcore.common.weights import smooth_losses
from dpcore.data.column_names import harmless
from dpcore.dataset import Dataset
from dpcore.training.excess import TheoryBound
from dpcore.training.experiment import Best, Held, References, Table
from dpcore.training.parameters import TrainingParameters, assumptions
from dpcore.training.release import Model
from dpcore.training.rows import Scaling
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Method

CHOICE_SCHEMA = "sweetspot/training/2"
_SIDES = ("trained_on", "held_out")


def table_csv(table: Table, disclosure: Provenance) -> str:
    """Every run: ``method``, ``bound``, ``row_clip``, ``run``, ``split``, eight scores, ``label``; only those done.

    Scores are named after their side, what they are a mean over, and the measure: ``held_out_rows_loss``.
    """
    cells, runs = np.nonzero(np.isfinite(table.scores[:, :, 0, 0, 0]))
    of = [table.experiment.cells[at] for at in cells]
    columns: dict[str, object] = {
        "method": [cell.method.value for cell in of],
        "bound": [cell.reach for cell in of],
        "row_clip": [cell.clip for cell in of],
        "run": runs,
        "split": runs % len(table.experiment.splits),
    }
    for s, side in enumerate(_SIDES):
        for o, over in enumerate(Over):
            for m, measure in enumerate(Measure):
                columns[f"{side}_{over.value}_{measure.value}"] = table.scores[cells, runs, s, o, m]
    columns["label"] = disclosure.label
    return pd.DataFrame(columns).to_csv(index=False, lineterminator="\n")


@dataclass(frozen=True, eq=False)
class Draw:
    """A release as it was made, kept so that it is never made again unasked.

    Attributes:
        question: What it answers: digest of the rows, mechanism, method and bound.
        names: Of the features, shape (num_features,).
        scaling: How features are brought to norm 1 before the model is applied.
        model: What was drawn.
        says: What a score above 0 says of a row, as ``kind = cat``.
    """

    question: object
    names: tuple[str, ...]
    scaling: Scaling
    model: Model
    says: str


def models_csv(draws: Sequence[Draw]) -> str:
    """Every released model, one line per feature.

    Columns: ``draw``, ``feature``, its range, ``norm``, ``theta``, ``positive``, method and bounds, ``label``.

    A feature with a range is clipped to it and mapped to [-1, 1]; then a row longer than ``norm`` is shortened to it,
    and all are divided by it. A score above 0 says what stands under ``positive``.
    """
    frames = []
    for number, draw in enumerate(draws, 1):
        ends = [(np.nan, np.nan) if pair is None else pair for pair in draw.scaling.ranges]
        frames.append(
            pd.DataFrame(
                {
                    "draw": number,
                    "feature": [harmless(name) for name in draw.names],
                    "lowest": [low for low, _ in ends],
                    "highest": [high for _, high in ends],
                    "norm": draw.scaling.norm,
                    "theta": draw.model.theta,
                    "positive": harmless(draw.says),
                    "method": draw.model.cell.method.value,
                    "bound": draw.model.cell.reach,
                    "last_bound": draw.model.last_bound,
                    "label": draw.model.facts.label,
                }
            )
        )
    return pd.concat(frames).to_csv(index=False, lineterminator="\n")


def choice_json(
    dataset: Dataset,
    parameters: TrainingParameters,
    table: Table,
    known: References,
    theory: TheoryBound,
    best: Best | None,
) -> str:
    """The question and its answer as JSON, indented, with a schema version; every cell of the table among it."""
    experiment = table.experiment
    losses, users = table.summary(Measure.LOSS, Over.ROWS), table.summary(Measure.LOSS, Over.USERS)
    right = table.summary(Measure.ACCURACY, Over.ROWS)
    cell = None if best is None else experiment.cells[best.at]
    histogram = experiment.train.histogram
    follows = cell is not None and cell.method is Method.FOLLOWED
    at = (Held.HELD_OUT, Over.ROWS, Measure.LOSS)
    answer = {
        "method": None if cell is None else cell.method.value,
        "bound": None if cell is None or follows else cell.reach,
        "good_enough": None if best is None or follows else [best.low, best.high],
        "loss_without_privacy": known.mean(known.no_privacy, *at),
        "loss_of_guessing": known.mean(known.guessing, *at),
        "loss_without_noise": known.mean(known.quiet, *at),
        "loss_without_noise_and_clipping": known.mean(known.unclipped, *at),
        "proved_relative_gap": finite(known.certificate.relative_gap),
        "trade_off_of_theory": finite(theory.trade_off),
        "bound_of_theory": theory.threshold.bound,
        "methods": [
            {
                "method": cell.method.value,
                "bound": None if cell.method is Method.FOLLOWED else cell.reach,
                "row_clip": cell.clip,
                "largest_user_weight": None
                if cell.method is Method.FOLLOWED
                else float(smooth_losses(histogram, min(cell.bound, histogram.max_size)).largest_weight),
                "runs": int(losses.runs[at]),
                "loss": finite(float(losses.mean[at])),
                "half_width_95": finite(float(losses.half_width[at])),
                "half_width_95_users": finite(float(losses.users_half_width[at])),
                "loss_over_users": finite(float(users.mean[at])),
                "rows_told_right": finite(float(right.mean[at])),
            }
            for at, cell in enumerate(experiment.cells)
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
    return choice_document(dataset, release, question, data, answer, assumptions(parameters), CHOICE_SCHEMA)
