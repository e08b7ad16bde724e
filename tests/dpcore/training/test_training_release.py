"""The release: whole numbers, what one user moves in them, what it costs, and what comes out."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.common.mechanisms import GaussianSteps, start_gaussian_steps
from dpcore.common.privacy import Neighbours, ReleaseFacts
from dpcore.training import account, descent, integer_sums, optimum, release
from dpcore.training.account import Cell, Method, compute_smooth_weights
from dpcore.training.mechanism import LossKind, Mechanism, Pace
from dpcore.training.rows import ClassifierRows
from tests.dpcore.training.tables import draw_rows, generate_rows


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=30),
    bound=st.floats(0.2, 40.0),
    loss=st.sampled_from(list(LossKind)),
    clip=st.sampled_from([0.1, 1.0, 4.0]),
)
def test_one_user_moves_whole_numbers_by_whole_numbers_within_the_sensitivity(seed, sizes, bound, loss, clip):
    rows = draw_rows(seed, sizes, on_sphere=True)
    mechanism = Mechanism(1.0, 1e-5, loss=loss, clip=clip)
    theta = np.random.default_rng(seed).standard_normal(3) * 10.0
    everybody = integer_sums.round_gradients(rows, mechanism, bound, theta)
    for user in {0, len(sizes) // 2, len(sizes) - 1}:
        other_users = np.delete(np.arange(len(sizes)), user)
        other_gradients = integer_sums.round_gradients(
            rows.select_users(other_users), mechanism, bound, theta
        )
        # The others' numbers are the same to the last digit, though they stand elsewhere in shorter arrays.
        assert np.array_equal(other_gradients, everybody[rows.user_codes != user])
        distance = everybody.sum(axis=0) - other_gradients.sum(axis=0)
        assert sum(int(k) ** 2 for k in distance) <= release._compute_squared_sensitivity(mechanism)


def test_whole_numbers_are_the_gradient_on_the_grid():
    rows = draw_rows(1, [3, 20, 1, 7], on_sphere=True)
    mechanism = Mechanism(1.0, 1e-5, clip=0.3)
    theta = np.array([3.0, -1.0, 0.5])
    gradients = integer_sums.round_gradients(rows, mechanism, 2.5, theta) * (
        2.5 * 0.3 / integer_sums.STEPS_PER_BOUND
    )
    slopes = -1 / (1 + np.exp(rows.signed_features @ theta))
    exact = np.maximum(slopes, -0.3)[:, None] * rows.signed_features  # rows have norm 1
    exact *= compute_smooth_weights(rows.sizes, 2.5)[rows.user_codes][:, None]
    assert gradients == pytest.approx(exact, abs=2.5 * 0.3 / integer_sums.STEPS_PER_BOUND)
    assert np.all(np.abs(gradients) <= np.abs(exact) * (1 + 1e-12))
    far = integer_sums.compute_slopes_exactly(LossKind.LOGISTIC, np.array([-1e4, 0.0, 1e4]))
    assert far.tolist() == [-1.0, -0.5, 0.0]


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("bound", [1.0, 6.0, 1.0 + 1e-9, 1.0 + 1e-12, math.nextafter(1.0, 2.0)])
def test_the_budget_is_spent_and_never_more(relation, bound):
    rows = draw_rows(2, [4, 9, 1, 2, 30], on_sphere=True)
    mechanism = Mechanism(1.5, 1e-6, relation, steps=7)
    charges = []
    model = release.train_once(rows, mechanism, Cell(Method.SMOOTH, bound), charges.append)
    assert charges == [model.facts]
    assert model.facts.neighbours is relation
    assert 1.49 < model.facts.epsilon <= 1.5
    assert 0.0 < model.facts.delta <= 1e-6
    # A release has the noise of the curves, to what the split of the budget in whole numbers and rounding cost.
    simulated = account.plan_noise(Mechanism(1.5, 1e-6, relation, steps=7), bound).gradient_noise_std
    assert simulated < model.noise_std < (1 + 1e-5) * simulated
    # By Bun and Steinke's own conversion, from the noise alone: ρ + 2 sqrt(ρ log(1/δ)) is no tight bound, so ε below
    # it but above ρ; all steps and the sum of weights count.
    squared_weights, weight_step = release._choose_weight_grid(mechanism, bound, rows.num_users)
    steps = 7 * release._compute_squared_sensitivity(mechanism) + squared_weights
    rho = steps / (2 * (model.noise_std / (bound / integer_sums.STEPS_PER_BOUND)) ** 2)
    assert rho < 1.5 <= rho + 2 * math.sqrt(rho * math.log(1e6))
    if squared_weights:
        for one, other in ((1, 30), (3, 4), (30, 1)):
            steps_moved = [math.trunc(min(bound, s) / weight_step) for s in (one, other)]
            distance = (
                steps_moved[0]
                if relation is Neighbours.ADD_OR_REMOVE_USER
                else steps_moved[0] - steps_moved[1]
            )
            assert distance**2 <= squared_weights
            assert max(steps_moved) * 200_000 < 2**63  # of as many users as are taken, the sum does not wrap


def test_a_bound_just_above_an_average_is_not_paid_for_and_then_refused():
    # 9,000 weights near 2^40 steps each would be beyond the 2^53 that the sampler takes, after the charge.
    users = np.arange(9_000)
    rows = ClassifierRows(np.full((users.size, 1), 0.5), np.ones(users.size), users)
    mechanism = Mechanism(1.0, 1e-5, Neighbours.REPLACE_USER, steps=2)
    charges = []
    model = release.train_once(rows, mechanism, Cell(Method.SMOOTH, 1.0 + 1e-7), charges.append)
    assert charges == [model.facts]
    # A user who is replaced still moves the sum by no more than was paid for: from weight 1 to h.
    squared_weights, weight_step = release._choose_weight_grid(mechanism, 1.0 + 1e-7, rows.num_users)
    distance = math.trunc((1.0 + 1e-7) / weight_step) - math.trunc(1.0 / weight_step)
    assert 0 < distance**2 <= squared_weights


def test_a_model_learns_and_differs_from_draw_to_draw():
    # 4,000 users of one row at ε = 20: the released model is near the best one, by 60 standard deviations at most.
    rows = generate_rows(4000, max_rows=1, informative=2, seed=3)
    mechanism = Mechanism(20.0, 1e-5, steps=40)
    one, other = (release.train_once(rows, mechanism, Cell(Method.SMOOTH, 1.0)) for _ in range(2))
    assert not np.array_equal(one.theta, other.theta)
    best = optimum.fit_model(rows, LossKind.LOGISTIC, np.ones(rows.num_rows), mechanism.radius)
    for model in (one, other):
        loss = LossKind.LOGISTIC.evaluate(rows.signed_features @ model.theta).mean()
        assert best.certificate.value < loss < best.certificate.value + 0.1
    with pytest.raises(InvalidInput, match=r"ound must(.|\n)*all users(.|\n)*first look"):
        release.train_once(rows, replace(mechanism, sampled=0.5, user_share=0.5), Cell(Method.OUTPUT, 1e12))


def by_bits(monkeypatch, keys: np.ndarray) -> None:
    """The operating system's random bits are these."""

    def token_bytes(count: int) -> bytes:
        assert count == 8 * keys.size
        return keys.astype(np.uint64).tobytes()

    monkeypatch.setattr(release.secrets, "token_bytes", token_bytes)


