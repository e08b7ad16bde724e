"""The split of a budget: with the least sum of squared errors, or with the smallest largest error over target.

The split with the least weighted sum has a lower bound, for every split and every bound. A line's least squared error
f is concave in v and never rises with its share s, where v = v(1) / s^P. So on a cell [a, b] of shares it lies above
its chord in v, which is convex in s. With a price on shares (Lagrange) the least of chord plus price has a closed
form in every cell, and the sum over the lines, less the price of the whole budget, is a lower bound for all splits.
Where bounds jump, f is not convex in s and that bound leaves a gap; branch and bound over boxes of shares closes it.

The search has three steps. `find_lower_bound` bounds one box over prices. `search_boxes` splits the box of the
smallest bound until the gap is `GAP`. `offer_split` improves each split on the way by alternating bounds and
shares. `exchange_shares` improves a split whose errors have no known form, without a bound.

The budget that a line needs for a target error, and the split with the smallest largest error over target error,
rest only on the fact that the least error never rises with the budget.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.contributions import FloatArray, IntArray
from dpcore.plan.curves import Curve
from dpcore.plan.lines import NUM_PARTS, Budget

GAP = 1e-4
"""Relative gap at which the search ends."""
GRID = 768
"""Ends of cells: neighbours are 1.8 % apart in the share. Chords lie below their curve; where the best bound jumps
within a cell they miss it by up to 5.7e-3 of it, as measured."""
MAX_NODES = 600
_PRICES, _ALTERNATIONS = 60, 30
ARGUMENT = (
    "every line's least error is concave in the square of its noise scale, and the cells of shares between chords of "
    "it cover all splits and all bounds that were looked at"
)


@dataclass(frozen=True)
class Split:
    """A division of the budget.

    Attributes:
        shares: Of each line, at least 0, adding up to 1, shape (lines,); 0 where the line is dropped.
        certificate: Weighted sum of squared errors beside a lower bound; None where none is claimed.
        nodes: Boxes of shares that were looked at.
    """

    shares: FloatArray
    certificate: Certificate | None
    nodes: int


def evaluate_objective(
    curves: Sequence[Curve], weights: FloatArray, budget: Budget, shares: FloatArray
) -> float:
    """Evaluate the weighted sum of the least squared errors at these shares."""
    return _evaluate(curves, weights, budget, shares)[0]


def _evaluate(
    curves: Sequence[Curve], weights: FloatArray, budget: Budget, shares: FloatArray
) -> tuple[float, FloatArray]:
    """Evaluate the weighted sum, and the variance of every line's noise over v under its best bound."""
    line_vs = budget.divide(shares)
    optima = [curve.best(line_vs[line_index : line_index + 1]) for line_index, curve in enumerate(curves)]
    squares = np.array([optimum.squares[0] for optimum in optima])
    return math.fsum((weights * squares).tolist()), np.array([optimum.beta[0] for optimum in optima])


def find_least_sum(curves: Sequence[Curve], weights: FloatArray, budget: Budget) -> Split:
    """Find the split of the budget with the least weighted sum of squared errors.

    Args:
        curves: One per line.
        weights: How much each squared error counts, above 0, shape (lines,); 1 / wanted^2 times the line's weight.
        budget: What is divided.
    """
    search = _Search(curves, weights, budget)
    lower_bound = search.search_boxes()
    is_proved = all(curve.is_concave for curve in curves)
    if not is_proved:
        search.exchange_shares()
    value = search.value
    # The bound holds for this split as well: where it is above the value, rounding has put it there.
    certificate = Certificate(value, min(lower_bound, value), ARGUMENT) if is_proved else None
    return Split(search.shares, certificate, search.nodes)


