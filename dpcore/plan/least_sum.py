"""The split with the least weighted sum of squared errors, with a lower bound for every split and every bound.

A line's least squared error f is concave in v and never rises with its share s, where v = v(1) / s^P. So on a cell
[a, b] of shares it lies above its chord in v, which is convex in s. With a price on shares (Lagrange) the least of
chord plus price has a closed form in every cell, and the sum over the lines, less the price of the whole, is a lower
bound for all splits. Where bounds jump, f is not convex in s and that bound leaves a gap; branch and bound over boxes
of shares closes it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.contributions import FloatArray, IntArray
from dpcore.plan.budget import Budget
from dpcore.plan.curves import Curve
from dpcore.plan.rounding import PARTS

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


def objective(curves: Sequence[Curve], weights: FloatArray, budget: Budget, shares: FloatArray) -> float:
    """Weighted sum of the least squared errors at these shares."""
    return _at(curves, weights, budget, shares)[0]


def _at(
    curves: Sequence[Curve], weights: FloatArray, budget: Budget, shares: FloatArray
) -> tuple[float, FloatArray]:
    """The weighted sum, and the variance of every line's noise over v under its best bound."""
    v = budget.v(shares)
    best = [curve.best(v[j : j + 1]) for j, curve in enumerate(curves)]
    squares = np.array([one.squares[0] for one in best])
    return math.fsum((weights * squares).tolist()), np.array([one.beta[0] for one in best])


def least_sum(curves: Sequence[Curve], weights: FloatArray, budget: Budget) -> Split:
    """The split of the budget with the least weighted sum of squared errors.

    Args:
        curves: One per line.
        weights: How much each squared error counts, above 0, shape (lines,); 1 / wanted^2 times the line's weight.
        budget: What is divided.
    """
    search = _Search(curves, weights, budget)
    lower = search.run()
    proved = all(curve.concave for curve in curves)
    if not proved:
        search.exchange()
    value = search.value
    # The bound holds for this split as well: where it is above the value, rounding has put it there.
    certificate = Certificate(value, min(lower, value), ARGUMENT) if proved else None
    return Split(search.shares, certificate, search.nodes)


