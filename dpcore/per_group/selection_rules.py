"""Private selection of groups: the probability that a group is released, by its number of users.

Each user counts in at most L0 groups. A rule releases a group or not by its number of users, n; all groups together
are (epsilon, delta)-DP for adding or removing one user, who changes at most L0 of the numbers by 1.

- Truncated geometric: the largest probabilities that (epsilon', delta')-DP of one group allows (Desfontaines, Voss,
  Gipson and Mandayam, "Differentially private partition selection", 2022, theorem 1), with epsilon' = epsilon / L0 and
  delta' = 1 - (1 - delta)^(1/L0).
- Laplace: n plus noise of scale L0 / epsilon reaches a threshold that one user alone reaches with probability delta'.
- Gaussian: n plus noise for L2 sensitivity sqrt(L0) at (epsilon, delta / 2) reaches a threshold that the L0 groups of
  one user together reach with probability delta / 2.

With a pre-threshold of k users, groups of fewer are dropped, and the rule sees n - k + 1 users of the others.

These are the rules of Google's differential privacy libraries, which PyDP wraps and PipelineDP calls. Compared with
PyDP 1.1.5 at 36 settings and 16 sizes each, the first two differ by 2e-16 at most, the Gaussian one by 1.3e-3: PyDP
rounds its noise up.
"""

from __future__ import annotations

import math

import numpy as np

from dpcore.common import noise_error
from dpcore.common.noise_error import NoiseKind
from dpcore.common.parameters import Option
from dpcore.common.programs import Program
from dpcore.contributions import FloatArray


class SelectionRule(Option):
    """The rule that decides which groups are released."""

    PUBLIC_LIST = "public list", "Public list"
    TRUNCATED_GEOMETRIC = "truncated geometric", "Private, geometric"
    LAPLACE = "Laplace threshold", "Private, Laplace"
    GAUSSIAN = "Gaussian threshold", "Private, Gaussian"

    @property
    def is_private(self) -> bool:
        """Return True if groups are selected privately from the data, not by a public list."""
        return self is not SelectionRule.PUBLIC_LIST


def compute_keep_probabilities(
    selection_rule: SelectionRule,
    epsilon: float,
    delta: float,
    max_groups: int,
    max_users: int,
    *,
    min_users: int = 1,
    program: Program = Program.PIPELINEDP,
) -> FloatArray:
    """Return the probability that a group is released, by its number of users from 0 to ``max_users``.

    Args:
        selection_rule: A rule other than the public list.
        epsilon: Budget of the selection of all groups together.
        delta: Strictly between 0 and 1; likewise.
        max_groups: L0, groups per user, whole, at least 1.
        max_users: Largest number of users, at least 0.
        min_users: k, the pre-threshold: a group of fewer users is never released, and one of n counts as n - k + 1.
        program: Whose rule; Tumult has a Laplace threshold of its own, with whole noise.

    Returns:
        Shape (max_users + 1,), ascending; 0 for no users, as the mechanism does not know such a group.
    """
    rule_counts = np.maximum(np.arange(max_users + 1, dtype=np.float64) - (min_users - 1), 0.0)
    compute_probabilities = _PROBABILITIES_BY_RULE[selection_rule]
    if program is Program.TUMULT and selection_rule is SelectionRule.LAPLACE:
        compute_probabilities = _compute_whole_laplace
    return np.where(rule_counts > 0.0, compute_probabilities(rule_counts, epsilon, delta, max_groups), 0.0)


def compute_delta_per_group(delta: float, max_groups: int) -> float:
    """Return delta' = 1 - (1 - delta)^(1 / L0), without cancellation."""
    return -math.expm1(math.log1p(-delta) / max_groups)


