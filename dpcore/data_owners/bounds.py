"""Bounds on the excess loss of every setting: alone, together without privacy, with full and with joint privacy.

Every field of a `Collaboration` may be an array: they are broadcast, so that one call gives a whole map. What one
unit of protection holds is ``records_per_unit``: 1 for a record, m/r for a user, m for a whole owner. With
s = records_per_unit · √log(records_per_unit/δ) / ε, the group privacy of the paper's section 3.1.2, all levels have
one formula: r users of m/r records give s√ℓ/(mn) = √(ℓ log(m/(rδ)))/(εnr).

Source: Huang et al. 2023, theorem 3.1, section 3.2, appendices A and B. The bound of joint privacy is the one that is
printed: its loss is that of algorithm 1, whose privacy proof is incomplete.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray

Numbers = float | FloatArray
_ABOVE_ZERO = ("epsilon", "delta", "owners", "records", "records_per_unit")


class Private(enum.Enum):
    """Which parameters are protected from the other owners."""

    JOINT = "joint"
    FULL = "full"


class Unit(enum.Enum):
    """What is protected as one."""

    RECORD = "record"
    USER = "user"
    OWNER = "owner"


@dataclass(frozen=True, eq=False)
class Collaboration:
    """Owners who may train together; every number may be an array.

    Attributes:
        epsilon: Privacy budget.
        delta: δ of (ε, δ)-differential privacy.
        owners: n.
        records: m, records per owner.
        records_per_unit: Records of one unit of protection: 1, those of a user, or those of an owner.
        shared: ℓ, number of shared parameters.
        personal: k, number of personal parameters per owner.
        personal_diameter: D_X, of the domain of the personal parameters.
        shared_diameter: D_U, of the domain of the shared parameters.
        lipschitz: L, of the loss.
        alone_constant: What O(·) hides for an owner alone.
        sampling_constant: What O(·) hides in the term 1/√(mn).
        privacy_constant: What O(·) hides in the term with ε.
        evenness: What uneven owners make of the bound of an owner alone, on average; 1 where all have as many records.

    Raises:
        InvalidInput: ε, δ, owners, records or records per unit not above 0, or another number below 0.
    """

    epsilon: Numbers
    delta: Numbers
    owners: Numbers
    records: Numbers
    records_per_unit: Numbers = 1.0
    shared: Numbers = 1.0
    personal: Numbers = 0.0
    personal_diameter: Numbers = 0.0
    shared_diameter: Numbers = 1.0
    lipschitz: Numbers = 1.0
    alone_constant: Numbers = 1.0
    sampling_constant: Numbers = 1.0
    privacy_constant: Numbers = 1.0
    evenness: Numbers = 1.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            for field in fields(self):
                values = np.asarray(getattr(self, field.name))
                if field.name in _ABOVE_ZERO and not np.all(values > 0.0):
                    problems.add(f"{field.name} must be above 0")
                elif not np.all(values >= 0.0):
                    problems.add(f"{field.name} must be at least 0")

    def having(self, **fields: Any) -> Collaboration:
        """The same with other numbers."""
        return replace(self, **fields)

    @property
    def owner_diameter(self) -> FloatArray:
        """√(D_X² + D_U²), of what one owner learns."""
        return np.hypot(self.personal_diameter, self.shared_diameter)

    @property
    def joint_diameter(self) -> FloatArray:
        """R = √(n D_X² + D_U²), of what all owners learn."""
        return np.hypot(np.sqrt(self.owners) * self.personal_diameter, self.shared_diameter)

    @property
    def all_records(self) -> FloatArray:
        """mn."""
        return np.multiply(np.asarray(self.records, dtype=np.float64), self.owners)

    @property
    def privacy_scale(self) -> FloatArray:
        """s = records_per_unit · √log(records_per_unit/δ) / ε; √log(1/δ)/ε for one record."""
        unit = np.asarray(self.records_per_unit, dtype=np.float64)
        return np.asarray(unit * np.sqrt(np.log(unit / self.delta)) / self.epsilon)

    def noisy(self, private: Private) -> FloatArray:
        """How many parameters get noise: ℓ, or nk + ℓ."""
        shared = np.asarray(self.shared, dtype=np.float64)
        if private is Private.JOINT:
            return shared
        return np.multiply(np.asarray(self.owners, dtype=np.float64), self.personal) + shared


def alone(of: Collaboration) -> FloatArray:
    """Bound where every owner learns alone (appendix A.1): L √((D_X² + D_U²)/m)."""
    return np.asarray(
        of.alone_constant * of.evenness * of.lipschitz * of.owner_diameter / np.sqrt(of.records)
    )


def without_privacy(of: Collaboration) -> FloatArray:
    """Bound where all learn together without privacy (appendix A.2): L R/√(mn)."""
    return np.asarray(of.sampling_constant * of.lipschitz * of.joint_diameter / np.sqrt(of.all_records))


def together(of: Collaboration, private: Private) -> FloatArray:
    """Bound where all learn together with privacy (theorem 3.1, appendix A.3): L R (1/√(mn) + s √d/(mn)).

    Args:
        of: The owners.
        private: Joint privacy, d = ℓ, or full privacy, d = nk + ℓ.
    """
    noise = of.privacy_constant * of.privacy_scale * np.sqrt(of.noisy(private)) / of.all_records
    return np.asarray(without_privacy(of) + of.lipschitz * of.joint_diameter * noise)


def joint_smooth(of: Collaboration) -> FloatArray:
    """Bound of joint privacy for smooth losses (theorem B.1): L R (1/√(mn) + ℓ/(ε n √(mr))), its logs left out.

    With records_per_unit = m/r the root is √(mr) = m/√(records_per_unit).
    """
    noise = np.sqrt(of.records_per_unit) * of.shared / (of.epsilon * of.all_records)
    return np.asarray(without_privacy(of) + of.privacy_constant * of.lipschitz * of.joint_diameter * noise)


def trivial(of: Collaboration) -> FloatArray:
    """L √(D_X² + D_U²): no choice of parameters has a larger excess loss, so that a bound above says nothing."""
    return np.asarray(of.lipschitz * of.owner_diameter)


# --- as printed, where that is corrected above -----------------------------------------------------------------


def alone_printed(of: Collaboration) -> FloatArray:
    """Section 3.2's table: L (D_X + D_U)/√m. The root of appendix A.1 is smaller, by up to √2.

    With the sum, working together without privacy would beat working alone for a single owner, which is the same.
    """
    diameters = np.add(of.personal_diameter, of.shared_diameter)
    return np.asarray(of.alone_constant * of.lipschitz * diameters / np.sqrt(of.records))


def full_user_printed(of: Collaboration) -> FloatArray:
    """Appendix A.3, user level: L R (1/√(mn) + √((nk + ℓ) log(m/δ))/(εn)).

    The denominator must be εnr, as in theorem 3.1: with one record per user it must come down to the record level.
    """
    log = np.log(np.asarray(of.records, dtype=np.float64) / of.delta)
    noise = np.sqrt(of.noisy(Private.FULL) * log) / (np.asarray(of.epsilon) * of.owners)
    return np.asarray(without_privacy(of) + of.privacy_constant * of.lipschitz * of.joint_diameter * noise)


def saving(of: Collaboration) -> FloatArray:
    """What joint privacy saves of the bound of full privacy: L R s (√(nk + ℓ) − √ℓ)/(mn)."""
    return together(of, Private.FULL) - together(of, Private.JOINT)


def saving_printed(of: Collaboration) -> FloatArray:
    """Section 3.2: "always saves" L R √(nk)/(εnm). Where ℓ is well above nk the saving is far smaller."""
    scale = np.sqrt(np.multiply(np.asarray(of.owners, dtype=np.float64), of.personal)) / of.epsilon
    return np.asarray(of.privacy_constant * of.lipschitz * of.joint_diameter * scale / of.all_records)
