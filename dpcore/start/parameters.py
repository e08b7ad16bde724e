"""The settings of the page *Home*."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.contributions import MAX_SIZE
from dpcore.start.presets import UserPreset


@dataclass(frozen=True)
class StartParameters:
    """The settings of the picture of the trade-off.

    Attributes:
        epsilon: Privacy budget, in `dpcore.common.checks.EPSILON_RANGE`.
        bound: Upper bound on rows per user, whole; None for where the page begins.
        users: Whose rows it shows.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    bound: int | None = None
    users: UserPreset = UserPreset.IN_USE

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            if self.bound is not None:
                problems.whole(1, MAX_SIZE, bound=self.bound)
