"""Training across owners as in section 4 of Huang et al. 2023: FedAvg of its network, with noise per round.

The paper gives E and T (table 3), the clipping norm 15, δ = 1e-4, and at most 8 of 10 classes per owner. It is silent
on the rest. We took:

- stochastic gradient descent at rate 0.1 without momentum, on grey values from 0 to 1, in batches of 64, or of all
  records of an owner with fewer;
- records sorted by class and dealt out in 8 pieces per owner, and test pictures to the owners of the same classes;
- each record's gradient over the shared layers clipped;
- "DP-SGD for each global model update" (section 4.1) with ε and δ for *each* update: every owner adds to its update the
  noise of the E m/B steps of the round together, 15 z/B on an averaged gradient, with z for Poisson sampling at the
  rate B/m over E epochs. The average over owners has 1/√n of it.

**This is a reading of the paper and no guarantee.** We chose it for its accuracies, which are near the paper's: ε for
all rounds together needs more noise, with which nothing is learned, or noise that n owners share, with which far more
is learned than there. The T rounds together cost more than ε. Nor is a single one ε-DP: steps within a round have no
noise, so what a record does to later steps of its owner is hidden less than the accounting assumes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.papers import network
from benchmarks.papers.network import PARAMETERS_BY_LAYER, Array, Weights
from dpcore.data_owners.network_parts import PersonalPart

NUM_RECORDS, DELTA, MAX_NORM, RATE, LARGEST_BATCH, PIECES = 10_000, 1e-4, 15.0, 0.1, 64, 8
EPOCHS_AND_ROUNDS = {4: (20, 10), 16: (10, 10), 64: (10, 10), 128: (5, 20), 256: (5, 20), 512: (5, 20)}
"""E and T by the number of owners, table 3."""
TESTED_OWNERS = 64
"""Owners whose personal last layer is tested, at most."""


@dataclass(frozen=True)
class Setting:
    """One cell of a table of the paper.

    Attributes:
        owners: n.
        epsilon: ε; infinite without noise and clipping.
        personal_part: What each owner trains for itself; None if owners train alone, all of it.
        records_per_user: m/r; noise is that much larger (group privacy), as is the sensitivity.
        owners_per_round: The owners drawn for a round, at most n. The noise is that of all n.
    """

    owners: int
    epsilon: float = np.inf
    personal_part: PersonalPart | None = PersonalPart.NOTHING
    records_per_user: int = 1
    owners_per_round: int = 12

    @property
    def personal_layers(self) -> tuple[str, ...]:
        """Return the layers that are not averaged."""
        return tuple(PARAMETERS_BY_LAYER) if self.personal_part is None else self.personal_part.layers

    @property
    def shared_layers(self) -> tuple[str, ...]:
        """Return the layers that are averaged."""
        return tuple(layer for layer in PARAMETERS_BY_LAYER if layer not in self.personal_layers)


@dataclass(frozen=True, eq=False)
class OwnedPictures:
    """Pictures and classes of each owner, in a list by owner."""

    pictures: list[Array]
    labels: list[Array]


def deal_pieces(
    labels: npt.NDArray[np.int64], piece_order: npt.NDArray[np.int64]
) -> list[npt.NDArray[np.int64]]:
    """Sort records by class, cut them into pieces, and give each owner `PIECES` of them; return indices by owner."""
    pieces = np.array_split(np.argsort(labels, kind="stable"), piece_order.size)
    owned = piece_order.reshape(-1, PIECES)
    return [np.concatenate([pieces[i] for i in indices]) for indices in owned]


def deal_pictures(
    pictures: Array,
    labels: npt.NDArray[np.int64],
    tests: Array,
    test_labels: npt.NDArray[np.int64],
    owners: int,
    seed: int,
) -> tuple[OwnedPictures, OwnedPictures]:
    """Draw 10,000 training pictures and deal them out, and the test pictures in the same manner; return both.

    An owner gets the same share of the test pictures of a class as of its training pictures.
    """
    rng = np.random.default_rng((seed, owners, 1))
    training_indices = rng.permutation(labels.size)[:NUM_RECORDS]
    pieces = rng.permutation(PIECES * owners)
    indices_by_owner = deal_pieces(labels[training_indices], pieces)
    owner_codes = np.empty(NUM_RECORDS, dtype=np.int64)
    for owner, indices in enumerate(indices_by_owner):
        owner_codes[indices] = owner
    test_codes = np.empty(test_labels.size, dtype=np.int64)
    for label in np.unique(test_labels):
        codes, class_indices = (
            owner_codes[labels[training_indices] == label],
            np.flatnonzero(test_labels == label),
        )
        test_codes[class_indices] = np.sort(codes)[
            np.arange(class_indices.size) * codes.size // class_indices.size
        ]
    test_indices = [np.flatnonzero(test_codes == owner) for owner in range(owners)]
    return _select(pictures[training_indices], labels[training_indices], indices_by_owner), _select(
        tests, test_labels, test_indices
    )


def _select(
    pictures: Array, labels: npt.NDArray[np.int64], indices_by_owner: list[npt.NDArray[np.int64]]
) -> OwnedPictures:
    scaled = [pictures[indices].astype(np.float32) / np.float32(255) for indices in indices_by_owner]
    return OwnedPictures(scaled, [labels[indices] for indices in indices_by_owner])


@functools.cache
def compute_noise_multiplier(epsilon: float, sampling_rate: float, num_steps: int) -> float:
    """Compute z, noise over clipping norm, of DP-SGD with Poisson sampling, by dp-accounting's PLD accountant."""
    import dp_accounting
    from dp_accounting import pld

    def build_event(multiplier: float) -> dp_accounting.DpEvent:
        gaussian = dp_accounting.GaussianDpEvent(multiplier)
        sampled = (
            gaussian if sampling_rate >= 1 else dp_accounting.PoissonSampledDpEvent(sampling_rate, gaussian)
        )
        return dp_accounting.SelfComposedDpEvent(sampled, num_steps)

    multiplier = dp_accounting.calibrate_dp_mechanism(
        lambda: pld.PLDAccountant(value_discretization_interval=1e-3),
        build_event,
        epsilon,
        DELTA,
        bracket_interval=dp_accounting.LowerEndpointAndGuess(0.1, 1.0),
        tol=1e-3,
    )
    return float(multiplier)


