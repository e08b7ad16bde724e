"""Both bounds of a release per group by hand: what they cut, and what releases they give."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpcore.answer.axes import sample_users
from dpcore.answer.handle import Dots, Handle, SecondBound, Spread, UserBars, draw_normal, draw_unit_noise
from dpcore.answer.parts import BIAS, NOISE, SAMPLING, list_part_columns
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.per_group.answer.error_map import Mapped
from dpcore.per_group.parameters import Statistic
from dpcore.per_group.words import unit_of

REACH = 3.0
"""Ends of the axis of simulated releases, in best errors: at the best pair hardly one of them lies beyond."""
PARTS = list_part_columns({BIAS: "bias", SAMPLING: "sampling", NOISE: "noise"})
DOT = "noise of a dot"


def of_map(of: Mapped, columns: Mapping[str, FloatArray]) -> tuple[Handle, dict[str, FloatArray]]:
    """The handle of the error over both bounds, and the column that its dots need besides those of the figure."""
    asked, cells = of.parameters, of.map
    at = of.own or of.pair
    if at is None:
        best = int(np.argmin(cells.errors))
        groups, amount = (float(columns[name][best]) for name in ("max_groups", "max_amount"))
    else:
        groups, amount = float(at.max_groups), at.max_amount
    parted = "bias" in columns
    first = "Groups", "max_groups", "", groups, "own_groups", True
    counted = asked.statistic in (Statistic.ROWS, Statistic.MEAN)
    other = (
        "Rows" if counted else "Amount",
        "max_amount",
        "in each",
        amount,
        "own_amount",
        asked.statistic.whole,
    )
    # Where a user is in one group at most, the figure is a curve over the amount.
    if cells.groups.size == 1 < cells.amounts.size:
        first, other = other, first
    name, column, _, now, field, whole = first
    moves = Handle(
        name,
        column,
        "error",
        now,
        field,
        whole,
        parts=PARTS if parted else (),
        users=_users(of, swapped=first[1] == "max_amount"),
        dots=_dots(of, parted),
        second=SecondBound(*other),
    )
    return moves, {DOT: columns["noise"] * _magnitude(asked.noise)} if parted else {}


def _dots(of: Mapped, parted: bool) -> Dots:
    """A dot is one group's number whose error has the size of the objective.

    Its bias, its sampling and its noise are the roots of their mean squares over the groups, so that the dots' mean
    square is that of the error: the objective where that is a root mean square, and as large as it elsewhere. An error
    without known parts, as that of a ratio, is drawn as one normal variable of its size.
    """
    said, reach = unit_of(of.parameters), REACH * of.pair_error
    unit = said if said in ("rows", "users") else ""
    noise = draw_unit_noise(of.parameters.noise)
    short, added, drawn = ("bias", DOT, "sampling") if parted else ("", "", "error")
    return Dots(
        short,
        added,
        noise,
        Spread.ROOT_MEAN_SQUARE,
        reach,
        unit,
        drawn,
        draw_normal(of.parameters.noise),
        # Of an error whose parts are not known the size alone is drawn, and the line above the dots says so.
        unit_name="groups" if parted else "errors of this size",
    )


def _magnitude(noise: NoiseKind) -> float:
    """Return the mean magnitude of noise of standard deviation 1."""
    return noise.mean_magnitude / math.sqrt(noise.unit_variance)


def _users(of: Mapped, swapped: bool) -> tuple[UserBars, ...]:
    """Users by their groups, and pairs of a user and a group by what they add, where these are of several sizes."""
    cut = of.bounded
    # What they are cut by, the line below them says.
    users = sample_users(cut.groups, cut.users, "rows", is_cut_by_second=swapped)
    some = cut.amounts > 0.0
    if not some.any():
        return (users,)
    pairs = sample_users(cut.amounts[some], cut.pairs[some], "rows", "pair", is_cut_by_second=not swapped)
    return tuple(one for one in (users, pairs) if one.contributions[0] > one.contributions[-1]) or (users,)
