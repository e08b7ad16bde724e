"""No sampling at all: bound each user's whole vector of amounts by its norm, without dropping a group.

The norm is L1 with Laplace and L2 with Gaussian noise, and T bounds it. Two rules, both a function of the user's own
vector c_u >= 0 alone:

- cap: y_ug = min(c_ug, lambda_u) with the largest lambda_u for which the norm of y_u is at most T;
- radial: y_u = c_u min(1, T / |c_u|).

**For every pair of bounds there is a cap that errs no more in any group**, for rows, distinct users and sums of amounts
of at least 0 on a public list of groups. So the best cap errs no more over all groups than the best pair; in a single
group it may. Take L0 = l, Linf = C, and T = l C (L1) or sqrt(l) C (L2), for which the noise is
the same, with either relation. Write k for the user's number of groups and p = min(1, l/k); we show y_ug >=
p min(c_ug, C), so that no group has more bias, and there is no sampling variance.

- If the norm of min(c_u, C) is at most T, then lambda >= C and y_ug >= min(c_ug, C).
- Else the norm of min(c_u, C) exceeds T, hence k > l, and lambda < max c_u, so that the norm of y_u is T. That norm is
  at most lambda k (L1) or lambda sqrt(k) (L2); so lambda >= (l/k) C = p C, or lambda >= sqrt(l/k) C >= p C. Then
  y_ug = min(c_ug, lambda) >= min(c_ug, p C) >= p min(c_ug, C).

The proof needs amounts of at least 0 and groups that are released whatever happens: with negative amounts clipping
within a group can cancel bias, and a private choice of groups also needs a bound on groups per user. The radial rule
keeps no such promise group by group, but its error is convex in T.
"""

from __future__ import annotations

import abc
import enum
import heapq
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems, require
from dpcore.common.errors import refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem, Statistic

TOLERANCE = 1e-3
"""Relative gap at which the search for the best cap stops."""
REMEMBERED = 1 << 23
"""Entries of biases that the search for the best cap keeps, 64 MB."""


def private_margin(parameters: PerGroupParameters, num_groups: int) -> float | None:
    """How many users to aim above the bound of a sum of rows, so that it is a bound T for all groups together.

    Both rules keep min(|c_u|, T) of a user's L1 norm. With Laplace noise the mean absolute errors of G groups add up to
    at most sum_u max(|c_u| - T, 0) + G r T / epsilon, r the factor of the neighbours: least where G r / epsilon users
    lie above T. So many users above a bound are counted with sensitivity 1, and the private choice of a sum's bound
    (`dpcore.private_choice.scores.RankedSum`) aims at 1 / epsilon of them plus a margin.

    Args:
        parameters: The question.
        num_groups: Groups of the public list, G.

    Returns:
        G r / epsilon - 1 / epsilon; None where the norm is none of whole rows, as for sums, or noise is Gaussian.
    """
    if parameters.statistic not in (Statistic.ROWS, Statistic.USERS) or parameters.selection.private:
        return None
    if parameters.noise is not NoiseKind.LAPLACE:
        return None
    return (num_groups * float(parameters.norm_sensitivity(1.0)) - 1.0) / parameters.epsilon


class VectorRule(enum.Enum):
    """How a user's vector is brought to a norm of at most T."""

    CAP = "one level for all of a user's groups"
    RADIAL = "all of a user's groups scaled alike"


@dataclass(frozen=True)
class VectorChoice:
    """The best bound on the norm of a user's vector.

    Attributes:
        rule: How the bound is kept.
        max_norm: T, in the statistic's unit; 0 where it is best to release nothing.
        error: The problem's objective there.
        error_of_nothing: The same for publishing 0 in every group.
        certificate: The error beside a lower bound for every T >= 0 under the same rule.
        evaluations: How often the error was computed.
        ended: How the search ended, a sentence.
    """

    rule: VectorRule
    max_norm: float
    error: float
    error_of_nothing: float
    certificate: Certificate
    evaluations: int
    ended: str


