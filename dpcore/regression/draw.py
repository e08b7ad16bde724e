"""One DP release of the coefficients, and files to take away."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpcore.common.checks import refuse, require
from dpcore.common.mechanisms import LaplaceRelease, release_laplace
from dpcore.common.privacy import Charge, Neighbours, Provenance, ReleaseFacts, round_up_to_float
from dpcore.common.strict_json import MADE_WITH
from dpcore.contributions import FloatArray
from dpcore.data.column_names import escape_formula
from dpcore.regression import estimate as estimation
from dpcore.regression.estimate import LinearEstimate
from dpcore.regression.problem import RegressionProblem


@dataclass(frozen=True, eq=False)
class ReleasedCoefficients:
    """Released coefficients as they were drawn, kept so that they are never drawn again unasked.

    Attributes:
        question: Digest of the problem that they answer.
        feature_names: One for each coefficient, num_features of them.
        release: The coefficients as they may be published, with epsilon, shape (num_features,).
        standard_errors: Of each, noise and sampling together, label unit / unit of the feature.
        half_widths: Of 95 % intervals, shape (num_features,).
    """

    question: str
    feature_names: tuple[str, ...]
    release: LaplaceRelease
    standard_errors: FloatArray
    half_widths: FloatArray

    @property
    def facts(self) -> ReleaseFacts:
        """Return the privacy guarantee of the release, whose label the released coefficients carry."""
        return _build_facts(self.release.epsilon)


def _build_facts(epsilon: float) -> ReleaseFacts:
    """Return the guarantee of a release at this epsilon: epsilon-DP for the labels of one user, by Laplace noise."""
    # Features and who owns which row are public, and C is made of nothing else: neighbours differ in one user's labels.
    return ReleaseFacts(epsilon, 0.0, Neighbours.REPLACE_VALUES, "Laplace")


def clip_released_labels(problem: RegressionProblem, labels: npt.ArrayLike, lower: float = 0.0) -> FloatArray:
    """Clip the labels to [lower, lower + B] and replace NaN by ``lower``.

    ``lower`` must be chosen without a look at the labels.

    Raises:
        InvalidInput: Not one number per row, or ``lower`` not finite.
    """
    require.finite(low=lower)
    numeric_labels = estimation.convert_labels(problem, labels)
    clipped_labels = np.clip(numeric_labels, *_compute_interval(problem, lower))
    # One label must not decide whether there is a release; infinite ones went to the nearer end.
    return np.where(np.isnan(numeric_labels), float(lower), clipped_labels)


def _compute_interval(problem: RegressionProblem, lower: float) -> tuple[float, float]:
    """Return both ends of the interval to which labels are clipped, (lower, lower + B), as floats."""
    return float(lower), float(lower) + float(problem.value_bound)


def compute_sensitivity(problem: RegressionProblem, estimate: LinearEstimate, lower: float = 0.0) -> float:
    """Compute the L1 sensitivity of C y: B max_l sum |c|, plus an upper bound on what rounding adds.

    Write u = 2^-53 and M = max |y|. A product c y is off by at most u |c| M, or by 2^-1075 where it is subnormal;
    `math.fsum` is off by u times the sum; sums of float64 are never subnormal and inexact. Let the labels y and
    y' differ in one user's rows. The products of all others are the same number in both, so that
    1. the exact sums of the rounded products differ by at most sum_l |c| (|y - y'| + 2 u M) + 2^-1074 for each of
       the user's entries, over whose |c| sum_l runs;
    2. rounding both sums adds 2 u (1 + u) M sum |c|, over everybody's entries, and no more than 2^-1074;
    3. |y - y'| is at most the length of the interval *as clipped to*, fl(L + B) - L. It exceeds B by up to
       u M, a fifth rounding beside the four of 1 and 2: where |L| is 2^50 B, an eighth of B.
    Four roundings of sum |c| M, as if the length were B, are too few: a test has two rows where it takes 4.32.

    The sums of |c| below are float64 sums of k terms of one sign, hence too small by at most a factor of 1 + 2 u k;
    everything else here is exact, and the result is rounded up.

    Raises:
        InvalidInput: C and the interval reach beyond float64: judged by public figures alone.
    """
    lower, upper = _compute_interval(problem, lower)
    abs_weights = np.abs(estimate.matrix)
    with np.errstate(over="ignore"):
        sum_of_weights = float(abs_weights.sum())
    largest_label = max(abs(lower), abs(upper))
    if not sum_of_weights * max(largest_label, 1.0) < sys.float_info.max / 4.0:
        raise refuse(
            "the coefficients of the largest labels reach beyond float64",
            remedy="Express the labels or the features in another unit",
        )
    num_terms = problem.num_features * problem.histogram.max_size
    u, m, smallest_float = Fraction(1, 2**53), Fraction(largest_label), Fraction(math.ulp(0.0))
    user_sorted_weights = problem.whitened.sort_rows(abs_weights)
    exact_largest_weight = Fraction(problem.whitened.find_largest_user_weight(user_sorted_weights))
    exact_largest_weight *= 1 + 2 * u * num_terms
    range_length = max(Fraction(problem.value_bound), Fraction(upper) - Fraction(lower))
    largest_user_change = exact_largest_weight * (range_length + 2 * u * m) + num_terms * smallest_float
    exact_sum_of_weights = Fraction(sum_of_weights) * (1 + 2 * u * abs_weights.size)
    rounding_error = 2 * u * (1 + u) * m * exact_sum_of_weights + smallest_float
    return round_up_to_float(largest_user_change + rounding_error)


def draw_coefficients(
    problem: RegressionProblem,
    estimate: LinearEstimate,
    labels: npt.ArrayLike,
    lower: float = 0.0,
    charge: Charge | None = None,
) -> ReleasedCoefficients:
    """Release the coefficients with fresh Laplace noise; every call spends epsilon again.

    Args:
        problem: The question; its epsilon is spent.
        estimate: A feasible C and its noise, for this problem.
        labels: y, shape (num_rows,); clipped to [lower, lower + B] first.
        lower: Lower end of the labels' interval, chosen without a look at them.
        charge: Told what the draw guarantees before anything is drawn.

    Raises:
        InvalidInput: The labels do not fit, C X differs from I, or C and the interval reach beyond float64;
            nothing was drawn.

    Source: Epasto et al. 2020, algorithm 3.
    """
    # All that can be refused is refused before the charge: after it, noise may have been drawn.
    if not estimate.infeasibility <= estimation.FEASIBILITY_TOLERANCE:
        raise refuse("the estimator is biased: C X differs from I")
    y = clip_released_labels(problem, labels, lower)
    sensitivity = compute_sensitivity(problem, estimate, lower)
    # `fsum` rounds once: the sensitivity counts on it. A plain sum would add an error for every row.
    noiseless_coefficients = [math.fsum(row * y) for row in estimate.matrix]
    # From public figures: before anything is spent.
    standard_errors = np.sqrt(estimation.compute_variances(problem, estimate))
    interval_half_widths = compute_half_widths(problem, estimate)
    coefficients_release = release_laplace(
        noiseless_coefficients,
        sensitivity,
        problem.epsilon,
        None if charge is None else lambda epsilon, _: charge(_build_facts(epsilon)),
    )
    return ReleasedCoefficients(
        problem.digest, problem.feature_names, coefficients_release, standard_errors, interval_half_widths
    )


def compute_half_widths(
    problem: RegressionProblem, estimate: LinearEstimate, confidence: float = 0.95
) -> FloatArray:
    """Compute the half widths of two-sided intervals around released coefficients, shape (num_features,).

    The error of coefficient j is taken as normal with variance sigma^2 sum_i c_ji^2 plus Lap(b). That the sampling
    part is normal is an assumption (it is a sum over many rows), and so is sigma^2.

    Args:
        problem: The question.
        estimate: C and its noise.
        confidence: In (0, 1), for each coefficient alone.

    Raises:
        InvalidInput: ``confidence`` is not strictly between 0 and 1.
    """
    require.inside(0.0, 1.0, confidence=confidence)
    sampling_errors = np.sqrt(estimation.compute_sampling_variances(problem, estimate))
    noise_scale, non_coverage = estimate.laplace_noise.scale, 1.0 - confidence
    return np.array([_solve_half_width(float(s), noise_scale, non_coverage) for s in sampling_errors])


def _solve_half_width(normal_deviation: float, laplace_scale: float, tail_probability: float) -> float:
    """Compute the x at which P(|N(0, s^2) + Lap(b)| > x) = ``tail_probability``, with s^2 and b given.

    For x > 0 and r = s/b,
    P(N + L > x) = Phi(-x/s) + exp(r^2/2) (exp(-x/b) Phi(x/s - r) - exp(x/b) Phi(-x/s - r)) / 2.
    """
    from scipy.optimize import brentq
    from scipy.special import erfcx, ndtr

    s, b = normal_deviation, laplace_scale
    # The sampling part is lost in float64 beside Lap(b), whose quantile is in closed form.
    if s <= 1e-9 * b:
        return b * math.log(1.0 / tail_probability)
    r = s / b

    def compute_tilted_tail(z: float) -> float:
        """Return exp(r^2/2 + r z) Phi(-z - r) for z = x/s, without overflow of its squares."""
        if z + r >= 0.0:
            return 0.5 * math.exp(-z * z / 2.0) * float(erfcx((z + r) / math.sqrt(2.0)))
        return math.exp(r * (r / 2.0 + z)) * float(ndtr(-z - r))

    def compute_tail_excess(x: float) -> float:
        """Return P(|N + L| > x) minus ``tail_probability``; it is 0 at the half-width."""
        z = x / s
        return 2.0 * float(ndtr(-z)) + compute_tilted_tail(-z) - compute_tilted_tail(z) - tail_probability

    # Chebyshev's inequality gives the upper end.
    upper_end = math.sqrt((s * s + 2.0 * b * b) / tail_probability)
    return float(brentq(compute_tail_excess, 0.0, upper_end, xtol=1e-12 * upper_end, rtol=1e-12))


def write_matrix(problem: RegressionProblem, estimate: LinearEstimate, provenance: Provenance) -> bytes:
    """Return C as the bytes of a Parquet file, one line per row of the data.

    Columns: ``row`` (from 0, complete rows only), ``user_code``, and one per coefficient. A released coefficient is
    the sum over rows of these numbers times the clipped label, plus noise. The file's metadata hold the disclosure
    label and the noise's scale.
    """
    weight_table = pd.DataFrame({"row": np.arange(problem.num_rows), "user_code": problem.user_codes})
    for j, column_name in enumerate(make_distinct(problem.feature_names, ("row", "user_code"))):
        weight_table[column_name] = estimate.matrix[j]
    weight_table.attrs = {
        "label": provenance.label,
        "made_with": MADE_WITH,
        "epsilon": problem.epsilon,
        "value_bound": problem.value_bound,
        "residual_variance": problem.residual_variance,
        "laplace_scale": estimate.laplace_noise.scale,
        "proved_relative_gap": estimate.certificate.relative_gap,
    }
    parquet_buffer = io.BytesIO()
    weight_table.to_parquet(parquet_buffer, index=False)
    return parquet_buffer.getvalue()


def tabulate_users(problem: RegressionProblem, estimate: LinearEstimate) -> pd.DataFrame:
    """Tabulate the weights of the users, one line per user code in the order in which users first appear.

    Columns: ``rows``, ``weight`` (sum of |C| over the user's rows and all coefficients; the largest sets the noise),
    ``share`` (of the sum of all weights).
    """
    user_weights, whitened = estimation.compute_user_weights(problem, estimate), problem.whitened
    columns_by_name = {
        "rows": whitened.sizes,
        "weight": user_weights,
        "share": user_weights / user_weights.sum(),
    }
    user_codes = problem.user_codes[whitened.row_order[whitened.starts]]
    return pd.DataFrame(columns_by_name, index=pd.Index(user_codes, name="user"))


def make_distinct(feature_names: Sequence[str], taken_names: tuple[str, ...]) -> list[str]:
    """Return the feature names, with " (coefficient)" appended to each that is among ``taken_names``.

    It is appended again until the name is not another feature's either.
    """
    distinct_names = []
    for feature_name in feature_names:
        new_name = feature_name
        while new_name in taken_names or (new_name != feature_name and new_name in feature_names):
            new_name = f"{new_name} (coefficient)"
        distinct_names.append(new_name)
    return distinct_names


def write_draws(draws: Sequence[ReleasedCoefficients]) -> str:
    """Return every draw of the coefficients as the text of a CSV file, one line per coefficient and draw."""
    draw_frames = [
        pd.DataFrame(
            {
                "draw": draw_number,
                "coefficient": [escape_formula(feature_name) for feature_name in draw.feature_names],
                "value": draw.release.values,
                "noise_scale": draw.release.scale,
                "half_width_95": draw.half_widths,
                "label": draw.facts.label,
            }
        )
        for draw_number, draw in enumerate(draws, 1)
    ]
    return pd.concat(draw_frames).to_csv(index=False, lineterminator="\n")
