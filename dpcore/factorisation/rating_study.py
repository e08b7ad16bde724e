"""Studies of ratings: item means and factorisations, with and without privacy, by the error of their predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray
from dpcore.factorisation.allocation import Scheme, Spending
from dpcore.factorisation.fit import RIDGE_TO_NOISE, GradientSteps, OnSweep, fit, fit_private
from dpcore.factorisation.measures import Buckets, measure
from dpcore.factorisation.model import FactorModel, FactorSettings, RatingRange
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.study import SCHEMES, Fitted, ModelKind, Split, Study

LEVEL_ONLY = FactorSettings(dimension=1, sweeps=1, offset=1.0)
"""Item vectors of one coordinate, the item's level; user vectors are all 1."""


def fit_item_means(train: Ratings, limits: RatingRange, ridge: float = 5.0) -> FactorModel:
    """Compute each item's mean, shrunk to the mean of all ratings as if it had ``ridge`` ratings more. Not private.

    With an infinite ridge, the mean of all ratings is predicted for every item.
    """
    labels = limits.centre(train.values.astype(np.float64))
    overall_mean = labels.mean()
    sums = np.bincount(train.items, labels - overall_mean, train.num_items)
    means = overall_mean + sums / (train.item_counts + ridge)
    return FactorModel(means[:, None], LEVEL_ONLY, limits)


EQUAL_WEIGHTS_BELOW = 2.0
"""ε below which all ratings of a user weigh alike in item means, which takes no noisy counts: these are then not worth
their share. Public, found on generated ratings and on MovieLens 1M: at ε = 0.3 the error is 0.010 less on both than
with μ = 1/4, at ε = 3 it is 0.002 less and 0.002 more."""


def choose_exponent(epsilon: float, exponent: float) -> float:
    """Return mu of the private item means at an ε, whatever the data: 0 where ε is small, else the given one."""
    return 0.0 if epsilon < EQUAL_WEIGHTS_BELOW else exponent


def fit_private_item_means(
    train: Ratings,
    limits: RatingRange,
    spending: Spending,
    exponent: float = 0.25,
    ridge_to_noise: float = RIDGE_TO_NOISE,
    seed: int = 0,
) -> FactorModel:
    """Compute each item's mean with the guarantee of a factorisation: `fit_private` with the level alone, one sweep.

    Args:
        train: The table.
        limits: The public range of ratings.
        spending: The budget; its sweeps are taken to be one, for this needs no more.
        exponent: mu of its adaptive weights; `choose_exponent` says which is the better one.
        ridge_to_noise: As in `fit_private`.
        seed: Of noise and draws.
    """
    # With mu = 0 no count is read, and none is paid for.
    count_share = spending.count_share if exponent else 0.0
    single_sweep = Spending(spending.budget, count_share, 1, spending.max_items)
    return fit_private(
        train, LEVEL_ONLY, limits, Scheme.ADAPTIVE, single_sweep, exponent, ridge_to_noise, seed
    )


OWN_RIDGE = 5.0
"""Of a user's own offset: about the variance of an error over that of offsets. Public; users may take any other."""


def add_own_offsets(item_means: FactorModel) -> FactorModel:
    """Add to released item means each user's own offset, computed at home: Σ (y - item mean) / (ratings + ridge).

    The release is the same. A user's offset is computed from it and from their own ratings and stays with them,
    so that predictions are private for everybody else (joint differential privacy); nothing more is paid.

    Args:
        item_means: Item means, `fit_item_means` or of `fit_private_item_means`.

    Source: Kearns, Pai, Roth and Ullman 2014, for joint differential privacy (the billboard lemma).
    """
    settings = replace(LEVEL_ONLY, user_ridge=OWN_RIDGE, own_coordinate=1.0)
    return FactorModel(settings.append_own_coordinate(item_means.item_vectors), settings, item_means.range)


MEANS = (ModelKind.PRIVATE_MEAN, ModelKind.PRIVATE_OFFSETS)
"""Private baselines. Both release the same; the second, where each user adds an offset at home, is the stronger."""
PRIVATE_KINDS = (*MEANS, *SCHEMES)
RATING_KINDS = (ModelKind.GLOBAL_MEAN, ModelKind.ITEM_MEAN, ModelKind.NO_PRIVACY, *PRIVATE_KINDS)


@dataclass(frozen=True)
class RatingStudy(Study):
    """The models, settings and splits of a study of ratings.

    Attributes:
        limits: Public range of the ratings.
        steps: Of gradient descent (AdaDPSGD); None for sums and their solution (DPALS).
        test_share: Probability with which a rating is held out.
        with_recall: True if recall is measured too.
    """

    settings: FactorSettings = field(default_factory=FactorSettings)
    reference: FactorSettings = field(
        default_factory=lambda: FactorSettings(dimension=8, sweeps=8, user_ridge=5.0)
    )
    ridge_to_noise: float = RIDGE_TO_NOISE
    models: tuple[ModelKind, ...] = RATING_KINDS
    limits: RatingRange = field(default_factory=RatingRange)
    steps: GradientSteps | None = None
    test_share: float = 0.1
    with_recall: bool = True
    main_measure: ClassVar[str] = "rmse"
    baseline: ClassVar[ModelKind] = ModelKind.PRIVATE_OFFSETS

    def check(self, problems: Problems) -> None:
        """Check the share that is held out."""
        problems.between(0.01, 0.9, test_share=self.test_share)

    def count_releases(self) -> tuple[int, int]:
        """Count sums and vectors, or the steps."""
        return (2 if self.steps is None else self.steps.number), 0

    def split(self, table: Ratings, rng: np.random.Generator) -> Split:
        """Hold out ratings of all users."""
        train, test = table.split(self.test_share, rng)
        return Split(train, train, test)

    def fit(
        self, model: ModelKind, train: Ratings, epsilon: float, seed: int, fitted: Fitted, on_sweep: OnSweep
    ) -> Any:
        """Fit one model."""
        match model:
            case ModelKind.GLOBAL_MEAN:
                return fit_item_means(train, self.limits, ridge=math.inf)
            case ModelKind.ITEM_MEAN:
                return fit_item_means(train, self.limits)
            case ModelKind.NO_PRIVACY:
                return fit(train, self.reference, self.limits, on_sweep)
            case ModelKind.PRIVATE_OFFSETS:
                return add_own_offsets(fitted[ModelKind.PRIVATE_MEAN, epsilon])
            case ModelKind.PRIVATE_MEAN:
                exponent = choose_exponent(epsilon, self.exponent)
                spending = self.spending(epsilon)
                return fit_private_item_means(
                    train, self.limits, spending, exponent, self.ridge_to_noise, seed
                )
        return fit_private(
            train, self.settings, self.limits, SCHEMES[model], self.spending(epsilon), self.exponent,
            self.ridge_to_noise, seed, on_sweep, self.steps,
        )  # fmt: skip

    def measure(self, model: Any, split: Split, buckets: Buckets) -> tuple[FloatArray, FloatArray]:
        """Measure the errors of predictions, and recall of what was rated."""
        return measure(model, split.train, split.test, buckets, self.with_recall)
