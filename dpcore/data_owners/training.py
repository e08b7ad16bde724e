"""Training across owners: their records, and multinomial logistic regression with a shared W and a personal V_j each.

An owner predicts with W + V_j. The forms that are trained, all of them sound:

- alone: W = 0, and every owner fits V_j to its own records;
- full privacy: W by noisy gradient descent on all records, V = 0;
- joint privacy, *share, then personalise*: the same W, with gradients at the public V = 0, then every owner fits V_j to
  its own records with W fixed; nothing comes back, so the others see W alone (the billboard model);
- no privacy: W by gradient descent without noise, and the same with V_j.

The unit of protection is a record, a user, or a whole owner: the summed gradient of one unit is clipped, and every
unit takes part in every step. The steps are one Gaussian mechanism (`compute_step_noise`), exactly (ε, δ) for data
that differ in one unit whose records are zeroed. The numbers of records and units are public: the mean divides by the
number of records, and an owner's fit depends on both. The guarantee does not hide if a unit is present. A unit that is
replaced, as in the paper's bounds, moves a step by twice as much: `compute_replaced_epsilon`.

Source: Huang et al. 2023, section 4, for the comparison; the convex twin of its model and the forms are ours.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import GaussianNoise, compute_gaussian_epsilon
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray, rank_within_users
from dpcore.data.design_matrix import INTERCEPT
from dpcore.data.samples import FOLDER
from dpcore.dataset import Dataset

DIGITS_PATH = FOLDER / "digits.csv.gz"
"""Origin and licence stand in sample_data/README.md."""
TEST_SHARE = 0.2
MAX_CLASSES, MAX_TABLE_OWNERS, MAX_ROWS = 20, 1_000, 50_000
MAX_ENTRIES = 30_000_000
"""Most entries of all owners' records, padded to the largest owner: 240 MB."""
LARGEST_FEATURE = 1e150
"""Its square does not overflow."""
CONSTANT_FEATURE = 0.2
"""The constant feature of a record of norm 1."""


@dataclass(frozen=True, eq=False)
class LabelledRecords:
    """Records with a class; a selection may be empty, such as the records that small owners hold back.

    Attributes:
        features: Each record of Euclidean norm at most 1, so that gradients are bounded; shape (records, features).
        labels: Classes 0 .. classes - 1, shape (records,).
        num_classes: Their number, at least 2.
        name: What the records are, for a person.
        population_codes: The generated population that a record is from, shape (records,); None without populations.
        owner_codes: Owner of each record, 0 .. num_owners - 1, shape (records,); None where records are dealt out.
        num_owners: Their number, with those who have no record in this part.

    Raises:
        InvalidInput: Shapes do not fit, or a norm above 1.
    """

    features: FloatArray
    labels: IntArray
    num_classes: int
    name: str
    population_codes: IntArray | None = None
    owner_codes: IntArray | None = None
    num_owners: int = 0

    def __post_init__(self) -> None:
        """Raise InvalidInput if shapes do not fit, a label is no class, or a norm is above 1."""
        with Problems() as problems:
            if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
                problems.add("features must have one row per label")
            elif self.labels.min(initial=0) < 0 or self.labels.max(initial=0) >= self.num_classes:
                problems.add("labels must be classes from 0 on")
            elif np.linalg.norm(self.features, axis=1).max(initial=0.0) > 1.0 + 1e-9:
                problems.add("every record must have norm 1 at most")

    def select(self, indices: IntArray) -> LabelledRecords:
        """Return the records at these indices, in this order."""
        field_names = ("features", "labels", "population_codes", "owner_codes")
        arrays_by_field = {field_name: getattr(self, field_name) for field_name in field_names}
        return replace(
            self, **{field_name: x[indices] for field_name, x in arrays_by_field.items() if x is not None}
        )


