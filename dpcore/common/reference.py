"""A problem solved twice, by our own method and by a general solver, each with its certificate and its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dpcore.common import wording
from dpcore.common.certificate import Certificate


@dataclass(frozen=True)
class Solved:
    """The result of one solver.

    Attributes:
        solver: In words.
        certificate: Its value, and what none can go below by its own multipliers; both computed from the data.
        stop_reason: How it ended, a sentence.
        seconds: How long it took, without what it had to import.
    """

    solver: str
    certificate: Certificate
    stop_reason: str
    seconds: float


def solve_timed(solver: str, solve: Callable[[], tuple[Certificate, str]]) -> Solved:
    """Solve, and measure the time."""
    start = time.perf_counter()
    certificate, stop_reason = solve()
    return Solved(solver, certificate, stop_reason, time.perf_counter() - start)


def compare_results(own_result: Solved, other_result: Solved) -> str:
    """Compare both values and times, in two sentences."""
    own_value, other_value = own_result.certificate.value, other_result.certificate.value
    relative_difference = abs(own_value - other_value) / abs(other_value) if other_value else 0.0
    if own_value <= other_value:
        verdict = f"The value of {own_result.solver} is the smaller one"
    else:
        verdict = f"The value of {other_result.solver} is the smaller one"
    return (
        f"{verdict}; they differ by {wording.percent(relative_difference, 2)}. {other_result.solver} took "
        f"{wording.number(other_result.seconds / max(own_result.seconds, 1e-9), 2)} times as long as "
        f"{own_result.solver}."
    )
