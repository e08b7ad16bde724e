"""A count per group (GROUP BY): in how many groups may one user count?

User i has rows in x_i distinct groups; at most k of them are kept, chosen at random, and a user counts once
in each. The G counts are released together with noise for the change of at most k of them by 1. This is the
question of ``max_partitions_contributed`` or ``max_groups_contributed``. How many rows a user may add
*within* one group (``max_contributions_per_partition``, ``MaxRowsPerGroupPerID``) is the other half: with at
most r rows per group the noise is r times as large.

The groups are taken as public: a group that exists only because somebody is in it must not be shown.

Source: Amin et al. 2019, section 3, carried over to G sums at once (ours).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common import noise_error
from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram, FloatArray, suffix_sums
from dpcore.data.totals_per_user import Amounts, distinct_per_user
from dpcore.dataset import Pairs

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER


@dataclass(frozen=True)
class GroupedProblem:
    """The question: release the number of users in each of G groups.

    Attributes:
        histogram: Distinct groups per user (`dpcore.data.totals_per_user.distinct_per_user`).
        num_groups: G, public; at least the most groups that one user is in.
        epsilon: Privacy budget for all groups together, above 0.
        noise: Laplace (L1 sensitivity k) or Gaussian (L2 sensitivity sqrt(k)).
        delta: Strictly between 0 and 1 with Gaussian noise; None with Laplace noise.

    Raises:
        InvalidInput: A parameter is missing or out of its range; all problems at once.
    """

    histogram: ContributionHistogram
    num_groups: int
    epsilon: float
    noise: NoiseKind = NoiseKind.LAPLACE
    delta: float | None = None

    def __post_init__(self) -> None:
        problems = Problems()
        if not isinstance(self.histogram, ContributionHistogram):
            problems.add("histogram must be a ContributionHistogram")
        elif problems.whole(1, 10**12, num_groups=self.num_groups) and (
            self.num_groups < self.histogram.max_size
        ):
            problems.add(
                f"num_groups is {self.num_groups:,}, but one user is in {self.histogram.max_size:,} groups"
            )
        noise_error.check_noise(problems, self.noise, self.epsilon, self.delta)
        problems.raise_if_any()

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        epsilon: float,
        noise: NoiseKind = NoiseKind.LAPLACE,
        delta: float | None = None,
    ) -> GroupedProblem:
        """The question for distinct user-group pairs; G is their number of tasks."""
        return cls(distinct_per_user(pairs), pairs.num_tasks, epsilon, noise, delta)

    @cached_property
    def amounts(self) -> Amounts:
        """The histogram as totals."""
        return Amounts.from_histogram(self.histogram)

    @cached_property
    def unit_noise(self) -> float:
        """Noise scale at sensitivity 1."""
        return noise_error.unit_scale(self.noise, self.epsilon, self.delta)

    def scale(self, caps: npt.ArrayLike) -> FloatArray:
        """Noise scale of one count under caps k: unit * k (Laplace) or unit * sqrt(k) (Gaussian)."""
        k = np.asarray(caps, dtype=np.float64)
        return np.asarray(self.unit_noise * (k if self.noise is NoiseKind.LAPLACE else np.sqrt(k)))


@dataclass(frozen=True)
class GroupedErrors:
    """Bound on the absolute error, summed over all groups; users (counts), of the shape of the caps.

    Attributes:
        caps: k, groups per user.
        bias: sum_i (x_i - k)_+, the counts left out in all groups together: exactly.
        noise: G times the mean magnitude of the noise of one count.
    """

    caps: FloatArray
    bias: FloatArray
    noise: FloatArray

    @property
    def bound(self) -> FloatArray:
        """Both together: at least the expected total absolute error."""
        return np.asarray(self.bias + self.noise)


@dataclass(frozen=True)
class GroupedChoice:
    """The best number of groups per user.

    Attributes:
        max_groups: k, whole; 0 where nothing useful can be released.
        bias: Counts left out, over all groups.
        noise: Mean magnitude of the noise, over all groups.
        users_affected: Users in more than k groups.
        certificate: The bound beside the least bound over all caps.
        ended: How the search ended, a sentence.
    """

    max_groups: int
    bias: float
    noise: float
    users_affected: int
    certificate: Certificate
    ended: str

    @property
    def bound(self) -> float:
        """Bias and noise together."""
        return self.bias + self.noise


def errors(problem: GroupedProblem, caps: npt.ArrayLike) -> GroupedErrors:
    """The two parts of the bound at caps k >= 0 (any shape)."""
    k = np.asarray(caps, dtype=np.float64)
    noise = problem.num_groups * problem.noise.mean_magnitude * problem.scale(k)
    return GroupedErrors(k, problem.amounts.excess(k), np.asarray(noise))


def best_cap(problem: GroupedProblem) -> GroupedChoice:
    """The best cap, exactly: the least bound over the distinct sizes and 0.

    Between two sizes the bias is linear; the noise is linear (Laplace) or concave (Gaussian, sqrt(k)): the
    bound is concave there, hence least at an end. For Laplace noise that is the ceil(G / epsilon)-th largest
    size. Among equals the smallest cap.
    """
    # No bisection: with Gaussian noise the bound is concave on every piece and may have many local minima, and there
    # are no more candidates than distinct sizes.
    candidates = np.concatenate(([0.0], problem.amounts.values))
    at = errors(problem, candidates)
    best = int(np.argmin(at.bound))
    k = int(candidates[best])
    if k == 0:
        ended = (
            "Nothing useful can be released: there are too few users for so many groups. All zeros have a "
            "smaller bound than any noisy counts."
        )
    else:
        ended = (
            f"Exact: the least of the bounds at all {problem.amounts.values.size:,} distinct sizes and at 0."
        )
    return GroupedChoice(
        max_groups=k,
        bias=float(at.bias[best]),
        noise=float(at.noise[best]),
        users_affected=problem.histogram.users_above(k),
        certificate=certify(problem, k),
        ended=ended,
    )


def certify(problem: GroupedProblem, cap: float) -> Certificate:
    """The bound at a cap beside the least over all caps, summed anew from the largest size down.

    E(s_j) = E(s_{j+1}) + (s_{j+1} - s_j) (users above s_j): positive terms only, unlike the prefix sums of
    the search.
    """
    sizes = np.concatenate(([0.0], problem.histogram.sizes.astype(np.float64)))
    users = problem.histogram.users.astype(np.float64)
    excess = suffix_sums(np.diff(sizes) * suffix_sums(users)[:-1])
    noise = problem.num_groups * problem.noise.mean_magnitude * problem.scale(sizes)
    value = float(np.sum(np.maximum(problem.histogram.sizes - cap, 0.0) * users)) + float(
        problem.num_groups * problem.noise.mean_magnitude * problem.scale(cap)
    )
    bend = "linear" if problem.noise is NoiseKind.LAPLACE else "concave"
    return Certificate(
        value,
        float(np.min(excess + noise)),
        f"the bound is {bend} between two sizes, so the sizes and 0 cover every cap",
    )


def error_range(problem: GroupedProblem, pairs: Pairs, cap: int) -> tuple[float, float]:
    """Interval that holds the expected total absolute error when k groups per user are kept at random.

    The upper end is the bound. The lower end (Jensen: the error of a count is convex in its bias) puts each
    group's mean bias sum_{i in group} (1 - k / x_i)_+ in the place of the random one.

    Args:
        problem: The question, made from the same pairs.
        pairs: Distinct user-group pairs.
        cap: k, at least 0.

    Returns:
        (low, high), in users, over all groups.
    """
    problems = Problems()
    problems.whole(0, 10**12, cap=cap)
    if distinct_per_user(pairs) != problem.histogram or pairs.num_tasks != problem.num_groups:
        problems.add("the pairs are not those of the problem")
    problems.raise_if_any()
    groups_of_user = np.bincount(pairs.user_codes)[pairs.user_codes]
    left_out = np.bincount(
        pairs.task_codes, weights=np.maximum(1.0 - cap / groups_of_user, 0.0), minlength=pairs.num_tasks
    )
    low = noise_error.expected_absolute(problem.noise, left_out, problem.scale(cap))
    return math.fsum(low), float(errors(problem, cap).bound)
