"""Bias curves over τ₀: what is drawn and said is what `dpcore` answers; bad parameters get sentences."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.answer import Answer, Curve
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_count, format_number
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.learning import LearningParameters, PrivacyForm, optimal_cap, population
from dpcore.learning import answer as learning_answer
from dpcore.learning.answer import population as learning_population
from dpcore.learning.answer import solution
from dpcore.learning.answer.solution import LearningSolution
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.parameters import CapUnit
from dpcore.learning.participation import PowerLaw, compute_expectations, simulate
from dpcore.report.plotly_figures import draw_plot
from pages.learning.question import QUESTION
from pages.shared.base import keys
from pages.shared.fields import jobs
from pages.shared.fields.setting import DEFAULT_EPSILON
from pages.shared.screen import layout
from pages.shared.session import session
from tests.pages.driving import (
    chart,
    check,
    errors,
    finish,
    go,
    list_metrics,
    open_app,
    read_answer,
    read_shown_link,
    shown_texts,
    trace,
)

PAGE = "Bias curves over τ₀"
SAMPLE = samples.load(session.DEFAULT_SAMPLE)
COMMITS = samples.load("requests-commits")
TABS = (
    layout.BEHIND,
    "All bounds on the bias",
    "Figure 2",
    "Figure 3",
    "Cost of privacy",
    layout.DOWNLOADS,
    layout.COMPUTED,
)


@pytest.fixture(scope="module")
def opened_page() -> AppTest:
    """One session for the module."""
    return open_app(PAGE)


@pytest.fixture
def app(opened_page: AppTest) -> AppTest:
    """The module's session on the default sample, with nothing entered."""
    opened_page.session_state[keys.LOADED_DATA] = replace(
        opened_page.session_state[keys.LOADED_DATA], dataset=SAMPLE
    )
    names = {name: QUESTION.get_initial_value(name) for name in QUESTION.fields}
    return open_tab(enter_fields(opened_page, epsilon=DEFAULT_EPSILON, **names), layout.BEHIND)


def open_tab(app: AppTest, tab: str) -> AppTest:
    if app.session_state["learning.tabs"] != tab:
        app.session_state["learning.tabs"] = tab
        app.run()
    return check(app.run())


def enter_fields(app: AppTest, **values: object) -> AppTest:
    """Set fields by name, and run."""
    for name, value in values.items():
        app.session_state["epsilon" if name == "epsilon" else f"learning.{name}"] = value
    return check(app.run())


def equals_where_drawable(drawn: object, computed: np.ndarray) -> bool:
    """Equal where drawable; a gap where a log axis has no place."""
    drawn = np.asarray(drawn)
    there = np.isfinite(computed) & (computed > 0)
    return bool(np.all(np.isnan(drawn[~there])) and np.allclose(drawn[there], computed[there], rtol=1e-12))


def build_learning_answer(parameters: LearningParameters, dataset=SAMPLE) -> tuple[LearningSolution, Answer]:
    answer = learning_answer.build_answer(dataset, parameters)
    return answer.solution, answer


def assert_drawn(get, problem: optimal_cap.BiasProblem) -> None:
    """A figure, whose traces ``get`` finds by name, shows the best cap of this problem and its parts."""
    best = optimal_cap.find_best_cap(problem)
    (x,), (y,) = get("Best bound")
    assert (x, y) == (best.max_contributions, pytest.approx(best.total))
    caps, total = get("Excess risk")
    # The curve is drawn where whole caps are, and no cap drawn is better than the best.
    assert np.allclose(caps, np.rint(caps))
    parts = optimal_cap.compute_error_parts(problem, np.asarray(caps) / problem.histogram.num_rows)
    assert equals_where_drawable(total, parts.total)
    assert np.nanmin(total) >= best.total * (1 - 1e-6)
    for name, part in (
        ("Bias", parts.twice_bias),
        ("Sampling", parts.finite_sample),
        ("Noise", parts.privacy),
    ):
        assert equals_where_drawable(get(name)[1], part)


def assert_answer(app: AppTest, problem: optimal_cap.BiasProblem) -> None:
    """The page shows the answer of this problem, in the figure and behind the answer."""
    assert_drawn(lambda name: trace(chart(app, "learning_bound"), name), problem)
    best = optimal_cap.find_best_cap(problem)
    assert [metric.value for metric in list_metrics(app)] == [
        format_count(best.max_contributions, "row"),
        *(
            format_number(item)
            for item in (best.total, best.fraction, best.twice_bias, best.finite_sample, best.privacy)
        ),
    ]
    assert f"Keep at most {format_count(best.max_contributions, 'row')} per user." in shown_texts(app)


