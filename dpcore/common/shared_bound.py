"""One bound for several data sets: the one whose worst regret is least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common.branch_and_bound import Split, minimise
from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray, log_spaced

STEPS = 200
"""Halvings of an interval at most; float64 has no number left between its ends long before."""


TOLERANCE = 1e-6
"""Relative gap at which intervals of bounds are left alone, where only parts of the errors have a known shape."""
FIRST_POINTS = 129

Parts = tuple[FloatArray, FloatArray, FloatArray]
"""Of an error at bounds of shape (k,), each of that shape: a part that never rises, the same less an allowance for
rounding, and a part that never falls."""


@dataclass(frozen=True)
class Sharer:
    """One of the data sets that share a bound.

    Attributes:
        error: The error at a bound; quasi-convex where there are no ``parts``: it falls up to ``best`` and rises from
            there.
        best: Its own best bound.
        least: The error there, above 0.
        lower_bound: A number that no bound's error goes below, from the certificate of ``best``.
        parts: The error at ascending bounds in its parts, which add up to it; None where it is quasi-convex.
        limits: (from, to) of the bounds that are of interest, where there are parts.
    """

    error: Callable[[float], float]
    best: float
    least: float
    lower_bound: float
    parts: Callable[[FloatArray], Parts] | None = None
    limits: tuple[float, float] = (1.0, 1.0)

    def ratio(self, bound: float) -> float:
        """The error at a bound over that of the own best bound."""
        return self.error(bound) / self.least


@dataclass(frozen=True)
class SharedBound:
    """The bound that serves all best.

    Attributes:
        bound: In the unit of the bounds.
        regrets: By how much each error there exceeds that of the data set's own best bound, as a share of it.
        certificate: The worst ratio of errors, each over its proven lower bound, beside a number that no bound's worst
            ratio goes below.
    """

    bound: float
    regrets: tuple[float, ...]
    certificate: Certificate


def least_worst_regret(sharers: Sequence[Sharer], whole: bool) -> SharedBound:
    """The bound at which the largest ratio of a data set's error to its own best one is least, with its proof.

    Where all errors are quasi-convex it is exact. Up to its best bound a data set's ratio falls, and from there it
    rises. So the largest ratio of those whose best bound lies above h falls in h, and that of the others rises; the
    largest of all is least where the two meet, which bisection finds. The lower bound takes nothing but that: to the
    left of the interval that is left no ratio of the first kind is smaller than at its left end, to the right none of
    the second kind is smaller than at its right end.

    Where an error is known in a falling and a rising part, intervals are halved: in [a, b] it is at least the falling
    part at b and the rising one at a. That settles the bound to `TOLERANCE`; no shape of the whole error is assumed.

    Args:
        sharers: At least one.
        whole: Whether only whole bounds count; each ``best`` is then whole.

    Raises:
        InvalidInput: There is none, or an error is 0 at its best: nothing can be compared with it; or some errors are
            known in parts and others are not.
    """
    with Problems() as problems:
        if not sharers:
            problems.add("at least one data set is needed")
        for at, one in enumerate(sharers, start=1):
            problems.positive(**{f"the least error of data set {at}": one.least})
        in_parts = [one for one in sharers if one.parts is not None]
        if in_parts and len(in_parts) < len(sharers):
            problems.add("either all errors are known in parts or none")
    if in_parts:
        return _by_intervals(sharers, whole)

    # By default 1: that is a data set's ratio at its own best bound, and none is below it.
    def falling(bound: float) -> float:
        return max((one.ratio(bound) for one in sharers if one.best > bound), default=1.0)

    def rising(bound: float) -> float:
        return max((one.ratio(bound) for one in sharers if one.best <= bound), default=1.0)

    low, high = min(one.best for one in sharers), max(one.best for one in sharers)
    for _ in range(STEPS):
        middle = (low + high) // 2 if whole else (low + high) / 2.0
        if not low < middle < high:
            break
        if rising(middle) >= falling(middle):
            high = middle
        else:
            low = middle
    # Bisection ends on two neighbours, of which either may be better: the worst ratio may jump from one to the other.
    bound = min((low, high), key=lambda h: max(falling(h), rising(h)))
    least = min(falling(low), rising(high))
    if low == high:
        least = 1.0
    elif not whole:
        # Between the ends a ratio that falls up to the right one is at least what it is there, and likewise the rest.
        between = [one.ratio(high) for one in sharers if one.best >= high]
        between += [one.ratio(low) for one in sharers if one.best <= low]
        least = min(least, max(between, default=1.0))
    return _chosen(
        sharers, bound, least, "every data set's error falls up to its own best bound and rises from there"
    )


def _chosen(sharers: Sequence[Sharer], bound: float, least: float, argument: str) -> SharedBound:
    """The bound with its proof; ``least``: what no bound's worst ratio of errors goes below."""
    # Over what is proved of each data set's least error, so that the worst ratio is never understated.
    value = max(
        (one.error(bound) / one.lower_bound if one.lower_bound > 0.0 else float("inf")) for one in sharers
    )
    return SharedBound(
        float(bound),
        tuple(max(one.ratio(bound) - 1.0, 0.0) for one in sharers),
        Certificate(value, least, argument),
    )


def _by_intervals(sharers: Sequence[Sharer], whole: bool) -> SharedBound:
    """The bound by branch and bound over intervals, of all data sets' ratios at once."""

    def split(bounds: FloatArray) -> Split:
        relative = [tuple(part / one.least for part in one.parts(bounds)) for one in sharers if one.parts]
        # One line per data set, of which the search takes the largest.
        return Split(*(np.stack(rows) for rows in zip(*relative, strict=True)))

    low, high = min(one.limits[0] for one in sharers), max(one.limits[1] for one in sharers)
    first = log_spaced(low, high, FIRST_POINTS, extra=[min(max(one.best, low), high) for one in sharers])
    found = minimise(split, low, high, whole=whole, tolerance=TOLERANCE, first=first)
    argument = (
        "on an interval an error is at least its falling part at the end and its rising part at the start"
    )
    return _chosen(sharers, found.argument, min(found.lower_bound, found.value), argument)
