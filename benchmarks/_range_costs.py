"""The mean error of a private range, and of other ways to one, over that of the best range in the clear.

The error is that of `dpcore.mean.value_range`: what clamping cuts off and weighing shifts, without letting them cancel,
and noise, at the same bound on rows. It is exact for the two mechanisms that draw from a grid, and a simulation for
bins. Taking every user ``scale`` times varies the number of users: shares stay, noise matters less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray
from dpcore.dataset import Values
from dpcore.mean.value_range import RangeChoice, ValueRangeProblem, WeightedRows, find_best_joint
from dpcore.private_choice import private_range
from dpcore.private_choice.choice import convert_to_probabilities
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import RESOLUTION, compute_interval_distance

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
    def best(self) -> RangeChoice:
        """Return the best range and bound in the clear."""
        return find_best_joint(self._problem)

    @property
    def half_width(self) -> float:
        """Return half of the width of the best range."""
        return (self.best.upper - self.best.lower) / 2.0

    @cached_property
    def _problem(self) -> ValueRangeProblem:
        """Return the problem of the best range; noise of ``scale`` times the users is that at as many times epsilon."""
        return ValueRangeProblem(self.values, min(self.epsilon * self.scale, 1e3))

    @cached_property
    def _rows(self) -> WeightedRows:
        """Return the rows weighted at the best bound."""
        return WeightedRows(self._problem, self.best.threshold)

    def compute_error_ratios(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> FloatArray:
        """Return the errors of ranges at the best bound over the least error; ends broadcast, and may be swapped."""
        ends = np.asarray(lower), np.asarray(upper)
        return self._rows.compute_error_parts(np.minimum(*ends), np.maximum(*ends)).error / self.best.error

    def scale_tails(self, tails: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray]:
        """Return `private_range.sum_tails` of ``scale`` times the users."""
        users_above, users_reaching = (np.rint(tail * self.scale).astype(np.int64) for tail in tails)
        return users_above, users_reaching


MIN_CHANCE = 1e-6
"""Centres of a smaller chance are left out of a mean error, where the centre is drawn."""


def compute_draw_cost(table: Table, problem: RangeProblem) -> float:
    """Return the mean error of a draw over the least error; exact, but for centres that are hardly ever drawn."""
    anchor = problem.anchor
    if anchor is None:
        half_users = round(table.users * (RESOLUTION // 2))
        distances = compute_interval_distance(
            *table.scale_tails(private_range.sum_tails(table.values, problem.centres)), half_users
        )
        slope = problem.epsilon_of_centre / (2.0 * problem.centre_sensitivity)
        chances = convert_to_probabilities(problem.centre_log_prior - slope * distances)
        index = np.flatnonzero(chances > MIN_CHANCE)
        costs = [_compute_end_cost(table, problem, float(centre)) for centre in problem.centres[index]]
        return float(np.average(costs, weights=chances[index]))
    return _compute_end_cost(table, problem, anchor)


def _compute_end_cost(table: Table, problem: RangeProblem, anchor: float) -> float:
    """Return the mean error of the draws beside an anchor over the least error."""
    chances = [
        convert_to_probabilities(problem.compute_logits(table.scale_tails(query), anchor))
        for query in private_range.list_tails(problem, table.values, anchor)
    ]
    upper = problem.list_ends(anchor)
    if problem.anchor is None:
        widths = problem.list_widths(anchor)
        return float(table.compute_error_ratios(anchor - widths, anchor + widths) @ chances[0])
    if problem.lower is not None:
        return float(table.compute_error_ratios(anchor, upper) @ chances[0])
    lower = -problem.list_ends(-anchor)
    return float(chances[0] @ table.compute_error_ratios(lower[:, None], upper) @ chances[1])


def compute_quantile_cost(table: Table, problem: RangeProblem) -> float:
    """Return the mean error of two DP quantiles over the grid: equal weights, half of epsilon each, a public target."""
    ends = np.concatenate((-problem.grid[::-1], problem.grid))
    # Half of epsilon for either end, and half of that again, as a distance moves the normaliser as well.
    target, slope = (1.0 - SHARE) / 2.0 * table.users * RESOLUTION, problem.epsilon / 4.0 / RESOLUTION
    upper, lower = (
        convert_to_probabilities(
            -slope
            * compute_interval_distance(*table.scale_tails(private_range.sum_tails(values, ends)), target)
        )
        for values in (table.values, private_range.negate_values(table.values))
    )
    # Ends in the wrong order are put in the right one, as whoever calls a library would.
    return float(lower[::-1] @ table.compute_error_ratios(ends[:, None], ends) @ upper)


def compute_bin_cost(table: Table, problem: RangeProblem) -> float:
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
    return float(np.mean(table.compute_error_ratios(ends[low], ends[high])))


def compute_guess_cost(table: Table, factor: float) -> float:
    """Return the error of a range ``factor`` times as wide as the best one on either side of its middle; it is free."""
    centre, half_width = (table.best.lower + table.best.upper) / 2.0, table.half_width
    return float(table.compute_error_ratios(centre - factor * half_width, centre + factor * half_width))
