"""Bounds on the rows of a user in a training, and the noise of all its steps.

Each method bounds the rows of a user before gradients are summed, and so how far one user can move the sum. Weights are
not divided by their sum. If counts are private, that sum moves with a user. A mean divided by it can move by up to
twice the largest share, even if one user is only added. So the sum of gradients gets the noise, and the sum of weights
is public, or gets noise of its own (`account`).

All steps, and the sum of weights where it is private, are one Gaussian mechanism. A sequence of Gaussian mechanisms,
each chosen in the light of those before, with sensitivities Δ_k and standard deviations σ_k is exactly as private as
one Gaussian mechanism with (Δ/σ)² = Σ (Δ_k/σ_k)² (Dong, Roth, Su 2022, corollary 3.3). So the noise of T equal steps
is √T times that of one, and nothing is lost in composition.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.common.branch_and_bound import find_least_noise
from dpcore.common.checks import Problems
from dpcore.common.parameters import Option
from dpcore.common.privacy import GaussianNoise, Neighbours, bound_sampled_epsilon
from dpcore.contributions import FloatArray, IntArray, rank_within_users
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows


class Method(Option):
    """The rule that keeps a user within the bound h, and the mechanism that trains with it."""

    FOLLOWED = "followed clipped sum", "Clipped sum, adaptive bound"
    SMOOTH = "smooth weights", "Smooth weights"
    CAP = "cap", "Cap, random rows"
    CLIPPED_SUM = "clipped sum", "Clipped sum"
    OUTPUT = "output perturbation", "Output perturbation"


FIRST_BOUND = 0.25
"""Least first bound of followed clipped sums, in rows: it moves to where the users are."""


@dataclass(frozen=True)
class Cell:
    """One row of the table: a method at a bound, with the clip of rows' gradients.

    Attributes:
        method: How a user is bounded, and what trains the model.
        bound: h, in rows: real and above 0 for weights and clipped sums, whole and at least 1 for a cap. Smooth
            weights of h at most 1 average each user's rows (Epasto et al. 2020, claim 1, where every user has a
            row); any method of h at least the largest user bounds nobody. Followed clipped sums begin there or above.
        clip: Norm to which a row's gradient is shortened, over that of the mechanism, in (0, 1]: below 1 it is to
            weights and caps what a bound below 1 is to clipped sums.

    Raises:
        InvalidInput: The bound does not suit the method, or the clip is out of range.
    """

    method: Method
    bound: float = FIRST_BOUND
    clip: float = 1.0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if the bound does not suit the method or the clip is out of range; make both floats."""
        with Problems() as problems:
            if self.method is Method.CAP:
                problems.whole(1, 10**12, cap=self.bound)
            else:
                problems.positive(bound=self.bound)
            problems.between(1e-6, 1.0, clip=self.clip)
        object.__setattr__(self, "bound", float(self.bound))
        object.__setattr__(self, "clip", float(self.clip))

    @property
    def reach(self) -> float:
        """Return the most that one user adds to a step's summed gradient, in rows: bound times clip."""
        return self.bound * self.clip


def list_doubled_cells(max_size: int, includes_output_perturbation: bool) -> tuple[Cell, ...]:
    """List the cells of a descent by the rule: one of followed clipped sums; of other methods, bounds that double.

    The bounds are the powers of two below ``max_size``, and ``max_size``, which bounds nobody. Smooth weights, caps and
    clipped sums also have fractions of a row, which shorten the gradient of every row for weights and caps, and a
    user's sum for clipped sums.

    Args:
        max_size: Rows of the largest user.
        includes_output_perturbation: True for output perturbation as well.
    """
    num_powers = math.ceil(math.log2(max(max_size, 1)))
    doubled_bounds = [*(2.0**exponent for exponent in range(num_powers)), float(max_size)]
    clips_below_one_row = (0.25, 0.5)
    cells = [Cell(Method.FOLLOWED)]
    for method in (Method.SMOOTH, Method.CAP):
        cells += [Cell(method, 1.0, clip) for clip in clips_below_one_row]
        cells += [Cell(method, bound) for bound in doubled_bounds]
    cells += [Cell(Method.CLIPPED_SUM, bound) for bound in (0.125, *clips_below_one_row, *doubled_bounds)]
    if includes_output_perturbation:
        cells += [Cell(Method.OUTPUT, bound) for bound in doubled_bounds]
    return tuple(cells)


def list_bounds(max_size: int) -> tuple[int, ...]:
    """List up to 13 whole bounds from 1 to ``max_size``, ascending: 1 to 4, then evenly spaced on a log axis."""
    spaced_bounds = np.round(np.geomspace(1.0, max(max_size, 1), 9)).astype(int)
    return tuple(sorted({*range(1, min(max_size, 4) + 1), *spaced_bounds.tolist()}))


