"""What a plan says: its headline, what each line needs, and the ways into it."""

import json
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.code.release_noise import find_release_noise
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, format_rounded_up
from dpcore.common.programs import Program, find_noise
from dpcore.common.text_fields import from_fields, to_fields
from dpcore.data import samples
from dpcore.plan.answer import build_answer, words
from dpcore.plan.lines import MAX_LINES
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.report.plotly_figures import draw_plot
from tests.dpcore.code import reading

SHOP = samples.load("shop-events")
FIVE = "users within 1%; rows within 5%; sum within 5%; mean within 10%; rows per group within 50%"


def build_plan_answer(lines=FIVE, data=SHOP, **settings):
    usual = {"epsilon": 1.0, "lower": 0.0, "upper": 100.0, "lines": lines}
    return build_answer(data, PlanParameters(**{**usual, **settings}))


@pytest.mark.long
@pytest.mark.parametrize(("noise", "delta"), [(NoiseKind.LAPLACE, None), (NoiseKind.GAUSSIAN, 1e-6)])
def test_the_least_epsilon_is_enough_for_all_and_less_is_not(noise, delta):
    lines = FIVE.replace("rows per group within 50%", "quantile 0.9 within 3%")
    found = build_plan_answer(lines, objective=Objective.REACH, mechanism=noise, delta=delta).solution
    assert found.num_reached == 5
    assert sum(line.num_parts for line in found.lines) <= 2**20
    # With a budget smaller by 1 % some line misses its own, however it is divided: the largest ratio says so.
    less = build_plan_answer(
        lines, epsilon=found.budget.epsilon * 0.97, objective=Objective.LARGEST, mechanism=noise, delta=delta
    )
    assert less.solution.num_reached < 5


def test_a_line_has_its_wanted_error_from_the_epsilon_on_that_is_said():
    solution = build_plan_answer().solution
    line, at = solution.lines[1], solution.reaching_epsilons[1]
    assert not line.is_reached
    for times, has in ((1.001, True), (0.999, False)):
        squares = line.planned_line.curve.find_optimum(
            np.array([(line.share * at * times) ** -2.0])
        ).squared_errors[0]
        assert (math.sqrt(squares) <= line.planned_line.target_error) == has


@pytest.mark.long
def test_the_verdict_is_that_of_the_line_with_the_largest_relative_error():
    for epsilon in (0.01, 1.0):
        answer = build_plan_answer("users; median", epsilon=epsilon)
        users, median = answer.solution.lines
        num_users = users.planned_line.reference_value
        assert answer.relative_error.share == max(users.error / num_users, median.error / 0.5)


@pytest.mark.long
def test_the_curves_pass_through_the_plan():
    hard = {"lines": "users; rows per group", "objective": Objective.REACH}  # Above 100.
    far = [build_plan_answer(**hard), build_plan_answer(**hard, mechanism=NoiseKind.GAUSSIAN, delta=1e-6)]
    for item in (*far, build_plan_answer(epsilon=0.005), build_plan_answer()):
        plot, epsilon = item.plots["plan-errors"](), item.solution.budget.epsilon
        epsilons = plot.columns["epsilon"]
        assert epsilons[0] < epsilon < epsilons[-1]
        for line in item.solution.lines:
            column = np.log(plot.columns[f"{line.planned_line.line.label}: error over wanted"])
            read = np.exp(np.interp(np.log(epsilon), np.log(epsilons), column))
            assert read == pytest.approx(line.error / line.planned_line.target_error, rel=0.04)
    for make in item.plots.values():
        assert draw_plot(make()).data
    columns = item.plots["plan-shares"]().columns
    assert [sum(column) for column in columns.values()] == pytest.approx([1.0] * 3)
    assert int(np.argmax(columns["needed_share"])) == item.solution.most_expensive_index
    named = [trace.name for trace in draw_plot(plot).data if trace.showlegend is not False]
    assert (
        named.count("Equal shares") == 1
    )  # The thin dotted lines, which have the colours of the plan's own.


def test_an_equal_split_is_no_better_and_all_of_one_line_is_its_own():
    plan_answer = build_plan_answer()
    assert plan_answer.solution.equal_split_factor >= 1.0
    one = build_plan_answer("rows")
    assert one.solution.lines[0].share == 1.0
    bound_text = f"{one.solution.lines[0].bound:.0f} rows per user"
    headline = f"All of ε = 1 goes to rows ({bound_text}), and it is not enough for a target of 5\N{NO-BREAK SPACE}%."
    assert one.headline == headline


