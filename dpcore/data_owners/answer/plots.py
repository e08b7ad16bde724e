"""Plots of data owners as data. Pure functions of the solution."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Border, Column, Curve, Hatching, Item, Level, Mark, Plot, Regions, Style
from dpcore.common import wording
from dpcore.contributions import log_spaced
from dpcore.data_owners import regimes
from dpcore.data_owners.answer.solution import SETTINGS, OwnersSolution
from dpcore.data_owners.regimes import AXIS_RANGES, Regime
from dpcore.data_owners.regimes import MapAxis as MapAxis
from dpcore.dataset import Dataset

CURVE_POINTS = 160
FILE_STRIDE = 4
"""One in so many of the map's points, in each direction, stands in its file."""


def _make_axis(map_axis: MapAxis) -> Axis:
    """Build the axis of a plot from one of the map."""
    return Axis(map_axis.label, "", AXIS_RANGES[map_axis], number_format=",.3~g")


def plot_regime_map(solution: OwnersSolution) -> Plot:
    """Plot the best regime over two quantities, the regions without a bound, and the person's point."""
    regime_map = solution.map
    x, y, joint, full = regime_map.x, regime_map.y, regime_map.joint_gain, regime_map.full_gain
    in_file = (slice(None, None, FILE_STRIDE),) * 2
    file_x, file_y = np.meshgrid(x[::FILE_STRIDE], y[::FILE_STRIDE])
    columns: dict[str, npt.ArrayLike] = {
        regime_map.x_axis.value: file_x.ravel(),
        regime_map.y_axis.value: file_y.ravel(),
        "regime": [
            "" if math.isnan(value) else Regime(int(value)).name.lower()
            for value in regime_map.regimes[in_file].ravel().tolist()
        ],
        "alone_over_joint": np.exp(joint[in_file]).ravel(),
        "alone_over_full": np.exp(full[in_file]).ravel(),
        "says_nothing": regime_map.is_vacuous[in_file].ravel().astype(int),
        "not_covered": regime_map.is_uncovered[in_file].ravel().astype(int),
    }
    is_same = np.array_equal(joint, full, equal_nan=True)
    regime_styles = (
        ("Work alone", Style.CUSTOMARY),
        ("Join: joint privacy only", Style.CAP),
        ("Join" if is_same else "Join: full privacy pays, too", Style.SAMPLING),
    )
    joint_border = "Joining begins to pay" if is_same else "Joint privacy begins to pay"
    items: list[Item] = [
        Regions(x, y, regime_map.regimes, regime_styles, ("bound alone : joint", np.exp(joint))),
        Hatching("The bound says nothing", x, y, regime_map.is_vacuous),
        Hatching("Not covered: ε > 10 or δ ≥ 1/n", x, y, regime_map.is_uncovered, "."),
        Border(joint_border, x, y, joint, Style.CAP),
    ]
    if not is_same:
        items.append(Border("Full privacy begins to pay", x, y, full, Style.SAMPLING, "dash"))
    return Plot(
        "owners-map",
        "Who should join",
        _describe_map(solution),
        _make_axis(regime_map.x_axis),
        _make_axis(regime_map.y_axis),
        (*items, _mark_person(solution)),
        solution.disclosure,
        columns,
        is_main=True,
    )


def _mark_person(solution: OwnersSolution) -> Mark:
    """Mark the person's point; if it is outside the map, mark the edge."""
    axes = (solution.map.x_axis, solution.map.y_axis)
    coordinates = [solution.coordinate(axis) for axis in axes]
    x, y = (float(np.clip(value, *AXIS_RANGES[axis])) for axis, value in zip(axes, coordinates, strict=True))
    if [x, y] == coordinates:
        return Mark("You", x, y, Style.SMOOTH)
    lines = [f"{axis.label}: {wording.number(value)}" for axis, value in zip(axes, coordinates, strict=True)]
    hover_text = "<br>".join(("In fact:", *lines))
    return Mark("You (outside the map)", x, y, Style.SMOOTH, "diamond-open", hover_text=hover_text)


