"""Files that a person takes away: table of runs and released models as CSV, with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.data.column_names import escape_formula
from dpcore.training.experiment import Table
from dpcore.training.release import Model
from dpcore.training.rows import Measure, Scaling, ScoreUnit

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
    score_names = [
        f"{side}_{unit.value}_{measure.value}" for side in _SIDES for unit in ScoreUnit for measure in Measure
    ]
    scores = table.scores[cells, runs].reshape(runs.size, len(score_names))
    table_columns |= dict(zip(score_names, scores.T, strict=True))
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

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the features, as a spreadsheet may open them."""
        return [escape_formula(name) for name in self.names]

    @property
    def ends(self) -> FloatArray:
        """Return the lowest and the highest value of each feature, NaN without a range, shape (2, num_features)."""
        return np.array([value_range or (np.nan, np.nan) for value_range in self.scaling.ranges]).T


def write_models(records: Sequence[ReleaseRecord]) -> str:
    """Write every released model, one line per feature.

    Columns: ``draw``, ``feature``, its range, ``norm``, ``theta``, ``positive``, method and bounds, ``label``.

    A feature with a range is clipped to it and mapped to [-1, 1]; then a row longer than ``norm`` is shortened
    to it, and all are divided by it. A score above 0 means the class in ``positive``.
    """
    frames = []
    for number, record in enumerate(records, 1):
        columns = {
            "draw": number,
            "feature": record.feature_names,
            "lowest": record.ends[0],
            "highest": record.ends[1],
            "norm": record.scaling.norm,
            "theta": record.model.theta,
            "positive": escape_formula(record.positive_meaning),
            "method": record.model.cell.method.value,
            "bound": record.model.cell.reach,
            "last_bound": record.model.last_bound,
            "label": record.model.facts.label,
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames).to_csv(index=False, lineterminator="\n")
