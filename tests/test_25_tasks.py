"""Tasks that a data scientist who knew README and `help` alone solved at the first try, beside other computations."""

from __future__ import annotations

import collections
import json
import pickle
from pathlib import Path

import duckdb
import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pytest
from pyarrow import csv

import dpcore as ss
from dpcore.common.checks import InvalidInput

FILE = str(Path(__file__).parents[1] / "sample_data" / "shop_events.csv")
TABLE = pd.read_csv(FILE)
USER = {"user": "user_id", "epsilon": 1, "disclosure": "public"}
VALUES = USER | {"value": "amount", "lower": 0, "upper": 100}


def count_error(rows, bound, epsilon=1.0):
    """E|noise − bias| of a count, for integer Laplace noise of scale bound/epsilon, by summing its probabilities."""
    q = np.exp(-epsilon / bound)
    noise = np.arange(-int(60 * bound / epsilon), int(60 * bound / epsilon) + 1)
    mass = (1 - q) / (1 + q) * q ** np.abs(noise)
    return float((mass * np.abs(noise - np.maximum(rows - bound, 0).sum())).sum())


def best_count(table, epsilon=1.0):
    rows = table.groupby("user_id").size().to_numpy()
    errors = {bound: count_error(rows, bound, epsilon) for bound in range(1, rows.max() + 1)}
    bound = min(errors, key=errors.get)
    return bound, errors[bound]


def test_01_count():
    answer = ss.count_bound(FILE, **USER)
    bound, error = best_count(TABLE)
    assert answer.bound == bound
    assert answer.error == pytest.approx(error, rel=1e-3)


def test_02_sum():
    answer = ss.sum_bound(FILE, **USER, value="amount")
    totals = TABLE.groupby("user_id").amount.sum().to_numpy()
    bounds = np.arange(50, totals.max(), 5)
    bias = np.maximum(totals - bounds[:, None], 0).sum(axis=1)
    errors = bias + bounds * np.exp(-bias / bounds)  # Laplace noise of scale bound
    assert answer.error == pytest.approx(errors.min(), rel=0.01)
    assert errors[np.abs(bounds - answer.bound).argmin()] <= 1.01 * errors.min()


@pytest.mark.long
def test_03_mean_by_simulation():
    answer = ss.mean_bound(FILE, **VALUES)
    rng = np.random.default_rng(1)
    users = [group.to_numpy() for _, group in TABLE.amount.clip(0, 100).groupby(TABLE.user_id)]
    truth, bound = np.concatenate(users).mean(), answer.bound
    kept = sum(min(len(rows), bound) for rows in users)
    means = [sum(rng.permutation(rows)[:bound].sum() for rows in users) / kept for _ in range(300)]
    square = np.mean((np.array(means) - truth) ** 2) + 2 * (100 * bound / kept) ** 2
    assert answer.error == pytest.approx(square**0.5, rel=0.05)


@pytest.mark.long
def test_04_median_by_simulation():
    answer = ss.quantile_bound(FILE, **VALUES, quantiles=0.5)
    rng, bound = np.random.default_rng(2), answer.bound
    values, users = TABLE.amount.to_numpy(), pd.factorize(TABLE.user_id)[0]
    counts = np.bincount(users)
    is_kept = np.concatenate(
        [np.arange(count) < bound for count in counts]
    )  # of users' rows in a random order
    everything, distances = np.sort(values), []
    candidates = np.linspace(
        0, 100, 1001
    )  # the answer's fact "Mechanism": permute-and-flip on 1,001 even values
    for _ in range(2000):
        kept = np.sort(values[np.lexsort((rng.random(values.size), users))[is_kept]])
        below, above = (
            np.searchsorted(kept, candidates),
            len(kept) - np.searchsorted(kept, candidates, side="right"),
        )
        score = -np.abs(below - above) / 2  # of sensitivity bound / 2
        point = candidates[np.argmax(score + rng.exponential(2 * bound / 2, size=score.size))]
        low, high = np.searchsorted(everything, point), np.searchsorted(everything, point, side="right")
        distances.append(max(0, low / len(everything) - 0.5, 0.5 - high / len(everything)))
    assert answer.error == pytest.approx(np.mean(distances), rel=0.1)


def test_05_counts_per_group():
    answer = ss.group_bounds(
        FILE, user="user_id", group="product", statistic="rows", epsilon=1, disclosure="public"
    )
    cells = TABLE.pivot_table(index="user_id", columns="product", aggfunc="size", fill_value=0).to_numpy()
    num_groups_of_user = (cells > 0).sum(axis=1, keepdims=True)

    def error(groups, rows):
        chance, kept = np.minimum(1, groups / num_groups_of_user), np.minimum(cells, rows)
        bias, spread = (cells - chance * kept).sum(axis=0), (chance * (1 - chance) * kept**2).sum(axis=0)
        q = np.exp(-1 / (groups * rows))
        return np.sqrt((bias**2 + spread + 2 * q / (1 - q) ** 2).mean())

    errors = {(g, r): error(g, r) for g in range(1, 41) for r in range(1, 20)}
    assert (answer.bound.max_groups, answer.bound.max_amount) == min(errors, key=errors.get)
    assert answer.error == pytest.approx(min(errors.values()), rel=0.01)


def test_06_polars():
    assert ss.count_bound(pl.read_csv(FILE), **USER).bound == best_count(TABLE)[0]


def test_07_arrow():
    assert ss.count_bound(csv.read_csv(FILE), **USER).bound == best_count(TABLE)[0]


