"""The figures of data owners as data. Pure: what was found in, plots out."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Border, Curve, Hatched, Item, Level, Look, Mark, Plot, Regions
from dpcore.common import wording
from dpcore.contributions import log_spaced
from dpcore.data_owners import unequal
from dpcore.data_owners.answer.found import OwnersFound
from dpcore.data_owners.bounds import Private, alone, together, without_privacy
from dpcore.data_owners.regimes import AXES, RANGES, Regime
from dpcore.data_owners.regimes import Axis as MapAxis
from dpcore.dataset import Dataset

CURVE_POINTS = 160
EVERY = 4
"""One in so many of the map's points, in each direction, stands in its file."""


def _axis(of: MapAxis) -> Axis:
    return Axis(AXES[of], "", RANGES[of], number=",.3~g")


def regime_map(found: OwnersFound) -> Plot:
    """The main figure: what is best where, what the bounds do not cover, and where the person stands."""
    drawn = found.map
    x, y = (one.ravel() for one in np.meshgrid(drawn.x, drawn.y))
    joint, full = drawn.joint_gain.ravel(), drawn.full_gain.ravel()
    whole: dict[str, npt.ArrayLike] = {
        "x": x,
        "y": y,
        "best": drawn.regimes.ravel(),
        "joint": joint,
        "full": full,
        "gain": np.exp(joint),
        "vacuous": drawn.vacuous.ravel(),
        "outside": drawn.outside.ravel(),
    }
    few = np.zeros(drawn.joint_gain.shape, dtype=bool)
    few[::EVERY, ::EVERY] = True
    at = few.ravel()
    columns: dict[str, npt.ArrayLike] = {
        drawn.x_axis.value: x[at],
        drawn.y_axis.value: y[at],
        "regime": [
            "" if math.isnan(value) else Regime(int(value)).name.lower()
            for value in drawn.regimes.ravel()[at].tolist()
        ],
        "alone_over_joint": np.exp(joint[at]),
        "alone_over_full": np.exp(full[at]),
        "says_nothing": drawn.vacuous.ravel()[at].astype(int),
        "not_covered": drawn.outside.ravel()[at].astype(int),
    }
    same = np.array_equal(joint, full, equal_nan=True)
    kinds = (
        ("Work alone", Look.USUAL),
        ("Join: joint privacy only", Look.CAP),
        ("Join" if same else "Join: full privacy pays, too", Look.SAMPLING),
    )
    items: list[Item] = [
        Regions("x", "y", "best", kinds, ("bound alone : joint", "gain")),
        Hatched("The bound says nothing", "x", "y", "vacuous"),
        Hatched("Not covered: ε > 10 or δ ≥ 1/n", "x", "y", "outside", "."),
        Border(
            "Joining begins to pay" if same else "Joint privacy begins to pay", "x", "y", "joint", Look.CAP
        ),
    ]
    if not same:
        items.append(Border("Full privacy begins to pay", "x", "y", "full", Look.SAMPLING, "dash"))
    return Plot(
        "owners-map",
        "Who should join",
        _map_alt(found),
        _axis(drawn.x_axis),
        _axis(drawn.y_axis),
        columns,
        (*items, _you(found)),
        found.disclosure,
        whole,
        main=True,
    )


def _you(found: OwnersFound) -> Mark:
    """Where the person stands, at the map's edge where that is outside."""
    axes = (found.map.x_axis, found.map.y_axis)
    at = [found.at(axis) for axis in axes]
    x, y = (min(max(value, RANGES[axis][0]), RANGES[axis][1]) for axis, value in zip(axes, at, strict=True))
    if [x, y] == at:
        return Mark("You", x, y, Look.SMOOTH)
    place = "<br>".join(
        f"{AXES[axis]}: {wording.number(value)}" for axis, value in zip(axes, at, strict=True)
    )
    return Mark("You (outside the map)", x, y, Look.SMOOTH, "diamond-open", also=f"In fact:<br>{place}")


