"""Validators that collect every problem before they refuse; the keyword is the name in the message."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real

from dpcore.common import wording
from dpcore.common.errors import InputProblem, InvalidInput

# The range over which the formulas are tested; beyond it float64 still computes but nobody has looked.
EPSILON_RANGE = (1e-6, 1e3)
VALUE_BOUND_RANGE = (1e-9, 1e9)


def shown(value: object) -> str:
    """The value as a sentence quotes it: short, and never a number of thousands of digits."""
    try:
        text = repr(value)
        if isinstance(value, float) and math.isfinite(value) and "e" in text:
            text = wording.digits(value)
    except ValueError:  # Python refuses to print whole numbers of more than 4,300 digits.
        return "a number of thousands of digits"
    return text if len(text) <= 40 else text[:37] + "..."


def _as_float(value: object) -> float:
    """The real number, infinite where it lies beyond float64 and NaN where it is none."""
    if type(value) is bool or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # A link or a JSON file may hold a whole number of any length.
        return math.inf


@dataclass
class Problems:
    """A collector: call its checks one after another, then ``raise_if_any``."""

    found: list[InputProblem] = field(default_factory=list)

    def add(self, what: str, where: str = "", remedy: str = "") -> None:
        """Record one problem (see `dpcore.common.errors.InputProblem`)."""
        self.found.append(InputProblem(what, where, remedy))

    def extend(self, problems: Iterable[InputProblem]) -> None:
        """Record several problems."""
        self.found.extend(problems)

    def raise_if_any(self) -> None:
        """Raise `InvalidInput` with all recorded problems; do nothing where there are none."""
        if self.found:
            raise InvalidInput(self.found)

    def finite(self, **named: object) -> bool:
        """Require finite real numbers. Returns whether all were."""
        return self._each(named, lambda x: True, "be a finite number")

    def positive(self, **named: object) -> bool:
        """Require finite numbers above 0. Returns whether all were."""
        return self._each(named, lambda x: x > 0, "be a finite number above 0")

    def non_negative(self, **named: object) -> bool:
        """Require finite numbers of at least 0. Returns whether all were."""
        return self._each(named, lambda x: x >= 0, "be a finite number of at least 0")

    def between(self, low: float, high: float, **named: object) -> bool:
        """Require finite numbers in [low, high]. Returns whether all were."""
        return self._each(
            named,
            lambda x: low <= x <= high,
            f"lie between {wording.entered(low)} and {wording.entered(high)}",
        )

    def whole(self, low: int, high: int, **named: object) -> bool:
        """Require whole numbers in [low, high]. Returns whether all were."""
        return self._each(
            named,
            lambda x: x == math.floor(x) and low <= x <= high,
            f"be a whole number between {low:,} and {high:,}",
        )

    def _each(self, named: dict[str, object], holds: Callable[[float], bool], must: str) -> bool:
        fine = True
        for name, value in named.items():
            number = _as_float(value)
            if not (math.isfinite(number) and holds(number)):
                self.add(f"{name} must {must}; got {shown(value)}")
                fine = False
        return fine
