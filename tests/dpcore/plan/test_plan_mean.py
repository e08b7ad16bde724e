"""A mean among the lines: the number of its own page at its share, the error of all draws, and brute force with it."""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore import mean
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.mean import Counts, Likeness, MeanParameters, Target, VarianceSource, private_counts
from dpcore.mean.answer import build_answer as mean_answered
from dpcore.mean.moved_mean import measure_caps
from dpcore.plan import curves as plan_curves
from dpcore.plan import mean_lines, shared_rows, table
from dpcore.plan.answer import build_answer
from dpcore.plan.curves import BoundCurve
from dpcore.plan.least_sum import find_least_sum
from dpcore.plan.parameters import PlanParameters, choose_defaults
from dpcore.plan.solution import allocate_lines
from tests.dpcore.plan.test_least_sum import brute_force, random_plan

SHOP = samples.load("shop-events")
SECRET = dataclasses.replace(SHOP, name="secret.csv", disclosure=Disclosure.PRIVATE)
LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
SETTINGS = {
    "public": choose_defaults(SHOP),
    "private": choose_defaults(SECRET),
    "as in the paper": {"target": Target.POPULATION, "likeness": Likeness.INDEPENDENT},
    "people like these": {"target": Target.POPULATION, "likeness": Likeness.ENTERED, "user_share": 0.35},
    "entered": {
        "target": Target.TABLE,
        "variance_source": VarianceSource.ENTERED,
        "value_variance": 300.0,
        "likeness": Likeness.FROM_VALUES,
    },
}


@pytest.mark.long_but("public", "private")
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_plan_and_mean_say_one_number_for_one_setting(setting):
    of_mean = {"variance_source": VarianceSource.FROM_VALUES, **setting}
    for epsilon in (0.3, 1.0, 4.0):
        own = mean_answered(
            SHOP, MeanParameters(epsilon, 0.0, 100.0, counts=Counts.PRIVATE, **of_mean)
        ).solution
        parameters = PlanParameters(epsilon, lines="mean within 1", lower=0.0, upper=100.0, **setting)
        (alone,) = allocate_lines(SHOP, parameters, table.plan_lines(SHOP, parameters), [1.0])
        assert alone.bound == own.cap_choice.max_contributions
        assert alone.error == pytest.approx(own.cap_standard_error, rel=1e-6)
        assert alone.curve_error == pytest.approx(own.cap_choice.standard_error, rel=1e-6)
        # Among others it has the number of its own share, whatever the whole budget is.
        more = dataclasses.replace(parameters, epsilon=4.0 * epsilon, lines="rows; mean within 1; users")
        among = allocate_lines(SHOP, more, table.plan_lines(SHOP, more), [0.5, 0.25, 0.25])[1]
        assert (among.bound, among.error) == (alone.bound, pytest.approx(alone.error, rel=1e-5))


def test_a_library_that_halves_the_share_of_a_mean_has_the_number_of_that_release():
    parameters = PlanParameters(
        1.0, lines="mean within 1", lower=0.0, upper=100.0, program=Program.TUMULT, **choose_defaults(SHOP)
    )
    (line,) = allocate_lines(SHOP, parameters, table.plan_lines(SHOP, parameters), [1.0])
    problem, value, _ = mean_lines.build_mean_problem(SHOP, parameters)
    own = mean.find_best_cap(problem)
    assert problem.released_sums is private_counts.ReleasedSums.CENTRED_SPLIT
    own_error = math.sqrt(float(measure_caps(problem, own.max_contributions).squared_error))
    assert (line.bound, line.error) == (own.max_contributions, pytest.approx(own_error, rel=1e-6))
    assert line.curve_error == pytest.approx(own.standard_error, rel=1e-6)
    assert value == pytest.approx(SHOP.values.values.mean())


def test_calls_and_pages_begin_with_what_mean_begins_with():
    lines = "users; mean within 1"
    for data in (SHOP, SECRET):
        plan = ss.plan_bounds(data, lines=lines, epsilon=1, lower=0, upper=100)
        assert {name: getattr(plan.parameters, name) for name in choose_defaults(data)} == dict(
            choose_defaults(data)
        )
        of_mean = ss.mean_bound(
            data, epsilon=plan.solution.lines[1].spent_budget, lower=0, upper=100, counts="private"
        )
        assert plan.solution.lines[1].bound == of_mean.bound
        assert plan.solution.lines[1].error == pytest.approx(of_mean.error, rel=1e-6)
        # What is assumed of users is said in the words of Mean.
        assert any(
            assumption.lower() in " ".join(plan.answer.assumptions).lower()
            for assumption in of_mean.answer.assumptions[2:4]
        )
    with pytest.raises(InvalidInput, match="cannot vary by more than"):
        PlanParameters(
            1.0,
            lines="mean",
            lower=0.0,
            upper=1.0,
            variance_source=VarianceSource.ENTERED,
            value_variance=3.0,
        )


