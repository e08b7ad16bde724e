"""The exact distribution of a private quantile: quadrature, a million samples, privacy, hand-made cases."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from dpcore import quantile
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Values
from dpcore.quantile import QuantileProblem, WeightKind, mechanism
from dpcore.quantile.answer.solution import simulate_answers
from dpcore.quantile.base_distribution import HistogramBase, NormalBase, build_uniform_base

BASES = {
    "uniform": build_uniform_base(-1.0, 11.0),
    "normal": NormalBase(4.0, 3.0),
    "histogram": HistogramBase([-2.0, 2.0, 5.0, 12.0], [1.0, 5.0, 2.0]),
    "off the values": build_uniform_base(6.0, 30.0),
}
ADDED = Neighbours.ADD_OR_REMOVE_USER
USERS = [[1.0, 2.0, 2.0, 9.0, 7.5], [3.0], [2.0, 5.0], [10.0, 0.5, 3.0]]


def values_of(users):
    codes = np.repeat(np.arange(len(users)), [len(u) for u in users])
    return Values(codes, np.concatenate([np.array(u, dtype=float) for u in users]))


def problem_of(users=USERS, q=0.5, epsilon=4.0, base="normal", subsamples=None):
    base = BASES[base] if isinstance(base, str) else base
    return QuantileProblem(values_of(users), q, epsilon, base, num_subsamples=subsamples)


def plain_unnormalised(problem, users, h):
    """nu(y) exp(-eps |rank - q| / (2 W)) for smooth weights, user by user as the paper writes it."""
    n_h = sum(min(h, len(u)) for u in users)
    w = max(min(h, len(u)) for u in users) / n_h

    def density(y):
        rank = sum(min(h, len(u)) / len(u) / n_h for u in users for value in u if y >= value)
        base = math.exp(float(problem.base.log_density(y)))
        return base * math.exp(-problem.epsilon * abs(rank - problem.quantile) / (2.0 * w))

    return density


def pieces(problem, users):
    """Finite intervals that cover all but 1e-30 of every base here, without a kink inside."""
    kinks = sorted({v for u in users for v in u} | {float(b) for b in problem.base.breaks} | {-40.0, 45.0})
    return list(itertools.pairwise(kinks))


@pytest.mark.thinned
@pytest.mark.parametrize("base", list(BASES))
@pytest.mark.parametrize("h", [0.7, 1.0, 2.5, 5.0])
def test_density_mean_and_errors_are_the_integrals(base, h):
    problem = problem_of(base=base, q=0.4)
    out = quantile.compute_output(problem, WeightKind.SMOOTH, h)
    density = plain_unnormalised(problem, USERS, h)
    cuts = pieces(problem, USERS)
    total = math.fsum(quad(density, a, b, epsabs=1e-14)[0] for a, b in cuts)
    flat = [v for u in USERS for v in u]

    def share(y):
        return sum(v <= y for v in flat) / len(flat)

    y = np.array([-0.9, 0.7, 1.5, 2.0, 3.3, 6.5, 8.0, 11.5])
    assert np.exp(out.log_density(y)) == pytest.approx([density(t) / total for t in y], rel=1e-10)
    mean = math.fsum(quad(lambda t: t * density(t), a, b, epsabs=1e-13)[0] for a, b in cuts) / total
    assert out.mean == pytest.approx(mean, rel=1e-9)
    rank = math.fsum(abs(share((a + b) / 2.0) - 0.4) * quad(density, a, b, epsabs=1e-14)[0] for a, b in cuts)
    assert out.expected_rank_error == pytest.approx(rank / total, rel=1e-9)
    for t in (0.0, 0.1, 0.35, 1.0):
        inside = math.fsum(
            quad(density, a, b, epsabs=1e-14)[0]
            for a, b in cuts
            if abs(share((a + b) / 2.0) - 0.4) <= t + 1e-9
        )
        assert float(out.compute_probability_within(t)) == pytest.approx(inside / total, rel=1e-9, abs=1e-14)
    at = np.array([0.2, 2.0, 4.1, 9.0])
    below = [
        math.fsum(quad(density, a, min(b, t), epsabs=1e-14)[0] for a, b in cuts if a < t) / total for t in at
    ]
    assert out.cdf(at) == pytest.approx(below, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("base", list(BASES))
def test_answer_at_inverts_the_distribution(base):
    out = quantile.compute_output(problem_of(base=base), WeightKind.SMOOTH, 2.0)
    shares = np.array([0.01, 0.3, 0.5, 0.9, 0.999])
    assert out.cdf(out.find_answers(shares)) == pytest.approx(shares, abs=1e-9)
    low, high = out.find_interval(0.9)
    assert float(out.cdf(high) - out.cdf(low)) == pytest.approx(0.9, abs=1e-9)
    edges = np.linspace(-40.0, 45.0, 171)
    density = out.compute_binned_density(edges)
    assert np.sum(density * np.diff(edges)) == pytest.approx(1.0, abs=1e-9)
    assert float(out.cdf(-np.inf)) == 0.0
    assert float(out.cdf(np.inf)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("base", list(BASES))
def test_a_million_samples_follow_the_exact_density(base):
    out = quantile.compute_output(problem_of(base=base, epsilon=6.0), WeightKind.SMOOTH, 2.0)
    drawn_samples = out.sample(1_000_000, np.random.default_rng(11))
    cuts = out.find_answers(np.arange(1, 40) / 40)  # About even cells, expectations from the exact cdf.
    expected = np.diff(np.concatenate(([0.0], out.cdf(cuts), [1.0]))) * 1_000_000
    observed = np.bincount(np.searchsorted(cuts, drawn_samples), minlength=40)
    # Four bases at level 1e-5 each: a right sampler fails with probability 4e-5 (and the seed is set).
    assert stats.chisquare(observed, expected).pvalue > 1e-5


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 14).map(float), min_size=1, max_size=5), min_size=1, max_size=5),
    st.data(),
    st.floats(0.05, 0.95),
    st.floats(-2.0, 3.0),
    st.sampled_from(list(WeightKind)),
    st.integers(1, 6),
    st.sampled_from(list(BASES)),
)
def test_changing_one_users_values_moves_the_log_density_by_at_most_epsilon(
    users, data, q, log_epsilon, kind, bound, base
):
    epsilon = 10.0**log_epsilon
    who = data.draw(st.integers(0, len(users) - 1))
    other_figure = data.draw(
        st.lists(st.integers(-3, 14).map(float), min_size=len(users[who]), max_size=len(users[who]))
    )
    changed = [other_figure if i == who else u for i, u in enumerate(users)]
    output = quantile.compute_output(problem_of(users, q, epsilon, base), kind, bound)
    two = quantile.compute_output(problem_of(changed, q, epsilon, base), kind, bound)
    y = np.arange(-4.0, 16.0) + 0.5  # Inside every interval that integer values and breaks can make.
    with np.errstate(invalid="ignore"):
        log_difference = output.log_density(y) - two.log_density(y)
    assert np.all(np.isnan(log_difference) | (np.abs(log_difference) <= epsilon * (1.0 + 1e-9) + 1e-9))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 14).map(float), min_size=1, max_size=5), min_size=1, max_size=4),
    st.lists(st.integers(-3, 14).map(float), min_size=1, max_size=8),
    st.floats(0.05, 0.95),
    st.floats(-2.0, 3.0),
    st.sampled_from([0.3, 1.0, 2.0, 6.0]),
    st.sampled_from(list(BASES)),
)
def test_adding_a_user_moves_the_log_density_by_at_most_epsilon(users, new, q, log_epsilon, h, base):
    # The new user may have more rows than anybody who is there; both directions are in the absolute value. Smooth
    # weights: under a cap the others' subsample is drawn without regard to the new user, but by another seed here.
    epsilon = 10.0**log_epsilon
    one, two = (
        quantile.compute_output(
            problem_of(them, q, epsilon, base).with_changes(neighbours=ADDED), WeightKind.SMOOTH, h
        )
        for them in (users, [*users, new])
    )
    y = np.arange(-4.0, 16.0) + 0.5
    with np.errstate(invalid="ignore"):
        log_difference = one.log_density(y) - two.log_density(y)
    assert np.all(np.isnan(log_difference) | (np.abs(log_difference) <= epsilon * (1.0 + 1e-9) + 1e-9))


@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
def test_all_of_epsilon_is_used_when_a_user_comes(q):
    # 10 users of 2 rows at 4 and at 6, h = 2, and one with 7 rows at 0 or 12 comes. Their two rows move the score
    # |W(y) - q n_h| by (1 - q) 2 or by q 2, whichever of them is larger up on one side of the quantile, where nearly
    # all base mass lies, and down on the other: by epsilon in all.
    low = [[4.0, 4.0]] * 10
    base = HistogramBase([1.0, 3.0, 6.5, 9.5], [1e-40, 0.0, 1.0]) if q < 0.5 else None
    base = base or HistogramBase([1.0, 3.0, 6.5, 9.5], [1.0, 0.0, 1e-40])
    far = 0.0 if q < 0.5 else 12.0
    one, two = (
        quantile.compute_output(
            problem_of(them, q, 3.0, base).with_changes(neighbours=ADDED), WeightKind.SMOOTH, 2.0
        )
        for them in (low, [*low, [far] * 7])
    )
    log_difference = max(abs(float(two.log_density(y) - one.log_density(y))) for y in (2.0, 8.0))
    assert log_difference == pytest.approx(3.0, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 0.95), st.sampled_from(list(WeightKind)), st.sampled_from([1.0, 2.0, 5.0]))
def test_one_draw_has_both_guarantees(q, kind, h):
    by_values, by_users = (
        problem_of(q=q, subsamples=3),
        problem_of(q=q, subsamples=3).with_changes(neighbours=ADDED),
    )
    same = by_values.with_changes(epsilon=by_users.epsilon / max(q, 1.0 - q))
    assert quantile.compute_output(by_users, kind, h).log_probabilities == pytest.approx(
        quantile.compute_output(same, kind, h).log_probabilities, rel=1e-9, abs=1e-9
    )
    # A bound above everybody's rows still has to hold whoever comes.
    large_bound = quantile.compute_output(by_users, WeightKind.SMOOTH, 50.0)
    weaker = same.with_changes(epsilon=same.epsilon * 5.0 / 50.0)
    assert large_bound.probabilities == pytest.approx(
        quantile.compute_output(weaker, WeightKind.SMOOTH, 50.0).probabilities
    )


def test_the_budget_can_be_used_up():
    # W = 1/5, q = 1/2. One user goes from 0 to 10: the rank on [1, 4) falls from 0.2 to 0 (exponent down
    # by epsilon / 2), that on [6, 10) from 0.8 to 0.6 (up by epsilon / 2). With nearly all base mass on the
    # former the normaliser falls as well: the log density on the latter rises by epsilon, no less.
    base = HistogramBase([1.0, 3.0, 6.5, 9.5], [1.0, 0.0, 1e-12])
    rest = [[4.0], [5.0], [6.0], [12.0]]
    output = quantile.compute_output(problem_of([[0.0], *rest], 0.5, 3.0, base), WeightKind.SMOOTH, 1)
    two = quantile.compute_output(problem_of([[10.0], *rest], 0.5, 3.0, base), WeightKind.SMOOTH, 1)
    assert float(two.log_density(8.0) - output.log_density(8.0)) == pytest.approx(3.0, rel=1e-9)


def test_ties_and_tails_by_hand():
    # All rows equal 5 under a uniform base on [0, 20]: rank 0 on a quarter, 1 on three quarters. W = 1 / 2.
    out = quantile.compute_output(
        problem_of([[5.0, 5.0], [5.0]], 0.25, 2.0, build_uniform_base(0.0, 20.0)), WeightKind.SMOOTH, 1
    )
    left_odds, right = 0.25 * math.exp(-2.0 * 0.25), 0.75 * math.exp(-2.0 * 0.75)
    assert float(out.cdf(5.0)) == pytest.approx(left_odds / (left_odds + right))
    assert out.mean == pytest.approx((2.5 * left_odds + 12.5 * right) / (left_odds + right))
    assert out.expected_rank_error == pytest.approx((0.25 * left_odds + 0.75 * right) / (left_odds + right))
    assert out.least_rank_error == 0.25


def test_values_that_the_base_never_reaches():
    # The base lies wholly above the values: their rank is 1 throughout, and the answer is the base itself.
    out = quantile.compute_output(
        problem_of([[0.0], [1.0, 2.0]], 0.5, 9.0, build_uniform_base(50.0, 60.0)), WeightKind.SMOOTH, 1
    )
    assert out.mean == pytest.approx(55.0)
    assert out.least_rank_error == 0.5  # The base has no mass where the rank is nearer.
    assert out.expected_rank_error == pytest.approx(0.5)


def test_without_a_bound_all_rows_weigh_the_same():
    problem = problem_of()
    smooth = quantile.compute_output(problem, WeightKind.SMOOTH, 5.0)
    cap = quantile.compute_output(problem, WeightKind.CAP, 5)
    assert smooth.weighted_ranks == pytest.approx(smooth.shares_below, abs=1e-15)
    assert cap.weighted_ranks == pytest.approx(smooth.shares_below, abs=1e-15)
    assert smooth.largest_user_weight == cap.largest_user_weight == pytest.approx(5.0 / 11.0)
    above_all = quantile.compute_output(problem, WeightKind.SMOOTH, 50.0)
    assert above_all.largest_user_weight == smooth.largest_user_weight
    assert above_all.log_tilts == pytest.approx(smooth.log_tilts)


def test_a_cap_keeps_every_row_as_often_whatever_its_value_and_place():
    users = [list(range(10 * u, 10 * u + 8)) for u in range(40)]
    kept_rows = []
    for shuffled_users in (users, [[u[place] for place in (3, 7, 0, 5, 1, 6, 2, 4)] for u in users]):
        problem = problem_of(shuffled_users, subsamples=1)
        outputs = [quantile.compute_output(problem, WeightKind.CAP, h) for h in (2, 5)]
        steps = [np.flatnonzero(np.diff(output.weighted_ranks) > 0) for output in outputs]
        assert [s.size for s in steps] == [80, 200]
        assert set(steps[0]) <= set(steps[1])  # Nested.
        kept_rows.append(outputs[0].edges[1:-1][steps[0]].tolist())
    assert kept_rows[0] == kept_rows[1]
    positions = problem_of(users, subsamples=400).rows.random_orders.find_positions(0, 400)
    # Two of eight, of 16,000: 4,000 and a standard deviation of 55. The values ascend by user, then by row.
    num_kept = (positions < 2).sum(axis=0).reshape(40, 8).sum(axis=0)
    assert num_kept == pytest.approx(4000, abs=5 * 55)


def subsample_by_subsample(problem, users, h):
    """E|F(answer) - q| over every equally likely way to keep at most h rows of each user, summed piece by piece."""
    rows = sorted(v for u in users for v in u)
    cuts = [-math.inf, *sorted({*rows, *map(float, problem.base.breaks)}), math.inf]
    masses = np.exp(problem.base.log_mass(np.array(cuts[:-1]), np.array(cuts[1:])))
    errors = []
    for kept_rows in itertools.product(*(itertools.combinations(u, min(h, len(u))) for u in users)):
        flat = [v for partial_sample in kept_rows for v in partial_sample]
        w = max(len(partial_sample) for partial_sample in kept_rows) / len(flat)
        total = error = 0.0
        for left_odds, mass in zip(cuts[:-1], masses, strict=True):
            rank = sum(v <= left_odds for v in flat) / len(flat)
            density = float(mass) * math.exp(-problem.epsilon * abs(rank - problem.quantile) / (2.0 * w))
            total += density
            error += density * abs(sum(v <= left_odds for v in rows) / len(rows) - problem.quantile)
        errors.append(error / total)
    return np.array(errors)


@pytest.mark.long_but("uniform-1", "off the values-3")
@pytest.mark.parametrize("h", [1, 2, 3])
@pytest.mark.parametrize("base", ["uniform", "off the values"])
def test_a_cap_is_averaged_over_subsamples(base, h):
    # All ways to draw: 5 * 1 * 2 * 3 = 30 at h = 1, 10 * 3 = 30 at h = 2, 10 at h = 3.
    problem = problem_of(base=base, q=0.4, subsamples=4000)
    all_errors = subsample_by_subsample(problem, USERS, h)
    assert all_errors.size == {1: 30, 2: 30, 3: 10}[h]
    out = quantile.compute_output(problem, WeightKind.CAP, h)
    assert out.subsample_errors.shape == (4000,)
    # Each subsample gives one of them, and their average is within five standard errors of the expectation.
    distance = np.abs(out.subsample_errors[:, None] - all_errors)
    assert distance.min(axis=1).max() < 1e-13
    assert np.unique(distance.argmin(axis=1)).size == np.unique(np.round(all_errors, 12)).size
    error = quantile.compute_standard_error(out.subsample_errors, WeightKind.CAP, h, problem.rows)
    assert error == pytest.approx(all_errors.std() / math.sqrt(4000), rel=0.1)
    assert abs(out.expected_rank_error - all_errors.mean()) <= 5.0 * error
    assert float(out.probabilities @ np.abs(out.shares_below - 0.4)) == pytest.approx(out.expected_rank_error)


def test_the_distribution_under_a_cap_is_the_mixture_of_its_subsamples():
    single = [
        quantile.compute_output(
            QuantileProblem(values_of(USERS), 0.4, 4.0, BASES["normal"], first_seed=5 + k, num_subsamples=1),
            *CAP_2,
        )
        for k in range(6)
    ]
    problem = QuantileProblem(values_of(USERS), 0.4, 4.0, BASES["normal"], first_seed=5, num_subsamples=6)
    together = quantile.compute_output(problem, *CAP_2)
    y = np.array([-5.0, 0.5, 2.5, 4.0, 8.0, 9.5, 20.0])
    assert together.cdf(y) == pytest.approx(np.mean([one.cdf(y) for one in single], axis=0))
    density = np.mean([np.exp(one.log_density(y)) for one in single], axis=0)
    assert np.exp(together.log_density(y)) == pytest.approx(density)
    assert together.mean == pytest.approx(np.mean([one.mean for one in single]))
    assert together.subsample_errors == pytest.approx([one.expected_rank_error for one in single])
    assert together.largest_user_weight == single[0].largest_user_weight
    assert together.probabilities.sum() == pytest.approx(1.0)
    # The several questions of one call are averaged subsample by subsample.
    both = quantile.compute_subsample_errors([problem, problem.with_changes(quantile=0.8)], *CAP_2)
    alone = quantile.compute_output(problem.with_changes(quantile=0.8), *CAP_2).subsample_errors
    assert both == pytest.approx((together.subsample_errors + alone) / 2.0)


CAP_2 = (WeightKind.CAP, 2.0)


def test_where_no_subsample_matters_there_is_no_spread_and_one_subsample_knows_none():
    problem = problem_of(subsamples=7)
    for weight_kind, bound, subsamples, spread in (
        (WeightKind.SMOOTH, 2.0, 1, 0.0),
        (WeightKind.CAP, 5.0, 1, 0.0),
        (WeightKind.CAP, 50.0, 1, 0.0),
    ):
        errors = quantile.compute_output(problem, weight_kind, bound).subsample_errors
        assert errors.shape == (subsamples,)
        assert quantile.compute_standard_error(errors, weight_kind, bound, problem.rows) == spread
    one = problem_of(subsamples=1)
    errors = quantile.compute_output(one, *CAP_2).subsample_errors
    assert math.isnan(quantile.compute_standard_error(errors, *CAP_2, one.rows))
    with pytest.raises(InvalidInput, match="Subsamples"):
        problem_of(subsamples=0)


def test_fewer_subsamples_are_drawn_where_there_are_many_rows_and_blocks_do_not_change_them(monkeypatch):
    def subsamples(rows):
        return QuantileProblem(
            Values(np.arange(rows) // 2, np.arange(float(rows))), 0.5, 1.0, BASES["normal"]
        )

    assert [subsamples(n).rows.random_orders.num_orders for n in (10, 10_000, 50_000, 600_000)] == [
        400,
        400,
        80,
        8,
    ]
    assert [
        subsamples(n).rows.random_orders.search_orders.num_orders for n in (10, 20_000, 50_000, 600_000)
    ] == [
        50,
        50,
        20,
        8,
    ]
    problem = problem_of(subsamples=9)
    full_output = quantile.compute_output(problem, *CAP_2)
    monkeypatch.setattr(quantile.rows, "_CELLS_PER_PASS", 2 * 11)
    monkeypatch.setattr(quantile.rows, "_MAX_CACHED_CELLS", 1)
    in_blocks = quantile.compute_output(problem_of(subsamples=9), *CAP_2)
    assert in_blocks.subsample_errors == pytest.approx(full_output.subsample_errors)
    assert in_blocks.log_tilts == pytest.approx(full_output.log_tilts)
    assert in_blocks.weighted_ranks == pytest.approx(full_output.weighted_ranks)


@pytest.mark.long
def test_nothing_underflows_at_epsilon_1000_with_a_million_values():
    generator = np.random.default_rng(4)
    values = Values(np.repeat(np.arange(250_000), 4), generator.normal(size=1_000_000))
    problem = QuantileProblem(values, 0.9, 1e3, NormalBase(-20.0, 4.0))
    out = quantile.compute_output(problem, WeightKind.SMOOTH, 1.0)
    assert out.probabilities.sum() == pytest.approx(1.0, abs=1e-9)
    # |rank - q| is a few times 2 W / epsilon = 8e-9 plus half a row's weight at most.
    assert out.expected_rank_error < 1e-6
    exact = np.quantile(values.values, 0.9)
    assert abs(out.sample(3, generator) - exact).max() < 1e-4
    assert abs(out.mean - exact) < 1e-4


def test_several_quantiles_are_monotone_and_share_epsilon():
    problem = problem_of(epsilon=6.0)
    joint = mechanism.compute_outputs(problem, [0.9, 0.1, 0.5], WeightKind.SMOOTH, 2.0)
    output = quantile.compute_output(problem_of(q=0.1, epsilon=2.0), WeightKind.SMOOTH, 2.0)
    assert joint[1].log_probabilities == pytest.approx(output.log_probabilities)
    answers = simulate_answers(joint, 5000)
    assert np.all(answers[:, 1] <= answers[:, 2])
    assert np.all(answers[:, 2] <= answers[:, 0])
    # The smallest of three independent answers: 1 - (1 - F1)(1 - F2)(1 - F3), at the 1e-5 level.
    at = float(output.find_answers(0.4))
    below = 1.0 - np.prod([1.0 - float(o.cdf(at)) for o in joint])
    assert stats.binomtest(int(np.sum(answers[:, 1] <= at)), 5000, below).pvalue > 1e-5


def test_refusals():
    values = values_of(USERS)
    with pytest.raises(InvalidInput) as caught:
        QuantileProblem(values, 1.0, 0.0, "normal")
    assert len(caught.value.problems) == 3
    with pytest.raises(InvalidInput, match="whole"):
        quantile.compute_output(problem_of(), WeightKind.CAP, 1.5)
    with pytest.raises(InvalidInput, match="above 0"):
        quantile.compute_output(problem_of(), WeightKind.SMOOTH, 0.0)
    with pytest.raises(InvalidInput, match="strictly between"):
        mechanism.compute_outputs(problem_of(), [0.5, 1.2], WeightKind.SMOOTH, 1.0)


def test_sampled_answers_follow_the_exact_distribution_and_can_be_stopped():
    generator = np.random.default_rng(2)
    values = Values(np.repeat(np.arange(40), 3), generator.normal(size=120))
    problem = QuantileProblem(values, 0.5, 2.0, NormalBase(0.0, 2.0))
    together = mechanism.compute_outputs(problem, [0.4], WeightKind.SMOOTH, 2.0)
    found = simulate_answers(together, 20_000, seed=5)
    assert found.shape == (20_000, 1)
    # Kolmogorov-Smirnov against the exact distribution function, at a level of 1e-4.
    assert stats.kstest(found[:, 0], together[0].cdf).pvalue > 1e-4
    progress_shares = []
    simulate_answers(together, 50_000, progress=progress_shares.append)
    assert progress_shares == sorted(progress_shares)
    assert progress_shares[-1] == 1.0
    answers = iter([False, True])
    partial_sample = simulate_answers(together, 100_000, should_stop=lambda: next(answers))
    assert 0 < partial_sample.shape[0] < 100_000
    empty = simulate_answers(together, 10, should_stop=lambda: True)
    assert empty.shape == (0, 1)
    with pytest.raises(InvalidInput, match="Size"):
        simulate_answers(together, 0)
