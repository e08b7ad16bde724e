"""A handle on a figure's curve: what is seen while a person moves the bound by hand, before the server hears of it.

The page sends all of it once. While the bound moves, the browser looks up columns and places dots; nothing is computed
that is not here, so that `released` can be held against the error on the card.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass

import numpy as np

from dpcore.answer.parts import Part
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray

DOTS = 20
"""Simulated releases that are seen at once."""
SETS = 12
"""Sets of dots that a person may look at, one after the other."""
MOST_USERS = 60
"""Bars of the picture of users."""
_SEED = 20


class Spread(enum.Enum):
    """How far dots lie from the truth, as one number."""

    MEAN = "mean distance"
    ROOT_MEAN_SQUARE = "RMS distance"


@dataclass(frozen=True, eq=False)
class Dots:
    """Simulated releases, each minus the truth; the model's error alone, with no number of the data in it.

    Attributes:
        short: Column of what a release lacks of the truth without noise, below 0 where it is too large; empty for
            nothing.
        noise: Column of the mean magnitude of the noise; empty where all that is drawn is in ``sampling``.
        draws: Noise with a mean magnitude of 1, drawn by NumPy from one seed, shape (`SETS`, `DOTS`).
        spread: What the card's error is of them.
        reach: Where their axis ends, on both sides of the truth; the same wherever the handle stands.
        unit: Of distances, as it follows a number; empty for none. Shares of 1 with "%" are written in per cent.
        sampling: Column of the standard deviation of what is drawn besides noise, such as which rows are kept; empty
            for nothing.
        others: Draws of that with a standard deviation of 1, shape (`SETS`, `DOTS`); None where there are none.
        what: What a dot is, in the plural.
    """

    short: str
    noise: str
    draws: FloatArray
    spread: Spread
    reach: float
    unit: str = ""
    sampling: str = ""
    others: FloatArray | None = None
    what: str = "releases"


@dataclass(frozen=True, eq=False)
class Users:
    """Some users as bars, most rows first.

    Attributes:
        sizes: What each of them adds, descending, shape (users shown,), at most `MOST_USERS`.
        title: What stands above them.
        by_second: Whether the second bound cuts them.
    """

    sizes: FloatArray
    title: str
    by_second: bool = False


@dataclass(frozen=True)
class Second:
    """A second bound that moves along, upwards in the figure.

    Attributes:
        name: What it bounds, such as "Rows".
        column: Its values; with the first bound's they name every place of a grid once, row by row of this one. Where
            it has one value alone, it is sent along and moves nothing.
        unit: Of its numbers.
        at: Where it stands at first.
        field: The parameter that holds one of the person's own.
        whole: Whether only whole ones are meant.
    """

    name: str
    column: str
    unit: str
    at: float
    field: str
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Handle:
    """What moves.

    Attributes:
        name: What is moved, such as "Bound".
        bound: Column of the bounds that it may stand at, ascending.
        error: Column of the curve that it stands on; beside a second bound, of the error at every place.
        at: Where it stands at first.
        whole: Whether only whole bounds are meant.
        field: The parameter that holds a bound of the person's own.
        parts: What the error consists of; each moves along, as a small dot on its curve and as a bar.
        add_up: Whether the parts add up to the error; else their squares may, or they lie below it.
        users: Some users, cut at the bound; empty for no picture of them.
        dots: Simulated releases; None where nothing is released.
        second: A second bound; None for none.
        best: Where a button that moves it over all bounds ends; None for no such button.
    """

    name: str
    bound: str
    error: str
    at: float
    field: str
    whole: bool = False
    parts: tuple[Part, ...] = ()
    add_up: bool = False
    users: tuple[Users, ...] = ()
    dots: Dots | None = None
    second: Second | None = None
    best: float | None = None


@functools.cache
def unit_draws(noise: NoiseKind) -> FloatArray:
    """Simulated noise with a mean magnitude of 1, shape (`SETS`, `DOTS`); the same at every call.

    Sets whose mean, mean magnitude and root mean square are nearest to the law's come first, as the first one is what
    most people see.
    """
    rng = np.random.default_rng(_SEED)
    if noise is NoiseKind.LAPLACE:
        drawn = rng.laplace(0.0, 1.0, (SETS, DOTS))
    else:
        drawn = rng.normal(0.0, 1.0 / noise.mean_magnitude, (SETS, DOTS))
    square = noise.unit_variance / noise.mean_magnitude**2
    off = np.abs(drawn.mean(axis=1)) + np.abs(np.abs(drawn).mean(axis=1) - 1.0)
    return _kept(drawn[np.argsort(off + np.abs((drawn**2).mean(axis=1) / square - 1.0))])


@functools.cache
def normal_draws(beside: NoiseKind) -> FloatArray:
    """Simulated normal draws of variance 1, shape (`SETS`, `DOTS`), independent of the `unit_draws` that they go with.

    Each set of those gets the one of these that are left which is nearest to variance 1 and to no correlation with it.
    """
    left = list(np.random.default_rng(_SEED + 1).normal(0.0, 1.0, (SETS, DOTS)))
    chosen = []
    for noise in unit_draws(beside):
        off = [abs(float(x @ x) / DOTS - 1.0) + 2.0 * abs(float(x @ noise)) / DOTS for x in left]
        chosen.append(left.pop(int(np.argmin(off))))
    return _kept(np.array(chosen))


def _kept(draws: FloatArray) -> FloatArray:
    """The same for every caller, who is not to write into it."""
    draws.setflags(write=False)
    return draws


def released(dots: Dots, short: float, noise: float, sampling: float = 0.0) -> FloatArray:
    """Where the dots lie, as the browser places them: release minus truth, shape (`SETS`, `DOTS`)."""
    drawn = 0.0 if dots.others is None else sampling * dots.others
    return np.asarray(noise * dots.draws + drawn - short)
