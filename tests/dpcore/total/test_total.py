"""Sum and count: closed forms, brute force over T, certificates that must fail, symmetries."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dpcore import total
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.data.totals_per_user import Amounts
from dpcore.total import TotalProblem, nonnegative


def problem_of(totals, epsilon=1.0, noise=NoiseKind.LAPLACE, measure=Measure.ABSOLUTE, whole=False):
    delta = 1e-6 if noise is NoiseKind.GAUSSIAN else None
    return TotalProblem(Amounts.from_totals(totals), epsilon, noise, delta, measure, whole)


def plain_error(totals, bounds, problem):
    """The measure from the single users' totals, by the textbook formulas."""
    x, t = np.asarray(totals, dtype=float), np.asarray(bounds, dtype=float)
    a = np.maximum(x[:, None] - t, 0.0).sum(axis=0)
    s = problem.unit_noise * t
    laplace = problem.mechanism is NoiseKind.LAPLACE
    if problem.measure is Measure.BOUND:
        return a + s * (1.0 if laplace else math.sqrt(2.0 / math.pi))
    if problem.measure is Measure.RMSE:
        return np.sqrt(a**2 + (2.0 if laplace else 1.0) * s**2)
    safe = np.where(s > 0, s, 1.0)
    with_noise = a + safe * np.exp(-a / safe) if laplace else folded(a, safe)
    return np.where(s > 0, with_noise, a)


def folded(a, s):
    """E|a + N(0, s^2)|."""
    return 2.0 * s * stats.norm.pdf(a / s) + a * (1.0 - 2.0 * stats.norm.cdf(-a / s))


problems = st.builds(
    lambda totals, log_eps, noise, measure: (totals, 10.0**log_eps, noise, measure),
    st.lists(
        st.one_of(st.integers(0, 12).map(float), st.floats(0.0, 100.0).map(lambda x: round(x, 6))),
        min_size=1,
        max_size=25,
    ),
    st.floats(-2.0, 2.0),
    st.sampled_from(list(NoiseKind)),
    st.sampled_from(list(Measure)),
)


@settings(max_examples=150, deadline=None)
@given(problems)
def test_no_bound_on_a_fine_grid_is_better(case):
    totals, *rest = case
    problem = problem_of(totals, *rest)
    best = total.find_best_choice(problem)
    grid = np.concatenate((np.linspace(0.0, max(totals), 2001), totals))
    brute = plain_error(totals, grid, problem)
    value = float(plain_error(totals, [best.max_total], problem)[0])
    assert best.certificate.value == pytest.approx(value, rel=1e-8, abs=1e-12)
    assert value <= float(brute.min()) * (1.0 + 1e-8) + 1e-12
    if best.error_of_nothing > 0.0:
        assert best.certificate.proves(1e-9)


@settings(max_examples=100, deadline=None)
@given(problems)
def test_no_whole_bound_is_better(case):
    totals, *rest = case
    problem = problem_of(totals, *rest, whole=True)
    best = total.find_best_choice(problem)
    assert best.max_total == round(best.max_total)
    every = np.arange(0.0, math.ceil(max(totals)) + 2.0)
    brute = float(plain_error(totals, every, problem).min())
    assert best.certificate.value == pytest.approx(brute, rel=1e-8, abs=1e-12)
    if best.error_of_nothing > 0.0:
        assert best.certificate.proves(1e-9)


def test_the_paper_rule_survives_floating_point():
    # 1 / (1 / 49) is 49.00000000000001 in float64: a plain ceil would say 50.
    totals = np.arange(1.0, 301.0)
    for rank in range(1, 200):
        problem = problem_of(totals, 1.0 / rank, measure=Measure.BOUND)
        assert nonnegative.compute_critical_rank(problem) == rank
        assert total.find_best_choice(problem).max_total == 301.0 - rank


def test_gaussian_rule_is_the_rank_of_the_mean_noise():
    totals = np.arange(1.0, 101.0)
    problem = problem_of(totals, 1.0, NoiseKind.GAUSSIAN, Measure.BOUND)
    # sigma_1 at (1, 1e-6) is 4.2247 (Balle and Wang): 4.2247 * 0.7979 = 3.371, so the fourth largest.
    assert total.find_best_choice(problem).max_total == 97.0


