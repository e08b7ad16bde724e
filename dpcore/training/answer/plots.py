"""Plots of a classifier as data. Pure functions of the solution."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Column, Curve, Item, Level, Plot, Points, Style
from dpcore.answer.plot import linear_axis, names_axis, share_axis
from dpcore.common.wording import format_entered, format_number
from dpcore.training.account import Method
from dpcore.training.answer.solution import TrainingSolution
from dpcore.training.experiment import Side
from dpcore.training.rows import Measure, ScoreUnit

STYLES_BY_METHOD = {
    Method.FOLLOWED: Style.CUSTOMARY,
    Method.SMOOTH: Style.SMOOTH,
    Method.CAP: Style.CAP,
    Method.CLIPPED_SUM: Style.CUSTOMARY,
    Method.OUTPUT: Style.PRIVACY,
}
TITLE_BY_MEASURE = {Measure.LOSS: "Loss", Measure.ACCURACY: "Rows told right"}


def choose_limits(solution: TrainingSolution, measure: Measure, score_unit: ScoreUnit) -> tuple[float, float]:
    """Choose the limits of loss or accuracy from the references alone, so that they do not move with ε.

    A model that does much worse than guessing is of no use, and the axis ends a little beyond.
    """
    ref_scores = solution.average_references(measure, score_unit)
    score_distance, highest_score = ref_scores.distance, max(ref_scores.guessing, ref_scores.without_privacy)
    if measure is Measure.LOSS:
        return ref_scores.without_privacy - 0.08 * score_distance, highest_score + 0.45 * score_distance
    lowest_score = min(ref_scores.guessing, ref_scores.without_privacy)
    return lowest_score - 0.9 * score_distance, highest_score + 0.1 * score_distance


MAX_DISTANCE_BEYOND_GUESSING = 1.0
"""How far beyond guessing the axis reaches, in distances between guessing and no privacy."""


def plot_methods(solution: TrainingSolution, measure: Measure, score_unit: ScoreUnit) -> Plot:
    """Plot every method at its best bound, with 95 % intervals, between no privacy and guessing."""
    score_summary, measure_name = solution.table.summarise(measure, score_unit), measure.value
    ref_scores = solution.average_references(measure, score_unit)
    # Methods without runs are listed too, since the figure is updated in place.
    listed_methods = sorted(solution.parameters.methods, key=lambda method: method is not Method.FOLLOWED)
    best_cells = [solution.best_cell_by_method.get(method) for method in listed_methods]
    method_means, method_half_widths, method_reaches = (
        np.array(
            [math.nan if best_cell is None else float(x[best_cell.cell_index]) for best_cell in best_cells]
        )
        for x in (score_summary.means, score_summary.half_widths, solution.reaches)
    )
    # A method far worse than guessing is of no use, and would press all others together.
    worse_sign = 1.0 if measure is Measure.LOSS else -1.0
    far_beyond_mask = (
        worse_sign * (method_means - ref_scores.guessing) > MAX_DISTANCE_BEYOND_GUESSING * ref_scores.distance
    )
    visible_means, margin = np.where(far_beyond_mask, np.nan, method_means), 0.12 * ref_scores.distance
    scores_on_axis = np.append(visible_means[np.isfinite(visible_means)], ref_scores[:2])
    score_limits = float(scores_on_axis.min()) - margin, float(scores_on_axis.max()) + margin
    answer_mask = np.array([x is not None and x == solution.best_cell for x in best_cells])
    axis_labels = np.array([*map(_label_method, listed_methods, method_reaches)])
    items: list[Item] = []
    for legend_entry, method_mask, mark_style, mark_symbol in (
        ("Recommended", answer_mask, Style.CAP, "diamond"),
        ("Other methods, at their best bounds", ~answer_mask, Style.ENTERED, ""),
    ):
        x, y = axis_labels[method_mask], visible_means[method_mask]
        half_widths = method_half_widths[method_mask]
        point_options: dict[str, Any] = {"symbol": mark_symbol, "size": 12, "is_unnamed": not mark_symbol}
        items.append(
            Points(legend_entry, x, y, mark_style, y - half_widths, y + half_widths, **point_options)
        )
    if far_beyond_mask.any():
        mark_symbol, axis_end = (
            ("triangle-up", score_limits[1]) if worse_sign > 0.0 else ("triangle-down", score_limits[0])
        )
        edge_scores = np.where(far_beyond_mask, axis_end - worse_sign * margin / 3.0, np.nan)
        beyond_name = "Beyond this axis: far worse than guessing"
        items.append(
            Points(beyond_name, axis_labels, edge_scores, Style.ENTERED, symbol=mark_symbol, size=12)
        )
    items.append(Level("No privacy", ref_scores.without_privacy, dash="dot"))
    items.append(Level("Guessing", ref_scores.guessing, dash="dash"))
    means_phrase = ", ".join(
        f"{method.label.lower()} {format_number(float(method_mean))}"
        for method, method_mean in zip(listed_methods, method_means, strict=True)
        if math.isfinite(method_mean)
    )
    return Plot(
        f"training-methods-{measure_name}",
        f"{TITLE_BY_MEASURE[measure]} of every method",
        f"{TITLE_BY_MEASURE[measure]} on users held out: {means_phrase}; {format_number(ref_scores.without_privacy)} "
        f"without privacy, {format_number(ref_scores.guessing)} guessing.",
        names_axis("method", "Method, at its best bound h (rows per user)"),
        _make_axis(measure, score_limits, f"{TITLE_BY_MEASURE[measure]} on users held out"),
        items,
        solution.data.provenance,
        {
            "method": [method.value for method in listed_methods],
            "bound": method_reaches,
            measure_name: method_means,
            "half_width_95": method_half_widths,
            "kind": np.where(answer_mask, "answer", "other"),
            f"{measure_name}_without_privacy": np.full(len(listed_methods), ref_scores.without_privacy),
            f"{measure_name}_guessing": np.full(len(listed_methods), ref_scores.guessing),
        },
        is_main=True,
    )


def _label_method(method: Method, reach: float) -> str:
    """Return a method's axis label, in HTML, with its reach unless the bound is followed or the reach is not finite."""
    label_lines = textwrap.wrap(method.label, 12)
    if method is not Method.FOLLOWED and math.isfinite(reach):
        label_lines.append(f"h = {format_entered(reach)}")
    return "<br>".join(label_lines)


