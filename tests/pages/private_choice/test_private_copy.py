"""A DP release as the session's data: what is cleared, what is off and why, what it costs, what a link says."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dpcore import mean
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Neighbours, ReleaseFacts
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset, Values
from dpcore.mean.answer import build_answer
from dpcore.private_choice.private_histogram import HistogramNoise, HistogramParameters, build_histogram
from dpcore.report import content as report_document
from dpcore.total.parameters import Summed
from pages.private_choice import actions
from pages.shared import shell
from pages.shared.base import cache, keys
from pages.shared.fields import jobs
from pages.shared.figures import figures
from pages.shared.report import report_content
from pages.shared.session import session
from tests.pages.driving import (
    chart,
    check,
    data,
    enter_range,
    errors,
    go,
    list_metrics,
    open_app,
    open_on_file,
    open_tab,
    read_shown_link,
    shown_texts,
    upload,
    use,
)
from tests.pages.reporting import REPORT_TIME, Reader, card_numbers, run_script

# 311 users; the heaviest has 2,017 rows, and values have a variance of their own.
RNG = np.random.default_rng(11)
COUNTS = np.concatenate((RNG.integers(1, 9, 300), RNG.integers(20, 60, 10), [2017]))
VALUES = np.round(RNG.normal(37.25, 4.0, int(COUNTS.sum())), 3)
OWNERS = np.repeat(np.arange(COUNTS.size), COUNTS)
SECRET = "user_id,amount,task\n" + "\n".join(
    f"u{owner},{value},t{owner % 7}" for owner, value in zip(OWNERS, VALUES, strict=True)
)
RELEASE, BACK = "test_release", "test_back"
EMPTY = "private_choice.empty_copy"
COPY = HistogramParameters(1.0)


@pytest.fixture(autouse=True)
def _release_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page does on a click, done before any widget when the test asks for it."""
    show = shell.show_shell

    def with_release(spec):
        if wanted := st.session_state.get(RELEASE):
            st.session_state[RELEASE] = None
            actions.release_dp_histogram(wanted)
        if st.session_state.get(BACK):
            st.session_state[BACK] = None
            session.use_original()
        return show(spec)

    monkeypatch.setattr(shell, "show_shell", with_release)


def open_private_file(title: str = "Data") -> AppTest:
    """The app with the private file loaded, on a page."""
    app = open_on_file(SECRET.encode(), title, "secret.csv")
    assert data(app).is_private
    assert data(app).values is not None
    return app


def draw_release(app: AppTest, parameters: HistogramParameters = COPY) -> AppTest:
    app.session_state[RELEASE] = parameters
    return check(app.run())


def read_spent(app: AppTest) -> str:
    return "\n".join(str(e.value) for e in app.sidebar.caption if "Spent" in str(e.value))


def test_the_copy_is_the_data_with_its_label() -> None:
    app = draw_release(open_private_file())
    assert data(app).disclosure is Disclosure.DP_RELEASE
    assert data(app).values is None
    assert data(app).name == "DP histogram of secret.csv"
    assert data(app).notes == ()
    label = "DP release (epsilon = 1, add or remove one user, discrete Laplace)"
    assert label in shown_texts(app)
    assert "DP release, ε = 1" in shown_texts(app)


def test_mean_on_the_copy_carries_the_label_everywhere() -> None:
    app = draw_release(open_private_file())
    app = go(app, "Mean")
    enter_range(app, 0.0, 100.0)
    label = "DP release (epsilon = 1, add or remove one user, discrete Laplace)"
    assert label in shown_texts(app)
    assert label in json.dumps(chart(app, "mean_error")).replace("<br>", " ")
    dataset = data(app)
    rows = list(csv.DictReader(io.StringIO(report_document.write_columns({"x": [1.0]}, dataset.provenance))))
    assert rows[0]["label"] == label
    choice = json.loads(build_answer(dataset, mean.MeanParameters(1.0, 0.0, 100.0)).write_json())
    assert choice["data"]["label"] == choice["answer"]["label"] == label


