"""(epsilon, delta) <-> beta: inverted, against the closed form, against composition by another accountant."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpcore.common.checks import InvalidInput
from dpcore.multitask import problem

TARGETS = [
    problem.PrivacyTarget(epsilon, delta)
    for epsilon in (1e-3, 0.1, 1.0, 5.0, 20.0, 100.0)
    for delta in (1e-12, 1e-5, 0.01)
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_exact_budget_is_inverted_and_never_above_the_target(target: problem.PrivacyTarget) -> None:
    epsilon_spent = problem.compute_epsilon(problem.compute_exact_budget(target), target.delta)
    assert epsilon_spent <= target.epsilon
    assert epsilon_spent == pytest.approx(target.epsilon, rel=1e-7)


@pytest.mark.parametrize("target", [t for t in TARGETS if t.epsilon <= 20 and t.delta >= 1e-5], ids=str)
def test_exact_budget_meets_the_closed_form_of_the_gaussian_mechanism(target: problem.PrivacyTarget) -> None:
    # Balle and Wang 2018, theorem 8, at sensitivity 1 and sigma = 1 / sqrt(2 beta).
    sigma = 1.0 / math.sqrt(2.0 * problem.compute_exact_budget(target))
    eps = target.epsilon
    first = norm.cdf(0.5 / sigma - eps * sigma)
    second = math.exp(eps + norm.logcdf(-0.5 / sigma - eps * sigma))
    assert first - second == pytest.approx(target.delta, rel=1e-5)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_papers_budget_is_sufficient_and_smaller(target: problem.PrivacyTarget) -> None:
    budgets = problem.compare_budgets(target)
    log_inverse = math.log(1.0 / target.delta)
    if target.epsilon > log_inverse:
        assert budgets.sufficient_budget is None
        assert budgets.weight_gain is None
        return
    # RDP to DP (Mironov 2017, proposition 3) at the best order: beta + 2 sqrt(beta log(1 / delta)).
    assert (
        budgets.sufficient_budget + 2.0 * math.sqrt(budgets.sufficient_budget * log_inverse) <= target.epsilon
    )
    assert budgets.sufficient_budget < budgets.exact_budget
    assert budgets.weight_gain == pytest.approx(math.sqrt(budgets.exact_budget / budgets.sufficient_budget))
    assert budgets.noise_multiplier**2 * 2.0 * budgets.exact_budget == pytest.approx(1.0)


def test_steps_and_counts_compose_by_adding_budgets() -> None:
    # Counts on beta_0, then T steps of beta_1 / T each, composed numerically by privacy loss distributions.
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant

    counts, learning, steps, delta = 0.01, 0.03, 5, 1e-5
    with np.errstate(all="ignore"):  # What warns there depends on the processor.
        accountant = PLDAccountant(value_discretization_interval=1e-3)
        accountant.compose(GaussianDpEvent(1.0 / math.sqrt(2.0 * counts)))
        accountant.compose(GaussianDpEvent(math.sqrt(steps / (2.0 * learning))), steps)
        composed = accountant.get_epsilon(delta)
    # The distributions are rounded up, by at most 1e-3 a step.
    assert problem.compute_epsilon(counts + learning, delta) == pytest.approx(composed, abs=0.01)


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        problem.PrivacyTarget(epsilon=-1.0, delta=2.0)
    assert [p.message.split()[0] for p in refused.value.problems] == ["epsilon", "delta"]
