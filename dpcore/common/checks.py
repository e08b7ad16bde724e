"""Errors that tell a person what to do, and validators that collect every problem."""

from __future__ import annotations

import enum
import errno
import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, TypeGuard

from dpcore.common.wording import capitalise, format_digits, format_entered


@dataclass(frozen=True)
class InputProblem:
    """One bad input as text: what is wrong, where, and what to do about it.

    Attributes:
        message: A sentence without its full stop: what is wrong.
        location: The place, such as ``row 17, column count``; empty where there is none.
        remedy: What to do about it, a sentence without its full stop; empty where nothing is to be said.
    """

    message: str
    location: str = ""
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """Return the problem as one or two sentences, the location in front."""
        first_sentence = f"{self.location}: {self.message}" if self.location else self.message
        first_sentence = _end_sentence(capitalise(first_sentence))
        return f"{first_sentence} {_end_sentence(self.remedy)}" if self.remedy else first_sentence


def _end_sentence(sentence_text: str) -> str:
    """Return the text with a full stop, unless it has an end mark."""
    return sentence_text if sentence_text.endswith((".", "?", "!", "…")) else f"{sentence_text}."


class InvalidInput(ValueError):
    """The error of a refused input. It has every problem, not only the first.

    Attributes:
        problems: The problems, in the order in which they were found; at least one.
    """

    def __init__(self, problems: Iterable[InputProblem | str]) -> None:
        """Store the problems, with a text as a problem of that message, and write their sentences as the message."""
        self.problems: tuple[InputProblem, ...] = tuple(
            problem if isinstance(problem, InputProblem) else InputProblem(problem) for problem in problems
        )
        super().__init__("\n".join(problem.sentence for problem in self.problems))


def refuse(message: str, location: str = "", remedy: str = "") -> InvalidInput:
    """Build the error of an input that is refused for one reason; the caller raises it."""
    return InvalidInput([InputProblem(message, location, remedy)])


def refuse_seed(function_name: str, further_options: Mapping[str, Any]) -> None:
    """Refuse arguments that a function which draws does not have: a seed with its reason, others as Python does.

    Raises:
        InvalidInput: One of them is a seed.
        TypeError: There is another one.
    """
    for option_name in further_options:
        if option_name not in SEED_NAMES:
            raise TypeError(f"{function_name}() got an unexpected keyword argument {option_name!r}")
        raise refuse(
            f"{function_name} takes no {option_name}, as whoever knows it can take the noise off a release",
            remedy="In tests, check what holds for every draw, or draw with epsilon=1000, which adds hardly any noise",
        )


class CertificateError(RuntimeError):
    """A claimed optimum lies below its own lower bound: a bug, never a rounding matter."""


FULL_DISK_PROBLEM = InputProblem(
    "the temporary folder is full", "", "Free space there, or name another folder in TMPDIR and start again"
)
"""The problem of a disk that has no room left for the temporary folder."""


def is_full_disk(error: BaseException) -> bool:
    """Return True if an error says that the disk, or one's share of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


_PROJECT_FOLDER = Path(__file__).resolve().parents[2]
_CODE_FOLDERS = ("dpcore", "pages", "sweet_spot", "tests")


def _is_own_file(file_path: str) -> bool:
    """Return True if a file of code belongs to this project, not to a library."""
    # Other packages lie in the same folder where this one is installed, and so does the environment in a checkout.
    return any(Path(file_path).is_relative_to(_PROJECT_FOLDER / folder_name) for folder_name in _CODE_FOLDERS)


def describe_error(error: Exception) -> tuple[InputProblem, ...]:
    """Return problems that tell a person, in words, what ended some work, whatever the error is.

    The message of an error may quote cells, so for an unexpected error only its type and its line are named.
    """
    if isinstance(error, InvalidInput):
        return error.problems
    if is_full_disk(error):
        return (FULL_DISK_PROBLEM,)
    if isinstance(error, MemoryError):
        message, remedy = "there is not enough memory for this", "Close other programs, or take less data"
    elif isinstance(error, FileNotFoundError):
        message, remedy = "a file that was to be read is no longer there", "Put it back, or choose it anew"
    elif isinstance(error, OSError):
        reason_text = (error.strerror or type(error).__name__).lower()
        message, remedy = f"a file could not be read or written ({reason_text})", "Check it, then try again"
    else:
        code_frames: list[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)
        # Our own line says more than that of the library, or of Python's import, where the error arose.
        code_frames = [frame for frame in code_frames if _is_own_file(frame.filename)] or code_frames
        last_frame = code_frames[-1] if code_frames else None
        code_line_text = f", {Path(last_frame.filename).name} line {last_frame.lineno}" if last_frame else ""
        message = f"an error that nobody foresaw ended this ({type(error).__name__}{code_line_text})"
        remedy = "Try again; if it comes back, please report these words"
    return (InputProblem(message, "", remedy),)


@contextmanager
def convert_system_errors() -> Iterator[None]:
    """Turn an error of reading or writing files into `InvalidInput`, in a block or in a decorated function."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(describe_error(error)) from None


# The range over which the formulas are tested; beyond it float64 still computes but nobody has looked.
SEED_NAMES = "seed", "random_seed", "random_state", "rng", "generator"
EPSILON_RANGE = (1e-6, 1e3)
VALUE_BOUND_RANGE = (1e-9, 1e9)


def quote(value: object) -> str:
    """Return a value as a short text for a sentence, at most 40 characters; of an option that is its value."""
    try:
        # A table's repr has several lines.
        value_text = " ".join(repr(value.value if isinstance(value, enum.Enum) else value).splitlines())
        if isinstance(value, float) and math.isfinite(value) and "e" in value_text:
            value_text = format_digits(value)
    except ValueError:  # Python refuses to print whole numbers of more than 4,300 digits.
        return "a number of thousands of digits"
    return value_text if len(value_text) <= 40 else value_text[:37] + "..."


