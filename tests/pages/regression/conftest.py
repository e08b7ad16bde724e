"""Linear regression opened on few generated rows, and what its page shows."""

from __future__ import annotations

import math

import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.wording import format_number
from dpcore.regression import sample_limiting, working_set
from dpcore.regression.estimate import ErrorTarget, compute_squared_prediction_error
from dpcore.regression.parameters import ResidualVarianceSource
from tests.dpcore.regression.bank import estimate_caps
from tests.pages.driving import chart, check, errors, finish, list_metrics, numbers

TITLE = "Linear regression"
SMALL = {"num_rows": "300", "informative": "2", "uninformative": "1", "exponent": "1.8", "seed": "3"}
LINK = {"link": "1", "epsilon": "1", "lower": "-300", "upper": "300", "size_law": "rounded"} | SMALL
WORK = ("regression.solve", "regression.caps", "regression.over_epsilon")


def wait_for_work(app: AppTest) -> AppTest:
    """Wait for work beside the page, as the polling fragments do in a browser."""
    return finish(app, *WORK)


def open_tab(app: AppTest, tab: str) -> AppTest:
    """Run twice: state of widgets that are not drawn vanishes on the second run only."""
    app.session_state["regression.tabs"] = tab
    check(app.run())
    return wait_for_work(app)


def open_tab_once(app: AppTest, tab: str) -> AppTest:
    """Open a tab while work goes on that would not end by itself."""
    app.session_state["regression.tabs"] = tab
    return check(app.run())


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
