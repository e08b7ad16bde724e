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

import numpy as np

from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.checks import refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.per_group.pair_of_bounds import PairChoice, space_evenly
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem
from dpcore.per_group.selection_rules import compute_keep_probabilities
from dpcore.per_group.users_kept import KeptMoments, PairsByGroup, compute_kept_moments
from dpcore.per_group.whole_vector import VectorRule, compute_norms, sum_cut_amounts

TOLERANCE = 1e-3
"""Relative gap of the search."""
MAX_EVALUATIONS = 1_500
GRID = 7
"""Points along each bound of the first grid."""
NORMS, NORM_RANGE = 24, 1e4
"""Norms of a grid, and the ratio of its ends."""


@dataclass(frozen=True, eq=False)
class SelectedGroups:
    """The release probability and error of every privately selected group; each of shape (num_entries,).

    Attributes:
        keep_probability: Probability that the group is released.
        error_kept: Mean squared error given that it is released, times that probability.
        error_lost: t^2 times the probability that it is not.
    """

    keep_probability: FloatArray
    error_kept: FloatArray
    error_lost: FloatArray

    @property
    def mean_squares(self) -> FloatArray:
        """Return the mean squared error; a group that is not released counts as 0."""
        return self.error_kept + self.error_lost

    @property
    def expected_groups(self) -> float:
        """Return the expected number of released groups."""
        return float(self.keep_probability.sum())


class Selection:
    """A problem whose groups are selected privately, with its pairs sorted by group.

    Args:
        problem: The problem; its parameters name a rule.
        pairs: Its pairs, already sorted by group, if several problems share them.

    Raises:
        InvalidInput: Its list of groups is public.
    """

    def __init__(self, problem: PerGroupProblem, pairs: PairsByGroup | None = None) -> None:
        if not problem.parameters.selection.is_private:
            raise refuse("groups of a public list are not selected")
        self.problem, self.parameters = problem, problem.parameters
        self.pairs = PairsByGroup.from_problem(problem) if pairs is None else pairs
        self.most_users = self.pairs.most_users
        self.most_groups = int(self.pairs.user_group_counts.max())
        self.largest_amount = float(self.pairs.amounts.max())
        self.evaluations = 0
        self._kept: dict[tuple[int, int], FloatArray] = {}
        self._tables: dict[int, FloatArray] = {}

    def with_epsilon(self, epsilon: float) -> Selection:
        """Return the problem with another epsilon and the same shares of selection and noise."""
        parameters = replace(self.parameters, epsilon=epsilon)
        return Selection(PerGroupProblem(self.problem.pairs, parameters), self.pairs)

    def tabulate_rule(self, max_groups: int) -> FloatArray:
        """Return the probability of keeping a group by its number of kept users, shape (most_users + 1,)."""
        if max_groups not in self._tables:
            self._tables[max_groups] = _table(self.parameters, max_groups, self.most_users)
        return self._tables[max_groups]

    def keep_probability(self, max_groups: int, rule_of: int | None = None) -> FloatArray:
        """Return the probability that each group is kept, shape (num_entries,).

        Args:
            max_groups: L0 of the users' sample.
            rule_of: L0 of the rule; None for the same.
        """
        key = max_groups, max_groups if rule_of is None else rule_of
        if key not in self._kept:
            moments = compute_kept_moments(self.pairs, max_groups, self.tabulate_rule(key[1]))
            self._kept[key] = moments[0].keep_probability
        return self._kept[key]

    def evaluate_groups(self, max_groups: int, max_amount: float) -> SelectedGroups:
        """Return the release probability and error of every group under a pair of bounds.

        Args:
            max_groups: L0, whole, at least 1.
            max_amount: L-infinity, above 0, in the statistic's unit.
        """
        moments = self._moments(max_groups, max_groups, max_amount)
        noise = float(self.parameters.pair_noise(max_groups, max_amount)) ** 2
        return self._split_errors(moments, noise)

    def _split_errors(self, moments: KeptMoments, noise: float) -> SelectedGroups:
        share = moments.keep_probability
        lost = (1.0 - share) * self.problem.totals**2
        return SelectedGroups(share, moments.square + share * noise, lost)

    def bound_vectors(self, missing: FloatArray, max_norm: float, max_groups: int) -> SelectedGroups:
        """Return the release probability and error of every group if only the selection uses a sample.

        Args:
            missing: Amount of every group that the bound on vectors cuts away, shape (num_entries,).
            max_norm: T, on which the noise depends.
            max_groups: L0 of the selection.
        """
        share = self.keep_probability(max_groups)
        return self._split_errors(
            KeptMoments(share, share * missing**2), float(self.parameters.norm_noise(max_norm)) ** 2
        )

    def _moments(self, sample: int, rule_of: int, max_amount: float) -> KeptMoments:
        self.evaluations += 1
        moments = compute_kept_moments(
            self.pairs, sample, self.tabulate_rule(rule_of), max_amount, self.problem.totals
        )[0]
        self._kept[sample, rule_of] = moments.keep_probability
        return moments

    def error(self, max_groups: int, max_amount: float) -> float:
        """Return the problem's objective under a pair of bounds; dropped groups count as 0. Arguments as `groups`."""
        return self.problem.error(self.evaluate_groups(max_groups, max_amount).mean_squares)

    def over_epsilon(self, epsilons: FloatArray, max_groups: int, max_amount: float) -> list[SelectedGroups]:
        """Return the release probability and error of every group at other epsilons, for a fixed pair of bounds.

        Args:
            epsilons: Budgets of selection and noise together, shape (n,).
            max_groups: As `groups`.
            max_amount: As `groups`.
        """
        variants = [replace(self.parameters, epsilon=float(e)) for e in epsilons]
        tables = np.array([_table(p, max_groups, self.most_users) for p in variants])
        moments = compute_kept_moments(self.pairs, max_groups, tables, max_amount, self.problem.totals)
        noise = [float(p.pair_noise(max_groups, max_amount)) ** 2 for p in variants]
        return [self._split_errors(f, n) for f, n in zip(moments, noise, strict=True)]

    def bound(self, groups: tuple[int, int], amounts: tuple[float, float]) -> float:
        """Return a lower bound on the objective of every pair in a box: L0 and L-infinity in closed intervals."""
        (a, b), (c, d) = groups, amounts
        t2 = self.problem.totals**2
        # The sample of b under the rule of a keeps at least as much as every pair in the box; below, the sample of a
        # under the rule of b keeps at most as much.
        kept_most = self._moments(b, a, d)
        # U = E[pi h(S)] = P t^2 - E[pi (S - t)^2].
        gain = np.maximum(kept_most.keep_probability * t2 - kept_most.square, 0.0)
        min_probability = self.keep_probability(a, b)
        noise = float(self.parameters.pair_noise(a, c)) ** 2
        cut = self.problem.per_group(np.maximum(self.problem.amounts - d, 0.0))
        max_gain = np.maximum(t2 - cut**2, 0.0)
        if noise == 0.0:
            return self.problem.error(t2 - gain)
        share = np.divide(gain, max_gain, out=np.zeros_like(gain), where=max_gain > 0.0)
        small_noise_squares = t2 - gain + noise * np.maximum(min_probability, share)
        large_noise_squares = t2 - np.minimum(gain, min_probability * max_gain) + noise * min_probability
        return self.problem.error(
            np.maximum(np.where(noise < max_gain, small_noise_squares, large_noise_squares), 0.0)
        )


