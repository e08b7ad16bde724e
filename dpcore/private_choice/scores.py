"""Questions whose best bound is where a monotone query meets a target, and how far each candidate is from it.

One user comes or goes, or is replaced. A bound is chosen by an exponential mechanism (`dpcore.private_choice.choice`)
over a public grid of candidates. This module gives the score of each candidate: minus the number of users who would
have to change for the candidate to be best. Users are counted in whole steps of 1 / `RESOLUTION` user, so that the
contribution of one user and the declared sensitivity are exact. Each user's share of a query is rounded to steps
*before* it is added up. Sums of whole numbers are exact, and floating-point sums are not.

Private and public quantities. The neighbouring relation covers who is in the data and how many rows they have,
so the histogram is private, and with it m, n = sum s_l and n_h. Public are epsilon, B, sigma^2 and q, which the
person enters. The optimality conditions below are written so that every target depends on public quantities
alone, or the private part of it has moved to the side of the query:

- Smooth weights of a mean. With u_l = min(h, s_l) / n_h the objective is
  F(h) = (h^2 + A (S + h^2 I)) / n_h^2, where S = sum of s_l over s_l <= h, q users lie above h, I is their sum
  of 1 / s_l, and n_h = S + h q. Between sizes S, q and I are constant and n_h' = q, so
  F' n_h^3 / 2 = (h + A h I)(S + h q) - q (h^2 + A S + A h^2 I) = S (h - A (q - h I)).
  So the best h is the root of  sum_l (1 - h / s_l)_+ = h / A: n and m have cancelled, and
  A = sigma^2 / (2 (B / epsilon)^2) is public. A user adds (1 - h / s)_+ in [0, 1] to the left side.
- A cap for a mean. F(h) = (h / n_h)^2 + A / n_h has F' of the sign of 2 h S - A q n_h. With a = S / h, to
  which a user at or below h adds s / h in (0, 1], and q, to which a user above adds 1, the best h has
  k a = q (a + q), k = 2 h / A. This is no sum over users, so the score is the *number of users* that would have
  to be added or removed until it holds. A distance to a set moves by at most 1 when one user comes or goes,
  whatever the set; `compute_distance_if_too_high` and `compute_distance_if_too_low` have it in closed form.
- A sum of x_l, Amin et al. 2019, equation 6: #{x_l > T} = 1 / epsilon at the best T.
- A learner under a cap T: Amin et al. 2019, theorem 1, whose bound (`dpcore.learning.optimal_cap`) is, for N rows,
  2 * (rows cut) / N  +  sqrt(v / (rows kept))  +  C (T / (rows kept) / epsilon)^p, v and C without T. Its totals
  are private and no user's share of them is bounded. With N a public number, the rows kept in the last two terms
  taken as N - (rows cut) to first order and as N, it is, up to what no cap changes,
  w sum_l (s_l - T)_+ + C (T / (N epsilon))^p,  w = (2 + sqrt(v / N) / 2) / N, convex in T, and least where
  #{s_l > T} = p C T^(p-1) / (w (N epsilon)^p): a target that grows with T and is public. A user adds 0 or 1 to
  the left side. How good N is decides how good the cap is, and nothing about privacy.
- The bound of a quantile of values, by the paper's bound on its error: (*) of `weights` with another A, so that
  both conditions of a mean hold as they are (`dpcore.private_choice.release_bounds`).
- A quantile of the sizes: #{s_l <= t} = q m. m is private, so the query is
  q #{s_l > t} - (1 - q) #{s_l <= t} against 0: a user adds q or q - 1.

If a query jumps at a candidate (users with exactly so many rows), the candidate is best as soon as the target lies
between the limits from the left and from the right. The distance is that to this interval. A maximum of functions that
one user moves by at most 1 moves by at most 1, so that costs nothing.

Source: Epasto et al. 2020, claims 1 and 2, for both F; the conditions and their sensitivities are ours. Amin et
al. 2019 leave choosing the bound privately open for other measures than a rank.
"""

from __future__ import annotations

import bisect
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common import weights
from dpcore.common.checks import Problems, refuse, require
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data.totals_per_user import Amounts