def test_too_few_users_release_nothing():
    choice = total.find_best_choice(problem_of([5.0, 3.0, 0.0, 0.0], 0.3, measure=Measure.BOUND))
    assert choice.max_total == 0.0
    assert choice.gain == 0.0
    assert choice.errors.bias_plus_noise == choice.error_of_nothing == 8.0
    assert "Nothing useful" in choice.stop_reason
    exact = total.find_best_choice(problem_of([5.0, 3.0, 0.0, 0.0], 0.3))
    # With q epsilon < 1 the saving is largest at q epsilon = 1, where it is 1 - 1.464 / 2.146 = 0.318.
    assert 0.0 < exact.gain < 0.32
    assert "Of little use" in exact.stop_reason


def test_all_zero():
    choice = total.find_best_choice(problem_of([0.0, 0.0]))
    assert (choice.max_total, choice.errors.absolute_errors) == (0.0, 0.0)
    assert "All totals are 0" in choice.stop_reason


@pytest.mark.parametrize("noise", list(NoiseKind))
@pytest.mark.parametrize("measure", list(Measure))
@pytest.mark.parametrize("whole", [False, True])
def test_a_certificate_fails_on_half_answers(noise, measure, whole):
    totals = np.round(1000.0 / np.arange(1.0, 400.0))
    problem = problem_of(totals, 0.1, noise, measure, whole)
    best = total.find_best_choice(problem)
    assert best.certificate.proves(1e-9)
    for factor in (0.3, 3.0):
        wrong = round(best.max_total * factor) if whole else best.max_total * factor
        gap = nonnegative.certify(problem, wrong).relative_gap
        # Honest as well: the claimed gap is at least the true one.
        true = 1.0 - best.certificate.value / float(total.measure_errors(problem, wrong))
        assert gap >= max(true, 0.01) * (1.0 - 1e-9)


@pytest.mark.thinned
@pytest.mark.parametrize("measure", list(Measure))
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e9])
def test_crowds_and_extreme_budgets_are_proved_too(measure, whole, epsilon):
    # With 1e12 users at the largest total the best T lies within 1e-12 of it: the slope there says nothing.
    for amounts in (
        Amounts([1.0, 10.0, 1e12], [10**9, 10**6, 3]),
        Amounts([1e-3, 1.0, 1e12], [10**12, 10**12, 10**12]),
        Amounts(np.arange(1.0, 1001.0), np.ones(1000)),
    ):
        best = total.find_best_choice(TotalProblem(amounts, epsilon, measure=measure, is_integer=whole))
        assert best.certificate.proves(1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.0, 1e3), min_size=2, max_size=20), st.floats(0.0, 1e3), st.data())
def test_removing_a_user_moves_the_clipped_sum_by_at_most_the_bound(totals, bound, data):
    gone = data.draw(st.integers(0, len(totals) - 1))

    def clipped(x):
        amounts = Amounts.from_totals(x)
        return amounts.total - float(amounts.sum_excess(bound))

    less = [x for i, x in enumerate(totals) if i != gone]
    assert -1e-9 <= clipped(totals) - clipped(less) <= bound + 1e-9


@pytest.mark.parametrize("noise", list(NoiseKind))
def test_error_interval_holds_what_it_says(noise):
    problem = problem_of([1.0, 5.0, 9.0], 0.5, noise)
    low, high = total.compute_error_interval(problem, 4.0, 0.9)
    law = stats.laplace if noise is NoiseKind.LAPLACE else stats.norm
    error = law(loc=-6.0, scale=4.0 * problem.unit_noise)  # Bias 1 + 5.
    assert error.cdf(high) - error.cdf(low) == pytest.approx(0.9, abs=1e-9)
    assert (low + high) / 2.0 == pytest.approx(-6.0)


@pytest.mark.parametrize("whole", [False, True])
def test_bounds_within_ends_where_the_error_passes_the_limit(whole):
    problem = problem_of(np.round(1000.0 / np.arange(1.0, 400.0)), 0.1, whole=whole)
    low, high = total.find_near_optimal_bounds(problem, 0.05)
    best = total.find_best_choice(problem)
    limit = 1.05 * best.certificate.value
    step = 1.0 if whole else 1e-6 * best.max_total
    assert low <= best.max_total <= high
    assert np.all(total.measure_errors(problem, [low, high]) <= limit * (1.0 + 1e-12))
    assert np.all(total.measure_errors(problem, [low - step, high + step]) > limit)


