"""The error over both bounds: where it is looked at, and what it is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcore.common.progress import ShouldStop
from dpcore.contributions import FloatArray
from dpcore.per_group.means import mean_error
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem, Statistic

LARGE = 2_000_000
"""Pairs above which map and curves have a third of the points, and the best cap is within 1 % and not 0.1 %."""
MEAN_COLUMNS, MEAN_ROWS = 9, 9


@dataclass(frozen=True)
class Pair:
    """A pair of bounds with its error.

    Attributes:
        max_groups: L0.
        max_amount: L-infinity, in the statistic's unit; of a mean, in rows.
        error: By the problem's objective.
    """

    max_groups: int
    max_amount: float
    error: float


@dataclass(frozen=True, eq=False)
class ErrorMap:
    """The error over both bounds.

    Attributes:
        groups: L0, ascending, shape (columns,).
        amounts: L-infinity, ascending, shape (rows,).
        errors: Shape (rows, columns).
        sampling: What the random choice of groups adds to the error, as in `dpcore.per_group.ErrorParts`, of the same
            shape; None where the error has no known parts.
        noise: What the noise adds, likewise.
    """

    groups: FloatArray
    amounts: FloatArray
    errors: FloatArray
    sampling: FloatArray | None = None
    noise: FloatArray | None = None

    def squares(self) -> dict[str, FloatArray] | None:
        """Bias, sampling and noise as mean squares, which add up to that of the error; None without known parts.

        Where the error is a mean of the groups' roots, the parts share its square as they share the error itself.
        """
        if self.sampling is None or self.noise is None:
            return None
        bias = np.maximum(self.errors - self.sampling - self.noise, 0.0)
        named = {"bias": bias, "sampling": self.sampling, "noise": self.noise}
        return {name: self.errors * part for name, part in named.items()}


@dataclass(frozen=True, eq=False)
class Bounded:
    """What both bounds cut, each distinct and ascending with how many there are of it.

    Attributes:
        groups: Groups per user.
        users: How many users are in so many, likewise.
        amounts: What a user adds to a group, regardless of its sign.
        pairs: How many pairs of a user and a group add that.
    """

    groups: FloatArray
    users: FloatArray
    amounts: FloatArray
    pairs: FloatArray


def bounded(problem: PerGroupProblem) -> Bounded:
    """Return what the bounds of a question on pairs cut."""
    groups, users = np.unique(problem.pairs.groups_per_user, return_counts=True)
    sizes = problem.pairs.rows if problem.parameters.statistic is Statistic.MEAN else problem.amounts
    amounts, pairs = np.unique(np.abs(sizes), return_counts=True)
    return Bounded(*(column.astype(np.float64) for column in (groups, users, amounts, pairs)))


class Mapped(Protocol):
    """What the figure of the error over both bounds reads."""

    @property
    def parameters(self) -> PerGroupParameters:
        """Return what was asked."""

    @property
    def map(self) -> ErrorMap:
        """Return the error over both bounds."""

    @property
    def pair(self) -> Pair | None:
        """Return the best pair."""

    @property
    def tuner(self) -> Pair | None:
        """Return the pair of PipelineDP's rule."""

    @property
    def own(self) -> Pair | None:
        """Return the person's own pair."""

    @property
    def pair_error(self) -> float:
        """Return the error of the best pair, or of releasing nothing."""

    @property
    def bounded(self) -> Bounded:
        """Return what the bounds cut."""


def _numbers(most: int, count: int, extra: list[int]) -> FloatArray:
    """Whole numbers from 1 to the largest, evenly spread on a log axis."""
    spread = np.rint(np.geomspace(1.0, max(most, 1), count))
    return np.unique(np.r_[spread, [float(x) for x in extra if 1 <= x <= most]])


def axes(
    problem: PerGroupProblem, pair: Pair | None, columns: int, rows: int
) -> tuple[FloatArray, FloatArray]:
    """Return both bounds over their ranges, those of the pair among them."""
    most, largest = int(problem.pairs.groups_per_user.max()), float(np.abs(problem.amounts).max())
    if problem.pairs.num_pairs > LARGE:
        rows //= 3
    groups = _numbers(most, columns, [] if pair is None else [pair.max_groups])
    if problem.whole:
        return groups, _numbers(int(largest), rows, [] if pair is None else [int(pair.max_amount)])
    sizes = np.abs(problem.amounts)
    positive = sizes[sizes > 0.0]
    low = max(float(positive.min()), largest / 1e4) if positive.size else 1.0
    amounts = np.geomspace(low, max(largest, low * 1.01), rows)
    return groups, np.unique(np.r_[amounts, [] if pair is None else [pair.max_amount]])


def row_by_row(
    groups: FloatArray,
    amounts: FloatArray,
    row: Callable[[float], FloatArray],
    pair: Pair | None,
    should_stop: ShouldStop,
) -> ErrorMap:
    """Return the map row by row, that of the pair first; where it is stopped, as many as there are.

    ``row`` gives the errors, shape (columns,), or these with what sampling and noise add, shape (3, columns).
    """
    first = pair.max_amount if pair is not None else float(amounts[-1])
    kept: dict[float, FloatArray] = {}
    for amount in sorted(amounts.tolist(), key=lambda x: (x != first, x)):
        if kept and should_stop():
            break
        kept[amount] = row(amount)
    done = np.array(sorted(kept))
    found = np.array([kept[amount] for amount in done.tolist()])
    return ErrorMap(groups, done, found) if found.ndim == 2 else ErrorMap(groups, done, *found.swapaxes(0, 1))


def of_means(problem: PerGroupProblem, should_stop: ShouldStop) -> ErrorMap:
    """That of means, each place of which takes a look at all pairs."""
    groups = _numbers(int(problem.pairs.groups_per_user.max()), MEAN_COLUMNS, [])
    amounts = _numbers(int(problem.pairs.rows.max()), MEAN_ROWS, [])

    def row(amount: float) -> FloatArray:
        return np.array([mean_error(problem, int(l0), int(amount)) for l0 in groups])

    return row_by_row(groups, amounts, row, None, should_stop)
