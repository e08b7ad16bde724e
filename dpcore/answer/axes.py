"""Bounds, axes and users of a contribution histogram on plots, and its distribution in plots and in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.answer.handle import MAX_BARS, UserBars
from dpcore.answer.limits import Limits
from dpcore.answer.plot import Axis, Bars, Curve, Plot, Points, Style, names_axis, share_axis
from dpcore.common.wording import choose_word, format_count, format_number, format_percent
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray, build_log_grid
from dpcore.dataset import Dataset

NUM_CURVE_POINTS = 240


def choose_curve_bounds(histogram: ContributionHistogram, num_points: int = NUM_CURVE_POINTS) -> FloatArray:
    """Choose the bounds of a curve, ascending: log-spaced from s_1 to s_m, with all sizes if at most 60.

    If all users have equally many rows, they go on to twice that size, since nothing lies between s_1 and s_m.
    """
    sizes = histogram.sizes.astype(np.float64)
    extra_bounds = list(sizes) if sizes.size <= 60 else ()
    return build_log_grid(*choose_bound_limits(histogram), num_points, extra_points=extra_bounds)


def choose_bound_limits(histogram: ContributionHistogram) -> Limits:
    """Choose the limits of an axis of bounds: the smallest and the largest size, at least twice the smallest."""
    min_size, max_size = float(histogram.min_size), float(histogram.max_size)
    return min_size, max(max_size, 2.0 * min_size)


ROWS_UNIT = "rows per user"
"""The unit of a bound on rows."""


def build_bound_axis(histogram: ContributionHistogram) -> Axis:
    """Build the log axis of a bound on rows, with the limits of `choose_bound_limits`."""
    limits = choose_bound_limits(histogram)
    return Axis("bound", ROWS_UNIT, limits, title="Bound (rows per user)", number_format=",.3~r")


def build_user_bars(
    ascending_contributions: npt.ArrayLike,
    users_per_contribution: npt.ArrayLike,
    unit: str,
    unit_name: str = "user",
    second_bound_cuts: bool = False,
) -> UserBars:
    """Build bars of at most `MAX_BARS` users, the heaviest first, at even ratios of rank so that a tail shows.

    Args:
        ascending_contributions: The contribution of a user, distinct and ascending, shape (k,).
        users_per_contribution: The number of users with each, shape (k,).
        unit: The unit of a contribution, for the title.
        unit_name: The name of a bar, if it is not a user.
        second_bound_cuts: True if the second bound of the handle cuts the bars, not the first.
    """
    cumulative_users = np.cumsum(np.asarray(users_per_contribution, dtype=np.float64)[::-1])
    num_users = float(cumulative_users[-1])
    sampled_user_ranks = np.unique(np.floor(np.geomspace(1.0, num_users, MAX_BARS)))
    if num_users <= MAX_BARS:
        sampled_user_ranks = np.arange(1.0, num_users + 1.0)
    descending_contributions = np.asarray(ascending_contributions, dtype=np.float64)[::-1]
    contributions_at_ranks = descending_contributions[np.searchsorted(cumulative_users, sampled_user_ranks)]
    count_text = format_count(int(num_users), unit_name)
    if sampled_user_ranks.size < num_users:
        count_text = f"{sampled_user_ranks.size} of {count_text}"
    # Rows are what the bound is about, and need no word.
    title = f"Bars: {count_text}" + ("" if unit == "rows" else f" by {unit}")
    return UserBars(contributions_at_ranks, title, second_bound_cuts)


MAX_PLOTTED_SIZES = 300
MAX_SINGLE_SIZES, MAX_CLASSES = 8, 10
"""Up to this many sizes each is its own class; this many classes fit beside each other."""


def plot_classes(dataset: Dataset) -> Plot:
    """Plot the share of users, and their share of all rows, as two bars for each class of sizes."""
    columns = tabulate_classes(dataset.histogram)
    class_names = columns["rows_per_user"]
    user_shares, row_shares = np.asarray(columns["share_of_users"]), np.asarray(columns["share_of_rows"])
    axis_end = 1.2 * float(max(user_shares.max(), row_shares.max()))
    bars = [
        Bars(series_name, class_names, class_shares, style, hover_numbers=((noun, columns[noun]),))
        for series_name, class_shares, style, noun in (
            ("Share of users", user_shares, Style.CAP, "users"),
            ("Share of all rows", row_shares, Style.SMOOTH, "rows"),
        )
    ]
    return Plot(
        "distribution-classes",
        "Rows per user",
        f"{format_percent(float(user_shares.max()))} of users have {class_names[int(user_shares.argmax())]} rows; "
        f"users with {class_names[int(row_shares.argmax())]} rows hold "
        f"{format_percent(float(row_shares.max()))} of all rows",
        names_axis("rows per user"),
        share_axis("share", (0.0, axis_end), number_format=".3~%"),
        bars,
        dataset.provenance,
        columns,
        is_main=True,
        height=500,
    )


def tabulate_classes(histogram: ContributionHistogram) -> dict[str, list[str] | FloatArray]:
    """Build columns by name: users, rows and their shares for each class of sizes.

    A class is one size if there are few, else from 1, 3, 10 ... or from 1, 10 ... on.
    """
    sizes, min_size, max_size = histogram.sizes, int(histogram.min_size), int(histogram.max_size)
    if sizes.size <= MAX_SINGLE_SIZES:
        class_starts = sizes.astype(np.int64)
        class_names = [f"{size:,}" for size in class_starts.tolist()]
    else:
        powers = [10**exponent for exponent in range(len(str(max_size)))]
        class_starts = _list_class_starts(
            sorted([*powers, *(3 * power for power in powers)]), min_size, max_size
        )
        if class_starts.size > MAX_CLASSES:
            class_starts = _list_class_starts(powers, min_size, max_size)
        class_limits = zip(class_starts.tolist(), [*(class_starts[1:] - 1).tolist(), max_size], strict=True)
        class_names = [
            f"{first_size:,}" if first_size == last_size else f"{first_size:,}–{last_size:,}"
            for first_size, last_size in class_limits
        ]
    class_indices = np.searchsorted(class_starts, sizes, side="right") - 1
    users_per_size, num_classes = histogram.users.astype(np.float64), class_starts.size
    users_per_class = np.bincount(class_indices, users_per_size, num_classes)
    rows_per_class = np.bincount(class_indices, sizes * users_per_size, num_classes)
    return {
        "rows_per_user": class_names,
        "share_of_users": users_per_class / users_per_class.sum(),
        "share_of_rows": rows_per_class / rows_per_class.sum(),
        "users": users_per_class,
        "rows": rows_per_class,
    }


def _list_class_starts(class_starts: list[int], min_size: int, max_size: int) -> IntArray:
    """Return the first sizes of classes, ascending: the smallest size, and given starts above it up to the largest."""
    return np.array([min_size, *(s for s in class_starts if min_size < s <= max_size)], dtype=np.int64)


def plot_counts(dataset: Dataset) -> Plot:
    """Plot, on log axes, how many users have each size.

    Above `MAX_PLOTTED_SIZES` distinct sizes they are averages in bins.
    """
    histogram, count_columns = dataset.histogram, tabulate_counts(dataset.histogram)
    plotted_sizes, users_per_size = count_columns["size"], count_columns["users"]
    commonest_size = int(histogram.sizes[int(np.argmax(histogram.users))])
    title = f"Users per size{', average in bins' if histogram.sizes.size > MAX_PLOTTED_SIZES else ''}"
    user_limits = float(users_per_size.min()) / 2.0, float(users_per_size.max()) * 2.0
    return Plot(
        "distribution-counts",
        "Users of each size",
        f"The commonest number of rows per user is {format_number(commonest_size)}; the tail reaches "
        f"{histogram.max_size:,}",
        _build_rows_axis(histogram),
        Axis("users per size", "", user_limits, title=title, number_format=",.3~r"),
        (Points("users", plotted_sizes, users_per_size, Style.CAP, size=6, opacity=0.75),),
        dataset.provenance,
        count_columns,
        height=340,
    )


def plot_tail(dataset: Dataset) -> Plot:
    """Plot, on log axes, the share of users with at least so many rows."""
    histogram, columns = dataset.histogram, tabulate_tail(dataset.histogram)
    share_limits = (0.5 / histogram.num_users, 1.5)
    return Plot(
        "distribution-tail",
        "How heavy the tail is",
        f"One user in ten has more than {format_count(histogram.find_quantile(0.9), 'row')}",
        _build_rows_axis(histogram),
        Axis("share of users with at least so many", "", share_limits, number_format=".3~%"),
        (Curve("users", columns["size"], columns["share_of_users"], Style.TOTAL, line_shape="vh"),),
        dataset.provenance,
        columns,
        height=340,
    )


def plot_shares(dataset: Dataset) -> Plot:
    """Plot the share of all rows that a share of the users, the heaviest first, holds; users on a log axis."""
    histogram, share_columns = dataset.histogram, tabulate_shares(dataset.histogram)
    user_shares, row_shares = share_columns["share_of_users"], share_columns["share_of_rows"]
    heaviest_share_text = format_percent(histogram.summarise().top_percent_share)
    limits = (min(max(1.0 / histogram.num_users, 1e-6), 0.5), 1.0)
    return Plot(
        "distribution-shares",
        "Who holds the rows",
        f"The heaviest 1 % of users hold {heaviest_share_text} of all rows",
        Axis("heaviest users", "share of all users", limits, settable_range=limits, number_format=".3~%"),
        share_axis("share of all rows they hold", (0.0, 1.02), number_format=".3~%"),
        (
            Curve("these users", user_shares, row_shares, Style.TOTAL),
            Curve("if all users were alike", user_shares, user_shares, Style.ENTERED),
        ),
        dataset.provenance,
        share_columns,
        height=340,
    )


PLOTTER_BY_DISTRIBUTION = {"counts": plot_counts, "tail": plot_tail, "shares": plot_shares}
"""Further plots of a distribution besides `plot_classes`, by name."""


def _build_rows_axis(histogram: ContributionHistogram) -> Axis:
    """Build the log axis of rows per user, from the smallest to the largest size."""
    limits = choose_bound_limits(histogram)
    return Axis(
        "rows", "per user", limits, title="Rows per user", settable_range=limits, number_format=",.3~r"
    )


def tabulate_counts(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Build columns by name: sizes and users of each.

    Above `MAX_PLOTTED_SIZES` distinct sizes they are centres of log-spaced bins and average users per size.
    """
    sizes, users_per_size = histogram.sizes.astype(np.float64), histogram.users.astype(np.float64)
    if sizes.size <= MAX_PLOTTED_SIZES:
        return {"size": sizes, "users": users_per_size}
    bin_edges = np.unique(np.floor(np.geomspace(sizes[0], sizes[-1] + 1.0, 80)))
    bin_edges[-1] = sizes[-1] + 1.0
    bin_indices = np.digitize(sizes, bin_edges) - 1
    users_per_bin = np.bincount(bin_indices, users_per_size, bin_edges.size - 1)[: bin_edges.size - 1]
    filled_mask = users_per_bin > 0
    bin_centers = np.sqrt(bin_edges[:-1] * np.maximum(bin_edges[1:] - 1.0, bin_edges[:-1]))
    return {"size": bin_centers[filled_mask], "users": (users_per_bin / np.diff(bin_edges))[filled_mask]}


