"""The power-law population: tails, expectations, draws, and the cost of privacy."""

import math

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import binom

from dpcore.common.checks import InvalidInput
from dpcore.learning import population
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.optimal_cap import PrivacyTerm
from dpcore.learning.participation import PowerLaw, compute_expectations, draw_rows_per_user, simulate
from dpcore.learning.population import PopulationProblem


@pytest.mark.parametrize("alpha", [0.25, 1.0, 3.0])
def test_tails_against_direct_sums(alpha: float) -> None:
    law = PowerLaw(alpha)
    last = 10**6
    j = np.arange(1.0, last + 1.0)
    p = j ** -(1.0 + alpha)
    # What lies beyond J is between the integrals from J + 1 and from J of x^-(1 + alpha).
    low, high = (last + 1.0) ** -alpha / alpha, last**-alpha / alpha
    total = p.sum() + np.array([low, high])
    for k in (0, 1, 7, 1000):
        direct = (p[k:].sum() + np.array([low, high])) / total[::-1]
        assert direct[0] * (1 - 1e-12) <= float(law.compute_tail_mass(k)) <= direct[1] * (1 + 1e-12)
    shares = p / total.mean()
    for tau_0 in (1e-3, 0.013, 0.2, 0.99):
        above = int((shares > tau_0).sum())
        assert int(law.count_users_above(tau_0)) == above
        assert float(law.compute_uncapped_mass(tau_0)) == pytest.approx(
            float(law.compute_tail_mass(above)), rel=1e-12
        )
        kept = np.minimum(shares, tau_0).sum() + float(law.compute_tail_mass(last))
        assert float(law.compute_kept_share(tau_0)) == pytest.approx(kept, rel=1e-6)


def test_a_share_of_exactly_one_user_is_not_above_itself() -> None:
    law = PowerLaw(0.7)
    users = np.array([1.0, 2.0, 3.0, 10.0, 500.0, 12345.0])
    assert law.count_users_above(law.compute_probabilities(users)) == pytest.approx(users - 1.0, abs=0.0)
    assert law.count_users_above(law.compute_probabilities(users) * (1 - 1e-12)) == pytest.approx(
        users, abs=0.0
    )


@pytest.mark.parametrize("alpha", [0.1, 1.0, 2.5])
def test_inverse_sums_beyond_the_table(alpha: float) -> None:
    law = PowerLaw(alpha)
    for count in (1, 4096, 4097, 10_000, 300_000):
        share = float(law.compute_probabilities(count)) * (1 - 1e-12)
        direct = math.fsum(1.0 / law.compute_probabilities(np.arange(1.0, count + 1.0)))
        assert float(law.compute_sums_at(share).inverse_above) == pytest.approx(direct, rel=1e-10)


@pytest.mark.thinned
@pytest.mark.parametrize("alpha", [0.05, 0.25, 1.0, 3.0])
@pytest.mark.parametrize("rows", [30, 10_000, 10**6, 10**9])
def test_expectations_against_direct_binomial_sums(alpha: float, rows: int) -> None:
    law = PowerLaw(alpha)
    last = 100_000
    p = law.compute_probabilities(np.arange(1.0, last + 1.0))
    caps = np.array([c for c in (1.0, 2.5, 6.0, 40.0, 3000.0, 0.3 * rows) if c <= rows])
    expectations = compute_expectations(law, rows, caps / rows)
    for i, cap in enumerate(caps):
        t = math.floor(cap)
        above = binom.sf(t, rows, p)
        # E min(X, tau) = E[X; X <= t] + tau P(X > t), and E[X; X <= t] = n p P(Binomial(n - 1, p) <= t - 1).
        kept = rows * p * binom.cdf(t - 1, rows - 1, p) + cap * above
        # Beyond: at most all their rows, at least those less E (X - tau)_+ <= binom(n, t + 1) p^(t + 1).
        high = kept.sum() + rows * float(law.compute_tail_mass(last))
        excess = math.exp(
            (t + 1) * math.log(rows / law.normaliser)
            - math.lgamma(t + 2)
            + (1.0 - (t + 1) * law.exponent) * math.log(last)
            - math.log((t + 1) * law.exponent - 1.0)
        )
        low = max(high - excess * (t + 1), kept.sum())
        got = float(expectations.kept_share[i]) * rows
        assert low * (1 - 1e-9) <= got <= high * (1 + 1e-9)
        assert float(expectations.kept_share[i] + expectations.cut_share[i]) == pytest.approx(1.0, abs=1e-11)
        capped = above.sum()
        assert capped * (1 - 1e-8) - 1e-12 <= float(expectations.users_capped[i])
        assert float(expectations.users_capped[i]) <= (capped + excess * (t + 1)) * (1 + 1e-8) + 1e-12


