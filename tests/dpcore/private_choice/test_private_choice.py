"""Direct private choice: sensitivity, exact privacy, the probabilities of the draw, and its audit."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore import mean, total
from dpcore.common import mechanisms
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram
from dpcore.data.totals_per_user import Amounts
from dpcore.private_choice import choice
from dpcore.private_choice.choice import ChoiceProblem, Prior, SmallFirst
from dpcore.private_choice.scores import RESOLUTION, CapMean, RankedSum, SizeQuantile, SmoothMean
from dpcore.private_choice.table_scores import Condition, TableCap, TableSmooth, compute_least_error
from tests.dpcore.neighbours import list_neighbours

CONDITIONS: tuple[Condition, ...] = (
    SmoothMean(0.5),
    SmoothMean(7.0),
    CapMean(0.5),
    CapMean(7.0),
    TableSmooth(0.5, 0.3),
    TableCap(0.5, 0.05),
    TableCap(7.0, 1.0),
    RankedSum(1.0),
    RankedSum(2.5, margin=1.0),
    SizeQuantile(0.5),
    SizeQuantile(0.9),
)
names = pytest.mark.parametrize("condition", CONDITIONS, ids=str)
counts_of_users = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def histogram_of(counts: list[int]) -> ContributionHistogram:
    return ContributionHistogram.from_counts(counts)


@pytest.mark.long_for("CapMean(trade_off=0.5)", "TableSmooth(trade_off=0.5, user_share=0.3)")
@names
@settings(max_examples=20, deadline=None)
@given(counts=counts_of_users, newcomer=st.integers(1, 60))
def test_one_user_moves_no_distance_by_more_than_declared(
    condition: Condition, counts: list[int], newcomer: int
) -> None:
    grid = choice.build_grid(64, condition.is_integer)
    distances_before = condition.compute_distances(histogram_of(counts), grid)
    added = condition.compute_distances(histogram_of([*counts, newcomer]), grid)
    replaced = condition.compute_distances(histogram_of([*counts[1:], newcomer]), grid)
    assert np.abs(added - distances_before).max() <= condition.compute_sensitivity(
        Neighbours.ADD_OR_REMOVE_USER
    )
    assert np.abs(replaced - distances_before).max() <= condition.compute_sensitivity(Neighbours.REPLACE_USER)


def test_the_declared_sensitivity_is_reached() -> None:
    # Else the test above could pass with distances that do not move at all.
    for condition in CONDITIONS:
        grid = choice.build_grid(64, condition.is_integer)
        most = 0
        for counts, newcomer in (([20] * 8, 1), ([20] * 8, 60), ([1] * 30, 64), ([1], 64), ([60] * 4, 64)):
            before = condition.compute_distances(histogram_of(counts), grid)
            most = max(
                most,
                int(
                    np.abs(
                        condition.compute_distances(histogram_of([*counts, newcomer]), grid) - before
                    ).max()
                ),
            )
        assert most >= 0.95 * condition.compute_sensitivity(Neighbours.ADD_OR_REMOVE_USER)


SIZES = (1, 2, 3, 4, 5, 7, 9, 14, 20, 30, 39, 40, 41, 60, 1000, 10**9)
"""Users of these are in the small tables, and come to them."""
BY_QUERY = tuple(one for one in CONDITIONS if not isinstance(one, CapMean))
"""A cap for independent rows has a distance that is no query; it is searched beside it, with fewer tables."""


def small_tables(number: int) -> np.ndarray:
    """How many users have each of the sizes, the first table empty, shape (number, sizes); users alike among them."""
    generator = np.random.default_rng(3)
    values = np.zeros((number, len(SIZES)), dtype=np.int64)
    for table in values[1:]:
        np.add.at(table, generator.integers(len(SIZES), size=generator.integers(0, 7)), 1)
        table[generator.integers(len(SIZES))] += generator.integers(0, 25)
    return values


@pytest.mark.few(8)
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER])
@pytest.mark.parametrize("condition", [*BY_QUERY, RankedSum(0.5, margin=19.5)], ids=str)
def test_no_neighbour_of_400_small_tables_moves_a_log_chance_by_more_than_epsilon(
    condition: Condition, neighbours: Neighbours
) -> None:
    """What users add to a query adds up: every table, with every newcomer, by the law as it is drawn."""
    assert not isinstance(condition, CapMean)
    problem = ChoiceProblem(condition, 1.0, 40, neighbours, SmallFirst())
    grid = problem.candidates
    added = np.array([condition.compute_sums(histogram_of([size]), grid) for size in SIZES])
    aim = condition.with_draw_margin(1.0) if isinstance(condition, RankedSum) else condition

    def laws(tables: np.ndarray) -> np.ndarray:
        far = aim.compute_target_distances(np.einsum("ts,sqc->tqc", tables, added), grid)
        return choice.normalise_log_weights(choice.compute_logits(problem, far, np.array(1.0)))

    tables = small_tables(400)
    counts = np.repeat(SIZES, tables[9]).tolist()
    np.testing.assert_allclose(
        np.exp(laws(tables)[9]), choice.compute_probabilities(problem, histogram_of(counts)), rtol=1e-9
    )
    table_indices, neighbour_tables = list_neighbours(tables, neighbours)
    largest = float(np.abs(laws(tables)[table_indices] - laws(neighbour_tables)).max())
    assert 0.5 < largest <= 1.0 + 1e-9


@pytest.mark.few(2)
@pytest.mark.parametrize("condition", [one for one in CONDITIONS if isinstance(one, CapMean)], ids=str)
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER])
@settings(max_examples=12, deadline=None)
@given(
    counts=counts_of_users,
    prior=st.sampled_from([None, Prior(5, 2.0), SmallFirst()]),
    epsilon=st.sampled_from([0.1, 2.0]),
)
def test_exact_privacy_over_all_neighbours(
    condition: Condition,
    neighbours: Neighbours,
    counts: list[int],
    prior: Prior | SmallFirst | None,
    epsilon: float,
) -> None:
    problem = ChoiceProblem(condition, epsilon, 40, neighbours, prior)
    own = np.log(choice.compute_probabilities(problem, histogram_of(counts)))
    rest = counts if neighbours is Neighbours.ADD_OR_REMOVE_USER else counts[1:]
    for newcomer in (1, 2, 3, 5, 9, 20, 39, 40, 41, 1000):
        other = np.log(choice.compute_probabilities(problem, histogram_of([*rest, newcomer])))
        assert np.abs(own - other).max() <= epsilon * (1 + 1e-9)


def test_the_sharper_form_breaks_privacy() -> None:
    # Target 3.5 users above. Six users have 3 rows: 6 lie above T = 1 (distance 2.5), 0 above T = 4 to 53 (3.5).
    # One user with 60 rows comes: 7 lie above T = 1 (3.5), 1 above the others (2.5). The scores move in opposite
    # directions. With exp(-epsilon d / sensitivity) and N = 50 others the log-ratio at T = 1 is, exactly,
    # epsilon + ln((1 / e + N) / (1 + N / e)) at epsilon = 1, which goes to 2 as N grows.
    condition = RankedSum(3.5)
    grid = np.array([1.0, *range(4, 54)])
    here, there = (
        condition.compute_distances(histogram_of(c), grid)[0] / RESOLUTION for c in ([3] * 6, [3] * 6 + [60])
    )
    assert here.tolist() == [2.5, *[3.5] * 50]
    assert there.tolist() == [3.5, *[2.5] * 50]

    def log_ratio(factor: float) -> float:
        return float(
            (choice.normalise_log_weights(-here / factor) - choice.normalise_log_weights(-there / factor))[0]
        )

    assert log_ratio(1.0) == pytest.approx(1 + math.log((1 / math.e + 50) / (1 + 50 / math.e)), rel=1e-12)
    assert log_ratio(1.0) > 1.9  # It promises 1.
    assert log_ratio(2.0) <= 1.0  # The form in use: exp(-epsilon d / (2 sensitivity)).


def decimal_law(problem: ChoiceProblem, histogram: ContributionHistogram) -> list[float]:
    """Brute-force normalisation with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        context.Emin = -(10**15)
        slope = Decimal(problem.epsilon) / (2 * problem.sensitivity)
        masses = [
            (Decimal(float(w)) - slope * int(d)).exp()
            for w, d in zip(problem.log_prior, problem.compute_distances(histogram), strict=True)
        ]
        return [float(mass / sum(masses)) for mass in masses]


