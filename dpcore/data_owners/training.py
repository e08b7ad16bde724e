"""Training across owners: multinomial logistic regression with a shared W and a personal V_j per owner.

An owner predicts with W + V_j. The forms that are trained, all of them sound:

- alone: W = 0, and every owner fits V_j to its own records;
- full privacy: W by noisy gradient descent on all records, V = 0;
- joint privacy, *share, then personalise*: the same W, with gradients at the public V = 0, then every owner fits V_j to
  its own records with W fixed; nothing comes back, so the others see W alone (the billboard model);
- no privacy: W by gradient descent without noise, and the same with V_j.

What is protected as one is a record, a user, or a whole owner: the summed gradient of one unit is clipped, and every
unit takes part in every step. The steps are one Gaussian mechanism (`step_noise`), exactly (ε, δ) for data that differ
in one unit whose records are zeroed. How many records and units there are is public: the mean divides by the one, and
an owner's fit depends on both: nothing is promised of whether a unit is there at all. A unit that is replaced,
as in the paper's bounds, moves a step by twice as much: `replaced_epsilon`.

Source: Huang et al. 2023, section 4, for the comparison; the convex twin of its model and the forms are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.privacy import GaussianNoise, gaussian_epsilon
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.data_owners.labelled import Labelled


@dataclass(frozen=True)
class TrainingOptions:
    """How models are fitted; public, chosen on generated data and other seeds than those shown, never on test records.

    Attributes:
        steps: Noisy gradient steps of the shared part; all of them are paid for.
        clip: Largest norm of a record's gradient.
        unit_share: What a unit of several records may fill of its records' clips; its summed gradient is clipped to
            ``clip`` times this times its number of records, at least ``clip``.
        rate: Step size on the mean loss.
        plain_steps: Steps of the fit without noise.
        plain_penalty: Beside the mean loss without noise, penalty/2 |W|².
        penalties: Of a personal part; every owner picks one on a fifth of its own records, which tells nobody anything.
        personal_steps: Accelerated steps of the fits that an owner makes by itself.
    """

    steps: int = 30
    clip: float = 1.0
    unit_share: float = 0.3
    rate: float = 8.0
    plain_steps: int = 150
    plain_penalty: float = 1e-4
    penalties: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)
    personal_steps: int = 60


@dataclass(frozen=True, eq=False)
class Stacked:
    """Records by unit, padded to the size of the largest.

    Attributes:
        features: Shape (units, width, features); 0 in the padding.
        targets: One-hot classes, shape (units, width, classes); 0 in the padding.
        present: 1 where there is a record, shape (units, width, 1).
    """

    features: FloatArray
    targets: FloatArray
    present: FloatArray

    @property
    def sizes(self) -> FloatArray:
        """Records per unit, shape (units, 1, 1)."""
        return np.asarray(self.present.sum(axis=1, keepdims=True))


def place_in_unit(units: IntArray, num_units: int) -> IntArray:
    """Which of its unit's records each record is, counted from 0, in the order in which they stand."""
    order = np.argsort(units, kind="stable")
    counts = np.bincount(units, minlength=num_units)
    place = np.empty(units.size, dtype=np.int64)
    place[order] = np.arange(units.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return place


def stacked(data: Labelled, units: IntArray, num_units: int) -> Stacked:
    """Records stacked by the codes of their units; a unit may have none."""
    width = max(int(np.bincount(units, minlength=num_units).max()), 1)
    place = place_in_unit(units, num_units)
    features = np.zeros((num_units, width, data.features.shape[1]))
    targets = np.zeros((num_units, width, data.classes))
    present = np.zeros((num_units, width, 1))
    features[units, place] = data.features
    targets[units, place, data.labels] = 1.0
    present[units, place] = 1.0
    return Stacked(features, targets, present)


def _probabilities(scores: FloatArray) -> FloatArray:
    # Shares do not change where all scores fall by one number, and no exponential overflows.
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _residuals(at: Stacked, weights: FloatArray) -> FloatArray:
    """Probabilities less targets, 0 in the padding, shape (units, width, classes)."""
    scores = at.features @ np.swapaxes(weights, -1, -2)
    return np.asarray((_probabilities(scores) - at.targets) * at.present)


def unit_gradients(at: Stacked, weights: FloatArray) -> FloatArray:
    """The summed gradient of every unit at W, shape (units, classes, features)."""
    return np.asarray(np.swapaxes(_residuals(at, weights), 1, 2) @ at.features)


def clipped_sum(gradients: FloatArray, most: float) -> FloatArray:
    """The sum over units of gradients brought to a norm of at most ``most``, shape (classes, features)."""
    norms = np.sqrt(np.einsum("ucf,ucf->u", gradients, gradients))
    # A unit without records has gradient 0, which stays 0 whatever its scale.
    scale = np.minimum(1.0, most / np.maximum(norms, 1e-300))
    return np.asarray(np.einsum("u,ucf->cf", scale, gradients))


def _clipped_records(data: Stacked, weights: FloatArray, most: float) -> FloatArray:
    """The same for units of one record, without a gradient per record: its norm is |p − y| |x|."""
    residuals = _residuals(data, weights)[:, 0]
    features = data.features[:, 0]
    norms = np.linalg.norm(residuals, axis=1) * np.linalg.norm(features, axis=1)
    scale = np.minimum(1.0, most / np.maximum(norms, 1e-300))
    return np.asarray((residuals * scale[:, None]).T @ features)


def step_noise(epsilon: float, delta: float, steps: int) -> float:
    """Standard deviation of the noise of one step, per unit of sensitivity, of so many steps together.

    All steps are one Gaussian mechanism of sensitivity √steps (Dong, Roth and Su 2022, corollary 3.3); its exact (ε, δ)
    is that of Balle and Wang 2018. Infinite ε needs none.

    Raises:
        InvalidInput: ε or δ out of range.
    """
    if math.isinf(epsilon):
        return 0.0
    return GaussianNoise.for_release(math.sqrt(steps), epsilon, delta).scale


def replaced_epsilon(epsilon: float, delta: float) -> float:
    """ε at the same δ for a unit that is replaced, of noise that is (ε, δ) where its records are zeroed.

    The Gaussian mechanism is the same, and its sensitivity twice as large.

    Raises:
        InvalidInput: ε or δ out of range.

    Source: Balle and Wang 2018, theorem 8.
    """
    return gaussian_epsilon(GaussianNoise.for_release(1.0, epsilon, delta).scale / 2.0, delta)


def shared_part(
    units: Stacked,
    records: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    options: TrainingOptions = TrainingOptions(),
    unit_records: float = 1.0,
    group: float = 1.0,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """W by noisy full-batch gradient descent from 0, at V = 0: (ε, δ)-DP where one unit's records are zeroed.

    Args:
        units: Records by unit of protection.
        records: Their public number, which the mean divides by.
        epsilon: Budget of all steps together; infinite for none.
        delta: δ of all steps together.
        rng: Draws the noise.
        options: Steps, clip and rate.
        unit_records: Records whose clips one unit may fill; 1 for records. A unit's summed gradient is clipped to
            ``options.clip`` times this.
        group: Multiplies the noise: a user of so many records, protected by group privacy of clipped records.
        should_stop: Asked before every step; W as it is then is returned, which is private as well.

    Returns:
        W, shape (classes, features).

    Raises:
        InvalidInput: ε or δ out of range.

    Source: Abadi et al. 2016, algorithm 1, with all units in every step; the accounting is that of `step_noise`.
    """
    single = units.features.shape[1] == 1
    most = options.clip * unit_records
    noise = step_noise(epsilon, delta, options.steps) * most * group
    weights = np.zeros((units.targets.shape[2], units.features.shape[2]))
    for _ in range(options.steps):
        if should_stop():
            break
        if single:
            gradient = _clipped_records(units, weights, most)
        else:
            gradient = clipped_sum(unit_gradients(units, weights), most)
        gradient += noise * rng.standard_normal(weights.shape)
        weights = weights - options.rate / records * gradient
    return weights


def plain_part(data: Labelled, options: TrainingOptions, should_stop: ShouldStop = never) -> FloatArray:
    """W without noise: the minimum of the mean loss with penalty/2 |W|², by accelerated gradient descent."""
    one = stacked(data, np.zeros(data.labels.size, dtype=np.int64), 1)
    nothing = np.zeros((data.classes, data.features.shape[1]))
    found = personal_parts(one, nothing, options.plain_penalty, options.plain_steps, should_stop)
    return np.asarray(found[0])


def personal_parts(
    owners: Stacked,
    shared: FloatArray,
    penalty: float | FloatArray,
    steps: int,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """V_j of every owner at once: the minimum of the owner's mean loss at W + V_j with penalty/2 |V_j|².

    Args:
        owners: Records by owner; an owner without records gets V_j = 0.
        shared: W, shape (classes, features).
        penalty: Above 0, for all owners or one each, shape (owners,).
        steps: Of Nesterov's method for strongly convex functions; the mean loss is 1/2-smooth where records have norm
            1 at most (Böhning 1992).
        should_stop: Asked before every step.

    Returns:
        V, shape (owners, classes, features).
    """
    ridge = np.asarray(penalty, dtype=np.float64).reshape(-1, 1, 1)
    smooth = 0.5 + ridge
    root = np.sqrt(ridge / smooth)
    momentum = (1.0 - root) / (1.0 + root)
    sizes = np.maximum(owners.sizes, 1.0)
    found = np.zeros((owners.features.shape[0], *shared.shape))
    ahead = found
    for _ in range(steps):
        if should_stop():
            break
        gradient = unit_gradients(owners, shared + ahead) / sizes + ridge * ahead
        moved = ahead - gradient / smooth
        ahead = moved + momentum * (moved - found)
        found = moved
    return found


def mean_losses(at: Stacked, weights: FloatArray) -> FloatArray:
    """Every owner's mean loss, shape (owners,); 0 for one without records."""
    chosen = np.sum(_probabilities(at.features @ np.swapaxes(weights, -1, -2)) * at.targets, axis=2)
    logs = np.log(np.maximum(chosen, 1e-300)) * at.present[:, :, 0]
    return np.asarray(-logs.sum(axis=1) / np.maximum(at.sizes[:, 0, 0], 1.0))


def personalised(
    data: Labelled,
    owners: IntArray,
    num_owners: int,
    shared: FloatArray,
    options: TrainingOptions,
    should_stop: ShouldStop = never,
) -> FloatArray:
    """V_j of every owner, each with the penalty that it picks on every fifth of its own records.

    Args:
        data: Records to learn from.
        owners: Codes of their owners.
        num_owners: n.
        shared: W; 0 for owners who work alone.
        options: Penalties and steps.
        should_stop: Asked before every step.

    Returns:
        V, shape (owners, classes, features).
    """
    best = np.full(num_owners, options.penalties[-1])
    if len(options.penalties) > 1:
        held = place_in_unit(owners, num_owners) % 5 == 4
        learn = stacked(data.part(np.flatnonzero(~held)), owners[~held], num_owners)
        judge = stacked(data.part(np.flatnonzero(held)), owners[held], num_owners)
        least = np.full(num_owners, np.inf)
        # From the largest: an owner with too few records to hold any back stays with it.
        for penalty in sorted(options.penalties, reverse=True):
            personal = personal_parts(learn, shared, penalty, options.personal_steps, should_stop)
            loss = mean_losses(judge, shared + personal)
            better = loss < least
            least, best = np.where(better, loss, least), np.where(better, penalty, best)
    return personal_parts(
        stacked(data, owners, num_owners), shared, best, options.personal_steps, should_stop
    )


def accuracy(data: Labelled, owners: IntArray, shared: FloatArray, personal: FloatArray | None) -> float:
    """Share of records whose class is predicted by their own owner's model, W + V_j."""
    if personal is None:
        scores = data.features @ shared.T
        return float(np.mean(scores.argmax(axis=1) == data.labels))
    right = 0
    for owner in range(personal.shape[0]):
        rows = np.flatnonzero(owners == owner)
        scores = data.features[rows] @ (shared + personal[owner]).T
        right += int(np.sum(scores.argmax(axis=1) == data.labels[rows]))
    return right / data.labels.size
