"""What a person chooses on the page Choose privately: everything but the data, all of it public."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpcore.answer.setting import WORST_SHARE, ReleaseSetting
from dpcore.code.choice import Quantity
from dpcore.common import privacy
from dpcore.common.alike import ASSUMED_SHARE
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.noise_error import Measure, NoiseKind, compute_unit_scale
from dpcore.contributions import MAX_SIZE
from dpcore.dataset import Dataset
from dpcore.private_choice.bins import PublicBins
from dpcore.private_choice.choice import FACTOR_RANGE, ChoiceProblem, Prior, SmallFirst
from dpcore.private_choice.private_histogram import CopyNoise, PrivateCopyParameters
from dpcore.private_choice.scores import CapMean, Condition, RankedSum, SizeQuantile, SmoothMean
from dpcore.private_choice.table_scores import TABLE_POWER, TableCap, TableSmooth

DELTA_RANGE = (1e-15, 0.5)
DEFAULT_LARGEST = 10_000
EXACT_UP_TO = 10


class Wanted(enum.Enum):
    """The number that is to be chosen."""

    SMOOTH = "smooth"
    CAP = "cap"
    SUM = "sum"
    QUANTILE = "quantile"


class Several(enum.Enum):
    """What is drawn with one epsilon although it is more than one number; each has a question of its own."""

    PAIR = "pair"
    RANGE = "range"


class Relation(enum.Enum):
    """The neighbouring relation, in a word that links can carry."""

    ADD_OR_REMOVE = "add-or-remove"
    REPLACE = "replace"

    @property
    def neighbours(self) -> privacy.Neighbours:
        """Return the relation itself."""
        if self is Relation.REPLACE:
            return privacy.Neighbours.REPLACE_USER
        return privacy.Neighbours.ADD_OR_REMOVE_USER


def choose_defaults(data: Dataset) -> Mapping[str, Any]:
    """Return what holds of these data where nobody says otherwise: rows of one user are alike, as *Mean* assumes."""
    return {"user_share": ASSUMED_SHARE}


@dataclass(frozen=True)
class PrivateParameters:
    """The question of the page.

    Attributes:
        epsilon: Of the release that will use the bound, in `dpcore.common.checks.EPSILON_RANGE`.
        wanted: The number to choose.
        epsilon_choice: Of the choice, in the same range; it comes on top.
        relation: Who differs between neighbouring data sets.
        noise: Of a private copy.
        delta: With Gaussian noise, in `DELTA_RANGE`; None with Laplace noise.
        largest: Public maximum of rows per user, from 1 to 1e12.
        variance_share: sigma^2 / B^2 of one row's value, in (0, 1/4]; 1/4 is the worst case. Of the values, the bound
            of a mean depends on this and on ``user_share`` alone.
        user_share: rho in [0, 1], the share of sigma^2 that lies between users, for the mean of the rows in this very
            table. At 0 rows are independent, and the best bound is that of a population, too.
        share: For a quantile, in (0, 1).
        margin: For a sum, how many users more than 1/epsilon to leave above the bound, from 0 to 1e12: with few users
            there, a draw easily lands above them all. A draw adds some by itself (`scores.RankedSum.steadied`).
        guess: A public guess of the number, at least 1, in rows per user; None for none.
        factor: The number lies within this factor of the guess with a chance of about two in three, in
            `choice.FACTOR_RANGE`; None without a guess.
        release_delta: delta of a sum that will be released with Gaussian noise, in `DELTA_RANGE`; None for Laplace
            noise. That of a private copy is ``delta``.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    wanted: Wanted = Wanted.SMOOTH
    epsilon_choice: float = 0.1
    relation: Relation = Relation.ADD_OR_REMOVE
    noise: CopyNoise = CopyNoise.LAPLACE
    delta: float | None = None
    largest: int = DEFAULT_LARGEST
    variance_share: float = WORST_SHARE
    share: float = 0.95
    margin: float = 0.0
    guess: float | None = None
    factor: float | None = None
    user_share: float = 0.0
    release_delta: float | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            fine = problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.between(*EPSILON_RANGE, epsilon_choice=self.epsilon_choice)
            for name, enumeration in (("wanted", Wanted), ("relation", Relation), ("noise", CopyNoise)):
                problems.of_kind(enumeration, **{name: getattr(self, name)})
            if (self.delta is None) != (self.noise is CopyNoise.LAPLACE):
                problems.add("delta goes with Gaussian noise, and Gaussian noise needs a delta")
            elif self.delta is not None:
                problems.between(*DELTA_RANGE, delta=self.delta)
            problems.whole(1, MAX_SIZE, largest=self.largest)
            fine &= problems.positive(variance_share=self.variance_share)
            fine &= problems.between(-1.0, 0.25, variance_share=self.variance_share)
            fine &= problems.between(0.0, 1.0, user_share=self.user_share)
            problems.inside(0.0, 1.0, share=self.share)
            problems.between(0.0, 1e12, margin=self.margin)
            self._check_guess(problems)
            self._check_release(problems)
            if fine and self.wanted in (Wanted.SMOOTH, Wanted.CAP):
                with problems.collecting():
                    CapMean(self.trade_off)

    def _check_release(self, problems: Problems) -> None:
        if self.release_delta is None:
            return
        problems.between(*DELTA_RANGE, release_delta=self.release_delta)
        if self.wanted is not Wanted.SUM:
            problems.add("a delta of the release goes with a sum, whose bound depends on its noise")

    def _check_guess(self, problems: Problems) -> None:
        if (self.guess is None) != (self.factor is None):
            problems.add("a guess goes with a factor that says how good it is")
        if self.guess is not None:
            problems.between(1, MAX_SIZE, guess=self.guess)
        if self.factor is not None:
            problems.between(*FACTOR_RANGE, factor=self.factor)

    @property
    def trade_off(self) -> float:
        """A = sigma^2 / (2 (B / epsilon)^2); with private counts at the mean where the error is worst."""
        return self.variance_share * self.epsilon**2 / 2.0

    @property
    def release_noise(self) -> NoiseKind:
        """Return the noise of the sum that the bound is for."""
        return NoiseKind.LAPLACE if self.release_delta is None else NoiseKind.GAUSSIAN

    @property
    def price(self) -> float:
        """Mean size of the noise of a sum per unit of its bound, in users: so many lie above the best bound."""
        noise = self.release_noise
        return compute_unit_scale(noise, self.epsilon, self.release_delta) * noise.mean_magnitude

    @property
    def condition(self) -> Condition:
        """Return what makes a number the best one."""
        if self.wanted is Wanted.SMOOTH:
            return (
                TableSmooth(self.trade_off, self.user_share)
                if self.user_share
                else SmoothMean(self.trade_off)
            )
        if self.wanted is Wanted.CAP:
            return TableCap(self.trade_off, self.user_share) if self.user_share else CapMean(self.trade_off)
        if self.wanted is Wanted.SUM:
            return RankedSum(self.price, self.margin)
        return SizeQuantile(self.share)

    @property
    def setting(self) -> ReleaseSetting | None:
        """What the release is that the number is for; None for a quantile of rows per user, which bounds nothing."""
        relation = self.relation.neighbours
        if self.wanted is Wanted.SUM:
            measure = Measure.BOUND
            return ReleaseSetting(
                Quantity.COUNT,
                self.epsilon,
                relation,
                noise=self.release_noise,
                delta=self.release_delta,
                measure=measure,
                margin=self.margin,
            )
        if self.wanted is Wanted.QUANTILE:
            return None
        return ReleaseSetting(
            Quantity.MEAN,
            self.epsilon,
            relation,
            variance_share=self.variance_share,
            is_table_mean=self.user_share > 0.0,
            user_share=self.user_share,
        )

    @classmethod
    def of_release(cls, setting: ReleaseSetting, **of_the_choice: Any) -> PrivateParameters | None:
        """Return the question of a draw of the bound of a release, or None if no draw aims at that bound.

        What was read off values does not enter: the worst case of their variance takes its place, and what is usually
        assumed of users. Users who differ count for the mean of a table, not for that of a population. Where counts are
        public a bound needs no draw.

        Args:
            setting: Of the release.
            of_the_choice: Further fields: ``epsilon_choice``, ``largest``, ``margin``.
        """
        if setting.neighbours is not Relation.ADD_OR_REMOVE.neighbours:
            return None
        if setting.statistic is Quantity.COUNT:
            return cls(setting.epsilon, Wanted.SUM, release_delta=setting.delta, **of_the_choice)
        if setting.statistic is not Quantity.MEAN or setting.noise is not NoiseKind.LAPLACE:
            return None
        variance_share = None if setting.uses_values else setting.variance_share
        user_share = 0.0
        if setting.is_table_mean:
            user_share = ASSUMED_SHARE if setting.uses_values else setting.user_share
        share = WORST_SHARE if variance_share is None else variance_share
        return cls(setting.epsilon, Wanted.CAP, variance_share=share, user_share=user_share, **of_the_choice)

    @property
    def choice(self) -> ChoiceProblem:
        """Return the direct choice."""
        prior: Prior | SmallFirst | None = None
        if self.guess is not None and self.factor is not None:
            prior = Prior(self.guess, self.factor)
        elif self.wanted is not Wanted.QUANTILE:
            # A quantile too high misses by as many users as one too low, and needs no such prior.
            of_users = self.user_share and self.wanted in (Wanted.SMOOTH, Wanted.CAP)
            prior = SmallFirst(TABLE_POWER) if of_users else SmallFirst()
        return ChoiceProblem(
            self.condition, self.epsilon_choice, int(self.largest), self.relation.neighbours, prior
        )

    @property
    def copy(self) -> PrivateCopyParameters:
        """Return the private copy."""
        return self.copy_at(self.epsilon_choice)

    def copy_at(self, epsilon_choice: float) -> PrivateCopyParameters:
        """Return the private copy with another budget."""
        largest = int(self.largest)
        bins = PublicBins(exact_up_to=min(EXACT_UP_TO, largest), largest=largest)
        return PrivateCopyParameters(epsilon_choice, bins, self.noise, self.delta, self.relation.neighbours)
