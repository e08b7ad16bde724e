"""The parts of an error: each has one name and one colour, in figure, card and beside a handle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dpcore.answer.look import Style

BIAS, SAMPLING, NOISE = "Bias", "Sampling", "Noise"
STYLES: Mapping[str, Style] = MappingProxyType(
    {BIAS: Style.BIAS, SAMPLING: Style.SAMPLING, NOISE: Style.PRIVACY}
)
"""What the bound itself causes, what is drawn at random besides the noise, and the noise."""


@dataclass(frozen=True)
class PartColumn:
    """The column of a part of the error over the bounds of a figure.

    Attributes:
        name: `BIAS`, `SAMPLING` or `NOISE`.
        column: Its size at every bound, in the unit of the error.
    """

    name: str
    column: str


@dataclass(frozen=True)
class ErrorPart:
    """A part of the error at the bound of an answer, as its card shows it.

    Attributes:
        name: As of `PartColumn`.
        value: Its size, in the unit of the error.
        text: The same as it is read.
    """

    name: str
    value: float
    text: str


def list_part_columns(columns: Mapping[str, str]) -> tuple[PartColumn, ...]:
    """List the parts from the columns that hold them, by name."""
    return tuple(PartColumn(name, column) for name, column in columns.items())


def build_error_parts(
    values: Mapping[str, float], format_value: Callable[[float], str]
) -> tuple[ErrorPart, ...]:
    """Build the parts of an answer from their sizes, by name; ``format_value`` writes them."""
    return tuple(ErrorPart(name, float(value), format_value(float(value))) for name, value in values.items())