def compute_smooth_weights(sizes: IntArray, bound: float) -> FloatArray:
    """Compute the weight of each row of a user, by user: min(h, s) / s, so that a user weighs min(h, s).

    Source: Epasto et al. 2020, claim 1 and appendix E.2, before the division by the sum of all.
    """
    return np.asarray(np.minimum(bound, sizes) / sizes)


def draw_ranks(rows: ClassifierRows, seed: int, run_numbers: Sequence[int]) -> IntArray:
    """Rank each user's rows 0, 1, 2 … in a random order, anew for every run, shape (num_rows, runs).

    A cap of h keeps ranks below h. The order of a run depends only on the seed and the number of the run. In
    distribution, a user's order does not depend on other users' presence. So a cap drawn here is as private as one
    drawn in advance.
    """
    ranks_per_run = np.empty((rows.num_rows, len(run_numbers)), dtype=np.int64)
    for run_index, run_number in enumerate(run_numbers):
        random_keys = np.random.default_rng([seed, 1, run_number]).random(rows.num_rows)
        ranks_per_run[:, run_index] = rank_within_users(rows.user_codes, random_keys)
    return ranks_per_run


def get_gradient_sensitivity(neighbours: Neighbours) -> float:
    """Return how many bounds one user moves the summed gradient: 1 if a user comes or goes, 2 if one is replaced."""
    return 1.0 if neighbours is Neighbours.ADD_OR_REMOVE_USER else 2.0


def compute_weight_sensitivity(neighbours: Neighbours, bound: float) -> float:
    """Return the most that one user moves the sum of weights, in rows; 0 if that sum is public.

    A user weighs min(h, s) with s at least 1. A user who is added adds at most h. One who is replaced keeps at least
    min(h, 1), so averages (h at most 1) have a sum that does not move.
    """
    if neighbours is Neighbours.ADD_OR_REMOVE_USER:
        return bound
    return max(bound - 1.0, 0.0) if neighbours is Neighbours.REPLACE_USER else 0.0


WEIGHT_SUM_BUDGET_SHARE = 0.05
"""Share of the budget, in (Δ/σ)², for a private sum of weights; chosen on no data."""


@dataclass(frozen=True)
class NoisePlan:
    """Standard deviations of the noise of one training with entered steps.

    Attributes:
        gradient_noise_std: Of the noise on each coordinate of a step's summed gradient (rows × clip).
        weight_noise_std: Of the noise on the sum of weights, in rows; 0 where the sum is public.
    """

    gradient_noise_std: float
    weight_noise_std: float


def plan_noise(mechanism: Mechanism, bound: float) -> NoisePlan:
    """Compute the least noise at which all entered steps and the sum of weights are (ε, δ)-DP together.

    Args:
        mechanism: With the steps as they are entered.
        bound: h, what a user weighs at most, in rows.

    Returns:
        Standard deviations that are never too small: what is rounded is rounded upwards.

    Raises:
        InvalidInput: ε or δ out of range.

    Source: Dong, Roth and Su 2022, corollary 3.3, for the steps together; Balle and Wang 2018, theorem 8, for the one
        Gaussian; Doroshenko et al. 2022, by dp-accounting, where users are sampled.
    """
    unit_noise = GaussianNoise.for_release(1.0, mechanism.epsilon, mechanism.delta).scale
    gradient_sensitivity = get_gradient_sensitivity(mechanism.neighbours) * bound * mechanism.clip
    weight_sensitivity = compute_weight_sensitivity(mechanism.neighbours, bound)
    weight_sum_budget_share = WEIGHT_SUM_BUDGET_SHARE if weight_sensitivity else 0.0
    # The whole (Δ/σ)² is 1 / std_for_sensitivity_1²: the steps take 1 - share of it, and the sum of weights the rest.
    step_noise_multiplier = unit_noise * math.sqrt(mechanism.steps / (1.0 - weight_sum_budget_share))
    if mechanism.sampled < 1.0:
        weight_multiplier = unit_noise / math.sqrt(weight_sum_budget_share) if weight_sensitivity else 0.0
        step_noise_multiplier = _find_sampled_multiplier(mechanism, weight_multiplier, step_noise_multiplier)
    # With a share of the users, the same share of the noise makes a mean gradient as noisy as with all of them.
    return NoisePlan(
        gradient_noise_std=mechanism.user_share * (step_noise_multiplier * gradient_sensitivity),
        weight_noise_std=mechanism.user_share
        * (unit_noise * weight_sensitivity / math.sqrt(weight_sum_budget_share))
        if weight_sensitivity
        else 0.0,
    )