def _compute_geometric(n: FloatArray, epsilon: float, delta: float, max_groups: int) -> FloatArray:
    """Return the release probabilities of the truncated geometric rule at each number of users n, any shape."""
    e, d = epsilon / max_groups, compute_delta_per_group(delta, max_groups)
    # Theorem 1: rising as e^(n epsilon') up to n1, then the distance from 1 falls as e^(-n epsilon'). The growth is
    # e^epsilon' - 1.
    growth = math.expm1(e) if e < 700.0 else math.inf
    # e^epsilon' exceeds float64: a group of two users is then kept with certainty, of one user with probability delta'.
    if math.isinf(growth):
        return np.where(n >= 2.0, 1.0, np.where(n == 1.0, d, 0.0))
    n1 = 1 + math.floor(math.log((growth + 2.0 * d) / ((growth + 2.0) * d)) / e) if growth > 0.0 else 1
    n1 = max(n1, 1)
    with np.errstate(over="ignore"):
        rising_probabilities = np.expm1(np.minimum(n, n1) * e) / growth * d
    peak_probability = float(np.expm1(n1 * e) / growth * d)
    exponents = np.maximum(n - n1, 0.0) * e
    falling_probabilities = -np.expm1(-exponents) * (1.0 + d / growth) + np.exp(-exponents) * peak_probability
    return np.asarray(np.minimum(np.where(n <= n1, rising_probabilities, falling_probabilities), 1.0))


def _compute_laplace(n: FloatArray, epsilon: float, delta: float, max_groups: int) -> FloatArray:
    """Return the release probabilities of the Laplace threshold at each number of users n, any shape."""
    noise_scale = max_groups / epsilon
    group_delta = compute_delta_per_group(delta, max_groups)
    # Above 1/2 the threshold lies below a single user, on the other side of the noise's density.
    log_tail = math.log(2.0 * group_delta) if group_delta <= 0.5 else -math.log(2.0 * (1.0 - group_delta))
    threshold = 1.0 - noise_scale * log_tail
    scaled_distances = (n - threshold) / noise_scale
    tail_probabilities = 0.5 * np.exp(-np.abs(scaled_distances))
    return np.asarray(np.where(scaled_distances < 0.0, tail_probabilities, 1.0 - tail_probabilities))


def find_whole_threshold(epsilon: float, delta: float, max_groups: int) -> int:
    """Return Tumult's threshold on a number of users with whole Laplace noise of scale L0 / epsilon.

    The smallest whole number t with P(noise > t - 2) at most delta, or delta / (L0 e^epsilon) for L0 of two and more:
    group privacy for L0 rows, as ``tmlt.core`` computes it (``create_partition_selection_measurement``).
    """
    noise_scale = max_groups / epsilon
    group_delta = delta if max_groups == 1 else delta / max_groups * math.exp(-epsilon)
    # P(noise > x) = e^(-(x + 1) / b) / (1 + e^(-1 / b)) for x of at least 0.
    threshold_distance = (
        -noise_scale * (math.log(group_delta) + math.log1p(math.exp(-1.0 / noise_scale))) - 1.0
    )
    return math.ceil(threshold_distance) + 2


def _compute_whole_laplace(n: FloatArray, epsilon: float, delta: float, max_groups: int) -> FloatArray:
    """Return the release probabilities of Tumult's threshold at each number of users n, any shape."""
    rate = epsilon / max_groups
    distances = find_whole_threshold(epsilon, delta, max_groups) - n
    # P(noise >= d), by symmetry 1 - P(noise >= 1 - d) for d of at most 0.
    tail_probabilities = np.exp(-rate * np.where(distances > 0.0, distances, 1.0 - distances)) / (
        1.0 + math.exp(-rate)
    )
    return np.where(distances > 0.0, tail_probabilities, 1.0 - tail_probabilities)


def _compute_gaussian(n: FloatArray, epsilon: float, delta: float, max_groups: int) -> FloatArray:
    """Return the release probabilities of the Gaussian threshold at each number of users n, any shape."""
    from scipy.special import ndtr, ndtri

    unit_scale = noise_error.compute_unit_scale(NoiseKind.GAUSSIAN, epsilon, delta / 2.0)
    noise_std = unit_scale * math.sqrt(max_groups)
    # Probability of each of the L0 groups of a single user.
    group_delta = compute_delta_per_group(delta / 2.0, max_groups)
    threshold = 1.0 - noise_std * float(ndtri(group_delta))
    return np.asarray(ndtr((n - threshold) / noise_std))


_PROBABILITIES_BY_RULE = {
    SelectionRule.TRUNCATED_GEOMETRIC: _compute_geometric,
    SelectionRule.LAPLACE: _compute_laplace,
    SelectionRule.GAUSSIAN: _compute_gaussian,
}
