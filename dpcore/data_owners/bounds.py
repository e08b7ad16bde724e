"""Bounds on the excess loss of every setting, and where joining begins to pay.

The settings are: alone, together without privacy, with full and with joint privacy. Every field of a `Collaboration`
may be an array: they are broadcast, so that one call gives a whole map. The records of one unit of protection are
``records_per_unit``: 1 for a record, m/r for a user, m for a whole owner. With s = records_per_unit ·
√log(records_per_unit/δ) / ε, the group privacy of the paper's section 3.1.2, all levels have one formula: r users of
m/r records give s√ℓ/(mn) = √(ℓ log(m/(rδ)))/(εnr).

Source: Huang et al. 2023, theorem 3.1, section 3.2, appendices A and B. The bound of joint privacy is the one that is
printed: its loss is that of algorithm 1, whose privacy proof is incomplete.

The ε, the records and the number of owners at which joining begins to pay have closed forms. Together beats alone
where c_p s √d/√(mn) < c_a κ ρ − c_s, with ρ = √n √(D_X² + D_U²)/R, d parameters that get noise, constants c and
evenness κ. The right side is `compute_advantage`. The paper compares the bounds in words (section 3.2).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.parameters import Option
from dpcore.contributions import FloatArray

FloatOrArray = float | FloatArray
_POSITIVE_FIELDS = ("epsilon", "delta", "owners", "records", "records_per_unit")


class ProtectedPart(enum.Enum):
    """The parameters that are released with noise: the shared ones (joint privacy), or all (full privacy)."""

    JOINT = "joint"
    FULL = "full"


class Unit(Option):
    """What privacy protects: one record, all records of a user, or a whole owner."""

    RECORD = "record", "One record"
    USER = "user", "A user"
    OWNER = "owner", "A whole owner"


@dataclass(frozen=True, eq=False)
class Collaboration:
    """Owners who may train together, with the numbers that bounds on their excess loss depend on.

    Every number may be a float or an array. Arrays must broadcast against each other.

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

    epsilon: FloatOrArray
    delta: FloatOrArray
    owners: FloatOrArray
    records: FloatOrArray
    records_per_unit: FloatOrArray = 1.0
    shared: FloatOrArray = 1.0
    personal: FloatOrArray = 0.0
    personal_diameter: FloatOrArray = 0.0
    shared_diameter: FloatOrArray = 1.0
    lipschitz: FloatOrArray = 1.0
    alone_constant: FloatOrArray = 1.0
    sampling_constant: FloatOrArray = 1.0
    privacy_constant: FloatOrArray = 1.0
    evenness: FloatOrArray = 1.0

    def __post_init__(self) -> None:
        """Turn every field into a float array; raise InvalidInput if a number is out of range."""
        with Problems() as problems:
            for field in fields(self):
                field_values = np.asarray(getattr(self, field.name), dtype=np.float64)
                object.__setattr__(self, field.name, field_values)
                if field.name in _POSITIVE_FIELDS and not np.all(field_values > 0.0):
                    problems.add(f"{field.name} must be above 0")
                elif not np.all(field_values >= 0.0):
                    problems.add(f"{field.name} must be at least 0")

    def replace(self, **changed_fields: Any) -> Collaboration:
        """Return a copy in which the given fields have other values."""
        return replace(self, **changed_fields)

    @property
    def owner_diameter(self) -> FloatOrArray:
        """Return √(D_X² + D_U²), the diameter of one owner's parameters."""
        return np.hypot(self.personal_diameter, self.shared_diameter)

    @property
    def joint_diameter(self) -> FloatOrArray:
        """Return R = √(n D_X² + D_U²), the diameter of all owners' parameters."""
        return np.hypot(np.sqrt(self.owners) * self.personal_diameter, self.shared_diameter)

    @property
    def num_all_records(self) -> FloatOrArray:
        """Return mn."""
        return self.records * self.owners

    @property
    def privacy_scale(self) -> FloatOrArray:
        """Return s = records_per_unit · √log(records_per_unit/δ) / ε; √log(1/δ)/ε for one record."""
        return self.records_per_unit * np.sqrt(np.log(self.records_per_unit / self.delta)) / self.epsilon

    @property
    def noise_cost(self) -> FloatOrArray:
        """Return c_p L R/(mn).

        A bound with privacy grows by this times the Euclidean norm of the noise.
        """
        return self.privacy_constant * self.lipschitz * self.joint_diameter / self.num_all_records

    def count_noisy_parameters(self, protected_part: ProtectedPart) -> FloatOrArray:
        """Return how many parameters get noise: the ℓ shared under joint privacy, all nk + ℓ under full privacy."""
        num_all_parameters = self.owners * self.personal + self.shared
        return self.shared if protected_part is ProtectedPart.JOINT else num_all_parameters


def bound_alone(collaboration: Collaboration) -> FloatOrArray:
    """Bound the excess loss if every owner learns alone (appendix A.1): c_a κ L √((D_X² + D_U²)/m), κ the evenness."""
    lipschitz_factor = collaboration.alone_constant * collaboration.evenness * collaboration.lipschitz
    return lipschitz_factor * collaboration.owner_diameter / np.sqrt(collaboration.records)