@pytest.mark.parametrize(
    ("lines", "ending"),
    [
        ("users; rows", "numbers within 5 %."),
        ("users within 5%; rows", "numbers, within 5 % where a line names no target."),
        ("users within 5%; rows within 500", "numbers."),
        ("users within 5%", "enough."),
    ],
)
def test_the_headline_names_the_target_that_lines_have_by_default(lines, ending):
    plan_answer = build_plan_answer(lines)
    assert plan_answer.headline.replace("\N{NO-BREAK SPACE}", " ").endswith(ending)
    # The same target, written out, gives the same plan.
    written = "; ".join(line if "within" in line else f"{line} within 5%" for line in lines.split("; "))
    assert build_plan_answer(written).solution.num_reached == plan_answer.solution.num_reached


def test_what_is_dropped_and_what_is_never_reached_is_said():
    small = ss.plan_bounds([1, 1, 1], lines=["users", "rows within 1"], epsilon=0.01, disclosure="public")
    assert all(line.is_dropped for line in small.solution.lines)
    assert small.forms == {}
    assert "0 is published" in small.detail
    # Of 4 rows of one user a mean at the best bound keeps some error of sampling: the least is that of all rows.
    never = build_plan_answer("mean within 0.001; rows", SHOP)
    assert math.isinf(never.solution.sufficient_epsilon)
    assert never.numbers[0].value is None
    assert "needed_share" not in never.plots["plan-shares"]().columns
    assert re.search(r"\*\*Mean:\*\* ±0\.\d+ instead of ±0\.00100; no ε is enough", never.detail)
    # 0 in place of a number is off by all of it; the least epsilon for a line is that at its share.
    assert "**Users:** ±100 % instead of ±5.0 %; it gets no share" in small.detail.replace(
        "\N{NO-BREAK SPACE}", " "
    )
    missed = build_plan_answer("users; sum within 1%", epsilon=5.0)
    epsilon_text = format_rounded_up(missed.solution.reaching_epsilons[1], 3)
    assert f"or ε = {epsilon_text}." in missed.detail
    assert [row["met"][0] for row in words.tabulate_plan(missed.solution)] == ["✓", "✗"]
    with pytest.raises(InvalidInput, match="No ε is enough for mean"):
        build_plan_answer("mean within 0.001; rows", objective=Objective.REACH)


@pytest.mark.long
def test_a_private_table_says_that_the_plan_is_private_and_a_quantile_that_nothing_is_proved():
    private = ss.plan_bounds([3, 1, 40, 2], lines="users; rows", epsilon=1)
    assert private.disclosure is Disclosure.PRIVATE
    assert words.LEAK_SENTENCE in private.detail
    ranked = build_plan_answer("rows; median")
    assert not ranked.proofs
    assert "not proved" in ranked.facts["How sure"]
    proof = build_plan_answer().proofs[0][1]
    assert 0.0 <= proof.relative_gap <= 1e-4


def test_lines_go_into_a_link_and_come_back_as_many_as_there_may_be():
    lines = "; ".join(f"quantile 0.{k:03d} within 12.5% weight 1.5" for k in range(1, MAX_LINES + 1))
    parameters = PlanParameters(1.0, lines=lines, lower=0.0, upper=9.0)
    assert from_fields(PlanParameters, to_fields(parameters)) == parameters
    with pytest.raises(InvalidInput, match="Lines cannot be read"):
        from_fields(PlanParameters, {"epsilon": "1", "lines": "rows;" * 401})


def test_lines_one_by_one_are_a_text():
    plan_bounds = ss.plan_bounds([3, 1, 40, 2], lines=["users", "rows within 3"], epsilon=1)
    assert plan_bounds.parameters.lines == "users; rows within 3"
    assert list(plan_bounds.bound.index) == ["users", "rows"]
    held = json.loads(plan_bounds.answer.write_json())["answer"]
    assert [item["release"] for item in held["lines"]] == ["users", "rows"]


