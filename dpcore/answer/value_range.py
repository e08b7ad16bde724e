"""Sentences on values outside the entered range, the same for every question."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common import wording

WARNING_SHARE = 0.1
"""Above this share of values outside the range the page warns."""
RANGE_SOURCE = "from what you know of the quantity."


@dataclass(frozen=True)
class OutsideCounts:
    """The number of values outside a range; it is as private as the values.

    Attributes:
        num_below: Values below its lower end.
        num_above: Values above its upper end.
        num_values: All values.
    """

    num_below: int
    num_above: int
    num_values: int

    @property
    def num_outside(self) -> int:
        """Return the number of values outside the range."""
        return self.num_below + self.num_above

    @property
    def exceeds_warning(self) -> bool:
        """Return True if there are so many that the page warns."""
        return self.num_outside > WARNING_SHARE * self.num_values

    def write_sentence(self, range_name: str, singular_effect: str = "", plural_effect: str = "") -> str:
        """Write how many values lie outside, and the effect on one or on several of them."""
        if not self.num_outside:
            return f"All values lie inside {range_name}."
        return (
            f"{wording.counted(self.num_outside, 'value')} of {wording.number(self.num_values)} ({self.percent}) "
            f"{wording.agreeing(self.num_outside, 'lies', 'lie')} outside {range_name}"
            f"{wording.agreeing(self.num_outside, singular_effect, plural_effect)}: "
            f"{wording.number(self.num_below)} below, {wording.number(self.num_above)} above."
        )

    @property
    def percent(self) -> str:
        """Return the share of values outside the range, as text."""
        return wording.percent(self.num_outside / self.num_values)
