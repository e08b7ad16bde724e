"""Recommending under privacy: recall of every model on the same split and noise, over epsilon and by popularity."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.noise_error import Summary, summarise_runs
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation import implicit
from dpcore.factorisation.allocation import Scheme, Spending
from dpcore.factorisation.implicit import ImplicitModel, ImplicitSettings
from dpcore.factorisation.measures import BUCKETS, assign_buckets, compute_recall
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.problem import PrivacyTarget


class Recommender(enum.Enum):
    """A model that is compared; the value is its name on the page."""

    POPULAR = "Most popular, no privacy"
    NO_PRIVACY = "Factorisation, no privacy"
    PRIVATE_POPULAR = "DP most popular"
    UNIFORM = "DP uniform sampling"
    TAIL = "DP tail sampling"
    ADAPTIVE = "DP adaptive weights"

    @property
    def scheme(self) -> Scheme | None:
        """Return the scheme of a private factorisation; None for a baseline."""
        return SCHEME_OF_RECOMMENDER.get(self)

    @property
    def is_private(self) -> bool:
        """Return True if the model keeps the guarantee, and so depends on epsilon."""
        return self is Recommender.PRIVATE_POPULAR or self in SCHEME_OF_RECOMMENDER


SCHEME_OF_RECOMMENDER: Mapping[Recommender, Scheme] = {
    Recommender.UNIFORM: Scheme.UNIFORM,
    Recommender.TAIL: Scheme.TAIL,
    Recommender.ADAPTIVE: Scheme.ADAPTIVE,
}
RECOMMENDERS = tuple(Recommender)
TEST_SHARE = 0.2
"""Of what a test user chose, this is to be recalled; the rest is known. Source: Liang et al. 2018, as in the paper."""


@dataclass(frozen=True)
class ImplicitStudy:
    """The models, settings and splits of a study of recommenders.

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
        """Divide the budget at one epsilon."""
        target = PrivacyTarget(epsilon, self.delta)
        return Spending.from_target(
            target, self.count_share, self.settings.sweeps, self.max_items, unit_releases=1
        )