RESOLUTION = 2**20
"""Steps per user. Shares of a query are rounded down to steps: an error below one user in a million users."""
MAX_TOTAL_USERS = 2**59 // RESOLUTION
"""5.5e11 users: sums of steps stay below 2^59."""
MAX_DISTANCE = 2**61
"""Steps at which a distance is cut off: beyond any number of users."""


def to_steps(num_users: float | Fraction) -> int:
    """Convert a public number of users to whole steps, rounded, at most `MAX_DISTANCE`."""
    return min(round(Fraction(num_users) * RESOLUTION), MAX_DISTANCE)


def check_users(histogram: ContributionHistogram, multiple: float = 1.0) -> None:
    """Raise InvalidInput if there are more users, taken ``multiple`` times, than steps can add up.

    Raises:
        InvalidInput: More than `MAX_TOTAL_USERS` users.
    """
    if histogram.num_users * multiple > MAX_TOTAL_USERS:
        raise refuse(f"there must be at most {MAX_TOTAL_USERS:,} users")


def count_tails(histogram: ContributionHistogram, candidates: FloatArray) -> IntArray:
    """Count the users with at least, and with more than, each candidate number of rows, shape (2, c)."""
    num_users_from_size = np.append(np.cumsum(histogram.users[::-1])[::-1], 0)
    # The number of smaller sizes, and of sizes up to the candidate.
    size_indices = [np.searchsorted(histogram.sizes, candidates, side=side) for side in ("left", "right")]
    return np.asarray(num_users_from_size[np.stack(size_indices)])


def scale_sums(sums: IntArray, multiples: Sequence[float]) -> IntArray:
    """Return the sums with every user so many times there, rounded, with a new first axis of multiples."""
    return np.stack([sums if k == 1.0 else np.rint(sums * k).astype(np.int64) for k in multiples])


def compute_interval_distance(
    interval_starts: IntArray, interval_stops: IntArray, target_steps: IntArray | float
) -> npt.NDArray[Any]:
    """Compute the distance of each target from its interval in steps, 0 inside.

    It changes by no more than these ends do.
    """
    return np.asarray(
        np.maximum(np.maximum(interval_starts - target_steps, target_steps - interval_stops), 0)
    )


def add_prior(distances: IntArray, log_prior: FloatArray, sensitivity: int, epsilon: float) -> list[int]:
    """Compute the scores that noise is added to, in steps: minus the distances plus the public log weights."""
    # So many steps of score are worth a factor of e in probability. Both cuts keep scores within 64 bits: the first
    # changes public weights alone, and under the second no score moves by more than before.
    steps_per_log_unit = 2.0 * sensitivity / epsilon
    prior_steps = (max(round(steps_per_log_unit * float(w)), -MAX_DISTANCE) for w in log_prior)
    return [w - min(int(d), MAX_DISTANCE) for w, d in zip(prior_steps, distances, strict=True)]


class SumsOverUsers(ABC):
    """A condition that a candidate meets if a sum over users reaches a public target there."""

    def compute_sensitivity(self, neighbours: Neighbours) -> int:
        """Return by how many steps one user can change a distance: each adds between 0 and 1 user."""
        return RESOLUTION

    def compute_sums(self, histogram: ContributionHistogram, candidates: FloatArray) -> IntArray:
        """Compute the sum at each candidate, in steps: with the users at the candidate, and without, shape (2, c).

        The shape is (1, c) if the sum jumps nowhere.
        """
        return count_tails(histogram, candidates) * RESOLUTION

    @abstractmethod
    def compute_targets(self, candidates: FloatArray) -> IntArray:
        """Compute the sum at which each candidate is best, in steps, shape (c,) or (); it does not depend on data."""

    def compute_target_distances(self, sums: IntArray, candidates: FloatArray) -> IntArray:
        """Compute each target's distance from the sums without and with users at the candidate, shape (..., c)."""
        # Where the sum jumps nowhere, the one row there is stands for both.
        return compute_interval_distance(sums[..., -1, :], sums[..., 0, :], self.compute_targets(candidates))

    def compute_distances(
        self, histogram: ContributionHistogram, candidates: FloatArray, multiples: Sequence[float] = (1.0,)
    ) -> IntArray:
        """Compute the distance of each target from the sums, with every user so many times there, shape (n, c)."""
        scaled_sums = scale_sums(self.compute_sums(histogram, candidates), multiples)
        return self.compute_target_distances(scaled_sums, candidates)