def test_rows_are_drawn_alike_and_anew():
    rows = ClassifierRows(np.arange(11.0)[:, None] / 11, np.ones(11), np.repeat([0, 1, 2], [7, 1, 3]))
    drawn = [release.draw_rows(rows, 3) for _ in range(4000)]
    for item in drawn[:50]:
        assert item.sizes.tolist() == [3, 1, 3]
        is_kept = np.round(item.features[:, 0] * 11).astype(int)
        assert np.array_equal(is_kept, np.sort(is_kept))
        assert np.array_equal(rows.user_codes[is_kept], item.user_codes)
    # Each of 35 triples of the heavy user is as likely: a chi-square with 34 degrees of freedom is above 100 with
    # probability 2e-8.
    triples = Counter(tuple(np.round(item.features[:3, 0] * 11).astype(int)) for item in drawn)
    assert len(triples) == 35
    expected = len(drawn) / 35
    assert sum((count - expected) ** 2 / expected for count in triples.values()) < 100
    assert np.array_equal(release.draw_rows(rows, 7).features, rows.features)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 25), min_size=2, max_size=20),
    cap=st.integers(1, 30),
    loss=st.sampled_from(list(LossKind)),
    clip=st.sampled_from([0.05, 1.0]),
    relation=st.sampled_from(Neighbours),
)
def test_one_user_moves_a_capped_sum_within_the_sensitivity(seed, sizes, cap, loss, clip, relation):
    rng = np.random.default_rng(seed)
    rows, mechanism = (
        draw_rows(seed, sizes, on_sphere=True),
        Mechanism(1.0, 1e-5, relation, loss=loss, clip=clip),
    )
    theta = (
        rng.standard_normal(3) * 10.0
    )  # margins of about 10, so that slopes are long and clipping is at work
    keys = rng.integers(0, 2**64, rows.num_rows, dtype=np.uint64)
    user = int(rng.integers(0, len(sizes)))
    other_users = rows.select_users(np.delete(np.arange(len(sizes)), user))
    if relation is Neighbours.ADD_OR_REMOVE_USER:
        neighbour, keys_after = other_users, keys[rows.user_codes != user]
    else:
        # Somebody else with other rows and other bits, in the last place; as many rows where counts are public.
        size = sizes[user] if relation is Neighbours.REPLACE_VALUES else int(rng.integers(1, 26))
        new = draw_rows(seed + 1, [size], on_sphere=True)
        neighbour = ClassifierRows(
            np.vstack([other_users.features, new.features]),
            np.append(other_users.signs, new.signs),
            np.append(other_users.user_codes, np.full(size, other_users.num_users)),
        )
        keys_after = np.append(keys[rows.user_codes != user], rng.integers(0, 2**64, size, dtype=np.uint64))
    sums, weights, of_others = [], [], []
    for data, bits in ((rows, keys), (neighbour, keys_after)):
        with pytest.MonkeyPatch.context() as patched:
            by_bits(patched, bits)
            drawn = release.draw_rows(data, cap)
        full_gradients = integer_sums.round_gradients(drawn, mechanism, cap, theta)
        is_own = drawn.user_codes == (user if data is rows else other_users.num_users)
        of_others.append(full_gradients[~is_own])
        sums.append(full_gradients.sum(axis=0))
        weights.append(int(np.minimum(cap, data.sizes).sum()))
    # With the same bits the others keep the same rows, whose numbers are the same to the last digit.
    assert np.array_equal(*of_others)
    distance = sum(int(k) ** 2 for k in sums[0] - sums[1])
    assert distance <= release._compute_squared_sensitivity(mechanism)
    squared_weights, weight_step = release._choose_weight_grid(mechanism, cap, 2)
    if squared_weights:
        assert (abs(weights[0] - weights[1]) / weight_step) ** 2 <= squared_weights
    else:
        assert weights[0] == weights[1]


