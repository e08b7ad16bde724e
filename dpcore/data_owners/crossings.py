"""The ε, the records and the number of owners at which joining begins to pay, in closed form.

Together beats alone where c_p s √d/√(mn) < c_a κ ρ − c_s, with ρ = √n √(D_X² + D_U²)/R, d parameters that get
noise, constants c and evenness κ. The right side is `compute_advantage`. The paper compares the bounds in words
(section 3.2).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.data_owners.bounds import Collaboration, ProtectedPart, bound_alone, bound_together

MAX_OWNERS = 10**12
"""The search for a sufficient number of owners ends here."""


def compute_advantage(collaboration: Collaboration) -> FloatArray:
    """Compute the gain by joining without privacy, in units of that bound: c_a κ ρ − c_s; 0 for one owner."""
    # ρ² - 1 = (n - 1) D_U² / (n D_X² + D_U²), and c_a κ ρ - c_s is the difference of squares over the sum: where ρ is
    # next to 1 the difference itself would keep no digit.
    owners = np.asarray(collaboration.owners, dtype=np.float64)
    shared, joint = np.asarray(collaboration.shared_diameter, dtype=np.float64), collaboration.joint_diameter
    squared_gain = (owners - 1.0) * np.square(shared / joint)
    alone_factor = collaboration.alone_constant * np.asarray(collaboration.evenness, dtype=np.float64)
    difference = (alone_factor - collaboration.sampling_constant) * (
        alone_factor + collaboration.sampling_constant
    )
    # Two roundings of one number must not look like a gain.
    difference = np.where(np.abs(difference) <= 1e-15 * collaboration.sampling_constant**2, 0.0, difference)
    return np.asarray(
        (difference + alone_factor**2 * squared_gain)
        / (alone_factor * np.sqrt(1.0 + squared_gain) + collaboration.sampling_constant)
    )


def _lambert_w(values: Any) -> FloatArray:
    """Compute Lambert's W of numbers of at least 0: the y with y exp(y) = value."""
    from scipy.special import lambertw

    return np.asarray(np.real(lambertw(values)))


def _divide_or_infinite(numerator: Any, denominator: FloatArray) -> FloatArray:
    """Return numerator/denominator; infinite where the denominator is not above 0."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), denominator)
    quotients = np.full(numerator.shape, np.inf)
    return np.asarray(np.divide(numerator, denominator, out=quotients, where=denominator > 0.0))


def find_epsilon_star(collaboration: Collaboration, protected_part: ProtectedPart) -> FloatArray:
    """Find the ε above which joining beats working alone, by the bounds; infinite where it never does.

    ε* = c_p g √(d log(g/δ)) / (√(mn) (c_a κ ρ − c_s)), g = records_per_unit.
    """
    unit_scale = collaboration.replace(epsilon=1.0).privacy_scale
    needed = collaboration.privacy_constant * unit_scale * np.sqrt(collaboration.count_noisy(protected_part))
    return _divide_or_infinite(needed, np.sqrt(collaboration.all_records) * compute_advantage(collaboration))


def find_records_star(collaboration: Collaboration, protected_part: ProtectedPart) -> FloatArray:
    """Find the records per owner m above which joining beats working alone while a unit keeps its records.

    m* = c_p² d g² log(g/δ) / (n ε² (c_a κ ρ − c_s)²); infinite where it never does.
    """
    needed = (collaboration.privacy_constant * collaboration.privacy_scale) ** 2 * collaboration.count_noisy(
        protected_part
    )
    return _divide_or_infinite(
        needed, collaboration.owners * np.maximum(compute_advantage(collaboration), 0.0) ** 2
    )


def find_records_limit(collaboration: Collaboration, protected_part: ProtectedPart) -> FloatArray:
    """Find the m below which joining beats working alone where units grow with the owners: g = c m, c = g/m now.

    Then c_p c √(d m log(c m/δ)) < ε √n (c_a κ ρ − c_s), so more records speak for working alone. With y = c m/δ
    and T = (ε √n (…)/(c_p c))²/d this is y log y = c T/δ, hence log y = W(c T/δ), Lambert's function.
    """
    share = np.asarray(collaboration.records_per_unit, dtype=np.float64) / collaboration.records
    gain = np.maximum(compute_advantage(collaboration), 0.0)
    with np.errstate(divide="ignore"):
        limit = (
            collaboration.epsilon
            * np.sqrt(collaboration.owners)
            * gain
            / (collaboration.privacy_constant * share)
        ) ** 2 / collaboration.count_noisy(protected_part)
    argument = share * limit / collaboration.delta
    finite = np.where(np.isfinite(argument), argument, 0.0)
    records = collaboration.delta / share * np.exp(_lambert_w(finite))
    return np.where(np.isfinite(argument), np.where(gain > 0.0, records, 0.0), np.inf)


def find_owners_needed(collaboration: Collaboration, protected_part: ProtectedPart) -> int | None:
    """Find the smallest number of such owners for whom joining beats working alone; None if no number does.

    The condition √(mn/d) (c_a κ ρ − c_s) > c_p s is monotone in n, since ρ and n/d grow: bisection is exact.
    """

    def pays(owners: int) -> bool:
        candidate = collaboration.replace(owners=float(owners))
        gain = float(compute_advantage(candidate))
        num_noisy = float(candidate.count_noisy(protected_part))
        needed = float(candidate.privacy_constant * candidate.privacy_scale) * math.sqrt(num_noisy)
        return gain > 0.0 and math.sqrt(float(candidate.all_records)) * gain > needed

    high = 1
    while not pays(high):
        if high >= MAX_OWNERS:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        midpoint = (low + high) // 2
        low, high = (low, midpoint) if pays(midpoint) else (midpoint, high)
    return high


def find_gaining_size(collaboration: Collaboration) -> FloatArray:
    """Find the records below which an owner's own bound is larger than the joint one, which is for the average."""
    single_record = collaboration.replace(records=1.0, evenness=1.0)
    return np.square(bound_alone(single_record) / bound_together(collaboration, ProtectedPart.JOINT))
