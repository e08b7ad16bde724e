"""Privately selected groups: the error with dropped groups as zeros, and the best pair of bounds under it.

Each user keeps L0 of their groups at random. A rule (`selection_rules`) releases a group or not by the number of users
who kept it, with its own share of epsilon and delta. The release is the sum, clipped to L-infinity, plus noise from the
remaining budget. A group that is not released counts as 0, so that its squared error is t^2. Selection and sum depend
on the same users; their noises are independent.

With N_g the users kept, S_g their sum and pi the rule: MSE_g = E[pi(N) (S - t)^2] + P(kept) noise variance
+ (1 - P(kept)) t^2, exactly, from `users_kept`.

Lower bound for L0 in [a, b] and L-infinity in [c, d]. The probability that a group is kept is not monotone in L0: more
users are kept, but each counts in more groups, so the rule becomes stricter. But pi falls in L0 at a fixed number of
users, and the sample for L0 = a is a part of that for b. So, with h(S) = t^2 - (S - t)^2, which rises in S up to t:

- E[pi(N) h(S)] is at most U, the same with pi of a, and the users of b clipped to d;
- P(kept) is at least V, with pi of b and the users of a; and at least E[pi(N) h(S)] / H, H = h(sum of min(c_u, d));
- the noise is at least that of (a, c). Hence MSE_g >= t^2 - U + noise max(V, U / H) where the noise is below H, and
  t^2 - min(U, V H) + noise V otherwise.

In an interval of one pair of bounds this is the error itself, so that branch and bound solves integer bounds exactly.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.common.wording import format_count
from dpcore.contributions import FloatArray
from dpcore.per_group.pair_of_bounds import PairChoice, space_evenly
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection_rules import compute_keep_probabilities
from dpcore.per_group.users_kept import GroupedPairs, KeptMoments, compute_kept_moments
from dpcore.per_group.whole_vector import VectorRule, compute_norms, sum_cut_amounts

SEARCH_TOLERANCE = 1e-3
"""Relative gap of the search."""
MAX_EVALUATIONS = 1_500
NUM_GRID_AMOUNTS = 7
"""Points along each bound of the first grid."""
NUM_NORMS, NORM_RANGE = 24, 1e4
"""Norms of a grid, and the ratio of its ends."""


@dataclass(frozen=True, eq=False)
class SelectedGroups:
    """Every privately selected group's release probability, and the two parts of its mean squared error, which add up.

    Attributes:
        keep_probabilities: Probability that the group is released, shape (num_entries,); as all.
        released_squares: Mean squared error given that it is released, times that probability.
        dropped_squares: t^2 times the probability that it is not.
    """

    keep_probabilities: FloatArray
    released_squares: FloatArray
    dropped_squares: FloatArray

    @property
    def mean_squares(self) -> FloatArray:
        """Return each group's mean squared error; a group that is not released counts as 0."""
        return self.released_squares + self.dropped_squares

    @property
    def num_expected_groups(self) -> float:
        """Return the expected number of released groups."""
        return float(self.keep_probabilities.sum())


