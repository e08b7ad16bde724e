"""Shares in whole parts, with bounds and errors computed anew; and plans with a quantile against brute force."""

import functools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpcore
from dpcore import quantile
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.plan import table
from dpcore.plan.answer.words import describe_coverage
from dpcore.plan.least_sum import evaluate_split, find_least_sum
from dpcore.plan.lines import LineStatistic
from dpcore.plan.parameters import NUM_PARTS, PlanParameters
from dpcore.plan.solution import allocate_lines
from tests.dpcore.plan.test_least_sum import brute_force, random_plan

SHOP = samples.load("shop-events")
LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
ALL = "users; rows; sum; mean; quantile 0.75; users per group; rows per group; sums per group"


def plan_lines_of(text, data=SHOP, noise=LAPLACE, **settings):
    delta = None if noise is LAPLACE else 1e-6
    usual = {"epsilon": 1.0, "lines": text, "lower": 0.0, "upper": 100.0, "mechanism": noise, "delta": delta}
    parameters = PlanParameters(**{**usual, **settings})
    return parameters, table.plan_lines(data, parameters)


def find_split(parameters, planned):
    curves, weights = [item.curve for item in planned], np.array([item.weight for item in planned])
    return find_least_sum(curves, weights, parameters.budget)


@pytest.mark.long_but("NoiseKind.LAPLACE")
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_a_program_draws_no_less_noise_than_the_shares_say_and_errors_are_those_of_its_noise(noise):
    parameters, planned = plan_lines_of(ALL.replace("quantile 0.75; ", ""), noise=noise)
    split = find_split(parameters, planned)
    lines = allocate_lines(SHOP, parameters, planned, split.shares)
    whole_total = parameters.budget.total
    assert sum(Fraction(line.spent_budget) for line in lines) == Fraction(whole_total)
    assert sum(line.num_parts for line in lines) == NUM_PARTS
    lines_on_curves = []
    for line, share in zip(lines, split.shares, strict=True):
        # Laplace noise of an epsilon, Gaussian noise of a rho = 1 / (2 sigma^2), each at sensitivity 1.
        scale = 1.0 / line.spent_budget if noise is LAPLACE else math.sqrt(0.5 / line.spent_budget)
        assert line.v == pytest.approx(scale**2, rel=1e-9)  # The total has 32 binary digits.
        assert line.share == pytest.approx(share, abs=2.0 / NUM_PARTS)
        best = line.planned_line.curve.find_optimum(np.array([line.v]))
        least = math.sqrt(best.squared_errors[0])
        # Pairs of bounds that the curve, and so the proof, does not have may be better.
        has_all_pairs = line.planned_line.line.statistic is not LineStatistic.GROUP_SUMS
        lines_on_curves.append(line if has_all_pairs else replace(line, curve_error=least))
        if not has_all_pairs:
            assert line.error <= least
            continue
        if line.planned_line.line.statistic is not LineStatistic.SUM:
            # `test_moved_mean.py` has the error of a mean after it is moved into its range.
            assert (line.bound, line.curve_error) == (best.bounds[0], pytest.approx(least))
            continue
        # No user's total: few digits, and hardly more error, which is that of the bound as it is written.
        amounts = line.planned_line.curve.amounts
        assert len(Decimal(repr(line.bound)).normalize().as_tuple().digits) <= 4
        assert len(Decimal(repr(float(best.bounds[0]))).normalize().as_tuple().digits) > 4
        assert least * (1.0 - 1e-12) <= line.error <= 1.001 * least
        noise_variance = (2.0 if noise is LAPLACE else 1.0) * line.bound**2 * line.v
        cut = float(np.maximum(amounts.values - line.bound, 0.0) @ amounts.users)
        assert line.error == pytest.approx(math.sqrt(cut**2 + noise_variance))
    curve_sum = sum(line.planned_line.weight * line.curve_error**2 for line in lines_on_curves)
    assert split.certificate.lower_bound <= curve_sum * (1.0 + 1e-12)
    assert curve_sum == pytest.approx(split.certificate.value, rel=2.1e-3)


