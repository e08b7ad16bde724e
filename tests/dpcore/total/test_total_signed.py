"""Totals of either sign, clipped on both sides."""

import numpy as np
import pytest
from scipy import stats

from dpcore import total
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.data.totals_per_user import Amounts
from dpcore.total.signed import SignedProblem


def test_by_hand():
    got = SignedProblem.from_totals([-10.0, -1.0, 4.0, 20.0], 0.5).clip(-3.0, 5.0)
    # -10 -> -3 adds 7, 20 -> 5 takes 15; sensitivity 5, scale 10.
    assert (got.bias, got.sensitivity, float(got.errors.mean_noise)) == (-8.0, 5.0, 10.0)
    assert (got.num_users_below, got.num_users_above) == (1, 1)
    draws = np.abs(-8.0 + stats.laplace(scale=10.0).ppf((np.arange(200_000) + 0.5) / 200_000))
    assert float(got.errors.absolute_errors) == pytest.approx(draws.mean(), rel=1e-4)
    assert float(got.errors.rmse) == pytest.approx(np.sqrt(64.0 + 200.0))


def test_without_negatives_it_is_the_ordinary_sum():
    totals = [0.0, 2.0, 7.0, 30.0]
    signed = SignedProblem.from_totals(totals, 0.4, NoiseKind.GAUSSIAN, 1e-5).clip(0.0, 6.0)
    problem = total.TotalProblem(Amounts.from_totals(totals), 0.4, NoiseKind.GAUSSIAN, 1e-5)
    errors = total.compute_errors(problem, 6.0)
    assert float(signed.errors.absolute_errors) == pytest.approx(float(errors.absolute_errors))
    assert -signed.bias == float(errors.bias)


def test_the_proposed_bound_is_the_rank_rule_on_sizes():
    assert SignedProblem.from_totals([-10.0, -1.0, 4.0, 20.0], 0.5).propose_bound() == 10.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_user_moves_the_sum_by_at_most_the_sensitivity(sign):
    totals = sign * np.array([-50.0, -1.0, 4.0, 70.0])
    low, high = -6.0, 9.0
    limit = SignedProblem.from_totals(totals, 1.0).clip(low, high).sensitivity
    for gone in range(4):
        without = np.delete(totals, gone)
        change = np.clip(totals, low, high).sum() - np.clip(without, low, high).sum()
        assert abs(change) <= limit


def test_refusals():
    for totals, epsilon in (([1.0], 0.0), ([np.inf], 1.0), ([np.nan], 1.0), ([], 1.0)):
        with pytest.raises(InvalidInput):
            SignedProblem.from_totals(totals, epsilon)
