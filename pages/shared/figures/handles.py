"""What the browser is told of a figure's handle: the columns that it looks up while a person moves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Curve, Plot
from dpcore.answer.handle import Handle
from dpcore.report.plotly_figures import LINES

DIGITS = 5
"""Digits of a number that only says where something is drawn: far finer than a pixel."""
BEYOND = 1e300


def told(plot: Plot, handle: Handle) -> Mapping[str, Any]:
    """Columns, colours and words, as JSON holds them."""
    looks = {item.y: LINES[item.tint or item.look]["color"] for item in plot.items if isinstance(item, Curve)}
    words: dict[str, Any] = {
        "name": handle.name,
        "unit": plot.x.unit,
        "bounds": _short(plot.drawn[handle.bound]),
        "errors": _short(plot.drawn[handle.error]),
        "colour": looks[handle.error],
        "at": handle.at,
        "whole": handle.whole,
        "parts": [
            {
                "name": name,
                "colour": looks[column],
                "y": _short(plot.drawn[column]),
            }
            for column, name in handle.parts
        ],
    }
    if (users := handle.users) is not None:
        words["users"] = {"title": users.title, "sizes": _short(users.sizes)}
    if (dots := handle.dots) is not None:
        words["dots"] = {
            "short": _short(plot.drawn[dots.short]),
            "noise": _short(plot.drawn[dots.noise]),
            "draws": [_short(one) for one in dots.draws],
            "spread": dots.spread.value,
            "reach": dots.reach,
            "unit": dots.unit,
        }
        if dots.others is not None:
            words["dots"] |= {
                "sampling": _short(plot.drawn[dots.sampling]),
                "others": [_short(one) for one in dots.others],
            }
    return words


def _short(column: npt.ArrayLike) -> list[float]:
    """Numbers as JSON holds them: what has no bound lies beyond the top of every axis."""
    numbers = np.nan_to_num(np.asarray(column, dtype=np.float64), nan=BEYOND, posinf=BEYOND)
    return [float(f"{value:.{DIGITS}g}") for value in numbers.tolist()]
