"""The cost of choosing a range privately, and of other ways, against the best range in the clear.

The error is that of `dpcore.mean.value_range`: what clamping cuts off and weighing shifts, without letting them
cancel, and noise. For every way this is the mean of its error over draws, over the least error at the same bound on
rows: exactly for the two mechanisms that draw from a grid, over simulated draws for bins. All of it is computed from
the values: on private data as private as they are.

The number of users is varied by taking every user ``scale`` times: shares stay, noise matters less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpcore.contributions import FloatArray, IntArray
from dpcore.data import samples
from dpcore.dataset import Values
from dpcore.mean.value_range import RangeChoice, ValueRangeProblem, WeightedRows, best_joint
from dpcore.private_choice import private_range
from dpcore.private_choice.choice import softmax
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import RESOLUTION, interval_distance

SHARE = 0.99
"""Share of the rows between the two quantiles of the usual rule, which leaves half of a per cent beyond either end."""
SUCCESS = 1.0 - 1e-9
"""Chance that no empty bin is taken, as libraries have it."""
RUNS = 400


@dataclass(frozen=True, eq=False)
class Table:
    """Values with the release that will use the range.

    Attributes:
        values: One per row.
        epsilon: Of the release.
        scale: How many times every user is there.
    """

    values: Values
    epsilon: float
    scale: float = 1.0

    @property
    def users(self) -> float:
        """Return the users, each taken so many times."""
        return self.scale * float(np.unique(self.values.user_codes).size)

    @cached_property
    def at_best(self) -> WeightedRows:
        """Return the rows at the best bound; noise of ``scale`` times the users is that at ``scale`` times epsilon."""
        problem = ValueRangeProblem(self.values, min(self.epsilon * self.scale, 1e3))
        return WeightedRows(problem, self.best.threshold)

    @cached_property
    def best(self) -> RangeChoice:
        """Return the best range and bound in the clear."""
        return best_joint(ValueRangeProblem(self.values, min(self.epsilon * self.scale, 1e3)))

    def ratios(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Return the errors of all pairs of ends over the least one, shape (L, U)."""
        optimum, mean = self.at_best, self.at_best.problem.mean
        low, high = lower - mean, upper - mean
        bias = optimum.cut_below(low)[:, None] + optimum.cut_above(high)[None, :] + optimum.bounding
        noise = optimum.noise * np.maximum(high[None, :] - low[:, None], 0.0)
        return np.asarray(np.hypot(bias, noise) / self.best.error)

    def around(self, centre: float, widths: FloatArray) -> FloatArray:
        """Return the errors of centre ± width over the least one, of the shape of the widths."""
        optimum, offset = self.at_best, centre - self.at_best.problem.mean
        bias = optimum.cut_below(offset - widths) + optimum.cut_above(offset + widths) + optimum.bounding
        return np.asarray(np.hypot(bias, optimum.noise * 2.0 * widths) / self.best.error)

    def tails(self, values: Values, ends: FloatArray, cap: int = 1) -> tuple[IntArray, IntArray]:
        """Return `private_range.tails` of ``scale`` times the users."""
        return tuple(
            np.rint(tail * self.scale).astype(np.int64) for tail in private_range.tails(values, ends, cap)
        )


MIN_CHANCE = 1e-6
"""Centres of a smaller chance are left out of a mean error, where the centre is drawn."""


def of_draw(table: Table, problem: RangeProblem) -> float:
    """Mean error of a draw over the least error, exactly; where the centre is drawn, up to centres hardly ever drawn.

    Args:
        table: The values.
        problem: The question.
    """
    anchor = problem.anchor
    if anchor is None:
        return _with_centre(table, problem)
    cap = int(problem.max_contributions)
    upper = problem.ends(anchor)
    chance_upper = softmax(problem.logits(table.tails(table.values, upper, cap), anchor))
    if problem.lower is not None:
        return float(table.ratios(np.array([anchor]), upper)[0] @ chance_upper)
    mirrored, lower = private_range.mirrored(table.values), -problem.ends(-anchor)
    assert mirrored is not None
    chance_lower = softmax(problem.logits(table.tails(mirrored, -lower, cap), anchor))
    return float(chance_lower @ table.ratios(lower, upper) @ chance_upper)