class SelectionProblem:
    """A problem whose groups are selected privately, with its pairs sorted by group.

    Args:
        problem: The problem; its parameters name a rule.
        grouped_pairs: Its pairs, already sorted by group, if several problems share them.

    Raises:
        InvalidInput: Its list of groups is public.
    """

    def __init__(self, problem: PerGroupProblem, grouped_pairs: GroupedPairs | None = None) -> None:
        if not problem.parameters.selection.is_private:
            raise refuse("groups of a public list are not selected")
        self.problem, self.parameters = problem, problem.parameters
        self.grouped_pairs = GroupedPairs.from_problem(problem) if grouped_pairs is None else grouped_pairs
        self.max_users_per_group = int(np.bincount(self.grouped_pairs.group_codes).max())
        self.max_groups_per_user = int(self.grouped_pairs.num_groups_of_user.max())
        self.largest_amount = float(self.grouped_pairs.amounts.max())
        self.num_evaluations = 0
        self._keep_probabilities: dict[tuple[int, int], FloatArray] = {}
        self._rule_tables: dict[int, FloatArray] = {}

    def with_epsilon(self, epsilon: float) -> SelectionProblem:
        """Return the same selection problem for another total epsilon, with the same shares for selection and noise."""
        parameters = replace(self.parameters, epsilon=epsilon)
        return SelectionProblem(PerGroupProblem(self.problem.pairs, parameters), self.grouped_pairs)

    def tabulate_rule(self, max_groups: int) -> FloatArray:
        """Return the probability of keeping a group by its number of kept users, shape (max_users_per_group + 1,)."""
        if max_groups not in self._rule_tables:
            self._rule_tables[max_groups] = _tabulate_rule(
                self.parameters, max_groups, self.max_users_per_group
            )
        return self._rule_tables[max_groups]

    def compute_keep_probabilities(self, max_groups: int, rule_max_groups: int | None = None) -> FloatArray:
        """Return the probability that each group is kept, shape (num_entries,).

        Args:
            max_groups: L0 of the users' sample.
            rule_max_groups: L0 of the rule; None for the same.
        """
        sample_and_rule_l0 = max_groups, rule_max_groups or max_groups
        if sample_and_rule_l0 not in self._keep_probabilities:
            rule_table = self.tabulate_rule(sample_and_rule_l0[1])
            moments = compute_kept_moments(self.grouped_pairs, max_groups, rule_table)[0]
            self._keep_probabilities[sample_and_rule_l0] = moments.keep_probabilities
        return self._keep_probabilities[sample_and_rule_l0]

    def evaluate_groups(self, max_groups: int, max_amount: float) -> SelectedGroups:
        """Return the release probability and error of every group under a pair of bounds.

        Args:
            max_groups: L0, whole, at least 1.
            max_amount: L-infinity, above 0, in the statistic's unit.
        """
        moments = self._compute_moments(max_groups, max_groups, max_amount)
        noise_variance = float(self.parameters.compute_pair_noise_std(max_groups, max_amount)) ** 2
        return self._split_errors(moments, noise_variance)

    def _split_errors(self, moments: KeptMoments, noise_variance: float) -> SelectedGroups:
        """Build the groups' release probabilities, and their squared errors by whether they are released or dropped."""
        keep_probabilities = moments.keep_probabilities
        dropped_squares = (1.0 - keep_probabilities) * self.problem.totals**2
        released_squares = moments.kept_squares + keep_probabilities * noise_variance
        return SelectedGroups(keep_probabilities, released_squares, dropped_squares)

    def bound_vectors(self, cut_amounts: FloatArray, max_norm: float, max_groups: int) -> SelectedGroups:
        """Return the release probability and error of every group if only the selection uses a sample.

        Args:
            cut_amounts: Amount of every group that the bound on vectors cuts away, shape (num_entries,).
            max_norm: T, on which the noise depends.
            max_groups: L0 of the selection.
        """
        keep_probabilities = self.compute_keep_probabilities(max_groups)
        return self._split_errors(
            KeptMoments(keep_probabilities, keep_probabilities * cut_amounts**2),
            float(self.parameters.compute_norm_noise_std(max_norm)) ** 2,
        )

    def _compute_moments(self, sample_l0: int, rule_l0: int, max_amount: float) -> KeptMoments:
        """Compute the groups' moments under a sample of one L0 and the rule of another, and cache the probabilities."""
        self.num_evaluations += 1
        moments = compute_kept_moments(
            self.grouped_pairs, sample_l0, self.tabulate_rule(rule_l0), max_amount, self.problem.totals
        )[0]
        self._keep_probabilities[sample_l0, rule_l0] = moments.keep_probabilities
        return moments

    def compute_error(self, max_groups: int, max_amount: float) -> float:
        """Compute the error that the problem minimises, for one pair of bounds L0 and L-infinity."""
        return self.problem.combine_errors(self.evaluate_groups(max_groups, max_amount).mean_squares)

    def evaluate_at(self, epsilons: FloatArray, max_groups: int, max_amount: float) -> list[SelectedGroups]:
        """Return the release probability and error of every group at other epsilons, for a fixed pair of bounds.

        Args:
            epsilons: Budgets of selection and noise together, shape (n,).
            max_groups: As `evaluate_groups`.
            max_amount: As `evaluate_groups`.
        """
        epsilon_parameters = [replace(self.parameters, epsilon=float(e)) for e in epsilons]
        rule_tables = [
            _tabulate_rule(parameters, max_groups, self.max_users_per_group)
            for parameters in epsilon_parameters
        ]
        epsilon_moments = compute_kept_moments(
            self.grouped_pairs, max_groups, rule_tables, max_amount, self.problem.totals
        )
        noise_variances = [
            float(parameters.compute_pair_noise_std(max_groups, max_amount)) ** 2
            for parameters in epsilon_parameters
        ]
        return [
            self._split_errors(moments, noise_variance)
            for moments, noise_variance in zip(epsilon_moments, noise_variances, strict=True)
        ]

    def compute_lower_bound(self, l0_range: tuple[int, int], amount_range: tuple[float, float]) -> float:
        """Return a lower bound on the objective of every pair in a box: L0 and L-infinity in closed intervals."""
        (a, b), (c, d), t2 = l0_range, amount_range, self.problem.totals**2
        # The sample of b under the rule of a keeps at least as much as every pair in the box; below, the sample of a
        # under the rule of b keeps at most as much. U, V and H are those of the module.
        most_kept_moments = self._compute_moments(b, a, d)
        # U = E[pi h(S)] = P t^2 - E[pi (S - t)^2].
        u = np.maximum(most_kept_moments.keep_probabilities * t2 - most_kept_moments.kept_squares, 0.0)
        v = self.compute_keep_probabilities(a, b)
        noise_variance = float(self.parameters.compute_pair_noise_std(a, c)) ** 2
        if noise_variance == 0.0:
            return self.problem.combine_errors(t2 - u)
        cut_amounts = self.problem.sum_by_group(np.maximum(self.problem.amounts - d, 0.0))
        h = np.maximum(t2 - cut_amounts**2, 0.0)
        least_keep_probabilities = np.divide(u, h, out=np.zeros_like(u), where=h > 0.0)
        squares_if_small_noise = t2 - u + noise_variance * np.maximum(v, least_keep_probabilities)
        squares_if_large_noise = t2 - np.minimum(u, v * h) + noise_variance * v
        mean_squares = np.where(noise_variance < h, squares_if_small_noise, squares_if_large_noise)
        return self.problem.combine_errors(np.maximum(mean_squares, 0.0))


