"""What a private choice costs, said before anything was drawn: from public samples, and never from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.data import samples
from dpcore.private_choice import choice_regret
from dpcore.private_choice.parameters import PrivateParameters

USERS = (100, 1_000, 10_000)
"""Numbers of users that it is said for: of these everyone knows the one that is nearest to theirs."""
SAMPLES = ("shop-events", "online-retail-lines", "requests-commits")
"""Public samples whose users differ as people's do: a few have most of the rows."""


@dataclass(frozen=True)
class Forecast:
    """What a draw costs on public samples.

    Attributes:
        users: How many users they are scaled to.
        extra: What a draw adds to the error on average, as a share of the error of the best bound; the largest over
            the samples. For a quantile of the rows per user: the rank error, as a share of the users.
    """

    users: int
    extra: float


def forecast(parameters: PrivateParameters, users: Sequence[int] = USERS) -> tuple[Forecast, ...]:
    """What a direct choice costs where nothing is known but roughly how many users there are.

    It reads public samples alone, so that it says nothing of private data.

    Args:
        parameters: The question; its variance of a value is the worst case, or known from elsewhere.
        users: Numbers of users.

    Returns:
        One forecast for each of them. Average costs are exact, by the probabilities of the exponential mechanism.

    Raises:
        InvalidInput: A number of users is beyond what samples are scaled to.
    """
    most = np.zeros(len(users))
    for key in SAMPLES:
        histogram = samples.load(key).histogram
        found = choice_regret.regret(
            parameters.choice, histogram, None, np.asarray(users, dtype=np.float64) / histogram.num_users
        )
        most = np.maximum(most, found.mean[:, 0])
    return tuple(Forecast(count, float(extra)) for count, extra in zip(users, most, strict=True))