def bound_without_privacy(collaboration: Collaboration) -> FloatOrArray:
    """Bound the excess loss if all learn together without privacy (appendix A.2): c_s L R/√(mn)."""
    diameter_factor = collaboration.sampling_constant * collaboration.lipschitz * collaboration.joint_diameter
    return diameter_factor / np.sqrt(collaboration.num_all_records)


def bound_together(collaboration: Collaboration, protected_part: ProtectedPart) -> FloatOrArray:
    """Bound the excess loss if all learn together with privacy (theorem 3.1): L R (c_s/√(mn) + c_p s √d/(mn)).

    Args:
        collaboration: The owners.
        protected_part: Joint privacy, d = ℓ, or full privacy, d = nk + ℓ.
    """
    noise_norm = collaboration.privacy_scale * np.sqrt(collaboration.count_noisy_parameters(protected_part))
    return bound_without_privacy(collaboration) + collaboration.noise_cost * noise_norm


def bound_smooth_joint(collaboration: Collaboration) -> FloatOrArray:
    """Bound joint privacy for smooth losses (theorem B.1): L R (c_s/√(mn) + c_p ℓ/(ε n √(mr))), without logs.

    With records_per_unit = m/r the root is √(mr) = m/√(records_per_unit).
    """
    noise_norm = np.sqrt(collaboration.records_per_unit) * collaboration.shared / collaboration.epsilon
    return bound_without_privacy(collaboration) + collaboration.noise_cost * noise_norm


def bound_trivially(collaboration: Collaboration) -> FloatOrArray:
    """Bound the excess loss of any parameters by L √(D_X² + D_U²); a larger bound is vacuous."""
    return collaboration.lipschitz * collaboration.owner_diameter


# --- bounds as the paper prints them; those above correct them -------------------------------------------------


def compute_printed_bound_alone(collaboration: Collaboration) -> FloatOrArray:
    """Compute the bound of an owner alone as the table of section 3.2 prints it: c_a L (D_X + D_U)/√m.

    `bound_alone` has √(D_X² + D_U²) for the sum, as in appendix A.1, and is up to √2 times smaller. With the sum, a
    single owner would have a smaller bound "together without privacy" than alone, though both are the same.
    """
    diameter_sum = collaboration.personal_diameter + collaboration.shared_diameter
    lipschitz_factor = collaboration.alone_constant * collaboration.lipschitz
    return lipschitz_factor * diameter_sum / np.sqrt(collaboration.records)


def compute_printed_bound_of_users(collaboration: Collaboration) -> FloatOrArray:
    """Compute the bound for users as appendix A.3 prints it: L R (1/√(mn) + √((nk + ℓ) log(m/δ))/(εn)).

    It is for full privacy. Its denominator should be εnr, as in theorem 3.1: with one record per user it must equal
    the bound for records.
    """
    log_term = np.log(collaboration.records / collaboration.delta)
    noise_norm = np.sqrt(collaboration.count_noisy_parameters(ProtectedPart.FULL) * log_term)
    noise_norm = noise_norm * collaboration.records / collaboration.epsilon
    return bound_without_privacy(collaboration) + collaboration.noise_cost * noise_norm


def compute_joint_saving(collaboration: Collaboration) -> FloatOrArray:
    """Compute the bound of full privacy less the bound of joint privacy: c_p L R s (√(nk + ℓ) − √ℓ)/(mn)."""
    bound_full = bound_together(collaboration, ProtectedPart.FULL)
    return bound_full - bound_together(collaboration, ProtectedPart.JOINT)


def compute_printed_saving(collaboration: Collaboration) -> FloatOrArray:
    """Compute the saving as section 3.2 prints it: L R √(nk)/(εnm).

    Where ℓ is far above nk, `compute_joint_saving` is far smaller.
    """
    noise_norm = np.sqrt(collaboration.owners * collaboration.personal) / collaboration.epsilon
    return collaboration.noise_cost * noise_norm


MAX_OWNERS = 10**12
"""Largest number that the search for a sufficient one tries."""


def compute_advantage(collaboration: Collaboration) -> FloatOrArray:
    """Compute c_a κ ρ − c_s: the bound alone less the bound together without privacy, over L R/√(mn).

    ρ is √(D_X² + D_U²) √n / R and κ the evenness.
    """
    # ρ² - 1 = (n - 1) D_U² / (n D_X² + D_U²), and c_a κ ρ - c_s is the difference of squares over the sum: where ρ is
    # next to 1 the difference itself would keep no digit.
    shared_ratio = collaboration.shared_diameter / collaboration.joint_diameter
    squared_ratio_excess = (collaboration.owners - 1.0) * np.square(shared_ratio)
    sampling_factor = collaboration.sampling_constant
    alone_factor = collaboration.alone_constant * collaboration.evenness
    squared_factor_difference = (alone_factor - sampling_factor) * (alone_factor + sampling_factor)
    # Two roundings of one number must not look like a gain.
    rounding_mask = np.abs(squared_factor_difference) <= 1e-15 * sampling_factor**2
    squared_factor_difference = np.where(rounding_mask, 0.0, squared_factor_difference)
    squared_advantage = squared_factor_difference + alone_factor**2 * squared_ratio_excess
    return squared_advantage / (alone_factor * np.sqrt(1.0 + squared_ratio_excess) + sampling_factor)


