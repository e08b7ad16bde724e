"""Post-processing of noisy bin counts to whole, non-negative users, without phantom heavy users.

It looks at nothing but released numbers and public bins, so it costs no privacy.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray


class Fit(enum.Enum):
    """How noisy counts become a histogram."""

    CLIP = "counts below 0 become 0"
    SIMPLEX = "the nearest non-negative counts with the same sum"
    ISOTONIC = "the nearest falling tail counts"
    TRUNCATED = "the nearest falling tail counts, none beyond the last that stands out from the noise"


@dataclass(frozen=True)
class NoiseShape:
    """What is known of the noise on one count.

    Attributes:
        variance: Above 0.
        tail_scale: b where tails fall as exp(-|z| / b), as Laplace noise's do; 0 for Gaussian tails.
    """

    variance: float
    tail_scale: float


PHANTOM_CHANCE = 0.05
"""How likely a tail without users may look as if it had some, for each tail count."""


def consistent_users(noisy: npt.ArrayLike, noise: NoiseShape, fit: Fit = Fit.TRUNCATED) -> IntArray:
    """Whole, non-negative users per bin, from light to heavy.

    Measured on the three Online Retail samples, epsilon 0.1, 10 + 26 bins up to 10,000 rows, 1,000 copies each
    (`benchmarks/private.py`); regret is that of Mean's best smooth weights at epsilon = 1, in standard error:

    MEASURED

    A handful of phantom users at 10,000 rows outweighs everybody, so that `Fit.TRUNCATED` is the default: it has
    by far the smallest error in rows, at regrets as small as any.

    Args:
        noisy: Released counts, one per bin in ascending order of size, shape (k,).
        noise: On each of them.
        fit: How.

    Returns:
        Users per bin, shape (k,).
    """
    counts = np.asarray(noisy, dtype=np.float64)
    if fit is Fit.CLIP:
        tails = tail_sums(np.maximum(counts, 0.0))
    elif fit is Fit.SIMPLEX:
        tails = tail_sums(_on_simplex(counts))
    else:
        tails = tail_sums(counts)
        if fit is Fit.TRUNCATED:
            stands_out = np.flatnonzero(tails > believable(counts.size, noise))
            tails[(stands_out[-1] + 1 if stands_out.size else 0) :] = 0.0
        tails = falling(tails)
    whole = np.rint(np.maximum(tails, 0.0)).astype(np.int64)
    # Rounding the tails, not the counts: half users do not add up over a hundred bins.
    return np.asarray(whole - np.append(whole[1:], 0))


def believable(bins: int, noise: NoiseShape) -> FloatArray:
    """How large a tail count must be for its noise alone to be that large with at most `PHANTOM_CHANCE`.

    The last of ``bins`` tail counts has the noise of one bin, the first that of all: shape (bins,).

    Source: Bernstein's inequality for sums of j sub-exponential terms, sqrt(2 j v L) + b L with
        L = ln(1 / chance) (Boucheron, Lugosi, Massart 2013, theorem 2.10).
    """
    j, chance = np.arange(bins, 0, -1, dtype=np.float64), math.log(1.0 / PHANTOM_CHANCE)
    return np.asarray(np.sqrt(2.0 * j * noise.variance * chance) + noise.tail_scale * chance)


def tail_sums(counts: FloatArray) -> FloatArray:
    """Users in this bin or a later one, for every bin."""
    return np.asarray(np.cumsum(counts[::-1])[::-1])


def falling(tails: FloatArray) -> FloatArray:
    """The non-increasing sequence nearest to noisy tail counts, in least squares with weights 1 / variance.

    The last of k tail counts has the noise of one bin, the first that of k: weights 1, ..., 1 / k.

    Source: Hay, Rastogi, Miklau, Suciu 2010, Boosting the accuracy of differentially private histograms through
        consistency, section 3 (isotonic regression as post-processing).
    """
    from scipy.optimize import isotonic_regression

    weights = 1.0 / np.arange(tails.size, 0, -1)
    return np.asarray(isotonic_regression(tails, weights=weights, increasing=False).x)


def _on_simplex(counts: FloatArray) -> FloatArray:
    """max(count - shift, 0) with the shift that keeps the sum; all 0 where the sum is not positive."""
    total = math.fsum(counts)
    if total <= 0.0:
        return np.zeros_like(counts)
    descending = np.sort(counts)[::-1]
    shifts = (np.cumsum(descending) - total) / np.arange(1, counts.size + 1)
    last = int(np.flatnonzero(descending > shifts)[-1])
    return np.asarray(np.maximum(counts - shifts[last], 0.0))
