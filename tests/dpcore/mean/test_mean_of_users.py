"""The answer for a mean that clamps users: its error by brute force and by the program's own draws."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.code import write
from dpcore.common.checks import InvalidInput
from dpcore.common.programs import Program
from dpcore.data import samples
from dpcore.mean.clamped_users import ClampedUsersProblem
from dpcore.mean.table_values import ValueSummary
from dpcore.mean.value_range import ValueRangeProblem, WeightedRows
from dpcore.reply import Reply
from tests.dpcore.code import audit
from tests.dpcore.mean.test_clamped_users import make_values

SHOP = samples.load("shop-events")
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}


def make_table(seed: int = 4, num_users: int = 120) -> pd.DataFrame:
    """Make a table of skewed values, whose users differ more than their rows."""
    generator = np.random.default_rng(seed)
    sizes = generator.geometric(0.3, num_users)
    users = np.repeat(np.arange(num_users), sizes)
    values = np.exp(generator.normal(2.0, 0.8, num_users))[users] * np.exp(
        generator.normal(0.0, 0.5, users.size)
    )
    return pd.DataFrame({"user": users, "value": values})


def ask(table: pd.DataFrame | str, **settings: Any) -> Reply:
    defaults = {"epsilon": 1.0, "lower": 2, "upper": 15, "counts": "private", "clamp": "users"}
    return ss.mean_bound(table, user="user", value="value", disclosure="public", **{**defaults, **settings})


@pytest.mark.thinned
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("has_private_counts", [False, True])
def test_the_error_over_bounds_is_that_of_the_parts(seed: int, has_private_counts: bool) -> None:
    """Sorted sums agree with user by user, for every h; no h of a fine grid is better than the one found."""
    values = make_values(seed)
    problem = ClampedUsersProblem(values, 2.0, has_private_counts)
    lower, upper = float(np.quantile(values.values, 0.2)) - 0.5, float(np.quantile(values.values, 0.7)) + 0.5
    deviations = _summarise(values, lower, upper).user_deviations
    thresholds = np.linspace(problem.sizes[0], problem.sizes[-1], 400)
    errors = deviations.compute_error(thresholds, 2.0, has_private_counts)
    middle = (lower + upper) / 2.0
    expected = [
        problem.measure_parts(h, middle, h * (upper - lower) / 2.0).table_error for h in thresholds.tolist()
    ]
    np.testing.assert_allclose(np.sqrt(errors.squared_error), expected, rtol=1e-9)
    best = deviations.find_threshold(2.0, has_private_counts)
    assert deviations.compute_error(
        best, 2.0, has_private_counts
    ).squared_error <= errors.squared_error.min() * (1.0 + 1e-9)
    parts = problem.measure_parts(best, middle, best * (upper - lower) / 2.0)
    assert deviations.sum_biases(best, clamps_users=True) == pytest.approx(parts.clamping + parts.bounding)
    rows = WeightedRows(ValueRangeProblem(values, 1.0), best).compute_error_parts(lower, upper)
    assert deviations.sum_biases(best, clamps_users=False) == pytest.approx(
        float(rows.clamping + rows.bounding)
    )
    means = np.array(
        [values.values[values.user_codes == user].mean() for user in np.unique(values.user_codes)]
    )
    weights = np.minimum(best, np.bincount(values.user_codes))
    num_cut = np.count_nonzero(weights * np.abs(means - middle) > best * (upper - lower) / 2.0 * (1 + 1e-12))
    assert deviations.count_cut(best) == num_cut


def _summarise(values: Any, lower: float, upper: float) -> ValueSummary:
    rows = pd.DataFrame({"user": values.user_codes, "value": values.values})
    summary = ask(rows, lower=lower, upper=upper).answer.solution.value_summary
    assert summary is not None
    return summary


@pytest.mark.long_but("gaussian-Program.PYTHON", "public-Program.OPENDP")
@pytest.mark.parametrize("program", [Program.PYTHON, Program.OPENDP])
@pytest.mark.parametrize(
    "settings", [{}, {"counts": "public"}, GAUSSIAN, {"epsilon": 4.0}], ids=["", "public", "gaussian", "4"]
)
def test_releases_err_as_the_card_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program, settings: dict[str, Any]
) -> None:
    """40,000 draws of the program's own mechanism; the delta method may be off by a few per cent."""
    monkeypatch.chdir(tmp_path)
    table = make_table(num_users=600)
    table.to_csv("events.csv", index=False)
    reply = ask("events.csv", program=program.value, **settings)
    choice = reply.answer.code.forms[0][1]
    text = write(choice, program).text
    observed = audit.Run()
    with audit.silenced(observed):
        names: dict[str, Any] = {}
        exec(compile(text, "program", "exec"), names)
    truth, generator = float(table["value"].mean()), np.random.default_rng(7)
    limit, width = names["LIMIT"], names["UPPER"] - names["LOWER"]
    scale = float(reply.answer.solution.problem.noise.unit_scale) * 2.0 * limit
    draw = generator.normal if settings is GAUSSIAN else generator.laplace
    if observed.frames:
        total = float(names["lines"].collect()["total"].sum())
        sum_of_users = total * names["RANGE"] / names["STEPS"] - limit * len(names["rows"])
        released = names["MIDDLE"] + (sum_of_users + draw(0.0, scale, 40_000)) / names["kept"]
    else:
        ((_, exact),) = observed.inputs
        unit = limit / names["STEPS"] if program is Program.OPENDP else 1.0
        noisy = np.array(exact)[:, None] * unit + draw(0.0, scale, (len(exact), 40_000))
        if len(exact) == 1:
            released = names["MIDDLE"] + noisy[0] / names["rows"]
        else:
            rows = np.maximum(noisy.sum(axis=0) / width, 1.0)
            released = names["MIDDLE"] + (noisy[0] - noisy[1]) / 2.0 / rows
    error = math.sqrt(float(((released - truth) ** 2).mean()))
    assert error == pytest.approx(reply.error, rel=0.05)


