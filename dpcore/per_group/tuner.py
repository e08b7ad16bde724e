"""The pair that the rule of PipelineDP's tuner picks, for comparison: its candidates and its objective.

PipelineDP (analysis/parameter_tuning.py, read 2026-11-22) takes a limited number of candidates. Each bound is evenly
spread over the list of numbers of three leading digits up to its largest value. It minimises the mean of the groups'
root mean squared errors. Its wheel 0.2.1 lacks this part.
"""

from __future__ import annotations

import math

from dpcore.common.checks import Problems, refuse
from dpcore.per_group.moments import moments
from dpcore.per_group.parameters import PerGroupProblem, Statistic

CANDIDATES = 50
MAX_PAIRS = 1_000_000
"""Number of pairs up to which the pick is computed: each candidate costs a pass over all pairs, in total about 2 s."""


def spread(largest: int, max_count: int) -> list[int]:
    """Return at most ``max_count`` numbers of three leading digits, evenly spread up to the largest, which is included.

    Raises:
        InvalidInput: ``largest`` or ``max_count`` is no whole number of at least 1.
    """
    with Problems() as problems:
        problems.whole(1, 10**15, largest=largest)
        problems.whole(1, 10**6, most=max_count)
    numbers, step = [1], 1
    while numbers[-1] + step <= largest:
        numbers.append(numbers[-1] + step)
        if numbers[-1] == 1000 * step:
            step *= 10
    if max_count == 1:
        return [largest]
    if len(numbers) > max_count - 1:
        numbers = [numbers[int(i * len(numbers) / (max_count - 1))] for i in range(max_count - 1)]
    return numbers if numbers[-1] == largest else [*numbers, largest]


def candidates(problem: PerGroupProblem) -> list[tuple[int, int]]:
    """Return the pairs of bounds that the tuner compares."""
    each = math.isqrt(CANDIDATES)
    most_groups = int(problem.pairs.groups_per_user.max())
    largest_amount = max(1, math.ceil(float(problem.amounts.max())))
    group_bounds, amounts = spread(most_groups, each), spread(largest_amount, each)
    if len(amounts) < each:
        group_bounds = spread(most_groups, CANDIDATES // len(amounts))
    elif len(group_bounds) < each:
        amounts = spread(largest_amount, CANDIDATES // len(group_bounds))
    return [(l0, linf) for l0 in group_bounds for linf in amounts]


def tuner_pick(problem: PerGroupProblem) -> tuple[int, int]:
    """Return the tuner's pair (L0, L-infinity); the objective of the problem is not used.

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
