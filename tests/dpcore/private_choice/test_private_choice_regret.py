"""Regret of the direct private choice: by enumeration, by real draws, and on the samples."""

import dataclasses

import numpy as np
import pytest

from dpcore import mean, total
from dpcore.common import mechanisms
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts
from dpcore.private_choice import choice
from dpcore.private_choice.choice import ChoiceProblem, Prior, SmallFirst
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.private_choice.scores import CapMean, RankedSum, SizeQuantile, SmoothMean

HISTOGRAM = ContributionHistogram(sizes=[1, 3, 10, 70], users=[2000, 500, 130, 12])


def test_regret_by_enumeration() -> None:
    # Truth: the errors of dpcore.mean and dpcore.total at each candidate, weighed by their probabilities one by one.
    question = mean.MeanProblem(HISTOGRAM, epsilon=0.8, value_bound=2.0, value_variance=0.9)
    sums = total.TotalProblem(Amounts.from_histogram(HISTOGRAM), 0.25, measure=Measure.BOUND)
    cases = (
        (
            SmoothMean(question.trade_off),
            lambda t: np.sqrt(mean.compute_smooth_variance(question, t)),
            mean.find_best_smooth(question).standard_error,
        ),
        (
            CapMean(question.trade_off),
            lambda t: np.sqrt(mean.compute_capped_variance(question, t)),
            mean.find_best_cap(question).standard_error,
        ),
        (
            RankedSum(4.0),
            lambda t: total.compute_errors(sums, t).bias_plus_noise,
            total.find_best_choice(sums).errors.bias_plus_noise,
        ),
    )
    for condition, errors, best in cases:
        problem = ChoiceProblem(condition, 0.3, 200)
        pairs = sorted(
            (float(errors(t)) / best - 1.0, p)
            for t, p in zip(problem.candidates, choice.compute_probabilities(problem, HISTOGRAM), strict=True)
        )
        found = choice.summarise_regret(problem, HISTOGRAM)
        assert found.mean_regrets[0, 0] == pytest.approx(sum(r * p for r, p in pairs), rel=1e-9)
        for share, value in ((0.5, found.median_regrets[0, 0]), (0.95, found.percentile_95_regrets[0, 0])):
            reached = np.cumsum([p for _, p in pairs])
            expected = pairs[int(np.flatnonzero(reached >= share)[0])][0]
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.long
def test_regret_by_real_draws() -> None:
    problem = ChoiceProblem(SmoothMean(0.4), 0.2, 200)
    exact = choice.summarise_regret(problem, HISTOGRAM)
    costs = dict(
        zip(
            problem.candidates,
            choice.compute_regrets(problem.condition, HISTOGRAM, problem.candidates),
            strict=True,
        )
    )
    runs = 2000
    draw = mechanisms.make_selector(
        problem.compute_scores(HISTOGRAM), 2.0 * problem.sensitivity / problem.epsilon
    )
    drawn = np.sort([costs[problem.candidates[draw()]] for _ in range(runs)])
    assert abs(drawn.mean() - exact.mean_regrets[0, 0]) < 5 * drawn.std() / np.sqrt(runs)
    # Order statistics five standard deviations of a binomial around the rank hold the quantile.
    for share, value in ((0.5, exact.median_regrets[0, 0]), (0.95, exact.percentile_95_regrets[0, 0])):
        reach = 5 * np.sqrt(runs * share * (1 - share))
        low, high = drawn[int(runs * share - reach)], drawn[min(int(runs * share + reach) + 1, runs - 1)]
        assert low <= value <= high


