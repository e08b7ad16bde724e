"""Plots of data owners as data. Pure functions of the solution."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Border, Curve, Hatching, Item, Level, Mark, Plot, Regions, Style
from dpcore.common import wording
from dpcore.contributions import log_spaced
from dpcore.data_owners import unequal
from dpcore.data_owners.answer.found import OwnersSolution
from dpcore.data_owners.bounds import ProtectedPart, bound_alone, bound_together, bound_without_privacy
from dpcore.data_owners.regimes import AXIS_RANGES, AXIS_TITLES, Regime
from dpcore.data_owners.regimes import MapAxis as MapAxis
from dpcore.dataset import Dataset

CURVE_POINTS = 160
FILE_STRIDE = 4
"""One in so many of the map's points, in each direction, stands in its file."""


def _make_axis(map_axis: MapAxis) -> Axis:
    """Build the axis of a plot from one of the map."""
    return Axis(AXIS_TITLES[map_axis], "", AXIS_RANGES[map_axis], number_format=",.3~g")


def plot_regime_map(solution: OwnersSolution) -> Plot:
    """Plot the best regime over two quantities, the regions without a bound, and the person's point."""
    regime_map = solution.map
    x_values, y_values = (grid.ravel() for grid in np.meshgrid(regime_map.x, regime_map.y))
    joint, full = regime_map.joint_gain.ravel(), regime_map.full_gain.ravel()
    guides: dict[str, npt.ArrayLike] = {
        "x": x_values,
        "y": y_values,
        "best": regime_map.regimes.ravel(),
        "joint": joint,
        "full": full,
        "gain": np.exp(joint),
        "vacuous": regime_map.vacuous.ravel(),
        "outside": regime_map.not_covered.ravel(),
    }
    is_in_file = np.zeros(regime_map.joint_gain.shape, dtype=bool)
    is_in_file[::FILE_STRIDE, ::FILE_STRIDE] = True
    in_file = is_in_file.ravel()
    columns: dict[str, npt.ArrayLike] = {
        regime_map.x_axis.value: x_values[in_file],
        regime_map.y_axis.value: y_values[in_file],
        "regime": [
            "" if math.isnan(value) else Regime(int(value)).name.lower()
            for value in regime_map.regimes.ravel()[in_file].tolist()
        ],
        "alone_over_joint": np.exp(joint[in_file]),
        "alone_over_full": np.exp(full[in_file]),
        "says_nothing": regime_map.vacuous.ravel()[in_file].astype(int),
        "not_covered": regime_map.not_covered.ravel()[in_file].astype(int),
    }
    is_same = np.array_equal(joint, full, equal_nan=True)
    regime_styles = (
        ("Work alone", Style.CUSTOMARY),
        ("Join: joint privacy only", Style.CAP),
        ("Join" if is_same else "Join: full privacy pays, too", Style.SAMPLING),
    )
    items: list[Item] = [
        Regions("x", "y", "best", regime_styles, ("bound alone : joint", "gain")),
        Hatching("The bound says nothing", "x", "y", "vacuous"),
        Hatching("Not covered: ε > 10 or δ ≥ 1/n", "x", "y", "outside", "."),
        Border(
            "Joining begins to pay" if is_same else "Joint privacy begins to pay",
            "x",
            "y",
            "joint",
            Style.CAP,
        ),
    ]
    if not is_same:
        items.append(Border("Full privacy begins to pay", "x", "y", "full", Style.SAMPLING, "dash"))
    return Plot(
        "owners-map",
        "Who should join",
        _describe_map(solution),
        _make_axis(regime_map.x_axis),
        _make_axis(regime_map.y_axis),
        columns,
        (*items, _mark_person(solution)),
        solution.disclosure,
        guides,
        is_main=True,
    )


def _mark_person(solution: OwnersSolution) -> Mark:
    """Mark the person's point; if it is outside the map, mark the edge."""
    axes = (solution.map.x_axis, solution.map.y_axis)
    coordinates = [solution.coordinate(axis) for axis in axes]
    x, y = (
        min(max(value, AXIS_RANGES[axis][0]), AXIS_RANGES[axis][1])
        for axis, value in zip(axes, coordinates, strict=True)
    )
    if [x, y] == coordinates:
        return Mark("You", x, y, Style.SMOOTH)
    coordinates_text = "<br>".join(
        f"{AXIS_TITLES[axis]}: {wording.number(value)}" for axis, value in zip(axes, coordinates, strict=True)
    )
    return Mark(
        "You (outside the map)",
        x,
        y,
        Style.SMOOTH,
        "diamond-open",
        hover_text=f"In fact:<br>{coordinates_text}",
    )


