"""One DP release of a model, with OpenDP's noise; everything else in this question simulates.

Gradients are rounded before they are added up: each row's entry toward 0 onto a public grid, so that a user's sum is
whole, no longer than the bound, and the same number whoever else is in the data. Sums of whole numbers are exact, and
discrete Gaussian noise on them is what OpenDP proves private.

What is the same in neighbouring data is computed the same: everything about a row comes from its own numbers by single
operations (features column by column, `math.exp` row by row), never by a matrix product or a vectorised exponential,
whose last digit may depend on where in an array a row stands.

Under a cap the rows are drawn once, before the first step, at most h of each user, each user's from random bits of its
own. Whatever bits the others had, a user then moves every sum by at most what rows of weight 1 can, which is as much as
under smooth weights; and a guarantee that holds for each draw of the others holds on average over their draws.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.mechanisms import GaussianSteps, discrete_gaussian_steps
from dpcore.common.privacy import Charge, Neighbours, ReleaseFacts
from dpcore.contributions import FloatArray, IntArray
from dpcore.training.account import WEIGHT_SHARE
from dpcore.training.losses import LossKind
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows
from dpcore.training.weighting import (
    RELEASED,
    Cell,
    Method,
    gradient_steps,
    ranks_within_users,
    smooth_weights,
    weight_sensitivity,
)

MECHANISM = "discrete Gaussian gradient descent"
CELLS = 2**18
"""Steps of the grid in the longest gradient of a user: what rounding takes off is far below the noise."""
_USER = CELLS + 1
"""Norm that a user's whole numbers have at most: the bound itself, and one step for the rounding of float64, which is
below 1e-12 of it. Rounding toward 0 adds nothing."""


@dataclass(frozen=True, eq=False)
class Model:
    """A released model.

    Attributes:
        theta: Of the scaled features, shape (num_features,); it may be published.
        facts: What is guaranteed and how.
        cell: Smooth weights or a cap, and the bound h.
        noise: Standard deviation of the noise on each coordinate of a step's summed gradient, in rows.
    """

    theta: FloatArray
    facts: ReleaseFacts
    cell: Cell
    noise: float


def drawn_rows(rows: ClassifierRows, cap: float) -> ClassifierRows:
    """At most ``cap`` rows of each user, drawn by the operating system's random bits; the order of rows stays.

    A user with no more rows keeps all. Two rows share their 64 bits with a chance below 1e-8 even where one user has
    half a million; then the first of them is kept, which favours a row and costs no privacy.
    """
    keys = np.frombuffer(secrets.token_bytes(8 * rows.num_rows), dtype=np.uint64)
    kept = ranks_within_users(rows, keys) < cap
    return ClassifierRows(rows.features[kept], rows.signs[kept], rows.users[kept])


def slopes_one_by_one(loss: LossKind, margins: FloatArray) -> FloatArray:
    """As `LossKind.slope`, each entry from its own margin alone and always by the same operations."""
    if loss is not LossKind.LOGISTIC:
        return loss.slope(margins)
    exp = math.exp
    # -1 / (1 + e^m); beyond 700 the exponential would overflow, and the slope is 0 to 300 digits.
    return np.array([-1.0 / (1.0 + exp(m)) if m < 700.0 else 0.0 for m in margins.tolist()])


def whole_gradients(rows: ClassifierRows, mechanism: Mechanism, bound: float, theta: FloatArray) -> IntArray:
    """Weighted, clipped gradient of each row in steps of the grid, shape (num_rows, num_features).

    A step is ``bound × clip / CELLS``. The rows of a user add up to a vector of norm at most `CELLS` + 1.
    """
    margins = np.zeros(rows.num_rows)
    squares = np.zeros(rows.num_rows)
    for column, entry in zip(rows.signed.T, theta.tolist(), strict=True):
        margins += column * entry
        squares += column * column
    with np.errstate(divide="ignore"):
        most = mechanism.clip / np.sqrt(squares)
    slopes = np.clip(slopes_one_by_one(mechanism.loss, margins), -most, most)
    weights = smooth_weights(rows.sizes, bound)[rows.users]
    steps = weights * slopes * (CELLS / (bound * mechanism.clip))
    return np.trunc(rows.signed * steps[:, None]).astype(np.int64)


def _squared_sensitivity(mechanism: Mechanism) -> int:
    """Of a step's whole numbers, as a whole number."""
    return int(gradient_steps(mechanism.neighbours)) ** 2 * _USER**2