def _table(parameters: PerGroupParameters, max_groups: int, most_users: int) -> FloatArray:
    assert parameters.selection_delta is not None
    return compute_keep_probabilities(
        parameters.selection, parameters.selection_epsilon, parameters.selection_delta, max_groups, most_users
    )


def best_selected_pair(
    selection: Selection,
    *,
    tolerance: float = TOLERANCE,
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
        `PairChoice`; in its error dropped groups count as 0, and ``passes`` is the number of evaluations.
    """
    first_evaluation = selection.evaluations
    search = _Search(selection)

    def is_over() -> bool:
        done = selection.evaluations - first_evaluation
        progress(min(done / max_evaluations, 1.0))
        return done >= max_evaluations or should_stop()

    search.begin(is_over)
    while search.heap and search.heap[0][0] < search.value * (1.0 - tolerance) and not is_over():
        search.split(tolerance)
    (groups, amount), value = search.best, search.value
    lower = min([value, *(bound for bound, _, _ in search.heap), search.closed])
    argument = "in every box, the users kept at one end and the rule at the other bound what is kept"
    certificate = Certificate(value, lower, argument)
    done = selection.evaluations - first_evaluation
    settled = certificate.proves(max(tolerance, 1e-12) * (1.0 + 1e-9))
    if not settled:
        stop_reason = f"Stopped after {wording.counted(done, 'evaluation')}; the certificate has the gap."
    elif groups:
        stop_reason = f"Within {tolerance:g} of the best pair, after {done:,} evaluations."
    else:
        stop_reason = f"Nothing useful can be released: within {tolerance:g}, publishing no group is best."
    return PairChoice(groups, amount, value, certificate, done, stop_reason, settled)


class _Search:
    """Branch and bound over boxes of both bounds, in a heap by their lower bound."""

    def __init__(self, selection: Selection) -> None:
        self.selection, self.is_integer = selection, selection.parameters.statistic.is_integer
        self.value, self.best = selection.problem.error_of_nothing, (0, 0.0)
        self.heap: list[tuple[float, tuple[int, int], tuple[float, float]]] = []
        self.closed = math.inf
        self._seen: set[tuple[int, float]] = set()

    def evaluate(self, groups: int, amount: float) -> float:
        """Evaluate a pair, keep it if it is the best so far, and return its error (inf if evaluated before)."""
        if self.is_integer:
            amount = float(round(amount))
        groups = min(max(groups, 1), self.selection.most_groups)
        amount = min(
            max(amount, 1.0 if self.is_integer else self.selection.largest_amount * 1e-9),
            self.selection.largest_amount,
        )
        if (groups, amount) in self._seen:
            return math.inf
        self._seen.add((groups, amount))
        error = self.selection.error(groups, amount)
        if error < self.value:
            self.value, self.best = error, (groups, amount)
        return error

    def begin(self, is_over: ShouldStop) -> None:
        """Evaluate a grid and steps around its best point, then add the whole range as one box."""
        s = self.selection
        if s.largest_amount == 0.0:  # All amounts are 0, so all bounds are equally good.
            return
        low = 1.0 if self.is_integer else s.largest_amount / 1e3
        amounts = np.unique(np.geomspace(low, s.largest_amount, GRID)).tolist()
        for amount, groups in product(amounts, space_evenly(s.most_groups, GRID)):
            if is_over():
                break
            self.evaluate(groups, amount)
        step = 2.0
        while step > 1.05 and self.best[0] and not is_over():
            (g, c), previous = self.best, self.value
            for a, b in ((step, 1.0), (1.0 / step, 1.0), (1.0, step), (1.0, 1.0 / step)):
                self.evaluate(round(g * a), c * b)
            if self.value >= previous:
                step = math.sqrt(step)
        self._add((1, s.most_groups), (1.0 if self.is_integer else 0.0, s.largest_amount))

    def _add(self, groups: tuple[int, int], amounts: tuple[float, float]) -> None:
        if groups[0] > groups[1] or amounts[0] > amounts[1]:
            return
        if groups[0] == groups[1] and amounts[0] == amounts[1]:
            self.evaluate(groups[0], amounts[0])
            return
        bound = self.selection.bound(groups, amounts)
        if bound < self.value:
            heapq.heappush(self.heap, (bound, groups, amounts))

    def split(self, tolerance: float) -> None:
        """Halve the most promising box along the bound whose ends differ most in ratio."""
        bound, groups, amounts = heapq.heappop(self.heap)
        (a, b), (c, d) = groups, amounts
        ratio = d / c if c > 0.0 else math.inf
        if b / a >= ratio:
            middle_groups = min(max(math.isqrt(a * b), a), b - 1)
            self._add((a, middle_groups), amounts)
            self._add((middle_groups + 1, b), amounts)
        elif self.is_integer:
            middle_amount = min(max(float(math.floor(math.sqrt(c * d))), c), d - 1.0)
            self._add(groups, (c, middle_amount))
            self._add(groups, (middle_amount + 1.0, d))
        elif ratio < 1.0 + tolerance * 1e-2:  # A narrower box would not improve the bound.
            self.evaluate(b, d)
            self.closed = min(self.closed, bound)
        else:
            middle_amount = math.sqrt(c * d) if c > 0.0 else d / 8.0
            self._add(groups, (c, middle_amount))
            self._add(groups, (middle_amount, d))


@dataclass(frozen=True)
class SelectedVector:
    """A bound on each user's whole vector of amounts, with an L0 for the selection alone.

    Attributes:
        max_groups: L0 of the selection's sample.
        max_norm: T, of the L1 norm with Laplace, of the L2 norm with Gaussian noise.
        rule: How the norm is bounded.
        error: The problem's objective; dropped groups count as 0.
        num_evaluations: Number of evaluated triples; there is no proof that none is better.
    """

    max_groups: int
    max_norm: float
    rule: VectorRule
    error: float
    num_evaluations: int


def best_selected_vector(selection: Selection, should_stop: ShouldStop = never) -> SelectedVector | None:
    """Return the best of a grid of norms and of L0; every amount is kept, and only the selection uses a sample.

    Selection and sum are then independent, and the noise does not grow with the L0 of the selection. The mechanism adds
    noise to every possible group and publishes those that are selected.

    Returns:
        None if releasing nothing is better, or if it was stopped before the first evaluation.
    """
    problem = selection.problem
    largest = float(compute_norms(problem).max())
    if largest == 0.0:
        return None
    best: SelectedVector | None = None
    num_evaluated = 0

    def evaluate(rules: Iterable[VectorRule], norms: FloatArray, group_bounds: list[int]) -> None:
        nonlocal best, num_evaluated
        for rule, norm in product(rules, norms.tolist()):
            if should_stop():
                return
            cut_amounts = sum_cut_amounts(problem, rule, norm)
            for groups in group_bounds:
                error = problem.error(selection.bound_vectors(cut_amounts, norm, groups).mean_squares)
                num_evaluated += 1
                if error < (problem.error_of_nothing if best is None else best.error):
                    best = SelectedVector(groups, norm, rule, error, num_evaluated)

    evaluate(
        VectorRule,
        np.geomspace(largest / NORM_RANGE, largest, NORMS),
        space_evenly(selection.most_groups, 2 * GRID),
    )
    if best is None:
        return None
    # Between the neighbours of the best norm, at L0 next to the best one.
    step = NORM_RANGE ** (1.0 / (NORMS - 1))
    near = [x for x in range(best.max_groups - 2, best.max_groups + 3) if 1 <= x <= selection.most_groups]
    evaluate([best.rule], np.geomspace(best.max_norm / step, best.max_norm * step, NORMS), near)
    return replace(best, num_evaluations=num_evaluated)
