"""Sum and count: what is drawn and said is what the core answers; every setting, every kind of data."""

from __future__ import annotations

import dataclasses
import functools
import math
import re

import numpy as np
import pytest
from scipy import optimize, stats

from dpcore import total
from dpcore.answer import standard
from dpcore.code import write
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.common.wording import format_number
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset, Values
from dpcore.report import plotly_figures
from dpcore.total import strategies as total_strategies
from dpcore.total.answer import build_answer
from dpcore.total.answer import plots as compared
from dpcore.total.answer.words import LARGEST_RATIO_BY_NOISE
from dpcore.total.parameters import Summed, TotalParameters
from dpcore.total.signed import SignedProblem
from dpcore.total.strategies import PAPER_STRATEGIES, Strategy
from pages.shared.base import keys
from pages.shared.fields import jobs, setting
from pages.shared.session import session
from tests.pages.driving import (
    chart,
    check,
    errors,
    finish,
    go,
    list_metrics,
    open_app,
    open_tab,
    read_number,
    read_shown_link,
    shown_texts,
    trace,
    use_dataset,
    wait_until,
    work_waits_for_stop,
)

TITLE = "Sum and count"
LINES = samples.load(session.DEFAULT_SAMPLE)
SHOP = samples.load("shop-events")
ROWS = Amounts.from_histogram(LINES.histogram)
EPSILON = setting.DEFAULT_EPSILON
CURVES = {Measure.ABSOLUTE: "Expected error", Measure.RMSE: "RMSE", Measure.BOUND: "Bias + noise"}
# Totals of -4, 9, 30, -2 and 4.
SIGNED = Dataset(
    "signed",
    "",
    Disclosure.PRIVATE,
    ContributionHistogram.from_counts([2, 1, 1, 1, 1]),
    values=Values([0, 0, 1, 2, 3, 4], [-5.0, 1.0, 9.0, 30.0, -2.0, 4.0], "amount"),
)


def on_shop(**fields):
    return open_app(TITLE, link="1", data="shop-events", epsilon=f"{EPSILON:g}", **fields)


def of_values(amounts, epsilon=EPSILON, **options):
    """What the page computes and says of these totals per user, of private data."""
    values = Values(np.arange(len(amounts)), amounts, "amount")
    histogram = ContributionHistogram([1], [len(amounts)])
    private = Dataset("few", "", Disclosure.PRIVATE, histogram, values=values)
    return build_answer(private, TotalParameters(epsilon, summed=Summed.VALUES, **options))


def choose(app, key, label):
    return check(app.segmented_control(key=key).set_value(label).run())


def enter(app, key, value):
    return check(app.number_input(key=key).set_value(value).run())


problem_of = functools.partial(total.TotalProblem, program=Program.OPENDP)


def error_of(problem: total.TotalProblem, t: float) -> float:
    """The error at T by brute force: a sum over whole noise for rows, and over quantiles of the noise for totals."""
    bias = float(np.sum(np.maximum(problem.amounts.values - t, 0.0) * problem.amounts.users))
    is_laplace, scale = problem.mechanism is NoiseKind.LAPLACE, problem.unit_noise * t
    if problem.is_integer:
        noise = np.arange(-math.ceil(45.0 * scale) - 2.0, math.ceil(45.0 * scale) + 3.0)
        weights = np.exp(-np.abs(noise) / scale) if is_laplace else np.exp(-0.5 * (noise / scale) ** 2)
    else:
        noise = scale * (stats.laplace if is_laplace else stats.norm).ppf(
            (np.arange(100_000) + 0.5) / 100_000
        )
        weights = np.ones(100_000)
    weights /= weights.sum()
    if problem.measure is Measure.BOUND:
        return bias + float(np.abs(noise) @ weights)
    off = np.abs(noise - bias)
    return float(off @ weights if problem.measure is Measure.ABSOLUTE else np.sqrt(off**2 @ weights))


