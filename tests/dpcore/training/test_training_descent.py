"""The mechanism: what one user can move, how much noise that needs, and what is left without noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.stats import beta

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import GaussianNoise, Neighbours, bound_sampled_epsilon
from dpcore.training import account, descent, optimum
from dpcore.training.account import Cell, Method, compute_smooth_weights, draw_ranks
from dpcore.training.mechanism import Average, LossKind, Mechanism
from dpcore.training.rows import ClassifierRows, Scaling, hold_out
from tests.dpcore.training.tables import generate_rows, make_extreme_user, replace_last_user

ADD, REPLACE, VALUES = (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER, Neighbours.REPLACE_VALUES)
TRAINED = (Method.SMOOTH, Method.CAP, Method.CLIPPED_SUM)


def some_rows(seed: int = 0, sizes: tuple[int, ...] = (1, 4, 2, 9, 1, 3), d: int = 3) -> ClassifierRows:
    """Random rows of norm at most 1, labels from a logistic model."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(sizes)), sizes)
    features = rng.standard_normal((users.size, d))
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1.0)
    signs = np.where(rng.random(users.size) < 1 / (1 + np.exp(-4 * features[:, 0])), 1.0, -1.0)
    return ClassifierRows(features, signs, users)


def test_the_logistic_slope_is_exact_however_far_out():
    margins = np.array([-1e9, -800.0, -37.0, -1e-9, 0.0, 0.3, 37.0, 700.0, 800.0, 1e9])
    with mp.workdps(40):
        exact = [float(-1 / (1 + mp.exp(mp.mpf(float(m))))) for m in margins]
    assert LossKind.LOGISTIC.differentiate(margins) == pytest.approx(exact, rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("loss", LossKind)
def test_slope_and_curvature_are_derivatives_of_the_loss(loss):
    # Central differences, off the hinge's two kinks at 1/2 and 1.
    m = np.array([-30.0, -3.0, -0.2, 0.3, 0.6, 0.9, 1.2, 4.0, 30.0])
    step = 1e-5
    assert loss.differentiate(m) == pytest.approx(
        (loss.evaluate(m + step) - loss.evaluate(m - step)) / (2 * step), abs=1e-8
    )
    slopes = (loss.differentiate(m + step) - loss.differentiate(m - step)) / (2 * step)
    assert loss.differentiate_twice(m) == pytest.approx(slopes, abs=1e-8)
    assert loss.differentiate_twice(np.linspace(-9, 9, 999)).max() <= loss.smoothness * (1 + 1e-12)
    assert not loss.has_bounded_slope or np.abs(loss.differentiate(np.linspace(-99, 99, 999))).max() <= 1.0


def test_losses_are_what_their_names_say():
    m = np.array([-2.0, 0.0, 0.75, 3.0])
    assert LossKind.LOGISTIC.evaluate(m) == pytest.approx(-np.log(1 / (1 + np.exp(-m))))
    y, z = np.array([1.0, -1.0, 1.0, -1.0]), np.array([-2.0, 0.0, 0.75, -3.0])
    assert LossKind.SQUARED.evaluate(y * z) == pytest.approx((y - z) ** 2 / 2)
    assert LossKind.HINGE.evaluate(m) == pytest.approx([2.75, 0.75, 0.0625, 0.0])


def test_features_are_brought_to_norm_one_by_public_ranges():
    scaling = Scaling((None, (0.0, 10.0), (-5.0, -1.0)), 1.5)
    result = scaling.apply(np.array([[1.0, 5.0, -3.0], [1.0, 20.0, -1.0], [1.0, 0.0, -99.0]]))
    assert result[0] == pytest.approx(np.array([1.0, 0.0, 0.0]) / 1.5)
    # (1, 1, 1) has norm 1.73, more than 1.5: it is shortened.
    assert result[1] == pytest.approx(np.full(3, 1 / math.sqrt(3)))
    assert result[2] == pytest.approx(np.array([1, -1, -1]) / math.sqrt(3))
    with pytest.raises(InvalidInput, match=r"lower to a higher(.|\n)*orm must"):
        Scaling(((2.0, 2.0),), 0.0)
    with pytest.raises(InvalidInput, match="3 ranges for 2 features"):
        scaling.apply(np.zeros((4, 2)))


def test_a_user_is_held_out_with_all_rows():
    rows = generate_rows(300)
    train, test = hold_out(rows, 0.25, seed=3)
    assert (train.num_users, test.num_users) == (225, 75)
    assert sorted([*train.sizes, *test.sizes]) == sorted(rows.sizes)
    all_rows = {tuple(x) for x in rows.features}
    seen_rows = {tuple(x) for x in train.features}, {tuple(x) for x in test.features}
    assert seen_rows[0] | seen_rows[1] == all_rows
    assert not seen_rows[0] & seen_rows[1]
    repeated = hold_out(rows, 0.25, seed=3)[1]
    assert repeated.digest == test.digest
    assert hold_out(rows, 0.25, seed=4)[1].digest != test.digest
    with pytest.raises(InvalidInput, match="held out must lie"):
        hold_out(rows, 1.0, 0)


def gradient_of(rows: ClassifierRows, mechanism: Mechanism, cell: Cell, keys: dict[int, int]):
    """The summed gradient; under a cap each user keeps rows by an order of their own, the same beside any others."""
    if cell.method is Method.CAP:
        orders = [np.random.default_rng(keys[u]).permutation(s) for u, s in enumerate(rows.sizes)]
        weights = (np.concatenate(orders) < cell.bound).astype(float)[:, None]
        gradient = descent.make_weighted_gradient(rows, mechanism, weights)
    else:
        gradient = descent.make_bounded_gradient(rows, mechanism, [cell], 0, range(2))
    return lambda theta: gradient(theta, np.full(theta.shape[1], cell.bound * mechanism.clip))[0]


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    method=st.sampled_from(TRAINED),
    loss=st.sampled_from(list(LossKind)),
    clip=st.sampled_from([0.05, 0.5, 1.0, 3.0]),
    relation=st.sampled_from([ADD, REPLACE, VALUES]),
)
def test_one_user_moves_the_summed_gradient_by_no_more_than_declared(data, method, loss, clip, relation):
    # Features on the unit sphere and theta far out: clipping is active for the squared loss, and below 1 for all.
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    sizes = tuple(data.draw(st.lists(st.integers(1, 12), min_size=2, max_size=6)))
    bound = float(data.draw(st.integers(1, 12))) if method is Method.CAP else data.draw(st.floats(0.3, 12.0))
    mechanism = Mechanism(1.0, 1e-5, relation, loss, clip=clip)
    rows = some_rows(seed, sizes)
    theta = rng.standard_normal((3, 2)) * data.draw(st.sampled_from([0.0, 1.0, 50.0]))
    keys = dict(enumerate(rng.integers(0, 10**6, len(sizes) + 1)))
    everybody = gradient_of(rows, mechanism, Cell(method, bound), keys)(theta)
    # The last user goes, or is replaced by one whose rows all point the same way with the other label.
    last_user = len(sizes) - 1
    other = None
    if relation is not ADD:
        size = sizes[last_user] if relation is VALUES else data.draw(st.integers(1, 12))
        other = make_extreme_user(size, theta[:, 0], 1.0)
        keys[last_user] = keys[last_user + 1]
    neighbour = replace_last_user(rows, other)
    distance = np.linalg.norm(
        everybody - gradient_of(neighbour, mechanism, Cell(method, bound), keys)(theta), axis=0
    )
    assert np.all(distance <= account.get_gradient_sensitivity(relation) * bound * clip * (1 + 1e-12))
    weight = abs(
        float(rows.histogram.count_kept_rows(bound)) - float(neighbour.histogram.count_kept_rows(bound))
    )
    assert weight <= account.compute_weight_sensitivity(relation, bound) * (1 + 1e-12) + 1e-12


