"""The figures of a mean as data. Pure: what was found in, plots out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import Axis, Band, Curve, Look, Mark, Plot, Scale
from dpcore.answer.axes import ROWS, bound_axis, curve_bounds
from dpcore.common import wording
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset
from dpcore.mean.answer.found import MeanFound, axis_limits, offered_errors, weight_limits
from dpcore.mean.answer.words import BOUNDED, UNIT
from dpcore.mean.user_effects import Clamped, bounded_mean


def errors(found: MeanFound, data: Dataset, own_cap: int | None) -> Plot:
    """The main figure: standard error against the bound, both methods, each split into its two parts."""
    h, cap, smooth = found.bounds, found.cap, found.smooth
    columns: dict[str, FloatArray] = {}
    items: list[Curve | Mark | Band] = []
    if found.usual is not None:
        columns["usual_split_standard_error"] = np.sqrt(found.usual.capped.variance)
    columns["bound"] = h
    parts: list[Curve] = []
    for key, name, error, look in (
        ("cap", BOUNDED, found.capped, Look.CAP),
        ("smooth", "smooth weights", found.smoothed, Look.SMOOTH),
    ):
        columns[f"{key}_standard_error"] = np.sqrt(error.variance)
        columns[f"{key}_sampling_error"] = np.sqrt(error.sampling_variance)
        columns[f"{key}_privacy_noise"] = np.sqrt(error.privacy_variance)
        items.append(Curve(f"Total, {name}", "bound", f"{key}_standard_error", look))
        for part, column, style in (
            ("Sampling error", "sampling_error", Look.SAMPLING),
            ("Privacy noise", "privacy_noise", Look.PRIVACY),
        ):
            parts.append(Curve(f"{part}, {name}", "bound", f"{key}_{column}", style, look, part))
    items += parts
    if found.usual is not None:
        name = f"Total, {BOUNDED}, usual split of ε"
        items.append(Curve(name, "bound", "usual_split_standard_error", Look.USUAL))
    if found.within[0] < found.within[1]:
        items.append(Band(f"Within 5{wording.PERCENT}", found.within[0], found.within[1]))
    items.append(Mark("Best bound", cap.max_contributions, cap.standard_error, Look.CAP))
    items.append(Mark("Best smooth weights", smooth.threshold, smooth.standard_error, Look.SMOOTH, "circle"))
    if own_cap is not None:
        items.append(Mark("Your own bound", own_cap, found.standard_error(own_cap), Look.OWN, "square"))
    histogram, value_bound = found.problem.histogram, found.problem.value_bound
    across, upwards = axis_limits(histogram, value_bound)
    return Plot(
        "mean-error",
        "Standard error against the bound",
        f"The standard error of a bound on rows is smallest at {wording.counted(cap.max_contributions, 'row')} per "
        f"user, {wording.number(cap.standard_error)}; smooth weights reach "
        f"{wording.number(smooth.standard_error)}. Below, sampling error rises; above, privacy noise.",
        bound_axis(across),
        Axis(
            "delta-method error" if found.private_counts else "standard error",
            UNIT,
            upwards,
            reach=offered_errors(histogram, value_bound),
        ),
        _labelled(columns, found),
        tuple(items),
        data.provenance,
        main=True,
    )


def weights(found: MeanFound, data: Dataset) -> Plot:
    """How much a row counts, depending on how many rows its user has, relative to an unbounded mean's 1 / n."""
    histogram, h = found.problem.histogram, found.cap.max_contributions
    sizes, equal = curve_bounds(histogram), 1.0 / histogram.num_rows
    kept_share = np.minimum(sizes, h) / sizes / float(histogram.kept_rows(h))
    columns = {
        "size": sizes,
        "smooth_row_weight": mean.user_weight(found.problem, found.smooth.threshold, sizes) / equal,
        "capped_row_weight_on_average": kept_share / equal,
    }
    on_average = "Bounded rows (average over kept and dropped)"
    return Plot(
        "mean-weights",
        "Weight of one row",
        "Rows of light users all weigh the same; the more rows a user has beyond the bound, the less each counts.",
        Axis("rows of the user", ROWS, _bounds(histogram), number=",.3~r"),
        Axis("weight of one row", "1 = its share without any bound", weight_limits(histogram)),
        _labelled(columns, found),
        (
            Curve("Smooth weights", "size", "smooth_row_weight", Look.SMOOTH),
            Curve(on_average, "size", "capped_row_weight_on_average", Look.CAP, dash="dot"),
        ),
        data.provenance,
    )


def shift(found: MeanFound, data: Dataset, clamped: Clamped) -> Plot:
    """How far the bound moves the mean itself, because users differ, beside the standard error."""
    histogram, value_bound = found.problem.histogram, found.problem.value_bound
    moved = bounded_mean(clamped, found.bounds) - clamped.mean
    # The vertical axis depends on the values and bounds alone, so that it does not move with epsilon: the standard
    # error of the best cap at epsilon = 1 fits into it.
    usual = mean.best_cap(mean.MeanProblem(histogram, 1.0, value_bound, clamped.variance))
    half_height = 1.3 * max(float(np.abs(moved).max()), usual.standard_error)
    columns = {
        "bound": found.bounds,
        "shift_of_the_mean": moved,
        "smooth_standard_error": np.sqrt(found.smoothed.variance),
    }
    error = "± one standard error"
    return Plot(
        "mean-shift",
        "What independence hides",
        "How far the bound moves the mean because heavy and light users differ, beside one standard error.",
        bound_axis(_bounds(histogram)),
        Axis("shift of the mean", UNIT, (-half_height, half_height), Scale.LINEAR),
        _labelled(columns, found),
        (
            Curve("Bounded mean minus plain mean", "bound", "shift_of_the_mean", Look.TOTAL),
            Curve(error, "bound", "smooth_standard_error", Look.OWN),
            Curve(error, "bound", "smooth_standard_error", Look.OWN, factor=-1.0, unnamed=True),
        ),
        data.provenance,
    )


def on_same_bounds(plot: Plot, main: Plot) -> Plot:
    """A plot over the bound on the horizontal axis that the main figure has just now."""
    return replace(plot, x=replace(plot.x, limits=main.x.limits))


def _bounds(histogram: ContributionHistogram) -> tuple[float, float]:
    return axis_limits(histogram, 1.0)[0]


def _labelled(columns: dict[str, FloatArray], found: MeanFound) -> dict[str, npt.ArrayLike]:
    """The columns with one more that says which setting the numbers are for."""
    words = "private too" if found.private_counts else "public"
    return {**columns, "contribution_counts": np.full(len(next(iter(columns.values()))), words)}
