"""The map of regimes over two quantities: who should work alone, who gains by joining, and where nothing is said."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray
from dpcore.data_owners.bounds import Collaboration, Private, alone, together, trivial

LARGEST_EPSILON = 10.0
"""Up to here theorem 3.1 holds."""


class Axis(enum.Enum):
    """What a map may run over; each is a field of `Collaboration`."""

    OWNERS = "owners"
    RECORDS = "records"
    EPSILON = "epsilon"
    SHARED = "shared"
    PERSONAL = "personal"
    PERSONAL_DIAMETER = "personal_diameter"
    SHARED_DIAMETER = "shared_diameter"
    RECORDS_PER_UNIT = "records_per_unit"


AXES = {
    Axis.OWNERS: "Owners, n",
    Axis.RECORDS: "Records per owner, m",
    Axis.EPSILON: "Privacy budget, ε",
    Axis.SHARED: "Shared parameters, ℓ",
    Axis.PERSONAL: "Personal parameters, k",
    Axis.PERSONAL_DIAMETER: "Personal diameter, D_X",
    Axis.SHARED_DIAMETER: "Shared diameter, D_U",
    Axis.RECORDS_PER_UNIT: "Records per unit, m/r",
}
"""What runs along an axis of the map."""
RANGES: dict[Axis, tuple[float, float]] = {
    Axis.OWNERS: (1.0, 1e4),
    Axis.RECORDS: (1.0, 1e6),
    Axis.EPSILON: (0.01, 100.0),
    Axis.SHARED: (1.0, 1e8),
    Axis.PERSONAL: (1.0, 1e6),
    Axis.PERSONAL_DIAMETER: (1e-3, 1e3),
    Axis.SHARED_DIAMETER: (1e-3, 1e3),
    Axis.RECORDS_PER_UNIT: (1.0, 1e4),
}
"""From where to where a map runs. They do not move with the inputs, so that maps can be compared."""


class Regime(enum.IntEnum):
    """What is best by the bounds; joint privacy is never worse than full privacy."""

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
        outside: Where the theorem says nothing: ε > 10 or δ ≥ 1/n.
    """

    x_axis: Axis
    y_axis: Axis
    x: FloatArray
    y: FloatArray
    joint_gain: FloatArray
    full_gain: FloatArray
    vacuous: npt.NDArray[np.bool_]
    outside: npt.NDArray[np.bool_]

    @property
    def regimes(self) -> FloatArray:
        """`Regime` of every point, NaN where there is none, shape (rows, columns)."""
        found = np.where(self.joint_gain > 0.0, float(Regime.JOINT_ONLY), float(Regime.ALONE))
        found = np.where(self.full_gain > 0.0, float(Regime.FULL_TOO), found)
        return np.where(np.isnan(self.joint_gain), np.nan, found)


def regime_of(of: Collaboration) -> Regime:
    """What is best by the bounds, for one point."""
    own = float(alone(of))
    if float(together(of, Private.FULL)) < own:
        return Regime.FULL_TOO
    return Regime.JOINT_ONLY if float(together(of, Private.JOINT)) < own else Regime.ALONE


def regime_map(
    of: Collaboration,
    x_axis: Axis,
    y_axis: Axis,
    whole_owner: bool = False,
    columns: int = 100,
    rows: int = 70,
) -> RegimeMap:
    """The map around a point.

    Args:
        of: The point; its other numbers hold everywhere.
        x_axis: What runs along x.
        y_axis: What runs along y, another.
        whole_owner: Whether a unit is an owner, so that its records grow with the owner's.
        columns: Points along x.
        rows: Points along y.
    """
    x, y = np.geomspace(*RANGES[x_axis], columns), np.geomspace(*RANGES[y_axis], rows)
    at = of.having(**{x_axis.value: x[None, :], y_axis.value: y[:, None]})
    if whole_owner and Axis.RECORDS_PER_UNIT not in (x_axis, y_axis):
        at = at.having(records_per_unit=np.divide(of.records_per_unit, of.records) * at.records)
    shape = (rows, columns)
    own, joint, full = alone(at), together(at, Private.JOINT), together(at, Private.FULL)
    possible = np.asarray(at.records_per_unit) <= np.asarray(at.records) * (1.0 + 1e-9)
    if whole_owner:
        possible = np.asarray(True)

    def gain(bound: FloatArray) -> FloatArray:
        # Where both are the same problem, their difference is rounding.
        found = np.log(own / bound)
        return np.broadcast_to(np.where(possible, np.where(np.abs(found) < 1e-12, 0.0, found), np.nan), shape)

    outside = (np.asarray(at.epsilon) > LARGEST_EPSILON) | (np.asarray(at.delta) * at.owners >= 1.0)
    return RegimeMap(
        x_axis,
        y_axis,
        x,
        y,
        gain(joint),
        gain(full),
        np.broadcast_to((joint >= trivial(at)) & possible, shape),
        np.broadcast_to(outside, shape),
    )
