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

from dpcore.common.branch_and_bound import Split, minimise, stretch_within
from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.data_owners.bounds import Collaboration, Private, together, without_privacy

TOLERANCE = 1e-6
"""Relative gap at which the search for the best cap ends."""
NEAR = 1.05
"""What counts as nearly as good as the best."""
_START = 256
_ARGUMENT = (
    "between two caps the bound is at least its first part at the upper and its second at the lower one, and every "
    "interval of caps was passed over by that"
)


def weights_over_roots(histogram: ContributionHistogram, caps: npt.ArrayLike) -> FloatArray:
    """Σ_j min(m_j, τ)/√m_j over all owners, shape of ``caps``."""
    sizes = histogram.sizes.astype(np.float64)
    users = histogram.users.astype(np.float64)
    below = np.r_[0.0, np.cumsum(users * np.sqrt(sizes))]
    above = np.r_[np.cumsum((users / np.sqrt(sizes))[::-1])[::-1], 0.0]
    tau = np.asarray(caps, dtype=np.float64)
    at = np.searchsorted(sizes, tau, side="right")
    return np.asarray(below[at] + tau * above[at])


def capped(
    histogram: ContributionHistogram, caps: npt.ArrayLike, of: Collaboration, whole_owner: bool
) -> Collaboration:
    """The owners of a histogram of records per owner, each with at most so many records.

    Args:
        histogram: Records per owner.
        caps: τ, shape (q,) or a number.
        of: Budget, parameters and diameters; its owners and records are replaced, and its records per unit where a
            whole owner is one unit.
        whole_owner: Whether a unit is an owner with all records that are kept.

    Returns:
        Owners with N_τ/n records on average. The evenness is √(N_τ/n) Σ_j w_j/√m_j with w_j = min(m_j, τ)/N_τ: an owner
        alone learns from all m_j records, and these bounds are averaged with the same weights.
    """
    tau = np.asarray(caps, dtype=np.float64)
    kept = np.asarray(histogram.kept_rows(tau), dtype=np.float64)
    mean = kept / histogram.num_users
    return of.having(
        owners=float(histogram.num_users),
        records=mean,
        evenness=weights_over_roots(histogram, tau) / kept * np.sqrt(mean),
        records_per_unit=tau if whole_owner else of.records_per_unit,
    )


@dataclass(frozen=True, eq=False)
class CapChoice:
    """The best cap per owner.

    Attributes:
        cap: τ, whole.
        bound: Of joint privacy there.
        kept: N_τ.
        within: Smallest and largest cap of the stretch around it whose bound stays within 5 %.
        certificate: Its bound beside a lower bound for every whole cap.
    """

    cap: int
    bound: float
    kept: float
    within: tuple[int, int]
    certificate: Certificate


def joint_bounds(histogram: ContributionHistogram, caps: npt.ArrayLike, of: Collaboration) -> FloatArray:
    """B(τ), joint privacy of whole owners, shape of ``caps``."""
    return together(capped(histogram, caps, of, whole_owner=True), Private.JOINT)


def parts(
    histogram: ContributionHistogram, caps: FloatArray, of: Collaboration
) -> tuple[FloatArray, FloatArray]:
    """B(τ) in the part that falls with τ and the one that rises; each of the shape of ``caps``."""
    at = capped(histogram, caps, of, whole_owner=True)
    sampling = without_privacy(at)
    return sampling, together(at, Private.JOINT) - sampling


def best_cap(histogram: ContributionHistogram, of: Collaboration) -> CapChoice:
    """The whole cap with the smallest bound, by bisecting intervals that could hold a better one.

    Args:
        histogram: Records per owner.
        of: Budget, parameters, diameters, constants.
    """
    most = float(histogram.max_size)

    def split(caps: FloatArray) -> Split:
        falling, rising = parts(histogram, caps, of)
        return Split(falling, falling, rising)

    first = np.geomspace(1.0, most, _START)
    found = minimise(split, 1.0, most, whole=True, tolerance=TOLERANCE, first=first)
    cap = int(found.argument)
    best = float(joint_bounds(histogram, float(cap), of))
    low, high = stretch_within(split, float(cap), 1.0, most, NEAR * best)
    return CapChoice(
        cap=cap,
        bound=best,
        kept=float(histogram.kept_rows(float(cap))),
        within=(int(low), int(high)),
        certificate=Certificate(best, min(found.lower_bound, best), _ARGUMENT),
    )
