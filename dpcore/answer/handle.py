"""A handle on a figure's curve: what is seen while a person moves the bound by hand, before the server hears of it.

The page sends all of it once. While the bound moves, the browser looks up columns and places dots; nothing is computed
that is not here, so that `released` can be held against the error on the card.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
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
        short: Column of what a release lacks of the truth without noise.
        noise: Column of the mean magnitude of the noise.
        draws: Noise with a mean magnitude of 1, drawn by NumPy from one seed, shape (`SETS`, `DOTS`).
        spread: What the card's error is of them.
        reach: Where their axis ends, on both sides of the truth; the same wherever the handle stands.
        unit: Of distances, as it follows a number; empty for none.
        sampling: Column of the standard deviation of what is drawn besides noise, such as which rows are kept; empty
            for nothing.
        others: Draws of that with a standard deviation of 1, shape (`SETS`, `DOTS`); None where there are none.
    """

    short: str
    noise: str
    draws: FloatArray
    spread: Spread
    reach: float
    unit: str = ""
    sampling: str = ""
    others: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Users:
    """Some users as bars, most rows first.

    Attributes:
        sizes: What each of them adds, descending, shape (users shown,), at most `MOST_USERS`.
        title: What stands above them.
    """

    sizes: FloatArray
    title: str


@dataclass(frozen=True, eq=False)
class Handle:
    """What moves.

    Attributes:
        name: What is moved, such as "Bound".
        bound: Column of the bounds that it may stand at, ascending.
        error: Column of the curve that it stands on.
        at: Where it stands at first.
        whole: Whether only whole bounds are meant.
        field: The parameter that holds a bound of the person's own.
        parts: Columns that move along as small dots, with the names of their curves.
        users: Some users, cut at the bound; None for no picture of them.
        dots: Simulated releases; None where nothing is released.
    """

    name: str
    bound: str
    error: str
    at: float
    field: str
    whole: bool = False
    parts: tuple[tuple[str, str], ...] = ()
    users: Users | None = None
    dots: Dots | None = None


def unit_draws(noise: NoiseKind) -> FloatArray:
    """Simulated noise with a mean magnitude of 1, shape (`SETS`, `DOTS`); the same at every call.

    Sets whose mean magnitude is nearest to 1 come first, as the first one is what most people see.
    """
    rng = np.random.default_rng(_SEED)
    if noise is NoiseKind.LAPLACE:
        drawn = rng.laplace(0.0, 1.0, (SETS, DOTS))
    else:
        drawn = rng.normal(0.0, 1.0 / noise.mean_magnitude, (SETS, DOTS))
    return drawn[np.argsort(np.abs(np.abs(drawn).mean(axis=1) - 1.0))]


def normal_draws() -> FloatArray:
    """Simulated normal draws of variance 1, shape (`SETS`, `DOTS`), independent of those of `unit_draws`."""
    drawn = np.random.default_rng(_SEED + 1).normal(0.0, 1.0, (SETS, DOTS))
    return drawn[np.argsort(np.abs(np.sqrt((drawn**2).mean(axis=1)) - 1.0))]


def released(dots: Dots, short: float, noise: float, sampling: float = 0.0) -> FloatArray:
    """Where the dots lie, as the browser places them: release minus truth, shape (`SETS`, `DOTS`)."""
    drawn = 0.0 if dots.others is None else sampling * dots.others
    return np.asarray(noise * dots.draws + drawn - short)


def some_users(values: FloatArray, users: FloatArray, unit: str) -> Users:
    """Users of all sizes at even ratios of rank, the heaviest first, as heavy tails are seen best so.

    Args:
        values: What a user adds, distinct and ascending, shape (k,).
        users: How many users add that, shape (k,).
        unit: What is added, for the title.
    """
    reached = np.cumsum(np.asarray(users, dtype=np.float64)[::-1])
    total = float(reached[-1])
    few = total <= MOST_USERS
    ranks = np.arange(1.0, total + 1.0) if few else np.unique(np.floor(np.geomspace(1.0, total, MOST_USERS)))
    at_ranks = np.asarray(values, dtype=np.float64)[::-1][np.searchsorted(reached, ranks)]
    of_all = wording.counted(ranks.size, "user") if ranks.size == total else (
        f"{ranks.size} of {wording.counted(int(total), 'user')}"
    )  # fmt: skip
    # Rows are what the bound is about, and need no word.
    return Users(at_ranks, wording.capital(of_all) + ("" if unit == "rows" else f" by {unit}"))