ROWS = {"a": [30.0], "b": [7.0, 1.0, -2.0], "c": [4.0, 14.0, 0.5, 6.0]}


def test_the_error_on_a_table_is_that_of_all_draws_of_rows():
    frame = pd.DataFrame([(user, v) for user, values in ROWS.items() for v in values], columns=["u", "v"])
    data = to_dataset(frame, user="u", value="v", disclosure="public")
    parameters = PlanParameters(1.0, lines="mean within 1", lower=-1.0, upper=10.0, **choose_defaults(data))
    problem, value, _ = mean_lines.build_mean_problem(data, parameters)
    assert value == pytest.approx(frame["v"].mean())  # before clamping
    alpha, beta = mean_lines.split_mean_error(
        mean.compute_capped_error(problem, np.arange(1.0, 5.0)), LAPLACE
    )
    for h, squared_error, noise in zip(range(1, 5), alpha, beta, strict=True):
        draws = itertools.product(*(itertools.combinations(v, min(h, len(v))) for v in ROWS.values()))
        means = [np.mean(np.clip(np.concatenate(drawn_rows), -1.0, 10.0)) for drawn_rows in draws]
        assert squared_error == pytest.approx(np.mean((np.array(means) - value) ** 2))
        # The pair of sums of a user moves by h times the range; Laplace noise of that scale on both, linearised.
        kept_total = sum(min(h, len(v)) for v in ROWS.values())
        p = (np.clip(frame["v"], -1.0, 10.0).mean() + 1.0) / 11.0
        assert noise == pytest.approx(2.0 * (11.0 * h / kept_total) ** 2 * (p**2 + (1.0 - p) ** 2))