@pytest.mark.parametrize(
    "condition",
    [SmoothMean(0.4), CapMean(0.4), RankedSum(4.0), SizeQuantile(0.8)],
    ids=lambda c: type(c).__name__,
)
def test_scaling_is_taking_every_user_so_many_times(condition: SmoothMean) -> None:
    problem = ChoiceProblem(condition, 0.1, 200)
    for k in (2, 7):
        tripled = ContributionHistogram(HISTOGRAM.sizes, HISTOGRAM.users * k)
        scaled = choice.summarise_regret(problem, HISTOGRAM, [0.01, 0.1], [k])
        direct = choice.summarise_regret(problem, tripled, [0.01, 0.1])
        for name in ("mean_regrets", "median_regrets", "percentile_95_regrets"):
            np.testing.assert_allclose(getattr(scaled, name), getattr(direct, name), rtol=1e-5, atol=1e-7)


def test_all_pairs_of_budget_and_users_at_once() -> None:
    problem = ChoiceProblem(SmoothMean(0.4), 0.1, 200)
    both = choice.summarise_regret(problem, HISTOGRAM, [0.01, 0.1, 1.0], [0.5, 2.0])
    assert both.median_regrets.shape == both.mean_regrets.shape == both.percentile_95_regrets.shape == (2, 3)
    for i, k in enumerate(both.multiples):
        for j, epsilon in enumerate(both.epsilons):
            one = choice.summarise_regret(problem, HISTOGRAM, epsilon, k)
            assert both.mean_regrets[i, j] == pytest.approx(one.mean_regrets[0, 0], rel=1e-9)
    # More budget and more users cost less, as long as the choice and not the grid is what costs.
    assert np.all(np.diff(both.mean_regrets, axis=1) < 0)
    assert np.all(np.diff(both.mean_regrets[:, :2], axis=0) < 0)


RETAIL = ("online-retail-lines", "online-retail-invoices", "online-retail-customers-per-product")


@pytest.mark.thinned
@pytest.mark.parametrize("key", RETAIL)
@pytest.mark.parametrize("condition", [SmoothMean, CapMean])
@pytest.mark.parametrize("largest", [10_000, 1_000_000])
def test_a_tenth_is_nearly_free_for_a_mean(
    key: str, condition: type[SmoothMean] | type[CapMean], largest: int
) -> None:
    histogram = samples.load(key).histogram
    trade_off = mean.MeanParameters(epsilon=1.0).build_problem(histogram).trade_off
    found = choice.summarise_regret(ChoiceProblem(condition(trade_off), 0.1, largest), histogram)
    assert found.median_regrets[0, 0] <= 0.01
    assert found.percentile_95_regrets[0, 0] <= 0.05


def test_a_sum_is_not_and_what_helps() -> None:
    # The best bound at epsilon = 1 is the largest total itself: one user decides.
    histogram = samples.load("online-retail-lines").histogram

    def median(epsilon: float, prior: Prior | None = None) -> float:
        problem = ChoiceProblem(RankedSum(1.0), epsilon, 10_000, prior=prior)
        return float(choice.summarise_regret(problem, histogram).median_regrets[0, 0])

    assert median(0.1) > 0.5
    assert median(1.0) < 0.2 * median(0.1)
    assert median(0.1, Prior(8000, 1.5)) < 0.5 * median(0.1)


@pytest.mark.parametrize("key", samples.SAMPLES)
def test_small_bounds_first_keep_a_sum_from_costing_many_times_as_much(key: str) -> None:
    """The expected error by the law as it is written, without the machinery of regrets."""
    histogram = samples.load(key).histogram
    rows = np.repeat(histogram.sizes, histogram.users).astype(float)
    grid = choice.build_grid(10_000, is_integer=True)
    # Epsilon of the release: 1.
    errors = np.array([np.maximum(rows - bound, 0.0).sum() + bound for bound in grid])
    smallest = min(np.maximum(rows - bound, 0.0).sum() + bound for bound in np.unique(rows))
    values_above = np.array([(rows > bound).sum() for bound in grid])
    reached = np.array([(rows >= bound).sum() for bound in grid])
    # 1 / epsilon of the release, and as many again: fewer than 2 over epsilon of the choice.
    distances = np.maximum(np.maximum(values_above - 2.0, 2.0 - reached), 0.0)

    def extra(weights: np.ndarray, epsilon: float) -> float:
        law = weights * np.exp(-epsilon / 2.0 * distances)
        return float((law / law.sum()) @ (errors / smallest - 1.0))

    parameters = PrivateParameters(1.0, BoundPurpose.SUM, selection_epsilon=0.5)
    assert parameters.choice.prior == SmallFirst()
    found = float(choice.summarise_regret(parameters.choice, histogram).mean_regrets[0, 0])
    assert found == pytest.approx(extra(grid**-1.5, 0.5), rel=1e-5)
    assert found < 1.5
    alike = extra(np.ones(grid.size), 0.5)
    if alike > 1.0:
        assert found < 0.5 * alike
    assert dataclasses.replace(parameters, guess=50.0, guess_factor=2.0).choice.prior == Prior(50.0, 2.0)
    assert dataclasses.replace(parameters, purpose=BoundPurpose.QUANTILE).choice.prior is None


