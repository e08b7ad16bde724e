"""The best split against brute force over shares, and its parts against the questions that they come from."""

import functools
import itertools
import math

import numpy as np
import pytest

from dpcore import total
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.programs import DrawnNoise, Program
from dpcore.data.totals_per_user import Amounts
from dpcore.plan import curves as plan_curves
from dpcore.plan.curves import BoundCurve, TotalCurve
from dpcore.plan.least_sum import evaluate_split, find_least_sum, find_needed_amounts, split_by_largest_error
from dpcore.plan.parameters import Budget

LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
FINE = {2: 400, 3: 40, 4: 16}


def random_amounts(generator, kind):
    users = int(generator.integers(1, 300))
    if kind == "near-equal":
        values = 7.0 + generator.integers(0, 2, users)
    elif kind == "giant":
        values = np.append(generator.integers(1, 5, users), generator.choice([1e3, 1e6]))
    elif kind == "kinks":
        values = np.repeat([1.0, 30.0, 900.0], generator.integers(1, 200, 3))
    else:
        values = np.ceil(generator.pareto(0.8, users) * 3.0)
    return Amounts.from_totals(values)


def random_plan(number):
    """Two to four lines, the adversarial ones among them, with weights that differ by powers of ten."""
    generator = np.random.default_rng(number)
    noise = (LAPLACE, GAUSSIAN)[number % 2]
    epsilon = float(generator.choice([0.03, 0.3, 1.0, 4.0, 10.0]))
    budget = Budget(epsilon, noise, None if noise is LAPLACE else 1e-6)
    curves, values = [], []
    for _ in range(2 + number % 3):
        choice = generator.choice(["near-equal", "giant", "kinks", "heavy", "list"])
        if choice == "list":  # Bounds of any bias and noise: jumps as a mean or groups have them.
            bias = np.append(10.0 ** generator.uniform(-1.0, 3.0, 6), 0.0)
            curves.append(BoundCurve(bias**2, 10.0 ** generator.uniform(-3.0, 4.0, 7), np.arange(7.0)))
            values.append(100.0)
        else:
            amounts = random_amounts(generator, choice)
            is_integer = bool(generator.integers(2))
            whole_noise = noise if is_integer and number % 5 < 2 else None
            curves.append(TotalCurve(amounts, noise.unit_variance, is_integer, whole_noise))
            values.append(amounts.total)
    weights = 10.0 ** generator.uniform(-1.0, 1.0, len(curves)) / np.square(values)
    return curves, weights, budget


def brute_force(curves, weights, budget):
    """The least sum over all shares that are whole parts of 1 / FINE, none of them 0 parts or some."""
    parts = FINE[len(curves)]
    v = budget.divide(np.arange(parts + 1) / parts)
    f = [w * curve.find_optimum(v).squared_errors for w, curve in zip(weights, curves, strict=True)]
    # Shares of the last two lines are an anti-diagonal; those of the lines before are loops.
    least = math.inf
    for first in itertools.product(range(parts + 1), repeat=len(curves) - 2):
        left = parts - sum(first)
        if left >= 0:
            head = sum(f[i][s] for i, s in enumerate(first))
            least = min(least, head + float(np.min(f[-2][: left + 1] + f[-1][left::-1])))
    return least


@pytest.mark.long
def test_no_split_of_a_grid_is_better_and_no_bound_lies_above_it():
    for number in range(80):
        curves, weights, budget = random_plan(number)
        least_sum = find_least_sum(curves, weights, budget)
        best = brute_force(curves, weights, budget)
        assert least_sum.certificate.relative_gap <= 1e-4, number
        assert least_sum.certificate.lower_bound <= best * (1.0 + 1e-9), number
        assert least_sum.certificate.value <= best * (1.0 + 1e-4), number
        assert evaluate_split(curves, weights, budget, least_sum.shares)[0] == pytest.approx(
            least_sum.certificate.value
        )
        assert least_sum.shares.sum() == pytest.approx(1.0)


