"""The error after a mean is moved into its range: against the mechanism, integrals, and simpler cases."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore import mean
from dpcore.common.noise_error import NoiseKind
from dpcore.contributions import ContributionHistogram
from dpcore.mean.models import MeanError
from dpcore.mean.moved_mean import measure_caps, measure_reach, move_error, move_users_error
from dpcore.mean.private_counts import PrivateCountsProblem, ReleasedSums
from dpcore.mean.table_values import TableValues

GAUSSIAN = {"mechanism": NoiseKind.GAUSSIAN, "delta": 1e-6}
SUMS = [None, ReleasedSums.PAIR, ReleasedSums.CENTRED_SPLIT]
"""Public counts, and the sums that are released where they are private."""
USERS = ContributionHistogram.from_counts([4] * 10)
B = 10.0


def problem_of(y, sums, noise=None, histogram=USERS):
    """A problem with values in [0, 10] whose mean before clamping is y."""
    values = TableValues(histogram, np.zeros(1), np.zeros(1), 0.0, y)
    options = {"target": mean.Target.TABLE, "table_values": values} | (noise or {})
    if sums is None:
        return mean.MeanProblem(histogram, 1.0, B, 1.0, **options)
    return PrivateCountsProblem(histogram, 1.0, B, 1.0, min(max(y, 0.0), B), sums, **options)


def error_of(problem, shift, sampling, noise):
    """The error before the step with standard deviations of sampling and of the noise of the sum over n."""
    factor = 1.0
    if isinstance(problem, PrivateCountsProblem):
        factor += (2.0 * problem.mean_above_lower / B - 1.0) ** 2
    return MeanError(np.array(sampling**2), np.array(noise**2 * factor), np.array(shift))


CASES = [  # Mean, shift, standard deviations of sampling and of the noise of the sum over n.
    (2.0, 0.0, 0.0, 0.5),
    (2.0, -0.3, 1.0, 0.6),
    (9.8, 0.0, 0.05, 0.4),
    (5.0, 0.4, 0.2, 3.0),
    (0.3, 0.1, 0.3, 6.0),
    (-0.5, 0.7, 0.2, 1.0),
    (5.0, 0.0, 2.0, 0.03),
]
NOISES = pytest.mark.parametrize("noise", [None, GAUSSIAN], ids=["Laplace", "Gaussian"])
RULE = 5e-3
"""What the rule over the sampling error may add, of the square."""


@pytest.mark.long
@NOISES
@pytest.mark.parametrize(
    ("sums", "rows_factor"), [*((sums, 1.0) for sums in SUMS), (SUMS[2], 0.3), (SUMS[2], 2.5)]
)
@pytest.mark.parametrize("case", CASES)
def test_releases_of_the_mechanism_err_as_stated(case, sums, rows_factor, noise):
    y, shift, sampling, deviation = case
    problem, bound, draws = problem_of(y, sums, noise), 2.0, 400_000
    generator = np.random.default_rng(7)
    draw = generator.normal if noise else lambda *args: generator.laplace(*args) / math.sqrt(2.0)
    n, middle = 20.0, B / 2.0
    kept = n * (y + shift - middle + sampling * generator.standard_normal(draws))
    if sums is ReleasedSums.PAIR:
        # Both entries have sqrt(2) times the noise of half their difference.
        above, below = n * deviation * math.sqrt(2.0) * draw(0.0, 1.0, (2, draws))
        rows, total = n + (above + below) / B, kept + (above - below) / 2.0
    else:
        total = kept + n * deviation * draw(0.0, 1.0, draws)
        rows = n if sums is None else n + rows_factor * n * deviation / middle * draw(0.0, 1.0, draws)
    squares = (np.clip(total / np.maximum(rows, 1.0), -middle, middle) - (y - middle)) ** 2
    before = error_of(problem, shift, sampling, deviation)
    options = {"sum_noise_variances": np.array(deviation**2), "rows_noise_factor": rows_factor}
    options = options if rows_factor != 1.0 else {}
    stated = float(move_error(problem, before, bound, **options).squared_error)
    standard_error = float(squares.std()) / math.sqrt(draws)
    # All 70 cells within 4.5 standard errors: fails with probability 5e-4, and the seed is set.
    assert abs(float(squares.mean()) - stated) <= 4.5 * standard_error + RULE * stated
    assert standard_error < 5e-3 * stated


@NOISES
@pytest.mark.parametrize("case", CASES)
def test_the_error_of_public_counts_is_the_integral_over_sampling_and_noise(case, noise):
    y, shift, sampling, deviation = case
    problem = problem_of(y, None, noise)
    # The density of their sum on a grid, by summing over the sampling error.
    s = np.linspace(-7.0, 7.0, 701)
    weights = np.exp(-(s**2) / 2.0) if sampling else (s == 0.0) * 1.0
    z = np.linspace(-30.0, 30.0, 12_001)
    density = np.exp(-(z**2) / 2.0) if noise else np.exp(-math.sqrt(2.0) * np.abs(z))
    means = np.clip(y + shift + sampling * s[:, None] + deviation * z, 0.0, B)
    square = float(weights @ (means - y) ** 2 @ density / weights.sum() / density.sum())
    stated = move_error(problem, error_of(problem, shift, sampling, deviation), 2.0)
    assert float(stated.squared_error) == pytest.approx(square, rel=RULE if sampling and not noise else 2e-5)


@NOISES
@pytest.mark.parametrize("sums", SUMS)
def test_parts_make_the_error_and_little_noise_leaves_it_as_it_is(sums, noise):
    problem = problem_of(4.0, sums, noise)
    before = error_of(problem, np.array([0.2, 0.001]), np.array([0.5, 0.002]), np.array([9.0, 0.003]))
    after = move_error(problem, before, np.array([2.0, 3.0]))
    parts = after.shift**2 + after.sampling_variance + after.privacy_variance
    assert after.squared_error == pytest.approx(parts, rel=1e-12)
    assert after.squared_error[0] < 0.9 * before.squared_error[0]
    assert after.squared_error[1] == pytest.approx(before.squared_error[1], rel=1e-3)
    # The mean is not known: the error before the step stands.
    unknown = replace(problem, target=mean.Target.POPULATION, table_values=None)
    if sums is not None:
        unknown = replace(unknown, mean_above_lower=None)
    assert move_error(unknown, before, np.array([2.0, 3.0])) is before


@pytest.mark.long_but("5-ReleasedSums.CENTRED_SPLIT-Gaussian")
@NOISES
@pytest.mark.parametrize("sums", SUMS[1:])
@pytest.mark.parametrize("users", [5, 500])
def test_without_a_known_mean_the_linearised_error_is_an_upper_bound_for_every_mean(users, sums, noise):
    histogram = ContributionHistogram.from_counts([1] * users)
    problem = PrivateCountsProblem(histogram, 1.0, B, 0.3, None, sums, **(noise or {}))
    linearised = mean.compute_capped_error(problem, 1.0)
    for factor in np.geomspace(1e-3, 1e2, 26):
        largest = 0.0
        for mu in np.linspace(0.0, B, 41):
            known = replace(problem, mean_above_lower=mu)
            noise_variance = (
                factor * linearised.privacy_variance * known.privacy_factor / problem.privacy_factor
            )
            before = MeanError(linearised.sampling_variance, noise_variance, np.zeros(()))
            largest = max(largest, float(move_error(known, before, 1.0).squared_error))
        stated = linearised.sampling_variance + factor * linearised.privacy_variance
        assert largest <= stated * (1.0 + 1e-3)
        assert largest > 0.0


def test_clamped_users_are_moved_to_the_means_that_users_can_have():
    # Rows of users with a bound of 3 may lie 3 times as far from the middle.
    problem = problem_of(5.0, ReleasedSums.PAIR)
    assert measure_reach(problem, [0.5, 1.0, 3.0]) == pytest.approx([1.0, 1.0, 3.0])
    before = error_of(problem, 0.0, 0.0, 2.0)
    narrow, wide = move_error(problem, before, 3.0), move_users_error(problem, before, 3.0)
    assert float(narrow.squared_error) < float(wide.squared_error)
    generator = np.random.default_rng(5)
    above, below = 30.0 * 2.0 * generator.laplace(0.0, 1.0, (2, 400_000))
    ratios = (above - below) / 2.0 / np.maximum(30.0 + (above + below) / B, 1.0)
    squares = np.clip(ratios, -3.0 * B / 2.0, 3.0 * B / 2.0) ** 2
    standard_error = float(squares.std()) / math.sqrt(squares.size)
    assert abs(float(squares.mean() - wide.squared_error)) <= 4.5 * standard_error + 1e-3 * float(
        wide.squared_error
    )


@pytest.mark.long
def test_card_files_and_curve_have_one_error_and_say_what_it_counts():
    table = pd.DataFrame({"user_id": np.arange(36) // 3, "amount": 100.0 * (np.arange(36) % 2)})
    settings = {"user": "user_id", "value": "amount", "lower": 0, "upper": 100, "disclosure": "public"}
    read = {"target": "table", "variance_source": "values", "likeness": "values"}
    for counts in ("public", "private"):
        reply = ss.mean_bound(table, epsilon=0.1, counts=counts, **settings, **read)
        solution = reply.answer.solution
        assert reply.error < 0.6 * solution.cap_choice.standard_error
        own_error = measure_caps(solution.problem, float(reply.bound))
        assert reply.error == pytest.approx(math.sqrt(float(own_error.squared_error)))
        assert sum(part.value**2 for part in reply.answer.error_parts) == pytest.approx(reply.error**2)
        plot = reply.answer.plots["mean-error"]()
        at_bound = list(plot.columns["bound"]).index(float(reply.bound))
        assert plot.columns["cap_standard_error"][at_bound] == pytest.approx(reply.error)
        assert "The error counts that" in reply.answer.detail
        assert any("The error counts that" in sentence for sentence in reply.answer.assumptions)
        # Nothing is read: the error is that of the worst mean.
        unread = ss.mean_bound(
            table, epsilon=0.1, counts=counts, variance_source="worst", likeness="none", **settings
        )
        assert unread.error == unread.answer.solution.cap_choice.standard_error
        assert "is an upper bound" in unread.answer.detail
        assert any("an upper bound for every mean" in sentence for sentence in unread.answer.assumptions)
