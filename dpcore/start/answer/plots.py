"""The plot of the first trade-off: the bias of a bound against its noise. Pure functions of the solution."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Curve, Item, Mark, Plot, Scale, Style
from dpcore.answer.axes import sample_users
from dpcore.answer.handle import Dots, Handle, Spread, draw_unit_noise
from dpcore.answer.parts import BIAS, NOISE, STYLES, list_part_columns
from dpcore.common.privacy import Provenance
from dpcore.start.answer.found import Tradeoff, choose_axis_limits

ERROR_PARTS = list_part_columns({BIAS: "bias", NOISE: "mean_noise"})
REACH = 5.0
"""Ends of the axis of simulated counts, in best errors: at the best bound hardly one of them lies beyond."""
HEIGHT = 330
"""In pixels: with the questions above it and the users below it, it is seen whole on a screen of 1280 x 800."""


def plot_tradeoff(solution: Tradeoff, bound: int | None, disclosure: Provenance) -> Plot:
    """Plot bias, noise and error over the bound, with the best one and the bound that is set."""
    errors, share, best = solution.errors, 1.0 / solution.num_rows, solution.best
    items: list[Item] = [
        Curve("Expected error", "bound", "expected_error", Style.TOTAL),
        *(
            Curve(error_part.name, "bound", error_part.column, STYLES[error_part.name])
            for error_part in ERROR_PARTS
        ),
    ]
    if best.max_total > 0:
        items.append(Mark("Sweet spot", best.max_total, best.absolute_error * share, Style.SMOOTH, "star"))
    if bound is not None:
        items.append(Mark("Your own bound", bound, solution.evaluate_error(bound), Style.ENTERED, "square"))
    return Plot(
        "start-tradeoff",
        "What a bound throws away, and the noise it needs",
        "As the bound grows, fewer rows are thrown away and more noise is needed; the error is smallest in between.",
        Axis("bound", "rows per user", choose_axis_limits(solution.histogram), number_format=",.3~r"),
        Axis("error of a count", "share of it", (0.0, 1.0), Scale.PERCENT, number_format=".2~%"),
        {
            "bound": errors.bounds,
            "bias": errors.bias * share,
            "mean_noise": errors.noise * share,
            "expected_error": errors.absolute_error * share,
        },
        tuple(items),
        disclosure,
        is_main=True,
        height=HEIGHT,
        handle=_make_handle(solution, bound),
    )


def _make_handle(solution: Tradeoff, bound: int | None) -> Handle:
    """Make the bound movable by hand: the rows that it cuts, and the error of an average count."""
    histogram, best = solution.histogram, solution.best.max_total
    smallest_error = float(solution.errors.absolute_error.min()) / solution.num_rows
    return Handle(
        "Bound",
        "bound",
        "expected_error",
        bound or best or 1.0,
        "bound",
        is_integer=True,
        parts=ERROR_PARTS,
        users=(sample_users(histogram.sizes.astype(np.float64), histogram.users.astype(np.float64), "rows"),),
        dots=Dots(
            "bias",
            "mean_noise",
            draw_unit_noise(solution.problem.mechanism),
            Spread.MEAN,
            REACH * smallest_error,
            "%",
            unit_name="counts",
        ),
        best_value=best or None,
    )
