"""A variance among the lines: sensitivity, exact loss between neighbours, promised against measured error."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.mean import VarianceSource, variance
from dpcore.plan import curves, mean_lines
from dpcore.plan.parameters import PlanParameters, choose_defaults

SHOP = samples.load("shop-events")
LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
NOISES = pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
OF_NOISE = {LAPLACE: {}, GAUSSIAN: {"mechanism": "gaussian", "delta": 1e-6}}


def add_up(rows, noise):
    """Add up the three sums of rows in [0, 1], as the programs do, shape (3,)."""
    t = np.asarray(rows, dtype=float)
    return np.array([((1 - t) ** 2).sum(), noise.middle_weight * (2 * t * (1 - t)).sum(), (t**2).sum()])


def read_off(sums, noise):
    """Compute the variance of values in [0, 1] from sums, shape (..., 3)."""
    low, middle, high = np.moveaxis(sums / np.array([1.0, noise.middle_weight, 1.0]), -1, 0)
    rows = np.maximum(low + middle + high, 1.0)
    return np.clip(high / rows - ((middle / 2.0 + high) / rows) ** 2, 0.0, 0.25)


@NOISES
def test_a_user_moves_the_sums_by_their_rows_and_the_middle_one_could_not_count_more(noise):
    grid, order = np.linspace(0.0, 1.0, 101), 1 if noise is LAPLACE else 2
    norms = [np.linalg.norm(add_up([t], noise), order) for t in grid]
    assert max(norms) == pytest.approx(1.0, abs=1e-12)
    # Users of up to three rows on a coarse grid: brute force.
    for h in (1, 2, 3):
        moves = [add_up(rows, noise) for rows in itertools.product(grid[::5], repeat=h)]
        assert max(np.linalg.norm(move, order) for move in moves) == pytest.approx(h, abs=1e-12)
    heavier = [np.linalg.norm(add_up([t], noise) * [1.0, 1.01, 1.0], order) for t in grid]
    assert max(heavier) > 1.0 + 1e-4


@NOISES
def test_the_exact_loss_between_neighbours_is_at_most_epsilon_and_reaches_it(noise):
    """The densities of all three noisy sums, on all small tables with and without a user, at any outcome."""
    epsilon, h, generator = 0.7, 2, np.random.default_rng(3)
    largest_loss, largest_shift = 0.0, 0.0
    values = (0.0, 0.3, 0.5, 1.0)
    for size, others in itertools.product((1, 2), ((), (0.2,), (0.0, 1.0, 0.6))):
        for user in itertools.combinations_with_replacement(values, size):
            before, after = add_up(others, noise), add_up((*others, *user), noise)
            if noise is LAPLACE:
                outcomes = np.vstack(
                    [generator.normal(scale=9.0, size=(200, 3)), before - 50.0, after + 50.0]
                )
                losses = (np.abs(outcomes - before) - np.abs(outcomes - after)).sum(axis=1) * epsilon / h
                largest_loss = max(largest_loss, np.abs(losses).max())
            largest_shift = max(largest_shift, np.linalg.norm(after - before))
    if noise is LAPLACE:
        assert largest_loss == pytest.approx(epsilon, rel=1e-9)
    else:  # Gaussian noise: the loss is that of a shift by so much, which its sigma is calibrated to.
        assert largest_shift == pytest.approx(h, rel=1e-9)


def test_the_noise_is_least_at_worst_and_a_sum_split_from_the_rows_has_more():
    factors = {
        noise: [
            variance.compute_noise_factor(p, share * p * (1.0 - p), noise)
            for p, share in itertools.product(np.linspace(0.0, 1.0, 51), np.linspace(0.0, 1.0, 21))
        ]
        for noise in (LAPLACE, GAUSSIAN)
    }
    assert max(factors[LAPLACE]) == max(factors[GAUSSIAN]) == 1.0
    assert all(np.array(factors[GAUSSIAN]) <= np.array(factors[LAPLACE]))
    # phi in its three coefficients is (t - p)^2 - s^2.
    low, middle, high = variance.find_phi(0.3, 0.1)
    for t in (0.0, 0.4, 1.0):
        assert np.dot((low, middle, high), add_up([t], LAPLACE)) == pytest.approx((t - 0.3) ** 2 - 0.1)


ROWS = {"a": [30.0], "b": [7.0, 1.0, -2.0], "c": [4.0, 9.0, 0.5, 6.0], "d": [3.0, 8.0]}


def test_the_error_on_a_table_is_that_of_all_draws_of_rows():
    """Bias and scatter of a bound to first order: exact for the bias, which has the mean's own error in it."""
    frame = pd.DataFrame([(user, v) for user, values in ROWS.items() for v in values], columns=["u", "v"])
    data = to_dataset(frame, user="u", value="v", disclosure="public")
    parameters = PlanParameters(1.0, lines="variance", lower=-1.0, upper=10.0, **choose_defaults(data))
    problem, _, summary = mean_lines.build_mean_problem(data, parameters)
    bounds = np.arange(1.0, 5.0)
    kept_rows = variance.KeptRows.from_values(problem, data.values, summary.clamped_values, bounds)
    error = kept_rows.linearise(LAPLACE, 2.0)
    for h, shift in zip(range(1, 5), error.shift, strict=True):
        draws = itertools.product(*(itertools.combinations(v, min(h, len(v))) for v in ROWS.values()))
        variances = [np.var(np.clip(np.concatenate(rows), -1.0, 10.0)) for rows in draws]
        assert shift == pytest.approx(np.mean(variances) - np.var(frame["v"]))
    # Both means of kept rows and their covariance, over (U - L), over all draws.
    for index, h in enumerate(range(1, 5)):
        draws = itertools.product(*(itertools.combinations(v, min(h, len(v))) for v in ROWS.values()))
        kept = [(np.clip(np.concatenate(rows), -1.0, 10.0) + 1.0) / 11.0 for rows in draws]
        pairs = np.array([(t.mean(), (t**2).mean()) for t in kept]).T
        (mean_variance, covariance), (_, square_variance) = np.cov(pairs, bias=True)
        assert kept_rows.means[index] == pytest.approx(pairs[0].mean())
        assert kept_rows.mean_squares[index] == pytest.approx(pairs[1].mean())
        assert kept_rows.mean_variances[index] == pytest.approx(mean_variance, abs=1e-12)
        assert kept_rows.square_variances[index] == pytest.approx(square_variance, abs=1e-12)
        assert kept_rows.covariances[index] == pytest.approx(covariance, abs=1e-12)
    assert error.sampling_variance[-1] == pytest.approx(0.0, abs=1e-12)


