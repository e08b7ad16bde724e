"""Plots of a classifier as data. Pure functions of the solution."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Column, Curve, Item, Level, Plot, Points, Style
from dpcore.answer.plot import linear_axis, names_axis, share_axis
from dpcore.common import wording
from dpcore.training.account import Method
from dpcore.training.answer.solution import TrainingSolution
from dpcore.training.experiment import Side
from dpcore.training.rows import Measure, ScoreUnit

METHOD_STYLES = {
    Method.FOLLOWED: Style.CUSTOMARY,
    Method.SMOOTH: Style.SMOOTH,
    Method.CAP: Style.CAP,
    Method.CLIPPED_SUM: Style.CUSTOMARY,
    Method.OUTPUT: Style.PRIVACY,
}
TITLES = {Measure.LOSS: "Loss", Measure.ACCURACY: "Rows told right"}


def choose_limits(solution: TrainingSolution, measure: Measure, unit: ScoreUnit) -> tuple[float, float]:
    """Choose the limits of loss or accuracy from the references alone, so that they do not move with ε.

    A model that does much worse than guessing is of no use, and the axis ends a little beyond.
    """
    without_privacy, guessing, *_ = solution.average_references(measure, unit)
    reference_distance = max(abs(guessing - without_privacy), 0.02)
    if measure is Measure.LOSS:
        return without_privacy - 0.08 * reference_distance, max(
            guessing, without_privacy
        ) + 0.45 * reference_distance
    return min(guessing, without_privacy) - 0.9 * reference_distance, max(
        guessing, without_privacy
    ) + 0.1 * reference_distance


MAX_DISTANCE = 1.0
"""How far beyond guessing the axis reaches, in distances between guessing and no privacy."""


def plot_methods(solution: TrainingSolution, measure: Measure, unit: ScoreUnit) -> Plot:
    """Plot every method at its best bound, with 95 % intervals, between no privacy and guessing."""
    summary, measure_name = solution.table.summarise(measure, unit), measure.value
    without_privacy, guessing, *_ = solution.average_references(measure, unit)
    # Methods without runs are listed too, since the figure is updated in place.
    methods = sorted(solution.parameters.methods, key=lambda method: method is not Method.FOLLOWED)
    best_bounds = [solution.best_by_method.get(method) for method in methods]
    means, half_widths, reaches = (
        np.array([math.nan if bound is None else float(values[bound.cell_index]) for bound in best_bounds])
        for values in (summary.means, summary.half_widths, solution.bounds_in_rows)
    )
    # A method far worse than guessing is of no use, and would press all others together.
    reference_distance, worse_sign = (
        max(abs(guessing - without_privacy), 0.02),
        1.0 if measure is Measure.LOSS else -1.0,
    )
    is_far = worse_sign * (means - guessing) > MAX_DISTANCE * reference_distance
    visible_means = np.where(is_far, np.nan, means)
    visible_values = np.append(visible_means[np.isfinite(visible_means)], (without_privacy, guessing))
    margin = 0.12 * reference_distance
    limits = float(visible_values.min()) - margin, float(visible_values.max()) + margin
    is_answer = np.array([bound is not None and bound == solution.best for bound in best_bounds])
    labels = np.array([_label_method(method, reach) for method, reach in zip(methods, reaches, strict=True)])
    low, high = visible_means - half_widths, visible_means + half_widths
    items: list[Item] = []
    for point_name, is_shown, style, symbol in (
        ("The answer", is_answer, Style.SMOOTH, "diamond"),
        ("Other methods, at their best bounds", ~is_answer, Style.CAP, ""),
    ):
        x, y = labels[is_shown], visible_means[is_shown]
        items.append(Points(point_name, x, y, style, low[is_shown], high[is_shown], symbol=symbol, size=12))
    if is_far.any():
        symbol, end = ("triangle-up", limits[1]) if worse_sign > 0.0 else ("triangle-down", limits[0])
        edge_values = np.where(is_far, end - worse_sign * margin / 3.0, np.nan)
        beyond_name = "Beyond this axis: far worse than guessing"
        items.append(Points(beyond_name, labels, edge_values, Style.ENTERED, symbol=symbol, size=12))
    items += [Level("No privacy", without_privacy, dash="dot"), Level("Guessing", guessing, dash="dash")]
    means_text = ", ".join(
        f"{method.label.lower()} {wording.number(float(mean))}"
        for method, mean in zip(methods, means, strict=True)
        if math.isfinite(mean)
    )
    return Plot(
        f"training-methods-{measure_name}",
        f"{TITLES[measure]} of every method",
        f"{TITLES[measure]} on users held out: {means_text}; {wording.number(without_privacy)} without privacy, "
        f"{wording.number(guessing)} guessing.",
        names_axis("method", "Method, at its best bound h (rows per user)"),
        _make_axis(measure, limits, f"{TITLES[measure]}, users held out"),
        items,
        solution.data.provenance,
        {
            "method": [method.value for method in methods],
            "bound": reaches,
            measure_name: means,
            "half_width_95": half_widths,
            "kind": np.where(is_answer, "answer", "other"),
            f"{measure_name}_without_privacy": np.full(len(methods), without_privacy),
            f"{measure_name}_guessing": np.full(len(methods), guessing),
        },
        is_main=True,
    )


def _label_method(method: Method, reach: float) -> str:
    """Label a method on the axis with the best of its bounds."""
    lines = textwrap.wrap(method.label, 12)
    if method is not Method.FOLLOWED and math.isfinite(reach):
        lines.append(f"h = {wording.entered(reach)}")
    return "<br>".join(lines)


def _make_bound_axis(solution: TrainingSolution) -> Axis:
    """Make the axis of the bound."""
    reaches = [cell.reach for cell in solution.cells if cell.method is not Method.FOLLOWED]
    return Axis("bound h", "rows per user", (min(reaches), max(*reaches, 2.0)), number_format=".3~g")


def _make_axis(measure: Measure, limits: tuple[float, float], title: str) -> Axis:
    """Make the axis of loss or accuracy."""
    if measure is Measure.ACCURACY:
        return share_axis(TITLES[measure].lower(), limits, title=title, number_format=".3~%")
    return linear_axis(TITLES[measure].lower(), limits, title=title, number_format=".3f")


def plot_bounds(solution: TrainingSolution, measure: Measure, unit: ScoreUnit) -> Plot:
    """Plot loss or accuracy over the bound, with 95 % bands over the runs; beneath it the heaviest user's share."""
    summary, cells = solution.table.summarise(measure, unit), solution.cells
    without_privacy, guessing, without_noise, unclipped = solution.average_references(measure, unit)
    bound_axis, measure_name = _make_bound_axis(solution), measure.value
    # The curves fit on the axis, unless these are far worse than guessing.
    max_distance = 2.0 * max(abs(guessing - without_privacy), 0.02)
    finite_means = np.append(summary.means[np.isfinite(summary.means)], guessing)
    visible_means = np.clip(finite_means, guessing - max_distance, guessing + max_distance)
    low, high = choose_limits(solution, measure, unit)
    limits = min(low, float(visible_means.min())), max(high, float(visible_means.max()))
    largest_weight, reaches = solution.largest_weights, solution.bounds_in_rows
    method_names = np.array([cell.method.value for cell in cells])
    references = {
        "without_privacy": without_privacy,
        "guessing": guessing,
        "without_noise": without_noise,
        "without_noise_and_clipping": unclipped,
    }
    columns: dict[str, npt.ArrayLike] = {
        "method": method_names,
        "bound": reaches,
        measure_name: summary.means,
        "half_width_95": summary.half_widths,
        "half_width_95_users": summary.users_half_width,
        "runs": summary.num_runs.astype(np.float64),
        **{f"{measure_name}_{key}": np.full(len(cells), value) for key, value in references.items()},
        "largest_user_weight": largest_weight,
    }
    adaptive_cell = solution.table.find_cell_indices(Method.FOLLOWED)[0]
    adaptive_mean, half_width = float(summary.means[adaptive_cell]), float(summary.half_widths[adaptive_cell])

    def build_horizontal_curve(curve_name: str, level: float, style: Style, **options: Any) -> Curve:
        return Curve(curve_name, bound_axis.limits, (level, level), style, **options)

    items: list[Item] = [
        build_horizontal_curve(
            Method.FOLLOWED.label,
            adaptive_mean,
            METHOD_STYLES[Method.FOLLOWED],
            low_ends=(adaptive_mean - half_width,) * 2,
            high_ends=(adaptive_mean + half_width,) * 2,
            # In the colour of clipped sums, which it is, but for its dashes.
            dash="solid",
            width=3.0,
            is_shaded=True,
            begins_legend=True,
        )
    ]
    # Methods without runs are listed too, since the figure is updated in place, curve by curve.
    for method in solution.parameters.methods:
        if method is not Method.FOLLOWED:
            is_method = method_names == method.value
            means, half_widths = summary.means[is_method], summary.half_widths[is_method]
            items.append(
                Curve(
                    method.label,
                    reaches[is_method],
                    means,
                    METHOD_STYLES[method],
                    means - half_widths,
                    means + half_widths,
                    # A cap often lies on the curve of the weights: both are to be seen.
                    dash="dash" if method is Method.CAP else "",
                    symbol="circle",
                    hover_number=("±", half_widths),
                    is_shaded=True,
                )
            )
    items += [
        build_horizontal_curve(
            "Bound follows, no noise", without_noise, Style.CUSTOMARY, dash="dot", width=1.5
        ),
        build_horizontal_curve("No noise, no clipping", unclipped, Style.ENTERED, dash="dot", width=1.5),
        build_horizontal_curve("No privacy", without_privacy, Style.SAMPLING),
        build_horizontal_curve("Guessing", guessing, Style.ENTERED),
    ]
    weight_name, is_smooth = "W, the heaviest user's share", method_names == Method.SMOOTH.value
    x, y = reaches[is_smooth], largest_weight[is_smooth]
    weight_curve = Curve(weight_name, x, y, Style.ENTERED, dash="solid", width=2.0)
    weight_plot = Plot(
        "training-weight",
        "The heaviest user's share of all weights",
        "",
        bound_axis,
        share_axis("share W", (0.0, 1.08 * float(np.nanmax(largest_weight))), number_format=".2~%"),
        (weight_curve,),
        solution.data.provenance,
    )
    is_any_visible = ((summary.means >= limits[0]) & (summary.means <= limits[1])).any()
    return Plot(
        f"training-{measure_name}",
        f"{TITLES[measure]} against the bound",
        f"{TITLES[measure]} on users held out is {wording.number(adaptive_mean)} with an adaptive bound, "
        f"{wording.number(without_privacy)} without privacy and {wording.number(guessing)} guessing.",
        bound_axis,
        _make_axis(measure, limits, f"{TITLES[measure]}, users held out"),
        items,
        solution.data.provenance,
        columns,
        lower_plot=weight_plot,
        height=440,
        note="" if is_any_visible else "Every curve lies beyond this axis: far worse than guessing",
    )


