"""The comparison of section 4 of the paper: test accuracy over the number of owners, form by form."""

from __future__ import annotations

import copy
import enum
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.noise_error import summarise_runs
from dpcore.common.parameters import Option
from dpcore.common.progress import ShouldStop, never
from dpcore.common.wording import format_count
from dpcore.contributions import FloatArray, IntArray, rank_within_users
from dpcore.data_owners import training
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.training import LabelledRecords, TrainingOptions, split_records


class RecordSource(Option):
    """The records that models are trained on."""

    DIGITS = "digits", "Digits"
    GENERATED = "generated", "Generated"
    UPLOAD = "upload", "Upload a table"


class Form(enum.Enum):
    """A form of training: which parameters are fitted, and whether with noise."""

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
        numbers_of_owners: Numbers of owners to compare, each at least 2.
        epsilons: Budgets.
        seeds: Of splits, deals and noise; one run each.
        delta: δ.
        unit: What is protected as one.
        records_per_user: Where that is a user: an owner's records in stretches of so many.
        uses_group_privacy: True to protect users by group privacy of records, not by clipping their summed gradient.
        training_options: How models are fitted.
        forms: What is trained.
    """

    numbers_of_owners: tuple[int, ...]
    epsilons: tuple[float, ...]
    seeds: tuple[int, ...] = (0,)
    delta: float = 1e-5
    unit: Unit = Unit.RECORD
    records_per_user: int = 1
    uses_group_privacy: bool = False
    training_options: TrainingOptions = field(default_factory=TrainingOptions)
    forms: tuple[Form, ...] = tuple(Form)

    @property
    def clips_records(self) -> bool:
        """Return True if records' gradients are clipped one by one: then the shared W does not depend on the owners."""
        return self.unit is Unit.RECORD or (self.unit is Unit.USER and self.uses_group_privacy)


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Test accuracies; NaN for runs that were not reached.

    Attributes:
        study: What was compared.
        accuracies_by_form: Shape (epsilons, owners, seeds) by form; one epsilon, the first, where it does not matter.
        num_records: Number of records that were learned from.
        num_tests: Number of records that were tested on.
        num_parameters: ℓ = k, parameters of W and of one V_j.
        records_name: What the records are.
    """

    study: Study
    accuracies_by_form: dict[Form, FloatArray]
    num_records: int
    num_tests: int
    num_parameters: int
    records_name: str

    @property
    def share_done(self) -> float:
        """Return the share of all accuracies of the study that are known, 0 to 1."""
        all_accuracies = np.concatenate([x.ravel() for x in self.accuracies_by_form.values()])
        return float(np.isfinite(all_accuracies).mean())

    def average_accuracies(self, form: Form) -> FloatArray:
        """Average a form's test accuracy over the runs that were done, shape (epsilons, owners); NaN without a run."""
        return summarise_runs(self.accuracies_by_form[form], axis=2).means

    def compare_forms(self, form: Form, other_form: Form) -> FloatArray:
        """Compare two forms' mean accuracies: 1 if the first is higher, -1 if lower, 0 if within a standard error.

        The result has shape (epsilons, owners), and NaN for a form without runs. The standard error is that of the
        difference between two shares of right answers, over the test records of all runs. A sign does not prove a
        difference.
        """
        mean_accuracies, other_mean_accuracies = np.broadcast_arrays(
            self.average_accuracies(form), self.average_accuracies(other_form)
        )
        pooled_accuracies = np.clip((mean_accuracies + other_mean_accuracies) / 2.0, 0.0, 1.0)
        runs_per_cell = np.isfinite(self.accuracies_by_form[form]).sum(axis=2)
        num_tested_records = self.num_tests * np.maximum(runs_per_cell, 1)
        standard_errors = np.sqrt(2.0 * pooled_accuracies * (1.0 - pooled_accuracies) / num_tested_records)
        accuracy_differences = mean_accuracies - other_mean_accuracies
        signs = np.where(np.abs(accuracy_differences) > standard_errors, np.sign(accuracy_differences), 0.0)
        return np.asarray(np.where(np.isfinite(accuracy_differences), signs, np.nan))


