"""The figures of the first trade-off as data: what a bound throws away against the noise it needs. Pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Curve, Item, Look, Mark, Plot, Points, Scale
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.start.answer.found import CELLS, RowsOfUsers, Tradeoff, axis_limits

TOLD = "rows of the user"


def tradeoff(found: Tradeoff, bound: int | None, disclosure: Provenance) -> Plot:
    """The main figure: the two errors over the bound, the bound that is set, and the best one."""
    errors, share = found.errors, 1.0 / found.num_rows
    items: list[Item] = [
        Curve("Thrown away (bias)", "bound", "lost", Look.SAMPLING, factor=share),
        Curve("Privacy noise", "bound", "noise", Look.PRIVACY, factor=share),
        Curve("Both together", "bound", "total", Look.TOTAL, factor=share),
    ]
    best = found.best
    if best.max_total > 0:
        items.append(Mark("Sweet spot", best.max_total, best.bound * share, Look.SMOOTH, "star"))
    if bound is not None:
        items.append(Mark("Your bound", bound, float(found.at(bound).bound) * share, Look.CAP))
    return Plot(
        "start-tradeoff",
        "What a bound throws away, and the noise it needs",
        "As the bound grows, fewer rows are thrown away and more noise is needed; the sum is smallest in between.",
        Axis("upper bound on contributions", "rows per user", axis_limits(found.histogram), number=",.3~r"),
        Axis(
            f"error of {CELLS} private counts", "share of all rows", (0.0, 1.0), Scale.PERCENT, number=".2~%"
        ),
        {"bound": errors.bounds, "lost": errors.bias, "noise": errors.noise, "total": errors.bound},
        tuple(items),
        disclosure,
        main=True,
    )


def rows(found: RowsOfUsers, bound: int | None, disclosure: Provenance) -> Plot:
    """A column of dots for each of some users, those above the bound hollow, and the bound as a line."""
    users = wording.counted(found.sizes.size, "user")
    limit = np.inf if bound is None else bound
    kept = np.minimum(found.sizes, limit)
    ends = (-1.0, float(found.sizes.size))
    guides: dict[str, npt.ArrayLike] = {
        "user of a dot": found.user,
        "height": found.height,
        "is": np.where(found.is_kept(limit), "kept", "cut"),
        TOLD: found.sizes[found.user],
        "ends": ends,
    }
    dots = Points("Kept", "user of a dot", "height", Look.CAP, where=("is", "kept"), size=7, told=TOLD)
    items: list[Item] = [
        replace(dots, symbol="circle"),
        replace(dots, name="Cut", look=Look.SMOOTH, where=("is", "cut"), symbol="circle-open"),
    ]
    alt = f"Rows of {users}, fewest rows first."
    if bound is not None:
        guides["bound"] = (float(bound), float(bound))
        items.append(Curve("Your bound", "ends", "bound", Look.OWN))
        cut = int((found.sizes > bound).sum())
        alt = f"A bound of {wording.counted(bound, 'row')} cuts rows of {cut} of the {users} shown, the heaviest ones."
    return Plot(
        "start-rows",
        "Which rows are cut",
        alt,
        Axis(
            "user",
            "",
            ends,
            Scale.LINEAR,
            f"{users} of {wording.number(found.num_users)}, fewest rows first",
            ticks=False,
        ),
        Axis("rows of a user", "", (0.0, 1.05 * max(float(found.sizes[-1]), 2.0)), Scale.LINEAR),
        {
            "user": np.arange(1, found.sizes.size + 1),
            "rows": found.sizes,
            "kept": kept,
            "cut": found.sizes - kept,
        },
        tuple(items),
        disclosure,
        guides,
        height=320,
    )
