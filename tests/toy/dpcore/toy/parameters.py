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
    """The question.

    Attributes:
        epsilon: Privacy budget, in `dpcore.common.checks.EPSILON_RANGE`.
        shown: Users, or their share.
        rows: Users with more rows than this are counted; whole, at least 1.
        usual_value: What a row's value usually is, in the values' unit; it may have been read off the values.
        own_rows: A number of rows to compare with; None for none.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    shown: Shown = Shown.USERS
    rows: int = 5
    usual_value: float = 1.0
    own_rows: int | None = None

    def __post_init__(self) -> None:
        problems = Problems()
        problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
        problems.whole(1, 10**6, rows=self.rows)
        problems.finite(usual_value=self.usual_value)
        if self.own_rows is not None:
            problems.whole(1, 10**6, own_rows=self.own_rows)
        problems.raise_if_any()
