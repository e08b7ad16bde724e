"""The tour on Per group: which of the two bounds gives way when there is less budget."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.per_group.pair_of_bounds import PairChoice, best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem
from pages.shared.session import session
from pages.shared.session.tour import Step


def best(data: Dataset, asked: PerGroupParameters) -> PairChoice:
    """Return the best pair of bounds."""
    assert data.pairs is not None
    return best_pair(PerGroupProblem(UserGroupPairs.from_facet(data.pairs), asked))


def answer(data: Dataset, asked: PerGroupParameters) -> str:
    """Return the best pair at the epsilon that is set, and at the first one."""
    now, first = best(data, asked), best(data, replace(asked, epsilon=_BEGIN.epsilon))
    if now.releases_nothing:
        return f"At ε = {wording.entered(asked.epsilon)} no pair is worth its noise: publishing 0 everywhere errs less."
    products = wording.counted(first.max_groups, "product")
    before, after = (wording.number(pair.max_groups * pair.max_amount) for pair in (first, now))
    return (
        f"**{_lower(first, now)}**: from {products} with {_rows(first)} each to {wording.number(now.max_groups)} with "
        f"{_rows(now)}. Every group's noise grows with one bound times the other, {before} before and {after} now."
    )


def _lower(first: PairChoice, now: PairChoice) -> str:
    groups, rows = now.max_groups < first.max_groups, now.max_amount < first.max_amount
    if groups and rows:
        return "Both"
    return "Products per user" if groups else "Rows in each" if rows else "Neither"


def _rows(pair: PairChoice) -> str:
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
