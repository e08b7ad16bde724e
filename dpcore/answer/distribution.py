"""A contribution distribution as the field draws it, and in words. Pure: data in, plots out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer.plot import Axis, Bars, Curve, Limits, Look, Plot, Points, Scale
from dpcore.common import wording
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.dataset import Dataset

MAX_POINTS = 300


FEW_SIZES, MOST_CLASSES = 8, 10
"""Up to so many sizes each is a class of its own; so many classes have room beside each other."""


def classes(data: Dataset) -> Plot:
    """How many users have how many rows, and how many of all rows are theirs: two bars for every class of sizes."""
    columns = class_columns(data.histogram)
    users, rows = (np.asarray(columns[name]) for name in ("share_of_users", "share_of_rows"))
    most, held = int(np.argmax(users)), int(np.argmax(rows))
    names = columns["rows_per_user"]
    return Plot(
        "distribution-classes",
        "How many users have how many rows",
        f"{wording.percent(float(users[most]))} of users have {names[most]} rows; users with {names[held]} rows hold "
        f"{wording.percent(float(rows[held]))} of all rows",
        Axis("rows per user", "", (0.0, 1.0), Scale.NAMES),
        Axis("share", "", (0.0, 1.08 * float(max(users.max(), rows.max()))), Scale.PERCENT, number=".3~%"),
        columns,
        (
            Bars("Share of users", "rows_per_user", "share_of_users", Look.CAP, also=(("users", "users"),)),
            Bars(
                "Share of all rows", "rows_per_user", "share_of_rows", Look.SMOOTH, also=(("rows", "rows"),)
            ),
        ),
        data.provenance,
        main=True,
        height=380,
    )


def class_columns(histogram: ContributionHistogram) -> dict[str, list[str] | FloatArray]:
    """Users and rows by class of sizes: every size where these are few, else from 1, 3, 10, 30 ... or powers of ten."""
    sizes, low, high = histogram.sizes, int(histogram.min_size), int(histogram.max_size)
    if sizes.size <= FEW_SIZES:
        begins = sizes.astype(np.int64)
        names = [f"{size:,}" for size in begins.tolist()]
    else:
        powers = [10**power for power in range(len(str(high)))]
        begins = _between(sorted([*powers, *(3 * power for power in powers)]), low, high)
        if begins.size > MOST_CLASSES:
            begins = _between(powers, low, high)
        last = [*(begins[1:] - 1).tolist(), high]
        names = [f"{a:,}" if a == b else f"{a:,}–{b:,}" for a, b in zip(begins.tolist(), last, strict=True)]
    of = np.searchsorted(begins, sizes, side="right") - 1
    users = np.bincount(of, weights=histogram.users.astype(np.float64), minlength=begins.size)
    rows = np.bincount(of, weights=sizes.astype(np.float64) * histogram.users, minlength=begins.size)
    return {
        "rows_per_user": names,
        "share_of_users": users / users.sum(),
        "share_of_rows": rows / rows.sum(),
        "users": users,
        "rows": rows,
    }


def _between(cuts: list[int], low: int, high: int) -> IntArray:
    """Where classes begin that hold sizes from ``low`` to ``high``; the first one begins at ``low``."""
    return np.array([low, *(cut for cut in cuts if low < cut <= high)], dtype=np.int64)


def counts(data: Dataset) -> Plot:
    """Log-log: how many users have exactly so many rows; above `MAX_POINTS` distinct sizes, averages in bins."""
    histogram, columns = data.histogram, count_columns(data.histogram)
    low, high = float(columns["users"].min()), float(columns["users"].max())
    most = int(histogram.sizes[int(np.argmax(histogram.users))])
    averaged = ", average in bins" if histogram.sizes.size > MAX_POINTS else ""
    return Plot(
        "distribution-counts",
        "How many users have exactly so many rows",
        f"The commonest number of rows per user is {wording.number(most)}; the tail reaches {histogram.max_size:,}",
        _rows(histogram),
        Axis(
            "users per size", "", (low / 2.0, high * 2.0), title=f"Users per size{averaged}", number=",.3~r"
        ),
        columns,
        (Points("users", "size", "users", Look.CAP, size=6, opacity=0.75),),
        data.provenance,
        height=340,
    )


def tail(data: Dataset) -> Plot:
    """Log-log complementary CDF: a straight line is a power law."""
    histogram = data.histogram
    limits = (0.5 / histogram.num_users, 1.5)
    return Plot(
        "distribution-tail",
        "How heavy the tail is",
        f"One user in ten has more than {wording.counted(histogram.quantile(0.9), 'row')}",
        _rows(histogram),
        Axis("share of users with at least so many", "", limits, number=".3~%"),
        tail_columns(histogram),
        (Curve("users", "size", "share_of_users", Look.TOTAL, backwards=True),),
        data.provenance,
        height=340,
    )


def shares(data: Dataset) -> Plot:
    """Share of all rows that the heaviest users hold, users on a log axis."""
    histogram, columns = data.histogram, share_columns(data.histogram)
    held = wording.percent(histogram.summary().top_percent_share)
    limits = (min(max(1.0 / histogram.num_users, 1e-6), 0.5), 1.0)
    return Plot(
        "distribution-shares",
        "Who holds the rows",
        f"The heaviest 1 % of users hold {held} of all rows",
        Axis("heaviest users", "share of all users", limits, reach=limits, number=".3~%"),
        Axis("share of all rows they hold", "", (0.0, 1.02), Scale.PERCENT, number=".3~%"),
        columns,
        (
            Curve("these users", "share_of_users", "share_of_rows", Look.TOTAL),
            Curve("if all users were alike", "share_of_users", "share_of_users", Look.OWN),
        ),
        data.provenance,
        height=340,
    )


DISTRIBUTIONS = {"counts": counts, "tail": tail, "shares": shares}
"""Ways to draw a distribution beside `classes`, by name."""


def _rows(histogram: ContributionHistogram) -> Axis:
    limits: Limits = (float(histogram.min_size), float(max(histogram.max_size, 2 * histogram.min_size)))
    return Axis("rows", "per user", limits, title="Rows per user", reach=limits, number=",.3~r")


def count_columns(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Users per size; above `MAX_POINTS` distinct sizes, average users per size in log-spaced bins."""
    sizes, users = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)
    if sizes.size <= MAX_POINTS:
        return {"size": sizes, "users": users}
    edges = np.unique(np.floor(np.geomspace(sizes[0], sizes[-1] + 1.0, 80)))
    edges[-1] = sizes[-1] + 1.0
    which = np.digitize(sizes, edges) - 1
    total = np.bincount(which, weights=users, minlength=edges.size - 1)[: edges.size - 1]
    filled = total > 0
    middle = np.sqrt(edges[:-1] * np.maximum(edges[1:] - 1.0, edges[:-1]))
    return {"size": middle[filled], "users": (total / np.diff(edges))[filled]}