def _divide_or_infinite(numerator: FloatOrArray, denominator: FloatOrArray) -> FloatArray:
    """Return numerator/denominator; infinite where the denominator is not above 0."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    quotients_or_inf = np.full(numerator.shape, np.inf)
    return np.asarray(np.divide(numerator, denominator, out=quotients_or_inf, where=denominator > 0.0))


def find_epsilon_star(collaboration: Collaboration, protected_part: ProtectedPart) -> FloatArray:
    """Find the ε above which joining has a smaller bound than working alone; infinite if it never has.

    ε* = c_p g √(d log(g/δ)) / (√(mn) (c_a κ ρ − c_s)), g = records_per_unit.
    """
    unit_scale = collaboration.replace(epsilon=1.0).privacy_scale
    num_noisy_parameters = collaboration.count_noisy_parameters(protected_part)
    noise_at_epsilon_1 = collaboration.privacy_constant * unit_scale * np.sqrt(num_noisy_parameters)
    scaled_advantage = np.sqrt(collaboration.num_all_records) * compute_advantage(collaboration)
    return _divide_or_infinite(noise_at_epsilon_1, scaled_advantage)


def find_records_star(collaboration: Collaboration, protected_part: ProtectedPart) -> FloatArray:
    """Find the records per owner above which joining has a smaller bound than working alone.

    The number of records per unit stays fixed. The result is infinite where joining never has a smaller bound.

    m* = c_p² d g² log(g/δ) / (n ε² (c_a κ ρ − c_s)²); infinite where it never does.
    """
    squared_scale = (collaboration.privacy_constant * collaboration.privacy_scale) ** 2
    advantage = np.maximum(compute_advantage(collaboration), 0.0)
    scaled_parameters = squared_scale * collaboration.count_noisy_parameters(protected_part)
    return _divide_or_infinite(scaled_parameters, collaboration.owners * advantage**2)


def find_records_limit(collaboration: Collaboration, protected_part: ProtectedPart) -> FloatArray:
    """Find the records per owner below which joining has a smaller bound, if units grow with the owners.

    The share of an owner's records in one unit stays as it is now: g = c m with c = g/m. Then the condition is c_p c
    √(d m log(c m/δ)) < ε √n (c_a κ ρ − c_s), so more records per owner speak for working alone. With y = c m/δ and T
    = (ε √n (…)/(c_p c))²/d this is y log y = c T/δ, hence log y = W(c T/δ), Lambert's function. The result is 0 where
    joining never has a smaller bound, and infinite where it always has.
    """
    from scipy.special import lambertw

    unit_share = collaboration.records_per_unit / collaboration.records
    advantage = np.maximum(compute_advantage(collaboration), 0.0)
    with np.errstate(divide="ignore"):
        noise_limit = collaboration.epsilon * np.sqrt(collaboration.owners) * advantage
        noise_limit = noise_limit / (collaboration.privacy_constant * unit_share)
        num_noisy_parameters = collaboration.count_noisy_parameters(protected_part)
        lambert_argument = unit_share * (noise_limit**2 / num_noisy_parameters) / collaboration.delta
    finite_argument: Any = np.where(np.isfinite(lambert_argument), lambert_argument, 0.0)
    log_scaled_records = np.real(lambertw(finite_argument))
    limits = np.where(advantage > 0.0, collaboration.delta / unit_share * np.exp(log_scaled_records), 0.0)
    return np.where(np.isfinite(lambert_argument), limits, np.inf)


def find_owners_needed(collaboration: Collaboration, protected_part: ProtectedPart) -> int | None:
    """Find the smallest number of owners of this size with which joining has a smaller bound than working alone.

    None if `MAX_OWNERS` owners do not suffice. The condition √(mn/d) (c_a κ ρ − c_s) > c_p s is monotone in n, since
    ρ and n/d grow with n. So bisection is exact.
    """

    def is_joining_better(num_owners: int) -> bool:
        """Return True if so many owners have a smaller bound together, at the collaboration's ε, than alone."""
        resized_collaboration = collaboration.replace(owners=num_owners)
        return bool(find_epsilon_star(resized_collaboration, protected_part) < collaboration.epsilon)

    sufficient_owners = 1
    while not is_joining_better(sufficient_owners):
        if sufficient_owners >= MAX_OWNERS:
            return None
        sufficient_owners *= 2
    insufficient_owners = sufficient_owners // 2
    while sufficient_owners - insufficient_owners > 1:
        midpoint = (insufficient_owners + sufficient_owners) // 2
        insufficient_owners, sufficient_owners = (
            (insufficient_owners, midpoint) if is_joining_better(midpoint) else (midpoint, sufficient_owners)
        )
    return sufficient_owners