@pytest.mark.parametrize("name", ["online-retail-lines", "shop-events", "requests-commits"])
def test_the_page_opens_where_a_cap_matters(name):
    histogram = samples.load(name).histogram
    best = optimal_cap.find_best_cap(LearningParameters(DEFAULT_EPSILON).build_problem(histogram))
    assert histogram.min_size < best.max_contributions < histogram.max_size
    assert best.users_capped > 0


@pytest.mark.long
def test_fields_and_epsilon_make_the_question_and_leave_the_axes(app):
    assert_answer(app, LearningParameters(DEFAULT_EPSILON).build_problem(SAMPLE.histogram))
    assert not errors(app)
    before = chart(app, "learning_bound")["layout"]
    caps = []
    for epsilon in (0.01, 10.0):
        check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(epsilon).run())
        problem = LearningParameters(epsilon).build_problem(SAMPLE.histogram)
        assert_answer(app, problem)
        caps.append(optimal_cap.find_best_cap(problem).cap)
        layout_now = chart(app, "learning_bound")["layout"]
        for axis in ("xaxis", "yaxis"):
            assert layout_now[axis]["range"] == before[axis]["range"]
    assert caps[0] < caps[1]
    app.number_input(key="learning.vc_dimension").set_value(3)
    app.number_input(key="learning.failure_probability").set_value(0.01)
    app.number_input(key="learning.privacy_constant").set_value(40.0)
    app.number_input(key="learning.finite_sample_constant").set_value(0.5)
    app.selectbox(key="learning.bias").set_value(BiasTerm.CUT_SHARE)
    check(app.segmented_control(key="learning.privacy_form").set_value(PrivacyForm.OWN).run())
    assert app.slider(key="learning.loss_variance").disabled
    check(app.selectbox(key="learning.bias").set_value(BiasTerm.CHI_SQUARED).run())
    app.slider(key="learning.loss_variance").set_value(0.05)
    check(app.number_input(key="learning.privacy_power").set_value(1.25).run())
    assert not app.slider(key="learning.loss_variance").disabled
    expected = LearningParameters(
        10.0,
        bias=BiasTerm.CHI_SQUARED,
        loss_variance=0.05,
        vc_dimension=3,
        failure_probability=0.01,
        privacy_form=PrivacyForm.OWN,
        privacy_constant=40.0,
        privacy_power=1.25,
        finite_sample_constant=0.5,
    )
    assert app.session_state[keys.PAGE_PARAMETERS] == expected
    assert_answer(app, expected.build_problem(SAMPLE.histogram))
    # They outlive a visit elsewhere.
    go(go(app, "Mean"), PAGE)
    assert app.session_state[keys.PAGE_PARAMETERS] == expected


@pytest.mark.parametrize("term", BiasTerm)
def test_every_bound_on_the_bias_is_answered_and_says_what_it_needs(term):
    parameters = LearningParameters(0.5, bias=term, loss_variance=0.03)
    view, one = build_learning_answer(parameters, COMMITS)
    figure = draw_plot(one.plots["learning-bound"]())

    def traced(name):
        (trace,) = [one for one in figure.data if one.name == name]
        return trace.x, trace.y

    assert_drawn(traced, parameters.build_problem(COMMITS.histogram))
    assert one.plots["learning-bound"]().x.contains(view.best_choice.max_contributions)
    formulae = solution.describe_formulae(parameters)
    assert f"It needs: {term.needs_text[:1].lower()}{term.needs_text[1:]}." in formulae
    assert ("Var(H) is not used" in formulae) is not term.needs_variance


def test_a_bound_above_one_is_said_to_promise_nothing():
    for epsilon, above in ((0.1, True), (100.0, False)):
        view, one = build_learning_answer(LearningParameters(epsilon), COMMITS)
        assert (view.best_choice.total > 1) is above
        assert ("An excess risk above 1 promises nothing" in one.detail) is above
        plot = one.plots["learning-bound"]()
        assert sum(isinstance(item, Curve) and not plot.is_hidden(item.name) for item in plot.items) <= 3


def test_private_data_say_what_a_cap_leaks():
    _, public = build_learning_answer(LearningParameters(1.0))
    _, private = build_learning_answer(
        LearningParameters(1.0), replace(SAMPLE, disclosure=Disclosure.PRIVATE)
    )
    assert solution.LEAK_SENTENCE not in public.detail
    assert solution.LEAK_SENTENCE in private.detail
    assert private.disclosure is Disclosure.PRIVATE