def compute_round_noise(setting: Setting) -> float:
    """Compute the standard deviation of the noise on the averaged weights of a round; 0 without privacy.

    An owner's is that of its E m/B steps together, each with noise of 15 z/B on its averaged gradient.
    """
    if np.isinf(setting.epsilon):
        return 0.0
    num_owned = NUM_RECORDS / setting.owners
    batch = min(float(LARGEST_BATCH), num_owned)
    num_steps = EPOCHS_AND_ROUNDS[setting.owners][0] * num_owned / batch
    multiplier = compute_noise_multiplier(setting.epsilon, batch / num_owned, round(num_steps))
    step_noise = MAX_NORM * multiplier * setting.records_per_user / batch
    return float(RATE * step_noise * np.sqrt(num_steps / setting.owners))


def list_names(layers: tuple[str, ...]) -> list[str]:
    """Return the names of the parameters of layers."""
    return [name for layer in layers for name in PARAMETERS_BY_LAYER[layer]]


def draw_batches(num_records: int, rng: np.random.Generator) -> list[npt.NDArray[np.int64]]:
    """Shuffle the indices of an owner's records and cut them into the batches of an epoch."""
    order = rng.permutation(num_records)
    return [order[i : i + LARGEST_BATCH] for i in range(0, num_records, LARGEST_BATCH)]


def train_locally(
    weights: Weights, pictures: Array, labels: Array, epochs: int, setting: Setting, rng: np.random.Generator
) -> Weights:
    """Train all layers on one owner's records, with clipped gradients of the shared ones; return the new weights."""
    weights = {name: array.copy() for name, array in weights.items()}
    clipped_layers = () if np.isinf(setting.epsilon) else setting.shared_layers
    for _ in range(epochs):
        for indices in draw_batches(len(labels), rng):
            sums = network.sum_clipped_gradients(
                weights, pictures[indices], labels[indices], clipped_layers, MAX_NORM
            )
            for name, array in weights.items():
                array -= RATE / len(indices) * sums[name]
    return weights


def train_last_layer(
    weights: Weights, features: Array, labels: Array, epochs: int, rng: np.random.Generator
) -> None:
    """Train the personal last layer alone, in place, on features that stay as they are: all else is held fixed."""
    other_logits = features @ weights["fc2"] / 2
    for _ in range(epochs):
        for indices in draw_batches(len(labels), rng):
            logits = features[indices] @ weights["fc1"] / 2 + other_logits[indices]
            residuals = network.compute_probabilities(logits)
            residuals[np.arange(len(indices)), labels[indices]] -= 1
            weights["fc1"] -= RATE / len(indices) * (features[indices].T @ (residuals / 2))


