"""Means that share one count of rows: against brute force over splits and bounds, and against many releases."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.code import write
from dpcore.code.several import SHARED_COUNT_NAME
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from dpcore.counting.count import to_dataset
from dpcore.plan import shared_rows, table
from dpcore.plan.parameters import Budget, PlanParameters, choose_defaults
from dpcore.plan.solution import sum_weighted_squares
from tests.dpcore.code.specs import run_text

LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
NOISES = pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
OF_NOISE = {LAPLACE: {}, GAUSSIAN: {"mechanism": "gaussian", "delta": 1e-6}}
SETTINGS = {"user": "u", "value": "a", "disclosure": "public", "lower": 0, "upper": 10}
LINES = "users; mean; mean of b from -5 to 5; mean of c from 0 to 3"


def make_frame(num_users=150, most=6, seed=4):
    """Make a table of three columns, whose means lie near and far from the middle of their ranges."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, most + 1, num_users)
    users = np.repeat(np.arange(num_users), sizes)
    a = generator.uniform(3.0, 8.0, users.size)
    b = np.clip(generator.normal(0.5, 2.0, users.size) + users % 3, -5.0, 5.0)
    return pd.DataFrame({"u": users, "a": a, "b": b, "c": generator.uniform(0.0, 2.0, users.size)})


def weigh(dataset, planned_lines, budget, h, shares):
    """Compute the weighted sum of squares of means with sums and one count under a bound, by the formulas alone."""
    kept, unit, v = (
        dataset.histogram.count_kept_rows(h),
        budget.mechanism.unit_variance,
        budget.divide(shares),
    )
    total = 0.0
    for line, v_sum in zip(planned_lines, v[1:], strict=True):
        alpha, _, width = line.mean_parts
        m = line.reference_value - {"": 5.0, "b": 0.0, "c": 1.5}[line.line.column]
        noise = unit * (h / kept) ** 2 * (width**2 / 4.0 * v_sum + m**2 * v[0])
        total += line.weight * (alpha[h - 1] + noise)
    return total


@pytest.mark.long
@NOISES
def test_no_split_and_no_bound_is_better_and_none_below_the_proof(noise):
    dataset = to_dataset(make_frame(), user="u", value="a", disclosure="public", further_values=("b", "c"))
    delta = None if noise is LAPLACE else 1e-6
    options = {"lower": 0.0, "upper": 10.0, "mechanism": noise, "delta": delta, **choose_defaults(dataset)}
    parameters = PlanParameters(1.0, lines=LINES.removeprefix("users; "), **options)
    lines, budget = table.plan_lines(dataset, parameters), parameters.budget
    assert isinstance(budget, Budget)
    ((shared_lines, split),) = shared_rows.list_shared_splits(dataset, parameters, lines, budget)
    h = int(shared_lines[0].curve.find_optimum(np.array([1.0])).bounds[0])
    order = [3, 0, 1, 2]  # The count follows the lines.
    value = weigh(dataset, lines, budget, h, split.shares[order])
    assert split.shares.sum() == pytest.approx(1.0)
    assert value == pytest.approx(split.certificate.value, rel=1e-6)
    curves_value = sum(
        line.weight * line.curve.find_optimum(budget.divide(split.shares[i : i + 1])).squared_errors[0]
        for i, line in enumerate(shared_lines[:3])
    )
    assert curves_value == pytest.approx(value, rel=1e-6)
    generator = np.random.default_rng(1)
    splits = np.vstack(
        [generator.dirichlet(np.ones(4), 3000), generator.dirichlet(40.0 * split.shares[order], 3000)]
    )
    best = min(weigh(dataset, lines, budget, k, s) for k in range(1, 7) for s in splits)
    assert split.certificate.lower_bound <= best * (1.0 + 1e-9)
    assert value <= best * (1.0 + 1e-4)
    assert best <= value * 1.05  # The brute force comes near it, so that it could have been below.


@pytest.mark.long
@NOISES
@pytest.mark.parametrize(("most", "epsilon"), [(1, 2.0), (6, 2.0), (1, 0.03)])
def test_a_plan_shares_a_count_where_that_errs_less_and_keeps_its_promise(noise, most, epsilon):
    """Where users have one row each, means take the rows that are released anyway."""
    frame = make_frame(800, most)
    lines = LINES.replace("users", "rows") if most == 1 else LINES
    plan = ss.plan_bounds(frame, **SETTINGS, **OF_NOISE[noise], epsilon=epsilon, lines=lines)
    solution = plan.solution
    assert sum_weighted_squares(solution.lines) < sum_weighted_squares(solution.apart_lines)
    assert (solution.count_line is None) == (most == 1)
    count_line = solution.count_line or solution.lines[0]
    means = [line for line in solution.lines if line.label.startswith("mean")]
    assert {line.bound for line in means} == {count_line.bound}
    assert sum(line.num_parts for line in {*solution.lines, count_line}) <= 2**20
    # Many releases, without any of our code; rows of a user are drawn anew every time.
    generator, runs = np.random.default_rng(8), 3000
    draw = generator.laplace if noise is LAPLACE else generator.normal
    squares = np.zeros((3, runs))
    for run in range(runs):
        shuffled = frame.iloc[generator.permutation(len(frame))] if most > 1 else frame
        kept = shuffled[shuffled.groupby("u").cumcount() < count_line.bound] if most > 1 else frame
        rows = max(len(kept) + draw(scale=count_line.bound * math.sqrt(count_line.v)), 1.0)
        for index, (line, middle, width) in enumerate(
            zip(means, (5.0, 0.0, 1.5), (10.0, 10.0, 3.0), strict=True)
        ):
            column = line.planned_line.line.column or "a"
            noisy = (kept[column] - middle).sum() + draw(
                scale=count_line.bound * width / 2.0 * math.sqrt(line.v)
            )
            mean = np.clip(middle + noisy / rows, middle - width / 2.0, middle + width / 2.0)
            squares[index, run] = (mean - frame[column].mean()) ** 2
        if run == 600 and most > 1:
            squares = squares[:, :600]
            break
    promised, measured = [line.error for line in means], np.sqrt(squares.mean(axis=1))
    assert promised == pytest.approx(measured, rel=0.05 if most == 1 else 0.1)
    assert "of the budget and at most" in plan.answer.facts["One count of rows"]
    assert list(plan.bound.index)[-1] == (means[-1].label if most == 1 else SHARED_COUNT_NAME)
    assert plan.bound["share"].sum() == pytest.approx(1.0)


