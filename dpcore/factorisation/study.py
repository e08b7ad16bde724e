"""Every model on the same splits and noise: errors over epsilon, by bucket, paired by seed."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.over_runs import summary
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation import baselines
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.descent import Steps
from dpcore.factorisation.fit import RIDGE_TO_NOISE, fit, fit_private
from dpcore.factorisation.measures import BUCKETS, Measured, buckets_of, measure
from dpcore.factorisation.model import FactorModel, FactorSettings, RatingRange
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.budget import PrivacyTarget


class Kind(enum.Enum):
    """A model that is compared; the value is what it is called."""

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
        """The scheme of a private factorisation; None for a baseline."""
        return SCHEMES.get(self)

    @property
    def is_private(self) -> bool:
        """Whether it keeps the guarantee, and so depends on epsilon."""
        return self in MEANS or self in SCHEMES


SCHEMES: Mapping[Kind, Scheme] = {
    Kind.UNIFORM: Scheme.UNIFORM,
    Kind.TAIL: Scheme.TAIL,
    Kind.ADAPTIVE: Scheme.ADAPTIVE,
}
KINDS = tuple(Kind)
MEANS = (Kind.PRIVATE_MEAN, Kind.PRIVATE_OFFSETS)
"""Private baselines. Both release the same; the second, where each user adds an offset at home, is the stronger."""
BASELINE, FACTORISATION = Kind.PRIVATE_OFFSETS, Kind.ADAPTIVE
"""What the verdict compares, declared before any training: one comparison, so that its interval is what it says."""


@dataclass(frozen=True)
class Study:
    """What is run.

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
    steps: Steps | None = None
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
        """The budget at one epsilon, and how it is divided."""
        target = PrivacyTarget(epsilon, self.delta)
        releases = 2 if self.steps is None else self.steps.number
        return Spending.of(target, self.count_share, self.settings.sweeps, self.max_items, releases)


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Errors and recall, one per run.

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
    models: Mapping[tuple[Kind, float], FactorModel]
    finished: bool

    @property
    def runs(self) -> int:
        """Private runs that were reached."""
        # Own offsets are no training: they are added to item means at home.
        trained = (Kind.PRIVATE_MEAN, *SCHEMES)
        private = [place for place, kind in enumerate(KINDS) if kind in trained]
        return int(np.isfinite(self.rmse[private, :, :, 0]).sum())

    def mean(self, kind: Kind, of: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Mean over seeds and half its interval, each of shape (epsilons, 1 + BUCKETS).

        Args:
            kind: Of the model.
            of: `rmse` or `recall`; None for the first.
        """
        found = summary((self.rmse if of is None else of)[KINDS.index(kind)])
        return found.mean, found.half_width

    def difference(
        self, kind: Kind, other: Kind, of: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean over seeds of kind - other, paired by seed, and half its interval; shapes as for `mean`."""
        values = self.rmse if of is None else of
        found = summary(values[KINDS.index(kind)] - values[KINDS.index(other)])
        return found.mean, found.half_width


class Tell(Protocol):
    """How a study reports."""

    def __call__(self, share: float, so_far: StudyResult | None = None) -> None:
        """Told the share done after each sweep, and what is there so far after all models of one epsilon."""


def run(
    ratings: Ratings, study: Study, tell: Tell | None = None, should_stop: ShouldStop = never
) -> StudyResult:
    """Fit and measure every model.

    Args:
        ratings: The table, which each seed splits anew.
        study: What to run.
        tell: Told after each sweep and each model.
        should_stop: Asked before each sweep; where it says yes, what is finished is returned.

    Returns:
        Errors and recall of every model that was reached, by epsilon, seed and bucket.

    Raises:
        InvalidInput: A split leaves nothing to train on or nothing to test.

    Source: Krichene et al. 2023, section 5, for the models that are compared; pairing and intervals are ours.
    """
    shape = (len(KINDS), len(study.epsilons), study.repeats, 1 + BUCKETS)
    running = _Running(
        study,
        np.full(shape, np.nan),
        np.full(shape, np.nan),
        np.zeros((study.repeats, BUCKETS), dtype=np.int64),
        np.zeros(ratings.num_items, dtype=np.int64),
        {},
        tell,
        should_stop,
    )
    finished = all(running.repeat(ratings, number) for number in range(study.repeats))
    return running.so_far(finished)


@dataclass(eq=False)
class _Running:
    """A study at work."""

    study: Study
    rmse: FloatArray
    recall: FloatArray
    test_ratings: IntArray
    train_counts: IntArray
    models: dict[tuple[Kind, float], FactorModel]
    tell: Tell | None
    stopped: ShouldStop
    sweeps_done: int = 0

    def so_far(self, finished: bool = False) -> StudyResult:
        """What is there; later runs do not change it."""
        return StudyResult(
            self.study,
            self.rmse.copy(),
            self.recall.copy(),
            self.test_ratings.copy(),
            self.train_counts,
            dict(self.models),
            finished,
        )

    def repeat(self, ratings: Ratings, number: int) -> bool:
        """All models of one seed; False where it was stopped."""
        study = self.study
        for_split, for_noise = np.random.SeedSequence([study.seed, number]).spawn(2)
        if self.stopped():
            return False
        train, test = ratings.split(study.test_share, np.random.default_rng(for_split))
        buckets = buckets_of(train.item_counts)
        self.test_ratings[number] = np.bincount(buckets[test.items], minlength=BUCKETS)
        if number == 0:
            self.train_counts = train.item_counts

        def keep(kind: Kind, at: int | slice, model: FactorModel) -> None:
            found: Measured = measure(model, train, test, buckets, study.with_recall)
            place = KINDS.index(kind)
            self.rmse[place, at, number], self.recall[place, at, number] = found.rmse, found.recall
            if number == 0:
                self.models[kind, study.epsilons[at] if isinstance(at, int) else 0.0] = model

        everywhere = slice(None)
        keep(Kind.GLOBAL_MEAN, everywhere, baselines.global_mean(train, study.limits))
        keep(Kind.ITEM_MEAN, everywhere, baselines.item_mean(train, study.limits))
        if self.stopped():
            return False
        keep(Kind.NO_PRIVACY, everywhere, fit(train, study.reference, study.limits, self._swept))
        noise_seed = int(for_noise.generate_state(1)[0])
        for at, epsilon in enumerate(study.epsilons):
            for kind in (Kind.PRIVATE_MEAN, *SCHEMES):
                if self.stopped():
                    return False
                model = self._private(train, kind, epsilon, noise_seed)
                if model is None:
                    return False
                keep(kind, at, model)
                if kind is Kind.PRIVATE_MEAN:
                    keep(Kind.PRIVATE_OFFSETS, at, baselines.with_own_offsets(model))
            if self.tell is not None:
                self.tell(self.share, self.so_far())
        return True

    def _private(self, train: Ratings, kind: Kind, epsilon: float, seed: int) -> FactorModel | None:
        study, spending = self.study, self.study.spending(epsilon)
        if kind.scheme is None:
            found = baselines.private_item_mean(
                train,
                study.limits,
                spending,
                baselines.exponent_at(epsilon, study.exponent),
                study.ridge_to_noise,
                seed,
            )
            return found.model
        fitted = fit_private(
            train, study.settings, study.limits, kind.scheme, spending, study.exponent,
            study.ridge_to_noise, seed, self._swept, self.stopped, study.steps,
        )  # fmt: skip
        return None if fitted is None else fitted.model

    def _swept(self, _: int) -> None:
        self.sweeps_done += 1
        if self.tell is not None:
            self.tell(self.share)

    @property
    def share(self) -> float:
        """Sweeps done."""
        study = self.study
        each = study.reference.sweeps + len(study.epsilons) * len(SCHEMES) * study.settings.sweeps
        return self.sweeps_done / (each * study.repeats)
