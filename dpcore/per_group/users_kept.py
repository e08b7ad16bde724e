"""The exact joint distribution of the number of kept users of each group and of their sum, for private selection.

User u keeps group g with probability p = min(1, L0 / k_u) and then adds m_ug; users are independent. With N the number
of kept users and S their sum, P(n) = P(N = n), A(n) = E[S; N = n] and Q(n) = E[S^2; N = n] are coefficients of
E[z^N e^(sS)] up to s^2, a product over users of 1 - p + p z e^(s m). The product is taken as a binary tree over each
group's users, for many groups at once: polynomials in z multiply by plain convolution while they are short and by the
fast Fourier transform after that, so that a group of n users costs about n log(n)^2, and nothing is approximated. Users
with p = 1 shift N and S, and stay out of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray
from dpcore.per_group.problem import PerGroupProblem

USERS_PER_BLOCK = 1 << 16
"""Users whose polynomials are multiplied together."""
CONVOLUTION_LEVELS = 4
"""Levels of the tree with plain convolution."""


@dataclass(frozen=True, eq=False)
class GroupedPairs:
    """The pairs of a problem sorted by group.

    Attributes:
        group_codes: Group codes, ascending, shape (num_pairs,).
        num_groups_of_user: Number of groups of each pair's user, likewise.
        amounts: Amount of each pair, likewise.
        num_entries: Number of entries of arrays by group.
    """

    group_codes: IntArray
    num_groups_of_user: IntArray
    amounts: FloatArray
    num_entries: int

    @classmethod
    def from_problem(cls, problem: PerGroupProblem) -> GroupedPairs:
        """Sort the pairs of a problem."""
        order_by_group = np.argsort(problem.pairs.group_codes, kind="stable")
        num_groups_of_user = np.repeat(problem.pairs.groups_per_user, problem.pairs.groups_per_user)[
            order_by_group
        ]
        group_codes, amounts = problem.pairs.group_codes[order_by_group], problem.amounts[order_by_group]
        return cls(group_codes, num_groups_of_user, amounts, problem.pairs.num_entries)


@dataclass(frozen=True, eq=False)
class KeptMoments:
    """Every group's probability of being kept under a rule, and the mean of its squared error times 1 if kept, else 0.

    Each has shape (num_entries,).

    Attributes:
        keep_probabilities: Probability that the group is kept.
        kept_squares: Mean square of the kept sum S minus the true total, times 1 if the group is kept and else 0,
            without noise; 0 if it was not asked for.
    """

    keep_probabilities: FloatArray
    kept_squares: FloatArray


def compute_kept_moments(
    grouped_pairs: GroupedPairs,
    max_groups: int,
    rule_tables: npt.ArrayLike,
    max_amount: float | None = None,
    true_totals: FloatArray | None = None,
) -> list[KeptMoments]:
    """Return the moments of every group under each of several selection rules.

    Args:
        grouped_pairs: The pairs of user and group, by group.
        max_groups: L0, at least 1: the users' sample of groups.
        rule_tables: Probability of keeping a group by its number of users, shape (num_rules, most_users + 1).
        max_amount: L-infinity, which clips amounts; None to compute only the probability of keeping.
        true_totals: What S should be, shape (num_entries,); only with ``max_amount``.

    Returns:
        One entry per rule; ``kept_squares`` is 0 if no ``max_amount`` is given.
    """
    rule_tables = np.atleast_2d(np.asarray(rule_tables, dtype=np.float64))
    num_entries, surely_kept_mask = grouped_pairs.num_entries, grouped_pairs.num_groups_of_user <= max_groups
    clipped_amounts = None if max_amount is None else np.minimum(grouped_pairs.amounts, max_amount)
    has_equal_amounts = clipped_amounts is not None and bool(np.ptp(clipped_amounts) == 0.0)
    certain_users, uncertain_users = (
        np.bincount(grouped_pairs.group_codes[pair_mask], minlength=num_entries)
        for pair_mask in (surely_kept_mask, ~surely_kept_mask)
    )
    certain_excesses = np.zeros(num_entries)
    if clipped_amounts is not None:
        assert true_totals is not None
        certain_sums = np.bincount(
            grouped_pairs.group_codes[surely_kept_mask], clipped_amounts[surely_kept_mask], num_entries
        )
        certain_excesses = certain_sums - true_totals
    group_starts = np.cumsum(uncertain_users) - uncertain_users
    sample_probabilities = max_groups / grouped_pairs.num_groups_of_user[~surely_kept_mask]
    random_amounts = (
        None if clipped_amounts is None or has_equal_amounts else clipped_amounts[~surely_kept_mask]
    )
    keep_probabilities, kept_squares = np.zeros((2, rule_tables.shape[0], num_entries))
    for group_codes, max_users_in_batch in _generate_batches(uncertain_users):
        user_positions, kept_counts = np.arange(max_users_in_batch), np.arange(max_users_in_batch + 1)
        present_mask = user_positions < uncertain_users[group_codes, None]
        pair_indices = np.where(present_mask, group_starts[group_codes, None] + user_positions, 0)
        p, m = (
            None if x is None else np.where(present_mask, x[pair_indices] if x.size else 0.0, 0.0)
            for x in (sample_probabilities, random_amounts)
        )
        assert p is not None
        moment_coefficients = _multiply_users(p, m)
        # Counts beyond the users of a group have the coefficient 0, so the table entry there has no effect.
        n = np.minimum(certain_users[group_codes, None] + kept_counts, rule_tables.shape[1] - 1)
        d = certain_excesses[group_codes]
        for rule_index, rule_table in enumerate(rule_tables):
            x = np.einsum("gn,cgn->cg", rule_table[n], moment_coefficients)
            # A probability, up to the rounding of the transform.
            keep_probabilities[rule_index, group_codes] = np.clip(x[0], 0.0, 1.0)
            if clipped_amounts is not None and has_equal_amounts:  # S is a multiple of N.
                squared_errors = (d[:, None] + float(clipped_amounts[0]) * kept_counts) ** 2
                count_weights = rule_table[n] * moment_coefficients[0]
                kept_squares[rule_index, group_codes] = np.einsum("gn,gn->g", count_weights, squared_errors)
            elif clipped_amounts is not None:
                kept_squares[rule_index, group_codes] = x[2] + d * (2.0 * x[1] + d * x[0])
    return [KeptMoments(k, np.maximum(s, 0.0)) for k, s in zip(keep_probabilities, kept_squares, strict=True)]


def _generate_batches(users_per_group: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Yield batches of groups with up to 1, 2, 4, … users to multiply, as many as fit a block, and that width."""
    batch_levels = np.ceil(np.log2(np.maximum(users_per_group, 1))).astype(np.int64)
    ascending_indices = np.argsort(batch_levels, kind="stable")
    level_starts = np.searchsorted(
        batch_levels[ascending_indices], np.arange(batch_levels.max(initial=0) + 2)
    )
    for j, (level_begin, level_end) in enumerate(pairwise(level_starts)):
        batch_size = max(1, USERS_PER_BLOCK >> j)
        for batch_start in range(int(level_begin), int(level_end), batch_size):
            yield ascending_indices[batch_start : min(batch_start + batch_size, int(level_end))], 1 << j