def compute_critical_num_above(a: npt.ArrayLike, k: float) -> FloatArray:
    """Compute q*, the number of users above a cap at which it is best, from k a = q* (a + q*).

    It is concave in a and rises.
    """
    a = np.asarray(a, dtype=np.float64)
    root = np.sqrt(a) * np.sqrt(a + 4.0 * k)
    return np.asarray(2.0 * k * np.divide(a, a + root, out=np.zeros_like(a), where=a > 0.0))


def compute_distance_if_too_high(
    a: npt.NDArray[np.generic],
    num_users_below: npt.NDArray[np.generic],
    added_shares: IntArray,
    q: float,
    k: float,
) -> float:
    """Compute the steps until q >= q*(a), by adding users above the cap or removing users below it, the largest first.

    Args:
        a: What users of the first j sizes add to a, shape (j + 1,), ascending from 0, in steps.
        num_users_below: Those users, same shape, in steps.
        added_shares: What each user of a size adds to a, shape (j,), in steps.
        q: Users above the cap, in steps.
        k: 2 h / A, in steps.

    Between sizes the sum of both is concave in the number removed, so the least is where all users of some sizes
    are gone, or where removing alone is just enough.
    """
    remaining_a = a.astype(np.float64)
    num_users_gone = num_users_below[-1] - num_users_below.astype(np.float64)
    num_users_lacking = np.maximum(compute_critical_num_above(remaining_a, k) - q, 0.0)
    # The last entry has everybody there: nobody need come or go.
    if num_users_lacking[-1] == 0.0:
        return 0.0
    fewest_steps = float(np.min(num_users_gone + num_users_lacking))
    # q*(a) = q there. What remains is at most its largest share times its users, and q and users are exact (39 bits
    # times 2^20), so that rounding stays below 2^9 steps even after the division by a tiny share.
    sufficient_a = q / (k - q) * q if q < k else math.inf
    j = int(np.searchsorted(remaining_a, sufficient_a, side="right"))
    if 0 < j < remaining_a.size:
        further_steps = (remaining_a[j] - sufficient_a) / float(added_shares[j - 1]) * RESOLUTION
        fewest_steps = min(fewest_steps, float(num_users_gone[j] + further_steps))
    return fewest_steps


def compute_distance_if_too_low(a: float, q: float, k: float) -> float:
    """Compute the steps until q <= q*(a), by removing users above the cap or adding users at it.

    a' >= a costs (a' - a) + (q - q*(a')), convex, least where q* has slope 1: at a' = k (sqrt(4.5) - 2), where q* =
    (k - a') / 3. Adding alone is enough at a' = q^2 / (k - q).
    """
    excess_above_curve = q - float(compute_critical_num_above(a, k))
    turning_a = k * (math.sqrt(4.5) - 2.0)
    if excess_above_curve <= 0.0 or a >= turning_a:
        return max(excess_above_curve, 0.0)
    turning_q = (k - turning_a) / 3.0
    if q >= turning_q:
        return (turning_a - a) + (q - turning_q)
    # Here q < (k - turn) / 3 < k, so that the quotient is positive.
    return max(q / (k - q) * q - a, 0.0)


CAP_ROUNDING_STEPS = 2**12
"""Steps that a user may move the distance of a cap beyond 1: float64 holds 2^60 steps to 2^7, a formula to 2^10."""
MAX_MARGIN_TIMES_EPSILON = 2.0
"""A draw of the bound of a sum aims at so many users over its epsilon more, at most; see `RankedSum`."""
COVERED_RELATIONS = (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER)
"""Relations under which the number of rows of a user is private, so that a choice leaks at all."""


TRADE_OFF_RANGE = (1e-12, weights.MAX_TRADE_OFF)
"""Over which the targets stay apart; below, sampling error is nothing and the smallest bound is best anyway."""


