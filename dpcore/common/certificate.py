"""Certificates of feasible values by lower bounds, and a second solver's answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from dpcore.common.checks import CertificateError
from dpcore.common.wording import PERCENT, format_number, format_percent

# Below this a lower bound exceeds the value it bounds by more than rounding can explain.
IMPOSSIBLE_GAP = -1e-9


@dataclass(frozen=True)
class Certificate:
    """A feasible objective value and a lower bound on every feasible value.

    The builder of the certificate recomputes each number from the data and never takes a solver's own claim for it.

    Attributes:
        value: Objective at the returned point.
        lower_bound: A number that no feasible point can go below.
        argument: What the lower bound rests on, in words.
        approximation: What is approximate in the objective, as a clause; empty if the objective is exact.

    Raises:
        CertificateError: The bound lies above the value by more than rounding (relative gap < -1e-9).

    Examples:
        >>> certificate = Certificate(value=10.0, lower_bound=9.9, argument="duality")
        >>> print(round(certificate.relative_gap, 3), certificate.proves(0.05))
        0.01 True
    """

    value: float
    lower_bound: float
    argument: str
    approximation: str = ""

    def __post_init__(self) -> None:
        """Raise `CertificateError` if the lower bound lies above the value by more than rounding explains."""
        if self.relative_gap < IMPOSSIBLE_GAP:
            raise CertificateError(
                f"the lower bound {self.lower_bound!r} lies above the value {self.value!r} it should bound "
                f"({self.argument})"
            )

    @cached_property
    def relative_gap(self) -> float:
        """Return (value - lower_bound) / |value|, signed; infinite if it is undefined or not finite."""
        if not (math.isfinite(self.value) and math.isfinite(self.lower_bound)):
            return math.inf
        signed_gap = self.value - self.lower_bound
        if signed_gap == 0.0:
            return 0.0
        return signed_gap / abs(self.value) if self.value != 0.0 else math.copysign(math.inf, signed_gap)

    def proves(self, tolerance: float) -> bool:
        """Return True if the value is within ``tolerance`` (relative) of the best possible."""
        return self.relative_gap <= tolerance

    @property
    def sentence(self) -> str:
        """Return the certificate as a sentence; its gap is rounded up."""
        relative_gap = self.relative_gap
        if math.isinf(relative_gap):
            return f"Not proved: no finite lower bound ({self.argument})."
        approximation_text = f" In this error {self.approximation}." if self.approximation else ""
        if relative_gap <= 1e-12:
            claim = "Best by an approximate error" if approximation_text else "Proved best to within rounding"
            return f"{claim}: {self.argument}.{approximation_text}"
        gap_exponent = math.floor(math.log10(relative_gap))
        rounded_mantissa = math.ceil(relative_gap / 10.0**gap_exponent * 10.0) / 10.0
        if rounded_mantissa >= 10.0:
            rounded_mantissa, gap_exponent = 1.0, gap_exponent + 1
        # No line breaks before a no-break space's sign, nor after a minus sign; after a hyphen it does.
        gap_text = f"{rounded_mantissa:g}e−{-gap_exponent:d} (relative)"
        if gap_exponent >= -4:
            gap_text = f"{rounded_mantissa * 10.0 ** (gap_exponent + 2):.3g}{PERCENT}"
        return f"Proved: no choice of this kind is better by more than {gap_text}; {self.argument}.{approximation_text}"


@dataclass(frozen=True)
class Solved:
    """What one of two compared solvers reached: its certificate, how it ended, and its time.

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


def solve_timed(solver_name: str, solve: Callable[[], tuple[Certificate, str]]) -> Solved:
    """Run a solver and measure its seconds."""
    start_seconds = time.perf_counter()
    certificate, stop_reason = solve()
    return Solved(solver_name, certificate, stop_reason, time.perf_counter() - start_seconds)


def compare_results(own_result: Solved, other_result: Solved) -> str:
    """Write two sentences: which of two solvers has the smaller value, and how many times as long the other took."""
    own_value, other_value = own_result.certificate.value, other_result.certificate.value
    relative_difference = abs(own_value - other_value) / abs(other_value) if other_value else 0.0
    smaller_result = own_result if own_value <= other_value else other_result
    time_ratio = other_result.seconds / max(own_result.seconds, 1e-9)
    return (
        f"The value of {smaller_result.solver} is smaller by {format_percent(relative_difference, 2)}. "
        f"{other_result.solver} took {format_number(time_ratio, 2)} times as long as {own_result.solver}."
    )