def test_file_names_say_release_and_epsilon() -> None:
    facts = ReleaseFacts(0.1, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace")
    assert figures.write_file_name("mean_choice", facts) == "mean-choice-DP-release-epsilon-0.1"
    assert "PRIVATE" in figures.write_file_name("mean_choice", Disclosure.PRIVATE)
    assert figures.write_file_name("mean_choice", Disclosure.PUBLIC) == "mean-choice"


def test_what_came_from_the_values_must_be_entered_again() -> None:
    app = open_private_file("Mean")
    enter_range(app, 20.0, 55.0)
    check(app.number_input(key="mean.own_bound").set_value(2017).run())
    app.session_state["mean.variance_source"] = mean.VarianceSource.FROM_VALUES
    app = go(draw_release(app), "Mean")
    assert app.session_state["mean.variance_source"] is mean.VarianceSource.WORST_CASE
    assert app.number_input(key="mean.lower").value is None
    assert app.number_input(key="mean.upper").value is None
    assert app.session_state["mean.own_bound"] is None
    assert "Lowest value L is empty" in errors(app)
    assert "L and U are empty because the release in use holds no values" in shown_texts(app)
    assert "From values" not in app.segmented_control(key="mean.variance_source").options
    check(app.number_input(key="mean.lower").set_value(0.0).run())
    assert "U is empty because the release in use holds no values" in shown_texts(app)
    check(app.number_input(key="mean.upper").set_value(80.0).run())
    assert list_metrics(app)
    assert "empty because" not in shown_texts(app)
    assert "are clamped:" not in shown_texts(app)
    assert "All values lie inside" not in shown_texts(app)


@pytest.mark.long
def test_bounds_entered_without_values_in_sight_stay() -> None:
    # A histogram shows no values: bounds entered beside it are the person's own.
    histogram = "size,users\n1,300\n5,40\n30,3\n"
    app = open_on_file(histogram.encode(), "Mean")
    assert app.number_input(key="mean.lower").value is None
    enter_range(app, 0.0, 7.0)
    app = go(draw_release(app), "Mean")
    assert app.number_input(key="mean.upper").value == 7.0
    assert not errors(app)
    # Whoever clears a field is not told that the release did.
    check(app.number_input(key="mean.upper").set_value(None).run())
    assert "empty because" not in shown_texts(app)


def test_why_a_variance_is_empty_on_a_release_is_said() -> None:
    app = open_private_file("Weights vs. caps")
    check(
        app.segmented_control(key="gap_examples.variance_source").set_value(mean.VarianceSource.ENTERED).run()
    )
    assert "σ² is empty" not in shown_texts(app)
    assert "σ² is empty because the release in use holds no values" in shown_texts(draw_release(app))


@pytest.mark.long
@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Quantile", "This page needs values, one per row. A DP release holds only"),
        ("Multi-task weights", "A DP release has no tasks, so these are generated"),
        ("Mean", "There are no values to read"),
        ("Sum and count", "A DP release holds only how many users have how many rows"),
        ("Linear regression", "**Data:** Generated, 3,000 rows"),
    ],
)
def test_pages_that_need_more_say_why(title: str, words: str) -> None:
    app = draw_release(open_private_file())
    app.session_state["total.summed"] = Summed.VALUES
    app = go(app, title)
    if title == "Mean":
        enter_range(app, 0.0, 80.0)
    assert words in shown_texts(app)
    assert not app.exception


def test_no_private_number_is_left_on_any_page() -> None:
    # Bins end at 10,000 rows: a number of seven digits can only come from the private data.
    heaviest, rows = 1_048_573, 1_048_573 + int(COUNTS[:-1].sum())
    table = "user_id,contributions\n" + "\n".join(f"u{k},{n}" for k, n in enumerate([*COUNTS[:-1], heaviest]))
    app = use(upload(open_app("Data"), table.encode(), "secret.csv"))
    assert data(app).histogram.max_size == heaviest
    assert f"{heaviest:,}" in read_all_texts(go(app, "Data"))
    app = draw_release(app)
    for title in (
        "Home",
        "Data",
        "Mean",
        "Sum and count",
        "Bias curves over τ₀",
        "Weights vs. caps",
    ):
        all_texts = read_all_texts(go(app, title))
        for number in (heaviest, rows):
            assert f"{number:,}" not in all_texts, title
            assert str(number) not in all_texts, title


def read_all_texts(app: AppTest) -> str:
    tables = " ".join(element.value.to_string() for element in (*app.dataframe, *app.table))
    return f"{shown_texts(app)}\n{tables}\n{read_shown_link(app)}"


def test_epsilons_add_up_and_stay_on_screen() -> None:
    app = open_private_file()
    assert not read_spent(app)
    app = draw_release(app)
    assert "ε = 1 in 1 release (add or remove one user)" in read_spent(app)
    # A second release is of the private data, not of the copy.
    app = draw_release(app, HistogramParameters(0.5))
    assert "ε = 1.5 in 2 releases" in read_spent(app)
    assert app.session_state[keys.LOADED_DATA].original.dataset.disclosure is Disclosure.PRIVATE
    assert data(app).name == "DP histogram of secret.csv"
    assert "ε = 1.5 in 2 releases" in read_spent(go(app, "Mean"))
    # Back on the private data it is still spent.
    app.session_state[BACK] = True
    check(app.run())
    assert data(app).is_private
    assert "ε = 1.5 in 2 releases" in read_spent(app)


def test_a_second_release_is_of_the_private_data_again() -> None:
    # Almost no noise: what comes out is the private histogram in bins, not the first copy in bins.
    app = draw_release(draw_release(open_private_file()), HistogramParameters(1000.0))
    bins = HistogramParameters(1.0).bins
    assert data(app).histogram == build_histogram(
        bins.count_users(ContributionHistogram.from_counts(COUNTS)), bins
    )


@pytest.mark.long
def test_other_data_have_a_ledger_of_their_own() -> None:
    app = draw_release(open_private_file())
    app = use(upload(go(app, "Data"), b"size,users\n1,300\n5,40\n", "other.csv"))
    assert data(app).is_private
    assert not read_spent(app)
    app = use(upload(app, SECRET.encode(), "again.csv"))
    assert "ε = 1 in 1 release" in read_spent(app)