def test_the_declared_sensitivity_is_reached():
    # A user whose 7 rows all have gradient -x e, |x| = 1, of full length: the sum moves by the bound, and by twice it
    # where the user is replaced by the opposite.
    x = np.tile([1.0, 0.0], (7, 1))
    mechanism = Mechanism(1.0, 1e-5, loss=LossKind.HINGE)
    theta = np.zeros((2, 1))
    far = np.array([[-99.0], [0.0]])
    for sign, at in ((1.0, theta), (1.0, far)):
        rows = ClassifierRows(x, np.full(7, sign), np.zeros(7, dtype=np.int64))
        for method in TRAINED:
            result = gradient_of(rows, mechanism, Cell(method, 3.0), {0: 1})(at)
            assert result[:, 0] == pytest.approx([-3.0, 0.0])


def test_averages_are_smooth_weights_of_one_row_and_a_large_bound_is_none():
    rows = some_rows()
    mechanism = Mechanism(1.0, 1e-5)
    theta = np.random.default_rng(1).standard_normal((3, 4))
    # The mean of each user's mean gradient, user by user.
    slopes = -1 / (1 + np.exp(rows.signed_features @ theta))
    by_user = [
        (rows.signed_features[rows.user_codes == u].T @ slopes[rows.user_codes == u]) / size
        for u, size in enumerate(rows.sizes)
    ]
    averaged = gradient_of(rows, mechanism, Cell(Method.SMOOTH, 1.0), {})(theta)
    assert averaged == pytest.approx(sum(by_user))
    full_gradient = rows.signed_features.T @ slopes
    keys = dict.fromkeys(range(6), 0)
    for method in TRAINED:
        for bound in (9.0, 50.0):
            assert gradient_of(rows, mechanism, Cell(method, bound), keys)(theta) == pytest.approx(
                full_gradient
            )
    below_one = gradient_of(rows, mechanism, Cell(Method.SMOOTH, 0.25), {})(theta)
    assert below_one == pytest.approx(0.25 * averaged)
    assert rows.histogram.count_kept_rows(0.25) == pytest.approx(0.25 * 6)


