"""Sums of gradients in integers, and discrete Gaussian noise on them: what a release adds up.

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
digit (sums, products, roots, column by column). A matrix product or a library's vectorised exponential is never used,
as its last digit may depend on the row's position in an array.
"""

from __future__ import annotations

import math

import numpy as np

from dpcore.common.mechanisms import GaussianSteps, start_gaussian_steps
from dpcore.common.privacy import GaussianNoise
from dpcore.contributions import FloatArray, IntArray
from dpcore.training.account import compute_smooth_weights
from dpcore.training.mechanism import LossKind, Mechanism
from dpcore.training.rows import ClassifierRows

_BUDGET_SHARE_FOR_ROUNDING = 1e-6
"""Share of ε and δ for the difference between discrete and rounded normal noise."""


def bound_difference(sigma: float, num_ints: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Bound how much discrete noise adds to ε and to δ, if rounded noise is (ε, δ)-DP; infinite for σ below 10.

    Args:
        sigma: Standard deviation, in whole numbers; infinite answers below 10, where the bounds above are of no use.
        num_ints: N, whole numbers drawn in all.
        epsilon: ε₀.
        delta: δ₀.
    """
    if sigma < 10.0:
        return math.inf, math.inf
    # K such that the tail is below δ₀ e^(-ε₀ - 40) / N: P(|k| > K σ) <= 2 e^(-(K - 1/(2 σ))²/2).
    tail_width_in_sigmas = math.sqrt(2.0 * (epsilon + 40.0 + math.log(2.0 * num_ints / delta))) + 0.5 / sigma
    log_discrete_to_rounded = -math.log1p(-1.0 / (24.0 * sigma**2))
    log_rounded_to_discrete = tail_width_in_sigmas * tail_width_in_sigmas / (8.0 * sigma**2) + 1e-300
    added_epsilon = num_ints * (log_discrete_to_rounded + log_rounded_to_discrete)
    tail_delta = math.exp(num_ints * log_discrete_to_rounded - 40.0) * delta
    return added_epsilon, math.expm1(num_ints * log_discrete_to_rounded) * delta + tail_delta


def account_exactly(squared_sensitivity: int, num_ints: int, epsilon: float, delta: float) -> GaussianSteps:
    """Return noise for a sequence of integer vectors by the account of one Gaussian mechanism; draw nothing.

    Nothing is drawn.

    Args:
        squared_sensitivity: The sum over all vectors, whole, at least 1.
        num_ints: Entries of all vectors together.
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
    usable_share = 1.0 - _BUDGET_SHARE_FOR_ROUNDING
    unit_noise = GaussianNoise.for_release(1.0, usable_share * epsilon, usable_share * delta).scale
    # A little more, so that the rounding of root and product leaves no less noise than is accounted for.
    noise_std = unit_noise * math.sqrt(squared_sensitivity) * (1.0 + 1e-15)
    usable_epsilon, usable_delta = usable_share * epsilon, usable_share * delta
    added_epsilon, added_delta = bound_difference(noise_std, num_ints, usable_epsilon, usable_delta)
    if usable_epsilon + added_epsilon <= epsilon and usable_delta + added_delta <= delta:
        # The rest of a millionth is not worth a number of its own: the requested ε and δ are returned.
        return GaussianSteps(epsilon, delta, noise_std, squared_sensitivity)
    return start_gaussian_steps(squared_sensitivity, epsilon, delta)


STEPS_PER_BOUND = 2**22
"""Steps of the grid in the longest gradient of a user: rounding is far below the noise."""
MAX_USER_NORM = STEPS_PER_BOUND + 1
"""Largest norm of a user's integers: the bound, and one step for the rounding of float64, which is below 1e-12 of
it."""

_LOG2_E = 1.4426950408889634
# ln 2 in two parts, the first exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TAYLOR_COEFFICIENTS = [1.0]
for _power in range(1, 15):
    _TAYLOR_COEFFICIENTS.append(_TAYLOR_COEFFICIENTS[-1] / _power)


def exponentiate_exactly(exponents: FloatArray) -> FloatArray:
    """Compute e^x to about 2 units in the last place, each entry by the same operations; |x| <= 700."""
    binary_exponents = np.rint(exponents * _LOG2_E)
    # At most 0.35: the series ends below 1e-18.
    remainders = (exponents - binary_exponents * _LN2_HIGH) - binary_exponents * _LN2_LOW
    exponentials = np.full_like(remainders, _TAYLOR_COEFFICIENTS[-1])
    for taylor_coefficient in reversed(_TAYLOR_COEFFICIENTS[:-1]):
        exponentials = exponentials * remainders + taylor_coefficient
    return np.asarray(np.ldexp(exponentials, binary_exponents.astype(np.int64)))


def compute_slopes_exactly(loss: LossKind, margins: FloatArray) -> FloatArray:
    """Compute the derivative of the loss at each margin, each entry from its own margin by the same operations."""
    if loss is not LossKind.LOGISTIC:
        return loss.differentiate(margins)
    # -1 / (1 + e^m); beyond 700 the exponential would overflow, and the slope is 0 to 300 digits.
    logistic_slopes = -1.0 / (1.0 + exponentiate_exactly(np.clip(margins, -700.0, 700.0)))
    return np.where(margins < 700.0, logistic_slopes, 0.0)


def _clip_slopes(rows: ClassifierRows, mechanism: Mechanism, theta: FloatArray) -> FloatArray:
    """Compute the slope of each row's loss at θ, clipped so that the row's gradient has norm at most the clip."""
    margins = np.zeros(rows.num_rows)
    squared_norms = np.zeros(rows.num_rows)
    for column_values, coefficient in zip(rows.signed_features.T, theta.tolist(), strict=True):
        margins += column_values * coefficient
        squared_norms += column_values * column_values
    with np.errstate(divide="ignore"):
        max_slopes = mechanism.clip / np.sqrt(squared_norms)
    return np.asarray(np.clip(compute_slopes_exactly(mechanism.loss, margins), -max_slopes, max_slopes))


def round_gradients(rows: ClassifierRows, mechanism: Mechanism, bound: float, theta: FloatArray) -> IntArray:
    """Round the weighted, clipped gradient of each row to steps of the grid, shape (num_rows, num_features).

    A step is ``bound × clip / STEPS_PER_BOUND``. The rows of a user add up to a vector of norm at most `MAX_USER_NORM`.
    """
    # s rows of weight min(h, s) / s, none with a gradient beyond the clip: together at most h times the clip, which is
    # `STEPS_PER_BOUND` steps. Rounding toward 0 makes no entry larger.
    row_weights = compute_smooth_weights(rows.sizes, bound)[rows.user_codes]
    slopes_in_steps = (
        row_weights * _clip_slopes(rows, mechanism, theta) * (STEPS_PER_BOUND / (bound * mechanism.clip))
    )
    return np.trunc(rows.signed_features * slopes_in_steps[:, None]).astype(np.int64)


def round_user_sums(
    rows: ClassifierRows, mechanism: Mechanism, bound: float, theta: FloatArray
) -> tuple[IntArray, IntArray]:
    """Clip each user's sum of gradients to the bound and round it to the grid; also mark the users within the bound.

    A step is ``bound × clip / STEPS_PER_BOUND``. Rows are rounded to integers first, so that a user's sum is exact in
    any order of its rows.

    Returns:
        Whole vectors of norm at most `MAX_USER_NORM`, shape (num_users, num_features), and 1 or 0, shape (num_users,).
    """
    slopes_in_steps = _clip_slopes(rows, mechanism, theta) * (STEPS_PER_BOUND / mechanism.clip)
    rounded_gradients = np.trunc(rows.signed_features * slopes_in_steps[:, None]).astype(np.int64)
    # Up to 200,000 rows of 2^22: float64 holds the sums exactly.
    user_sums = np.add.reduceat(rounded_gradients, rows.starts, axis=0).astype(np.float64) / bound
    squared_norms = np.zeros(rows.num_users)
    for column_values in user_sums.T:
        squared_norms += column_values * column_values
    user_norms = np.sqrt(squared_norms)
    clip_factors = STEPS_PER_BOUND / np.maximum(user_norms, STEPS_PER_BOUND)
    rounded_sums = np.trunc(user_sums * clip_factors[:, None]).astype(np.int64)
    return rounded_sums, (user_norms <= STEPS_PER_BOUND).astype(np.int64)
