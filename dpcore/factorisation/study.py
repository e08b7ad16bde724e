"""All models on the same splits and noise: errors over ε, by bucket, paired by seed."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.noise_error import summarise_runs
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation.allocation import Scheme, Spending
from dpcore.factorisation.fit import RIDGE_TO_NOISE, GradientSteps, PrivateFit, fit, fit_private
from dpcore.factorisation.measures import BUCKETS, Measurements, assign_buckets, measure
from dpcore.factorisation.model import FactorModel, FactorSettings, RatingRange
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.problem import PrivacyTarget

LEVEL_ONLY = FactorSettings(dimension=1, sweeps=1, offset=1.0)
"""Item vectors of one coordinate, the item's level; user vectors are all 1."""


def fit_global_mean(train: Ratings, limits: RatingRange) -> FactorModel:
    """Predict the mean of all ratings for every item. Not private."""
    mean = float(limits.centre(train.values.astype(np.float64)).mean())
    return FactorModel(np.full((train.num_items, 1), mean), LEVEL_ONLY, limits)


def fit_item_means(train: Ratings, limits: RatingRange, ridge: float = 5.0) -> FactorModel:
    """Compute each item's mean, shrunk to the mean of all ratings as if it had ``ridge`` ratings more. Not private."""
    labels = limits.centre(train.values.astype(np.float64))
    overall = labels.mean()
    sums = np.bincount(train.items, labels - overall, train.num_items)
    means = overall + sums / (train.item_counts + ridge)
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
) -> PrivateFit:
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
    fit = fit_private(
        train, LEVEL_ONLY, limits, Scheme.ADAPTIVE, single_sweep, exponent, ridge_to_noise, seed
    )
    assert fit is not None  # It was not asked to stop.
    return fit


OWN_RIDGE = 5.0
"""Of a user's own offset: about the variance of an error over that of offsets. Public; users may take any other."""


def add_own_offsets(item_means: FactorModel, ridge: float = OWN_RIDGE) -> FactorModel:
    """Add to released item means each user's own offset, computed at home: Σ (y - item mean) / (ratings + ridge).

    The release is the same. A user's offset is computed from it and from their own ratings and stays with them,
    so that predictions are private for everybody else (joint differential privacy); nothing more is paid.

    Args:
        item_means: Item means, `fit_item_means` or of `fit_private_item_means`.
        ridge: Ratings that an offset is drawn to 0 by.

    Source: Kearns, Pai, Roth and Ullman 2014, for joint differential privacy (the billboard lemma).
    """
    settings = replace(LEVEL_ONLY, user_ridge=ridge, own_coordinate=1.0)
    return FactorModel(settings.append_own_coordinate(item_means.item_vectors), settings, item_means.range)


class ModelKind(enum.Enum):
    """A model that is compared; the value is its name on the page."""

    GLOBAL_MEAN = "Overall mean, no privacy"
    ITEM_MEAN = "Item means, no privacy"
    NO_PRIVACY = "Factorisation, no privacy"
    PRIVATE_MEAN = "DP item means"
    PRIVATE_OFFSETS = "DP item means, users' own offsets"
    UNIFORM = "DP uniform sampling"
    TAIL = "DP tail sampling"
    ADAPTIVE = "DP adaptive weights"

    @property
    def scheme(self) -> Scheme | None:
        """Return the scheme of a private factorisation; None for a baseline."""
        return SCHEMES.get(self)

    @property
    def is_private(self) -> bool:
        """Return True if the model keeps the guarantee, and so depends on epsilon."""
        return self in MEANS or self in SCHEMES


SCHEMES: Mapping[ModelKind, Scheme] = {
    ModelKind.UNIFORM: Scheme.UNIFORM,
    ModelKind.TAIL: Scheme.TAIL,
    ModelKind.ADAPTIVE: Scheme.ADAPTIVE,
}
MODEL_KINDS = tuple(ModelKind)
MEANS = (ModelKind.PRIVATE_MEAN, ModelKind.PRIVATE_OFFSETS)
"""Private baselines. Both release the same; the second, where each user adds an offset at home, is the stronger."""
BASELINE, FACTORISATION = ModelKind.PRIVATE_OFFSETS, ModelKind.ADAPTIVE
"""What the verdict compares, declared before any training: one comparison, so that its interval is what it says."""