@pytest.mark.long
@NOISES
@pytest.mark.parametrize("library", [Program.PYTHON, Program.OPENDP])
def test_programs_release_the_count_once_and_state_the_noise_of_the_plan(
    library, noise, tmp_path, monkeypatch, capsys
):
    frame = make_frame(300)
    frame.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    settings = SETTINGS | OF_NOISE[noise] | {"program": library.value}
    plan = ss.plan_bounds("table.csv", **settings, epsilon=20, lines=LINES)
    assert plan.solution.count_line is not None
    ((_, several),) = plan.answer.code.forms
    names = run_text(write(several, library).text)
    told = {facts["release"]: facts for facts in map(json.loads, capsys.readouterr().out.splitlines())}
    count_line = plan.solution.count_line
    kept = int(np.minimum(frame.groupby("u").size(), count_line.bound).sum())
    assert told[SHARED_COUNT_NAME]["released"] == pytest.approx(
        kept, abs=6.0 * math.sqrt(2.0 * count_line.v) * 6 + 2
    )
    for line, column in zip(plan.solution.lines[1:], "abc", strict=True):
        facts = told[line.label]
        assert facts["released"] == pytest.approx(frame[column].mean(), abs=6.0 * line.error)
        # Noise alone, by the numbers of the program: the plan's error without bias and draws of rows.
        best = line.planned_line.curve
        noise_error = math.sqrt(float(best.find_optimum(np.array([line.v])).noise_slopes[0]) * line.v)
        assert facts["noise_standard_error"] == pytest.approx(noise_error, rel=0.03)
    if library is Program.PYTHON:
        # One user more or less: exact log ratios, or squared shifts, of all that is released add up to the budget.
        spent = sum(loss for *_, loss in names["prepared"].values())
        assert spent <= names["TOTAL"]
        assert len(names["prepared"]["mean"][1]) == 1
    # A library without it releases each mean by itself, and no count that nobody reads.
    if noise is LAPLACE:
        assert "mean of c" in plan.code("bigquery")
        assert SHARED_COUNT_NAME not in plan.code("bigquery")


HOSTILE = (
    "x,9,5,3\nx,-1e308,inf,3\nx,seven,,nan\nx,1e999,-1e999,1e308\nx,10,-5,0\nx,0,5,3\nx,4\nx,1,2,3,4,5\n"
)


@pytest.mark.long_but("NoiseKind.LAPLACE")
@NOISES
def test_a_hostile_user_moves_all_sums_by_no_more_than_the_noise_covers(noise, tmp_path, monkeypatch, capsys):
    """The exact sums of the program with and without the user: the losses by OpenDP's own maps stay in the budget."""
    monkeypatch.chdir(tmp_path)
    frame = make_frame(40, most=1)  # Of these users no rows are drawn: they are the same in every run.
    frame.to_csv("table.csv", index=False)
    settings = (
        SETTINGS
        | OF_NOISE[noise]
        | {"disclosure": "private", "variance_source": "values", "program": "plain Python"}
    )
    plan = ss.plan_bounds("table.csv", **settings, epsilon=2, lines=f"{LINES}; variance of b from -5 to 5")
    assert plan.solution.count_line is not None
    text, order = plan.code("python"), 1 if noise is LAPLACE else 2
    prepared = []
    for rows in ("", HOSTILE, HOSTILE * 50):
        (tmp_path / "table.csv").write_text(frame.to_csv(index=False) + rows)
        prepared.append(run_text(text)["prepared"])
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len(printed) == len(prepared[0]) == 6
    total = float(text.split("TOTAL = ")[1].split()[0])
    for other in prepared[1:]:
        losses = {
            name: draw.map(float(np.linalg.norm(np.subtract(sums, other[name][1]), order)))
            for name, (draw, sums, _) in prepared[0].items()
        }
        assert sum(losses.values()) <= total
        # The user uses up what there is of most of them: half the noise would not do.
        assert sum(losses.values()) > 0.5 * total