@names
def test_law_is_the_normalised_exponential(condition: Condition) -> None:
    histogram = ContributionHistogram(sizes=[1, 3, 10, 70], users=[2000, 50, 30, 2])
    for prior in (None, Prior(12, 3.0), SmallFirst()):
        problem = ChoiceProblem(condition, 0.7, 200, prior=prior)
        np.testing.assert_allclose(
            choice.compute_probabilities(problem, histogram),
            decimal_law(problem, histogram),
            rtol=1e-9,
            atol=1e-300,
        )


@pytest.mark.parametrize("shift", [-1e6, 1e6])
def test_law_where_exp_would_underflow(shift: float) -> None:
    # 5,000 scores about -1e6 or 1e6: exp gives 0 or overflows. They are a geometric law by construction.
    scores = shift - 0.01 * np.arange(5000)
    found = np.exp(choice.normalise_log_weights(scores))
    ratio = math.exp(-0.01)
    expected = (1 - ratio) / (1 - ratio**5000) * ratio ** np.arange(5000)
    np.testing.assert_allclose(found, expected, rtol=1e-7)  # 1e6 holds hundredths to 1e-10 only.


@pytest.mark.parametrize("level", [-(10**6), 10**6])
def test_draws_where_exp_would_underflow(level: int) -> None:
    # 998 candidates 1e6 below two that are 1 apart at scale 1: only those two can come, as a coin.
    scores = [level - 10**6] * 998 + [level, level - 1]
    drawn = [mechanisms.exponential_mechanism(scores, 1, 2.0).index for _ in range(60)]
    assert set(drawn) == {998, 999}
    p = 1 / (1 + math.exp(-1))
    assert abs(drawn.count(998) - 60 * p) < 5 * math.sqrt(60 * p * (1 - p))