@pytest.mark.thinned
@pytest.mark.parametrize("noise", list(NoiseKind))
@pytest.mark.parametrize("measure", list(Measure))
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_a_bound_to_carry_away_has_few_digits_and_costs_little(noise, measure, epsilon):
    rng = np.random.default_rng(11)
    for spread in (0.1, 3.0):  # users much alike, and a heavy tail
        for size in (1e-9, 1.0, 1e9):
            totals = size * rng.lognormal(0.0, spread, 300)
            problem = problem_of(totals, epsilon, noise, measure=measure)
            best = total.find_best_choice(problem)
            if best.max_total == 0.0:
                continue
            short = total.find_short_bound(problem, best.max_total)
            digits = len(Decimal(repr(short)).normalize().as_tuple().digits)
            assert digits <= 4
            least = plain_error(totals, [best.max_total], problem)[0]
            assert plain_error(totals, [short], problem)[0] <= 1.001 * least * (1.0 + 1e-9)
            low, high = total.find_near_optimal_bounds(problem)
            assert low <= short <= high
            if digits > 1:  # No shorter one would do: around the best bound, and errors are convex.
                step = 10.0 ** (math.floor(math.log10(best.max_total)) - digits + 2)
                shorter = step * np.array(
                    [math.floor(best.max_total / step), math.ceil(best.max_total / step)]
                )
                assert np.all(plain_error(totals, shorter, problem) > 1.001 * least)


def test_a_bound_to_carry_away_is_not_the_total_it_was_read_off():
    totals = np.concatenate((np.full(200, 3.21), [24_755.55999999998, 31_000.07]))
    problem = problem_of(totals, 0.5, measure=Measure.BOUND)
    assert total.find_best_choice(problem).max_total == 24_755.55999999998  # rank 2 = 1 / epsilon
    assert (
        total.find_short_bound(problem, 24_755.55999999998) == 20_000.0
    )  # between ranks 1 and 3 the bound is flat
    assert total.find_short_bound(problem_of(totals, 0.5, whole=True), 24_755.0) == 24_755.0


def test_refuses_bad_questions_all_at_once():
    amounts = Amounts.from_totals([1.0])
    with pytest.raises(InvalidInput) as caught:
        TotalProblem(amounts, -1.0, NoiseKind.GAUSSIAN, None, measure="mean")
    assert len(caught.value.problems) == 3
    with pytest.raises(InvalidInput, match="float64"):
        TotalProblem(Amounts.from_totals([1e300]), 1e-300)
    with pytest.raises(InvalidInput, match="no delta"):
        replace(TotalProblem(amounts, 1.0), delta=1e-6)


@settings(max_examples=150)
@given(
    largest=st.one_of(st.integers(2**40, 2**53), st.just(2**53)),
    below=st.lists(
        st.one_of(st.integers(0, 8), st.integers(0, 2**40 - 1)), min_size=1, max_size=6, unique=True
    ),
    users=st.lists(st.integers(1, 10**9), min_size=6, max_size=6),
    epsilon=st.floats(1e-3, 50.0),
    measure=st.sampled_from([Measure.BOUND, Measure.RMSE]),
)
# Here float64 takes a bound a few steps beside the best for it, and one step to the side tells nothing.
@example(2**53, [0, 1, 2, 3, 4, 5], [1457, 1867, 61232, 2, 1, 1383358], 28.125, Measure.RMSE)
def test_whole_bounds_are_proved_up_to_where_float64_counts(largest, below, users, epsilon, measure):
    # Totals close together at 2^53 lose all digits in sum - T * users; the truth is computed in fractions.
    totals = sorted({largest - b for b in below})
    amounts = Amounts(totals, users[: len(totals)])
    problem = TotalProblem(amounts, epsilon, measure=measure, is_integer=True)

    def squared(bound):
        a = sum((max(x - bound, 0) * u for x, u in zip(totals, users, strict=False)), Fraction(0))
        s = Fraction(problem.unit_noise) * bound
        return (a + s) ** 2 if measure is Measure.BOUND else a**2 + 2 * s**2

    best = total.find_best_choice(problem)
    t = int(best.max_total)
    assert t == best.max_total
    nearby = [b for b in {0, *totals, *range(t - 3, t + 4)} if b >= 0]
    smallest = min(map(squared, nearby))
    assert Fraction(best.certificate.value) ** 2 <= smallest * (1 + Fraction(1, 10**7))
    assert Fraction(max(best.certificate.lower_bound, 0.0)) ** 2 <= smallest * (1 + Fraction(1, 10**9))
    assert best.certificate.proves(1e-7)


def test_whole_bounds_above_float64s_whole_numbers_are_refused():
    amounts = Amounts([2.0**53, 2.0**54], [3, 4])
    with pytest.raises(InvalidInput, match="2⁵³"):
        TotalProblem(amounts, 1.0, is_integer=True)
    assert total.find_best_choice(TotalProblem(amounts, 1.0)).certificate.proves(1e-9)
