"""Clipped sums whose bound follows a private quantile: neighbours, account, the rule written out, and the release."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from dpcore.common.mechanisms import GaussianSteps
from dpcore.common.privacy import GaussianNoise, Neighbours
from dpcore.training import account, descent, integer_sums, optimum, release
from dpcore.training import mechanism as training_mechanism
from dpcore.training.account import Cell, Method
from dpcore.training.mechanism import LossKind, Mechanism
from dpcore.training.rows import ClassifierRows, hold_out, score_models
from tests.dpcore.training.tables import draw_rows, generate_rows, make_extreme_user, replace_last_user

ADD, REPLACE, VALUES = (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER, Neighbours.REPLACE_VALUES)
FOLLOWED = Cell(Method.FOLLOWED)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 12), min_size=2, max_size=8),
    bound=st.floats(0.002, 20.0),
    loss=st.sampled_from(list(LossKind)),
    relation=st.sampled_from([ADD, REPLACE, VALUES]),
    far=st.sampled_from([0.0, 1.0, 40.0]),
)
def test_one_user_moves_sum_and_count_by_no_more_than_the_account_says(
    seed, sizes, bound, loss, relation, far
):
    rng = np.random.default_rng(seed)
    theta = far * rng.standard_normal(3)
    rows, mechanism = draw_rows(seed, sizes), Mechanism(1.0, 1e-6, relation, loss)
    # The last user pulls one way with all rows, and goes, or is replaced by one who pulls the other way.
    rows = replace_last_user(rows, make_extreme_user(sizes[-1], theta, 1.0))
    size = sizes[-1] if relation is VALUES else int(rng.integers(1, 13))
    neighbour = replace_last_user(rows, None if relation is ADD else make_extreme_user(size, theta, -1.0))
    moved_sum, moved_count = [], []
    whole_sum, whole_count = [], []
    for data in (rows, neighbour):
        total, num_within = descent.make_bounded_gradient(data, mechanism, [FOLLOWED], 0, range(1))(
            theta[:, None], np.array([bound])
        )
        moved_sum.append(total[:, 0] / bound)
        moved_count.append(num_within[0] - data.num_users / 2.0)
        sums, inside = integer_sums.round_user_sums(data, mechanism, bound, theta)
        whole_sum.append(sums.sum(axis=0))
        whole_count.append(2 * int(inside.sum()) - data.num_users)
        # By brute force, user by user.
        slopes = loss.differentiate(data.signed_features @ theta)
        with np.errstate(divide="ignore"):
            slopes = np.clip(slopes, -1 / data.norms, 1 / data.norms)
        each = [
            data.signed_features[data.user_codes == u].T @ slopes[data.user_codes == u]
            for u in range(data.num_users)
        ]
        lengths = np.array([np.linalg.norm(item) for item in each])
        by_hand = sum(
            item * min(1.0, bound / max(length, 1e-300)) for item, length in zip(each, lengths, strict=True)
        )
        assert total[:, 0] == pytest.approx(by_hand, abs=1e-9)
        sure = np.abs(lengths - bound) > 1e-5 * bound
        assert np.array_equal(inside[sure], (lengths <= bound)[sure])
    assert np.linalg.norm(moved_sum[0] - moved_sum[1]) <= account.get_gradient_sensitivity(relation) * (
        1 + 1e-9
    )
    assert abs(moved_count[0] - moved_count[1]) <= 0.5 * account.get_gradient_sensitivity(relation)
    # And in the whole numbers of a release, exactly.
    grid = release.choose_rule_grid(mechanism, bound_follows=True)
    assert sum(int(k) ** 2 for k in whole_sum[0] - whole_sum[1]) <= grid.squared_gradient_sensitivity
    assert (grid.count_unit * (whole_count[0] - whole_count[1])) ** 2 <= grid.squared_count_sensitivity
    other_sums, _ = integer_sums.round_user_sums(
        rows.select_users(np.arange(rows.num_users - 1)), mechanism, bound, theta
    )
    assert np.array_equal(other_sums, integer_sums.round_user_sums(rows, mechanism, bound, theta)[0][:-1])


def test_the_sensitivities_are_reached():
    # Nine rows that pull one way at θ = 0, each with 1/2: clipped at 2 they move the sum by one bound, and are beyond;
    # replaced by their opposite, by two; a user with one row is within instead, so that the count moves by one.
    mechanism = Mechanism(1.0, 1e-6, REPLACE)
    heavy, extreme_user, light = (
        make_extreme_user(9, np.zeros(3), 1.0),
        make_extreme_user(9, np.zeros(3), -1.0),
        make_extreme_user(1, np.zeros(3), 1.0),
    )
    result = [
        descent.make_bounded_gradient(rows, mechanism, [FOLLOWED], 0, range(1))(
            np.zeros((3, 1)), np.array([2.0])
        )
        for rows in (heavy, extreme_user, light)
    ]
    assert np.linalg.norm(result[0][0] - result[1][0]) / 2.0 == pytest.approx(2.0)
    assert abs(result[0][1] - result[2][1])[0] == 1.0


@pytest.mark.thinned
@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("follows", [True, False])
def test_everything_together_is_the_budget_by_the_accountant_of_privacy_losses(relation, follows):
    from dp_accounting.pld import privacy_loss_distribution as pld

    epsilon, delta, steps = 1.3, 1e-6, 40
    plan = account.plan_rule_noise(Mechanism(epsilon, delta, relation, steps=steps), follows)
    gradient_sensitivity = account.get_gradient_sensitivity(relation)
    parts = [(plan.direction_noise_std / gradient_sensitivity, steps)]
    if follows:
        parts.append((plan.count_noise_std / (0.5 * gradient_sensitivity), steps))
    if relation is ADD:
        parts.append((plan.num_users_noise_std, 1))
    assert (plan.num_users_noise_std > 0) is (relation is ADD)
    with np.errstate(all="ignore"):
        whole_loss = None
        for sigma, times in parts:
            # Losses of a step are small, so that the grid is fine.
            item = pld.from_gaussian_mechanism(sigma, value_discretization_interval=2e-5).self_compose(times)
            whole_loss = item if whole_loss is None else whole_loss.compose(item)
        result = whole_loss.get_epsilon_for_delta(delta)
    # Pessimistic rounding on the grid adds up over the steps: never below, and little above.
    assert epsilon - 1e-3 <= result <= epsilon + 0.02
    # The ratios are those of one Gaussian.
    squared = sum(times / sigma**2 for sigma, times in parts)
    item = GaussianNoise.for_release(1.0, epsilon, delta).scale
    assert squared == pytest.approx(item**-2, rel=1e-12)


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("follows", [True, False])
def test_the_split_in_whole_numbers_is_that_of_the_curves(relation, follows):
    mechanism = training_mechanism.apply_rule(Mechanism(2.0, 1e-6, relation))
    grid = release.choose_rule_grid(mechanism, follows)
    plan = account.plan_rule_noise(mechanism, follows)
    unit = GaussianNoise.for_release(1.0, 2.0, 1e-6).scale * math.sqrt(grid.squared_total_sensitivity)
    assert unit / integer_sums.STEPS_PER_BOUND == pytest.approx(plan.direction_noise_std, rel=1e-5)
    assert (
        mechanism.steps * (grid.squared_gradient_sensitivity + grid.squared_count_sensitivity)
        + grid.num_users_unit**2
        == grid.squared_total_sensitivity
    )
    if follows:
        assert unit / (2 * grid.count_unit) == pytest.approx(plan.count_noise_std, rel=1e-5)
    if grid.num_users_unit:
        assert unit / grid.num_users_unit == pytest.approx(plan.num_users_noise_std, rel=1e-5)


@pytest.mark.parametrize("sigma", [10.0, 37.5])
def test_discrete_noise_is_nearly_rounded_normal_noise(sigma):
    # Both laws written out as far as 12 standard deviations.
    k = np.arange(-int(12 * sigma), int(12 * sigma) + 1)
    discrete = np.exp(-(k**2) / (2 * sigma**2))
    discrete /= discrete.sum()
    upper = norm.sf((np.abs(k) - 0.5) / sigma) - norm.sf((np.abs(k) + 0.5) / sigma)
    ratios = np.log(discrete / upper)
    excess_loss, _ = integer_sums.bound_difference(sigma, 1, 1.0, 1e-6)
    assert ratios.max() <= -math.log1p(-1 / (24 * sigma**2)) + 1e-10
    reach = math.sqrt(2 * (41 + math.log(2e6)))
    near = np.abs(k) <= reach * sigma
    assert -ratios[near].min() <= reach**2 / (8 * sigma**2)
    assert (ratios.max() - ratios[near].min()) <= excess_loss


def test_the_account_of_discrete_noise_holds_for_the_accountants_own():
    from dp_accounting.pld import privacy_loss_distribution as pld

    sensitivity, epsilon, delta = 4_000, 1.0, 1e-6
    noise = integer_sums.account_exactly(sensitivity**2, 1, epsilon, delta)
    unit = GaussianNoise.for_release(1.0, epsilon, delta).scale
    assert noise.scale == pytest.approx(unit * sensitivity, rel=1e-5)
    assert noise.epsilon <= epsilon
    assert noise.delta <= delta
    with np.errstate(all="ignore"):
        result = pld.from_discrete_gaussian_mechanism(
            noise.scale, sensitivity, value_discretization_interval=1e-4
        )
        assert result.get_epsilon_for_delta(noise.delta) <= epsilon + 2e-4
        assert result.get_epsilon_for_delta(noise.delta) >= epsilon - 1e-3
    # Where σ is small the argument does not hold, and OpenDP's own account through zCDP is taken.
    small = integer_sums.account_exactly(1, 1, epsilon, delta)
    assert small.scale > 1.02 * unit
    assert integer_sums.bound_difference(small.scale, 1, epsilon, delta)[0] > 1e-6


def test_steps_draw_normal_noise_of_the_sigma_that_was_paid_for():
    mechanism = training_mechanism.apply_rule(Mechanism(1.0, 1e-6))
    grid = release.choose_rule_grid(mechanism, bound_follows=True)
    noise = integer_sums.account_exactly(grid.squared_total_sensitivity, 200 * 8 + 1, 1.0, 1e-6)
    draws = np.concatenate(
        [noise.release(np.zeros(500, dtype=np.int64), grid.squared_gradient_sensitivity) for _ in range(8)]
    )
    # 4,000 draws; a right law fails once in 10,000.
    assert kstest(draws / noise.scale, "norm").pvalue > 1e-4
    assert (
        noise.remaining_squared_sensitivity
        == grid.squared_total_sensitivity - 8 * grid.squared_gradient_sensitivity
    )


def written_out(rows, epsilon, delta, noise, count_noise, number_noise):
    """The rule in the plainest way, for one run, one user after another."""
    n, d, steps = rows.num_users, rows.num_features, 200
    kappa = GaussianNoise.for_release(1.0, epsilon, delta).scale
    users = max(n + kappa / math.sqrt(0.03) * number_noise, kappa)
    gamma = 1 - min(0.5, 12 * kappa * math.sqrt(d) / users)
    sigma = kappa * math.sqrt(steps / 0.94)
    theta, before, iterates, longer, directions, weights = np.zeros(d), np.zeros(d), [], 1.0, [], []
    h = max(0.25, math.sqrt(users / (kappa * math.sqrt(d))) / 12)
    longest_step = 1.0
    for t in range(steps):
        v = theta + 0.9 * (theta - before)
        total, count = np.zeros(d), 0.0
        for u in range(n):
            is_own = rows.user_codes == u
            x, y = rows.features[is_own], rows.signs[is_own]
            g = -(y / (1 + np.exp(y * (x @ v)))) @ x
            length = np.linalg.norm(g)
            total += g * min(1.0, h / length)
            count += (length <= h) - 0.5
        directions.append(total / h + sigma * noise[t])
        count += kappa / 2 * math.sqrt(steps / 0.03) * count_noise[t]
        b = (count + users / 2) / users
        # Weights 0.05 · 0.95^k of the directions so far, the newest first.
        fading = 0.05 * 0.95 ** np.arange(len(directions))
        mean = fading @ np.array(directions[::-1])
        by_noise = d * sigma**2 * np.sum(fading**2)
        forgets = 0.95 if mean @ mean > 2 * by_noise else 1.0
        weights = [forgets * weight for weight in weights] + [t + 1.0]
        if t >= 70:
            longer = min(1.05 * longer, 3.0) if mean @ mean > 3.5 * by_noise else max(longer / 1.05, 1.0)
            longest_step = max(longest_step, longer)
        eta = min(0.1 * 5 * longer / (kappa * math.sqrt(d) * steps), 0.75 / (0.25 * users))
        before, theta = theta, v - eta * directions[-1]
        theta = theta / max(1.0, np.linalg.norm(theta) / 20)
        h = min(max(h * math.exp(min(max(5 / steps * (gamma - b) / (1 - gamma), -0.3), 0.3)), 1e-3), 100.0)
        iterates.append(theta)
    return np.average(iterates, axis=0, weights=weights), longest_step


# With a strong signal the minimum is far, and steps grow; with a weak one they hardly do.
@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "signal", "grown"), [(0.5, 1.0, 1.2), (20.0, 60.0, 3.0)])
def test_training_is_the_rule_written_out(epsilon, signal, grown):
    rows = generate_rows(60, informative=2, signal=signal)
    mechanism = training_mechanism.apply_rule(Mechanism(epsilon, 1e-6))
    theta = descent.train_cells(rows, mechanism, [FOLLOWED], 3, range(2))
    gradient, number = descent.draw_noise(mechanism, 3, 3, range(2))
    for run in range(2):
        count = np.random.default_rng([3, 5, run]).standard_normal(200)
        by_hand, longest = written_out(rows, epsilon, 1e-6, gradient[:, :, run], count, number[run])
        assert theta[:, run] == pytest.approx(by_hand, rel=1e-7)
        assert longest == grown if grown == 3.0 else longest <= grown


def followed_without_noise(rows, mechanism, steps_of_bound=None):
    gradient = descent.make_bounded_gradient(rows, mechanism, [FOLLOWED], 0, range(1))
    plan = account.plan_rule_noise(mechanism, True)
    quiet = descent.RuleNoise(
        np.zeros((mechanism.steps, rows.num_features, 1)), np.zeros((mechanism.steps, 1)), np.zeros(1)
    )
    return descent.simulate_descents(
        gradient, mechanism, rows.num_users, np.array([FOLLOWED.bound]), quiet, rule_plan=plan,
        should_stop=lambda: False,
    )  # fmt: skip


def test_runs_on_splits_of_their_own_are_what_they_are_alone():
    rows, mechanism = draw_rows(5, [3, 1, 7, 2, 1, 4]), Mechanism(1.0, 1e-6)
    trained = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    theta, bounds = np.random.default_rng(6).standard_normal((3, 2)), np.array([0.3, 0.8])
    total, num_within = descent.make_clipped_gradient(rows, mechanism, 2)(theta, bounds, trained)
    for run in range(2):
        single_run = rows.select_users(np.flatnonzero(trained[:, run]))
        by_itself = descent.make_bounded_gradient(single_run, mechanism, [FOLLOWED], 0, range(1))
        sums, count = by_itself(theta[:, [run]], bounds[[run]])
        assert total[:, run] == pytest.approx(sums[:, 0], abs=1e-12)
        assert num_within[run] == count[0]


def test_without_noise_the_bound_comes_to_its_quantile():
    rows = generate_rows(900)
    for epsilon in (1.0, 3.0):
        mechanism = training_mechanism.apply_rule(Mechanism(epsilon, 1e-6))
        theta, bound = followed_without_noise(rows, mechanism)
        slopes = LossKind.LOGISTIC.differentiate(rows.signed_features @ theta[:, 0])
        sums = np.stack([np.bincount(rows.user_codes, slopes * column) for column in rows.signed_features.T])
        num_within = np.mean(np.linalg.norm(sums, axis=0) <= bound[0])
        plan = account.plan_rule_noise(mechanism, True)
        (target,) = descent.choose_quantile(plan.unit_noise, rows.num_features, np.array([900.0]))
        assert abs(num_within - target) < 0.02
        # About 12 κ √d users are clipped.
        clipped = 12 * GaussianNoise.for_release(1.0, epsilon, 1e-6).scale * math.sqrt(7)
        assert 900 * (1 - target) == pytest.approx(min(clipped, 450))


def test_a_step_has_the_size_that_the_rule_promises():
    # Where the loss is flat (features 0) θ is noise alone: of norm 5 after T steps, less what momentum had no time for.
    mechanism = training_mechanism.apply_rule(Mechanism(1.0, 1e-6, VALUES, radius=1e6))
    rows = ClassifierRows(np.zeros((30, 4)), np.ones(30), np.arange(30))
    gradient, _ = descent.draw_noise(mechanism, 4, 0, range(400))
    plan = account.plan_rule_noise(mechanism, False)
    theta = ahead = before = np.zeros((4, 400))
    eta = training_mechanism.choose_step_length(plan.unit_noise, 4, np.array([1.0]), mechanism)
    for t in range(200):
        ahead = theta + 0.9 * (theta - before)
        before, theta = theta, ahead - eta * plan.direction_noise_std * gradient[t]
    root_mean_square = math.sqrt(np.mean(np.sum(theta**2, axis=0)))
    assert (
        0.85 * training_mechanism.MAX_NOISE_NORM < root_mean_square < 1.05 * training_mechanism.MAX_NOISE_NORM
    )
    # The mean over steps has less.
    result = descent.train_cells(rows, mechanism, [Cell(Method.SMOOTH, 1.0)], 0, range(400))
    assert (
        0.5 * training_mechanism.MAX_NOISE_NORM
        < math.sqrt(np.mean(np.sum(result**2, axis=0)))
        < root_mean_square
    )


def test_it_leaves_a_tenth_of_what_weights_leave():
    # Generated data of the page's defaults, ε = 1: means of 16 runs, the two far apart beside their errors.
    train, test = hold_out(generate_rows(600), 0.25, 0)
    mechanism = training_mechanism.apply_rule(Mechanism(1.0, 1e-6))
    best = optimum.fit_model(train, LossKind.LOGISTIC, np.ones(train.num_rows), 20.0)
    floor = score_models(test, LossKind.LOGISTIC, best.theta[:, None])[0, 0, 0]
    excess = [
        score_models(test, LossKind.LOGISTIC, descent.train_cells(train, mechanism, [cell], 0, range(16)))[
            :, 0, 0
        ].mean()
        - floor
        for cell in (FOLLOWED, Cell(Method.SMOOTH, 1.0))
    ]
    assert excess[0] < 0.0038 * 1.25 + 0.001
    assert excess[0] < 0.2 * excess[1]


def test_a_smaller_clip_of_rows_bounds_weights_and_caps():
    rows = draw_rows(1, [4, 1, 9, 2])
    cell = Cell(Method.SMOOTH, 1.0, 0.25)
    assert cell.reach == 0.25
    mechanism = replace(Mechanism(1.0, 1e-6), clip=0.25)
    total, _ = descent.make_bounded_gradient(rows, mechanism, [cell], 0, range(1))(
        np.zeros((3, 1)), np.ones(1)
    )
    # Every row's gradient at θ = 0 is -x y / 2, shortened to 1/4; a user's mean of them.
    each = -rows.signed_features * (np.minimum(0.5, 0.25 / rows.norms))[:, None]
    by_hand = sum(each[rows.user_codes == u].mean(axis=0) for u in range(4))
    assert total[:, 0] == pytest.approx(by_hand)


@pytest.mark.parametrize(
    "cell", [FOLLOWED, Cell(Method.SMOOTH, 2.0), Cell(Method.SMOOTH, 1.0, 0.5), Cell(Method.CLIPPED_SUM, 0.5)]
)
def test_without_noise_a_release_is_the_descent_of_the_curves(monkeypatch, cell):
    monkeypatch.setattr(GaussianSteps, "release", lambda self, exact, squared: exact)
    monkeypatch.setattr(
        descent, "draw_noise", lambda m, d, seed, runs: (np.zeros((m.steps, d, 1)), np.zeros(1))
    )
    rows = generate_rows(120, informative=2, signal=60.0)
    mechanism = training_mechanism.apply_rule(Mechanism(20.0, 1e-6))
    charges = []
    model = release.train_once(rows, mechanism, cell, charges.append)
    assert charges == [model.facts]
    assert 19.9 < model.facts.epsilon <= 20.0
    if cell is FOLLOWED:
        theta, bound = followed_without_noise(rows, mechanism)
        # A user at the very bound may count once more or less on the grid, which moves the bound a little.
        assert model.theta == pytest.approx(theta[:, 0], abs=0.05)
        assert model.last_bound == pytest.approx(bound[0], rel=0.1)
    else:
        theta = descent.train_cells(rows, mechanism, [cell], 0, range(1))
        assert model.theta == pytest.approx(theta[:, 0], abs=1e-3)


def test_the_minimiser_is_released_with_the_noise_of_the_curves():
    rows = generate_rows(80, informative=2)
    mechanism, cell = training_mechanism.apply_rule(Mechanism(1.0, 1e-6)), Cell(Method.OUTPUT, 2.0)
    models = [release.train_once(rows, mechanism, cell) for _ in range(150)]
    kappa = GaussianNoise.for_release(1.0, 1.0, 1e-6).scale
    penalty = 0.8 * kappa * math.sqrt(3) * 2.0
    assert models[0].noise_std == pytest.approx(kappa * 2.0 / penalty, rel=1e-5)
    weights = np.minimum(2.0, rows.sizes) / rows.sizes
    best = optimum.fit_model(
        rows,
        LossKind.LOGISTIC,
        weights[rows.user_codes],
        math.inf,
        penalty / np.minimum(2.0, rows.sizes).sum(),
    )
    off = np.stack([model.theta for model in models]) - best.theta
    assert kstest((off / models[0].noise_std).ravel(), "norm").pvalue > 1e-4
    simulated = optimum.perturb_minimiser(rows, mechanism, cell, 0, range(150)) - best.theta[:, None]
    assert kstest((simulated / models[0].noise_std).ravel(), "norm").pvalue > 1e-4


@pytest.mark.parametrize("loss", [LossKind.LOGISTIC, LossKind.HINGE])
def test_the_minimiser_is_found_on_any_data_also_where_newton_ends_at_once(monkeypatch, loss):
    from scipy.optimize import minimize

    rows, bound = draw_rows(7, [1, 4, 2, 9, 1, 30]), 2.0
    mechanism = training_mechanism.apply_rule(Mechanism(1.0, 1e-6, loss=loss, radius=1e6))
    # A penalty far below the losses' curvature, so that descent is slow.
    monkeypatch.setattr(optimum, "PENALTY_FACTOR", 1e-3)
    monkeypatch.setattr(GaussianSteps, "release", lambda self, exact, squared: exact)
    whole_search = release.train_once(rows, mechanism, Cell(Method.OUTPUT, bound)).theta
    monkeypatch.setattr(optimum, "_minimise", lambda rows, *_: np.zeros(rows.num_features))
    slow = release.train_once(rows, mechanism, Cell(Method.OUTPUT, bound)).theta
    kappa = GaussianNoise.for_release(1.0, 1.0, 1e-6).scale
    penalty = 1e-3 * kappa * math.sqrt(3) * bound
    weights = (np.minimum(bound, rows.sizes) / rows.sizes)[rows.user_codes]

    def objective(theta):
        margins = rows.signed_features @ theta
        slope = rows.signed_features.T @ (weights * loss.differentiate(margins)) + penalty * theta
        return weights @ loss.evaluate(margins) + penalty / 2 * theta @ theta, slope

    by_scipy = minimize(
        objective, np.zeros(3), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-12}
    )
    for theta in (whole_search, slow):
        # As near as the sensitivity takes it to be, and the rounding of the grid.
        assert np.linalg.norm(objective(theta)[1]) <= bound * (release._MINIMISER_TOLERANCE + 1e-7)
        assert theta == pytest.approx(by_scipy.x, abs=3 * release._MINIMISER_TOLERANCE * bound / penalty)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), bound=st.sampled_from([0.5, 1.0, 3.0]))
def test_one_user_moves_the_minimiser_by_no_more_than_its_grid_says(seed, bound):
    rows = draw_rows(seed, [1, 4, 2, 9, 1, 3])
    penalty = 1.7 * bound
    result = []
    without_one = rows.select_users(np.delete(np.arange(6), seed % 6))
    for data in (rows, without_one, replace_last_user(rows, make_extreme_user(3, np.ones(3), -1.0))):
        weights = np.minimum(bound, data.sizes) / data.sizes
        result.append(
            optimum.fit_model(data, LossKind.HINGE, weights[data.user_codes], math.inf,
                        penalty / np.minimum(bound, data.sizes).sum()).theta
        )  # fmt: skip
    assert np.linalg.norm(result[0] - result[1]) <= bound / penalty * (1 + release._MINIMISER_TOLERANCE)
    assert np.linalg.norm(result[0] - result[2]) <= 2 * bound / penalty * (1 + release._MINIMISER_TOLERANCE)


def test_the_exponential_is_right_and_the_same_wherever_it_stands():
    x = np.concatenate((np.linspace(-700, 700, 20_001), np.random.default_rng(0).uniform(-3, 3, 5_000)))
    result = integer_sums.exponentiate_exactly(x)
    assert result == pytest.approx([math.exp(v) for v in x.tolist()], rel=2e-15)
    for start, stop in ((1, 4), (7, 30), (20_003, 20_004), (3, 24_999)):
        assert np.array_equal(integer_sums.exponentiate_exactly(x[start:stop]), result[start:stop])


def test_blocks_of_users_add_up_to_the_same(monkeypatch):
    rows, mechanism = draw_rows(4, [3, 1, 12, 5, 1, 1, 8]), Mechanism(1.0, 1e-6)
    theta, bounds = np.random.default_rng(0).standard_normal((3, 4)), np.array([0.3, 0.8, 1.5, 4.0])
    total, num_within = descent.make_clipped_gradient(rows, mechanism, 4)(theta, bounds, None)
    monkeypatch.setattr(descent, "BLOCK_CELLS", 20)
    assert len(descent._cut_into_blocks(rows, 4)) > 2
    total_of_blocks, within_blocks = descent.make_clipped_gradient(rows, mechanism, 4)(theta, bounds, None)
    slopes = descent.clip_slopes(rows, mechanism, rows.signed_features @ theta, slice(None))
    sums = np.array(
        [rows.signed_features[rows.user_codes == u].T @ slopes[rows.user_codes == u] for u in range(7)]
    )
    norms = np.linalg.norm(sums, axis=1)
    by_hand = (sums * np.minimum(1.0, bounds / norms)[:, None]).sum(axis=0)
    assert total == pytest.approx(by_hand)
    assert total_of_blocks == pytest.approx(by_hand)
    assert num_within.tolist() == within_blocks.tolist() == (norms <= bounds).sum(axis=0).tolist()
