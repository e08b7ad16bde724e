"""The meaning of a line, a mark or a part of an error."""

from __future__ import annotations

import enum


class Style(enum.Enum):
    """The meaning of a line or a mark; its colour and dash pattern follow from it."""

    CAP = "a bound on rows per user, or the first of two ways"
    SMOOTH = "smooth weights, or the second of two ways"
    SAMPLING = "the part of an error that is there without noise"
    PRIVACY = "the part of an error that is privacy noise"
    BIAS = "the part of an error that the bound itself causes, with or without noise"
    ENTERED = "what the person brought to compare"
    CUSTOMARY = "what is usually done instead"
    TOTAL = "the one curve of a plot"
