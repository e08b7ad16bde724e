"""The total cost of DP releases of one set of private data."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from fractions import Fraction

from dpcore.common.privacy import Neighbours, ReleaseFacts, format_rounded_up, round_up_to_float

# How many steps of the first relation one step of the second takes at most; absent where none lead there.
# Replacing a user is removing one and adding another; so is changing one user's values; and changing values is
# replacing a user by one with as many rows.
_STEPS = {
    (Neighbours.ADD_OR_REMOVE_USER, Neighbours.ADD_OR_REMOVE_USER): 1,
    (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER): 2,
    (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_VALUES): 2,
    (Neighbours.REPLACE_USER, Neighbours.REPLACE_USER): 1,
    (Neighbours.REPLACE_USER, Neighbours.REPLACE_VALUES): 1,
    (Neighbours.REPLACE_VALUES, Neighbours.REPLACE_VALUES): 1,
}
_LARGEST_EXPONENT = 709.0
_STRONGEST_FIRST = (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER, Neighbours.REPLACE_VALUES)


def draw_mark() -> str:
    """Draw a mark that no other release has: 16 random hexadecimal digits, unrelated to data and noise."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Total:
    """The joint guarantee of all releases.

    Attributes:
        epsilon: Never less than the sum.
        delta: Likewise; 1 at most, where nothing is guaranteed any more.
        neighbours: The strongest relation that all of them cover.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours


@dataclass(frozen=True)
class Ledger:
    """The releases of one set of private data, in order.

    Basic composition: epsilons and deltas add up, whatever was chosen in the light of earlier releases. If
    neighbouring relations differ, the total is for the strongest that all cover, with group privacy for those
    that take two steps: (2 epsilon, (1 + e^epsilon) delta).

    Attributes:
        releases: What each guarantees.
        marks: One per release, drawn at random when it is noted: the same release that comes back from a file is known
            by it, and two releases of the same kind stay two. New ones are drawn where none are given.

    Raises:
        ValueError: The marks are not as many as the releases, or one stands twice.

    Source: Dwork, Roth 2014, The Algorithmic Foundations of Differential Privacy, theorems 3.16 and B.1 (basic
        composition), theorem 2.2 and its (epsilon, delta) form (group privacy).
    """

    releases: tuple[ReleaseFacts, ...] = ()
    marks: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.marks:
            object.__setattr__(self, "marks", tuple(draw_mark() for _ in self.releases))
        if not len(self.releases) == len(self.marks) == len(set(self.marks)):
            raise ValueError("a ledger has one mark of its own for each release")

    def add(self, facts: ReleaseFacts) -> Ledger:
        """Return the ledger with one more release."""
        return Ledger((*self.releases, facts), (*self.marks, draw_mark()))

    def merge(self, other_ledger: Ledger) -> Ledger:
        """Merge all releases of both ledgers, each once; the total is never less than either.

        A release of ``other`` is taken for one of these only if mark and facts are the same. If its mark stands
        for another release here, it counts as a further one.
        """
        facts_by_mark = dict(zip(self.marks, self.releases, strict=True))
        merged = self
        for mark, facts in zip(other_ledger.marks, other_ledger.releases, strict=True):
            if facts_by_mark.get(mark) != facts:
                fresh = draw_mark() if mark in merged.marks else mark
                merged = Ledger((*merged.releases, facts), (*merged.marks, fresh))
        return merged

    @property
    def total(self) -> Total | None:
        """Return the total; None before the first release."""
        if not self.releases:
            return None
        # There always is one: every relation covers changed values.
        relation = next(
            relation_candidate
            for relation_candidate in _STRONGEST_FIRST
            if all((release.neighbours, relation_candidate) in _STEPS for release in self.releases)
        )
        epsilon, delta = Fraction(0), Fraction(0)
        for release in self.releases:
            steps = _STEPS[release.neighbours, relation]
            epsilon += steps * Fraction(release.epsilon)
            factor = Fraction(1)
            if steps == 2 and release.delta:
                # e^epsilon is beyond float64 above 709; any delta times it is then taken for no guarantee at all.
                exponential = math.exp(release.epsilon) if release.epsilon <= _LARGEST_EXPONENT else 0.0
                factor = (
                    1 + Fraction(math.nextafter(exponential, math.inf))
                    if exponential
                    else 1 / Fraction(release.delta)
                )
            delta += factor * Fraction(release.delta)
        return Total(round_up_to_float(epsilon), round_up_to_float(min(delta, Fraction(1))), relation)

    @property
    def sentence(self) -> str:
        """Write the total in words, never rounded down."""
        total = self.total
        if total is None:
            return "Nothing has been released from these data."
        delta = f", δ = {format_rounded_up(total.delta)}" if total.delta else ""
        count = len(self.releases)
        count_text = "1 release" if count == 1 else f"{count:,} releases"
        return (
            f"Spent on these data: ε = {format_rounded_up(total.epsilon)}{delta} in {count_text} "
            f"({total.neighbours.short})."
        )
