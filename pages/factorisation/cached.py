"""Calls of the core that the page Factorisation repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dataclasses import replace

from dpcore.dataset import Dataset
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.parameters import FactorisationParameters
from dpcore.factorisation.shares import BudgetShares, budget_shares
from pages.factorisation import answer
from pages.shared.base.cache import cached


@cached(max_entries=2, spinner="Drawing ratings …")
def _table(key: str, _parameters: FactorisationParameters, _data: Dataset) -> answer.RatingsInUse | None:
    return answer.load(_parameters, _data)


def table(parameters: FactorisationParameters, data: Dataset) -> answer.RatingsInUse | None:
    """The ratings; ``None`` where the data hold none."""
    return _table(answer.key_of(parameters, data), parameters, data)


@cached(max_entries=48)
def _shares(
    key: str, scheme: Scheme, spending: Spending, exponent: float, _table: answer.RatingsInUse
) -> BudgetShares:
    return budget_shares(_table.ratings, scheme, spending, exponent)


def shares(of: answer.RatingsInUse, parameters: FactorisationParameters) -> tuple[BudgetShares, ...]:
    """Who gets the budget under each scheme."""
    found = []
    for scheme in Scheme:
        spending = parameters.spending
        # Only the adaptive scheme reads mu. The uniform one reads no counts: its weights are the same at each budget.
        asked = spending if scheme.needs_counts else replace(spending, budget=1.0, count_share=0.0)
        exponent = parameters.exponent if scheme is Scheme.ADAPTIVE else 0.0
        one = _shares(of.key, scheme, asked, exponent, of)
        if not scheme.needs_counts:
            # Gradient steps need counts for their length, under this scheme, too.
            without = (
                spending if parameters.gradient_steps is not None else replace(spending, count_share=0.0)
            )
            one = replace(one, noise=without.noise)
        found.append(one)
    return tuple(found)
