"""Labelled rows for the tests of training."""

import math

import numpy as np

from dpcore.training.rows import ClassifierRows, prepare_rows
from dpcore.training.training_data import TrainingGenerator


def draw_rows(seed: int, sizes, d: int = 3, on_sphere: bool = False) -> ClassifierRows:
    """Draw random rows of norm at most 1, or of norm 1, with random labels."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(sizes)), sizes)
    features = rng.standard_normal((users.size, d))
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    features /= norms if on_sphere else np.maximum(norms, 1.0)
    return ClassifierRows(features, np.sign(rng.standard_normal(users.size)), users)


def generate_rows(num_users: int, **changes) -> ClassifierRows:
    generated = TrainingGenerator(num_users=num_users, **changes).generate()
    return prepare_rows(generated.dataset.table, generated.scaling, 0.5)


def replace_last_user(rows: ClassifierRows, new_user: ClassifierRows | None) -> ClassifierRows:
    """Return the rows without the last user, or with another in its place."""
    remaining_rows = rows.select_users(np.arange(rows.num_users - 1))
    if new_user is None:
        return remaining_rows
    return ClassifierRows(
        np.vstack((remaining_rows.features, new_user.features)),
        np.append(remaining_rows.signs, new_user.signs),
        np.append(remaining_rows.user_codes, np.full(new_user.num_rows, rows.num_users - 1)),
    )


def make_extreme_user(size: int, theta: np.ndarray, sign: float) -> ClassifierRows:
    """Make a user whose rows all pull one way, as hard as a row can."""
    direction = -theta / max(np.linalg.norm(theta), 1e-9) if np.any(theta) else np.ones(3) / math.sqrt(3)
    return ClassifierRows(np.tile(direction, (size, 1)), np.full(size, sign), np.zeros(size, dtype=np.int64))
