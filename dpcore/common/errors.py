"""What can go wrong, said so that a person can act on it."""

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
    """One thing that is wrong with an input.

    Attributes:
        what: A sentence without its full stop: what is wrong.
        where: The place, such as ``row 17, column count``; empty where there is none.
        remedy: What to do about it, a sentence without its full stop; empty where nothing is to be said.
    """

    what: str
    where: str = ""
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """The problem as one or two sentences, the place in front."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        head = _ended(wording.capital(head))
        return f"{head} {_ended(self.remedy)}" if self.remedy else head


def _ended(text: str) -> str:
    """The text with its full stop; a question, or what somebody else has ended, gets no second mark."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


class InvalidInput(ValueError):
    """An input was refused. Carries every problem found, not only the first.

    Attributes:
        problems: The problems, in the order in which they were found; at least one.
    """

    def __init__(self, problems: Iterable[InputProblem | str]) -> None:
        self.problems: tuple[InputProblem, ...] = tuple(
            p if isinstance(p, InputProblem) else InputProblem(p) for p in problems
        )
        super().__init__("\n".join(p.sentence for p in self.problems))


def refusal(what: str, where: str = "", remedy: str = "") -> InvalidInput:
    """To be raised where an input is refused for one reason; see `InputProblem`."""
    return InvalidInput([InputProblem(what, where, remedy)])


class CertificateError(RuntimeError):
    """A claimed optimum lies below its own lower bound: a bug, never a rounding matter."""


_FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_DISK = InputProblem(
    "the temporary folder is full", "", "Free space there, or name another folder in TMPDIR and start again"
)
"""What is said where a disk has no room left for what is to be written to the temporary folder."""


def is_full_disk(error: BaseException) -> bool:
    """Whether nothing more could be written because the disk, or one's share of it, is full."""
    return isinstance(error, OSError) and error.errno in _FULL


_PROJECT = Path(__file__).resolve().parents[2]
_FOLDERS = ("dpcore", "pages", "sweet_spot", "tests")


def _is_ours(file: str) -> bool:
    # Where we are installed, all other packages lie beside us, and in a checkout the environment does.
    return any(Path(file).is_relative_to(_PROJECT / name) for name in _FOLDERS)


def problems_of(error: Exception) -> tuple[InputProblem, ...]:
    """What is to be said of an error that ended some work, whatever it is.

    The message of an error may quote cells, so of one that nobody foresaw only its kind and its place are named.
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
        what = "a file that was to be read is no longer there"
        return (InputProblem(what, "", "Put it back, or choose it anew"),)
    if isinstance(error, OSError):
        why = (error.strerror or type(error).__name__).lower()
        return (InputProblem(f"a file could not be read or written ({why})", "", "Check it, then try again"),)
    frames: list[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)
    # Our own line says more than that of the library, or of Python's import, where the error arose.
    frames = [frame for frame in frames if _is_ours(frame.filename)] or frames
    place = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    what = f"an error that nobody foresaw ended this ({type(error).__name__}{place})"
    return (InputProblem(what, "", "Try again; if it comes back, please report these words"),)


@contextmanager
def system_errors_said() -> Iterator[None]:
    """Within it, or in a function that it decorates, an error of files becomes `InvalidInput`."""
    try:
        yield
    except OSError as error:
        problems = problems_of(error)
    else:
        return
    raise InvalidInput(problems)
