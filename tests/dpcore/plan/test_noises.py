"""Both noises at one plan: each has the errors of its own plan, and the epsilon really spent is that of the formula."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

import dpcore as ss
from dpcore.common import wording
from dpcore.common.noise_error import DEFAULT_DELTA, NoiseKind
from dpcore.data import samples
from dpcore.plan import Objective, PlanParameters, Program
from dpcore.plan.answer import answer, build_answer, solve
from dpcore.plan.answer.solution import compute_exact_epsilon
from dpcore.plan.lines import Budget

SHOP = samples.load("shop-events")
USERS = SHOP.histogram.num_users
EASY = (
    "users within 1%; rows within 90%; mean within 30%; quantile 0.9 within 20%; users per group within 90%"
)


def asked(lines, noise=NoiseKind.LAPLACE, **more):
    delta = None if noise is NoiseKind.LAPLACE else DEFAULT_DELTA
    return PlanParameters(1.0, lines=lines, mechanism=noise, delta=delta, lower=0.0, upper=100.0, **more)


@pytest.mark.parametrize("objective", [Objective.SUM, Objective.REACH])
def test_each_noise_has_the_errors_of_its_own_plan(objective):
    laplace, gaussian = (asked(EASY, noise, objective=objective) for noise in NoiseKind)
    plans = [solve(SHOP, laplace), solve(SHOP, gaussian)]
    for found in plans:
        both = answer.compare_noises(SHOP, found)
        for same_plan, plan in zip((both.laplace, both.gaussian), plans, strict=True):
            assert [line.error for line in same_plan.lines] == pytest.approx(
                [line.error for line in plan.lines], rel=1e-6
            )
        if objective is Objective.REACH:
            assert both.values == pytest.approx([plan.budget.epsilon for plan in plans], rel=1e-6)
        assert compute_exact_epsilon(both.gaussian) is None  # A quantile beside Gaussian noise.
        assert "no exact account" in answer.write_noise_comparison(both, found)


def test_one_line_has_the_totals_of_the_closed_form_and_spends_what_the_formula_says():
    found = solve(SHOP, asked("users"))
    both = answer.compare_noises(SHOP, found)
    sigma = math.sqrt(Budget(1.0, NoiseKind.GAUSSIAN, DEFAULT_DELTA).full_v)
    assert both.values == pytest.approx((math.sqrt(2.0) / (0.05 * USERS), sigma / (0.05 * USERS)), rel=1e-8)
    # Balle and Wang 2018, theorem 8: delta of this noise at the epsilon that is said.
    spent = compute_exact_epsilon(both.gaussian)
    at = norm.cdf(0.5 / sigma - spent * sigma) - math.exp(spent) * norm.cdf(-0.5 / sigma - spent * sigma)
    assert at == pytest.approx(DEFAULT_DELTA, rel=1e-3)
    assert spent < 1.0
    said = answer.write_noise_comparison(both, found)
    assert said.startswith("Laplace noise errs less. As plain Python draws them")
    for total in both.values:
        assert wording.number(total, 4) in said
    assert f"really spends ε = {spent:.3f}"[:-1] in said


def test_pipelinedp_divides_epsilon_and_delta_and_halves_both_for_a_mean():
    parameters = asked("users within 10; mean within 1", program=Program.PIPELINEDP)
    found = solve(SHOP, parameters)
    both = answer.compare_noises(SHOP, found)
    share = found.lines[0].share
    # Not the program's own account, but of the exact sigma at its share: delta of it by the formula.
    sigma, epsilon = both.gaussian.lines[0].error, share
    at = norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * norm.cdf(
        -0.5 / sigma - epsilon * sigma
    )
    assert at == pytest.approx(DEFAULT_DELTA * share, rel=1e-3)
    # A mean with all of rho would have less noise than halves of epsilon and delta leave it.
    whole = solve(SHOP, asked("mean within 1", NoiseKind.GAUSSIAN))
    assert both.gaussian.lines[1].error > whole.lines[0].error
    assert "no plan is made for it" in answer.write_noise_comparison(both, found)


def test_where_no_epsilon_is_enough_the_sentence_says_so_and_an_answer_holds_it():
    # sqrt(2) / epsilon is wanted at 99; Gaussian noise of sigma = 1 / 70 has mu^2 / 2 + 4.7 mu = 2,780.
    users = {"lines": f"users within {math.sqrt(2.0) / 99.0}", "epsilon": 1, "disclosure": "public"}
    said = ss.plan_bounds([1] * 50, **users, objective="least epsilon").facts["Laplace or Gaussian"]
    assert "with Laplace noise ε = 99" in said
    assert "with Gaussian noise at δ = 0.000001 no ε is enough" in said
    page = asked("users")
    assert "Laplace or Gaussian" not in build_answer(SHOP, page, solve(SHOP, page)).facts
