"""The parts of an error: each has one name and one colour, in figure, card and beside a handle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dpcore.answer.plot import Style

BIAS, SAMPLING, NOISE = "Bias", "Sampling", "Noise"
STYLES: Mapping[str, Style] = MappingProxyType(
    {BIAS: Style.BIAS, SAMPLING: Style.SAMPLING, NOISE: Style.PRIVACY}
)
"""What the bound itself causes, what is drawn at random besides the noise, and the noise."""


@dataclass(frozen=True)
class ErrorPart:
    """A part of the error at the bound of an answer, as its card shows it.

    Attributes:
        name: `BIAS`, `SAMPLING` or `NOISE`.
        value: Its size, in the unit of the error.
        text: The same as it is read.
    """

    name: str
    value: float
    text: str


def build_error_parts(
    values: Mapping[str, float], format_value: Callable[[float], str]
) -> tuple[ErrorPart, ...]:
    """Build the parts of an answer from their sizes, by name; ``format_value`` writes them."""
    return tuple(ErrorPart(name, float(value), format_value(float(value))) for name, value in values.items())