def train_personal(
    weights: Weights, pictures: Array, labels: Array, epochs: int, setting: Setting, rng: np.random.Generator
) -> Weights:
    """Train the personal layers alone, all others fixed; return the new weights, all layers."""
    weights = {name: array.copy() for name, array in weights.items()}
    if setting.personal_layers == ("fc1",):
        features = np.concatenate(
            [
                network.run_forward(weights, pictures[i : i + network.BLOCK]).features
                for i in range(0, len(labels), network.BLOCK)
            ]
        )
        train_last_layer(weights, features, labels, epochs, rng)
        return weights
    for _ in range(epochs):
        for indices in draw_batches(len(labels), rng):
            sums = network.sum_clipped_gradients(weights, pictures[indices], labels[indices])
            for name in list_names(setting.personal_layers):
                weights[name] -= RATE / len(indices) * sums[name]
    return weights


def make_up_rounds(
    personal: Weights,
    sent_layers: Sequence[Weights],
    records: tuple[Array, Array],
    setting: Setting,
    rng: np.random.Generator,
) -> Weights:
    """Train an owner's personal layers through the rounds in which it was not drawn; return them.

    In each it trains E epochs on the shared layers that were sent in that round, as it would have done had it been
    drawn. More epochs on the last ones would let it adapt to noise that it sees for one round only.

    Args:
        personal: Its personal layers before.
        sent_layers: The shared layers of each missed round.
        records: Its pictures and classes.
        setting: What is trained.
        rng: Source of the order of records.
    """
    epochs = EPOCHS_AND_ROUNDS[setting.owners][0]
    for shared in sent_layers:
        weights = train_personal(shared | personal, *records, epochs, setting, rng)
        personal = {name: weights[name] for name in personal}
    return personal


def compute_accuracy(setting: Setting, data: tuple[OwnedPictures, OwnedPictures], seed: int) -> float:
    """Train once as in a cell of the paper; return the mean of the owners' test accuracies."""
    training, tests = data
    epochs, rounds = EPOCHS_AND_ROUNDS[setting.owners]
    rng = np.random.default_rng((seed, setting.owners, 2))
    initial = network.initialise(rng)
    num_drawn = min(setting.owners_per_round, setting.owners)
    if setting.personal_part is None:
        accuracies = []
        for owner in rng.permutation(setting.owners)[:num_drawn]:
            records = training.pictures[owner], training.labels[owner]
            accuracies.append(
                _test(train_locally(initial, *records, epochs * rounds, setting, rng), tests, owner)
            )
        return float(np.mean(accuracies))
    shared_names, personal_names = list_names(setting.shared_layers), list_names(setting.personal_layers)
    shared = {name: initial[name] for name in shared_names}
    personal = [{name: initial[name] for name in personal_names} for _ in range(setting.owners)]
    rounds_trained = np.zeros(setting.owners, dtype=np.int64)
    sent_layers: list[Weights] = []
    noise_std = np.float32(compute_round_noise(setting))
    for round_index in range(rounds):
        drawn_owners = rng.permutation(setting.owners)[:num_drawn]
        totals = {name: np.zeros_like(array) for name, array in shared.items()}
        for owner in drawn_owners:
            records = training.pictures[owner], training.labels[owner]
            if personal_names:
                missed_layers = sent_layers[rounds_trained[owner] :]
                personal[owner] = make_up_rounds(personal[owner], missed_layers, records, setting, rng)
            weights = train_locally(shared | personal[owner], *records, epochs, setting, rng)
            personal[owner] = {name: weights[name] for name in personal_names}
            rounds_trained[owner] = round_index + 1
            for name in shared_names:
                totals[name] += weights[name]
        sent_layers.append(shared)
        shared = {
            name: total / num_drawn + noise_std * rng.standard_normal(total.shape, np.float32)
            for name, total in totals.items()
        }
    if not personal_names:
        pictures, labels = np.concatenate(tests.pictures), np.concatenate(tests.labels)
        return float(np.mean(network.predict(shared, pictures) == labels))
    num_tested = TESTED_OWNERS if setting.personal_layers == ("fc1",) else num_drawn
    accuracies = []
    for owner in rng.permutation(setting.owners)[:num_tested]:
        records = training.pictures[owner], training.labels[owner]
        # No owner trains after the last round: its personal layers never saw that round's noise.
        missed_layers = sent_layers[rounds_trained[owner] :]
        personal_layers = make_up_rounds(personal[owner], missed_layers, records, setting, rng)
        accuracies.append(_test(personal_layers | shared, tests, owner))
    return float(np.mean(accuracies))


def _test(weights: Weights, tests: OwnedPictures, owner: int) -> float:
    return float(np.mean(network.predict(weights, tests.pictures[owner]) == tests.labels[owner]))