def assert_answer(app, problem: total.TotalProblem) -> None:
    """The page shows the optimum of this problem, and curves that are the errors."""
    figure = chart(app, "total_error")
    best = total.find_best_choice(problem)
    ((x,), (y,)) = trace(figure, "Best bound")
    assert (x, y) == (best.max_total, pytest.approx(best.certificate.value))
    assert y == pytest.approx(error_of(problem, x), rel=2e-3)
    bounds, curve_values = trace(figure, CURVES[problem.measure])
    for i in range(0, bounds.size, 40):
        assert curve_values[i] == pytest.approx(error_of(problem, bounds[i]), rel=2e-3)
    # No drawn point lies below the marked one.
    assert curve_values.min() >= y * (1.0 - 1e-12)
    shown = float(list_metrics(app)[0].value.removesuffix(" rows").replace(",", ""))
    if problem.is_integer:
        assert shown == best.max_total
    else:  # Few digits, near enough.
        assert float(f"{shown:.4g}") == shown
        assert error_of(problem, shown) <= 1.002 * y
        assert ("Rounded" in shown_texts(app)) == (shown != best.max_total)


@pytest.mark.parametrize("epsilon", [1.0, 0.2])
def test_the_axis_holds_a_best_bound_below_all_totals(epsilon: float) -> None:
    # One user of 50 rows: E|50 - T + Laplace(T/epsilon)| = a + b exp(-a/b) with a = 50 - T, b = T/epsilon.
    dataset = Dataset("one", "", Disclosure.PUBLIC, ContributionHistogram([50], [1]))
    answer = build_answer(dataset, TotalParameters(epsilon))
    t = np.arange(1.0, 51.0)
    best = t[np.argmin(50.0 - t + t / epsilon * np.exp(-(50.0 - t) * epsilon / t))]
    low, high = answer.plots["total-error"]().x.limits
    assert low <= best < 50.0 < high
    assert answer.solution.bound == best


def test_the_default_sample_is_answered_by_the_core():
    assert_answer(open_app(TITLE), problem_of(ROWS, EPSILON, is_integer=True))


@pytest.mark.long
def test_every_mechanism_and_measure():
    app = enter(open_app(TITLE), keys.EPSILON, 0.1)
    for mechanism in NoiseKind:
        choose(app, "total.mechanism", mechanism)
        gaussian = mechanism is NoiseKind.GAUSSIAN
        assert bool([n for n in app.number_input if n.key == "total.delta"]) is gaussian
        if gaussian:
            enter(app, "total.delta", 1e-5)
        for measure in Measure:
            choose(app, "total.objective", measure)
            assert not errors(app)
            delta = 1e-5 if gaussian else None
            assert_answer(app, problem_of(ROWS, 0.1, mechanism, delta, measure, is_integer=True))
            # One measure is drawn; the others are in a tab of their own.
            drawn = {t["name"] for t in chart(app, "total_error")["data"]}
            assert drawn & set(CURVES.values()) == {CURVES[measure]}


def test_all_measures_are_drawn_on_request_in_colours_of_their_own():
    app = open_tab(open_app(TITLE), "total", "Measures and noise")
    figure = chart(app, "total_measures")
    lines = [t for t in figure["data"] if t["name"] in CURVES.values()]
    assert len({t["line"]["color"] for t in lines}) == len(lines) == 3
    for measure, name in CURVES.items():
        problem = problem_of(ROWS, EPSILON, measure=measure, is_integer=True)
        bounds, curve_values = trace(figure, name)
        assert curve_values[100] == pytest.approx(error_of(problem, bounds[100]), rel=2e-3)
        best = total.find_best_choice(problem)
        assert trace(figure, f"Best bound, {name}")[0] == [best.max_total]
    table = next(str(m.value) for m in app.markdown if str(m.value).startswith("| error"))
    assert f"{best.max_total:,.0f} rows |" in table


