"""Recommending under privacy: recall of every model on the same split and noise, over epsilon and by popularity."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.common.over_runs import Summary, summary
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation import implicit
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.implicit import ImplicitModel, ImplicitSettings
from dpcore.factorisation.measures import BUCKETS, buckets_of, recall
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.budget import PrivacyTarget


class Recommender(enum.Enum):
    """A model that is compared; the value is what it is called."""

    POPULAR = "Most popular, no privacy"
    NO_PRIVACY = "Factorisation, no privacy"
    PRIVATE_POPULAR = "DP most popular"
    UNIFORM = "DP uniform sampling"
    TAIL = "DP tail sampling"
    ADAPTIVE = "DP adaptive weights"

    @property
    def scheme(self) -> Scheme | None:
        """The scheme of a private factorisation; None for a baseline."""
        return OF_SCHEME.get(self)

    @property
    def is_private(self) -> bool:
        """Whether it keeps the guarantee, and so depends on epsilon."""
        return self is Recommender.PRIVATE_POPULAR or self in OF_SCHEME


OF_SCHEME: Mapping[Recommender, Scheme] = {
    Recommender.UNIFORM: Scheme.UNIFORM,
    Recommender.TAIL: Scheme.TAIL,
    Recommender.ADAPTIVE: Scheme.ADAPTIVE,
}
RECOMMENDERS = tuple(Recommender)
TEST_SHARE = 0.2
"""Of what a test user chose, this is to be recalled; the rest is known. Source: Liang et al. 2018, as in the paper."""


@dataclass(frozen=True)
class ImplicitStudy:
    """What is run.

    Attributes:
        epsilons: Of the guarantee, each with ``delta``.
        delta: Of the guarantee.
        settings: Of every private factorisation.
        reference: Of the one without privacy.
        max_items: k.
        count_share: Share of the budget for noisy counts.
        exponent: mu of the adaptive weights.
        ridge_to_noise: What the items' ridge grows by per unit of noise.
        test_users: Probability with which a user is held out of training; of more than `measures.RECALL_USERS` the
            first are tested.
        repeats: Seeds; each has its own split and noise, shared by all models.
        seed: Of all randomness.
        compared: Which models are fitted.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    epsilons: tuple[float, ...] = (1.0, 5.0, 20.0)
    delta: float = 1e-5
    settings: ImplicitSettings = field(default_factory=ImplicitSettings)
    reference: ImplicitSettings = field(
        default_factory=lambda: ImplicitSettings(dimension=12, sweeps=8, unobserved=0.1)
    )
    max_items: int = 50
    count_share: float = 0.12
    exponent: float = 0.25
    ridge_to_noise: float = implicit.RIDGE_TO_NOISE
    test_users: float = 0.1
    repeats: int = 3
    seed: int = 1
    compared: tuple[Recommender, ...] = RECOMMENDERS

    def __post_init__(self) -> None:
        with Problems() as problems:
            if not self.epsilons:
                problems.add("epsilons must not be empty")
            problems.between(0.0, 1.0, exponent=self.exponent)
            problems.between(0.001, 0.99, count_share=self.count_share)
            problems.non_negative(ridge_to_noise=self.ridge_to_noise)
            problems.between(0.001, 0.9, test_users=self.test_users)
            problems.whole(1, 100, repeats=self.repeats)
            problems.whole(0, 2**32 - 1, seed=self.seed)
        for epsilon in self.epsilons:
            self.spending(epsilon)

    def spending(self, epsilon: float) -> Spending:
        """The budget at one epsilon, and how it is divided."""
        target = PrivacyTarget(epsilon, self.delta)
        return Spending.of(target, self.count_share, self.settings.sweeps, self.max_items, for_all=1)


@dataclass(frozen=True, eq=False)
class ImplicitResult:
    """Recall, one per run.

    Attributes:
        study: What was run.
        recall: Shape (recommenders, epsilons, repeats, 1 + BUCKETS), over all items and then by bucket, rarest first;
            NaN for runs that were not reached. Models without privacy have the same numbers at each epsilon.
        train_counts: How often each item was chosen in training in the first split, shape (num_items,).
        models: Of the first seed, by model and epsilon (0 for the one without privacy).
        finished: Whether all runs were reached.
    """

    study: ImplicitStudy
    recall: FloatArray
    train_counts: IntArray
    models: Mapping[tuple[Recommender, float], ImplicitModel]
    finished: bool

    def over_seeds(self, model: Recommender) -> Summary:
        """Mean and spread over seeds, each of shape (epsilons, 1 + BUCKETS)."""
        return summary(self.recall[RECOMMENDERS.index(model)])

    def difference(self, model: Recommender, other: Recommender) -> Summary:
        """Of model - other, paired by seed; shapes as for `over_seeds`."""
        return summary(self.recall[RECOMMENDERS.index(model)] - self.recall[RECOMMENDERS.index(other)])