@pytest.mark.long
def test_the_epsilon_really_spent_stands_beside_that_of_the_program_without_a_quantile():
    gaussian = {"mechanism": NoiseKind.GAUSSIAN, "delta": 1e-6}
    spent = build_plan_answer("users; rows", **gaussian).facts["ε really spent"]
    assert spent.startswith("0.9")
    assert "1 by the program's" in spent
    # Of the exponential mechanism beside Gaussian noise no exact account is known.
    assert "ε really spent" not in build_plan_answer("users; median", **gaussian).facts


ALONE = {  # A line with all of the budget, its own call, and settings of that call.
    "rows within 5%": (ss.count_bound, {"objective": "rmse"}),
    "sum within 5%": (ss.sum_bound, {"objective": "rmse", "value": "amount"}),
    "users per group within 5%": (ss.group_bounds, {"group": "product", "statistic": "users"}),
}


@pytest.mark.long_but("None-Program.PYTHON")
@pytest.mark.parametrize("program", Program)
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_line_alone_has_the_number_of_its_page_and_of_its_program(program, delta):
    named = {"user": "user_id", "disclosure": "public", "mechanism": "gaussian" if delta else "laplace"}
    epsilon = 5.0 if delta else 0.3
    for line, (call, settings) in ALONE.items():
        asked = {**named, "delta": delta, "epsilon": epsilon, "program": program.value}
        events = "sample_data/shop_events.csv"
        own = call(events, **asked, **settings)
        plan = ss.plan_bounds(events, **asked, lines=[line], value="amount", group="product")
        (alone,) = plan.solution.lines
        # A bound on totals is rounded to few digits, which adds at most 1e-3.
        assert alone.error == pytest.approx(own.error, rel=2e-3 if line.startswith("sum") else 1e-6), line
        if program is Program.BEST:
            continue
        (several,), choice = plan.answer.code.forms, dict(own.answer.code.forms)
        release = several[1].releases[0]
        noise = several[1].find_noise(release, program)
        single = find_noise(program, NoiseKind.GAUSSIAN if delta else NoiseKind.LAPLACE, epsilon, delta)
        assert noise.unit_scale == pytest.approx(single.unit_scale, rel=1e-8)
        if line.startswith("rows"):
            (bounded,) = choice.values()
            assert release.spec.max_rows == bounded.max_rows
            noises = find_release_noise(bounded, program), find_release_noise(release.spec, program, noise)
            assert noises[0].deviation == pytest.approx(noises[1].deviation, rel=1e-8)


def test_a_program_for_bigquery_has_a_query_for_every_share():
    plan = ss.plan_bounds(
        "sample_data/shop_events.csv", user="user_id", value="amount", lower=0, upper=100, epsilon=1,
        lines="users; rows; sum; mean", program="BigQuery", disclosure="public",
    )  # fmt: skip
    assert plan.answer.facts["Noise"].endswith("A mean, of two sums, gets two thirds of its share.")
    assert "with two thirds of ε" in build_plan_answer("mean", program=Program.BIGQUERY).facts["Noise"]
    found = reading.parse(plan.code())
    assert len(found) == 5  # The mean draws rows first.
    shares = [float(item.options["epsilon"]) for item in found if item.options]
    assert sum(map(Fraction, shares)) <= 1
    assert shares == pytest.approx([line.share for line in plan.solution.lines], rel=1e-9)


@pytest.mark.parametrize(
    ("line", "unit", "size"),
    [("sum", 1e-320, "small"), ("sum within 1000%", 4.9e99, "large"), ("sums per group", 1e-320, "small")],
)
def test_values_whose_squares_are_no_numbers_are_refused(line, unit, size):
    values = [unit, 2 * unit, 0.0, unit]
    table = pd.DataFrame({"user": [1, 1, 2, 3], "group": ["a", "b", "a", "a"], "value": values})
    with pytest.raises(InvalidInput, match=f"values that are too {size} for a plan"):
        ss.plan_bounds(table, user="user", value="value", group="group", epsilon=1, lines=line)


@pytest.mark.long
@pytest.mark.parametrize("unit", [1e-90, 1e90])
def test_the_unit_of_the_values_changes_no_division(unit):
    def shares(scale):
        table = pd.DataFrame({"user": [1, 1, 2, 3], "value": [scale, 2 * scale, 0.0, scale]})
        plan = ss.plan_bounds(
            table, user="user", value="value", epsilon=1, lines="rows within 50%; sum within 50%"
        )
        return [line.share for line in plan.answer.solution.lines]

    assert shares(unit) == pytest.approx(shares(1.0), rel=1e-6)