@pytest.mark.parametrize("cap", [9, 50])
def test_an_own_bound_is_compared_and_marked(cap):
    shop = samples.load("shop-events")
    parameters = LearningParameters(0.1, own_bound=cap)
    view, one = build_learning_answer(parameters, shop)
    at_cap = optimal_cap.compute_error_parts(view.problem, cap / shop.histogram.num_rows)
    assert (
        f"excess risk at most {format_number(float(at_cap.total))} (bias {format_number(float(at_cap.twice_bias))}"
        in read_answer(one)
    )
    figure = draw_plot(one.plots["learning-bound"]())
    (marked,) = [trace for trace in figure.data if trace.name == "Your own bound"]
    assert (marked.x[0], marked.y[0]) == (cap, pytest.approx(float(at_cap.total)))


def test_an_own_bound_moves_only_its_marker(app, monkeypatch):
    check(app.run())  # Caches are empty where something is patched.
    monkeypatch.setattr(optimal_cap, "find_best_cap", None)
    check(app.number_input(key="learning.own_bound").set_value(9).run())
    assert trace(chart(app, "learning_bound"), "Your own bound")[0] == [9]
    assert "own_bound=9" in read_shown_link(app)
    check(app.number_input(key="learning.own_bound").set_value(None).run())
    assert "Your own bound" not in [t["name"] for t in chart(app, "learning_bound")["data"]]


def test_all_bounds_are_drawn_and_listed():
    parameters = LearningParameters(1.0, loss_variance=0.02, own_bound=2)
    view, one = build_learning_answer(parameters, COMMITS)
    problem, figure = view.problem, draw_plot(one.plots["learning-bound"]())
    drawn = {one.name: one for one in figure.data}
    caps = np.asarray(drawn["Bias"].x)
    # As propositions 1 and corollary 1 print them, from every single user.
    counts = np.repeat(problem.histogram.sizes, problem.histogram.users)
    n, kept = counts.sum(), np.array([np.minimum(counts, cap).sum() for cap in caps])
    for name, bias in {
        "Prop. 1: share kept": np.sqrt(np.log(n / kept) / 2),
        "Prop. 1: Var(H), share kept": np.sqrt(2 * 0.02 * n / kept),
        "Prop. 1: τ₀": np.sqrt(np.log(n / caps) / 2),
        "Prop. 1: Var(H), τ₀": np.sqrt(2 * 0.02 * n / caps),
        "Corollary 1": np.where(kept / n >= 0.25, np.sqrt(1 - kept / n), np.inf),
    }.items():
        shown = np.isfinite(bias) & (bias > 1e-6)
        assert np.allclose(drawn[name].y[shown], 2.0 * bias[shown], rtol=1e-6), name
        assert np.all(np.isnan(drawn[name].y[np.isinf(bias)])), name
    rows = solution.list_bias_bound_rows(view, learning_answer.find_choices_by_term(problem), 2)
    for term, row in zip(BiasTerm, rows, strict=True):
        best = optimal_cap.find_best_cap(replace(problem, bias=term))
        assert row["Bound"] == term.title
        assert row["Best bound under it"] == format_count(round(best.cap), "row")
        assert row["Its excess risk"] == format_number(best.total)
        own = 2.0 * float(optimal_cap.compute_bias_terms(problem, 2 / problem.histogram.num_rows)[term])
        expected = format_number(own) if math.isfinite(own) else "does not apply"
        assert row["Twice, at your own bound"] == expected
    assert "does not apply" in {row["Twice, at your own bound"] for row in rows}


def test_the_axis_is_in_tau_0_or_in_rows(app):
    axis = chart(app, "learning_bound")["layout"]["xaxis"]
    assert axis["title"]["text"].startswith("τ₀")
    counts = np.repeat(SAMPLE.histogram.sizes, SAMPLE.histogram.users)
    for rows, share in zip(axis["tickvals"], axis["ticktext"], strict=True):
        assert rows / counts.sum() == pytest.approx(float(share))
    enter_fields(app, cap_unit=CapUnit.ROWS)
    axis = chart(app, "learning_bound")["layout"]["xaxis"]
    assert "rows per user" in axis["title"]["text"]
    assert "tickvals" not in axis


