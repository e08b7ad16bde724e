"""What a person chooses on the page of the tests' question."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE, Problems


class Shown(enum.Enum):
    """What the page shows."""

    USERS = "users"
    SHARE = "share"


@dataclass(frozen=True)
class ToyParameters:
    """The question: users with more than ``rows`` rows are counted, or their share. Raises InvalidInput."""

    epsilon: float
    shown: Shown = Shown.USERS
    rows: int = 5
    usual_value: float = 1.0
    own_rows: int | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.whole(1, 10**6, rows=self.rows)
            problems.finite(usual_value=self.usual_value)
            if self.own_rows is not None:
                problems.whole(1, 10**6, own_rows=self.own_rows)
