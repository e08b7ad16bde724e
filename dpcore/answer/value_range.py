"""Values outside the range that the person entered, in words that are the same for every question."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common import wording

WARN_SHARE = 0.1
"""Above this share of values outside the range the page warns."""
KNOW = "from what you know of the quantity."


@dataclass(frozen=True)
class Outside:
    """How many values lie outside a range; as private as they are.

    Attributes:
        below: Values below its lower end.
        above: Values above its upper end.
        values: All values.
    """

    below: int
    above: int
    values: int

    @property
    def number(self) -> int:
        """Values outside."""
        return self.below + self.above

    @property
    def many(self) -> bool:
        """Whether they are so many that the page warns."""
        return self.number > WARN_SHARE * self.values

    def sentence(self, range_name: str, one: str = "", several: str = "") -> str:
        """How many lie outside, and what becomes of ``one`` or ``several`` of them."""
        if not self.number:
            return f"All values lie inside {range_name}."
        return (
            f"{wording.counted(self.number, 'value')} of {wording.number(self.values)} ({self.percent}) "
            f"{wording.agreeing(self.number, 'lies', 'lie')} outside {range_name}"
            f"{wording.agreeing(self.number, one, several)}: "
            f"{wording.number(self.below)} below, {wording.number(self.above)} above."
        )

    @property
    def percent(self) -> str:
        """Their share."""
        return wording.percent(self.number / self.values)
