"""The bound that serves several data sets best, against brute force over all bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore import mean, total
from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.shared_bound import SharedBound, Sharer, least_worst_regret
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts

histograms = st.dictionaries(st.integers(1, 60), st.integers(1, 200), min_size=1, max_size=8).map(
    lambda users: ContributionHistogram(sorted(users), [users[size] for size in sorted(users)])
)
epsilons = st.sampled_from([0.01, 0.1, 0.5, 1.0, 3.0, 30.0])


def of_mean(histogram: ContributionHistogram, epsilon: float) -> Sharer:
    problem = mean.MeanProblem(histogram, epsilon, 1.0, 0.25)
    best = mean.best_cap(problem)
    return Sharer(
        lambda h: math.sqrt(float(mean.capped_variance(problem, h))),
        float(best.max_contributions), best.standard_error, math.sqrt(best.certificate.lower_bound),
    )  # fmt: skip


def of_total(amounts: Amounts, epsilon: float, measure: Measure, whole: bool) -> Sharer:
    problem = total.TotalProblem(amounts, epsilon, measure=measure, whole=whole)
    best = total.best_bound(problem)
    return Sharer(
        lambda t: float(total.measured(problem, t)),
        best.max_total, best.certificate.value, best.certificate.lower_bound,
    )  # fmt: skip


def worst(sharers: list[Sharer], bound: float) -> float:
    return max(one.error(bound) / one.least for one in sharers)


def assert_proved(found: SharedBound, sharers: list[Sharer]) -> None:
    """The proof loses nothing beside what the proofs of the data sets' own best bounds leave open."""
    open_still = max(one.least / one.lower_bound for one in sharers)
    assert found.certificate.value <= found.certificate.lower_bound * open_still * (1 + 1e-9)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(histograms, epsilons), min_size=1, max_size=3))
def test_the_shared_cap_of_a_mean_is_the_best_of_all(
    data: list[tuple[ContributionHistogram, float]],
) -> None:
    sharers = [of_mean(histogram, epsilon) for histogram, epsilon in data]
    found = least_worst_regret(sharers, whole=True)
    everything = [worst(sharers, float(h)) for h in range(1, 62)]
    assert worst(sharers, found.bound) == pytest.approx(min(everything), rel=1e-12)
    assert found.worst == pytest.approx(min(everything) - 1.0, abs=1e-12)
    assert_proved(found, sharers)
    assert found.bound == int(found.bound)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(histograms, epsilons), min_size=2, max_size=2),
    st.sampled_from(list(Measure)),
    st.booleans(),
)
def test_the_shared_bound_of_a_sum_is_the_best_of_all(
    data: list[tuple[ContributionHistogram, float]], measure: Measure, whole: bool
) -> None:
    sharers = [
        of_total(Amounts.from_histogram(histogram), epsilon, measure, whole) for histogram, epsilon in data
    ]
    found = least_worst_regret(sharers, whole)
    low, high = sorted(one.best for one in sharers)
    grid = (
        np.arange(0.0, 62.0)
        if whole
        else np.concatenate((np.linspace(0.0, 62.0, 400), np.linspace(low, high, 400)))
    )
    everything = min(worst(sharers, float(t)) for t in grid)
    if whole:
        assert worst(sharers, found.bound) == pytest.approx(everything, rel=1e-9)
    assert worst(sharers, found.bound) <= everything * (1 + 1e-9)
    assert_proved(found, sharers)


def test_two_parabolas_meet_where_the_working_says() -> None:
    # 1 + h^2 and 1 + (h - 4)^2, both 1 at best: equal at h = 2, where both are 5.
    found = least_worst_regret(
        [Sharer(lambda h: 1 + h**2, 0.0, 1.0, 1.0), Sharer(lambda h: 1 + (h - 4) ** 2, 4.0, 1.0, 1.0)],
        whole=False,
    )
    assert found.bound == pytest.approx(2.0, abs=1e-9)
    assert found.regrets == pytest.approx((4.0, 4.0))
    assert found.certificate.proves(1e-9)


def test_one_data_set_keeps_its_own_best_bound_and_units_do_not_matter() -> None:
    one = of_mean(ContributionHistogram([1, 5, 50], [100, 20, 3]), 1.0)
    alone = least_worst_regret([one, one], whole=True)
    assert (alone.bound, alone.regrets) == (one.best, (0.0, 0.0))
    other = of_mean(ContributionHistogram([2, 30], [10, 20]), 0.1)
    scaled = Sharer(lambda h: 1000 * other.error(h), other.best, 1000 * other.least, 1000 * other.lower_bound)
    assert least_worst_regret([one, scaled], True).bound == least_worst_regret([other, one], True).bound


def test_the_certificate_is_no_better_than_those_of_the_data_sets() -> None:
    # Not proved best itself: the shared bound is proved no further than that.
    loose = Sharer(lambda h: 1 + h**2, 0.0, 1.0, 0.5)
    assert not least_worst_regret([loose, loose], whole=False).certificate.proves(0.4)
    assert least_worst_regret([replace(loose, lower_bound=0.0)], False).certificate.relative_gap == math.inf
    with pytest.raises(InvalidInput, match="data set 2"):
        least_worst_regret([loose, replace(loose, least=0.0)], whole=False)
    with pytest.raises(InvalidInput, match="At least one"):
        least_worst_regret([], whole=True)
