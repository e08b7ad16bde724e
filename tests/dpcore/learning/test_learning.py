"""The parameters of the page on learning under a cap, and the files that it hands out."""

import csv
import dataclasses
import io
import json

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.data import samples
from dpcore.learning import LearningParameters, PrivacyForm, optimal_cap
from dpcore.learning.answer import build_answer
from dpcore.learning.answer.solution import compute_curves
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.optimal_cap import PrivacyTerm
from dpcore.learning.parameters import FALLBACK_BY_TERM
from dpcore.report import content as report_document

ALL_SET = LearningParameters(
    epsilon=0.3,
    bias=BiasTerm.COROLLARY_1,
    loss_variance=0.1,
    vc_dimension=7,
    failure_probability=0.01,
    privacy_form=PrivacyForm.OWN,
    privacy_constant=3.5,
    privacy_power=1.5,
    finite_sample_constant=0.5,
    own_bound=12,
    alpha=0.75,
    population_rows=5000,
    draws=30,
    public_rows=400,
)


def test_every_form_of_the_noise_is_its_term() -> None:
    assert ALL_SET.privacy == PrivacyTerm(power=1.5, constant=3.5, log_power=0.0)
    assert LearningParameters(1.0, privacy_constant=2.0).privacy == PrivacyTerm(constant=2.0)
    linear = LearningParameters(1.0, privacy_form=PrivacyForm.LINEAR, privacy_constant=1.0)
    assert linear.privacy == PrivacyTerm(1.0, log_power=0.0)


@pytest.mark.parametrize("term", BiasTerm)
def test_every_bias_term_has_a_population_side(term: BiasTerm) -> None:
    parameters = LearningParameters(1.0, bias=term)
    assert not parameters.population_bias.needs_shares
    assert parameters.population_bias.needs_variance == term.needs_variance
    # The counterpart never claims less than the bound it stands in for.
    if term in FALLBACK_BY_TERM:
        histogram = samples.load("shop-events").histogram
        tau_0 = optimal_cap.choose_fractions(histogram)
        for variance in (0.0, 0.01, 0.25):
            bounds = optimal_cap.compute_bias_terms(
                dataclasses.replace(parameters, loss_variance=variance).build_problem(histogram), tau_0
            )
            assert np.all(bounds[term] <= bounds[FALLBACK_BY_TERM[term]] + 1e-12)
    limit = parameters.build_population_problem(None)
    assert (limit.num_rows, limit.finite_sample_constant) == (None, 0.0)


def test_what_does_not_matter_is_left_out() -> None:
    other = dataclasses.replace(ALL_SET, own_bound=None, alpha=2.0, public_rows=None)
    assert other.about_data == ALL_SET.about_data
    assert other.population_parameters != ALL_SET.population_parameters
    assert (
        dataclasses.replace(ALL_SET, own_bound=3, draws=7, public_rows=9).population_parameters
        == ALL_SET.population_parameters
    )
    assert dataclasses.replace(ALL_SET, vc_dimension=8).about_data != ALL_SET.about_data


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"epsilon": None}, "Epsilon must be a number between 0.000001 and 1,000"),
        ({"loss_variance": 0.26}, "Var(H) must lie between 0 and 0.25; got 0.26"),
        ({"vc_dimension": 2.5}, "The VC dimension d must be a whole number"),
        ({"failure_probability": 1.0}, "The failure probability δ must lie between 1e−12 and 0.999"),
        ({"privacy_constant": -1.0}, "The noise factor C must lie"),
        ({"privacy_form": PrivacyForm.OWN}, "The power of F is missing. Enter a number"),
        ({"privacy_power": 2.0}, 'The power of F can be set only with "Power" as the privacy term F'),
        ({"finite_sample_constant": float("nan")}, "The finite-sample constant must"),
        ({"own_bound": 0}, "Your own bound must be a whole number"),
        ({"alpha": 0.01}, "The α of the population must lie between 0.05 and 10"),
        ({"population_rows": 10**8}, "The number of rows n must be a whole number between 10 and 10,000,000"),
        ({"draws": 0}, "The number of samples must be a whole number between 1 and 1,000"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(changed: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        LearningParameters(**{"epsilon": 1.0, **changed})
    (problem,) = refused.value.problems
    assert sentence in problem.sentence


def test_the_choice_as_a_file() -> None:
    data = samples.load("shop-events")
    problem = ALL_SET.build_problem(data.histogram)
    best = optimal_cap.find_best_cap(problem)
    caps_within = optimal_cap.find_caps_within(problem, best)
    document = json.loads(build_answer(data, ALL_SET).write_json())
    answer, label = document["answer"], data.disclosure.label
    assert answer["max_contributions"] == best.cap
    assert answer["bound"] == pytest.approx(
        answer["bias_twice"] + answer["finite_sample"] + answer["privacy_noise"]
    )
    assert answer["label"] == document["data"]["label"] == label
    assert document["question"]["label"] == "public input"
    assert document["question"]["bias"] == "corollary_1"
    assert document["question"]["own_bound"] == ALL_SET.own_bound
    assert answer["caps_within_5_percent"] == list(caps_within)
    assert answer["promises_something"] == (best.total < 1)


def test_the_curves_as_a_file() -> None:
    histogram = samples.load("requests-commits").histogram
    problem = LearningParameters(0.1, loss_variance=0.02).build_problem(histogram)
    tau_0 = optimal_cap.choose_fractions(histogram)
    text = report_document.write_columns(compute_curves(problem, tau_0), Disclosure.PUBLIC)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == tau_0.size
    counts = np.repeat(histogram.sizes, histogram.users).astype(float)
    for row in rows[:: len(rows) // 7]:
        cap = float(row["cap_rows"])
        kept_values = np.minimum(counts, cap)
        assert cap == pytest.approx(round(cap))
        assert float(row["kept_share"]) == pytest.approx(kept_values.sum() / counts.sum())
        assert float(row["users_capped"]) == np.sum(counts > round(cap))
        distance = 0.5 * np.abs(kept_values / kept_values.sum() - counts / counts.sum()).sum()
        assert float(row["twice_worst_case"]) == pytest.approx(2 * distance, abs=1e-9)
        parts = [float(row[name]) for name in ("bias_twice", "finite_sample", "privacy_noise")]
        assert float(row["bound"]) == pytest.approx(sum(parts))
    assert rows[0]["twice_corollary_1"] == "inf"
