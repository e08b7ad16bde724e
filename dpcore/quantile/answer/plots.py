"""Plots of quantiles as data. Pure functions of the solution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Column, Curve, Item, Level, Mark, Plot, Points, Style, linear_axis, share_axis
from dpcore.answer.axes import build_bound_axis, choose_curve_bounds
from dpcore.answer.limits import fit_limits
from dpcore.answer.plot import IN_USE
from dpcore.common.wording import format_count, format_digits, format_percent
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.quantile import WeightKind
from dpcore.quantile.answer.solution import (
    BaseChange,
    QuantileSolution,
    compute_mean_error,
    find_shown_ranges,
)
from dpcore.quantile.answer.words import NAME_BY_KIND, describe_answers, name_quantile
from dpcore.quantile.parameters import Weighting

NUM_DENSITY_BINS, NUM_SAMPLE_BINS = 240, 40
SHARE_UNIT = "share of rows"
# One style per quantile, other than those of cap and smooth weights; at most MAX_QUANTILES are asked for.
STYLE_AND_DASH_OF_QUANTILES = (
    (Style.SAMPLING, "solid"),
    (Style.PRIVACY, "dash"),
    (Style.CUSTOMARY, "dashdot"),
    (Style.TOTAL, "dot"),
    (Style.SMOOTH, "longdash"),
)
LINE_WIDTH = 2.5  # In pixels, of a quantile's line.
STYLES_OF_WEIGHT_KINDS = (
    (WeightKind.SMOOTH, "Smooth weights", Style.SMOOTH, "diamond"),
    (WeightKind.CAP, "Bounded rows", Style.CAP, "diamond"),
)


def plot_errors(solution: QuantileSolution, dataset: Dataset) -> Plot:
    """Plot the main figure: the expected rank error against the bound, with the best bound of each kind."""
    items, least_error_phrases = list[Item](), list[str]()
    columns: dict[str, npt.NDArray[Any]] = {}
    for weight_kind, curve_name, curve_style, mark_symbol in STYLES_OF_WEIGHT_KINDS:
        quantile_choice = solution.choices.get(weight_kind)
        if quantile_choice.weight_kind is not weight_kind:
            continue
        tried_errors = quantile_choice.search_errors
        values_by_column = {
            "weights": np.full(tried_errors.bounds.size, curve_name.lower()),
            "bound": tried_errors.bounds,
            "expected_rank_error": tried_errors.expected_errors,
            "standard_error_over_subsamples": tried_errors.standard_errors,
        }
        for column_name, column_values in values_by_column.items():
            columns[column_name] = np.append(columns.get(column_name, column_values[:0]), column_values)
        # Often one lies on the other: both are to be seen.
        line_dash = "dash" if weight_kind is WeightKind.CAP else ""
        items.append(
            Curve(curve_name, tried_errors.bounds, tried_errors.expected_errors, curve_style, dash=line_dash)
        )
        mark_name = "Best bound" if weight_kind is WeightKind.CAP else "Best smooth weights"
        least_error = quantile_choice.rank_error
        items.append(Mark(mark_name, quantile_choice.bound, least_error, curve_style, mark_symbol))
        bound_phrase = f"at {format_count(quantile_choice.bound, 'row')} with {NAME_BY_KIND[weight_kind]}"
        least_error_phrases.append(f"{bound_phrase}, {format_percent(least_error)}")
    items.append(Level("No bound", solution.unbounded_error, dash="longdash"))
    if solution.has_unavoidable_error:
        items.append(Level("Least possible (ties)", solution.least_error))
    if solution.bound != solution.choices.get(solution.weight_kind).bound:
        items.append(Mark(IN_USE, solution.bound, solution.rank_error, Style.ENTERED, "square"))
    if (own_bound := solution.parameters.own_bound) is not None:
        own_error = compute_mean_error(solution.own_outputs)
        items.append(Mark("Your own bound", own_bound, own_error, Style.ENTERED, "x"))
    marked_errors = [item.y for item in items if isinstance(item, Mark)]
    plotted_errors = [*columns["expected_rank_error"], *marked_errors, solution.unbounded_error]
    error_limits = fit_limits(np.array(plotted_errors))
    plot_key, plot_title, alt_text = (
        "quantile-error",
        "Rank error against the bound",
        f"Least {', and '.join(least_error_phrases)}.",
    )
    bound_axis = build_bound_axis(solution.problem.histogram)
    axis_title = f"Expected rank error ({SHARE_UNIT})"
    y_axis = Axis("rank error", SHARE_UNIT, error_limits, title=axis_title, number_format=".3~%")
    return Plot(
        plot_key, plot_title, alt_text, bound_axis, y_axis, items, dataset.provenance, columns, is_main=True
    )


def plot_density(
    solution: QuantileSolution, dataset: Dataset, shown_range: tuple[float, float] | None = None
) -> Plot:
    """Plot where the answer falls: its mean density on each bin, with its mean and the quantile of the rows.

    The vertical axis moves with epsilon: a density has area 1.

    Args:
        solution: What is plotted.
        dataset: What it is about.
        shown_range: From which value to which; by default those near the quantiles.
    """
    lowest_shown, highest_shown = find_shown_ranges(solution)[0] if shown_range is None else shown_range
    bin_edges = _cut_bins(solution, lowest_shown, highest_shown)
    centers = (bin_edges[:-1] + bin_edges[1:]) / 2.0
    curves, mean_levels, quantile_levels = list[Curve](), list[Level](), list[Level]()
    for output, (curve_style, line_dash), exact_quantile in zip(
        solution.outputs, STYLE_AND_DASH_OF_QUANTILES, solution.exact_quantiles, strict=False
    ):
        quantile_name, column_name = (
            name_quantile(output.quantile),
            f"density_q{format_digits(output.quantile)}",
        )
        density_column = Column(column_name, output.compute_binned_density(bin_edges))
        curves.append(
            Curve(
                quantile_name,
                centers,
                density_column,
                curve_style,
                dash=line_dash,
                width=LINE_WIDTH,
                line_shape="hvh",
            )
        )
        for level_items, level_label, level_value, level_dash in (
            (mean_levels, "Mean of the answer", output.mean, "dot"),
            (quantile_levels, "Quantile of the rows", exact_quantile, "solid"),
        ):
            if lowest_shown <= level_value <= highest_shown:
                level_options: dict[str, Any] = {
                    "style": curve_style,
                    "dash": level_dash,
                    "label": level_label,
                }
                level_name = f"{quantile_name}: {level_label.lower()}"
                level_items.append(Level(level_name, level_value, is_vertical=True, **level_options))
    if len(solution.outputs) == 1:
        if solution.own_outputs:
            own_density = solution.own_outputs[0].compute_binned_density(bin_edges)
            curves.append(Curve("Your own bound", centers, own_density, Style.CUSTOMARY))
        if solution.bound < solution.problem.histogram.max_size:
            unbounded_density = solution.unbounded_outputs[0].compute_binned_density(bin_edges)
            curves.append(Curve("Without a bound", centers, unbounded_density, Style.ENTERED))
    if not solution.is_simulated:
        base_column = Column("base_density", _compute_base_density(solution, bin_edges))
        curves.append(Curve("Base ν", centers, base_column, Style.SAMPLING, color_style=Style.ENTERED))
    alt_text = " ".join(
        f"{quantile_name}: {answer_sentence}"
        for quantile_name, answer_sentence in describe_answers(solution).items()
    )
    value_axis = _build_value_axis((lowest_shown, highest_shown))
    columns = {"from": bin_edges[:-1], "to": bin_edges[1:]}
    y_axis = linear_axis("density", _fit_from_zero(curves), "per unit of the values", number_format=".3~g")
    items: tuple[Item, ...] = (*curves, *mean_levels, *quantile_levels)
    plot_key, plot_title = "quantile-density", "Where the answer falls"
    return Plot(
        plot_key, plot_title, alt_text, value_axis, y_axis, items, dataset.provenance, columns, height=400
    )


def _cut_bins(solution: QuantileSolution, lowest_shown: float, highest_shown: float) -> FloatArray:
    """Return the edges of the bins of a density, ascending, shape (bins + 1,).

    They are equal bins between two values, fewer for simulated answers; for a base of candidates each bin holds equally
    many of those between the two values.
    """
    base = solution.problem.base
    if solution.is_simulated:
        return np.linspace(lowest_shown, highest_shown, NUM_DENSITY_BINS // 4 + 1)
    first_index, stop_index = np.searchsorted(base.breaks, (lowest_shown, highest_shown))
    if not base.is_discrete or stop_index - first_index < 4:
        return np.linspace(lowest_shown, highest_shown, NUM_DENSITY_BINS + 1)
    midpoints = (base.breaks[first_index : stop_index - 1] + base.breaks[first_index + 1 : stop_index]) / 2.0
    return midpoints[:: -(-midpoints.size // NUM_DENSITY_BINS)]


def _build_value_axis(shown_range: tuple[float, float]) -> Axis:
    """Build the axis of answers, in the unit of the values."""
    return linear_axis("answer", shown_range, "unit of the values", number_format=",.4~g")


def _fit_from_zero(plotted_items: Sequence[Curve | Points]) -> tuple[float, float]:
    """Return the limits of an axis from 0 to 5 % above the highest value that the items have, or to 1 if that is 0."""
    return 0.0, 1.05 * max(float(np.max(item.y)) for item in plotted_items) or 1.0


def _compute_base_density(solution: QuantileSolution, bin_edges: FloatArray) -> FloatArray:
    """Return the mean density of the base distribution on each bin, shape (bins,)."""
    # Between two edges the base may change its form: its mass there is that of the pieces.
    base = solution.problem.base
    cuts = np.union1d(bin_edges, base.breaks[(base.breaks > bin_edges[0]) & (base.breaks < bin_edges[-1])])
    cumulated_masses = np.concatenate(([0.0], np.cumsum(np.exp(base.log_mass(cuts[:-1], cuts[1:])))))
    return np.diff(cumulated_masses[np.searchsorted(cuts, bin_edges)]) / np.diff(bin_edges)


def plot_rank_distance(solution: QuantileSolution, dataset: Dataset) -> Plot:
    """Plot the probability that the answer lies within t in rank of the quantile, with the bound and without any."""
    rank_distances = np.geomspace(1e-4, 0.5, 160)
    distance_column = Column("distance_in_rank", rank_distances)
    curves, unbounded_curves = list[Curve](), list[Curve]()
    columns: dict[str, npt.ArrayLike] = {"distance_in_rank": rank_distances}
    for output, unbounded_output, (curve_style, line_dash) in zip(
        solution.outputs, solution.unbounded_outputs, STYLE_AND_DASH_OF_QUANTILES, strict=False
    ):
        quantile_name, column_name = (
            name_quantile(output.quantile),
            f"probability_q{format_digits(output.quantile)}",
        )
        bounded_probabilities = output.compute_probability_within(rank_distances)
        unbounded_probabilities = unbounded_output.compute_probability_within(rank_distances)
        columns[column_name] = bounded_probabilities
        columns[f"{column_name}_without_bound"] = unbounded_probabilities
        curves.append(
            Curve(
                quantile_name,
                distance_column,
                bounded_probabilities,
                curve_style,
                dash=line_dash,
                width=LINE_WIDTH,
            )
        )
        unbounded_options: dict[str, Any] = {"color_style": curve_style, "label": "Without a bound"}
        unbounded_name = f"{quantile_name}, without a bound"
        unbounded_curves.append(
            Curve(
                unbounded_name, distance_column, unbounded_probabilities, Style.ENTERED, **unbounded_options
            )
        )
    if solution.parameters.weighting is not Weighting.NONE:
        curves += unbounded_curves
    plot_title, alt_text = "How near it falls", "Probability over the distance in rank."
    x_axis = Axis("distance t in rank", SHARE_UNIT, (1e-4, 0.5), number_format=".3~g")
    y_axis = share_axis("probability of |F(answer) − q| ≤ t", (0.0, 1.02), number_format=".2~%")
    return Plot(
        "quantile-near", plot_title, alt_text, x_axis, y_axis, curves, dataset.provenance, columns, height=400
    )


def plot_paper_bound(solution: QuantileSolution, dataset: Dataset) -> Plot:
    """Plot the paper's bound against h for both kinds, with the best h of its trade-off form."""
    histogram = solution.problem.histogram
    rank_bound, bounds = solution.parameters.build_rank_bound(histogram), choose_curve_bounds(histogram)
    items: list[Item] = []
    for weight_kind, curve_name, curve_style, mark_symbol in STYLES_OF_WEIGHT_KINDS:
        paper_column = Column(
            f"{weight_kind.name.lower()}_paper_bound", rank_bound.compute(weight_kind, bounds)
        )
        best_bound = rank_bound.find_optimum(weight_kind).bound
        value_at_best = float(rank_bound.compute(weight_kind, best_bound))
        items.append(Curve(curve_name, Column("bound", bounds), paper_column, curve_style))
        items.append(Mark(f"Best, {curve_name.lower()}", best_bound, value_at_best, curve_style, mark_symbol))
    items.append(Level("Vacuous above 1", 1.0, dash="longdash"))
    plot_title, alt_text = "The paper's bound", f"Least near {format_count(solution.counts_bound, 'row')}."
    x_axis = build_bound_axis(histogram)
    y_axis = Axis("bound on the rank error", SHARE_UNIT, (1e-3, 1e2), number_format=".3~g")
    return Plot("quantile-paper", plot_title, alt_text, x_axis, y_axis, items, dataset.provenance, height=400)


