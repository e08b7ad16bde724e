"""The settings of the page *User-level DP-SGD*: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.parameters import LINE, Option, Parameters, own_bound, public
from dpcore.common.privacy import Neighbours
from dpcore.contributions import MAX_SIZE

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER
MAX_STEPS = 10**6
MAX_DIMENSION = 10**12
DELTA_RANGE = (1e-15, 0.1)

ASSUMPTIONS = (
    "Neighbouring data sets differ in one user's presence, with all their examples",
    "Sampling rate, expected batch B and the divisor are public constants: no program computes them from the table",
    "A user's examples are kept by a rule that looks at that user alone",
    "Every step draws each example (or user) by an independent coin, and divides the noisy sum by a constant",
    "The choice of G is computed from the data. Unless these are public it is private too, and ε does not cover it",
    "Not covered: shuffled data, batches of a fixed size or cut at a limit, and division by the number that was drawn. "
    "A cut costs a further δ of at most T (1 + e^ε) times the probability that a step draws more than the limit less G",
)


class Sampling(Option):
    """The unit that is sampled in a step."""

    BOTH = "both", "The better"
    EXAMPLES = "examples", "Examples"
    USERS = "users", "Users"


# Batch, steps and δ are constants of the training, which are fixed before the data are seen.
@dataclass(frozen=True)
class ExamplesParameters(Parameters):
    """The parameters of the page *User-level DP-SGD*: everything but the data."""

    delta: float = public.number(1e-6, "δ", DELTA_RANGE, name="δ", width=100, place=LINE)
    """Probability that ε does not hold: well below 1 / users."""
    batch_size: float = public.number(
        128.0,
        "Batch B",
        (1.0, 1e12),
        name="the expected batch B",
        former_name="batch",
        is_integer=True,
        width=100,
        place=LINE,
    )
    """Examples expected in a step: a public constant."""
    steps: int = public.number(
        100, "Steps T", (1, MAX_STEPS), name="the number of steps T", width=90, place=LINE
    )
    sampling: Sampling = public.choice(Sampling.BOTH, "Sampled in a step", former_name="way")
    """Each example's gradient is clipped, or the mean of a user's gradients."""
    dimension: int = public.number(
        1000, "Parameters d", (1, MAX_DIMENSION), name="the number of parameters d"
    )
    """The more, the more noise decides."""
    gradient_similarity: float = public.number(
        0.1,
        "How alike a user's examples are, r",
        (0.0, 1.0),
        name="how alike a user's examples are, r,",
        step=0.1,
        former_name="alike",
    )
    """The share of a squared gradient that a user's examples share. Guess it: never read it off private data."""
    own_bound: int | None = own_bound(
        label="Compare with", limits=(1, MAX_SIZE), placeholder="your own bound"
    )
    """Examples per user."""
