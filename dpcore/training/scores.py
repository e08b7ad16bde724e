"""Scores of models: mean loss and share of rows classified right, over rows and over users."""

from __future__ import annotations

import enum

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.training.losses import LossKind
from dpcore.training.rows import ClassifierRows

_BLOCK = 400_000


class Measure(enum.Enum):
    """The measure of a score, and its position in the last axis of a table of scores."""

    LOSS = "loss"
    ACCURACY = "accuracy"


class ScoreUnit(enum.Enum):
    """The units of a mean: all rows count equally, or all users. They differ if heavy users differ."""

    ROWS = "rows"
    USERS = "users"


SHAPE = (len(ScoreUnit), len(Measure))


def compute_scores(rows: ClassifierRows, loss: LossKind, theta: FloatArray) -> FloatArray:
    """Compute mean loss and accuracy of several models.

    Args:
        rows: Whose rows they are judged on.
        loss: Of a row.
        theta: Shape (num_features, runs).

    Returns:
        Shape (runs, 2, 2): over rows and over users; loss, and share of rows told right (a margin of 0 counts half).
    """
    return _sum_scores(rows, loss, theta, None)


def score_constant(rows: ClassifierRows, loss: LossKind, score: float) -> FloatArray:
    """Compute the scores of the model that gives every row the same score, shape (2, 2)."""
    return np.asarray(_sum_scores(rows, loss, np.zeros((rows.num_features, 1)), score)[0])


def _sum_scores(rows: ClassifierRows, loss: LossKind, theta: FloatArray, score: float | None) -> FloatArray:
    """Sum weighted losses and accuracies over rows."""
    runs = theta.shape[1]
    total = np.zeros((runs, *SHAPE))
    row_weights = np.stack((np.full(rows.num_rows, 1.0 / rows.num_rows),
                       1.0 / rows.num_users / rows.sizes[rows.users]))  # fmt: skip
    block = max(_BLOCK // runs, 1)
    for start in range(0, rows.num_rows, block):
        row_slice = slice(start, start + block)
        margins = rows.signed[row_slice] @ theta
        if score is not None:
            margins = np.repeat(score * rows.signs[row_slice, None], runs, axis=1)
        accuracies = 0.5 * (np.sign(margins) + 1.0)
        for measure_index, values in enumerate((loss.evaluate(margins), accuracies)):
            total[:, :, measure_index] += (row_weights[:, row_slice] @ values).T
    return total
