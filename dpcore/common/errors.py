"""Errors that tell a person what to do."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpcore.common import wording


@dataclass(frozen=True)
class InputProblem:
    """One problem of an input.

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
        """Write the problem as one or two sentences, the location in front."""
        head = f"{self.location}: {self.message}" if self.location else self.message
        head = _end_sentence(wording.capital(head))
        return f"{head} {_end_sentence(self.remedy)}" if self.remedy else head


def _end_sentence(text: str) -> str:
    """End the text with a full stop, unless it has an end mark."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


class InvalidInput(ValueError):
    """The error of a refused input. It has every problem, not only the first.

    Attributes:
        problems: The problems, in the order in which they were found; at least one.
    """

    def __init__(self, problems: Iterable[InputProblem | str]) -> None:
        self.problems: tuple[InputProblem, ...] = tuple(
            problem if isinstance(problem, InputProblem) else InputProblem(problem) for problem in problems
        )
        super().__init__("\n".join(problem.sentence for problem in self.problems))


def refuse(message: str, location: str = "", remedy: str = "") -> InvalidInput:
    """Make the error of an input that is refused for one reason; see `InputProblem`."""
    return InvalidInput([InputProblem(message, location, remedy)])


class CertificateError(RuntimeError):
    """A claimed optimum lies below its own lower bound: a bug, never a rounding matter."""


_FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_DISK = InputProblem(
    "the temporary folder is full", "", "Free space there, or name another folder in TMPDIR and start again"
)
"""The problem of a disk that has no room left for the temporary folder."""


def is_full_disk(error: BaseException) -> bool:
    """Return True if nothing more could be written because the disk, or one's share of it, is full."""
    return isinstance(error, OSError) and error.errno in _FULL


_PROJECT = Path(__file__).resolve().parents[2]
_FOLDERS = ("dpcore", "pages", "sweet_spot", "tests")


def _is_own_file(file: str) -> bool:
    # Other packages lie in the same folder where this one is installed, and so does the environment in a checkout.
    return any(Path(file).is_relative_to(_PROJECT / name) for name in _FOLDERS)


def describe_error(error: Exception) -> tuple[InputProblem, ...]:
    """Describe an error that ended some work, whatever it is.

    The message of an error may quote cells, so for an unexpected error only its type and its line are named.
    """
    if isinstance(error, InvalidInput):
        return error.problems
    if isinstance(error, MemoryError):
        return (
            InputProblem(
                "there is not enough memory for this", "", "Close other programs, or take less data"
            ),
        )
    if is_full_disk(error):
        return (FULL_DISK,)
    if isinstance(error, FileNotFoundError):
        message = "a file that was to be read is no longer there"
        return (InputProblem(message, "", "Put it back, or choose it anew"),)
    if isinstance(error, OSError):
        reason = (error.strerror or type(error).__name__).lower()
        return (
            InputProblem(f"a file could not be read or written ({reason})", "", "Check it, then try again"),
        )
    frames: list[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)
    # Our own line says more than that of the library, or of Python's import, where the error arose.
    frames = [frame for frame in frames if _is_own_file(frame.filename)] or frames
    location = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    message = f"an error that nobody foresaw ended this ({type(error).__name__}{location})"
    return (InputProblem(message, "", "Try again; if it comes back, please report these words"),)


@contextmanager
def convert_system_errors() -> Iterator[None]:
    """Turn an error of files into `InvalidInput`, in a block or in a decorated function."""
    try:
        yield
    except OSError as error:
        problems = describe_error(error)
    else:
        return
    raise InvalidInput(problems)
