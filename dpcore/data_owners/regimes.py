"""The map of regimes over two quantities, and owners with unequal numbers of records.

If owners have unequal numbers of records, a cap says how many records of each owner, or of each user, are kept.
With at most τ records of every owner, N_τ = Σ_j min(m_j, τ) are kept. The analysis of theorem 3.1 draws one record of
all and needs nothing but their number: mn becomes N_τ. It then bounds the loss averaged with the weights min(m_j,
τ)/N_τ, so the cap also says whose loss counts: at τ = 1 all owners count alike. Where a whole owner is one unit of
protection, noise grows with τ, and the bound has a best cap:

    B(τ) = L R (c_s/√N_τ + c_p τ √(ℓ log(τ/δ)) / (ε N_τ)).

The first part falls with τ. The second rises: N_τ is concave in τ and 0 at τ = 0, so τ/N_τ never falls. Between two
caps the bound is therefore at least the first part at the upper and the second at the lower one.

Source: ours, from theorem 3.1 of Huang et al. 2023 and the group privacy of its section 3.1.2.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.branch_and_bound import ObjectiveParts, find_interval_within, minimise
from dpcore.common.certificate import Certificate
from dpcore.common.parameters import Option
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.data_owners import bounds
from dpcore.data_owners.bounds import Collaboration, FloatOrArray, ProtectedPart, bound_alone, bound_together

LARGEST_EPSILON = 10.0
"""Theorem 3.1 holds up to here."""


class MapAxis(Option):
    """The quantities over which a map may run; each is a field of `Collaboration`."""

    OWNERS = "owners", "Owners, n"
    RECORDS = "records", "Records per owner, m"
    EPSILON = "epsilon", "Privacy budget, ε"
    SHARED = "shared", "Shared parameters, ℓ"
    PERSONAL = "personal", "Personal parameters, k"
    PERSONAL_DIAMETER = "personal_diameter", "Personal diameter, D_X"
    SHARED_DIAMETER = "shared_diameter", "Shared diameter, D_U"
    RECORDS_PER_UNIT = "records_per_unit", "Records per unit, m/r"


RANGE_BY_AXIS: dict[MapAxis, tuple[float, float]] = {
    MapAxis.OWNERS: (1.0, 1e4),
    MapAxis.RECORDS: (1.0, 1e6),
    MapAxis.EPSILON: (0.01, 100.0),
    MapAxis.SHARED: (1.0, 1e8),
    MapAxis.PERSONAL: (1.0, 1e6),
    MapAxis.PERSONAL_DIAMETER: (1e-3, 1e3),
    MapAxis.SHARED_DIAMETER: (1e-3, 1e3),
    MapAxis.RECORDS_PER_UNIT: (1.0, 1e4),
}
"""They do not move with the inputs, so that maps can be compared."""


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
        x_values: Ascending, shape (columns,).
        y_values: Ascending, shape (rows,).
        joint_gains: log(bound alone / bound of joint privacy), shape (rows, columns); above 0 joining pays. NaN where a
            unit would have more records than its owner.
        full_gains: The same of full privacy.
        vacuous_mask: Where the bound of joint privacy is no smaller than what any choice of parameters has.
        uncovered_mask: Where the theorem says nothing: ε > 10 or δ ≥ 1/n.
    """

    x_axis: MapAxis
    y_axis: MapAxis
    x_values: FloatArray
    y_values: FloatArray
    joint_gains: FloatArray
    full_gains: FloatArray
    vacuous_mask: npt.NDArray[np.bool_]
    uncovered_mask: npt.NDArray[np.bool_]

    @property
    def regimes(self) -> FloatArray:
        """Return the code of the `Regime` of every point as a float, NaN where a unit is larger than its owner.

        Its shape is (rows, columns).
        """
        regime_codes = np.where(self.joint_gains > 0.0, float(Regime.JOINT_ONLY), float(Regime.ALONE))
        regime_codes = np.where(self.full_gains > 0.0, float(Regime.FULL_TOO), regime_codes)
        return np.where(np.isnan(self.joint_gains), np.nan, regime_codes)


