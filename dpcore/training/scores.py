"""How good models are: mean loss and share of rows told right, over rows and over users."""

from __future__ import annotations

import enum

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.training.losses import LossKind
from dpcore.training.rows import ClassifierRows

_BLOCK = 400_000


class Measure(enum.Enum):
    """What is measured; the position of each in the last axis of a table of scores."""

    LOSS = "loss"
    ACCURACY = "accuracy"


class Over(enum.Enum):
    """What a mean is taken over: all rows alike, or all users alike. They differ where heavy users differ."""

    ROWS = "rows"
    USERS = "users"


SHAPE = (len(Over), len(Measure))


def scores(rows: ClassifierRows, loss: LossKind, theta: FloatArray) -> FloatArray:
    """Mean loss and accuracy of several models.

    Args:
        rows: Whose rows they are judged on.
        loss: Of a row.
        theta: Shape (num_features, runs).

    Returns:
        Shape (runs, 2, 2): over rows and over users; loss, and share of rows told right (a margin of 0 counts half).
    """
    return _summed(rows, loss, theta, None)


def constant_scores(rows: ClassifierRows, loss: LossKind, score: float) -> FloatArray:
    """As `scores` for the one model that gives every row the same score, shape (2, 2)."""
    return np.asarray(_summed(rows, loss, np.zeros((rows.num_features, 1)), score)[0])


def _summed(rows: ClassifierRows, loss: LossKind, theta: FloatArray, score: float | None) -> FloatArray:
    runs = theta.shape[1]
    total = np.zeros((runs, *SHAPE))
    of_row = np.stack((np.full(rows.num_rows, 1.0 / rows.num_rows),
                       1.0 / rows.num_users / rows.sizes[rows.users]))  # fmt: skip
    block = max(_BLOCK // runs, 1)
    for start in range(0, rows.num_rows, block):
        part = slice(start, start + block)
        margins = rows.signed[part] @ theta
        if score is not None:
            margins = np.repeat(score * rows.signs[part, None], runs, axis=1)
        right = 0.5 * (np.sign(margins) + 1.0)
        for at, values in enumerate((loss.at(margins), right)):
            total[:, :, at] += (of_row[:, part] @ values).T
    return total
