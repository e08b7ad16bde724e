"""Descent under a bound that may follow a private quantile of users' norms: sums per user, in integers.

The descent has the rule of `mechanism`, with a bound that is fixed, or one that follows a private quantile. Clipping
the users' summed gradients at h costs a bias of at most one bound for each user that is clipped, if all pull one way,
and noise of κ √d bounds. The two balance where about κ √d users are clipped, whatever the data: so the bound goes to
the quantile that leaves `CLIPPED_USERS` times as many above it. In every step the users within the bound are counted,
with noise of their own, and the bound moves by the ratio of what is asked and what is found. It starts near where the
best bounds of fixed ones were, which grow with the root of users over noise, so that it has no long way to go.

Everything about a step is divided by its bound, which may therefore depend on all that was released before
(`account`). A bound below one row shortens single rows, too: the model then minimises a loss that is linear far out,
and a target that is nearer to one voice per user than to one per row.

The idea of a bound that follows a private quantile is that of Andrew, Thakkar, McMahan and Ramaswamy 2021; theirs
moves by a fixed rate toward a quantile that is chosen by hand.

Discrete Gaussian noise has the account of the continuous one: simulations and releases have the same σ. OpenDP's
sampler draws whole numbers k with probability p(k) ∝ e^(-k²/(2 σ²)), exactly. Rounding a normal draw of the same σ to
the nearest whole number has probabilities q(k). On sums of whole numbers the latter is the Gaussian mechanism with
its result rounded, whose privacy is known exactly. And the two are nearly the same:

    p(k) / q(k) <= 1 / (1 - 1/(24 σ²))                for every k,
    q(k) / p(k) <= e^(K²/(8 σ²)) (1 + 3 e^(-2π²σ²))   for |k| <= K σ.

With u uniform on [-1/2, 1/2], q(k) = e^(-k²/(2 σ²)) / (σ √(2π)) · E[e^(-u²/(2 σ²)) cosh(k u/σ²)], where E u² = 1/12,
cosh >= 1 and cosh(x) <= e^(x²/2), and by Poisson's summation Σ_k e^(-k²/(2 σ²)) lies between σ √(2π) and that times
1 + 3 e^(-2π²σ²). Over N draws, each in the light of those before, the ratios multiply: where rounded normal noise is
(ε₀, δ₀)-DP, discrete noise is so with ε = ε₀ + N (log ratios) and δ = e^(…) (δ₀ + e^ε₀ N P(|k| > K σ)). On the grids
used here σ is above 10⁵, and what is added is below a millionth of ε and δ.

Gradients are integers, so that a user contributes the same integer whoever else is in the data. They are rounded
before they are summed, toward 0 onto a public grid, so that a user's sum is an integer vector no longer than the
bound. Everything about a row is computed from its own numbers by single operations that IEEE 754 defines to the last
digit (sums, products, roots, column by column), never by a matrix product or a library's vectorised exponential,
whose last digit may depend on where in an array a row is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.common.mechanisms import GaussianSteps, start_gaussian_steps
from dpcore.common.privacy import GaussianNoise
from dpcore.common.progress import ShouldStop
from dpcore.contributions import FloatArray, IntArray
from dpcore.training import account
from dpcore.training.account import compute_smooth_weights
from dpcore.training.mechanism import (
    MOMENTUM,
    LossKind,
    Mechanism,
    average_iterate,
    choose_step_length,
    fade_mean,
    grow_steps,
    measure_agreement,
)
from dpcore.training.rows import ClassifierRows

BLOCK = 200_000
"""Entries of a rows × runs matrix that are worked on at once: 1.6 MB, about what a core's own cache holds."""


def cut_user_blocks(rows: ClassifierRows, block_size: int) -> list[tuple[int, int]]:
    """Cut the users into blocks of about so many rows; return (first, last) of each."""
    block_starts = np.searchsorted(rows.starts, np.arange(0, rows.num_rows, block_size))
    cuts = np.unique(np.append(block_starts, rows.num_users))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _UserBlock:
    """A block of users with the matrix from their rows to their sums."""

    users: slice
    rows: slice
    owners: IntArray
    """Position of each row's user among the users of the block."""
    matrix: Any
    """Sparse: the rows' slopes to the users' sums, one line per user and feature."""


