"""The paper's network against a direct computation and finite differences; dealing, noise and stored runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax

from benchmarks.papers import federated, network, owner_runs
from benchmarks.papers.federated import Setting
from benchmarks.papers.network import Array, Weights
from dpcore.common.privacy import GaussianNoise
from dpcore.data_owners.network_parts import SIZE_BY_LAYER, PersonalPart

RNG = np.random.default_rng(5)
PICTURES, LABELS = RNG.random((3, 28, 28)), np.array([0, 7, 3])
WEIGHTS = network.initialise(RNG, np.float64)


def compute_loss(weights: Weights, picture: Array, label: int) -> float:
    """Compute one record's loss by SciPy's correlation, channel by channel."""
    from scipy.signal import (
        correlate2d,
    )  # A second of processor time, which no worker needs that runs other tests.

    maps = picture[None]
    for kernel, bias in (("conv1", "bias1"), ("conv2", "bias2")):
        kernels = weights[kernel].reshape(-1, len(maps), 5, 5)
        outputs = [
            sum(correlate2d(channel, k, "same") for channel, k in zip(maps, ks, strict=True))
            for ks in kernels
        ]
        maps = np.maximum(np.array(outputs) + weights[bias][:, :, None], 0)
        maps = maps.reshape(len(maps), maps.shape[1] // 2, 2, -1, 2).max(axis=(2, 4))
    logits = (maps.ravel() @ weights["fc1"] + maps.ravel() @ weights["fc2"]) / 2
    return -float(log_softmax(logits)[label])


def test_every_layer_has_the_paper_s_number_of_parameters() -> None:
    sizes = {
        layer: sum(WEIGHTS[name].size for name in names)
        for layer, names in network.PARAMETERS_BY_LAYER.items()
    }
    assert sizes == SIZE_BY_LAYER


def test_gradients_are_those_of_finite_differences() -> None:
    """The step is so short that hardly any maximum passes to another pixel within it."""
    gradient, step = network.sum_clipped_gradients(WEIGHTS, PICTURES[:1], LABELS[:1]), 1e-7
    for name, array in WEIGHTS.items():
        for index in RNG.choice(array.size, 2, replace=False):
            moved = []
            for sign in (1, -1):
                changed = array.copy()
                changed.flat[index] += sign * step
                moved.append(compute_loss({**WEIGHTS, name: changed}, PICTURES[0], int(LABELS[0])))
            slope = (moved[0] - moved[1]) / (2 * step)
            assert gradient[name].flat[index] == pytest.approx(slope, rel=1e-4, abs=1e-7), name


@pytest.mark.parametrize("layers", [("conv1", "conv2", "fc1", "fc2"), ("conv2", "fc2")])
def test_clipped_sums_are_those_of_records_one_by_one(layers: tuple[str, ...]) -> None:
    """A limit between the norms of the records: some are scaled, some are not; other layers never are."""
    single = [network.sum_clipped_gradients(WEIGHTS, PICTURES[[i]], LABELS[[i]]) for i in range(3)]
    names = federated.list_names(layers)
    norms = [math.sqrt(sum(float(np.sum(g[name] ** 2)) for name in names)) for g in single]
    limit = sorted(norms)[1]
    clipped = network.sum_clipped_gradients(WEIGHTS, PICTURES, LABELS, layers, limit)
    for name in WEIGHTS:
        factors = [min(1.0, limit / norm) if name in names else 1.0 for norm in norms]
        expected = sum(f * g[name] for f, g in zip(factors, single, strict=True))
        np.testing.assert_allclose(clipped[name], expected, rtol=1e-9, atol=1e-12)


def test_equal_pixels_pass_a_maximum_s_gradient_to_one_of_them() -> None:
    maps = np.ones((1, 1, 4, 4))
    maxima = network.pool(maps)
    passed = network.unpool(np.full_like(maxima, 2.0), maxima, maps)
    assert (passed.sum(), np.count_nonzero(passed)) == (8.0, 4)
    assert not network.unpool(maxima, network.pool(-maps), -maps).any()


def test_owners_have_all_records_once_and_few_classes() -> None:
    labels = RNG.integers(0, 10, 10_000)
    owned = federated.deal_pieces(labels, RNG.permutation(8 * 64))
    assert sorted(np.concatenate(owned)) == list(range(10_000))
    sizes = [len(indices) for indices in owned]
    assert max(sizes) - min(sizes) <= 8
    # A piece of 20 records crosses at most one border between classes, and only 9 of 512 pieces can.
    numbers = [len(set(labels[indices])) for indices in owned]
    assert sum(number > 8 for number in numbers) <= 9
    pixels = np.repeat(labels[:, None, None], 28, axis=1).repeat(28, axis=2).astype(np.uint8)
    training, tests = federated.deal_pictures(pixels, labels, pixels[:2_000], labels[:2_000], 16, 3)
    assert sum(map(len, training.labels)) == 10_000
    for pictures, own_labels in zip(training.pictures, training.labels, strict=True):
        np.testing.assert_allclose(pictures[:, 0, 0] * 255, own_labels, atol=1e-5)
    for own, tested in zip(training.labels, tests.labels, strict=True):
        # The same share of the test records of a class as of its training records, but for rounding.
        counts, test_counts = (np.bincount(codes, minlength=10) for codes in (own, tested))
        expected = counts * np.bincount(labels[:2_000]) / np.bincount(labels)
        assert np.all(np.abs(test_counts - expected) <= 1.0)
        assert np.isin(tested, own).all()
    assert sum(map(len, tests.labels)) == 2_000


@pytest.mark.long
def test_the_noise_holds_epsilon_for_a_round() -> None:
    """Without sampling all steps are one Gaussian mechanism, whose noise is exact."""
    expected_multiplier = GaussianNoise.for_release(math.sqrt(5), 1.0, federated.DELTA).scale
    setting = Setting(512, 1.0)
    # The average over 512 owners of five steps on all records, at rate 0.1.
    expected = 0.1 * math.sqrt(5) * 15.0 * expected_multiplier / (10_000 / 512) / math.sqrt(512)
    assert federated.compute_round_noise(setting) == pytest.approx(expected, rel=3e-3)
    grouped_noise = federated.compute_round_noise(Setting(512, 1.0, records_per_user=5))
    assert grouped_noise == pytest.approx(5 * expected, rel=3e-3)
    assert federated.compute_round_noise(Setting(512)) == 0.0


@pytest.mark.long
def test_renyi_dp_finds_a_slightly_larger_epsilon_for_a_round() -> None:
    """Owners of many records take them by the batch: q = 64/625 over 10 epochs."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, rdp

    round_noise = federated.compute_round_noise(Setting(16, 1.0))
    multiplier = round_noise / (0.1 * math.sqrt(10 * 625 / 64)) * math.sqrt(16) * 64 / 15.0
    event = PoissonSampledDpEvent(64 / 625, GaussianDpEvent(multiplier))
    accountant = rdp.RdpAccountant(range(2, 64))
    accountant.compose(SelfComposedDpEvent(event, round(10 * 625 / 64)))
    assert 1.0 < accountant.get_epsilon(federated.DELTA) < 1.3


