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
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.quantile import WeightKind
from dpcore.quantile.answer.solution import (
    BaseChange,
    QuantileSolution,
    compute_mean_error,
    find_shown_ranges,
)
from dpcore.quantile.answer.words import KIND_NAMES, describe_answers, name_quantile
from dpcore.quantile.parameters import Weighting

BINS, SAMPLE_BINS = 240, 40
SHARE = "share of rows"
# One style per quantile, other than those of cap and smooth weights; at most MAX_QUANTILES are asked for.
STYLES = (
    (Style.SAMPLING, "solid"),
    (Style.PRIVACY, "dash"),
    (Style.CUSTOMARY, "dashdot"),
    (Style.TOTAL, "dot"),
    (Style.SMOOTH, "longdash"),
)
WIDTH = 2.5  # In pixels, of a quantile's line.
KIND_STYLES = (
    (WeightKind.SMOOTH, "Smooth weights", Style.SMOOTH, "circle"),
    (WeightKind.CAP, "Bounded rows", Style.CAP, "diamond"),
)


def plot_errors(solution: QuantileSolution, dataset: Dataset) -> Plot:
    """Plot the expected rank error against the bound, with the best of each kind: the main figure."""
    items: list[Item] = []
    names = ("weights", "bound", "expected_rank_error", "standard_error_over_subsamples")
    columns: dict[str, npt.NDArray[Any]] = {}
    for weighting, name, style, symbol in KIND_STYLES:
        quantile_choice = solution.choices.get(weighting)
        if quantile_choice.weight_kind is not weighting:
            continue
        rank_errors = quantile_choice.search_errors
        kinds = np.full(rank_errors.bounds.size, name.lower())
        lines = kinds, rank_errors.bounds, rank_errors.rank_errors, rank_errors.standard_errors
        for column, values in zip(names, lines, strict=True):
            columns[column] = np.append(columns.get(column, values[:0]), values)
        # Often one lies on the other: both are to be seen.
        dash = "dash" if weighting is WeightKind.CAP else ""
        items.append(Curve(name, rank_errors.bounds, rank_errors.rank_errors, style, dash=dash))
        best_point = quantile_choice.bound, quantile_choice.rank_error
        items.append(Mark(f"Best, {name.lower()}", *best_point, style, symbol))
    items.append(Level("No bound", solution.unbounded_error, dash="longdash"))
    if solution.has_ties:
        items.append(Level("Least possible (ties)", solution.least_error))
    if solution.bound != solution.choices.get(solution.weight_kind).bound:
        items.append(Mark(IN_USE, solution.bound, solution.rank_error, Style.ENTERED, "square"))
    own_bound = solution.parameters.own_bound
    if own_bound is not None:
        items.append(
            Mark("Your own bound", own_bound, compute_mean_error(solution.own_outputs), Style.ENTERED, "x")
        )
    least_texts = (
        f"at {wording.counted(choice.bound, 'row')} with {KIND_NAMES[choice.weight_kind]}, "
        f"{wording.percent(choice.rank_error)}"
        for choice in solution.choices.each_choice
    )
    marked_errors = [item.y for item in items if isinstance(item, Mark)]
    limits = fit_limits(np.array([*columns["expected_rank_error"], *marked_errors, solution.unbounded_error]))
    return Plot(
        "quantile-error",
        "Rank error against the bound",
        f"Least {', and '.join(least_texts)}.",
        build_bound_axis(solution.problem.histogram),
        Axis("rank error", SHARE, limits, title=f"Expected rank error ({SHARE})", number_format=".3~%"),
        items,
        dataset.provenance,
        columns,
        is_main=True,
    )


