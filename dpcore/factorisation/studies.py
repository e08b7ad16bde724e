"""Studies of ratings, by the error of predictions, and of choices, by recall for users who are held out whole."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpcore.common.checks import refuse
from dpcore.contributions import FloatArray
from dpcore.factorisation import implicit
from dpcore.factorisation.allocation import Scheme, Spending
from dpcore.factorisation.fit import RIDGE_TO_NOISE, GradientSteps, OnSweep, fit, fit_private
from dpcore.factorisation.implicit import ImplicitSettings, PopularityModel
from dpcore.factorisation.model import FactorModel, FactorSettings, RatingRange
from dpcore.factorisation.ratings import NUM_BUCKETS, Buckets, Ratings
from dpcore.factorisation.study import (
    SCHEME_BY_KIND,
    ModelKind,
    Models,
    Split,
    Study,
    compute_recall,
    measure,
)

LEVEL_SETTINGS = FactorSettings(dimension=1, sweeps=1, offset_coordinate=1.0)
"""Item vectors are the item's level, user vectors 1."""


def fit_item_means(train: Ratings, rating_range: RatingRange, ridge_ratings: float = 5.0) -> FactorModel:
    """Build a model of item means without privacy, each shrunk to the overall mean by ``ridge_ratings`` ratings.

    With an infinite ridge, the mean of all ratings is predicted for every item.
    """
    centred_ratings = rating_range.centre(train.values.astype(np.float64))
    overall_centred_mean = centred_ratings.mean()
    deviation_sums = np.bincount(train.items, centred_ratings - overall_centred_mean, train.num_items)
    centred_means = overall_centred_mean + deviation_sums / (train.item_counts + ridge_ratings)
    return FactorModel(centred_means[:, None], LEVEL_SETTINGS, rating_range)


EQUAL_WEIGHTS_BELOW = 2.0
"""ε below which item means weigh all ratings of a user alike, and take no noisy counts. Public, found on generated
ratings and on MovieLens 1M: at ε = 0.3 the error is 0.010 below that with μ = 1/4."""


def choose_exponent(epsilon: float, weight_exponent: float) -> float:
    """Return μ for private item means: 0 if ε is below `EQUAL_WEIGHTS_BELOW`, else ``weight_exponent``."""
    return 0.0 if epsilon < EQUAL_WEIGHTS_BELOW else weight_exponent


def fit_private_item_means(
    train: Ratings,
    rating_range: RatingRange,
    spending: Spending,
    exponent: float = 0.25,
    ridge_to_noise: float = RIDGE_TO_NOISE,
    seed: int = 0,
) -> FactorModel:
    """Build a model of item means with the guarantee of a factorisation: `fit_private` with the level alone, one sweep.

    Args:
        train: The table.
        rating_range: The public range of ratings.
        spending: The budget; its sweeps are taken to be one, for this needs no more.
        exponent: mu of its adaptive weights; `choose_exponent` says which is the better one.
        ridge_to_noise: As in `fit_private`.
        seed: Of noise and draws.
    """
    # With mu = 0 no count is read, and none is paid for.
    count_share = spending.count_share if exponent else 0.0
    spending = Spending(spending.budget, count_share, 1, spending.max_items)
    scheme = Scheme.ADAPTIVE
    return fit_private(train, LEVEL_SETTINGS, rating_range, scheme, spending, exponent, ridge_to_noise, seed)


OWN_RIDGE = 5.0
"""About the variance of an error over that of users' offsets. Public; users may take any other."""


def add_own_offsets(mean_model: FactorModel) -> FactorModel:
    """Return a model of released item means plus each user's own offset, Σ (y - item mean) / (ratings + ridge).

    The release is the same. A user's offset is computed from it and from their own ratings, and stays with them. So
    predictions are private for everybody else (joint differential privacy) at no further cost.

    Args:
        mean_model: Item means, of `fit_item_means` or of `fit_private_item_means`.

    Source: Kearns, Pai, Roth and Ullman 2014, for joint differential privacy (the billboard lemma).
    """
    settings = replace(LEVEL_SETTINGS, user_ridge=OWN_RIDGE, own_coordinate=1.0)
    return FactorModel(
        settings.append_own_coordinate(mean_model.item_vectors), settings, mean_model.rating_range
    )


