"""What DP releases of one set of private data cost together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpcore.common.privacy import Neighbours, ReleaseFacts, rounded_up

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
_STRONGEST_FIRST = (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER, Neighbours.REPLACE_VALUES)


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

    Source: Dwork, Roth 2014, The Algorithmic Foundations of Differential Privacy, theorems 3.16 and B.1 (basic
        composition), theorem 2.2 and its (epsilon, delta) form (group privacy).
    """

    releases: tuple[ReleaseFacts, ...] = ()

    def after(self, facts: ReleaseFacts) -> Ledger:
        """With one more release."""
        return Ledger((*self.releases, facts))

    @property
    def spent(self) -> Spent | None:
        """The total; None before the first release."""
        if not self.releases:
            return None
        relation = next(
            to for to in _STRONGEST_FIRST if all((one.neighbours, to) in _STEPS for one in self.releases)
        )
        epsilon, delta = Fraction(0), Fraction(0)
        for one in self.releases:
            steps = _STEPS[one.neighbours, relation]
            epsilon += steps * Fraction(one.epsilon)
            factor = Fraction(1)
            if steps == 2:
                # e^epsilon is beyond float64 above 709; the delta is then no guarantee anyway.
                factor += Fraction(math.nextafter(math.exp(min(one.epsilon, 700.0)), math.inf))
            delta += factor * Fraction(one.delta)
        return Spent(_above(epsilon), min(_above(delta), 1.0), relation)

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


def _above(exact: Fraction) -> float:
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)
