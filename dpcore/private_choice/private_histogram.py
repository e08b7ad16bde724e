"""A private copy of the contribution histogram: one DP release, after which everything may be explored.

Every user sits in one public bin. Adding or removing a user moves one count by 1: L1 and squared L2 sensitivity
1. Replacing one by another moves at most two counts by 1 each: 2 and 2. Noise goes on every bin, empty ones too:
leaving those out would show which are empty.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from dpcore.common import mechanisms
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Charge, Disclosure, Neighbours, ReleaseFacts
from dpcore.contributions import MAX_USERS, ContributionHistogram, IntArray, read_only
from dpcore.dataset import Contribution, Dataset
from dpcore.private_choice.bins import PublicBins
from dpcore.private_choice.consistency import NoiseShape, consistent_users

NOTHING_LEFT = (
    "No users are left in the copy: there are too few of them for this much noise. Choose with a larger epsilon, "
    "with fewer bins, or without these data"
)
TOO_MANY = (
    f"a private copy holds at most {MAX_USERS:,} users in each bin, and there are more. "
    "Nothing was drawn or spent"
)

DEFAULT_BINS = PublicBins()


class CopyNoise(enum.Enum):
    """The noise on the counts; values are the words of labels."""

    LAPLACE = mechanisms.DISCRETE_LAPLACE
    GAUSSIAN = mechanisms.DISCRETE_GAUSSIAN


@dataclass(frozen=True)
class PrivateCopyParameters:
    """What is asked of a private copy. Every field is public.

    Attributes:
        epsilon_choice: Privacy budget of the copy, in `dpcore.common.checks.EPSILON_RANGE`.
        bins: Public bins of rows per user.
        noise: Laplace for epsilon-DP, Gaussian for (epsilon, delta)-DP.
        delta: Strictly between 0 and 1 with Gaussian noise; None with Laplace noise.
        neighbours: Add or remove one user, or replace one user.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon_choice: float
    bins: PublicBins = DEFAULT_BINS
    noise: CopyNoise = CopyNoise.LAPLACE
    delta: float | None = None
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon_choice=self.epsilon_choice)
            problems.of_kind(PublicBins, bins=self.bins)
            problems.of_kind(CopyNoise, noise=self.noise)
            if self.noise is CopyNoise.LAPLACE and self.delta is not None:
                problems.add("delta goes only with Gaussian noise")
            elif self.noise is CopyNoise.GAUSSIAN and self.delta is None:
                problems.add("Gaussian noise needs a delta")
            elif self.noise is CopyNoise.GAUSSIAN:
                problems.inside(0.0, 1.0, delta=self.delta)
            if self.neighbours not in (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER):
                problems.add(
                    "neighbours must add or remove one user or replace one user: a copy of public counts needs no noise"
                )

    @property
    def sensitivity(self) -> int:
        """Return the most that one user moves the counts: in L1, and equally in squared L2."""
        return 2 if self.neighbours is Neighbours.REPLACE_USER else 1

    @property
    def scale(self) -> float:
        """Return b of the discrete Laplace noise or sigma of the discrete Gaussian noise, in users; draws nothing."""
        if self.noise is CopyNoise.LAPLACE:
            return mechanisms.find_laplace_scale(self.sensitivity, self.epsilon_choice)
        assert self.delta is not None
        return mechanisms.find_gaussian_scale(self.sensitivity, self.epsilon_choice, self.delta)

    @property
    def noise_shape(self) -> NoiseShape:
        """Return the variance and tails of the noise on one count, in users."""
        return noise_shape(self.noise, self.scale)


def noise_shape(noise: CopyNoise, scale: float) -> NoiseShape:
    """Return the variance and tails of whole noise of this scale.

    Source: Canonne, Kamath, Steinke 2020: discrete Laplace has variance 1 / (2 sinh(1 / (2b))^2); discrete
        Gaussian at most sigma^2 (corollary 9).
    """
    if noise is CopyNoise.GAUSSIAN:
        return NoiseShape(scale**2, 0.0)
    # Beyond 350 the square of sinh leaves float64, and the variance is 0 for every purpose.
    half_width = 0.5 / scale
    return NoiseShape(0.5 / math.sinh(half_width) ** 2 if half_width < 350.0 else 0.0, scale)


