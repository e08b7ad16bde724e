"""The grid of runs of all studies here: all models on the same splits and noise, over ε, by bucket, paired by seed."""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.noise_error import Summary, summarise_runs
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation.allocation import Scheme, Spending
from dpcore.factorisation.fit import OnSweep
from dpcore.factorisation.measures import BUCKETS, Buckets, assign_buckets
from dpcore.factorisation.ratings import Ratings
from dpcore.multitask.problem import PrivacyTarget


class ModelKind(enum.Enum):
    """A model that is compared; the value is its name on the page."""

    GLOBAL_MEAN = "Overall mean, no privacy"
    ITEM_MEAN = "Item means, no privacy"
    POPULAR = "Most popular, no privacy"
    NO_PRIVACY = "Factorisation, no privacy"
    PRIVATE_MEAN = "DP item means"
    PRIVATE_OFFSETS = "DP item means, users' own offsets"
    PRIVATE_POPULAR = "DP most popular"
    UNIFORM = "DP uniform sampling"
    TAIL = "DP tail sampling"
    ADAPTIVE = "DP adaptive weights"

    @property
    def is_private(self) -> bool:
        """Return True if the model keeps the guarantee, and so depends on epsilon."""
        return self.value.startswith("DP ")


SCHEMES: Mapping[ModelKind, Scheme] = {ModelKind[scheme.name]: scheme for scheme in Scheme}
"""The private factorisations."""
Fitted = Mapping[tuple[ModelKind, float], Any]
"""Models by kind and epsilon, which is 0 for those without privacy."""
FACTORISATION = ModelKind.ADAPTIVE
"""The one that is compared with the baseline of a study, and is fitted last."""


@dataclass(frozen=True)
class Split:
    """Ratings to train on, and test users' known ratings and those to be predicted or recalled.

    All tables keep the users' codes: a user without ratings in one has an empty row there.
    """

    train: Ratings
    history: Ratings
    test: Ratings


@dataclass(frozen=True)
class Study(abc.ABC):
    """What the studies of ratings and of choices have in common.

    Attributes:
        epsilons: Of the guarantee, each with ``delta``.
        delta: Of the guarantee.
        settings: Of every private factorisation.
        reference: Of the one without privacy.
        max_items: k.
        count_share: Share of the budget for noisy counts.
        exponent: mu of the adaptive weights.
        ridge_to_noise: What the items' ridge grows by per unit of noise.
        repeats: Seeds; each has its own split and noise, shared by all models.
        seed: Of all randomness.
        models: The models that are fitted.
        main_measure: "rmse" or "recall".
        baseline: What a factorisation with adaptive weights is compared with, declared before any training: one
            comparison, so that its interval is what it says.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    epsilons: tuple[float, ...] = (1.0, 5.0, 20.0)
    delta: float = 1e-5
    settings: Any = None
    reference: Any = None
    max_items: int = 100
    count_share: float = 0.12
    exponent: float = 0.25
    ridge_to_noise: float = 0.0
    repeats: int = 3
    seed: int = 1
    models: tuple[ModelKind, ...] = ()
    main_measure: ClassVar[str]
    baseline: ClassVar[ModelKind]

    def __post_init__(self) -> None:
        with Problems() as problems:
            if not self.epsilons:
                problems.add("epsilons must not be empty")
            problems.between(0.0, 1.0, exponent=self.exponent)
            problems.non_negative(ridge_to_noise=self.ridge_to_noise)
            problems.whole(1, 100, repeats=self.repeats)
            problems.whole(0, 2**32 - 1, seed=self.seed)
            self.check(problems)
        for epsilon in self.epsilons:
            self.spending(epsilon)

    def spending(self, epsilon: float) -> Spending:
        """Divide the budget at one epsilon."""
        releases, unit_releases = self.count_releases()
        target = PrivacyTarget(epsilon, self.delta)
        return Spending.from_target(
            target, self.count_share, self.settings.sweeps, self.max_items, releases, unit_releases
        )

    def count_sweeps(self) -> int:
        """Count the sweeps of all factorisations of one seed."""
        num_private = len(self.epsilons) * len(SCHEMES.keys() & set(self.models))
        reference_sweeps = self.reference.sweeps if ModelKind.NO_PRIVACY in self.models else 0
        return int(reference_sweeps + num_private * self.settings.sweeps)

    @abc.abstractmethod
    def check(self, problems: Problems) -> None:
        """Add what is wrong with the fields of a subclass."""

    @abc.abstractmethod
    def count_releases(self) -> tuple[int, int]:
        """Return `Spending.releases` and `Spending.unit_releases`."""

    @abc.abstractmethod
    def split(self, table: Ratings, rng: np.random.Generator) -> Split:
        """Split a table for one seed; raise InvalidInput if nothing is left on one side."""

    @abc.abstractmethod
    def fit(
        self, model: ModelKind, train: Ratings, epsilon: float, seed: int, fitted: Fitted, on_sweep: OnSweep
    ) -> Any:
        """Fit one model; ``fitted`` are those of this seed so far, and ``on_sweep`` is called after each sweep."""

    @abc.abstractmethod
    def measure(self, model: Any, split: Split, buckets: Buckets) -> tuple[FloatArray, FloatArray]:
        """Measure errors and recalls of a model, over all items and in each bucket."""


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Errors and recall of every run of a study.

    Attributes:
        study: What was run.
        rmse: Shape (models of the study, epsilons, repeats, 1 + BUCKETS), over all items and then by bucket, rarest
            first; NaN for runs that were not reached, and for a study of choices. Models without privacy have the
            same numbers at each epsilon.
        recall: Likewise.
        train_counts: Training ratings of each item in the first split, shape (num_items,).
        models: Of the first seed.
        finished: True if all runs were reached.
    """

    study: Study
    rmse: FloatArray
    recall: FloatArray
    train_counts: IntArray
    models: Fitted = field(default_factory=dict)
    finished: bool = False

    def list_runs(self, model_kind: ModelKind, measure: str = "") -> FloatArray:
        """Return a measure of a model, by default the main one, shape (epsilons, repeats, 1 + BUCKETS)."""
        runs: FloatArray = getattr(self, measure or self.study.main_measure)[
            self.study.models.index(model_kind)
        ]
        return runs

    def summarise(self, model_kind: ModelKind, measure: str = "") -> Summary:
        """Return mean and spread of a model over seeds, each of shape (epsilons, 1 + BUCKETS)."""
        return summarise_runs(self.list_runs(model_kind, measure))

    def compare(self, model_kind: ModelKind, reference: ModelKind, measure: str = "") -> Summary:
        """Return mean and spread of model - reference, paired by seed; shapes as in `summarise`."""
        return summarise_runs(self.list_runs(model_kind, measure) - self.list_runs(reference, measure))