def test_totals_of_a_column_are_summed():
    app = on_shop(summed="values")
    assert_answer(app, problem_of(Amounts.from_totals(SHOP.totals), EPSILON))
    assert "total of amount" in shown_texts(app)
    assert f"add up to {format_number(float(SHOP.totals.totals.sum()), 4)}" in shown_texts(app)


def test_no_card_and_no_code_hand_over_somebody_s_exact_total():
    # Rank 1 = ceil(1 / 2) of ten totals: by the paper's bound T is the largest, to the last cent.
    totals = np.array([3.21] * 8 + [24_755.56, 0.5])
    largest = problem_of(Amounts.from_totals(totals), 2.0, measure=Measure.BOUND)
    assert total.find_optimal_bound(largest) == max(totals)
    for sign in (1.0, -1.0):
        card = of_values(sign * totals, 2.0, objective=Measure.BOUND)
        numbers = [item for number in card.numbers for item in (number.text, number.text_to_copy)]
        text = "\n".join([card.headline, card.near_optimal, *numbers])
        assert "24,75" not in text
        assert "2475" not in text
        code = write(card.code.forms[0][1], Program.PYTHON).text
        ends = [float(x) for x in re.search(r"LOW, HIGH = (\S+), (\S+) ", code).groups()]
        assert format_number(ends[1], 4) in text
        assert float(f"{ends[1]:.4g}") == ends[1]
        assert ends[0] == (0.0 if sign > 0.0 else -ends[1])


def test_epsilon_moves_the_answer_and_not_the_axes():
    app = open_app(TITLE)
    before = chart(app, "total_error")["layout"]
    bounds = []
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(epsilon).run())
        ((x,), _) = trace(chart(app, "total_error"), "Best bound")
        bounds.append(x)
        layout = chart(app, "total_error")["layout"]
        assert [layout[a]["range"] for a in ("xaxis", "yaxis")] == [
            before[a]["range"] for a in ("xaxis", "yaxis")
        ]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]


@pytest.mark.long
def test_choices_are_kept_over_pages_and_delta_over_noises():
    app = choose(open_app(TITLE), "total.mechanism", "Gaussian")
    enter(app, "total.delta", 1e-8)
    choose(app, "total.mechanism", "Laplace")
    check(app.run())
    choose(app, "total.objective", "RMSE")
    app = go(go(app, "Home"), TITLE)
    assert app.segmented_control(key="total.objective").value is Measure.RMSE
    choose(app, "total.mechanism", "Gaussian")
    assert app.number_input(key="total.delta").value == 1e-8


def test_an_own_bound_is_compared():
    app = enter(open_app(TITLE), "total.own_bound", 200.0)
    problem = problem_of(ROWS, EPSILON, is_integer=True)
    ((x,), (y,)) = trace(chart(app, "total_error"), "Your own bound")
    assert (x, y) == (200.0, pytest.approx(error_of(problem, 200.0), rel=2e-3))
    assert "Your own bound, 200 rows" in shown_texts(app)


@pytest.mark.parametrize(("key", "name"), [(keys.EPSILON, "ε"), ("total.delta", "δ")])
def test_an_empty_field_gives_a_sentence(key, name):
    app = choose(open_app(TITLE), "total.mechanism", "Gaussian")
    enter(app, key, None)
    assert f"{name} is empty. Enter a number" in errors(app)


def test_what_cannot_be_released_is_said():
    app = open_app(TITLE, link="1", data="shop-events", epsilon="0.0001", objective="bound")
    texts = shown_texts(app)
    assert "Nothing useful can be released at ε = 0.0001" in texts
    assert "it takes at least 10,000 users" in texts
    assert "Best bound" not in [t["name"] for t in chart(app, "total_error")["data"]]
    enter(choose(app, "total.objective", Measure.ABSOLUTE), keys.EPSILON, 0.005)
    assert "Of little use" in shown_texts(app)


