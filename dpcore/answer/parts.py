"""The parts of an error: one name and, by it, one colour each, in figure, card and beside a handle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dpcore.answer.look import Look

BIAS, SAMPLING, NOISE = "Bias", "Sampling", "Noise"
LOOKS: Mapping[str, Look] = MappingProxyType({BIAS: Look.BIAS, SAMPLING: Look.SAMPLING, NOISE: Look.PRIVACY})
"""What the bound itself causes, what is drawn at random besides the noise, and the noise."""


@dataclass(frozen=True)
class Part:
    """A part over the bounds of a figure.

    Attributes:
        name: `BIAS`, `SAMPLING` or `NOISE`.
        column: Its size at every bound, in the unit of the error.
    """

    name: str
    column: str


@dataclass(frozen=True)
class ErrorPart:
    """A part at the bound of an answer, as its card says it.

    Attributes:
        name: As of `Part`.
        value: Its size, in the unit of the error.
        text: The same as it is read.
    """

    name: str
    value: float
    text: str


def parts(columns: Mapping[str, str]) -> tuple[Part, ...]:
    """Parts from the columns that hold them, by name."""
    return tuple(Part(name, column) for name, column in columns.items())


def said(values: Mapping[str, float], words: Callable[[float], str]) -> tuple[ErrorPart, ...]:
    """Parts of an answer from their sizes, by name, written by ``words``."""
    return tuple(ErrorPart(name, float(value), words(float(value))) for name, value in values.items())
