"""Bounds and errors of a release per group as text, the same on the page and in the generated program."""

from __future__ import annotations

import math

from dpcore.common import wording
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic

DIGITS = 3


def round_up(amount: float) -> float:
    """Round an amount up to few digits, as the exact amount may reveal that of one user."""
    if amount <= 0.0 or not math.isfinite(amount):
        return amount
    step = 10.0 ** (math.floor(math.log10(amount)) - DIGITS + 1)
    return float(f"{math.ceil(amount / step * (1.0 - 1e-12)) * step:.12g}")


def amount_words(parameters: PerGroupParameters, amount: float) -> str:
    """Format a bound on an amount with its unit: rows, or a number without a unit."""
    if parameters.statistic in (Statistic.ROWS, Statistic.MEAN):
        return wording.counted(amount, "row")
    return wording.number(amount)


def pair_words(parameters: PerGroupParameters, max_groups: int, max_amount: float) -> str:
    """Format a pair of bounds, such as ``9 groups × 3 rows``; groups alone if users count once in each."""
    groups = wording.counted(max_groups, "group")
    if parameters.statistic is Statistic.USERS:
        return groups
    return f"{groups} × {amount_words(parameters, max_amount)}"


def pair_label(parameters: PerGroupParameters) -> str:
    """Return the label of the pair."""
    return "Best bound" if parameters.statistic is Statistic.USERS else "Best pair of bounds"


def error_words(parameters: PerGroupParameters, error: float) -> str:
    """Format an error with its unit: per cent, rows, users, or a number without a unit."""
    if parameters.objective.relative:
        return wording.percent(error)
    name = {Statistic.ROWS: "row", Statistic.USERS: "user"}.get(parameters.statistic)
    return wording.number(error) if name is None else wording.counted(float(f"{error:.3g}"), name)


def unit_of(parameters: PerGroupParameters) -> str:
    """Return the unit of errors, for axes."""
    if parameters.objective.relative:
        return "share of the group's size"
    return {
        Statistic.ROWS: "rows",
        Statistic.USERS: "users",
        Statistic.SUM: "unit of the column",
        Statistic.SIGNED_SUM: "unit of the column",
        Statistic.MEAN: "unit of the values",
    }[parameters.statistic]


OBJECTIVES = {
    Objective.ROOT_MEAN_SQUARE: "root mean squared error over the groups",
    Objective.MEAN_RMSE: "mean of the groups' errors",
    Objective.RELATIVE_ROOT_MEAN_SQUARE: "root mean square of the groups' relative errors",
    Objective.MEAN_RELATIVE: "mean of the groups' relative errors",
    Objective.LARGE_GROUPS: "root mean squared error over the large groups",
}
