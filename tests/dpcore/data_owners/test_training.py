"""Training across owners: without noise it is the fit of SciPy's BFGS, units are clipped, and the noise keeps ε."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from benchmarks._algorithm_1 import bound_epsilon
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, compute_gaussian_epsilon
from dpcore.contributions import ContributionHistogram
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.study import (
    Form,
    RecordSource,
    Study,
    assign_units,
    check_records,
    run_study,
    train_shared,
)
from dpcore.data_owners.training import (
    LabelledRecords,
    PaddedUnits,
    TrainingOptions,
    assign_owners,
    average_losses,
    choose_and_fit_personal,
    compute_accuracy,
    compute_replaced_epsilon,
    compute_step_noise,
    compute_unit_gradients,
    fit_personal,
    fit_shared,
    fit_without_privacy,
    generate_records,
    load_digits,
    pad_units,
    read_table,
    scale_records,
    split_records,
    sum_clipped,
)
from dpcore.dataset import Dataset, LabelledRows

SMALL = generate_records(3, num_records=300, num_features=6, num_classes=4)


def average_loss(weights: np.ndarray, data: LabelledRecords, rows: np.ndarray) -> float:
    """Mean cross-entropy, record by record."""
    total = 0.0
    for row in rows:
        scores = weights @ data.features[row]
        total -= scores[data.labels[row]] - math.log(sum(math.exp(s) for s in scores))
    return total / len(rows)


def fit_by_scipy(data: LabelledRecords, penalty: float) -> np.ndarray:
    """The W of least mean cross-entropy and penalty ``|W|² / 2``."""
    one_hot = np.eye(data.num_classes)[data.labels]
    shape = (data.num_classes, data.features.shape[1])

    def loss_and_slope(flat: np.ndarray) -> tuple[float, np.ndarray]:
        scores = data.features @ flat.reshape(shape).T
        mean = float((special.logsumexp(scores, axis=1) - (one_hot * scores).sum(axis=1)).mean())
        slope = (special.softmax(scores, axis=1) - one_hot).T @ data.features / data.labels.size
        return mean + penalty / 2 * float(flat @ flat), slope.ravel() + penalty * flat

    start = np.zeros(shape[0] * shape[1])
    weights: np.ndarray = minimize(loss_and_slope, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return weights.reshape(shape)


@pytest.mark.long
def test_without_noise_it_is_the_fit_of_scipy() -> None:
    penalty = 0.01
    fitted = fit_without_privacy(SMALL, TrainingOptions(plain_steps=600, plain_penalty=penalty))
    # Only differences between classes matter, and the penalty brings the mean over classes to 0.
    np.testing.assert_allclose(fitted, fit_by_scipy(SMALL, penalty), atol=1e-6)
    # Noisy descent with infinite ε, nothing clipped and small steps goes to the same minimum without a penalty.
    everybody = pad_units(SMALL, np.arange(SMALL.labels.size), SMALL.labels.size)
    options = TrainingOptions(steps=4000, step_size=4.0, clip=10.0)
    descended = fit_shared(everybody, SMALL.labels.size, math.inf, 1e-5, np.random.default_rng(0), options)
    rows = np.arange(SMALL.labels.size)
    free = fit_by_scipy(SMALL, 0.0)
    assert average_loss(descended, SMALL, rows) == pytest.approx(average_loss(free, SMALL, rows), abs=2e-4)


def test_the_gradient_of_a_unit_is_the_slope_of_its_loss() -> None:
    owners = np.random.default_rng(1).integers(0, 5, SMALL.labels.size)
    weights = np.random.default_rng(2).standard_normal((4, 7))
    gradients = compute_unit_gradients(pad_units(SMALL, owners, 6), weights)
    assert np.all(gradients[5] == 0.0)  # an owner without records
    rows = np.flatnonzero(owners == 3)
    for c, f in ((0, 0), (2, 5), (3, 6)):
        step = np.zeros((4, 7))
        step[c, f] = 1e-6
        slope = (average_loss(weights + step, SMALL, rows) - average_loss(weights - step, SMALL, rows)) / 2e-6
        assert gradients[3, c, f] / rows.size == pytest.approx(slope, abs=1e-7)


def test_personal_parts_are_each_owner_s_own_minimum_and_vanish_with_their_penalty() -> None:
    owners = assign_owners(SMALL, 6, 0)
    records = SMALL.select(np.flatnonzero(owners >= 0))
    owners = owners[owners >= 0]
    together = pad_units(records, owners, 6)
    shared = fit_without_privacy(SMALL, TrainingOptions())
    personal = fit_personal(together, shared, 0.1, 300)
    for owner in (0, 4):
        rows = np.flatnonzero(owners == owner)
        single_owner = fit_personal(
            pad_units(records.select(rows), np.zeros(rows.size, dtype=np.int64), 1), shared, 0.1, 300
        )
        np.testing.assert_allclose(personal[owner], single_owner[0], atol=1e-10)
        # At the minimum the slope is 0.
        slope = compute_unit_gradients(together, shared + personal)[owner] / rows.size + 0.1 * personal[owner]
        assert np.abs(slope).max() < 1e-8
    norms = [
        np.linalg.norm(fit_personal(together, shared, penalty, 300)) for penalty in (0.1, 10.0, 1e3, 1e5)
    ]
    assert norms == sorted(norms, reverse=True)
    assert norms[-1] < 1e-4
    picked = choose_and_fit_personal(
        records, owners, 6, shared, TrainingOptions(penalties=(0.1,), personal_steps=300)
    )
    np.testing.assert_allclose(picked, personal, atol=1e-12)


def test_owners_pick_a_penalty_on_their_own_records_alone() -> None:
    owners = assign_owners(SMALL, 4, 0)
    records, owners = SMALL.select(np.flatnonzero(owners >= 0)), owners[owners >= 0]
    options = TrainingOptions(personal_steps=100)
    shared = np.zeros((4, 7))
    personal = choose_and_fit_personal(records, owners, 4, shared, options)
    rows = np.flatnonzero(owners == 2)
    single_owner = choose_and_fit_personal(
        records.select(rows), np.zeros(rows.size, dtype=np.int64), 1, shared, options
    )
    np.testing.assert_allclose(personal[2], single_owner[0], atol=1e-10)
    losses = average_losses(pad_units(records, owners, 4), personal)
    assert losses[2] == pytest.approx(average_loss(personal[2], records, rows))


def test_no_unit_moves_the_sum_by_more_than_its_clip() -> None:
    rng = np.random.default_rng(4)
    gradients = rng.standard_normal((40, 3, 5)) * np.exp(rng.normal(0, 3, 40))[:, None, None]
    clipped_sum = sum_clipped(gradients, 0.7)
    for unit in range(40):
        without = sum_clipped(np.delete(gradients, unit, axis=0), 0.7)
        assert np.linalg.norm(clipped_sum - without) <= 0.7 * (1.0 + 1e-12)
    # The short way for units of one record is the long one.
    records = pad_units(SMALL, np.arange(300), 300)
    options = TrainingOptions(steps=3, clip=0.05)
    rng = np.random.default_rng(5)
    short = fit_shared(records, 300, 1.0, 1e-5, rng, options)
    weights, rng = np.zeros((4, 7)), np.random.default_rng(5)
    for _ in range(3):
        gradient = sum_clipped(compute_unit_gradients(records, weights), 0.05)
        gradient += compute_step_noise(1.0, 1e-5, 3) * 0.05 * rng.standard_normal(weights.shape)
        weights = weights - options.step_size / 300 * gradient
    np.testing.assert_allclose(short, weights, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_of_all_steps_together_keeps_epsilon(epsilon: float) -> None:
    for steps in (1, 30):
        sigma = compute_step_noise(epsilon, 1e-6, steps) / math.sqrt(steps)
        assert compute_gaussian_epsilon(sigma, 1e-6) <= epsilon * (1.0 + 1e-9)
        assert compute_gaussian_epsilon(sigma * 0.99, 1e-6) > epsilon
    assert compute_step_noise(math.inf, 1e-6, 3) == 0.0


# One record, or one owner of three, is there or not; the others have no features and hence no gradient.
CANARY, STEPS, RUNS = 0.2, 4, 1500


def release_leanings(present: bool, unit_size: int, noise: float, seed: int) -> np.ndarray:
    """How far W leans to the canary's class, in RUNS releases by the code that trains."""
    count = 4 + (unit_size if present else 0)
    features = np.zeros((count, 1))
    features[4:] = 1.0
    data = LabelledRecords(features, np.zeros(count, dtype=np.int64), 2, "canary")
    units = np.r_[np.arange(4), np.full(count - 4, 4)]
    units_padded = pad_units(data, units, 5)
    options = TrainingOptions(steps=STEPS, clip=CANARY, step_size=0.1)
    rng = np.random.default_rng(seed)
    releases = [
        fit_shared(units_padded, 5, 1.0, 1e-5, rng, options, clips_per_unit=unit_size, group_size=noise)
        for _ in range(RUNS)
    ]
    return np.array([w[1, 0] - w[0, 0] for w in releases])


