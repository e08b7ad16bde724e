"""The map of regimes over two quantities: who should work alone, who gains by joining, and where bounds are vacuous."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray
from dpcore.data_owners.bounds import (
    Collaboration,
    ProtectedPart,
    bound_alone,
    bound_together,
    bound_trivially,
)

LARGEST_EPSILON = 10.0
"""Up to here theorem 3.1 holds."""


class MapAxis(enum.Enum):
    """The quantities over which a map may run; each is a field of `Collaboration`."""

    OWNERS = "owners"
    RECORDS = "records"
    EPSILON = "epsilon"
    SHARED = "shared"
    PERSONAL = "personal"
    PERSONAL_DIAMETER = "personal_diameter"
    SHARED_DIAMETER = "shared_diameter"
    RECORDS_PER_UNIT = "records_per_unit"


AXIS_TITLES = {
    MapAxis.OWNERS: "Owners, n",
    MapAxis.RECORDS: "Records per owner, m",
    MapAxis.EPSILON: "Privacy budget, ε",
    MapAxis.SHARED: "Shared parameters, ℓ",
    MapAxis.PERSONAL: "Personal parameters, k",
    MapAxis.PERSONAL_DIAMETER: "Personal diameter, D_X",
    MapAxis.SHARED_DIAMETER: "Shared diameter, D_U",
    MapAxis.RECORDS_PER_UNIT: "Records per unit, m/r",
}
"""What runs along an axis of the map."""
AXIS_RANGES: dict[MapAxis, tuple[float, float]] = {
    MapAxis.OWNERS: (1.0, 1e4),
    MapAxis.RECORDS: (1.0, 1e6),
    MapAxis.EPSILON: (0.01, 100.0),
    MapAxis.SHARED: (1.0, 1e8),
    MapAxis.PERSONAL: (1.0, 1e6),
    MapAxis.PERSONAL_DIAMETER: (1e-3, 1e3),
    MapAxis.SHARED_DIAMETER: (1e-3, 1e3),
    MapAxis.RECORDS_PER_UNIT: (1.0, 1e4),
}
"""From where to where a map runs. They do not move with the inputs, so that maps can be compared."""


class Regime(enum.IntEnum):
    """The best setting by the bounds; joint privacy is never worse than full privacy."""

    ALONE = 0
    JOINT_ONLY = 1
    FULL_TOO = 2


@dataclass(frozen=True, eq=False)
class RegimeMap:
    """Regimes over two quantities.

    Attributes:
        x_axis: What runs along x.
        y_axis: What runs along y.
        x: Ascending, shape (columns,).
        y: Ascending, shape (rows,).
        joint_gain: log(bound alone / bound of joint privacy), shape (rows, columns); above 0 joining pays. NaN where a
            unit would have more records than its owner.
        full_gain: The same of full privacy.
        vacuous: Where the bound of joint privacy is no smaller than what any choice of parameters has.
        not_covered: Where the theorem says nothing: ε > 10 or δ ≥ 1/n.
    """

    x_axis: MapAxis
    y_axis: MapAxis
    x: FloatArray
    y: FloatArray
    joint_gain: FloatArray
    full_gain: FloatArray
    vacuous: npt.NDArray[np.bool_]
    not_covered: npt.NDArray[np.bool_]

    @property
    def regimes(self) -> FloatArray:
        """Return the `Regime` of every point, NaN where there is none, shape (rows, columns)."""
        regimes = np.where(self.joint_gain > 0.0, float(Regime.JOINT_ONLY), float(Regime.ALONE))
        regimes = np.where(self.full_gain > 0.0, float(Regime.FULL_TOO), regimes)
        return np.where(np.isnan(self.joint_gain), np.nan, regimes)


def find_regime(collaboration: Collaboration) -> Regime:
    """Find the best setting by the bounds, for one point."""
    bound_of_alone = float(bound_alone(collaboration))
    if float(bound_together(collaboration, ProtectedPart.FULL)) < bound_of_alone:
        return Regime.FULL_TOO
    return (
        Regime.JOINT_ONLY
        if float(bound_together(collaboration, ProtectedPart.JOINT)) < bound_of_alone
        else Regime.ALONE
    )


def compute_regime_map(
    collaboration: Collaboration,
    x_axis: MapAxis,
    y_axis: MapAxis,
    whole_owner: bool = False,
    columns: int = 100,
    rows: int = 70,
) -> RegimeMap:
    """Compute the map around a point.

    Args:
        collaboration: The point; its other numbers hold everywhere.
        x_axis: What runs along x.
        y_axis: What runs along y, another.
        whole_owner: Whether a unit is an owner, so that its records grow with the owner's.
        columns: Points along x.
        rows: Points along y.
    """
    x, y = np.geomspace(*AXIS_RANGES[x_axis], columns), np.geomspace(*AXIS_RANGES[y_axis], rows)
    grid = collaboration.replace(**{x_axis.value: x[None, :], y_axis.value: y[:, None]})
    if whole_owner and MapAxis.RECORDS_PER_UNIT not in (x_axis, y_axis):
        grid = grid.replace(
            records_per_unit=np.divide(collaboration.records_per_unit, collaboration.records) * grid.records
        )
    shape = (rows, columns)
    alone_bounds, joint_bounds, full_bounds = (
        bound_alone(grid),
        bound_together(grid, ProtectedPart.JOINT),
        bound_together(grid, ProtectedPart.FULL),
    )
    is_possible = np.asarray(grid.records_per_unit) <= np.asarray(grid.records) * (1.0 + 1e-9)
    if whole_owner:
        is_possible = np.asarray(True)

    def gain(bound: FloatArray) -> FloatArray:
        # Where both are the same problem, their difference is rounding.
        gains = np.log(alone_bounds / bound)
        return np.broadcast_to(
            np.where(is_possible, np.where(np.abs(gains) < 1e-12, 0.0, gains), np.nan), shape
        )

    not_covered = (np.asarray(grid.epsilon) > LARGEST_EPSILON) | (np.asarray(grid.delta) * grid.owners >= 1.0)
    return RegimeMap(
        x_axis,
        y_axis,
        x,
        y,
        gain(joint_bounds),
        gain(full_bounds),
        np.broadcast_to((joint_bounds >= bound_trivially(grid)) & is_possible, shape),
        np.broadcast_to(not_covered, shape),
    )