def test_the_better_noise_is_said():
    texts = shown_texts(open_tab(open_app(TITLE), "total", "Measures and noise"))
    laplace, gaussian = (
        total.find_best_choice(
            problem_of(ROWS, EPSILON, noise, delta, is_integer=True)
        ).errors.absolute_errors
        for noise, delta in ((NoiseKind.LAPLACE, None), (NoiseKind.GAUSSIAN, 1e-6))
    )
    assert f"The best error is {format_number(laplace)} rows with Laplace noise" in texts
    assert f"{format_number(gaussian)} rows with Gaussian noise" in texts
    assert "δ = 0.000001" in texts


def test_data_without_values_say_so():
    app = choose(open_app(TITLE), "total.summed", "Values")
    assert "no column of values" in shown_texts(app)
    assert not list_metrics(app)
    assert_answer(choose(app, "total.summed", "Rows"), problem_of(ROWS, EPSILON, is_integer=True))


def test_a_sum_of_zeros_says_so():
    empty_values = Values([0, 1, 1], [0.0, 0.0, 0.0], "amount")
    few = ContributionHistogram.from_counts([1, 2])
    zeros = Dataset("zeros", "", Disclosure.PRIVATE, few, values=empty_values)
    app = choose(check(use_dataset(open_app(TITLE), zeros).run()), "total.summed", "Values")
    assert "All totals are 0" in shown_texts(app)


@pytest.mark.thinned
@pytest.mark.parametrize(
    "histogram",
    [
        ContributionHistogram([1], [1]),
        ContributionHistogram([7], [20]),
        ContributionHistogram([1, 10**12], [10**12, 1]),
        ContributionHistogram(np.arange(1, 1001), np.ones(1000)),
    ],
)
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e3])
def test_figures_hold_numbers_on_any_data(histogram, epsilon):
    data = Dataset("any", "", Disclosure.PUBLIC, histogram)
    found = build_answer(data, TotalParameters(epsilon, own_bound=3.0))
    assert found.headline
    assert len(found.plots) == 3
    for plot in found.plots.values():
        figure = plotly_figures.draw_plot(plot())
        for drawn in figure.data:
            if len(drawn.x) and drawn.x[0] is not None:
                assert 1 <= len(drawn.x) == len(drawn.y) <= 500
                heights = np.asarray(drawn.y, dtype=float)
                assert np.any(heights > 0) or drawn.name == "Bias"  # Which is 0 where all have equally much.
                assert np.all((heights > 0) & (heights < np.inf) | np.isnan(heights))
        for axis in (figure.layout.xaxis, figure.layout.yaxis):
            assert axis.range[0] < axis.range[1]


def test_the_largest_ratio_of_the_bound_to_the_truth():
    # Laplace: (1 + r) / (r + e^-r) is stationary where (r + 2) e^-r = 1.
    r = optimize.brentq(lambda x: (x + 2.0) * np.exp(-x) - 1.0, 0.5, 3.0)
    assert LARGEST_RATIO_BY_NOISE[NoiseKind.LAPLACE] == pytest.approx((1 + r) / (r + np.exp(-r)), abs=5e-4)
    grid = np.linspace(0.01, 6.0, 6000)
    gaussian = (grid + np.sqrt(2 / np.pi)) / stats.foldnorm.mean(grid)
    assert LARGEST_RATIO_BY_NOISE[NoiseKind.GAUSSIAN] == pytest.approx(gaussian.max(), abs=5e-4)


# --- totals of both signs -----------------------------------------------------------------------------------