class _Search:
    """Boxes of shares by their lower bound; a box ends at indices of the grid, -1 for no share at all."""

    def __init__(self, curves: Sequence[Curve], weights: FloatArray, budget: Budget) -> None:
        self.curves, self.weights, self.budget = curves, weights, budget
        self.power = budget.power
        self.grid = np.geomspace(1.0 / NUM_PARTS, 1.0, GRID)
        grid_vs = budget.divide(self.grid)
        self.errors = np.array(
            [
                weight * curve.best(grid_vs).squares
                for weight, curve in zip(weights.tolist(), curves, strict=True)
            ]
        )
        # f never falls as v grows; a slope below 0 is rounding.
        slopes = np.maximum((self.errors[:, :-1] - self.errors[:, 1:]) / (grid_vs[:-1] - grid_vs[1:]), 0.0)
        # Chord in v = whole / s^P: constant + rise / s^P.
        self.chord_slopes = slopes * budget.full_v
        self.chord_constants = self.errors[:, 1:] - slopes * grid_vs[1:]
        self.share_factors = (self.power * self.chord_slopes) ** (1.0 / (self.power + 1))
        self.nodes, self.value = 0, math.inf
        lines = len(curves)
        self.shares = np.full(lines, 1.0 / lines)
        self.offer_split(self.shares)

    def offer_split(self, shares: FloatArray) -> None:
        """Accept a split if it is better, after bounds and shares have been optimised in turns.

        Invariant: `value` is the smallest objective of all splits so far, and `shares` is its split.
        """
        if not shares.sum() > 0.0:
            return
        normalised, previous_value = shares / shares.sum(), math.inf
        # The best bounds at these shares, then the best shares under these bounds: neither raises the sum. It ends
        # where both agree, which need not be the least of all.
        for _ in range(_ALTERNATIONS):
            value, beta = _evaluate(self.curves, self.weights, self.budget, normalised)
            if value < self.value:
                self.value, self.shares = value, normalised
            if value > previous_value * (1.0 - 1e-9):
                return
            previous_value = value
            # With the bounds fixed, the least sum has shares in proportion to (weight beta)^(1 / (P + 1)).
            share_weights = (self.weights * beta) ** (1.0 / (self.power + 1))
            if not 0.0 < share_weights.sum() < math.inf:
                return
            normalised = share_weights / share_weights.sum()

    def bound_at_price(self, price: float, low: IntArray, high: IntArray) -> tuple[float, FloatArray]:
        """Return the lower bound of a box at a price, and the shares at which it is attained."""
        left_ends, right_ends = self.grid[:-1], self.grid[1:]
        # rise / s^P + price s is least where P rise / s^(P + 1) = price.
        cell_shares = np.clip(self.share_factors * price ** (-1.0 / (self.power + 1)), left_ends, right_ends)
        cell_costs = self.chord_constants + self.chord_slopes / cell_shares**self.power + price * cell_shares
        cells = np.arange(GRID - 1)
        cell_costs = np.where((cells >= low[:, None]) & (cells < high[:, None]), cell_costs, np.inf)
        best_cell = np.argmin(cell_costs, axis=1)
        lines = np.arange(best_cell.size)
        least_costs, best_shares = cell_costs[lines, best_cell], cell_shares[lines, best_cell]
        # Below the first end of the grid, the only known property is that an error falls with the share.
        is_without_share = (low < 0) & (self.errors[:, 0] < least_costs)
        least_costs, best_shares = (
            np.where(is_without_share, self.errors[:, 0], least_costs),
            np.where(is_without_share, 0.0, best_shares),
        )
        # A box of one point: its chord is the point itself.
        is_point = (low == high) & (low >= 0)
        if is_point.any():
            grid_index = np.maximum(low, 0)
            least_costs = np.where(
                is_point, self.errors[lines, grid_index] + price * self.grid[grid_index], least_costs
            )
            best_shares = np.where(is_point, self.grid[grid_index], best_shares)
        return float(least_costs.sum()) - price, best_shares

    def find_lower_bound(self, low: IntArray, high: IntArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the best lower bound of a box over the prices, and the shares just above and below the budget.

        Invariant: `shares_above` exceed the budget at the smaller price, `shares_below` keep it at the larger
        one.
        """
        self.nodes += 1
        best_bound, shares_above, shares_below = -math.inf, self.shares, self.shares
        # Prices are of the order of the objective: they are looked for around it.
        scale = max(self.value if math.isfinite(self.value) else float(self.errors[:, -1].sum()), 1e-300)
        smallest_price, largest_price = scale * 1e-9, scale * 1e9
        # Weak duality: every price gives a lower bound. It is concave in the price, with slope (sum of shares) - 1, so
        # that it is highest where the shares pass the budget.
        for _ in range(_PRICES):
            price = math.sqrt(smallest_price * largest_price)
            value, price_shares = self.bound_at_price(price, low, high)
            best_bound = max(best_bound, value)
            if price_shares.sum() > 1.0:
                smallest_price, shares_above = price, price_shares
            else:
                largest_price, shares_below = price, price_shares
            if largest_price / smallest_price < 1.0 + 1e-7:
                break
        return best_bound, shares_above, shares_below

    def search_boxes(self) -> float:
        """Run branch and bound until the gap is `GAP`; return the lower bound for all splits.

        Invariant: every split is in an open box of the heap or in a closed box, and `closed_bound` is at most
        the bound of every closed box. So the smallest of both holds for all splits.
        """
        lines = len(self.curves)
        low, high = np.full(lines, -1), np.full(lines, GRID - 1)
        heap: list[tuple[float, int, IntArray, IntArray, FloatArray, FloatArray]] = []
        closed_bound = math.inf

        def open_box(low: IntArray, high: IntArray) -> None:
            nonlocal closed_bound
            # Even the smallest shares of such a box are more than the budget: it holds no split.
            if float(self.grid[np.maximum(low, 0)][low >= 0].sum()) > 1.0:
                return
            lower_bound, shares_above, shares_below = self.find_lower_bound(low, high)
            self.offer_split(shares_below)
            if np.max(np.abs(shares_above - shares_below)) > 1e-3:
                self.offer_split(shares_above)
                self.offer_split((shares_above + shares_below) / 2.0)
            # A closed box keeps its bound: the smallest over all boxes, open or closed, holds for every split.
            if lower_bound < self.value * (1.0 - GAP):
                heapq.heappush(heap, (lower_bound, self.nodes, low, high, shares_above, shares_below))
            else:
                closed_bound = min(closed_bound, lower_bound)

        open_box(low, high)
        while heap and self.nodes < MAX_NODES:
            lower_bound, _, low, high, shares_above, shares_below = heap[0]
            if lower_bound >= self.value * (1.0 - GAP):
                break
            heapq.heappop(heap)
            box_cut = self._choose_cut(low, high, shares_above, shares_below)
            if box_cut is None:
                closed_bound = min(closed_bound, lower_bound)
                continue
            line_index, grid_index = box_cut
            # Both halves have the cut as an end, so that no share lies between them.
            first_high, second_low = high.copy(), low.copy()
            first_high[line_index], second_low[line_index] = grid_index, grid_index
            open_box(low, first_high)
            open_box(second_low, high)
        return min([closed_bound, *(open_node[0] for open_node in heap)])

    def _choose_cut(
        self, low: IntArray, high: IntArray, shares_above: FloatArray, shares_below: FloatArray
    ) -> tuple[int, int] | None:
        """Choose (line, index of the grid) to split a box: where two distant shares are equally good at one price."""
        tiny = self.grid[0] / 2.0
        log_distances = np.where(
            high - low > 1, np.log(np.maximum(shares_above, tiny) / np.maximum(shares_below, tiny)), 0.0
        )
        line_index = int(np.argmax(np.abs(log_distances)))
        if abs(float(log_distances[line_index])) < 1e-6:
            line_index = int(np.argmax(high - low))
            if high[line_index] - low[line_index] <= 1:
                return None
            midpoint = (shares_above[line_index] + shares_below[line_index]) / 2.0
        else:
            midpoint = math.sqrt(max(shares_above[line_index], tiny) * max(shares_below[line_index], tiny))
        grid_index = int(np.searchsorted(self.grid, midpoint))
        return line_index, min(max(grid_index, int(low[line_index]) + 1), int(high[line_index]) - 1)

    def exchange_shares(self) -> None:
        """Move parts of shares between lines while that helps, for lines whose errors have no known form.

        Invariant: shares stay at least 0 and add up to 1. Each round makes the best moves among disjoint pairs
        of lines, whose gains add up; without a gain the step is halved.
        """
        shares, step, lines = self.shares / self.shares.sum(), 0.5, np.arange(self.shares.size)
        while step > 1e-3 and lines.size > 1:
            # The cost of each line now, without a part of its share, and with the part of each other line added.
            candidates = np.vstack([shares, shares * (1.0 - step), shares[None, :] + step * shares[:, None]])
            costs = np.column_stack(
                [
                    weight * curve.best(self.budget.divide(candidates[:, j])).squares
                    for j, (weight, curve) in enumerate(zip(self.weights.tolist(), self.curves, strict=True))
                ]
            )
            with np.errstate(invalid="ignore"):
                change = (costs[1] - costs[0])[:, None] + costs[2:] - costs[0]
            change[lines, lines] = np.inf
            min_gain, old_shares = -1e-7 * float(costs[0].sum()), shares.copy()
            is_free = np.ones(lines.size, dtype=bool)
            for move in np.argsort(change, axis=None, kind="stable").tolist():
                giver_index, taker_index = divmod(move, lines.size)
                if not change[giver_index, taker_index] < min_gain:
                    break
                if (
                    is_free[giver_index] and is_free[taker_index]
                ):  # The sum parts by lines: moves among others add up.
                    is_free[[giver_index, taker_index]] = False
                    shares[giver_index] -= step * old_shares[giver_index]
                    shares[taker_index] += step * old_shares[giver_index]
            if is_free.all():
                step /= 2.0
        value = evaluate_objective(self.curves, self.weights, self.budget, shares)
        if value < self.value:
            self.value, self.shares = value, shares


_SMALLEST_AMOUNT, _LARGEST_AMOUNT = 1e-9, 1e9
"""Between these amounts of a budget (epsilon, or mu^2) a need is looked for."""
_COARSE, _DIGITS = 400, 45


def find_needed_budgets(curves: Sequence[Curve], target_errors: FloatArray, budget: Budget) -> FloatArray:
    """Find how much of the additive budget (epsilon, or mu^2) each line needs to reach its target error.

    Args:
        curves: One per line.
        target_errors: Wanted errors, above 0, in the unit of each line, shape (lines,).
        budget: Its noise; how much there is does not matter.

    Returns:
        Shape (lines,); infinite where no budget is enough: `Curve.floor` says what stays.
    """
    return np.array(
        [
            _find_needed(curve, target_error, budget)
            for curve, target_error in zip(curves, target_errors.tolist(), strict=True)
        ]
    )


def _find_needed(curve: Curve, target_error: float, budget: Budget) -> float:
    """Find the need of one line."""
    amounts = np.geomspace(_SMALLEST_AMOUNT, _LARGEST_AMOUNT, _COARSE)
    is_sufficient = curve.best(amounts ** -float(budget.power)).squares <= target_error**2
    if not is_sufficient[-1]:
        return math.inf
    # The error never rises with the budget: from the first amount that is enough on, each is.
    first_sufficient = int(np.argmax(is_sufficient))
    if first_sufficient == 0:
        return (
            0.0 if bool(curve.best(np.array([math.inf])).squares[0] <= target_error**2) else _SMALLEST_AMOUNT
        )
    low, high = float(amounts[first_sufficient - 1]), float(amounts[first_sufficient])
    for _ in range(_DIGITS):
        midpoint = math.sqrt(low * high)
        is_enough = bool(
            curve.best(np.array([midpoint ** -float(budget.power)])).squares[0] <= target_error**2
        )
        low, high = (low, midpoint) if is_enough else (midpoint, high)
    return high


def split_by_largest_error(curves: Sequence[Curve], target_errors: FloatArray, budget: Budget) -> FloatArray:
    """Find the split that minimises the largest error over target error, by bisection on that number.

    Args:
        curves: One per line.
        target_errors: Wanted errors, above 0, shape (lines,).
        budget: What is divided.

    Returns:
        Shares that add up to 1, shape (lines,).
    """
    full_amount = float(budget.compute_amount(budget.full_v))

    def compute_shares(level: float) -> FloatArray:
        return find_needed_budgets(curves, level * target_errors, budget) / full_amount

    low, high = 1e-9, 1.0
    while compute_shares(high).sum() > 1.0 and high < 1e12:
        low, high = high, high * 4.0
    while high / low > 1.0 + 1e-6:
        midpoint = math.sqrt(low * high)
        low, high = (low, midpoint) if compute_shares(midpoint).sum() <= 1.0 else (midpoint, high)
    needed_shares = compute_shares(high)
    total = needed_shares.sum()
    # The rest is divided in proportion; a line that needs nothing has no share.
    return (
        np.asarray(needed_shares / total)
        if total > 0.0
        else np.full(needed_shares.shape, 1.0 / needed_shares.size)
    )
