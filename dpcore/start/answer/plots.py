"""The plot of the first trade-off: the bias of a bound against its noise. Pure functions of the solution."""

from __future__ import annotations

from dpcore.answer import Axis, Curve, Item, Mark, Plot, Style, share_axis
from dpcore.answer.answer import BIAS, NOISE, STYLES
from dpcore.answer.axes import sample_users
from dpcore.answer.handle import Dots, Handle, Spread, draw_unit_noise
from dpcore.common.privacy import Provenance
from dpcore.start.answer.found import Tradeoff, choose_axis_limits

MAX_ERRORS = 5.0
"""Ends of the axis of simulated counts, in best errors: at the best bound hardly one of them lies beyond."""
HEIGHT = 330
"""In pixels: with the questions above it and the users below it, it is seen whole on a screen of 1280 x 800."""


def plot_tradeoff(solution: Tradeoff, bound: int | None, disclosure: Provenance) -> Plot:
    """Plot bias, noise and error over the bound, with the best one and the bound that is set."""
    errors, share, best = solution.errors, 1.0 / solution.num_rows, solution.best
    histogram, smallest_error = solution.histogram, float(errors.absolute_error.min()) / solution.num_rows
    columns = {
        "bound": errors.bounds,
        "bias": errors.bias * share,
        "mean_noise": errors.noise * share,
        "expected_error": errors.absolute_error * share,
    }
    bounds, bias, noise, error = columns.values()
    parts = {BIAS: bias, NOISE: noise}
    items: list[Item] = [
        Curve("Expected error", bounds, error, Style.TOTAL),
        *(Curve(name, bounds, values, STYLES[name]) for name, values in parts.items()),
    ]
    if best.max_total > 0:
        items.append(Mark("Sweet spot", best.max_total, best.absolute_error * share, Style.SMOOTH, "star"))
    if bound is not None:
        items.append(Mark("Your own bound", bound, solution.evaluate_error(bound), Style.ENTERED, "square"))
    noise_draws = draw_unit_noise(solution.problem.mechanism)
    handle = Handle(
        "Bound",
        bounds,
        error,
        bound or best.max_total or 1.0,
        "bound",
        is_integer=True,
        parts=parts,
        users=(sample_users(histogram.sizes, histogram.users, "rows"),),
        dots=Dots(
            bias, noise, noise_draws, Spread.MEAN, MAX_ERRORS * smallest_error, "%", unit_name="counts"
        ),
        best_value=best.max_total or None,
    )
    return Plot(
        "start-tradeoff",
        "What a bound throws away, and the noise it needs",
        "As the bound grows, fewer rows are thrown away and more noise is needed; the error is smallest in between.",
        Axis("bound", "rows per user", choose_axis_limits(solution.histogram), number_format=",.3~r"),
        share_axis("error of a count", (0.0, 1.0), unit="share of it", number_format=".2~%"),
        items,
        disclosure,
        columns,
        is_main=True,
        height=HEIGHT,
        handle=handle,
    )