@pytest.mark.long
def test_draws_follow_the_law() -> None:
    from scipy.stats import chisquare

    histogram = ContributionHistogram(sizes=[1, 2, 6], users=[6, 5, 3])
    problem = ChoiceProblem(CapMean(1.5), 1.0, 8, prior=Prior(3, 2.0))
    runs = 6000
    draw = mechanisms.make_selector(
        problem.compute_scores(histogram), 2.0 * problem.sensitivity / problem.epsilon
    )
    observed = np.bincount([draw() for _ in range(runs)], minlength=problem.candidates.size)
    # False alarm once in 10,000 runs.
    assert chisquare(observed, runs * choice.compute_probabilities(problem, histogram)).pvalue > 1e-4


def audited(runs: int, factor: float) -> float:
    """Lower confidence bound (99.99 %) on epsilon at scale ``factor`` sensitivities, from real draws.

    On the neighbours of the sharper form above, with 10 other candidates and epsilon = 1: T = 1 against the rest.
    """
    from scipy.stats import beta

    condition, grid = RankedSum(3.5), np.array([1.0, *range(4, 14)])
    hits = []
    for counts in ([3] * 6, [3] * 6 + [60]):
        scores = [-int(d) for d in condition.compute_distances(histogram_of(counts), grid)[0]]
        draw = mechanisms.make_selector(
            scores, factor * condition.compute_sensitivity(Neighbours.ADD_OR_REMOVE_USER)
        )
        hits.append(sum(draw() == 0 for _ in range(runs)))
    low = beta.ppf(5e-5, hits[0], runs - hits[0] + 1)
    high = beta.ppf(1 - 5e-5, hits[1] + 1, runs - hits[1])
    return math.log(low / high)


