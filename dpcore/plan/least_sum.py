"""The split of a budget: with the least sum of squared errors, or with the smallest largest error over target.

The split with the least weighted sum has a lower bound, for every split and every bound. A line's least squared error
f is concave in v and never rises with its share s, where v = v(1) / s^P. So on a cell [a, b] of shares it lies above
its chord in v, which is convex in s; with whole noise, above the chord less its ``bulge``. With a price on shares
(Lagrange) the least of chord plus price has a closed form in every cell. The sum over the lines, less the price of the
whole budget, is a lower bound for all splits. Where bounds jump, f is not convex in s and that bound leaves a gap;
branch and bound over boxes of shares closes it.

The steps of the search, and what each keeps true (the invariant):

1. Chords (`_Search.__init__`): on each cell no error lies below its chord.
2. Price (`bound_at_price`): at any price, no split in the box has a smaller objective than what is returned.
3. Dual (`find_lower_bound`): the largest of these bounds over the prices is still a bound; the best price lies
   between one at which the lines would buy more than the budget and one at which they would buy at most all of it.
4. Boxes (`search_boxes`): every split lies in an open box or in a closed one, whose bound is in `closed_bound`.
5. Offers (`offer_split`): `best_objective` is the smallest objective of all splits seen, and `shares` is its split.
6. Exchange (`exchange_shares`): shares stay at least 0 and add up to 1; the objective never rises. It is only for
   errors that are not concave, of which no bound is claimed.

The budget that a line needs for a target error, and the split with the smallest largest error over target error,
rest only on the fact that the least error never rises with the budget. For both the error of a mean or variance is that
of its release, after it is moved into its range. It may rise where its bias is large or its bound changes: a line then
needs the budget from which on it reaches its target. The least sum is of errors before that step.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.contributions import FloatArray, IntArray
from dpcore.plan.curves import LineCurve, estimate_squared_errors, measure_squared_errors
from dpcore.plan.parameters import NUM_PARTS, Budget

TARGET_GAP = 1e-4
"""Relative gap at which the search ends."""
NUM_GRID_SHARES = 768
"""Ends of cells, 1.8 % apart. Chords miss their curve by up to 5.7e-3 (measured)."""
MAX_BOXES = 600
_MAX_PRICES, _MAX_ALTERNATIONS = 60, 30
CONCAVITY_ARGUMENT = (
    "each line's least error is concave in the squared noise scale (up to a known margin for whole noise), and its "
    "chords on cells of shares cover all splits and all tried bounds"
)


@dataclass(frozen=True)
class BudgetSplit:
    """Each line's share of the budget, from 0 to 1, as the search for the least sum found it.

    Attributes:
        shares: Of each line, at least 0, adding up to 1, shape (lines,); 0 where the line is dropped.
        certificate: Weighted sum of squared errors beside a lower bound; None where none is claimed.
    """

    shares: FloatArray
    certificate: Certificate | None


def evaluate_split(
    curves: Sequence[LineCurve], line_weights: FloatArray, budget: Budget, shares: FloatArray
) -> tuple[float, FloatArray]:
    """Compute the weighted sum of least squared errors at shares, and the noise slope of each line.

    A noise slope is by how much the variance of the noise grows with v, shape (lines,).
    """
    line_vs = budget.divide(shares)[:, None]
    line_optima = [curve.find_optimum(line_v) for curve, line_v in zip(curves, line_vs, strict=True)]
    squared_errors = np.array([optimum.squared_errors[0] for optimum in line_optima])
    noise_slopes = np.array([optimum.noise_slopes[0] for optimum in line_optima])
    return math.fsum((line_weights * squared_errors).tolist()), noise_slopes


def find_least_sum(curves: Sequence[LineCurve], line_weights: FloatArray, budget: Budget) -> BudgetSplit:
    """Find the split of the budget with the least weighted sum of squared errors.

    Args:
        curves: One per line.
        line_weights: Factor of each squared error, above 0, shape (lines,): 1 / wanted^2 times the line's weight.
        budget: What is divided.
    """
    split_search = _Search(curves, line_weights, budget)
    lower_bound = split_search.search_boxes()
    if not all(curve.is_concave for curve in curves):
        split_search.exchange_shares()
        return BudgetSplit(split_search.shares, None)
    # The bound holds for this split as well: where it is above the value, rounding has put it there.
    lower_bound = min(lower_bound, split_search.best_objective)
    return BudgetSplit(
        split_search.shares, Certificate(split_search.best_objective, lower_bound, CONCAVITY_ARGUMENT)
    )


@dataclass(frozen=True, eq=False)
class _Box:
    """A box of splits: each line's share lies between two points of the grid.

    Attributes:
        low_indices: Index of each line's smallest share in the grid; -1 where it may have no share at all, shape
            (lines,).
        high_indices: Index of its largest share, at least ``low_indices``.
        lower_bound: No split in the box has a smaller objective.
        shares_over_budget: Best shares at a price just too low: they exceed the budget.
        shares_within_budget: Best shares at a price just high enough: they keep the budget.
    """

    low_indices: IntArray
    high_indices: IntArray
    lower_bound: float
    shares_over_budget: FloatArray
    shares_within_budget: FloatArray

    def choose_cut(self, share_grid: FloatArray) -> tuple[int, int] | None:
        """Choose at which line and which index of the grid to cut the box in two; None if no cut is left.

        The line is the one whose two best shares differ most in ratio.
        """
        smallest_share = share_grid[0] / 2.0
        floored_over = np.maximum(self.shares_over_budget, smallest_share)
        floored_within = np.maximum(self.shares_within_budget, smallest_share)
        index_widths = self.high_indices - self.low_indices
        log_ratios = np.where(index_widths > 1, np.abs(np.log(floored_over / floored_within)), 0.0)
        line_index = int(np.argmax(log_ratios))
        cut_share = math.sqrt(floored_over[line_index] * floored_within[line_index])
        if log_ratios[line_index] < 1e-6:
            line_index = int(np.argmax(index_widths))
            if index_widths[line_index] <= 1:
                return None
            cut_share = (self.shares_over_budget[line_index] + self.shares_within_budget[line_index]) / 2.0
        grid_index = int(np.searchsorted(share_grid, cut_share))
        first_cut, last_cut = self.low_indices[line_index] + 1, self.high_indices[line_index] - 1
        return line_index, int(min(max(grid_index, first_cut), last_cut))


class _Search:
    """Branch and bound over boxes of shares for the least weighted sum; the module names its steps and invariants."""

    def __init__(self, curves: Sequence[LineCurve], line_weights: FloatArray, budget: Budget) -> None:
        self.curves, self.weights, self.budget, self.power = curves, line_weights, budget, budget.power
        self.grid = np.geomspace(1.0 / NUM_PARTS, 1.0, NUM_GRID_SHARES)
        grid_vs = budget.divide(self.grid)
        # Weighted squared error of each line at each share of the grid, shape (lines, GRID_SIZE).
        weighted_curves = self._weighted_curves
        self.errors = np.array(
            [
                line_weight * curve.find_optimum(grid_vs).squared_errors
                for line_weight, curve in weighted_curves
            ]
        )
        # Step 1. A concave f lies above the chord between any two of its points. It never falls as v grows: a slope
        # below 0 is rounding, and 0 in its place keeps the chord below f.
        chord_slopes = np.maximum(
            (self.errors[:, :-1] - self.errors[:, 1:]) / (grid_vs[:-1] - grid_vs[1:]), 0.0
        )
        # Chord in v = v(1) / s^P: constant + rise / s^P.
        self.chord_rises = chord_slopes * budget.full_v
        # What whole noise takes the curve below its chord: see `dpcore.plan.curves`.
        weighted_bulges = np.array([weight * curve.bulge for weight, curve in weighted_curves])
        bulge_margins = weighted_bulges[:, None] * ((float(grid_vs[0] / grid_vs[1]) - 1.0) ** 2 / 8.0)
        self.chord_constants = self.errors[:, 1:] - chord_slopes * grid_vs[1:] - bulge_margins
        self.total_margin = float(bulge_margins.sum())
        self.share_factors = (self.power * self.chord_rises) ** (1.0 / (self.power + 1))
        self.num_boxes, self.best_objective = 0, math.inf
        self.shares = np.full(len(curves), 1.0 / len(curves))
        self.offer_split(self.shares)

    @property
    def _weighted_curves(self) -> list[tuple[float, LineCurve]]:
        """Return (weight, curve) of each line."""
        return list(zip(self.weights.tolist(), self.curves, strict=True))

    @property
    def _closing_bound(self) -> float:
        """Return the lower bound at which a box is closed: no split in it is better by more than the allowed gap.

        This is `TARGET_GAP`. No cut makes the margin of whole noise smaller: where it alone exceeds that gap, the
        allowed gap is the sum of both.
        """
        is_hopeless = self.total_margin > TARGET_GAP * self.best_objective
        return self.best_objective * (1.0 - TARGET_GAP) - (self.total_margin if is_hopeless else 0.0)

    def offer_split(self, shares: FloatArray) -> None:
        """Improve a split by alternating best bounds and best shares, and keep the best split on the way.

        Step 5. Invariant: `best_objective` is the smallest objective of all splits so far, and `shares` is its split.
        """
        if not shares.sum() > 0.0:
            return
        split_shares, previous_objective = shares / shares.sum(), math.inf
        # The best bounds at these shares, then the best shares under these bounds: neither raises the sum. It ends
        # where both agree, which need not be the least of all.
        for _ in range(_MAX_ALTERNATIONS):
            split_objective, noise_slopes = evaluate_split(
                self.curves, self.weights, self.budget, split_shares
            )
            if split_objective < self.best_objective:
                self.best_objective, self.shares = split_objective, split_shares
            if split_objective > previous_objective * (1.0 - 1e-9):
                return
            previous_objective = split_objective
            # With the bounds fixed, the least sum has shares in proportion to (weight beta)^(1 / (P + 1)).
            share_proportions = (self.weights * noise_slopes) ** (1.0 / (self.power + 1))
            if not 0.0 < share_proportions.sum() < math.inf:
                return
            split_shares = share_proportions / share_proportions.sum()

    def bound_at_price(
        self, price: float, low_indices: IntArray, high_indices: IntArray
    ) -> tuple[float, FloatArray]:
        """Return the lower bound of a box at a price, and the shares at which it is attained.

        Step 2. Invariant: for every split in the box, objective >= sum of (error + price share) - price, as its
        shares add up to 1 at most. Each summand is at least its smallest value over the line's own interval, which
        is computed here for each line alone.
        """
        # Within a cell, rise / s^P + price s is least where P rise / s^(P + 1) = price, or at an end.
        cell_shares = self.share_factors * price ** (-1.0 / (self.power + 1))
        cell_shares = np.clip(cell_shares, self.grid[:-1], self.grid[1:])
        cell_costs = self.chord_constants + self.chord_rises / cell_shares**self.power + price * cell_shares
        cell_indices, line_indices = np.arange(NUM_GRID_SHARES - 1), np.arange(low_indices.size)
        cell_costs[(cell_indices < low_indices[:, None]) | (cell_indices >= high_indices[:, None])] = np.inf
        best_cells = np.argmin(cell_costs, axis=1)
        least_cell_costs = cell_costs[line_indices, best_cells]
        shares = cell_shares[line_indices, best_cells]
        # Below the first point of the grid the only known property is that an error falls with the share: it is at
        # least that of the first point, and a share costs at least nothing. An interval of one point has no cell.
        includes_zero, end_indices = low_indices < 0, np.maximum(low_indices, 0)
        end_shares = np.where(includes_zero, 0.0, self.grid[end_indices])
        end_costs = self.errors[line_indices, end_indices] + price * end_shares
        best_costs, best_shares = np.where(
            end_costs < least_cell_costs, (end_costs, end_shares), (least_cell_costs, shares)
        )
        return float(best_costs.sum()) - price, best_shares

    def find_lower_bound(self, low_indices: IntArray, high_indices: IntArray) -> _Box:
        """Find the best lower bound of a box over the prices.

        Step 3. Invariants: ``best_bound`` holds for every split in the box (weak duality: each price gives a bound).
        The best price lies between the two: at ``low_price`` the lines would take more than the budget
        (``shares_over_budget``), at ``high_price`` at most all of it (``shares_within_budget``).
        """
        self.num_boxes += 1
        best_bound, shares_over_budget, shares_within_budget = -math.inf, self.shares, self.shares
        # Prices are of the order of the objective: they are looked for around it.
        price_scale = max(
            self.best_objective if math.isfinite(self.best_objective) else float(self.errors[:, -1].sum()),
            1e-300,
        )
        low_price, high_price = price_scale * 1e-9, price_scale * 1e9
        # The bound is concave in the price, with slope (sum of shares) - 1: it is highest where the shares pass the
        # budget.
        for _ in range(_MAX_PRICES):
            price = math.sqrt(low_price * high_price)
            price_bound, shares = self.bound_at_price(price, low_indices, high_indices)
            best_bound = max(best_bound, price_bound)
            if shares.sum() > 1.0:
                low_price, shares_over_budget = price, shares
            else:
                high_price, shares_within_budget = price, shares
            if high_price / low_price < 1.0 + 1e-7:
                break
        return _Box(low_indices, high_indices, best_bound, shares_over_budget, shares_within_budget)

    def search_boxes(self) -> float:
        """Run branch and bound until the gap is `TARGET_GAP`, if it can be; return the lower bound for all splits.

        Step 4. Invariant: every split is in an open box of the heap or in a closed box, and ``closed_bound`` is at
        most the bound of every closed box. So the smallest of both holds for all splits.
        """
        # Boxes by their lower bound; the number settles ties.
        box_heap: list[tuple[float, int, _Box]] = []
        closed_bound = math.inf
        parts_to_bound = [(np.full(len(self.curves), -1), np.full(len(self.curves), NUM_GRID_SHARES - 1))]
        while True:
            for low_indices, high_indices in parts_to_bound:
                # The smallest shares of such a box are more than the budget: it holds no split.
                if float(self.grid[low_indices[low_indices >= 0]].sum()) > 1.0:
                    continue
                box = self.find_lower_bound(low_indices, high_indices)
                self.offer_split(box.shares_within_budget)
                if np.max(np.abs(box.shares_over_budget - box.shares_within_budget)) > 1e-3:
                    self.offer_split(box.shares_over_budget)
                    self.offer_split((box.shares_over_budget + box.shares_within_budget) / 2.0)
                if box.lower_bound < self._closing_bound:
                    heapq.heappush(box_heap, (box.lower_bound, self.num_boxes, box))
                else:
                    closed_bound = min(closed_bound, box.lower_bound)
            if not box_heap or self.num_boxes >= MAX_BOXES or box_heap[0][0] >= self._closing_bound:
                return min([closed_bound, *(lower_bound for lower_bound, _, _ in box_heap)])
            # The open box of the smallest bound is cut in two, or closed where it cannot be cut.
            box = heapq.heappop(box_heap)[2]
            cut_indices = box.choose_cut(self.grid)
            parts_to_bound = []
            if cut_indices is None:
                closed_bound = min(closed_bound, box.lower_bound)
                continue
            line_index, grid_index = cut_indices
            # Both halves have the cut as an end, so that no share lies between them.
            high_indices_of_left, low_indices_of_right = box.high_indices.copy(), box.low_indices.copy()
            high_indices_of_left[line_index], low_indices_of_right[line_index] = grid_index, grid_index
            parts_to_bound = [
                (box.low_indices, high_indices_of_left),
                (low_indices_of_right, box.high_indices),
            ]

    def exchange_shares(self) -> None:
        """Move parts of shares between lines while that helps, for lines whose errors have no known form.

        Step 6. Invariant: shares stay at least 0 and add up to 1. Each round makes the best moves among disjoint
        pairs of lines, whose gains add up; without a gain the step is halved.
        """
        shares, moved_fraction = self.shares / self.shares.sum(), 0.5
        line_indices = np.arange(self.shares.size)
        while moved_fraction > 1e-3 and line_indices.size > 1:
            # The cost of each line now, without a part of its share, and with the part of each other line added.
            raised_shares = shares[None, :] + moved_fraction * shares[:, None]
            trial_shares = np.vstack([shares, shares * (1.0 - moved_fraction), raised_shares])
            line_costs = [
                weight * curve.find_optimum(self.budget.divide(line_shares)).squared_errors
                for line_shares, (weight, curve) in zip(trial_shares.T, self._weighted_curves, strict=True)
            ]
            costs = np.column_stack(line_costs)
            with np.errstate(invalid="ignore"):
                cost_changes = (costs[1] - costs[0])[:, None] + costs[2:] - costs[0]
            cost_changes[line_indices, line_indices] = np.inf
            smallest_gain, moved_amounts = 1e-7 * float(costs[0].sum()), moved_fraction * shares
            unmoved_mask = np.ones(line_indices.size, dtype=bool)
            for pair_number in np.argsort(cost_changes, axis=None, kind="stable").tolist():
                giver_and_taker = giver, taker = divmod(pair_number, line_indices.size)
                if not cost_changes[giver_and_taker] < -smallest_gain:
                    break
                if unmoved_mask[giver] and unmoved_mask[taker]:
                    unmoved_mask[[giver, taker]] = False
                    shares[giver] -= moved_amounts[giver]
                    shares[taker] += moved_amounts[giver]
            if unmoved_mask.all():
                moved_fraction /= 2.0
        new_objective = evaluate_split(self.curves, self.weights, self.budget, shares)[0]
        if new_objective < self.best_objective:
            self.best_objective, self.shares = new_objective, shares


_SMALLEST_AMOUNT, _LARGEST_AMOUNT = 1e-9, 1e9
"""Limits of a line's needed amount of the budget (epsilon, or mu^2)."""
_NUM_AMOUNTS, _NUM_HALVINGS = 400, 45
_STEP_OF_BRACKET, _MAX_STEPS_OF_BRACKET = 1.02, 40


