"""The error of a released mean after the program moves it into its range [L, U].

With M the middle of the range and B its width, a mean of n kept rows is released as M plus

- clamp(m + Z / n), if counts are public: m is the mean of the kept rows less M, and Z the noise;
- clamp((n m + Z) / max(n + R, 1)), if they are private: R is the noise of the rows, as `dpcore.mean.private_counts` has
  it; its standard deviation is 2 / B times that of Z, whichever sums are released.

m is taken as normal, with the mean and the variance that the model of the error has. The error is then exact over the
noise (`dpcore.common.noisy_ratio`).

The choice of a bound does not count the step: optimisers minimise the error before it, and proofs are about that.
Where noise, sampling and bias grow by one factor, the error after the step grows by no more. So bounds that are within
5 % of the best before it are so after it, unless their errors have other parts.

The step needs the mean itself. If the error before it does not depend on the mean, it is stated as it is: an upper
bound for every mean in [L, U]. If counts are private a test shows so numerically, as the ratio is linearised.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from dpcore.common.noise_error import NoiseKind
from dpcore.common.noisy_ratio import (
    compute_laplace_squares,
    compute_normal_squares,
    square_clamped_laplace,
    square_clamped_normal,
)
from dpcore.contributions import FloatArray
from dpcore.mean.models import MeanError
from dpcore.mean.private_counts import ERROR_APPROXIMATION_NAME, PrivateCountsProblem, ReleasedSums
from dpcore.mean.public_counts import (
    MeanProblem,
    compute_capped_error,
    compute_smooth_error,
    find_weight_growth,
)
from dpcore.mean.table_values import UserDeviations

SAMPLING_NODES = 32
"""Points over the sampling error: relative errors up to 2e-3 where it is nearly all of the error."""


def find_mean(problem: MeanProblem) -> float | None:
    """Return the estimated mean less L if the error depends on it, else None."""
    if problem.table_values is not None:
        return problem.table_values.mean_above_lower
    return problem.mean_above_lower if isinstance(problem, PrivateCountsProblem) else None


def describe_errors(problem: MeanProblem) -> str:
    """Describe the errors of an answer, for its JSON."""
    linearised_text = (
        f", by the {ERROR_APPROXIMATION_NAME}" if isinstance(problem, PrivateCountsProblem) else ""
    )
    if find_mean(problem) is None:
        return f"before a mean outside the range is moved into it{linearised_text}, an upper bound after"
    return (
        "after a mean outside the range is moved into it; variances and the choice of the bound are before that"
        f"{linearised_text}"
    )


def measure_caps(problem: MeanProblem, caps: npt.ArrayLike) -> MeanError:
    """Return the error after the step under caps in its parts, at ``caps`` h > 0 of any shape."""
    return move_error(problem, compute_capped_error(problem, caps), caps)


def measure_weights(problem: MeanProblem, thresholds: npt.ArrayLike) -> MeanError:
    """Return the same under smooth weights with ``thresholds`` h > 0 of any shape."""
    return move_error(problem, compute_smooth_error(problem, thresholds), thresholds)


def move_error(
    problem: MeanProblem,
    mean_error: MeanError,
    bounds: npt.ArrayLike,
    *,
    sum_noise_variances: FloatArray | None = None,
    reach: npt.ArrayLike = 1.0,
    rows_noise_factor: float = 1.0,
) -> MeanError:
    """Return the error after the step, or that before it if `find_mean` knows no mean.

    All parts shrink by one factor, so that the variance is still their sum.

    Args:
        problem: The question.
        mean_error: The error before the step, at ``bounds``.
        bounds: h, in rows per user, any shape.
        sum_noise_variances: Variance of Z / n, of the shape of ``bounds``; by default what ``mean_error`` has.
        reach: Half of the range that a mean is moved into, over B / 2; a number, or of the shape of ``bounds``.
        rows_noise_factor: Standard deviation of R over 2 / B times that of Z; 1 unless R was released for itself.
    """
    mean_above_lower = find_mean(problem)
    if mean_above_lower is None or _find_sums(problem) is ReleasedSums.SPLIT:
        return mean_error
    noise_and_reach = sum_noise_variances, rows_noise_factor, reach
    moved_squares = _square_moved(problem, mean_above_lower, mean_error, bounds, *noise_and_reach)
    square_ratios = moved_squares / mean_error.squared_error
    return MeanError(
        np.asarray(mean_error.sampling_variance * square_ratios),
        np.asarray(mean_error.privacy_variance * square_ratios),
        np.asarray(mean_error.shift * np.sqrt(square_ratios)),
    )


def _find_sums(problem: MeanProblem) -> ReleasedSums | None:
    """Return the pair of sums that is released; None if counts are public."""
    return problem.released_sums if isinstance(problem, PrivateCountsProblem) else None


def move_users_error(
    problem: MeanProblem,
    users_error: MeanError,
    thresholds: npt.ArrayLike,
    user_deviations: UserDeviations | None = None,
) -> MeanError:
    """Return the error if users are clamped, after a mean that no users can have is moved to the nearest that they can.

    Args:
        problem: The question.
        users_error: The error before the step, at ``thresholds``.
        thresholds: h, in rows per user, any shape.
        user_deviations: What ``users_error`` was computed from; None for a model of users.
    """
    sum_noise_variances = None
    if user_deviations is not None and isinstance(problem, PrivateCountsProblem):
        # Its noise of the rows counts in proportion to the mean deviation of users.
        relative_means = (users_error.shift - user_deviations.offset) / (user_deviations.width / 2.0)
        sum_noise_variances = np.asarray(users_error.privacy_variance / (1.0 + relative_means**2))
    reach = measure_reach(problem, thresholds)
    return move_error(problem, users_error, thresholds, sum_noise_variances=sum_noise_variances, reach=reach)


def measure_reach(problem: MeanProblem, thresholds: npt.ArrayLike) -> FloatArray:
    """Return half of the range of means that users can have over half of that of values, at thresholds of any shape."""

    def find_least_weight(threshold: float) -> float:
        """Return the weight of a user of one row, at most the threshold."""
        return min(threshold, sum(find_weight_growth(problem, threshold).compute_coefficients(threshold)))

    h = np.asarray(thresholds, dtype=np.float64)
    return np.asarray(
        h
        / np.reshape(
            [find_least_weight(weight_threshold) for weight_threshold in h.ravel().tolist()], h.shape
        )
    )


def _square_moved(
    problem: MeanProblem,
    mean_above_lower: float,
    mean_error: MeanError,
    bounds: npt.ArrayLike,
    sum_noise_variances: FloatArray | None,
    rows_noise_factor: float,
    reach: npt.ArrayLike,
) -> FloatArray:
    """Return the expected squared error after the step, of the shape of ``bounds``; arguments as of `move_error`."""
    half_range = problem.value_bound / 2.0
    if sum_noise_variances is None:
        sum_noise_variances = mean_error.privacy_variance
        if isinstance(problem, PrivateCountsProblem):
            # The linearised ratio has the noise of the rows, too, times the mean less M, at most B / 2.
            known_mean = problem.mean_above_lower
            relative_mean = 1.0 if known_mean is None else known_mean / half_range - 1.0
            sum_noise_variances = sum_noise_variances / (1.0 + relative_mean**2)
    # All in units of B / 2. Points of the rule for the sampling error lie along the last axis.
    shifts, sampling_deviations, noise_deviations, kept_rows, reaches = (
        np.broadcast_to(bound_terms, np.shape(bounds))[..., None]
        for bound_terms in (
            mean_error.shift / half_range,
            np.sqrt(mean_error.sampling_variance) / half_range,
            np.sqrt(sum_noise_variances) / half_range,
            problem.histogram.count_kept_rows(np.asarray(bounds, dtype=np.float64)),
            reach,
        )
    )
    target, noise_kind, released_sums = (
        mean_above_lower / half_range - 1.0,
        problem.noise.kind,
        _find_sums(problem),
    )
    low_ends, high_ends, node_weights = -reaches - target, reaches - target, np.ones(1)
    if noise_kind is NoiseKind.GAUSSIAN:
        deviations = np.hypot(sampling_deviations, noise_deviations)
        if released_sums is None:
            moved_squares = square_clamped_normal(shifts, deviations, low_ends, high_ends)
        else:
            # Everything per kept row: their number is 1, and the smallest divisor 1 / n.
            rows_deviations = rows_noise_factor * noise_deviations
            ratio_arguments = shifts + target, 1.0, deviations**2, rows_deviations, reaches, target
            moved_squares = compute_normal_squares(*ratio_arguments, min_rows=1.0 / kept_rows)
    else:
        if sampling_deviations.any():
            nodes, node_weights = _build_normal_rule()
            shifts = shifts + nodes * sampling_deviations
        # The noise of the sum has the variance 2 b^2; half the difference of two entries with noise of scale b has b^2.
        scales = noise_deviations / (1.0 if released_sums is ReleasedSums.PAIR else math.sqrt(2.0))
        if released_sums is None:
            moved_squares = square_clamped_laplace(shifts, scales, low_ends, high_ends)
        else:
            is_split = released_sums is ReleasedSums.CENTRED_SPLIT
            # The noise of the rows has the scale of that of the sum over the fourth argument, the unit of the reach.
            moved_squares = compute_laplace_squares(
                shifts + target,
                1.0,
                scales,
                1.0 / rows_noise_factor,
                target,
                is_split=is_split,
                reach=reaches * rows_noise_factor,
                min_rows=1.0 / kept_rows,
            )
    return np.asarray((moved_squares @ node_weights) * half_range * half_range)


@functools.cache
def _build_normal_rule() -> tuple[FloatArray, FloatArray]:
    """Return points and weights of the Gauss-Hermite rule for a standard normal variable."""
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(SAMPLING_NODES)
    return nodes, node_weights / node_weights.sum()