def plot_poorer(
    solution: QuantileSolution,
    base_change: BaseChange,
    change_sizes: FloatArray,
    base_errors: FloatArray,
    dataset: Dataset,
) -> Plot:
    """Plot the expected rank error over how far the base distribution is moved, or how many times as wide it is.

    Args:
        solution: The solution for the base as entered.
        base_change: How the base gets poorer.
        change_sizes: By how much, shape (k,): shifts in widths of the base, or how many times as wide it is.
        base_errors: Expected rank errors there, shape (k,).
        dataset: What it is about.
    """
    change_unit_text, column_name = "its widths; 0 = as entered", "moved_by_widths"
    axis_title = f"ν moved by ({change_unit_text})"
    x_axis = linear_axis("ν moved by", (-1.05, 1.05), change_unit_text, title=axis_title, number_format=".2f")
    if base_change is BaseChange.WIDER:
        x_axis = Axis("width of ν", "1 = as entered", (1.0, 1e4), number_format=",.3~g")
        column_name = "times_as_wide"
    y_axis = Axis("expected rank error", SHARE_UNIT, (1e-4, 1.0), number_format=".3~%")
    size_column, error_column = Column(column_name, change_sizes), Column("expected_rank_error", base_errors)
    poorer_items = [Curve("Expected rank error", size_column, error_column, Style.TOTAL, symbol="circle")]
    alt_text = f"For the base as entered the error is {format_percent(solution.rank_error)}."
    return Plot("quantile-poorer", "Poorer bases", alt_text, x_axis, y_axis, poorer_items, dataset.provenance)