def test_one_choice_changes_answer_program_and_texts() -> None:
    table = make_table()
    rows, users = ask(table, clamp="rows"), ask(table)
    assert users.error < rows.answer.solution.smooth_choice.standard_error
    assert "Choose *Users' deviations* under *Clamp*" in rows.answer.facts["Against clamped users"]
    assert users.answer.headline.startswith("Weigh a user as at most")
    limit = next(number.value for number in users.answer.numbers if number.key == "deviation_limit")
    assert limit == pytest.approx(users.bound * 13.0 / 2.0)
    document = json.loads(users.answer.write_json())
    assert document["question"]["clamp"] == "users"
    assert document["answer"]["standard_error"] == pytest.approx(users.error)
    assert "was clamped to ±" in users.answer.methods.procedure
    assert not any(
        character.isdigit() for character in users.answer.methods.public_procedure.partition("from")[0]
    )
    ((_, choice),) = users.answer.code.forms
    assert choice.clamps_users
    assert not write(choice, Program.TUMULT).text


@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"counts": "public"}, {"target": "population"}])
def test_the_file_of_weights_holds_those_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = make_table()
    table.to_csv("events.csv", index=False)
    reply = ask("events.csv", **settings)
    weights = pd.read_csv(io.StringIO(reply.answer.files["mean_weights.csv"]()), comment="#")
    assert not [name for name in weights.columns if "cap" in name]
    names: dict[str, Any] = {}
    with audit.silenced(audit.Run()):
        exec(compile(write(reply.answer.code.forms[0][1], Program.PYTHON).text, "program", "exec"), names)
    by_size = weights.set_index("size")
    np.testing.assert_allclose(names["weight"], by_size["user_weight"].loc[names["count"]], rtol=1e-6)
    np.testing.assert_allclose(by_size["row_weight"] * by_size.index, by_size["user_weight"])
    for limits in (by_size["largest_deviation"], by_size["largest_distance"] * by_size["user_weight"]):
        np.testing.assert_allclose(limits, names["LIMIT"], rtol=1e-6)


def test_a_bound_of_ones_own_stands_on_the_curve_and_the_handle_on_it() -> None:
    answer = ask(make_table(), own_bound=3).answer
    ((mark,),) = [
        [item for item in answer.plots["mean-error"]().items if getattr(item, "name", "") == "Your own bound"]
    ]
    plot = answer.plots["mean-error"]()
    assert plot.handle.initial_value == mark.x == 3
    assert mark.y == pytest.approx(
        np.interp(3.0, plot.columns["bound"], plot.columns["users_error"]), rel=0.02
    )
    assert mark.y > answer.numbers[1].value
    assert f"error {mark.y:.3g}" in answer.facts["Your own bound, 3 rows"]
    squares = [np.asarray(entry) ** 2 for entry in plot.handle.error_parts.values()]
    np.testing.assert_allclose(np.sqrt(sum(squares)), plot.handle.errors)


def test_cancelling_biases_propose_nothing() -> None:
    """Of these purchases rows err less on the table, by biases that cancel; added up, they err more."""
    detail = ss.mean_bound(SHOP, epsilon=1, lower=20, upper=65, counts="private", clamp="users").answer.detail
    assert "less. Biases cancel on this table" in detail
    assert "under *Clamp*" not in detail


def test_without_values_the_error_is_that_of_rows() -> None:
    rows, users = (
        ss.mean_bound([1, 2, 9, 30], epsilon=1, lower=0, upper=9, clamp=clamp) for clamp in ("rows", "users")
    )
    assert users.error == rows.answer.solution.smooth_choice.standard_error
    assert "the same as for clamped rows" in users.answer.detail


@pytest.mark.parametrize("program", ["PipelineDP", "Tumult", "BigQuery"])
def test_programs_that_clamp_rows_are_refused(program: str) -> None:
    with pytest.raises(InvalidInput, match="cannot clamp users' deviations"):
        ask(make_table(), program=program)