SIDES = (
    ("rows, held out", ScoreUnit.ROWS, Side.HELD_OUT, Style.SMOOTH),
    ("users, held out", ScoreUnit.USERS, Side.HELD_OUT, Style.CAP),
    ("rows, trained on", ScoreUnit.ROWS, Side.TRAINED, Style.SMOOTH),
    ("users, trained on", ScoreUnit.USERS, Side.TRAINED, Style.CAP),
)


def plot_sides(solution: TrainingSolution) -> Plot:
    """Plot the loss of clipped sums: means over rows and over users, on training users and on users held out."""
    cell_indices = solution.table.find_cell_indices(Method.CLIPPED_SUM)
    bound_column, curves = Column("bound", solution.bounds_in_rows[cell_indices]), []
    for side_name, unit, side, style in SIDES:
        mean_losses = solution.table.summarise(Measure.LOSS, unit, side).means[cell_indices]
        loss_column = Column(f"loss_{side_name.replace(', ', '_').replace(' ', '_')}", mean_losses)
        dash, width = ("dot", 1.5) if side == Side.TRAINED else ("", None)
        curves.append(
            Curve(f"Mean over {side_name}", bound_column, loss_column, style, dash=dash, width=width)
        )
    adaptive_cell = solution.table.find_cell_indices(Method.FOLLOWED)[0]
    row_loss_text, user_loss_text = (
        wording.number(float(solution.table.summarise(Measure.LOSS, unit).means[adaptive_cell]))
        for unit in ScoreUnit
    )
    limits_by_unit = np.array([choose_limits(solution, Measure.LOSS, unit) for unit in ScoreUnit])
    limits = float(limits_by_unit[:, 0].min()), float(limits_by_unit[:, 1].max())
    return Plot(
        "training-sides",
        "Rows and users, trained on and held out",
        f"With an adaptive bound the loss on users held out is {row_loss_text} over rows and {user_loss_text} over "
        "users.",
        _make_bound_axis(solution),
        _make_axis(Measure.LOSS, limits, "Loss, clipped sums"),
        curves,
        solution.data.provenance,
    )