def test_a_cap_keeps_random_rows_anew_in_every_run():
    rows = some_rows(sizes=(1, 5, 2))
    ranks = draw_ranks(rows, 7, range(4000))
    is_kept = ranks < 2
    assert (is_kept[:1].all(), is_kept[6:].all()) == (True, True)  # whoever has at most two rows
    assert np.all(is_kept[1:6].sum(axis=0) == 2)
    # Each of the five rows is kept with probability 2/5: a normal interval of 5 standard errors.
    share = is_kept[1:6].mean(axis=1)
    assert np.all(np.abs(share - 0.4) < 5 * math.sqrt(0.24 / 4000))
    assert np.array_equal(draw_ranks(rows, 7, range(10, 12)), ranks[:, 10:12])


def noise_multipliers(mechanism: Mechanism, bound: float) -> tuple[float, float]:
    """σ/Δ of a step and of the sum of weights; 0 where that is public."""
    noise = account.plan_noise(mechanism, bound)
    distance = account.get_gradient_sensitivity(mechanism.neighbours) * bound * mechanism.clip
    weight = account.compute_weight_sensitivity(mechanism.neighbours, bound)
    return (
        noise.gradient_noise_std / distance,
        noise.weight_noise_std / weight if weight else noise.weight_noise_std,
    )