@pytest.mark.long
@pytest.mark.parametrize("unit_size", [1, 3])
def test_an_audit_of_the_shared_part_shows_no_more_than_epsilon(unit_size: int) -> None:
    """It fails wrongly with probability at most 1e-6: that is what the confidence leaves."""
    record, neighbour = (
        release_leanings(True, unit_size, 1.0, 11),
        release_leanings(False, unit_size, 1.0, 12),
    )
    middle = float(np.mean(release_leanings(False, unit_size, 1.0, 13)))
    audit = bound_epsilon(record, neighbour, middle, 1e-5, 1.0 - 1e-6)
    assert audit.epsilon <= 1.0
    # The audit has teeth: with an eighth of the noise it shows that 1 does not hold. The two sides lie μ = 2.1 apart
    # there (one Gaussian of sensitivity 1 and sd 3.73/8), 1,500 runs of either; e is passed by far.
    record, neighbour = (
        release_leanings(True, unit_size, 0.125, 14),
        release_leanings(False, unit_size, 0.125, 15),
    )
    spread = float(np.std(release_leanings(False, unit_size, 0.125, 16)))
    broken_audit = bound_epsilon(record, neighbour, middle - 2.0 * spread, 1e-5, 1.0 - 1e-6)
    assert broken_audit.epsilon > 1.0


