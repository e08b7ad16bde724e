"""Linear regression: what is drawn and said is what `dpcore.regression` answers; uploads, draws and stopped work."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import opendp.prelude as opendp
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_number
from dpcore.regression import draw, sample_limiting, study, working_set
from dpcore.regression.answer import plots, solution
from dpcore.regression.estimate import (
    ErrorTarget,
    compute_squared_prediction_error,
    estimate_residual_variance,
)
from dpcore.regression.parameters import (
    DataSource,
    RegressionGenerator,
    RegressionParameters,
    ResidualVarianceSource,
    SizeLaw,
    round_outwards,
)
from dpcore.regression.problem import build_unit_problem as check_table
from pages.regression.upload import UPLOAD
from pages.shared.base import keys
from pages.shared.fields import jobs
from pages.shared.server import access
from pages.shared.session import links
from pages.your_data import file_upload
from tests.dpcore.regression.bank import estimate_caps
from tests.pages.driving import (
    begin,
    chart,
    check,
    errors,
    finish,
    go,
    list_metrics,
    numbers,
    open_app,
    read_address,
    read_notices_below,
    read_shown_link,
    shown_texts,
    trace,
    wait_until,
)

TITLE = "Linear regression"
SMALL = {"num_rows": "300", "informative": "2", "uninformative": "1", "exponent": "1.8", "seed": "3"}
LINK = {"link": "1", "epsilon": "1", "lower": "-300", "upper": "300", "size_law": "rounded"} | SMALL
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
WORK = ("regression.solve", "regression.caps", "regression.over_epsilon")


def wait_for_work(app: AppTest) -> AppTest:
    """Wait for work beside the page, as the polling fragments do in a browser."""
    return finish(app, *WORK)


def open_small(**changes: str) -> AppTest:
    return wait_for_work(begin(TITLE, **(LINK | changes)))


def test_a_link_from_before_the_choice_of_the_law_keeps_its_data() -> None:
    app = begin(TITLE, **{name: text for name, text in LINK.items() if name != "size_law"})
    assert app.session_state["regression.size_law"] is SizeLaw.LONG_TAIL


def open_tab(app: AppTest, tab: str) -> AppTest:
    """Run twice: state of widgets that are not drawn vanishes on the second run only."""
    app.session_state["regression.tabs"] = tab
    check(app.run())
    return wait_for_work(app)


def open_tab_once(app: AppTest, tab: str) -> AppTest:
    """Open a tab while work goes on that would not end by itself."""
    app.session_state["regression.tabs"] = tab
    return check(app.run())


def make_problem(
    epsilon: float = 1.0, variance: float | None = None, lower: float = -300.0, upper: float = 300.0
):
    parameters = RegressionParameters(epsilon, lower, upper)
    if variance is None:
        variance = estimate_residual_variance(DATA.table.features, parameters.clip_labels(DATA.table))
    problem = check_table(DATA).with_settings(epsilon, parameters.value_bound, variance)
    return problem, parameters.clip_labels(DATA.table)


def enter_variance(app: AppTest, variance: float) -> None:
    source = app.segmented_control(key="regression.variance_source")
    check(source.set_value(ResidualVarianceSource.ENTERED).run())
    assert "The variance σ² is empty" in errors(app)
    wait_for_work(check(app.number_input(key="regression.residual_variance").set_value(variance).run()))


def show_coefficients(app: AppTest) -> AppTest:
    """Have the figures show the error of coefficients, with its parts."""
    app.session_state["regression.error"] = ErrorTarget.COEFFICIENTS
    return check(app.run())


def read_metrics(app: AppTest) -> list[str]:
    """The numbers behind the answer."""
    if "regression.tabs" in app.session_state and app.session_state["regression.tabs"] != "Behind the answer":
        open_tab_once(app, "Behind the answer")
    return [metric.value for metric in list_metrics(app)]


def read_heights(figure, name: str) -> list[float]:
    """Where bars end: each begins at the lower end of the axis."""
    (bars,) = [trace for trace in figure["data"] if trace["name"] == name]
    return [float(length) + bars["base"] for length in numbers(bars["y"])]


def assert_answer(app: AppTest, problem, labels) -> None:
    """The page shows the optimum and the caps of this problem, in the figure and in the card."""
    our_solution = working_set.solve(problem)
    caps = estimate_caps(problem, labels)
    none = sample_limiting.estimate_on_all_rows(problem)
    figure = chart(show_coefficients(app), "regression_errors")
    assert read_heights(figure, "Best weights") == [pytest.approx(math.sqrt(our_solution.variance), rel=1e-6)]
    best, unbounded, one_row, averages = read_heights(figure, "Other ways")
    assert best == pytest.approx(math.sqrt(caps.variances[caps.best_index]))
    assert unbounded == pytest.approx(math.sqrt(none.variance))
    assert one_row == pytest.approx(math.sqrt(caps.variances[0]))
    assert averages == pytest.approx(math.sqrt(sample_limiting.estimate_on_averages(problem).variance))
    # The parts of each, whose squares add up to its own.
    parts = {trace["name"]: numbers(trace["y"]) for trace in figure["data"]}
    noise, sampling = parts["Privacy noise"], parts["Sampling error"]
    assert noise[0] ** 2 == pytest.approx(our_solution.privacy_variance, rel=1e-6)
    assert sampling[2] ** 2 == pytest.approx(none.sampling_variance)
    error = compute_squared_prediction_error(problem, our_solution, labels)
    unbounded_error = compute_squared_prediction_error(problem, none, labels)
    bounded_text, unbounded_text = (
        format_number(math.sqrt(x), 3)
        for x in (caps.squared_prediction_errors[caps.best_index], unbounded_error)
    )
    assert read_metrics(app) == [
        format_number(math.sqrt(error), 3),
        f"best bound {bounded_text}, no bound {unbounded_text}",
        format_number(math.sqrt(our_solution.variance)),
        format_number(our_solution.laplace_noise.scale),
        format_number(math.sqrt(float(caps.variances[caps.best_index]))),
        format_number(math.sqrt(none.variance)),
    ]


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


def test_other_pages_leave_everything_as_it_was():
    app = open_small()
    go(app, "Mean")
    app = wait_for_work(go(app, TITLE))
    assert_answer(app, *make_problem())


def make_ratings() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    rows = 240
    frame = pd.DataFrame(
        {
            "shop": [f"s{k}" for k in np.minimum(rng.zipf(1.6, rows), 25)],
            "kind": rng.choice(["plain", "fancy", "rare"], rows, p=[0.5, 0.3, 0.2]),
            "size": np.round(rng.normal(5.0, 2.0, rows), 2),
        }
    )
    effect = frame["kind"].map({"plain": 0.0, "fancy": 2.0, "rare": -1.0})
    score = 5.0 + effect + 0.2 * frame["size"] + rng.normal(0.0, 1.0, rows)
    frame["rating"] = np.clip(np.round(score), 1, 10).astype(int).astype(object)
    frame.loc[6, "rating"] = ""
    return frame


RATINGS = make_ratings()


def choose_features(app: AppTest, features: list[str], categories: list[str]) -> None:
    check(app.selectbox(key=UPLOAD.get_role_key("user")).set_value("shop").run())
    check(app.multiselect(key=UPLOAD.get_role_key("features")).set_value(features).run())
    check(app.multiselect(key=UPLOAD.get_role_key("categories")).set_value(categories).run())


def with_upload(public: bool = False) -> AppTest:
    app = open_app(TITLE)
    check(app.segmented_control(key="regression.source").set_value(DataSource.UPLOAD).run())
    check(app.file_uploader[0].upload("ratings.csv", RATINGS.to_csv(index=False).encode()).run())
    assert app.session_state[UPLOAD.get_role_key("label")] == "rating"
    choose_features(app, ["kind", "size"], ["kind"])
    check(app.selectbox(key="regression.reference_" + "kind").set_value("rare").run())
    if public:
        check(app.radio(key="regression.public").set_value(Disclosure.PUBLIC).run())
    return check(app.button(key="regression_use").click().run())


def enter_bounds(app: AppTest, lower: float = 1.0, upper: float = 10.0) -> AppTest:
    app.number_input(key="regression.lower").set_value(lower)
    return wait_for_work(check(app.number_input(key="regression.upper").set_value(upper).run()))


def uploaded_problem(epsilon: float = 1.0):
    frame = RATINGS.drop(6)
    y = frame["rating"].to_numpy(float)
    x = np.column_stack(
        [np.ones(len(y)), frame["kind"] == "fancy", frame["kind"] == "plain", frame["size"]]
    ).astype(float)
    from dpcore.regression.problem import RegressionProblem

    variance = estimate_residual_variance(x, y)
    return RegressionProblem(x, pd.factorize(frame["shop"])[0], epsilon, 9.0, variance), y


def test_an_uploaded_table_is_answered_and_labelled():
    app = with_upload()
    assert "What range can a label have?" in shown_texts(app)
    assert not list_metrics(app)
    app = enter_bounds(app)
    assert_answer(app, *uploaded_problem())
    texts = shown_texts(app)
    assert "do not publish" in texts.lower()
    assert "1 row with a missing value was left out (rating: line 8)" in texts
    link = read_shown_link(app)
    assert "source=upload" in link
    assert "rating" not in link
    variance = uploaded_problem()[0].residual_variance
    assert f"{variance:.3g}" not in link


@pytest.mark.long
def test_what_was_entered_for_one_table_is_asked_anew_with_the_next():
    app = enter_bounds(with_upload(), 2.0, 977.0)
    assert "What range can a label have?" not in shown_texts(app)
    enter_variance(app, 31.5)
    # Another column of the same file is the label.
    check(app.file_uploader[0].upload("ratings.csv", RATINGS.drop(6).to_csv(index=False).encode()).run())
    check(app.selectbox(key=UPLOAD.get_role_key("label")).set_value("size").run())
    choose_features(app, ["rating"], [])
    check(app.button(key="regression_use").click().run())
    assert "What range can a label have?" in shown_texts(app)
    assert app.session_state["regression.upper"] is None
    assert app.session_state["regression.residual_variance"] != 31.5


def test_a_draw_of_private_labels_needs_an_entered_variance():
    app = open_tab(enter_bounds(with_upload()), "Release")
    assert app.button(key="regression_draw").disabled
    assert "Enter a σ² that you may publish" in errors(app)
    enter_variance(app, 1.5)
    check(open_tab(app, "Release").button(key="regression_draw").click().run())
    assert "Spent on these data: ε = 1 in 1 release" in shown_texts(app)


@pytest.mark.long
def test_what_cannot_be_read_is_said_and_the_data_in_use_stay():
    app = enter_bounds(with_upload(public=True))
    before = [metric.value for metric in list_metrics(app)]
    check(app.file_uploader[0].upload("photo.csv", b"\x89PNG....").run())
    assert "PNG" in errors(app)
    broken = RATINGS.assign(size=["x"] * 3 + ["4"] * (len(RATINGS) - 3), copy=RATINGS["size"])
    check(app.file_uploader[0].upload("broken.csv", broken.to_csv(index=False).encode()).run())
    choose_features(app, ["size"], [])
    check(app.button(key="regression_use").click().run())
    assert errors(app).count("Lines 2, 3, 4, column size") == 1
    assert "Lines 2, 3, 4, column size" in read_notices_below(app, "regression_use")
    check(app.run())
    assert "Lines 2, 3, 4, column size" in read_notices_below(app, "regression_use")
    assert [metric.value for metric in list_metrics(app)] == before


@pytest.mark.parametrize("link", [{}, LINK | {"source": "upload"}])
def test_a_public_demo_takes_no_table_and_says_so(monkeypatch, link):
    monkeypatch.setenv(access.SERVED, "1")
    monkeypatch.setenv(file_upload.LOCAL, "1")
    app = open_app(TITLE, **link)
    check(app.segmented_control(key="regression.source").set_value(DataSource.UPLOAD).run())
    assert not app.file_uploader
    assert "uploads and paths are switched off" in shown_texts(app)
    check(app.segmented_control(key="regression.source").set_value(DataSource.GENERATED).run())
    assert list_metrics(wait_for_work(app))


def test_public_labels_propose_bounds():
    app = wait_for_work(with_upload(public=True))
    low, high = app.session_state["regression.lower"], app.session_state["regression.upper"]
    labels = pd.to_numeric(RATINGS["rating"]).dropna()
    assert low <= labels.min()
    assert high >= labels.max()
    assert list_metrics(app)


def test_the_address_of_a_table_of_ones_own_holds_nothing_that_may_come_from_it():
    app = enter_bounds(with_upload(), -3.5, 93.25)
    assert "-3.5" in read_shown_link(app)  # A link is shared on purpose.
    assert read_address(app) == {"link": "1", "data": "online-retail-lines", "epsilon": "1", "upload": "1"}
    again = open_app(TITLE, **read_address(app))
    assert [p.message for p in again.session_state[keys.LINK_PROBLEMS]] == [links.DATA_GONE]
    # Of generated data it holds the settings, whatever the data of the other pages are.
    app = open_app("Linear regression")
    assert {"lower", "upper", "num_rows"} <= set(read_address(app))


def test_a_link_to_an_upload_asks_for_the_table():
    app = open_app(TITLE, **(LINK | {"source": "upload"}))
    assert not list_metrics(app)
    assert app.file_uploader
    assert "link does not carry uploaded data" in shown_texts(app)


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
