"""The tour's step on Per group: which of the two bounds falls when there is less budget."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.per_group.pair_of_bounds import PairChoice, best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem
from pages.shared.session import session
from pages.shared.session.tour import Step


def solve(dataset: Dataset, parameters: PerGroupParameters) -> PairChoice:
    """Return the best pair of bounds."""
    assert dataset.pairs is not None
    return best_pair(PerGroupProblem(UserGroupPairs.from_facet(dataset.pairs), parameters))


def answer(dataset: Dataset, parameters: PerGroupParameters) -> str:
    """Write the best pair at the epsilon that is set, and at the first one."""
    current, first = solve(dataset, parameters), solve(dataset, replace(parameters, epsilon=_BEGIN.epsilon))
    epsilon = wording.entered(parameters.epsilon)
    if current.releases_nothing:
        return f"At ε = {epsilon} no pair is worth its noise: publishing 0 everywhere errs less."
    products, groups = wording.counted(first.max_groups, "product"), wording.number(current.max_groups)
    old_product, new_product = (
        wording.number(pair.max_groups * pair.max_amount) for pair in (first, current)
    )
    return (
        f"**{_name_fallen_bounds(first, current)}**: from {products} with {_count_rows(first)} each to {groups} with "
        f"{_count_rows(current)}. Every group's noise grows with one bound times the other, {old_product} before and "
        f"{new_product} now."
    )


def _name_fallen_bounds(first: PairChoice, current: PairChoice) -> str:
    """Return the words for the bounds that are lower than in the first pair."""
    groups, rows = current.max_groups < first.max_groups, current.max_amount < first.max_amount
    if groups and rows:
        return "Both"
    return "Products per user" if groups else "Rows in each" if rows else "Neither"


def _count_rows(pair: PairChoice) -> str:
    return wording.counted(pair.max_amount, "row")


_BEGIN = PerGroupParameters(10.0)
STEP = Step(
    origin=session.Origin("shop-events"),
    parameters=_BEGIN,
    field="epsilon",
    goal=1.0,
    is_enough=lambda epsilon: epsilon <= 3.0,
    question="A user counts in several products. With less budget, which bound falls: products per user, or rows in "
    "each?",
    move="Move ε from 10 down to 1, and watch the best pair",
    answer=answer,
)
