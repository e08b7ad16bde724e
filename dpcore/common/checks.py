"""Validators that collect every problem before they refuse; the keyword is the name in the message."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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
    """A collector: ``with Problems() as problems`` runs its checks one after another and refuses at the block's end.

    Raises:
        InvalidInput: With all problems found, when the block ends without an error of its own, by ``return`` too.
    """

    found: list[InputProblem] = field(default_factory=list)

    def __enter__(self) -> Problems:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.raise_if_any()

    def add(self, what: str, where: str = "", remedy: str = "") -> None:
        """Record one problem (see `dpcore.common.errors.InputProblem`)."""
        self.extend([InputProblem(what, where, remedy)])

    def extend(self, problems: Iterable[InputProblem]) -> None:
        """Record several problems, of those that are known already none."""
        self.found.extend(one for one in problems if one not in self.found)

    def raise_if_any(self) -> None:
        """Raise `InvalidInput` with all recorded problems; do nothing where there are none."""
        if self.found:
            raise InvalidInput(self.found)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Record what is refused within, in place of an end there."""
        try:
            yield
        except InvalidInput as refused:
            self.extend(refused.problems)

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
        return self._each(named, lambda x: low <= x <= high, "lie between {} and {}", low, high)

    def inside(self, low: float, high: float, **named: object) -> bool:
        """Require numbers strictly between low and high. Returns whether all were."""
        return self._each(named, lambda x: low < x < high, "lie strictly between {} and {}", low, high)

    def ascending(self, **named: object) -> bool:
        """Require two finite numbers, the first below the second. Returns whether they were."""
        if not self.finite(**named):
            return False
        (lower, low), (upper, high) = named.items()
        if _as_float(low) < _as_float(high):
            return True
        got = " and ".join(wording.entered(_as_float(end)) for end in (low, high))
        self.add(f"{lower} must lie below {upper}; got {got}")
        return False

    def of_kind(self, kind: type, **named: object) -> bool:
        """Require objects of a class. Returns whether all were."""
        wrong = [name for name, value in named.items() if not isinstance(value, kind)]
        for name in wrong:
            self.add(f"{name} must be of the kind {kind.__name__}")
        return not wrong

    def whole(self, low: int, high: int, **named: object) -> bool:
        """Require whole numbers in [low, high]. Returns whether all were."""
        return self._each(
            named,
            lambda x: x == math.floor(x) and low <= x <= high,
            f"be a whole number between {low:,} and {high:,}",
        )

    def _each(
        self, named: dict[str, object], holds: Callable[[float], bool], must: str, *ends: float
    ) -> bool:
        fine = True
        for name, value in named.items():
            number = _as_float(value)
            if not (math.isfinite(number) and holds(number)):
                said = must.format(*map(wording.entered, ends))
                self.add(f"{name} must {said}; got {shown(value)}")
                fine = False
        return fine


class _AtOnce(Problems):
    """Nothing is collected: each check refuses by itself."""

    def extend(self, problems: Iterable[InputProblem]) -> None:
        raise InvalidInput(problems)

    def _each(
        self, named: dict[str, object], holds: Callable[[float], bool], must: str, *ends: float
    ) -> bool:
        with Problems() as problems:
            return problems._each(named, holds, must, *ends)


require = _AtOnce()
"""Where there is one check alone: ``require.positive(bound=bound)`` raises `InvalidInput` with all that it finds."""