def test_08_duckdb_relation():
    relation = duckdb.sql(f"select * from '{FILE}' where amount > 20")
    assert ss.count_bound(relation, **USER).bound == best_count(TABLE[TABLE.amount > 20])[0]


def test_09_dict_and_counter():
    rows = collections.Counter(TABLE.user_id)
    assert (
        ss.count_bound(rows, epsilon=1).bound
        == ss.count_bound(dict(rows), epsilon=1).bound
        == best_count(TABLE)[0]
    )


def test_10_two_columns_are_a_user():
    table = pd.DataFrame({"shop": ["a"] * 200 + ["b"] * 200, "till": list(range(100)) * 4})
    assert (
        ss.count_bound(table, user=["shop", "till"], epsilon=1).bound
        == table.groupby(["shop", "till"]).size().max()
    )
    assert ss.count_bound(table, user="till", epsilon=1).bound == table.groupby("till").size().max()


def test_11_user_and_month():
    days = pd.date_range("2025-01-01", periods=12, freq="MS").repeat(2)
    table = pd.DataFrame([(user, day) for user in range(50) for day in days], columns=["user", "day"])
    of_month = table.groupby(["user", table.day.dt.to_period("M")]).size()
    answer = ss.count_bound(
        table, user="user", date="day", periods="2025-01-01 to 2026-01-01 by month", epsilon=1
    )
    assert answer.bound == of_month.max() == 2
    assert f"whole person: ε = {of_month.groupby('user').size().max()}" in str(answer)


def test_12_several_epsilons():
    table = ss.count_bound(FILE, **USER | {"epsilon": [0.1, 0.5, 1, 2]})
    assert list(table.bound) == [best_count(TABLE, epsilon)[0] for epsilon in (0.1, 0.5, 1, 2)]


def test_13_own_bound():
    bound, error = 10, count_error(TABLE.groupby("user_id").size().to_numpy(), 10)
    (line,) = [
        line
        for line in str(ss.count_bound(FILE, **USER, own_bound=bound)).splitlines()
        if "own bound" in line
    ]
    assert line.startswith("Your own bound, 10 rows:")
    assert f"{error:,.0f}"[:3] in line


def test_14_draw():
    drawn = ss.count_bound(FILE, user="user_id", epsilon=1).draw(0.5)
    rows = TABLE.groupby("user_id").size()
    assert drawn.disclosure.epsilon == 0.5
    assert (rows > drawn.bound).sum() < 60  # 1/ε + a draw's few: e^(-0.25 · 50) is the chance of more
    assert drawn.bound < 10_000


@pytest.mark.long
def test_15_report(tmp_path):
    path = ss.count_bound(FILE, **USER).report(tmp_path / "report.html")
    assert f"Keep at most {best_count(TABLE)[0]} rows per user." in path.read_text(encoding="utf-8")


def test_16_png_or_the_sentence(tmp_path):
    try:
        import kaleido  # noqa: F401
    except ImportError:
        with pytest.raises(Exception, match=r"(?i)kaleido"):
            ss.count_bound(FILE, **USER).figure().write_image(tmp_path / "figure.png")
    else:
        ss.count_bound(FILE, **USER).figure().write_image(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_17_json():
    answer = json.loads(ss.count_bound(FILE, **USER).to_json())["answers"][0]
    assert answer["headline"] == f"Keep at most {best_count(TABLE)[0]} rows per user."
    assert answer["relative_error"] == pytest.approx(best_count(TABLE)[1] / len(TABLE), rel=1e-3)


def test_18_plan():
    plan = ss.plan_bounds(FILE, **VALUES, lines="users; rows; mean").bound
    assert list(plan.index) == ["users", "rows", "mean"]
    assert plan.budget.sum() == pytest.approx(1)
    q = np.exp(-plan.budget["users"])
    assert plan.error["users"] == pytest.approx(np.sqrt(2 * q) / (1 - q), rel=1e-3)


@pytest.mark.long
def test_19_opendp_and_pipelinedp():
    dp.enable_features("contrib")
    data = pl.LazyFrame({"privacy_unit": TABLE.user_id.tolist()})
    context = dp.Context.compositor(
        data=data,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("privacy_unit")),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=(), max_length=2**32 - 1)],
    )
    answer, bound = ss.count_bound(FILE, **USER), best_count(TABLE)[0]
    assert answer.to_opendp(context).summarize()["scale"].item() == pytest.approx(bound)
    assert answer.parameters_for("pipelinedp")["AggregateParams"]["max_contributions"] == bound


def test_21_all_errors_at_once():
    with pytest.raises(InvalidInput) as caught:
        ss.mean_bound(
            FILE, user="customer", value="amuont", epsilon=-1, lower=100, upper=0, mechanism="Cauchy"
        )
    sentences = str(caught.value).splitlines()
    assert len(sentences) == 5
    assert all(
        any(wrong in line for line in sentences)
        for wrong in ("customer", "amuont", "-1", "100 and 0", "Cauchy")
    )


def test_23_pandas_pipe():
    few = TABLE.query("amount > 20")
    assert few.pipe(ss.count_bound, **USER).bound == best_count(few)[0]


def test_24_pickle():
    answer = ss.count_bound(FILE, **USER)
    again = pickle.loads(pickle.dumps(answer))
    assert again == answer
    assert again.bound == best_count(TABLE)[0]
    assert again != ss.count_bound(FILE, **USER | {"epsilon": 2})


def test_25_notebook():
    assert f"Keep at most {best_count(TABLE)[0]} rows per user." in ss.count_bound(FILE, **USER)._repr_html_()