@dataclass(frozen=True, eq=False)
class PrivateCopy:
    """One private copy: all of it may be published, under its label.

    Attributes:
        parameters: What was asked for.
        facts: What is guaranteed, as OpenDP proves it; the label of everything computed from the copy.
        noisy_counts: Users per bin as released, shape (k,), may be negative.
        users: Users per bin after post-processing, shape (k,), at least 0.
        histogram: The users at their bins' representative sizes; None where no user is left.
        scale: Of the noise, in users.
    """

    parameters: PrivateCopyParameters
    facts: ReleaseFacts
    noisy_counts: IntArray
    users: IntArray
    histogram: ContributionHistogram | None
    scale: float

    @property
    def sentence(self) -> str:
        """Return how it was made, or why nothing is left of it."""
        if self.histogram is None:
            return f"{NOTHING_LEFT}."
        p = self.parameters
        return (
            f"{self.facts.mechanism[0].upper()}{self.facts.mechanism[1:]} noise of scale {self.scale:.4g} on the "
            f"users in each of {p.bins.sentence}; the noisy counts were then fitted to a histogram that can be."
        )

    def dataset(self, name: str, contribution: Contribution = Contribution.ROWS) -> Dataset:
        """Return the copy as data, labelled as a DP release and holding a histogram only.

        Args:
            name: Public: what the person calls the data (a file's name), not something computed from them.
            contribution: What was counted as one contribution, as the person chose.

        Raises:
            InvalidInput: No user is left.
        """
        if self.histogram is None:
            raise InvalidInput([NOTHING_LEFT])
        return Dataset(
            name=f"Private copy of {name}",
            source=self.sentence,
            disclosure=Disclosure.DP_RELEASE,
            histogram=self.histogram,
            contribution=contribution,
            release=self.facts,
        )


def release_histogram(
    histogram: ContributionHistogram, parameters: PrivateCopyParameters, charge: Charge | None = None
) -> PrivateCopy:
    """Release a private copy. A fresh draw at every call, and every call costs its epsilon.

    Args:
        histogram: Rows per user, private.
        parameters: What is asked for.
        charge: Told what the draw guarantees before anything is drawn.

    Returns:
        `PrivateCopy`; a function of the released counts and of public things only.

    Raises:
        InvalidInput: More than `MAX_USERS` users in one bin; nothing was drawn.
    """

    def facts(epsilon: float, delta: float) -> ReleaseFacts:
        return ReleaseFacts(epsilon, delta, parameters.neighbours, parameters.noise.value)

    counts = parameters.bins.counts(histogram)
    if np.any(counts > MAX_USERS):
        raise InvalidInput([TOO_MANY])
    noise = draw(
        counts, parameters, None if charge is None else lambda epsilon, delta: charge(facts(epsilon, delta))
    )
    # Of released counts, public bins and the law of the noise alone: from here on nothing costs privacy.
    users = consistent_users(noise.values, noise_shape(parameters.noise, noise.scale), parameters.bins.lower)
    return PrivateCopy(
        parameters,
        facts(noise.epsilon, noise.delta),
        read_only(noise.values),
        read_only(users),
        fitted(users, parameters.bins),
        noise.scale,
    )


def draw(
    counts: IntArray, parameters: PrivateCopyParameters, charge: mechanisms.Charge | None = None
) -> mechanisms.IntegerRelease:
    """Return the noise on every count, by OpenDP."""
    if parameters.noise is CopyNoise.LAPLACE:
        return mechanisms.release_discrete_laplace(
            counts, parameters.sensitivity, parameters.epsilon_choice, charge
        )
    assert parameters.delta is not None
    return mechanisms.release_discrete_gaussian(
        counts, parameters.sensitivity, parameters.epsilon_choice, parameters.delta, charge
    )


def fitted(users: IntArray, bins: PublicBins) -> ContributionHistogram | None:
    """Return the users per bin as a histogram over representative sizes, or None if there are none."""
    occupied = users > 0
    if not np.any(occupied):
        return None
    # Noise may carry a count past what one size may hold; cutting it off looks at released numbers only.
    return ContributionHistogram(bins.representative[occupied], np.minimum(users[occupied], MAX_USERS))
