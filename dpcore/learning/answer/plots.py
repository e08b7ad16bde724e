"""The figures of a learner under a cap as data. Pure: what was found in, plots out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Axis, Band, Curve, Item, Level, Mark, Plot, Style
from dpcore.answer.axes import ROWS_UNIT, sample_users
from dpcore.answer.handle import Handle
from dpcore.answer.parts import BIAS, NOISE, SAMPLING, STYLES, list_part_columns
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.learning.answer.found import LearningSolution, axis_limits
from dpcore.learning.bias_bounds import BiasTerm

NOTHING = Level("1: above, it promises nothing", 1.0)
"""Above it a bound on losses in [0, 1] says nothing."""
PARTS = list_part_columns({BIAS: "bias_twice", SAMPLING: "finite_sample", NOISE: "privacy_noise"})
CURVES = tuple(Curve(part.name, "cap_rows", part.column, STYLES[part.name]) for part in PARTS)
# One colour a way, dash patterns within it. The smaller of two bounds stands in the table and is no line of its own.
TERMS = {
    BiasTerm.WORST_CASE: (Style.CAP, "solid", 2.5),
    BiasTerm.CUT_SHARE: (Style.CAP, "dash", 2.0),
    BiasTerm.LOG_KEPT: (Style.SMOOTH, "solid", 2.0),
    BiasTerm.VARIANCE_KEPT: (Style.SAMPLING, "dash", 2.0),
    BiasTerm.CHI_SQUARED: (Style.SAMPLING, "solid", 2.5),
    BiasTerm.LOG_FRACTION: (Style.ENTERED, "solid", 1.5),
    BiasTerm.VARIANCE_FRACTION: (Style.ENTERED, "dash", 1.5),
    BiasTerm.COROLLARY_1: (Style.SMOOTH, "dot", 2.0),
}
MARKED = (("Best bound", Style.CAP, "diamond"), ("Your own bound", Style.ENTERED, "square"))


def bound(found: LearningSolution, data: Dataset, own_cap: int | None) -> Plot:
    """Return the main figure: the bound over the cap, in its parts, with the best cap and the person's own."""
    best = found.choice
    items: list[Item] = [Curve("Excess risk, all three", "cap_rows", "bound", Style.TOTAL), *CURVES, NOTHING]
    if found.near_optimal[0] < found.near_optimal[1]:
        items.append(Band(f"Within 5{wording.PERCENT}", *found.near_optimal))
    for (name, look, symbol), cap in zip(MARKED, (best.max_contributions, own_cap), strict=True):
        # Under Corollary 1 a low cap has no bound; on a log axis 0 has no place.
        if cap is not None and 0.0 < (height := found.bound_at(cap)) < math.inf:
            items.append(Mark(name, cap, height, look, symbol))
    return Plot(
        "learning-bound",
        "Excess risk against the bound",
        f"The excess risk, at most, is smallest at {wording.counted(best.max_contributions, 'row')} per user, "
        f"{wording.number(best.total)}: bias {wording.number(best.bias)}, sampling "
        f"{wording.number(best.finite_sample)}, noise {wording.number(best.privacy)}. Lower bounds bias more, "
        "higher ones need more noise.",
        _cap_axis(found),
        Axis("excess risk, at most", "", axis_limits(found)[1]),
        found.curves,
        tuple(items),
        data.provenance,
        is_main=True,
        handle=_handle(found, own_cap),
    )


def _handle(found: LearningSolution, own_cap: int | None) -> Handle:
    """The bound by hand, whose rows it cuts, and the parts of the limit: nothing is released, so there are no dots."""
    histogram = found.problem.histogram
    return Handle(
        "Bound",
        "cap_rows",
        "bound",
        own_cap or found.choice.max_contributions,
        "own_cap",
        is_integer=True,
        parts=PARTS,
        is_sum=True,
        users=(sample_users(histogram.sizes.astype(np.float64), histogram.users.astype(np.float64), "rows"),),
    )


def terms(found: LearningSolution, data: Dataset, own_cap: int | None) -> Plot:
    """Twice every bound on the bias over the cap."""
    at_best = optimal_cap.bias_terms(found.problem, found.choice.fraction)
    worst, cut, log = (
        wording.number(2.0 * float(at_best[term]))
        for term in (BiasTerm.WORST_CASE, BiasTerm.CUT_SHARE, BiasTerm.LOG_KEPT)
    )
    items: list[Item] = [
        Curve(f"{term.title} ({term.group})", "cap_rows", f"twice_{term.value}", look, dash=dash, width=width)
        for term, (look, dash, width) in TERMS.items()
    ]
    for (name, look, _), cap in zip(MARKED, (found.choice.max_contributions, own_cap), strict=True):
        if cap is not None:
            items.append(Level(name, cap, is_vertical=True, style=look))
    return Plot(
        "learning-terms",
        "All bounds on the bias",
        f"At the best bound twice the worst case is {worst}, twice the share of rows cut {cut}, and Proposition 1's "
        f"log form {log}.",
        _cap_axis(found),
        Axis("twice the limit on the bias", "", axis_limits(found)[1]),
        found.curves,
        (*items, NOTHING),
        data.provenance,
        height=520,
    )


def _cap_axis(found: LearningSolution) -> Axis:
    (low, high), _ = axis_limits(found)
    title = "Bound (rows per user)"
    # A cap of the person's own may lie where nobody has as many rows.
    reach = (low, max(high, float(found.problem.histogram.num_rows)))
    return Axis("bound", ROWS_UNIT, (low, high), title=title, limits_range=reach, number_format=",.4~g")