def simulate(data, line, lower, upper, noise, runs):
    """Release the variance of a line, rows drawn anew in every run, without any of our code, shape (runs, 50)."""
    generator, values = np.random.default_rng(11), np.clip(data.values.values, lower, upper)
    sizes, released = data.values.rows_per_user, []
    users, ranks = np.repeat(np.arange(sizes.size), sizes), np.concatenate([np.arange(s) for s in sizes])
    draw = generator.laplace if noise is LAPLACE else generator.normal
    for _ in range(runs):
        order = np.lexsort((generator.random(values.size), users))
        kept = (values[order][ranks < line.bound] - lower) / (upper - lower)
        noisy = add_up(kept, noise) + draw(scale=line.bound * math.sqrt(line.v), size=(50, 3))
        released.append(read_off(noisy, noise) * (upper - lower) ** 2)
    return np.array(released)


def measure(released, truth):
    """Return the root mean square error of runs, shape (runs, ...), and four of its standard errors."""
    squares = ((released - truth) ** 2).reshape(len(released), -1).mean(axis=1)
    error = math.sqrt(squares.mean())
    return error, 4.0 * squares.std() / math.sqrt(squares.size) / 2.0 / error


@pytest.mark.long_but(
    "variance-1.0-100.0-NoiseKind.LAPLACE", "standard deviation-3.0-60.0-NoiseKind.GAUSSIAN"
)
@NOISES
@pytest.mark.parametrize(
    ("statistic", "epsilon", "upper"),
    [
        ("variance", 1.0, 100.0),
        ("variance", 0.05, 100.0),
        ("standard deviation", 3.0, 60.0),
        ("standard deviation", 0.1, 100.0),
    ],
)
def test_the_promised_error_is_that_of_many_releases(statistic, epsilon, upper, noise):
    plan = ss.plan_bounds(SHOP, lines=statistic, epsilon=epsilon, lower=0, upper=upper, **OF_NOISE[noise])
    (line,) = plan.solution.lines
    released = simulate(SHOP, line, 0.0, upper, noise, 400)
    truth = np.var(SHOP.values.values)
    if statistic != "variance":
        released, truth = np.sqrt(released), math.sqrt(truth)
    assert line.planned_line.reference_value == pytest.approx(truth)
    measured, half_width = measure(released, truth)
    assert abs(line.error - measured) <= half_width + 0.005 * measured
    if epsilon < 0.5 and noise is GAUSSIAN:  # Where noise is much of it, the first order is not its error.
        first_order = math.sqrt(line.planned_line.curve.find_optimum(np.array([line.v])).squared_errors[0])
        assert abs(first_order / measured - 1.0) > 0.1


