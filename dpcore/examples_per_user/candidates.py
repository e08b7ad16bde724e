"""All bounds on examples per user in both ways of sampling: noise, estimated error, and programs.

Everything is a sum over the histogram. Neighbours, clip norm and noise are those of
`dpcore.examples_per_user.noise`. Both ways expect the same number of examples in a step, B: with n_G examples kept,
an example or a user is sampled with probability q = B / n_G.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpcore.code.common import render
from dpcore.code.release_spec import Code
from dpcore.common.checks import refuse
from dpcore.common.version import VERSION
from dpcore.common.wording import format_digits
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.examples_per_user.noise import bound_multiplier, choose_grid, truncate_mixture
from dpcore.examples_per_user.parameters import ExamplesParameters, Sampling

DENSE_UNTIL = 64
"""Up to here bounds between powers of two are tried."""
DIGITS_OF_RATE, DIGITS_OF_DIVISOR = 3, 4
"""The noise is that of the rate in a program."""


def list_bounds(histogram: ContributionHistogram) -> tuple[int, ...]:
    """List the values of G to compare, ascending, up to the heaviest user's number of examples.

    They are powers of two, some between, and that number, above which only the noise would grow.
    """
    max_size = histogram.max_size
    powers = [2**exponent for exponent in range(max_size.bit_length())]
    bounds_between = [3 * 2**exponent for exponent in range(6) if 3 * 2**exponent <= DENSE_UNTIL]
    return tuple(sorted({bound for bound in (*powers, *bounds_between, max_size) if bound <= max_size}))


@dataclass(frozen=True)
class Candidate:
    """One bound G with one way of sampling: its rate, its noise, and the errors that are estimated of it.

    Attributes:
        sampling: Who is drawn.
        bound: G.
        kept_share: n_G, the examples kept in all, over all examples.
        rate: q, the probability of each draw, as a program has it.
        divisor: What a step's noisy sum is divided by: B, or the users whom a step is expected to see.
        multiplier: Standard deviation of the noise on a step's sum, in clip norms.
        is_upper_bound: Whether the multiplier is a bound by Rényi accounting, up to about 12 % more than is needed.
        gradient_norm: κ: norm of what is clipped over that of one example, by the r that was entered.
        noise: Standard deviation of the noise on a step's mean gradient, per parameter, in norms of an example's
            gradient.
        noise_error: Root of the squared error that noise leaves, by the estimate; all errors in norms of an example's
            gradient.
        drawing_error: That of drawing batches.
        data_error: That of having so few users and examples.
    """

    sampling: Sampling
    bound: int
    kept_share: float
    rate: float
    divisor: float
    multiplier: float
    is_upper_bound: bool
    gradient_norm: float
    noise: float
    noise_error: float
    drawing_error: float
    data_error: float

    @property
    def error(self) -> float:
        """Return the estimated error of the whole training, in norms of an example's gradient."""
        return math.hypot(self.noise_error, self.drawing_error, self.data_error)

    @property
    def user_move(self) -> int:
        """Return by how many clip norms a user may change a step's sum: G if examples are drawn, else 1."""
        return 1 if self.sampling is Sampling.USERS else self.bound


