"""Bias, sampling variance and noise of every group if each user keeps a few random groups and clips in each.

User u has amounts c_ug in k_u groups. They keep min(L0, k_u) of these at random, each set equally likely, and at most
L-infinity in each, on either side of 0: R_g = sum_u B_ug clip(c_ug) + noise, with B_ug a Bernoulli variable of
p_u = min(1, L0 / k_u). The B_ug of different users are independent, and a group has one per user, so the variance of
R_g is a sum over users. The dependence between a user's groups matters only for functions of several groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.per_group.problem import PerGroupProblem


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """The exact first two moments of every group's release minus its true value, shape (num_entries,).

    Attributes:
        clipped_amounts: Amount that L-infinity cuts away; the bias is minus the sum of both. For sums of any sign both
            can be negative.
        left_out_amounts: Mean amount, after clipping, that L0 leaves out.
        sampling_variances: Variance from the random choice of groups.
        noise_variance: Variance of the noise, the same in every group.
    """

    clipped_amounts: FloatArray
    left_out_amounts: FloatArray
    sampling_variances: FloatArray
    noise_variance: float

    @property
    def biases(self) -> FloatArray:
        """Return the mean of each group's release minus its true value; at most 0, except for sums of any sign."""
        return -(self.clipped_amounts + self.left_out_amounts)

    @property
    def mean_squares(self) -> FloatArray:
        """Return each group's mean squared error."""
        return self.biases**2 + self.sampling_variances + self.noise_variance


def compute_moments(problem: PerGroupProblem, max_groups: int, max_amount: float) -> GroupMoments:
    """Return the moments of every group's error under a pair of bounds.

    Args:
        problem: The question.
        max_groups: L0, groups per user, whole, at least 1.
        max_amount: L-infinity per user and group, in the statistic's unit, at least 0.
    """
    amounts = problem.amounts
    keep_probabilities, drop_probabilities = problem.pairs.compute_sample_probabilities(max_groups)
    clipped_amounts = np.clip(amounts, -max_amount, max_amount)
    return GroupMoments(
        clipped_amounts=problem.sum_by_group(amounts - clipped_amounts),
        left_out_amounts=problem.sum_by_group(drop_probabilities * clipped_amounts),
        sampling_variances=problem.sum_by_group(keep_probabilities * drop_probabilities * clipped_amounts**2),
        noise_variance=float(problem.parameters.compute_pair_noise_std(max_groups, max_amount)) ** 2,
    )


def compute_pair_error(problem: PerGroupProblem, max_groups: int, max_amount: float) -> float:
    """Compute the error that the problem minimises, for one pair of bounds L0 and L-infinity."""
    return problem.combine_errors(compute_moments(problem, max_groups, max_amount).mean_squares)


@dataclass(frozen=True)
class ErrorParts:
    """The parts of the error under a pair of bounds, in its unit; they add up to the error.

    The squared error of a group is bias^2 + sampling variance + noise variance. The bias is the sum of the clipped and
    the left-out amount; bias^2 is divided between the two in proportion to these.

    Attributes:
        clipping_part: From L-infinity.
        omission_part: From L0, the bias.
        sampling_part: From L0, the random choice of groups.
        noise_part: From the noise.
    """

    clipping_part: float
    omission_part: float
    sampling_part: float
    noise_part: float

    @property
    def total(self) -> float:
        """Return the error, the sum of the parts."""
        return self.clipping_part + self.omission_part + self.sampling_part + self.noise_part


def compute_error_parts(problem: PerGroupProblem, max_groups: int, max_amount: float) -> ErrorParts:
    """Split the error that the problem minimises into clipping, left-out groups, sampling and noise.

    It is computed for one pair of bounds L0 and L-infinity.
    """
    m = compute_moments(problem, max_groups, max_amount)
    weights_of_squares = problem.parameters.divide_weights(m.mean_squares, problem.weights)
    lost_amounts = m.clipped_amounts + m.left_out_amounts
    return ErrorParts(
        clipping_part=float(weights_of_squares @ (m.clipped_amounts * lost_amounts)),
        omission_part=float(weights_of_squares @ (m.left_out_amounts * lost_amounts)),
        sampling_part=float(weights_of_squares @ m.sampling_variances),
        noise_part=float(weights_of_squares.sum()) * m.noise_variance,
    )