PRIVATE_MEAN_KINDS = (ModelKind.PRIVATE_MEAN, ModelKind.PRIVATE_OFFSETS)
"""Private baselines, which release the same."""
PRIVATE_KINDS = (*PRIVATE_MEAN_KINDS, *SCHEME_BY_KIND)
RATING_REFERENCE = FactorSettings(dimension=8, sweeps=8, user_ridge=5.0)
RATING_KINDS = (ModelKind.GLOBAL_MEAN, ModelKind.ITEM_MEAN, ModelKind.NO_PRIVACY, *PRIVATE_KINDS)


@dataclass(frozen=True)
class RatingStudy(Study):
    """The models, settings and splits of a study of ratings.

    Attributes:
        rating_range: Public range of the ratings.
        gradient_steps: Of gradient descent (AdaDPSGD); None for sums and their solution (DPALS).
        test_share: Probability with which a rating is held out.
        measures_recall: True if recall is measured too.
    """

    private_settings: FactorSettings = field(default_factory=FactorSettings)
    non_private_settings: FactorSettings = RATING_REFERENCE
    ridge_to_noise: float = RIDGE_TO_NOISE
    model_kinds: tuple[ModelKind, ...] = RATING_KINDS
    rating_range: RatingRange = field(default_factory=RatingRange)
    gradient_steps: GradientSteps | None = None
    test_share: float = 0.1
    measures_recall: bool = True
    main_measure: ClassVar[str] = "rmse"
    baseline: ClassVar[ModelKind] = ModelKind.PRIVATE_OFFSETS

    def count_releases(self) -> tuple[int, int]:
        """Return (releases in a sweep, Gram matrices in a sweep): 2, or the gradient steps, and 0."""
        return (2 if self.gradient_steps is None else self.gradient_steps.steps_per_sweep), 0

    def split(self, ratings: Ratings, rng: np.random.Generator) -> Split:
        """Split into training and test by holding out single ratings.

        Each user's training ratings are their history.
        """
        train, test = ratings.split(self.test_share, rng)
        return Split(train, train, test)

    def fit(
        self, kind: ModelKind, train: Ratings, epsilon: float, seed: int, models: Models, on_sweep: OnSweep
    ) -> Any:
        """Fit one model of a kind, with this epsilon if it is private, and return it.

        ``models`` are the models fitted before: item means with own offsets are built from the item means there.
        """
        match kind:
            case ModelKind.GLOBAL_MEAN:
                return fit_item_means(train, self.rating_range, ridge_ratings=math.inf)
            case ModelKind.ITEM_MEAN:
                return fit_item_means(train, self.rating_range)
            case ModelKind.NO_PRIVACY:
                return fit(train, self.non_private_settings, self.rating_range, on_sweep)
            case ModelKind.PRIVATE_OFFSETS:
                return add_own_offsets(models[ModelKind.PRIVATE_MEAN, epsilon])
            case ModelKind.PRIVATE_MEAN:
                exponent = choose_exponent(epsilon, self.exponent)
                spending = self.build_spending(epsilon)
                return fit_private_item_means(
                    train, self.rating_range, spending, exponent, self.ridge_to_noise, seed
                )
        return fit_private(
            train, self.private_settings, self.rating_range, SCHEME_BY_KIND[kind], self.build_spending(epsilon),
            self.exponent, self.ridge_to_noise, seed, on_sweep, self.gradient_steps,
        )  # fmt: skip

    def measure(self, model: Any, split: Split, buckets: Buckets) -> tuple[FloatArray, FloatArray]:
        """Return errors of predictions and recalls over all items and by bucket.

        Recalls are NaN unless they are measured.
        """
        return measure(model, split.train, split.test, buckets, self.measures_recall)