@pytest.mark.long
def test_an_epsilon_is_named_from_which_on_the_sum_is_below_one(app):
    assert build_learning_answer(LearningParameters(1.0))[0].best_choice.total < 1.0
    view, one = build_learning_answer(LearningParameters(1.0), COMMITS)
    assert view.best_choice.total > 1.0
    epsilon = solution.find_least_epsilon(view)
    assert f"From ε = {format_number(epsilon)} on" in one.detail
    for other, is_below in ((epsilon, True), (0.9 * epsilon, False)):
        problem = replace(view.problem, epsilon=other)
        caps = np.arange(1, 1 + problem.histogram.max_size) / problem.histogram.num_rows
        assert bool(optimal_cap.compute_error_parts(problem, caps).total.min() < 1.0) is is_below
    enter_fields(app, epsilon=0.001)
    assert "promises nothing" in shown_texts(app)
    check(app.button(key="learning_epsilon_use").click().run())
    assert float(list_metrics(app)[1].value) < 1.0


def test_figure_2_is_the_mass_of_uncapped_users():
    columns = learning_population.list_uncapped_mass_columns(1.5)
    drawn = {trace.name: trace for trace in draw_plot(learning_population.plot_uncapped_mass(1.5)).data}
    tau_0, mass = drawn["α = 1.5, users who lose none"].x, drawn["α = 1.5, users who lose none"].y
    # By a direct sum: what is not with the users above tau_0.
    p = np.arange(1.0, 200_001.0) ** -2.5
    p /= PowerLaw(1.5).normaliser
    direct = np.array([1.0 - p[p > t].sum() for t in tau_0])
    assert np.allclose(mass, direct, atol=1e-9)
    assert np.array_equal(mass, columns["uncapped_mass"])
    tail = PowerLaw(1.5).compute_tail_mass(p.size)
    kept = drawn["α = 1.5, all rows kept"].y
    assert np.allclose(kept, [np.minimum(p, t).sum() + tail for t in tau_0], atol=1e-9)
    assert set(drawn) > {f"α = {a:g}" for a in learning_population.FAMILY_ALPHAS}


@pytest.mark.long
def test_figure_3_is_exact_and_the_simulation_lies_over_it(app):
    open_tab(app, "Figure 3")
    app.number_input(key="learning.population_rows").set_value(2000)
    app.number_input(key="learning.draws").set_value(40)
    check(app.number_input(key="learning.alpha").set_value(0.75).run())
    here = LearningParameters(DEFAULT_EPSILON, alpha=0.75, population_rows=2000).build_population_problem(
        2000
    )
    best = population.find_best_fraction(here)
    figure = chart(app, "learning_figure_3a")
    tau_0, total = trace(figure, "Sum")
    parts = population.compute_error_parts(here, tau_0)
    assert equals_where_drawable(total, parts.twice_bias + parts.privacy)
    assert np.all(parts.finite_sample == 0)
    ((x,), (y,)) = trace(figure, "Smallest")
    assert (x, y) == (pytest.approx(best.fraction), pytest.approx(best.total))
    users = trace(chart(app, "learning_figure_3b"), "Users who lose rows")[1]
    assert equals_where_drawable(users, compute_expectations(PowerLaw(0.75), 2000, tau_0).users_capped)
    assert "Simulated" not in [t["name"] for t in figure["data"]]
    check(app.button(key="learning_draws_job_start").click().run())
    finish(app, "learning.draws_job")
    x, y = trace(chart(app, "learning_figure_3b"), "Simulated")
    draws = simulate(PowerLaw(0.75), 2000, x, 40).users_capped
    expected = compute_expectations(PowerLaw(0.75), 2000, x).users_capped
    # Six standard errors, and the rarest events left out: a chance of less than 1e-6 to fail.
    often = expected > 1.0
    error = np.sqrt(expected[often] / 40)
    assert np.all(np.abs(y[often] - expected[often]) <= 6 * error)
    assert equals_where_drawable(y, draws.mean(axis=0))
    assert "40 samples drawn" in shown_texts(app)
    # Another population: the samples no longer fit.
    check(app.number_input(key="learning.alpha").set_value(1.0).run())
    assert "another α or n" in shown_texts(app)
    assert "Simulated" not in [t["name"] for t in chart(app, "learning_figure_3a")["data"]]
    usual = LearningParameters(DEFAULT_EPSILON)
    # For a cleared field of the population its default stands in.
    for name in ("alpha", "population_rows", "draws"):
        app.number_input(key=f"learning.{name}").set_value(None)
    check(app.run())
    for name in ("alpha", "population_rows", "draws"):
        used = f"is empty. Enter a number. Until then {format_number(getattr(usual, name))} is used"
        assert used in errors(app)
        assert app.number_input(key=f"learning.{name}").value is None
    assert trace(chart(app, "learning_bound"), "Best bound")[0].size == 1