def test_digits_are_whole_and_every_owner_lacks_two_classes() -> None:
    data = load_digits()
    assert data.features.shape == (1797, 65)
    assert data.num_classes == 10
    np.testing.assert_allclose(np.linalg.norm(data.features, axis=1), 1.0)
    assert np.bincount(data.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    for n in (2, 4, 16, 64):
        learn, test = split_records(data, 5)
        owners, judged = assign_owners(learn, n, 5), assign_owners(test, n, 5)
        assert owners.min() == 0
        sizes = np.bincount(owners, minlength=n)
        assert sizes.min() >= 0.6 * owners.size / n
        for owner in range(n):
            has = set(learn.labels[owners == owner])
            assert len(has) <= 8
            assert set(test.labels[judged == owner]) <= {*range(10)} - ({*range(10)} - has) or n == 64


def test_of_two_populations_every_other_owner_has_one() -> None:
    owners = assign_owners(SMALL, 6, 0)
    has_owner = owners >= 0
    np.testing.assert_array_equal(owners[has_owner] % 2, SMALL.population_codes[has_owner])


def test_records_of_norm_above_1_are_refused() -> None:
    with pytest.raises(InvalidInput, match="norm 1"):
        LabelledRecords(np.full((2, 3), 5.0), np.array([0, 1]), 2, "")
    rows = scale_records(np.random.default_rng(0).standard_normal((9, 3)) * 1e6)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)


def build_table(labels: np.ndarray, owners: np.ndarray, features: int = 2) -> Dataset:
    rng = np.random.default_rng(8)
    values = rng.standard_normal((labels.size, features)) + 3.0 * labels[:, None] % 7
    rows = LabelledRows(
        np.c_[values, np.ones(labels.size)],
        labels.astype(float),
        owners,
        (*(f"x{i}" for i in range(features)), "intercept"),
    )
    return Dataset(
        "t.csv", "", Disclosure.PRIVATE, ContributionHistogram.from_counts(np.bincount(owners)), table=rows
    )


def test_a_table_of_one_s_own_keeps_its_owners() -> None:
    labels, owners = np.tile([1, 5, 9], 40), np.repeat([0, 1, 2, 3], 30)
    data = read_table(build_table(labels, owners))
    assert (data.num_classes, data.num_owners, data.features.shape) == (3, 4, (120, 3))
    learn, test = split_records(data, 1)
    assert assign_owners(learn, 99, 1) is learn.owner_codes
    assert test.num_owners == 4
    result = run_study(Study((4,), (1.0,), seeds=(1,)), data)
    assert result.share_done == 1.0
    assert result.average_accuracies(Form.NON_PRIVATE)[0, 0] > 0.6
    row_numbers = np.arange(30)
    for wrong, words in (
        (build_table(row_numbers, np.tile([0, 1], 15)), "30 different values"),
        (build_table(row_numbers % 3, np.zeros(30, dtype=np.int64)), "1,000 owners; got 1"),
    ):
        with pytest.raises(InvalidInput, match=words):
            read_table(wrong)
    huge = build_table(labels, owners)
    grown = huge.table.features.copy()
    grown[3, 0] = 1e308  # Its norm overflows: divided by it, the record would be a zero record.
    with pytest.raises(InvalidInput, match="beyond 1e\\+150"):
        read_table(replace(huge, table=replace(huge.table, features=grown)))
    uneven = np.r_[np.zeros(20_000, dtype=np.int64), np.arange(1, 900)]
    with pytest.raises(InvalidInput, match="too many beside 900 owners"):
        read_table(build_table(np.arange(uneven.size) % 2, uneven))


