"""Plots of examples per user as data. Pure functions of the solution."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Band, Curve, Item, Mark, Plot, Scale, Style
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.examples_per_user import options
from dpcore.examples_per_user.answer.found import ExamplesSolution
from dpcore.examples_per_user.options import Option
from dpcore.examples_per_user.parameters import Sampling

SAMPLING_NAMES = {Sampling.EXAMPLES: "Draw examples", Sampling.USERS: "Draw users"}
SAMPLING_STYLES = {Sampling.EXAMPLES: Style.CAP, Sampling.USERS: Style.SMOOTH}


def plot_error(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the estimated error over G in both ways, with the band from diverse to similar examples."""
    best, entered_option = solution.best, solution.entered_option
    columns = _build_columns(solution, "error")
    items: list[Item] = [*_make_curves("error")]
    low, high = solution.options.find_near_optimal()
    if low < high:
        items.insert(0, Band(f"Within 5{wording.PERCENT} of the best", low, high))
    items.append(Mark("Best bound", best.bound, best.error, SAMPLING_STYLES[best.sampling], "diamond"))
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
        columns,
        tuple(items),
        provenance,
        is_main=True,
    )


def plot_noise(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the noise on a step's mean gradient over G, in both ways."""
    columns = _build_columns(solution, "noise")
    return Plot(
        "examples-noise",
        "Noise on the mean gradient",
        "Noise per parameter and step over examples per user. Where users are drawn it depends on how alike a user's "
        "examples are.",
        _make_bound_axis(solution),
        Axis("noise per parameter", "gradient norms"),
        columns,
        tuple(_make_curves("noise")),
        provenance,
    )


def plot_kept_share(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the share of examples kept, and the sampling rate, over G."""
    tried_options = solution.options.options_by_sampling[Sampling.EXAMPLES]
    columns = {
        name: values
        for name, values in options.build_columns(tried_options).items()
        if name in ("bound", "kept_share", "rate")
    }
    return Plot(
        "examples-kept",
        "Examples kept, and sampling rate",
        "The more examples of a user are kept, the more stay in all, and the smaller is the rate that draws B.",
        _make_bound_axis(solution),
        Axis("share", "", (0.0, 1.0), Scale.PERCENT),
        columns,
        (
            Curve("Examples kept", "bound", "kept_share", Style.TOTAL, symbol="circle"),
            Curve("Sampling rate q", "bound", "rate", Style.SAMPLING, symbol="circle"),
        ),
        provenance,
        height=360,
    )


def plot_multipliers(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the noise multiplier over G, in both ways."""
    columns: dict[str, FloatArray] = {}
    for sampling, tried_options in solution.options.options_by_sampling.items():
        option_columns = options.build_columns(tried_options)
        columns |= {
            "bound": option_columns["bound"],
            f"{sampling.value}_multiplier": option_columns["multiplier"],
        }
    return Plot(
        "examples-multiplier",
        "Noise multiplier, at most",
        "Where examples are drawn the noise multiplier grows with G; where users are drawn it falls.",
        _make_bound_axis(solution),
        Axis("noise multiplier", "clip norms"),
        columns,
        tuple(
            Curve(
                SAMPLING_NAMES[sampling],
                "bound",
                f"{sampling.value}_multiplier",
                SAMPLING_STYLES[sampling],
                symbol="circle",
            )
            for sampling in SAMPLING_NAMES
        ),
        provenance,
        height=360,
    )


def _build_columns(solution: ExamplesSolution, name: str) -> dict[str, FloatArray]:
    """Build the columns of one quantity in both ways, at r as entered, 0 and 1."""
    columns: dict[str, FloatArray] = {}
    for sampling, tried_options in solution.options.options_by_sampling.items():
        columns["bound"] = np.array([float(candidate.bound) for candidate in tried_options])
        columns[f"{sampling.value}_{name}"] = _collect(tried_options, name)
        extreme_values = [
            _collect(
                tuple(
                    options.replace_similarity(solution.histogram, solution.parameters, candidate, similarity)
                    for candidate in tried_options
                ),
                name,
            )
            for similarity in (0.0, 1.0)
        ]
        columns[f"{sampling.value}_{name}_diverse"], columns[f"{sampling.value}_{name}_alike"] = (
            extreme_values
        )
    return columns


def _collect(tried_options: tuple[Option, ...], name: str) -> FloatArray:
    """Collect one attribute of the options."""
    return np.array([float(getattr(candidate, name)) for candidate in tried_options])


def _make_curves(name: str) -> list[Curve]:
    """Make a curve per way of sampling."""
    return [
        Curve(
            SAMPLING_NAMES[sampling],
            "bound",
            f"{sampling.value}_{name}",
            SAMPLING_STYLES[sampling],
            symbol="circle",
            low=f"{sampling.value}_{name}_diverse",
            high=f"{sampling.value}_{name}_alike",
            is_shaded=True,
        )
        for sampling in SAMPLING_NAMES
    ]


def _make_bound_axis(solution: ExamplesSolution) -> Axis:
    """Make the axis of the bound."""
    largest_size = float(solution.histogram.max_size)
    return Axis(
        "bound",
        "examples per user",
        (0.9, max(1.1 * largest_size, 2.0)),
        title="Bound G (examples per user)",
        number_format=",",
    )
