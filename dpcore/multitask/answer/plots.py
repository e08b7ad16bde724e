"""Plots of many tasks as data, and the table of tasks. Pure functions of the solution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Bars, Column, Curve, Item, Level, Mark, Plot, Points, Style
from dpcore.answer.limits import fit_limits
from dpcore.answer.plot import linear_axis, names_axis, share_axis
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import capitalise, format_entered, format_number, format_percent
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.answer.solution import MultitaskSolution, Optima, Tasks, WeightComparison
from dpcore.multitask.answer.words import describe_tail_and_head, format_sizes, name_sampling
from dpcore.multitask.problem import PrivacyTarget, compare_budgets
from dpcore.multitask.sampling import ReleasedUserCounts
from dpcore.multitask.weights import Bucket, slice_by_size

WEIGHTS_STYLE, UNIFORM_STYLE, SAMPLING_STYLE = Style.CAP, Style.ENTERED, Style.PRIVACY
TASK_OPTIMUM_STYLE, USER_OPTIMUM_STYLE = Style.SAMPLING, Style.SMOOTH
MAX_PLOTTED_SIZES = 300
MAX_PLOTTED_TASKS = 3000
"""Most tasks in a plot; if there are more, it shows those at log-spaced ranks."""
NUM_BUDGET_USE_BINS = 20
FIFTH_NAMES = ("Tail", "2nd fifth", "Middle", "4th fifth", "Head")
UNIFORM_WEIGHTS_NAME = "Uniform weights"
SIZE_AXIS = Axis("users of the task", number_format=",")
EXPONENT_TICKS = ((0.0, "0"), (0.25, "1/4"), (0.5, "1/2"), (0.75, "3/4"), (1.0, "1"))


def name_weights(comparison: WeightComparison) -> str:
    """Name the weights by their exponent, as ``μ = 0.5``."""
    return f"μ = {format_entered(comparison.rule.exponent)}"


# --- tail to head -------------------------------------------------------------------------------------------


def plot_buckets(solution: MultitaskSolution) -> Plot:
    """Plot the weights' error bound from tail to head over that of uniform ones, beside the best uniform sampling."""
    comparison = solution.comparison
    return _plot_buckets(
        "many-tasks-buckets",
        "Error bounds from tail to head",
        f"{describe_tail_and_head(comparison)}, beside uniform weights.",
        comparison,
        [
            (
                name_sampling(comparison.best_task_sampling),
                comparison.sampling_buckets,
                SAMPLING_STYLE,
                "cross",
            )
        ],
        f"{UNIFORM_WEIGHTS_NAME}, all with β = {format_number(solution.budgets.exact_budget)}",
    )


def plot_optimum(comparison: WeightComparison, optima: Optima) -> Plot:
    """Plot the weights' error bound from tail to head over that of uniform ones, beside both exact optima."""
    styles_and_symbols = ((TASK_OPTIMUM_STYLE, "square"), (USER_OPTIMUM_STYLE, "triangle-up"))
    compared_series = [
        (
            capitalise(optimum_name),
            slice_by_size(optimum, comparison.uniform_allocation),
            *curve_style_and_symbol,
        )
        for (optimum_name, optimum), curve_style_and_symbol in zip(
            optima.allocations_by_name.items(), styles_and_symbols, strict=True
        )
    ]
    plot_title = "Error from tail to head, with the optima"
    return _plot_buckets("many-tasks-optimum", plot_title, f"{plot_title}.", comparison, compared_series)