def evaluate_candidate(
    histogram: ContributionHistogram,
    parameters: ExamplesParameters,
    sampling: Sampling,
    bound: int,
    given_multiplier: float | None = None,
) -> Candidate | None:
    """Compute rate, noise and estimated errors of one bound with one way of sampling.

    None if B is more than the number of examples that the bound keeps.

    The estimate is that of a mean of d numbers over T steps. A gradient of squared norm 1 has a part r that all
    of a user's examples share, and a part 1 − r of its own. With m_u examples kept of user u, N users and M of
    them expected in a step:

    examples sampled:  d σ²/(B² T) + (1 − q)/(B T) + (1 − r)/n_G + r Σ m_u²/n_G²,

    users sampled:     d (σ κ/M)²/T + (1 − q) κ²/(M T) + κ²/N,   κ² = r + (1 − r) mean(1/m_u).

    Source: derived here; Charles et al. 2024 (arXiv 2407.07737) compare the two ways by heuristics of their own.

    Args:
        histogram: Of the users' examples.
        parameters: The settings.
        sampling: Examples or users are drawn.
        bound: G, at least 1.
        given_multiplier: The noise multiplier where it is known; by default the quick bound.
    """
    similarity, num_steps = parameters.gradient_similarity, parameters.steps
    num_kept_examples, num_users = float(histogram.count_kept_rows(float(bound))), float(histogram.num_users)
    if parameters.batch_size > num_kept_examples:
        return None
    sampling_rate = min(float(f"{parameters.batch_size / num_kept_examples:.{DIGITS_OF_RATE}g}"), 1.0)
    is_by_user = sampling is Sampling.USERS
    sigma = given_multiplier
    if sigma is None:
        user_move = 1 if is_by_user else bound
        sigma = bound_multiplier(user_move, sampling_rate, parameters.epsilon, parameters.delta, num_steps)
    # Sums over users of 1/m_u and m_u².
    num_capped_users = float(histogram.count_users_above(float(bound)))
    within_mask = histogram.sizes <= bound
    sizes_within, users_within = (
        x[within_mask].astype(np.float64) for x in (histogram.sizes, histogram.users)
    )
    kept_inverse_sum = float((users_within / sizes_within).sum()) + num_capped_users / bound
    kept_square_sum = float((users_within * sizes_within**2).sum()) + num_capped_users * float(bound) ** 2
    if is_by_user:
        gradient_norm = math.sqrt(similarity + (1.0 - similarity) * kept_inverse_sum / num_users)
        gradient_divisor = float(f"{sampling_rate * num_users:.{DIGITS_OF_DIVISOR}g}")
        data_error = gradient_norm / math.sqrt(num_users)
    else:
        gradient_norm, gradient_divisor = 1.0, parameters.batch_size
        shared_variance = similarity * kept_square_sum / num_kept_examples**2
        data_error = math.sqrt((1.0 - similarity) / num_kept_examples + shared_variance)
    noise_std = sigma * gradient_norm / gradient_divisor
    return Candidate(
        sampling=sampling,
        bound=bound,
        kept_share=num_kept_examples / float(histogram.num_rows),
        rate=sampling_rate,
        divisor=gradient_divisor,
        multiplier=sigma,
        is_upper_bound=given_multiplier is None and sampling_rate < 1.0,
        gradient_norm=gradient_norm,
        noise=noise_std,
        noise_error=noise_std * math.sqrt(parameters.dimension / num_steps),
        drawing_error=gradient_norm * math.sqrt((1.0 - sampling_rate) / (gradient_divisor * num_steps)),
        data_error=data_error,
    )


def replace_similarity(
    histogram: ContributionHistogram, parameters: ExamplesParameters, candidate: Candidate, similarity: float
) -> Candidate:
    """Return the candidate as it is at another similarity r, with the same noise multiplier."""
    parameters = replace(parameters, gradient_similarity=similarity)
    candidate_fields = candidate.sampling, candidate.bound, candidate.multiplier
    changed_candidate = evaluate_candidate(histogram, parameters, *candidate_fields)
    assert changed_candidate is not None
    return replace(changed_candidate, is_upper_bound=candidate.is_upper_bound)


@dataclass(frozen=True)
class Comparison:
    """All candidates that were compared, by way of sampling, and the best of the ways that were asked about.

    Attributes:
        candidates_by_sampling: Those that are possible, by way of sampling, ascending in G.
        too_small_bounds: G that keep less than B examples, ascending.
        best_candidate: The candidate of the least estimated error, of the ways that were asked about.
    """

    candidates_by_sampling: dict[Sampling, tuple[Candidate, ...]]
    too_small_bounds: tuple[int, ...]
    best_candidate: Candidate

    def find_near_optimal(self, excess: float = 0.05) -> tuple[int, int]:
        """Return the ends of the interval of G around the best whose error is at most ``excess`` more.

        All are of the best candidate's way of sampling.
        """
        candidates = self.candidates_by_sampling[self.best_candidate.sampling]
        best_index = [candidate.bound for candidate in candidates].index(self.best_candidate.bound)
        near_flags = [
            candidate.error <= (1.0 + excess) * self.best_candidate.error for candidate in candidates
        ]
        indices_below = list(itertools.takewhile(lambda i: near_flags[i], range(best_index, -1, -1)))
        indices_above = list(itertools.takewhile(lambda i: near_flags[i], range(best_index, len(candidates))))
        return candidates[indices_below[-1]].bound, candidates[indices_above[-1]].bound