# The law is compared exactly above, and draws with the law; this looks at draws alone.
@pytest.mark.long
def test_audit_finds_no_leak() -> None:
    # The exact log-ratio of this event is 0.5 + ln((e^-0.5 + 10) / (1 + 10 e^-0.5)) = 0.906.
    # Of 8,000 draws the bound is 0.625 on average, with a standard deviation of 0.05.
    assert 0.35 < audited(8_000, 2.0) <= 1.0


@pytest.mark.long
def test_audit_catches_a_broken_mechanism() -> None:
    # epsilon instead of epsilon / 2: the exact log-ratio is 1.795, and the audit must see more than epsilon = 1.
    # Of 6,000 draws the bound is 1.45 on average, with a standard deviation of 0.065.
    assert audited(6_000, 1.0) > 1.1


@pytest.mark.few(5)
@pytest.mark.long_for("CapMean(trade_off=0.5)", "CapMean(trade_off=7.0)")
@names
@settings(max_examples=12, deadline=None)
@given(counts=st.lists(st.integers(1, 40), min_size=3, max_size=30))
def test_the_best_number_is_at_no_distance(condition: Condition, counts: list[int]) -> None:
    # Truth: the optimisers of mean and sum, and a sorted list for the quantile. Real thresholds meet their target
    # to within the step of the query between two candidates.
    histogram = histogram_of(counts)
    grid = choice.build_grid(64, condition.is_integer)
    far = condition.compute_distances(histogram, grid)[0] / RESOLUTION
    if isinstance(condition, RankedSum):
        ranked = sorted(counts, reverse=True)
        rank = math.ceil(condition.price + condition.margin)
        best = float(ranked[rank - 1]) if rank <= len(counts) else 0.0
        if best:
            assert far[grid == best][0] <= 1e-5
    elif isinstance(condition, TableSmooth | TableCap):
        # By the definition, user by user in floats; whose root is near the best bound is measured on samples.
        rho, most = condition.user_share, condition.user_share * grid + (1.0 - condition.user_share) / 2.0
        query = np.zeros(grid.size)
        for s in counts:
            values = np.minimum(s, 2.0 * grid)
            cut = np.maximum(values - grid, 0.0)
            if condition.is_integer:
                query += rho * cut + (s > grid) * (1.0 - rho) / 2.0
            else:
                query += cut * (rho + (1.0 - rho) / values)
        expected = np.abs(query - grid / condition.trade_off) / most
        np.testing.assert_allclose(far, expected, atol=len(counts) / RESOLUTION)
    elif isinstance(condition, SizeQuantile):
        ranked = sorted(counts)
        best = float(ranked[math.ceil(condition.share * len(counts) - 1e-9) - 1])
        assert far[grid == best][0] <= 1e-4
    else:
        a = condition.trade_off
        problem = mean.MeanProblem(histogram, math.sqrt(8 * a), 1.0, 0.25)  # 0.25 / (2 / epsilon^2) = a.
        assert problem.trade_off == pytest.approx(a)
        if isinstance(condition, SmoothMean):
            best = mean.find_best_smooth(problem).threshold
            near = np.abs(grid - best) <= 0.125 + 0.02 * best
            if best > histogram.min_size:
                assert far[near].min() <= len(counts) * 0.125 + 0.125 / a
        else:
            brute = [float(mean.compute_capped_variance(problem, t)) for t in np.linspace(1, 41, 4001)]
            best = float(np.linspace(1, 41, 4001)[int(np.argmin(brute))])
            if histogram.min_size < best < histogram.max_size and best == round(best):
                assert far[grid == best][0] <= 0.2 + 0.02 * len(counts)


