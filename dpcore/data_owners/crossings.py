"""Where joining begins to pay, in closed form: the ε, the records and the number of owners at which bounds cross.

Together beats alone where c_p s √d/√(mn) < c_a κ ρ − c_s, with ρ = √n √(D_X² + D_U²)/R, d parameters that get noise,
constants c and evenness κ. The right side is `advantage`. The paper compares the bounds in words (section 3.2).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.data_owners.bounds import Collaboration, Private, alone, together

MAX_OWNERS = 10**12
"""The search for a sufficient number of owners ends here."""


def advantage(of: Collaboration) -> FloatArray:
    """What joining gains without privacy, in units of the bound without privacy: c_a κ ρ − c_s; 0 for one owner."""
    # ρ² - 1 = (n - 1) D_U² / (n D_X² + D_U²), and c_a κ ρ - c_s is the difference of squares over the sum: where ρ is
    # next to 1 the difference itself would keep no digit.
    owners = np.asarray(of.owners, dtype=np.float64)
    shared, joint = np.asarray(of.shared_diameter, dtype=np.float64), of.joint_diameter
    more = (owners - 1.0) * np.square(shared / joint)
    ours = of.alone_constant * np.asarray(of.evenness, dtype=np.float64)
    apart = (ours - of.sampling_constant) * (ours + of.sampling_constant)
    # Two roundings of one number must not look like a gain.
    apart = np.where(np.abs(apart) <= 1e-15 * of.sampling_constant**2, 0.0, apart)
    return np.asarray((apart + ours**2 * more) / (ours * np.sqrt(1.0 + more) + of.sampling_constant))


def _lambert(values: Any) -> FloatArray:
    """W of numbers of at least 0: the y with y exp(y) = value."""
    from scipy.special import lambertw

    return np.asarray(np.real(lambertw(values)))


def _divided(numerator: Any, denominator: FloatArray) -> FloatArray:
    """numerator/denominator; infinite where nothing is gained."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), denominator)
    out = np.full(numerator.shape, np.inf)
    return np.asarray(np.divide(numerator, denominator, out=out, where=denominator > 0.0))


def epsilon_star(of: Collaboration, private: Private) -> FloatArray:
    """ε above which joining beats working alone, by the bounds; infinite where it never does.

    ε* = c_p g √(d log(g/δ)) / (√(mn) (c_a κ ρ − c_s)), g = records_per_unit.
    """
    at_one = of.having(epsilon=1.0).privacy_scale
    needed = of.privacy_constant * at_one * np.sqrt(of.noisy(private))
    return _divided(needed, np.sqrt(of.all_records) * advantage(of))


def records_star(of: Collaboration, private: Private) -> FloatArray:
    """m, records per owner, above which joining beats working alone while a unit keeps its records.

    m* = c_p² d g² log(g/δ) / (n ε² (c_a κ ρ − c_s)²); infinite where it never does.
    """
    needed = (of.privacy_constant * of.privacy_scale) ** 2 * of.noisy(private)
    return _divided(needed, of.owners * np.maximum(advantage(of), 0.0) ** 2)


def records_limit(of: Collaboration, private: Private) -> FloatArray:
    """m below which joining beats working alone where units grow with the owners: g = c m, c = g/m now.

    Then c_p c √(d m log(c m/δ)) < ε √n (c_a κ ρ − c_s), so more records speak for working alone. With y = c m/δ and
    T = (ε √n (…)/(c_p c))²/d this is y log y = c T/δ, hence log y = W(c T/δ), Lambert's function.
    """
    share = np.asarray(of.records_per_unit, dtype=np.float64) / of.records
    gain = np.maximum(advantage(of), 0.0)
    with np.errstate(divide="ignore"):
        limit = (of.epsilon * np.sqrt(of.owners) * gain / (of.privacy_constant * share)) ** 2 / of.noisy(
            private
        )
    argument = share * limit / of.delta
    finite = np.where(np.isfinite(argument), argument, 0.0)
    found = of.delta / share * np.exp(_lambert(finite))
    return np.where(np.isfinite(argument), np.where(gain > 0.0, found, 0.0), np.inf)


def owners_needed(of: Collaboration, private: Private) -> int | None:
    """The smallest number of owners like these for whom joining beats working alone; None where no number does.

    The condition √(mn/d) (c_a κ ρ − c_s) > c_p s is monotone in n, since ρ and n/d grow: bisection is exact.
    """

    def pays(owners: int) -> bool:
        at = of.having(owners=float(owners))
        gain = float(advantage(at))
        noisy = float(at.noisy(private))
        needed = float(at.privacy_constant * at.privacy_scale) * math.sqrt(noisy)
        return gain > 0.0 and math.sqrt(float(at.all_records)) * gain > needed

    high = 1
    while not pays(high):
        if high >= MAX_OWNERS:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high


def gaining_below(of: Collaboration) -> FloatArray:
    """Records below which one owner's own bound is larger than the joint one, which holds for the average owner."""
    own = of.having(records=1.0, evenness=1.0)
    return np.square(alone(own) / together(of, Private.JOINT))