@pytest.mark.long_but("1.0")
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_bound_on_an_amount_is_what_one_user_adds(sign):
    # One row per user and group, no amount of fewer than seven digits: users' totals are their amounts.
    amounts = 100.0 + np.arange(200.0) + 1.0 / 7.0
    amounts[::2] *= sign
    frame = pd.DataFrame({"u": np.arange(200).astype(str), "g": "one", "v": amounts})
    data = to_dataset(frame, user="u", value="v", group="g")
    parameters, planned = plan_lines_of("sum within 50; sums per group within 50", data, epsilon=50.0)
    of_sum, of_groups = allocate_lines(data, parameters, planned, [0.5, 0.5])
    for bound in (of_sum.bound, of_groups.second_bound):
        assert bound > 0.0
        assert len(Decimal(repr(bound)).normalize().as_tuple().digits) <= 4
    # Errors are those at the bounds as they are written: what is cut, and noise of that bound.
    for one, bound in ((of_sum, of_sum.bound), (of_groups, of_groups.second_bound)):
        cut = float((amounts - np.clip(amounts, -bound, bound)).sum())
        assert one.error == pytest.approx(math.sqrt(cut**2 + 2.0 * bound**2 * one.v), rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_no_pair_of_bounds_on_sums_per_group_errs_less_than_that_of_a_plan(noise):
    parameters, planned = plan_lines_of("users; sums per group", noise=noise, epsilon=2.0)
    _, line = allocate_lines(SHOP, parameters, planned, [0.3, 0.7])
    pairs = SHOP.pairs
    num_groups_of = np.bincount(pairs.user_codes)[pairs.user_codes]

    def compute_error(groups, amount):
        chance, bounded = np.minimum(1.0, groups / num_groups_of), np.minimum(pairs.sums, amount)
        bias, variance = (
            np.bincount(pairs.task_codes, values, pairs.num_tasks)
            for values in (pairs.sums - chance * bounded, chance * (1.0 - chance) * bounded**2)
        )
        norm = amount * (groups if noise is LAPLACE else math.sqrt(groups))
        noise_variance = noise.unit_variance * norm**2 * line.v
        return math.sqrt(float(np.mean(bias**2 + variance)) + noise_variance)

    assert line.error == pytest.approx(compute_error(line.bound, line.second_bound), rel=1e-9)
    amounts = line.second_bound * np.geomspace(0.5, 2.0, 141)
    smallest = min(compute_error(groups, amount) for groups in range(1, 40) for amount in amounts)
    # The amount is rounded up to three digits. The nearest candidate of the curve errs more.
    assert line.error <= 1.0001 * smallest
    assert (
        math.sqrt(line.planned_line.curve.find_optimum(np.array([line.v])).squared_errors[0])
        > 1.0001 * smallest
    )


@pytest.mark.long
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_a_quantile_has_its_exact_error_and_never_more_than_its_share(noise):
    parameters, planned = plan_lines_of("rows; quantile 0.75", noise=noise, program=Program.PYTHON)
    rows, one = allocate_lines(SHOP, parameters, planned, [0.5, 0.5])
    assert 1 <= one.num_parts <= NUM_PARTS // 2 == rows.num_parts
    # epsilon-DP by the exponential mechanism is epsilon^2 / 8-zCDP, Cesar and Rogers 2021.
    epsilon = one.spent_budget if noise is LAPLACE else math.sqrt(8.0 * one.spent_budget)
    (problem,) = one.planned_line.program_problems
    exact = quantile.compute_output(
        problem.with_changes(epsilon=epsilon), quantile.WeightKind.SMOOTH, one.bound
    ).expected_rank_error
    assert one.error == pytest.approx(exact)
    # OpenDP and Tumult count rows, at most a whole number of each user: the error is averaged over subsamples.
    for program in (Program.OPENDP, Program.TUMULT):
        parameters, planned = plan_lines_of("rows; quantile 0.75", noise=noise, program=program)
        _, other = allocate_lines(SHOP, parameters, planned, [0.5, 0.5])
        epsilon = other.spent_budget if noise is LAPLACE else math.sqrt(8.0 * other.spent_budget)
        (problem,) = other.planned_line.program_problems
        problem = replace(problem, epsilon=epsilon, num_subsamples=200, first_seed=10_000)
        capped = quantile.compute_output(problem, quantile.WeightKind.CAP, other.bound)
        assert other.bound == round(other.bound)
        assert other.error == pytest.approx(capped.expected_rank_error, rel=0.03)  # of 400 subsamples


@pytest.mark.long
@pytest.mark.parametrize("program", [Program.OPENDP, Program.TUMULT, Program.PIPELINEDP, Program.BEST])
def test_a_quantile_alone_has_the_error_and_the_bound_of_its_page(program):
    settings = {"user": "user_id", "value": "amount", "epsilon": 0.4, "lower": 0.0, "upper": 100.0}
    settings |= {"program": program, "disclosure": "public"}
    events = samples.FOLDER / "shop_events.csv"
    plan = dpcore.plan_bounds(events, lines="quantile 0.75", **settings)
    page = dpcore.quantile_bound(events, quantiles="0.75", neighbours="add_or_remove_user", **settings)
    # The plan rounds epsilon down to 32 binary digits.
    assert float(plan.bound["error"].iloc[0]) == pytest.approx(page.error, rel=1e-6)
    assert float(plan.bound["bound"].iloc[0]) == page.bound


def test_a_line_best_published_as_0_is_dropped_and_the_others_get_its_share():
    frame = pd.DataFrame({"u": ["a"] * 3, "v": [1.0, 2.0, 3.0]})
    data = to_dataset(frame, user="u", value="v")
    parameters, planned = plan_lines_of("rows; users within 1; mean", data, epsilon=0.1)
    rows, users, mean = allocate_lines(data, parameters, planned, [0.3, 0.7, 0.0])
    # Any whole bound has noise of at least sqrt(2) / 0.03 = 47 on what is 3.
    assert rows.is_dropped
    assert (rows.bound, rows.error, rows.spent_budget) == (0.0, 3.0, 0.0)
    # Of the others, too, none is worth its noise: but a mean cannot be published as 0.
    assert users.is_dropped
    assert mean.num_parts == NUM_PARTS
    alone = plan_lines_of("rows; rows per group", SHOP)
    assert [line.num_parts for line in allocate_lines(SHOP, *alone, [0.0, 1.0])] == [0, NUM_PARTS]


def test_a_proof_says_which_bounds_it_covers():
    parameters, planned = plan_lines_of(ALL)
    which = {item.line.label for item in planned if not item.curve.has_all_bounds}
    # Amounts per group and ends of a quantile's ladder are tried at some points; all else is whole, or in closed form.
    assert which == {"quantile 0.75", "sums per group"}
    assert all(name in describe_coverage(planned) for name in which)
    assert "and all bounds" in describe_coverage(plan_lines_of("users; rows; sum; mean; rows per group")[1])
    assert find_split(parameters, planned).certificate is None


def test_a_mean_has_the_noise_that_a_library_adds():
    # Half of the line's budget on sum around the middle, half on rows: linearised by hand, at one cap for both.
    # BigQuery has a third for each, and a third for users: 3 / epsilon, where a count has 2 / epsilon, which is v = 1.
    for program, noise, scale in (
        (Program.TUMULT, LAPLACE, math.sqrt(2.0) / 0.5),
        (Program.TUMULT, GAUSSIAN, 1.0 / math.sqrt(0.5)),
        (Program.PIPELINEDP, LAPLACE, math.sqrt(2.0) / 0.5),
        (Program.PIPELINEDP, GAUSSIAN, 1.0 / math.sqrt(0.5)),
        (Program.BIGQUERY, GAUSSIAN, math.sqrt(2.0) * 3.0 / 2.0),
    ):
        _, (line,) = plan_lines_of("mean", noise=noise, program=program)
        best = line.curve.find_optimum(np.ones(1))
        h = best.bounds[0]
        kept = np.minimum(SHOP.histogram.sizes, h) @ SHOP.histogram.users
        mean = np.clip(SHOP.values.values, 0.0, 100.0).mean()
        by_hand = (scale * h / kept) ** 2 * (50.0**2 + (mean - 50.0) ** 2)
        assert best.noise_slopes[0] == pytest.approx(by_hand, rel=1e-9)


@functools.cache
def rank_curve(number, noise):
    """A quantile's curve of a random table: ties, no ties, or all rows of a user alike."""
    generator = np.random.default_rng(number)
    sizes = np.clip(np.ceil(generator.pareto(0.9, int(generator.integers(3, 40))) * 2.0), 1, 60).astype(int)
    values = (
        generator.choice([0.0, 1.0, 5.0], sizes.sum()),
        generator.uniform(0.0, 10.0, sizes.sum()),
        np.repeat(generator.uniform(0.0, 10.0, sizes.size), sizes),
    )[number % 3]
    frame = pd.DataFrame({"u": [f"u{k}" for k in np.repeat(np.arange(sizes.size), sizes)], "v": values})
    text = f"quantile {(0.1, 0.5, 0.9)[number // 3 % 3]}"
    _, (line,) = plan_lines_of(text, to_dataset(frame, user="u", value="v"), noise, upper=10.0)
    return line.curve


@pytest.mark.long
def test_no_split_of_a_grid_is_better_with_quantiles_among_the_lines():
    for number in range(18):
        curves, weights, budget = random_plan(number)
        generator = np.random.default_rng(number)
        for j in range(1 + number // 12):  # one or two of the two to four lines
            curves[j] = rank_curve(int(generator.integers(6)), budget.mechanism)
            weights[j] = 10.0 ** generator.uniform(-1.0, 1.0) / 0.05**2
        split = find_least_sum(curves, weights, budget)
        assert split.certificate is None  # best found, no proof
        assert split.shares.sum() == pytest.approx(1.0)
        best = brute_force(curves, weights, budget)
        assert evaluate_split(curves, weights, budget, split.shares)[0] <= best * (1.0 + 1e-4), number
