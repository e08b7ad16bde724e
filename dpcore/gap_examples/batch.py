"""Ratios of many small instances at once, by closed forms: for curves under sliders and for the search.

An instance is k sizes, k numbers of users (any positive reals: the ratio depends on their proportions to each
other and to the noise ratio only) and a noise ratio. The single-instance truth is `dpcore.mean`; tests hold
the two together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray


@dataclass(frozen=True)
class Ratios:
    """What `ratios` finds; each field has the shape of the batch.

    Attributes:
        ratio: Variance with the best cap over that with the best weights.
        smooth_variance: With the best weights, in units of sigma^2.
        capped_variance: With the best cap, in units of sigma^2.
    """

    ratio: FloatArray
    smooth_variance: FloatArray
    capped_variance: FloatArray


def ratios(
    sizes: npt.ArrayLike, users: npt.ArrayLike, noise_ratio: npt.ArrayLike, whole_caps: bool = True
) -> Ratios:
    """Ratios of a batch of instances.

    Args:
        sizes: Rows per user, ascending along the last axis (equal neighbours allowed), shape (..., k); whole
            where ``whole_caps``.
        users: Users of each size, above 0, shape (..., k), real.
        noise_ratio: 2 (B / epsilon)^2 / sigma^2 in rows, above 0, shape (...).
        whole_caps: Whether caps are whole numbers (a mechanism) or real (the theory's limit).

    Returns:
        `Ratios` of the common shape (...).

    Raises:
        InvalidInput: Shapes do not fit, something is not finite and above 0, or sizes descend.
    """
    s, u, rho = (np.asarray(x, dtype=np.float64) for x in (sizes, users, noise_ratio))
    with Problems() as problems:
        for name, x in (("sizes", s), ("users", u), ("noise_ratio", rho)):
            if not np.all(np.isfinite(x) & (x > 0.0)):
                problems.add(f"{name} must be finite numbers above 0")
        if s.ndim == 0 or s.shape[-1:] != u.shape[-1:] or s.shape[-1] == 0:
            problems.add("sizes and users must have the same number of groups along their last axis")
        elif np.any(np.diff(s, axis=-1) < 0.0):
            problems.add("sizes must ascend along the last axis")
    s, u, rho = (np.asarray(x) for x in np.broadcast_arrays(s, u, rho[..., None]))
    smooth, capped = 1.0 / _inverse_smooth(s, u, rho), _capped(s, u, rho, whole_caps)
    return Ratios(capped / smooth, smooth, capped)


def _suffix(x: FloatArray) -> FloatArray:
    """Sums over the groups after each group; the last is 0."""
    total = np.cumsum(x[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate((total[..., 1:], np.zeros_like(total[..., :1])), axis=-1)


def _inverse_smooth(s: FloatArray, u: FloatArray, rho: FloatArray) -> FloatArray:
    """1 / min v = max over h of sum_l f_h(s_l) - rho h^2, f_h(s) = s up to h, 2 h - h^2 / s above.

    Derived in docs/gap.md. Concave in h; between two sizes it is S + 2 q h - (I + rho) h^2, so each piece has
    its best h in closed form. The piece below the lightest size is included: it is where every user weighs
    the same.
    """
    zero = np.zeros_like(s[..., :1])
    below = np.concatenate((zero, np.cumsum(s * u, axis=-1)), axis=-1)
    above = np.concatenate((u.sum(axis=-1, keepdims=True), _suffix(u)), axis=-1)
    inverse = np.concatenate(((u / s).sum(axis=-1, keepdims=True), _suffix(u / s)), axis=-1)
    left, right = np.concatenate((zero, s), axis=-1), np.concatenate((s, s[..., -1:]), axis=-1)
    curvature = inverse + rho[..., :1]
    h = np.clip(above / curvature, left, right)
    return np.asarray((below + h * (2.0 * above - h * curvature)).max(axis=-1))


def _capped(s: FloatArray, u: FloatArray, rho: FloatArray, whole_caps: bool) -> FloatArray:
    """Min over h in [s_1, s_k] of 1 / n + rho h^2 / n^2, n = S + q h.

    Each piece between two sizes has one minimum, at q S / (2 S rho - q^2), or falls throughout.
    """
    below, above = np.cumsum(s * u, axis=-1), _suffix(u)
    right = np.concatenate((s[..., 1:], s[..., -1:]), axis=-1)
    slope = 2.0 * below * rho - above**2
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(slope > 0.0, above * below / slope, np.inf)
    # Where the piece falls throughout the root is infinite, and the right end is best.
    h = np.clip(root, s, right)
    candidates = [np.floor(h), np.ceil(h)] if whole_caps else [h]
    variances = [1.0 / (n := below + above * x) + rho * (x / n) ** 2 for x in candidates]
    return np.asarray(np.minimum.reduce(variances).min(axis=-1))