def kept(problem: PerGroupProblem, rule: VectorRule, max_norm: float) -> FloatArray:
    """Return what is kept of every pair's amount, shape (num_pairs,), in the order of the problem's pairs.

    Args:
        problem: The question.
        rule: How the norm is bounded.
        max_norm: T >= 0, in the statistic's unit.

    Raises:
        InvalidInput: T is out of its range, or the statistic is none of amounts of at least 0.
    """
    require.non_negative(max_norm=max_norm)
    return _RULES[rule](problem).kept(max_norm)


def vector_error(problem: PerGroupProblem, rule: VectorRule, max_norm: float) -> float:
    """The problem's objective under a rule; arguments as `kept`. There is bias and noise, and no other variance."""
    missing = problem.per_group(problem.amounts - kept(problem, rule, max_norm))
    return problem.error(missing**2 + float(problem.parameters.norm_noise(max_norm)) ** 2)


class _Vectors(abc.ABC):
    """The users' vectors and their norms."""

    def __init__(self, problem: PerGroupProblem) -> None:
        if not problem.parameters.statistic.non_negative:
            raise refuse(
                "a bound on the whole vector is for rows, distinct users, and sums of amounts of at least 0"
            )
        self.problem = problem
        self.squared = problem.parameters.noise is NoiseKind.GAUSSIAN
        self.per_user = problem.pairs.groups_per_user
        self.starts = problem.pairs.user_starts
        # The noise's standard deviation per unit of T.
        self.noise = float(problem.parameters.norm_noise(1.0))

    @abc.abstractmethod
    def kept(self, max_norm: float) -> FloatArray:
        """Return what is kept of every pair's amount, in the order of the problem's pairs."""

    def powers(self, values: FloatArray) -> FloatArray:
        return values**2 if self.squared else values

    def root(self, values: FloatArray) -> FloatArray:
        return np.sqrt(values) if self.squared else values

    @cached_property
    def norms(self) -> FloatArray:
        """Norm of each user's vector."""
        return self.root(np.add.reduceat(self.powers(self.problem.amounts), self.starts))

    def error(self, missing: FloatArray, max_norm: float) -> float:
        """Return the objective where these amounts are missing and the noise is that of T."""
        return self.problem.error(missing**2 + (self.noise * max_norm) ** 2)


class _Radial(_Vectors):
    """The radial rule: |bias| of a group is sum of c_ug (1 - T / |c_u|) over users of norm above T, convex in T."""

    def kept(self, max_norm: float) -> FloatArray:
        factor = np.ones(self.norms.size)
        above = self.norms > max_norm
        factor[above] = max_norm / self.norms[above]
        return self.problem.amounts * np.repeat(factor, self.per_user)

    def line(self, max_norm: float, left: bool = False) -> tuple[FloatArray, FloatArray]:
        """A and B of each group: |bias| is A - B T just right of T (or just left of it)."""
        above = self.norms >= max_norm if left else self.norms > max_norm
        inverse = np.zeros(self.norms.size)
        inverse[above] = 1.0 / self.norms[above]
        amounts = self.problem.amounts
        whole = self.problem.per_group(np.where(np.repeat(above, self.per_user), amounts, 0.0))
        return whole, self.problem.per_group(amounts * np.repeat(inverse, self.per_user))

    def objective(self, a: FloatArray, b: FloatArray, t: float) -> tuple[float, float]:
        """Value and slope, at T, of what is minimised: the mean square, or the weighted mean of roots."""
        w, noise = self.problem.weights, self.noise
        missing = np.maximum(a - b * t, 0.0)
        rise = noise * noise * t
        if not self.problem.parameters.objective.rooted:
            value = float((missing * missing) @ w) + rise * t * float(w.sum())
            return value, 2.0 * (rise * float(w.sum()) - float((missing * b) @ w))
        root = np.hypot(missing, noise * t)
        # A group without rows has an error of noise T, also at T = 0.
        slope = np.full(root.size, noise)
        np.divide(rise - missing * b, root, out=slope, where=root > 0.0)
        return float(root @ w), float(slope @ w)

    def at(self, t: float, left: bool = False) -> tuple[float, float]:
        return self.objective(*self.line(t, left), t)