class Tell(Protocol):
    """How a study reports."""

    def __call__(self, share: float, so_far: ImplicitResult | None = None) -> None:
        """Told the share of models done, and what is there so far after all models of one epsilon."""


@dataclass(frozen=True, eq=False)
class UserSplit:
    """Users for training, and users for testing with what is known of them and what is to be recalled.

    Attributes:
        train: What the users in training chose. All tables keep the users' codes: others have nothing in it.
        history: What is known of test users.
        test: What is to be recalled.
    """

    train: Ratings
    history: Ratings
    test: Ratings


def split_users(chosen: Ratings, test_users: float, rng: np.random.Generator) -> UserSplit:
    """Hold out users, and of each of them a fifth of what they chose.

    Args:
        chosen: The table.
        test_users: Probability with which a user is held out.
        rng: Source of the draw.

    Raises:
        InvalidInput: Nothing is left on one side.

    Source: Liang et al. 2018, which Krichene et al. 2023 follow for recall (section 5).
    """
    held_user = rng.random(chosen.num_users, dtype=np.float32) < test_users
    held = np.repeat(held_user, np.diff(chosen.starts))
    asked = rng.random(chosen.num_ratings, dtype=np.float32) < TEST_SHARE
    masks = (~held, held & ~asked, held & asked)
    if not all(mask.any() for mask in masks):
        raise refusal(
            "nothing is left to train on or to test", remedy="Bring more users, or hold out more of them"
        )
    return UserSplit(*(chosen.kept(mask) for mask in masks))


def run(
    chosen: Ratings, study: ImplicitStudy, tell: Tell | None = None, should_stop: ShouldStop = never
) -> ImplicitResult:
    """Fit and measure every model.

    Args:
        chosen: What users chose, `implicit.chosen`; each seed splits it anew.
        study: What to run.
        tell: Told after each model.
        should_stop: Asked before each sweep; where it says yes, what is finished is returned.

    Returns:
        Recall of every model that was reached, by epsilon, seed and bucket.

    Raises:
        InvalidInput: A split leaves nothing to train on or nothing to test.

    Source: Krichene et al. 2023, section 5 and figures 2, 4, 7, 9 and 10; the baseline of what is popular, pairing and
    intervals are ours.
    """
    found = np.full((len(RECOMMENDERS), len(study.epsilons), study.repeats, 1 + BUCKETS), np.nan)
    models: dict[tuple[Recommender, float], ImplicitModel] = {}
    counts = np.zeros(chosen.num_items, dtype=np.int64)
    private = [model for model in study.compared if model.is_private]
    whole = study.repeats * (len(study.compared) - len(private) + len(private) * len(study.epsilons))
    done = 0

    def result(finished: bool = False) -> ImplicitResult:
        return ImplicitResult(study, found.copy(), counts.copy(), dict(models), finished)

    for number in range(study.repeats):
        for_split, for_noise = np.random.SeedSequence([study.seed, number]).spawn(2)
        split = split_users(chosen, study.test_users, np.random.default_rng(for_split))
        noise_seed = int(for_noise.generate_state(1)[0])
        buckets = buckets_of(split.train.item_counts)
        if number == 0:
            counts = split.train.item_counts
        asked = [(model, None) for model in study.compared if not model.is_private]
        asked += [(model, at) for at in range(len(study.epsilons)) for model in private]  # type: ignore[misc]
        for model, at in asked:
            if should_stop():
                return result()
            fitted = _fitted(model, split.train, study, at, noise_seed, should_stop)
            if fitted is None:
                return result()
            users = (
                fitted.user_vectors(split.history)
                if isinstance(fitted, ImplicitModel)
                else np.ones((chosen.num_users, 1))
            )
            items = fitted.item_vectors if isinstance(fitted, ImplicitModel) else fitted
            place = slice(None) if at is None else at
            found[RECOMMENDERS.index(model), place, number] = recall(
                users, items, split.history, split.test, buckets
            )
            if number == 0 and isinstance(fitted, ImplicitModel):
                models[model, 0.0 if at is None else study.epsilons[at]] = fitted
            done += 1
            if tell is not None:
                whole_epsilon = at is not None and model is private[-1]
                tell(done / whole, result() if whole_epsilon else None)
    return result(finished=True)


def _fitted(
    model: Recommender,
    train: Ratings,
    study: ImplicitStudy,
    at: int | None,
    seed: int,
    should_stop: ShouldStop,
) -> ImplicitModel | FloatArray | None:
    """A factorisation, or how popular items are; None where it was stopped."""
    if model is Recommender.POPULAR:
        return implicit.popular(train.item_counts)
    if at is None:
        return implicit.fit(train, study.reference)
    spending = study.spending(study.epsilons[at])
    if model.scheme is None:
        return implicit.popular(implicit.private_counts(train, spending, seed))
    found = implicit.fit_private(
        train, study.settings, model.scheme, spending, study.exponent, study.ridge_to_noise, seed,
        should_stop=should_stop,
    )  # fmt: skip
    return None if found is None else found.model