def scale_records(features: FloatArray) -> FloatArray:
    """Scale each record to norm 1 and append a constant feature; return shape (records, features + 1).

    A record of zeros gets norm 0.2. The scale of a record does not depend on other records.
    """
    norms = np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    remaining_norm = np.sqrt(1.0 - CONSTANT_FEATURE**2)
    return np.asarray(np.c_[remaining_norm * features / norms, np.full(features.shape[0], CONSTANT_FEATURE)])


@functools.cache
def load_digits() -> LabelledRecords:
    """Load the 1,797 handwritten digits of sample_data, scaled to norm 1."""
    table_rows = np.loadtxt(DIGITS_PATH, delimiter=",", skiprows=1, dtype=np.int64)
    features = scale_records(table_rows[:, :-1].astype(np.float64))
    return LabelledRecords(features, table_rows[:, -1], 10, "handwritten digits")


@functools.lru_cache(maxsize=4)
def generate_records(
    seed: int, num_records: int = 4000, num_features: int = 30, num_classes: int = 10
) -> LabelledRecords:
    """Generate records, normal around the mean of their class, from two populations with other means."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, num_classes, num_records)
    population_codes = rng.integers(0, 2, num_records)
    class_means = rng.standard_normal((2, num_classes, num_features))
    # Nearly as long as before, with a correlation of 0.7 to the means of the first population.
    class_means[1] = 0.7 * class_means[0] + 0.7 * class_means[1]
    feature_noise = 2.0 * rng.standard_normal((num_records, num_features))
    features = scale_records(class_means[population_codes, labels] + feature_noise)
    return LabelledRecords(features, labels, num_classes, "generated records", population_codes)


def read_table(dataset: Dataset) -> LabelledRecords:
    """Return a table's rows as records: each user is an owner, each different label a class.

    Raises:
        InvalidInput: There is one owner or one class, too many of either, or too many rows.
    """
    labelled_rows = dataset.table
    assert labelled_rows is not None
    classes, labels = np.unique(labelled_rows.labels, return_inverse=True)
    owner_codes = np.unique(labelled_rows.user_codes, return_inverse=True)[1]
    num_owners = int(owner_codes.max()) + 1
    with Problems() as problems:
        if not 2 <= classes.size <= MAX_CLASSES:
            problems.add(
                f"the label has {classes.size:,} different values instead of 2 to {MAX_CLASSES}",
                remedy="Choose a column of classes as the label",
            )
        if not 2 <= num_owners <= MAX_TABLE_OWNERS:
            problems.add(f"training takes 2 to {MAX_TABLE_OWNERS:,} owners; got {num_owners:,}")
        if labels.size > MAX_ROWS:
            problems.add(f"training takes at most {MAX_ROWS:,} rows; got {labels.size:,}")
        if np.abs(labelled_rows.features).max(initial=0.0) > LARGEST_FEATURE:
            problems.add(f"a feature is beyond {LARGEST_FEATURE:g}", remedy="Express it in a larger unit")
        largest_size = int(np.bincount(owner_codes).max())
        if num_owners * largest_size * (labelled_rows.features.shape[1] + classes.size) > MAX_ENTRIES:
            problems.add(
                f"the owner with most rows has {largest_size:,}, too many beside {num_owners:,} owners",
                remedy="Keep fewer rows of the largest owners",
            )
    feature_indices = [i for i, name in enumerate(labelled_rows.feature_names) if name != INTERCEPT]
    if not feature_indices:
        raise refuse("no feature is left besides the intercept")
    features = scale_records(labelled_rows.features[:, feature_indices])
    labels, owner_codes = labels.astype(np.int64), owner_codes.astype(np.int64)
    return LabelledRecords(features, labels, int(classes.size), dataset.name, None, owner_codes, num_owners)


def split_records(records: LabelledRecords, seed: int) -> tuple[LabelledRecords, LabelledRecords]:
    """Split records at random into (training, test); a fifth, and at least one, is for the test."""
    record_order = np.random.default_rng(seed).permutation(records.labels.size)
    num_test = max(round(TEST_SHARE * record_order.size), 1)
    return records.select(record_order[num_test:]), records.select(record_order[:num_test])


def assign_owners(records: LabelledRecords, num_owners: int, seed: int) -> IntArray:
    """Assign each record to an owner, nearly equally many to each; each owner gets no record of a fifth of the classes.

    Records that have owners already keep them. Which classes an owner lacks depends on the seed and the owner alone:
    training and test records that are assigned with one seed go to owners of the same classes. With two populations,
    an owner gets records of one of them.

    Args:
        records: The records.
        num_owners: At least 2.
        seed: Of the draws.

    Returns:
        Codes 0 .. owners - 1, or -1 for a record that no owner can have, shape (records,). Section 4.1 of the paper:
        at most 8 of 10 classes.
    """
    if records.owner_codes is not None:
        return records.owner_codes
    rng = np.random.default_rng((seed, num_owners))
    num_classes, labels = records.num_classes, records.labels
    population_codes = np.zeros_like(labels) if records.population_codes is None else records.population_codes
    num_populations = int(population_codes.max()) + 1
    num_lacking = max(num_classes // 5, 1)
    shuffled_classes = rng.permutation(num_classes)
    all_owners = np.arange(num_owners)
    # Classes are taken in turn from a shuffled list: about equally many owners lack each class.
    lacks_class = np.zeros((num_owners, num_classes), dtype=bool)
    for lacking_index in range(num_lacking):
        lacking_positions = (num_lacking * (all_owners // num_populations) + lacking_index) % num_classes
        lacks_class[all_owners, shuffled_classes[lacking_positions]] = True
    owner_codes = np.empty(labels.size, dtype=np.int64)
    for population_code in range(num_populations):
        population_mask = all_owners % num_populations == population_code
        for class_code in range(num_classes):
            class_mask = (labels == class_code) & (population_codes == population_code)
            indices = rng.permutation(np.flatnonzero(class_mask))
            allowed_owners = np.flatnonzero(population_mask & ~lacks_class[:, class_code])
            # With one owner of a population nobody else could have the class: those records stay out.
            owner_codes[indices] = -1
            if allowed_owners.size:
                owner_codes[indices] = np.resize(rng.permutation(allowed_owners), indices.size)
    return owner_codes


@dataclass(frozen=True)
class TrainingOptions:
    """How models are fitted; public, chosen on generated data and other seeds than those shown, never on test records.

    Attributes:
        steps: Noisy gradient steps of the shared part; all of them are paid for.
        clip: Largest norm of a record's gradient.
        unit_clip_share: What a unit of several records may fill of its records' clips; its summed gradient is clipped
            to ``clip`` times this times its number of records, at least ``clip``.
        step_size: Step size on the mean loss.
        plain_steps: Steps of the fit without noise.
        plain_penalty: Beside the mean loss without noise, penalty/2 |W|².
        penalties: Of a personal part; every owner picks one on a fifth of its own records, which tells nobody anything.
        personal_steps: Accelerated steps of the fits that an owner makes by itself.
    """

    steps: int = 30
    clip: float = 1.0
    unit_clip_share: float = 0.3
    step_size: float = 8.0
    plain_steps: int = 150
    plain_penalty: float = 1e-4
    penalties: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)
    personal_steps: int = 60


@dataclass(frozen=True, eq=False)
class PaddedUnits:
    """Records by unit, padded to the size of the largest.

    Attributes:
        features: Shape (units, width, features); 0 in the padding.
        targets: One-hot classes, shape (units, width, classes); 0 in the padding.
        record_mask: 1 where there is a record, shape (units, width, 1).
    """

    features: FloatArray
    targets: FloatArray
    record_mask: FloatArray

    @property
    def sizes(self) -> FloatArray:
        """Return the records per unit, shape (units, 1, 1)."""
        return np.asarray(self.record_mask.sum(axis=1, keepdims=True))


def pad_units(records: LabelledRecords, unit_codes: IntArray, num_units: int) -> PaddedUnits:
    """Group records by the codes of their units, padded with zeros; a unit may have no record."""
    largest_size = max(int(np.bincount(unit_codes, minlength=num_units).max()), 1)
    indices_in_unit = rank_within_users(unit_codes, np.arange(unit_codes.size))
    padded_features = np.zeros((num_units, largest_size, records.features.shape[1]))
    one_hot_labels = np.zeros((num_units, largest_size, records.num_classes))
    record_mask = np.zeros((num_units, largest_size, 1))
    padded_features[unit_codes, indices_in_unit] = records.features
    one_hot_labels[unit_codes, indices_in_unit, records.labels] = 1.0
    record_mask[unit_codes, indices_in_unit] = 1.0
    return PaddedUnits(padded_features, one_hot_labels, record_mask)


def _softmax(class_scores: FloatArray) -> FloatArray:
    """Compute class probabilities from scores with classes along the last axis; same shape."""
    # Subtracting the largest score changes no probability, and no exponential overflows.
    score_exponentials = np.exp(class_scores - class_scores.max(axis=-1, keepdims=True))
    return np.asarray(score_exponentials / score_exponentials.sum(axis=-1, keepdims=True))


def _compute_residuals(units: PaddedUnits, weights: FloatArray) -> FloatArray:
    """Compute class probabilities less one-hot targets, shape (units, width, classes); 0 in the padding."""
    class_scores = units.features @ np.swapaxes(weights, -1, -2)
    return np.asarray((_softmax(class_scores) - units.targets) * units.record_mask)


def compute_unit_gradients(units: PaddedUnits, weights: FloatArray) -> FloatArray:
    """Compute each unit's gradient of the summed loss at W, shape (units, classes, features)."""
    return np.asarray(np.swapaxes(_compute_residuals(units, weights), 1, 2) @ units.features)


