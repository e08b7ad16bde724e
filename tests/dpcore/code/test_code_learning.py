"""Programs of task weights, coefficients and classifiers are run: they compute what the page computes."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpcore as ss
from dpcore.code import Quantity
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.data.task_facets import Pairs
from dpcore.dataset import LabelledRows
from dpcore.multitask.problem import Loss, TaskGraph, TaskProblem
from dpcore.multitask.weights import BudgetFit, WeightRule
from dpcore.regression.draw import write_matrix
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import estimate_on_all_rows
from dpcore.training import descent
from dpcore.training import mechanism as training_mechanism
from dpcore.training.account import Cell, Method
from dpcore.training.answer import answer as code_of_training
from dpcore.training.mechanism import Mechanism
from dpcore.training.rows import ClassifierRows, Scaling, prepare_rows
from tests.dpcore.code.conftest import rows_of_users
from tests.dpcore.code.specs import LOWER, REPLACE, SPEC_BY_NAME, SURE, UPPER, VALUES, make_spec, run_program


@pytest.mark.parametrize("fit", [BudgetFit.CLIPPED, BudgetFit.FULL])
def test_task_weights_are_those_of_dpcore(folder: Path, fit: BudgetFit) -> None:
    budget = 0.01
    products = Counter(
        product for rows in rows_of_users().values() for product in {product for _, product in rows}
    )
    names = run_program(
        make_spec(
            Quantity.TASK_WEIGHTS,
            exponent=0.25,
            weight_budget=budget,
            delta=1e-6,
            inflation=1.0,
            fills_every_budget=fit is BudgetFit.FULL,
        ),
        Program.PYTHON,
        {"TASK_SIZES": dict(products), "NUM_USERS": 400},
    )
    pairs = (
        names["pairs"]
        .assign(
            user=names["pairs"]["user_id"].astype("category").cat.codes,
            task=names["pairs"]["product"].astype("category").cat.codes,
        )
        .sort_values(["user", "task"])
    )
    graph = TaskGraph.from_pairs(Pairs(pairs["user"], pairs["task"], 40), 400)
    problem = TaskProblem(graph, budget, Loss.CONVEX)
    expected = WeightRule(0.25, fit).allocate(problem).compute_pair_weights()
    np.testing.assert_allclose(pairs["weight"], expected, rtol=1e-9)
    modules = (pairs["weight"] ** 2).groupby(pairs["user"]).sum()
    assert modules.max() <= budget
    noise = np.array(names["noisy"]) - np.array(names["totals"])
    # The sum of 40 squares of standard normal draws exceeds 124 with probability below 1e-9; it is below 6 likewise.
    assert 6.0 < float(noise @ noise) < 124.0


@pytest.mark.parametrize("full", [False, True])
def test_one_user_moves_weighted_sums_by_at_most_the_root_of_the_budget(folder: Path, full: bool) -> None:
    """Neighbouring tables: a user with a task of their own, one with every task, one without a task; and nobody."""
    choice = make_spec(
        Quantity.TASK_WEIGHTS,
        exponent=0.5,
        weight_budget=0.25,
        delta=1e-6,
        inflation=1.0,
        fills_every_budget=full,
        disclosure=Disclosure.PRIVATE,
    )
    public = {"TASK_SIZES": {"x": 2, "y": 1, "z": 40}, "NUM_USERS": 3}

    def totals(rows: str) -> Any:
        (folder / "shop_events.csv").write_text(f"user_id,product\n{rows}")
        return run_program(choice, Program.PYTHON, public)["totals"]

    table = "a,x\nb,x\nb,y\nc,y\n,x\n"
    totals_before, distances = totals(table), []
    for rows_added in ("d,secret\n", "d,x\nd,y\nd,z\nd,secret\n", "d,\n", "d,x\n"):
        totals_after = totals(table + rows_added)
        assert list(totals_after.index) == list(totals_before.index) == ["x", "y", "z"]
        distances.append(float(np.linalg.norm(totals_after - totals_before)))
    assert distances[0] == distances[2] == 0.0
    assert max(distances) <= 0.5
    # Three users, sizes 2, 1 and 40, mu = 1/2: the scale is 3 / (3 x 0.25), so a task weighs 1 / sqrt(4 n). A user of
    # all three uses (1/2 + 1 + 1/40) / 4 = 0.38, more than the budget, and is scaled down to it.
    assert distances[1] == pytest.approx(0.5)
    assert distances[3] == pytest.approx(0.5 if full else 8.0**-0.5)
    assert totals("").tolist() == [0.0, 0.0, 0.0]


def test_task_weights_wait_for_public_tasks_and_spend_what_they_may(folder: Path) -> None:
    answer = ss.task_weights(
        folder / "shop_events.csv", user="user_id", group="product", epsilon=1, delta=1e-6
    )
    text = answer.code("python")
    assert "p01" not in text
    with pytest.raises(SystemExit, match="Write the public tasks"):
        exec(compile(text, "program", "exec"), {})
    # Balle and Wang 2018, theorem 8, of a vector that moves by sqrt(BUDGET) under noise of scale 1.
    move = math.sqrt(float(re.search(r"^BUDGET = (\S+)", text, re.MULTILINE)[1]))  # type: ignore[index]
    delta = norm.cdf(move / 2 - 1 / move) - math.e * norm.cdf(-move / 2 - 1 / move)
    assert 0.999e-6 < delta <= 1e-6 * (1 + 1e-6)


@pytest.mark.parametrize("fit", ["average", "logarithmic", "nobody-clipped", "full"])
def test_one_user_changes_no_line_of_a_program_of_task_weights(tmp_path: Path, fit: Any) -> None:
    """The new user has every task, and a task of their own."""
    table = "user,task\n" + "".join(f"u{i},t{i % 7}\nu{i},t{i % 3}\n" for i in range(60))
    texts = []
    for rows_added in ("", "".join(f"new,t{i}\n" for i in range(7)) + "new,secret\n"):
        (tmp_path / "events.csv").write_text(table + rows_added)
        answer = ss.task_weights(
            tmp_path / "events.csv", user="user", group="task", epsilon=1, delta=1e-6, fit=fit
        )
        texts.append(answer.code("python"))
    assert texts[0] == texts[1]


def test_coefficients_are_the_weighted_labels(folder: Path) -> None:
    rng = np.random.default_rng(7)
    features = np.column_stack([np.ones(60), rng.normal(size=60)])
    labels = np.clip(20.0 + 3.0 * features[:, 1] + rng.normal(size=60), LOWER, UPPER)
    problem = RegressionProblem(features, np.repeat(np.arange(20), 3), 1e3, UPPER - LOWER, 1.0, ("one", "x"))
    estimate = estimate_on_all_rows(problem)
    (folder / "regression_matrix.parquet").write_bytes(write_matrix(problem, estimate, Disclosure.PUBLIC))
    pd.DataFrame({"user_id": np.repeat(np.arange(20), 3), "amount": labels}).to_csv(
        "shop_events.csv", index=False
    )
    choice = make_spec(
        Quantity.COEFFICIENTS,
        largest_user_weight=estimate.largest_user_weight,
        num_coefficients=2,
        neighbours=REPLACE,
        epsilon=1e3,
        **VALUES,
    )
    got = run_program(choice, Program.PYTHON)["released"]
    np.testing.assert_allclose(
        got, np.linalg.lstsq(features, labels, rcond=None)[0], atol=estimate.laplace_noise.scale * SURE
    )


def classifier_rows() -> ClassifierRows:
    """The rows of the page, read without the program's code."""
    table = pd.read_csv("shop_events.csv")
    features = np.column_stack(
        [np.ones(len(table)), *((table["product"] == level) for level in ("p01", "p02", "p03"))]
    )
    users = pd.factorize(table["user_id"])[0]
    labelled = LabelledRows(features, table["amount"], users, ("1", "2", "3", "4"))
    return prepare_rows(labelled, Scaling((None,) * 4, 2.0**0.5), 45.0)