CHOICE_REFERENCE = ImplicitSettings(dimension=12, sweeps=8, unobserved_weight=0.1)
CHOICE_KINDS = (ModelKind.POPULAR, ModelKind.NO_PRIVACY, ModelKind.PRIVATE_POPULAR, *SCHEME_BY_KIND)
TEST_SHARE = 0.2
"""Share of a test user's choices that is to be recalled; the rest is known. Source: Liang et al. 2018, as in the
paper."""


@dataclass(frozen=True)
class ChoiceStudy(Study):
    """The models, settings and splits of a study of choices.

    Attributes:
        gradient_steps: As in `RatingStudy`.
        test_user_share: Probability with which a user is held out of training; of more than `study.MAX_RECALL_USERS`
            the first are tested.

    Source: Krichene et al. 2023, section 5 and figures 2, 4, 7, 9 and 10; the baseline of what is popular is ours.
    """

    private_settings: ImplicitSettings = field(default_factory=ImplicitSettings)
    non_private_settings: ImplicitSettings = CHOICE_REFERENCE
    max_items: int = 50
    ridge_to_noise: float = implicit.RIDGE_TO_NOISE
    model_kinds: tuple[ModelKind, ...] = CHOICE_KINDS
    gradient_steps: GradientSteps | None = None
    test_user_share: float = 0.1
    main_measure: ClassVar[str] = "recall"
    baseline: ClassVar[ModelKind] = ModelKind.PRIVATE_POPULAR

    def count_releases(self) -> tuple[int, int]:
        """Return (releases in a sweep, Gram matrices in a sweep): 2, or the gradient steps, and 1."""
        return (2 if self.gradient_steps is None else self.gradient_steps.steps_per_sweep), 1

    def split(self, choices: Ratings, rng: np.random.Generator) -> Split:
        """Hold out users: train on all others; about a fifth of their choices is to be recalled, the rest is known.

        Raises:
            InvalidInput: Nothing is left on one side.

        Source: Liang et al. 2018, which Krichene et al. 2023 follow for recall (section 5).
        """
        test_user_mask = rng.random(choices.num_users, dtype=np.float32) < self.test_user_share
        test_choice_mask = np.repeat(test_user_mask, np.diff(choices.starts))
        drawn_mask = rng.random(choices.num_ratings, dtype=np.float32) < TEST_SHARE
        table_masks = (~test_choice_mask, test_choice_mask & ~drawn_mask, test_choice_mask & drawn_mask)
        if not all(choice_mask.any() for choice_mask in table_masks):
            users_remedy = "Bring more users, or hold out more of them"
            raise refuse("nothing is left to train on or to test", remedy=users_remedy)
        return Split(*(choices.select(table_mask) for table_mask in table_masks))

    def fit(
        self, kind: ModelKind, train: Ratings, epsilon: float, seed: int, models: Models, on_sweep: OnSweep
    ) -> Any:
        """Fit one model of a kind, with this epsilon if it is private, and return it.

        ``models``, the models fitted before, are not used.
        """
        match kind:
            case ModelKind.POPULAR:
                return PopularityModel(train.item_counts)
            case ModelKind.NO_PRIVACY:
                return implicit.fit(train, self.non_private_settings, on_sweep)
            case ModelKind.PRIVATE_POPULAR:
                return PopularityModel(implicit.release_popularity(train, self.build_spending(epsilon), seed))
        scheme, spending = SCHEME_BY_KIND[kind], self.build_spending(epsilon)
        return implicit.fit_private(
            train, self.private_settings, scheme, spending, self.exponent, self.ridge_to_noise, seed, on_sweep,
            self.gradient_steps,
        )  # fmt: skip

    def measure(self, model: Any, split: Split, buckets: Buckets) -> tuple[FloatArray, FloatArray]:
        """Return errors and recalls over all items and by bucket; errors are NaN, as choices have no ratings."""
        user_vectors = model.solve_user_vectors(split.history)
        recalls = compute_recall(user_vectors, model.item_vectors, split.history, split.test, buckets)
        return np.full(1 + NUM_BUCKETS, np.nan), recalls