def sum_clipped(unit_gradients: FloatArray, max_norm: float) -> FloatArray:
    """Clip each unit's gradient to norm ``max_norm`` and sum over units, shape (classes, features)."""
    gradient_norms = np.sqrt(np.einsum("ucf,ucf->u", unit_gradients, unit_gradients))
    # A unit without records has gradient 0, which stays 0 whatever its scale.
    clip_factors = np.minimum(1.0, max_norm / np.maximum(gradient_norms, 1e-300))
    return np.asarray(np.einsum("u,ucf->cf", clip_factors, unit_gradients))


def _sum_clipped_records(units: PaddedUnits, weights: FloatArray, max_norm: float) -> FloatArray:
    """Clip the gradient of each unit of one record and sum over units, shape (classes, features).

    The gradient of a record is (p − y) xᵀ with norm |p − y| |x|, so no gradient per record is built.
    """
    residuals = _compute_residuals(units, weights)[:, 0]
    record_features = units.features[:, 0]
    gradient_norms = np.linalg.norm(residuals, axis=1) * np.linalg.norm(record_features, axis=1)
    clip_factors = np.minimum(1.0, max_norm / np.maximum(gradient_norms, 1e-300))
    return np.asarray((residuals * clip_factors[:, None]).T @ record_features)


def compute_step_noise(epsilon: float, delta: float, num_steps: int) -> float:
    """Compute the standard deviation of each step's noise, for sensitivity 1, so that all steps are (ε, δ)-DP.

    All steps together are one Gaussian mechanism of sensitivity √steps (Dong, Roth and Su 2022, corollary 3.3); its
    exact (ε, δ) is that of Balle and Wang 2018. The result is 0 if ε is infinite.

    Raises:
        InvalidInput: ε or δ out of range.
    """
    if math.isinf(epsilon):
        return 0.0
    return GaussianNoise.for_release(math.sqrt(num_steps), epsilon, delta).scale


