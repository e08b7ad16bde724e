"""Parameters and comparison of a private choice."""

import numpy as np
import opendp.prelude as opendp
import pytest

from dpcore import mean, total
from dpcore.answer.section import list_plots
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.answer import build_answer
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.private_choice.private_histogram import HistogramNoise
from dpcore.private_choice.scores import MAX_TOTAL_USERS

HISTOGRAM = samples.load("requests-commits").histogram


def test_the_trade_off_is_that_of_the_mean_with_private_counts():
    # Whatever the unit of the values: only the share matters.
    for epsilon, bound, share in ((1.0, 1.0, 0.25), (0.3, 50.0, 0.01), (7.0, 1e-3, 0.2)):
        problem = private_counts.PrivateCountsProblem(HISTOGRAM, epsilon, bound, share * bound**2)
        found = PrivateParameters(epsilon, variance_share=share)
        assert found.trade_off == pytest.approx(problem.trade_off, rel=1e-12)
        assert found.condition.find_best_bound(HISTOGRAM) == pytest.approx(
            mean.find_best_smooth(problem).threshold
        )
        cap = PrivateParameters(epsilon, BoundPurpose.CAP, variance_share=share).condition
        assert cap.find_best_bound(HISTOGRAM) == mean.find_best_cap(problem).max_contributions


def test_bounds_in_the_clear_are_those_of_the_other_pages():
    amounts = Amounts.from_histogram(HISTOGRAM)
    for epsilon in (0.02, 0.1, 1.0):
        best = total.find_best_choice(total.TotalProblem(amounts, epsilon, measure=Measure.BOUND))
        assert (
            PrivateParameters(epsilon, BoundPurpose.SUM).condition.find_best_bound(HISTOGRAM)
            == best.max_total
        )
    counts = np.repeat(HISTOGRAM.sizes, HISTOGRAM.users)
    for share in (0.1, 0.5, 0.9, 0.99):
        expected = np.quantile(counts, share, method="inverted_cdf")
        assert (
            PrivateParameters(1.0, BoundPurpose.QUANTILE, quantile=share).condition.find_best_bound(HISTOGRAM)
            == expected
        )


def test_rank_errors_of_copies_are_counted_as_they_are():
    parameters = PrivateParameters(1.0, BoundPurpose.QUANTILE, selection_epsilon=1.0, quantile=0.5)
    found = comparison.simulate_cost(parameters, HISTOGRAM, num_runs=40)
    assert 0.0 <= found.median <= found.percentile_95 < 0.5


def test_very_many_users_have_finite_costs():
    crowd = ContributionHistogram(sizes=[1, 5], users=[MAX_TOTAL_USERS // 20, 5])
    over_epsilon = comparison.compute_regret_over_epsilon(PrivateParameters(1.0), crowd)
    assert np.all(np.isfinite(over_epsilon.mean_regrets))


def test_an_answer_draws_nothing(monkeypatch):
    def drawn(self, argument):
        raise AssertionError("noise was drawn, and nobody charged for it")

    monkeypatch.setattr(opendp.Measurement, "__call__", drawn)
    data = Dataset("secret", "", Disclosure.PRIVATE, HISTOGRAM)
    answer = build_answer(data, PrivateParameters(1.0, BoundPurpose.QUANTILE))
    assert [plot.disclosure for plot in list_plots(answer, data)] == [Disclosure.PRIVATE]
    assert (answer.code, answer.methods) == (None, None)
    with pytest.raises(AssertionError, match="charged"):  # Else this test shows nothing.
        choice.choose(PrivateParameters(1.0).choice, HISTOGRAM)


def test_all_problems_at_once():
    with pytest.raises(InvalidInput) as refused:
        PrivateParameters(
            0.0,
            BoundPurpose.SUM,
            selection_epsilon=-1.0,
            mechanism=HistogramNoise.GAUSSIAN,
            largest=0,
            quantile=1.0,
            guess=0.0,
            margin=-1.0,
        )
    assert len(refused.value.problems) == 8