def plot_density(
    solution: QuantileSolution, dataset: Dataset, limits: tuple[float, float] | None = None
) -> Plot:
    """Plot where the answer falls: its exact density on equal bins, with its mean and the quantile of the rows.

    The vertical axis moves with epsilon: a density has area 1.

    Args:
        solution: What is plotted.
        dataset: What it is about.
        limits: From which value to which; by default those near the quantiles.
    """
    low, high = find_shown_ranges(solution)[0] if limits is None else limits
    edges = _cut_bins(solution, low, high)
    centers = (edges[:-1] + edges[1:]) / 2.0
    curves, means, quantiles = list[Curve](), list[Level](), list[Level]()
    for output, (style, dash), quantile in zip(
        solution.outputs, STYLES, solution.exact_quantiles, strict=False
    ):
        name, column = name_quantile(output.quantile), f"density_q{wording.digits(output.quantile)}"
        density_column = Column(column, output.compute_binned_density(edges))
        curves.append(Curve(name, centers, density_column, style, dash=dash, width=WIDTH, line_shape="hvh"))
        for levels, label, position, level_dash in (
            (means, "Mean of the answer", output.mean, "dot"),
            (quantiles, "Quantile of the rows", quantile, "solid"),
        ):
            if low <= position <= high:
                options: dict[str, Any] = {"style": style, "dash": level_dash, "shared_legend_name": label}
                levels.append(Level(f"{name}: {label.lower()}", position, is_vertical=True, **options))
    if len(solution.outputs) == 1:
        if solution.own_outputs:
            own_density = solution.own_outputs[0].compute_binned_density(edges)
            curves.append(Curve("Your own bound", centers, own_density, Style.CUSTOMARY))
        if solution.bound < solution.problem.histogram.max_size:
            unbounded_density = solution.unbounded_outputs[0].compute_binned_density(edges)
            curves.append(Curve("Without a bound", centers, unbounded_density, Style.ENTERED))
    if not solution.is_simulated:
        base_column = Column("base_density", _compute_base_density(solution, edges))
        curves.append(Curve("Base ν", centers, base_column, Style.SAMPLING, color_style=Style.ENTERED))
    return Plot(
        "quantile-density",
        "Where the answer falls",
        " ".join(f"{name}: {sentence}" for name, sentence in describe_answers(solution).items()),
        _build_value_axis((low, high)),
        linear_axis("density", _fit_from_zero(curves), "per unit of the values", number_format=".3~g"),
        (*curves, *means, *quantiles),
        dataset.provenance,
        {"from": edges[:-1], "to": edges[1:]},
        height=400,
    )


