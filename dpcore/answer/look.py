"""What a line, a mark or a part of an error stands for, whoever draws it."""

from __future__ import annotations

import enum


class Look(enum.Enum):
    """What a line or a mark stands for; its colour and dash pattern follow from that."""

    CAP = "a bound on rows per user, or the first of two ways"
    SMOOTH = "smooth weights, or the second of two ways"
    SAMPLING = "the part of an error that is there without noise"
    PRIVACY = "the part of an error that is privacy noise"
    BIAS = "the part of an error that the bound itself causes, with or without noise"
    OWN = "what the person brought to compare"
    USUAL = "what is usually done instead"
    TOTAL = "the one curve of a plot"
