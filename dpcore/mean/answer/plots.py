"""The figures of a mean as data. Pure: what was found in, plots out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore import mean
from dpcore.answer import Axis, Band, Curve, Mark, Plot, Scale, Style
from dpcore.answer.axes import ROWS_UNIT, build_bound_axis, choose_curve_bounds, fit_limits, sample_users
from dpcore.answer.handle import Dots, Handle, Spread, draw_normal, draw_unit_noise
from dpcore.answer.parts import BIAS, NOISE, SAMPLING, STYLES, PartColumn
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.mean.answer.found import (
    MeanSolution,
    choose_bound_limits,
    choose_error_limits,
    choose_weight_limits,
)
from dpcore.mean.answer.words import BOUNDED_ROWS, MAX_LISTED_INTERVALS, UNIT
from dpcore.mean.user_effects import Clamped, bounded_mean


def errors(found: MeanSolution, data: Dataset, own_cap: int | None) -> Plot:
    """Return the main figure: error against the bound, both methods, each split into its parts."""
    h, cap, smooth = found.bounds, found.cap, found.smooth
    whole = found.error_name
    columns: dict[str, FloatArray] = {}
    items: list[Curve | Mark | Band] = []
    if found.split_release is not None:
        columns["usual_split_standard_error"] = np.sqrt(found.split_release.capped.variance)
    columns["bound"] = h
    for key, name, error, look in (
        ("cap", BOUNDED_ROWS, found.capped, Style.CAP),
        ("smooth", "smooth weights", found.smoothed, Style.SMOOTH),
    ):
        columns[f"{key}_standard_error"] = np.sqrt(error.variance)
        columns[f"{key}_sampling_error"] = np.sqrt(error.sampling_variance)
        columns[f"{key}_privacy_noise"] = np.sqrt(error.privacy_variance)
        if found.problem.table is not None:
            columns[f"{key}_shift"] = np.broadcast_to(np.abs(error.shift), h.shape)
        items.append(Curve(f"Total, {name}", "bound", f"{key}_standard_error", look))
    # The parts are those of the bound, as on the card: of both ways there would be eight curves.
    of_cap = _parts(found)
    items += [Curve(part.name, "bound", part.column, STYLES[part.name]) for part in of_cap]
    if found.split_release is not None:
        name = f"Total, {BOUNDED_ROWS}, usual split of ε"
        items.append(Curve(name, "bound", "usual_split_standard_error", Style.CUSTOMARY))
    items += [Band(f"Within 5{wording.PERCENT}", low, high) for low, high in _bands(found)]
    items.append(Mark("Best bound", cap.max_contributions, cap.standard_error, Style.CAP))
    items.append(Mark("Best smooth weights", smooth.threshold, smooth.standard_error, Style.SMOOTH, "circle"))
    if own_cap is not None:
        (own_error,) = found.standard_errors([own_cap])
        items.append(Mark("Your own bound", own_cap, own_error, Style.ENTERED, "square"))
    histogram, value_bound = found.problem.histogram, found.problem.value_bound
    totals = np.concatenate([of for name, of in columns.items() if name.endswith("_standard_error")])
    others = np.concatenate(
        [of for name, of in columns.items() if name.endswith(("_error", "_noise", "_shift"))]
    )
    marked = [item.y for item in items if isinstance(item, Mark)]
    upwards = fit_limits(np.append(totals, marked), others)
    below = "what is left out or weighs less" if found.is_about_table else "sampling error"
    return Plot(
        "mean-error",
        f"{wording.capital(whole)} against the bound",
        f"The {whole} of a bound on rows is smallest at {wording.counted(cap.max_contributions, 'row')} per "
        f"user, {wording.number(cap.standard_error)}; smooth weights reach "
        f"{wording.number(smooth.standard_error)}. Below, {below} rises; above, the noise.",
        build_bound_axis(choose_bound_limits(histogram)),
        Axis(
            "delta-method error" if found.has_private_counts else whole,
            UNIT,
            upwards,
            limits_range=choose_error_limits(histogram, value_bound),
        ),
        labelled(columns, found.has_private_counts),
        tuple(items),
        data.provenance,
        # A Laplace draw with a mean magnitude of 1 has a standard deviation of sqrt(2).
        {
            "noise of a dot": columns["cap_privacy_noise"] / math.sqrt(2.0),
            # What a release lacks of the truth.
            "shift of a dot": -np.broadcast_to(found.capped.shift, h.shape),
        },
        is_main=True,
        handle=_handle(found, own_cap, of_cap),
    )


REACH = 5.0
"""Ends of the axis of simulated releases, in best errors: at the best bound hardly one of them lies beyond."""


def _parts(found: MeanSolution) -> tuple[PartColumn, ...]:
    """Return what the error of a bound consists of."""
    columns = {SAMPLING: "cap_sampling_error", NOISE: "cap_privacy_noise"}
    if found.problem.table is not None:
        columns = {BIAS: "cap_shift"} | columns
    return tuple([PartColumn(name, column) for name, column in columns.items()])


def _handle(found: MeanSolution, own_cap: int | None, of_cap: tuple[PartColumn, ...]) -> Handle:
    """Return the bound by hand: whose rows it cuts, and what releases it gives, by the model of the error alone."""
    histogram = found.problem.histogram
    return Handle(
        "Bound",
        "bound",
        "cap_standard_error",
        own_cap or found.cap.max_contributions,
        "own_cap",
        is_integer=True,
        parts=of_cap,
        users=(sample_users(histogram.sizes.astype(np.float64), histogram.users.astype(np.float64), "rows"),),
        dots=Dots(
            "shift of a dot",
            "noise of a dot",
            draw_unit_noise(NoiseKind.LAPLACE),
            Spread.ROOT_MEAN_SQUARE,
            REACH * found.cap.standard_error,
            sampling="cap_sampling_error",
            unit_sampling_draws=draw_normal(NoiseKind.LAPLACE),
        ),
    )


def weights(found: MeanSolution, data: Dataset) -> Plot:
    """Return how much a row counts, depending on how many rows its user has, relative to an unbounded mean's 1 / n."""
    histogram, h = found.problem.histogram, found.cap.max_contributions
    sizes, equal = choose_curve_bounds(histogram), 1.0 / histogram.num_rows
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
        Axis("rows of the user", ROWS_UNIT, _bounds(found), number_format=",.3~r"),
        Axis("weight of one row", "1 = its share without any bound", choose_weight_limits(histogram)),
        labelled(columns, found.has_private_counts),
        (
            Curve("Smooth weights", "size", "smooth_row_weight", Style.SMOOTH),
            Curve(on_average, "size", "capped_row_weight_on_average", Style.CAP, dash="dot"),
        ),
        data.provenance,
    )


