"""Linear regression: what is drawn and said is what `dpcore.regression` answers; draws and stopped work."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import opendp.prelude as opendp
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.checks import InvalidInput
from dpcore.regression import draw, sample_limiting, study, working_set
from dpcore.regression.answer import plots, solution
from dpcore.regression.estimate import (
    ErrorTarget,
    compute_squared_prediction_error,
    estimate_residual_variance,
)
from dpcore.regression.parameters import RegressionGenerator, RegressionParameters, SizeLaw, round_outwards
from dpcore.regression.problem import build_unit_problem as check_table
from pages.shared.base import keys
from pages.shared.fields import jobs
from tests.dpcore.regression.bank import estimate_caps
from tests.pages.driving import (
    begin,
    chart,
    check,
    errors,
    finish,
    go,
    list_metrics,
    open_app,
    shown_texts,
    trace,
    wait_until,
)
from tests.pages.regression.conftest import (
    LINK,
    TITLE,
    assert_answer,
    enter_variance,
    open_tab,
    open_tab_once,
    read_heights,
    show_coefficients,
    wait_for_work,
)

GENERATOR = RegressionGenerator(300, 2, 1, exponent=1.8, seed=3)
DATA, TRUTH = GENERATOR.build_dataset()
TABS = (
    "Behind the answer",
    "Release",
    "Weights",
    "Against ε",
    "Figures 1 and 2",
    "Search",
    "Downloads",
    "How this is computed",
)


def open_small(**changes: str) -> AppTest:
    return wait_for_work(begin(TITLE, **(LINK | changes)))


def test_a_link_from_before_the_choice_of_the_law_keeps_its_data() -> None:
    app = begin(TITLE, **{name: text for name, text in LINK.items() if name != "size_law"})
    assert app.session_state["regression.size_law"] is SizeLaw.LONG_TAIL


def make_problem(
    epsilon: float = 1.0, variance: float | None = None, lower: float = -300.0, upper: float = 300.0
):
    parameters = RegressionParameters(epsilon, lower, upper)
    if variance is None:
        variance = estimate_residual_variance(DATA.table.features, parameters.clip_labels(DATA.table))
    problem = check_table(DATA).with_settings(epsilon, parameters.value_bound, variance)
    return problem, parameters.clip_labels(DATA.table)


def test_epsilon_and_variance_move_the_answer():
    app = open_small()
    assert_answer(app, *make_problem())
    check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(5.0).run())
    assert_answer(wait_for_work(app), *make_problem(5.0))
    enter_variance(app, 100.0)
    assert_answer(app, *make_problem(5.0, 100.0))


def test_bounds_clip_labels_and_say_so():
    app = open_small(lower="-50", upper="50")
    assert_answer(app, *make_problem(lower=-50.0, upper=50.0))
    clipped = np.count_nonzero(np.abs(DATA.table.labels) > 50.0)
    assert f"{clipped} labels" in shown_texts(app)
    assert "are clipped" in errors(app)


def test_predictions_are_drawn_first():
    app = open_small()
    problem, labels = make_problem()
    caps = estimate_caps(problem, labels)
    error = compute_squared_prediction_error(problem, working_set.solve(problem), labels)
    assert read_heights(chart(app, "regression_errors_predictions"), "Best weights") == [
        pytest.approx(math.sqrt(error), rel=1e-4)
    ]
    open_tab_once(app, "Against the bound")
    figure = chart(app, "regression_predictions")
    assert trace(figure, "Bounded rows, total")[1] == pytest.approx(np.sqrt(caps.squared_prediction_errors))
    ((x,), (y,)) = trace(figure, "Best bound")
    at_best = caps.find_best_index(ErrorTarget.PREDICTIONS)
    assert (x, y) == (caps.caps[at_best], pytest.approx(math.sqrt(caps.squared_prediction_errors[at_best])))
    assert trace(figure, "Best weights (no bound)")[1] == pytest.approx(math.sqrt(error), rel=1e-4)
    fit, noise = (
        trace(figure, name)[1] for name in ("Bounded rows, error before noise", "Bounded rows, privacy noise")
    )
    assert fit**2 + noise**2 == pytest.approx(caps.squared_prediction_errors)


@pytest.fixture(scope="module")
def answered_page() -> AppTest:
    """One session whose answer no test changes; what its tabs have found stays."""
    return open_small()


@pytest.mark.few(4)
@pytest.mark.parametrize("tab", TABS)
def test_every_tab_is_drawn(answered_page, tab):
    assert not errors(open_tab(answered_page, tab))


@pytest.mark.long
def test_new_data_bring_new_bounds_unless_they_were_entered():
    app = wait_for_work(open_app(TITLE))
    first = app.session_state["regression.lower"]
    seed = "regression.label_noise"
    wait_for_work(check(app.number_input(key=seed).set_value(2000.0).run()))
    proposed = app.session_state["regression.lower"]
    assert proposed < first
    wait_for_work(check(app.number_input(key="regression.lower").set_value(-17.0).run()))
    wait_for_work(check(app.number_input(key=seed).set_value(10.0).run()))
    assert app.session_state["regression.lower"] == -17.0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-451.2, 523.0, (-460.0, 530.0)),
        (1.0, 10.0, (1.0, 10.0)),
        (0.0, 0.0, (0.0, 1.0)),
        (3.0, 3.0, (3.0, 3.1)),
    ],
)
def test_proposed_bounds_contain_the_labels(low, high, expected):
    assert round_outwards(low, high) == pytest.approx(expected)


@pytest.mark.long
def test_other_pages_leave_everything_as_it_was():
    app = open_small()
    go(app, "Mean")
    app = wait_for_work(go(app, TITLE))
    assert_answer(app, *make_problem())


def read_released(app: AppTest) -> np.ndarray:
    (table,) = [frame.value for frame in app.dataframe if "Coefficient" in frame.value.columns]
    return table["Released"].to_numpy()


@pytest.mark.long
def test_draws_are_made_on_request_only_counted_and_kept():
    app = open_tab(open_small(), "Release")
    assert "Released" not in app.dataframe[0].value.columns
    check(app.button(key="regression_draw").click().run())
    first = read_released(app)
    assert "Spent on these data: ε = 1 in 1 release" in shown_texts(app)
    wait_for_work(app)
    go(app, "Mean")
    open_tab(go(app, TITLE), "Release")
    assert read_released(app).tolist() == first.tolist()
    wait_for_work(check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(2.0).run()))
    assert read_released(app).tolist() == first.tolist()
    assert "settings have changed" in shown_texts(app)
    check(app.button(key="regression_draw").click().run())
    assert "Spent on these data: ε = 3 in 2 releases" in shown_texts(app)
    assert read_released(app).tolist() != first.tolist()
    # Other labels have an account of their own.
    wait_for_work(check(app.number_input(key="regression.seed").set_value(9).run()))
    assert "Spent on these data" not in shown_texts(app)


def test_a_draw_that_ends_in_an_error_is_in_the_account(monkeypatch):
    app = open_tab(open_small(), "Release")

    def fails(self, argument):
        raise InvalidInput(["the sampler broke off"])

    with monkeypatch.context() as patched:
        patched.setattr(opendp.Measurement, "__call__", fails)
        check(app.button(key="regression_draw").click().run())
    assert "The sampler broke off" in errors(app)
    assert "1 release of these labels that ended in an error" in shown_texts(app)
    check(app.button(key="regression_draw").click().run())
    assert "Spent on these data: ε = 2 in 2 releases" in shown_texts(app)
    assert "ended in an error" in shown_texts(app)


def test_intervals_are_those_that_the_core_proves_to_cover():
    # tests/dpcore/regression/test_regression_draw.py counts how often they cover.
    app = open_tab(open_small(epsilon="3", variance_source="entered", residual_variance="400"), "Release")
    found, problem = check(app.button(key="regression_draw").click().run()), make_problem(3.0, 400.0)[0]
    table = found.dataframe[0].value
    assert table["True (generated)"].tolist() == TRUTH.tolist()
    half_widths = draw.compute_half_widths(problem, working_set.solve(problem))
    released_values = table["Released"].to_numpy()
    assert table["95 % from"].to_numpy() == pytest.approx(released_values - half_widths, rel=1e-5)
    assert table["95 % to"].to_numpy() == pytest.approx(released_values + half_widths, rel=1e-5)
    # Six half widths hold all but 20^-6 of Laplace noise, and more of the rest: no chance of 1e-6 to fail.
    assert np.all(np.abs(released_values - TRUTH) <= 6.0 * half_widths)


@pytest.mark.long
def test_the_curve_against_epsilon_is_that_of_the_core(answered_page):
    app = show_coefficients(open_tab(answered_page, "Against ε"))
    problem, labels = make_problem()
    draws = sample_limiting.try_caps(problem, labels)
    sweep = study.sweep_epsilon(problem, draws, labels)
    figure = chart(app, "regression_epsilon")
    for name, method in (("Best weights", "ours"), ("Best bound", "best_cap"), ("No bound", "no_cap")):
        x, y = trace(figure, name)
        assert x.tolist() == list(study.SWEPT_EPSILONS)
        assert y == pytest.approx(np.sqrt(sweep[f"{method}_coefficients"]), rel=1e-5)


@pytest.mark.long
def test_a_general_solver_finds_no_smaller_variance(monkeypatch):
    app = open_tab(open_small(), "Search")
    finish(check(app.button(key="regression_cvxpy_start").click().run()), "regression.cvxpy")
    both = app.dataframe[-1].value.set_index("Solver")
    our_solution = working_set.solve(make_problem()[0])
    assert both.loc["Sweet Spot", "Total variance"] == pytest.approx(our_solution.variance, rel=1e-6)
    assert both.loc["CVXPY with Clarabel", "Total variance"] == pytest.approx(our_solution.variance, rel=1e-3)
    assert both["No answer is below"].max() <= our_solution.variance * (1.0 + 1e-9)
    assert "times as long as Sweet Spot" in shown_texts(app)
    monkeypatch.setattr(working_set, "MAX_CVXPY_ENTRIES", 10)
    check(app.run())
    assert "offered up to 10" in shown_texts(app)


@pytest.mark.long
def test_a_stopped_search_is_a_result(monkeypatch: pytest.MonkeyPatch):
    real = working_set.solve

    def stopped(problem, **options):
        return real(problem, **(options | {"should_stop": lambda: True}))

    monkeypatch.setattr(working_set, "solve", stopped)
    app = open_small()
    texts = shown_texts(app)
    assert "Stopped: the best so far" in texts
    assert "Not yet the best" in texts
    monkeypatch.undo()
    app.button(key="regression_again").click().run()
    wait_for_work(app)
    assert_answer(app, *make_problem())


def hold_searches(monkeypatch: pytest.MonkeyPatch, tells_first: bool) -> None:
    """Hold every search until it is told to stop; it has told its steps and, where it does, its first answer."""
    real = working_set.solve
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(solution, "MAX_SECONDS_TO_WAIT", 5.0 if tells_first else 0.05)

    def slow(problem, *, should_stop=None, on_first=None, **options):
        found = real(problem, on_first=on_first if tells_first else None, **options)
        if tells_first:
            work_is_told.set()
        while not should_stop():
            time.sleep(0.01)
        return found

    work_is_told = threading.Event()
    monkeypatch.setattr(jobs.Job, "wait", lambda job, seconds: work_is_told.wait(seconds) and None)
    monkeypatch.setattr(working_set, "solve", slow)


@pytest.mark.long
def test_a_first_answer_is_shown_while_the_search_goes_on(monkeypatch: pytest.MonkeyPatch):
    best = math.sqrt(working_set.solve(make_problem()[0]).variance)
    with monkeypatch.context() as patched:
        hold_searches(patched, tells_first=True)
        app = open_app(TITLE, **LINK)
        assert "First answer, being refined" in app.get("progress")[0].proto.text
        (drawn,) = read_heights(chart(show_coefficients(app), "regression_errors"), "Best weights")
        assert best < drawn <= best / math.sqrt(1.0 - working_set.MAX_FIRST_GAP)
        open_tab_once(app, "Release")
        assert app.button(key="regression_draw").disabled
        open_tab_once(app, "Search")
        gaps = trace(chart(app, "regression_gap"), "Gap")[1]
        assert np.all(np.diff(gaps) <= 0.0)
        # They take turns, and Stop ends the trial of caps, too.
        wait_until(lambda: not app.session_state["regression.caps"].is_running)
        app.button(key="regression.solve_stop").click().run()
    wait_for_work(app)
    assert "Proved best" in shown_texts(app)
    assert_answer(app, *make_problem())


@pytest.mark.long
def test_the_answer_before_stays_until_there_is_a_new_one(monkeypatch: pytest.MonkeyPatch):
    app = open_small()
    before = chart(app, "regression_errors_predictions")["data"]
    with monkeypatch.context() as patched:
        hold_searches(patched, tells_first=False)
        check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(2.0).run())
        assert chart(app, "regression_errors_predictions")["data"] == before
        assert "Computing the answer for the new settings" in app.get("progress")[0].proto.text
        assert app.session_state[keys.PIN_BUILDER]().epsilon == make_problem()[0].epsilon != 2.0
        app.button(key="regression.solve_stop").click().run()
    wait_for_work(app)
    assert_answer(app, *make_problem(2.0))


@pytest.mark.long
def test_without_caps_the_page_still_answers(monkeypatch: pytest.MonkeyPatch):
    real = sample_limiting.try_caps
    monkeypatch.setattr(
        sample_limiting,
        "try_caps",
        lambda *arguments, **options: real(*arguments, **(options | {"should_stop": lambda: True})),
    )
    app = open_small()
    assert len(list_metrics(app)) == 5
    assert "trial of bounds was stopped" in shown_texts(app)
    for tab in TABS:
        open_tab_once(app, tab)


def test_no_trace_has_more_than_500_points():
    rng = np.random.default_rng(0)
    sizes = np.unique(rng.integers(1, 10**6, 3000))
    weights = rng.random(sizes.size)
    columns = plots.tabulate_weights(sizes, {"ours": weights, "no bound": weights})
    assert len(columns["users"]) <= 500
    assert columns["users"].sum() == sizes.size
    # Mean weight times users adds up to all weights.
    assert columns["users"] @ columns["ours_user_weight"] == pytest.approx(weights.sum())
