"""What can go wrong, said so that a person can act on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
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
        # A letter of a formula stays as it is: a capital sigma means a sum.
        head = (head[:1].upper() if head[:1].isascii() else head[:1]) + head[1:] + "."
        return f"{head} {self.remedy}." if self.remedy else head


class InvalidInput(ValueError):
    """An input was refused. Carries every problem found, not only the first.

    Attributes:
        problems: The problems, in the order in which they were found; at least one.
    """

    def __init__(self, problems: Iterable[Problem | str]) -> None:
        self.problems: tuple[Problem, ...] = tuple(
            p if isinstance(p, Problem) else Problem(p) for p in problems
        )
        super().__init__("\n".join(p.sentence for p in self.problems))


class CertificateError(RuntimeError):
    """A claimed optimum lies below its own lower bound: a bug, never a rounding matter."""
