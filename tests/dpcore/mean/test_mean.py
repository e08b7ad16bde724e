"""The mean: its variances, its optima, its sensitivity, and a run of the mechanism itself."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpcore import mean
from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.mean import MeanProblem

COUNTS = st.lists(st.integers(1, 40), min_size=1, max_size=25)
EXPONENT = st.floats(-2, 2).map(lambda x: 10.0**x)
SMALL = ContributionHistogram(sizes=[1, 3, 10], users=[20, 6, 3])


def problem(counts: list[int], epsilon: float, value_bound: float, value_variance: float) -> MeanProblem:
    return MeanProblem(ContributionHistogram.from_counts(counts), epsilon, value_bound, value_variance)


@given(COUNTS, EXPONENT, EXPONENT, EXPONENT, st.floats(0, 1))
def test_smooth_variance(counts: list[int], eps: float, b: float, var: float, where: float) -> None:
    h = min(counts) + where * (max(counts) - min(counts))
    n = math.fsum(min(h, s) for s in counts)
    expected = var * math.fsum(s * (min(h, s) / (n * s)) ** 2 for s in counts) + 2 * (b * h / (eps * n)) ** 2
    assert mean.compute_smooth_variance(problem(counts, eps, b, var), h) == pytest.approx(expected, rel=1e-12)


@given(COUNTS, EXPONENT, EXPONENT, EXPONENT, st.integers(1, 40))
def test_capped_variance(counts: list[int], eps: float, b: float, var: float, h: int) -> None:
    n = sum(min(h, s) for s in counts)
    expected = var / n + 2 * (b * h / (eps * n)) ** 2
    assert mean.compute_capped_variance(problem(counts, eps, b, var), h) == pytest.approx(expected, rel=1e-12)


@given(COUNTS, EXPONENT, EXPONENT, st.one_of(st.just(0.0), EXPONENT))
def test_best_cap_and_caps_within_by_brute_force(counts: list[int], eps: float, b: float, var: float) -> None:
    p = problem(counts, eps, b, var)
    # From 1: below the lightest user's rows too, where caps can be as good as the best.
    caps = np.arange(1, max(counts) + 1)
    variances = [
        var / n + 2 * (b * h / (eps * n)) ** 2 for h in caps for n in [sum(min(h, s) for s in counts)]
    ]
    best = mean.find_best_cap(p)
    assert best.squared_error == pytest.approx(min(variances), rel=1e-12)
    for excess in (0.0, 0.05, 0.5):
        limit = min(variances) * (1 + excess) ** 2
        surely = caps[np.array(variances) <= limit * (1 - 1e-12)]
        perhaps = caps[np.array(variances) <= limit * (1 + 1e-12)]
        low, high = mean.find_caps_within(p, excess)
        assert perhaps[0] <= low <= best.max_contributions <= high <= perhaps[-1]
        if surely.size:
            assert low <= surely[0]
            assert high >= surely[-1]


@pytest.mark.long_but("small", "one user")
@pytest.mark.parametrize(
    "histogram",
    [
        SMALL,
        ContributionHistogram(sizes=[7], users=[1]),
        ContributionHistogram(sizes=[5], users=[9]),
        ContributionHistogram(sizes=[1, 10**6, 10**12], users=[10**12, 10**6, 1]),
        ContributionHistogram(sizes=[10**12 - 1, 10**12], users=[10**12, 10**12]),
        ContributionHistogram(sizes=np.arange(1, 301), users=10**9 // np.arange(1, 301) ** 2),
    ],
    ids=["small", "one user", "equal", "spread", "nearly equal", "zipf"],
)
def test_every_corner_is_proved(histogram: ContributionHistogram) -> None:
    for epsilon, b in itertools.product(10.0 ** np.arange(-6, 4), 10.0 ** np.arange(-9, 10, 3)):
        for variance in (0.0, b**2 / 4, 1e-9 * b**2, 1.0):
            p = MeanProblem(histogram, epsilon, b, variance)
            smooth, cap = mean.find_best_smooth(p), mean.find_best_cap(p)
            assert abs(smooth.certificate.relative_gap) <= 1e-9
            assert cap.certificate.relative_gap <= 1e-6 * (1 + 1e-9)
            assert 0 < smooth.squared_error <= cap.squared_error * (1 + 1e-12) < math.inf
            assert histogram.min_size <= smooth.threshold <= histogram.max_size
            assert histogram.min_size <= cap.max_contributions <= histogram.max_size


@st.composite
def changed_values(draw: st.DrawFn) -> tuple[list[int], int, float, list[float], list[float]]:
    """Counts, one user, B, and two tables of values in [0, B] that differ in that user's rows only."""
    counts = draw(st.lists(st.integers(1, 8), min_size=1, max_size=6))
    user, b = draw(st.integers(0, len(counts) - 1)), draw(EXPONENT)
    value = st.one_of(st.sampled_from([0.0, b]), st.floats(0, b))
    rows = np.repeat(np.arange(len(counts)), counts)
    old_values = [draw(value) for _ in rows]
    new_values = [draw(value) if r == user else old for r, old in zip(rows, old_values, strict=True)]
    return counts, user, b, old_values, new_values