def tail_columns(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Share of users with at least so many rows (complementary CDF)."""
    sizes = histogram.sizes.astype(np.float64)
    if sizes.size > MAX_POINTS:
        picks = np.unique(np.round(np.geomspace(1, sizes.size, MAX_POINTS // 2)).astype(int)) - 1
        tail = np.unique(np.concatenate((picks, sizes.size - 1 - picks)))
        sizes = sizes[tail]
    # Sizes are whole, so "at least s" is "more than s - 1/2".
    at_least = histogram.pieces(sizes - 0.5).users_above
    return {"size": sizes, "share_of_users": at_least / histogram.num_users}


def share_columns(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Share of rows held by the heaviest users."""
    least = max(1.0 / histogram.num_users, 1e-6)
    shares = np.unique(np.concatenate((np.geomspace(least, 1.0, 200), [1.0])))
    return {"share_of_users": shares, "share_of_rows": histogram.share_held_by_heaviest(shares)}


GINI = "(0: all alike, 1: one user has everything)"


def sizes_sentence(histogram: ContributionHistogram) -> str:
    """How many users and rows there are, and how many rows the median, mean and heaviest user have."""
    summary = histogram.summary()
    return (
        f"**{wording.counted(summary.num_users, 'user')}** {wording.agreeing(summary.num_users, 'has', 'have')} "
        f"**{wording.counted(summary.num_rows, 'row')}**. "
        f"The median user has {wording.number(summary.median)}, the mean is {wording.number(summary.mean)}, the "
        f"heaviest user has {wording.number(summary.max)}."
    )


def share_sentence(histogram: ContributionHistogram) -> str:
    """How many of all rows the heaviest users hold."""
    summary = histogram.summary()
    heaviest = math.ceil(0.01 * summary.num_users)
    return (
        f"The heaviest 1 % ({wording.counted(heaviest, 'user')}) {wording.agreeing(heaviest, 'holds', 'hold')} "
        f"{wording.percent(summary.top_percent_share)} of all rows."
    )
