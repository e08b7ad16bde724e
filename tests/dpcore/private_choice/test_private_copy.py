"""Bins, post-processing, the copy as data, regret and the ledger. The audit is in test_private_audit.py."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binom

from dpcore import mean, total
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts, classify, format_rounded_up
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.task_facets import TaskSizes
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Contribution, Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.private_choice.private_histogram import (
    HistogramNoise,
    HistogramParameters,
    NoiseShape,
    PublicBins,
    build_histogram,
    compute_noise_shape,
    compute_phantom_limits,
    fit_falling_tails,
    fit_users,
    release_histogram,
    sum_tails,
)

FACTS = ReleaseFacts(0.1, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace")
bins_strategy = st.builds(
    lambda exact, more, growth: PublicBins(exact, exact + more, growth),
    st.integers(1, 30),
    st.integers(0, 5000),
    st.floats(1.01, 10.0),
)
counts_strategy = st.lists(st.integers(1, 10_000), min_size=1, max_size=40)


@given(bins=bins_strategy)
def test_bins_partition_the_sizes(bins):
    # Every size from 1 to the largest lies in exactly one bin, and its representative in it too.
    assert bins.lower[0] == 1
    assert bins.upper[-1] == bins.largest
    assert np.array_equal(bins.lower[1:], bins.upper[:-1] + 1)
    assert np.all(bins.lower <= bins.representative)
    assert np.all(bins.representative <= bins.upper)
    exact = bins.lower[: bins.exact_up_to]
    assert np.array_equal(exact, np.arange(1, bins.exact_up_to + 1))


def test_bins_by_hand():
    # 1, 2, 3; then from 4: floor(4 * 2) = 8, 16, and the last bin ends at 20.
    bins = PublicBins(exact_up_to=3, largest=20, growth=2.0)
    assert bins.lower.tolist() == [1, 2, 3, 4, 8, 16]
    assert bins.upper.tolist() == [1, 2, 3, 7, 15, 20]
    histogram = ContributionHistogram([1, 5, 7, 8, 20, 900], [10, 1, 2, 3, 4, 5])
    assert bins.count_users(histogram).tolist() == [10, 0, 0, 3, 3, 9]  # 900 counts as 20.
    # Geometric middles: sqrt(28) = 5.29, sqrt(120) = 10.95, sqrt(320) = 17.9.
    assert bins.representative.tolist() == [1, 2, 3, 5, 11, 18]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"exact_up_to": 0}, "exact_up_to"),
        ({"largest": 5}, "largest"),
        ({"growth": 1.0}, "growth"),
        ({"growth": math.nan}, "growth"),
        ({"exact_up_to": 1, "largest": 10**12, "growth": 1.001}, "bins"),
    ],
)
def test_bins_that_cannot_be(fields, word):
    with pytest.raises(InvalidInput, match=f"(?i){word}"):
        PublicBins(**fields)


@settings(max_examples=200)
@given(bins=bins_strategy, counts=counts_strategy, new=st.integers(1, 10**6), which=st.integers(0, 39))
def test_one_user_moves_the_counts_by_no_more_than_declared(bins, counts, new, which):
    users_before = bins.count_users(ContributionHistogram.from_counts(counts))
    added = bins.count_users(ContributionHistogram.from_counts([*counts, new]))
    replaced_counts = list(counts)
    replaced_counts[which % len(counts)] = new
    replaced = bins.count_users(ContributionHistogram.from_counts(replaced_counts))
    for after, relation in ((added, Neighbours.ADD_OR_REMOVE_USER), (replaced, Neighbours.REPLACE_USER)):
        declared = HistogramParameters(1.0, bins, neighbours=relation).sensitivity
        assert np.abs(after - users_before).sum() <= declared
        assert ((after - users_before) ** 2).sum() <= declared


def test_the_declared_sensitivity_is_reached():
    bins = PublicBins()
    one, other = (bins.count_users(ContributionHistogram.from_counts([c])) for c in (1, 500))
    assert np.abs(one - other).sum() == 2 == ((one - other) ** 2).sum()


@settings(max_examples=100, deadline=None)
@given(noisy=st.lists(st.integers(-200, 400), min_size=2, max_size=60), scale=st.floats(0.1, 100.0))
def test_users_are_whole_and_not_negative(noisy, scale):
    lower = PublicBins(exact_up_to=len(noisy), largest=len(noisy)).lower
    users = fit_users(noisy, compute_noise_shape(HistogramNoise.LAPLACE, scale), lower)
    assert users.dtype == np.int64
    assert users.shape == (len(noisy),)
    assert np.all(users >= 0)


def test_without_noise_nothing_changes():
    histogram = samples.load("online-retail-lines").histogram
    bins = PublicBins()
    counts = bins.count_users(histogram)
    assert np.array_equal(fit_users(counts, NoiseShape(1e-12, 1e-6), bins.lower), counts)


def test_falling_is_the_weighted_projection():
    # Against a general solver on the same quadratic problem, in differences (a cone of non-negative steps).
    rng = np.random.default_rng(3)
    tails = np.sort(rng.normal(50.0, 20.0, 8))[::-1] + rng.normal(0.0, 15.0, 8)
    weights = 1.0 / np.arange(8, 0, -1)

    def loss(x):
        return float(np.sum(weights * (np.append(x[0], x[0] - np.cumsum(x[1:])) - tails) ** 2))

    found = minimize(
        loss, np.append(tails.mean(), np.zeros(7)), bounds=[(None, None)] + [(0, None)] * 7, tol=1e-14
    )
    falling_tails = fit_falling_tails(tails)
    assert np.all(np.diff(falling_tails) <= 1e-9)
    assert np.sum(weights * (falling_tails - tails) ** 2) == pytest.approx(found.fun, rel=1e-6)


def test_believable_covers_the_noise_of_a_tail():
    # By simulation: tails of 1, 5 and 40 Laplace counts exceed it in at most 5 % of cases.
    parameters = HistogramParameters(0.1)
    noise = comparison.simulate_noise(
        HistogramNoise.LAPLACE, parameters.scale, (20_000, 40), np.random.default_rng(5)
    )
    tails = np.cumsum(noise[:, ::-1], axis=1)[:, ::-1]
    share = np.mean(tails > compute_phantom_limits(40, parameters.noise_shape), axis=0)
    assert share.max() < 0.05 - 4 * math.sqrt(0.05 * 0.95 / 20_000)


def test_no_phantom_users_where_there_are_none():
    # 2,000 users of one row each and 36 empty bins above: with clipping, hundreds of phantom heavy users.
    bins = PublicBins()
    counts = np.zeros(bins.lower.size, dtype=np.int64)
    counts[0] = 2000
    parameters, rng = HistogramParameters(0.1), np.random.default_rng(6)
    noise = comparison.simulate_noise(HistogramNoise.LAPLACE, parameters.scale, (300, counts.size), rng)
    shape, sizes = parameters.noise_shape, bins.representative
    assert np.median([np.maximum(counts + z, 0) @ sizes for z in noise]) > 50 * 2000
    assert np.median([fit_users(counts + z, shape, bins.lower) @ sizes for z in noise]) < 3 * 2000


def test_power_law_beyond_what_is_believed():
    # Tail counts 1000 / size^2 over sizes 1, 2, 4, ..., with noise that hides those below 40: exponent 2 found.
    bins = PublicBins(exact_up_to=1, largest=1023, growth=2.0)
    assert bins.lower.tolist() == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    tails = 100_000.0 / bins.lower.astype(float) ** 2
    counts = tails - np.append(tails[1:], 0.0)
    shape = NoiseShape(40.0, 0.0)
    # sqrt(2 j 40 ln 20) is between 15 and 49: tails of 390 and 97.7 at sizes 16 and 32 are believed, later ones not.
    users = fit_users(np.rint(counts), shape, bins.lower)
    back = sum_tails(users.astype(float))
    assert back == pytest.approx(tails, abs=1.0)


@pytest.mark.parametrize("noise", list(HistogramNoise))
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER])
def test_a_copy_is_data_with_its_label(noise, neighbours):
    histogram = samples.load("online-retail-lines").histogram
    delta = 1e-6 if noise is HistogramNoise.GAUSSIAN else None
    parameters = HistogramParameters(1.0, noise=noise, delta=delta, neighbours=neighbours)
    copy = release_histogram(histogram, parameters)
    assert copy.facts.epsilon <= 1.0
    assert copy.facts.delta == (delta or 0.0)
    assert copy.noisy_counts.shape == parameters.bins.lower.shape
    data = copy.to_dataset("events.csv", Contribution.DISTINCT_TASKS)
    assert data.disclosure is Disclosure.DP_RELEASE
    assert data.provenance is copy.facts
    assert classify(data.provenance) is Disclosure.DP_RELEASE
    assert neighbours.short in data.provenance.label
    assert noise.value in data.provenance.label
    assert data.contribution is Contribution.DISTINCT_TASKS
    assert data.notes == () == data.privacy_unit
    assert (data.values, data.totals, data.pairs, data.tasks, data.table) == (None,) * 5
    assert set(data.histogram.sizes) <= set(parameters.bins.representative)
    # 37 counts with a standard deviation of at most 9 each: 4,372 users to within 6 sd of 37 of them.
    assert data.histogram.num_users == pytest.approx(4372, abs=6 * 9 * math.sqrt(37))


def test_nothing_left_is_a_sentence():
    histogram = ContributionHistogram([3], [1])
    for _ in range(50):
        copy = release_histogram(histogram, HistogramParameters(0.001))
        if copy.histogram is None:
            break
    assert copy.histogram is None  # Below Bernstein's bound with probability 0.95 and more each time.
    assert "No users are left" in copy.sentence
    with pytest.raises(InvalidInput, match="No users are left"):
        copy.to_dataset("tiny")


def test_parameters_that_cannot_be():
    with pytest.raises(InvalidInput, match=r"(?si)epsilon_choice.*goes with a delta.*neighbours"):
        HistogramParameters(0.0, delta=0.1, neighbours=Neighbours.REPLACE_VALUES)
    with pytest.raises(InvalidInput, match="goes with a delta"):
        HistogramParameters(1.0, noise=HistogramNoise.GAUSSIAN)
    with pytest.raises(InvalidInput, match="strictly between 0 and 1"):
        HistogramParameters(1.0, noise=HistogramNoise.GAUSSIAN, delta=1.0)


def test_a_release_needs_its_facts_and_nothing_else():
    histogram = ContributionHistogram([1], [1])
    with pytest.raises(InvalidInput, match="guarantees"):
        Dataset("x", "", Disclosure.DP_RELEASE, histogram)
    with pytest.raises(InvalidInput, match="guarantees"):
        Dataset("x", "", Disclosure.PRIVATE, histogram, release=FACTS)
    with pytest.raises(InvalidInput, match="further facet"):
        Dataset("x", "", Disclosure.DP_RELEASE, histogram, tasks=TaskSizes([1]), release=FACTS)
    dataset = Dataset("x", "", Disclosure.DP_RELEASE, histogram, release=FACTS)
    other = dataclasses.replace(dataset, release=dataclasses.replace(FACTS, epsilon=0.2))
    assert dataset.digest != other.digest


def test_the_label():
    assert FACTS.label == "DP release (epsilon = 0.1, add or remove one user, discrete Laplace)"
    gaussian = ReleaseFacts(1.0, 1e-6, Neighbours.REPLACE_USER, "discrete Gaussian")
    assert gaussian.label == "DP release (epsilon = 1, delta = 0.000001, replace one user, discrete Gaussian)"


@given(value=st.floats(1e-12, 1e6))
def test_shown_privacy_is_never_less(value):
    assert float(format_rounded_up(value)) >= value * (1 - 1e-12)
    assert float(format_rounded_up(value)) <= value * (1 + 1.1e-5)


def test_epsilons_add_up():
    ledger = Ledger()
    assert ledger.total is None
    assert "Nothing" in ledger.sentence
    ledger = ledger.add(FACTS).add(dataclasses.replace(FACTS, epsilon=0.2))
    assert 0.3 <= ledger.total.epsilon <= 0.3 + 1e-15
    assert ledger.sentence == "Spent on these data: ε = 0.3 in 2 releases (add or remove one user)."


def test_mixed_relations_are_counted_for_the_weaker_with_two_steps():
    # Replacing is removing and adding: 2 * 0.1 for the copy, 0.5 for the other, and (1 + e^0.1) delta.
    release_facts = ReleaseFacts(0.1, 1e-6, Neighbours.ADD_OR_REMOVE_USER, "a")
    other = ReleaseFacts(0.5, 1e-6, Neighbours.REPLACE_USER, "b")
    total = Ledger((release_facts, other)).total
    assert total.neighbours is Neighbours.REPLACE_USER
    assert total.epsilon == pytest.approx(0.7, rel=1e-15)
    assert total.epsilon >= 0.7
    assert total.delta == pytest.approx((1 + math.exp(0.1)) * 1e-6 + 1e-6, rel=1e-12)


@given(st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=8))
def test_the_total_is_never_less_than_the_sum(epsilons):
    ledger = Ledger(tuple(ReleaseFacts(e, 0.0, Neighbours.REPLACE_USER, "x") for e in epsilons))
    assert ledger.total.epsilon >= math.fsum(epsilons)
    assert ledger.total.epsilon == pytest.approx(math.fsum(epsilons), rel=1e-15)


def problem_of(key="online-retail-lines", epsilon=1.0):
    return mean.MeanProblem(samples.load(key).histogram, epsilon, value_bound=1.0, value_variance=0.25)


def regrets_of(problem, bound, variance, parameters, runs, seed=0):
    """Regrets of the bounds chosen on copies, ascending: by the page *Mean*, not by the conditions of a draw."""
    choose = lambda copy: bound(dataclasses.replace(problem, histogram=copy))  # noqa: E731
    bounds = comparison.simulate_chosen_bounds(problem.histogram, choose, parameters, runs, seed)
    return np.sort(np.sqrt(variance(problem, bounds) / variance(problem, bound(problem))) - 1.0)


def smooth_regrets(problem, parameters, runs, seed=0):
    bound = lambda problem: mean.find_best_smooth(problem).threshold  # noqa: E731
    return regrets_of(problem, bound, mean.compute_smooth_variance, parameters, runs, seed)


def cap_regrets(problem, parameters, runs):
    bound = lambda problem: float(mean.find_best_cap(problem).max_contributions)  # noqa: E731
    return regrets_of(problem, bound, mean.compute_capped_variance, parameters, runs)


@pytest.mark.long
@pytest.mark.parametrize(
    "key", ["online-retail-lines", "online-retail-invoices", "online-retail-customers-per-product"]
)
def test_the_target_of_one_and_five_percent(key):
    for regrets_in in (smooth_regrets, cap_regrets):
        found = regrets_in(problem_of(key), HistogramParameters(0.1), 300)
        # With 97.5 % confidence: so many of 300 copies lie below a quantile by chance.
        assert found[int(binom.ppf(0.975, 300, 0.5))] < 0.01
        assert found[int(binom.ppf(0.975, 300, 0.95))] < 0.05
        assert found[0] >= -1e-9


@pytest.mark.long
def test_regret_is_what_a_release_really_costs():
    # The same distribution by the other route: OpenDP's noise, release by release.
    problem = problem_of("online-retail-invoices")
    parameters = HistogramParameters(0.05)
    simulated = smooth_regrets(problem, parameters, 1000, seed=2)
    best = mean.find_best_smooth(problem).standard_error
    real = []
    for _ in range(300):
        copy = release_histogram(problem.histogram, parameters)
        threshold = mean.find_best_smooth(dataclasses.replace(problem, histogram=copy.histogram)).threshold
        real.append(math.sqrt(float(mean.compute_smooth_variance(problem, threshold))) / best - 1.0)
    # An interval for the median by order statistics.
    low, high = simulated[binom.ppf([0.5e-4, 1.0 - 0.5e-4], 1000, 0.5).astype(int) - [1, 0]]
    # Of 300 real ones, as many lie below the simulated median's interval ends as chance allows (1e-6).
    assert binom.cdf(np.sum(np.array(real) <= high), 300, 0.5) > 1e-6
    assert binom.sf(np.sum(np.array(real) < low) - 1, 300, 0.5) > 1e-6


def test_without_noise_only_binning_is_regretted():
    problem = problem_of()
    parameters = HistogramParameters(1000.0, PublicBins(exact_up_to=8000, largest=8000))
    for regrets_in in (smooth_regrets, cap_regrets):
        assert regrets_in(problem, parameters, 2) == pytest.approx(0.0, abs=1e-12)
    counted = total.TotalProblem(Amounts.from_histogram(problem.histogram), 1.0)
    choose = lambda copy: total.find_optimal_bound(  # noqa: E731
        dataclasses.replace(counted, amounts=Amounts.from_histogram(copy))
    )
    bounds = comparison.simulate_chosen_bounds(problem.histogram, choose, parameters, 2)
    best = total.measure_errors(counted, [total.find_optimal_bound(counted)])
    assert total.measure_errors(counted, bounds) == pytest.approx(np.repeat(best, 2), rel=1e-12)


def test_empty_copies_have_no_bound_and_infinite_costs():
    histogram = ContributionHistogram([1, 2], [2, 1])
    parameters = PrivateParameters(1.0, selection_epsilon=0.001)
    bounds = comparison.simulate_chosen_bounds(
        histogram, parameters.condition.find_best_bound, parameters.histogram_parameters, 40
    )
    found = comparison.simulate_cost(parameters, histogram, num_runs=40)
    assert np.mean(np.isnan(bounds)) > 0.5
    assert math.isinf(found.percentile_95)


@settings(max_examples=30, deadline=None)
@given(counts=counts_strategy)
def test_fitted_keeps_users(counts):
    bins = PublicBins()
    histogram = ContributionHistogram.from_counts(counts)
    assume(histogram.num_users > 0)
    found = build_histogram(bins.count_users(histogram), bins)
    assert found.num_users == histogram.num_users


def test_a_sums_error_on_a_copy_is_not_that_of_the_data_but_a_means_is():
    # What docs/privacy.md says. Errors from their definitions, over the users one by one; in 200 draws the sum's
    # ratio was never below 6, so the median of 15 is not below 4.
    histogram = samples.load("requests-commits").histogram

    def share(of: ContributionHistogram, bound: float) -> float:
        sizes = np.repeat(of.sizes, of.users)
        bias = float(np.maximum(sizes - bound, 0.0).sum())
        return (bias + bound * math.exp(-bias / bound)) / float(sizes.sum())  # E|Laplace(bound) - bias|

    def deviation(of: ContributionHistogram, cap: int) -> float:
        kept = float(np.repeat(np.minimum(of.sizes, cap), of.users).sum())
        return math.sqrt(0.25 / kept + 2.0 * (cap / kept) ** 2)

    sums, means = [], []
    for _ in range(15):
        copy = release_histogram(histogram, HistogramParameters(0.1)).histogram
        bound = total.find_best_choice(
            total.TotalProblem(Amounts.from_histogram(copy), 1.0, is_integer=True)
        ).max_total
        sums.append(share(histogram, bound) / share(copy, bound))
        best_cap = mean.find_best_cap(mean.MeanProblem(copy, 1.0, 1.0, 0.25))
        means.append(deviation(histogram, best_cap.max_contributions) / best_cap.standard_error)
    assert np.median(sums) > 4.0
    assert 0.8 < np.median(means) < 1.25


@given(
    st.floats(1e-6, 1e3),
    st.sampled_from([0.0, 1e-9, 1e-6, 1 / 3]),
    st.sampled_from(list(Neighbours)),
    st.sampled_from(["discrete Laplace", "discrete Gaussian", "exponential mechanism"]),
)
def test_a_label_states_its_facts_and_never_less(epsilon, delta, neighbours, mechanism):
    facts = ReleaseFacts(epsilon, delta, neighbours, mechanism)
    label = ReleaseFacts.from_label(facts.label)
    assert label.label == facts.label
    assert (label.neighbours, label.mechanism) == (neighbours, mechanism)
    # An excess below 1e-12 is rounding of a sum and is not shown.
    assert label.epsilon >= epsilon * (1 - 1e-12)
    assert label.delta >= delta * (1 - 1e-12)
    assert label.epsilon <= epsilon * (1 + 1.1e-5)


def test_a_delta_that_two_steps_carry_past_float64_is_not_made_small():
    # Under replace, (epsilon, delta) for users added or removed is worth (2 epsilon, (1 + e^epsilon) delta):
    # e^1000 * 1e-310 is far above 1, and e^700 in its place gave 1e-6.
    replaced = ReleaseFacts(0.1, 0.0, Neighbours.REPLACE_USER, "discrete Laplace")
    for epsilon, delta, least in (
        (1000.0, 1e-310, 1.0),
        (709.5, 5e-324, 1.0),
        (708.0, 1e-310, 1e-3),
        (700.0, 0.9, 1.0),
    ):
        gaussian = ReleaseFacts(epsilon, delta, Neighbours.ADD_OR_REMOVE_USER, "discrete Gaussian")
        total = Ledger((gaussian, gaussian, replaced)).total
        assert total.neighbours is Neighbours.REPLACE_USER
        assert least <= total.delta <= 1.0
        assert total.epsilon >= 4 * epsilon
