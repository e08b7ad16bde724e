"""Plots of examples per user as data. Pure functions of the solution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpcore.answer import Axis, Band, Column, Curve, Item, Mark, Plot, Style, share_axis
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.examples_per_user.answer.solution import ExamplesSolution
from dpcore.examples_per_user.candidates import Candidate, collect_values, replace_similarity
from dpcore.examples_per_user.parameters import Sampling

SAMPLING_NAMES = {Sampling.EXAMPLES: "Draw examples", Sampling.USERS: "Draw users"}
SAMPLING_STYLES = {Sampling.EXAMPLES: Style.CAP, Sampling.USERS: Style.SMOOTH}


def plot_error(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the estimated error over G in both ways, with the band from diverse to similar examples."""
    best, own_candidate = solution.best, solution.own_candidate
    items: list[Item] = [*_make_curves(solution, "error")]
    low, high = solution.comparison.find_near_optimal()
    if low < high:
        items.insert(0, Band(f"Within 5{wording.PERCENT} of the best", low, high))
    items.append(Mark("Best bound", best.bound, best.error, SAMPLING_STYLES[best.sampling]))
    if own_candidate is not None:
        items.append(Mark("Your bound", own_candidate.bound, own_candidate.error, Style.ENTERED, "square"))
    return Plot(
        "examples-error",
        "Estimated error over examples per user",
        f"The estimated error is least at {wording.counted(best.bound, 'example')} per user "
        f"({SAMPLING_NAMES[best.sampling].lower()}). Shaded: from diverse to alike examples of a user.",
        _make_bound_axis(solution),
        Axis("estimated error", "gradient norms"),
        items,
        provenance,
        is_main=True,
    )


def plot_noise(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the noise on a step's mean gradient over G, in both ways."""
    description = "Noise per parameter and step over examples per user."
    x_axis, y_axis = _make_bound_axis(solution), Axis("noise per parameter", "gradient norms")
    curves, title = _make_curves(solution, "noise"), "Noise on the mean gradient"
    return Plot("examples-noise", title, description, x_axis, y_axis, curves, provenance)


def plot_kept_share(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the share of examples kept, and the sampling rate, over G."""
    candidates = solution.comparison.candidates[Sampling.EXAMPLES]
    bounds, shares, rates = (_make_column(candidates, name) for name in ("bound", "kept_share", "rate"))
    return Plot(
        "examples-kept",
        "Examples kept, and sampling rate",
        "The more examples are kept, the smaller is the rate that draws B.",
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
    description = "The noise multiplier grows with G if examples are drawn, and falls if users are drawn."
    x_axis, y_axis = _make_bound_axis(solution), Axis("noise multiplier", "clip norms")
    curves, title = _make_curves(solution, "multiplier", is_shaded=False), "Noise multiplier, at most"
    return Plot("examples-multiplier", title, description, x_axis, y_axis, curves, provenance, height=360)


def _make_column(candidates: Sequence[Candidate], name: str, column_name: str = "") -> Column:
    """Make a column of one attribute of the candidates, by default under its own name."""
    return Column(column_name or name, collect_values(candidates, name))


def _make_curves(solution: ExamplesSolution, name: str, is_shaded: bool = True) -> list[Curve]:
    """Make a curve of one quantity per way of sampling, at r as entered; shaded from r = 0 to 1."""
    curves = []
    for sampling, candidates in solution.comparison.candidates.items():
        column_name = f"{sampling.value}_{name}"
        ends: dict[str, Any] = {"is_shaded": is_shaded}
        for field, suffix, similarity in (
            (("low", "diverse", 0.0), ("high", "alike", 1.0)) if is_shaded else ()
        ):
            changed_candidates = [
                replace_similarity(solution.histogram, solution.parameters, candidate, similarity)
                for candidate in candidates
            ]
            ends[field] = _make_column(changed_candidates, name, f"{column_name}_{suffix}")
        curves.append(
            Curve(
                SAMPLING_NAMES[sampling],
                _make_column(candidates, "bound"),
                _make_column(candidates, name, column_name),
                SAMPLING_STYLES[sampling],
                symbol="circle",
                **ends,
            )
        )
    return curves


def _make_bound_axis(solution: ExamplesSolution) -> Axis:
    """Make the axis of the bound."""
    limits, title = (0.9, max(1.1 * solution.histogram.max_size, 2.0)), "Bound G (examples per user)"
    return Axis("bound", "examples per user", limits, title=title, number_format=",")