@pytest.mark.parametrize("owners", [[0, 1], [0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]])
def test_owners_of_a_few_records_each_are_trained_too(owners: list[int]) -> None:
    # With fewer than five records nobody holds any back to pick a penalty on; with two, one is left to test on.
    owner_codes = np.array(owners)
    data = read_table(build_table(np.arange(owner_codes.size) % 2, owner_codes))
    options = TrainingOptions(steps=2, plain_steps=2, personal_steps=2)
    result = run_study(Study((data.num_owners,), (1.0,), (3,), training_options=options), data)
    assert result.share_done == 1.0
    assert (result.num_records, result.num_tests) == (
        owner_codes.size - max(round(owner_codes.size / 5), 1),
        max(round(owner_codes.size / 5), 1),
    )
    # Everybody keeps the strongest penalty.
    personal = choose_and_fit_personal(
        data, owner_codes, data.num_owners, np.zeros((2, data.features.shape[1])), options
    )
    single_penalty = replace(options, penalties=(0.1,))
    refitted = choose_and_fit_personal(
        data, owner_codes, data.num_owners, np.zeros((2, data.features.shape[1])), single_penalty
    )
    assert np.array_equal(personal, refitted)


def test_users_are_stretches_of_an_owner_s_records() -> None:
    owners = np.array([1, 0, 1, 1, 0, 1, 1])
    codes, count = assign_units(Study((2,), (1.0,), unit=Unit.USER, records_per_user=2), owners, 2)
    assert count == 4
    assert codes.tolist() == [1, 0, 1, 2, 0, 2, 3]
    assert assign_units(Study((2,), (1.0,), unit=Unit.OWNER), owners, 2)[1] == 2
    assert assign_units(Study((2,), (1.0,)), owners, 2)[1] == 7
    grouped = Study((2,), (1.0,), unit=Unit.USER, records_per_user=2, uses_group_privacy=True)
    assert assign_units(grouped, owners, 2)[1] == 7


@pytest.mark.long
def test_a_study_gives_directions_and_stops_with_what_it_has() -> None:
    shares: list[float] = []
    study = Study((4, 64), (1.0,), seeds=(1,))
    result = run_study(study, RecordSource.DIGITS, lambda share, _: shares.append(share))
    assert result.share_done == 1.0
    assert shares == sorted(shares)
    assert len(shares) == 10
    assert (result.num_records, result.num_tests, result.num_parameters) == (1438, 359, 650)
    joint, full, alone = (
        result.average_accuracies(form)[0] for form in (Form.JOINT, Form.FULL, Form.SEPARATE)
    )
    assert result.compare_forms(Form.JOINT, Form.FULL)[0, 0] == 1.0  # as in table 1 of the paper
    assert result.compare_forms(Form.JOINT, Form.SEPARATE)[0, 1] == 1.0  # where owners have few records
    assert joint[1] - alone[1] > 0.05
    non_private = result.average_accuracies(Form.NON_PRIVATE)[0]
    assert np.all(non_private >= full)
    assert np.all(result.average_accuracies(Form.NON_PRIVATE_PERSONAL) > 0.9)

    count = iter(range(10**6))
    stopped = run_study(study, RecordSource.DIGITS, should_stop=lambda: next(count) > 400)
    assert 0.0 < stopped.share_done < 1.0
    assert np.isnan(stopped.average_accuracies(Form.JOINT)).any()