@dataclass(frozen=True, eq=False)
class ImplicitResult:
    """Recall of every run of a study.

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

    def summarise(self, model: Recommender) -> Summary:
        """Return mean and spread over seeds, each of shape (epsilons, 1 + BUCKETS)."""
        return summarise_runs(self.recall[RECOMMENDERS.index(model)])

    def compare(self, model: Recommender, reference: Recommender) -> Summary:
        """Return mean and spread of model - reference, paired by seed; shapes as in `summarise`."""
        return summarise_runs(
            self.recall[RECOMMENDERS.index(model)] - self.recall[RECOMMENDERS.index(reference)]
        )


class ProgressReport(Protocol):
    """A callback that gets the progress of a study."""

    def __call__(self, share: float, so_far: ImplicitResult | None = None) -> None:
        """Receive the share of finished models and, after all models of one epsilon, the results so far."""


@dataclass(frozen=True, eq=False)
class UserSplit:
    """Users for training, and test users with known choices and choices to be recalled.

    Attributes:
        train: What the users in training chose. All tables keep the users' codes: others have nothing in it.
        history: What is known of test users.
        test: What is to be recalled.
    """

    train: Ratings
    history: Ratings
    test: Ratings


def split_users(choices: Ratings, test_users: float, rng: np.random.Generator) -> UserSplit:
    """Hold out users, and of each of them a fifth of what they chose.

    Args:
        choices: The table.
        test_users: Probability with which a user is held out.
        rng: Source of the draw.

    Raises:
        InvalidInput: Nothing is left on one side.

    Source: Liang et al. 2018, which Krichene et al. 2023 follow for recall (section 5).
    """
    is_test_user = rng.random(choices.num_users, dtype=np.float32) < test_users
    is_test_choice = np.repeat(is_test_user, np.diff(choices.starts))
    is_to_recall = rng.random(choices.num_ratings, dtype=np.float32) < TEST_SHARE
    masks = (~is_test_choice, is_test_choice & ~is_to_recall, is_test_choice & is_to_recall)
    if not all(mask.any() for mask in masks):
        raise refuse(
            "nothing is left to train on or to test", remedy="Bring more users, or hold out more of them"
        )
    return UserSplit(*(choices.select(mask) for mask in masks))


def run(
    choices: Ratings,
    study: ImplicitStudy,
    report: ProgressReport | None = None,
    should_stop: ShouldStop = never,
) -> ImplicitResult:
    """Fit and measure every model.

    Args:
        choices: What users chose, `implicit.select_choices`; each seed splits it anew.
        study: What to run.
        report: Told after each model.
        should_stop: Asked before each sweep; where it says yes, what is finished is returned.

    Returns:
        Recall of every model that was reached, by epsilon, seed and bucket.

    Raises:
        InvalidInput: A split leaves nothing to train on or nothing to test.

    Source: Krichene et al. 2023, section 5 and figures 2, 4, 7, 9 and 10; the baseline of what is popular, pairing and
    intervals are ours.
    """
    recalls = np.full((len(RECOMMENDERS), len(study.epsilons), study.repeats, 1 + BUCKETS), np.nan)
    models: dict[tuple[Recommender, float], ImplicitModel] = {}
    counts = np.zeros(choices.num_items, dtype=np.int64)
    private = [model for model in study.compared if model.is_private]
    num_fits = study.repeats * (len(study.compared) - len(private) + len(private) * len(study.epsilons))
    num_done = 0

    def result(finished: bool = False) -> ImplicitResult:
        return ImplicitResult(study, recalls.copy(), counts.copy(), dict(models), finished)

    for seed_index in range(study.repeats):
        split_seed, noise_sequence = np.random.SeedSequence([study.seed, seed_index]).spawn(2)
        split = split_users(choices, study.test_users, np.random.default_rng(split_seed))
        noise_seed = int(noise_sequence.generate_state(1)[0])
        buckets = assign_buckets(split.train.item_counts)
        if seed_index == 0:
            counts = split.train.item_counts
        fits = [(model, None) for model in study.compared if not model.is_private]
        fits += [(model, epsilon_index) for epsilon_index in range(len(study.epsilons)) for model in private]  # type: ignore[misc]
        for model, epsilon_index in fits:
            if should_stop():
                return result()
            fitted = _fit_model(model, split.train, study, epsilon_index, noise_seed, should_stop)
            if fitted is None:
                return result()
            users = (
                fitted.solve_user_vectors(split.history)
                if isinstance(fitted, ImplicitModel)
                else np.ones((choices.num_users, 1))
            )
            items = fitted.item_vectors if isinstance(fitted, ImplicitModel) else fitted
            epsilon_slice = slice(None) if epsilon_index is None else epsilon_index
            recalls[RECOMMENDERS.index(model), epsilon_slice, seed_index] = compute_recall(
                users, items, split.history, split.test, buckets
            )
            if seed_index == 0 and isinstance(fitted, ImplicitModel):
                models[model, 0.0 if epsilon_index is None else study.epsilons[epsilon_index]] = fitted
            num_done += 1
            if report is not None:
                finishes_epsilon = epsilon_index is not None and model is private[-1]
                report(num_done / num_fits, result() if finishes_epsilon else None)
    return result(finished=True)


def _fit_model(
    model: Recommender,
    train: Ratings,
    study: ImplicitStudy,
    epsilon_index: int | None,
    seed: int,
    should_stop: ShouldStop,
) -> ImplicitModel | FloatArray | None:
    """Fit one model: a factorisation, or the popularity of items; None where it was stopped."""
    if model is Recommender.POPULAR:
        return implicit.popularity_vectors(train.item_counts)
    if epsilon_index is None:
        return implicit.fit(train, study.reference)
    spending = study.spending(study.epsilons[epsilon_index])
    if model.scheme is None:
        return implicit.popularity_vectors(implicit.release_popularity(train, spending, seed))
    fit = implicit.fit_private(
        train, study.settings, model.scheme, spending, study.exponent, study.ridge_to_noise, seed,
        should_stop=should_stop,
    )  # fmt: skip
    return None if fit is None else fit.model