def test_results_of_background_work_are_dropped_but_for_other_data() -> None:
    app = open_private_file()
    job, regression = jobs.Job("of the private data"), jobs.Job("of other data")
    app.session_state["mean.simulation_job"] = job
    app.session_state["regression.solve"] = regression
    app = draw_release(app)
    assert "mean.simulation_job" not in app.session_state
    assert job._stop_event.is_set()
    assert app.session_state["regression.solve"] is regression


def test_every_cached_answer_about_data_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared = []
    app = open_private_file()
    of_class = type(cache._CACHED_FUNCTIONS_OF_DATA[0])
    monkeypatch.setattr(of_class, "clear", lambda self, *a: cleared.append(self._info.func.__qualname__))
    draw_release(app)
    assert len(cleared) == len(cache._CACHED_FUNCTIONS_OF_DATA) > 5


def test_the_link_names_a_release_only_as_such() -> None:
    app = draw_release(open_private_file())
    link = read_shown_link(app)
    assert "data=dp-release" in link
    digits = link.replace("127.0.0.1:8501", "").replace("link=1", "")
    assert "2017" not in digits


def test_a_link_made_on_a_release_is_refused_with_a_sentence() -> None:
    app = open_app(
        "Mean", link="1", data="dp-release", epsilon="3", lower="0", upper="5", variance_source="worst"
    )
    assert "made on a DP release, which a link does not carry" in errors(app)
    with pytest.raises(InvalidInput, match="which a link does not carry"):
        session.Origin("dp-release").load()


@pytest.mark.parametrize("noise", list(HistogramNoise))
def test_a_release_of_public_samples_works_alike(noise: HistogramNoise) -> None:
    app = open_app("Mean")
    delta = 1e-6 if noise is HistogramNoise.GAUSSIAN else None
    app = draw_release(
        app, HistogramParameters(0.5, noise=noise, delta=delta, neighbours=Neighbours.REPLACE_USER)
    )
    assert data(app).disclosure is Disclosure.DP_RELEASE
    assert "(replace one user)" in read_spent(app)
    assert ("δ = 0.000001" in read_spent(app)) == (noise is HistogramNoise.GAUSSIAN)


def test_values_facets_never_reach_a_release() -> None:
    facts = ReleaseFacts(0.1, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace")
    with pytest.raises(InvalidInput, match="further facet"):
        Dataset(
            "x",
            "",
            Disclosure.DP_RELEASE,
            ContributionHistogram([1], [2]),
            values=Values([0, 1], [1.0, 2.0]),
            release=facts,
        )


@pytest.mark.long
def test_report_and_script_of_the_copy_carry_the_label(report_contents, tmp_path) -> None:
    app = go(draw_release(open_private_file()), "Mean")
    app.session_state["mean.tabs"] = "Downloads"
    enter_range(app, 0.0, 100.0)
    assert not app.get("toggle"), "nothing private is left that a switch could leave out"
    content = report_contents["mean"]()
    label = "DP release (epsilon = 1, add or remove one user, discrete Laplace)"
    assert not content.holds_private
    document = json.loads(report_content.write_json(content, REPORT_TIME, public_only=False))
    assert document["answers"][0]["label"] == label
    assert {figure["label"] for figure in document["figures"]} == {label}
    page = Reader(report_content.write_html(content, REPORT_TIME, public_only=False)).text
    assert label in page
    assert "No number in this report was computed from private data" not in page
    assert "computed from that release of private data" in page
    script = report_content.write_script(content, REPORT_TIME, public_only=False)
    assert label in script
    printed = run_script(script, tmp_path)
    for _, value in card_numbers(app, "mean_card"):
        assert value in printed


def test_a_bound_dragged_on_start_over_private_data_is_no_public_input_and_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    draw = figures.draw_plot

    def noted(*args, **options):
        asked.append(figures.list_public_inputs(figures.get_answered_parameters())[1:])
        return draw(*args, **options)

    monkeypatch.setattr(figures, "draw_plot", noted)
    app = go(open_private_file(), "Home")
    # As the handle leaves it, which stands on a curve of these data.
    app.session_state["start.bound"] = 17.0
    check(app.run())
    assert "With **17 rows**" in shown_texts(app)
    inputs = ["public input: epsilon = 1", "public input: users = the data in use"]
    assert asked[-1] == inputs
    app = draw_release(app)
    assert app.session_state["start.bound"] is None
    app.session_state["start.bound"] = 18.0
    check(app.run())
    assert "public input: bound = 18" in asked[-1]


def test_files_of_a_sum_on_a_release_name_its_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(
        report_content,
        "draw_downloads",
        lambda stem, provenance, *arguments: given.append((stem, provenance)),
    )
    app = go(draw_release(open_private_file()), "Sum and count")
    open_tab(app, "total", "Downloads")
    assert given[-1] == ("total", data(app).release)