def test_a_classifier_is_the_one_of_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without noise it is the page's descent without noise; with it, it differs from run to run.
    choice = SPEC_BY_NAME["classifier"]
    quiet = replace(choice, training=replace(choice.training, gradient_noise_std=0.0, weight_noise_std=0.0))
    got = run_program(quiet, Program.PYTHON)["theta"]
    rows = classifier_rows()
    mechanism = Mechanism(1.0, 1e-5)
    silence = np.zeros((mechanism.steps, 4, 1)), np.zeros(1)
    monkeypatch.setattr(descent, "draw_noise", lambda *_: silence)
    page = descent.train_cells(rows, mechanism, [Cell(Method.SMOOTH, 2.5)], 0, range(1))
    np.testing.assert_allclose(got, page[:, 0], rtol=1e-9)
    assert not np.array_equal(
        run_program(choice, Program.PYTHON)["theta"], run_program(choice, Program.PYTHON)["theta"]
    )


@pytest.mark.long_but("cell3")
@pytest.mark.parametrize(
    "cell",
    [
        Cell(Method.FOLLOWED),
        Cell(Method.CLIPPED_SUM, 0.5),
        Cell(Method.SMOOTH, 1.0, 0.5),
        Cell(Method.CAP, 1000),
    ],
)
def test_a_classifier_by_the_rule_is_the_one_of_the_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cell: Cell
) -> None:
    # Without noise, but with the step lengths and the quantile that noise calls for, it is the page's descent.
    mechanism = training_mechanism.apply_rule(Mechanism(2.0, 1e-5))
    training = SPEC_BY_NAME["classifier"].training
    by_rule = code_of_training._add_noise_settings(training, mechanism, cell)
    quiet = replace(
        by_rule,
        gradient_noise_std=0.0,
        rule=replace(by_rule.rule, count_noise_std=0.0, num_users_noise_std=0.0),
    )
    choice = replace(SPEC_BY_NAME["classifier"], threshold=cell.bound, training=quiet)
    got = run_program(choice, Program.PYTHON)["theta"]
    rows = classifier_rows()
    silence = np.zeros((mechanism.steps, 4, 1)), np.zeros(1)
    monkeypatch.setattr(descent, "draw_noise", lambda *_: silence)
    if cell.method is Method.FOLLOWED:
        page = descent.descend_without_noise(rows, mechanism, True)
    else:
        page = descent.train_cells(rows, mechanism, [cell], 0, range(1))
    np.testing.assert_allclose(got, page[:, 0], rtol=1e-6)
    noisy = replace(choice, training=by_rule)
    assert not np.array_equal(
        run_program(noisy, Program.PYTHON)["theta"], run_program(noisy, Program.PYTHON)["theta"]
    )
