"""Generated distributions against their formulas.

Draws are tested at a level of 1e-6 with fixed seeds: a right generator fails once in a million seeds.
"""

import dataclasses
import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.samples import (
    GENERATORS,
    Generator,
    LogNormalSizes,
    PowerLawParticipation,
    TwoGroups,
    ZipfSizes,
    generate_dataset,
)

LEVEL = 1e-6
EXAMPLES: list[Generator] = [
    ZipfSizes(alpha=1.5, num_users=20_000, max_contributions=300, seed=1),
    PowerLawParticipation(alpha=0.8, num_rows=20_000, seed=1),
    LogNormalSizes(log_mean=1.0, log_sigma=1.2, num_users=20_000, seed=1),
    TwoGroups(light_users=5, light_rows=1, heavy_users=2, heavy_rows=7),
]


def chi_squared(observed: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """p-value; classes expecting under 10 are added to their neighbours."""
    observed, probabilities = np.asarray(observed, float), np.asarray(probabilities, float)
    expected = probabilities * observed.sum()
    # Close a class whenever enough is expected; the rest joins the last one.
    edges, num_expected = [0], 0.0
    for k, e in enumerate(expected):
        num_expected += e
        if num_expected >= 10 and expected[k + 1 :].sum() >= 10:
            edges.append(k + 1)
            num_expected = 0.0
    assert len(edges) >= 4, "too few classes for a test"
    o, e = np.add.reduceat(observed, edges), np.add.reduceat(expected, edges)
    assert math.isclose(o.sum(), e.sum(), rel_tol=1e-9)
    return float(stats.chisquare(o, e).pvalue)


def users_of_each_size(h: ContributionHistogram, most: int) -> npt.NDArray[np.int64]:
    users = np.zeros(most, dtype=np.int64)
    users[h.sizes - 1] = h.users
    return users


@pytest.mark.parametrize(
    ("alpha", "num_users", "most"), [(1.5, 100_000, 200), (2.0, 3_000, 1_000_000), (0.5, 50_000, 40)]
)
def test_zipf_sizes_follow_the_law(alpha: float, num_users: int, most: int) -> None:
    h = ZipfSizes(alpha, num_users, most, seed=11).build_histogram()
    assert h.num_users == num_users
    assert h.max_size <= most
    head = min(most, 2_000)
    law = [i**-alpha for i in range(1, most + 1)]
    share = np.array(law) / math.fsum(law)
    users = users_of_each_size(h, most)
    observed = [*users[:head], users[head:].sum()]
    assert chi_squared(observed, [*share[:head], share[head:].sum()]) > LEVEL


def test_zipf_sizes_of_very_many_users_are_near_their_expectation() -> None:
    # 1e12 users: each size's count is binomial, so within 7 standard deviations (p < 1e-11 for each of 50).
    alpha, m, most = 3.0, 10**12, 50
    h = ZipfSizes(alpha, m, most, seed=3).build_histogram()
    share = np.arange(1, most + 1) ** -alpha
    share /= share.sum()
    assert h.num_users == m
    deviation = np.abs(users_of_each_size(h, most) - m * share)
    assert np.all(deviation < 7 * np.sqrt(m * share * (1 - share)))


def test_zipf_chi_squared_can_fail() -> None:
    h = ZipfSizes(1.5, 100_000, 200, seed=11).build_histogram()
    wrong = np.arange(1, 201) ** -1.55
    assert chi_squared(users_of_each_size(h, 200), wrong / wrong.sum()) < LEVEL


@pytest.mark.parametrize(("alpha", "num_rows"), [(0.25, 50_000), (1.0, 20_000), (10.0, 5_000)])
def test_participation_totals(alpha: float, num_rows: int) -> None:
    h = PowerLawParticipation(alpha, num_rows, seed=5).build_histogram()
    assert h.num_rows == num_rows


def test_participation_gives_user_one_her_share_and_the_right_number_of_users() -> None:
    # p_1 = 1 / zeta(1 + alpha). The heaviest user is user 1 unless user 2 (p_2 = p_1 / 2^(1+alpha)) overtakes,
    # which at this n is beyond 50 standard deviations. And E[users] = sum_j 1 - (1 - p_j)^n.
    for alpha in (0.5, 1.0, 2.0):
        n = 100_000
        h = PowerLawParticipation(alpha, n, seed=17).build_histogram()
        j = np.arange(1, 3_000_001, dtype=float)
        p = j ** -(1 + alpha)
        beyond = j[-1] ** -alpha / alpha  # integral of the tail, where each p_j n << 1
        zeta = p.sum() + beyond
        p /= zeta
        assert stats.binomtest(h.max_size, n, p[0]).pvalue > LEVEL
        expected = -np.expm1(n * np.log1p(-p[1:])).sum() + 1 + n * beyond / zeta
        # The number of users changes by at most 1 with each row: McDiarmid's inequality.
        assert abs(h.num_users - expected) < math.sqrt(n / 2 * math.log(2 / LEVEL))


def test_participation_follows_the_law_user_by_user() -> None:
    # With alpha = 4 the first users' shares lie far apart (1, 1/32, 1/243, 1/1024 ...), so that the heaviest
    # sizes in order are the users 1, 2, 3, 4 themselves.
    n = 1_000_000
    h = PowerLawParticipation(4.0, n, seed=23).build_histogram()
    top = np.repeat(h.sizes[::-1], h.users[::-1])[:4]
    law = np.arange(1, 100_000, dtype=float) ** -5
    law /= law.sum()
    assert chi_squared([*top, n - top.sum()], [*law[:4], law[4:].sum()]) > LEVEL


@pytest.mark.parametrize(
    ("mean", "sigma", "num_users"), [(2.0, 1.0, 200_000), (-1.0, 2.0, 50_000), (12.0, 0.5, 50_000)]
)
def test_log_normal_quantiles(mean: float, sigma: float, num_users: int) -> None:
    h = LogNormalSizes(mean, sigma, num_users, seed=7).build_histogram()
    assert h.num_users == num_users
    # P(size <= s) = P(exp(N) < s + 1/2) for s >= 1. Dvoretzky, Kiefer and Wolfowitz (Massart's constant):
    # P(sup |F_m - F| > t) <= 2 exp(-2 m t^2).
    expected = stats.lognorm(s=sigma, scale=math.exp(mean)).cdf(h.sizes + 0.5)
    observed = np.cumsum(h.users) / num_users
    band = math.sqrt(math.log(2 / LEVEL) / (2 * num_users))
    assert np.max(np.abs(observed - expected)) < band
    wrong = stats.lognorm(s=sigma, scale=math.exp(mean + 0.15)).cdf(h.sizes + 0.5)
    assert np.max(np.abs(observed - wrong)) > band


def test_log_normal_chunks_add_up() -> None:
    h = LogNormalSizes(0.0, 0.5, 2_500_000, seed=1).build_histogram()
    assert h.num_users == 2_500_000
    assert LogNormalSizes(2.0, 0.0, 10, seed=1).build_histogram() == ContributionHistogram(
        [7], [10]
    )  # e^2 = 7.39


@pytest.mark.parametrize(("mean", "sigma"), [(3.0, 2.0), (8.0, 1.0), (12.0, 1.0), (-2.4, 5.0)])
def test_log_normal_sizes_that_are_expected_are_drawn(mean: float, sigma: float) -> None:
    # How many sizes are met is a sum of indicators that are negatively correlated: its variance is at most its mean.
    generator = LogNormalSizes(mean, sigma, 300_000, seed=3)
    expected = generator._estimate_distinct_sizes()
    num_drawn = generator.build_histogram().sizes.size
    # Sizes below 1 are 1, and few sizes are rounded away from where the density is: less than one in a hundred.
    assert abs(num_drawn - expected) < 6.0 * math.sqrt(expected) + 0.01 * expected


def test_log_normal_sizes_that_are_nearly_all_distinct_are_refused_before_they_are_drawn() -> None:
    LogNormalSizes(20.0, 1.2, 1_000_000, seed=1)
    LogNormalSizes(1.0, 1.0, samples.MAX_DRAWN_USERS, seed=1)
    with pytest.raises(InvalidInput, match="distinct numbers of rows"):
        LogNormalSizes(20.0, 1.2, samples.MAX_DRAWN_USERS, seed=1)


def test_numbers_are_tallied_as_numpy_does() -> None:
    numbers = np.random.default_rng(5).zipf(1.2, 50_000)
    assert numbers.max() > samples._MAX_COUNTED_NUMBER > numbers.min()
    for our_number, their_value in zip(
        samples._count_numbers(numbers), np.unique(numbers, return_counts=True), strict=True
    ):
        np.testing.assert_array_equal(our_number, their_value)


def test_two_groups() -> None:
    assert TwoGroups(5, 1, 2, 7).build_histogram() == ContributionHistogram.from_counts([1] * 5 + [7] * 2)
    assert "Heavy users: 3, Rows of a heavy user: 1,000" in TwoGroups(1, 2, 3, 1000).sentence


@pytest.mark.parametrize("generator", EXAMPLES, ids=lambda g: g.key)
def test_equal_parameters_give_equal_digests(generator: Generator) -> None:
    repeated = dataclasses.replace(generator)
    assert repeated == generator
    assert repeated.build_histogram().digest == generator.build_histogram().digest
    if hasattr(generator, "seed"):
        other = dataclasses.replace(generator, seed=2)
        assert other.build_histogram().digest != generator.build_histogram().digest


@pytest.mark.parametrize("generator", EXAMPLES, ids=lambda g: g.key)
def test_dataset_is_public_and_says_its_parameters(generator: Generator) -> None:
    data = generate_dataset(generator)
    assert data.disclosure is Disclosure.PUBLIC
    assert data.histogram == generator.build_histogram()
    assert data.source == generator.sentence
    assert data.source.endswith(".")
    for field in dataclasses.fields(generator):
        value = getattr(generator, field.name)
        assert f"{value:,}" in data.source or f"{value:g}" in data.source, field.name


@pytest.mark.parametrize(
    ("generator_key", "bad", "names"),
    [
        (
            "zipf",
            {"alpha": 0, "num_users": 0.5, "max_contributions": 10**7, "seed": -1},
            ["alpha", "num_users", "max_contributions", "seed"],
        ),
        (
            "zipf",
            {"alpha": 5.1, "num_users": math.nan, "max_contributions": "9", "seed": None},
            ["alpha", "num_users", "max_contributions", "seed"],
        ),
        ("participation", {"alpha": 0.2, "num_rows": 10**8, "seed": 2**32}, ["alpha", "num_rows", "seed"]),
        (
            "lognormal",
            {"log_mean": math.inf, "log_sigma": -1, "num_users": 10**9, "seed": 0.5},
            ["log_mean", "log_sigma", "num_users", "seed"],
        ),
        ("lognormal", {"log_mean": 20, "log_sigma": 5, "num_users": 0, "seed": 1}, ["num_users", "log_mean"]),
        (
            "two-groups",
            {"light_users": 0, "light_rows": 5, "heavy_users": True, "heavy_rows": 5},
            ["light_users", "heavy_users", "heavy_rows"],
        ),
    ],
)
def test_bad_parameters_are_all_reported(
    generator_key: str, bad: dict[str, object], names: list[str]
) -> None:
    with pytest.raises(InvalidInput) as raised:
        GENERATORS[generator_key](**bad)
    assert [p.message.split()[0] for p in raised.value.problems] == names
