"""How much smooth weights gain over the best cap on one instance, and the paper's proof that it is at most 4.

The noise ratio rho = 2 (B / epsilon)^2 / sigma^2 is all that epsilon, B and sigma^2 contribute to the ratio. It
is the variance of the noise, in rows' variances, if one user holds all the weight. If the users of every size
and rho are multiplied by the same number, the ratio stays as it is.

Curves under sliders and the search need ratios of many small instances at once; these have closed forms. An instance
is k sizes, k numbers of users (any positive reals: the ratio depends on their proportions to each other and to the
noise ratio only) and a noise ratio. Tests compare each ratio with the optimisers of `dpcore.mean`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.common.checks import Problems, require
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.mean.public_counts import CapChoice, MeanProblem, SmoothChoice

PAPER_BOUND = 4.0
"""Theorem 3: no ratio is larger. `dpcore.gap_examples.two_groups.compute_supremum` is the smallest such number."""


def build_problem_of_noise_ratio(histogram: ContributionHistogram, noise_ratio: float) -> MeanProblem:
    """Build a mean problem with a given noise ratio, for values in [0, 2] of variance 1.

    Args:
        histogram: Rows per user.
        noise_ratio: rho = 2 (B / epsilon)^2 / sigma^2 in rows, above 0.

    Raises:
        InvalidInput: ``noise_ratio`` is not a finite number above 0, or the histogram is none.
    """
    require.positive(noise_ratio=noise_ratio)
    epsilon = 2.0 * math.sqrt(2.0 / noise_ratio)
    return MeanProblem(histogram, epsilon=epsilon, value_bound=2.0, value_variance=1.0)


def compute_noise_ratio(problem: MeanProblem) -> float:
    """Compute rho = 2 (B / epsilon)^2 / sigma^2, in rows; infinite without sampling error."""
    return 1.0 / problem.trade_off if problem.trade_off > 0.0 else math.inf


@dataclass(frozen=True)
class Comparison:
    """The best cap and the best smooth weights of one problem.

    Attributes:
        problem: The question.
        smooth_choice: The best smooth weights, with their certificate.
        cap_choice: The best whole cap, with its certificate.
    """

    problem: MeanProblem
    smooth_choice: SmoothChoice
    cap_choice: CapChoice

    @property
    def ratio(self) -> float:
        """Return the variance with the best cap over that with the best weights, at least 1."""
        return self.cap_choice.squared_error / self.smooth_choice.squared_error

    @property
    def ratio_at_least(self) -> float:
        """Return a proved lower bound on the least variance with a cap over the least with smooth weights."""
        return self.cap_choice.certificate.lower_bound / self.smooth_choice.squared_error

    @property
    def ratio_at_most(self) -> float:
        """Return a proved upper bound on the least variance with a cap over the least with smooth weights."""
        return self.cap_choice.squared_error / self.smooth_choice.certificate.lower_bound

    @property
    def noise_ratio(self) -> float:
        """Return rho of the problem, in rows; infinite without sampling error."""
        return compute_noise_ratio(self.problem)


def compare(problem: MeanProblem) -> Comparison:
    """Find the best cap and the best smooth weights of one problem, each exact and with its certificate."""
    return Comparison(problem, mean.find_best_smooth(problem), mean.find_best_cap(problem))


@dataclass(frozen=True)
class FourfoldProof:
    """The construction in the proof of theorem 3: a cap h' that costs at most 4 times the best weights.

    Attributes:
        threshold: h*, the best threshold of the smooth weights.
        share_below: alpha = A / n_{h*}, the weight of the users with at most h* rows; A are their rows.
        case_number: 1 where alpha >= 1/2 (h' = h* rounded up), 2 otherwise.
        heavy_user_rank: Case 2: r = ceil(q eta), h' being the rows of the r-th of the q heavy users and
            eta = 1 - 1 / (2 (1 - alpha)); 0 in case 1.
        max_contributions: h'.
        sampling_factor: Sampling part of v'(h') over that of v(h*): at most 2 in case 1, 4 in case 2.
        privacy_factor: Privacy part of v'(h') over that of v(h*): at most 4.
        ratio: v'(h') / v(h*): at most 4.

    Source: Epasto et al. 2020, theorem 8 (theorem 3 restated). Its last display bounds h' / n_{h'} by
    1 / (1 - eta) where 1 / (q (1 - eta)) is meant; the conclusion stands.
    """

    threshold: float
    share_below: float
    case_number: int
    heavy_user_rank: int
    max_contributions: int
    sampling_factor: float
    privacy_factor: float
    ratio: float


def carry_out_fourfold_proof(comparison: Comparison) -> FourfoldProof:
    """Construct the cap h' of the proof of theorem 3 on this problem.

    Its variances are compared with those of the threshold.
    """
    problem, h = comparison.problem, comparison.smooth_choice.threshold
    histogram = problem.histogram
    rows_below, users_above, _ = (float(piece_sum) for piece_sum in histogram.compute_sums_at(h))
    share_below = rows_below / (rows_below + h * users_above)
    p, q, r = histogram.num_users - int(users_above), int(users_above), 0
    # Case 1. The sum of squared weights is at least A / n^2 = alpha / n >= 1 / (2 n), and n_{h'} >= n: hence the
    # factor 2. As h* >= 1, h' is at most 2 h*, whose square is the factor 4.
    if share_below >= 0.5:
        proof_cap = math.ceil(h)
    else:
        # Case 2. The users at or below h* and the first r above it hold alpha + r h* / n >= 1/2 of the weight, and
        # h' keeps all their rows: by Cauchy and Schwarz the sum of squared weights is at least 1 / (4 n_{h'}). At
        # least q (1 - eta) users have h' rows or more, so that h' / n_{h'} <= 2 (1 - alpha) / q = 2 h* / n.
        eta = 1.0 - 1.0 / (2.0 * (1.0 - share_below))
        r = min(max(math.ceil(q * eta), 1), q)
        cumulative_users = np.cumsum(histogram.users.astype(np.float64))
        proof_cap = int(histogram.sizes[int(np.searchsorted(cumulative_users, p + r))])
    cap_error = mean.compute_capped_error(problem, float(proof_cap))
    threshold_error = mean.compute_smooth_error(problem, h)
    return FourfoldProof(
        threshold=h,
        share_below=share_below,
        case_number=1 if share_below >= 0.5 else 2,
        heavy_user_rank=r,
        max_contributions=proof_cap,
        sampling_factor=_divide_or_one(
            float(cap_error.sampling_variance), float(threshold_error.sampling_variance)
        ),
        privacy_factor=_divide_or_one(
            float(cap_error.privacy_variance), float(threshold_error.privacy_variance)
        ),
        ratio=float(cap_error.squared_error) / float(threshold_error.squared_error),
    )


def _divide_or_one(numerator: float, denominator: float) -> float:
    """Return the quotient; 1 if the denominator is 0, where both are."""
    return numerator / denominator if denominator > 0.0 else 1.0


@dataclass(frozen=True)
class VarianceRatios:
    """Variances of a batch of instances and their ratio; each field has the shape of the batch.

    Attributes:
        ratios: Variances with the best cap over those with the best weights.
        smooth_variances: With the best weights, in units of sigma^2.
        capped_variances: With the best cap, in units of sigma^2.
    """

    ratios: FloatArray
    smooth_variances: FloatArray
    capped_variances: FloatArray


def compute_variance_ratios(
    sizes: npt.ArrayLike, users: npt.ArrayLike, noise_ratio: npt.ArrayLike, uses_integer_caps: bool = True
) -> VarianceRatios:
    """Compute the variance ratio of each instance of a batch.

    Args:
        sizes: Rows per user, ascending along the last axis (equal neighbours allowed), shape (..., k); whole
            where ``uses_integer_caps``.
        users: Users of each size, above 0, shape (..., k), real.
        noise_ratio: 2 (B / epsilon)^2 / sigma^2 in rows, above 0, shape (...).
        uses_integer_caps: Whether caps are whole numbers (a mechanism) or real (the theory's limit).

    Returns:
        `VarianceRatios` of the common shape (...).

    Raises:
        InvalidInput: Shapes do not fit, something is not finite and above 0, or sizes descend.
    """
    s, u, rho = (np.asarray(array, dtype=np.float64) for array in (sizes, users, noise_ratio))
    with Problems() as problems:
        for array_name, array in (("sizes", s), ("users", u), ("noise_ratio", rho)):
            if not np.all(np.isfinite(array) & (array > 0.0)):
                problems.add(f"{array_name} must be finite numbers above 0")
        if s.ndim == 0 or s.shape[-1:] != u.shape[-1:] or s.shape[-1] == 0:
            problems.add("sizes and users must have the same number of groups along their last axis")
        elif np.any(np.diff(s, axis=-1) < 0.0):
            problems.add("sizes must ascend along the last axis")
    s, u, rho = (np.asarray(array) for array in np.broadcast_arrays(s, u, rho[..., None]))
    smooth_variances = 1.0 / _maximise_inverse_variance(s, u, rho)
    capped_variances = _minimise_capped_variance(s, u, rho, uses_integer_caps)
    return VarianceRatios(capped_variances / smooth_variances, smooth_variances, capped_variances)


def _sum_later_groups(values_per_group: FloatArray) -> FloatArray:
    """Return for each group the sum over the groups after it, along the last axis; same shape."""
    later_sums = np.cumsum(values_per_group[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate((later_sums[..., 1:], np.zeros_like(later_sums[..., :1])), axis=-1)


def _maximise_inverse_variance(s: FloatArray, u: FloatArray, rho: FloatArray) -> FloatArray:
    """Compute 1 / min v, the maximum over h of sum_l f_h(s_l) - rho h^2, shape (...).

    f_h(s) is s up to h, and 2 h - h^2 / s above. Derived in docs/gap.md. The function is concave in h; between two
    sizes it is S + 2 q h - (I + rho) h^2, so each piece has its best h in closed form. The piece below the smallest
    size is included: there every user weighs the same.
    """
    zeros = np.zeros_like(s[..., :1])
    rows_below = np.concatenate((zeros, np.cumsum(s * u, axis=-1)), axis=-1)
    users_above = np.concatenate((u.sum(axis=-1, keepdims=True), _sum_later_groups(u)), axis=-1)
    inverse_sums = np.concatenate(((u / s).sum(axis=-1, keepdims=True), _sum_later_groups(u / s)), axis=-1)
    left_ends, right_ends = np.concatenate((zeros, s), axis=-1), np.concatenate((s, s[..., -1:]), axis=-1)
    curvatures = inverse_sums + rho[..., :1]
    h = np.clip(users_above / curvatures, left_ends, right_ends)
    return np.asarray((rows_below + h * (2.0 * users_above - h * curvatures)).max(axis=-1))


def _minimise_capped_variance(s: FloatArray, u: FloatArray, rho: FloatArray, is_integer: bool) -> FloatArray:
    """Compute the minimum over caps h of 1 / n + rho h^2 / n^2 with n = S + q h, shape (...).

    Caps lie in [s_1, s_k], whole or real. Each piece between two sizes has one minimum, at q S / (2 S rho - q^2), or
    falls throughout.
    """
    rows_below, users_above = np.cumsum(s * u, axis=-1), _sum_later_groups(u)
    curvatures = 2.0 * rows_below * rho - users_above**2
    with np.errstate(divide="ignore", invalid="ignore"):
        stationary_caps = np.where(curvatures > 0.0, users_above * rows_below / curvatures, np.inf)
    # Where the piece falls throughout the root is infinite, and the right end is best.
    h = np.clip(stationary_caps, s, np.concatenate((s[..., 1:], s[..., -1:]), axis=-1))
    candidate_caps = [np.floor(h), np.ceil(h)] if is_integer else [h]
    variances = [1.0 / (n := rows_below + users_above * x) + rho * (x / n) ** 2 for x in candidate_caps]
    return np.asarray(np.minimum.reduce(variances).min(axis=-1))