def compare_candidates(histogram: ContributionHistogram, parameters: ExamplesParameters) -> Comparison:
    """Evaluate all bounds with both ways, and choose the best candidate of the ways that were asked about.

    Raises:
        InvalidInput: B is more than all examples; or no noise keeps ε.
    """
    if parameters.batch_size > histogram.num_rows:
        raise refuse(
            f"the expected batch B = {parameters.batch_size:,.6g} is more than all {histogram.num_rows:,} examples",
            remedy="Take a smaller B",
        )
    compared_bounds = list_bounds(histogram)
    candidates_by_sampling = {
        sampling: tuple(
            candidate
            for bound in compared_bounds
            if (candidate := evaluate_candidate(histogram, parameters, sampling, bound)) is not None
        )
        for sampling in (Sampling.EXAMPLES, Sampling.USERS)
    }
    possible_bounds = {candidate.bound for candidate in candidates_by_sampling[Sampling.EXAMPLES]}
    allowed_candidates = [
        candidate
        for sampling, candidates in candidates_by_sampling.items()
        for candidate in candidates
        # At G = 1 both ways are one mechanism, which is called drawing examples.
        if parameters.sampling is sampling
        or (parameters.sampling is Sampling.BOTH and (sampling is Sampling.EXAMPLES or candidate.bound > 1))
    ]
    too_small_bounds = tuple(bound for bound in compared_bounds if bound not in possible_bounds)
    best_candidate = min(allowed_candidates, key=lambda candidate: candidate.error)
    return Comparison(candidates_by_sampling, too_small_bounds, best_candidate)


def collect_values(candidates: Sequence[Candidate], attribute_name: str) -> FloatArray:
    """Return one attribute of the candidates as floats, shape (candidates,)."""
    return np.array([float(getattr(candidate, attribute_name)) for candidate in candidates])


FORM_BY_TITLE = {"Values, and a check of ε": "values", "Opacus": "opacus", "JAX Privacy": "jax_privacy"}
"""Templates by their shown name."""


@dataclass(frozen=True)
class TrainingConstants:
    """The constants of a training, as they stand in a program.

    Attributes:
        sampling: Who is drawn.
        bound: G.
        rate: q.
        divisor: Of the noisy sum.
        multiplier: σ, over the clip norm.
        epsilon: Promised.
        delta: Likewise.
        num_steps: T.
    """

    sampling: Sampling
    bound: int
    rate: float
    divisor: float
    multiplier: float
    epsilon: float
    delta: float
    num_steps: int


def write_program(program_name: str, training: TrainingConstants, label: str) -> Code:
    """Write one of the programs of `FORM_BY_TITLE` with the constants of a training.

    Args:
        program_name: A key of `FORM_BY_TITLE`.
        training: The constants.
        label: Whether the numbers may be published, a sentence.
    """
    template_name, sampling_rate = FORM_BY_TITLE[program_name], training.rate
    is_by_user = training.sampling is Sampling.USERS
    user_move = 1 if is_by_user else training.bound
    moves, move_probabilities = [0.0, float(user_move)], [0.0, 1.0]
    if sampling_rate < 1.0:
        moves, move_probabilities = truncate_mixture(user_move, sampling_rate)
    # Where a tail was moved G stands behind K, which is then the last k in order.
    last_move_in_order = int(moves[-2] if moves[-1] > len(moves) - 1 else moves[-1])
    constant_names = ("rate", "divisor", "multiplier", "epsilon", "delta")
    program_text = render(
        Path(__file__).with_name(f"{template_name}.py"),
        version=VERSION,
        label=label,
        users=is_by_user,
        bound=training.bound,
        steps=training.num_steps,
        grid=format_digits(choose_grid(training.epsilon, training.num_steps)),
        last=last_move_in_order,
        weights=move_probabilities,
        **{name: format_digits(getattr(training, name)) for name in constant_names},
    )
    return Code(program_text, "python", f"examples_per_user_{template_name}.py", ())


def write_owners_program(bound: int) -> Code:
    """Write the program that keeps at most k records of each owner, for a table of the person's own.

    Args:
        bound: k, records per user.
    """
    program_text = render(Path(__file__).with_name("keep_records.py"), version=VERSION, bound=bound)
    return Code(program_text, "python", "keep_records.py", ())
