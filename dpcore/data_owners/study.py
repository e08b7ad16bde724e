"""The comparison of section 4 of the paper: test accuracy against the number of owners, form by form."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.over_runs import summary
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.labelled import Labelled, deal, digits, generated, split
from dpcore.data_owners.training import (
    TrainingOptions,
    accuracy,
    personalised,
    place_in_unit,
    plain_part,
    shared_part,
    stacked,
)


class Records(enum.Enum):
    """What models are trained on."""

    DIGITS = "digits"
    GENERATED = "generated"
    UPLOAD = "upload"

    def load(self, seed: int) -> Labelled:
        """The records; generated ones follow the seed. Those of an upload are handed over as they are."""
        assert self is not Records.UPLOAD
        return digits() if self is Records.DIGITS else generated(seed)


class Form(enum.Enum):
    """A form of training."""

    ALONE = "alone"
    FULL = "full"
    JOINT = "joint"
    PLAIN = "plain"
    PLAIN_PERSONAL = "plain_personal"

    @property
    def is_private(self) -> bool:
        """Whether ε matters to it."""
        return self in (Form.FULL, Form.JOINT)


@dataclass(frozen=True)
class Study:
    """What is compared.

    Attributes:
        owners: Numbers of owners, each at least 2.
        epsilons: Budgets.
        seeds: Of splits, deals and noise; one run each.
        delta: δ.
        unit: What is protected as one.
        records_per_user: Where that is a user: an owner's records in stretches of so many.
        by_group: Protect users by group privacy of records, not by clipping their summed gradient.
        options: How models are fitted.
        forms: What is trained.
    """

    owners: tuple[int, ...]
    epsilons: tuple[float, ...]
    seeds: tuple[int, ...] = (0,)
    delta: float = 1e-5
    unit: Unit = Unit.RECORD
    records_per_user: int = 1
    by_group: bool = False
    options: TrainingOptions = field(default_factory=TrainingOptions)
    forms: tuple[Form, ...] = tuple(Form)


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Test accuracies; NaN for what has not run.

    Attributes:
        study: What was compared.
        accuracy: Shape (epsilons, owners, seeds) by form; one epsilon, the first, where it does not matter.
        records: Records that were learned from.
        tests: Records that were tested on.
        parameters: ℓ = k, parameters of W and of one V_j.
        name: What the records are.
    """

    study: Study
    accuracy: dict[Form, FloatArray]
    records: int
    tests: int
    parameters: int
    name: str

    @property
    def done(self) -> float:
        """Share of the accuracies that are there."""
        every = [np.isfinite(a).ravel() for a in self.accuracy.values()]
        return float(np.mean(np.concatenate(every)))

    def mean(self, form: Form) -> FloatArray:
        """Over the seeds that ran, shape (epsilons, owners); NaN where none did."""
        return summary(self.accuracy[form], axis=2).mean

    def compared(self, one: Form, other: Form) -> FloatArray:
        """1 where the first is more accurate, -1 where it is less, 0 where they lie within the standard error.

        Shape (epsilons, owners), NaN where one has not run. The standard error is that of the difference of two shares
        of right answers, on as many test records as there are in all runs; it is no proof of a difference.
        """
        first, second = np.broadcast_arrays(self.mean(one), self.mean(other))
        middle = np.clip((first + second) / 2.0, 0.0, 1.0)
        runs = np.isfinite(self.accuracy[one]).sum(axis=2)
        error = np.sqrt(2.0 * middle * (1.0 - middle) / (self.tests * np.maximum(runs, 1)))
        gap = first - second
        sign = np.where(np.abs(gap) > error, np.sign(gap), 0.0)
        return np.asarray(np.where(np.isfinite(gap), sign, np.nan))

    def spread(self, form: Form) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest over the seeds that ran, shape (epsilons, owners); NaN where none did."""
        found = self.accuracy[form]
        ran = np.isfinite(found)
        low = np.where(ran, found, np.inf).min(axis=2)
        high = np.where(ran, found, -np.inf).max(axis=2)
        any_ = ran.any(axis=2)
        return np.where(any_, low, np.nan), np.where(any_, high, np.nan)


def units_of(study: Study, owners: IntArray, num_owners: int) -> tuple[IntArray, int]:
    """Codes of the units of protection, shape of ``owners``, and their number."""
    if study.unit is Unit.OWNER:
        return owners, num_owners
    if study.unit is Unit.RECORD or study.by_group:
        return np.arange(owners.size), owners.size
    place = place_in_unit(owners, num_owners)
    # Rounded up: an owner's last user may have fewer records.
    per_owner = -(-np.bincount(owners, minlength=num_owners) // study.records_per_user)
    first = np.cumsum(per_owner) - per_owner
    return first[owners] + place // study.records_per_user, int(per_owner.sum())


def train_shared(
    study: Study,
    learn: Labelled,
    owners: IntArray,
    num_owners: int,
    epsilon: float,
    seed: int,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """W of the study's unit and ε."""
    units, count = units_of(study, owners, num_owners)
    held = {
        Unit.RECORD: 1.0,
        Unit.USER: float(study.records_per_user),
        Unit.OWNER: learn.labels.size / num_owners,
    }
    group = study.by_group and study.unit is Unit.USER
    several = study.unit is not Unit.RECORD and not group
    # ε as a whole number: one stream of noise for each.
    rng = np.random.default_rng((seed, num_owners if several else 0, int(1e6 * min(epsilon, 1e6))))
    return shared_part(
        stacked(learn, units, count),
        learn.labels.size,
        epsilon,
        study.delta,
        rng,
        study.options,
        unit_records=max(1.0, study.options.unit_share * held[study.unit]) if several else 1.0,
        group=held[Unit.USER] if group else 1.0,
        should_stop=should_stop,
    )


