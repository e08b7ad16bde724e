"""Curves over epsilon, the paper's examples, and the draws of caps they rest on."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.regression import parameters, sample_limiting, study, working_set
from dpcore.regression.estimate import compute_squared_prediction_error
from dpcore.regression.problem import RegressionProblem
from tests.dpcore.regression.bank import estimate_caps

DATA = parameters.generate_table(300, 2, 1, exponent=1.6, seed=3)
PROBLEM = RegressionProblem(
    DATA.features, DATA.user_codes, 1.0, float(np.ptp(DATA.labels)), residual_variance=400.0
)


@pytest.mark.parametrize(
    "changes", [{"epsilon": 0.2}, {"residual_variance": 3.0, "epsilon": 7.0}, {"value_bound": 12.0}]
)
def test_draws_of_one_question_give_the_costs_of_another(changes):
    draws = sample_limiting.try_caps(PROBLEM, DATA.labels, 4)
    asked = replace(PROBLEM, **changes)
    of_draws, anew = (sample_limiting.average_draws(asked, draws), estimate_caps(asked, DATA.labels, 4))
    for name in (
        "caps",
        "num_full_rank_draws",
        "sampling_variances",
        "privacy_variances",
        "squared_prediction_errors",
    ):
        np.testing.assert_allclose(getattr(of_draws, name), getattr(anew, name), rtol=1e-12)


def test_the_cost_of_a_draw_is_that_of_the_estimator_it_stands_for():
    draws = sample_limiting.try_caps(PROBLEM, DATA.labels, 1, (3,))
    estimate = sample_limiting.draw_estimate(PROBLEM, 3, seed=0)
    curve = sample_limiting.average_draws(PROBLEM, draws)
    assert curve.variances[0] == pytest.approx(estimate.variance, rel=1e-10)
    assert curve.squared_prediction_errors[0] == pytest.approx(
        compute_squared_prediction_error(PROBLEM, estimate, DATA.labels), rel=1e-10
    )


def test_stopped_before_the_first_draw_there_are_none():
    draws = sample_limiting.try_caps(PROBLEM, num_draws=4, should_stop=lambda: True)
    assert draws.num_draws == 0


def test_over_epsilon_is_the_single_answers_side_by_side():
    draws = sample_limiting.try_caps(PROBLEM, DATA.labels, 4)
    told: list[float] = []
    sweep = study.sweep_epsilon(PROBLEM, draws, DATA.labels, (0.3, 3.0), progress=told.append)
    assert told == [0.5, 1.0]
    for index, epsilon in enumerate((0.3, 3.0)):
        asked = replace(PROBLEM, epsilon=epsilon)
        best = working_set.solve(asked)
        curve = estimate_caps(asked, DATA.labels, 4)
        error = compute_squared_prediction_error(asked, best, DATA.labels)
        found = {name: column[index] for name, column in sweep.items()}
        assert found["ours_coefficients"] == pytest.approx(best.variance, rel=2 * study.SWEEP_TOLERANCE)
        assert found["ours_predictions"] == pytest.approx(error, rel=1e-2)
        assert found["best_cap_coefficients"] == pytest.approx(curve.variances.min())
        assert found["best_cap_predictions"] == pytest.approx(curve.squared_prediction_errors.min())
        assert found["no_cap_coefficients"] == pytest.approx(curve.variances[-1])
        assert found["no_cap_predictions"] == pytest.approx(curve.squared_prediction_errors[-1])
        assert found["best_cap"] == curve.max_contributions
        assert found["ours_coefficients"] < found["best_cap_coefficients"] < found["no_cap_coefficients"]
        assert found["gap"] <= study.SWEEP_TOLERANCE


def test_a_stopped_sweep_keeps_what_is_done():
    draws = sample_limiting.try_caps(PROBLEM, DATA.labels, 4)
    done: list[float] = []
    sweep = study.sweep_epsilon(
        PROBLEM, draws, DATA.labels, (0.5, 1.0, 2.0), progress=done.append, should_stop=lambda: bool(done)
    )
    assert sweep["epsilon"].tolist() == [0.5]
    assert {column.shape for column in sweep.values()} == {(1,)}
    assert "1 of 12" in study.describe_stop(sweep)
    none = study.sweep_epsilon(PROBLEM, draws, DATA.labels, (0.5,), should_stop=lambda: True)
    assert none["epsilon"].size == 0


def test_a_figure_of_the_paper_takes_noise_and_range_of_the_generated_labels():
    table = parameters.generate_table(200, exponent=1.8, seed=4)
    problem = RegressionProblem(
        table.features, table.user_codes, 2.0, float(np.ptp(table.labels)), residual_variance=400.0
    )
    curve = estimate_caps(problem, table.labels)
    errors = study.compute_errors(200.0, 1.8, 2.0, seed=3)
    best = compute_squared_prediction_error(problem, working_set.solve(problem), table.labels)
    assert errors["weights"] == pytest.approx(best, rel=1e-2)
    assert errors["best_bound"] == pytest.approx(curve.squared_prediction_errors.min())
    assert errors["no_bound"] == pytest.approx(curve.squared_prediction_errors[-1])


@pytest.mark.parametrize("g", [2, 3, 4, 6, 8])
def test_caps_of_example_1_keep_their_bound(g):
    problem = parameters.example_1(g)
    draws = sample_limiting.try_caps(problem, caps=range(1, g + 1))
    variances = sample_limiting.average_draws(problem, draws).variances
    assert variances.min() >= 1.0 / (4.0 * g**3)  # claim 3
    # All rows of a user are alike, so a cap's cost is exact: max(g/(g^2 + h g^2), h/(h + g^2))^2 and what the
    # other users hold (claim 3's proof, for every user).
    h = np.arange(1, g + 1)
    costs = np.maximum(np.maximum(g, h) / (g**2 + g**2 * h), h / (h + g**2)) ** 2
    assert variances[:g] == pytest.approx(costs, rel=1e-9)


@pytest.mark.parametrize("g", [2, 4, 8, 16, 32])
def test_example_3_keeps_both_claims(g):
    problem = parameters.example_3(g)
    draws = sample_limiting.try_caps(problem, caps=range(1, g + 1))
    assert working_set.solve(problem).variance <= 6.0 / g
    # Claim 9 holds in at least half of the draws, so the mean is at least half of g / 9.
    caps = sample_limiting.average_draws(problem, draws)
    assert caps.variances[caps.best_index] >= g / 18.0


def test_refusals():
    draws = sample_limiting.try_caps(PROBLEM, DATA.labels, 4)
    with pytest.raises(InvalidInput, match=r"(?i)epsilon"):
        study.sweep_epsilon(PROBLEM, draws, DATA.labels, (0.0, 1.0))
