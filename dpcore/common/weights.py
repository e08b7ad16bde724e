"""The one optimiser behind mean, quantile and weighted learning: how to share out weight among users.

Give user l the total weight u_l, spread evenly over their s_l rows. Every question of this kind asks for

    minimise  (max_l u_l)^2 + A * sum_l u_l^2 / s_l    over  u >= 0, sum_l u_l = 1,          (*)

the first term for privacy noise, the second for sampling error, A saying how much sampling error counts.

Source: Epasto et al. 2020, section 4, "Tradeoff weights"; lemma 3 for the form of the optimum,
u_l = min(h, s_l) / n_h with n_h = sum_l min(h, s_l). The roots and the dual bound below are ours; the paper
says only to set the derivative to zero and to consider the kinks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.common.checks import require
from dpcore.contributions import ContributionHistogram, FloatArray, SumsAtBounds, sum_suffixes

MAX_TRADE_OFF = 1e200
"""Largest A in (*): products of A with users and rows (at most 1e48) stay within float64."""
CAP_TOLERANCE = 1e-6
"""Relative gap to which the best cap is proved; the search below costs about its inverse square root."""


@dataclass(frozen=True)
class Losses:
    """The largest weight of a user and the sum of squared weights, each of the shape of the bounds asked for.

    Attributes:
        largest_weight: h / n_h, the weight of a user at the bound (no unit; weights sum to 1).
        squared_weights: sum over rows of weight^2 (no unit).
    """

    largest_weight: FloatArray
    squared_weights: FloatArray

    def total(self, trade_off: float) -> FloatArray:
        """Compute the objective (*) at A = ``trade_off``."""
        return np.asarray(self.largest_weight**2 + trade_off * self.squared_weights)


@dataclass(frozen=True)
class Optimum:
    """The best cap or the best threshold of smooth weights, with the losses there.

    Attributes:
        bound: h in rows per user; whole for a cap.
        losses: The two parts there (scalars).
        certificate: Objective (*) at the bound beside a lower bound for all bounds of this kind.
        stop_reason: How the search ended, a sentence.
    """

    bound: float
    losses: Losses
    certificate: Certificate
    stop_reason: str


class Sizes(Protocol):
    """Rows per user, integer or not, with sums over users: a `ContributionHistogram`, or `EffectiveSizes`."""

    @property
    def sizes(self) -> npt.NDArray[Any]:
        """Return the distinct sizes, ascending, above 0."""

    @property
    def num_users(self) -> int:
        """Return the number of users."""

    @property
    def min_size(self) -> float:
        """Return the smallest size."""

    @property
    def max_size(self) -> float:
        """Return the largest size."""

    def compute_sums_at(self, h: npt.ArrayLike) -> SumsAtBounds:
        """Compute the sums over users on either side of each bound, shape of ``h``."""

    def compute_sums_at_sizes(self) -> SumsAtBounds:
        """Compute the sums of `compute_sums_at` at every distinct size."""


class EffectiveSizes:
    """Effective sizes for correlated rows: s rows of a user are worth s / (1 + (s - 1) rho) independent ones.

    The variance of the mean of s rows of one user is sigma^2 (rho + (1 - rho) / s), that of the mean of so many
    independent rows. Sizes that are equal in float64 are one; at rho = 1 all are 1.



    Args:
        histogram: Rows per user.
        user_share: rho in [0, 1], the share of the variance that lies between users.
    """

    def __init__(self, histogram: ContributionHistogram, user_share: float) -> None:
        """Convert the sizes, and count the users of each distinct effective size."""
        self.user_share = user_share
        converted_sizes = self.convert(histogram.sizes)
        self.sizes: FloatArray
        self.sizes, effective_size_indices = np.unique(converted_sizes, return_inverse=True)
        users_by_size = np.bincount(effective_size_indices, weights=histogram.users.astype(np.float64))
        self.users = np.asarray(users_by_size, dtype=np.float64)
        self.num_users = histogram.num_users
        self.min_size, self.max_size = float(self.sizes[0]), float(self.sizes[-1])

    def convert(self, numbers_of_rows: npt.ArrayLike) -> FloatArray:
        """Convert numbers of rows above 0 to effective sizes, same shape, never falling with rows (all 1 if ρ = 1)."""
        row_array = np.asarray(numbers_of_rows, dtype=np.float64)
        return np.asarray(row_array / (1.0 + (row_array - 1.0) * self.user_share))

    @cached_property
    def _sums(self) -> SumsAtBounds:
        """Return the sums over users at or below, and above, each bound: 0 and every effective size."""
        rows_at_or_below = np.concatenate(([0.0], np.cumsum(self.sizes * self.users)))
        return SumsAtBounds(rows_at_or_below, sum_suffixes(self.users), sum_suffixes(self.users / self.sizes))

    def compute_sums_at(self, h: npt.ArrayLike) -> SumsAtBounds:
        """Compute the sums over users at or below, and above, each bound in effective rows, shape of ``h``."""
        size_indices = np.searchsorted(self.sizes, np.asarray(h, dtype=np.float64), side="right")
        return SumsAtBounds(*(sums[size_indices] for sums in self._sums))

    def compute_sums_at_sizes(self) -> SumsAtBounds:
        """Return the sums of `compute_sums_at` at every effective size."""
        return SumsAtBounds(*(sums[1:] for sums in self._sums))


def _require_trade_off(trade_off: float) -> float:
    """Return the trade-off as a float; raise `InvalidInput` if it is out of range."""
    require.between(0, MAX_TRADE_OFF, trade_off=trade_off)
    return float(trade_off)


def compute_smooth_losses(histogram: Sizes, thresholds: npt.ArrayLike) -> Losses:
    """Compute the losses if user l weighs min(h, s_l) / n_h in all, spread evenly over their rows.

    Args:
        histogram: Rows per user.
        thresholds: h > 0 in rows per user, real, any shape.

    Source: Epasto et al. 2020, claim 1.
    """
    h = np.asarray(thresholds, dtype=np.float64)
    rows_at_or_below, users_above, inverse_above = histogram.compute_sums_at(h)
    kept_rows = rows_at_or_below + h * users_above
    # sum_l s_l (min(h, s_l) / (n_h s_l))^2, divided twice by n_h so that no square overflows.
    scaled_squares = rows_at_or_below / kept_rows + h * (h / kept_rows) * inverse_above
    return Losses(np.asarray(h / kept_rows), np.asarray(scaled_squares / kept_rows))


def compute_capped_losses(histogram: ContributionHistogram, caps: npt.ArrayLike) -> Losses:
    """Compute the losses if min(h, s_l) rows of user l are kept, all with weight 1 / n_h.

    Args:
        histogram: Rows per user.
        caps: h > 0 in rows per user, any shape. Whole for a mechanism; real values are allowed for curves.

    Source: Epasto et al. 2020, claim 2.
    """
    h = np.asarray(caps, dtype=np.float64)
    kept_rows = histogram.count_kept_rows(h)
    return Losses(np.asarray(h / kept_rows), np.asarray(1.0 / kept_rows))


def compute_lower_bound(histogram: Sizes, trade_off: float, h: float) -> float:
    """Compute a lower bound on (*) for all weights, from any h >= 0; it is tight at the root without limits.

    Lagrangian of (*) with t >= u_l (multipliers lambda_l >= 0) and sum u = 1 (multiplier mu): minimising over t and u
    leaves  mu - (sum_l lambda_l)^2 / 4 - sum_l s_l (mu - lambda_l)^2 / (4 A).  Take lambda_l = mu (1 - h / s_l)_+ and
    the best mu: the value is 1 / (Q^2 + P / A) with P = sum_l min(h, s_l)^2 / s_l and Q = sum_l (1 - h / s_l)_+.  For
    A = 0 only Q = m is of use: 1 / m^2.
    """
    if trade_off == 0.0:
        return 1.0 / float(histogram.num_users) ** 2
    rows_at_or_below, users_above, inverse_above = (
        float(piece_sum) for piece_sum in histogram.compute_sums_at(h)
    )
    p = rows_at_or_below + h * h * inverse_above
    # A sum of terms of at least 0, whose difference may round below it.
    q = max(users_above - h * inverse_above, 0.0)
    return 1.0 / (q * q + p / trade_off)


def find_smooth_root(histogram: Sizes, trade_off: float) -> float:
    """Find the root h >= 0 of the increasing function  h - A sum_l (1 - h / s_l)_+.

    It minimises the quasi-convex objective of the smooth weights; below s_1 it stands for s_1, since all
    thresholds there give the same weights. On the piece where q users lie above h and I is their sum of 1 /
    s_l, it is A q / (A I + 1).
    """
    sizes = histogram.sizes.astype(np.float64)
    _, users_above, inverse_above = histogram.compute_sums_at_sizes()
    # Sign of the function at each size, as a comparison: a difference would cancel near the root.
    reached_mask = sizes * (trade_off * inverse_above + 1.0) >= trade_off * users_above
    k = int(np.argmax(reached_mask))  # The largest size always qualifies: nobody lies above it.
    _, q, i = (float(piece_sum) for piece_sum in histogram.compute_sums_at(sizes[k - 1] if k else 0.0))
    threshold_root = trade_off * q / (trade_off * i + 1.0)
    # The root may round just outside the piece on which its formula holds.
    return min(max(threshold_root, float(sizes[k - 1]) if k else 0.0), float(sizes[k]))


def find_best_smooth(histogram: Sizes, trade_off: float) -> Optimum:
    """Find the best weights of users, exactly, by `find_smooth_root`, with a dual certificate.

    Args:
        histogram: Rows per user.
        trade_off: A >= 0 in (*).

    Returns:
        `Optimum` whose bound is the real threshold h in [s_1, s_m].

    Raises:
        InvalidInput: ``trade_off`` negative, not finite or above `MAX_TRADE_OFF`.

    Source: Epasto et al. 2020, lemma 3 and claim 1.
    """
    trade_off = _require_trade_off(trade_off)
    min_size = float(histogram.min_size)
    root = find_smooth_root(histogram, trade_off)
    threshold = max(root, min_size)
    losses = compute_smooth_losses(histogram, threshold)
    if histogram.num_users == 1:
        stop_reason = "There is one user: every bound gives the same weights."
    elif histogram.sizes.size == 1:
        stop_reason = "All users have equally many rows: every bound gives the same weights."
    elif trade_off == 0.0:
        stop_reason = "Without sampling error every user weighs the same."
    elif root <= min_size:
        stop_reason = "Privacy noise rules: every user weighs the same."
    else:
        stop_reason = "Exact: the root of the optimality condition."
    objective_value = float(losses.total(trade_off))
    bound_argument = "a dual bound computed from the same data"
    # Any h bounds from below. Near s_m the root's last digit can be all there is to Q; there h = s_m, where
    # Q is exactly 0, is tight (at A = 1e45 the root alone leaves a gap of 1).
    dual_bound = max(compute_lower_bound(histogram, trade_off, h) for h in (root, float(histogram.max_size)))
    return Optimum(threshold, losses, Certificate(objective_value, dual_bound, bound_argument), stop_reason)


def find_best_cap(histogram: ContributionHistogram, trade_off: float) -> Optimum:
    """Find the best whole cap between s_1 and s_m, exactly, with a certificate.

    With S the rows of users at or below h and q the users above, the derivative of (h / n_h)^2 + A / n_h has
    the sign of 2 h S - A q n_h, which once positive stays so. Bisection over sizes finds the piece, where the
    root is A q S / (2 S - A q^2).

    Args:
        histogram: Rows per user.
        trade_off: A >= 0 in (*).

    Returns:
        `Optimum` whose bound is whole; among equals the smallest.

    Raises:
        InvalidInput: ``trade_off`` negative, not finite or above `MAX_TRADE_OFF`.

    Source: Epasto et al. 2020, claim 2, for the objective.
    """
    trade_off = _require_trade_off(trade_off)
    sizes, (rows_at_or_below, users_above_sizes, _) = histogram.sizes, histogram.compute_sums_at_sizes()
    low_index, high_index = (
        0,
        sizes.size - 1,
    )  # At the largest size nobody lies above: the derivative is positive.
    while low_index < high_index:
        middle_index = (low_index + high_index) // 2
        sums_at_sizes = sizes, rows_at_or_below, users_above_sizes
        h, rows_below, users_above = (float(sums[middle_index]) for sums in sums_at_sizes)
        if 2.0 * h * rows_below >= trade_off * users_above * (rows_below + h * users_above):
            high_index = middle_index
        else:
            low_index = middle_index + 1
    caps_near_root = {int(sizes[low_index])}
    # Where the derivative is positive at the smallest size already, that size is the best cap.
    if low_index > 0:
        rows_below = float(rows_at_or_below[low_index - 1])
        users_above = float(users_above_sizes[low_index - 1])
        derivative_slope = 2.0 * rows_below - trade_off * users_above**2
        # The derivative has the sign of h (2 S - A q^2) - A q S: without a slope it falls all the way to the right
        # end.
        if derivative_slope > 0.0:
            derivative_root = trade_off * users_above * rows_below / derivative_slope
            root_floor = math.floor(min(derivative_root, float(sizes[low_index])))
            # One further on each side: at 1e12 the root itself is rounded.
            caps_near_root.update(range(root_floor - 1, root_floor + 3))
    cap_array = np.array(sorted(caps_near_root))
    candidate_caps = cap_array[(cap_array >= sizes[0]) & (cap_array <= sizes[-1])]
    objectives_at_caps = compute_capped_losses(histogram, candidate_caps).total(trade_off)
    cap = int(candidate_caps[int(np.argmin(objectives_at_caps))])
    losses_at_cap = compute_capped_losses(histogram, float(cap))
    if histogram.sizes.size == 1:
        stop_reason = "All users have equally many rows: there is only one bound to choose."
    elif trade_off == 0.0:
        stop_reason = "Without sampling error the smallest bound is best."
    else:
        stop_reason = "Exact: bisection over the sizes, then the root within one piece."
    objective_value = float(losses_at_cap.total(trade_off))
    proved_bound = compute_cap_lower_bound(histogram, trade_off, objective_value)
    certificate = Certificate(
        objective_value, proved_bound, "lower limits on intervals that cover every bound"
    )
    return Optimum(float(cap), losses_at_cap, certificate, stop_reason)


def compute_cap_lower_bound(
    histogram: ContributionHistogram, trade_off: float, best_objective: float
) -> float:
    """Compute a lower bound on the objective of every whole cap in [s_1, s_m], by branch and bound without derivatives.

    On [a, b] the objective is at least (a / n_a)^2 + A / n_b, since h / n_h never falls and n_h never shrinks
    as h grows. Intervals are halved (geometrically) until each bound reaches ``best_objective`` (1 - `CAP_TOLERANCE`)
    or the interval is a single cap.

    Args:
        histogram: Rows per user.
        trade_off: A >= 0.
        best_objective: Objective of the candidate to be proved.
    """
    target_value = best_objective * (1.0 - CAP_TOLERANCE)
    # With so many sizes at or below a cap; asked for once, not in every round.
    rows_below, users_above, _ = histogram.compute_sums_after(slice(None))
    # Sixty-four intervals to begin with: one call on an array costs hardly more than one on a number.
    min_size, max_size = histogram.min_size, histogram.max_size
    left_ends = np.unique(np.geomspace(min_size, max_size, 65).astype(np.int64).clip(min_size, max_size))
    # Of whole caps: the intervals have none in common, and leave none out.
    right_ends = np.append(left_ends[1:] - 1, max_size)
    proved_bound = math.inf
    while left_ends.size:
        interval_ends = np.stack((left_ends, right_ends)).astype(np.float64)
        size_indices = np.searchsorted(histogram.sizes, interval_ends, side="right")
        kept_rows = rows_below[size_indices] + interval_ends * users_above[size_indices]
        interval_bounds = (interval_ends[0] / kept_rows[0]) ** 2 + trade_off / kept_rows[1]
        settled_interval_mask = (interval_bounds >= target_value) | (left_ends == right_ends)
        if settled_interval_mask.any():
            proved_bound = min(proved_bound, float(interval_bounds[settled_interval_mask].min()))
        left_ends, right_ends = left_ends[~settled_interval_mask], right_ends[~settled_interval_mask]
        geometric_means = np.sqrt(left_ends.astype(np.float64) * right_ends).astype(np.int64)
        middle_caps = np.clip(geometric_means, left_ends, right_ends - 1)
        left_ends = np.concatenate((left_ends, middle_caps + 1))
        right_ends = np.concatenate((middle_caps, right_ends))
    return proved_bound


NUM_PROBES = 30
"""Points of an interval that are evaluated at once: one call on an array costs hardly more than one on a number."""


def find_interval_within(
    objective: Callable[[FloatArray], FloatArray],
    minimiser: float,
    lowest_point: float,
    highest_point: float,
    objective_limit: float,
    is_integer: bool,
) -> tuple[float, float]:
    """Find the interval around the minimiser of a quasi-convex function on which it stays within a limit.

    Args:
        objective: Quasi-convex on [low, high]; of arrays, value by value.
        minimiser: Its minimiser, in [low, high]; objective(minimiser) <= limit.
        lowest_point: Smallest argument allowed.
        highest_point: Largest argument allowed.
        objective_limit: Largest value tolerated.
        is_integer: Whether arguments are whole numbers.

    Returns:
        (lowest, highest) argument within the limit, both inside it, to one unit (whole) or 1e-9 relative.
    """

    def find_edge(inner_point: float, outer_point: float) -> float:
        """Return the last tested point on the way from ``inner_point`` to ``outer_point`` that is within the limit."""
        while True:
            probe_points = np.linspace(inner_point, outer_point, NUM_PROBES + 2)[1:]
            if is_integer:
                probe_points = np.unique(np.floor(probe_points))
                # Probes run outward; `np.unique` has put them in ascending order.
                direction = 1 if outer_point > inner_point else -1
                probe_points = probe_points[probe_points != inner_point][::direction]
            if not probe_points.size:
                return inner_point
            # Put so that an undefined value lies beyond the limit. The function is quasi-convex: the first probe
            # beyond it ends the interval.
            indices_beyond = np.flatnonzero(~(objective(probe_points) <= objective_limit))
            if not indices_beyond.size:
                return outer_point
            first_index_beyond = int(indices_beyond[0])
            if first_index_beyond > 0:
                inner_point = float(probe_points[first_index_beyond - 1])
            outer_point = float(probe_points[first_index_beyond])
            if abs(outer_point - inner_point) <= (1.0 if is_integer else 1e-9 * abs(inner_point)):
                return inner_point

    return find_edge(minimiser, lowest_point), find_edge(minimiser, highest_point)