class _Search:
    """Boxes of shares by their lower bound; ends are numbers of the grid, -1 for no share at all."""

    def __init__(self, curves: Sequence[Curve], weights: FloatArray, budget: Budget) -> None:
        self.curves, self.weights, self.budget = curves, weights, budget
        self.power = budget.power
        self.grid = np.geomspace(1.0 / PARTS, 1.0, GRID)
        v = budget.v(self.grid)
        self.f = np.array([w * c.best(v).squares for w, c in zip(weights.tolist(), curves, strict=True)])
        # f never falls as v grows; a slope below 0 is rounding.
        slope = np.maximum((self.f[:, :-1] - self.f[:, 1:]) / (v[:-1] - v[1:]), 0.0)
        # Chord in v = whole / s^P: constant + rise / s^P.
        self.rise = slope * budget.whole
        self.constant = self.f[:, 1:] - slope * v[1:]
        self.root = (self.power * self.rise) ** (1.0 / (self.power + 1))
        self.nodes, self.value = 0, math.inf
        lines = len(curves)
        self.shares = np.full(lines, 1.0 / lines)
        self.offer(self.shares)

    def offer(self, shares: FloatArray) -> None:
        """Take a split if it is better, after bounds and shares have been chosen for each other in turns."""
        if not shares.sum() > 0.0:
            return
        s, before = shares / shares.sum(), math.inf
        # The best bounds at these shares, then the best shares under these bounds: neither raises the sum. It ends
        # where both agree, which need not be the least of all.
        for _ in range(_ALTERNATIONS):
            value, beta = _at(self.curves, self.weights, self.budget, s)
            if value < self.value:
                self.value, self.shares = value, s
            if value > before * (1.0 - 1e-9):
                return
            before = value
            # With the bounds fixed, the least sum has shares in proportion to (weight beta)^(1 / (P + 1)).
            other = (self.weights * beta) ** (1.0 / (self.power + 1))
            if not 0.0 < other.sum() < math.inf:
                return
            s = other / other.sum()

    def at(self, price: float, low: IntArray, high: IntArray) -> tuple[float, FloatArray]:
        """(Lower bound at a price, shares at which it stands) in a box."""
        left, right = self.grid[:-1], self.grid[1:]
        # rise / s^P + price s is least where P rise / s^(P + 1) = price.
        s = np.clip(self.root * price ** (-1.0 / (self.power + 1)), left, right)
        value = self.constant + self.rise / s**self.power + price * s
        cells = np.arange(GRID - 1)
        value = np.where((cells >= low[:, None]) & (cells < high[:, None]), value, np.inf)
        best = np.argmin(value, axis=1)
        lines = np.arange(best.size)
        least, where = value[lines, best], s[lines, best]
        # Below the first end of a cell nothing is promised but that an error falls with the share.
        none = (low < 0) & (self.f[:, 0] < least)
        least, where = np.where(none, self.f[:, 0], least), np.where(none, 0.0, where)
        # A box of one point: its chord is the point itself.
        point = (low == high) & (low >= 0)
        if point.any():
            at = np.maximum(low, 0)
            least = np.where(point, self.f[lines, at] + price * self.grid[at], least)
            where = np.where(point, self.grid[at], where)
        return float(least.sum()) - price, where

    def bound(self, low: IntArray, high: IntArray) -> tuple[float, FloatArray, FloatArray]:
        """(Best lower bound of a box over the prices, shares just above and just below the budget)."""
        self.nodes += 1
        best, above, below = -math.inf, self.shares, self.shares
        # Prices are of the order of the objective: they are looked for around it.
        scale = max(self.value if math.isfinite(self.value) else float(self.f[:, -1].sum()), 1e-300)
        least, most = scale * 1e-9, scale * 1e9
        # Weak duality: every price gives a lower bound. It is concave in the price, with slope (sum of shares) - 1, so
        # that it is highest where the shares pass the budget.
        for _ in range(_PRICES):
            price = math.sqrt(least * most)
            value, where = self.at(price, low, high)
            best = max(best, value)
            if where.sum() > 1.0:
                least, above = price, where
            else:
                most, below = price, where
            if most / least < 1.0 + 1e-7:
                break
        return best, above, below

    def run(self) -> float:
        """Branch and bound, until the gap is `GAP`. Returns the lower bound for all splits."""
        lines = len(self.curves)
        low, high = np.full(lines, -1), np.full(lines, GRID - 1)
        heap: list[tuple[float, int, IntArray, IntArray, FloatArray, FloatArray]] = []
        closed = math.inf

        def open_box(low: IntArray, high: IntArray) -> None:
            nonlocal closed
            # Even the smallest shares of such a box are more than the budget: it holds no split.
            if float(self.grid[np.maximum(low, 0)][low >= 0].sum()) > 1.0:
                return
            lower, above, below = self.bound(low, high)
            self.offer(below)
            if np.max(np.abs(above - below)) > 1e-3:
                self.offer(above)
                self.offer((above + below) / 2.0)
            # A box that is not opened keeps its bound: the least over all boxes, opened or not, holds for every split.
            if lower < self.value * (1.0 - GAP):
                heapq.heappush(heap, (lower, self.nodes, low, high, above, below))
            else:
                closed = min(closed, lower)

        open_box(low, high)
        while heap and self.nodes < MAX_NODES:
            lower, _, low, high, above, below = heap[0]
            if lower >= self.value * (1.0 - GAP):
                break
            heapq.heappop(heap)
            cut = self._cut(low, high, above, below)
            if cut is None:
                closed = min(closed, lower)
                continue
            line, at = cut
            # Both halves have the cut as an end, so that no share lies between them.
            first, second = high.copy(), low.copy()
            first[line], second[line] = at, at
            open_box(low, first)
            open_box(second, high)
        return min([closed, *(one[0] for one in heap)])

    def _cut(
        self, low: IntArray, high: IntArray, above: FloatArray, below: FloatArray
    ) -> tuple[int, int] | None:
        """(Line, number of the grid) to cut a box at: where two shares far apart are equally good at one price."""
        tiny = self.grid[0] / 2.0
        apart = np.where(high - low > 1, np.log(np.maximum(above, tiny) / np.maximum(below, tiny)), 0.0)
        line = int(np.argmax(np.abs(apart)))
        if abs(float(apart[line])) < 1e-6:
            line = int(np.argmax(high - low))
            if high[line] - low[line] <= 1:
                return None
            middle = (above[line] + below[line]) / 2.0
        else:
            middle = math.sqrt(max(above[line], tiny) * max(below[line], tiny))
        at = int(np.searchsorted(self.grid, middle))
        return line, min(max(at, int(low[line]) + 1), int(high[line]) - 1)

    def exchange(self) -> None:
        """Move parts of shares from line to line as long as that helps: for lines whose errors have no known form."""
        shares, step, lines = self.shares / self.shares.sum(), 0.5, np.arange(self.shares.size)
        while step > 1e-3 and lines.size > 1:
            # What each line costs now, with a part of its share gone, and with the part of each other line added.
            after = np.vstack([shares, shares * (1.0 - step), shares[None, :] + step * shares[:, None]])
            costs = np.column_stack(
                [
                    weight * curve.best(self.budget.v(after[:, j])).squares
                    for j, (weight, curve) in enumerate(zip(self.weights.tolist(), self.curves, strict=True))
                ]
            )
            with np.errstate(invalid="ignore"):
                change = (costs[1] - costs[0])[:, None] + costs[2:] - costs[0]
            change[lines, lines] = np.inf
            enough, before = -1e-7 * float(costs[0].sum()), shares.copy()
            free = np.ones(lines.size, dtype=bool)
            for at in np.argsort(change, axis=None, kind="stable").tolist():
                giver, taker = divmod(at, lines.size)
                if not change[giver, taker] < enough:
                    break
                if free[giver] and free[taker]:  # The sum parts by lines: moves among others add up.
                    free[[giver, taker]] = False
                    shares[giver] -= step * before[giver]
                    shares[taker] += step * before[giver]
            if free.all():
                step /= 2.0
        value = objective(self.curves, self.weights, self.budget, shares)
        if value < self.value:
            self.value, self.shares = value, shares