class _Cap(_Vectors):
    """The cap: pairs sorted by user and amount, with the norm of min(c_u, c) at each amount c of the user."""

    def __init__(self, problem: PerGroupProblem) -> None:
        super().__init__(problem)
        user = np.repeat(np.arange(self.per_user.size), self.per_user)
        self.order: IntArray = np.lexsort((problem.amounts, user))
        self.amounts = problem.amounts[self.order]
        self.groups = problem.pairs.group_codes[self.order]
        self.power = self.powers(self.amounts)
        up_to = np.cumsum(self.power)
        before = up_to - self.power  # Sum of the smaller amounts' powers, over all users before.
        rank = np.arange(self.amounts.size) - np.repeat(self.starts, self.per_user)
        left = np.repeat(self.per_user, self.per_user) - rank
        start = np.repeat(before[self.starts], self.per_user)
        # A difference of running sums over all users, which may round below 0.
        self.reached = self.root(np.maximum(before - start, 0.0) + left * self.power)

    def _sorted(self, max_norm: float) -> FloatArray:
        whole = self.reached <= max_norm
        # lambda solves P + (k - j) lambda^q = T^q with the j smallest amounts, of powers P, kept whole. P is added up
        # per user: then the norm is at most T, whatever rounding did to `reached`.
        power = np.add.reduceat(np.where(whole, self.power, 0.0), self.starts)
        left = self.per_user - np.add.reduceat(whole.astype(np.int64), self.starts)
        room = np.maximum((max_norm**2 if self.squared else max_norm) - power, 0.0)
        level = self.root(room / np.maximum(left, 1))
        return np.where(whole, self.amounts, np.minimum(self.amounts, np.repeat(level, self.per_user)))

    def kept(self, max_norm: float) -> FloatArray:
        out = np.empty(self.amounts.size)
        out[self.order] = self._sorted(max_norm)
        return out

    def missing(self, max_norm: float) -> FloatArray:
        """|bias| of every group."""
        number = self.problem.pairs.num_entries
        lost = np.bincount(self.groups, self.amounts - self._sorted(max_norm), number)
        return lost.astype(np.float64)


_RULES: dict[VectorRule, type[_Vectors]] = {VectorRule.RADIAL: _Radial, VectorRule.CAP: _Cap}


def best_radial(problem: PerGroupProblem) -> VectorChoice:
    """Return the best T of the radial rule, exactly.

    |bias| of each group is convex and at least 0, noise linear in T; every objective is convex and rising in both, so
    the error is convex in T. Bisection over the users' norms by the sign of the slope finds the piece; within it the
    mean square is a parabola, and a mean of roots has one root of its slope.
    """
    radial = _Radial(problem)
    edges = np.unique(np.r_[0.0, radial.norms])
    low, high, evaluations = 0, edges.size - 1, 0  # Beyond the largest norm there is only noise, which rises.
    while low < high:
        middle = (low + high) // 2
        evaluations += 1
        if radial.at(float(edges[middle]))[1] >= 0.0:
            high = middle
        else:
            low = middle + 1
    chosen = 0.0
    # Where the error rises from T = 0 on, noise outweighs all that could be kept, and nothing is released.
    if low > 0:
        begin, end = float(edges[low - 1]), float(edges[low])
        a, b = radial.line(begin)
        chosen = end if radial.objective(a, b, end)[1] <= 0.0 else _turn(radial, a, b, begin, end)
    value, lower = _tangents(radial, chosen)
    rooted = problem.parameters.objective.rooted
    error = value if rooted else math.sqrt(value)
    certificate = Certificate(
        error,
        min(error, lower if rooted else math.sqrt(max(lower, 0.0))),
        "the error is convex in the bound, with tangents on both sides",
    )
    ended = (
        "Exact: bisection over the users' norms, then the minimum of one piece."
        if chosen > 0.0
        else "Nothing useful can be released: publishing 0 in every group errs least."
    )
    return VectorChoice(
        VectorRule.RADIAL, chosen, error, problem.error_of_nothing, certificate, evaluations, ended
    )


def _turn(radial: _Radial, a: FloatArray, b: FloatArray, begin: float, end: float) -> float:
    """Where the slope of one piece is 0."""
    if not radial.problem.parameters.objective.rooted:
        w = radial.problem.weights
        # Where the derivative of sum w ((a - b T)^2 + noise^2 T^2) is 0.
        turn = float((w * a) @ b) / (float((w * b) @ b) + radial.noise**2 * float(w.sum()))
        return min(max(turn, begin), end)
    from scipy.optimize import brentq

    if radial.objective(a, b, begin)[1] >= 0.0:
        return begin
    return float(brentq(lambda t: radial.objective(a, b, t)[1], begin, end, xtol=1e-300, rtol=1e-14))