def _tabulate_rule(parameters: PerGroupParameters, max_groups: int, max_users: int) -> FloatArray:
    """Return the probability of keeping a group by its number of kept users, shape (max_users + 1,)."""
    assert parameters.selection_delta is not None
    epsilon_delta = parameters.selection_epsilon, parameters.selection_delta
    program_options: dict[str, Any] = {"min_users": parameters.min_users or 1, "program": parameters.program}
    return compute_keep_probabilities(
        parameters.selection, *epsilon_delta, max_groups, max_users, **program_options
    )


def find_best_selected_pair(
    selection: SelectionProblem,
    *,
    tolerance: float = SEARCH_TOLERANCE,
    max_evaluations: int = MAX_EVALUATIONS,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> PairChoice:
    """Return the best pair of bounds for privately selected groups, with the gap that the search has proved.

    Args:
        selection: The question.
        tolerance: Relative gap at which it stops.
        max_evaluations: Evaluations of the error or its bound after which it stops with its present gap.
        progress: Called with the share of ``max_evaluations`` that is done.
        should_stop: Called after every evaluation.

    Returns:
        `PairChoice`; in its error dropped groups count as 0.
    """
    evaluations_before = selection.num_evaluations
    search = _Search(selection)

    def is_over() -> bool:
        """Report the progress, and return True if the evaluations are used up or the search was stopped."""
        num_done = selection.num_evaluations - evaluations_before
        progress(min(num_done / max_evaluations, 1.0))
        return num_done >= max_evaluations or should_stop()

    search.begin(is_over)
    while search.heap and search.heap[0][0] < search.best_error * (1.0 - tolerance) and not is_over():
        search.split(tolerance)
    (max_groups, max_amount), best_error = search.best_bounds, search.best_error
    lower_bound = min([best_error, *(box_bound for box_bound, _, _ in search.heap), search.closed_bound])
    certificate_argument = (
        "in every box, the users kept at one end and the rule at the other bound what is kept"
    )
    certificate = Certificate(best_error, lower_bound, certificate_argument)
    num_done = selection.num_evaluations - evaluations_before
    is_settled = certificate.proves(max(tolerance, 1e-12) * (1.0 + 1e-9))
    if not is_settled:
        stop_reason = f"Stopped after {format_count(num_done, 'evaluation')}; the certificate has the gap."
    elif max_groups:
        stop_reason = f"Within {tolerance:g} of the best pair, after {num_done:,} evaluations."
    else:
        stop_reason = f"Nothing useful can be released: within {tolerance:g}, publishing no group is best."
    return PairChoice(max_groups, max_amount, best_error, certificate, num_done, stop_reason, is_settled)


class _Search:
    """Branch and bound over boxes of both bounds, in a heap by their lower bound.

    Attributes:
        selection: The problem.
        is_integer: True if L-infinity is a whole number.
        best_error: The smallest error so far, at first that of releasing nothing.
        best_bounds: L0 and L-infinity with that error; (0, 0.0) for releasing nothing.
        heap: Open boxes as (lower bound on the error, interval of L0, interval of L-infinity).
        closed_bound: Smallest lower bound of the boxes that were closed since they are too narrow; infinity for none.
    """

    def __init__(self, selection: SelectionProblem) -> None:
        self.selection, self.is_integer = selection, selection.parameters.statistic.is_integer
        self.best_error, self.best_bounds = selection.problem.error_of_nothing, (0, 0.0)
        self.heap: list[tuple[float, tuple[int, int], tuple[float, float]]] = []
        self.closed_bound = math.inf
        self._evaluated_pairs: set[tuple[int, float]] = set()

    def evaluate(self, max_groups: int, max_amount: float) -> float:
        """Return the error of a pair that is first moved into the range of bounds; infinity if it was evaluated before.

        The pair is kept if its error is the smallest so far.
        """
        if self.is_integer:
            max_amount = float(round(max_amount))
        max_groups = min(max(max_groups, 1), self.selection.max_groups_per_user)
        smallest_amount = 1.0 if self.is_integer else self.selection.largest_amount * 1e-9
        max_amount = min(max(max_amount, smallest_amount), self.selection.largest_amount)
        if (max_groups, max_amount) in self._evaluated_pairs:
            return math.inf
        self._evaluated_pairs.add((max_groups, max_amount))
        pair_error = self.selection.compute_error(max_groups, max_amount)
        if pair_error < self.best_error:
            self.best_error, self.best_bounds = pair_error, (max_groups, max_amount)
        return pair_error

    def begin(self, is_over: ShouldStop) -> None:
        """Evaluate a grid of pairs and steps from its best one, until ``is_over``; then add the whole range as one box.

        If all amounts are 0, nothing is done.
        """
        s = self.selection
        if s.largest_amount == 0.0:  # All amounts are 0, so all bounds are equally good.
            return
        smallest_amount = 1.0 if self.is_integer else s.largest_amount / 1e3
        grid_amounts = np.unique(np.geomspace(smallest_amount, s.largest_amount, NUM_GRID_AMOUNTS)).tolist()
        for max_amount, max_groups in product(
            grid_amounts, space_evenly(s.max_groups_per_user, NUM_GRID_AMOUNTS)
        ):
            if is_over():
                break
            self.evaluate(max_groups, max_amount)
        step_ratio = 2.0
        while step_ratio > 1.05 and self.best_bounds[0] and not is_over():
            (g, c), previous_error = self.best_bounds, self.best_error
            for a, b in (
                (step_ratio, 1.0),
                (1.0 / step_ratio, 1.0),
                (1.0, step_ratio),
                (1.0, 1.0 / step_ratio),
            ):
                self.evaluate(round(g * a), c * b)
            if self.best_error >= previous_error:
                step_ratio = math.sqrt(step_ratio)
        self._add((1, s.max_groups_per_user), (1.0 if self.is_integer else 0.0, s.largest_amount))

    def _add(self, l0_range: tuple[int, int], amount_range: tuple[float, float]) -> None:
        """Evaluate a box that is a single pair; of a larger box, compute a lower bound on its error.

        The larger box is kept if its bound is below the best error so far. An empty box is ignored.
        """
        if l0_range[0] > l0_range[1] or amount_range[0] > amount_range[1]:
            return
        if l0_range[0] == l0_range[1] and amount_range[0] == amount_range[1]:
            self.evaluate(l0_range[0], amount_range[0])
            return
        error_bound = self.selection.compute_lower_bound(l0_range, amount_range)
        if error_bound < self.best_error:
            heapq.heappush(self.heap, (error_bound, l0_range, amount_range))

    def split(self, tolerance: float) -> None:
        """Halve the box with the smallest lower bound where its ends differ most in ratio; close it if too narrow.

        Of a box that is closed, the larger pair is evaluated, and the lower bound is kept.
        """
        error_bound, l0_range, amount_range = heapq.heappop(self.heap)
        (a, b), (c, d) = l0_range, amount_range
        amount_ratio = d / c if c > 0.0 else math.inf
        if b / a >= amount_ratio:
            middle_groups = min(max(math.isqrt(a * b), a), b - 1)
            self._add((a, middle_groups), amount_range)
            self._add((middle_groups + 1, b), amount_range)
        elif self.is_integer:
            middle_amount = min(max(float(math.floor(math.sqrt(c * d))), c), d - 1.0)
            self._add(l0_range, (c, middle_amount))
            self._add(l0_range, (middle_amount + 1.0, d))
        elif amount_ratio < 1.0 + tolerance * 1e-2:  # A narrower box would not improve the bound.
            self.evaluate(b, d)
            self.closed_bound = min(self.closed_bound, error_bound)
        else:
            middle_amount = math.sqrt(c * d) if c > 0.0 else d / 8.0
            self._add(l0_range, (c, middle_amount))
            self._add(l0_range, (middle_amount, d))


@dataclass(frozen=True)
class SelectedVector:
    """A bound on each user's whole vector of amounts, with an L0 for the selection alone.

    Attributes:
        max_groups: L0 of the selection's sample.
        max_norm: T, of the L1 norm with Laplace, of the L2 norm with Gaussian noise.
        vector_rule: How the norm is bounded.
        error: The problem's objective; dropped groups count as 0.
        num_evaluations: Number of evaluated triples; there is no proof that none is better.
    """

    max_groups: int
    max_norm: float
    vector_rule: VectorRule
    error: float
    num_evaluations: int


def find_best_selected_vector(
    selection: SelectionProblem, should_stop: ShouldStop = never
) -> SelectedVector | None:
    """Return the best bound on whole vectors of a grid of norms and L0, where only the selection uses a sample.

    Selection and sum are then independent, and the noise does not grow with the L0 of the selection. The mechanism adds
    noise to every possible group and publishes those that are selected.

    Returns:
        None if releasing nothing is better, or if it was stopped before the first evaluation.
    """
    problem = selection.problem
    largest_norm = float(compute_norms(problem).max())
    if largest_norm == 0.0:
        return None
    selected_vector: SelectedVector | None = None
    num_evaluations = 0

    def evaluate(
        vector_rules: Iterable[VectorRule], max_norms: FloatArray, group_bounds: Iterable[int]
    ) -> None:
        """Evaluate every rule with every T and L0, and keep the best; end where ``should_stop`` says so."""
        nonlocal selected_vector, num_evaluations
        for vector_rule, norm in product(vector_rules, max_norms.tolist()):
            if should_stop():
                return
            cut_amounts = sum_cut_amounts(problem, vector_rule, norm)
            for max_groups in group_bounds:
                selected_groups = selection.bound_vectors(cut_amounts, norm, max_groups)
                vector_error = problem.combine_errors(selected_groups.mean_squares)
                num_evaluations += 1
                if vector_error < (
                    problem.error_of_nothing if selected_vector is None else selected_vector.error
                ):
                    selected_vector = SelectedVector(
                        max_groups, norm, vector_rule, vector_error, num_evaluations
                    )

    most_groups = selection.max_groups_per_user
    grid_norms = np.geomspace(largest_norm / NORM_RANGE, largest_norm, NUM_NORMS)
    evaluate(VectorRule, grid_norms, space_evenly(most_groups, 2 * NUM_GRID_AMOUNTS))
    if selected_vector is None:
        return None
    # Between the neighbours of the best norm, at L0 next to the best one.
    norm_ratio, best_l0 = NORM_RANGE ** (1.0 / (NUM_NORMS - 1)), selected_vector.max_groups
    norms_nearby = np.geomspace(
        selected_vector.max_norm / norm_ratio, selected_vector.max_norm * norm_ratio, NUM_NORMS
    )
    l0s_nearby = range(max(best_l0 - 2, 1), min(best_l0 + 2, most_groups) + 1)
    evaluate([selected_vector.vector_rule], norms_nearby, l0s_nearby)
    return replace(selected_vector, num_evaluations=num_evaluations)