def find_needed_amounts(curves: Sequence[LineCurve], target_errors: FloatArray, budget: Budget) -> FloatArray:
    """Find how much of the additive budget (epsilon, or mu^2) each line needs to reach its target error.

    Args:
        curves: One per line.
        target_errors: Target errors, above 0, in the unit of each line, shape (lines,).
        budget: Its noise; how much there is does not matter.

    Returns:
        Shape (lines,); infinite where no budget is enough: `LineCurve.floor` says what stays.
    """
    needed_amounts = _estimate_needed_amounts(curves, target_errors, budget)
    for line_index, (curve, target_error) in enumerate(zip(curves, target_errors.tolist(), strict=True)):
        if getattr(curve, "measure_release", None) is not None:
            estimate = float(needed_amounts[line_index])
            needed_amounts[line_index] = _refine_needed_amount(curve, target_error, budget.power, estimate)
    return needed_amounts


def _refine_needed_amount(curve: LineCurve, target_error: float, power: int, estimate: float) -> float:
    """Find what `_estimate_needed_amount` estimates, by the errors of releases; 0 and infinity stay."""

    def is_enough(amount: float) -> bool:
        """Return True if the line reaches its target error with this amount."""
        squared_error = measure_squared_errors(curve, np.array([amount ** -float(power)]))[0]
        return bool(squared_error <= target_error**2)

    if not _SMALLEST_AMOUNT < estimate < math.inf:
        return estimate
    too_small_amount, enough_amount = estimate / _STEP_OF_BRACKET, estimate * _STEP_OF_BRACKET
    for _ in range(_MAX_STEPS_OF_BRACKET):
        if not is_enough(enough_amount):
            too_small_amount, enough_amount = enough_amount, enough_amount * _STEP_OF_BRACKET
        elif is_enough(too_small_amount):
            too_small_amount, enough_amount = too_small_amount / _STEP_OF_BRACKET, too_small_amount
        else:
            break
    while enough_amount / too_small_amount > 1.0 + 1e-9:
        middle_amount = math.sqrt(too_small_amount * enough_amount)
        if is_enough(middle_amount):
            enough_amount = middle_amount
        else:
            too_small_amount = middle_amount
    return enough_amount