def _multiply_users(keep_probabilities: FloatArray, kept_amounts: FloatArray | None) -> FloatArray:
    """Return the coefficients P(n) of each group by number of kept users, and with amounts also A(n) and Q(n).

    Shape (1, groups, width + 1) without, (3, groups, width + 1) with amounts; the module defines P, A and Q.

    Args:
        keep_probabilities: Probability that each user is kept, 0 for no user, shape (groups, width); width is a power
            of two.
        kept_amounts: Amount of each user; None for P alone.
    """
    num_groups, num_positions = keep_probabilities.shape
    num_moments = 1 if kept_amounts is None else 3
    # Coefficients first, then the users of all groups: every step works on whole rows.
    x = np.zeros((num_moments, 2, num_groups * num_positions))
    kept_probabilities = keep_probabilities.ravel()
    x[0, 0], x[0, 1] = 1.0 - kept_probabilities, kept_probabilities
    if kept_amounts is not None:
        x[1, 1] = kept_probabilities * kept_amounts.ravel()
        x[2, 1] = x[1, 1] * kept_amounts.ravel()
    while x.shape[2] > num_groups and x.shape[1] <= 1 << CONVOLUTION_LEVELS:
        x = _convolve(x[:, :, 0::2], x[:, :, 1::2])
    x = np.ascontiguousarray(x.transpose(0, 2, 1))
    while x.shape[1] > num_groups:
        x = _multiply_by_fft(x[:, 0::2], x[:, 1::2])
    return x


def _convolve(x: FloatArray, y: FloatArray) -> FloatArray:
    """Multiply the polynomials of pairs of users by plain convolution; shape (1 or 3 moments, coefficients, pairs)."""
    num_moments, num_coefficients, num_polynomials = x.shape
    product_coefficients = np.zeros((num_moments, 2 * num_coefficients - 1, num_polynomials))
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    for i in range(num_coefficients):
        coefficient_slice = slice(i, i + num_coefficients)
        product_coefficients[0, coefficient_slice] += x[0, i] * y[0]
        if num_moments == 3:
            product_coefficients[1, coefficient_slice] += x[0, i] * y[1] + x[1, i] * y[0]
            product_coefficients[2, coefficient_slice] += (
                x[0, i] * y[2] + x[2, i] * y[0] + (2.0 * x[1, i]) * y[1]
            )
    return product_coefficients


def _multiply_by_fft(x: FloatArray, y: FloatArray) -> FloatArray:
    """Multiply the polynomials of pairs of users by the fast Fourier transform; coefficients along axis 2."""
    from scipy import fft

    num_moments, _, num_coefficients = x.shape
    product_length = 2 * num_coefficients - 1
    fft_length = fft.next_fast_len(product_length, real=True)
    a, b = fft.rfft(x, fft_length, axis=2), fft.rfft(y, fft_length, axis=2)
    transformed_products = [a[0] * b[0]]
    if num_moments == 3:
        transformed_products += [a[0] * b[1] + a[1] * b[0], a[0] * b[2] + a[2] * b[0] + 2.0 * a[1] * b[1]]
    return np.asarray(fft.irfft(np.array(transformed_products), fft_length, axis=2)[:, :, :product_length])
