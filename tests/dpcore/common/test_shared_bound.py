"""The bound that serves several data sets best, against brute force over all bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore import mean, total
from dpcore.common import shared_bound
from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.shared_bound import Parts, SharedBound, Sharer, least_worst_regret
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts
from dpcore.data_owners import unequal
from dpcore.data_owners.bounds import Collaboration
from dpcore.learning import optimal_cap
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.optimal_cap import BiasProblem
from dpcore.learning.parameters import LearningParameters

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
    assert max(found.regrets) == pytest.approx(min(everything) - 1.0, abs=1e-12)
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


# --- Errors known in parts --------------------------------------------------------------------------------------------


def steps(draw: st.DrawFn, falls: bool) -> np.ndarray:
    """Steps of any heights, up or down, at whole bounds from 1 to 60: such an error has many valleys."""
    rises = np.zeros(61)
    for at, height in draw(st.lists(st.tuples(st.integers(1, 60), st.floats(0.01, 5.0)), max_size=8)):
        rises[at] += height
    found = np.cumsum(rises)
    return found[-1] - found if falls else found


@st.composite
def in_parts(draw: st.DrawFn) -> Sharer:
    falling, rising = steps(draw, falls=True), steps(draw, falls=False) + draw(st.floats(0.1, 3.0))

    def parts(bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        assert (np.diff(bounds) >= 0.0).all()
        at = np.clip(bounds, 1, 60).astype(int)
        return falling[at], falling[at], rising[at]

    errors = (falling + rising)[1:]
    best = int(np.argmin(errors)) + 1
    least = float(errors[best - 1])
    return Sharer(lambda h: float(falling[int(h)] + rising[int(h)]), best, least, least, parts, (1.0, 60.0))


@settings(max_examples=150, deadline=None)
@given(st.lists(in_parts(), min_size=1, max_size=3))
def test_with_errors_in_parts_it_is_the_best_of_all_whole_bounds(sharers: list[Sharer]) -> None:
    found = least_worst_regret(sharers, whole=True)
    everything = min(worst(sharers, float(h)) for h in range(1, 61))
    assert worst(sharers, found.bound) <= everything * (1.0 + shared_bound.TOLERANCE)
    assert found.certificate.lower_bound <= everything * (1.0 + 1e-12)
    assert found.certificate.proves(2.0 * shared_bound.TOLERANCE)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(histograms, epsilons), min_size=2, max_size=2), st.sampled_from(list(BiasTerm)))
def test_the_shared_cap_of_a_learner_is_the_best_of_all(
    data: list[tuple[ContributionHistogram, float]], bias: BiasTerm
) -> None:
    sharers, problems = [], []
    for histogram, epsilon in data:
        problem = LearningParameters(epsilon, bias, privacy_constant=1.0).problem(histogram)
        problems.append(problem)
        best = optimal_cap.best_cap(problem)
        limits = (1.0, optimal_cap.largest_cap(problem))

        def error(cap: float, problem: BiasProblem = problem) -> float:
            share = min(cap / float(problem.histogram.num_rows), 1.0)
            return float(optimal_cap.error_parts(problem, share).total)

        def parts(caps: np.ndarray, problem: BiasProblem = problem) -> Parts:
            return optimal_cap.parts(problem, caps)

        sharers.append(
            Sharer(error, float(best.cap), best.total, best.certificate.lower_bound, parts, limits)
        )
    found = least_worst_regret(sharers, whole=True)
    most = int(min(max(one.limits[1] for one in sharers), 3_000))
    caps = np.arange(1.0, most + 1.0)
    ratios = [
        optimal_cap.error_parts(problem, np.minimum(caps / problem.histogram.num_rows, 1.0)).total / one.least
        for problem, one in zip(problems, sharers, strict=True)
    ]
    everything = float(np.max(ratios, axis=0).min())
    assert worst(sharers, found.bound) <= everything * (1.0 + 2.0 * shared_bound.TOLERANCE)
    assert found.certificate.lower_bound <= everything * (1.0 + 1e-9)
    assert found.certificate.proves(1e-4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(histograms, epsilons), min_size=2, max_size=2))
def test_the_shared_cap_per_owner_is_the_best_of_all(
    data: list[tuple[ContributionHistogram, float]],
) -> None:
    sharers = []
    for histogram, epsilon in data:
        of = Collaboration(epsilon, 1e-5, 1.0, 1.0, shared=20.0)
        best = unequal.best_cap(histogram, of)

        def parts(
            caps: np.ndarray, histogram: ContributionHistogram = histogram, of: Collaboration = of
        ) -> Parts:
            falling, rising = unequal.parts(histogram, caps, of)
            return falling, falling, rising

        def error(cap: float, histogram: ContributionHistogram = histogram, of: Collaboration = of) -> float:
            return float(unequal.joint_bounds(histogram, cap, of))

        limits = (1.0, float(histogram.max_size))
        sharers.append(Sharer(error, best.cap, best.bound, best.certificate.lower_bound, parts, limits))
    found = least_worst_regret(sharers, whole=True)
    everything = min(worst(sharers, float(h)) for h in range(1, 62))
    assert worst(sharers, found.bound) <= everything * (1.0 + 2.0 * shared_bound.TOLERANCE)
    assert found.certificate.lower_bound <= everything * (1.0 + 1e-9)
    assert found.certificate.proves(1e-4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(histograms, epsilons), min_size=2, max_size=2))
def test_the_shared_threshold_of_smooth_weights_is_proved_against_all_real_ones(
    data: list[tuple[ContributionHistogram, float]],
) -> None:
    sharers = []
    for histogram, epsilon in data:
        problem = mean.MeanProblem(histogram, epsilon, 1.0, 0.25)
        best = mean.best_smooth(problem)

        def error(threshold: float, problem: mean.MeanProblem = problem) -> float:
            return math.sqrt(float(mean.smooth_variance(problem, threshold)))

        least = math.sqrt(best.certificate.lower_bound)
        sharers.append(Sharer(error, best.threshold, best.standard_error, least))
    found = least_worst_regret(sharers, whole=False)
    grid = np.unique(np.append(np.geomspace(0.5, 70.0, 500), [one.best for one in sharers]))
    everything = min(worst(sharers, float(h)) for h in grid)
    assert worst(sharers, found.bound) <= everything * (1.0 + 1e-9)
    assert found.certificate.lower_bound <= everything * (1.0 + 1e-9)
    assert_proved(found, sharers)


def test_real_bounds_with_errors_in_parts_are_settled_to_the_tolerance() -> None:
    # 1/h + h and 4/h + h: at the shared h the ratios (1/h + h)/2 and (4/h + h)/4 are alike, at h = sqrt(2).
    def of(price: float) -> Sharer:
        return Sharer(
            lambda h: price / h + h, math.sqrt(price), 2.0 * math.sqrt(price), 2.0 * math.sqrt(price),
            lambda h: (price / h, price / h, h), (0.01, 100.0),
        )  # fmt: skip

    found = least_worst_regret([of(1.0), of(4.0)], whole=False)
    assert found.bound == pytest.approx(math.sqrt(2.0), rel=1e-3)
    assert max(found.regrets) == pytest.approx((1.0 / math.sqrt(2.0) + math.sqrt(2.0)) / 2.0 - 1.0, rel=1e-5)
    assert found.certificate.proves(2.0 * shared_bound.TOLERANCE)
    with pytest.raises(InvalidInput, match="Either all errors"):
        least_worst_regret([of(1.0), Sharer(lambda h: h, 1.0, 1.0, 1.0)], whole=False)