@dataclass(frozen=True)
class _WeightGrid:
    """How the sum of weights is released: ``squared`` of 0 where it is public."""

    squared: int
    step: float


def _weight_grid(mechanism: Mechanism, bound: float, num_users: int) -> _WeightGrid:
    moved = weight_sensitivity(mechanism.neighbours, bound)
    if not moved:
        return _WeightGrid(0, 1.0)
    gradients = mechanism.steps * _squared_sensitivity(mechanism)
    root = math.isqrt(round(gradients * WEIGHT_SHARE / (1.0 - WEIGHT_SHARE)))
    # A user's weight is rounded toward 0, so that two users' differ by one step more than their weights do; one more
    # covers float64, as long as a weight is at most 2^40 steps: with bounds near 1, where a replaced user moves next to
    # nothing, finer steps would be lost in rounding. A coarser step moves by fewer.
    finest = bound * 2.0**-40
    if mechanism.neighbours is Neighbours.REPLACE_USER:
        # Nor may all weights together be more steps than OpenDP's sampler takes, 2^53. Their number is public here; for
        # users who come or go it is not, and a weight is at most `root` steps.
        finest = max(finest, bound * num_users * 2.0**-52)
    return _WeightGrid(root**2, max(moved / (root - 2), finest))


def train_once(rows: ClassifierRows, mechanism: Mechanism, cell: Cell, charge: Charge | None = None) -> Model:
    """Spend (ε, δ) once: a fresh model at every call, by smooth weights or under a cap.

    Args:
        rows: All users that the model learns from.
        mechanism: What is trained and how; its ε and δ are spent.
        cell: Smooth weights or a cap, and its bound h, in rows; chosen without a look at these data, else ε does not
            cover the choice.
        charge: Told what the release guarantees before anything is drawn.

    Raises:
        InvalidInput: The bound is out of range, the method is another, or users are sampled; nothing was drawn.

    Source: Epasto et al. 2020, algorithm 2, with noisy gradient descent as its learner; for a cap, Amin et al. 2019,
    algorithm 1.
    """
    bound = cell.bound
    with Problems() as problems:
        if cell.method not in RELEASED:
            problems.add(f"a release has smooth weights or a cap; got {cell.method.value}")
        problems.between(1e-6, 1e9, bound=bound)
        if mechanism.sampled < 1.0:
            problems.add("a release takes all users in every step")
    one = _squared_sensitivity(mechanism)
    grid = _weight_grid(mechanism, bound, rows.num_users)
    noise = discrete_gaussian_steps(
        mechanism.steps * one + grid.squared,
        mechanism.epsilon,
        mechanism.delta,
        None
        if charge is None
        else lambda epsilon, delta: charge(_facts(epsilon, delta, mechanism.neighbours)),
    )
    if cell.method is Method.CAP:
        # min(h, s) rows are left, so that smooth weights of bound h weigh each of them 1.
        rows = drawn_rows(rows, bound)
    divisor = _weight_sum(rows, bound, grid, noise)
    unit = bound * mechanism.clip / CELLS
    theta = np.zeros(rows.num_features)
    kept, first = np.zeros_like(theta), mechanism.average.first(mechanism.steps)
    for step in range(1, mechanism.steps + 1):
        exact = whole_gradients(rows, mechanism, bound, theta).sum(axis=0)
        theta = theta - mechanism.rate / divisor * unit * noise.release(exact, one)
        theta = theta / max(float(np.linalg.norm(theta)) / mechanism.radius, 1.0)
        if step >= first:
            kept += theta
    return Model(
        kept / (mechanism.steps - first + 1),
        _facts(noise.epsilon, noise.delta, mechanism.neighbours),
        cell,
        noise.scale * unit,
    )


def _facts(epsilon: float, delta: float, neighbours: Neighbours) -> ReleaseFacts:
    return ReleaseFacts(epsilon, delta, neighbours, MECHANISM)


def _weight_sum(rows: ClassifierRows, bound: float, grid: _WeightGrid, noise: GaussianSteps) -> float:
    """The sum of weights, public or with noise, at least that of one user."""
    weights = np.minimum(bound, rows.sizes)
    if not grid.squared:
        return math.fsum(weights)
    whole = np.trunc(weights / grid.step).astype(np.int64).sum(keepdims=True)
    return max(float(noise.release(whole, grid.squared)[0]) * grid.step, bound)