@pytest.fixture
def no_noise(monkeypatch):
    """Every draw of noise is 0, so that the descent is what the bound alone makes of it."""

    def zeros(mechanism, num_features, seed, runs):
        return np.zeros((mechanism.steps, num_features, len(runs))), np.zeros(len(runs))

    monkeypatch.setattr(descent, "draw_noise", zeros)


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize(("bound", "steps", "clip"), [(1.0, 1, 1.0), (3.5, 30, 0.5), (40.0, 400, 2.0)])
def test_all_steps_together_are_one_gaussian_of_the_whole_budget(relation, bound, steps, clip):
    from dp_accounting import get_epsilon_gaussian
    from dp_accounting.pld import privacy_loss_distribution as pld

    epsilon, delta = 1.3, 1e-5
    step, weight = noise_multipliers(Mechanism(epsilon, delta, relation, steps=steps, clip=clip), bound)
    squared_ratio = steps / step**2 + (weight and 1 / weight**2)
    with np.errstate(all="ignore"):
        full_gradient = get_epsilon_gaussian(1 / squared_ratio**0.5, delta)
    assert full_gradient <= epsilon
    assert full_gradient == pytest.approx(epsilon, rel=1e-6)
    # An accountant that composes privacy losses by itself, which is given the steps one by one.
    if steps <= 30:
        with np.errstate(all="ignore"):
            parts = pld.from_gaussian_mechanism(step, value_discretization_interval=1e-4).self_compose(steps)
            if weight:
                parts = parts.compose(pld.from_gaussian_mechanism(weight, value_discretization_interval=1e-4))
            assert parts.get_epsilon_for_delta(delta) == pytest.approx(epsilon, abs=4e-3)


def test_public_counts_pay_nothing_for_the_sum_of_weights():
    add, replaced, values = (Mechanism(1.0, 1e-5, relation, steps=30) for relation in (ADD, REPLACE, VALUES))
    assert account.plan_noise(values, 5.0).weight_noise_std == 0.0
    assert account.plan_noise(replaced, 1.0).weight_noise_std == 0.0  # averages of a public number of users
    assert account.plan_noise(replaced, 5.0).weight_noise_std > 0.0
    gradient_noise = account.plan_noise(values, 5.0).gradient_noise_std
    assert account.plan_noise(add, 5.0).gradient_noise_std == pytest.approx(
        gradient_noise / 2 / math.sqrt(0.95)
    )


def audited(mechanism: Mechanism, delta: float, runs: int = 12_000) -> float:
    """A lower bound of ε that holds with probability 0.999, from the models of two neighbours that differ most.

    20 users with nothing to say (x = 0) beside one whose row pulls with all its weight, and without that one. The
    attacker thresholds the model; the best of 60 cuts on half of the runs is judged on the other half, by Clopper and
    Pearson: ε is at least log((1 - δ - misses) / false alarms), each at its upper end.
    """
    x = np.zeros((21, 1))
    x[20] = 1.0
    with_user = ClassifierRows(x, np.ones(21), np.arange(21))
    without = with_user.select_users(np.arange(20))
    models = []
    for seed, rows in ((1, with_user), (2, without)):
        parts = [
            descent.train_cells(rows, mechanism, [Cell(Method.SMOOTH, 1.0)], seed, range(s, s + 6_000))
            for s in range(0, runs, 6_000)
        ]
        models.append(np.concatenate([part[0] for part in parts]))
    half = runs // 2

    def result(cut: float, part: slice) -> float:
        misses = half - int((models[0][part] > cut).sum())
        alarms = int((models[1][part] > cut).sum())
        miss, alarm = (beta.ppf(0.9995, k + 1, half - k) if k < half else 1.0 for k in (misses, alarms))
        return math.log(max(1 - delta - miss, 1e-9) / alarm)

    cuts = np.quantile(models[1][:half], np.linspace(0.3, 0.9999, 60))
    best = max(cuts, key=lambda cut: result(cut, slice(0, half)))
    return result(best, slice(half, runs))


@pytest.mark.long
def test_sampled_users_pay_less_and_never_more_than_asked():
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    epsilon, delta = 1.2, 1e-5
    everybody = Mechanism(epsilon, delta, ADD, steps=40)
    full = account.plan_noise(everybody, 2.0)
    for sampled in (0.05, 0.5):
        multiplier, weight = noise_multipliers(replace(everybody, sampled=sampled), 2.0)
        assert multiplier < full.gradient_noise_std / 2.0
        assert bound_sampled_epsilon(multiplier, sampled, 40, weight, delta) <= epsilon
        assert bound_sampled_epsilon(0.98 * multiplier, sampled, 40, weight, delta) > epsilon
        # Another accountant, by Rényi divergences, whose bound is looser: it must not say less.
        with np.errstate(all="ignore"):
            rdp_accountant = RdpAccountant()
            step = PoissonSampledDpEvent(sampled, GaussianDpEvent(multiplier))
            rdp_accountant.compose(SelfComposedDpEvent(step, 40)).compose(GaussianDpEvent(weight))
            assert epsilon * 0.99 < rdp_accountant.get_epsilon(delta) < 1.5 * epsilon
    nearly = account.plan_noise(replace(everybody, sampled=0.999), 2.0)
    assert nearly.gradient_noise_std == pytest.approx(full.gradient_noise_std, rel=0.01)
    with pytest.raises(InvalidInput, match="needs neighbours that add or remove"):
        Mechanism(1.0, 1e-5, REPLACE, sampled=0.5)