class UserSums:
    """The sums of some rows, prepared once for all steps.

    One sparse matrix takes the slopes of a block's rows to the sums of its users, with no array of rows × features ×
    runs: ten times as fast as adding up feature by feature at 7 features and 50 runs.
    """

    def __init__(self, rows: ClassifierRows, runs: int) -> None:
        self._rows = rows
        self._blocks = [
            self._make_block(*user_range) for user_range in cut_user_blocks(rows, max(BLOCK // runs, 1))
        ]

    def _make_block(self, first_user: int, last_user: int) -> _UserBlock:
        """Make a block of users."""
        from scipy.sparse import csr_array

        rows, num_features = self._rows, self._rows.num_features
        first_row = int(rows.starts[first_user])
        row_slice = slice(first_row, int(rows.starts[last_user - 1] + rows.sizes[last_user - 1]))
        owners = rows.users[row_slice] - first_user
        num_rows = owners.size
        # One line per user and feature, with the signed feature of each of the user's rows.
        matrix_rows = (owners[:, None] * num_features + np.arange(num_features)).ravel()
        order = np.argsort(matrix_rows, kind="stable")
        row_ends = np.concatenate(([0], np.cumsum(np.repeat(rows.sizes[first_user:last_user], num_features))))
        matrix = csr_array(
            (
                rows.signed[row_slice].ravel()[order],
                np.repeat(np.arange(num_rows), num_features)[order],
                row_ends,
            ),
            shape=((last_user - first_user) * num_features, num_rows),
        )
        return _UserBlock(slice(first_user, last_user), row_slice, owners, matrix)

    def iterate_blocks(self) -> Iterator[_UserBlock]:
        """Yield the blocks of users in turn."""
        yield from self._blocks

    def compute_norms(self, block: _UserBlock, slopes: FloatArray) -> FloatArray:
        """Compute the norm of each user's sum from the slopes of the block's rows, shape (users, runs)."""
        users = block.users.stop - block.users.start
        sums = (block.matrix @ slopes).reshape(users, self._rows.num_features, slopes.shape[1])
        return np.asarray(np.sqrt(np.einsum("ukr,ukr->ur", sums, sums)))


CLIPPED_USERS = 12.0
"""Users that are to be clipped, in κ √d; never more than half of all."""
START_DIVISOR = 12.0
"""The first bound is the root of the number of users over κ √d, divided by this; at least `FIRST_BOUND`."""
BOUND_RATE = 5.0
"""How fast the bound moves: if nobody of those who are to be clipped is, its logarithm falls by this in T steps."""
MAX_LOG_CHANGE = 0.3
"""Most that the logarithm of the bound moves in a step."""
BOUND_RANGE = (1e-3, 100.0)
"""The bound stays within."""

Gradient = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray | None]]
"""From θ, shape (d, runs), and the bound of each run to the bounded sum of gradients, shape of θ, and how many users
are within the bound, shape (runs,), or None where nobody asks."""
Slopes = Callable[[FloatArray, slice], FloatArray]
"""From the margins of some rows to the slopes of their clipped losses."""