def _is_number(argument: object) -> TypeGuard[Real]:
    """Return True for a real number, NaN among them; False for a bool."""
    return type(argument) is not bool and isinstance(argument, Real)


def _as_float_or_nan(argument: object) -> float:
    """Convert a number to a float: infinite beyond float64; NaN for a bool and for anything that is no number."""
    if not _is_number(argument):
        return math.nan
    try:
        return float(argument)
    except OverflowError:  # A link or a JSON file may hold a whole number of any length.
        return math.inf


@dataclass
class Problems:
    """A collector of problems: ``with Problems() as problems`` raises all that were added at the block's end.

    Raises:
        InvalidInput: With all problems found, when the block ends without an error of its own, by ``return`` too.
    """

    entries: list[InputProblem] = field(default_factory=list)

    def __enter__(self) -> Problems:
        """Return this collector."""
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Raise `InvalidInput` with the recorded problems, unless the block ended with an error of its own."""
        if error_type is None:
            self.raise_if_any()

    def add(self, message: str, location: str = "", remedy: str = "") -> None:
        """Add one problem, unless it was added before."""
        self.extend([InputProblem(message, location, remedy)])

    def extend(self, problems: Iterable[InputProblem]) -> None:
        """Add several problems, except those that were added before."""
        self.entries.extend(problem for problem in problems if problem not in self.entries)

    def raise_if_any(self) -> None:
        """Raise `InvalidInput` with all added problems; do nothing if there are none."""
        if self.entries:
            raise InvalidInput(self.entries)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Run a block and add the problems of an `InvalidInput` that ends it, which goes no further."""
        try:
            yield
        except InvalidInput as error:
            self.extend(error.problems)

    def finite(self, **arguments: object) -> bool:
        """Add a problem for each argument that is no finite number.

        Return True if there is none.
        """
        return self._check_each(arguments, lambda number: True, "be a finite number")

    def positive(self, **arguments: object) -> bool:
        """Add a problem for each argument that is no finite number above 0.

        Return True if there is none.
        """
        return self._check_each(arguments, lambda number: number > 0, "be a finite number above 0")

    def non_negative(self, **arguments: object) -> bool:
        """Add a problem for each argument that is no finite number of at least 0.

        Return True if there is none.
        """
        return self._check_each(arguments, lambda number: number >= 0, "be a finite number of at least 0")

    def between(self, low: float, high: float, **arguments: object) -> bool:
        """Add a problem for each argument that is no number in [low, high].

        Return True if there is none.
        """
        interval = "between {} and {}"
        return self._check_each(arguments, lambda number: low <= number <= high, interval, low, high)

    def inside(self, low: float, high: float, **arguments: object) -> bool:
        """Add a problem for each argument that is not strictly between low and high.

        Return True if there is none.
        """
        interval = "strictly between {} and {}"
        return self._check_each(arguments, lambda number: low < number < high, interval, low, high)

    def ascending(self, **arguments: object) -> bool:
        """Add a problem unless both arguments are finite and the first is below the second.

        Return True if so.
        """
        if not self.finite(**arguments):
            return False
        (lower_name, lower), (upper_name, upper) = arguments.items()
        if _as_float_or_nan(lower) < _as_float_or_nan(upper):
            return True
        received_text = " and ".join(
            format_entered(_as_float_or_nan(range_end)) for range_end in (lower, upper)
        )
        self.add(f"{lower_name} must lie below {upper_name}; got {received_text}")
        return False

    def of_kind(self, required_type: type, **arguments: object) -> bool:
        """Add a problem for each argument that is no instance of a class.

        Return True if there is none.
        """
        wrong_names = [
            argument_name
            for argument_name, value in arguments.items()
            if not isinstance(value, required_type)
        ]
        for argument_name in wrong_names:
            self.add(f"{argument_name} must be of the kind {required_type.__name__}")
        return not wrong_names

    def whole(self, low: int, high: int, **arguments: object) -> bool:
        """Add a problem for each argument that is no whole number in [low, high].

        Return True if there is none.
        """
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
        """Add a problem for each argument that is not finite and valid.

        The requirement begins with *be*, or is an interval, in which a number must lie.

        Return True if there is none.
        """
        are_valid = True
        for argument_name, argument in arguments.items():
            float_argument = _as_float_or_nan(argument)
            if not (math.isfinite(float_argument) and is_valid(float_argument)):
                requirement_text = requirement_format.format(*map(format_entered, limits))
                if limits:
                    requirement_text = (
                        f"{'lie' if _is_number(argument) else 'be a number'} {requirement_text}"
                    )
                self.add(f"{argument_name} must {requirement_text}; got {quote(argument)}")
                are_valid = False
        return are_valid


class _ImmediateProblems(Problems):
    """A collector that collects nothing: each check raises by itself."""

    def extend(self, problems: Iterable[InputProblem]) -> None:
        """Raise `InvalidInput` with these problems, also if there are none."""
        raise InvalidInput(problems)

    def _check_each(
        self,
        arguments: dict[str, object],
        is_valid: Callable[[float], bool],
        requirement_format: str,
        *limits: float,
    ) -> bool:
        """Return True if all arguments are valid finite numbers; raise `InvalidInput` with all problems otherwise."""
        with Problems() as problems:
            return problems._check_each(arguments, is_valid, requirement_format, *limits)


require = _ImmediateProblems()
"""For a single check: ``require.positive(bound=bound)`` raises `InvalidInput` with all problems."""
