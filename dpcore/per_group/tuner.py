"""The pair that the rule of PipelineDP's tuner picks, to compare with: its candidates and its objective.

PipelineDP (analysis/parameter_tuning.py, read 2026-11-22) takes at most so many candidates, each bound evenly spread
over the list of numbers of three leading digits up to its largest value, and minimises the mean of the groups' root
mean squared errors. Its wheel 0.2.1 lacks this part.
"""

from __future__ import annotations

import math

from dpcore.common.checks import Problems
from dpcore.common.errors import refuse
from dpcore.per_group.moments import moments
from dpcore.per_group.parameters import PerGroupProblem, Statistic

CANDIDATES = 50
MAX_PAIRS = 1_000_000
"""Pairs up to which the pick is computed: each candidate costs a look at all of them, together about 2 s there."""


def spread(largest: int, most: int) -> list[int]:
    """At most so many numbers of three leading digits, evenly spread over their list up to the largest, which is one.

    Raises:
        InvalidInput: ``largest`` or ``most`` is no whole number of at least 1.
    """
    with Problems() as problems:
        problems.whole(1, 10**15, largest=largest)
        problems.whole(1, 10**6, most=most)
    numbers, step = [1], 1
    while numbers[-1] + step <= largest:
        numbers.append(numbers[-1] + step)
        if numbers[-1] == 1000 * step:
            step *= 10
    if most == 1:
        return [largest]
    if len(numbers) > most - 1:
        numbers = [numbers[int(i * len(numbers) / (most - 1))] for i in range(most - 1)]
    return numbers if numbers[-1] == largest else [*numbers, largest]


def candidates(problem: PerGroupProblem) -> list[tuple[int, int]]:
    """Return the pairs that the tuner looks at."""
    each = math.isqrt(CANDIDATES)
    groups = int(problem.pairs.groups_per_user.max())
    amount = max(1, math.ceil(float(problem.amounts.max())))
    first, second = spread(groups, each), spread(amount, each)
    if len(second) < each:
        first = spread(groups, CANDIDATES // len(second))
    elif len(first) < each:
        second = spread(amount, CANDIDATES // len(first))
    return [(l0, linf) for l0 in first for linf in second]


def tuner_pick(problem: PerGroupProblem) -> tuple[int, int]:
    """Return the tuner's pair (L0, L-infinity), whatever objective the problem has.

    Raises:
        InvalidInput: The statistic is a mean or a sum of any sign, or there are more pairs than `MAX_PAIRS`.
    """
    if problem.parameters.statistic in (Statistic.MEAN, Statistic.SIGNED_SUM):
        raise refuse("the rule is carried over for amounts of at least 0 alone")
    if problem.pairs.num_pairs > MAX_PAIRS:
        raise refuse(f"the rule looks at all pairs for each candidate; at most {MAX_PAIRS:,} pairs are taken")
    times = problem.pairs.times
    return min(
        candidates(problem), key=lambda pair: float(moments(problem, *pair).mean_squares ** 0.5 @ times)
    )
