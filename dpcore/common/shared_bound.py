"""One bound for several data sets: the one whose worst regret is least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpcore.common.certificate import Certificate
from dpcore.common.checks import Problems

STEPS = 200
"""Halvings of an interval at most; float64 has no number left between its ends long before."""


@dataclass(frozen=True)
class Sharer:
    """One of the data sets that share a bound.

    Attributes:
        error: The error at a bound; quasi-convex: it falls up to ``best`` and rises from there.
        best: Its own best bound.
        least: The error there, above 0.
        lower_bound: A number that no bound's error goes below, from the certificate of ``best``.
    """

    error: Callable[[float], float]
    best: float
    least: float
    lower_bound: float

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

    @property
    def worst(self) -> float:
        """The largest regret."""
        return max(self.regrets)


def least_worst_regret(sharers: Sequence[Sharer], whole: bool) -> SharedBound:
    """The bound at which the largest ratio of a data set's error to its own best one is least, exactly.

    Up to its best bound a data set's ratio falls, and from there it rises. So the largest ratio of those whose best
    bound lies above h falls in h, and that of the others rises; the largest of all is least where the two meet, which
    bisection finds. The lower bound takes nothing but that: to the left of the interval that is left no ratio of the
    first kind is smaller than at its left end, to the right none of the second kind is smaller than at its right end.

    Args:
        sharers: At least one.
        whole: Whether only whole bounds count; each ``best`` is then whole.

    Raises:
        InvalidInput: There is none, or an error is 0 at its best: nothing can be compared with it.
    """
    problems = Problems()
    if not sharers:
        problems.add("at least one data set is needed")
    for at, one in enumerate(sharers, start=1):
        problems.positive(**{f"the least error of data set {at}": one.least})
    problems.raise_if_any()

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
    bound = min((low, high), key=lambda h: max(falling(h), rising(h)))
    least = min(falling(low), rising(high))
    if low == high:
        least = 1.0
    elif not whole:
        # Between the ends a ratio that falls up to the right one is at least what it is there, and likewise the rest.
        between = [one.ratio(high) for one in sharers if one.best >= high]
        between += [one.ratio(low) for one in sharers if one.best <= low]
        least = min(least, max(between, default=1.0))
    value = max(
        (one.error(bound) / one.lower_bound if one.lower_bound > 0.0 else float("inf")) for one in sharers
    )
    argument = "every data set's error falls up to its own best bound and rises from there"
    return SharedBound(
        float(bound),
        tuple(max(one.ratio(bound) - 1.0, 0.0) for one in sharers),
        Certificate(value, least, argument),
    )
