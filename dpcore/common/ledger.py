"""What DP releases of one set of private data cost together."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from fractions import Fraction

from dpcore.common.privacy import Neighbours, ReleaseFacts, float_above, rounded_up

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


def new_mark() -> str:
    """A mark that no other release has: 16 random hexadecimal digits, which say nothing of data or noise."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class Spent:
    """What all releases guarantee together.

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
    """The releases made of one set of private data, in order.

    Basic composition: epsilons and deltas add up, whatever was chosen in the light of earlier releases. Where
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
            object.__setattr__(self, "marks", tuple(new_mark() for _ in self.releases))
        if not len(self.releases) == len(self.marks) == len(set(self.marks)):
            raise ValueError("a ledger has one mark of its own for each release")

    def after(self, facts: ReleaseFacts) -> Ledger:
        """With one more release."""
        return Ledger((*self.releases, facts), (*self.marks, new_mark()))

    def joined(self, other: Ledger) -> Ledger:
        """All releases of both, each once; never less than either.

        A release of ``other`` is taken for one of these only where mark and facts are the same. Under a mark that
        stands for something else here it counts as a further one.
        """
        known = dict(zip(self.marks, self.releases, strict=True))
        joined = self
        for mark, facts in zip(other.marks, other.releases, strict=True):
            if known.get(mark) != facts:
                fresh = new_mark() if mark in joined.marks else mark
                joined = Ledger((*joined.releases, facts), (*joined.marks, fresh))
        return joined

    @property
    def spent(self) -> Spent | None:
        """The total; None before the first release."""
        if not self.releases:
            return None
        # There always is one: every relation covers changed values.
        relation = next(
            to for to in _STRONGEST_FIRST if all((one.neighbours, to) in _STEPS for one in self.releases)
        )
        epsilon, delta = Fraction(0), Fraction(0)
        for one in self.releases:
            steps = _STEPS[one.neighbours, relation]
            epsilon += steps * Fraction(one.epsilon)
            factor = Fraction(1)
            if steps == 2 and one.delta:
                # e^epsilon is beyond float64 above 709; any delta times it is then taken for no guarantee at all.
                above = math.exp(one.epsilon) if one.epsilon <= _LARGEST_EXPONENT else 0.0
                factor = 1 + Fraction(math.nextafter(above, math.inf)) if above else 1 / Fraction(one.delta)
            delta += factor * Fraction(one.delta)
        return Spent(float_above(epsilon), float_above(min(delta, Fraction(1))), relation)

    @property
    def sentence(self) -> str:
        """The total in words, never rounded down."""
        spent = self.spent
        if spent is None:
            return "Nothing has been released from these data."
        delta = f", δ = {rounded_up(spent.delta)}" if spent.delta else ""
        count = len(self.releases)
        made = "1 release" if count == 1 else f"{count:,} releases"
        return f"Spent on these data: ε = {rounded_up(spent.epsilon)}{delta} in {made} ({spent.neighbours.short})."