@given(changed_values(), st.floats(0.5, 10))
def test_one_users_values_move_the_weighted_mean_by_no_more_than_declared(
    case: tuple[list[int], int, float, list[float], list[float]], threshold: float
) -> None:
    counts, _, b, old_values, new_values = case
    p = problem(counts, 1.0, b, b * b / 4)
    h = min(threshold, float(max(counts)))
    row_weights = mean.compute_row_weight(p, h, np.repeat(counts, counts))
    distance = abs(np.dot(row_weights, new_values) - np.dot(row_weights, old_values))
    # The noise of eps = 1 has variance 2 (sensitivity)^2.
    declared = math.sqrt(float(mean.compute_smooth_error(p, h).privacy_variance) / 2)
    assert distance <= declared * (1 + 1e-12)
    heaviest = int(np.argmax(counts))
    worst = b * counts[heaviest] * float(mean.compute_row_weight(p, h, counts[heaviest]))
    assert worst == pytest.approx(declared, rel=1e-12)  # and no smaller declaration would do


@given(changed_values(), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_one_users_values_move_the_capped_mean_by_no_more_than_declared(
    case: tuple[list[int], int, float, list[float], list[float]], cap: int, seed: int
) -> None:
    counts, _, b, old_values, new_values = case
    p = problem(counts, 1.0, b, b * b / 4)
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    kept_rows = np.concatenate(
        [start + rng.permutation(count)[:cap] for start, count in zip(starts, counts, strict=True)]
    )
    distance = abs(np.mean(np.array(new_values)[kept_rows]) - np.mean(np.array(old_values)[kept_rows]))
    assert distance <= math.sqrt(float(mean.compute_capped_error(p, cap).privacy_variance) / 2) * (1 + 1e-12)


def squared_errors(
    p: MeanProblem, row_weights: npt.NDArray[np.float64], runs: int, seed: int
) -> npt.NDArray[np.float64]:
    """Run Epasto et al.'s mechanism on values uniform on [0, B]; squared errors, shape (runs,).

    Noise is scaled by the user weight of the rows that are actually used, not by any formula under test.
    ``row_weights`` has shape (rows,) or (runs, rows).
    """
    rng = np.random.default_rng(seed)
    counts = np.repeat(p.histogram.sizes, p.histogram.users)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    values = rng.uniform(0, p.value_bound, (runs, int(counts.sum())))
    largest = np.add.reduceat(np.atleast_2d(row_weights), starts, axis=1).max(axis=1)
    noise = rng.laplace(0.0, 1.0, runs) * p.value_bound * largest / p.epsilon
    releases = np.sum(values * row_weights, axis=1) + noise
    return np.asarray((releases - p.value_bound / 2) ** 2)


def random_rows_kept(
    histogram: ContributionHistogram, cap: int, runs: int, seed: int
) -> npt.NDArray[np.float64]:
    """Weights 1 / n_h of rows kept at random, at most ``cap`` per user, drawn anew in every run."""
    rng = np.random.default_rng(seed)
    counts = np.repeat(histogram.sizes, histogram.users)
    blocks = []
    for count in counts:
        order = np.argsort(rng.random((runs, count)), axis=1)
        blocks.append(order < cap)
    kept_rows = np.concatenate(blocks, axis=1)
    assert np.all(kept_rows.sum(axis=1) == kept_rows[0].sum())
    return np.asarray(kept_rows / kept_rows[0].sum())


@pytest.mark.parametrize(("epsilon", "b"), [(0.5, 1.0), (5.0, 20.0)])
def test_mean_squared_error_of_the_mechanism_is_the_stated_variance(epsilon: float, b: float) -> None:
    # Normal approximation for the mean of the squared errors at 99.99 %; values uniform, so sigma^2 = B^2/12.
    p = MeanProblem(SMALL, epsilon, b, b * b / 12)
    runs, chunk = 60_000, 10_000
    smooth, cap = mean.find_best_smooth(p), mean.find_best_cap(p)
    rows = np.repeat(np.repeat(SMALL.sizes, SMALL.users), np.repeat(SMALL.sizes, SMALL.users))
    weighted = mean.compute_row_weight(p, smooth.threshold, rows)
    for choice, weights_of in (
        (smooth, lambda seed: weighted),
        (cap, lambda seed: random_rows_kept(SMALL, cap.max_contributions, chunk, seed)),
    ):
        errors = np.concatenate(
            [squared_errors(p, weights_of(s), chunk, 1000 + s) for s in range(runs // chunk)]
        )
        half_width = stats.norm.ppf(1 - 1e-4 / 2) * errors.std(ddof=1) / math.sqrt(runs)
        assert abs(errors.mean() - choice.squared_error) < half_width
        assert half_width < 0.05 * choice.squared_error  # so that a formula wrong by 10 % would not pass


def test_all_problems_at_once() -> None:
    with pytest.raises(InvalidInput) as raised:
        MeanProblem(SMALL, epsilon=0.0, value_bound=math.nan, value_variance=-1.0)
    assert [p.message.split()[0] for p in raised.value.problems] == [
        "epsilon",
        "value_bound",
        "value_variance",
    ]


@pytest.mark.parametrize(
    ("epsilon", "b", "variance"),
    [(1e-300, 1e9, 1.0), (1e200, 1e-200, 1.0), (1.0, 1.0, 1e300), (1.0, 1e-200, 1.0)],
)
def test_parameters_too_far_apart_are_refused_not_miscomputed(
    epsilon: float, b: float, variance: float
) -> None:
    with pytest.raises(InvalidInput, match="another unit"):
        MeanProblem(SMALL, epsilon, b, variance)


def test_bounds_whose_square_is_too_large_for_a_float_are_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="Upper"):
        mean.MeanParameters(1.0, 1.0, 1e300, variance_source=mean.VarianceSource.ENTERED, value_variance=1.0)