def _estimate_needed_amounts(
    curves: Sequence[LineCurve], target_errors: FloatArray, budget: Budget
) -> FloatArray:
    """Estimate what `find_needed_amounts` finds, by interpolated errors of releases; arguments likewise."""
    return np.array(
        [
            _estimate_needed_amount(curve, target_error, budget.power)
            for curve, target_error in zip(curves, target_errors.tolist(), strict=True)
        ]
    )


def _estimate_needed_amount(curve: LineCurve, target_error: float, power: int) -> float:
    """Estimate the least budget from which on one line reaches its target error: epsilon, or mu^2 with a power of 2.

    It is 0 if the line needs no budget, and infinite if no budget is enough.
    """

    def is_enough(v: FloatArray) -> list[bool]:
        """Return for each v whether the line reaches its target error there."""
        return list(estimate_squared_errors(curve, v) <= target_error**2)

    # The error hardly ever rises with the budget: of a moved number it may, if its bias is large.
    grid_amounts = np.geomspace(_SMALLEST_AMOUNT, _LARGEST_AMOUNT, _NUM_AMOUNTS)
    enough_mask = is_enough(grid_amounts ** -float(power))
    if not enough_mask[-1]:
        return math.inf
    if all(enough_mask):
        return 0.0 if is_enough(np.array([math.inf]))[0] else _SMALLEST_AMOUNT
    first_index = len(enough_mask) - enough_mask[::-1].index(False)
    too_small_amount, enough_amount = float(grid_amounts[first_index - 1]), float(grid_amounts[first_index])
    for _ in range(_NUM_HALVINGS):
        middle_amount = math.sqrt(too_small_amount * enough_amount)
        is_midpoint_enough = is_enough(np.array([middle_amount ** -float(power)]))[0]
        too_small_amount, enough_amount = (
            (too_small_amount, middle_amount) if is_midpoint_enough else (middle_amount, enough_amount)
        )
    return enough_amount


