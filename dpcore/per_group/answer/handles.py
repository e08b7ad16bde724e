"""The handle that moves both bounds of a release per group, with the users they cut and simulated releases."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpcore.answer.axes import sample_users
from dpcore.answer.handle import Dots, Handle, SecondBound, Spread, UserBars, draw_normal, draw_unit_noise
from dpcore.answer.parts import BIAS, NOISE, SAMPLING, list_part_columns
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.per_group.answer.error_map import MappedSolution
from dpcore.per_group.parameters import Statistic
from dpcore.per_group.words import unit_of

REACH = 3.0
"""Ends of the axis of simulated releases, in units of the best error; few releases lie beyond it."""
PART_COLUMNS = list_part_columns({BIAS: "bias", SAMPLING: "sampling", NOISE: "noise"})
DOT = "noise of a dot"


def build_handle(
    solution: MappedSolution, columns: Mapping[str, FloatArray]
) -> tuple[Handle, dict[str, FloatArray]]:
    """Build the handle of the error over both bounds, and the further column that its dots need."""
    parameters, cells = solution.parameters, solution.map
    start_pair = solution.own_pair or solution.pair
    if start_pair is None:
        best = int(np.argmin(cells.errors))
        groups, amount = (float(columns[name][best]) for name in ("max_groups", "max_amount"))
    else:
        groups, amount = float(start_pair.max_groups), start_pair.max_amount
    has_parts = "bias" in columns
    first_bound = "Groups", "max_groups", "", groups, "own_groups", True
    is_row_count = parameters.statistic in (Statistic.ROWS, Statistic.MEAN)
    second_bound = (
        "Rows" if is_row_count else "Amount",
        "max_amount",
        "in each",
        amount,
        "own_amount",
        parameters.statistic.whole,
    )
    # If every user is in one group, the figure is a curve over the amount.
    if cells.groups.size == 1 < cells.amounts.size:
        first_bound, second_bound = second_bound, first_bound
    name, column, _, start, field, is_integer = first_bound
    handle = Handle(
        name,
        column,
        "error",
        start,
        field,
        is_integer,
        parts=PART_COLUMNS if has_parts else (),
        users=_users(solution, swapped=first_bound[1] == "max_amount"),
        dots=_dots(solution, has_parts),
        second=SecondBound(*second_bound),
    )
    return handle, {DOT: columns["noise"] * _magnitude(parameters.noise)} if has_parts else {}


def _dots(solution: MappedSolution, has_parts: bool) -> Dots:
    """Return the dots, each a simulated release of one group with an error of the size of the objective.

    Bias, sampling and noise of a dot are the roots of their mean squares over the groups, so that the mean square of
    the dots equals that of the objective. An error without known parts, such as that of a ratio, is drawn as one normal
    variable of its size.
    """
    unit_text, reach = unit_of(solution.parameters), REACH * solution.pair_error
    unit = unit_text if unit_text in ("rows", "users") else ""
    noise = draw_unit_noise(solution.parameters.noise)
    bias_column, noise_column, sampling_column = ("bias", DOT, "sampling") if has_parts else ("", "", "error")
    return Dots(
        bias_column,
        noise_column,
        noise,
        Spread.ROOT_MEAN_SQUARE,
        reach,
        unit,
        sampling_column,
        draw_normal(solution.parameters.noise),
        # If the parts are unknown, only the size of the error is drawn, and the line above the dots says so.
        unit_name="groups" if has_parts else "errors of this size",
    )


def _magnitude(noise: NoiseKind) -> float:
    """Return the mean magnitude of noise of standard deviation 1."""
    return noise.mean_magnitude / math.sqrt(noise.unit_variance)


def _users(solution: MappedSolution, swapped: bool) -> tuple[UserBars, ...]:
    """Return bars of users by their groups and of pairs by their amounts, if these have several sizes."""
    sizes = solution.bounded_sizes
    # The line below the bars names the bound that cuts them.
    users = sample_users(sizes.groups, sizes.users, "rows", is_cut_by_second=swapped)
    is_positive = sizes.amounts > 0.0
    if not is_positive.any():
        return (users,)
    pairs = sample_users(
        sizes.amounts[is_positive], sizes.pairs[is_positive], "rows", "pair", is_cut_by_second=not swapped
    )
    return tuple(bars for bars in (users, pairs) if bars.contributions[0] > bars.contributions[-1]) or (
        users,
    )
