"""Which range [L, U] should values be clamped to, on the values at hand?

A user of s rows weighs u = min(h, s) / n_h, each of their rows w = u / s; t is the largest u. Clamped to [L, U] and
released with Laplace noise of scale t (U - L) / epsilon, the mean misses that of the table by what clamping cuts off,
by what weighing shifts, and by noise. The error here counts the first two without letting them cancel:

    f(L, U, h) = (|D| + a)^2 + kappa (U - L)^2,    a = sum w (L - y)_+ + sum w (y - U)_+,    kappa = 2 (t / epsilon)^2,

with D the weighted mean less the mean of the table, both before clamping. The exact error would have a minimum that is
no answer: with L = U = the mean it is 0, and publishes the mean as a bound; and at every width some window has no
shift at all. f is at least the root mean square error, and for given h convex in (L, U).

**One path holds all optima.** a + lambda (U - L) is least at the lambda-quantiles by weight, from below and from above.
So the rows above U weigh as much as those below L, and the best range for given h is where
lambda (|D| + a) = kappa (U - L): along the path the left side rises in lambda and the right side falls. Bisection
finds it in the sorted values; where the path jumps from one value to the next, an end lies between them, and a linear
equation gives it. With L known the same holds for U alone, and lambda = all the weight above L means U = L.

**Certificate.** With c = |D| + a + lambda (U - L) at the pair that was found, a >= c - |D| - lambda W at any width W;
f >= min over W of (c - lambda W)^2 + kappa W^2 = c^2 kappa / (lambda^2 + kappa).

**Over h as well.** n_h a and t rise in h, and D moves monotonically between two sizes. So on [h1, h2]
f >= min over (L, U) of (min |D| + (n_1 / n_2) a_1)^2 + kappa_1 (U - L)^2 with a and kappa at h1, which the same search
solves: branch and bound.

The module is ours; the condition on the rows above U is that of Amin et al. 2019, equation 6, for values.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.common.certificate import Certificate
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import MAX_SIZE, FloatArray, IntArray
from dpcore.dataset import Values

TOLERANCE = 0.02
"""How far the best of all (L, U, h) that is found may err above the least, as a share."""
MAX_PASSES = 400
FIRST_CELLS = 16
_HALVINGS = 200


@dataclass(frozen=True, eq=False)
class ValueRangeProblem:
    """The question: clamp the values of a table for a mean with epsilon-DP. The answer is as private as the values.

    Attributes:
        values: One value per row, sorted by user.
        epsilon: Privacy budget of the release.

    Raises:
        InvalidInput: epsilon is out of its range.
    """

    values: Values
    epsilon: float

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.of_kind(Values, values=self.values)
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)

    @cached_property
    def mean(self) -> float:
        """Return the mean of all rows, in the values' unit."""
        return float(self.values.values.mean())

    @cached_property
    def _sizes_of_rows(self) -> tuple[IntArray, IntArray, IntArray]:
        """Distinct sizes, users of each, and for every row in the order of its user which size that user has."""
        starts = np.flatnonzero(np.r_[True, np.diff(self.values.user_codes) != 0])
        counts = np.diff(np.r_[starts, self.values.user_codes.size])
        sizes, place, users = np.unique(counts, return_inverse=True, return_counts=True)
        return sizes.astype(np.int64), users.astype(np.int64), np.repeat(place, counts)

    @property
    def sizes(self) -> IntArray:
        """Distinct rows per user, ascending, shape (K,)."""
        return self._sizes_of_rows[0]

    @cached_property
    def _sorted(self) -> tuple[FloatArray, IntArray]:
        """Values less their mean, ascending, and the size of each row's user; centred, so that shifts do not cancel."""
        order = np.argsort(self.values.values, kind="stable")
        centred = self.values.values[order] - self.mean
        return centred, self._sizes_of_rows[2][order].astype(np.int32)

    @cached_property
    def _size_sums(self) -> FloatArray:
        """Per size, the sum of its rows' centred values over the size: the sum of its users' means, shape (K,)."""
        of_rows = self._sizes_of_rows[2]
        return (
            np.bincount(of_rows, weights=self.values.values - self.mean, minlength=self.sizes.size)
            / self.sizes
        )

    def kept(self, thresholds: npt.ArrayLike) -> FloatArray:
        """n_h, any shape."""
        h = np.asarray(thresholds, dtype=np.float64)[..., None]
        return np.asarray(np.minimum(h, self.sizes) @ self._sizes_of_rows[1].astype(np.float64))

    def shifts(self, thresholds: npt.ArrayLike) -> FloatArray:
        """Return D: the weighted mean less that of the table, both before clamping, in the values' unit; any shape."""
        h = np.asarray(thresholds, dtype=np.float64)
        return np.asarray(np.minimum(h[..., None], self.sizes) @ self._size_sums / self.kept(h))

    def noise(self, thresholds: npt.ArrayLike) -> FloatArray:
        """Root of kappa: standard deviation of the noise for a range of width 1; any shape."""
        h = np.minimum(np.asarray(thresholds, dtype=np.float64), float(self.sizes[-1]))
        return np.asarray(math.sqrt(2.0) * h / (self.epsilon * self.kept(h)))