def _make_bound_axis(solution: TrainingSolution) -> Axis:
    """Build the axis of the bound, in rows, from the smallest fixed bound to the largest, which is at least 2."""
    reaches = [cell.reach for cell in solution.cells if cell.method is not Method.FOLLOWED]
    return Axis("bound h", "rows per user", (min(reaches), max(*reaches, 2.0)), number_format=".3~g")


def _make_axis(measure: Measure, axis_limits: tuple[float, float], axis_title: str) -> Axis:
    """Build the axis of loss or accuracy between the given limits; accuracy is in per cent."""
    if measure is Measure.ACCURACY:
        return share_axis(
            TITLE_BY_MEASURE[measure].lower(), axis_limits, title=axis_title, number_format=".3~%"
        )
    return linear_axis(TITLE_BY_MEASURE[measure].lower(), axis_limits, title=axis_title, number_format=".3f")


def plot_bounds(solution: TrainingSolution, measure: Measure, score_unit: ScoreUnit) -> Plot:
    """Plot loss or accuracy over the bound, with 95 % bands over the runs; beneath it the heaviest user's share."""
    score_summary, cells = solution.table.summarise(measure, score_unit), solution.cells
    ref_scores = solution.average_references(measure, score_unit)
    bound_axis, measure_name = _make_bound_axis(solution), measure.value
    # The curves fit on the axis, unless these are far worse than guessing.
    guessing_score, max_distance = ref_scores.guessing, 2.0 * ref_scores.distance
    finite_scores = np.append(score_summary.means[np.isfinite(score_summary.means)], guessing_score)
    clipped_scores = np.clip(finite_scores, guessing_score - max_distance, guessing_score + max_distance)
    scores_on_axis = np.append(clipped_scores, choose_limits(solution, measure, score_unit))
    score_limits = float(scores_on_axis.min()), float(scores_on_axis.max())
    largest_weights, cell_reaches = solution.largest_weights, solution.reaches
    method_names = np.array([cell.method.value for cell in cells])
    columns_by_name: dict[str, npt.ArrayLike] = {
        "method": method_names,
        "bound": cell_reaches,
        measure_name: score_summary.means,
        "half_width_95": score_summary.half_widths,
        "half_width_95_users": score_summary.users_half_widths,
        "runs": score_summary.run_counts.astype(np.float64),
        **{
            f"{measure_name}_{reference_key}": np.full(len(cells), reference_score)
            for reference_key, reference_score in ref_scores._asdict().items()
        },
        "largest_user_weight": largest_weights,
    }
    adaptive_cell_index = solution.table.find_cell_indices(Method.FOLLOWED)[0]
    adaptive_mean = float(score_summary.means[adaptive_cell_index])
    adaptive_half_width = float(score_summary.half_widths[adaptive_cell_index])

    def build_horizontal_curve(curve_name: str, level_score: float, style: Style, **options: Any) -> Curve:
        """Build a curve at one level over the whole axis of the bound; ``options`` are those of `Curve`."""
        return Curve(curve_name, bound_axis.limits, (level_score, level_score), style, **options)

    items: list[Item] = [
        build_horizontal_curve(
            Method.FOLLOWED.label,
            adaptive_mean,
            STYLES_BY_METHOD[Method.FOLLOWED],
            low_ends=(adaptive_mean - adaptive_half_width,) * 2,
            high_ends=(adaptive_mean + adaptive_half_width,) * 2,
            # In the colour of clipped sums, which it is, but for its dashes.
            dash="solid",
            width=3.0,
            shades_between_ends=True,
        )
    ]
    # Methods without runs are listed too, since the figure is updated in place, curve by curve.
    for method in solution.parameters.methods:
        if method is not Method.FOLLOWED:
            method_mask = method_names == method.value
            y, half_widths = score_summary.means[method_mask], score_summary.half_widths[method_mask]
            method_curve = Curve(
                method.label,
                cell_reaches[method_mask],
                y,
                STYLES_BY_METHOD[method],
                y - half_widths,
                y + half_widths,
                # A cap often lies on the curve of the weights: both are to be seen.
                dash="dash" if method is Method.CAP else "",
                symbol="circle",
                hover_number=("±", half_widths),
                shades_between_ends=True,
            )
            items.append(method_curve)
    for curve_name, score, style in (
        ("Adaptive bound, no noise", ref_scores.without_noise, Style.CUSTOMARY),
        ("No noise, no clipping", ref_scores.without_noise_and_clipping, Style.ENTERED),
    ):
        items.append(build_horizontal_curve(curve_name, score, style, dash="dot", width=1.5))
    items.append(build_horizontal_curve("No privacy", ref_scores.without_privacy, Style.SAMPLING))
    items.append(build_horizontal_curve("Guessing", guessing_score, Style.ENTERED))
    weight_curve_name, smooth_mask = "W, the heaviest user's share", method_names == Method.SMOOTH.value
    smooth_reaches, smooth_weights = cell_reaches[smooth_mask], largest_weights[smooth_mask]
    weight_plot = Plot(
        "training-weight",
        "The heaviest user's share of all weights",
        "",
        bound_axis,
        share_axis("share W", (0.0, 1.08 * float(np.nanmax(largest_weights))), number_format=".2~%"),
        (Curve(weight_curve_name, smooth_reaches, smooth_weights, Style.ENTERED, dash="solid", width=2.0),),
        solution.data.provenance,
    )
    is_any_mean_visible = (
        (score_summary.means >= score_limits[0]) & (score_summary.means <= score_limits[1])
    ).any()
    return Plot(
        f"training-{measure_name}",
        f"{TITLE_BY_MEASURE[measure]} against the bound",
        f"{TITLE_BY_MEASURE[measure]} on users held out is {format_number(adaptive_mean)} with an adaptive bound, "
        f"{format_number(ref_scores.without_privacy)} without privacy and {format_number(guessing_score)} guessing.",
        bound_axis,
        _make_axis(measure, score_limits, f"{TITLE_BY_MEASURE[measure]} on users held out"),
        items,
        solution.data.provenance,
        columns_by_name,
        lower_plot=weight_plot,
        height=440,
        note="" if is_any_mean_visible else "Every curve lies beyond this axis: far worse than guessing",
    )