@pytest.mark.long
def test_the_cost_of_privacy_flattens_above_zero_and_only_alike_users_escape(app):
    finish(open_tab(app, "Cost of privacy"), "learning.cost_job")
    rows, smallest = trace(chart(app, "learning_cost"), "Smallest sum: cost of privacy")
    assert list(rows) == [float(10**k) for k in range(2, 10)]
    best_fraction = population.find_best_fraction(
        LearningParameters(DEFAULT_EPSILON).build_population_problem(10**5)
    )
    assert smallest[3] == pytest.approx(best_fraction.total)
    assert np.all(np.diff(smallest) < 0)
    floor = trace(chart(app, "learning_cost"), "Floor, n → ∞")[1][0]
    assert floor > 0.1
    assert smallest[-1] == pytest.approx(floor, rel=1e-3)
    assert f"flattens at {format_number(floor)}" in shown_texts(app)
    finite = trace(chart(app, "learning_cost"), "Finite-sample term, no bound")[1]
    assert finite[-1] == pytest.approx(math.sqrt(10 * math.log(1e9 / 0.05) / 1e9))
    check(app.slider(key="learning.loss_variance").set_value(0.0).run())
    finish(app, "learning.cost_job")
    names = [t["name"] for t in chart(app, "learning_cost")["data"]]
    assert "Floor, n → ∞" not in names
    assert "its bias, twice" not in names
    assert "and on to 0" in shown_texts(app)
    # A search that was stopped is a result, and can be taken up again.
    usual_parameters = LearningParameters(DEFAULT_EPSILON)
    cost = population.find_cost_of_privacy(
        usual_parameters.build_population_problem(None), should_stop=lambda: True
    )
    assert not cost.best_choices
    job = jobs.Job(("", usual_parameters.cost_parameters))
    job.run(lambda progress, should_stop: cost)
    enter_fields(app, cost_job=job, loss_variance=usual_parameters.loss_variance)
    assert "Stopped: 0 of 8 values of n were done" in errors(app)
    check(app.button(key="learning_cost_job_again").click().run())
    finish(app, "learning.cost_job")
    assert "Stopped" not in errors(app)
    assert trace(chart(app, "learning_cost"), "Smallest sum: cost of privacy")[0].size == 8


@pytest.mark.long
def test_degenerate_data_are_answered_on_every_tab(app):
    for sizes, users in (([1], [1]), ([5], [3]), ([1], [10**12])):
        tiny = replace(SAMPLE, histogram=ContributionHistogram(sizes, users))
        app.session_state[keys.LOADED_DATA] = replace(app.session_state[keys.LOADED_DATA], dataset=tiny)
        for tab in TABS:
            app.session_state["learning.tabs"] = tab  # Run once: the next tab is the second run.
            assert not errors(check(app.run()))
        assert_answer(open_tab(app, layout.BEHIND), LearningParameters(1.0).build_problem(tiny.histogram))


HISTOGRAMS = {
    "one user": ContributionHistogram(sizes=[1], users=[1]),
    "one size": ContributionHistogram(sizes=[7], users=[20]),
    "widest": ContributionHistogram(sizes=[1, 10**12], users=[10**12, 1]),
    "1e6 sizes": ContributionHistogram(sizes=np.arange(1, 1_000_001), users=np.ones(1_000_000)),
    "sample": SAMPLE.histogram,
}


@pytest.mark.long_for("BiasTerm.TIGHTEST-1e6 sizes")
@pytest.mark.thinned
@pytest.mark.parametrize("name", HISTOGRAMS)
@pytest.mark.parametrize("term", [BiasTerm.TIGHTEST, BiasTerm.COROLLARY_1, BiasTerm.LOG_FRACTION])
def test_figures_are_small_named_and_fixed(name, term):
    layouts = []
    for epsilon in (0.01, 30.0):
        parameters = LearningParameters(epsilon, bias=term)
        _, one = build_learning_answer(
            replace(parameters, own_bound=3), replace(SAMPLE, histogram=HISTOGRAMS[name])
        )
        figures = [draw_plot(plot()) for plot in one.plots.values()]
        for figure in figures:
            for plot_trace in figure.data:
                assert 1 <= len(plot_trace.x) == len(plot_trace.y) <= 500
            for axis in (figure.layout.xaxis, figure.layout.yaxis):
                assert axis.title.text
                assert axis.range[0] < axis.range[1]
        layouts.append([(f.layout.xaxis.range, f.layout.yaxis.range) for f in figures])
        document = json.loads(one.write_json())
        assert document["answer"]["max_contributions"] == one.solution.best_choice.max_contributions
    assert layouts[0] == layouts[1]
