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


def quote(value: object) -> str:
    """Quote a value in a sentence: short, and never a number of thousands of digits."""
    try:
        text = repr(value)
        if isinstance(value, float) and math.isfinite(value) and "e" in text:
            text = wording.digits(value)
    except ValueError:  # Python refuses to print whole numbers of more than 4,300 digits.
        return "a number of thousands of digits"
    return text if len(text) <= 40 else text[:37] + "..."


def _as_float(value: object) -> float:
    """Convert to a real number, infinite beyond float64 and NaN for no number."""
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

    entries: list[InputProblem] = field(default_factory=list)

    def __enter__(self) -> Problems:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        if error_type is None:
            self.raise_if_any()

    def add(self, message: str, location: str = "", remedy: str = "") -> None:
        """Record one problem (see `dpcore.common.errors.InputProblem`)."""
        self.extend([InputProblem(message, location, remedy)])

    def extend(self, problems: Iterable[InputProblem]) -> None:
        """Record several problems, except those that are known already."""
        self.entries.extend(problem for problem in problems if problem not in self.entries)

    def raise_if_any(self) -> None:
        """Raise `InvalidInput` with all recorded problems; do nothing where there are none."""
        if self.entries:
            raise InvalidInput(self.entries)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Record the problems of an `InvalidInput` in the block, which then ends."""
        try:
            yield
        except InvalidInput as error:
            self.extend(error.problems)

    def finite(self, **arguments: object) -> bool:
        """Require finite real numbers. Return True if all were."""
        return self._check_each(arguments, lambda number: True, "be a finite number")

    def positive(self, **arguments: object) -> bool:
        """Require finite numbers above 0. Return True if all were."""
        return self._check_each(arguments, lambda number: number > 0, "be a finite number above 0")

    def non_negative(self, **arguments: object) -> bool:
        """Require finite numbers of at least 0. Return True if all were."""
        return self._check_each(arguments, lambda number: number >= 0, "be a finite number of at least 0")

    def between(self, low: float, high: float, **arguments: object) -> bool:
        """Require finite numbers in [low, high]. Return True if all were."""
        return self._check_each(
            arguments, lambda number: low <= number <= high, "lie between {} and {}", low, high
        )

    def inside(self, low: float, high: float, **arguments: object) -> bool:
        """Require numbers strictly between low and high. Return True if all were."""
        return self._check_each(
            arguments, lambda number: low < number < high, "lie strictly between {} and {}", low, high
        )

    def ascending(self, **arguments: object) -> bool:
        """Require two finite numbers, the first below the second. Return True if they were."""
        if not self.finite(**arguments):
            return False
        (lower, low), (upper, high) = arguments.items()
        if _as_float(low) < _as_float(high):
            return True
        received = " and ".join(wording.entered(_as_float(end)) for end in (low, high))
        self.add(f"{lower} must lie below {upper}; got {received}")
        return False

    def of_kind(self, required_type: type, **arguments: object) -> bool:
        """Require objects of a class. Return True if all were."""
        wrong = [name for name, value in arguments.items() if not isinstance(value, required_type)]
        for name in wrong:
            self.add(f"{name} must be of the kind {required_type.__name__}")
        return not wrong

    def whole(self, low: int, high: int, **arguments: object) -> bool:
        """Require integers in [low, high]. Return True if all were."""
        return self._check_each(
            arguments,
            lambda number: number == math.floor(number) and low <= number <= high,
            f"be a whole number between {low:,} and {high:,}",
        )

    def _check_each(
        self,
        arguments: dict[str, object],
        is_valid: Callable[[float], bool],
        requirement_format: str,
        *limits: float,
    ) -> bool:
        are_valid = True
        for name, value in arguments.items():
            number = _as_float(value)
            if not (math.isfinite(number) and is_valid(number)):
                requirement = requirement_format.format(*map(wording.entered, limits))
                self.add(f"{name} must {requirement}; got {quote(value)}")
                are_valid = False
        return are_valid


class _ImmediateProblems(Problems):
    """A collector that collects nothing: each check raises by itself."""

    def extend(self, problems: Iterable[InputProblem]) -> None:
        raise InvalidInput(problems)

    def _check_each(
        self,
        arguments: dict[str, object],
        is_valid: Callable[[float], bool],
        requirement_format: str,
        *limits: float,
    ) -> bool:
        with Problems() as problems:
            return problems._check_each(arguments, is_valid, requirement_format, *limits)


require = _ImmediateProblems()
"""For a single check: ``require.positive(bound=bound)`` raises `InvalidInput` with all problems."""