def check(study: Study, records: Records | Labelled) -> None:
    """Whether the study can be run on these records.

    Raises:
        InvalidInput: A user would have more records than an owner; or the records are a table's, which says whose they
            are but not which user's.
    """
    if study.unit is not Unit.USER:
        return
    with Problems() as problems:
        if isinstance(records, Labelled) and records.owners is not None:
            problems.add(
                "the table does not say which user a record is of",
                remedy="Choose one record or a whole owner as what is protected",
            )
            return
        data = records.load(study.seeds[0]) if isinstance(records, Records) else records
        learned = split(data, study.seeds[0])[0].labels.size
        for n in study.owners:
            if study.records_per_user > learned // n:
                problems.add(
                    f"of {n:,} owners each has {wording.counted(learned // n, 'record')} to learn from, fewer than the "
                    f"{study.records_per_user:,} of a user",
                    remedy="Take fewer owners, or fewer records per user",
                )


def run(
    study: Study,
    records: Records | Labelled,
    tell: Callable[[float, StudyResult], None] = lambda share, found: None,
    should_stop: ShouldStop = never,
) -> StudyResult:
    """Train and test every form of the study.

    Args:
        study: What is compared.
        records: What models are trained on.
        tell: Told the share done and what was found so far.
        should_stop: Asked between steps; what was found until then is returned.
    """
    shapes = {form: len(study.epsilons) if form.is_private else 1 for form in study.forms}
    scores = {form: np.full((e, len(study.owners), len(study.seeds)), np.nan) for form, e in shapes.items()}
    first = records.load(study.seeds[0]) if isinstance(records, Records) else records

    def found() -> StudyResult:
        copies = {form: array.copy() for form, array in scores.items()}
        parameters = first.classes * first.features.shape[1]
        learned, tested = (part.labels.size for part in split(first, 0))
        return StudyResult(study, copies, learned, tested, parameters, first.name)

    for s, seed in enumerate(study.seeds):
        data = records.load(seed) if isinstance(records, Records) else records
        of_seed = _Seed(study, *split(data, seed), seed, should_stop)
        for o, n in enumerate(study.owners):
            for form, e, score in of_seed.scores(n):
                if should_stop():
                    return found()
                scores[form][e, o, s] = score
                now = found()
                tell(now.done, now)
    return found()


@dataclass(eq=False)
class _Seed:
    """What is trained with one seed; shared fits that no owner enters into are kept for all numbers of owners."""

    study: Study
    learn: Labelled
    test: Labelled
    seed: int
    should_stop: ShouldStop
    kept: dict[float, FloatArray] = field(default_factory=dict)

    def scores(self, n: int) -> Iterator[tuple[Form, int, float]]:
        """(form, place of ε, test accuracy), form by form."""
        dealt, judged = deal(self.learn, n, self.seed), deal(self.test, n, self.seed)
        learn, owners = self.learn.part(np.flatnonzero(dealt >= 0)), dealt[dealt >= 0]
        test, judges = self.test.part(np.flatnonzero(judged >= 0)), judged[judged >= 0]
        budgets = [(e, epsilon) for e, epsilon in enumerate(self.study.epsilons)]
        nothing = np.zeros((learn.classes, learn.features.shape[1]))
        for e, epsilon in [(0, None), *budgets, (0, math.inf)]:
            plain = epsilon is not None and math.isinf(epsilon)
            together = Form.PLAIN if plain else Form.FULL
            own = Form.ALONE if epsilon is None else Form.PLAIN_PERSONAL if plain else Form.JOINT
            if not {together, own} & set(self.study.forms):
                continue
            shared = nothing if epsilon is None else self.shared(learn, owners, n, epsilon)
            if epsilon is not None and together in self.study.forms:
                yield together, e, accuracy(test, judges, shared, None)
            if own in self.study.forms:
                personal = personalised(learn, owners, n, shared, self.study.options, self.should_stop)
                yield own, e, accuracy(test, judges, shared, personal)

    def shared(self, learn: Labelled, owners: IntArray, n: int, epsilon: float) -> FloatArray:
        """W; without noise where ε is infinite."""
        study = self.study
        alike = study.unit is Unit.RECORD or study.by_group or math.isinf(epsilon)
        # Where a deal leaves records out, W is of the others alone, and differs between numbers of owners.
        alike = alike and learn.labels.size == self.learn.labels.size
        if alike and epsilon in self.kept:
            return self.kept[epsilon]
        if math.isinf(epsilon):
            weights = plain_part(learn, study.options, self.should_stop)
        else:
            weights = train_shared(study, learn, owners, n, epsilon, self.seed, self.should_stop)
        if alike and not self.should_stop():
            self.kept[epsilon] = weights
        return weights