def _map_alt(found: OwnersFound) -> str:
    """The takeaway of the map."""
    where = " and ".join(
        f"{AXES[axis]} = {wording.number(found.at(axis))}" for axis in (found.map.x_axis, found.map.y_axis)
    )
    what = {
        Regime.ALONE: "working alone has the smaller bound",
        Regime.JOINT_ONLY: "joining pays with joint privacy and not with full privacy",
        Regime.FULL_TOO: "joining pays with joint and with full privacy",
    }[found.regime]
    return f"At {where}, your point, {what}. The map shows where each is so."


def bounds(found: OwnersFound) -> Plot:
    """Every bound against the number of owners."""
    owners = np.unique(np.r_[np.geomspace(*RANGES[MapAxis.OWNERS], CURVE_POINTS), found.of.owners])
    many = found.of.having(owners=owners)
    columns = {
        "owners": owners,
        "alone": np.broadcast_to(alone(many), owners.shape),
        "no_privacy": without_privacy(many),
        "joint_privacy": together(many, Private.JOINT),
        "full_privacy": together(many, Private.FULL),
    }
    shown = np.r_[columns["alone"], columns["no_privacy"], found.nothing]
    return Plot(
        "owners-bounds",
        "Bounds against the number of owners",
        "The bound of working alone does not fall with the number of owners; the others do, and cross it.",
        _axis(MapAxis.OWNERS),
        Axis("bound on the excess loss", "", (float(shown.min()), 4.0 * float(shown.max())), number=",.3~g"),
        columns,
        (
            Curve("Alone", "owners", "alone", Look.OWN),
            Curve("Together, no privacy", "owners", "no_privacy", Look.SAMPLING),
            Curve("Together, joint privacy", "owners", "joint_privacy", Look.CAP),
            Curve("Together, full privacy", "owners", "full_privacy", Look.PRIVACY),
            Level("Above: nothing is said", found.nothing),
            Mark("You", found.at(MapAxis.OWNERS), found.joint, Look.SMOOTH),
        ),
        found.disclosure,
        height=420,
    )


def cap(found: OwnersFound, data: Dataset) -> Plot:
    """The bound of joint privacy against the cap per owner, whole owners protected; around all sizes of owners."""
    most = max(float(data.histogram.max_size), 2.0)
    best = found.cap
    marked = [] if best is None else [float(best.cap)]
    caps = np.unique(np.clip(np.rint(log_spaced(1.0, most, CURVE_POINTS, extra=marked)), 1, most))
    at = unequal.capped(data.histogram, caps, found.parameters.collaboration(), whole_owner=True)
    bound, sampling = together(at, Private.JOINT), without_privacy(at)
    noise = bound - sampling
    low = min(float(sampling.min()), max(float(noise.min()), float(bound.min()) / 30.0))
    alt = "The bound against the cap on records per owner."
    items: list[Item] = [
        Curve("Bound, whole owners protected", "cap", "bound", Look.CAP),
        Curve("its sampling part", "cap", "sampling_part", Look.SAMPLING),
        Curve("its privacy part", "cap", "privacy_part", Look.PRIVACY),
    ]
    if best is not None:
        items.append(Mark("Best bound on records", best.cap, best.bound, Look.SMOOTH))
        alt = (
            f"The bound is smallest at {wording.counted(best.cap, 'record')} per owner: "
            f"{wording.number(best.bound)}."
        )
    return Plot(
        "owners-cap",
        "Records kept of each owner",
        alt,
        Axis("cap τ", "records per owner", (1.0, most), title="Cap τ, records per owner", number=",.3~g"),
        Axis("bound on the excess loss", "", (low, float(bound.max())), number=",.3~g"),
        {
            "cap": caps,
            "bound": bound,
            "sampling_part": sampling,
            "kept_records": np.asarray(data.histogram.kept_rows(caps), dtype=np.float64),
        },
        tuple(items),
        data.provenance,
        {"privacy_part": noise},
        height=420,
    )
