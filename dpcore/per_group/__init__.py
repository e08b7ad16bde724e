"""A release per group (GROUP BY): how much may one user add, and to how many groups?

`pairs` holds the data, `parameters` the question, `moments` the exact error under a pair of bounds,
`pair_of_bounds` the best pair by `passes` over `sorted_pairs`, `means` those of means by `noisy_ratio`, `whole_vector`
what bounds a user's whole vector instead, without sampling. `selection_rules`, `users_kept` and `selection` are for
groups that are selected privately, `summary` for data of which only the distribution of pairs is known. `private_pair`
chooses a pair of bounds with an epsilon of its own.
"""

from dpcore.per_group.means import MeanChoice, best_mean_pair, mean_error, mean_moments, mean_squares
from dpcore.per_group.moments import ErrorParts, error_parts, moments, pair_error
from dpcore.per_group.pair_of_bounds import PairChoice, best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, PerGroupProblem, Statistic
from dpcore.per_group.passes import PartsByGroups, errors_by_groups, parts_by_groups
from dpcore.per_group.selection import (
    SelectedGroups,
    SelectedVector,
    Selection,
    best_selected_pair,
    best_selected_vector,
    selected_tuner_pick,
)
from dpcore.per_group.selection_rules import SelectionRule, keep_probabilities
from dpcore.per_group.sorted_pairs import SortedPairs
from dpcore.per_group.summary import SummaryChoice, SummaryProblem, best_summary_pair
from dpcore.per_group.tuner import tuner_pick
from dpcore.per_group.whole_vector import (
    VectorChoice,
    VectorRule,
    best_cap,
    best_radial,
    kept,
    private_margin,
    vector_error,
)
