"""Ratios of many small instances at once, by closed forms: for curves under sliders and for the search.

An instance is k sizes, k numbers of users (any positive reals: the ratio depends on their proportions to each
other and to the noise ratio only) and a noise ratio. Tests compare each ratio with the optimisers of
`dpcore.mean`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray


@dataclass(frozen=True)
class VarianceRatios:
    """Variances of a batch of instances and their ratio; each field has the shape of the batch.

    Attributes:
        ratio: Variance with the best cap over that with the best weights.
        smooth_variance: With the best weights, in units of sigma^2.
        capped_variance: With the best cap, in units of sigma^2.
    """

    ratio: FloatArray
    smooth_variance: FloatArray
    capped_variance: FloatArray


def variance_ratios(
    sizes: npt.ArrayLike, users: npt.ArrayLike, noise_ratio: npt.ArrayLike, integer_caps: bool = True
) -> VarianceRatios:
    """Compute the variance ratio of each instance of a batch.

    Args:
        sizes: Rows per user, ascending along the last axis (equal neighbours allowed), shape (..., k); whole
            where ``integer_caps``.
        users: Users of each size, above 0, shape (..., k), real.
        noise_ratio: 2 (B / epsilon)^2 / sigma^2 in rows, above 0, shape (...).
        integer_caps: Whether caps are whole numbers (a mechanism) or real (the theory's limit).

    Returns:
        `VarianceRatios` of the common shape (...).

    Raises:
        InvalidInput: Shapes do not fit, something is not finite and above 0, or sizes descend.
    """
    s, u, rho = (np.asarray(values, dtype=np.float64) for values in (sizes, users, noise_ratio))
    with Problems() as problems:
        for name, values in (("sizes", s), ("users", u), ("noise_ratio", rho)):
            if not np.all(np.isfinite(values) & (values > 0.0)):
                problems.add(f"{name} must be finite numbers above 0")
        if s.ndim == 0 or s.shape[-1:] != u.shape[-1:] or s.shape[-1] == 0:
            problems.add("sizes and users must have the same number of groups along their last axis")
        elif np.any(np.diff(s, axis=-1) < 0.0):
            problems.add("sizes must ascend along the last axis")
    s, u, rho = (np.asarray(values) for values in np.broadcast_arrays(s, u, rho[..., None]))
    smooth, capped = 1.0 / _inverse_smooth_variance(s, u, rho), _capped_variance(s, u, rho, integer_caps)
    return VarianceRatios(capped / smooth, smooth, capped)


def _sum_later_groups(x: FloatArray) -> FloatArray:
    """Sum over the groups after each group; the last sum is 0."""
    total = np.cumsum(x[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate((total[..., 1:], np.zeros_like(total[..., :1])), axis=-1)


def _inverse_smooth_variance(s: FloatArray, u: FloatArray, rho: FloatArray) -> FloatArray:
    """Return 1 / min v = max over h of sum_l f_h(s_l) - rho h^2, f_h(s) = s up to h, 2 h - h^2 / s above.

    Derived in docs/gap.md. The function is concave in h; between two sizes it is S + 2 q h - (I + rho) h^2, so
    each piece has its best h in closed form. The piece below the smallest size is included: there every user
    weighs the same.
    """
    zero = np.zeros_like(s[..., :1])
    rows_below = np.concatenate((zero, np.cumsum(s * u, axis=-1)), axis=-1)
    users_above = np.concatenate((u.sum(axis=-1, keepdims=True), _sum_later_groups(u)), axis=-1)
    inverse_sizes = np.concatenate(((u / s).sum(axis=-1, keepdims=True), _sum_later_groups(u / s)), axis=-1)
    left_ends, right_ends = np.concatenate((zero, s), axis=-1), np.concatenate((s, s[..., -1:]), axis=-1)
    curvature = inverse_sizes + rho[..., :1]
    h = np.clip(users_above / curvature, left_ends, right_ends)
    return np.asarray((rows_below + h * (2.0 * users_above - h * curvature)).max(axis=-1))


def _capped_variance(s: FloatArray, u: FloatArray, rho: FloatArray, integer_caps: bool) -> FloatArray:
    """Minimise 1 / n + rho h^2 / n^2 with n = S + q h over h in [s_1, s_k].

    Each piece between two sizes has one minimum, at q S / (2 S rho - q^2), or falls throughout.
    """
    rows_below, users_above = np.cumsum(s * u, axis=-1), _sum_later_groups(u)
    right = np.concatenate((s[..., 1:], s[..., -1:]), axis=-1)
    curvature = 2.0 * rows_below * rho - users_above**2
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(curvature > 0.0, users_above * rows_below / curvature, np.inf)
    # Where the piece falls throughout the root is infinite, and the right end is best.
    h = np.clip(root, s, right)
    candidates = [np.floor(h), np.ceil(h)] if integer_caps else [h]
    variances = [
        1.0 / (kept_rows := rows_below + users_above * cap) + rho * (cap / kept_rows) ** 2
        for cap in candidates
    ]
    return np.asarray(np.minimum.reduce(variances).min(axis=-1))
