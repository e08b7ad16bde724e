"""Plots of a classifier as data. Pure functions of the solution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Level, Plot, Points, Scale, Style
from dpcore.common import wording
from dpcore.contributions import FloatArray
from dpcore.training.answer.found import TrainingSolution
from dpcore.training.experiment import Side
from dpcore.training.scores import Measure, ScoreUnit
from dpcore.training.weighting import Method

METHOD_STYLES = {
    Method.FOLLOWED: Style.CUSTOMARY,
    Method.SMOOTH: Style.SMOOTH,
    Method.CAP: Style.CAP,
    Method.CLIPPED_SUM: Style.CUSTOMARY,
    Method.OUTPUT: Style.PRIVACY,
}
METHOD_NAMES = {
    Method.FOLLOWED: "Clipped sum, bound follows",
    Method.SMOOTH: "Smooth weights",
    Method.CAP: "Cap, random rows",
    Method.CLIPPED_SUM: "Clipped sum",
    Method.OUTPUT: "Output perturbation",
}
TITLES = {Measure.LOSS: "Loss", Measure.ACCURACY: "Rows told right"}


def choose_limits(solution: TrainingSolution, measure: Measure, unit: ScoreUnit) -> tuple[float, float]:
    """Choose the limits of loss or accuracy from the references alone, so that they do not move with ε.

    A model that does much worse than guessing is of no use, and the axis ends a little beyond.
    """
    without_privacy, guessing = solution.average_references(measure, unit)
    distance = max(abs(guessing - without_privacy), 0.02)
    if measure is Measure.LOSS:
        return without_privacy - 0.08 * distance, max(guessing, without_privacy) + 0.45 * distance
    return min(guessing, without_privacy) - 0.9 * distance, max(guessing, without_privacy) + 0.1 * distance


def plot_methods(solution: TrainingSolution, measure: Measure, unit: ScoreUnit) -> Plot:
    """Plot every method at its best bound, with 95 % intervals, between no privacy and guessing."""
    summary, name = solution.summarise(measure, unit), measure.value
    without_privacy, guessing = solution.average_references(measure, unit)
    # Methods without runs are listed too, since the figure is updated in place.
    best = {method: solution.best_by_method.get(method) for method in solution.parameters.methods}
    answer = solution.best
    order = sorted(best, key=lambda method: method is not Method.FOLLOWED)
    cell_indices = [
        None if (cell_or_values := best[method]) is None else cell_or_values.cell_index for method in order
    ]
    means, half_widths = (
        np.array(
            [
                math.nan if cell_index is None else float(cell_or_values[cell_index])
                for cell_index in cell_indices
            ]
        )
        for cell_or_values in (summary.mean, summary.half_width)
    )
    reaches = [
        math.nan if cell_index is None else solution.get_cell(cell_index).reach for cell_index in cell_indices
    ]
    # A method far worse than guessing is of no use, and would press all others together.
    distance, direction = max(abs(guessing - without_privacy), 0.02), 1.0 if measure is Measure.LOSS else -1.0
    is_far = direction * (means - guessing) > MAX_DISTANCE * distance
    visible_means = np.where(is_far, np.nan, means)
    visible_values = np.append(visible_means[np.isfinite(visible_means)], (without_privacy, guessing))
    margin = 0.12 * distance
    limits = float(visible_values.min()) - margin, float(visible_values.max()) + margin
    is_answer = [
        cell_index is not None and answer is not None and cell_index == answer.cell_index
        for cell_index in cell_indices
    ]
    columns: dict[str, npt.ArrayLike] = {
        "method": [method.value for method in order],
        "bound": np.array(reaches),
        name: means,
        "half_width_95": half_widths,
        "kind": ["answer" if is_answer_cell else "other" for is_answer_cell in is_answer],
        f"{name}_without_privacy": np.full(len(order), without_privacy),
        f"{name}_guessing": np.full(len(order), guessing),
    }
    whiskers: dict[str, Any] = {"low": "lowest", "high": "highest", "size": 12}
    is_marked_answer, is_other_cell = ("kind", "answer"), ("kind", "other")
    other_label = "Other methods, at their best bounds"
    items: list[Item] = [
        Points(
            "The answer",
            "label",
            "shown",
            Style.SMOOTH,
            filter=is_marked_answer,
            symbol="diamond",
            **whiskers,
        ),
        Points(other_label, "label", "shown", Style.CAP, filter=is_other_cell, **whiskers),
    ]
    if is_far.any():
        symbol = "triangle-up" if direction > 0.0 else "triangle-down"
        beyond_label = "Beyond this axis: far worse than guessing"
        items.append(Points(beyond_label, "label", "edge", Style.ENTERED, symbol=symbol, size=12))
    items += [Level("No privacy", without_privacy, dash="dot"), Level("Guessing", guessing, dash="dash")]
    named_means = [
        (METHOD_NAMES[method].lower(), float(mean))
        for method, mean in zip(order, means, strict=True)
        if math.isfinite(mean)
    ]
    means_text = ", ".join(f"{method} {wording.number(value)}" for method, value in named_means)
    edge_position = limits[1] - margin / 3.0 if direction > 0.0 else limits[0] + margin / 3.0
    return Plot(
        f"training-methods-{name}",
        f"{TITLES[measure]} of every method",
        f"{TITLES[measure]} on users held out: {means_text}; {wording.number(without_privacy)} without privacy, "
        f"{wording.number(guessing)} guessing.",
        Axis("method", "", (0.0, 1.0), Scale.NAMES, "Method, at its best bound h (rows per user)"),
        _make_axis(measure, limits, f"{TITLES[measure]}, users held out"),
        columns,
        tuple(items),
        solution.data.provenance,
        {
            "label": [_label_method(method, reach) for method, reach in zip(order, reaches, strict=True)],
            "shown": visible_means,
            "edge": np.where(is_far, edge_position, np.nan),
            "lowest": np.where(is_far, np.nan, means - half_widths),
            "highest": np.where(is_far, np.nan, means + half_widths),
        },
        is_main=True,
    )


MAX_DISTANCE = 1.0
"""How far beyond guessing the axis reaches, in distances between guessing and no privacy."""
METHOD_LINES = {
    Method.FOLLOWED: "Clipped sum,<br>bound<br>follows",
    Method.SMOOTH: "Smooth<br>weights",
    Method.CAP: "Cap, random<br>rows",
    Method.CLIPPED_SUM: "Clipped<br>sum",
    Method.OUTPUT: "Output<br>perturbation",
}


def _label_method(method: Method, reach: float) -> str:
    """Label a method on the axis with the best of its bounds."""
    has_bound = method is not Method.FOLLOWED and math.isfinite(reach)
    return f"{METHOD_LINES[method]}<br>h = {wording.entered(reach)}" if has_bound else METHOD_LINES[method]


def _make_bound_axis(solution: TrainingSolution) -> Axis:
    """Make the axis of the bound."""
    reaches = [cell.reach for cell in solution.table.experiment.cells if cell.method is not Method.FOLLOWED]
    return Axis("bound h", "rows per user", (min(reaches), max(*reaches, 2.0)), number_format=".3~g")


def _make_axis(measure: Measure, limits: tuple[float, float], title: str) -> Axis:
    """Make the axis of loss or accuracy."""
    is_percent = measure is Measure.ACCURACY
    scale, number = (Scale.PERCENT, ".3~%") if is_percent else (Scale.LINEAR, ".3f")
    return Axis(TITLES[measure].lower(), "", limits, scale, title, number_format=number)


def _widen_limits(
    limits: tuple[float, float], means: FloatArray, without_privacy: float, guessing: float
) -> tuple[float, float]:
    """Widen the limits to fit curves, unless these are far worse than guessing."""
    finite_means = means[np.isfinite(means)]
    max_distance = 2.0 * max(abs(guessing - without_privacy), 0.02)
    low, high = (
        float(extreme(finite_means)) if finite_means.size else guessing for extreme in (np.min, np.max)
    )
    return min(limits[0], max(low, guessing - max_distance)), max(
        limits[1], min(high, guessing + max_distance)
    )


def plot_bounds(solution: TrainingSolution, measure: Measure, unit: ScoreUnit) -> Plot:
    """Plot loss or accuracy over the bound, with 95 % bands over the runs; beneath it the heaviest user's share."""
    summary, cells = solution.summarise(measure, unit), solution.table.experiment.cells
    without_privacy, guessing = solution.average_references(measure, unit)
    bound_axis, name = _make_bound_axis(solution), measure.value
    limits = _widen_limits(choose_limits(solution, measure, unit), summary.mean, without_privacy, guessing)
    without_noise, unclipped = solution.average_without_noise(measure, unit)
    largest_weight = solution.largest_weight
    columns: dict[str, FloatArray | list[str]] = {
        "method": [cell.method.value for cell in cells],
        "bound": np.array([cell.reach for cell in cells]),
        name: summary.mean,
        "half_width_95": summary.half_width,
        "half_width_95_users": summary.users_half_width,
        "runs": summary.runs.astype(np.float64),
        f"{name}_without_privacy": np.full(len(cells), without_privacy),
        f"{name}_guessing": np.full(len(cells), guessing),
        f"{name}_without_noise": np.full(len(cells), without_noise),
        f"{name}_without_noise_and_clipping": np.full(len(cells), unclipped),
        "largest_user_weight": largest_weight,
    }
    items: list[Item] = [
        Curve(
            METHOD_NAMES[method],
            "bound",
            name,
            METHOD_STYLES[method],
            # A cap often lies on the curve of the weights: both are to be seen.
            dash="dash" if method is Method.CAP else "",
            filter=("method", method.value),
            symbol="circle",
            hover_column=("±", "half_width_95"),
            low="lowest",
            high="highest",
            is_shaded=True,
        )
        # Methods without runs are listed too, since the figure is updated in place, curve by curve.
        for method in solution.parameters.methods
        if method is not Method.FOLLOWED
    ]
    followed_cells = solution.table.find_cells(Method.FOLLOWED)
    followed_mean, half_width = (
        float(values[followed_cells[0]]) for values in (summary.mean, summary.half_width)
    )
    items.insert(
        0,
        Curve(
            METHOD_NAMES[Method.FOLLOWED],
            "bounds from, to",
            "followed",
            METHOD_STYLES[Method.FOLLOWED],
            # In the colour of clipped sums, which it is, but for its dashes.
            dash="solid",
            width=3.0,
            low="followed, lowest",
            high="followed, highest",
            is_shaded=True,
            is_first=True,
        ),
    )
    items += [
        Curve(
            "Bound follows, no noise", "bounds from, to", "no noise", Style.CUSTOMARY, dash="dot", width=1.5
        ),
        Curve(
            "No noise, no clipping", "bounds from, to", "no clipping", Style.ENTERED, dash="dot", width=1.5
        ),
        Curve("No privacy", "bounds from, to", "no privacy", Style.SAMPLING),
        Curve("Guessing", "bounds from, to", "guessing", Style.ENTERED),
    ]
    weight_plot = Plot(
        "training-weight",
        "The heaviest user's share of all weights",
        "",
        bound_axis,
        Axis(
            "share W", "", (0.0, 1.08 * float(np.nanmax(largest_weight))), Scale.PERCENT, number_format=".2~%"
        ),
        columns,
        (
            Curve(
                "W, the heaviest user's share",
                "bound",
                "largest_user_weight",
                Style.ENTERED,
                dash="solid",
                width=2.0,
                filter=("method", Method.SMOOTH.value),
            ),
        ),
        solution.data.provenance,
    )
    is_any_visible = ((summary.mean >= limits[0]) & (summary.mean <= limits[1])).any()
    return Plot(
        f"training-{name}",
        f"{TITLES[measure]} against the bound",
        f"{TITLES[measure]} on users held out is {wording.number(followed_mean)} by clipped sums whose bound "
        "follows the "
        f"users; {wording.number(without_privacy)} without privacy, {wording.number(guessing)} guessing. "
        "Beneath, the heaviest "
        f"user's share of all weights rises from {wording.percent(float(np.nanmin(largest_weight)))} to "
        f"{wording.percent(float(np.nanmax(largest_weight)))}.",
        bound_axis,
        _make_axis(measure, limits, f"{TITLES[measure]}, users held out"),
        columns,
        tuple(items),
        solution.data.provenance,
        {
            "lowest": summary.mean - summary.half_width,
            "highest": summary.mean + summary.half_width,
            "bounds from, to": bound_axis.limits,
            "no privacy": (without_privacy, without_privacy),
            "guessing": (guessing, guessing),
            "no noise": (without_noise, without_noise),
            "no clipping": (unclipped, unclipped),
            "followed": (followed_mean, followed_mean),
            "followed, lowest": (followed_mean - half_width, followed_mean - half_width),
            "followed, highest": (followed_mean + half_width, followed_mean + half_width),
        },
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
    cells = solution.table.find_cells(Method.CLIPPED_SUM)
    columns: dict[str, FloatArray] = {"bound": solution.list_bounds(Method.CLIPPED_SUM)}
    items = []
    for name, unit, side, style in SIDES:
        column = f"loss_{name.replace(', ', '_').replace(' ', '_')}"
        columns[column] = solution.summarise(Measure.LOSS, unit, side).mean[cells]
        dash, width = ("dot", 1.5) if side == Side.TRAINED else ("", None)
        items.append(Curve(f"Mean over {name}", "bound", column, style, dash=dash, width=width))
    followed_cell = solution.table.find_cells(Method.FOLLOWED)[0]
    rows, users = (
        wording.number(float(solution.summarise(Measure.LOSS, unit).mean[followed_cell]))
        for unit in ScoreUnit
    )
    limits = [choose_limits(solution, Measure.LOSS, unit) for unit in ScoreUnit]
    return Plot(
        "training-sides",
        "Rows and users, trained on and held out",
        f"Where the bound follows the users, the loss on users held out is {rows} as a mean over rows and {users} as "
        "one over users.",
        _make_bound_axis(solution),
        _make_axis(
            Measure.LOSS,
            (min(low for low, _ in limits), max(high for _, high in limits)),
            "Loss, clipped sums",
        ),
        columns,
        tuple(items),
        solution.data.provenance,
    )
