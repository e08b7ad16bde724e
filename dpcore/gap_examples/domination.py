"""For any instance, a two-group limit whose ratio is at least as large: why two groups suffice.

With V the best cap's variance in units of sigma^2, no cap is better: n_h <= psi(h) at every whole h, where
psi(h) = (1 + sqrt(1 + 4 V rho h^2)) / (2 V) solves 1 / n + rho h^2 / n^2 = V for n. n_h is concave, psi convex,
and they meet at the best cap, so a line a + b h lies between them. The instance whose n_h is a min(h, 1) + b h
(a users with one row, b with infinitely many) then has no better cap and, having more rows at every h, no worse
weights. docs/gap.md has the whole proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import refuse
from dpcore.gap_examples.compare import Comparison
from dpcore.gap_examples.two_groups import whole_cap_limit


@dataclass(frozen=True)
class Domination:
    """A two-group limit that an instance cannot beat.

    Attributes:
        cap: The instance's best cap, where the line touches n_h.
        light_users: a, the line's height at h = 0: users with one row in the dominating limit (a real
            number).
        heavy_users: b, the line's slope: users with unlimited rows there (a real number).
        light_share: p = a / (a + b).
        noise_per_user: t = rho / (a + b).
        ratio: The instance's own ratio.
        bound: The limit's ratio: at least the instance's, at most `dpcore.gap_examples.two_groups.supremum`.
    """

    cap: int
    light_users: float
    heavy_users: float
    light_share: float
    noise_per_user: float
    ratio: float
    bound: float


def dominate(comparison: Comparison) -> Domination:
    """Find a line between n_h and psi(h) at the best cap, and return the two-group limit that it stands for.

    The two extreme slopes and the one halfway are tried, each of which is a proof; the best is returned.

    Raises:
        InvalidInput: The problem has no sampling error (its ratio is 1 and there is nothing to prove).
    """
    _require_sampling_error(comparison)
    histogram, rho = comparison.problem.histogram, comparison.noise_ratio
    k, best_variance = (
        comparison.cap.max_contributions,
        comparison.cap.variance / comparison.problem.value_variance,
    )
    # Slopes of n_h right and left of k, and of psi over the steps right and left: (psi(k + 1) - psi(k)) etc.
    lowest_slope = max(float(histogram.users_above(k)), _psi_increment(best_variance, rho, k - 1))
    highest_slope = min(float(histogram.users_above(k - 1)), _psi_increment(best_variance, rho, k))
    kept_rows = float(histogram.kept_rows(k))
    # Every slope in [low, high] makes a line that fits; one above n_k / k would take fewer than no light users.
    heavy_users = np.clip(
        np.array([lowest_slope, (lowest_slope + highest_slope) / 2.0, highest_slope]), 0.0, kept_rows / k
    )
    light_users = np.maximum(kept_rows - heavy_users * k, 0.0)
    limits = whole_cap_limit(
        light_users / (light_users + heavy_users), rho / (light_users + heavy_users)
    ).ratio
    i = int(np.argmin(limits))
    a, b = float(light_users[i]), float(heavy_users[i])
    return Domination(k, a, b, a / (a + b), rho / (a + b), comparison.ratio, float(limits[i]))


def _require_sampling_error(comparison: Comparison) -> None:
    """Raise `InvalidInput` if the values have no variance."""
    if comparison.problem.value_variance == 0.0:
        raise refuse(
            "without sampling error the best bound and the best weights are the same",
            remedy="Give a value_variance above 0",
        )


def _psi_increment(best_variance: float, rho: float, h: float) -> float:
    """Return psi(h + 1) - psi(h), without the difference of two large numbers."""
    c = 4.0 * best_variance * rho
    roots = math.sqrt(1.0 + c * h**2) + math.sqrt(1.0 + c * (h + 1.0) ** 2)
    return c * (2.0 * h + 1.0) / (2.0 * best_variance * roots)