def make_small_world(
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[federated.OwnedPictures, federated.OwnedPictures]:
    """Deal 64 pictures, which show their class as a bright row, to 4 owners; a round is one epoch."""
    monkeypatch.setattr(federated, "EPOCHS_AND_ROUNDS", {4: (2, 4)})
    monkeypatch.setattr(federated, "NUM_RECORDS", 64)
    labels = np.tile(np.arange(4), 16)
    pixels = np.zeros((64, 28, 28), np.uint8)
    pixels[np.arange(64), 3 + 6 * labels] = 255
    return federated.deal_pictures(pixels, labels, pixels, labels, 4, 0)


@pytest.mark.long
def test_owners_learn_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_small_world(monkeypatch)
    for part in (None, PersonalPart.LAST, PersonalPart.FIRST):
        accuracy = federated.compute_accuracy(Setting(4, math.inf, part, owners_per_round=2), data, 1)
        assert accuracy > 0.9, part
    # With noise that is far above the signal nothing is learned: four classes, of which an owner has most.
    monkeypatch.setattr(federated, "compute_round_noise", lambda setting: 100.0)
    assert federated.compute_accuracy(Setting(4, 1.0, owners_per_round=2), data, 1) < 0.8


def test_a_personal_last_layer_is_trained_as_the_whole_network_would_be() -> None:
    setting = Setting(4, personal_part=PersonalPart.LAST)
    weights = network.initialise(np.random.default_rng(0))
    pictures, labels = PICTURES.astype(np.float32), LABELS
    quick = federated.train_personal(weights, pictures, labels, 3, setting, np.random.default_rng(1))
    slow = {name: array.copy() for name, array in weights.items()}
    for _ in range(3):
        slow["fc1"] -= 0.1 / 3 * network.sum_clipped_gradients(slow, pictures, labels)["fc1"]
    for name in weights:
        np.testing.assert_allclose(quick[name], slow[name], rtol=1e-4, atol=1e-6)


def test_missed_rounds_are_made_up_on_the_layers_of_each() -> None:
    """E epochs on the shared layers of one round, then of the next, by the gradient of the whole network."""
    setting = Setting(256, personal_part=PersonalPart.LAST)
    sent_layers = [network.initialise(np.random.default_rng(seed)) for seed in (0, 1)]
    personal = {"fc1": sent_layers[0].pop("fc1")}
    del sent_layers[1]["fc1"]
    records = PICTURES.astype(np.float32), LABELS
    made_up = federated.make_up_rounds(personal, sent_layers, records, setting, np.random.default_rng(2))
    expected = personal["fc1"].copy()
    for shared in sent_layers:
        for _ in range(5):
            sums = network.sum_clipped_gradients({**shared, "fc1": expected}, *records)
            expected = expected - 0.1 / 3 * sums["fc1"]
    np.testing.assert_allclose(made_up["fc1"], expected, rtol=1e-4, atol=1e-6)
    assert made_up.keys() == personal.keys()
    np.testing.assert_array_equal(personal["fc1"], network.initialise(np.random.default_rng(0))["fc1"])


def test_a_run_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cells, path, trained = owner_runs.list_cells()[:3], tmp_path / "runs.jsonl", []

    def train(folder: Path, setting: Setting, seed: int) -> dict[str, object]:
        trained.append((setting, seed))
        if len(trained) == 3:
            raise KeyboardInterrupt
        return {
            **owner_runs.write_key("MNIST", setting, seed),
            "accuracy": 0.5 + seed / 10,
            "cpu_seconds": 1.0,
        }

    monkeypatch.setattr(owner_runs, "train_cell", train)
    pictures = owner_runs.readers.Pictures(np.zeros(0), np.zeros(0), "MNIST")
    monkeypatch.setattr(owner_runs, "_read_pictures", lambda folder: (pictures, pictures))
    with pytest.raises(KeyboardInterrupt):
        owner_runs.run(tmp_path, cells, path, 1)
    path.write_text(path.read_text() + '{"data": "MNI')  # A line that was cut off.
    owner_runs.run(tmp_path, cells, path, 1)
    assert len(trained) == 7
    keys = {json.dumps(owner_runs.write_key("MNIST", c.setting, s)) for c in cells for s in owner_runs.SEEDS}
    results = owner_runs.read_results(path)
    assert len(results) == len(keys) == 6
    comparison = owner_runs.compare_cells(path)[0]
    assert (comparison.mean, comparison.standard_error) == pytest.approx((0.55, 0.05))
    owner_runs.run(tmp_path, cells, path, 1)
    assert len(trained) == 7


def test_a_folder_without_pictures_gets_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        owner_runs.main(["--data", str(tmp_path), "--to", str(tmp_path / "runs.jsonl")])
    assert "no pictures to train on: no train-images-idx3-ubyte" in capsys.readouterr().err


def test_near_is_five_points_or_two_standard_errors() -> None:
    cell = owner_runs.Cell("table 1", Setting(512), 0.8, 0.01)
    for accuracies, is_near in (((0.77, 0.74), True), ((0.70, 0.70), False), ((0.60, 0.84), True)):
        assert owner_runs.Comparison(cell, accuracies).is_near is is_near
    cells = owner_runs.list_cells()
    assert len({cell.setting for cell in cells}) == len(cells)
    assert not {cell.setting for cell in cells} & {cell.setting for cell in owner_runs.list_other_cells()}
    # No line holds more than a setting, an accuracy over all owners, and the time.
    for result in owner_runs.read_results(owner_runs.RESULTS):
        assert set(result) == {*owner_runs.write_key("", Setting(4), 0), "accuracy", "cpu_seconds"}