def _cut_bins(solution: QuantileSolution, low: float, high: float) -> FloatArray:
    """Return the edges of equal bins between two values, or for candidates of bins that hold as many each."""
    base = solution.problem.base
    if solution.is_simulated:
        return np.linspace(low, high, BINS // 4 + 1)
    first, stop = np.searchsorted(base.breaks, (low, high))
    if not base.is_discrete or stop - first < 4:
        return np.linspace(low, high, BINS + 1)
    midpoints = (base.breaks[first : stop - 1] + base.breaks[first + 1 : stop]) / 2.0
    return midpoints[:: -(-midpoints.size // BINS)]


def _build_value_axis(limits: tuple[float, float]) -> Axis:
    """Build the axis of answers, in the unit of the values."""
    return linear_axis("answer", limits, "unit of the values", number_format=",.4~g")


def _fit_from_zero(series: Sequence[Curve | Points]) -> tuple[float, float]:
    """Return the limits from 0 to a little above the highest of what is plotted."""
    return 0.0, 1.05 * max(float(np.max(item.y)) for item in series) or 1.0


def _compute_base_density(solution: QuantileSolution, edges: FloatArray) -> FloatArray:
    """Return the mean density of the base distribution on each bin, shape (bins,)."""
    # Between two edges the base may change its form: its mass there is that of the pieces.
    base = solution.problem.base
    cuts = np.union1d(edges, base.breaks[(base.breaks > edges[0]) & (base.breaks < edges[-1])])
    cumulated = np.concatenate(([0.0], np.cumsum(np.exp(base.log_mass(cuts[:-1], cuts[1:])))))
    return np.diff(cumulated[np.searchsorted(cuts, edges)]) / np.diff(edges)


def plot_rank_distance(solution: QuantileSolution, dataset: Dataset) -> Plot:
    """Plot the probability that the answer lies within t in rank of the quantile, with the bound and without any."""
    grid, legend = np.geomspace(1e-4, 0.5, 160), "Without a bound" if len(solution.outputs) > 1 else ""
    distance_column = Column("distance_in_rank", grid)
    curves, unbounded_curves = list[Curve](), list[Curve]()
    columns: dict[str, npt.ArrayLike] = {"distance_in_rank": grid}
    for output, unbounded_output, (style, dash) in zip(
        solution.outputs, solution.unbounded_outputs, STYLES, strict=False
    ):
        name, column = name_quantile(output.quantile), f"probability_q{wording.digits(output.quantile)}"
        columns[column], columns[f"{column}_without_bound"] = (
            bounded_probabilities,
            unbounded_probabilities,
        ) = (
            output.compute_probability_within(grid),
            unbounded_output.compute_probability_within(grid),
        )
        options: dict[str, Any] = {"color_style": style, "shared_legend_name": legend}
        curves.append(Curve(name, distance_column, bounded_probabilities, style, dash=dash, width=WIDTH))
        name = f"{name}, without a bound"
        unbounded_curves.append(
            Curve(name, distance_column, unbounded_probabilities, Style.ENTERED, **options)
        )
    return Plot(
        "quantile-near",
        "How near it falls",
        "Probability over the distance in rank.",
        Axis("distance t in rank", SHARE, (1e-4, 0.5), number_format=".3~g"),
        share_axis("probability of |F(answer) − q| ≤ t", (0.0, 1.02), number_format=".2~%"),
        (*curves, *([] if solution.parameters.weighting is Weighting.NONE else unbounded_curves)),
        dataset.provenance,
        columns,
        height=400,
    )


def plot_paper_bound(solution: QuantileSolution, dataset: Dataset) -> Plot:
    """Plot the paper's bound against h for both kinds, with the best h of its trade-off form."""
    histogram = solution.problem.histogram
    rank_bound, bounds = solution.parameters.build_rank_bound(histogram), choose_curve_bounds(histogram)
    items: list[Item] = []
    for weighting, name, style, symbol in KIND_STYLES:
        bound_column = Column(f"{weighting.name.lower()}_paper_bound", rank_bound.compute(weighting, bounds))
        best = rank_bound.find_best(weighting).bound
        least_value = float(rank_bound.compute(weighting, best))
        items.append(Curve(name, Column("bound", bounds), bound_column, style))
        items.append(Mark(f"Best, {name.lower()}", best, least_value, style, symbol))
    return Plot(
        "quantile-paper",
        "The paper's bound",
        f"Least near {wording.counted(solution.counts_bound, 'row')}.",
        build_bound_axis(histogram),
        Axis("bound on the rank error", SHARE, (1e-3, 1e2), number_format=".3~g"),
        (*items, Level("Vacuous above 1", 1.0, dash="longdash")),
        dataset.provenance,
        height=400,
    )


def plot_poorer(
    solution: QuantileSolution, change: BaseChange, steps: FloatArray, errors: FloatArray, dataset: Dataset
) -> Plot:
    """Plot the expected rank error as the base distribution gets poorer; ``steps`` and ``errors`` of shape (k,)."""
    unit, column = "its widths; 0 = as entered", "moved_by_widths"
    axis = linear_axis("ν moved by", (-1.05, 1.05), unit, title=f"ν moved by ({unit})", number_format=".2f")
    if change is BaseChange.WIDER:
        axis = Axis("width of ν", "1 = as entered", (1.0, 1e4), number_format=",.3~g")
        column = "times_as_wide"
    y = Column("expected_rank_error", errors)
    return Plot(
        "quantile-poorer",
        "Poorer bases",
        f"For the base as entered the error is {wording.percent(solution.rank_error)}.",
        axis,
        Axis("expected rank error", SHARE, (1e-4, 1.0), number_format=".3~%"),
        (Curve("Expected rank error", Column(column, steps), y, Style.TOTAL, symbol="circle"),),
        dataset.provenance,
    )


def plot_samples(
    solution: QuantileSolution, answers: FloatArray, limits: tuple[float, float], dataset: Dataset
) -> Plot:
    """Plot the share of the simulated answers in each bin beside its exact probability, within ``limits``."""
    edges, num_draws = np.linspace(*limits, SAMPLE_BINS + 1), max(answers.shape[0], 1)
    centers = (edges[:-1] + edges[1:]) / 2.0
    columns: dict[str, npt.ArrayLike] = {"from": edges[:-1], "to": edges[1:]}
    items: list[Curve | Points] = []
    for output, output_answers, (style, dash) in zip(solution.outputs, answers.T, STYLES, strict=False):
        name, key = name_quantile(output.quantile), f"q{wording.digits(output.quantile)}"
        simulated_shares = np.histogram(output_answers, edges)[0] / num_draws
        exact_probabilities = np.diff(output.cdf(edges))
        columns |= {
            f"simulated_share_{key}": simulated_shares,
            f"exact_probability_{key}": exact_probabilities,
        }
        items.append(
            Curve(
                f"{name}, exact",
                centers,
                exact_probabilities,
                style,
                dash=dash,
                width=WIDTH,
                line_shape="hvh",
            )
        )
        items.append(Points(f"{name}, simulated", centers, simulated_shares, style, size=7))
    return Plot(
        "quantile-samples",
        "Sampled answers",
        "Simulated beside exact probabilities.",
        _build_value_axis(limits),
        share_axis("share of the answers in a bin", _fit_from_zero(items), number_format=".2~%"),
        items,
        dataset.provenance,
        columns,
    )
