"""The largest error of a released mean over all values in [L, U]: whatever the values, not more than this.

That is another thing than a worst-case variance: nothing is drawn from a population, and the mean of this very table is
meant. B = U - L; user l has the share p_l = s_l / n of the rows and weighs u_l, with t the largest weight.

**Weights with public counts.** The release is off by sum_l (u_l - p_l) (mean of user l's values) before noise. As both
sum to 1, that is largest in size where every user with p_l > u_l has all values at one end and all others have theirs
at the other: B sum (p_l - u_l)_+. For smooth weights u = min(h, s) / n_h, and h / n_h = t, only users of more than t n
rows lose: B sum (p_l - t)_+. No weights with the largest weight t lose less, since u <= t. So the least over all
weights is that over t alone, from 1 / m on, as the weights sum to 1. The error is then B / n times that of a sum of row
counts with the upper bound T = t n, as `dpcore.total` has it, and its square

    L(T)^2 + 2 (T / epsilon)^2,    L(T) = sum_l (s_l - T)_+,

is convex, and quadratic between two sizes, where q users have more than T rows: half its slope, 2 T / epsilon^2 - q L,
is looked at in every size.

**A cap that draws its rows** loses the same in expectation, and which rows it draws adds
sum k (1 - k / s) V_l / n_h^2, k = min(h, s) and V_l the variance of the user's values: with c_l = k_l / n_h - p_l and
x_l the share of the user's rows that lie at U, the squared error is at most

    B^2 [ (sum_l c_l x_l)^2 + sum_l v_l x_l (1 - x_l) ] + noise,    v_l = k (s - k) / ((s - 1) n_h^2).

It is convex in every value, so the worst values lie at the ends. Written as the largest over mu of
-mu^2 + sum_l max over x_l of (2 mu c_l x_l + v_l x_l (1 - x_l)), it is maximised piece by piece between the mu at which
a size of user reaches an end. x_l counts as any number from 0 to 1: where a user has few rows and an odd number of
them, that is slightly more than any values give.

**Private counts.** The ratio of the two noisy sums (`private_counts`) is linearised: its noise is largest for a mean at
either end, where it is as large as with public counts. So the same figure stands, as an approximation, and a poor one
where the noise on the sum of weights is not small beside it (`PrivateCountsProblem.noise_share`).

Source: Rameshwar and Tandon 2025 (arXiv 2502.04749) for the worst case over values in a bounded set; the reduction to a
sum, its proof and the part of caps are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.contributions import ContributionHistogram, FloatArray, suffix_sums


@dataclass(frozen=True)
class WorstProblem:
    """The question: how far can a mean with epsilon-DP be off, whatever the values?

    Attributes:
        histogram: Rows per user.
        epsilon: Privacy budget, above 0.
        value_bound: B = U - L, above 0, in the values' unit.

    Raises:
        InvalidInput: A parameter is not finite or out of its range; all problems at once.
    """

    histogram: ContributionHistogram
    epsilon: float
    value_bound: float

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.of_kind(ContributionHistogram, histogram=self.histogram)
            problems.positive(epsilon=self.epsilon, value_bound=self.value_bound)

    @cached_property
    def _rows(self) -> float:
        return float(self.histogram.num_rows)

    def largest_weight(self, bounds: npt.ArrayLike) -> FloatArray:
        """t = min(h, largest size) / n_h of smooth weights, and of caps; any shape."""
        h = np.minimum(np.asarray(bounds, dtype=np.float64), float(self.histogram.max_size))
        return np.asarray(h / self.histogram.kept_rows(h))

    def error(self, lost: npt.ArrayLike, largest_weight: npt.ArrayLike) -> FloatArray:
        """Root mean square error where such a share is lost, beside Laplace noise for a user of the largest weight."""
        noise = math.sqrt(2.0) / self.epsilon * np.asarray(largest_weight, dtype=np.float64)
        return np.asarray(self.value_bound * np.hypot(lost, noise))


def of_smooth(problem: WorstProblem, thresholds: npt.ArrayLike) -> FloatArray:
    """Return the largest root mean square error of smooth weights over all values in [L, U].

    Args:
        problem: The question; counts are public.
        thresholds: h > 0 in rows per user, any shape.

    Returns:
        In the values' unit, of the shape of ``thresholds``; reached by values at L and U.
    """
    t = problem.largest_weight(thresholds)
    return problem.error(problem.histogram.excess(t * problem._rows) / problem._rows, t)


def of_weights(problem: WorstProblem, weights: npt.ArrayLike) -> float:
    """Return the largest root mean square error over all values in [L, U] of any weights of users.

    Args:
        problem: The question; counts are public.
        weights: Weight of one user of each distinct size, shape (K,); over all users they sum to 1.

    Returns:
        In the values' unit: B sum (p - u)_+ and the noise of the largest weight together.
    """
    u = np.asarray(weights, dtype=np.float64)
    share = problem.histogram.sizes / problem._rows
    return float(problem.error(np.maximum(share - u, 0.0) @ problem.histogram.users, float(u.max())))


def of_caps(problem: WorstProblem, caps: npt.ArrayLike) -> FloatArray:
    """What the root mean square error of caps whose rows are drawn at random is at most, over all values in [L, U].

    Args:
        problem: The question; counts are public.
        caps: h in rows per user, whole, at least 1, any shape.

    Returns:
        In the values' unit, of the shape of ``caps``; reached where every user has an even number of rows.
    """
    bounds = np.asarray(caps, dtype=np.float64)
    t = problem.largest_weight(bounds)
    squares = np.array([_cap_square(problem.histogram, h) for h in bounds.ravel()]).reshape(bounds.shape)
    return problem.error(np.sqrt(squares), t)


def _cap_square(histogram: ContributionHistogram, cap: float) -> float:
    """Return the largest (sum c x)^2 + sum v x (1 - x) over x in [0, 1] for every user; see the module."""
    sizes, users = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)
    kept = np.minimum(cap, sizes)
    together = float(histogram.kept_rows(cap))
    c = kept / together - sizes / float(histogram.num_rows)
    # Of k out of s rows, drawn without replacement from s of which a share x is 1, the sum has variance k x (1 - x)
    # (s - k) / (s - 1).
    v = kept * (sizes - kept) / np.maximum(sizes - 1.0, 1.0) / together**2
    with np.errstate(divide="ignore", invalid="ignore"):
        ends_at = np.where(v == 0.0, 0.0, v / (2.0 * np.abs(c)))  # mu from which x is 0 or 1.
        square = np.where(v > 0.0, c**2 / v, 0.0)
    order = np.argsort(ends_at, kind="stable")
    ends_at, c, v, square, users = ends_at[order], c[order], v[order], square[order], users[order]
    # On the i-th piece the first i sizes are at an end: phi(mu) = A2 mu^2 + A1 mu + A0.
    at_end = np.concatenate(([0.0], np.cumsum(users * np.maximum(c, 0.0))))
    a2 = suffix_sums(users * square) - 1.0
    a1 = suffix_sums(users * c) + 2.0 * at_end
    a0 = suffix_sums(users * v) / 4.0
    low, high = np.r_[0.0, ends_at], np.r_[ends_at, math.inf]
    # Beyond the largest sum c x the squared error falls in mu.
    high = np.minimum(high, max(at_end[-1], 0.0))
    inside = low <= high
    low, high, a2, a1, a0 = low[inside], high[inside], a2[inside], a1[inside], a0[inside]
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(a2 < 0.0, -a1 / (2.0 * a2), low)
    places = np.stack((low, high, np.clip(turn, low, high)))
    return max(float(np.max(a2 * places**2 + a1 * places + a0)), 0.0)


@dataclass(frozen=True)
class WorstChoice:
    """The weights whose largest error over all values is least.

    Attributes:
        threshold: h of the smooth weights, in rows per user.
        largest_weight: t, the weight of the users with most.
        error: The largest error over all values, in the values' unit.
        certificate: The error beside a lower bound for all weights of users.
    """

    threshold: float
    largest_weight: float
    error: float
    certificate: Certificate


ARGUMENT = (
    "all weights of users are covered: the error is convex in the largest one, and its slope was looked at"
)


def best_weights(problem: WorstProblem) -> WorstChoice:
    """Return the weights with the least of the largest errors over all values, exactly; counts are public.

    Returns:
        `WorstChoice`: smooth weights are among the best.
    """
    rows, histogram = problem._rows, problem.histogram
    alike = rows / float(histogram.num_users)
    bound = max(_least_bound(problem), alike)
    threshold = _threshold_of(histogram, bound / rows)
    error = float(of_smooth(problem, threshold))
    return WorstChoice(
        threshold,
        float(problem.largest_weight(threshold)),
        error,
        Certificate(error, min(_lower_bound(problem, bound, alike), error), ARGUMENT),
    )


def _least_bound(problem: WorstProblem) -> float:
    """T where the slope turns: at a size, or on the piece below it, where q (R - q T) = 2 T / epsilon^2.

    R and q are the rows and users above the piece.
    """
    histogram, noise = problem.histogram, 2.0 / problem.epsilon**2
    sizes = histogram.sizes.astype(np.float64)
    above = histogram.pieces_at_sizes().users_above
    k = int(np.argmax(noise * sizes >= above * histogram.excess(sizes, np.arange(1, sizes.size + 1))))
    below = float(sizes[k - 1]) if k else 0.0
    users = float(above[k - 1]) if k else float(histogram.num_users)
    # No rows are cut at the largest size, so that there is one such k. From its left end the piece is written, as terms
    # of one sign: R - q T = (excess there) - q (T - that end).
    cut = float(histogram.excess(below, np.asarray(k)))
    inside = below + (users * cut - noise * below) / (users**2 + noise)
    return min(max(inside, below), float(sizes[k]))


def _lower_bound(problem: WorstProblem, bound: float, least: float) -> float:
    """What no largest weight goes below: a line under the convex square of the error, with a slope that it has there.

    Args:
        problem: The question.
        bound: T, at least ``least``.
        least: The T of weights that are all alike, below which there are none.
    """
    histogram, noise = problem.histogram, 2.0 / problem.epsilon**2
    more, as_many = histogram.sizes > bound, histogram.sizes >= bound
    cut = float((histogram.users[more] * (histogram.sizes[more] - bound)).sum())
    left, right = (noise * bound - float(histogram.users[part].sum()) * cut for part in (as_many, more))
    # Every slope between those on the two sides belongs to a line under the square of the error. A level line
    # proves most, where it is one of them.
    slope = 2.0 * min(max(0.0, left), right)
    most = max(float(histogram.max_size), bound)
    falls = min(slope * (most - bound), -slope * (bound - least), 0.0)
    return problem.value_bound / problem._rows * math.sqrt(max(cut**2 + noise * bound**2 + falls, 0.0))


def _threshold_of(histogram: ContributionHistogram, largest_weight: float) -> float:
    """Return h with h / n_h = t: between two sizes n_h = S + q h, so that h = t S / (1 - t q)."""
    sizes = histogram.sizes.astype(np.float64)
    reached = sizes / histogram.kept_rows(sizes)
    # h / n_h rises with h, so that its values at the sizes are in order.
    at = int(np.searchsorted(reached, largest_weight, side="left"))
    if at == 0:
        return float(sizes[0])
    if at == sizes.size:
        return float(sizes[-1])
    below, above, _ = histogram.pieces(float(sizes[at - 1]))
    room = 1.0 - largest_weight * float(above)
    inside = largest_weight * float(below) / room if room > 0.0 else float(sizes[at])
    return float(np.clip(inside, sizes[at - 1], sizes[at]))
