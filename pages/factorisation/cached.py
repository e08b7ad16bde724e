"""Calls of the core that the page Factorisation repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.factorisation.allocation import BudgetShares, Scheme, Spending, divide_budget
from dpcore.factorisation.answer import found as core
from dpcore.factorisation.parameters import FactorisationParameters
from pages.shared.base.cache import cached


@cached(max_entries=2, spinner="Drawing ratings …")
def _table(key: str, _parameters: FactorisationParameters, _data: Dataset) -> core.RatingsInUse | None:
    return core.load_table(_parameters, _data)


def table(parameters: FactorisationParameters, data: Dataset) -> core.RatingsInUse | None:
    """Return the ratings; ``None`` where the data hold none."""
    return _table(core.make_table_key(parameters, data), parameters, data)


@cached(max_entries=48)
def _shares(
    key: str, scheme: Scheme, spending: Spending, exponent: float, _table: core.RatingsInUse
) -> BudgetShares:
    return divide_budget(_table.ratings, scheme, spending, exponent)


def shares(of: core.RatingsInUse, parameters: FactorisationParameters) -> tuple[BudgetShares, ...]:
    """Who gets the budget under each scheme."""
    asked = {scheme: core.choose_share_settings(parameters, scheme) for scheme in Scheme}
    return tuple(
        core.replace_noise(_shares(of.key, scheme, *budget, of), parameters)
        for scheme, budget in asked.items()
    )
