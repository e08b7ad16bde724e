"""What a rerun of this page repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.parameters import PrivateParameters
from pages.private_choice import answer as private_view
from pages.shared.base.cache import cached


@cached(max_entries=16)
def over_epsilon(digest: str, without_budget: PrivateParameters, _dataset: Dataset) -> ChoiceRegret:
    """Exact costs over budgets of the choice, on which they do not depend."""
    return comparison.direct_over_epsilon(without_budget, _dataset.histogram)


@cached(max_entries=16)
def private_answer(digest: str, parameters: PrivateParameters, _dataset: Dataset) -> private_view.PrivateView:
    """The answer of Choose privately, without simulation."""
    curve = over_epsilon(digest, private_view.without_budget(parameters), _dataset)
    return private_view.compute(_dataset.histogram, parameters, curve)


@cached(max_entries=16)
def over_users(digest: str, parameters: PrivateParameters, _dataset: Dataset) -> ChoiceRegret:
    """Exact costs over numbers of users."""
    return comparison.direct_over_users(parameters, _dataset.histogram)


@cached(max_entries=16)
def leak(digest: str, without_budget: PrivateParameters, _dataset: Dataset) -> private_view.Leak:
    """How one user more moves the number chosen in the clear."""
    return private_view.leak(_dataset.histogram, without_budget)