@pytest.mark.long_but("people like these-gaussian")
@pytest.mark.parametrize("noise", [{}, {"mechanism": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_plan_and_mean_say_one_number_if_users_are_clamped(setting, noise):
    """Alone, and with its share among others; thresholds of a plan lie on a grid, which costs less than 0.1 %."""
    ranged = {"lower": 20.0, "upper": 90.0, "clamp": "users", **noise}
    settings = {name: getattr(value, "value", value) for name, value in setting.items()} | ranged
    plan = ss.plan_bounds(SHOP, lines="users; mean within 1; rows", epsilon=4, **settings)
    alone = ss.plan_bounds(SHOP, lines="mean within 1", epsilon=1, **settings)
    of_mean = {"variance_source": "values", **settings}
    reply = ss.mean_bound(SHOP, epsilon=1, counts="private", program="OpenDP", **of_mean)
    assert alone.solution.lines[0].error == pytest.approx(reply.error, rel=1e-3)
    if not noise:
        line = plan.solution.lines[1]
        reply = ss.mean_bound(SHOP, epsilon=line.spent_budget, counts="private", program="OpenDP", **of_mean)
        assert line.error == pytest.approx(reply.error, rel=1e-3)
    choice = alone.answer.code.forms[0][1].releases[0].spec
    assert "clip(-LIMIT, LIMIT)" in alone.code("python")
    (own_choice,) = reply.forms.values()
    names = "clamps_users", "lower", "upper", "user_share", "quantity"
    assert [getattr(choice, name) for name in names] == [getattr(own_choice, name) for name in names]
    assert "total deviation up to ±" in str(plan.answer.facts) + plan.answer.detail + str(plan.answer.numbers)
    assert any("total deviation" in sentence for sentence in plan.answer.assumptions)
    for library in ("pipelinedp", "tumult", "bigquery"):
        with pytest.raises(InvalidInput, match="it clamps each row"):
            plan.code(library)
    with pytest.raises(InvalidInput, match="cannot clamp users"):
        ss.plan_bounds(SHOP, lines="mean", epsilon=1, **settings, program="Tumult")


def mean_curve(number, noise):
    """That of a random table, on which the size of a user tells the values or not."""
    generator = np.random.default_rng(number)
    sizes = np.clip(np.ceil(generator.pareto(0.8, int(generator.integers(2, 60))) * 2.0), 1, 400).astype(int)
    of_users = generator.uniform(0.0, 8.0, sizes.size) if number % 2 else np.minimum(sizes / 20.0, 9.0)
    values = np.repeat(of_users, sizes) + generator.uniform(0.0, 2.0, sizes.sum())
    frame = pd.DataFrame({"u": [f"u{k}" for k in np.repeat(np.arange(sizes.size), sizes)], "v": values})
    data = to_dataset(frame, user="u", value="v", disclosure="public")
    delta = None if noise is LAPLACE else 1e-6
    parameters = PlanParameters(
        1.0, lines="mean", lower=0.0, upper=10.0, mechanism=noise, delta=delta, **choose_defaults(data)
    )
    (line,) = table.plan_lines(data, parameters)
    return line.curve, line.reference_value


@pytest.mark.long
@pytest.mark.parametrize("numbers", [range(8), pytest.param(range(8, 24), marks=pytest.mark.long)])
def test_no_split_of_a_grid_is_better_with_means_on_their_tables_and_none_below_the_bound(numbers):
    for number in numbers:
        curves, weights, budget = random_plan(number)
        curves[0], value = mean_curve(number, budget.mechanism)
        weights[0] = 10.0 ** np.random.default_rng(number).uniform(-1.0, 1.0) / value**2
        split = find_least_sum(curves, weights, budget)
        best = brute_force(curves, weights, budget)
        assert split.certificate.relative_gap <= 1e-4, number
        assert split.certificate.lower_bound <= best * (1.0 + 1e-9), number
        assert split.certificate.value <= best * (1.0 + 1e-4), number


def test_of_a_long_list_of_bounds_the_least_is_found_too():
    # Bounds beyond those that the hull is made of one by one; a bulge, of which only the ends count, and jumps.
    generator = np.random.default_rng(5)
    beta = np.sort(10.0 ** generator.uniform(-3.0, 3.0, 30_000))
    alpha = np.where(beta < 1.0, 50.0 - 40.0 * beta**2, 10.0 / beta) * generator.uniform(1.0, 1.3, beta.size)
    curve, v = BoundCurve(alpha, beta, np.arange(beta.size)), 10.0 ** generator.uniform(-6.0, 4.0, 60)
    best = curve.find_optimum(v)
    assert best.squared_errors == pytest.approx((alpha[:, None] + beta[:, None] * v).min(axis=0), rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    ("num_rows", "max_caps"), [(1_400, 2**10), pytest.param(140_000, 2**17, marks=pytest.mark.long)]
)
def test_a_giant_user_and_a_column_of_one_value_have_a_plan(num_rows, max_caps, monkeypatch):
    # One user with more rows than bounds are looked at one by one, and values that do not vary.
    for module in (mean_lines, shared_rows, table):
        monkeypatch.setattr(module, "MAX_CAPS", max_caps)
    for values in (np.full(num_rows + 100, 5.0), np.r_[np.linspace(0.0, 9.0, 100), np.full(num_rows, 10.0)]):
        users = np.r_[np.arange(100), np.full(num_rows, 100)].astype(str)
        frame = pd.DataFrame({"u": users, "v": values})
        data = to_dataset(frame, user="u", value="v", disclosure="public")
        parameters = PlanParameters(
            1.0, lines="users; rows; sum; mean", lower=0.0, upper=10.0, **choose_defaults(data)
        )
        answer = build_answer(data, parameters)
        assert answer.solution.split.certificate.relative_gap <= 1e-4
        assert not answer.solution.planned_lines[3].curve.has_all_bounds
        assert all(math.isfinite(line.error) for line in answer.solution.lines)
        # If means share the count of rows, that of the search without that is compared.
        line = (answer.solution.apart_lines or answer.solution.lines)[3]
        problem = dataclasses.replace(
            mean_lines.build_mean_problem(data, parameters)[0], epsilon=line.spent_budget
        )
        best_cap = mean.find_best_cap(problem)
        assert line.curve_error == pytest.approx(best_cap.standard_error, rel=1e-3)
        moved_error = math.sqrt(float(measure_caps(problem, best_cap.max_contributions).squared_error))
        assert line.error == pytest.approx(moved_error, rel=2e-3)


def make_small_frame(num_users=24, seed=3):
    """Make a table so small that a noisy mean is often moved into [0, 10]."""
    generator = np.random.default_rng(seed)
    users = np.repeat(np.arange(num_users), generator.integers(1, 5, num_users))
    return pd.DataFrame({"u": users, "v": generator.uniform(2.0, 9.0, users.size)})


@functools.cache
def read_small_data():
    return to_dataset(make_small_frame(), user="u", value="v", disclosure="public")


SMALL = {"lower": 0, "upper": 10}
OF_NOISE = {"laplace": {}, "gaussian": {"mechanism": "gaussian", "delta": 1e-6}}


@pytest.mark.long_but("mean-gaussian-users")
@pytest.mark.parametrize("clamp", ["rows", "users"])
@pytest.mark.parametrize("noise", OF_NOISE)
@pytest.mark.parametrize("statistic", ["mean", "variance", "standard deviation"])
def test_the_epsilon_for_a_target_is_where_the_stated_error_reaches_it(statistic, noise, clamp):
    """By the calls at that epsilon and around it, where noise is so large that the move into the range counts."""
    if statistic != "mean" and clamp == "users":
        return  # Rows are clamped all the same.
    settings = SMALL | OF_NOISE[noise] | {"clamp": clamp}
    lines, values = {"lines": f"{statistic} within 12%"}, read_small_data().values.values
    target = 0.12 * {
        "mean": values.mean(), "variance": values.var(), "standard deviation": values.std()
    }[statistic]  # fmt: skip
    needed = ss.plan_bounds(read_small_data(), **settings, **lines, epsilon=1).solution.sufficient_epsilon
    at_needed = ss.plan_bounds(read_small_data(), **settings, **lines, epsilon=needed).solution.lines[0]
    assert at_needed.error == pytest.approx(target, rel=1e-4)
    if statistic == "mean":
        mean_settings = {"counts": "private", "program": "OpenDP"}
        reply = ss.mean_bound(read_small_data(), **settings, **mean_settings, epsilon=needed)
        assert reply.error == pytest.approx(target, rel=2e-3)
    # It is monotone: less is not enough, and all that is more is enough.
    for factor, is_enough in (
        (0.9, False),
        (0.99, False),
        (1.001, True),
        (1.05, True),
        (1.5, True),
        (4.0, True),
    ):
        line = ss.plan_bounds(read_small_data(), **settings, **lines, epsilon=factor * needed).solution.lines[
            0
        ]
        assert line.is_reached == is_enough, factor
    least = ss.plan_bounds(
        read_small_data(), **settings, **lines, epsilon=1, objective="least epsilon"
    ).solution
    assert least.budget.epsilon == pytest.approx(needed, rel=1e-4)
    assert least.lines[0].is_reached
    # The number would be another one before the step.
    assert abs(at_needed.curve_error / at_needed.error - 1.0) > 0.005


@pytest.mark.long
@pytest.mark.parametrize("noise", OF_NOISE)
def test_totals_are_of_the_errors_of_the_lines(noise):
    for objective in ("least sum", "least largest"):
        lines = "rows within 4 weight 2; mean within 0.5; standard deviation within 0.4"
        settings = SMALL | OF_NOISE[noise] | {"lines": lines, "objective": objective}
        reply = ss.plan_bounds(read_small_data(), **settings, epsilon=3)
        ratios = np.array([
            line.error / target for line, target in zip(reply.solution.lines, (4.0, 0.5, 0.4), strict=True)
        ])  # fmt: skip
        expected = (
            math.sqrt((ratios**2 * [2, 1, 1]).sum() / 4.0) if objective == "least sum" else ratios.max()
        )
        assert reply.error == pytest.approx(expected, rel=1e-9)
        if objective == "least largest":
            # Shares level the errors that are stated: interpolated ones, to about 1 %.
            assert ratios == pytest.approx(ratios.max(), rel=0.03)


@pytest.mark.parametrize("epsilon", [0.05, 0.4, 3.0])
def test_curves_of_means_are_read_between_points_to_a_hundredth(epsilon):
    parameters = PlanParameters(1.0, lines="mean", **SMALL, **choose_defaults(read_small_data()))
    (line,) = table.plan_lines(read_small_data(), parameters)
    v = epsilon**-2.0 * np.geomspace(0.5, 2.0, 50)
    estimates = plan_curves.estimate_squared_errors(line.curve, v)
    assert estimates == pytest.approx(plan_curves.measure_squared_errors(line.curve, v), rel=0.03)