class ProgressReport(Protocol):
    """A callback that gets the progress of a study."""

    def __call__(self, share: float, so_far: StudyResult | None = None) -> None:
        """Receive the share done after each sweep and, after all models of one epsilon, the results so far."""


class _StopError(Exception):
    """The study is to stop."""


def run(
    table: Ratings,
    study: Study,
    report: ProgressReport = lambda share, so_far=None: None,
    should_stop: ShouldStop = never,
) -> StudyResult:
    """Fit and measure every model.

    Args:
        table: Ratings, or what users chose; each seed splits it anew.
        study: What to run.
        report: Told after each sweep, and after all models of one epsilon.
        should_stop: Asked before each model and after each sweep; where it says yes, what is finished is returned.

    Returns:
        Errors and recall of every model that was reached, by epsilon, seed and bucket.

    Raises:
        InvalidInput: A split leaves nothing to train on or nothing to test.

    Source: Krichene et al. 2023, section 5, for the models that are compared; pairing and intervals are ours.
    """
    unreached = np.full((len(study.models), len(study.epsilons), study.repeats, 1 + BUCKETS), np.nan)
    models: dict[tuple[ModelKind, float], Any] = {}
    result = StudyResult(
        study, unreached, unreached.copy(), np.zeros(table.num_items, dtype=np.int64), models
    )
    private_kinds = [model_kind for model_kind in study.models if model_kind.is_private]
    fits: list[tuple[ModelKind, int | None]] = [
        (model_kind, None) for model_kind in study.models if not model_kind.is_private
    ]
    fits += [(model_kind, index) for index in range(len(study.epsilons)) for model_kind in private_kinds]
    num_sweeps, sweeps_done = max(study.count_sweeps() * study.repeats, 1), 0

    def stop_if_asked() -> None:
        if should_stop():
            raise _StopError

    def count_sweep() -> None:
        nonlocal sweeps_done
        sweeps_done += 1
        report(sweeps_done / num_sweeps)
        stop_if_asked()

    try:
        for seed_index in range(study.repeats):
            split_seed, noise_sequence = np.random.SeedSequence([study.seed, seed_index]).spawn(2)
            noise_seed = int(noise_sequence.generate_state(1)[0])
            stop_if_asked()
            split = study.split(table, np.random.default_rng(split_seed))
            buckets = assign_buckets(split.train.item_counts)
            if seed_index == 0:
                result = replace(result, train_counts=split.train.item_counts)
            fitted: dict[tuple[ModelKind, float], Any] = {}
            for model_kind, index in fits:
                stop_if_asked()
                epsilon = 0.0 if index is None else study.epsilons[index]
                model = study.fit(model_kind, split.train, epsilon, noise_seed, fitted, count_sweep)
                fitted[model_kind, epsilon] = model
                if seed_index == 0:
                    models[model_kind, epsilon] = model
                cells = study.models.index(model_kind), slice(None) if index is None else index, seed_index
                result.rmse[cells], result.recall[cells] = study.measure(model, split, buckets)
                if index is not None and model_kind is private_kinds[-1]:
                    so_far = replace(
                        result, rmse=result.rmse.copy(), recall=result.recall.copy(), models=dict(models)
                    )
                    report(sweeps_done / num_sweeps, so_far)
    except _StopError:
        return result
    return replace(result, finished=True)