def test_expected_rows_below_one_row_and_at_all_rows() -> None:
    expectations = compute_expectations(PowerLaw(1.0), 1000, np.array([0.5e-3, 1e-3, 1.0]))
    assert expectations.kept_share[0] == 0.0
    # One row per user: as many rows as users seen, who are those who lose rows when nothing is kept.
    assert expectations.users_capped[0] == pytest.approx(expectations.kept_share[1] * 1000, rel=1e-12)
    assert expectations.kept_share[2] == pytest.approx(1.0, rel=1e-12)
    assert expectations.users_capped[2] == 0.0


@pytest.mark.parametrize("alpha", [0.25, 1.0, 3.0])
def test_expectations_against_simulation(alpha: float) -> None:
    # 200 draws of 20,000 rows; means within 5 standard errors. With 2 x 6 x 3 comparisons of nearly normal
    # means a correct formula fails once in about 50,000 seeds.
    law, rows, draws = PowerLaw(alpha), 20_000, 200
    caps = np.array([1.0, 3.0, 20.0, 300.0, 2000.0, 5000.0]) / rows
    sample = simulate(law, rows, caps, num_draws=draws, seed=7)
    expected = compute_expectations(law, rows, caps)
    for got, want in (
        (sample.kept_shares, expected.kept_share),
        (sample.users_capped, expected.users_capped),
    ):
        error = got.std(axis=0, ddof=1) / math.sqrt(draws)
        # Where hardly a draw differs the estimated error is no guide: allow for one more event in 200.
        assert np.all(np.abs(got.mean(axis=0) - want) <= 5.0 * error + 1.0 / draws * (error == 0.0))


def test_a_draw_has_all_rows_and_the_right_heaviest_user() -> None:
    # Distinct users are compared with their expectation above; here all rows are there, and the heaviest
    # user's number, binomial with p_1, is within 5 standard deviations.
    law, rows = PowerLaw(0.25), 200_000
    counts = draw_rows_per_user(law, rows, np.random.default_rng(3))
    assert counts.sum() == rows
    spread = math.sqrt(rows * law.largest_share * (1.0 - law.largest_share))
    assert abs(counts.max() - rows * law.largest_share) <= 5.0 * spread


def test_simulation_can_be_stopped() -> None:
    made = iter([False, False, True])
    draws = simulate(PowerLaw(1.0), 100, [0.1, 0.5], num_draws=9, should_stop=lambda: next(made))
    assert draws.is_stopped
    assert draws.kept_shares.shape == (2, 2)


def test_more_rows_lead_to_the_limit() -> None:
    # E min(X, tau) <= min(n p, tau) for every user, and the ratio tends to 1.
    law, tau_0 = PowerLaw(0.5), np.array([0.01, 0.05, 0.3])
    limit = law.compute_kept_share(tau_0)
    gaps = np.array(
        [limit - compute_expectations(law, n, tau_0).kept_share for n in (10**2, 10**4, 10**6, 10**8)]
    )
    assert np.all(gaps >= -1e-12)
    assert np.all(np.diff(gaps, axis=0) <= 1e-12)
    assert np.all(gaps[-1] < 1e-4)


