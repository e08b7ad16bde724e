"""Plots of examples per user as data. Pure functions of the solution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcore.answer import Axis, Band, Column, Curve, Item, Mark, Plot, Style, share_axis
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.examples_per_user import options
from dpcore.examples_per_user.answer.solution import ExamplesSolution
from dpcore.examples_per_user.options import Option
from dpcore.examples_per_user.parameters import Sampling

SAMPLING_NAMES = {Sampling.EXAMPLES: "Draw examples", Sampling.USERS: "Draw users"}
SAMPLING_STYLES = {Sampling.EXAMPLES: Style.CAP, Sampling.USERS: Style.SMOOTH}


def plot_error(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the estimated error over G in both ways, with the band from diverse to similar examples."""
    best, entered_option = solution.best, solution.entered_option
    items: list[Item] = [*_make_curves(solution, "error")]
    low, high = solution.options.find_near_optimal()
    if low < high:
        items.insert(0, Band(f"Within 5{wording.PERCENT} of the best", low, high))
    items.append(Mark("Best bound", best.bound, best.error, SAMPLING_STYLES[best.sampling]))
    if entered_option is not None:
        items.append(Mark("Your bound", entered_option.bound, entered_option.error, Style.ENTERED, "square"))
    return Plot(
        "examples-error",
        "Estimated error of the training over examples per user",
        f"By this estimate the error is least at {wording.counted(best.bound, 'example')} per user "
        f"({SAMPLING_NAMES[best.sampling].lower()}): {wording.number(best.error)} gradient norms. Shaded: "
        "from a user's "
        "examples being diverse to being alike.",
        _make_bound_axis(solution),
        Axis("estimated error", "gradient norms"),
        items,
        provenance,
        is_main=True,
    )


def plot_noise(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the noise on a step's mean gradient over G, in both ways."""
    return Plot(
        "examples-noise",
        "Noise on the mean gradient",
        "Noise per parameter and step over examples per user. Where users are drawn it depends on how alike a user's "
        "examples are.",
        _make_bound_axis(solution),
        Axis("noise per parameter", "gradient norms"),
        _make_curves(solution, "noise"),
        provenance,
    )


def plot_kept_share(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the share of examples kept, and the sampling rate, over G."""
    tried_options = solution.options.options_by_sampling[Sampling.EXAMPLES]
    bounds, shares, rates = (_collect(tried_options, name) for name in ("bound", "kept_share", "rate"))
    return Plot(
        "examples-kept",
        "Examples kept, and sampling rate",
        "The more examples of a user are kept, the more stay in all, and the smaller is the rate that draws B.",
        _make_bound_axis(solution),
        share_axis("share", (0.0, 1.0)),
        (
            Curve("Examples kept", bounds, shares, Style.TOTAL, symbol="circle"),
            Curve("Sampling rate q", bounds, rates, Style.SAMPLING, symbol="circle"),
        ),
        provenance,
        height=360,
    )


def plot_multipliers(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the noise multiplier over G, in both ways."""
    return Plot(
        "examples-multiplier",
        "Noise multiplier, at most",
        "Where examples are drawn the noise multiplier grows with G; where users are drawn it falls.",
        _make_bound_axis(solution),
        Axis("noise multiplier", "clip norms"),
        [
            Curve(
                SAMPLING_NAMES[sampling],
                _collect(tried_options, "bound"),
                _collect(tried_options, "multiplier", f"{sampling.value}_multiplier"),
                SAMPLING_STYLES[sampling],
                symbol="circle",
            )
            for sampling, tried_options in solution.options.options_by_sampling.items()
        ],
        provenance,
        height=360,
    )


def _collect(tried_options: Sequence[Option], name: str, column: str = "") -> Column:
    """Collect one attribute of the options, by default under its own name."""
    values = np.array([float(getattr(option, name)) for option in tried_options])
    return Column(column or name, values)


def _make_curves(solution: ExamplesSolution, name: str) -> list[Curve]:
    """Make a curve of one quantity per way of sampling, at r as entered, shaded from r = 0 to 1."""
    curves = []
    for sampling, tried_options in solution.options.options_by_sampling.items():
        column = f"{sampling.value}_{name}"
        low, high = (
            [
                options.replace_similarity(solution.histogram, solution.parameters, option, similarity)
                for option in tried_options
            ]
            for similarity in (0.0, 1.0)
        )
        curves.append(
            Curve(
                SAMPLING_NAMES[sampling],
                _collect(tried_options, "bound"),
                _collect(tried_options, name, column),
                SAMPLING_STYLES[sampling],
                _collect(low, name, f"{column}_diverse"),
                _collect(high, name, f"{column}_alike"),
                symbol="circle",
                is_shaded=True,
            )
        )
    return curves


def _make_bound_axis(solution: ExamplesSolution) -> Axis:
    """Make the axis of the bound."""
    limits, title = (0.9, max(1.1 * solution.histogram.max_size, 2.0)), "Bound G (examples per user)"
    return Axis("bound", "examples per user", limits, title=title, number_format=",")
