"""The settings of the page *User-level DP-SGD*: everything but the data."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.privacy import Neighbours
from dpcore.contributions import MAX_SIZE

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER
MAX_STEPS = 10**6
MAX_DIMENSION = 10**12
DELTA_RANGE = (1e-15, 0.1)

ASSUMPTIONS = (
    "Neighbouring data sets differ in one user's presence, with all their examples",
    "Sampling rate, expected batch B and the divisor are public constants that you enter or accept: no program "
    "computes them from the table",
    "A user's examples are kept by a rule that looks at that user alone",
    "In every step each example (or each user) is drawn by an independent coin, and the noisy sum is divided by a "
    "constant",
    "The choice of G is computed from the data. Unless these are public it is private too, and ε does not cover it",
)
"""What the answers rest on; sentences without their full stop."""
NOT_COVERED = (
    "shuffled data, batches of a fixed size, division by the number that was drawn, and batches that are cut at a "
    "limit: there one user's examples push out others'. A cut costs a further δ of at most T (1 + e^ε) times the "
    "probability that a step draws more than the limit less G."
)


class Sampling(enum.Enum):
    """The unit that is sampled in a step."""

    BOTH = "both"
    EXAMPLES = "examples"
    USERS = "users"


@dataclass(frozen=True)
class ExamplesParameters:
    """The question on the page, without the data.

    Attributes:
        epsilon: Privacy budget of the whole training.
        delta: Likewise; from 1e-15 to 0.1.
        batch: B, the examples that a step is expected to see, a public constant, at least 1.
        steps: T, at most `MAX_STEPS`.
        way: Who is drawn in a step: examples, users, or the better of both.
        dimension: d, the number of parameters that are trained.
        alike: r, from 0 to 1: the share of an example's squared gradient that all examples of its user have in common.
            Never read off private data.
        own_bound: A number of examples per user to compare with the best one.

    Raises:
        InvalidInput: All problems at once, in the page's words.
    """

    epsilon: float
    delta: float = 1e-6
    batch: float = 128.0
    steps: int = 100
    way: Sampling = Sampling.BOTH
    dimension: int = 1000
    alike: float = 0.1
    own_bound: int | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.between(*DELTA_RANGE, δ=self.delta)
            problems.between(1.0, 1e12, **{"the expected batch B": self.batch})
            problems.whole(1, MAX_STEPS, **{"the number of steps T": self.steps})
            problems.of_kind(Sampling, **{"the way of sampling": self.way})
            problems.whole(1, MAX_DIMENSION, **{"the number of parameters d": self.dimension})
            problems.between(0.0, 1.0, **{"how alike a user's examples are, r,": self.alike})
            if self.own_bound is not None:
                problems.whole(1, MAX_SIZE, **{"your own bound": self.own_bound})

    @property
    def without_own_bound(self) -> ExamplesParameters:
        """Return the same question without the person's own bound, which does not change the answer."""
        return replace(self, own_bound=None)