def _plot_buckets(
    plot_key: str,
    plot_title: str,
    alt_text: str,
    comparison: WeightComparison,
    compared_series: Sequence[tuple[str, Sequence[Bucket], Style, str]],
    uniform_name: str = UNIFORM_WEIGHTS_NAME,
) -> Plot:
    """Plot the error bound from tail to head relative to uniform weights; whiskers reach over a bucket's tasks.

    Args:
        plot_key: Of the plot.
        plot_title: Of the plot.
        alt_text: Of the plot.
        comparison: The weights that the bars show.
        compared_series: Of further allocations: name, buckets against uniform weights, style and symbol.
        uniform_name: Name of the level of uniform weights.
    """
    buckets = comparison.buckets
    has_fifths = len(buckets) == len(FIFTH_NAMES)
    bucket_names = FIFTH_NAMES if has_fifths else [f"Task {i + 1}" for i in range(len(buckets))]
    size_range_texts = [format_sizes(bucket).replace(" to ", "–") for bucket in buckets]
    bucket_labels = [
        f"{bucket_name}<br>{size_range_text}"
        for bucket_name, size_range_text in zip(bucket_names, size_range_texts, strict=True)
    ]
    least_ratio_column = Column("least_ratio_of_a_task", [b.least_task_ratio for b in buckets])
    largest_ratio_column = Column("largest_ratio_of_a_task", [b.largest_task_ratio for b in buckets])
    total_share_column = Column("share_of_total", [bucket.total_share for bucket in buckets])
    items: list[Item] = [
        Bars(
            f"{name_weights(comparison)} (whiskers: best to worst task)",
            bucket_labels,
            Column("error_ratio", [bucket.ratio for bucket in buckets]),
            WEIGHTS_STYLE,
            least_ratio_column,
            largest_ratio_column,
            opacity=0.75,
            base_value=1.0,
            gap_share=0.45,
            hover_numbers=(
                ("best task", least_ratio_column),
                ("worst task", largest_ratio_column),
                ("share of the total bound", total_share_column),
            ),
        )
    ]
    shown_ratios = [0.8, 1.25]
    for allocation_name, compared_buckets, bucket_style, mark_symbol in compared_series:
        error_ratios = [bucket.ratio for bucket in compared_buckets]
        error_ratio_column = Column(f"{allocation_name}: error_ratio", error_ratios)
        items.append(
            Points(
                allocation_name, bucket_labels, error_ratio_column, bucket_style, symbol=mark_symbol, size=11
            )
        )
        shown_ratios += error_ratios
    return Plot(
        plot_key,
        plot_title,
        alt_text,
        names_axis("tasks", f"{'Fifths of the tasks' if has_fifths else 'Tasks'} by size (users)"),
        _build_ratio_axis(comparison, shown_ratios),
        (*items, Level(uniform_name, 1.0, dash="dash")),
        comparison.tasks.disclosure,
        {
            "smallest_task": [bucket.smallest_size for bucket in buckets],
            "largest_task": [bucket.largest_size for bucket in buckets],
            "tasks": [bucket.num_tasks for bucket in buckets],
        },
    )


def _build_ratio_axis(comparison: WeightComparison, shown_ratios: Sequence[float] = (0.8, 1.25)) -> Axis:
    """Build the axis of an error bound relative to uniform weights, whose limits do not move with mu."""
    lowest_ratio, highest_ratio = comparison.exponent_curve.ratio_limits
    axis_limits = min(lowest_ratio, *shown_ratios) / 1.2, max(highest_ratio, *shown_ratios) * 1.2
    return Axis("error bound", "1 = uniform weights", axis_limits)


# --- weight against size ------------------------------------------------------------------------------------


