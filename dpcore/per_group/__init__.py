"""A release per group (GROUP BY) on a public list of groups: how much may one user add, and to how many groups?

`pairs` holds the data, `parameters` the question, `moments` the exact error under a pair of bounds,
`pair_of_bounds` the best pair.
"""

from dpcore.per_group.moments import GroupMoments, moments, pair_error
from dpcore.per_group.pair_of_bounds import PairChoice, SortedPairs, best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, PerGroupProblem, Statistic

__all__ = [
    "GroupMoments",
    "Objective",
    "PairChoice",
    "PerGroupParameters",
    "PerGroupProblem",
    "SortedPairs",
    "Statistic",
    "UserGroupPairs",
    "best_pair",
    "moments",
    "pair_error",
]
