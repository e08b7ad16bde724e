"""Bounds on the excess loss of every setting: alone, together without privacy, with full and with joint privacy.

Every field of a `Collaboration` may be an array: they are broadcast, so that one call gives a whole map. The
records of one unit of protection are ``records_per_unit``: 1 for a record, m/r for a user, m for a whole owner.
With s = records_per_unit · √log(records_per_unit/δ) / ε, the group privacy of the paper's section 3.1.2, all
levels have one formula: r users of m/r records give s√ℓ/(mn) = √(ℓ log(m/(rδ)))/(εnr).

Source: Huang et al. 2023, theorem 3.1, section 3.2, appendices A and B. The bound of joint privacy is the
printed one: its loss is that of algorithm 1, whose privacy proof is incomplete.

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


class ProtectedPart(enum.Enum):
    """The parameters that are protected from the other owners."""

    JOINT = "joint"
    FULL = "full"


class Unit(enum.Enum):
    """The unit of protection."""

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

    def replace(self, **fields: Any) -> Collaboration:
        """Return the same owners with other numbers."""
        return replace(self, **fields)

    @property
    def owner_diameter(self) -> FloatArray:
        """Return √(D_X² + D_U²), the diameter of one owner's parameters."""
        return np.hypot(self.personal_diameter, self.shared_diameter)

    @property
    def joint_diameter(self) -> FloatArray:
        """Return R = √(n D_X² + D_U²), the diameter of all owners' parameters."""
        return np.hypot(np.sqrt(self.owners) * self.personal_diameter, self.shared_diameter)

    @property
    def all_records(self) -> FloatArray:
        """Return mn."""
        return np.multiply(np.asarray(self.records, dtype=np.float64), self.owners)

    @property
    def privacy_scale(self) -> FloatArray:
        """Return s = records_per_unit · √log(records_per_unit/δ) / ε; √log(1/δ)/ε for one record."""
        unit_size = np.asarray(self.records_per_unit, dtype=np.float64)
        return np.asarray(unit_size * np.sqrt(np.log(unit_size / self.delta)) / self.epsilon)

    def count_noisy(self, protected_part: ProtectedPart) -> FloatArray:
        """Count the parameters that get noise: ℓ, or nk + ℓ."""
        shared = np.asarray(self.shared, dtype=np.float64)
        if protected_part is ProtectedPart.JOINT:
            return shared
        return np.multiply(np.asarray(self.owners, dtype=np.float64), self.personal) + shared


def bound_alone(collaboration: Collaboration) -> FloatArray:
    """Bound the loss if every owner learns alone (appendix A.1): L √((D_X² + D_U²)/m)."""
    return np.asarray(
        collaboration.alone_constant
        * collaboration.evenness
        * collaboration.lipschitz
        * collaboration.owner_diameter
        / np.sqrt(collaboration.records)
    )


def bound_without_privacy(collaboration: Collaboration) -> FloatArray:
    """Bound the loss if all learn together without privacy (appendix A.2): L R/√(mn)."""
    return np.asarray(
        collaboration.sampling_constant
        * collaboration.lipschitz
        * collaboration.joint_diameter
        / np.sqrt(collaboration.all_records)
    )


def bound_together(collaboration: Collaboration, protected_part: ProtectedPart) -> FloatArray:
    """Bound the loss if all learn together with privacy (theorem 3.1, appendix A.3): L R (1/√(mn) + s √d/(mn)).

    Args:
        collaboration: The owners.
        protected_part: Joint privacy, d = ℓ, or full privacy, d = nk + ℓ.
    """
    noise = (
        collaboration.privacy_constant
        * collaboration.privacy_scale
        * np.sqrt(collaboration.count_noisy(protected_part))
        / collaboration.all_records
    )
    return np.asarray(
        bound_without_privacy(collaboration) + collaboration.lipschitz * collaboration.joint_diameter * noise
    )


def bound_smooth_joint(collaboration: Collaboration) -> FloatArray:
    """Bound joint privacy for smooth losses (theorem B.1): L R (1/√(mn) + ℓ/(ε n √(mr))), its logs left out.

    With records_per_unit = m/r the root is √(mr) = m/√(records_per_unit).
    """
    noise = (
        np.sqrt(collaboration.records_per_unit)
        * collaboration.shared
        / (collaboration.epsilon * collaboration.all_records)
    )
    return np.asarray(
        bound_without_privacy(collaboration)
        + collaboration.privacy_constant * collaboration.lipschitz * collaboration.joint_diameter * noise
    )


def bound_trivially(collaboration: Collaboration) -> FloatArray:
    """Bound the excess loss of any parameters by L √(D_X² + D_U²); a larger bound is vacuous."""
    return np.asarray(collaboration.lipschitz * collaboration.owner_diameter)


# --- bounds as the paper prints them; those above correct them -------------------------------------------------


def printed_bound_alone(collaboration: Collaboration) -> FloatArray:
    """Bound as printed in the table of section 3.2: L (D_X + D_U)/√m. The root of A.1 is smaller, by up to √2.

    With the sum, working together without privacy would beat working alone for a single owner, which is the
    same.
    """
    diameters = np.add(collaboration.personal_diameter, collaboration.shared_diameter)
    return np.asarray(
        collaboration.alone_constant * collaboration.lipschitz * diameters / np.sqrt(collaboration.records)
    )


def printed_bound_full_user(collaboration: Collaboration) -> FloatArray:
    """Bound as printed in appendix A.3, user level: L R (1/√(mn) + √((nk + ℓ) log(m/δ))/(εn)).

    The denominator must be εnr, as in theorem 3.1: with one record per user it must come down to the record
    level.
    """
    log = np.log(np.asarray(collaboration.records, dtype=np.float64) / collaboration.delta)
    noise = np.sqrt(collaboration.count_noisy(ProtectedPart.FULL) * log) / (
        np.asarray(collaboration.epsilon) * collaboration.owners
    )
    return np.asarray(
        bound_without_privacy(collaboration)
        + collaboration.privacy_constant * collaboration.lipschitz * collaboration.joint_diameter * noise
    )


def compute_saving(collaboration: Collaboration) -> FloatArray:
    """Compute by how much joint privacy is below full privacy: L R s (√(nk + ℓ) − √ℓ)/(mn)."""
    return bound_together(collaboration, ProtectedPart.FULL) - bound_together(
        collaboration, ProtectedPart.JOINT
    )


def printed_saving(collaboration: Collaboration) -> FloatArray:
    """Compute the saving as printed in section 3.2: L R √(nk)/(εnm). Where ℓ ≫ nk the saving is far smaller."""
    scale = (
        np.sqrt(np.multiply(np.asarray(collaboration.owners, dtype=np.float64), collaboration.personal))
        / collaboration.epsilon
    )
    return np.asarray(
        collaboration.privacy_constant
        * collaboration.lipschitz
        * collaboration.joint_diameter
        * scale
        / collaboration.all_records
    )