@dataclass(frozen=True)
class Study:
    """The models, settings and splits of a study of ratings.

    Attributes:
        epsilons: Of the guarantee, each with ``delta``.
        delta: Of the guarantee.
        settings: Of every private factorisation.
        reference: Of the one without privacy.
        limits: Public range of the ratings.
        max_items: k.
        count_share: Share of the budget for noisy counts.
        exponent: mu of the adaptive weights.
        ridge_to_noise: What the items' ridge grows by per unit of noise.
        steps: Of gradient descent (AdaDPSGD); None for sums and their solution (DPALS).
        test_share: Probability with which a rating is held out.
        repeats: Seeds; each has its own split and noise, shared by all models.
        seed: Of all randomness.
        with_recall: Whether recall is measured too.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    epsilons: tuple[float, ...] = (1.0, 5.0, 20.0)
    delta: float = 1e-5
    settings: FactorSettings = field(default_factory=FactorSettings)
    reference: FactorSettings = field(
        default_factory=lambda: FactorSettings(dimension=8, sweeps=8, user_ridge=5.0)
    )
    limits: RatingRange = field(default_factory=RatingRange)
    max_items: int = 100
    count_share: float = 0.12
    exponent: float = 0.25
    ridge_to_noise: float = RIDGE_TO_NOISE
    steps: GradientSteps | None = None
    test_share: float = 0.1
    repeats: int = 3
    seed: int = 1
    with_recall: bool = True

    def __post_init__(self) -> None:
        with Problems() as problems:
            if not self.epsilons:
                problems.add("epsilons must not be empty")
            problems.between(0.0, 1.0, exponent=self.exponent)
            problems.non_negative(ridge_to_noise=self.ridge_to_noise)
            problems.between(0.01, 0.9, test_share=self.test_share)
            problems.whole(1, 100, repeats=self.repeats)
            problems.whole(0, 2**32 - 1, seed=self.seed)
        for epsilon in self.epsilons:
            self.spending(epsilon)

    def spending(self, epsilon: float) -> Spending:
        """Divide the budget at one epsilon."""
        target = PrivacyTarget(epsilon, self.delta)
        releases = 2 if self.steps is None else self.steps.number
        return Spending.from_target(target, self.count_share, self.settings.sweeps, self.max_items, releases)


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Errors and recall of every run of a study.

    Attributes:
        study: What was run.
        rmse: Shape (kinds, epsilons, repeats, 1 + BUCKETS), over all items and then by bucket, rarest first; NaN for
            runs that were not reached. Models without privacy have the same numbers at each epsilon.
        recall: Likewise.
        test_ratings: Test ratings of each bucket, shape (repeats, BUCKETS); 0 where not reached.
        train_counts: Training ratings of each item in the first split, shape (num_items,).
        models: Of the first seed, by kind and epsilon (0 for those without privacy).
        finished: Whether all runs were reached.
    """

    study: Study
    rmse: FloatArray
    recall: FloatArray
    test_ratings: IntArray
    train_counts: IntArray
    models: Mapping[tuple[ModelKind, float], FactorModel]
    finished: bool

    @property
    def runs(self) -> int:
        """Count the private runs that were reached."""
        # Own offsets are no training: they are added to item means at home.
        trained_kinds = (ModelKind.PRIVATE_MEAN, *SCHEMES)
        model_indices = [
            model_index for model_index, model_kind in enumerate(MODEL_KINDS) if model_kind in trained_kinds
        ]
        return int(np.isfinite(self.rmse[model_indices, :, :, 0]).sum())

    def summarise(
        self, model_kind: ModelKind, values: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean over seeds and half its interval, each of shape (epsilons, 1 + BUCKETS).

        Args:
            model_kind: Of the model.
            values: `rmse` or `recall`; None for the first.
        """
        summary_over_seeds = summarise_runs(
            (self.rmse if values is None else values)[MODEL_KINDS.index(model_kind)]
        )
        return summary_over_seeds.mean, summary_over_seeds.half_width

    def compare(
        self, model_kind: ModelKind, reference: ModelKind, measured: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean of model - reference, paired by seed, and half its interval; shapes as in `summarise`."""
        values = self.rmse if measured is None else measured
        summary_over_seeds = summarise_runs(
            values[MODEL_KINDS.index(model_kind)] - values[MODEL_KINDS.index(reference)]
        )
        return summary_over_seeds.mean, summary_over_seeds.half_width


class ProgressReport(Protocol):
    """A callback that gets the progress of a study."""

    def __call__(self, share: float, so_far: StudyResult | None = None) -> None:
        """Receive the share done after each sweep and, after all models of one epsilon, the results so far."""


def run(
    ratings: Ratings, study: Study, report: ProgressReport | None = None, should_stop: ShouldStop = never
) -> StudyResult:
    """Fit and measure every model.

    Args:
        ratings: The table, which each seed splits anew.
        study: What to run.
        report: Told after each sweep and each model.
        should_stop: Asked before each sweep; where it says yes, what is finished is returned.

    Returns:
        Errors and recall of every model that was reached, by epsilon, seed and bucket.

    Raises:
        InvalidInput: A split leaves nothing to train on or nothing to test.

    Source: Krichene et al. 2023, section 5, for the models that are compared; pairing and intervals are ours.
    """
    shape = (len(MODEL_KINDS), len(study.epsilons), study.repeats, 1 + BUCKETS)
    running = _RunningStudy(
        study,
        np.full(shape, np.nan),
        np.full(shape, np.nan),
        np.zeros((study.repeats, BUCKETS), dtype=np.int64),
        np.zeros(ratings.num_items, dtype=np.int64),
        {},
        report,
        should_stop,
    )
    finished = all(running.run_seed(ratings, number) for number in range(study.repeats))
    return running.copy_results(finished)


@dataclass(eq=False)
class _RunningStudy:
    """A study while it runs, with the results so far."""

    study: Study
    rmse: FloatArray
    recall: FloatArray
    test_ratings: IntArray
    train_counts: IntArray
    models: dict[tuple[ModelKind, float], FactorModel]
    report: ProgressReport | None
    should_stop: ShouldStop
    sweeps_done: int = 0

    def copy_results(self, finished: bool = False) -> StudyResult:
        """Copy the results so far; later runs do not change the copy."""
        return StudyResult(
            self.study,
            self.rmse.copy(),
            self.recall.copy(),
            self.test_ratings.copy(),
            self.train_counts,
            dict(self.models),
            finished,
        )

    def run_seed(self, ratings: Ratings, seed_index: int) -> bool:
        """Run all models of one seed; return False if it was stopped."""
        study = self.study
        split_seed, noise_sequence = np.random.SeedSequence([study.seed, seed_index]).spawn(2)
        if self.should_stop():
            return False
        train, test = ratings.split(study.test_share, np.random.default_rng(split_seed))
        buckets = assign_buckets(train.item_counts)
        self.test_ratings[seed_index] = np.bincount(buckets[test.items], minlength=BUCKETS)
        if seed_index == 0:
            self.train_counts = train.item_counts

        def keep(model_kind: ModelKind, epsilon_index: int | slice, model: FactorModel) -> None:
            measurements: Measurements = measure(model, train, test, buckets, study.with_recall)
            model_index = MODEL_KINDS.index(model_kind)
            (
                self.rmse[model_index, epsilon_index, seed_index],
                self.recall[model_index, epsilon_index, seed_index],
            ) = measurements.rmse, measurements.recall
            if seed_index == 0:
                self.models[
                    model_kind, study.epsilons[epsilon_index] if isinstance(epsilon_index, int) else 0.0
                ] = model

        all_epsilons = slice(None)
        keep(ModelKind.GLOBAL_MEAN, all_epsilons, fit_global_mean(train, study.limits))
        keep(ModelKind.ITEM_MEAN, all_epsilons, fit_item_means(train, study.limits))
        if self.should_stop():
            return False
        keep(ModelKind.NO_PRIVACY, all_epsilons, fit(train, study.reference, study.limits, self._count_sweep))
        noise_seed = int(noise_sequence.generate_state(1)[0])
        for epsilon_index, epsilon in enumerate(study.epsilons):
            for model_kind in (ModelKind.PRIVATE_MEAN, *SCHEMES):
                if self.should_stop():
                    return False
                model = self._fit_private(train, model_kind, epsilon, noise_seed)
                if model is None:
                    return False
                keep(model_kind, epsilon_index, model)
                if model_kind is ModelKind.PRIVATE_MEAN:
                    keep(ModelKind.PRIVATE_OFFSETS, epsilon_index, add_own_offsets(model))
            if self.report is not None:
                self.report(self.share_done, self.copy_results())
        return True

    def _fit_private(
        self, train: Ratings, model_kind: ModelKind, epsilon: float, seed: int
    ) -> FactorModel | None:
        """Fit one private model; None where it was stopped."""
        study, spending = self.study, self.study.spending(epsilon)
        if model_kind.scheme is None:
            fit = fit_private_item_means(
                train,
                study.limits,
                spending,
                choose_exponent(epsilon, study.exponent),
                study.ridge_to_noise,
                seed,
            )
            return fit.model
        fit_or_none = fit_private(
            train, study.settings, study.limits, model_kind.scheme, spending, study.exponent,
            study.ridge_to_noise, seed, self._count_sweep, self.should_stop, study.steps,
        )  # fmt: skip
        return None if fit_or_none is None else fit_or_none.model

    def _count_sweep(self, _: int) -> None:
        """Count a finished sweep and report it."""
        self.sweeps_done += 1
        if self.report is not None:
            self.report(self.share_done)

    @property
    def share_done(self) -> float:
        """Return the share of sweeps that are done."""
        study = self.study
        sweeps_per_seed = study.reference.sweeps + len(study.epsilons) * len(SCHEMES) * study.settings.sweeps
        return self.sweeps_done / (sweeps_per_seed * study.repeats)