def test_totals_of_both_signs_are_explained_and_clipping_is_offered():
    app = choose(check(use_dataset(open_app(TITLE), SIGNED).run()), "total.summed", "Values")
    texts = shown_texts(app)
    assert "2 of 5 users have a negative total, so both sides need a bound." in texts
    totals = [-4.0, 9.0, 30.0, -2.0, 4.0]
    problem = SignedProblem.from_totals(totals, EPSILON)
    t = problem.propose_bound()
    assert t == 30.0  # One digit: nothing is rounded.
    clipped = problem.clip(-t, t)
    shown = read_number(app, "total_card")
    assert (shown["value"], shown["copied"]) == ("[−30, 30]", "-30, 30")
    assert shown["error"][:2] == ["Expected error", format_number(float(clipped.errors.absolute_errors))]
    # A bound of one's own, on either side.
    enter(app, "total.own_bound", 8.0)
    ((x,), (y,)) = trace(chart(app, "total_signed"), "Your own bound, on either side")
    assert (x, y) == (8.0, pytest.approx(problem.clip(-8.0, 8.0).errors.absolute_errors))
    assert "Your own bound, [−8, 8]" in shown_texts(app)
    # The proposal is read off private data: no link holds it.
    assert "lower" not in read_shown_link(app)
    enter(app, "total.lower", -5.0)
    assert "L and U go together" in errors(app)
    enter(app, "total.upper", 20.0)
    ((x,), (y,)) = trace(chart(app, "total_signed"), "Your [L, U], at max(|L|, |U|)")
    own = problem.clip(-5.0, 20.0)
    assert (x, y) == (20.0, pytest.approx(own.errors.absolute_errors))
    assert "lower=-5" in read_shown_link(app)


@pytest.mark.long
def test_four_strategies_are_drawn_and_simulated():
    app = open_tab(open_app(TITLE), "total", "Four ways to choose a bound")
    enter(app, "total.runs", 400)
    enter(app, "total.own_share", 0.9)
    problem = problem_of(ROWS, EPSILON, is_integer=True)
    figure = chart(app, "total_strategies")
    t = ROWS.find_quantile(0.9)
    epsilons, curve_values = trace(figure, f"90 % quantile (bound {format_number(t)})")
    for i in range(0, epsilons.size, 10):
        one = problem_of(ROWS, float(epsilons[i]), is_integer=True)
        assert curve_values[i] == pytest.approx(error_of(one, t) / ROWS.total, rel=2e-3)
    assert not [x for x in figure["data"] if "simulated" in x["name"]]
    check(app.button(key="total_job_start").click().run())
    finish(app, "total.job")
    figure = chart(app, "total_strategies")
    points = [x for x in figure["data"] if "simulated" in x["name"]]
    assert len(points) == 4
    expected = total_strategies.compute_strategy_curves(
        problem, compared.choose_epsilons(ROWS, 2), (*PAPER_STRATEGIES, Strategy(0.9))
    )
    result = app.session_state["total.job"].result
    off = (result.relative_errors - expected.relative_errors) / result.standard_errors
    # 44 points; P(one beyond 5 standard errors) < 3e-5 for normal means, some more for the few runs.
    assert np.abs(off).max() < 5.0
    assert "400 runs per point" in shown_texts(app)
    assert standard.SIMULATION_SENTENCE in shown_texts(app)
    enter(app, "total.seed", 5)
    assert "These results are for earlier settings" in shown_texts(app)


@pytest.mark.long
def test_a_stopped_simulation_is_shown_as_far_as_it_went():
    app = open_tab(open_app(TITLE), "total", "Four ways to choose a bound")
    with pytest.MonkeyPatch.context() as patch:  # No fixture: what the app caches stays as it is.
        work_waits_for_stop(patch)
        check(app.button(key="total_job_start").click().run())
        job: jobs.Job = app.session_state["total.job"]
        wait_until(lambda: job.progress_share > 0.0)
        assert job.is_running
        job.stop()
        finish(app, "total.job")
    assert job.result.is_cancelled
    assert np.isfinite(job.result.relative_errors).any()
    assert not np.isfinite(job.result.relative_errors).all()
    assert "Stopped early" in shown_texts(app)
    assert "Best bound, simulated" in {trace["name"] for trace in chart(app, "total_strategies")["data"]}


def test_files_are_offered_under_names_that_say_private():
    private = dataclasses.replace(SHOP, disclosure=Disclosure.PRIVATE)
    app = open_tab(check(use_dataset(open_app(TITLE), private).run()), "total", "Downloads")
    assert "publishing it reveals something about them" in shown_texts(app)
    assert app.get_by_key("total_choice_file")