def compute_replaced_epsilon(epsilon: float, delta: float) -> float:
    """Compute the ε of replacing a unit, at the same δ, where ``epsilon`` is the ε of zeroing a unit.

    The Gaussian mechanism is the same, and its sensitivity twice as large.

    Raises:
        InvalidInput: ε or δ out of range.

    Source: Balle and Wang 2018, theorem 8.
    """
    return compute_gaussian_epsilon(GaussianNoise.for_release(1.0, epsilon, delta).scale / 2.0, delta)


def fit_shared(
    padded_units: PaddedUnits,
    num_records: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    training_options: TrainingOptions = TrainingOptions(),
    clips_per_unit: float = 1.0,
    group_size: float = 1.0,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Fit W by noisy full-batch gradient descent from 0, at V = 0: (ε, δ)-DP where one unit's records are zeroed.

    Args:
        padded_units: Records by unit of protection.
        num_records: Their public number, which the mean divides by.
        epsilon: Budget of all steps together; infinite for none.
        delta: δ of all steps together.
        rng: Draws the noise.
        training_options: Steps, clip and rate.
        clips_per_unit: Records whose clips one unit may fill; 1 for records. A unit's summed gradient is clipped to
            ``options.clip`` times this.
        group_size: Multiplies the noise: a user of so many records, protected by group privacy of clipped records.
        should_stop: Asked before every step; W as it is then is returned, which is private as well.

    Returns:
        W, shape (classes, features).

    Raises:
        InvalidInput: ε or δ out of range.

    Source: Abadi et al. 2016, algorithm 1, with all units in every step; the accounting is that of
        `compute_step_noise`.
    """
    has_single_records = padded_units.features.shape[1] == 1
    max_norm = training_options.clip * clips_per_unit
    noise_std = compute_step_noise(epsilon, delta, training_options.steps) * max_norm * group_size
    shared_weights = np.zeros((padded_units.targets.shape[2], padded_units.features.shape[2]))
    for _ in range(training_options.steps):
        if should_stop():
            break
        if has_single_records:
            gradient_sum = _sum_clipped_records(padded_units, shared_weights, max_norm)
        else:
            gradient_sum = sum_clipped(compute_unit_gradients(padded_units, shared_weights), max_norm)
        gradient_sum += noise_std * rng.standard_normal(shared_weights.shape)
        shared_weights = shared_weights - training_options.step_size / num_records * gradient_sum
    return shared_weights


def fit_without_privacy(
    records: LabelledRecords, training_options: TrainingOptions, should_stop: ShouldStop = never
) -> FloatArray:
    """Fit W without noise by accelerated gradient descent; return W, shape (classes, features).

    It minimises the mean loss plus penalty/2 |W|².
    """
    single_unit = pad_units(records, np.zeros(records.labels.size, dtype=np.int64), 1)
    zero_weights = np.zeros((records.num_classes, records.features.shape[1]))
    ridge_penalty, num_steps = training_options.plain_penalty, training_options.plain_steps
    return np.asarray(fit_personal(single_unit, zero_weights, ridge_penalty, num_steps, should_stop)[0])


def fit_personal(
    owner_units: PaddedUnits,
    shared_weights: FloatArray,
    ridge_penalty: float | FloatArray,
    num_steps: int,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Fit V_j of all owners at once: each minimises its owner's mean loss at W + V_j plus penalty/2 |V_j|².

    Args:
        owner_units: Records by owner; an owner without records gets V_j = 0.
        shared_weights: W, shape (classes, features).
        ridge_penalty: Above 0, for all owners or one each, shape (owners,).
        num_steps: Of Nesterov's method for strongly convex functions; the mean loss is 1/2-smooth where records have
            norm 1 at most (Böhning 1992).
        should_stop: Asked before every step.

    Returns:
        V, shape (owners, classes, features).
    """
    penalty_of_owner = np.asarray(ridge_penalty, dtype=np.float64).reshape(-1, 1, 1)
    smoothness = 0.5 + penalty_of_owner
    inverse_condition_roots = np.sqrt(penalty_of_owner / smoothness)
    momentum = (1.0 - inverse_condition_roots) / (1.0 + inverse_condition_roots)
    records_per_owner = np.maximum(owner_units.sizes, 1.0)
    personal_weights = np.zeros((owner_units.features.shape[0], *shared_weights.shape))
    extrapolated_weights = personal_weights
    for _ in range(num_steps):
        if should_stop():
            break
        loss_gradients = (
            compute_unit_gradients(owner_units, shared_weights + extrapolated_weights) / records_per_owner
        )
        total_gradients = loss_gradients + penalty_of_owner * extrapolated_weights
        next_weights = extrapolated_weights - total_gradients / smoothness
        extrapolated_weights = next_weights + momentum * (next_weights - personal_weights)
        personal_weights = next_weights
    return personal_weights


def average_losses(units: PaddedUnits, weights: FloatArray) -> FloatArray:
    """Average the losses of each owner's records, shape (owners,); 0 for an owner without records."""
    probabilities = _softmax(units.features @ np.swapaxes(weights, -1, -2))
    label_probabilities = np.sum(probabilities * units.targets, axis=2)
    log_likelihoods = np.log(np.maximum(label_probabilities, 1e-300)) * units.record_mask[:, :, 0]
    return np.asarray(-log_likelihoods.sum(axis=1) / np.maximum(units.sizes[:, 0, 0], 1.0))


def choose_and_fit_personal(
    records: LabelledRecords,
    owner_codes: IntArray,
    num_owners: int,
    shared_weights: FloatArray,
    options: TrainingOptions,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """Fit V_j of every owner, each with the penalty of the smallest loss on every fifth of its own records.

    Args:
        records: Records to learn from.
        owner_codes: Codes of their owners.
        num_owners: n.
        shared_weights: W; 0 for owners who work alone.
        options: Penalties and steps.
        should_stop: Asked before every step.

    Returns:
        V, shape (owners, classes, features).
    """
    best_penalties, num_steps = np.full(num_owners, options.penalties[-1]), options.personal_steps
    if len(options.penalties) > 1:
        validation_mask = rank_within_users(owner_codes, np.arange(owner_codes.size)) % 5 == 4
        training_units, validation_units = (
            pad_units(records.select(np.flatnonzero(records_mask)), owner_codes[records_mask], num_owners)
            for records_mask in (~validation_mask, validation_mask)
        )
        smallest_losses = np.full(num_owners, np.inf)
        # From the largest: an owner with too few records to hold any back stays with it.
        for penalty in sorted(options.penalties, reverse=True):
            personal_weights = fit_personal(training_units, shared_weights, penalty, num_steps, should_stop)
            validation_losses = average_losses(validation_units, shared_weights + personal_weights)
            best_penalties = np.where(validation_losses < smallest_losses, penalty, best_penalties)
            smallest_losses = np.minimum(validation_losses, smallest_losses)
    all_units = pad_units(records, owner_codes, num_owners)
    return fit_personal(all_units, shared_weights, best_penalties, num_steps, should_stop)


def compute_accuracy(records: LabelledRecords, owner_codes: IntArray, weights: FloatArray) -> float:
    """Compute the share of records whose class is predicted, by W for all owners or by W + V_j of each."""
    num_correct = 0
    for owner_code in np.unique(owner_codes):
        own_mask = owner_codes == owner_code
        owner_weights = weights if weights.ndim == 2 else weights[owner_code]
        class_scores = records.features[own_mask] @ owner_weights.T
        num_correct += int(np.sum(class_scores.argmax(axis=1) == records.labels[own_mask]))
    return num_correct / records.labels.size