def _describe_map(solution: OwnersSolution) -> str:
    """Describe the map in a sentence."""
    coordinates_text = " and ".join(
        f"{AXIS_TITLES[axis]} = {wording.number(solution.coordinate(axis))}"
        for axis in (solution.map.x_axis, solution.map.y_axis)
    )
    result = {
        Regime.ALONE: "working alone has the smaller bound",
        Regime.JOINT_ONLY: "joining pays with joint privacy and not with full privacy",
        Regime.FULL_TOO: "joining pays with joint and with full privacy",
    }[solution.regime]
    return f"At {coordinates_text}, your point, {result}. The map shows where each is so."


def plot_bounds(solution: OwnersSolution) -> Plot:
    """Plot every bound over the number of owners."""
    owners = np.unique(
        np.r_[np.geomspace(*AXIS_RANGES[MapAxis.OWNERS], CURVE_POINTS), solution.collaboration.owners]
    )
    collaborations = solution.collaboration.replace(owners=owners)
    columns = {
        "owners": owners,
        "alone": np.broadcast_to(bound_alone(collaborations), owners.shape),
        "no_privacy": bound_without_privacy(collaborations),
        "joint_privacy": bound_together(collaborations, ProtectedPart.JOINT),
        "full_privacy": bound_together(collaborations, ProtectedPart.FULL),
    }
    visible_values = np.r_[columns["alone"], columns["no_privacy"], solution.trivial_bound]
    return Plot(
        "owners-bounds",
        "Bounds against the number of owners",
        "The bound of working alone does not fall with the number of owners; the others do, and cross it.",
        _make_axis(MapAxis.OWNERS),
        Axis(
            "bound on the excess loss",
            "",
            (float(visible_values.min()), 4.0 * float(visible_values.max())),
            number_format=",.3~g",
        ),
        columns,
        (
            Curve("Alone", "owners", "alone", Style.ENTERED),
            Curve("Together, no privacy", "owners", "no_privacy", Style.SAMPLING),
            Curve("Together, joint privacy", "owners", "joint_privacy", Style.CAP),
            Curve("Together, full privacy", "owners", "full_privacy", Style.PRIVACY),
            Level("Above: nothing is said", solution.trivial_bound),
            Mark("You", solution.coordinate(MapAxis.OWNERS), solution.bound_joint, Style.SMOOTH),
        ),
        solution.disclosure,
        height=420,
    )


def plot_cap(solution: OwnersSolution, dataset: Dataset) -> Plot:
    """Plot the bound of joint privacy over the cap per owner, with whole owners protected."""
    largest_size = max(float(dataset.histogram.max_size), 2.0)
    best = solution.cap
    marked_caps = [] if best is None else [float(best.cap)]
    caps = np.unique(
        np.clip(np.rint(log_spaced(1.0, largest_size, CURVE_POINTS, extra=marked_caps)), 1, largest_size)
    )
    capped_owners = unequal.cap_owners(
        dataset.histogram, caps, solution.parameters.collaborate(), whole_owner=True
    )
    bound, sampling = bound_together(capped_owners, ProtectedPart.JOINT), bound_without_privacy(capped_owners)
    noise = bound - sampling
    low = min(float(sampling.min()), max(float(noise.min()), float(bound.min()) / 30.0))
    alt = "The bound against the cap on records per owner."
    items: list[Item] = [
        Curve("Bound, whole owners protected", "cap", "bound", Style.CAP),
        Curve("its sampling part", "cap", "sampling_part", Style.SAMPLING),
        Curve("its privacy part", "cap", "privacy_part", Style.PRIVACY),
    ]
    if best is not None:
        items.append(Mark("Best bound on records", best.cap, best.bound, Style.SMOOTH))
        alt = (
            f"The bound is smallest at {wording.counted(best.cap, 'record')} per owner: "
            f"{wording.number(best.bound)}."
        )
    return Plot(
        "owners-cap",
        "Records kept of each owner",
        alt,
        Axis(
            "cap τ",
            "records per owner",
            (1.0, largest_size),
            title="Cap τ, records per owner",
            number_format=",.3~g",
        ),
        Axis("bound on the excess loss", "", (low, float(bound.max())), number_format=",.3~g"),
        {
            "cap": caps,
            "bound": bound,
            "sampling_part": sampling,
            "kept_records": np.asarray(dataset.histogram.kept_rows(caps), dtype=np.float64),
        },
        tuple(items),
        dataset.provenance,
        {"privacy_part": noise},
        height=420,
    )