@NOISES
@pytest.mark.parametrize("is_root", [False, True])
@pytest.mark.parametrize("noise_scale", [1.0, 8.0, 60.0, 400.0])
def test_the_error_of_a_release_is_that_of_drawn_noises_and_means(noise_scale, is_root, noise):
    generator, rows, width, true_variance = np.random.default_rng(4), 300.0, 7.0, 0.05
    means, covariance = [0.3, 0.15], np.array([[4e-4, 3e-4], [3e-4, 5e-4]])
    moments = [*means, covariance[0, 0], covariance[1, 1], covariance[0, 1]]
    kept_rows = variance.KeptRows(*np.array([[2.0], [rows], *([m] for m in moments)]), true_variance, width)
    first, second = generator.multivariate_normal(means, covariance, 400_000).T * rows
    sums = np.stack(
        [rows - 2.0 * first + second, noise.middle_weight * 2.0 * (first - second), second], axis=1
    )
    draw = generator.laplace if noise is LAPLACE else generator.normal
    released = read_off(sums + draw(scale=2.0 * noise_scale, size=sums.shape), noise) * width**2
    truth = true_variance * width**2
    if is_root:
        released, truth = np.sqrt(released), math.sqrt(truth)
    measured, half_width = measure(released, truth)
    error = math.sqrt(kept_rows.measure_release(2.0, noise_scale, noise, is_root))
    assert abs(error - measured) <= half_width + 0.005 * measured


def test_errors_between_the_points_of_a_curve_are_those_of_releases():
    (line,) = ss.variance_bound(SHOP, epsilon=1, lower=0, upper=100).solution.lines
    curve = line.planned_line.curve
    v = np.geomspace(1e-3, 1e12, 23)
    exact = curves.measure_squared_errors(curve, v)
    assert curves.estimate_squared_errors(curve, v) == pytest.approx(exact, rel=0.02)
    # The plan's own figure of what is needed leads to the target error.
    settings = {"lower": 0, "upper": 100, "objective": "least epsilon"}
    plan = ss.plan_bounds(SHOP, lines="standard deviation within 30%", epsilon=1, **settings)
    assert 0.9999 < plan.solution.lines[0].error_ratio <= 1.0


@NOISES
def test_the_first_order_at_the_worst_values_is_no_less_than_any_error(noise):
    one, none = np.ones(1), np.zeros(1)
    for noise_share in (0.003, 0.03, 0.3):
        first_order = noise_share * math.sqrt(noise.unit_variance)
        for mean, share in itertools.product((0.0, 0.01, 0.05, 0.2, 0.5), (0.0, 0.1, 0.6, 1.0)):
            v = share * mean * (1.0 - mean)
            moments = one, one * 1e4, one * mean, one * (mean**2 + v), none, none, none
            squared_error = variance.KeptRows(*moments, v, 1.0).measure_release(
                1.0, noise_share * 1e4, noise, False
            )
            assert math.sqrt(squared_error) <= first_order


def test_private_values_are_not_read_for_the_bound_and_lack_nothing_else():
    settings = {"epsilon": 1, "lower": 0, "upper": 100}
    private = ss.variance_bound(
        SHOP.values and samples.FOLDER / "shop_events.csv", user="user_id", value="amount", **settings
    )
    public = ss.variance_bound(SHOP, **settings)
    assert private.parameters.variance_source is VarianceSource.WORST_CASE
    # At the worst values noise and scatter are larger.
    assert private.solution.lines[0].error > public.solution.lines[0].error
    spread = [v for v in (0.0, 1.0) for _ in range(50)]
    skewed = [0.0] * 85 + [1.0] * 15
    for values in (spread, skewed):
        squares = (np.array(values) - np.mean(values)) ** 2
        assert np.var(squares) <= variance.MAX_VARIANCE_OF_SQUARES + 1e-12
    assert np.var((np.array(skewed) - 0.15) ** 2) > 0.99 * variance.MAX_VARIANCE_OF_SQUARES


def test_a_root_is_no_second_release_and_some_programs_have_neither():
    for settings, message in (
        ({"lines": "variance; standard deviation"}, "are one release"),
        ({"lines": "variance", "program": "Tumult"}, "no program in Tumult"),
        ({"lines": "variance", "upper": None, "lower": None}, "needs the range"),
    ):
        with pytest.raises(InvalidInput, match=message):
            ss.plan_bounds(SHOP, **({"epsilon": 1, "lower": 0, "upper": 100} | settings))
    plan = ss.plan_bounds(SHOP, lines="users; variance", epsilon=0.05, lower=0, upper=1000)
    assert "is of little use here" in plan.answer.detail
    with pytest.raises(InvalidInput, match="would split"):
        plan.code("bigquery")
    same = to_dataset(
        pd.DataFrame({"u": [1, 1, 2], "v": [4.0] * 3}), user="u", value="v", disclosure="public"
    )
    with pytest.raises(InvalidInput, match="All values are the same") as refused:
        ss.plan_bounds(same, lines="standard deviation", epsilon=1, lower=0, upper=10)
    # The way out that it names is one.
    named_lines = refused.value.problems[0].remedy.rpartition(": ")[2]
    (line,) = ss.plan_bounds(same, lines=named_lines, epsilon=1, lower=0, upper=10).solution.lines
    assert (line.label, line.planned_line.target_error) == ("variance", 10.0)