@pytest.mark.long
@pytest.mark.parametrize("method", TRAINED)
def test_a_step_has_its_share_of_the_users(method, no_noise):
    # One step from 0 without noise: the mean gradient in expectation over 2,000 runs, each entry within 5 of its
    # standard errors, and far more spread than with all users.
    rows = some_rows(2, (1, 5, 2, 8, 3))
    mechanism = Mechanism(1.0, 1e-5, steps=1, sampled=0.4, radius=1e6)
    cell = Cell(method, 2.0)
    runs = range(2000)
    result = descent.train_cells(rows, mechanism, [cell], 0, runs)
    full_gradient = descent.train_cells(rows, Mechanism(1.0, 1e-5, steps=1, radius=1e6), [cell], 0, runs)
    error = result.std(axis=1) / math.sqrt(2000)
    assert np.all(np.abs(result.mean(axis=1) - full_gradient.mean(axis=1)) < 5 * error)
    assert np.all(result.std(axis=1) > 0.01)
    # Of five users each takes part by a draw of its own: all five in 0.4^5 of the runs, nobody in 0.6^5.
    nobody = np.mean(np.all(result == 0.0, axis=0))
    assert abs(nobody - 0.6**5) < 5 * math.sqrt(0.6**5 / 2000)


@pytest.mark.long
def test_an_audit_finds_no_more_than_epsilon():
    epsilon, delta = 2.0, 0.01
    settings_ = {"loss": LossKind.HINGE, "steps": 4, "average": Average.ALL, "radius": 1e6}
    assert 0.3 * epsilon < audited(Mechanism(epsilon, delta, **settings_), delta) <= epsilon
    # It is no formality: the same attacker convicts a training with the noise of ε = 8 that says it has ε = 2.
    assert audited(Mechanism(8.0, delta, **settings_), delta) > epsilon


def test_without_noise_descent_ends_at_the_optimum(no_noise):
    rows = generate_rows(80)
    for method, bound in ((Method.SMOOTH, 2.5), (Method.SMOOTH, 60.0)):
        mechanism = Mechanism(1.0, 1e-5, steps=1000, step_size=1.99, average=Average.LAST)
        theta = descent.train_cells(rows, mechanism, [Cell(method, bound)], 0, range(2))
        assert theta[:, 0] == pytest.approx(theta[:, 1])
        best = optimum.fit_model(
            rows,
            LossKind.LOGISTIC,
            compute_smooth_weights(rows.sizes, bound)[rows.user_codes],
            mechanism.radius,
        )
        assert best.certificate.proves(1e-10)
        weights = compute_smooth_weights(rows.sizes, bound)[rows.user_codes]
        loss_reached = (
            weights @ LossKind.LOGISTIC.evaluate(rows.signed_features @ theta[:, 0]) / weights.sum()
        )
        assert loss_reached == pytest.approx(best.certificate.value, abs=2e-5)
        assert loss_reached >= best.certificate.lower_bound