def test_the_sensitivity_under_a_cap_is_reached():
    # Twelve equal rows that the clip shortens: four are drawn, and move the sum by four clipped gradients.
    features = np.tile([[0.6, 0.8, 0.0]], (12, 1))
    rows = ClassifierRows(features, np.ones(12), np.zeros(12, dtype=np.int64))
    mechanism = Mechanism(1.0, 1e-5, clip=0.05)
    drawn = release.draw_rows(rows, 4)
    distance = integer_sums.round_gradients(drawn, mechanism, 4, -50.0 * features[0]).sum(axis=0)
    squared = sum(int(k) ** 2 for k in distance)
    assert (
        0.999 * release._compute_squared_sensitivity(mechanism)
        < squared
        <= release._compute_squared_sensitivity(mechanism)
    )


@pytest.mark.parametrize("cap", [3, 30])
def test_without_noise_it_is_descent_on_the_drawn_rows(monkeypatch, cap):
    rows = draw_rows(5, [4, 30, 1, 2, 11], on_sphere=True)
    keys = np.random.default_rng(8).integers(0, 2**64, rows.num_rows, dtype=np.uint64)
    by_bits(monkeypatch, keys)
    monkeypatch.setattr(GaussianSteps, "release", lambda self, exact, squared: exact)
    mechanism = Mechanism(1.0, 1e-5, steps=20)
    model = release.train_once(rows, mechanism, Cell(Method.CAP, cap))
    is_kept = np.zeros(rows.num_rows, dtype=bool)
    for user in range(5):
        own_rows = sorted(np.flatnonzero(rows.user_codes == user), key=lambda row: keys[row])
        is_kept[own_rows[:cap]] = True
    ranks = np.where(is_kept, 0, 10**9)[:, None]
    monkeypatch.setattr(descent, "draw_noise", lambda *_: (np.zeros((20, 3, 1)), np.zeros(1)))
    theta = descent.train_cells(rows, mechanism, [Cell(Method.CAP, cap)], 0, range(1), known_ranks=ranks)
    # Each row is rounded toward 0 by up to h / 2^18, below 2e-4, in every step.
    assert model.theta == pytest.approx(theta[:, 0], abs=1e-3)
    assert model.cell == Cell(Method.CAP, cap)