def split_by_largest_error(
    curves: Sequence[LineCurve], target_errors: FloatArray, budget: Budget
) -> FloatArray:
    """Find the shares that minimise the largest error over target error, by bisection on that ratio.

    Args:
        curves: One per line.
        target_errors: Target errors, above 0, shape (lines,).
        budget: What is divided.

    Returns:
        Shares that add up to 1, shape (lines,).
    """
    full_amount = math.pow(budget.full_v, -1.0 / budget.power)

    def compute_shares(error_ratio: float) -> FloatArray:
        """Return the shares at which every line has ``error_ratio`` times its target error."""
        return _estimate_needed_amounts(curves, error_ratio * target_errors, budget) / full_amount

    # At the level ``high`` the needed shares are at most the budget, at ``low`` more.
    unreachable_ratio, reachable_ratio = 1e-9, 1.0
    while compute_shares(reachable_ratio).sum() > 1.0 and reachable_ratio < 1e12:
        unreachable_ratio, reachable_ratio = reachable_ratio, reachable_ratio * 4.0
    while reachable_ratio / unreachable_ratio > 1.0 + 1e-6:
        middle_ratio = math.sqrt(unreachable_ratio * reachable_ratio)
        unreachable_ratio, reachable_ratio = (
            (unreachable_ratio, middle_ratio)
            if compute_shares(middle_ratio).sum() <= 1.0
            else (middle_ratio, reachable_ratio)
        )
    needed_shares = compute_shares(reachable_ratio)
    # The rest is divided in proportion; a line that needs nothing has no share.
    if needed_shares.sum() > 0.0:
        return np.asarray(needed_shares / needed_shares.sum())
    return np.full(needed_shares.shape, 1.0 / needed_shares.size)
