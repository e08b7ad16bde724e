"""Lines as they are written, shares in binary, and curves read off data against the questions that they come from."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpcore import mean, quantile
from dpcore.common.checks import InvalidInput, Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import compute_gaussian_epsilon
from dpcore.common.programs import Program
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.mean import private_counts
from dpcore.per_group.pair_of_bounds import find_best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem
from dpcore.plan import lines as plan_lines
from dpcore.plan import table
from dpcore.plan.lines import Line, LineStatistic, change_target, list_missing_lines, remove_line, split_lines
from dpcore.plan.parameters import NUM_PARTS, Budget, Objective, PlanParameters, round_to_parts
from dpcore.quantile.base_distribution import build_uniform_base

SHOP = samples.load("shop-events")
KINDS = [kind for kind in LineStatistic if kind is not LineStatistic.QUANTILE]

OF_PLANS = (Program.PYTHON, Program.OPENDP, Program.PIPELINEDP, Program.TUMULT)


def plan_lines_of(text, data=SHOP, **settings):
    return table.plan_lines(
        data, PlanParameters(**{"epsilon": 1.0, "lower": 0.0, "upper": 100.0, "lines": text, **settings})
    )


@given(
    st.sampled_from(KINDS) | st.floats(0.001, 0.999),
    st.none() | st.floats(1e-3, 1e6),
    st.booleans(),
    st.floats(1e-3, 1e3),
)
def test_a_line_is_read_as_it_is_written(what, wanted, relative, weight):
    kind, q = (what, None) if isinstance(what, LineStatistic) else (LineStatistic.QUANTILE, what)
    line = Line(kind, q, wanted, relative or wanted is None, weight)
    problems = Problems()
    (read,) = plan_lines.parse_lines(line.text.upper(), problems)
    assert not problems.entries
    assert (read.statistic, read.weight) == (kind, pytest.approx(weight, rel=1e-14))
    assert read.quantile is None if q is None else read.quantile == pytest.approx(q, rel=1e-14)
    assert read.is_relative == line.is_relative
    assert (
        read.target_error is None if wanted is None else read.target_error == pytest.approx(wanted, rel=1e-11)
    )


def test_everything_wrong_with_a_plan_is_said_at_once():
    with pytest.raises(InvalidInput) as caught:
        PlanParameters(
            0.0,
            lines="rows; rows within 3; quantile 1.5; sums weight 0; count; mean",
            objective=Objective.LARGEST,
        )
    message = "\n".join(problem.sentence for problem in caught.value.problems)
    for part in (
        "Epsilon",
        "rows stands there twice",
        "quantile",
        "line 4 cannot be read",
        "line 5",
        "mean needs the",
    ):
        assert part.lower() in message.lower(), part
    for text, part in (
        (";".join(f"quantile 0.{k:02d}1" for k in range(51)), "at most 50 lines"),
        ("rows weight 0", "weight"),
        ("rows within 0%", "target error"),
        ("rows within 1e400", "target error"),
        ("quantile 0.5.5", "no number"),
        ("users; median within abc", "target error of median cannot be read; got 'within abc'"),
    ):
        with pytest.raises(InvalidInput, match=f"(?i){part}"):
            PlanParameters(1.0, lines=text, lower=0.0, upper=1.0)
    with pytest.raises(InvalidInput, match="users has none"):
        PlanParameters(1.0, lines="rows within 5%; users", objective=Objective.LARGEST)


def test_a_line_is_changed_and_removed_by_its_place_whatever_it_says():
    text = "Users; sum within 12 weight 0.5; median weight 2; sums per grp; rows within 1.2.3"
    assert split_lines(text) == [
        ("users", ""),
        ("sum", "12 weight 0.5"),
        ("median", "weight 2"),
        ("sums per grp", ""),
        ("rows", "1.2.3"),
    ]
    for index, target, changed in (
        (0, " 5 ;\n% rows ", "users within 5 % rows"),  # No second line comes out of a field.
        (1, "", "sum"),
        (1, "within 3%", "sum within 3%"),
        (2, "1%  weight 2", "median within 1% weight 2"),
        (4, "weight 3", "rows weight 3"),
    ):
        assert change_target(text, index, target).split("; ")[index] == changed
        assert len(split_lines(change_target(text, index, target))) == 5
        assert change_target(remove_line(text, index), index - 1, "7") == remove_line(
            change_target(text, index - 1 if index else 4, "7"), index
        )
    # What the fields show puts every line back as it was.
    for index, (_, target) in enumerate(split_lines(text)):
        assert change_target(text, index, target) == text.lower()
    assert list_missing_lines("quantile 0.50; rows within 0", ["median", "rows", "sum"]) == ["sum"]
    with pytest.raises(InvalidInput, match="There is no line"):
        table.plan_lines(SHOP, PlanParameters(1.0, lines=""))


@given(st.lists(st.floats(0.0, 1.0) | st.just(1e-9), min_size=1, max_size=50), st.floats(1e-6, 1e3))
@example([1e-9] * 49 + [1.0], 0.1)
@example([0.0, 1.0], 0.3)
def test_parts_add_up_to_no_more_than_epsilon_in_binary(shares, epsilon):
    if not sum(shares) > 0.0:
        return
    parts = round_to_parts(shares)
    assert int(parts.sum()) == NUM_PARTS
    assert [p > 0 for p in parts.tolist()] == [s > 0.0 for s in shares]
    unit = Budget(epsilon, NoiseKind.LAPLACE).total / NUM_PARTS
    charged = 0.0
    for item in parts.tolist():
        assert Fraction(item * unit) == item * Fraction(unit)  # each is exact
        charged += item * unit
    assert Fraction(charged) == Fraction(unit) * NUM_PARTS  # and so is their sum, in any order
    assert epsilon * (1.0 - 2.0**-31) <= charged <= epsilon


def test_opendp_proves_that_the_parts_are_at_most_epsilon():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    for epsilon in (0.1, 0.3, 1.0, 2.7):
        each = [
            p * (Budget(epsilon, NoiseKind.LAPLACE).total / NUM_PARTS)
            for p in round_to_parts([0.1, 0.2, 0.7 / 3, 0.7 / 3, 0.7 / 3]).tolist()
        ]
        composition = dp.c.make_composition(
            [dp.m.make_laplace(*space, scale=math.nextafter(1.0 / e, 2e9)) for e in each]
        )
        assert composition.map(1) <= epsilon


def test_the_mean_and_the_groups_have_the_bounds_of_their_own_questions():
    clamped = np.clip(SHOP.values.values, 0, 100)
    for epsilon in (0.2, 1.0, 5.0):
        line_of_mean, line_of_groups = plan_lines_of("mean; rows per group", program=Program.PYTHON)
        v = np.array([epsilon**-2.0])
        problem = private_counts.PrivateCountsProblem(
            SHOP.histogram, epsilon, 100.0, float(clamped.var(ddof=1)), float(clamped.mean())
        )
        best, best_cap = line_of_mean.curve.find_optimum(v), mean.find_best_cap(problem)
        assert best.bounds[0] == best_cap.max_contributions
        assert best.squared_errors[0] == pytest.approx(best_cap.squared_error, rel=1e-9)
        parameters = PerGroupParameters(epsilon, Statistic.ROWS, program=Program.PYTHON)
        pair = find_best_pair(PerGroupProblem(UserGroupPairs.from_facet(SHOP.pairs), parameters))
        of = line_of_groups.curve.find_optimum(v)
        assert (of.bounds[0], of.second_bounds[0]) == (pair.max_groups, pair.max_amount)
        assert math.sqrt(of.squared_errors[0]) == pytest.approx(pair.error, rel=1e-6)
        assert line_of_groups.curve.has_all_bounds


def test_a_quantile_is_that_of_its_page_under_add_or_remove_and_never_drawn_worse_than_it_must():
    (line,) = plan_lines_of("quantile 0.75", program=Program.PYTHON)
    problem = table.build_quantile_problem(
        SHOP, PlanParameters(1.0, lines="quantile 0.75", lower=0.0, upper=100.0), line.line
    )
    assert problem.neighbours is table.NEIGHBOURS
    epsilons = np.geomspace(0.01, 100.0, 40)
    errors = np.sqrt(
        line.curve.find_optimum(table.convert_rank_epsilon(epsilons, NoiseKind.LAPLACE)).squared_errors
    )
    assert np.all(np.diff(errors) <= 1e-12)
    for epsilon, error in zip(epsilons[::8], errors[::8], strict=True):
        v = float(table.convert_rank_epsilon(epsilon, NoiseKind.LAPLACE))
        bound = float(line.curve.find_optimum(np.array([v])).bounds[0])
        changes = problem.with_changes(
            epsilon=table.convert_rank_v(line.curve.find_release_v(v), NoiseKind.LAPLACE)
        )
        exact = quantile.compute_output(changes, quantile.WeightKind.SMOOTH, bound).expected_rank_error
        assert exact == pytest.approx(error, rel=0.05)  # read between points that are 1.6 apart in epsilon
    # The exponential mechanism at epsilon is epsilon^2 / 8-zCDP, a Gaussian of scale b is 1 / (2 b^2)-zCDP.
    v = float(table.convert_rank_epsilon(3.0, NoiseKind.GAUSSIAN))
    assert 1.0 / (2.0 * v) == pytest.approx(9.0 / 8.0)
    assert table.convert_rank_v(v, NoiseKind.GAUSSIAN) == pytest.approx(3.0)


@pytest.mark.long
@pytest.mark.parametrize("program", [Program.PIPELINEDP, Program.BIGQUERY])
def test_a_quantile_in_a_tree_errs_as_on_its_page(program):
    (line,) = plan_lines_of("median", program=program)
    base = build_uniform_base(0.0, 100.0)
    for epsilon in (0.3, 1.0, 3.0):
        best = line.curve.find_optimum(table.convert_rank_epsilon([epsilon], NoiseKind.LAPLACE))
        problem = quantile.QuantileProblem(
            SHOP.values, 0.5, epsilon, base, neighbours=table.NEIGHBOURS, program=program
        )
        error = quantile.compute_output(
            problem, quantile.WeightKind.CAP, float(best.bounds[0])
        ).expected_rank_error
        # 1,000 releases with errors about as far apart as they are large: 3 % each; and read between points.
        assert math.sqrt(best.squared_errors[0]) == pytest.approx(error, rel=0.15)
        assert best.bounds[0] <= (
            5 if program is Program.BIGQUERY else line.quantile_problem.histogram.max_size
        )


def test_what_data_lack_and_shares_of_0_are_refused_in_one_sentence_each():
    bare = replace(SHOP, values=None, pairs=None, totals=None)
    with pytest.raises(InvalidInput) as caught:
        plan_lines_of("sum; mean; users per group; rows", bare)
    assert len(caught.value.problems) == 3
    zero = to_dataset(_frame([1.0, -1.0]), user="u", value="v")
    with pytest.raises(InvalidInput, match="is 0 on these data"):
        plan_lines_of("sum", zero, lower=-1.0, upper=1.0)
    (line,) = plan_lines_of("sum within 3", zero, lower=-1.0, upper=1.0)
    assert (line.target_error, line.reference_value) == (3.0, 0.0)


def _frame(values):
    return pd.DataFrame({"u": [f"u{k}" for k in range(len(values))], "v": values})


def test_a_signed_sum_has_the_least_error_of_the_bounds_looked_at():
    values = np.r_[np.arange(1.0, 30.0), -np.arange(2.0, 20.0), 500.0]
    data = to_dataset(_frame(values), user="u", value="v")
    (line,) = plan_lines_of("sum", data, lower=-1e3, upper=1e3)
    bounds = np.linspace(0.0, 500.0, 20_001)
    cut = np.array([np.sum(values - np.clip(values, -t, t)) for t in bounds])
    for v in (0.01, 1.0, 30.0):
        best = line.curve.find_optimum(np.array([v]))
        least = float(np.min(cut**2 + 2.0 * bounds**2 * v))
        assert best.squared_errors[0] <= least * (1.0 + 1e-3)
        t = float(best.bounds[0])
        exact = float(np.sum(values - np.clip(values, -t, t))) ** 2 + 2.0 * t * t * v
        assert best.squared_errors[0] == pytest.approx(exact, rel=1e-9)


def test_the_noise_is_what_opendp_draws_and_epsilon_adds_up_as_it_should():
    budget = Budget(1.0, NoiseKind.GAUSSIAN, 1e-6)
    sigma = math.sqrt(budget.full_v)
    assert 1.0 < sigma / 4.2247 < 1.12  # exactly calibrated: 4.2247 at (1, 1e-6), Balle and Wang 2018
    assert budget.exact_epsilon == pytest.approx(compute_gaussian_epsilon(sigma, 1e-6))
    assert budget.exact_epsilon < 1.0
    # Plain Python and PipelineDP account exactly, and BigQuery draws Laplace noise of half of epsilon.
    for program, excess in ((Program.PYTHON, 1.0), (Program.PIPELINEDP, 1.0005)):
        exact = Budget(1.0, NoiseKind.GAUSSIAN, 1e-6, program)
        assert math.sqrt(exact.full_v) == pytest.approx(4.2247 * excess, rel=1e-5)
        assert exact.convert_to_epsilon(1.0 / exact.full_v) == pytest.approx(1.0, rel=1e-6)
    parameters = PlanParameters(0.5, mechanism=NoiseKind.GAUSSIAN, delta=1e-6, program=Program.BIGQUERY)
    assert parameters.budget.full_v == pytest.approx(16.0)
    assert parameters.budget.convert_to_epsilon(1.0 / 4.0) == pytest.approx(0.5)
    # Beside a quantile rho is what adds up.
    assert Budget(1.0, NoiseKind.GAUSSIAN, 1e-6, Program.PYTHON, has_quantile=True).full_v == budget.full_v
    # Four lines of any shares are one Gaussian of all of them.
    assert np.sum(1.0 / budget.divide(np.array([0.1, 0.2, 0.3, 0.4]))) == pytest.approx(1.0 / sigma**2)
    assert budget.convert_to_epsilon(sigma**-2.0) == pytest.approx(1.0, rel=1e-5)
    assert Budget(1.0, NoiseKind.LAPLACE).convert_to_epsilon(0.7) == 0.7
    # A mean costs more where a library splits its budget inside.
    ours, opendp, *theirs = (
        plan_lines_of("mean", program=p)[0].curve.find_optimum(np.ones(1)).squared_errors[0] for p in OF_PLANS
    )
    assert min(theirs) > ours == opendp
    with pytest.raises(InvalidInput, match="PipelineDP's tree"):
        plan_lines_of("median", program=Program.PIPELINEDP, mechanism=NoiseKind.GAUSSIAN, delta=1e-6)


@pytest.mark.long
def test_the_curve_of_a_quantile_of_many_rows_is_that_of_the_rows_themselves():
    generator = np.random.default_rng(7)
    sizes = np.minimum(np.ceil(generator.pareto(1.2, 9_000)).astype(int), 300)
    values = np.round(generator.gamma(2.0, 10.0, sizes.sum()), 3)
    values[: values.size // 10] = 20.0  # A step of many rows.
    assert values.size > 20_000
    frame = {"u": np.repeat(np.arange(sizes.size), sizes).astype(str), "v": values}
    data = to_dataset(pd.DataFrame(frame), user="u", value="v")
    for text in ("median", "quantile 0.99"):
        (line,) = plan_lines_of(text, data, program=Program.PYTHON)
        problem = table.build_quantile_problem(
            data, PlanParameters(1.0, lines=text, lower=0.0, upper=100.0), line.line
        )
        for epsilon in table.RANK_EPSILONS[8::6]:  # From 0.006 on.
            v = float(table.convert_rank_epsilon(epsilon, NoiseKind.LAPLACE))
            best = line.curve.find_optimum(np.array([v]))
            at = problem.with_changes(
                epsilon=table.convert_rank_v(line.curve.find_release_v(v), NoiseKind.LAPLACE)
            )
            exact = quantile.compute_output(
                at, quantile.WeightKind.SMOOTH, float(best.bounds[0])
            ).expected_rank_error
            assert math.sqrt(best.squared_errors[0]) == pytest.approx(exact, rel=0.02), (text, epsilon)
            # Between points of the curve the error at a share is that of the rows, too.
            asked = PlanParameters(1.0, lines=text, lower=0.0, upper=100.0, program=Program.PYTHON)
            bound, other = (
                float(best.bounds[0]),
                float(table.convert_rank_epsilon(1.3 * epsilon, NoiseKind.LAPLACE)),
            )
            there = table.compute_rank_error(data, asked, line, other, bound)
            exact = quantile.compute_output(
                problem.with_changes(epsilon=1.3 * epsilon), quantile.WeightKind.SMOOTH, bound
            ).expected_rank_error
            assert there == pytest.approx(exact, rel=0.015), (text, epsilon)
