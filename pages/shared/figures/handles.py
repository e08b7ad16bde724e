"""What the browser is told of a figure's handle: the columns that it looks up while a person moves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Plot
from dpcore.answer.handle import Dots, Handle, Second
from dpcore.answer.look import Look
from dpcore.answer.parts import BIAS, LOOKS, Part
from dpcore.common.privacy import Disclosure
from dpcore.report.plotly_figures import LINES

DIGITS = 5
"""Digits of a number that only says where something is drawn: far finer than a pixel."""
BEYOND = 1e300


def told(plot: Plot, handle: Handle) -> Mapping[str, Any]:
    """Columns, colours and words, as JSON holds them."""
    bounds = plot.drawn[handle.bound]
    words: dict[str, Any] = {
        "name": handle.name,
        "unit": plot.x.unit,
        "bounds": _short(bounds if handle.second is None else _along(bounds, handle.second, plot)),
        "errors": _short(plot.drawn[handle.error]),
        "colour": LINES[Look.CAP]["color"],
        "at": handle.at,
        "whole": handle.whole,
        "parts": [_part(plot, part) for part in handle.parts],
        "addUp": handle.add_up,
        "best": handle.best,
        "users": [
            {"title": users.title, "sizes": _short(users.sizes), "bySecond": users.by_second}
            for users in handle.users
        ],
    }
    if (second := handle.second) is not None:
        words["second"] = {
            "name": second.name,
            "unit": second.unit,
            "bounds": _short(np.unique(plot.drawn[second.column])),
            "at": second.at,
            "whole": second.whole,
        }
    if handle.dots is not None:
        words["dots"] = _dots(plot, handle.dots)
    return words


def moved(handle: Handle, key: Callable[[str], str]) -> tuple[str, ...]:
    """The session's keys of the fields that hold what is moved, in the order in which the browser sends it."""
    fields = (handle.field, *(() if handle.second is None else (handle.second.field,)))
    return tuple(key(field) for field in fields)


def _along(bounds: npt.ArrayLike, second: Second, plot: Plot) -> npt.ArrayLike:
    """The first bound's values; over a grid each of them once."""
    return bounds if np.unique(plot.drawn[second.column]).size == 1 else np.unique(bounds)


def _part(plot: Plot, part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "colour": LINES[LOOKS[part.name]]["color"],
        "y": _short(plot.drawn[part.column]),
        # Of what the bound itself causes a release lacks as much; the others lie on both sides of the truth.
        "lacks": part.name == BIAS,
    }


def _dots(plot: Plot, dots: Dots) -> dict[str, Any]:
    nothing = np.zeros(1)
    found = {
        "what": dots.what,
        # What was not released may be looked at by whoever holds the data: it says where it comes from.
        "alone": plot.disclosure is Disclosure.PRIVATE,
        "short": _short(plot.drawn[dots.short] if dots.short else nothing),
        "noise": _short(plot.drawn[dots.noise] if dots.noise else nothing),
        "draws": [_short(one) for one in dots.draws],
        "spread": dots.spread.value,
        "reach": dots.reach,
        "unit": dots.unit,
    }
    if dots.others is not None:
        found |= {
            "sampling": _short(plot.drawn[dots.sampling]),
            "others": [_short(one) for one in dots.others],
        }
    return found


def _short(column: npt.ArrayLike) -> list[float]:
    """Numbers as JSON holds them: what has no bound lies beyond the top of every axis."""
    numbers = np.nan_to_num(np.asarray(column, dtype=np.float64), nan=BEYOND, posinf=BEYOND)
    return [float(f"{value:.{DIGITS}g}") for value in numbers.tolist()]
