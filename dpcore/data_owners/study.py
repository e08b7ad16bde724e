"""The comparison of section 4 of the paper: test accuracy over the number of owners, form by form."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.common.noise_error import summarise_runs
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.labelled import (
    LabelledRecords,
    assign_owners,
    generate_records,
    load_digits,
    split_records,
)
from dpcore.data_owners.training import (
    TrainingOptions,
    choose_and_fit_personal,
    compute_accuracy,
    fit_shared,
    fit_without_privacy,
    index_in_unit,
    pad_units,
)


class Records(enum.Enum):
    """The records that models are trained on."""

    DIGITS = "digits"
    GENERATED = "generated"
    UPLOAD = "upload"

    def load(self, seed: int) -> LabelledRecords:
        """Load the records; generated ones depend on the seed. Those of an upload are passed as they are."""
        assert self is not Records.UPLOAD
        return load_digits() if self is Records.DIGITS else generate_records(seed)


class Form(enum.Enum):
    """A form of training."""

    SEPARATE = "alone"
    FULL = "full"
    JOINT = "joint"
    NON_PRIVATE = "plain"
    NON_PRIVATE_PERSONAL = "plain_personal"

    @property
    def is_private(self) -> bool:
        """Return True if the form depends on ε."""
        return self in (Form.FULL, Form.JOINT)


@dataclass(frozen=True)
class Study:
    """The forms, owners and budgets that are compared.

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
    """Test accuracies; NaN for runs that were not reached.

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
    def share_done(self) -> float:
        """Return the share of the accuracies that are known."""
        is_done = [np.isfinite(accuracies).ravel() for accuracies in self.accuracy.values()]
        return float(np.mean(np.concatenate(is_done)))

    def average(self, form: Form) -> FloatArray:
        """Average over the seeds that ran, shape (epsilons, owners); NaN where none did."""
        return summarise_runs(self.accuracy[form], axis=2).mean

    def compare(self, form: Form, other_form: Form) -> FloatArray:
        """Return 1 where the first is more accurate, -1 where it is less, 0 if they lie within the standard error.

        Shape (epsilons, owners), NaN where one has not run. The standard error is that of the difference of two
        shares of right answers, on as many test records as there are in all runs; it is no proof of a
        difference.
        """
        accuracy, other_accuracy = np.broadcast_arrays(self.average(form), self.average(other_form))
        mean_accuracy = np.clip((accuracy + other_accuracy) / 2.0, 0.0, 1.0)
        runs = np.isfinite(self.accuracy[form]).sum(axis=2)
        error = np.sqrt(2.0 * mean_accuracy * (1.0 - mean_accuracy) / (self.tests * np.maximum(runs, 1)))
        gap = accuracy - other_accuracy
        sign = np.where(np.abs(gap) > error, np.sign(gap), 0.0)
        return np.asarray(np.where(np.isfinite(gap), sign, np.nan))

    def find_extremes(self, form: Form) -> tuple[FloatArray, FloatArray]:
        """Find the extremes over the seeds that ran, each of shape (epsilons, owners); NaN where none did."""
        accuracies = self.accuracy[form]
        has_run = np.isfinite(accuracies)
        low = np.where(has_run, accuracies, np.inf).min(axis=2)
        high = np.where(has_run, accuracies, -np.inf).max(axis=2)
        has_any = has_run.any(axis=2)
        return np.where(has_any, low, np.nan), np.where(has_any, high, np.nan)


def assign_units(study: Study, owners: IntArray, num_owners: int) -> tuple[IntArray, int]:
    """Assign each record to a unit of protection; return the codes and their number."""
    if study.unit is Unit.OWNER:
        return owners, num_owners
    if study.unit is Unit.RECORD or study.by_group:
        return np.arange(owners.size), owners.size
    index_in_owner = index_in_unit(owners, num_owners)
    # Rounded up: an owner's last user may have fewer records.
    units_per_owner = -(-np.bincount(owners, minlength=num_owners) // study.records_per_user)
    first_unit = np.cumsum(units_per_owner) - units_per_owner
    return first_unit[owners] + index_in_owner // study.records_per_user, int(units_per_owner.sum())


def train_shared(
    study: Study,
    training_records: LabelledRecords,
    owners: IntArray,
    num_owners: int,
    epsilon: float,
    seed: int,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Train W for the study's unit and ε."""
    units, num_units = assign_units(study, owners, num_owners)
    unit_sizes = {
        Unit.RECORD: 1.0,
        Unit.USER: float(study.records_per_user),
        Unit.OWNER: training_records.labels.size / num_owners,
    }
    is_by_group = study.by_group and study.unit is Unit.USER
    has_several_records = study.unit is not Unit.RECORD and not is_by_group
    # ε as a whole number: one stream of noise for each.
    rng = np.random.default_rng(
        (seed, num_owners if has_several_records else 0, int(1e6 * min(epsilon, 1e6)))
    )
    return fit_shared(
        pad_units(training_records, units, num_units),
        training_records.labels.size,
        epsilon,
        study.delta,
        rng,
        study.options,
        unit_records=max(1.0, study.options.unit_share * unit_sizes[study.unit])
        if has_several_records
        else 1.0,
        group=unit_sizes[Unit.USER] if is_by_group else 1.0,
        should_stop=should_stop,
    )


