"""Weights vs. caps: each step draws and says what the core answers; long work ends in a result."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpcore import mean
from dpcore.answer import Answer
from dpcore.answer.selected_bound import mark_selected_bound
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import PERCENT, format_percent
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.gap_examples import answer as gap_answer
from dpcore.gap_examples.compare import compare
from dpcore.gap_examples.parameters import REGRESSION_G, GapParameters
from dpcore.gap_examples.regression import build_example_1, build_example_3
from dpcore.gap_examples.two_groups import (
    build_theorem_2_problem,
    build_two_group_problem,
    compute_integer_cap_limit,
    compute_supremum,
)
from pages.gap_examples.question import QUESTION
from pages.shared.base import keys
from pages.shared.fields import setting
from pages.shared.session import session
from pages.your_data import contents
from tests.dpcore.gap_examples.enumeration import build_instance, enumerate_sample_limiting
from tests.pages.driving import (
    chart,
    check,
    list_metrics,
    open_app,
    open_tab,
    read_number,
    read_shown_link,
    shown_texts,
    trace,
    use_dataset,
)

SAMPLE = samples.load(session.DEFAULT_SAMPLE)
TABS = (
    "Behind the answer",
    "Paper's example",
    "Two groups",
    "Any noise",
    "Regression",
    "Downloads",
    "How this is computed",
)
BEST = compute_supremum().ratio


def open_step(app: AppTest, tab: str) -> AppTest:
    """Open a step; run twice, since state of widgets that are not drawn vanishes on the second run only."""
    open_tab(app, "gap_examples", tab)
    return check(app.run())


def read_point(app: AppTest, key: str, name: str) -> tuple[float, float]:
    ((x,), (y,)) = trace(chart(app, key), name)
    return float(x), float(y)


def assert_data_answer(app: AppTest, problem: mean.MeanProblem) -> None:
    both = compare(problem)
    assert_claims_drawn(chart(app, "gap_data"), problem)
    (bound, bound_variance), (threshold, smallest_variance) = (
        read_point(app, "gap_data", name) for name in ("Best bound", "Best weights")
    )
    assert (bound, threshold) == (
        both.cap_choice.max_contributions,
        pytest.approx(both.smooth_choice.threshold),
    )
    assert bound_variance / smallest_variance == pytest.approx(both.ratio)
    assert list_metrics(app)[0].value == format_percent(both.ratio - 1.0, 3)
    assert list_metrics(app)[1].value == f"{format_percent(math.sqrt(both.ratio) - 1.0, 3)} more"


def assert_claims_drawn(figure: dict[str, Any], problem: mean.MeanProblem) -> None:
    """Compare both curves with lemma 2, on the weight of every single row, and with claim 2 as it is printed."""
    rows = np.repeat(problem.histogram.sizes, problem.histogram.users)
    sigma_squared, noise = problem.value_variance, problem.value_bound / problem.epsilon
    for name, is_smooth in (
        ("Smooth weights, v(h) (claim 1)", True),
        ("Bounded rows, v′(h) (claim 2)", False),
    ):
        bounds, variances = trace(figure, name)
        for h, variance in list(zip(bounds, variances, strict=True))[::20]:
            n_h = np.minimum(rows, h).sum()
            row_weights = np.minimum(rows, h) / rows / n_h  # One number a user: that of each of their rows.
            squares = (rows * row_weights**2).sum() if is_smooth else 1.0 / n_h
            assert variance == pytest.approx(sigma_squared * squares + 2.0 * (noise * h / n_h) ** 2)


def test_the_answer_follows_epsilon_and_variance_and_the_bound_axis_stays():
    app = open_app(QUESTION.title)
    assert_data_answer(app, mean.MeanProblem(SAMPLE.histogram, setting.DEFAULT_EPSILON, 1.0, 0.25))
    assert "For any data set the excess is at most 56.5" in shown_texts(app)
    assert "at most 4" in shown_texts(app)
    number = read_number(app, "gap_card")
    assert number["copied"] == number["value"] == f"19.9{PERCENT}"
    before = chart(app, "gap_data")["layout"]
    check(app.segmented_control(key="gap_examples.variance_source").set_value("Entered").run())
    check(app.number_input(key="gap_examples.value_variance").set_value(0.02).run())
    for epsilon in (0.001, 0.1, 10.0):
        check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(epsilon).run())
        assert_data_answer(app, mean.MeanProblem(SAMPLE.histogram, epsilon, 1.0, 0.02))
    layout = chart(app, "gap_data")["layout"]
    assert layout["xaxis"]["range"] == before["xaxis"]["range"]


def build_gap_answer(histogram: ContributionHistogram, variance: float = 0.25) -> Answer:
    """The answer on these data, with no page."""
    parameters = GapParameters(1.0, variance_source=mean.VarianceSource.ENTERED, value_variance=variance)
    return gap_answer.build_answer(dataclasses.replace(SAMPLE, histogram=histogram), parameters)


def test_where_nothing_can_be_gained_a_cap_is_recommended_and_why_is_said():
    for histogram, variance, why in (
        (SAMPLE.histogram, 0.0, "without sampling error"),
        (ContributionHistogram([7], [10]), 0.25, "equally many rows"),
    ):
        answer = build_gap_answer(histogram, variance)
        assert answer.numbers[0].text == f"0{PERCENT}"
        assert answer.headline.startswith("Keep at most ")
        assert why in dict(answer.facts)["Here"]
    assert build_gap_answer(SAMPLE.histogram).headline.startswith("Use smooth weights")


def test_the_range_of_good_caps_is_what_it_says():
    view = build_gap_answer(SAMPLE.histogram).solution
    problem, (low, high) = view.comparison.problem, view.near_optimal_caps
    allowed = 1.05**2 * view.comparison.cap_choice.squared_error
    assert np.all(mean.compute_capped_variance(problem, np.arange(low, high + 1)) <= allowed)
    assert np.all(mean.compute_capped_variance(problem, np.array([low - 1, high + 1])) > allowed)


def test_private_data_are_labelled_and_stay_out_of_the_link():
    histogram = ContributionHistogram([1, 9, 77], [40, 23, 11])
    private = Dataset("h.csv", "a table of counts", Disclosure.PRIVATE, histogram)
    app = check(use_dataset(open_app(QUESTION.title), private).run())
    assert_data_answer(app, mean.MeanProblem(histogram, setting.DEFAULT_EPSILON, 1.0, 0.25))
    assert "do not publish" in shown_texts(app).lower()
    link = read_shown_link(app)
    assert "data=upload" in link
    assert "77" not in link


@pytest.mark.long
def test_theorem_2_is_drawn_and_calculated():
    app = open_step(open_app(QUESTION.title), "Paper's example")
    for g in (1, 2, 10, 100, 1000):
        check(app.select_slider(key="gap_examples.g").set_value(g).run())
        assert read_point(app, "gap_theorem_2", "Here") == (g, pytest.approx(3 * g / (2 * g + 1)))
        assert f"{3 * g / (2 * g + 1):.6f}" in shown_texts(app)
        assert_claims_drawn(chart(app, "gap_theorem_2_variances"), build_theorem_2_problem(g))
        assert read_point(app, "gap_theorem_2_variances", "Best weights")[1] == pytest.approx(
            (2 * g + 1) / (4 * g * g)
        )
        assert read_point(app, "gap_theorem_2_variances", "Best bound")[1] == pytest.approx(3 / (4 * g))


def test_two_groups_follow_their_sliders():
    app = open_step(open_app(QUESTION.title), "Two groups")
    assert read_point(app, "gap_two_groups", "Maximum, 25/16") == (0.4, pytest.approx(25 / 16))
    app.slider(key="gap_examples.light_users").set_value(40)
    app.select_slider(key="gap_examples.light_size").set_value(2)
    check(app.select_slider(key="gap_examples.heavy_size").set_value(500).run())
    problem = build_two_group_problem(40, 60, 1000, 2)
    assert read_point(app, "gap_two_groups", "Here") == (0.4, pytest.approx(compare(problem).ratio))
    p, limit = trace(chart(app, "gap_two_groups"), "R → ∞, s = 1")
    finite = trace(chart(app, "gap_two_groups"), "R = 500, s = 2")[1]
    assert limit == pytest.approx(compute_integer_cap_limit(p).ratios)
    assert np.all(finite <= BEST)
    assert "1.5625" in shown_texts(app)


@pytest.mark.long
def test_any_noise_stays_under_its_envelope():
    app = open_step(open_app(QUESTION.title), "Any noise")
    for noise in (0.05, 0.44, 1.5):
        check(app.slider(key="gap_examples.noise_per_user").set_value(noise).run())
        figure = chart(app, "gap_any_noise")
        curve = trace(figure, f"t = {noise:g}")[1]
        envelope = trace(figure, "Worst t for each p")[1]
        assert np.all(curve <= envelope + 1e-12)
        assert read_point(app, "gap_any_noise", "Worst p at this t")[1] <= BEST
    assert read_point(app, "gap_any_noise", f"Largest of all: {BEST:.5f}")[1] == pytest.approx(BEST)


@pytest.mark.long
def test_regression_shows_the_exact_ratio():
    app = open_step(open_app(QUESTION.title), "Regression")
    check(app.select_slider(key="gap_examples.regression_g").set_value(8).run())
    for example, make in ((1, build_example_1), (3, build_example_3)):
        choose_example(app, example)
        made = make(8)
        best = min(
            enumerate_sample_limiting(build_instance(example, 8), h).mean_variance for h in range(1, 9)
        )
        g, ratio = read_point(app, "gap_growth", "Here")
        assert (g, ratio) == (8, pytest.approx(best / made.feasible_variance))
        x, y = trace(chart(app, "gap_growth"), "To the paper's C")
        assert x.tolist() == list(REGRESSION_G)
        assert np.all(np.diff(y) > 0)
        _, to_best = trace(chart(app, "gap_growth"), "To the best C")
        assert np.all(to_best > y)
        assert to_best[x.tolist().index(8)] == pytest.approx(best / made.best_variance)
        assert "finds the same. Proved" in shown_texts(app)
    choose_example(app, 1)
    check(app.select_slider(key="gap_examples.regression_g").set_value(100).run())
    assert "too large to be solved" in shown_texts(app)
    assert "Proved" not in shown_texts(app)


def choose_example(app: AppTest, example: int) -> None:
    words = QUESTION.fields["example"].options[example]
    check(app.segmented_control(key="gap_examples.example").set_value(words).run())


@pytest.mark.long
def test_a_link_sets_every_step():
    parameters = GapParameters(0.7, g=50, light_users=12, regression_g=20, example=3)
    app = open_app(QUESTION.title, link="1", **to_fields(parameters))
    assert app.session_state[keys.PAGE_PARAMETERS] == parameters
    for tab in TABS:
        open_step(app, tab)
    assert app.session_state[keys.PAGE_PARAMETERS] == parameters


def test_data_of_an_upload_and_mean_lead_here_with_one_click():
    histogram = Dataset("h.csv", "a table of counts", Disclosure.PRIVATE, SAMPLE.histogram)
    assert QUESTION in [page for _, pages in contents.list_offers(histogram) for page in pages]
    app = open_app("Mean")
    assert QUESTION.url_path in [link.proto.page for link in app.main.get("page_link")]


def test_the_mark_of_a_private_choice_stands_on_the_curve_of_bounded_rows():
    plot = gap_answer.solution.plot_variances(compare(build_two_group_problem(40, 60, 50, 2)))
    marked = mark_selected_bound(plot, 20.0, "Bounded rows")
    assert marked.items[-1].x == 20.0
    kept = 40 * 2 + 60 * 20
    noise_ratio = 60 / 2  # q m / s in units of the variance, which is 1 here
    assert marked.items[-1].y == pytest.approx(1 / kept + noise_ratio * (20 / kept) ** 2, rel=1e-3)