@dataclass(frozen=True)
class MeanCondition:
    """The condition of a bound of a mean, with the public trade-off A on which its targets depend.

    Attributes:
        trade_off: A = sigma^2 / (2 (B / epsilon)^2), in `TRADE_OFF_RANGE`; public.
    """

    trade_off: float

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        least_trade_off, largest_trade_off = TRADE_OFF_RANGE
        require.between(0.0, largest_trade_off, trade_off=self.trade_off)
        if self.trade_off < least_trade_off:
            raise refuse(
                "there is next to no sampling error beside the privacy noise, so the smallest bound is best whatever "
                "the data",
                remedy="Take 1 row per user: that choice needs no data and leaks nothing",
            )


@dataclass(frozen=True)
class SmoothMean(MeanCondition, SumsOverUsers):
    """The threshold h of the best smooth weights of a mean.

    Attributes:
        trade_off: A = sigma^2 / (2 (B / epsilon)^2), in `TRADE_OFF_RANGE`; public.
    """

    is_integer = False

    def compute_sums(self, histogram: ContributionHistogram, candidates: FloatArray) -> IntArray:
        """Compute sum_l (1 - h / s_l)_+ in steps, shape (1, c); the shares of users are rounded down."""
        sizes, num_users_per_size = histogram.sizes, histogram.users
        step_sums = np.zeros((1, candidates.size), dtype=np.int64)
        for j, h in enumerate(candidates):
            # Candidates are multiples of 1/8: (1 - h / s) is a ratio of integers.
            h_in_eighths = round(float(h) * 8)
            first_index_above = int(np.searchsorted(sizes, float(h), side="right"))
            # At most 8e12 times 2^17 before the division: within 64 bits.
            s = 8 * sizes[first_index_above:]
            step_sums[0, j] = np.dot(
                num_users_per_size[first_index_above:], (s - h_in_eighths) * (RESOLUTION // 8) // (s // 8)
            )
        return step_sums

    def compute_targets(self, candidates: FloatArray) -> IntArray:
        """Compute h / A in steps, shape (c,)."""
        return np.array([to_steps(Fraction(float(h)) / Fraction(self.trade_off)) for h in candidates])

    def compute_errors(
        self, histogram: ContributionHistogram, bounds: FloatArray, multiple: float = 1.0
    ) -> FloatArray:
        """Compute the standard error of each threshold, up to a factor, with every user ``multiple`` times there."""
        return np.sqrt(weights.compute_smooth_losses(histogram, bounds).total(self.trade_off * multiple))

    def find_best_bound(self, histogram: ContributionHistogram, multiple: float = 1.0) -> float:
        """Find the threshold of least error, without privacy."""
        return weights.find_best_smooth(histogram, self.trade_off * multiple).bound


@dataclass(frozen=True)
class CapMean(MeanCondition):
    """The condition that the best cap of a mean meets, with the distances of candidates from it.

    Attributes:
        trade_off: A, as for `SmoothMean`.
    """

    is_integer = True

    def compute_sensitivity(self, neighbours: Neighbours) -> int:
        """Return by how many steps one user can change a distance: 1 user, 2 if replaced, and some rounding."""
        return (2 if neighbours is Neighbours.REPLACE_USER else 1) * RESOLUTION + CAP_ROUNDING_STEPS

    def compute_distances(
        self, histogram: ContributionHistogram, candidates: FloatArray, multiples: Sequence[float] = (1.0,)
    ) -> IntArray:
        """Compute the users to add or remove until each cap is best, in steps, shape (n, c), at most `MAX_DISTANCE`.

        Line i has every user ``multiples[i]`` times there. Each distance is rounded down.
        """
        distances_per_multiple = np.zeros((len(multiples), candidates.size))
        num_users_up_to = np.concatenate(([0], np.cumsum(histogram.users)))
        for j, h in enumerate(candidates):
            cap = int(h)
            k = float(2 * Fraction(cap) / Fraction(self.trade_off)) * RESOLUTION
            # Users of exactly so many rows count as above the cap where it may be too high, and as below where it
            # may be too low: the limits from the left and from the right.
            cap_index, num_sizes_upto = np.searchsorted(histogram.sizes, [cap, cap + 1])
            added_shares = histogram.sizes[:num_sizes_upto] * RESOLUTION // cap
            a = np.concatenate(([0], np.cumsum(histogram.users[:num_sizes_upto] * added_shares)))
            num_users_below = num_users_up_to[: cap_index + 1] * RESOLUTION
            users_above = (num_users_up_to[-1] - num_users_up_to[[cap_index, num_sizes_upto]]) * RESOLUTION
            for i, multiple in enumerate(multiples):
                a_below, q = a[: cap_index + 1] * multiple, users_above * multiple
                m_below = num_users_below * multiple
                distance_too_high = compute_distance_if_too_high(
                    a_below, m_below, added_shares[:cap_index], q[0], k
                )
                distances_per_multiple[i, j] = max(
                    distance_too_high, compute_distance_if_too_low(a[-1] * multiple, q[1], k)
                )
        return np.rint(np.minimum(distances_per_multiple, MAX_DISTANCE)).astype(np.int64)

    def compute_errors(
        self, histogram: ContributionHistogram, bounds: FloatArray, multiple: float = 1.0
    ) -> FloatArray:
        """Compute the standard error of each cap, up to a common factor, with every user ``multiple`` times there."""
        return np.sqrt(weights.compute_capped_losses(histogram, bounds).total(self.trade_off * multiple))

    def find_best_bound(self, histogram: ContributionHistogram, multiple: float = 1.0) -> float:
        """Find the whole cap of least error, without privacy."""
        return weights.find_best_cap(histogram, self.trade_off * multiple).bound


@dataclass(frozen=True)
class RankedSum(SumsOverUsers):
    """The best bound T on what one user adds to a sum of rows, by bias plus mean noise.

    Attributes:
        price: Mean magnitude of the noise per unit of T, above 0: 1 / epsilon for Laplace noise. A bound is
            best where so many users lie above it. In [1e-9, 1e12]; public.
        margin: How many users more than that to aim at. With few users above the best bound, the draw easily
            lands above all of them, where only noise grows; aiming lower costs a little bias instead. In
            [0, 1e12]; public.
    """

    price: float
    margin: float = 0.0

    is_integer = True

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            problems.between(1e-9, 1e12, price=self.price)
            problems.between(0.0, 1e12, margin=self.margin)

    def with_draw_margin(self, epsilon: float) -> RankedSum:
        """Return the condition with the margin that a draw at ``epsilon`` adds.

        That is `MAX_MARGIN_TIMES_EPSILON` / epsilon users, or as many again. With p = 3/2 of `choice.SmallFirst` it
        lowers the mean error of a count on the samples and four larger tables by 0, 2, 4 and 8 % at an epsilon of 0.1,
        0.3, 0.5 and 2, and that of one bound for all groups by 2 to 3 %; without the limit a count errs by a third more
        at 0.1.
        """
        draw_margin = min(MAX_MARGIN_TIMES_EPSILON / epsilon, self.price + self.margin)
        return replace(self, margin=min(self.margin + draw_margin, 1e12))

    def compute_targets(self, candidates: FloatArray) -> IntArray:
        """Compute price plus margin in steps, shape (): the same for every candidate."""
        return np.asarray(to_steps(Fraction(self.price) + Fraction(self.margin)))

    def compute_errors(
        self, histogram: ContributionHistogram, bounds: FloatArray, multiple: float = 1.0
    ) -> FloatArray:
        """Compute the bias plus mean noise of each bound over ``multiple``, in rows."""
        num_rows_cut = Amounts.from_histogram(histogram).sum_excess(bounds)
        return np.asarray(num_rows_cut + self.price / multiple * bounds)

    def find_best_bound(self, histogram: ContributionHistogram, multiple: float = 1.0) -> float:
        """Find the T >= 0 of least error, without privacy; 0 if there are too few users."""
        row_amounts = Amounts.from_histogram(histogram)
        price = self.price / multiple
        nearest_rank = math.floor(price + 0.5)  # As in `dpcore.total.nonnegative.compute_critical_rank`.
        rank = nearest_rank if abs(price - nearest_rank) <= 1e-12 * price else math.ceil(price)
        return row_amounts.find_total_at_rank(max(rank, 1))


@dataclass(frozen=True)
class RisingPrice(SumsOverUsers):
    """The best cap T of a learner, by the rows cut and a privacy term that grows as a power of T.

    Attributes:
        scale: #{s_l > T} at the best T, over T^power; above 0, at most 1e300; public.
        power: One less than that of the privacy term, above -1, at most 9; public.
    """

    scale: float
    power: float

    is_integer = True

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            problems.between(1e-300, 1e300, scale=self.scale)
            problems.between(-0.999, 9.0, power=self.power)

    def compute_targets(self, candidates: FloatArray) -> IntArray:
        """Compute the number of users above each candidate if it is best, in steps, shape (c,)."""
        with np.errstate(over="ignore"):
            targets: FloatArray = np.minimum(self.scale * candidates**self.power, MAX_DISTANCE / RESOLUTION)
        return np.array([to_steps(float(num_users_above)) for num_users_above in targets], dtype=np.int64)

    def compute_errors(
        self, histogram: ContributionHistogram, bounds: FloatArray, multiple: float = 1.0
    ) -> FloatArray:
        """Compute rows cut plus privacy term of each cap, over ``multiple``, in rows; N stays as it is."""
        num_rows_cut = Amounts.from_histogram(histogram).sum_excess(bounds)
        privacy_power = self.power + 1.0
        return np.asarray(num_rows_cut + self.scale / multiple * bounds**privacy_power / privacy_power)

    def find_best_bound(self, histogram: ContributionHistogram, multiple: float = 1.0) -> float:
        """Find the whole T of least error, without privacy: the slope changes its sign once."""

        def is_at_least_best(cap: int) -> bool:
            """Return True if the next cap is no better."""
            two_caps = np.array([cap, cap + 1.0])
            error_at_cap, error_at_next_cap = self.compute_errors(histogram, two_caps, multiple)
            return bool(error_at_cap <= error_at_next_cap)

        return 1.0 + bisect.bisect_left(range(1, max(histogram.max_size, 1)), True, key=is_at_least_best)


@dataclass(frozen=True)
class SizeQuantile(SumsOverUsers):
    """A quantile of the users' numbers of rows.

    Attributes:
        share: q in (0, 1): the smallest t such that at least this share of the users have at most t rows.
    """

    share: float

    is_integer = True

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        require.inside(0.0, 1.0, share=self.share)

    @property
    def _share_in_steps(self) -> int:
        """Return q in steps, rounded."""
        return round(Fraction(self.share) * RESOLUTION)

    def compute_sensitivity(self, neighbours: Neighbours) -> int:
        """Return by how many steps one user can change a distance: max(q, 1 - q) users, 1 user if one is replaced."""
        if neighbours is Neighbours.REPLACE_USER:
            return RESOLUTION
        return max(self._share_in_steps, RESOLUTION - self._share_in_steps)

    def compute_sums(self, histogram: ContributionHistogram, candidates: FloatArray) -> IntArray:
        """Compute q #{s >= t} - (1 - q) #{s < t}, and the same with > and <=, in steps, shape (2, c).

        t is a candidate.
        """
        # q above - (1 - q) (m - above) = above - (1 - q) m.
        expected_above = (RESOLUTION - self._share_in_steps) * histogram.num_users
        return super().compute_sums(histogram, candidates) - expected_above

    def compute_targets(self, candidates: FloatArray) -> IntArray:
        """Return 0, shape (): the same for every candidate."""
        return np.asarray(0)

    def compute_errors(
        self, histogram: ContributionHistogram, bounds: FloatArray, multiple: float = 1.0
    ) -> FloatArray:
        """Compute the rank error of each bound, the share of users by which it misses the quantile.

        ``multiple`` is ignored.
        """
        distances = self.compute_distances(histogram, bounds)[0]
        return np.asarray(distances / float(RESOLUTION) / histogram.num_users)

    def find_best_bound(self, histogram: ContributionHistogram, multiple: float = 1.0) -> float:
        """Find the quantile itself, without privacy."""
        return float(histogram.find_quantile(self.share * (1.0 - 1e-12)))


CountCondition = SmoothMean | CapMean | RankedSum | RisingPrice | SizeQuantile
