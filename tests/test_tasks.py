"""Small things that a newcomer asks of `dpcore`, as they would guess them from README and `help` alone."""

from __future__ import annotations

import json
import math
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.data import samples

EVENTS = Path(__file__).parents[1] / "sample_data" / "shop_events.csv"
MEAN = {"user": "user_id", "value": "amount", "epsilon": 1, "lower": 0, "upper": 100}


@pytest.fixture(scope="module")
def events() -> pd.DataFrame:
    return pd.read_csv(EVENTS)


@pytest.fixture(scope="module")
def mean(events: pd.DataFrame):
    return ss.mean_bound(events, **MEAN)


def test_a_mean_has_the_bound_and_the_error_of_brute_force(events, mean):
    # About the mean of this table, under the worst variance, (U - L)^2 / 4, as the values are private. A fifth of that
    # lies between users: with n_h rows kept, shares p of the rows and k of the kept ones, the variance is
    # sigma^2 (sum (k - p)^2 / 5 + 4/5 (1 / n_h - 1 / n)), and 2 (B h / n_h)^2 is the noise.
    rows = events["user_id"].value_counts().to_numpy()
    equal, errors = rows / rows.sum(), {}
    for cap in range(1, rows.max() + 1):
        kept_values = rows.clip(max=cap)
        n = kept_values.sum()
        middle_total, within = np.sum((kept_values / n - equal) ** 2), 1 / n - 1 / rows.sum()
        errors[cap] = math.sqrt(2500 * (0.2 * middle_total + 0.8 * within) + 2 * (100 * cap / n) ** 2)
    best = min(errors, key=errors.__getitem__)
    assert (mean.bound, isinstance(mean.bound, int)) == (best, True)
    assert mean.error == pytest.approx(errors[best])
    assert len(str(mean).splitlines()) == 5
    assert "do not publish" in str(mean)


def test_count_sum_median_and_groups(events):
    settings = {"user": "user_id", "epsilon": 1}
    count = ss.count_bound(events, **settings)
    # What is cut away plus OpenDP's whole Laplace noise of scale T: E |b + X| = b + exp(-b / T) / sinh(1 / T).
    rows = events["user_id"].value_counts().to_numpy()
    cut = {most: (rows - most).clip(min=0).sum() for most in range(1, rows.max() + 1)}
    errors = {most: b + math.exp(-b / most) / math.sinh(1 / most) for most, b in cut.items()}
    assert count.error == pytest.approx(min(errors.values()))
    assert errors[count.bound] == pytest.approx(count.error)
    assert ss.sum_bound(events, value="amount", **settings).bound > 0
    median = ss.quantile_bound(events, value="amount", lower=0, upper=100, **settings)
    assert 0 < median.error < 0.5
    pair = ss.group_bounds(events, group="product", **settings)
    assert pair.bound.max_groups >= 1
    assert pair.bound.max_amount >= 1
    assert pair.error == pytest.approx(pair.bound.error)


def test_code_report_figure_table_json_and_script(mean, tmp_path, monkeypatch):
    assert f"max_contributions = {mean.bound}" in mean.code("opendp") or f"{mean.bound}" in mean.code(
        "opendp"
    )
    assert "SELECT" in mean.code("bigquery").upper()
    page = mean.report(tmp_path / "answer.html").read_text(encoding="utf-8")
    assert mean.headline.replace("**", "")[:20] in page
    assert mean.figure().to_plotly_json()["data"]
    assert len(mean.figures) > 1
    assert mean.figure(list(mean.figures)[1]).data
    table = mean.numbers
    assert table["value"].iloc[0] == mean.bound
    assert table.loc["Best bound", "unit"] == "rows per user"
    assert json.loads(mean.to_json())["holds_private_numbers"]
    monkeypatch.chdir(tmp_path)
    script = ss.count_bound([1, 2, 30], epsilon=1, disclosure="public").script()
    names: dict = {}
    exec(compile(script, "script.py", "exec"), names)
    assert names["answer"].bound == ss.count_bound([1, 2, 30], epsilon=1).bound


def test_an_own_cap_is_compared_and_counts_may_be_private(events, mean):
    mean_bound = ss.mean_bound(events, own_bound=50, **MEAN)
    assert mean_bound.bound == mean.bound
    assert "more compared with the bound above" in mean_bound.facts["Your own bound, 50 rows"]
    public = ss.mean_bound(events, counts="public", **MEAN)
    # Never less noise for more protection, which private data have by default.
    assert mean.error >= public.error
    assert public.assumptions != mean.assumptions
    read = ss.mean_bound(events, disclosure="public", **MEAN)
    assert read.parameters.counts.value == "public"
    assert read.parameters.variance_source.value == "values"


def test_a_bad_column_and_a_bad_epsilon_are_said_at_once(events):
    with pytest.raises(ValueError, match="Epsilon must lie between") as refused:
        ss.mean_bound(events, **(MEAN | {"epsilon": -1, "value": "amout"}))
    assert "amout" in str(refused.value)
    with pytest.raises(ValueError, match="Library must be one of"):
        ss.count_bound([1, 2], epsilon=1).code("excel")
    with pytest.raises(ValueError, match="There is no figure"):
        ss.count_bound([1, 2], epsilon=1).figure("nothing")


def test_a_notebook_shows_text_figure_and_label_and_no_ones_markup(monkeypatch):
    data = samples.load("online-retail-lines")
    answer = ss.count_bound(data, epsilon=1)
    text = answer._repr_html_()
    assert answer.headline.replace("**", "") in text
    assert "What is assumed" in text
    assert answer.disclosure.label in text
    hostile = pd.DataFrame({"u": [1, 1, 2], "<script>x": [1.0, 2.0, 3.0]})
    hostile_answer = ss.sum_bound(hostile, user="u", value="<script>x", epsilon=1)
    assert "<script>" not in hostile_answer._repr_html_()
    shown: list = []
    fake = types.SimpleNamespace(HTML=lambda html: html, display=lambda part, raw=False: shown.append(part))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(display=fake))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    answer._ipython_display_()
    assert shown[0] == text
    assert shown[1]["application/vnd.plotly.v1+json"]["data"]
    # Nothing is fetched from the network.
    assert "<script src" not in shown[1]["text/html"]
    assert "cdn" not in shown[1]["text/html"].rpartition("</script>")[0].rpartition("<script")[2]
