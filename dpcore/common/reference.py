"""A problem solved twice, by our own method and by a general solver, each with its proof and its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dpcore.common import wording
from dpcore.common.certificate import Certificate


@dataclass(frozen=True)
class Solved:
    """One solver's answer.

    Attributes:
        solver: In words.
        certificate: Its value, and what none can go below by its own multipliers; both computed from the data.
        ended: How it ended, a sentence.
        seconds: How long it took, without what it had to import.
    """

    solver: str
    certificate: Certificate
    ended: str
    seconds: float


def timed(solver: str, solve: Callable[[], tuple[Certificate, str]]) -> Solved:
    """Solve and take the time."""
    began = time.perf_counter()
    certificate, ended = solve()
    return Solved(solver, certificate, ended, time.perf_counter() - began)


def compared(ours: Solved, other: Solved) -> str:
    """Both values and times beside each other, two sentences."""
    mine, theirs = ours.certificate.value, other.certificate.value
    apart = abs(mine - theirs) / abs(theirs) if theirs else 0.0
    if mine <= theirs:
        which = f"The value of {ours.solver} is the smaller one"
    else:
        which = f"The value of {other.solver} is the smaller one"
    return (
        f"{which}; they differ by {wording.percent(apart, 2)}. {other.solver} took "
        f"{wording.number(other.seconds / max(ours.seconds, 1e-9), 2)} times as long as {ours.solver}."
    )