def tabulate_tail(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Build columns by name: sizes, and the share of users with at least so many rows.

    There are up to about `MAX_PLOTTED_SIZES` sizes.
    """
    sizes = histogram.sizes.astype(np.float64)
    if sizes.size > MAX_PLOTTED_SIZES:
        log_spaced_indices = (
            np.unique(np.round(np.geomspace(1, sizes.size, MAX_PLOTTED_SIZES // 2)).astype(int)) - 1
        )
        sizes = sizes[np.unique(np.concatenate((log_spaced_indices, sizes.size - 1 - log_spaced_indices)))]
    # Sizes are whole, so "at least s" is "more than s - 1/2".
    return {
        "size": sizes,
        "share_of_users": histogram.compute_sums_at(sizes - 0.5).users_above / histogram.num_users,
    }


def tabulate_shares(histogram: ContributionHistogram) -> dict[str, FloatArray]:
    """Build columns by name: log-spaced shares of the users, the heaviest first, and their shares of all rows."""
    smallest_share = max(1.0 / histogram.num_users, 1e-6)
    user_shares = np.unique(np.concatenate((np.geomspace(smallest_share, 1.0, 200), [1.0])))
    return {"share_of_users": user_shares, "share_of_rows": histogram.compute_heaviest_share(user_shares)}


GINI_SCALE_TEXT = "0: all alike; 1: one user has everything."


def describe_sizes(histogram: ContributionHistogram, unit_noun: str = "user") -> str:
    """Write two sentences: the numbers of users and rows, and the rows of the median, mean and heaviest user."""
    summary = histogram.summarise()
    return (
        f"**{format_count(histogram.num_users, unit_noun)}** {choose_word(histogram.num_users, 'has', 'have')} "
        f"**{format_count(histogram.num_rows, 'row')}**. "
        f"The median user has {format_number(summary.median)}, the mean is {format_number(summary.mean)}, and the "
        f"heaviest has {format_number(histogram.max_size)}."
    )


def describe_share(histogram: ContributionHistogram) -> str:
    """Write one sentence: which share of all rows the heaviest 1 % of users hold."""
    return f"The heaviest 1 % of users hold {format_percent(histogram.summarise().top_percent_share)} of all rows."


WARNING_SHARE = 0.1
"""Above this share of values outside the range the page warns."""
RANGE_SOURCE_PHRASE = "from what you know of the quantity."


@dataclass(frozen=True)
class OutsideCounts:
    """The number of values outside a range; it is as private as the values.

    Attributes:
        num_below: Values below its lower end.
        num_above: Values above its upper end.
        num_values: All values.
        noun: The name of a value.
    """

    num_below: int
    num_above: int
    num_values: int
    noun: str = "value"

    @property
    def num_outside(self) -> int:
        """Return the number of values outside the range."""
        return self.num_below + self.num_above

    @property
    def exceeds_warning(self) -> bool:
        """Return True if more than `WARNING_SHARE` of the values lie outside the range."""
        return self.num_outside > WARNING_SHARE * self.num_values

    def write_sentence(self, range_phrase: str, singular_effect: str = "", plural_effect: str = "") -> str:
        """Write how many values lie below and above the range, and what happens to them, as a sentence."""
        if not self.num_outside:
            return f"All {self.noun}s lie inside {range_phrase}."
        return (
            f"{format_count(self.num_outside, self.noun)} of {format_number(self.num_values)} "
            f"({self.percent_text}) {choose_word(self.num_outside, 'lies', 'lie')} outside {range_phrase}"
            f"{choose_word(self.num_outside, singular_effect, plural_effect)}: "
            f"{format_number(self.num_below)} below, {format_number(self.num_above)} above."
        )

    @property
    def percent_text(self) -> str:
        """Return the share of values outside the range, such as ``12 %``."""
        return format_percent(self.num_outside / self.num_values)