def find_regime(collaboration: Collaboration) -> Regime:
    """Find which settings have a smaller bound than working alone, at one point."""
    alone_bound = bound_alone(collaboration)
    if bound_together(collaboration, ProtectedPart.FULL) < alone_bound:
        return Regime.FULL_TOO
    is_joint_better = bound_together(collaboration, ProtectedPart.JOINT) < alone_bound
    return Regime.JOINT_ONLY if is_joint_better else Regime.ALONE


def compute_regime_map(
    collaboration: Collaboration,
    x_axis: MapAxis,
    y_axis: MapAxis,
    protects_owner: bool = False,
    num_columns: int = 100,
    num_rows: int = 70,
) -> RegimeMap:
    """Compute which settings have a smaller bound than working alone, on a grid over two quantities.

    Args:
        collaboration: The point; its other numbers hold everywhere.
        x_axis: What runs along x.
        y_axis: What runs along y, another.
        protects_owner: Whether a unit is an owner, so that its records grow with the owner's.
        num_columns: Points along x.
        num_rows: Points along y.
    """
    x, y = np.geomspace(*RANGE_BY_AXIS[x_axis], num_columns), np.geomspace(*RANGE_BY_AXIS[y_axis], num_rows)
    shape = (num_rows, num_columns)
    map_collaboration = collaboration.replace(**{x_axis.value: x[None, :], y_axis.value: y[:, None]})
    if protects_owner and MapAxis.RECORDS_PER_UNIT not in (x_axis, y_axis):
        unit_share = np.divide(collaboration.records_per_unit, collaboration.records)
        map_collaboration = map_collaboration.replace(records_per_unit=unit_share * map_collaboration.records)
    joint_bounds = bound_together(map_collaboration, ProtectedPart.JOINT)
    # A unit of fewer records than its owner's; rounding of two equal numbers does not count.
    largest_units = np.asarray(map_collaboration.records) * (1.0 + 1e-9)
    valid_mask = np.asarray(protects_owner or np.asarray(map_collaboration.records_per_unit) <= largest_units)

    def compute_gains(setting_bounds: FloatOrArray) -> FloatArray:
        """Return log(bound alone / bound of the setting), shape (rows, columns).

        It is NaN where a unit is larger than its owner.
        """
        log_gains = np.log(bound_alone(map_collaboration) / setting_bounds)
        # Where both are the same problem, their difference is rounding.
        log_gains = np.where(np.abs(log_gains) < 1e-12, 0.0, log_gains)
        return np.broadcast_to(np.where(valid_mask, log_gains, np.nan), shape)

    full_bounds = bound_together(map_collaboration, ProtectedPart.FULL)
    both_gains = compute_gains(joint_bounds), compute_gains(full_bounds)
    trivial_bounds = bounds.bound_trivially(map_collaboration)
    vacuous_mask = np.broadcast_to((joint_bounds >= trivial_bounds) & valid_mask, shape)
    large_epsilon_mask = np.asarray(map_collaboration.epsilon) > LARGEST_EPSILON
    uncovered_mask = large_epsilon_mask | (
        np.asarray(map_collaboration.delta) * map_collaboration.owners >= 1.0
    )
    return RegimeMap(x_axis, y_axis, x, y, *both_gains, vacuous_mask, np.broadcast_to(uncovered_mask, shape))


TOLERANCE = 1e-6
"""Relative gap of the search for the best cap."""
NEAR_OPTIMAL_FACTOR = 1.05