@dataclass(frozen=True)
class RangeParts:
    """The error of a range, in its parts; all in the values' unit, of the shape of what was asked.

    Attributes:
        clamping: a, what the range cuts off.
        bounding: |D|, what weighing users shifts.
        noise: Standard deviation of the noise.
    """

    clamping: FloatArray
    bounding: FloatArray
    noise: FloatArray

    @property
    def error(self) -> FloatArray:
        """Root of f."""
        return np.asarray(np.hypot(self.clamping + self.bounding, self.noise))


@dataclass(frozen=True)
class RangeChoice:
    """The best range.

    Attributes:
        lower: L, in the values' unit.
        upper: U.
        threshold: h, in rows per user.
        clamping: What it cuts off, in the values' unit.
        bounding: What weighing users shifts.
        noise: Standard deviation of the noise.
        error: Root of f: all three together.
        certificate: The error beside a lower bound: for every range at this h, or for every h as well.
        passes: Passes over the rows that it took.
    """

    lower: float
    upper: float
    threshold: float
    clamping: float
    bounding: float
    noise: float
    error: float
    certificate: Certificate
    passes: int = 1


class Weighted:
    """The rows at one threshold h, in the order of their values, with what weighs below and above each.

    Args:
        problem: The question.
        threshold: h, at least 1 row per user.

    Raises:
        InvalidInput: h is out of its range.
    """

    def __init__(self, problem: ValueRangeProblem, threshold: float) -> None:
        with Problems() as problems:
            problems.between(1.0, MAX_SIZE, threshold=threshold)
        self.problem, self.threshold = problem, float(threshold)
        values, place = problem._sorted
        self.values = values
        self.kept = float(problem.kept(threshold))
        weights = (np.minimum(threshold, problem.sizes) / problem.sizes / self.kept)[place]
        of_values = weights * values
        # Weight of the first i rows, and of the last n - i, by sums of their own: a difference would cancel.
        self._below, self._above = _running(weights), _running(weights[::-1])[::-1]
        self._sum_below, self._sum_above = _running(of_values), _running(of_values[::-1])[::-1]
        self.bounding = abs(float(problem.shifts(threshold)))
        self.noise = float(problem.noise(threshold))

    def cut_below(self, lower: npt.ArrayLike) -> FloatArray:
        """sum w (L - y)_+ for ends less the mean, any shape."""
        ends = np.asarray(lower, dtype=np.float64)
        at = np.searchsorted(self.values, ends, side="left")
        return np.maximum(ends * self._below[at] - self._sum_below[at], 0.0)

    def cut_above(self, upper: npt.ArrayLike) -> FloatArray:
        """sum w (y - U)_+ for ends less the mean, any shape."""
        ends = np.asarray(upper, dtype=np.float64)
        at = np.searchsorted(self.values, ends, side="right")
        return np.maximum(self._sum_above[at] - ends * self._above[at], 0.0)

    def parts(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> RangeParts:
        """Return the error of ranges in the values' unit, in its parts; L and U broadcast."""
        low, high = (np.asarray(end, dtype=np.float64) - self.problem.mean for end in (lower, upper))
        clamping = self.cut_below(low) + self.cut_above(high)
        return RangeParts(
            clamping, np.full(clamping.shape, self.bounding), np.asarray(self.noise * (high - low))
        )

    def weight_above(self, end: float) -> float:
        """Weight of the rows above an end less the mean."""
        return float(self._above[np.searchsorted(self.values, end, side="right")])

    def weight_below(self, end: float) -> float:
        """Weight of the rows below an end less the mean."""
        return float(self._below[np.searchsorted(self.values, end, side="left")])

    def at_quantile(self, weight: float, known: float | None) -> tuple[float, float]:
        """Return the range that cuts off this weight at either end: less the mean; L stays where it is known."""
        last = self.values.size - 1
        high = float(
            self.values[last - min(int(np.searchsorted(self._above[::-1][1:], weight, side="left")), last)]
        )
        if known is not None:
            return known, max(high, known)
        low = float(self.values[min(int(np.searchsorted(self._below[1:], weight, side="left")), last)])
        return low, max(high, low)


def _running(terms: FloatArray) -> FloatArray:
    return np.concatenate(([0.0], np.cumsum(terms)))


def _solved(
    of: Weighted, bounding: float, times: float, known: float | None
) -> tuple[float, float, float, float]:
    """Least (d + times a)^2 + kappa W^2 over (L, U): L and U less the mean, the value, and a lower bound of it."""
    kappa = of.noise**2

    def state(weight: float) -> tuple[float, float, float]:
        """Return L, U and lambda (d + a) - kappa W there; lambda = times weight."""
        low, high = of.at_quantile(weight, known)
        return low, high, times * weight * (bounding + cut(low, high)) - kappa * (high - low)

    def cut(low: float, high: float) -> float:
        return times * float(of.cut_below(low) + of.cut_above(high))

    # All weights sum to 1: where half of it lies beyond either end, L and U have met at the median.
    most = 0.5 if known is None else of.weight_above(known)
    left, right = 0.0, most
    # The state rises in the weight, as more is cut and the width shrinks: its sign decides each halving.
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        if not left < middle < right:
            break
        if state(middle)[2] < 0.0:
            left = middle
        else:
            right = middle
    low, high, _ = state(max(left, math.ulp(0.0)))
    width, slope = high - low, times * right
    # At this weight one end may lie anywhere up to where the path goes on; at all the weight, up to the other end.
    inner_low, inner_high = (low, low) if right >= most and known is not None else state(right)[:2]
    if right >= most:
        inner_low, inner_high = (low, low) if known is not None else (high, high)
    room = width - max(inner_high - inner_low, 0.0)
    # Up to the next value of the path each unit of width less cuts off `slope` more: a quadratic in the step.
    step = (kappa * width - slope * (bounding + cut(low, high))) / (slope**2 + kappa)
    step = min(max(step, 0.0), room)
    of_low = min(step, max(inner_low - low, 0.0)) if known is None else 0.0
    low, high = low + of_low, max(high - (step - of_low), low + of_low)
    together = bounding + cut(low, high)
    value = together**2 + kappa * (high - low) ** 2
    # Any lambda gives a bound; the one of the equation at this point is the best where the point is inside a step.
    bounds = []
    for weight in {right, left, kappa * (high - low) / (times * together) if together > 0.0 else right}:
        if 0.0 < weight <= most:
            at_low, at_high, _ = state(weight)
            rate = times * weight
            line = bounding + cut(at_low, at_high) + rate * (at_high - at_low)
            # The least of (line - rate W)^2 + kappa W^2 over all widths W.
            bounds.append(line**2 * kappa / (rate**2 + kappa))
    return low, high, value, min(max(bounds, default=0.0), value)


def best_range(problem: ValueRangeProblem, threshold: float, lower: float | None = None) -> RangeChoice:
    """Return the best range at one threshold.

    Args:
        problem: The question.
        threshold: h, at least 1 row per user.
        lower: L where it is known; None to choose both ends.

    Returns:
        `RangeChoice`; its certificate covers every range with this L, or every range, at this h.

    Raises:
        InvalidInput: h is out of its range, or no value lies above L, or all values are the same.
    """
    return _choice(Weighted(problem, threshold), _known(problem, lower))


def _known(problem: ValueRangeProblem, lower: float | None) -> float | None:
    values = problem._sorted[0]
    if lower is None:
        if values[0] == values[-1]:
            raise refuse("all values are the same, so that no range can be told from another")
        return None
    with Problems() as problems:
        problems.between(-1e300, 1e300, lower=lower)
    if values[-1] <= lower - problem.mean:
        raise refuse("no value lies above L", remedy="Enter a lower L")
    return lower - problem.mean


def _choice(of: Weighted, known: float | None) -> RangeChoice:
    low, high, _, bound = _solved(of, of.bounding, 1.0, known)
    mean = of.problem.mean
    parts = RangeParts(
        np.asarray(of.cut_below(low) + of.cut_above(high)),
        np.asarray(of.bounding),
        np.asarray(of.noise * (high - low)),
    )
    error = float(parts.error)
    return RangeChoice(
        low + mean,
        high + mean,
        of.threshold,
        float(parts.clamping),
        of.bounding,
        float(parts.noise),
        error,
        Certificate(error, min(math.sqrt(bound), error), "every range at this bound on rows is covered"),
    )


def best_joint(
    problem: ValueRangeProblem,
    lower: float | None = None,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> RangeChoice:
    """Return the best range and threshold together, by branch and bound over h.

    Args:
        problem: The question.
        lower: L where it is known; None to choose both ends.
        progress: Told the share of `MAX_PASSES` over the rows that is done; after these it ends with the gap there is.
        should_stop: Asked after every pass; ends the search with the gap that it has.

    Returns:
        `RangeChoice`; its certificate covers every range and every h from 1.

    Raises:
        InvalidInput: As `best_range`.
    """
    known = _known(problem, lower)
    search = _Joint(problem, known)
    search.begin()
    while search.open and search.passes < MAX_PASSES and not should_stop():
        search.split()
        progress(min(search.passes / MAX_PASSES, 1.0))
    return search.answer()


class _Joint:
    """Cells [h1, h2] with what no range in them can err below."""

    def __init__(self, problem: ValueRangeProblem, known: float | None) -> None:
        self.problem, self.known, self.passes = problem, known, 0
        self.best: RangeChoice | None = None
        self.cells: list[tuple[float, float, float]] = []

    def begin(self) -> None:
        first, last = float(self.problem.sizes[0]), float(self.problem.sizes[-1])
        ends = np.unique(np.geomspace(first, last, FIRST_CELLS + 1))
        ends[0], ends[-1] = first, last
        # Beyond the largest size no weight changes any more, so that this one is looked at by itself.
        for at, h1 in enumerate(ends):
            self.look(float(h1), float(ends[at + 1]) if at + 1 < ends.size else None)

    def look(self, h1: float, h2: float | None) -> None:
        """The best range at h1, and what no range on [h1, h2] errs below."""
        of = Weighted(self.problem, h1)
        self.passes += 1
        found = _choice(of, self.known)
        if self.best is None or found.error < self.best.error:
            self.best = found
        if h2 is not None:
            self.push(of, h2)

    def push(self, of: Weighted, h2: float) -> None:
        h1, sizes = of.threshold, self.problem.sizes
        inside = sizes[(sizes > h1) & (sizes < h2)].astype(np.float64)
        shifts = self.problem.shifts(np.r_[h1, inside, h2])
        # D is monotone between two sizes: its least magnitude is at an end, at a size inside, or 0 where its sign
        # changes.
        least = 0.0 if shifts.min() <= 0.0 <= shifts.max() else float(np.abs(shifts).min())
        times = of.kept / float(self.problem.kept(h2))
        bound = _solved(of, least, times, self.known)[3]
        heapq.heappush(self.cells, (math.sqrt(bound), h1, h2))

    @property
    def open(self) -> bool:
        assert self.best is not None
        return bool(self.cells) and self.cells[0][0] * (1.0 + TOLERANCE) < self.best.error

    def split(self) -> None:
        _, h1, h2 = heapq.heappop(self.cells)
        middle = math.sqrt(h1 * h2)
        if not h1 < middle < h2:
            return  # A cell of one number, which was looked at.
        self.look(middle, h2)
        of = Weighted(self.problem, h1)
        self.passes += 1
        self.push(of, middle)

    def answer(self) -> RangeChoice:
        assert self.best is not None
        best = self.best
        bound = min(self.cells[0][0] if self.cells else best.error, best.error, best.certificate.lower_bound)
        certificate = Certificate(
            best.error, bound, "every range and, by intervals, every bound on rows is covered"
        )
        return RangeChoice(
            best.lower, best.upper, best.threshold, best.clamping, best.bounding, best.noise, best.error, certificate,
            self.passes,
        )  # fmt: skip