def _with_centre(table: Table, problem: RangeProblem) -> float:
    """Return the mean over the centres, each with the half-widths beside it."""
    half_users = round(table.users * (RESOLUTION // 2))
    far = interval_distance(*table.tails(table.values, problem.centres), half_users)
    slope = private_range.for_centre(problem) / (2.0 * private_range.centre_sensitivity(problem))
    chances = softmax(problem.centre_log_prior - slope * far)
    total, cap = 0.0, int(problem.max_contributions)
    for index in np.flatnonzero(chances > MIN_CHANCE):
        centre = float(problem.centres[index])
        widths = problem.ends(centre) - centre
        beyond = table.tails(private_range.folded(table.values, centre), widths, cap)  # type: ignore[arg-type]
        law = softmax(problem.logits(beyond, centre))
        total += float(chances[index]) * float(law @ table.around(centre, widths))
    return total / float(chances[chances > MIN_CHANCE].sum())


def of_quantiles(table: Table, problem: RangeProblem) -> float:
    """Return the mean error of two DP quantiles over the grid: equal weights, half of epsilon each, a public target."""
    grid = problem.grid
    ends, out = np.concatenate((-grid[::-1], grid)), (1.0 - SHARE) / 2.0
    # Half of epsilon for either end, and half of that again, as a distance moves the normaliser as well.
    target, slope = out * table.users * RESOLUTION, problem.epsilon / 4.0 / RESOLUTION

    def law(values: Values | None) -> FloatArray:
        assert values is not None
        return softmax(-slope * interval_distance(*table.tails(values, ends), target))

    upper, lower = law(table.values), law(private_range.mirrored(table.values))[::-1]
    # Ends in the wrong order are put in the right one, as whoever calls a library would.
    ordered = table.ratios(ends, ends)
    ordered = np.where(ends[None, :] >= ends[:, None], ordered, ordered.T)
    return float(lower @ ordered @ upper)


def of_bins(table: Table, problem: RangeProblem) -> float:
    """Return the same of noisy counts in bins of doubling width on either side of 0, over simulated draws.

    The outermost bins above a threshold give the ends; an empty one passes it with a chance of 1 - `SUCCESS`. If
    none passes, the whole public range is taken. Each user counts 1 in all, a share in each bin, which is kinder to
    this way than libraries are.
    """
    first, stop = math.floor(math.log2(problem.unit)), math.ceil(math.log2(problem.largest))
    edges = 2.0 ** np.arange(first, stop + 1)
    ends = np.concatenate((-edges[::-1], [0.0], edges))
    _, user_index, counts = np.unique(table.values.user_codes, return_inverse=True, return_counts=True)
    weight = table.scale / counts[user_index]
    inside = np.clip(np.searchsorted(ends, table.values.values, side="right") - 1, 0, ends.size - 2)
    sums = np.bincount(inside, weights=weight, minlength=ends.size - 1)
    # One empty bin stays below b ln(1 / (2 (1 - p))) with chance p; all of them at p^(number of bins).
    bin_chance = SUCCESS ** (1.0 / sums.size)
    threshold = math.log(1.0 / (2.0 * -math.expm1(math.log(bin_chance)))) / problem.epsilon
    noise = np.random.default_rng(0).laplace(0.0, 1.0 / problem.epsilon, (RUNS, sums.size))
    passes = sums + noise >= threshold
    usable = passes.any(axis=1)
    low = np.where(usable, passes.argmax(axis=1), 0)
    high = np.where(usable, sums.size - passes[:, ::-1].argmax(axis=1), sums.size)
    return float(np.mean(table.ratios(ends, ends)[low, high]))


def of_guess(table: Table, factor: float) -> float:
    """Return the error of a range ``factor`` times as wide as the best one on either side of its middle; it is free."""
    lower, upper = table.best.lower, table.best.upper
    return float(table.around((lower + upper) / 2.0, np.array([factor * (upper - lower) / 2.0]))[0])


@dataclass(frozen=True)
class RangeWays:
    """The costs of ways to a range on public samples: mean error over the least one, the largest over the samples.

    Attributes:
        draw: The draw asked for.
        quantiles: Two DP quantiles.
        bins: Noisy counts in bins.
        twice: A range twice as wide as the best, from knowledge.
        ten_times: One ten times as wide.
    """

    draw: float
    quantiles: float
    bins: float
    twice: float
    ten_times: float


SAMPLES = ("shop-events", "item-ratings")
"""Public samples with values."""


def compare_ways(problem: RangeProblem, users: float) -> RangeWays:
    """Return what the ways cost on public samples, each user of which is taken so often that they weigh as so many.

    The grid has as many powers of ten as that of ``problem``, about the best range of each sample; where a centre is
    known, it is the sample's median in one digit, and where L is, the best one.
    """
    costs = []
    for key in SAMPLES:
        values = samples.load(key).values
        assert values is not None
        sizes = np.unique(values.user_codes, return_counts=True)[1]
        # A user below the bound on rows counts in part, so that it takes more of them.
        count = float(np.minimum(sizes, problem.max_contributions).sum()) / problem.max_contributions
        table, span = Table(values, problem.epsilon_release, users / count), problem.largest / problem.unit
        half_width = (table.best.upper - table.best.lower) / 2.0
        midpoint = float(f"{np.median(values.values):.0e}")
        on_sample = replace(
            problem,
            unit=half_width / math.sqrt(span),
            largest=half_width * math.sqrt(span),
            centre=None if problem.centre is None else midpoint,
            lower=None if problem.lower is None else table.best.lower,
            users=users,
        )
        drawn_ways = [cost(table, on_sample) for cost in (of_draw, of_quantiles, of_bins)]
        costs.append([*drawn_ways, of_guess(table, 2.0), of_guess(table, 10.0)])
    return RangeWays(*(float(worst) for worst in np.max(costs, axis=0)))