def shift(found: MeanSolution, data: Dataset, clamped: Clamped) -> Plot:
    """Return how far the bound moves the mean itself, because users differ, beside the standard error."""
    histogram, value_bound = found.problem.histogram, found.problem.value_bound
    read = found.problem.table is not None
    moved = bounded_mean(clamped, found.bounds) - clamped.mean
    # The vertical axis depends on the values and bounds alone, so that it does not move with epsilon: the standard
    # error of the best cap at epsilon = 1 fits into it.
    usual = mean.best_cap(mean.MeanProblem(histogram, 1.0, value_bound, clamped.variance))
    half_height = 1.3 * max(float(np.abs(moved).max()), usual.standard_error)
    columns = {
        "bound": found.bounds,
        "shift_of_the_mean": moved,
        "smooth_privacy_noise" if read else "smooth_standard_error": np.sqrt(
            found.smoothed.privacy_variance if read else found.smoothed.variance
        ),
    }
    error, column = f"± {'the noise' if read else f'one {found.error_name}'}", list(columns)[-1]
    return Plot(
        "mean-shift",
        "When users differ",
        "How far the bound moves the mean because heavy and light users differ, beside what else the error is.",
        build_bound_axis(_bounds(found)),
        Axis("shift of the mean", UNIT, (-half_height, half_height), Scale.LINEAR),
        labelled(columns, found.has_private_counts),
        (
            Curve("Bounded mean minus plain mean", "bound", "shift_of_the_mean", Style.TOTAL),
            Curve(error, "bound", column, Style.ENTERED),
            Curve(error, "bound", column, Style.ENTERED, factor=-1.0, is_unnamed=True),
        ),
        data.provenance,
    )


def on_same_bounds(plot: Plot, main: Plot) -> Plot:
    """Return a plot over the bound on the horizontal axis that the main figure has just now."""
    return replace(plot, x=replace(plot.x, limits=main.x.limits))


def _bounds(found: MeanSolution) -> tuple[float, float]:
    low, high = float(found.problem.histogram.min_size), float(found.problem.histogram.max_size)
    return low, max(high, 2.0 * low)


def _bands(found: MeanSolution) -> list[tuple[int, int]]:
    """Return the stretches that are drawn: those of more than one bound, the best one's first, and not too many."""
    wide = [one for one in found.stretches if one[0] < one[1]]
    return sorted(wide, key=lambda one: one != found.near_optimal)[:MAX_LISTED_INTERVALS]


def labelled(columns: Mapping[str, npt.ArrayLike], private_counts: bool) -> dict[str, npt.ArrayLike]:
    """Return the columns with one more that says which setting the numbers are for."""
    words = "private too" if private_counts else "public"
    return {**columns, "contribution_counts": np.full(len(np.asarray(next(iter(columns.values())))), words)}
