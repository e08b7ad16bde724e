"""A mean with private counts: declared sensitivities, the linearised error, optima, and the simulation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import _mean_simulation as simulation
from dpcore import mean
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program, convert_to_rho, find_exact_sigma
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset, Values
from dpcore.mean.private_counts import PrivateCountsProblem, ReleasedSums
from dpcore.mean.table_values import ValueSummary

SKEWED = ContributionHistogram(sizes=[1, 3, 10, 200], users=[4000, 800, 60, 3])


def problem_of(**changes):
    basic = PrivateCountsProblem(
        SKEWED, epsilon=1.0, value_bound=5.0, value_variance=1.5, mean_above_lower=2.0
    )
    return replace(basic, **changes)


users_with_values = st.lists(st.lists(st.floats(-2.0, 9.0), min_size=1, max_size=6), min_size=2, max_size=6)


def sums_of(users, bound, capped=False):
    """Compute the pair of sums of w y and w (5 - y) user by user; the first rows are kept."""
    totals = np.zeros(2)
    for rows in users:
        y = np.clip(np.array(rows), 0.0, 5.0)
        w = (np.arange(y.size) < bound) * 1.0 if capped else np.full(y.size, min(bound, y.size) / y.size)
        totals += w @ y, w @ (5.0 - y)
    return totals


@settings(max_examples=200, deadline=None)
@given(users_with_values, st.integers(1, 7), st.booleans(), st.data())
def test_removing_a_user_moves_the_pair_by_at_most_b_h(users, bound, capped, data):
    gone = data.draw(st.integers(0, len(users) - 1))
    less = [u for i, u in enumerate(users) if i != gone]
    p, n = sums_of(users, bound, capped)
    p_less, n_less = sums_of(less, bound, capped)
    assert abs(p - p_less) + abs(n - n_less) <= 5.0 * bound * (1.0 + 1e-12)
    # The usual numerator and denominator, from the same pair.
    assert abs(p - p_less) <= 5.0 * bound * (1.0 + 1e-12)
    assert abs((p + n) - (p_less + n_less)) / 5.0 <= bound * (1.0 + 1e-12)
    centred = (p - n) / 2.0  # sum of w (y - B/2)
    assert abs(centred - (p_less - n_less) / 2.0) <= 2.5 * bound * (1.0 + 1e-12)


def test_the_sensitivity_is_reached():
    change = sums_of([[5.0, 5.0, 5.0], [1.0]], 2) - sums_of([[1.0]], 2)
    assert np.abs(change).sum() == pytest.approx(10.0)


@given(users_with_values, st.integers(1, 7))
def test_without_noise_the_ratio_is_the_weighted_mean(users, bound):
    y = [np.clip(np.array(u), 0.0, 5.0) for u in users]
    for capped in (False, True):
        p, n = sums_of(users, bound, capped)
        if capped:
            weighted = sum(u[:bound].sum() for u in y)
        else:
            weighted = sum(min(bound, u.size) * u.mean() for u in y)
        kept_weight = sum(min(bound, u.size) for u in y)
        assert p == pytest.approx(weighted, abs=1e-9)
        assert 5.0 * p / (p + n) == pytest.approx(weighted / kept_weight, abs=1e-9)


@pytest.mark.parametrize("release", list(ReleasedSums))
@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 1.0])
def test_privacy_factor_is_the_linearised_variance(release, p):
    # Gradient of the released mean by central differences at P = n mu, n = 1; noise variances 2 b^2.
    b, eps = 5.0, 0.7
    mu = p * b

    def release_mean(z1, z2):
        if release is ReleasedSums.PAIR:
            return b * (mu + z1) / ((mu + z1) + (b - mu + z2))
        if release is ReleasedSums.SPLIT:
            return (mu + z1) / (1.0 + z2)
        return b / 2.0 + (mu - b / 2.0 + z1) / (1.0 + z2)

    scales = {
        ReleasedSums.PAIR: (b / eps, b / eps),
        ReleasedSums.SPLIT: (b / (eps / 2.0), 1.0 / (eps / 2.0)),
        ReleasedSums.CENTRED_SPLIT: (b / 2.0 / (eps / 2.0), 1.0 / (eps / 2.0)),
    }[release]
    step = 1e-5
    slopes = (
        (release_mean(step, 0.0) - release_mean(-step, 0.0)) / (2.0 * step),
        (release_mean(0.0, step) - release_mean(0.0, -step)) / (2.0 * step),
    )
    variance = sum(2.0 * (g * s) ** 2 for g, s in zip(slopes, scales, strict=True))
    factor = problem_of(epsilon=eps, mean_above_lower=mu, released_sums=release).privacy_factor
    assert factor == pytest.approx(variance / (2.0 * (b / eps) ** 2), rel=1e-8)


GAUSSIAN = {"mechanism": NoiseKind.GAUSSIAN, "delta": 1e-6}
PROGRAMS = pytest.mark.parametrize(
    "changes", [{"program": program, **noise} for program in Program for noise in ({}, GAUSSIAN)]
)


def variances_of_program(program, noise, b, h, eps):
    """The variance of the noise on both sums under a bound of h rows, from what each program is known to do."""
    if program is Program.BIGQUERY:  # A third of epsilon for each, the last one for a hidden count of users.
        return 2.0 * (3.0 * h * b / 2.0 / eps) ** 2, 2.0 * (3.0 * h / eps) ** 2
    is_split = program in (Program.PIPELINEDP, Program.TUMULT)
    moved = (h * b / 2.0, h) if is_split else (h * b, h * b)
    if not noise:
        return tuple(2.0 * (s / (eps / 2.0 if is_split else eps)) ** 2 for s in moved)
    variance = find_exact_sigma(eps, 1e-6) ** 2
    if program in (Program.OPENDP, Program.TUMULT):
        variance = 1.0 / (2.0 * convert_to_rho(eps, 1e-6))
    # Half of rho doubles the variance; of two exact noises so, too, as 1 / sigma^2 adds up.
    return tuple((2.0 if is_split else 1.0) * variance * s**2 for s in moved)


@pytest.mark.thinned
@PROGRAMS
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_the_noise_of_a_program_is_that_of_its_two_sums(changes, p):
    b, h, eps = 5.0, 7.0, 0.7
    program = changes["program"]
    first, second = variances_of_program(program, "delta" in changes, b, h, eps)
    if program in (Program.PIPELINEDP, Program.TUMULT, Program.BIGQUERY):
        variance, on_sum, on_rows = first + ((p - 0.5) * b) ** 2 * second, first, second
    else:
        variance = (1.0 - p) ** 2 * first + p**2 * second
        on_sum, on_rows = (first + second) / 4.0, (first + second) / b**2
    # What `moved_mean` rests on: the noise of the rows, times B / 2, is as large as that of the sum around the middle.
    assert on_rows * (b / 2.0) ** 2 == pytest.approx(on_sum, rel=1e-12)
    parameters = mean.MeanParameters(eps, 0.0, b, counts=mean.Counts.PRIVATE, **changes)
    problem = replace(parameters.build_problem(SKEWED), mean_above_lower=p * b)
    kept = float(SKEWED.count_kept_rows(h))
    tolerance = 1.1e-3 if program is Program.PIPELINEDP else 1e-9
    assert float(mean.compute_capped_error(problem, h).privacy_variance) == pytest.approx(
        variance / kept**2, rel=tolerance
    )
    worst = max(replace(problem, mean_above_lower=mu)._unit_noise_variance for mu in np.linspace(0.0, b, 11))
    assert problem.relative_noise == pytest.approx(worst / b**2)


@PROGRAMS
def test_no_cap_is_better_under_the_noise_of_a_program(changes):
    for counts in mean.Counts:
        parameters = mean.MeanParameters(1.0, 0.0, 5.0, counts=counts, **changes)
        problem = parameters.build_problem(SKEWED)
        cap, smooth = mean.find_best_cap(problem), mean.find_best_smooth(problem)
        caps = mean.compute_capped_error(problem, np.arange(1.0, 201.0)).squared_error
        assert cap.max_contributions == int(np.argmin(caps)) + 1
        fine = mean.compute_smooth_error(problem, np.geomspace(1.0, 200.0, 20_001)).squared_error
        assert smooth.squared_error <= min(fine.min(), cap.squared_error) * (1.0 + 1e-12)
        assert cap.certificate.proves(2e-6)
        assert smooth.certificate.proves(1e-9)


@pytest.mark.parametrize("release", list(ReleasedSums))
def test_an_unknown_mean_stands_for_the_worst(release):
    factors = [
        problem_of(mean_above_lower=mu, released_sums=release).privacy_factor
        for mu in np.linspace(0.0, 5.0, 101)
    ]
    assert problem_of(mean_above_lower=None, released_sums=release).privacy_factor == max(factors)


def test_the_pair_beats_an_even_split_several_times():
    for mu in np.linspace(0.0, 5.0, 51):
        pair, split, centred = (
            problem_of(mean_above_lower=mu, released_sums=r).privacy_factor for r in ReleasedSums
        )
        # Variances: 4 to 10.5 times for the plain split, exactly 2 for the centred one.
        assert 4.0 - 1e-12 <= split / pair <= 10.48
        assert centred / pair == pytest.approx(2.0)


def test_at_the_worst_mean_it_is_the_public_count_error():
    # Factor 1: sigma^2 sum c^2 + 2 (B h / (eps n_h))^2, the formula of dpcore.mean.
    public = mean.MeanProblem(SKEWED, 1.0, 5.0, 1.5)
    private = problem_of(mean_above_lower=None)
    h = np.array([1.0, 2.5, 10.0, 200.0])
    assert mean.compute_smooth_variance(private, h) == pytest.approx(mean.compute_smooth_variance(public, h))
    assert mean.compute_capped_variance(private, h) == pytest.approx(mean.compute_capped_variance(public, h))


@pytest.mark.parametrize("release", list(ReleasedSums))
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
def test_no_cap_or_threshold_has_a_smaller_linearised_error(release, epsilon):
    problem = problem_of(epsilon=epsilon, released_sums=release)
    cap, smooth = mean.find_best_cap(problem), mean.find_best_smooth(problem)
    caps = mean.compute_capped_error(problem, np.arange(1.0, 201.0)).squared_error
    assert cap.max_contributions == int(np.argmin(caps)) + 1
    assert cap.squared_error == pytest.approx(caps.min(), rel=1e-12)
    fine = mean.compute_smooth_error(problem, np.geomspace(1.0, 200.0, 20_001)).squared_error
    assert smooth.squared_error <= fine.min() * (1.0 + 1e-12)
    assert smooth.squared_error <= cap.squared_error * (1.0 + 1e-12)
    assert cap.certificate.proves(2e-6)
    assert smooth.certificate.proves(1e-9)
    assert "delta-method" in cap.certificate.argument
    low, high = mean.find_caps_within(problem)
    within = np.flatnonzero(caps <= cap.squared_error * 1.05**2) + 1
    assert (low, high) == (within[0], within[-1])


@pytest.mark.parametrize("release", list(ReleasedSums))
@pytest.mark.parametrize(("bound", "capped"), [(3, True), (2.5, False)])
def test_simulation_agrees_where_noise_is_small(release, bound, capped):
    problem = problem_of(epsilon=0.25, released_sums=release)
    error = (mean.compute_capped_error if capped else mean.compute_smooth_error)(problem, float(bound))
    result = simulation.simulate(problem, bound, capped, runs=60_000, seed=2)
    # The noise on n_h is about 30 of 6,600: the linearisation is good to 1e-4, the standard error to 1e-2.
    # One mean at 4.5 standard errors fails with probability 7e-6 (and the seed is set).
    assert abs(result.mean_squared_error - float(error.squared_error)) <= 4.5 * result.standard_error
    assert result.standard_error < 0.02 * float(error.squared_error)
    # Each part is visible at this accuracy: without one of them the test would fail.
    assert min(float(error.privacy_variance), float(error.sampling_variance)) > 6.0 * result.standard_error


def test_simulation_shows_where_the_approximation_ends():
    # Four users and epsilon 0.05: the linearised error is beyond anything that values in [0, B] can be off.
    few = PrivateCountsProblem(ContributionHistogram.from_counts([3, 3, 1, 1]), 0.05, 5.0, 1.5, 2.0)
    result = simulation.simulate(few, 1.0, runs=5000)
    assert result.mean_squared_error < 9.0 < float(mean.compute_smooth_error(few, 1.0).squared_error)


def test_refusals():
    with pytest.raises(InvalidInput) as caught:
        PrivateCountsProblem(SKEWED, 0.0, 5.0, -1.0)
    assert len(caught.value.problems) == 2
    with pytest.raises(InvalidInput) as caught:
        PrivateCountsProblem(SKEWED, 0.0, 5.0, 1.0, -1.0, "pair")
    assert len(caught.value.problems) == 3
    with pytest.raises(InvalidInput, match="between 0 and 5"):
        problem_of(mean_above_lower=6.0)


def test_parameters_make_the_problem_of_their_setting():
    parameters = mean.MeanParameters(
        2.0, -1.0, 4.0, variance_source=mean.VarianceSource.FROM_VALUES, counts=mean.Counts.PRIVATE
    )
    # Three rows of one user: mean 1/2, and the variance with the divisor n - 1 is 3/4.
    values = Values(np.zeros(3, dtype=np.int64), np.array([0.0, 0.0, 1.5]))
    summary = ValueSummary.from_dataset(
        Dataset("x", "x", Disclosure.PUBLIC, ContributionHistogram.from_counts([3]), values=values), -1.0, 4.0
    )
    problem = PrivateCountsProblem(SKEWED, 2.0, 5.0, 0.75, 1.5, program=Program.OPENDP)
    assert parameters.build_problem(SKEWED, summary) == problem
    assert parameters.build_problem(SKEWED) == PrivateCountsProblem(
        SKEWED, 2.0, 5.0, 6.25, None, program=Program.OPENDP
    )
    public = replace(parameters, counts=mean.Counts.PUBLIC).build_problem(SKEWED, summary)
    assert public == mean.MeanProblem(SKEWED, 2.0, 5.0, 0.75, program=Program.OPENDP)
