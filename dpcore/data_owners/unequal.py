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

from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, log_spaced
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
        owners_capped: Owners with more records.
        within: Smallest and largest cap of the stretch around it whose bound stays within 5 %.
        certificate: Its bound beside a lower bound for every whole cap.
    """

    cap: int
    bound: float
    kept: float
    owners_capped: int
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
    most = histogram.max_size
    ends = np.unique(np.rint(np.geomspace(1.0, most, _START)))
    best, cap, lowest = np.inf, 1, np.inf
    low, high = ends[:-1], ends[1:]
    new = ends
    while True:
        bounds = joint_bounds(histogram, new, of)
        at = int(np.argmin(bounds))
        if bounds[at] < best:
            best, cap = float(bounds[at]), int(new[at])
        # The caps strictly between low and high: neighbours have none.
        open_ = high - low > 1.0
        low, high = low[open_], high[open_]
        if not low.size:
            break
        under = parts(histogram, high - 1.0, of)[0] + parts(histogram, low + 1.0, of)[1]
        closed = under >= best * (1.0 - TOLERANCE)
        if closed.any():
            lowest = min(lowest, float(under[closed].min()))
        low, high = low[~closed], high[~closed]
        if not low.size:
            break
        new = np.floor((low + high) / 2.0)
        low, high = np.r_[low, new], np.r_[new, high]
    return CapChoice(
        cap=cap,
        bound=best,
        kept=float(histogram.kept_rows(float(cap))),
        owners_capped=histogram.users_above(float(cap)),
        within=_within(histogram, of, cap, best),
        certificate=Certificate(best, min(lowest, best), _ARGUMENT),
    )


def _within(histogram: ContributionHistogram, of: Collaboration, cap: int, best: float) -> tuple[int, int]:
    """From where to where around the best cap the bound stays within 5 %, on a grid refined at its two ends."""

    def edge(inside: int, outside: int) -> int:
        """The last cap that is good between one that is and one that is not."""
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            good = float(joint_bounds(histogram, float(middle), of)) <= NEAR * best
            inside, outside = (middle, outside) if good else (inside, middle)
        return inside

    caps = np.unique(np.rint(log_spaced(1.0, max(float(histogram.max_size), 2.0), 400, extra=(cap,))))
    caps = caps[caps <= histogram.max_size]
    bad = caps[joint_bounds(histogram, caps, of) > NEAR * best]
    below, above = bad[bad < cap], bad[bad > cap]
    low = edge(cap, int(below[-1])) if below.size else 1
    return low, edge(cap, int(above[0])) if above.size else histogram.max_size