def _tangents(radial: _Radial, chosen: float) -> tuple[float, float]:
    """The value at T and a lower bound for all T >= 0: the crossing of tangents on both sides, where both rise away."""
    value, slope = radial.at(chosen)
    if chosen == 0.0:
        return value, value if slope >= 0.0 else -math.inf
    # The nearer the two tangents, the better the bound; too near, rounding decides the signs of their slopes.
    for width in (1e-9, 1e-7, 1e-5, 1e-3):
        a, b = chosen * (1.0 - width), chosen * (1.0 + width)
        (value_a, fall), (value_b, rise) = radial.at(a), radial.at(b, left=True)
        if fall <= 0.0 <= rise:
            if rise == fall:
                return value, min(value_a, value_b)
            # Along the tangent at a by the share of the way at which both tangents cross.
            step = (value_b - value_a - rise * (b - a)) / (fall - rise)
            return value, value_a + fall * min(max(step, 0.0), b - a)
    return value, -math.inf


def best_cap(
    problem: PerGroupProblem,
    *,
    tolerance: float = TOLERANCE,
    max_evaluations: int = 5_000,
    should_stop: ShouldStop = never,
) -> VectorChoice:
    """Return the best T of the cap, by a search with a lower bound.

    |bias| falls and noise rises in T, so between a and b no T errs less than bias at b with noise at a. The error is
    not convex, and the search ends at a gap of ``tolerance``, not at the minimum itself.

    Args:
        problem: The question.
        tolerance: Relative gap at which it stops.
        max_evaluations: Evaluations after which it stops with the gap that it has.
        should_stop: Asked after every evaluation; ends it likewise.

    Raises:
        InvalidInput: An option is out of its range.
    """
    with Problems() as problems:
        problems.between(1e-9, 1.0, tolerance=tolerance)
        problems.whole(1, 10**9, max_evaluations=max_evaluations)
    cap = _Cap(problem)
    largest = float(cap.norms.max())
    biases: dict[float, FloatArray] = {}
    best, chosen, evaluations = problem.error_of_nothing, 0.0, 0

    def missing(t: float) -> FloatArray:
        nonlocal best, chosen, evaluations
        if t not in biases:
            # What is forgotten is computed again where it is needed.
            while biases and (len(biases) + 1) * problem.pairs.num_entries > REMEMBERED:
                biases.pop(next(iter(biases)))
            biases[t] = cap.missing(t)
            evaluations += 1
            error = cap.error(biases[t], t)
            if error < best:
                best, chosen = error, t
        return biases[t]

    heap: list[tuple[float, float, float]] = []

    def add(low: float, high: float) -> None:
        bound = cap.error(missing(high), low)
        if bound < best * (1.0 - tolerance):
            heapq.heappush(heap, (bound, low, high))
        else:
            closed.append(bound)

    closed: list[float] = []
    add(0.0, largest)
    while heap and heap[0][0] < best * (1.0 - tolerance) and evaluations < max_evaluations:
        if should_stop():
            break
        _, low, high = heapq.heappop(heap)
        # Ratios of T matter while an interval is wide.
        middle = high / 8.0 if low == 0.0 else math.sqrt(low * high)
        if not low < middle < high:
            closed.append(cap.error(missing(high), low))
            continue
        add(low, middle)
        add(middle, high)
    # Intervals that were left alone count with their bounds, too: without them the proof would not cover their T.
    lower = min(best, *closed, *(bound for bound, _, _ in heap))
    certificate = Certificate(
        best,
        lower,
        "in every interval of bounds bias at its upper end and noise at its lower end bound the error",
    )
    if certificate.proves(tolerance * (1.0 + 1e-9)):
        ended = f"The search ended within {tolerance:g} of the best bound, after {evaluations:,} evaluations."
    else:
        ended = (
            f"Stopped after {evaluations:,} evaluations; the certificate says how far a better one can lie."
        )
    return VectorChoice(
        VectorRule.CAP, chosen, best, problem.error_of_nothing, certificate, evaluations, ended
    )
