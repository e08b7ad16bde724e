"""A handle on a figure's curve: the picture while a person moves the bound by hand, before the server knows.

The page sends the whole handle once. While the bound moves, the browser looks up columns and places dots; it computes
nothing else, so that a test can compare its dots with the error on the card.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray

NUM_DOTS = 20
"""Simulated releases that are seen at once."""
NUM_DOT_SETS = 12
"""Sets of dots that a person may look at, one after the other."""
MAX_BARS = 60
"""Bars of the picture of users."""
_SEED = 20


class Spread(enum.Enum):
    """How the distances of the dots from the truth are averaged into one number."""

    MEAN = "mean distance"
    ROOT_MEAN_SQUARE = "RMS distance"


@dataclass(frozen=True, eq=False)
class Dots:
    """Simulated releases, each minus the truth; the model's error alone, with no number of the data in it.

    Attributes:
        losses_without_noise: What a release lacks of the truth without noise, at every bound, below 0 where it is
            too large; None for nothing.
        noise_magnitudes: The mean magnitude of the noise at every bound; None where all that is drawn is in
            ``sampling_deviations``.
        unit_noise_draws: Noise with a mean magnitude of 1, drawn by NumPy from one seed, shape (`NUM_DOT_SETS`,
            `NUM_DOTS`).
        spread: What the card's error is of them.
        axis_limit: Where their axis ends, on both sides of the truth; the same wherever the handle stands.
        unit: Of distances, as it follows a number; empty for none. Shares of 1 with "%" are written in per cent.
        sampling_deviations: The standard deviation of what is drawn besides noise, such as which rows are kept, at
            every bound; None for nothing.
        unit_sampling_draws: Draws of that with a standard deviation of 1, shape (`NUM_DOT_SETS`, `NUM_DOTS`); None
            where there are none.
        dots_name: What a dot is, in the plural.
    """

    losses_without_noise: npt.ArrayLike | None
    noise_magnitudes: npt.ArrayLike | None
    unit_noise_draws: FloatArray
    spread: Spread
    axis_limit: float
    unit: str = ""
    sampling_deviations: npt.ArrayLike | None = None
    unit_sampling_draws: FloatArray | None = None
    dots_name: str = "releases"


@dataclass(frozen=True, eq=False)
class UserBars:
    """Some users as bars, most rows first.

    Attributes:
        contributions: What each of them adds, descending, shape (users shown,), at most `MAX_BARS`.
        title: What stands above them.
        second_bound_cuts: Whether the second bound cuts them.
    """

    contributions: FloatArray
    title: str
    second_bound_cuts: bool = False


@dataclass(frozen=True, eq=False)
class SecondBound:
    """A second bound that moves along, upwards in the figure.

    Attributes:
        name: What it bounds, such as "Rows".
        bounds: Where it may stand, ascending, shape (rows,); the first bound's are the columns of the grid. Where it
            has one value alone, it is sent along and moves nothing.
        unit: Of its numbers.
        initial_value: Where it stands at first.
        field_name: The parameter that holds one of the person's own.
        is_integer: Whether only whole ones are meant.
    """

    name: str
    bounds: npt.ArrayLike
    unit: str
    initial_value: float
    field_name: str
    is_integer: bool = False


@dataclass(frozen=True, eq=False)
class Handle:
    """What a person moves by hand on a figure: a bound, with the errors, users and simulated releases at every bound.

    Attributes:
        name: What is moved, such as "Bound".
        bounds: The bounds that it may stand at, ascending, shape (columns,).
        errors: The curve that it stands on, shape (columns,); beside a second bound, shape (rows, columns), flat.
        initial_value: Where it stands at first.
        is_integer: Whether only whole bounds are meant.
        field_name: The parameter that holds a bound of the person's own.
        error_parts: What the error consists of, by names of `dpcore.answer.answer`, each shaped as the error; each
            moves along, as a small dot on its curve and as a bar.
        parts_add_up: Whether the parts add up to the error; else their squares may, or they lie below it.
        user_bars: Some users, cut at the bound; empty for no picture of them.
        dots: Simulated releases; None where nothing is released.
        second_bound: A second bound; None for none.
        best_bound: Where a button that moves it over all bounds ends; None for no such button.
    """

    name: str
    bounds: npt.ArrayLike
    errors: npt.ArrayLike
    initial_value: float
    field_name: str
    is_integer: bool = False
    error_parts: Mapping[str, npt.ArrayLike] = dataclasses.field(default_factory=dict)
    parts_add_up: bool = False
    user_bars: tuple[UserBars, ...] = ()
    dots: Dots | None = None
    second_bound: SecondBound | None = None
    best_bound: float | None = None


@functools.cache
def draw_unit_noise(noise_kind: NoiseKind) -> FloatArray:
    """Draw sets of noise with an expected magnitude of 1, shape (`NUM_DOT_SETS`, `NUM_DOTS`); the same at every call.

    They are sorted by how near their mean, mean magnitude and mean square are to the expected ones, nearest first, as
    most people see only the first.
    """
    rng = np.random.default_rng(_SEED)
    if noise_kind is NoiseKind.LAPLACE:
        draw_sets = rng.laplace(0.0, 1.0, (NUM_DOT_SETS, NUM_DOTS))
    else:
        draw_sets = rng.normal(0.0, 1.0 / noise_kind.mean_magnitude, (NUM_DOT_SETS, NUM_DOTS))
    expected_mean_square = noise_kind.unit_variance / noise_kind.mean_magnitude**2
    deviations_from_law = np.abs(draw_sets.mean(axis=1)) + np.abs(np.abs(draw_sets).mean(axis=1) - 1.0)
    deviations_from_law += np.abs((draw_sets**2).mean(axis=1) / expected_mean_square - 1.0)
    return _make_read_only(draw_sets[np.argsort(deviations_from_law)])


@functools.cache
def draw_unit_sampling(noise_kind: NoiseKind) -> FloatArray:
    """Draw normal values of variance 1, shape (`NUM_DOT_SETS`, `NUM_DOTS`), hardly correlated with `draw_unit_noise`.

    They are the same at every call. Each set of noise gets the remaining set of these that is nearest to variance 1
    and to no correlation with it.
    """
    remaining_sets = list(np.random.default_rng(_SEED + 1).normal(0.0, 1.0, (NUM_DOT_SETS, NUM_DOTS)))
    paired_draw_sets = []
    for unit_noise_draws in draw_unit_noise(noise_kind):
        distances_from_ideal = [
            abs(d @ d / NUM_DOTS - 1.0) + 2.0 * abs(d @ unit_noise_draws / NUM_DOTS) for d in remaining_sets
        ]
        paired_draw_sets.append(remaining_sets.pop(int(np.argmin(distances_from_ideal))))
    return _make_read_only(np.array(paired_draw_sets))


def _make_read_only(array: FloatArray) -> FloatArray:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array