SIDE_CURVES = (
    ("rows, held out", ScoreUnit.ROWS, Side.HELD_OUT, Style.SMOOTH),
    ("users, held out", ScoreUnit.USERS, Side.HELD_OUT, Style.CAP),
    ("rows, trained on", ScoreUnit.ROWS, Side.TRAINED, Style.SMOOTH),
    ("users, trained on", ScoreUnit.USERS, Side.TRAINED, Style.CAP),
)


def plot_sides(solution: TrainingSolution) -> Plot:
    """Plot the loss of clipped sums: means over rows and over users, on training users and on users held out."""
    clipped_sum_indices = solution.table.find_cell_indices(Method.CLIPPED_SUM)
    bound_column, side_curves = Column("bound", solution.reaches[clipped_sum_indices]), []
    for side_name, score_unit, side, curve_style in SIDE_CURVES:
        mean_losses = solution.table.summarise(Measure.LOSS, score_unit, side).means[clipped_sum_indices]
        loss_column = Column(f"loss_{side_name.replace(', ', '_').replace(' ', '_')}", mean_losses)
        curve_dash, curve_width = ("dot", 1.5) if side == Side.TRAINED else ("", None)
        curve_name = f"Mean over {side_name}"
        side_curves.append(
            Curve(curve_name, bound_column, loss_column, curve_style, dash=curve_dash, width=curve_width)
        )
    adaptive_cell_index = solution.table.find_cell_indices(Method.FOLLOWED)[0]
    row_loss_text, user_loss_text = (
        format_number(float(solution.table.summarise(score_unit=score_unit).means[adaptive_cell_index]))
        for score_unit in ScoreUnit
    )
    limits_per_unit = np.array(
        [choose_limits(solution, Measure.LOSS, score_unit) for score_unit in ScoreUnit]
    )
    loss_limits = float(limits_per_unit[:, 0].min()), float(limits_per_unit[:, 1].max())
    return Plot(
        "training-sides",
        "Rows and users, trained on and held out",
        f"With an adaptive bound the loss on users held out is {row_loss_text} over rows and {user_loss_text} over "
        "users.",
        _make_bound_axis(solution),
        _make_axis(Measure.LOSS, loss_limits, "Loss, clipped sums"),
        side_curves,
        solution.data.provenance,
    )