def check_records(study: Study, records: Records | LabelledRecords) -> None:
    """Check that the study can be run on these records.

    Raises:
        InvalidInput: A user would have more records than an owner; or the records are a table's, which says whose they
            are but not which user's.
    """
    if study.unit is not Unit.USER:
        return
    with Problems() as problems:
        if isinstance(records, LabelledRecords) and records.owners is not None:
            problems.add(
                "the table does not say which user a record is of",
                remedy="Choose one record or a whole owner as what is protected",
            )
            return
        loaded_records = records.load(study.seeds[0]) if isinstance(records, Records) else records
        num_training = split_records(loaded_records, study.seeds[0])[0].labels.size
        for owner_count in study.owners:
            if study.records_per_user > num_training // owner_count:
                problems.add(
                    f"of {owner_count:,} owners each has {wording.counted(num_training // owner_count, 'record')} to "
                    "learn from, fewer than the "
                    f"{study.records_per_user:,} of a user",
                    remedy="Take fewer owners, or fewer records per user",
                )


def run_study(
    study: Study,
    records: Records | LabelledRecords,
    report: Callable[[float, StudyResult], None] = lambda share, found: None,
    should_stop: ShouldStop = never,
) -> StudyResult:
    """Train and test every form of the study.

    Args:
        study: What is compared.
        records: What models are trained on.
        report: Told the share done and what was found so far.
        should_stop: Asked between steps; what was found until then is returned.
    """
    epsilons_of_form = {form: len(study.epsilons) if form.is_private else 1 for form in study.forms}
    scores = {
        form: np.full((num_epsilons, len(study.owners), len(study.seeds)), np.nan)
        for form, num_epsilons in epsilons_of_form.items()
    }
    first_records = records.load(study.seeds[0]) if isinstance(records, Records) else records

    def copy_results() -> StudyResult:
        copies = {form: accuracies.copy() for form, accuracies in scores.items()}
        parameters = first_records.classes * first_records.features.shape[1]
        num_training, num_test = (
            records_of_part.labels.size for records_of_part in split_records(first_records, 0)
        )
        return StudyResult(study, copies, num_training, num_test, parameters, first_records.name)

    for seed_index, seed in enumerate(study.seeds):
        loaded_records = records.load(seed) if isinstance(records, Records) else records
        seed_runs = _SeedRuns(study, *split_records(loaded_records, seed), seed, should_stop)
        for owner_index, owner_count in enumerate(study.owners):
            for form, num_epsilons, score in seed_runs.yield_scores(owner_count):
                if should_stop():
                    return copy_results()
                scores[form][num_epsilons, owner_index, seed_index] = score
                result = copy_results()
                report(result.share_done, result)
    return copy_results()


@dataclass(eq=False)
class _SeedRuns:
    """All runs of one seed; shared fits that do not depend on the owners are cached for all numbers of owners."""

    study: Study
    training_records: LabelledRecords
    test_records: LabelledRecords
    seed: int
    should_stop: ShouldStop
    shared_cache: dict[float, FloatArray] = field(default_factory=dict)

    def yield_scores(self, owner_count: int) -> Iterator[tuple[Form, int, float]]:
        """Yield (form, index of ε, test accuracy), form by form."""
        training_owners, test_owners = (
            assign_owners(self.training_records, owner_count, self.seed),
            assign_owners(self.test_records, owner_count, self.seed),
        )
        training_records, owners = (
            self.training_records.select(np.flatnonzero(training_owners >= 0)),
            training_owners[training_owners >= 0],
        )
        test_records, test_owner_codes = (
            self.test_records.select(np.flatnonzero(test_owners >= 0)),
            test_owners[test_owners >= 0],
        )
        budgets = [(epsilon_index, epsilon) for epsilon_index, epsilon in enumerate(self.study.epsilons)]
        zero_weights = np.zeros((training_records.classes, training_records.features.shape[1]))
        for epsilon_index, epsilon in [(0, None), *budgets, (0, math.inf)]:
            is_without_privacy = epsilon is not None and math.isinf(epsilon)
            shared_form = Form.NON_PRIVATE if is_without_privacy else Form.FULL
            personal_form = (
                Form.SEPARATE
                if epsilon is None
                else Form.NON_PRIVATE_PERSONAL
                if is_without_privacy
                else Form.JOINT
            )
            if not {shared_form, personal_form} & set(self.study.forms):
                continue
            shared_weights = (
                zero_weights
                if epsilon is None
                else self.fit_shared(training_records, owners, owner_count, epsilon)
            )
            if epsilon is not None and shared_form in self.study.forms:
                yield (
                    shared_form,
                    epsilon_index,
                    compute_accuracy(test_records, test_owner_codes, shared_weights, None),
                )
            if personal_form in self.study.forms:
                personal_weights = choose_and_fit_personal(
                    training_records,
                    owners,
                    owner_count,
                    shared_weights,
                    self.study.options,
                    self.should_stop,
                )
                yield (
                    personal_form,
                    epsilon_index,
                    compute_accuracy(test_records, test_owner_codes, shared_weights, personal_weights),
                )

    def fit_shared(
        self, training_records: LabelledRecords, owners: IntArray, owner_count: int, epsilon: float
    ) -> FloatArray:
        """Fit W, without noise if ε is infinite."""
        study = self.study
        is_independent_of_owners = study.unit is Unit.RECORD or study.by_group or math.isinf(epsilon)
        # If records are assigned to no owner, W is fitted to the others alone, and differs between numbers of owners.
        is_independent_of_owners = (
            is_independent_of_owners and training_records.labels.size == self.training_records.labels.size
        )
        if is_independent_of_owners and epsilon in self.shared_cache:
            return self.shared_cache[epsilon]
        if math.isinf(epsilon):
            weights = fit_without_privacy(training_records, study.options, self.should_stop)
        else:
            weights = train_shared(
                study, training_records, owners, owner_count, epsilon, self.seed, self.should_stop
            )
        if is_independent_of_owners and not self.should_stop():
            self.shared_cache[epsilon] = weights
        return weights