def make_clipped_sums(
    sums: UserSums, signed: FloatArray, slopes: Slopes, is_trained: FloatArray | None = None
) -> Gradient:
    """Make the function that clips each user's sum of gradients to the bound of its run, and counts users within.

    Args:
        sums: Of the users.
        signed: As `ClassifierRows.signed`.
        slopes: Of the loss.
        is_trained: 1 for users who are there, 0 for others, shape (num_users, runs), where runs are on splits of their
            own; None for all users in all runs.
    """

    def gradient(theta: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        total, num_within = np.zeros_like(theta), np.zeros(theta.shape[1])
        for block in sums.iterate_blocks():
            row_slopes = slopes(signed[block.rows] @ theta, block.rows)
            norms = sums.compute_norms(block, row_slopes)
            factors = bounds / np.maximum(norms, bounds)
            is_inside = norms <= bounds
            if is_trained is not None:
                factors *= is_trained[block.users]
                is_inside = is_inside & (is_trained[block.users] > 0.0)
            num_within += is_inside.sum(axis=0)
            total += signed[block.rows].T @ (row_slopes * factors[block.owners])
        return total, num_within

    return gradient


def choose_quantile(unit_noise: float, num_features: int, num_users: FloatArray) -> FloatArray:
    """Compute γ, the share of users within the bound that the bound aims at, shape of ``num_users``."""
    return np.asarray(1.0 - np.minimum(0.5, CLIPPED_USERS * unit_noise * np.sqrt(num_features) / num_users))


def choose_first_bound(
    smallest_bound: FloatArray | float, unit_noise: float, num_features: int, num_users: FloatArray
) -> FloatArray:
    """Choose the first bound by a rule that reads only the released number of users; its shape."""
    start = np.sqrt(num_users / (unit_noise * np.sqrt(num_features))) / START_DIVISOR
    return np.asarray(np.clip(np.maximum(start, smallest_bound), *BOUND_RANGE))


def update_bound(bounds: FloatArray, share_within: FloatArray, target: FloatArray, steps: int) -> FloatArray:
    """Compute the bound of the next step.

    Without the division by 1 - γ it would be slow where few users are to be clipped: there the share within can
    be off by 1 - γ at most, however far the bound is from its target.

    Args:
        bounds: Of this step.
        share_within: Share of the users within it, as released.
        target: γ.
        steps: T.
    """
    log_change = np.clip(
        BOUND_RATE / steps * (target - share_within) / (1.0 - target), -MAX_LOG_CHANGE, MAX_LOG_CHANGE
    )
    return np.asarray(np.clip(bounds * np.exp(log_change), *BOUND_RANGE))


@dataclass(frozen=True, eq=False)
class RuleNoise:
    """Standard normal noise of several runs.

    Attributes:
        gradient: Shape (steps, d, runs).
        count: Shape (steps, runs).
        number: Shape (runs,).
    """

    gradient: FloatArray
    count: FloatArray
    number: FloatArray


def descend(
    gradient: Gradient,
    mechanism: Mechanism,
    num_users: int,
    bound: FloatArray,
    noise: RuleNoise,
    *,
    bound_follows: bool,
    plan: account.RulePlan,
    should_stop: ShouldStop,
) -> tuple[FloatArray, FloatArray] | None:
    """Descend in several runs at each of several bounds; the runs have the same noise at each bound.

    Nesterov's momentum; the model is the mean of the iterates by `mechanism.average_iterate`.

    Args:
        gradient: Of the users, bounded.
        mechanism: By the rule.
        num_users: m.
        bound: How far a user moves the sum at most, shape (bounds,); where the bound follows, the least that it may
            begin with.
        noise: Of the runs.
        bound_follows: Whether the bound follows the users.
        plan: How large the noise is.
        should_stop: Asked between steps.

    Returns:
        θ, shape (d, bounds × runs), the runs at each bound in turn, and the bound after the last step, shape
        (bounds × runs,); None where it was stopped.
    """
    _, num_features, runs_per_bound = noise.gradient.shape
    runs = bound.size * runs_per_bound

    def repeat_for_bounds(run_values: FloatArray) -> FloatArray:
        return run_values if bound.size == 1 else np.tile(run_values, bound.size)

    noisy_users = (
        np.maximum(num_users + plan.number * noise.number, plan.unit_noise) if plan.number else num_users
    )
    users = repeat_for_bounds(np.broadcast_to(np.asarray(noisy_users, dtype=np.float64), (runs_per_bound,)))
    target = choose_quantile(plan.unit_noise, num_features, users)
    bounds = np.repeat(bound, runs_per_bound)
    stable_share = 1.0 if bound_follows else np.minimum(bounds * mechanism.clip, 1.0)
    step_factors, fading_mean = np.ones(runs), np.zeros((num_features, runs))
    bounds = choose_first_bound(bounds, plan.unit_noise, num_features, users) if bound_follows else bounds
    theta = previous = np.zeros((num_features, runs))
    model, weight = np.zeros((num_features, runs)), np.zeros(runs)
    for step in range(1, mechanism.steps + 1):
        if should_stop():
            return None
        extrapolated = theta + MOMENTUM * (theta - previous)
        gradient_sum, num_within = gradient(extrapolated, bounds * mechanism.clip)
        previous = theta
        direction = gradient_sum / (bounds * mechanism.clip) + plan.gradient * repeat_for_bounds(
            noise.gradient[step - 1]
        )
        fading_mean = fade_mean(fading_mean, direction)
        agreements = measure_agreement(fading_mean, plan.gradient, step)
        step_factors = grow_steps(step_factors, agreements, step, mechanism.steps)
        theta = (
            extrapolated
            - choose_step_length(plan.unit_noise, num_features, users, mechanism, stable_share, step_factors)
            * direction
        )
        theta = theta / np.maximum(np.sqrt(np.einsum("kr,kr->r", theta, theta)) / mechanism.radius, 1.0)
        if bound_follows:
            assert num_within is not None
            # The count is taken from half of all, so that a user moves it by half of one.
            count = num_within - num_users / 2.0 + plan.count * repeat_for_bounds(noise.count[step - 1])
            bounds = update_bound(bounds, count / users + 0.5, target, mechanism.steps)
        model, weight = average_iterate(model, weight, theta, agreements, step)
    return model, bounds


_RESERVED_SHARE = 1e-6
"""Of ε and δ, as a share, for what tells discrete noise from rounded normal noise."""


def bound_difference(sigma: float, draws: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Bound how much discrete noise adds to ε and to δ, if rounded normal noise is (ε, δ)-DP.

    Args:
        sigma: Standard deviation, in whole numbers; infinite answers below 10, where the bounds above are of no use.
        draws: N, whole numbers drawn in all.
        epsilon: ε₀.
        delta: δ₀.
    """
    if sigma < 10.0:
        return math.inf, math.inf
    # K such that the tail is below δ₀ e^(-ε₀ - 40) / N: P(|k| > K σ) <= 2 e^(-(K - 1/(2 σ))²/2).
    tail_width = math.sqrt(2.0 * (epsilon + 40.0 + math.log(2.0 * draws / delta))) + 0.5 / sigma
    log_ratio_down = -math.log1p(-1.0 / (24.0 * sigma**2))
    log_ratio_up = tail_width * tail_width / (8.0 * sigma**2) + 1e-300
    added_epsilon = draws * (log_ratio_down + log_ratio_up)
    return added_epsilon, math.expm1(draws * log_ratio_down) * delta + math.exp(
        draws * log_ratio_down - 40.0
    ) * delta


def account_exactly(
    squared_sensitivity: int,
    draws: int,
    epsilon: float,
    delta: float,
) -> GaussianSteps:
    """Account a sequence of noisy integer vectors as one Gaussian mechanism; nothing is drawn.

    Args:
        squared_sensitivity: The sum over all vectors, whole, at least 1.
        draws: Entries of all vectors together.
        epsilon: Of all of them together.
        delta: Strictly between 0 and 1, likewise.

    Returns:
        The noise, and an (ε, δ) that it keeps, at most what was asked for. Where σ is too small for the argument
        above, OpenDP's own account through zCDP, with more noise.

    Raises:
        InvalidInput: A parameter is out of range.

    Source: the bounds above; Dong, Roth and Su 2022, corollary 3.3; Balle and Wang 2018, theorem 8, by dp-accounting;
        Canonne, Kamath and Steinke 2020 for the sampler.
    """
    usable_share = 1.0 - _RESERVED_SHARE
    unit = GaussianNoise.for_release(1.0, usable_share * epsilon, usable_share * delta).scale
    # A little more, so that the rounding of root and product leaves no less noise than is accounted for.
    sigma = unit * math.sqrt(squared_sensitivity) * (1.0 + 1e-15)
    additions = bound_difference(sigma, draws, usable_share * epsilon, usable_share * delta)
    total = usable_share * epsilon + additions[0], usable_share * delta + additions[1]
    if total[0] <= epsilon and total[1] <= delta:
        # The rest of a millionth is not worth a number of its own: the requested ε and δ are returned.
        return GaussianSteps(epsilon, delta, sigma, squared_sensitivity)
    return start_gaussian_steps(squared_sensitivity, epsilon, delta)


CELLS = 2**22
"""Steps of the grid in the longest gradient of a user: what rounding takes off is far below the noise."""
USER_NORM = CELLS + 1
"""Norm that a user's whole numbers have at most: the bound itself, and one step for the rounding of float64, which is
below 1e-12 of it. Rounding toward 0 adds nothing."""

_LOG2_E = 1.4426950408889634
# ln 2 in two parts, the first exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TAYLOR = [1.0]
for _power in range(1, 15):
    _TAYLOR.append(_TAYLOR[-1] / _power)


def exponentiate_exactly(values: FloatArray) -> FloatArray:
    """Compute e^x to about 2 units in the last place, each entry by the same operations; |x| <= 700."""
    exponents = np.rint(values * _LOG2_E)
    remainder = (
        values - exponents * _LN2_HIGH
    ) - exponents * _LN2_LOW  # at most 0.35: the series ends below 1e-18
    series = np.full_like(remainder, _TAYLOR[-1])
    for term in reversed(_TAYLOR[:-1]):
        series = series * remainder + term
    return np.asarray(np.ldexp(series, exponents.astype(np.int64)))


def compute_slopes_exactly(loss: LossKind, margins: FloatArray) -> FloatArray:
    """Compute slopes as `LossKind.differentiate` does, each entry from its own margin by the same operations."""
    if loss is not LossKind.LOGISTIC:
        return loss.differentiate(margins)
    # -1 / (1 + e^m); beyond 700 the exponential would overflow, and the slope is 0 to 300 digits.
    slopes = -1.0 / (1.0 + exponentiate_exactly(np.clip(margins, -700.0, 700.0)))
    return np.where(margins < 700.0, slopes, 0.0)


def _clip_slopes(rows: ClassifierRows, mechanism: Mechanism, theta: FloatArray) -> FloatArray:
    """Compute the slope of each row, clipped so that its gradient has norm at most the clip."""
    margins = np.zeros(rows.num_rows)
    squares = np.zeros(rows.num_rows)
    for column, entry in zip(rows.signed.T, theta.tolist(), strict=True):
        margins += column * entry
        squares += column * column
    with np.errstate(divide="ignore"):
        max_slopes = mechanism.clip / np.sqrt(squares)
    return np.asarray(np.clip(compute_slopes_exactly(mechanism.loss, margins), -max_slopes, max_slopes))


def round_gradients(rows: ClassifierRows, mechanism: Mechanism, bound: float, theta: FloatArray) -> IntArray:
    """Round the weighted, clipped gradient of each row to steps of the grid, shape (num_rows, num_features).

    A step is ``bound × clip / CELLS``. The rows of a user add up to a vector of norm at most `USER_NORM`.
    """
    # s rows of weight min(h, s) / s, none with a gradient beyond the clip: together at most h times the clip, which is
    # `CELLS` steps. Rounding toward 0 makes no entry larger.
    weights = compute_smooth_weights(rows.sizes, bound)[rows.users]
    slopes_in_steps = weights * _clip_slopes(rows, mechanism, theta) * (CELLS / (bound * mechanism.clip))
    return np.trunc(rows.signed * slopes_in_steps[:, None]).astype(np.int64)


def round_user_sums(
    rows: ClassifierRows, mechanism: Mechanism, bound: float, theta: FloatArray
) -> tuple[IntArray, IntArray]:
    """Round each user's sum of clipped gradients, clipped to the bound, to the grid; also return who is within.

    A step is ``bound × clip / CELLS``. Rows are rounded to integers first, so that a user's sum is exact in any
    order of its rows.

    Returns:
        Whole vectors of norm at most `USER_NORM`, shape (num_users, num_features), and 1 or 0, shape (num_users,).
    """
    slopes = _clip_slopes(rows, mechanism, theta) * (CELLS / mechanism.clip)
    row_steps = np.trunc(rows.signed * slopes[:, None]).astype(np.int64)
    # Up to 200,000 rows of 2^22: float64 holds the sums exactly.
    sums = np.add.reduceat(row_steps, rows.starts, axis=0).astype(np.float64) / bound
    squares = np.zeros(rows.num_users)
    for column in sums.T:
        squares += column * column
    norms = np.sqrt(squares)
    factors = CELLS / np.maximum(norms, CELLS)
    return np.trunc(sums * factors[:, None]).astype(np.int64), (norms <= CELLS).astype(np.int64)