def _describe_map(solution: OwnersSolution) -> str:
    """Describe the map in a sentence."""
    axes = (solution.map.x_axis, solution.map.y_axis)
    point_text = " and ".join(f"{axis.label} = {wording.number(solution.coordinate(axis))}" for axis in axes)
    regime_text = {
        Regime.ALONE: "working alone has the smaller bound",
        Regime.JOINT_ONLY: "joining pays with joint privacy and not with full privacy",
        Regime.FULL_TOO: "joining pays with joint and with full privacy",
    }[solution.regime]
    return f"At {point_text}, your point, {regime_text}. The map shows where each is so."


def plot_bounds(solution: OwnersSolution) -> Plot:
    """Plot every bound over the number of owners."""
    owners = np.unique(
        np.r_[np.geomspace(*AXIS_RANGES[MapAxis.OWNERS], CURVE_POINTS), solution.collaboration.owners]
    )
    collaborations = solution.collaboration.replace(owners=owners)
    alone, no_privacy, joint, full = (
        np.broadcast_to(compute_bound(collaborations), owners.shape) for compute_bound in SETTINGS.values()
    )
    visible_values = np.r_[alone, no_privacy, solution.trivial_bound]
    limits = float(visible_values.min()), 4.0 * float(visible_values.max())
    x = Column("owners", owners)
    return Plot(
        "owners-bounds",
        "Bounds against the number of owners",
        "The bound of working alone does not fall with the number of owners; the others do, and cross it.",
        _make_axis(MapAxis.OWNERS),
        Axis("bound on the excess loss", "", limits, number_format=",.3~g"),
        (
            Curve("Alone", x, Column("alone", alone), Style.ENTERED),
            Curve("Together, no privacy", x, Column("no_privacy", no_privacy), Style.SAMPLING),
            Curve("Together, joint privacy", x, Column("joint_privacy", joint), Style.CAP),
            Curve("Together, full privacy", x, Column("full_privacy", full), Style.PRIVACY),
            Level("Above: nothing is said", solution.trivial_bound),
            Mark("You", solution.coordinate(MapAxis.OWNERS), solution.bound_joint, Style.SMOOTH),
        ),
        solution.disclosure,
        height=420,
    )


def plot_cap(solution: OwnersSolution, dataset: Dataset) -> Plot:
    """Plot the bound of joint privacy over the cap per owner, with whole owners protected."""
    histogram, best = dataset.histogram, solution.cap
    largest_size = max(float(histogram.max_size), 2.0)
    marked_caps = [] if best is None else [float(best.cap)]
    caps = np.unique(
        np.clip(np.rint(log_spaced(1.0, largest_size, CURVE_POINTS, extra=marked_caps)), 1, largest_size)
    )
    sampling, noise = regimes.split_bound(histogram, caps, solution.parameters.collaborate())
    bound = sampling + noise
    low = min(float(sampling.min()), max(float(noise.min()), float(bound.min()) / 30.0))
    alt = "The bound against the cap on records per owner."
    items: list[Item] = [
        Curve("Bound, whole owners protected", caps, bound, Style.CAP),
        Curve("its sampling part", caps, sampling, Style.SAMPLING),
        Curve("its privacy part", caps, noise, Style.PRIVACY),
    ]
    if best is not None:
        items.append(Mark("Best bound on records", best.cap, best.bound, Style.SMOOTH))
        alt = (
            f"The bound is smallest at {wording.counted(best.cap, 'record')} per owner: "
            f"{wording.number(best.bound)}."
        )
    unit, title, limits = "records per owner", "Cap τ, records per owner", (1.0, largest_size)
    kept_records = np.asarray(histogram.kept_rows(caps), dtype=np.float64)
    return Plot(
        "owners-cap",
        "Records kept of each owner",
        alt,
        Axis("cap τ", unit, limits, title=title, number_format=",.3~g"),
        Axis("bound on the excess loss", "", (low, float(bound.max())), number_format=",.3~g"),
        items,
        dataset.provenance,
        {"cap": caps, "bound": bound, "sampling_part": sampling, "kept_records": kept_records},
        height=420,
    )