def test_at_user_and_owner_level_the_noise_is_that_of_the_unit() -> None:
    learn = SMALL
    owners = np.arange(300) % 10
    for unit, share in ((Unit.USER, 5 * 0.3), (Unit.OWNER, 30 * 0.3)):
        study = Study((10,), (1.0,), unit=unit, records_per_user=5, training_options=TrainingOptions(steps=1))
        outputs = np.array([train_shared(study, learn, owners, 10, 1.0, seed) for seed in range(300)])
        sd = outputs.std(axis=0).mean()
        # One step: rate/N times the noise, √1 · 3.73 · clip · share.
        assert sd == pytest.approx(8.0 / 300 * compute_step_noise(1.0, 1e-5, 1) * share, rel=0.05)


def test_accuracy_counts_right_classes_of_the_owner_s_own_model() -> None:
    data = LabelledRecords(np.array([[1.0], [1.0], [-1.0]]), np.array([0, 1, 1]), 2, "")
    shared = np.array([[1.0], [-1.0]])
    assert compute_accuracy(data, np.array([0, 1, 0]), shared) == pytest.approx(2 / 3)
    flipped = np.array([[[0.0], [0.0]], [[-3.0], [3.0]]])
    assert compute_accuracy(data, np.array([0, 1, 0]), shared + flipped) == 1.0


@pytest.mark.parametrize(("delta", "printed"), [(1e-5, 2.15), (1e-4, 2.21)])
def test_a_replaced_unit_is_worth_what_twice_the_sensitivity_is(delta, printed):
    # Balle and Wang 2018, theorem 8: δ(ε) = Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ), here for Δ = 1 and 2.
    def delta_of(epsilon: float, sensitivity: float, sigma: float) -> float:
        middle, shift = sensitivity / (2.0 * sigma), epsilon * sigma / sensitivity
        return float(norm.cdf(middle - shift) - math.exp(epsilon) * norm.cdf(-middle - shift))

    sigma = brentq(lambda s: delta_of(1.0, 1.0, s) - delta, 0.5, 50.0, xtol=1e-12)
    expected = brentq(lambda e: delta_of(e, 2.0, sigma) - delta, 0.5, 10.0, xtol=1e-12)
    replaced_epsilon = compute_replaced_epsilon(1.0, delta)
    assert replaced_epsilon == pytest.approx(expected, rel=1e-6)
    assert replaced_epsilon == pytest.approx(printed, abs=0.005)


def test_zeroing_a_unit_moves_a_step_by_its_clip_and_replacing_it_by_twice_that():
    """Brute force over pairs of units: with the same public numbers of records and units."""
    rng = np.random.default_rng(4)
    weights = rng.standard_normal((3, 4))
    others = rng.standard_normal((5, 6, 4))
    zeroed = replaced = 0.0
    for _ in range(300):
        units = []
        for sign in (0.0, 1.0, 1.0):
            features = np.concatenate((others, sign * rng.standard_normal((1, 6, 4)) * 5.0))
            targets = np.eye(3)[rng.integers(0, 3, (6, 6))] if not units else units[0].targets.copy()
            targets[-1] = np.eye(3)[rng.integers(0, 3, 6)]
            units.append(PaddedUnits(features, targets, np.ones((6, 6, 1))))
        sums = [sum_clipped(compute_unit_gradients(unit, weights), 0.7) for unit in units]
        zeroed = max(zeroed, float(np.linalg.norm(sums[1] - sums[0])))
        replaced = max(replaced, float(np.linalg.norm(sums[2] - sums[1])))
    assert zeroed <= 0.7 * (1 + 1e-9)
    assert 0.7 < replaced <= 1.4 * (1 + 1e-9)


@pytest.mark.parametrize(("per_user", "fits"), [(5, True), (23, False), (10**6, False)])
def test_a_user_with_more_records_than_an_owner_is_refused(per_user, fits):
    # 4,000 generated records, four fifths to learn from: 22 for each of 140 owners, 800 for each of 4.
    study = Study((4, 140), (1.0,), unit=Unit.USER, records_per_user=per_user)
    if fits:
        check_records(study, RecordSource.GENERATED)
        return
    with pytest.raises(InvalidInput, match="140 owners each has 22 records to learn from"):
        check_records(study, RecordSource.GENERATED)


def test_a_table_without_users_offers_no_user_to_protect():
    records = replace(generate_records(0), owner_codes=np.arange(4000) % 7, num_owners=7)
    for unit in (Unit.RECORD, Unit.OWNER):
        check_records(Study((7,), (1.0,), unit=unit), records)
    with pytest.raises(InvalidInput, match="does not say which user a record is of"):
        check_records(Study((7,), (1.0,), unit=Unit.USER, records_per_user=2), records)