def assign_units(study: Study, owner_codes: IntArray, num_owners: int) -> tuple[IntArray, int]:
    """Assign each record to a unit of protection; return (code of each record's unit, number of units)."""
    if study.clips_records:
        return np.arange(owner_codes.size), owner_codes.size
    if study.unit is Unit.OWNER:
        return owner_codes, num_owners
    record_ranks_in_owner = rank_within_users(owner_codes, np.arange(owner_codes.size))
    # Rounded up: an owner's last user may have fewer records.
    units_per_owner = -(-np.bincount(owner_codes, minlength=num_owners) // study.records_per_user)
    first_unit_codes = np.cumsum(units_per_owner) - units_per_owner
    unit_codes = first_unit_codes[owner_codes] + record_ranks_in_owner // study.records_per_user
    return unit_codes, int(units_per_owner.sum())


def train_shared(
    study: Study,
    records: LabelledRecords,
    owner_codes: IntArray,
    num_owners: int,
    epsilon: float,
    seed: int,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Train the shared weights W with the study's unit of protection; return W, shape (classes, features).

    If ε is infinite there is no noise.
    """
    training_options = study.training_options
    if math.isinf(epsilon):
        return training.fit_without_privacy(records, training_options, should_stop)
    num_records, clips_per_unit, group_size = records.labels.size, 1.0, 1.0
    if not study.clips_records:
        records_per_unit = study.records_per_user if study.unit is Unit.USER else num_records / num_owners
        clips_per_unit = max(1.0, training_options.unit_clip_share * records_per_unit)
    elif study.unit is Unit.USER:
        group_size = float(study.records_per_user)
    # ε as a whole number: one stream of noise for each.
    owners_seed = 0 if study.clips_records else num_owners
    rng = np.random.default_rng((seed, owners_seed, int(1e6 * min(epsilon, 1e6))))
    padded_units = training.pad_units(records, *assign_units(study, owner_codes, num_owners))
    return training.fit_shared(
        padded_units,
        num_records,
        epsilon,
        study.delta,
        rng,
        training_options,
        clips_per_unit,
        group_size,
        should_stop,
    )


def load_records(records: RecordSource | LabelledRecords, seed: int) -> LabelledRecords:
    """Load digits, or generate records from the seed; records that are given are returned as they are."""
    if isinstance(records, LabelledRecords):
        return records
    return training.load_digits() if records is RecordSource.DIGITS else training.generate_records(seed)


def check_records(study: Study, source_or_records: RecordSource | LabelledRecords) -> None:
    """Raise InvalidInput if users are protected and the records do not fit; otherwise do nothing.

    Raises:
        InvalidInput: A user would have more records than an owner; or the records are a table's, which says whose they
            are but not which user's.
    """
    if study.unit is not Unit.USER:
        return
    with Problems() as problems:
        if isinstance(source_or_records, LabelledRecords) and source_or_records.owner_codes is not None:
            problems.add(
                "the table does not say which user a record is of",
                remedy="Protect one record or a whole owner",
            )
            return
        first_seed = study.seeds[0]
        num_training = split_records(load_records(source_or_records, first_seed), first_seed)[0].labels.size
        for num_owners in study.numbers_of_owners:
            if study.records_per_user > (owner_size := num_training // num_owners):
                problems.add(
                    f"of {num_owners:,} owners each has {format_count(owner_size, 'record')} to learn from, a user "
                    f"{study.records_per_user:,}",
                    remedy="Take fewer owners, or fewer records per user",
                )


def run_study(
    study: Study,
    source_or_records: RecordSource | LabelledRecords,
    report_result: Callable[[float, StudyResult], None] = lambda share, result: None,
    should_stop: ShouldStop = never,
) -> StudyResult:
    """Train and test every form of the study; return the test accuracies, NaN for runs that a stop left out.

    Args:
        study: What is compared.
        source_or_records: What models are trained on.
        report_result: Told the share done and the result so far.
        should_stop: Asked between steps; the result so far is returned.
    """
    owners_by_runs_shape = (len(study.numbers_of_owners), len(study.seeds))
    accuracies_by_form = {
        form: np.full((len(study.epsilons) if form.is_private else 1, *owners_by_runs_shape), np.nan)
        for form in study.forms
    }
    first_records = load_records(source_or_records, study.seeds[0])
    num_training, num_tests = (records_part.labels.size for records_part in split_records(first_records, 0))
    num_parameters = first_records.num_classes * first_records.features.shape[1]

    study_result = StudyResult(
        study, accuracies_by_form, num_training, num_tests, num_parameters, first_records.name
    )
    for seed_index, seed in enumerate(study.seeds):
        training_and_test = split_records(load_records(source_or_records, seed), seed)
        weights_by_epsilon: dict[float, FloatArray] = {}
        for number_index, num_owners in enumerate(study.numbers_of_owners):
            for form, epsilon_index, test_accuracy in _test_forms(
                study, *training_and_test, num_owners, seed, weights_by_epsilon, should_stop
            ):
                if should_stop():
                    return study_result
                accuracies_by_form[form][epsilon_index, number_index, seed_index] = test_accuracy
                # A copy, which later runs do not change.
                report_result(study_result.share_done, copy.deepcopy(study_result))
    return study_result


def _test_forms(
    study: Study,
    training_records: LabelledRecords,
    test_records: LabelledRecords,
    num_owners: int,
    seed: int,
    weights_by_epsilon: dict[float, FloatArray],
    should_stop: ShouldStop,
) -> Iterator[tuple[Form, int, float]]:
    """Train and test the study's forms for one number of owners and one seed.

    Yield (form, index of ε, test accuracy). W is read from and kept in ``weights_by_epsilon`` where it is the same
    for every number of owners.
    """
    records, owner_codes = _deal_records(training_records, num_owners, seed)
    kept_test_records, test_owner_codes = _deal_records(test_records, num_owners, seed)
    # If some records are assigned to no owner, W is fitted to the others alone, and differs between numbers of owners.
    compute_accuracy = functools.partial(training.compute_accuracy, kept_test_records, test_owner_codes)
    has_all_records = records.labels.size == training_records.labels.size
    private_trainings = ((i, epsilon, Form.FULL, Form.JOINT) for i, epsilon in enumerate(study.epsilons))
    for epsilon_index, epsilon, shared_form, personal_form in (
        (0, None, None, Form.SEPARATE),
        *private_trainings,
        (0, math.inf, Form.NON_PRIVATE, Form.NON_PRIVATE_PERSONAL),
    ):
        if not {shared_form, personal_form} & set(study.forms):
            continue
        if epsilon is None:
            shared_weights = np.zeros((records.num_classes, records.features.shape[1]))
        elif has_all_records and epsilon in weights_by_epsilon:
            shared_weights = weights_by_epsilon[epsilon]
        else:
            shared_weights = train_shared(study, records, owner_codes, num_owners, epsilon, seed, should_stop)
            if has_all_records and (study.clips_records or math.isinf(epsilon)) and not should_stop():
                weights_by_epsilon[epsilon] = shared_weights
        if shared_form in study.forms:
            yield shared_form, epsilon_index, compute_accuracy(shared_weights)
        if personal_form in study.forms:
            personal_weights = training.choose_and_fit_personal(
                records, owner_codes, num_owners, shared_weights, study.training_options, should_stop
            )
            yield personal_form, epsilon_index, compute_accuracy(shared_weights + personal_weights)


def _deal_records(records: LabelledRecords, num_owners: int, seed: int) -> tuple[LabelledRecords, IntArray]:
    """Assign records to owners; return (the records that have an owner, the code of the owner of each)."""
    owner_codes = training.assign_owners(records, num_owners, seed)
    kept_indices = np.flatnonzero(owner_codes >= 0)
    return records.select(kept_indices), owner_codes[kept_indices]
