"""The trade-off on the Start page in words."""

from __future__ import annotations

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from pages.start.answer import CELLS, Tradeoff

ASSUMED = (
    f"A table of {CELLS} counts, such as rows per month, is released at once with Laplace noise of scale bound/ε in "
    "each count; neighbours add or remove one user (Amin et al. 2019, section 3)."
)


def card(view: Tradeoff, epsilon: float, bound: int, disclosure: Provenance) -> Answer:
    """The best bound, and what the bound that is set does."""
    best = view.best.max_total
    useful = best > 0
    low, high = (wording.number(x) for x in view.within)
    return Answer(
        headline=f"Keep at most {wording.counted(best, 'row')} of each user."
        if useful
        else "With so few users and so small an ε, every bound gives more noise than count.",
        detail=sentence(view, epsilon, bound),
        numbers=(
            Number("Sweet spot", wording.counted(best, "row"), "per user", copied=wording.digits(best)),
            Number("Error", wording.percent(view.best.bound / view.num_rows), "of all rows"),
        )
        if useful
        else (),
        assumptions=(),
        disclosure=disclosure,
        good_enough=f"any bound from {low} to {high} rows stays within 5{wording.PERCENT} of the best error."
        if useful and low != high
        else "",
    )


def sentence(view: Tradeoff, epsilon: float, bound: int) -> str:
    """What the bound that is set does."""
    here, rows = view.at(bound), view.num_rows
    return (
        f"With **{wording.counted(bound, 'row')} per user** and ε = {wording.entered(epsilon)}, "
        f"{wording.percent(float(here.bias) / rows)} of all rows are thrown away and noise adds up to "
        f"{wording.percent(float(here.noise) / rows)}: at most **{wording.percent(float(here.bound) / rows)} error**."
    )


def outside(view: Tradeoff, bound: int, limits: tuple[float, float]) -> str:
    """A sentence on the marked points that the figure leaves out; empty where it shows both."""
    points: list[tuple[str, float, float]] = [("your bound", bound, float(view.at(bound).bound))]
    if view.best.max_total > 0:
        points.append(("the sweet spot", view.best.max_total, view.best.bound))
    missing = [name for name, h, error in points if not limits[0] <= h <= limits[1] or error > view.num_rows]
    return f"Outside the axes, which end at 100{wording.PERCENT}: {' and '.join(missing)}." if missing else ""
