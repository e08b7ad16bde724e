"""A release per group (GROUP BY) on a public list of groups: how much may one user add, and to how many groups?

`pairs` holds the data, `parameters` the question, `moments` the exact error under a pair of bounds,
`pair_of_bounds` the best pair, `whole_vector` what bounds a user's whole vector instead, without sampling.
"""

from dpcore.per_group.moments import GroupMoments, moments, pair_error
from dpcore.per_group.pair_of_bounds import PairChoice, SortedPairs, best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, PerGroupProblem, Statistic
from dpcore.per_group.whole_vector import VectorChoice, VectorRule, best_cap, best_radial, kept, vector_error

__all__ = [
    "GroupMoments",
    "Objective",
    "PairChoice",
    "PerGroupParameters",
    "PerGroupProblem",
    "SortedPairs",
    "Statistic",
    "UserGroupPairs",
    "VectorChoice",
    "VectorRule",
    "best_cap",
    "best_pair",
    "best_radial",
    "kept",
    "moments",
    "pair_error",
    "vector_error",
]