def build_capped_collaboration(
    histogram: ContributionHistogram, caps: npt.ArrayLike, collaboration: Collaboration, protects_owner: bool
) -> Collaboration:
    """Return a collaboration of a histogram's owners with at most a cap of records of each.

    Of an array of caps, the fields that depend on the cap are arrays of the same shape.

    Args:
        histogram: Records per owner.
        caps: τ, shape (q,) or a number.
        collaboration: Budget, parameters and diameters; its owners and records are replaced, and its records per unit
            where a whole owner is one unit.
        protects_owner: Whether a unit is an owner with all records that are kept.

    Returns:
        Owners with N_τ/n records on average. The evenness is √(N_τ/n) Σ_j w_j/√m_j with w_j = min(m_j, τ)/N_τ: an owner
        alone learns from all m_j records, and these bounds are averaged with the same weights.
    """
    cap_array, records_per_owner = np.asarray(caps, dtype=np.float64), histogram.sizes.astype(np.float64)
    # Σ_j min(m_j, τ)/√m_j over all owners, from those below and above each cap.
    root_sums_below = np.r_[0.0, np.cumsum(histogram.users * np.sqrt(records_per_owner))]
    sums_above = np.r_[np.cumsum((histogram.users / np.sqrt(records_per_owner))[::-1])[::-1], 0.0]
    num_sizes_below = np.searchsorted(records_per_owner, cap_array, side="right")
    root_sums_at_caps = root_sums_below[num_sizes_below] + cap_array * sums_above[num_sizes_below]
    kept_records = np.asarray(histogram.count_kept_rows(cap_array), dtype=np.float64)
    mean_records_at_caps = kept_records / histogram.num_users
    return collaboration.replace(
        owners=float(histogram.num_users),
        records=mean_records_at_caps,
        evenness=root_sums_at_caps / kept_records * np.sqrt(mean_records_at_caps),
        records_per_unit=cap_array if protects_owner else collaboration.records_per_unit,
    )


@dataclass(frozen=True, eq=False)
class CapChoice:
    """The best cap on the records of each owner, by the bound on the loss under joint privacy.

    Attributes:
        cap: τ, whole.
        joint_bound: Of joint privacy there.
        near_optimal: Smallest and largest cap of the stretch around it whose bound stays within 5 %.
        certificate: Its bound beside a lower bound for every whole cap.
    """

    cap: int
    joint_bound: float
    near_optimal: tuple[int, int]
    certificate: Certificate


def compute_joint_bounds(
    histogram: ContributionHistogram, caps: npt.ArrayLike, collaboration: Collaboration
) -> FloatArray:
    """Compute the bound of joint privacy at each cap, with whole owners protected; shape of ``caps``."""
    capped_collaboration = build_capped_collaboration(histogram, caps, collaboration, protects_owner=True)
    return np.asarray(bound_together(capped_collaboration, ProtectedPart.JOINT))


def split_bound(
    histogram: ContributionHistogram, caps: FloatArray, collaboration: Collaboration
) -> tuple[FloatArray, FloatArray]:
    """Split the bound of joint privacy, with whole owners protected, into two terms at each cap.

    Return (the sampling term, which falls with the cap; the privacy term, which rises), each of the shape of
    ``caps``.
    """
    capped_collaboration = build_capped_collaboration(histogram, caps, collaboration, protects_owner=True)
    sampling_parts = np.asarray(bounds.bound_without_privacy(capped_collaboration))
    return sampling_parts, bound_together(capped_collaboration, ProtectedPart.JOINT) - sampling_parts


def find_best_cap(histogram: ContributionHistogram, collaboration: Collaboration) -> CapChoice:
    """Find the whole-numbered cap with the smallest bound of joint privacy, with whole owners protected.

    The search bisects the intervals of caps that could still hold a better one, up to a relative gap of `TOLERANCE`.

    Args:
        histogram: Records per owner.
        collaboration: Budget, parameters, diameters, constants.
    """
    largest_size = float(histogram.max_size)

    def split_caps(caps: FloatArray) -> ObjectiveParts:
        """Return both terms of the bound at the caps, in the form that `minimise` needs."""
        falling_parts, rising_parts = split_bound(histogram, caps, collaboration)
        return ObjectiveParts(falling_parts, falling_parts, rising_parts)

    first_caps = np.geomspace(1.0, largest_size, 256)
    bound_minimum = minimise(
        split_caps, 1.0, largest_size, is_integer=True, tolerance=TOLERANCE, first_points=first_caps
    )
    best_cap = bound_minimum.minimiser
    best_bound = float(compute_joint_bounds(histogram, best_cap, collaboration))
    bound_limit = NEAR_OPTIMAL_FACTOR * best_bound
    near_optimal_low, near_optimal_high = find_interval_within(
        split_caps, best_cap, 1.0, largest_size, bound_limit
    )
    certificate = Certificate(
        best_bound,
        min(bound_minimum.lower_bound, best_bound),
        "between two caps the bound is at least its first part at the upper and its second at the lower one, which "
        "excluded every interval of caps",
    )
    return CapChoice(int(best_cap), best_bound, (int(near_optimal_low), int(near_optimal_high)), certificate)