@functools.lru_cache(maxsize=256)
def _find_sampled_multiplier(
    mechanism: Mechanism, weight_multiplier: float, multiplier_without_sampling: float
) -> float:
    """Find the least noise multiplier at which steps on random users stay within ε; rounded up by at most 0.1 %.

    Each user takes part in a step with the same probability. ``multiplier_without_sampling``, the multiplier if all
    users take part in every step, is the most that it can be.
    """
    # A grid of a thousandth of a small ε would take minutes; the rounding is upwards, so it only costs noise.
    grid_distance = min(1e-3, max(mechanism.epsilon / 1000.0, 1e-4))

    def compute_epsilon(multiplier: float) -> float:
        """Return the ε of all steps and the sum of weights together at a noise multiplier, rounded up."""
        return bound_sampled_epsilon(
            multiplier, mechanism.sampled, mechanism.steps, weight_multiplier, mechanism.delta, grid_distance
        )

    # By the grid's rounding, if nearly everybody is sampled, or if ε is tiny.
    if compute_epsilon(multiplier_without_sampling) > mechanism.epsilon:
        return multiplier_without_sampling
    # Many steps that each sample a share spend about as much as steps whose sensitivity is that share.
    first_multiplier = max(mechanism.sampled, 0.05) * multiplier_without_sampling
    return min(
        find_least_noise(compute_epsilon, mechanism.epsilon, first_multiplier, 1e-3),
        multiplier_without_sampling,
    )


NUM_USERS_BUDGET_SHARE = 0.03
"""Share of the budget for a private number of users, in a descent by the rule."""
COUNTS_BUDGET_SHARE = 0.03
"""Share of the budget for counting the users within the bound in every step."""


@dataclass(frozen=True)
class RulePlan:
    """Standard deviations of the noise of a descent by the rule of `mechanism`.

    The bound may change from step to step, so that the noise of a gradient is given as its ratio to the bound.

    Attributes:
        unit_noise: κ, of one release of the whole budget that a user moves by 1 (by 2 where a user is replaced).
        direction_noise_std: Of the noise of a step's summed gradient over the bound.
        count_noise_std: Of the noise on how many users are within the bound, less half of all; 0 where
            it is not asked.
        num_users_noise_std: Of the noise on the number of users; 0 where it is public.
    """

    unit_noise: float
    direction_noise_std: float
    count_noise_std: float
    num_users_noise_std: float

    @property
    def bound_follows(self) -> bool:
        """Return True if the users within the bound are counted in every step, so that the bound adapts to them."""
        return self.count_noise_std > 0.0


def split_budget(neighbours: Neighbours, bound_follows: bool) -> tuple[float, float, float]:
    """Return the budget shares, in (Δ/σ)², of all gradients, all counts of users within the bound, and number of users.

    The second is 0 if the bound is fixed, the third if the number of users is public.
    """
    num_users_share = NUM_USERS_BUDGET_SHARE if neighbours is Neighbours.ADD_OR_REMOVE_USER else 0.0
    count_share = COUNTS_BUDGET_SHARE if bound_follows else 0.0
    return 1.0 - count_share - num_users_share, count_share, num_users_share


def plan_rule_noise(mechanism: Mechanism, bound_follows: bool) -> RulePlan:
    """Compute the least noise at which all gradients, all counts and the number of users are (ε, δ)-DP together.

    The bound of a step may depend on all earlier releases. The account uses the ratio of a user's effect on a sum to
    its noise, which is the same at every bound. A user within the bound or beyond it moves a count, less half of all,
    by half of what a user moves a sum over the bound; and the number of users by one.

    Args:
        mechanism: Of a first look at a share of the users, the noise is that share of it, and no privacy.
        bound_follows: Whether the bound follows a private count.

    Source: Dong, Roth and Su 2022, corollary 3.3 (each mechanism may be chosen in the light of those before); Balle and
        Wang 2018, theorem 8.
    """
    std_for_sensitivity_1 = GaussianNoise.for_release(1.0, mechanism.epsilon, mechanism.delta).scale
    unit_noise = get_gradient_sensitivity(mechanism.neighbours) * mechanism.user_share * std_for_sensitivity_1
    gradient_share, count_share, num_users_share = split_budget(mechanism.neighbours, bound_follows)
    return RulePlan(
        unit_noise=unit_noise,
        direction_noise_std=unit_noise * math.sqrt(mechanism.steps / gradient_share),
        count_noise_std=0.5 * unit_noise * math.sqrt(mechanism.steps / count_share) if count_share else 0.0,
        num_users_noise_std=unit_noise / math.sqrt(num_users_share) if num_users_share else 0.0,
    )