@functools.cache
def random_totals(number):
    return random_amounts(
        np.random.default_rng(number), ["near-equal", "giant", "kinks", "heavy"][number % 4]
    )


@pytest.mark.long_for("False-Program.OPENDP-NoiseKind.GAUSSIAN", "True-Program.OPENDP-NoiseKind.GAUSSIAN")
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize(
    ("whole", "program"), [(False, Program.OPENDP), (True, Program.PYTHON), (True, Program.OPENDP)]
)
def test_a_total_has_the_bound_and_the_error_of_its_own_question(noise, whole, program):
    delta = None if noise is LAPLACE else 1e-6
    for number in range(40):
        epsilon = 10.0 ** np.random.default_rng(number).uniform(-2.0, 1.5)
        amounts = random_totals(number)
        problem = total.TotalProblem(amounts, epsilon, noise, delta, Measure.RMSE, whole, program)
        whole_noise = noise if problem.noise.is_discrete else None
        best = TotalCurve(amounts, noise.unit_variance, whole, whole_noise).find_optimum(
            np.array([problem.unit_noise**2])
        )
        bound = total.find_optimal_bound(problem)
        assert math.sqrt(best.squared_errors[0]) == pytest.approx(
            float(total.compute_errors(problem, bound).rmse), rel=1e-9
        )
        assert math.sqrt(best.squared_errors[0]) == pytest.approx(
            float(total.compute_errors(problem, best.bounds[0]).rmse)
        )


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_whole_noise_has_the_variance_that_the_proof_assumes(noise):
    """Variances are summed term by term, and their second differences taken, over scales from 0.05 to 10."""
    scales, values = np.geomspace(0.05, 10.0, 400), np.arange(-600.0, 601.0)
    v, step = scales**2, 1e-3

    def variance(v):
        scaled = np.abs(values) / np.sqrt(v)[:, None]
        weights = np.exp(-scaled if noise is LAPLACE else -0.5 * scaled**2)
        return (weights @ values**2) / weights.sum(axis=1)

    at = variance(v)
    assert plan_curves.compute_noise_variance(noise.unit_variance * v, noise) == pytest.approx(at, rel=1e-9)
    assert (noise.unit_variance * v - at).min() + 1e-12 >= 0.0
    assert (noise.unit_variance * v - at).max() <= plan_curves.MAX_VARIANCE_SAVED
    bulge = (variance(v * (1.0 + step)) - 2.0 * at + variance(v * (1.0 - step))) / step**2
    assert 0.9 * plan_curves.BULGE_BY_NOISE[noise] < bulge.max() < plan_curves.BULGE_BY_NOISE[noise]


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_of_a_list_of_bounds_the_least_under_whole_noise_is_found(noise):
    generator, v = np.random.default_rng(8), 10.0 ** np.linspace(-4.0, 3.0, 300)
    for size in (1, 3, 50):
        alpha = 10.0 ** generator.uniform(-2.0, 1.5, size)
        sensitivity = np.ceil(10.0 ** generator.uniform(0.0, 1.0, size))
        beta = noise.unit_variance * sensitivity**2
        curve = BoundCurve(alpha, beta, np.arange(float(size)), whole_noise=noise)
        drawn = DrawnNoise(noise, 1.0, True)
        least = np.min(
            [a + drawn.compute_variance(s * np.sqrt(v)) for a, s in zip(alpha, sensitivity, strict=True)],
            axis=0,
        )
        assert curve.find_optimum(v).squared_errors == pytest.approx(least, rel=1e-12)


def test_a_list_of_bounds_gives_the_least_of_its_lines():
    generator = np.random.default_rng(3)
    v = np.append(10.0 ** generator.uniform(-6.0, 6.0, 500), 1e-12)
    for size in (1, 2, 7, 400):
        alpha, beta = 10.0 ** generator.uniform(-3.0, 3.0, (2, size))
        bounds = np.arange(float(size))
        best = BoundCurve(np.append(alpha, 50.0), np.append(beta, 0.0), np.append(bounds, -1.0)).find_optimum(
            v
        )
        lines = np.minimum((alpha[:, None] + beta[:, None] * v).min(axis=0), 50.0)
        assert best.squared_errors == pytest.approx(lines, rel=1e-12)


