"""The figure of the first trade-off as data: what a bound throws away against the noise it needs. Pure."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Curve, Item, Look, Mark, Plot, Scale
from dpcore.answer.axes import some_users
from dpcore.answer.handle import Dots, Handle, Spread, unit_draws
from dpcore.answer.parts import BIAS, LOOKS, NOISE, parts
from dpcore.common.privacy import Provenance
from dpcore.start.answer.found import Tradeoff, axis_limits

PARTS = parts({BIAS: "bias", NOISE: "mean_noise"})
REACH = 5.0
"""Ends of the axis of simulated counts, in best errors: at the best bound hardly one of them lies beyond."""
HEIGHT = 330
"""In pixels: with the questions above it and the users below it, it is seen whole on a screen of 1280 x 800."""


def tradeoff(found: Tradeoff, bound: int | None, disclosure: Provenance) -> Plot:
    """The main figure: bias, noise and error over the bound, the best one, and the bound that is set."""
    errors, share, best = found.errors, 1.0 / found.num_rows, found.best
    items: list[Item] = [
        Curve("Expected error", "bound", "expected_error", Look.TOTAL),
        *(Curve(part.name, "bound", part.column, LOOKS[part.name]) for part in PARTS),
    ]
    if best.max_total > 0:
        items.append(Mark("Sweet spot", best.max_total, best.absolute_error * share, Look.SMOOTH, "star"))
    if bound is not None:
        items.append(Mark("Your own bound", bound, found.error_at(bound), Look.OWN, "square"))
    return Plot(
        "start-tradeoff",
        "What a bound throws away, and the noise it needs",
        "As the bound grows, fewer rows are thrown away and more noise is needed; the error is smallest in between.",
        Axis("bound", "rows per user", axis_limits(found.histogram), number=",.3~r"),
        Axis("error of a count", "share of it", (0.0, 1.0), Scale.PERCENT, number=".2~%"),
        {
            "bound": errors.bounds,
            "bias": errors.bias * share,
            "mean_noise": errors.noise * share,
            "expected_error": errors.absolute_error * share,
        },
        tuple(items),
        disclosure,
        main=True,
        height=HEIGHT,
        handle=_handle(found, bound),
    )


def _handle(found: Tradeoff, bound: int | None) -> Handle:
    """The bound by hand: whose rows it cuts, and what becomes of a count of the average size."""
    histogram, best = found.histogram, found.best.max_total
    least = float(found.errors.absolute_error.min()) / found.num_rows
    return Handle(
        "Bound",
        "bound",
        "expected_error",
        bound or best or 1.0,
        "bound",
        whole=True,
        parts=PARTS,
        users=(some_users(histogram.sizes.astype(np.float64), histogram.users.astype(np.float64), "rows"),),
        dots=Dots(
            "bias",
            "mean_noise",
            unit_draws(found.problem.mechanism),
            Spread.MEAN,
            REACH * least,
            "%",
            what="counts",
        ),
        best=best or None,
    )
