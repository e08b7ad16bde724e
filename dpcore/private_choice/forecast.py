"""What a private choice costs, said before anything was drawn: from public samples, and never from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.data import samples
from dpcore.private_choice import choice_regret
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.private_choice.release_bounds import BoundDraw

USERS = (100, 1_000, 10_000)
"""Numbers of users that it is said for: of these everyone knows the one that is nearest to theirs."""
SAMPLES = ("shop-events", "online-retail-lines", "requests-commits")
"""Public samples whose users differ as people's do: a few have most of the rows."""


@dataclass(frozen=True)
class Forecast:
    """What a draw costs on public samples.

    Attributes:
        users: How many users they are scaled to; 0 where they are scaled to a number of rows.
        extra: What a draw adds to the error on average, as a share of the error of the best bound; the largest over
            the samples. For a quantile of the rows per user: the rank error, as a share of the users.
    """

    users: int
    extra: float


def forecast(parameters: PrivateParameters | BoundDraw, users: Sequence[int] = USERS) -> tuple[Forecast, ...]:
    """Return what a direct choice costs where nothing is known but roughly how many users there are.

    It reads public samples alone, so that it says nothing of private data.

    Args:
        parameters: The question; its variance of a value is the worst case, or known from elsewhere.
        users: Numbers of users; of a learner, whose question names a number of rows, they are as many as that takes.

    Returns:
        One forecast for each of them. Average costs are exact, by the probabilities of the exponential mechanism.

    Raises:
        InvalidInput: A number of users is beyond what samples are scaled to.
    """
    rows = parameters.rows if isinstance(parameters, BoundDraw) else None
    worst = np.zeros(len(users) if rows is None else 1)
    for key in SAMPLES:
        histogram = samples.load(key).histogram
        scales = np.asarray(users, dtype=np.float64) / histogram.num_users
        if rows is not None:
            # Beyond what samples are scaled to, nothing changes any more.
            scales = np.clip([rows / histogram.num_rows], *choice_regret.SCALE_RANGE)
        costs = choice_regret.regret(parameters.choice, histogram, None, scales)
        worst = np.maximum(worst, costs.mean[:, 0])
    if rows is not None:
        return (Forecast(0, float(worst[0])),)
    return tuple(Forecast(count, float(extra)) for count, extra in zip(users, worst, strict=True))
