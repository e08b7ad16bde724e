"""A pair of bounds (L0, L-infinity) chosen from private data: one draw over a public grid of pairs, one epsilon.

What is chosen by. With D = l C for the pair (l, C), the sum over the groups of |bias| plus mean |noise| is

    F(i) = (A - K_i) + N_i,    K_i = sum_u min(1, l / k_u) sum_g min(a_ug, C),

where user u is in k_u groups and adds a_ug >= 0 to group g. A, the sum of all amounts, is the same for all pairs and
drops out. N_i is public: it takes the number of groups of the public list, the bounds and the noise. And K_i is a sum
over users of which each adds between 0 and D_i. (Of the root mean square over groups one user can move the difference
between two pairs by any number of users: it cannot be chosen by.)

The score. Between two pairs i and j, with m = (min l, min C) of both, one user adds to K_i - K_j between -(D_j - D_m)
and D_i - D_m: as K is monotone, K_i - K_j <= K_i - K_m; and K_m >= (D_m / D_i) K_i for each user, since
min(1, l_m / k) >= (l_m / l_i) min(1, l_i / k) and min(a, C_m) >= (C_m / C_i) min(a, C_i). With q_i = N_i - K_i the
difference q_i - q_j is thus moved by at most

    d_ij = max(D_i, D_j) - D_m  where a user is added or removed,   D_i + D_j - 2 D_m  where one is replaced by another,

both reached by users in many groups with large or with small amounts. So

    s_i = max_j (q_i - q_j + t (D_i - D_j)) / d_ij,    t = 2 / epsilon public,

is moved by at most 1: a maximum of functions of which each is. Pair i is drawn with a chance proportional to
D_i^-2 exp(-epsilon s_i / 2), which is epsilon-DP for both numbers together (McSherry and Talwar 2007, theorem 6). Pairs
much too large are G / epsilon users from the best, whatever the data; without the weights they would still be drawn, as
they are many, and cost in proportion to D.

Everything is in whole steps. Amounts are whole numbers of a public unit; what users with k groups keep together is
rounded down to steps of 2^-20 once. One user more moves that by less than a step from its exact change, and so
K_i - K_j by at most one step more than d_ij steps; one who is replaced by at most three, as users with another number
of groups may be met, too. Hence the sensitivity in steps, `PrivatePairProblem.sensitivity`.

Source: Raskhodnikova and Smith 2016 for scores relative to each candidate's own sensitivity; d_ij, its proof and the
weights are ours. The objective is the sum of the groups' errors in the sense of Amin et al. 2019, equation 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common import mechanisms
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.privacy import Charge, Neighbours, ReleaseFacts
from dpcore.contributions import FloatArray, IntArray
from dpcore.dataset import PairSizes
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic

RESOLUTION = 2**20
"""Steps per user."""
GROWTH = 1.3
"""Each bound of the grid is at most about so many times the one before; a grid twice as fine errs no less."""
MOST_GROUPS = 1_000
"""Largest L0 of the grid."""
MAX_AMOUNT = 10**9
"""Largest public maximum of an amount, in units."""
POWER = 2
"""Pairs have the weight D^-POWER."""
MECHANISM = "exponential mechanism"
EXPECTED = ((5.0, 0.05), (2.0, 0.15), (1.0, 0.30))
"""From which public figure on what is usual; see `expected`."""
_FAR = 2**61
COVERED = (Statistic.ROWS, Statistic.USERS, Statistic.SUM)
"""Statistics whose amounts are at least 0, so that what is kept grows with both bounds."""


@dataclass(frozen=True)
class PrivatePairProblem:
    """The question: choose a pair of bounds for a release per group with epsilon-DP.

    Attributes:
        parameters: The release: rows, distinct users or a sum of amounts of at least 0, on a public list whose number
            of groups is given. Its objective does not matter: what is minimised is said in the module.
        epsilon: Budget of the choice alone, in `dpcore.common.checks.EPSILON_RANGE`.
        largest: Public maximum of L-infinity: in rows, of a sum in units. Whole, from 1 to `MAX_AMOUNT`; of distinct
            users L-infinity is 1.
        unit: What amounts of a sum are rounded to, public, in the column's unit; 1 for counts.

    Raises:
        InvalidInput: All problems at once.
    """

    parameters: PerGroupParameters
    epsilon: float
    largest: int
    unit: float = 1.0

    def __post_init__(self) -> None:
        p = self.parameters
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.whole(1, MAX_AMOUNT, largest=self.largest)
            problems.between(1e-12, 1e12, unit=self.unit)
            if p.statistic not in COVERED:
                problems.add(
                    "a pair is chosen privately for rows, distinct users and sums of amounts of at least 0",
                    remedy="For a mean, or a sum of any sign, enter bounds that you know",
                )
            elif p.statistic is not Statistic.SUM and self.unit != 1.0:
                problems.add("a unit goes with a sum; counts have the unit 1")
            if p.selection.private:
                problems.add(
                    "a pair is chosen privately for a public list of groups only",
                    remedy="How many groups a rule selects is not public; enter bounds that you know",
                )
            elif p.num_groups is None:
                problems.add(
                    "the number of groups on the public list must be entered",
                    remedy="Take it from the list itself, not from the data, which are private",
                )

    @property
    def num_groups(self) -> int:
        """Return the groups of the public list."""
        assert self.parameters.num_groups is not None
        return self.parameters.num_groups

    @property
    def public_figure(self) -> float:
        """epsilon of the choice times the number of groups, over epsilon of the release: how good a draw usually is."""
        return self.epsilon * self.num_groups / self.parameters.epsilon

    @cached_property
    def candidates(self) -> tuple[IntArray, IntArray]:
        """Return the public grid: L0 and L-infinity in units of every pair, both int64 of shape (c,)."""
        most = 1 if self.parameters.statistic is Statistic.USERS else int(self.largest)
        groups, amounts = (
            np.array(_spread(top), dtype=np.int64) for top in (min(self.num_groups, MOST_GROUPS), most)
        )
        return np.repeat(groups, amounts.size), np.tile(amounts, groups.size)

    @cached_property
    def _weights(self) -> IntArray:
        """D = l C of every pair, below 2^40."""
        groups, amounts = self.candidates
        return np.asarray(groups * amounts)

    @property
    def sensitivity(self) -> int:
        """Return the steps by which one user can move a score; see the module."""
        return RESOLUTION + (3 if self._replaced else 1)

    @property
    def neighbours(self) -> Neighbours:
        """Return the neighbouring relation."""
        return self.parameters.neighbours

    @property
    def _replaced(self) -> bool:
        return self.neighbours is Neighbours.REPLACE_USER

    @cached_property
    def noise(self) -> FloatArray:
        """Return N: the groups' mean |noise| added up, in the statistic's unit, shape (c,)."""
        kind = self.parameters.noise
        groups, amounts = self.candidates
        # `pair_noise` is a standard deviation; the objective takes the mean magnitude.
        mean = kind.mean_magnitude / math.sqrt(kind.unit_variance)
        return np.asarray(mean * self.num_groups * self.parameters.pair_noise(groups, amounts * self.unit))

    @cached_property
    def log_prior(self) -> FloatArray:
        """Return the log weight of every pair, the largest 0."""
        return np.asarray(-POWER * np.log(self._weights.astype(np.float64)))

    def kept(self, pairs: UserGroupPairs | PairSizes) -> npt.NDArray[np.object_]:
        """Return K of every pair of bounds in steps, whole numbers of any size; computed from private data."""
        k, together = self.together(pairs)
        # Python's whole numbers have no limit: sums are of any size.
        return self.of_shares(k.astype(object), together.astype(object))

    def together(self, pairs: UserGroupPairs | PairSizes) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return what users in k groups keep together of all amounts under each L-infinity of the grid, in units.

        Returns:
            Numbers of groups k that users are in, ascending, shape (n,); and sums of min(a, C) of shape (n, C), to
            which every user adds theirs.
        """
        of_user, whole, times = self._parts(pairs)
        order = np.argsort(of_user, kind="stable")
        k, first = np.unique(of_user[order], return_index=True)
        whole, times = whole[order], times[order]
        # No sum of min(a, C) exceeds that of all amounts: where that one fits 64 bits, all do.
        if float(np.dot(whole.astype(np.float64), times)) >= _FAR:
            whole, times = whole.astype(object), times.astype(object)
        amounts = np.unique(self.candidates[1])
        kept = [np.add.reduceat(np.minimum(whole, most) * times, first) for most in amounts]
        return k, np.stack(kept, axis=-1)

    def of_shares(self, k: npt.NDArray[Any], together: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return K of every pair of bounds, shape (..., c), from `together`, shape (..., n, C)."""
        groups, amounts = self.candidates
        at = np.searchsorted(np.unique(amounts), amounts)
        found = [
            (together[..., column] * RESOLUTION * np.minimum(k, most) // k).sum(axis=-1)
            for column, most in zip(at.tolist(), groups.tolist(), strict=True)
        ]
        return np.stack(found, axis=-1)

    def _parts(self, pairs: UserGroupPairs | PairSizes) -> tuple[IntArray, IntArray, IntArray]:
        """Kinds of pairs of user and group: groups of the user, whole amount, and how many such pairs there are."""
        if isinstance(pairs, PairSizes):
            return pairs.groups, self._counted(pairs.rows), pairs.pairs
        of_user = np.repeat(pairs.groups_per_user, pairs.groups_per_user)
        once = np.ones(pairs.num_pairs, dtype=np.int64)
        if self.parameters.statistic is not Statistic.SUM:
            return of_user, self._counted(pairs.rows), once
        # A negative amount counts as 0: it must not decide whether a draw is possible.
        sums = np.zeros(pairs.num_pairs) if pairs.sums is None else pairs.sums
        return of_user, np.rint(np.clip(sums / self.unit, 0.0, float(self.largest))).astype(np.int64), once

    def _counted(self, rows: IntArray) -> IntArray:
        users = self.parameters.statistic is Statistic.USERS
        return np.ones_like(rows) if users else np.minimum(rows, int(self.largest))

    def distances(self, pairs: UserGroupPairs | PairSizes | None) -> list[int]:
        """s of every pair in steps; None for data without anybody in them. Computed from private data."""
        kept = np.zeros(self._weights.size, dtype=object) if pairs is None else self.kept(pairs)
        return [int(far) for far in self.far(kept)]

    def far(self, kept: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """s of every pair in steps from K of every pair, both of shape (..., c)."""
        weights = self._weights
        unit, price = Fraction(self.unit), Fraction(2.0 / self.epsilon)
        # Public numbers alone: how they are rounded moves nothing that one user could move.
        public = [
            round((Fraction(float(n)) / unit + price * int(w)) * RESOLUTION)
            for n, w in zip(self.noise, weights, strict=True)
        ]
        level: npt.NDArray[Any] = np.array(public, dtype=object) - kept
        # The same whole numbers either way; machine words where all differences fit them.
        if np.abs(level).max() < _FAR:
            level = level.astype(np.int64)
        groups, amounts = self.candidates
        scores = np.zeros_like(level)
        for i in range(weights.size):
            least = np.minimum(groups, groups[i]) * np.minimum(amounts, amounts[i])
            apart = np.maximum(weights, weights[i]) - least
            if self._replaced:
                apart = weights + weights[i] - 2 * least
            others = apart > 0  # 0 for the pair itself alone.
            if others.any():
                # Of a difference that moves by at most d 2^20 + r steps, r whole, the floor over d moves by at most
                # 2^20 + r.
                scores[..., i] = ((level[..., i, None] - level[..., others]) // apart[others]).max(axis=-1)
        return scores

    def scores(self, pairs: UserGroupPairs | PairSizes | None) -> list[int]:
        """Return what the noise is added to: -s and the public weights, in steps."""
        # So many steps are worth a factor of e. Cut off at either end, a score still moves by no more than before.
        per_unit = 2.0 * self.sensitivity / self.epsilon
        return [
            round(per_unit * float(w)) - max(min(int(s), _FAR), -_FAR)
            for w, s in zip(self.log_prior, self.distances(pairs), strict=True)
        ]


def _spread(most: int) -> list[int]:
    """Whole numbers from 1 to ``most``, each the next one or `GROWTH` times the one before."""
    grid = [1]
    while grid[-1] < most:
        grid.append(min(max(grid[-1] + 1, round(grid[-1] * GROWTH)), most))
    return grid


def probabilities(problem: PrivatePairProblem, pairs: UserGroupPairs | PairSizes | None) -> FloatArray:
    """Chance of every pair, in closed form, shape (c,); computed from private data."""
    scores = np.array([float(s) for s in problem.scores(pairs)])
    logits = problem.epsilon / (2.0 * problem.sensitivity) * (scores - scores.max())
    return np.asarray(np.exp(logits) / np.exp(logits).sum())


def errors(problem: PrivatePairProblem, pairs: UserGroupPairs | PairSizes) -> FloatArray:
    """Return F of every pair, in the statistic's unit, with amounts as whole units; computed from private data."""
    kept = np.array([float(k) / RESOLUTION for k in problem.kept(pairs)])
    _, whole, times = problem._parts(pairs)
    return np.asarray((float(np.dot(whole.astype(np.float64), times)) - kept) * problem.unit + problem.noise)


@dataclass(frozen=True)
class PrivatePair:
    """A pair that was chosen with epsilon-DP and may be published.

    Attributes:
        max_groups: L0.
        max_amount: L-infinity, in the statistic's unit.
        facts: What the choice guarantees and how it was made.
        problem: The question, all of it public.
        column: Name of what groups are of, public.
    """

    max_groups: int
    max_amount: float
    facts: ReleaseFacts
    problem: PrivatePairProblem
    column: str = ""


def choose(
    problem: PrivatePairProblem,
    pairs: UserGroupPairs | PairSizes | None,
    charge: Charge | None = None,
    column: str = "",
) -> PrivatePair:
    """Draw the pair: a DP release of both numbers together, fresh at every call.

    Args:
        problem: The question.
        pairs: Who contributes how much to which group, or how that is distributed (not for a sum); private.
            None for data without anybody in them.
        charge: Told what the draw guarantees before anything is drawn.
        column: Name of what groups are of.
    """

    def facts(epsilon: float) -> ReleaseFacts:
        return ReleaseFacts(epsilon, 0.0, problem.parameters.neighbours, MECHANISM)

    drawn = mechanisms.exponential_mechanism(
        problem.scores(pairs),
        problem.sensitivity,
        problem.epsilon,
        None if charge is None else lambda epsilon, _: charge(facts(epsilon)),
    )
    groups, amounts = problem.candidates
    return PrivatePair(
        int(groups[drawn.index]),
        float(amounts[drawn.index] * problem.unit),
        facts(drawn.epsilon),
        problem,
        column,
    )


def expected(problem: PrivatePairProblem) -> float | None:
    """Return what a draw usually adds to the error of the best pair, as a share, by the public figure alone.

    Measured on 13 tables of at least 1,000 users, for epsilon of the release from 0.3 to 10 and of the choice from 0.05
    to 2: mean over draws, geometric mean over tables. A few users who hold everything can make it as bad as releasing
    nothing, which no public figure tells.

    Returns:
        The share; None where a draw is little better than a guess.
    """
    return next((share for least, share in EXPECTED if problem.public_figure >= least), None)