@settings(max_examples=20, deadline=None)
@given(counts=st.lists(st.sampled_from([1, 2, 4, 7]), min_size=1, max_size=6), cap=st.integers(1, 8))
def test_distance_of_a_cap_is_a_number_of_users(counts: list[int], cap: int) -> None:
    # Brute force over data sets: remove any users, add users at the cap or above it, until the slope of the
    # objective at the cap is not positive from the left and not negative from the right.
    trade_off = 1.5
    condition = CapMean(trade_off)
    distance = condition.compute_distances(histogram_of(counts), np.array([float(cap)]))[0, 0] / RESOLUTION

    def optimal(users: tuple[int, ...]) -> bool:
        def slope(strictly: bool) -> float:
            light = [s for s in users if (s < cap if strictly else s <= cap)]
            q = len(users) - len(light)
            return 2 * cap * sum(light) - trade_off * q * (sum(light) + cap * q)

        return slope(True) <= 1e-9 and slope(False) >= -1e-9

    least = math.inf
    for r in range(len(counts) + 1):
        for kept in itertools.combinations(counts, len(counts) - r):
            for extra in range(7):
                for above in range(extra + 1):
                    if r + extra < least and optimal((*kept, *[cap + 1] * above, *[cap] * (extra - above))):
                        least = r + extra
    # Whole users need at least as many as the distance, which allows parts of users, and at most 2 more.
    assert distance - 1e-3 <= least <= distance + 2.0


def test_candidates_are_a_public_grid() -> None:
    for whole_number in (True, False):
        for largest in (1, 7, 50, 51, 1000, 10**12):
            grid = choice.build_grid(largest, whole_number)
            unit = 1 if whole_number else 8
            assert grid[0] == 1.0
            assert grid[-1] == largest
            assert np.all(np.diff(grid) > 0)
            assert np.all(grid * unit == np.round(grid * unit))
            # Within the fine part by one unit, then by 2 %, give or take rounding at either end.
            assert np.all(grid[1:] <= 1.02 * grid[:-1] + 1.01 / unit)


def test_the_target_of_a_sum_is_its_critical_rank() -> None:
    counts = list(range(1, 60))
    for epsilon in (0.05, 0.1, 0.3, 1.0, 3.0):
        histogram = histogram_of(counts)
        problem = total.TotalProblem(Amounts.from_histogram(histogram), epsilon, measure=Measure.BOUND)
        best = total.find_best_choice(problem)
        ranked_sum = RankedSum(1 / epsilon)
        grid = choice.build_grid(64, True)
        far = ranked_sum.compute_distances(histogram, grid)[0]
        assert far[grid == best.max_total][0] == 0
        assert compute_least_error(ranked_sum, histogram) == pytest.approx(
            best.errors.bias_plus_noise, rel=1e-12
        )


def test_what_cannot_be_is_refused_with_all_reasons() -> None:
    with pytest.raises(InvalidInput) as refused:
        ChoiceProblem(SmoothMean(1.0), 0.0, 0, Neighbours.REPLACE_VALUES)
    assert len(refused.value.problems) == 3
    for make in (
        lambda: SmoothMean(0.0),
        lambda: CapMean(math.nan),
        lambda: RankedSum(0.0),
        lambda: SizeQuantile(1.0),
        lambda: Prior(0.5, 2.0),
        lambda: Prior(5.0, 1.0),
        lambda: SmallFirst(0.0),
        lambda: mechanisms.exponential_mechanism([], 1, 1.0),
        lambda: mechanisms.exponential_mechanism([2**63], 1, 1.0),
        lambda: mechanisms.exponential_mechanism([0], 0, 1.0),
        lambda: choice.choose(
            ChoiceProblem(RankedSum(1.0), 1.0, 10),
            ContributionHistogram(sizes=[1, 2], users=[10**12, 10**12]),
        ),
    ):
        with pytest.raises(InvalidInput):
            make()


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1 / 3, 0.7, 10.0])
def test_the_guarantee_is_never_more_than_asked(epsilon: float) -> None:
    for sensitivity in (1, 3, RESOLUTION, 2 * RESOLUTION + 4096):
        drawn = mechanisms.exponential_mechanism([0, -5], sensitivity, epsilon)
        assert drawn.epsilon <= epsilon
        assert drawn.epsilon == pytest.approx(epsilon, rel=1e-9)
        assert drawn.scale >= 2 * sensitivity / epsilon
