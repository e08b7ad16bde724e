"""A handle on a figure's curve: the picture while a person moves the bound by hand, before the server knows.

The page sends all of it once. While the bound moves, the browser looks up columns and places dots; it computes
nothing else, so that `place_dots` can be compared with the error on the card.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass

import numpy as np

from dpcore.answer.parts import PartColumn
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray

NUM_DOTS = 20
"""Number of simulated releases that are shown at once."""
NUM_SETS = 12
"""Number of sets of dots to look at, one after the other."""
MAX_USERS = 60
"""The most bars in the picture of users."""
_SEED = 20


class Spread(enum.Enum):
    """The distance of dots from the truth, as one number."""

    MEAN = "mean distance"
    ROOT_MEAN_SQUARE = "RMS distance"


@dataclass(frozen=True, eq=False)
class Dots:
    """Simulated releases, each minus the truth; the model's error alone, with no number of the data in it.

    Attributes:
        loss: Column of the truth minus the release without noise; empty for none.
        noise: Column of the mean magnitude of the noise; empty if ``sampling`` has all that is random.
        unit_draws: Noise with a mean magnitude of 1, drawn by NumPy from one seed, shape (`NUM_SETS`, `NUM_DOTS`).
        spread: The summary of the dots that is the error on the card.
        axis_limit: The end of their axis on both sides of the truth, the same for every position of the handle.
        unit: The unit of distances after a number; empty for none. Shares of 1 with "%" are written in per cent.
        sampling: Column of the standard deviation of other randomness, such as which rows are kept; empty for none.
        unit_sampling_draws: Draws of that with a standard deviation of 1, shape (`NUM_SETS`, `NUM_DOTS`); None for
            none.
        unit_name: The name of the dots, in the plural.
    """

    loss: str
    noise: str
    unit_draws: FloatArray
    spread: Spread
    axis_limit: float
    unit: str = ""
    sampling: str = ""
    unit_sampling_draws: FloatArray | None = None
    unit_name: str = "releases"


@dataclass(frozen=True, eq=False)
class UserBars:
    """Some users as bars, most rows first.

    Attributes:
        contributions: The contribution of each user, descending, shape (users shown,), at most `MAX_USERS`.
        title: The title above the bars.
        is_cut_by_second: Whether the second bound cuts them.
    """

    contributions: FloatArray
    title: str
    is_cut_by_second: bool = False


@dataclass(frozen=True)
class SecondBound:
    """A second bound that moves along, upwards in the figure.

    Attributes:
        name: The name of the bounded quantity, such as "Rows".
        column: Its values; with those of the first bound they list a grid, row by row of this one. A single value is
            sent along and moves nothing.
        unit: The unit of its numbers.
        initial_value: The first position.
        field: The parameter that holds an entered bound.
        is_integer: Whether the bound is a whole number.
    """

    name: str
    column: str
    unit: str
    initial_value: float
    field: str
    is_integer: bool = False


@dataclass(frozen=True, eq=False)
class Handle:
    """A handle that moves a bound on a curve.

    Attributes:
        name: The name of the bound, such as "Bound".
        bound: Column of its positions, ascending.
        error: Column of the curve under the handle; with a second bound, of the error at every position.
        initial_value: The first position.
        is_integer: Whether the bound is a whole number.
        field: The parameter that holds an entered bound.
        parts: The parts of the error; each moves along, as a small dot on its curve and as a bar.
        is_sum: Whether the parts add up to the error; else their squares may, or they lie below it.
        users: Some users, cut at the bound; empty for no picture of them.
        dots: Simulated releases; None if nothing is released.
        second: A second bound; None for none.
        best_value: The last position of the button that moves the handle over all bounds; None for no such button.
    """

    name: str
    bound: str
    error: str
    initial_value: float
    field: str
    is_integer: bool = False
    parts: tuple[PartColumn, ...] = ()
    is_sum: bool = False
    users: tuple[UserBars, ...] = ()
    dots: Dots | None = None
    second: SecondBound | None = None
    best_value: float | None = None


@functools.cache
def draw_unit_noise(noise: NoiseKind) -> FloatArray:
    """Draw noise with a mean magnitude of 1, shape (`NUM_SETS`, `NUM_DOTS`); the same at every call.

    The first set is the one that most people see: its mean, mean magnitude and root mean square are nearest to
    the law's.
    """
    rng = np.random.default_rng(_SEED)
    if noise is NoiseKind.LAPLACE:
        draws = rng.laplace(0.0, 1.0, (NUM_SETS, NUM_DOTS))
    else:
        draws = rng.normal(0.0, 1.0 / noise.mean_magnitude, (NUM_SETS, NUM_DOTS))
    square = noise.unit_variance / noise.mean_magnitude**2
    mean_deviation = np.abs(draws.mean(axis=1)) + np.abs(np.abs(draws).mean(axis=1) - 1.0)
    return _make_read_only(draws[np.argsort(mean_deviation + np.abs((draws**2).mean(axis=1) / square - 1.0))])


@functools.cache
def draw_normal(noise_kind: NoiseKind) -> FloatArray:
    """Draw normal values of variance 1, shape (`NUM_SETS`, `NUM_DOTS`), independent of `draw_unit_noise`.

    Each set of noise gets the remaining set of these that is nearest to variance 1 and to no correlation with
    it.
    """
    candidates = list(np.random.default_rng(_SEED + 1).normal(0.0, 1.0, (NUM_SETS, NUM_DOTS)))
    chosen = []
    for noise in draw_unit_noise(noise_kind):
        deviations = [
            abs(float(candidate @ candidate) / NUM_DOTS - 1.0)
            + 2.0 * abs(float(candidate @ noise)) / NUM_DOTS
            for candidate in candidates
        ]
        chosen.append(candidates.pop(int(np.argmin(deviations))))
    return _make_read_only(np.array(chosen))


def _make_read_only(draws: FloatArray) -> FloatArray:
    """Make draws read-only, as all callers share them."""
    draws.setflags(write=False)
    return draws


def place_dots(dots: Dots, loss: float, noise: float, sampling: float = 0.0) -> FloatArray:
    """Place the dots, as the browser does: release minus truth, shape (`NUM_SETS`, `NUM_DOTS`)."""
    sampling_part = 0.0 if dots.unit_sampling_draws is None else sampling * dots.unit_sampling_draws
    return np.asarray(noise * dots.unit_draws + sampling_part - loss)