def average_by_size(task_sizes: IntArray, task_values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return distinct task sizes, ascending at most `MAX_PLOTTED_SIZES`, and the mean value of their tasks."""
    distinct_sizes, size_indices = np.unique(task_sizes, return_inverse=True)
    mean_values = np.bincount(size_indices, task_values) / np.bincount(size_indices)
    kept_size_indices = choose_indices(distinct_sizes.size)
    return distinct_sizes[kept_size_indices].astype(np.float64), mean_values[kept_size_indices]


def choose_indices(num_values: int) -> IntArray:
    """Choose at most `MAX_PLOTTED_SIZES` of the indices 0 to num_values − 1, evenly spaced, with both ends."""
    return np.unique(
        np.round(np.linspace(0, num_values - 1, min(num_values, MAX_PLOTTED_SIZES))).astype(np.int64)
    )


def plot_weights(solution: MultitaskSolution) -> Plot:
    """Plot the mean weight of tasks against their size, and beneath it the relative error bound of each fifth.

    No axis moves with mu.
    """
    comparison, task_sizes = solution.comparison, solution.comparison.problem.graph.task_sizes
    distinct_sizes, mean_weights = average_by_size(task_sizes, comparison.allocation.mean_weights)
    _, uniform_weights = average_by_size(task_sizes, comparison.uniform_allocation.mean_weights)
    is_advised = comparison.rule.exponent == comparison.recommendation[0]
    weights_name = f"{name_weights(comparison)}{' (recommended)' if is_advised else ''}"
    # A line from the smallest to the largest task of each fifth, with a gap after it.
    fifth_sizes = [
        fifth_size for b in comparison.buckets for fifth_size in (b.smallest_size, *[b.largest_size] * 2)
    ]
    fifth_ratios = [fifth_ratio for b in comparison.buckets for fifth_ratio in (b.ratio, b.ratio, math.nan)]
    fifths_curve = Curve("Fifths of the tasks", fifth_sizes, fifth_ratios, WEIGHTS_STYLE, symbol="circle")
    ratio_axis = replace(_build_ratio_axis(comparison), title="Error (1 = uniform)")
    error_items = (
        fifths_curve,
        Curve("Uniform", distinct_sizes[[0, -1]], [1.0, 1.0], UNIFORM_STYLE, is_unnamed=True),
    )
    weight_limits = fit_limits(np.array(comparison.exponent_curve.weight_limits))
    error_plot = Plot(
        "many-tasks-fifths", "", "", SIZE_AXIS, ratio_axis, error_items, comparison.tasks.disclosure
    )
    return Plot(
        "many-tasks-weights",
        "Weight and error bound against the size of the task",
        f"The larger μ, the more small tasks weigh. {describe_tail_and_head(comparison)}.",
        SIZE_AXIS,
        Axis("weight ω", "1 = √β", weight_limits, title="Weight ω (1 = whole budget)"),
        (
            Curve(UNIFORM_WEIGHTS_NAME, distinct_sizes, uniform_weights, UNIFORM_STYLE),
            Points(weights_name, distinct_sizes, mean_weights, WEIGHTS_STYLE, opacity=0.8, size=6),
        ),
        comparison.tasks.disclosure,
        {
            "users_of_task": distinct_sizes,
            "weight_over_root_beta": mean_weights,
            "uniform_over_root_beta": uniform_weights,
        },
        is_main=True,
        lower_plot=error_plot,
        lower_height_share=0.35,
    )


def plot_skew(comparison: WeightComparison, optimum_skews: FloatArray) -> Plot:
    """Plot over task size the share of a task's weight that moves to other users: chosen weights and free optimum."""
    items: list[Item] = []
    for curve_name, task_skews, curve_style, mark_symbol in (
        (name_weights(comparison), comparison.task_skews, WEIGHTS_STYLE, "circle"),
        ("Free weights", optimum_skews, USER_OPTIMUM_STYLE, "triangle-up"),
    ):
        sizes, mean_skews = average_by_size(comparison.tasks.graph.task_sizes, task_skews)
        x, y = Column("users_of_task", sizes), Column(curve_name, mean_skews)
        items.append(Points(curve_name, x, y, curve_style, opacity=0.8, symbol=mark_symbol, size=6))
    return Plot(
        "many-tasks-weight-skew",
        "Weight skew: whose loss a task learns",
        f"Free weights move up to {format_percent(optimum_skews.max())} of a task's weight to other users.",
        SIZE_AXIS,
        share_axis("weight moved to other users", number_format=".3p"),
        items,
        comparison.tasks.disclosure,
    )


# --- sizes and mu -------------------------------------------------------------------------------------------


def plot_sizes(tasks: Tasks, file_has_all_tasks: bool = False) -> Plot:
    """Plot the users of every task, largest first, log-log; at log-spaced ranks if more than `MAX_PLOTTED_TASKS`.

    Args:
        tasks: Users and tasks.
        file_has_all_tasks: True if its file holds all tasks, False if those that are plotted.
    """
    descending_sizes = np.sort(tasks.graph.task_sizes)[::-1].astype(np.float64)
    size_ranks = np.arange(1.0, descending_sizes.size + 1.0)
    columns_by_name = {"rank": size_ranks, "users": descending_sizes}
    if descending_sizes.size > MAX_PLOTTED_TASKS:
        kept_rank_indices = (
            np.unique(np.round(np.geomspace(1, descending_sizes.size, MAX_PLOTTED_TASKS)).astype(np.int64))
            - 1
        )
        size_ranks, descending_sizes = size_ranks[kept_rank_indices], descending_sizes[kept_rank_indices]
    return Plot(
        "many-tasks-sizes",
        "How large the tasks are",
        "Users per task, largest first.",
        Axis("rank of the task, largest first", number_format=","),
        SIZE_AXIS,
        (
            Curve(
                "Users per task", size_ranks, descending_sizes, Style.TOTAL, is_unnamed=True, symbol="circle"
            ),
        ),
        tasks.disclosure,
        columns_by_name if file_has_all_tasks else {"rank": size_ranks, "users": descending_sizes},
    )


def plot_exponents(solution: MultitaskSolution) -> Plot:
    """Plot the total bound over mu, with marks at the best and the chosen mu, and a line at the optimum if known."""
    comparison, exponent_curve = solution.comparison, solution.comparison.exponent_curve
    exponents, relative_totals = exponent_curve.exponents, exponent_curve.relative_totals
    exponent_column = Column("mu", exponents)
    items: list[Item] = [
        Curve("Total bound", exponent_column, Column("total_bound", relative_totals), WEIGHTS_STYLE)
    ]
    if solution.optima is not None:
        optimal_total = comparison.compute_relative_total(solution.optima.choose(comparison.rule.fit))
        optimum_column = Column("optimum", np.full(exponents.shape, optimal_total))
        items.append(Curve("Exact optimum of this kind", exponent_column, optimum_column, USER_OPTIMUM_STYLE))
    items.append(Mark("Best μ", *exponent_curve.optimum, WEIGHTS_STYLE))
    chosen_total = comparison.compute_relative_total(comparison.allocation)
    items.append(Mark("Chosen μ", comparison.rule.exponent, chosen_total, SAMPLING_STYLE, "circle"))
    total_limits = min(float(relative_totals.min()), 0.8) / 1.5, max(float(relative_totals.max()), 1.25) * 1.2
    return Plot(
        "many-tasks-exponents",
        "Total error bound against the exponent",
        f"The total error bound is smallest at μ = {format_entered(exponent_curve.optimum[0])}.",
        linear_axis("exponent μ of the task's size", (-0.03, 1.03), named_ticks=EXPONENT_TICKS),
        Axis("total error bound", "1 = uniform", total_limits),
        items,
        comparison.tasks.disclosure,
    )


# --- users and their budget ---------------------------------------------------------------------------------


def plot_budget_use(comparison: WeightComparison) -> Plot:
    """Plot the share of users, among those with a task, by the share of their budget that is used."""
    bin_edges = np.linspace(0.0, 1.0, NUM_BUDGET_USE_BINS + 1)
    bars, active_mask = [], comparison.tasks.graph.tasks_per_user > 0
    for curve_name, column_prefix, allocation, bar_style in (
        (name_weights(comparison), "chosen", comparison.allocation, WEIGHTS_STYLE),
        (UNIFORM_WEIGHTS_NAME, "uniform", comparison.uniform_allocation, UNIFORM_STYLE),
    ):
        used_shares = allocation.budget_uses[active_mask] / comparison.problem.budget
        # The margin for rounding keeps a full budget just below 1: it belongs to the last bin.
        user_shares = np.histogram(np.clip(used_shares, 0.0, 1.0), bin_edges)[0] / used_shares.size
        share_column = Column(f"{column_prefix}_share_of_users", user_shares)
        bars.append(Bars(curve_name, (bin_edges[:-1] + bin_edges[1:]) / 2.0, share_column, bar_style))
    return Plot(
        "many-tasks-use",
        "How much of their budget users use",
        "Users by the share of their budget used.",
        share_axis("share of the user's budget β used", (0.0, 1.0), number_format=".1%"),
        share_axis("share of users", (0.0, 1.02), number_format=".3p"),
        bars,
        comparison.tasks.disclosure,
        {"used_from": bin_edges[:-1], "used_to": bin_edges[1:]},
    )


def build_budget_columns(delta: float) -> dict[str, FloatArray]:
    """Compute beta at 40 epsilons, exact and by the paper's condition; NaN where that does not hold.

    The result is a dict of arrays by column name.
    """
    epsilons = np.geomspace(0.01, 20.0, 40)
    budget_comparisons = [compare_budgets(PrivacyTarget(float(epsilon), delta)) for epsilon in epsilons]
    exact_budgets = np.array([budget_comparison.exact_budget for budget_comparison in budget_comparisons])
    sufficient_budgets = np.array([b.sufficient_budget or np.nan for b in budget_comparisons])
    return {"epsilon": epsilons, "exact_beta": exact_budgets, "paper_beta": sufficient_budgets}


def plot_budget(budget_columns: Mapping[str, FloatArray], epsilon: float, beta: float) -> Plot:
    """Plot beta over epsilon; ``budget_columns`` are those of `build_budget_columns`."""
    epsilons, exact_budgets, paper_budgets = budget_columns.values()
    return Plot(
        "many-tasks-budget",
        "User budget against the privacy budget",
        "The exact user budget lies above the paper's.",
        Axis("privacy budget ε", "", (0.01, 20.0)),
        Axis("user budget β"),
        (
            Curve("Exact", epsilons, exact_budgets, WEIGHTS_STYLE),
            Curve("Paper's sufficient β", epsilons, paper_budgets, USER_OPTIMUM_STYLE, dash="dash"),
            Mark("Now", epsilon, beta, WEIGHTS_STYLE),
        ),
        Disclosure.PUBLIC,
        budget_columns,
    )


# --- private counts, and the table of tasks -----------------------------------------------------------------


def plot_counts(tasks: Tasks, private_counts: ReleasedUserCounts) -> Plot:
    """Plot noisy counts of users per task, with and without slack, over true sizes, for some of the tasks.

    These are at most `MAX_PLOTTED_SIZES`, evenly spaced by rank of size.
    """
    task_order = np.argsort(tasks.graph.task_sizes, kind="stable")
    plotted_task_codes = task_order[choose_indices(task_order.size)]
    true_sizes = tasks.graph.task_sizes[plotted_task_codes].astype(np.float64)
    noisy_counts = private_counts.estimates[plotted_task_codes]
    usable_counts = private_counts.usable_counts[plotted_task_codes]
    floored_estimates = np.maximum(noisy_counts, 1.0)
    return Plot(
        "many-tasks-counts",
        "Estimated against true sizes",
        "Small tasks drown in the noise first.",
        SIZE_AXIS,
        Axis("users, as estimated", number_format=",.0f"),
        (
            Curve("The truth", true_sizes, true_sizes, UNIFORM_STYLE),
            Points(
                "Estimate, at least 1",
                true_sizes,
                floored_estimates,
                SAMPLING_STYLE,
                symbol="x-thin-open",
                size=6,
            ),
            Points("Estimate + s, used", true_sizes, usable_counts, WEIGHTS_STYLE, symbol="circle", size=6),
        ),
        tasks.disclosure,
        {"users_of_task": true_sizes, "estimate": noisy_counts, "estimate_and_slack": usable_counts},
    )


def tabulate_tasks(solution: MultitaskSolution, max_rows: int) -> tuple[dict[str, npt.ArrayLike], int]:
    """Tabulate the tasks, smallest first; return the columns by heading, and how many tasks are left out.

    If there are more than ``max_rows``, those in the middle are left out.
    """
    allocation, uniform_allocation = solution.comparison.allocation, solution.comparison.uniform_allocation
    task_sizes, error_bounds = allocation.problem.graph.task_sizes, allocation.task_bounds
    task_order = np.argsort(task_sizes, kind="stable")
    num_left_out = max(task_order.size - max_rows, 0)
    if num_left_out:
        task_order = np.concatenate((task_order[: max_rows // 2], task_order[-(max_rows - max_rows // 2) :]))
    return {
        "Task": task_order,
        "Users": task_sizes[task_order],
        "Weight, mean": np.sqrt(solution.budgets.exact_budget) * allocation.mean_weights[task_order],
        "Weight against uniform": (allocation.mean_weights / uniform_allocation.mean_weights)[task_order],
        "Error bound against uniform": (error_bounds / uniform_allocation.task_bounds)[task_order],
        "Share of the total error": (error_bounds / error_bounds.sum())[task_order],
    }, num_left_out