def test_a_capped_release_learns_and_costs_what_weights_cost():
    rows = generate_rows(3000, max_rows=6, informative=2, seed=3)
    mechanism, charges = Mechanism(20.0, 1e-5, steps=40), []
    capped = release.train_once(rows, mechanism, Cell(Method.CAP, 2), charges.append)
    smooth = release.train_once(rows, mechanism, Cell(Method.SMOOTH, 2), charges.append)
    assert charges[0] == charges[1] == capped.facts
    assert capped.noise_std == smooth.noise_std
    best = optimum.fit_model(rows, LossKind.LOGISTIC, np.ones(rows.num_rows), mechanism.radius)
    # The noise of the mean gradient is below 0.003, so that chance has no say here.
    assert (
        LossKind.LOGISTIC.evaluate(rows.signed_features @ capped.theta).mean() < best.certificate.value + 0.1
    )


def test_steps_are_paid_for_before_they_are_drawn():
    paid = []
    steps = start_gaussian_steps(300, 1.0, 1e-5, lambda *facts: paid.append(facts))
    assert paid == [(steps.epsilon, steps.delta)]
    draws = np.concatenate([steps.release(np.zeros(4000, dtype=np.int64), 100) for _ in range(2)])
    # 8,000 draws of a discrete Gaussian of scale well above 1: mean and variance within 5 standard errors.
    assert abs(draws.mean()) < 5 * steps.scale / math.sqrt(draws.size)
    assert abs(draws.var() / steps.scale**2 - 1) < 5 * math.sqrt(2 / draws.size)
    with pytest.raises(InvalidInput, match="more than is left"):
        steps.release(np.zeros(3, dtype=np.int64), 101)
    steps.release(np.zeros(3, dtype=np.int64), 100)
    with pytest.raises(InvalidInput, match="more than is left"):
        steps.release(np.zeros(3, dtype=np.int64), 1)
    with pytest.raises(InvalidInput, match="vector of whole numbers"):
        steps.release(np.zeros(3), 1)

    def refuse(epsilon: float, delta: float) -> None:
        raise RuntimeError("no budget")

    with pytest.raises(RuntimeError, match="no budget"):
        start_gaussian_steps(1, 1.0, 1e-5, refuse)
    with pytest.raises(InvalidInput, match=r"sensitivity must(.|\n)*psilon must(.|\n)*elta must"):
        start_gaussian_steps(0, 0.0, 1.0)


