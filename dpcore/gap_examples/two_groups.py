"""Two groups of users, light and heavy: where caps and smooth weights differ most, and why two groups suffice.

A share p of m users has one row, q = 1 - p has R rows, R -> infinity. Write t = 2 (B / epsilon)^2 / (sigma^2
m) ("noise per user"). In units of sigma^2 / m:

- Weights with threshold h >= 1 have variance (p + t h^2) / (p + q h)^2, least at h = max(1, q / t):
  1 / (p + q^2 / t) for t <= q, and p + t for t >= q.
- A whole cap x >= 1 has variance 1 / (p + q x) + t x^2 / (p + q x)^2, and t / q^2 as x -> infinity.

The paper's example 2 is p = 1/2, t = q; at t = q the weights' variance is 1. There

- whole caps: min over x of 1 / (p + q x) + q x^2 / (p + q x)^2. With x = 2 that is 25/16 at p = 2/5, and no p
  has more, since the value at x = 2 has its maximum there.
- finely scaled caps (light users s rows, heavy ones R s, 2 (B / epsilon)^2 = sigma^2 q m / s, s -> infinity):
  x is real. The derivative has the sign of x (3 p - 1) - p, so the best x is p / (3 p - 1) for 1/3 < p <=
  1/2, with p + q x = 2 p^2 / (3 p - 1) and value (5 p - 1) / (4 p^2); 1 for p >= 1/2, with value 2 - p; and
  infinity for p <= 1/3, with value 1 / (1 - p). The largest is again 25/16, at p = 2/5.

With t free the largest ratio for whole caps is 1.56493 (`compute_supremum`); docs/gap.md proves that no instance,
with any number of groups, reaches it, and that 25/16 is the answer for real caps.

Source: Epasto et al. 2020, section 3.3 and example 2; everything beyond theorem 2 is ours.

Every instance has a two-group limit whose ratio is at least as large, so two groups suffice. With V the best cap's
variance in units of sigma^2, no cap is better: n_h <= psi(h) at every whole h, where psi(h) = (1 + sqrt(1 + 4 V rho
h^2)) / (2 V) solves 1 / n + rho h^2 / n^2 = V for n. n_h is concave, psi convex, and they meet at the best cap, so a
line a + b h lies between them. The instance whose n_h is a min(h, 1) + b h (a users with one row, b with infinitely
many) then has no better cap and, having more rows at every h, no worse weights. docs/gap.md has the whole proof.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.common.checks import Problems, refuse, require
from dpcore.common.privacy import Provenance
from dpcore.common.strict_json import finite_or_none, write_document
from dpcore.contributions import MAX_SIZE, MAX_USERS, ContributionHistogram, FloatArray
from dpcore.gap_examples.compare import Comparison, build_problem_of_noise_ratio, compute_noise_ratio
from dpcore.mean.private_counts import list_choice_entries
from dpcore.mean.public_counts import MeanProblem
from dpcore.report.content import write_columns


@dataclass(frozen=True)
class Theorem2Variances:
    """The variances of example 2 at g, exactly, in units of sigma^2 = 1.

    Attributes:
        smooth_variance: v = (2 g + 1) / (4 g^2), with threshold 1.
        capped_variance: v' = 3 / (4 g), with cap 1.

    Source: Epasto et al. 2020, theorem 2. The theorem says v is *less* than (2 g + 1) / (4 g^2); it equals
    it: the root of the optimality condition, g / (g + 1), lies below the lightest user's one row, so
    threshold 1 is best. Likewise v' equals its bound, since cap 1 attains it.
    """

    smooth_variance: Fraction
    capped_variance: Fraction

    @property
    def ratio(self) -> Fraction:
        """Return 3 g / (2 g + 1), toward 3/2."""
        return self.capped_variance / self.smooth_variance


def build_theorem_2_problem(g: int) -> MeanProblem:
    """Build example 2 of the paper: g users with one row, g users with g rows, and the noise ratio g.

    Args:
        g: Whole, 1 to 1e9.

    Raises:
        InvalidInput: ``g`` is not.

    Source: Epasto et al. 2020, appendix A, example 2.
    """
    require.whole(1, 10**9, g=g)
    return build_problem_of_noise_ratio(ContributionHistogram.from_table([1, g], [g, g]), float(g))


def compute_theorem_2(g: int) -> Theorem2Variances:
    """Compute the exact variances of example 2, with threshold 1 and with cap 1."""
    require.whole(1, 10**9, g=g)
    return Theorem2Variances(Fraction(2 * g + 1, 4 * g**2), Fraction(3, 4 * g))


def build_two_group_problem(
    num_light_users: int,
    num_heavy_users: int,
    heavy_size: int,
    light_size: int = 1,
    noise_ratio: float | None = None,
) -> MeanProblem:
    """Build an instance with two groups of users, all users of a group with equally many rows.

    Args:
        num_light_users: Users in the first group, at least 1.
        num_heavy_users: Users in the second group, at least 1.
        heavy_size: Rows of each user in the second group, above ``light_size``.
        light_size: Rows of each user in the first group (s above).
        noise_ratio: 2 (B / epsilon)^2 / sigma^2 in rows; by default ``num_heavy_users`` / ``light_size``, at
            which the best threshold is ``light_size``.

    Raises:
        InvalidInput: A number is out of its range; all problems at once.
    """
    with Problems() as problems:
        problems.whole(1, MAX_USERS, light_users=num_light_users, heavy_users=num_heavy_users)
        are_whole = problems.whole(1, MAX_SIZE, light_size=light_size, heavy_size=heavy_size)
        if are_whole and heavy_size <= light_size:
            second_group_remedy = "Give the second group more rows per user"
            problems.add("heavy_size must be above light_size", remedy=second_group_remedy)
        if noise_ratio is not None:
            problems.positive(noise_ratio=noise_ratio)
    histogram = ContributionHistogram.from_table([light_size, heavy_size], [num_light_users, num_heavy_users])
    noise_ratio = num_heavy_users / light_size if noise_ratio is None else noise_ratio
    return build_problem_of_noise_ratio(histogram, noise_ratio)


@dataclass(frozen=True)
class RatioLimit:
    """Ratios and best caps as the heavy users' rows go to infinity; both fields have the shape of the arguments.

    Attributes:
        ratios: Variances with the best cap over those with the best weights.
        best_caps: The best cap in rows (of the light users' rows, where caps are finely scaled); infinite where a
            larger cap is always better.
    """

    ratios: FloatArray
    best_caps: FloatArray


def _require_share(light_share: npt.ArrayLike) -> FloatArray:
    """Return the shares as a float array; raise InvalidInput unless all are in [0, 1]."""
    p = np.asarray(light_share, dtype=np.float64)
    if not np.all((p >= 0.0) & (p <= 1.0)):
        raise refuse("light_share must lie between 0 and 1")
    return p


def compute_integer_cap_limit(
    light_share: npt.ArrayLike, noise_per_user: npt.ArrayLike | None = None
) -> RatioLimit:
    """Compute ratio and best whole cap if the heavy users' rows go to infinity.

    Args:
        light_share: p, the share of users with one row, in [0, 1], any shape.
        noise_per_user: t = 2 (B / epsilon)^2 / (sigma^2 m), above 0, a shape that broadcasts with p; by
            default q = 1 - p.

    Returns:
        `RatioLimit`; among equal caps the smaller.

    Raises:
        InvalidInput: A share outside [0, 1], or a noise not above 0.
    """
    p = _require_share(light_share)
    # At p = 1 nobody is heavy and q is 0, but t must stay above 0.
    noise_or_default = np.maximum(1.0 - p, np.finfo(float).tiny) if noise_per_user is None else noise_per_user
    p, t = (np.asarray(x) for x in np.broadcast_arrays(p, np.asarray(noise_or_default, dtype=np.float64)))
    if not np.all(np.isfinite(t) & (t > 0.0)):
        raise refuse("noise_per_user must be finite and above 0")
    q = 1.0 - p
    # The derivative in x has the sign of x (2 p t - q^2) - p q.
    variance_slopes = 2.0 * p * t - q**2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        stationary_caps = np.where(variance_slopes > 0.0, np.maximum(p * q / variance_slopes, 1.0), np.inf)
        # The variance has one valley in x, as its derivative changes its sign once: the best whole cap is beside
        # the root.
        floored_caps = np.where(np.isfinite(stationary_caps), np.floor(stationary_caps), 1.0)
        candidate_caps = np.stack((floored_caps, floored_caps + 1.0))
        kept_rows = p + q * candidate_caps
        candidate_variances = 1.0 / kept_rows + t * (candidate_caps / kept_rows) ** 2
        variance_without_cap = np.where(variance_slopes > 0.0, np.inf, t / q**2)
        smallest_variances = candidate_variances.min(axis=0)
        # Weights: in the docstring's order, both branches written so that neither divides by zero.
        inverse_weight_variances = np.where(t <= q, p + q * (q / t), 1.0 / (p + t))
    finite_caps = np.take_along_axis(candidate_caps, candidate_variances.argmin(axis=0)[None], axis=0)[0]
    best_caps = np.where(np.isfinite(stationary_caps), finite_caps, np.inf)
    best_variances = np.where(np.isfinite(stationary_caps), smallest_variances, variance_without_cap)
    return RatioLimit(np.asarray(best_variances * inverse_weight_variances), np.asarray(best_caps))


def compute_real_cap_limit(light_share: npt.ArrayLike) -> RatioLimit:
    """Compute ratio and best real cap if the heavy users' rows go to infinity.

    The noise is 2 (B / epsilon)^2 = sigma^2 q m / s.

    Args:
        light_share: p in [0, 1], any shape.

    Returns:
        `RatioLimit`, its caps in multiples of the light users' rows.

    Raises:
        InvalidInput: A share outside [0, 1].
    """
    p = _require_share(light_share)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios_above_third = np.where(p <= 0.5, (5.0 * p - 1.0) / (4.0 * p**2), 2.0 - p)
        limit_ratios = np.where(p <= 1.0 / 3.0, 1.0 / (1.0 - p), ratios_above_third)
        best_caps = np.where(p <= 1.0 / 3.0, np.inf, np.maximum(p / (3.0 * p - 1.0), 1.0))
    return RatioLimit(np.asarray(limit_ratios), np.asarray(best_caps))


@dataclass(frozen=True)
class WorstNoise:
    """The noise at which caps lose most, for each share of light users; both fields have the shape of the share.

    Attributes:
        ratios: The largest limits over all t > 0; toward 3/2 from below where it is not attained.
        noise_per_user: t at which it is attained or approached.
    """

    ratios: FloatArray
    noise_per_user: FloatArray


def find_worst_noise(light_share: npt.ArrayLike) -> WorstNoise:
    """Find the noise with the largest ratio for each share of light users, if heavy users have unlimited rows.

    With eta = q / t and w = p / q, cap k is best for eta between the ties eta_{k-1} and eta_k, where eta_k = w
    (k / (w + k) + (k + 1) / (w + k + 1)). Between two ties the ratio is convex in eta where eta >= 1 and
    monotone where eta <= 1 (docs/gap.md, section 5), so it is largest at a tie, at eta = 1, or in the limit of
    large caps, eta = 2 w. The ties that matter are those of small caps and of caps near 3 w: for large k the ratio at
    a tie is nearly (x + 3)(2 x + 1) / (2 (x + 1)^2), x = w / k, with its one maximum at x = 1/3.

    Args:
        light_share: p, the share of users with one row, strictly between 0 and 1, any shape.

    Raises:
        InvalidInput: A share outside (0, 1).

    Source: ours; docs/gap.md, section 5.
    """
    p = _require_share(light_share)
    if not np.all((p > 0.0) & (p < 1.0)):
        raise refuse("light_share must lie strictly between 0 and 1")
    w = (p / (1.0 - p))[..., None]
    small_caps = np.broadcast_to(np.arange(1.0, 41.0), (*p.shape, 40))
    caps_near_peak = np.maximum(np.floor(3.0 * w) + np.arange(-10.0, 11.0), 1.0)
    k = np.concatenate((small_caps, caps_near_peak), axis=-1)
    tie_thresholds = w * (k / (w + k) + (k + 1.0) / (w + k + 1.0))
    thresholds = np.concatenate((tie_thresholds, np.ones_like(w), 2.0 * w), axis=-1)
    candidate_noises = (1.0 - p)[..., None] / thresholds
    limit_ratios = compute_integer_cap_limit(p[..., None], candidate_noises).ratios
    best_candidate_index = limit_ratios.argmax(axis=-1)[..., None]
    arrays = (limit_ratios, candidate_noises)
    return WorstNoise(*(np.take_along_axis(x, best_candidate_index, axis=-1)[..., 0] for x in arrays))


@dataclass(frozen=True)
class Supremum:
    """The smallest number that no ratio exceeds with whole caps, and the instance where it is approached.

    Attributes:
        ratio: 1.56493 to its printed digits.
        light_share: p.
        noise_per_user: t = 2 (B / epsilon)^2 / (sigma^2 m).
        threshold: Best threshold of the smooth weights in the limit, q / t rows.
    """

    ratio: float
    light_share: float
    noise_per_user: float
    threshold: float

    def build_problem(self) -> MeanProblem:
        """Build an integer instance whose ratio, 1.564928, is close to the supremum.

        26 users have one row and 31 have 1e6 rows, a good fraction near p / q. At its noise caps 2 and 3 tie.
        """
        return build_two_group_problem(26, 31, 10**6, noise_ratio=31 / _compute_tie_threshold(26 / 31))


def _compute_tie_threshold(w: float) -> float:
    """Compute the threshold q / t of the weights at which caps 2 and 3 have one variance, from w = p / q."""
    return w * (2.0 / (w + 2.0) + 3.0 / (w + 3.0))


@functools.cache
def compute_supremum() -> Supremum:
    """Compute the least upper bound on the ratio over all instances with whole caps.

    Where caps k and k + 1 tie, the ratio depends on w = p / q alone; for k = 2 it is

    E(w) = (w^2 + 10 w + 18)(5 w + 6) / ((w + 2)(w + 3)(5 w + 12)),

    and E'(w) = 0 is 95 w^4 + 600 w^3 + 1050 w^2 - 72 w - 1080 = 0, which has one positive root (one change of
    sign), w = 0.838957. docs/gap.md proves that this is the supremum over every whole number of groups.
    """
    polynomial_coefficients = [95.0, 600.0, 1050.0, -72.0, -1080.0]
    w_low, w_high = 0.0, 2.0
    while w_low < (w := (w_low + w_high) / 2.0) < w_high:
        w_low, w_high = (w, w_high) if np.polyval(polynomial_coefficients, w) < 0.0 else (w_low, w)
    largest_ratio = (w**2 + 10.0 * w + 18.0) * (5.0 * w + 6.0) / ((w + 2.0) * (w + 3.0) * (5.0 * w + 12.0))
    tie_threshold = _compute_tie_threshold(w)
    q = 1.0 / (1.0 + w)
    return Supremum(largest_ratio, w * q, q / tie_threshold, tie_threshold)


@dataclass(frozen=True)
class Domination:
    """A limit of two groups whose ratio of variances is at least that of an instance.

    Attributes:
        num_light_users: a, the line's height at h = 0: users with one row in the dominating limit (a real
            number).
        num_heavy_users: b, the line's slope: users with unlimited rows there (a real number).
        limit_ratio: The limit's ratio: at least the instance's, at most that of `compute_supremum`.
    """

    num_light_users: float
    num_heavy_users: float
    limit_ratio: float

    @property
    def light_share(self) -> float:
        """Return p = a / (a + b), the share of light users in the limit."""
        return self.num_light_users / (self.num_light_users + self.num_heavy_users)


def find_dominating_groups(comparison: Comparison) -> Domination:
    """Find a limit of two groups whose ratio is at least that of this instance.

    It comes from a line between n_h and psi(h). The two extreme slopes and the one halfway are tried, each of which
    is a proof; the one with the smallest ratio is returned.

    Raises:
        InvalidInput: The problem has no sampling error (its ratio is 1 and there is nothing to prove).
    """
    problem, rho, k = comparison.problem, comparison.noise_ratio, comparison.cap_choice.max_contributions
    if problem.value_variance == 0.0:
        raise refuse(
            "without sampling error the best bound and the best weights are the same",
            remedy="Give a value_variance above 0",
        )
    histogram, best_variance = problem.histogram, comparison.cap_choice.squared_error / problem.value_variance
    # Slopes of n_h right and left of k, and of psi over the steps right and left: (psi(k + 1) - psi(k)) etc.
    lowest_slope = max(
        float(histogram.count_users_above(k)), _compute_psi_increment(best_variance, rho, k - 1)
    )
    highest_slope = min(
        float(histogram.count_users_above(k - 1)), _compute_psi_increment(best_variance, rho, k)
    )
    num_kept_rows = float(histogram.count_kept_rows(k))
    # Every slope in [low, high] makes a line that fits; one above n_k / k would take fewer than no light users.
    candidate_slopes = np.linspace(lowest_slope, highest_slope, 3)
    heavy_user_counts = np.clip(candidate_slopes, 0.0, num_kept_rows / k)
    light_user_counts = np.maximum(num_kept_rows - heavy_user_counts * k, 0.0)
    total_users = light_user_counts + heavy_user_counts
    limit_ratios = compute_integer_cap_limit(light_user_counts / total_users, rho / total_users).ratios
    i = int(np.argmin(limit_ratios))
    return Domination(float(light_user_counts[i]), float(heavy_user_counts[i]), float(limit_ratios[i]))


def _compute_psi_increment(best_variance: float, rho: float, h: float) -> float:
    """Compute psi(h + 1) - psi(h), psi as in the module, without the difference of two large numbers."""
    c = 4.0 * best_variance * rho
    root_sum = math.sqrt(1.0 + c * h**2) + math.sqrt(1.0 + c * (h + 1.0) ** 2)
    return c * (2.0 * h + 1.0) / (2.0 * best_variance * root_sum)


INSTANCE_SCHEMA = "sweetspot/gap-instance/1"


def write_instance_csv(mean_problem: mean.MeanProblem, disclosure: Provenance) -> str:
    """Return an instance as the text of a CSV file, which the page *Data* opens: a histogram with the noise ratio.

    Columns: ``size`` (rows per user), ``users``, ``noise_ratio`` (rho = 2 (B / epsilon)^2 / sigma^2, in rows),
    ``label``.

    Args:
        mean_problem: The instance.
        disclosure: Of the data behind it.
    """
    histogram = mean_problem.histogram
    noise_ratios = np.full(histogram.sizes.shape, compute_noise_ratio(mean_problem))
    columns_by_name = {"size": histogram.sizes, "users": histogram.users, "noise_ratio": noise_ratios}
    return write_columns(columns_by_name, disclosure)


def write_instance_json(comparison: Comparison, disclosure: Provenance) -> str:
    """Return an instance with both its optima and their proofs as the text of a JSON file.

    ``epsilon_for_unit_values`` is the epsilon that gives the noise ratio for values in [0, 1] of worst-case variance
    1/4.

    Args:
        comparison: The instance and its optima.
        disclosure: Of the data behind it.
    """
    mean_problem, rho = comparison.problem, comparison.noise_ratio
    instance_entries = {
        "sizes": mean_problem.histogram.sizes.tolist(),
        "users": mean_problem.histogram.users.tolist(),
        "noise_ratio": finite_or_none(rho),
        "epsilon_for_unit_values": math.sqrt(8.0 / rho) if math.isfinite(rho) else None,
    }
    answer_entries = {
        "ratio": comparison.ratio,
        "ratio_at_least": comparison.ratio_at_least,
        "ratio_at_most": comparison.ratio_at_most,
        "max_contributions": comparison.cap_choice.max_contributions,
        "cap": list_choice_entries(comparison.cap_choice),
        "threshold": comparison.smooth_choice.threshold,
        "smooth": list_choice_entries(comparison.smooth_choice),
    }
    return write_document(
        INSTANCE_SCHEMA,
        label=disclosure.label,
        instance=instance_entries,
        answer=answer_entries,
        largest_ratio_of_any_instance=compute_supremum().ratio,
        source="Epasto et al. 2020, section 3.3; the largest ratio: docs/gap.md",
    )
