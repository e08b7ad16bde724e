"""Owners with unequal numbers of records: how many records of each owner, or of each user, should be kept?

With at most τ records of every owner, N_τ = Σ_j min(m_j, τ) are kept. The analysis of theorem 3.1 draws one record of
all and needs nothing but their number: mn becomes N_τ. What it then bounds is the loss averaged with the weights
min(m_j, τ)/N_τ, so the cap also says whose loss counts: at τ = 1 all owners count alike. Where a whole owner is one
unit of protection, noise grows with τ, and the bound has a best cap:

    B(τ) = L R (c_s/√N_τ + c_p τ √(ℓ log(τ/δ)) / (ε N_τ)).

The first part falls with τ. The second rises: N_τ is concave in τ and 0 at τ = 0, so τ/N_τ never falls. Between two
caps the bound is therefore at least the first part at the upper and the second at the lower one.

Source: ours, from theorem 3.1 of Huang et al. 2023 and the group privacy of its section 3.1.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.branch_and_bound import Split, find_interval_within, minimise
from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.data_owners.bounds import Collaboration, ProtectedPart, bound_together, bound_without_privacy

TOLERANCE = 1e-6
"""Relative gap at which the search for the best cap ends."""
NEAR_OPTIMAL_FACTOR = 1.05
"""What counts as nearly as good as the best."""
_START = 256
_ARGUMENT = (
    "between two caps the bound is at least its first part at the upper and its second at the lower one, and every "
    "interval of caps was passed over by that"
)


def sum_weights_over_roots(histogram: ContributionHistogram, caps: npt.ArrayLike) -> FloatArray:
    """Compute Σ_j min(m_j, τ)/√m_j over all owners, shape of ``caps``."""
    sizes = histogram.sizes.astype(np.float64)
    users = histogram.users.astype(np.float64)
    sums_below = np.r_[0.0, np.cumsum(users * np.sqrt(sizes))]
    sums_above = np.r_[np.cumsum((users / np.sqrt(sizes))[::-1])[::-1], 0.0]
    tau = np.asarray(caps, dtype=np.float64)
    index = np.searchsorted(sizes, tau, side="right")
    return np.asarray(sums_below[index] + tau * sums_above[index])


def cap_owners(
    histogram: ContributionHistogram, caps: npt.ArrayLike, collaboration: Collaboration, whole_owner: bool
) -> Collaboration:
    """Cap the records per owner of a histogram.

    Args:
        histogram: Records per owner.
        caps: τ, shape (q,) or a number.
        collaboration: Budget, parameters and diameters; its owners and records are replaced, and its records per unit
            where a whole owner is one unit.
        whole_owner: Whether a unit is an owner with all records that are kept.

    Returns:
        Owners with N_τ/n records on average. The evenness is √(N_τ/n) Σ_j w_j/√m_j with w_j = min(m_j, τ)/N_τ: an owner
        alone learns from all m_j records, and these bounds are averaged with the same weights.
    """
    tau = np.asarray(caps, dtype=np.float64)
    kept_records = np.asarray(histogram.kept_rows(tau), dtype=np.float64)
    mean_records = kept_records / histogram.num_users
    return collaboration.replace(
        owners=float(histogram.num_users),
        records=mean_records,
        evenness=sum_weights_over_roots(histogram, tau) / kept_records * np.sqrt(mean_records),
        records_per_unit=tau if whole_owner else collaboration.records_per_unit,
    )


@dataclass(frozen=True, eq=False)
class CapChoice:
    """The best cap per owner.

    Attributes:
        cap: τ, whole.
        bound: Of joint privacy there.
        kept_records: N_τ.
        near_optimal: Smallest and largest cap of the stretch around it whose bound stays within 5 %.
        certificate: Its bound beside a lower bound for every whole cap.
    """

    cap: int
    bound: float
    kept_records: float
    near_optimal: tuple[int, int]
    certificate: Certificate


def compute_joint_bounds(
    histogram: ContributionHistogram, caps: npt.ArrayLike, collaboration: Collaboration
) -> FloatArray:
    """Compute B(τ), joint privacy of whole owners, shape of ``caps``."""
    return bound_together(cap_owners(histogram, caps, collaboration, whole_owner=True), ProtectedPart.JOINT)


def split_bound(
    histogram: ContributionHistogram, caps: FloatArray, collaboration: Collaboration
) -> tuple[FloatArray, FloatArray]:
    """Split B(τ) into the part that falls with τ and the one that rises; each of the shape of ``caps``."""
    capped_owners = cap_owners(histogram, caps, collaboration, whole_owner=True)
    sampling = bound_without_privacy(capped_owners)
    return sampling, bound_together(capped_owners, ProtectedPart.JOINT) - sampling


def find_best_cap(histogram: ContributionHistogram, collaboration: Collaboration) -> CapChoice:
    """Find the integer cap with the smallest bound, by bisecting intervals that could hold a better one.

    Args:
        histogram: Records per owner.
        collaboration: Budget, parameters, diameters, constants.
    """
    largest_size = float(histogram.max_size)

    def split(caps: FloatArray) -> Split:
        falling, rising = split_bound(histogram, caps, collaboration)
        return Split(falling, falling, rising)

    starting_caps = np.geomspace(1.0, largest_size, _START)
    search = minimise(
        split, 1.0, largest_size, is_integer=True, tolerance=TOLERANCE, first_points=starting_caps
    )
    cap = int(search.argument)
    best_bound = float(compute_joint_bounds(histogram, float(cap), collaboration))
    low, high = find_interval_within(split, float(cap), 1.0, largest_size, NEAR_OPTIMAL_FACTOR * best_bound)
    return CapChoice(
        cap=cap,
        bound=best_bound,
        kept_records=float(histogram.kept_rows(float(cap))),
        near_optimal=(int(low), int(high)),
        certificate=Certificate(best_bound, min(search.lower_bound, best_bound), _ARGUMENT),
    )
