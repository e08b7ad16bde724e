"""How much smooth weights gain over the best cap on one instance, and the paper's proof that it is at most 4.

The noise ratio rho = 2 (B / epsilon)^2 / sigma^2 is all that epsilon, B and sigma^2 contribute to the ratio:
it says how many rows' worth of variance the noise has for a user who holds all the weight. Multiplying the
users of every size and rho by the same number leaves the ratio as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore import mean
from dpcore.common.checks import Problems
from dpcore.contributions import ContributionHistogram
from dpcore.mean import CapChoice, MeanProblem, SmoothChoice

PAPER_BOUND = 4.0
"""Theorem 3: no ratio is larger. `dpcore.gap_examples.two_groups.supremum` is the smallest such number."""


def with_noise_ratio(histogram: ContributionHistogram, noise_ratio: float) -> MeanProblem:
    """A mean problem with a given noise ratio: values in [0, 2] of variance 1, which two-point values attain.

    Args:
        histogram: Rows per user.
        noise_ratio: rho = 2 (B / epsilon)^2 / sigma^2 in rows, above 0.

    Raises:
        InvalidInput: ``noise_ratio`` is not a finite number above 0, or the histogram is none.
    """
    with Problems() as problems:
        fine = problems.positive(noise_ratio=noise_ratio)
    assert fine
    return MeanProblem(
        histogram, epsilon=2.0 * math.sqrt(2.0 / noise_ratio), value_bound=2.0, value_variance=1.0
    )


def noise_ratio(problem: MeanProblem) -> float:
    """rho = 2 (B / epsilon)^2 / sigma^2 in rows; infinite without sampling error."""
    return 1.0 / problem.trade_off if problem.trade_off > 0.0 else math.inf


@dataclass(frozen=True)
class Comparison:
    """The best cap beside the best smooth weights of one problem.

    Attributes:
        problem: The question.
        smooth: The best smooth weights, with their certificate.
        cap: The best whole cap, with its certificate.
    """

    problem: MeanProblem
    smooth: SmoothChoice
    cap: CapChoice

    @property
    def ratio(self) -> float:
        """Variance with the best cap over that with the best weights, at least 1."""
        return self.cap.variance / self.smooth.variance

    @property
    def ratio_at_least(self) -> float:
        """A proved lower bound on the ratio of the two optima, from the certificates."""
        return self.cap.certificate.lower_bound / self.smooth.variance

    @property
    def ratio_at_most(self) -> float:
        """A proved upper bound on the ratio of the two optima, from the certificates."""
        return self.cap.variance / self.smooth.certificate.lower_bound

    @property
    def noise_ratio(self) -> float:
        """rho of the problem, in rows."""
        return noise_ratio(self.problem)


def compare(problem: MeanProblem) -> Comparison:
    """Both optima of one problem, exact and certified; see `dpcore.mean`."""
    return Comparison(problem, mean.best_smooth(problem), mean.best_cap(problem))


@dataclass(frozen=True)
class FourfoldProof:
    """The construction in the proof of theorem 3: a cap h' that costs at most 4 times the best weights.

    Attributes:
        threshold: h*, the best threshold of the smooth weights.
        users_at_or_below: p, users with at most h* rows.
        users_above: q, users with more.
        rows_at_or_below: The rows of the former (the proof's A).
        kept_rows: n_{h*}.
        share_below: alpha = A / n_{h*}, the weight of the users at or below h*.
        case: 1 where alpha >= 1/2 (h' = h* rounded up), 2 otherwise.
        skipped: Case 2: eta = 1 - 1 / (2 (1 - alpha)), the share of the heavy users that h' passes; 0 in case
            1.
        skipped_users: Case 2: r = ceil(q eta), h' being the rows of the r-th of them; 0 in case 1.
        max_contributions: h'.
        sampling_factor: Sampling part of v'(h') over that of v(h*): at most 2 in case 1, 4 in case 2.
        privacy_factor: Privacy part of v'(h') over that of v(h*): at most 4.
        ratio: v'(h') / v(h*): at most 4.
        best_ratio: min v' / min v, for comparison.

    Source: Epasto et al. 2020, theorem 8 (theorem 3 restated). Its last display bounds h' / n_{h'} by
    1 / (1 - eta) where 1 / (q (1 - eta)) is meant; the conclusion stands.
    """

    threshold: float
    users_at_or_below: int
    users_above: int
    rows_at_or_below: float
    kept_rows: float
    share_below: float
    case: int
    skipped: float
    skipped_users: int
    max_contributions: int
    sampling_factor: float
    privacy_factor: float
    ratio: float
    best_ratio: float


def fourfold_proof(problem: MeanProblem) -> FourfoldProof:
    """Carry out the proof of theorem 3 on a problem; see `FourfoldProof` for its steps and source."""
    both = compare(problem)
    histogram, h = problem.histogram, both.smooth.threshold
    below, above, _ = (float(part) for part in histogram.pieces(h))
    kept = below + h * above
    alpha = below / kept
    p, q = histogram.num_users - int(above), int(above)
    eta, r = 0.0, 0
    # Case 1. The sum of squared weights is at least A / n^2 = alpha / n >= 1 / (2 n), and n_{h'} >= n: hence the
    # factor 2. As h* >= 1, h' is at most 2 h*, whose square is the factor 4.
    if alpha >= 0.5:
        cap = math.ceil(h)
    else:
        # Case 2. The users at or below h* and the first r above it hold alpha + r h* / n >= 1/2 of the weight, and
        # h' keeps all their rows: by Cauchy and Schwarz the sum of squared weights is at least 1 / (4 n_{h'}). At
        # least q (1 - eta) users have h' rows or more, so that h' / n_{h'} <= 2 (1 - alpha) / q = 2 h* / n.
        eta = 1.0 - 1.0 / (2.0 * (1.0 - alpha))
        r = min(max(math.ceil(q * eta), 1), q)
        users_so_far = np.cumsum(histogram.users.astype(np.float64))
        cap = int(histogram.sizes[int(np.searchsorted(users_so_far, p + r))])
    at_cap, at_threshold = mean.capped_error(problem, float(cap)), mean.smooth_error(problem, h)
    return FourfoldProof(
        threshold=h,
        users_at_or_below=p,
        users_above=q,
        rows_at_or_below=below,
        kept_rows=kept,
        share_below=alpha,
        case=1 if alpha >= 0.5 else 2,
        skipped=eta,
        skipped_users=r,
        max_contributions=cap,
        sampling_factor=_factor(float(at_cap.sampling_variance), float(at_threshold.sampling_variance)),
        privacy_factor=_factor(float(at_cap.privacy_variance), float(at_threshold.privacy_variance)),
        ratio=float(at_cap.variance) / float(at_threshold.variance),
        best_ratio=both.ratio,
    )


def _factor(value: float, reference: float) -> float:
    """value / reference, and 1 where both are 0 (no sampling error on either side)."""
    return value / reference if reference > 0.0 else 1.0