def plot_samples(
    solution: QuantileSolution,
    simulated_answers: FloatArray,
    dataset: Dataset,
    shown_range: tuple[float, float],
) -> Plot:
    """Plot the share of the simulated answers in each bin of a range of values, beside its exact probability."""
    bin_edges, num_draws = np.linspace(*shown_range, NUM_SAMPLE_BINS + 1), max(simulated_answers.shape[0], 1)
    centers = (bin_edges[:-1] + bin_edges[1:]) / 2.0
    columns: dict[str, npt.ArrayLike] = {"from": bin_edges[:-1], "to": bin_edges[1:]}
    items: list[Curve | Points] = []
    for output, answers_of_quantile, (curve_style, line_dash) in zip(
        solution.outputs, simulated_answers.T, STYLE_AND_DASH_OF_QUANTILES, strict=False
    ):
        quantile_name, column_suffix = name_quantile(output.quantile), f"q{format_digits(output.quantile)}"
        simulated_shares = np.histogram(answers_of_quantile, bin_edges)[0] / num_draws
        exact_probabilities = np.diff(output.cdf(bin_edges))
        columns[f"simulated_share_{column_suffix}"] = simulated_shares
        columns[f"exact_probability_{column_suffix}"] = exact_probabilities
        line_options: dict[str, Any] = {"dash": line_dash, "width": LINE_WIDTH, "line_shape": "hvh"}
        items.append(
            Curve(f"{quantile_name}, exact", centers, exact_probabilities, curve_style, **line_options)
        )
        items.append(Points(f"{quantile_name}, simulated", centers, simulated_shares, curve_style, size=7))
    plot_title, alt_text = "Sampled answers", "Simulated beside exact probabilities."
    x_axis = _build_value_axis(shown_range)
    y_axis = share_axis("share of the answers in a bin", _fit_from_zero(items), number_format=".2~%")
    return Plot("quantile-samples", plot_title, alt_text, x_axis, y_axis, items, dataset.provenance, columns)
