"""Files about a quantile, read back by other readers."""

import csv
import io
import json
from dataclasses import replace
from fractions import Fraction

import pytest

from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.quantile import WeightKind
from dpcore.quantile.answer import build_answer
from dpcore.quantile.answer.answer import write_weights_csv
from dpcore.quantile.parameters import QuantileParameters, Weighting

HISTOGRAM = ContributionHistogram(sizes=[1, 4, 30], users=[20, 6, 2])


@pytest.mark.parametrize(
    ("kind", "bound"), [(WeightKind.SMOOTH, 3.7), (WeightKind.CAP, 5.0), (WeightKind.SMOOTH, 30.0)]
)
def test_weights_sum_to_one_and_bound_every_user(kind, bound):
    text = write_weights_csv(HISTOGRAM, kind, bound, Disclosure.PRIVATE)
    rows = list(csv.DictReader(io.StringIO(text)))
    users = [Fraction(row["rows_kept"]) * Fraction(row["row_weight"]) for row in rows]
    assert float(sum(int(r["users"]) * w for r, w in zip(rows, users, strict=True))) == pytest.approx(1.0)
    # W = h / n_h with n_h = sum of min(h, s).
    rows_kept = sum(u * min(bound, s) for s, u in ((1, 20), (4, 6), (30, 2)))
    assert float(max(users)) == pytest.approx(bound / rows_kept)
    assert {row["label"] for row in rows} == {Disclosure.PRIVATE.label}


@pytest.mark.long
def test_the_choice_says_what_was_asked_and_labels_what_was_computed():
    shop = replace(samples.load("shop-events"), disclosure=Disclosure.PRIVATE)
    parameters = QuantileParameters(
        2.0, "0.9, 0.5", low=0.0, high=100.0, weighting=Weighting.CAP, program=Program.BEST
    )
    choice = json.loads(build_answer(shop, parameters).write_json())
    assert choice["question"]["quantiles"] == "0.9, 0.5"
    assert choice["question"]["label"] == "public input"
    assert choice["data"]["label"] == choice["answer"]["label"] == Disclosure.PRIVATE.label
    assert [item["quantile"] for item in choice["answer"]["quantiles"]] == [0.5, 0.9]
    assert choice["answer"]["quantiles"][0]["epsilon"] == 1.0
    errors = [item["expected_rank_error"] for item in choice["answer"]["quantiles"]]
    smooth, cap = choice["answer"]["best_for_the_values"]
    assert (smooth["weights"], cap["weights"]) == (WeightKind.SMOOTH.value, WeightKind.CAP.value)
    assert choice["answer"]["bound"] == cap["bound"]
    assert sum(errors) / 2.0 == pytest.approx(cap["expected_rank_error"])
