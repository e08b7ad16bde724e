"""What a person chooses for a sum, what every user holds, and the files that say so."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpcore as ss
from dpcore import total
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset, Totals, Values
from dpcore.total.answer import build_answer
from dpcore.total.parameters import Summed, TotalParameters, compute_user_totals
from dpcore.total.signed import SignedProblem

SHOP = samples.load("shop-events")
LINES = samples.load("online-retail-lines")


def data_with(codes, values, totals=None, pairs=None):
    counts = np.bincount(codes)
    return Dataset(
        name="d",
        source="a test",
        disclosure=Disclosure.PRIVATE,
        histogram=ContributionHistogram.from_counts(counts),
        values=Values(codes, values, "euros"),
        totals=totals,
        pairs=pairs,
    )


def test_rows_are_the_histogram():
    amounts = compute_user_totals(LINES, Summed.ROWS).amounts
    assert amounts.total == LINES.histogram.num_rows
    assert amounts.largest == LINES.histogram.max_size


def test_values_are_the_totals_of_the_column():
    user_totals = compute_user_totals(SHOP, Summed.VALUES)
    assert user_totals.column_name == "amount"
    # Added up anew, one user at a time.
    sums = [SHOP.values.values[SHOP.values.user_codes == u].sum() for u in range(SHOP.histogram.num_users)]
    assert user_totals.amounts.total == pytest.approx(np.sum(sums))
    assert user_totals.amounts.largest == pytest.approx(np.max(sums))


def test_negative_values_are_fine_where_no_total_is_negative():
    # The facet counts rows then, as reading a file with negative values does.
    found = compute_user_totals(data_with([0, 0, 1], [-3.0, 5.0, 4.0], Totals([2.0, 1.0])), Summed.VALUES)
    assert found.amounts.values.tolist() == [2.0, 4.0]
    assert (found.signed_totals, found.column_name, found.refusal_sentence) == (None, "euros", "")


def test_totals_of_both_signs_are_refused_with_what_to_do():
    user_totals = compute_user_totals(data_with([0, 0, 1, 2], [-3.0, 1.0, 4.0, -7.5]), Summed.VALUES)
    assert user_totals.amounts is None
    assert user_totals.signed_totals.tolist() == [-2.0, 4.0, -7.5]
    assert "2 of 3 users have a negative total; the smallest is -7.5" in user_totals.refusal_sentence
    assert "Clip every total to [L, U]" in user_totals.refusal_sentence


def test_what_cannot_be_added_up_is_said():
    assert "no column of values" in compute_user_totals(LINES, Summed.VALUES).refusal_sentence
    huge = compute_user_totals(data_with([0, 0, 1], [1e308, 1e308, 1.0]), Summed.VALUES)
    assert "too large to add up" in huge.refusal_sentence
    assert huge.amounts is huge.signed_totals is None


def test_a_bound_on_rows_is_whole_and_one_on_totals_is_not():
    rows = TotalParameters(0.3).build_problem(compute_user_totals(SHOP, Summed.ROWS).amounts)
    values = TotalParameters(0.3, Summed.VALUES).build_problem(
        compute_user_totals(SHOP, Summed.VALUES).amounts
    )
    assert (rows.is_integer, values.is_integer) == (True, False)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"epsilon": 0.0}, "epsilon must lie between"),
        ({"mechanism": NoiseKind.GAUSSIAN}, "δ is missing. Enter a number"),
        ({"delta": 1e-6}, 'δ can be set only with "Gaussian" as the mechanism'),
        ({"mechanism": NoiseKind.GAUSSIAN, "delta": 0.9}, "δ must lie between"),
        ({"own_bound": 2.5}, "your own bound must be a whole number"),
        ({"own_bound": -1.0, "summed": Summed.VALUES}, "your own bound must lie between"),
        ({"lower": 1.0}, "L and U go together"),
        ({"lower": 2.0, "upper": 1.0}, "lower must not lie above upper"),
        ({"own_share": 1.01}, "your own quantile must lie between"),
        ({"runs": 1}, "the number of runs must be a whole number"),
        ({"seed": -1}, "the seed must be a whole number"),
    ],
)
def test_refusals_name_what_is_wrong(fields, sentence):
    with pytest.raises(InvalidInput) as caught:
        TotalParameters(**{"epsilon": 1.0, **fields})
    assert any(sentence.lower() in p.sentence.lower() for p in caught.value.problems)


def test_all_problems_come_at_once():
    with pytest.raises(InvalidInput) as caught:
        TotalParameters(-1.0, own_bound=0.5, lower=1.0, runs=0)
    assert len(caught.value.problems) == 4


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.lists(st.floats(0.0, 2e6), min_size=1, max_size=5),
    st.sampled_from(NoiseKind),
)
def test_many_ranges_at_once_are_each_range_by_itself(totals, bounds, noise):
    delta = 1e-5 if noise is NoiseKind.GAUSSIAN else None
    problem = SignedProblem.from_totals(totals, 0.7, noise, delta)
    at = problem.compute_symmetric_errors(bounds)
    for i, t in enumerate(bounds):
        one = problem.clip(-t, t)
        close = {"rel": 1e-9, "abs": 1e-7}
        assert at.bias[i] == pytest.approx(abs(one.bias), **close)
        assert at.absolute_errors[i] == pytest.approx(float(one.errors.absolute_errors), **close)
        assert at.rmse[i] == pytest.approx(float(one.errors.rmse), **close)
        assert at.mean_noise[i] == pytest.approx(float(one.errors.mean_noise))


def test_the_choice_of_a_cap_on_rows_can_be_checked_from_the_file():
    parameters = TotalParameters(0.1, own_bound=5.0)
    problem = parameters.build_problem(compute_user_totals(LINES, Summed.ROWS).amounts)
    content = json.loads(build_answer(LINES, parameters).write_json())
    answer = content["answer"]
    t = answer["max_contributions"]
    sizes, users = LINES.histogram.sizes, LINES.histogram.users
    bias = int(np.sum(np.maximum(sizes - t, 0) * users))
    assert isinstance(t, int)
    assert (answer["bias"], answer["noise_scale"]) == (bias, pytest.approx(t / 0.1))
    assert answer["bound_on_absolute_error"] == pytest.approx(bias + t / 0.1)
    assert answer["expected_absolute_error"] == pytest.approx(bias + t / 0.1 * np.exp(-bias / (t / 0.1)))
    assert answer["users_affected"] == int(users[sizes > t].sum())
    assert answer["within_5_percent"] == list(total.find_near_optimal_bounds(problem))
    assert "max_total_rounded" not in answer
    assert answer["proved_relative_gap"] == pytest.approx(0.0, abs=1e-9)
    assert content["question"]["epsilon"] == 0.1
    assert (content["question"]["summed"], content["question"]["own_bound"]) == ("rows", 5.0)
    assert "runs" not in content["question"]
    assert content["schema"] == "sweetspot/choice/1"
    assert [item["label"] for item in (content["question"], content["data"], content["answer"])] == [
        "public input"
    ] * 3


def test_the_file_of_a_sum_holds_the_exact_bound_and_the_one_to_hand_over():
    data = data_with([0, 1, 2], [1.0, 1.0, 24.758], Totals([1.0, 1.0, 24.758], "euros"))
    parameters = TotalParameters(2.0, Summed.VALUES, objective=Measure.BOUND)
    answer = json.loads(build_answer(data, parameters).write_json())["answer"]
    # Rank ceil(1 / 2) = 1. Upwards the error T / 2 grows as T: 24.8 costs 0.17 %, 24.76 costs 0.01 %. Downwards a
    # cut of d costs d / 2 as well: 24.7 costs 0.23 %, 24.75 costs 0.03 %.
    assert (answer["max_total"], answer["max_total_rounded"]) == (24.758, 24.76)


def test_the_file_of_a_bound_of_zero_is_json():
    # A bound T adds noise of 100 T on average, and keeps at most 2 T.
    data = data_with([0, 1], [1.0, 1.0], Totals([1.0, 1.0], "euros"))
    parameters = TotalParameters(0.01, Summed.VALUES, objective=Measure.BOUND)
    text = build_answer(data, parameters).write_json()
    assert json.loads(text)["answer"]["max_total"] == 0.0


@pytest.mark.parametrize("entered", [True, False])
def test_the_file_of_a_range_says_where_it_comes_from(entered):
    data = data_with([0, 1, 2], [-3.0, 4.0, -7.5])
    limits = (-5.0, 5.0) if entered else (None, None)
    parameters = TotalParameters(1.0, Summed.VALUES, lower=limits[0], upper=limits[1])
    content = json.loads(build_answer(data, parameters).write_json())
    assert content["answer"]["range_comes_from"] == ("entered" if entered else "the data")
    # A range read off private data stands only where the label says so.
    assert ("lower" in content["question"]) is entered
    assert content["answer"]["label"] == "computed from private data (do not publish)"
    if entered:
        assert (content["answer"]["bias"], content["answer"]["noise_scale"]) == (2.5, 5.0)


def test_a_range_that_is_not_used_is_said() -> None:
    table = pd.DataFrame({"who": ["a", "a", "b"], "spent": [1.0, 2.0, 4.0]})
    settings = {"user": "who", "value": "spent", "epsilon": 1.0, "lower": -2.0, "upper": 2.0}
    assert "Your own range: not used" in str(ss.sum_bound(table, **settings))
    assert "Your own range" not in str(ss.sum_bound(table, **{**settings, "lower": None, "upper": None}))
    signed = ss.sum_bound(table.assign(spent=[1.0, -2.0, 4.0]), **settings)
    assert "Your own range" not in str(signed)
    assert (signed.bound.lower, signed.bound.upper) == (-2.0, 2.0)
