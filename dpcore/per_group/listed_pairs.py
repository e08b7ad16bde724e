"""The pairs of a data set for a question: with the groups of its public list, and a mean's clamped values."""

from __future__ import annotations

from dpcore.data import group_list
from dpcore.dataset import Dataset
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic


def build_pairs(dataset: Dataset, parameters: PerGroupParameters) -> UserGroupPairs:
    """Build the pairs of user and group for a problem, with the groups of the public list if there is one.

    For a mean with values beyond its range, the sums are of clamped values, unless the order of the values does not
    fit the pairs.
    """
    facet, row_values, listed_groups = dataset.pairs, dataset.values, parameters.listed_groups[0]
    assert facet is not None
    num_groups = None if listed_groups or parameters.num_groups is None else int(parameters.num_groups)
    pairs = None
    if parameters.statistic is Statistic.MEAN and row_values is not None and facet.value_range is not None:
        (smallest_value, largest_value), (lower, upper) = facet.value_range, parameters.mean_range
        if smallest_value < lower or largest_value > upper:
            pairs = UserGroupPairs.from_clamped(facet, row_values, lower, upper, num_groups)
    pairs = pairs or UserGroupPairs.from_facet(facet, num_groups)
    if not listed_groups:
        return pairs
    return pairs.regroup(group_list.code_groups(dataset, *parameters.listed_groups), len(listed_groups))
