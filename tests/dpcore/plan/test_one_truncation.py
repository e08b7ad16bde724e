"""One bound on rows for all lines: every error by enumerating the draws, the best bound by brute force over shares."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from dpcore import mean
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.mean import private_counts
from dpcore.plan import (
    AllocatedLine,
    Objective,
    PlanParameters,
    allocate_lines,
    find_common_bound,
    find_least_sum,
    sum_weighted_squares,
    table,
)
from dpcore.plan.answer import solve, words
from dpcore.plan.one_truncation import _compute_alpha_beta, find_bound_over_groups

LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
ROWS = {
    "a": [("x", 3.0)],
    "b": [("x", 7.0), ("x", 1.0), ("y", -2.0)],
    "c": [("y", 4.0), ("y", 14.0), ("x", 0.5), ("z", 6.0)],
}
TEXT = "users; rows; sum; rows per group"


def asked(text=TEXT, noise=LAPLACE, data=None, **given):
    frame = pd.DataFrame(
        [(user, *row) for user, rows in ROWS.items() for row in rows], columns=["u", "g", "v"]
    )
    held = to_dataset(frame, user="u", value="v", group="g") if data is None else data
    delta = None if noise is LAPLACE else 1e-6
    usual = {"epsilon": 1.0, "lines": text, "lower": -1.0, "upper": 10.0, "mechanism": noise, "delta": delta}
    parameters = PlanParameters(**{**usual, **given})
    return held, parameters, table.plan_lines(held, parameters)


def moments(numbers):
    return np.mean(numbers), np.var(numbers)


def test_errors_without_noise_are_those_of_all_draws_of_rows():
    held, parameters, planned = asked()
    caps = np.arange(1.0, 5.0)
    alphas = [_compute_alpha_beta(held, parameters, line, caps)[0] for line in planned]
    for at, h in enumerate((1, 2, 3, 4)):
        subsets = [list(itertools.combinations(rows, min(h, len(rows)))) for rows in ROWS.values()]
        assert alphas[0][at] == 0.0
        assert alphas[1][at] == sum(max(len(rows) - h, 0) for rows in ROWS.values()) ** 2
        # Users are independent: expectations and variances of what each adds, values clamped to [-1, 10].
        of_sums = [moments([sum(np.clip(v, -1, 10) for _, v in s) for s in of]) for of in subsets]
        true = sum(v for rows in ROWS.values() for _, v in rows)
        by_hand = (sum(m for m, _ in of_sums) - true) ** 2 + sum(v for _, v in of_sums)
        assert alphas[2][at] == pytest.approx(by_hand)
        each = []
        for group in "xyz":
            counts = [moments([sum(g == group for g, _ in s) for s in of]) for of in subsets]
            rows = sum(g == group for rows in ROWS.values() for g, _ in rows)
            each.append((sum(m for m, _ in counts) - rows) ** 2 + sum(v for _, v in counts))
        assert alphas[3][at] == pytest.approx(np.mean(each))


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_no_common_bound_and_no_shares_of_a_grid_are_better(noise):
    shares = np.array([s for s in itertools.product(range(1, 20), repeat=3) if sum(s) == 20]) / 20.0
    for epsilon in (0.5, 3.0, 20.0) if noise is LAPLACE else (1.0,):
        held, parameters, planned = asked(
            "users within 1; rows within 1; sum within 5", noise, epsilon=epsilon
        )
        found = find_common_bound(held, parameters, planned)
        v = parameters.budget.divide(shares)
        variance = noise.unit_variance
        best = math.inf
        for h in range(1, 5):
            # What a user moves: 1 user, h rows, and h values of at most 10.
            noises = variance * np.array([1.0, h * h, (10.0 * h) ** 2]) * v
            alpha = [
                float(_compute_alpha_beta(held, parameters, line, np.array([float(h)]))[0][0])
                for line in planned
            ]
            weights = np.array([line.weight for line in planned])
            best = min(best, float(np.min((alpha + noises) @ weights)))
        assert found.has_all_bounds
        assert found.value <= best * (1.0 + 1e-12)
        assert found.value == pytest.approx(best, rel=0.03)
        assert found.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("objective", [Objective.LARGEST, Objective.REACH])
def test_no_common_bound_is_better_by_the_other_objectives(objective, noise):
    held, parameters, planned = asked(
        "users within 1; rows within 3; sum within 9; mean within 2", noise, objective=objective, epsilon=2.0
    )
    found = find_common_bound(held, parameters, planned)
    wanted = np.array([line.target_error for line in planned])
    shares = np.array([s for s in itertools.product(range(1, 30), repeat=3) if sum(s) < 30])
    shares = np.column_stack((shares, 30 - shares.sum(axis=1))) / 30.0
    least = []
    for h in range(1, 5):
        parts = [_compute_alpha_beta(held, parameters, line, np.array([float(h)])) for line in planned]
        alpha, beta = np.array([a[0] for a, _ in parts]), np.array([b[0] for _, b in parts])
        if objective is Objective.LARGEST:
            v = parameters.budget.divide(shares)
            least.append(float(np.min(np.max(np.sqrt(alpha + beta * v) / wanted, axis=1))))
        else:  # Amounts for errors just as wanted; epsilon is what they add up to.
            left = wanted**2 - alpha
            amounts = (
                (beta / left) ** (0.5 if noise is LAPLACE else 1.0) if (left > 0.0).all() else [math.inf]
            )
            least.append(parameters.budget.convert_to_epsilon(float(np.sum(amounts))))
    slack = 0.1 if objective is Objective.LARGEST else 1e-6
    assert min(least) * (1.0 - slack) <= found.value <= min(least) * (1.0 + 1e-6)
    assert int(np.argmin(least)) + 1 == found.max_rows
    assert found.shares.sum() == pytest.approx(1.0)
    if objective is Objective.LARGEST:
        assert found.errors / wanted == pytest.approx(np.full(4, found.value))
    else:
        assert found.errors == pytest.approx(wanted)


@pytest.mark.parametrize("objective", Objective)
def test_what_it_costs_is_parted_into_sharing_a_bound_and_bounding_rows(objective):
    shop = samples.load("shop-events")
    parted = {}
    for text in ("users within 10; rows within 100; mean within 3", "sum within 5000", f"{TEXT} within 99"):
        text = text.replace("; ", " within 200; ") if TEXT in text else text
        held, parameters, planned = asked(text, data=shop, lower=0.0, upper=100.0, objective=objective)
        plan = solve(held, parameters, planned)
        found = find_common_bound(held, parameters, planned, plan.budget)
        own = {
            Objective.SUM: sum_weighted_squares(plan.lines),
            Objective.LARGEST: plan.summarise_errors(plan.lines),
            Objective.REACH: plan.budget.epsilon,
        }[objective]
        parted[text] = found.compute_costs(own)[1:]
        said = words.describe_common_bound(found, plan)
        assert all(f"{wording.number(times)} times" in said for times in parted[text])
    (sharing, rows), (sharing_of_one, rows_of_sum), (both, more) = parted.values()
    # Lines that bound rows anyway lose by sharing alone; a single line loses by bounding rows alone.
    assert sharing > 1.0
    assert rows == pytest.approx(1.0, rel=1e-3)
    assert sharing_of_one == pytest.approx(1.0, rel=1e-4)
    assert rows_of_sum > 1.05
    assert both > 1.0
    assert more != pytest.approx(1.0, rel=1e-3)


def test_it_costs_more_than_a_bound_per_line_and_is_that_bound_where_there_is_one_line():
    shop = samples.load("shop-events")
    for text in ("rows", "mean"):
        held, parameters, planned = asked(text, data=shop, lower=0.0, upper=100.0)
        found = find_common_bound(held, parameters, planned)
        (alone,) = allocate_lines(held, parameters, planned, [1.0])
        assert (found.max_rows, found.errors[0]) == (alone.bound, pytest.approx(alone.error))
    problem = private_counts.PrivateCountsProblem(
        shop.histogram,
        1.0,
        100.0,
        float(np.clip(shop.values.values, 0, 100).var(ddof=1)),
        float(np.clip(shop.values.values, 0, 100).mean()),
    )
    assert found.max_rows == mean.best_cap(problem).max_contributions
    held, parameters, planned = asked("rows; mean; users", data=shop, lower=0.0, upper=100.0)
    weights = np.array([line.weight for line in planned])
    own = find_least_sum([line.curve for line in planned], weights, parameters.budget)
    assert 1.0 <= find_common_bound(held, parameters, planned).compute_costs(own.certificate.value)[0] < 2.0
    assert sum_weighted_squares(allocate_lines(held, parameters, planned, own.shares)) == pytest.approx(
        own.certificate.value, rel=1e-4
    )


def test_what_is_not_known_under_one_truncation_is_refused():
    with pytest.raises(InvalidInput) as caught:
        find_common_bound(*asked("median; users per group; rows"))
    assert len(caught.value.problems) == 2
    with pytest.raises(InvalidInput, match="lower and upper"):
        find_common_bound(*asked("sum", lower=None, upper=None))


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_one_bound_on_rows_in_all_groups_leaves_no_room_for_many_rows_in_many(noise):
    rows = [("a", "g0")] * 10 + [("b", f"g{k}") for k in range(10)]
    held = to_dataset(pd.DataFrame(rows, columns=["u", "g"]), user="u", group="g")
    _, parameters, (line,) = asked("rows per group", noise, held)
    bound, error = find_bound_over_groups(held, parameters, line, 1e-6)
    # Nobody has more than 10 rows: 10 v^(1/2) of noise, where a pair that cuts nobody has ten times that, or in L2
    # the root of ten times.
    assert bound == 10
    assert error == pytest.approx(10e-3 * math.sqrt(noise.unit_variance))
    pair = math.sqrt(line.curve.find_best([1e-6]).squared_errors[0])
    assert pair == pytest.approx(error * (10.0 if noise is LAPLACE else math.sqrt(10.0)))
    of_line = AllocatedLine(line, 1, 1.0, 1e-6, 10.0, 10.0, pair)
    said = words.describe_bound_over_groups(of_line, bound, error)
    assert ("90" if noise is LAPLACE else "68") in said
    assert words.describe_bound_over_groups(of_line, bound, pair) == ""