def test_counts_of_users_have_the_shares_of_a_closed_form():
    # Least sum of w_j 2 / (s_j epsilon)^2 over shares: s_j in proportion to w_j^(1/3); Gaussian to w_j^(1/2).
    for noise, power, delta in ((LAPLACE, 1 / 3, None), (GAUSSIAN, 1 / 2, 1e-6)):
        curves = [BoundCurve([0.0], [noise.unit_variance], [1.0])] * 3
        weights = np.array([1.0, 8.0, 100.0])
        least_sum = find_least_sum(curves, weights, Budget(1.0, noise, delta))
        assert least_sum.shares == pytest.approx(weights**power / np.sum(weights**power), rel=1e-6)


def test_a_line_that_is_best_published_as_0_is_dropped():
    nothing, count = TotalCurve(Amounts([3.0], [1]), 2.0, is_integer=True), BoundCurve([0.0], [2.0], [1.0])
    # One user of 3 rows: at epsilon 0.01 any noise is worse than publishing 0, whose square is 9.
    found = find_least_sum([nothing, count], np.array([1.0, 1e-3]), Budget(0.01, LAPLACE))
    assert found.shares[0] < 1e-5
    assert found.certificate.value == pytest.approx(9.0 + 1e-3 * 2.0 / 0.01**2, rel=1e-4)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_what_a_line_needs_is_inverted(noise):
    budget = Budget(1.0, noise, None if noise is LAPLACE else 1e-6)
    # Root of the noise's variance over epsilon (over mu) is the wanted error of a number of users.
    users = BoundCurve([0.0, 1e6], [noise.unit_variance, 0.0], [1.0, 0.0])
    sampled = BoundCurve([4.0, 1e6], [1.0, 0.0], [1.0, 0.0])
    wanted_values = np.array([0.5, 2.0 - 1e-9, 1e3])
    needed = find_needed_amounts([users, sampled, users], wanted_values, budget)
    root = math.sqrt(noise.unit_variance) / 0.5
    assert needed[0] == pytest.approx(root if noise is LAPLACE else root**2, rel=1e-9)
    assert needed[1] == math.inf  # sampling leaves 2, whatever the budget
    assert needed[2] == 0.0  # publishing 0 errs no more
    for number in range(0, 40, 3):
        curve = TotalCurve(random_totals(number), noise.unit_variance)
        wanted_values = np.array([0.03 * random_totals(number).total])
        (amount,) = find_needed_amounts([curve], wanted_values, budget)
        error = np.sqrt(
            curve.find_optimum(np.array([amount, amount * 0.999]) ** -float(budget.power)).squared_errors
        )
        assert error[0] <= wanted_values[0] * (1.0 + 1e-9)
        assert error[1] > wanted_values[0] * (1.0 - 1e-9)


@pytest.mark.long_but("7", "14")
@pytest.mark.parametrize("number", range(0, 60, 7))
def test_the_least_largest_error_is_the_same_number_in_every_line(number):
    curves, _, budget = random_plan(number)
    wanted = np.full(len(curves), 3.0)
    shares = split_by_largest_error(curves, wanted, budget)
    assert shares.sum() == pytest.approx(1.0)

    def ratio(split, curves=curves, wanted=wanted, budget=budget):
        v = budget.divide(split)
        return max(
            math.sqrt(c.find_optimum(v[j : j + 1]).squared_errors[0]) / wanted[j]
            for j, c in enumerate(curves)
        )

    level = ratio(shares)
    generator = np.random.default_rng(number)
    for _ in range(200):
        other = shares * np.exp(generator.normal(0.0, 0.3, shares.size))
        assert ratio(other / other.sum()) >= level * (1.0 - 1e-4), number