@pytest.mark.thinned
@pytest.mark.parametrize("loss", LossKind)
@pytest.mark.parametrize(("radius", "penalty"), [(1e3, 0.0), (1.5, 0.0), (1e3, 0.1)])
def test_the_optimum_is_that_of_a_general_solver(loss, radius, penalty):
    import cvxpy as cp

    rows = some_rows(3, (2, 5, 9, 14, 20))
    weights = np.random.default_rng(0).random(rows.num_rows)
    theta = cp.Variable(3)
    m = rows.signed_features @ theta
    each = {
        LossKind.LOGISTIC: cp.logistic(-m),
        LossKind.SQUARED: cp.square(1 - m) / 2,
        LossKind.HINGE: cp.huber(cp.pos(1 - m), 0.5),  # x² below 1/2, x - 1/4 above: twice the half width
    }[loss]
    objective = (weights / weights.sum()) @ each + penalty / 2 * cp.sum_squares(theta)
    problem = cp.Problem(cp.Minimize(objective), [cp.norm(theta) <= radius])
    value = problem.solve(solver=cp.CLARABEL)
    fit = optimum.fit_model(rows, loss, weights, radius, penalty)
    assert fit.certificate.value == pytest.approx(value, abs=1e-7)
    assert fit.certificate.lower_bound <= value + 1e-8
    assert fit.certificate.proves(1e-8)
    assert np.linalg.norm(fit.theta) <= radius * (1 + 1e-9)


@pytest.mark.parametrize("loss", LossKind)
def test_features_that_say_the_same_or_nothing_leave_an_optimum(loss):
    rows = some_rows(3, (9, 14, 20), d=1)
    x = rows.features[:, 0]
    same = ClassifierRows(np.column_stack((x / 2, x / 2, np.zeros(43))), rows.signs, rows.user_codes)
    single_feature = optimum.fit_model(rows, loss, np.ones(43), 40.0)
    result = optimum.fit_model(same, loss, np.ones(43), 80.0)
    assert result.certificate.value == pytest.approx(single_feature.certificate.value, abs=1e-10)
    assert result.certificate.proves(1e-7)


def test_a_certificate_fails_on_half_a_fit(monkeypatch):
    monkeypatch.setattr(optimum, "_MAX_NEWTON_STEPS", 1)
    model = optimum.fit_model(some_rows(3, (9, 14, 20)), LossKind.LOGISTIC, np.ones(43), 50.0)
    assert not model.certificate.proves(1e-3)


@pytest.mark.parametrize("loss", LossKind)
def test_the_best_constant_beats_all_others(loss):
    rows = some_rows(1, (9, 30))
    scores = np.linspace(-3, 3, 6001)
    grid = [loss.evaluate(rows.signs * z).mean() for z in scores]
    result = loss.evaluate(rows.signs * optimum.find_best_constant(rows, loss)).mean()
    assert result <= min(grid) + 1e-12
    assert result == pytest.approx(min(grid), abs=1e-5)
    single_feature = ClassifierRows(rows.features[:3], np.ones(3), np.arange(3))
    assert loss.evaluate(np.array([optimum.find_best_constant(single_feature, loss)]))[0] < 1e-8


def test_output_perturbation_has_the_noise_that_it_declares_whatever_steps_are_entered():
    rows = generate_rows(60)
    mechanism = Mechanism(2.0, 1e-5, VALUES, radius=1e6, steps=7)
    models = optimum.perturb_minimiser(rows, mechanism, Cell(Method.OUTPUT, 1.0), 0, range(400))
    kappa = 2.0 * GaussianNoise.for_release(1.0, 2.0, 1e-5).scale
    penalty = 0.8 * kappa * math.sqrt(rows.num_features)
    weights = compute_smooth_weights(rows.sizes, 1.0)[rows.user_codes]
    best = optimum.fit_model(rows, LossKind.LOGISTIC, weights, math.inf, penalty / 60)
    # Changed values move the minimiser by 2 h / μ at most.
    errors = (models - best.theta[:, None]).ravel() / (kappa / penalty)
    # 2,800 standard normals: mean and variance within 5 standard errors.
    assert abs(errors.mean()) < 5 / math.sqrt(errors.size)
    assert abs(errors.var() - 1) < 5 * math.sqrt(2 / errors.size)
    with pytest.raises(ValueError, match="bounded slope"):
        optimum.perturb_minimiser(
            rows, Mechanism(1.0, 1e-5, loss=LossKind.SQUARED), Cell(Method.OUTPUT, 1.0), 0, range(1)
        )
