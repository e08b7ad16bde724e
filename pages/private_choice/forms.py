"""What a person enters on Choose privately in all: the question, and the forms of range and pair in its tabs."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.contributions import MAX_SIZE
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.private_choice.private_range import MOST_WIDTH


class Known(enum.Enum):
    """What is known of the values beforehand."""

    TYPICAL = "typical"
    LOWEST = "lowest"
    NEITHER = "neither"


@dataclass(frozen=True)
class PageParameters(PrivateParameters):
    """The question, with what stands in the forms of its tabs; links and session files carry all of it.

    Each field is judged by itself here. Whether those of a form go together is judged where something is drawn, by
    `dpcore.private_choice.private_range.RangeProblem` and `dpcore.per_group.private_pair.PrivatePairProblem`.

    Attributes:
        pair_unit: What amounts of a sum are rounded to, above 0.
        pair_largest: Highest amount, above 0.
        range_known: What is known of the values.
        range_centre: A typical value.
        range_lower: L where it is known.
        range_unit: Least distance of an end, above 0.
        range_largest: Largest distance of an end, above 0.
        range_users: A public guess of the number of users, at least 1.
        range_bound: A public bound on rows per user, a whole number; None for none.
        range_epsilon: Of the draw of the range.

    Raises:
        InvalidInput: All problems at once.
    """

    pair_unit: float | None = None
    pair_largest: float | None = None
    range_known: Known = Known.TYPICAL
    range_centre: float | None = None
    range_lower: float | None = None
    range_unit: float | None = None
    range_largest: float | None = None
    range_users: float | None = None
    range_bound: int | None = None
    range_epsilon: float | None = 0.25

    def __post_init__(self) -> None:
        with Problems() as problems:
            with problems.collecting():
                super().__post_init__()
            problems.of_kind(Known, range_known=self.range_known)
            within = {
                "pair_unit": (1e-12, 1e12),
                "pair_largest": (1e-12, MOST_WIDTH),
                "range_centre": (-MOST_WIDTH, MOST_WIDTH),
                "range_lower": (-MOST_WIDTH, MOST_WIDTH),
                "range_unit": (1.0 / MOST_WIDTH, MOST_WIDTH),
                "range_largest": (1.0 / MOST_WIDTH, MOST_WIDTH),
                "range_users": (1.0, float(MAX_SIZE)),
                "range_epsilon": EPSILON_RANGE,
            }
            for name, (low, high) in within.items():
                if (value := getattr(self, name)) is not None:
                    problems.between(low, high, **{name: value})
            if self.range_bound is not None:
                problems.whole(1, MAX_SIZE, range_bound=self.range_bound)

    @property
    def question(self) -> PrivateParameters:
        """Return the question alone, on which the answer depends."""
        return PrivateParameters(**{f.name: getattr(self, f.name) for f in fields(PrivateParameters)})


IN_TABS = tuple(
    f.name for f in fields(PageParameters) if f.name not in PrivateParameters.__dataclass_fields__
)
"""Names of what stands in the forms."""