@pytest.mark.parametrize("pace", Pace)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_what_is_stopped_before_its_noise_says_so_and_the_price_is_known_before(pace, neighbours):
    rows = draw_rows(7, [4, 9, 1, 2, 30], on_sphere=True)
    mechanism = Mechanism(1.0, 1e-5, neighbours, steps=3, pace=pace)
    for cell in (
        Cell(Method.FOLLOWED),
        Cell(Method.SMOOTH, 2.0),
        Cell(Method.CLIPPED_SUM, 0.5),
        Cell(Method.OUTPUT, 2.0),
    ):
        charges: list[ReleaseFacts] = []
        with pytest.raises(release.StoppedError) as stopped:
            release.train_once(rows, mechanism, cell, charges.append, should_stop=lambda: True)
        assert not stopped.value.was_drawn
        assert charges == [release.compute_guarantee(rows, mechanism, cell)]
        shares: list[float] = []
        last_check = 1 if cell.method is Method.OUTPUT else 2
        with pytest.raises(release.StoppedError) as stopped:
            release.train_once(
                rows,
                mechanism,
                cell,
                progress=shares.append,
                should_stop=lambda checks=shares, most=last_check: len(checks) > most,
            )
        # Told a third time, it is after the first step, whose noise is drawn; output perturbation draws last.
        assert stopped.value.was_drawn is (cell.method is not Method.OUTPUT)
        assert shares == sorted(shares)


@pytest.mark.parametrize("pace", Pace)
def test_all_that_a_model_takes_from_private_rows_is_a_draw_that_is_paid_for(monkeypatch, pace):
    # With draws that say the same whatever they are of, two tables that differ in all that is private give one model:
    # steps, step size, bound and penalty are then functions of what was drawn. The draws add up to what was paid.
    drawn: list[int] = []
    paid: list[int] = []

    def same(noise: GaussianSteps, values, squared_sensitivity: int) -> np.ndarray:
        paid.append(noise.remaining_squared_sensitivity)
        drawn.append(squared_sensitivity)
        noise.remaining_squared_sensitivity -= squared_sensitivity
        return (np.arange(np.size(values)) - 1) * 10**9

    monkeypatch.setattr(GaussianSteps, "release", same)
    cells = [
        Cell(Method.FOLLOWED),
        Cell(Method.SMOOTH, 2.0),
        Cell(Method.CAP, 2.0),
        Cell(Method.CLIPPED_SUM, 3.0),
        Cell(Method.OUTPUT, 2.0),
    ]
    for relation, sizes in (
        (Neighbours.REPLACE_VALUES, [4, 9, 1, 2, 30]),  # everybody's number of rows is public
        (Neighbours.REPLACE_USER, [1, 2, 50, 3, 3]),  # the number of users is
        (Neighbours.ADD_OR_REMOVE_USER, [7, 7]),
    ):
        for cell in cells:
            mechanism = Mechanism(1.0, 1e-5, relation, steps=5, pace=pace)
            models = []
            for rows in (draw_rows(1, [4, 9, 1, 2, 30], on_sphere=True), draw_rows(2, sizes, on_sphere=True)):
                drawn.clear()
                paid.clear()
                models.append(release.train_once(rows, mechanism, cell).theta)
                assert sum(drawn) == paid[0]
            assert np.array_equal(models[0], models[1]), (relation, cell)
            assert np.isfinite(models[0]).all()
