"""The settings of the page *Home*, and simulated users of four kinds with the lesson of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpcore.common.parameters import LINE, Option, Parameters, of_data, public
from dpcore.common.privacy import Disclosure
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.dataset import Dataset


class UserPreset(Option):
    """The users whose rows the picture shows."""

    IN_USE = "the data in use", "Data in use"
    EQUAL_SIZES = "everyone alike", "Everyone alike"
    ONE_HEAVY = "one heavy user", "One heavy user"
    POWER_LAW = "power law", "Power law"
    TWO_GROUPS = "two groups", "Two groups"


DESCRIPTION_BY_PRESET: Mapping[UserPreset, str] = {
    UserPreset.EQUAL_SIZES: "All 2,000 users have 20 rows. A bound above 20 buys noise for rows that nobody has.",
    UserPreset.ONE_HEAVY: "2,000 users have 20 rows each, and one has 20,000, whose rows cost 1,000 times the noise.",
    UserPreset.POWER_LAW: "If rows double, a third as many users have them. A smaller ε lowers the best bound.",
    UserPreset.TWO_GROUPS: "3,000 users have 5 rows, 100 have 300. At ε = 0.003 the best bound cuts most of the 300.",
}
"""What each kind of users teaches."""
_SIZES_BY_PRESET: Mapping[UserPreset, list[tuple[int, int]]] = {
    UserPreset.EQUAL_SIZES: [(20, 2_000)],
    UserPreset.ONE_HEAVY: [(20, 2_000), (20_000, 1)],
    # P(size >= s) falls like s^-1.58.
    UserPreset.POWER_LAW: [(2**step, 3 ** (9 - step)) for step in range(10)],
    UserPreset.TWO_GROUPS: [(5, 3_000), (300, 100)],
}
"""Pairs of rows of each user, and how many users have so many."""


def make_dataset(user_preset: UserPreset) -> Dataset:
    """Make simulated users as public data.

    Args:
        user_preset: Any kind but `UserPreset.IN_USE`.

    Returns:
        A `Dataset` with a histogram and no other facet; its source is the kind's sentence.

    Raises:
        KeyError: The data in use were asked for, which are not invented.
    """
    sizes, num_users = np.array(_SIZES_BY_PRESET[user_preset]).T
    histogram = ContributionHistogram(sizes=sizes, users=num_users)
    return Dataset(
        f"Invented users: {user_preset.value}",
        DESCRIPTION_BY_PRESET[user_preset],
        Disclosure.PUBLIC,
        histogram,
    )


def choose_dataset(dataset: Dataset, user_preset: UserPreset) -> Dataset:
    """Return the data in use, or simulated users if the preset names some."""
    return dataset if user_preset is UserPreset.IN_USE else make_dataset(user_preset)


@dataclass(frozen=True)
class StartParameters(Parameters):
    """The settings of the picture of the trade-off: everything but the data in use."""

    bound: int | None = of_data.number(
        None, "Your own bound", (1, MAX_SIZE), name="your own bound", is_renewed=True, placeholder="rows", width=150,
        place=LINE,
    )  # fmt: skip
    """Rows per user. Drag the ring in the figure, or enter a number."""
    users: UserPreset = public.choice(UserPreset.IN_USE, "Users", uses_select_box=True, width=150, place=LINE)
    """The data in use, or invented users that show one thing clearly."""