def test_what_a_draw_costs_is_said_from_public_samples_alone() -> None:
    """A scale is a table in which every user is there so many times; the largest cost over the samples counts."""
    parameters = PrivateParameters(1.0, BoundPurpose.CAP, selection_epsilon=0.5)
    users = [samples.load(key).histogram.num_users for key in choice.FORECAST_SAMPLES]
    costs = []
    for key, user in zip(choice.FORECAST_SAMPLES, users, strict=True):
        histogram = samples.load(key).histogram
        times = 20 * users[0] / user
        if times == int(times):
            histogram = ContributionHistogram(sizes=histogram.sizes, users=histogram.users * int(times))
            costs.append(float(choice.summarise_regret(parameters.choice, histogram).mean_regrets[0, 0]))
    assert costs
    (found,) = choice.forecast(parameters.choice, num_users_of_samples=[20 * users[0]])
    assert found >= max(costs) * (1 - 1e-9)
    few, many = choice.forecast(parameters.choice, num_users_of_samples=[200, 20_000])
    assert few > many > 0.0


def test_a_margin_trades_a_little_bias_for_not_overshooting() -> None:
    histogram = samples.load("online-retail-invoices").histogram
    without, with_margin = (
        choice.summarise_regret(ChoiceProblem(RankedSum(1.0, margin), 1.0, 10_000), histogram)
        for margin in (0.0, 10.0)
    )
    assert with_margin.percentile_95_regrets[0, 0] < 0.2 * without.percentile_95_regrets[0, 0]


def test_a_draw_of_a_sum_aims_a_little_lower_by_its_own_epsilon() -> None:
    of = RankedSum(3.0, margin=1.0)
    assert [of.with_draw_margin(epsilon).margin for epsilon in (0.1, 0.5, 1.0, 4.0)] == [5.0, 5.0, 3.0, 1.5]
    # Over several budgets at once each has its own aim.
    problem = ChoiceProblem(of, 0.1, 100, prior=SmallFirst())
    both = choice.compute_probabilities(problem, HISTOGRAM, [[0.1, 2.0]])
    assert both.shape == (1, 2, problem.candidates.size)
    for law, epsilon in zip(both[0], (0.1, 2.0), strict=True):
        alone = choice.compute_probabilities(dataclasses.replace(problem, epsilon=epsilon), HISTOGRAM)
        np.testing.assert_allclose(law, alone, rtol=1e-9)
        found = choice.summarise_regret(problem, HISTOGRAM, [epsilon, 1.0]).mean_regrets[0, 0]
        costs = choice.compute_regrets(problem.condition, HISTOGRAM, problem.candidates)
        assert found == pytest.approx(float(alone @ costs), rel=1e-9)


def test_figures_out_of_range_are_refused() -> None:
    problem = ChoiceProblem(SmoothMean(0.4), 0.1, 200)
    with pytest.raises(InvalidInput) as refused:
        choice.summarise_regret(problem, HISTOGRAM, [0.0, np.nan], [0.0])
    assert len(refused.value.problems) == 3