@pytest.mark.thinned
@pytest.mark.parametrize("term", list(BiasTerm))
@pytest.mark.parametrize("alpha", [0.25, 1.0, 2.5])
def test_best_fraction_in_the_limit_against_a_grid(term: BiasTerm, alpha: float) -> None:
    problem = PopulationProblem(participation=PowerLaw(alpha), epsilon=1.0, bias=term, loss_variance=0.05)
    best = population.find_best_fraction(problem)
    grid = population.compute_error_parts(problem, np.geomspace(1e-10, 1.0, 20_001)).total
    assert best.certificate.lower_bound <= grid.min()
    assert best.total <= grid.min() * (1 + 1e-6)
    assert math.isnan(best.cap)


def test_limit_statistics_against_a_long_list_of_users() -> None:
    law = PowerLaw(1.0)
    p = law.compute_probabilities(np.arange(1.0, 200_001.0))
    rest = float(
        law.compute_tail_mass(200_000)
    )  # Each below 2e-11: taken as never capped, q_j / p_j being one ratio.
    problem = PopulationProblem(participation=law, epsilon=1.0)
    for tau_0 in (0.001, 0.05, 0.4):
        capped = np.minimum(p, tau_0)
        kept = capped.sum() + rest
        q = capped / kept
        at = population.compute_statistics(problem, tau_0)
        assert float(at.kept_share) == pytest.approx(kept, rel=1e-9)
        assert float(at.total_variation) == pytest.approx(np.maximum(p - q, 0.0).sum(), rel=1e-8)
        assert float(at.chi_squared) == pytest.approx((q**2 / p).sum() + rest / kept**2 - 1.0, rel=1e-8)
        assert float(at.max_share) == pytest.approx(q.max(), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("rows", [100, 10**5])
def test_best_fraction_of_a_sample_against_a_grid(rows: int) -> None:
    problem = PopulationProblem(
        participation=PowerLaw(0.5), epsilon=1.0, bias=BiasTerm.LOG_KEPT, num_rows=rows, vc_dimension=2
    )
    best = population.find_best_fraction(problem)
    grid = population.compute_error_parts(problem, np.geomspace(1.0 / rows, 1.0, 400)).total
    assert best.certificate.lower_bound <= grid.min()
    assert best.total <= grid.min() * (1 + 1e-6)
    assert best.certificate.proves(1.1e-6)
    assert best.cap == pytest.approx(best.fraction * rows, rel=1e-12)


def exact_best(alpha, kept_bias, factor, power=2, segments=12):
    """(tau_0, users capped, value) of the least 2 bias + factor share^power in the limit, 30 digits, by segments.

    With j users above tau, Q = 1 - sum_{i <= j} p_i + j tau and the largest share is tau / Q. On each
    [p_{j+1}, p_j] the lowest of 17 points is refined by golden section inside it; at a kink p_{j+1} itself
    j users have more than tau.
    """
    with mp.workdps(30):
        s = 1 + mp.mpf(alpha)
        p = [mp.mpf(i) ** -s / mp.zeta(s) for i in range(1, segments + 2)]
        golden = (mp.sqrt(5) - 1) / 2
        candidates = [(p[0], 0, 2 * kept_bias(mp.mpf(1)) + factor * p[0] ** power)]
        for j in range(1, segments + 1):
            tail = 1 - mp.fsum(p[:j])

            def value(tau, tail=tail, j=j):
                kept = tail + j * tau
                return 2 * kept_bias(kept) + factor * (tau / kept) ** power

            points = [p[j] + (p[j - 1] - p[j]) * k / 16 for k in range(17)]
            smallest = min(range(17), key=lambda k: value(points[k]))
            a, b = points[max(smallest - 1, 0)], points[min(smallest + 1, 16)]
            for _ in range(60):
                c, d = b - golden * (b - a), a + golden * (b - a)
                a, b = (a, d) if value(c) <= value(d) else (c, b)
            # The upper end belongs to the segment above: there only j - 1 users have more.
            candidates += [(tau, j, value(tau)) for tau in (p[j], (a + b) / 2)]
        tau, users, least = min(candidates, key=lambda item: item[2])
        return float(tau), users, float(least)


def log_kept(kept):
    return mp.sqrt(-mp.log(kept) / 2)


def cut_share(kept):
    return 1 - kept


def limit_problem(alpha, bias=BiasTerm.LOG_KEPT, **further):
    return PopulationProblem(participation=PowerLaw(alpha), epsilon=1.0, bias=bias, **further)


QUADRATIC = math.log(3.0 / 0.05) ** 2  # The factor of share^2 by default, at epsilon = 1.


@pytest.mark.parametrize(("alpha", "capped"), [(0.25, 1), (0.5, 2), (1.0, 3), (2.0, 4), (3.0, 4)])
def test_the_best_cap_is_a_kink_exactly_where_it_is_one(alpha: float, capped: int) -> None:
    law = PowerLaw(alpha)
    best = population.find_best_fraction(limit_problem(alpha))
    tau, users, value = exact_best(alpha, log_kept, QUADRATIC)
    assert users == capped
    # The user whose share is the cap is at it, not above it.
    assert best.fraction == float(law.compute_probabilities(capped + 1.0))
    assert best.users_capped == capped
    assert best.fraction == pytest.approx(tau, rel=1e-13)
    assert best.total == pytest.approx(value, rel=1e-13)
    assert best.certificate.lower_bound <= value
    # Away from the kink it rises at once, on either side: no smooth minimum beside it.
    total_beside = population.compute_error_parts(
        limit_problem(alpha), best.fraction * (1 + 1e-7 * np.array([-1, 1]))
    ).total
    assert np.all(total_beside > best.total * (1 + 1e-12))


@pytest.mark.long
def test_the_best_cap_against_every_segment_of_random_populations() -> None:
    rng = np.random.default_rng(12)
    kinks = smooth = 0
    for k in range(16):
        term, exact = ((BiasTerm.LOG_KEPT, log_kept), (BiasTerm.CUT_SHARE, cut_share))[k % 2]
        alpha, factor, power = (
            float(rng.uniform(0.3, 1.5)),
            float(np.exp(rng.uniform(0.0, 4.0))),
            (2, 6)[k // 8],
        )
        problem = limit_problem(alpha, term, privacy=PrivacyTerm(power, factor, 0.0))
        best = population.find_best_fraction(problem)
        tau, users, value = exact_best(alpha, exact, factor, power)
        assert best.users_capped == users, problem
        assert best.total == pytest.approx(value, rel=1e-12)
        assert best.fraction == pytest.approx(tau, rel=1e-6)
        assert best.certificate.lower_bound <= value
        at_a_kink = best.fraction == float(PowerLaw(alpha).compute_probabilities(users + 1.0))
        kinks, smooth = kinks + at_a_kink, smooth + (not at_a_kink)
        probability = PowerLaw(alpha).compute_probabilities(np.arange(1.0, 400.0))
        assert best.total <= population.compute_error_parts(problem, probability).total.min() * (1 + 1e-14)
    assert min(kinks, smooth) >= 3  # Both kinds of optimum were met.


@pytest.mark.long
@pytest.mark.parametrize("rows", [100, 1000, 10_000])
def test_the_best_cap_of_a_sample_is_whole_where_that_is_a_kink(rows: int) -> None:
    problem = PopulationProblem(
        participation=PowerLaw(1.0), epsilon=1.0, bias=BiasTerm.LOG_KEPT, num_rows=rows
    )
    best = population.find_best_fraction(problem)
    assert best.cap == round(best.cap)
    whole_total = population.compute_error_parts(problem, np.arange(1, rows + 1)[: rows // 4] / rows).total
    assert best.total == pytest.approx(whole_total.min(), rel=1e-12)
    assert best.cap == 1 + int(np.argmin(whole_total))


@pytest.mark.long
def test_figure_3b_few_users_are_capped_at_the_optimum() -> None:
    # The paper: 2 to 8, its constants and alphas not given.
    capped = [
        population.find_best_fraction(limit_problem(float(alpha))).users_capped
        for alpha in np.arange(0.25, 3.01, 0.25)
    ]
    exact = [
        exact_best(float(alpha), log_kept, QUADRATIC, segments=6)[1] for alpha in np.arange(0.25, 3.01, 0.25)
    ]
    assert capped == exact
    assert max(capped) <= 8


def test_simulated_and_expected_cost_agree() -> None:
    problem = PopulationProblem(
        participation=PowerLaw(0.5), epsilon=1.0, bias=BiasTerm.LOG_KEPT, num_rows=10_000
    )
    tau_0 = np.geomspace(1e-3, 0.2, 12)
    draws = simulate(problem.participation, 10_000, tau_0, num_draws=100, seed=11)
    simulated = population.compute_simulated_error_parts(problem, draws)
    # The kept share is within 1/n of itself per row (proposition 5), so 100 draws of 1e4 rows pin its mean to
    # about 5e-4; both parts are smooth in it here.
    assert simulated.total == pytest.approx(population.compute_error_parts(problem, tau_0).total, rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.25, 1.0, 3.0])
def test_the_cost_of_privacy_flattens_above_zero(alpha: float) -> None:
    problem = PopulationProblem(
        participation=PowerLaw(alpha), epsilon=1.0, bias=BiasTerm.LOG_KEPT, vc_dimension=50
    )
    cost = population.find_cost_of_privacy(problem)
    assert cost.rows_per_sample == tuple(10**k for k in range(2, 10))
    totals = np.array([best.total for best in cost.best_choices])
    assert np.all(np.diff(totals) <= 2e-6 * totals[:-1])
    assert np.all(totals >= cost.limit_choice.total * (1 - 2e-6))
    assert totals[-1] == pytest.approx(cost.limit_choice.total, rel=1e-4)
    assert cost.limit_choice.total > 0.5
    assert all(item.finite_sample == 0.0 for item in cost.best_choices)
    assert all(item.certificate.proves(1.1e-6) for item in (*cost.best_choices, cost.limit_choice))


def test_alike_users_escape_the_cost() -> None:
    problem = PopulationProblem(
        participation=PowerLaw(1.0), epsilon=1.0, bias=BiasTerm.TIGHTEST, loss_variance=0.0
    )
    best = population.find_best_fraction(problem)
    assert best.twice_bias == 0.0
    assert best.total < 1e-5
    assert best.certificate.lower_bound == 0.0
    assert "no best" in best.stop_reason


def test_cost_can_be_stopped() -> None:
    num_checks = 0

    def stop() -> bool:
        nonlocal num_checks
        num_checks += 1
        return num_checks > 25

    problem = PopulationProblem(participation=PowerLaw(1.0), epsilon=1.0, bias=BiasTerm.LOG_KEPT)
    cost = population.find_cost_of_privacy(problem, should_stop=stop)
    assert len(cost.best_choices) == len(cost.rows_per_sample) < 8


def test_bad_input_is_refused_all_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        PopulationProblem(participation="zipf", epsilon=0.0, num_rows=0)
    assert len(refused.value.problems) == 3
    with pytest.raises(InvalidInput, match="every user's share"):
        PopulationProblem(participation=PowerLaw(1.0), epsilon=1.0, num_rows=100)
    with pytest.raises(InvalidInput, match=r"(?i)num_rows"):
        population.find_cost_of_privacy(
            PopulationProblem(participation=PowerLaw(1.0), epsilon=1.0, bias=BiasTerm.LOG_KEPT), [10, 10**12]
        )
    for alpha in (0.0, -1.0, math.nan, 11.0):
        with pytest.raises(InvalidInput, match=r"(?i)alpha"):
            PowerLaw(alpha)
    with pytest.raises(InvalidInput, match=r"(?i)tau_0"):
        compute_expectations(PowerLaw(1.0), 100, [0.0, 0.5])


def test_linear_noise_in_the_limit_caps_the_top_few() -> None:
    # As for data: slope -2 k + C / eps in u = tau_0 / Q(tau_0).
    law = PowerLaw(1.0)
    problem = PopulationProblem(participation=law, epsilon=1.0, privacy=PrivacyTerm(1.0, 5.0, 0.0))
    p = law.compute_probabilities(np.arange(1.0, 10.0))
    expected = 2.0 * np.maximum(p - p[2], 0.0).sum() + 5.0 * p[2]
    assert population.find_best_fraction(problem).total == pytest.approx(expected, rel=2e-6)
