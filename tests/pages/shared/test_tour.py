"""The tour: what its steps ask and answer, what it puts aside, and that all of it comes back."""

from __future__ import annotations

import json
import re
import unittest.mock
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.private_choice.private_histogram import HistogramParameters, release_histogram
from dpcore.start import parameters
from dpcore.start.parameters import UserPreset
from pages.shared.base import keys
from pages.shared.base.question import Question
from pages.shared.screen import tour_bar
from pages.shared.session import links, session, session_file, tour
from tests.pages.driving import (
    build_app,
    check,
    data,
    enter_range,
    errors,
    go,
    open_app,
    open_on_dataset,
    read_address,
    release_copy,
    shown_texts,
)

STOPS = tour.list_questions()
SECRET = Dataset("secret.csv", "", Disclosure.PRIVATE, ContributionHistogram([1, 3], [200, 40]))
UPLOAD = session.Origin(session.UPLOADED)
FACTS = ReleaseFacts(0.25, 0.0, Neighbours.ADD_OR_REMOVE_USER, "discrete Laplace")


def answer_at(name: str, value: Any = None) -> str:
    """The answer of a step at a value of its field, by default where its question leads."""
    (question,) = [q for q in STOPS if q.name == name]
    step = tour.import_step(question)
    return step.write_answer(
        step.origin.load(), step.parameters_at(step.goal_value if value is None else value)
    )


def test_the_tour_goes_through_the_pages_in_order_and_begins_on_the_first_one() -> None:
    names = ["start", "mean", "total", "per_group", "plan", "learning"]
    assert [q.name for q in STOPS] == names
    assert not STOPS[0].url_path


@pytest.mark.parametrize("question", STOPS, ids=[q.name for q in STOPS])
def test_a_step_is_what_a_link_can_carry_and_its_question_is_open_at_first(question: Question) -> None:
    step = tour.import_step(question)
    query = urlsplit(
        links.write_link(
            "http://a", question.url_path, step.origin, links.list_parameter_fields(step.parameters)
        )
    ).query
    origin, values, problems = links.read_link(dict(parse_qsl(query)), question)
    assert (origin, problems) == (step.origin, [])
    assert values == {key: getattr(step.parameters, name) for name, key in question.widget_keys.items()}
    assert not step.is_far_enough(getattr(step.parameters, step.field_name))
    assert step.is_far_enough(step.goal_value)
    assert step.parameters_at(step.goal_value) != step.parameters
    # Two lines each beside the buttons: the figure stays whole on the first screen.
    assert len(step.question_sentence) <= 115
    assert len(answer_at(question.name).replace("*", "")) <= 178
    assert not step.instruction.endswith(".")
    assert not step.origin.load().is_private


def test_start_says_what_the_heavy_user_costs() -> None:
    users = parameters.make_dataset(UserPreset.ONE_HEAVY).histogram
    rows = float(users.sizes @ users.users)
    # At ε = 0.1, Laplace noise of scale b = bound / ε, a share a of the rows lost: E|noise - a| = a + b e^(-a / b).
    bounds = np.arange(1, 20_001)
    lost, noise = (20_000 - bounds) / rows, 10 * bounds / rows
    lost[:20] += 2_000 * (20 - bounds[:20]) / rows
    best = int(np.argmin(lost + noise * np.exp(-lost / noise)))
    assert rows == 60_000
    percent = {name: f"{100 * share:.2g}" for name, share in (("noise", noise[best]), ("lost", lost[best]))}
    answer_text = answer_at("start").replace("\N{NO-BREAK SPACE}", " ")
    assert (
        f"At 20,000 rows the noise is 333 % of the count, at {best + 1} only {percent['noise']} %"
        in answer_text
    )
    assert f"loses {percent['lost']} % of the rows, all of them rows of 1 user" in answer_text
    assert "At 10,000 rows the noise is 167" in answer_at("start", 10_000)


def test_mean_says_what_weights_save_over_the_best_cap() -> None:
    users = samples.load("online-retail-lines").histogram
    sizes, many = users.sizes.astype(float), users.users.astype(float)

    def errors_at(epsilon: float) -> tuple[float, float, float]:
        """Errors of the best cap and of the best weights on a fine grid, and the share of rows that the cap cuts."""
        caps = np.arange(1, 2_000)
        kept_values = np.array([np.minimum(sizes, cap) @ many for cap in caps])
        capped = np.sqrt(0.25 / kept_values + 2 * (caps / (epsilon * kept_values)) ** 2)
        smooth = np.inf
        for h in np.geomspace(1.0, 2_000.0, 4_000):
            n = np.minimum(sizes, h) @ many  # Every user keeps all rows at weight min(1, h / size).
            sampling = 0.25 * (np.minimum(1.0, h / sizes) ** 2 * sizes) @ many / n**2
            smooth = min(smooth, float(np.sqrt(sampling + 2 * (h / (epsilon * n)) ** 2)))
        best = int(capped.argmin())
        return float(capped[best]), smooth, 1.0 - float(kept_values[best]) / float(sizes @ many)

    for epsilon, err, cut in ((0.3, "13", "68"), (10.0, "1.9", "11")):
        capped, smooth, lost = errors_at(epsilon)
        assert f"{100 * (1 - smooth / capped):.2g}" == err
        assert f"{100 * lost:.2g}" == cut
    answer_text = answer_at("mean").replace("\N{NO-BREAK SPACE}", " ")
    assert (
        "at ε = 0.3 weights have 13 % less error than the best bound, which leaves 68 % of the rows out"
        in answer_text
    )
    assert "at ε = 10, 1.9 % less (11 % left out)" in answer_text


def test_the_sum_cuts_as_many_users_as_its_rule_says() -> None:
    users = samples.load("online-retail-lines").histogram
    bounds = np.arange(1, users.max_size + 1)
    lost = np.array([np.maximum(users.sizes - b, 0) @ users.users for b in bounds])
    answer_text = answer_at("total")
    bounds_said = [
        int(text.replace(",", "")) for text in re.findall(r"from ([\d,]+) to ([\d,]+)\.", answer_text)[0]
    ]
    for epsilon, bound in zip((1.0, 0.1), bounds_said, strict=True):
        errors = lost + bounds / epsilon
        assert errors[bound - 1] == pytest.approx(errors.min(), rel=1e-12)
    cut = int(users.users[users.sizes > bounds_said[1]].sum())
    assert answer_text.startswith(f"**{cut} users**")
    assert cut < 1 / 0.1 <= int(users.users[users.sizes >= bounds_said[1]].sum())
    assert int(users.users[users.sizes > bounds_said[0]].sum()) == 0  # As the question says.


def test_per_group_says_the_best_pair_and_which_bound_fell() -> None:
    pairs = samples.load("shop-events").pairs
    first = np.r_[True, np.diff(pairs.user_codes) != 0]
    starts = np.flatnonzero(first)
    counts = np.diff(np.r_[starts, pairs.user_codes.size])
    groups = np.repeat(counts, counts)
    num_groups = int(pairs.task_codes.max()) + 1

    def error(most_groups: int, most_rows: int, epsilon: float) -> float:
        """A random set of L0 of a user's groups is kept: expected squared error over groups, by hand."""
        share = np.minimum(1.0, most_groups / groups)
        capped = np.minimum(pairs.rows, most_rows)

        def per_group(of_pairs: Any) -> Any:
            return np.bincount(pairs.task_codes, of_pairs, num_groups)

        bias = per_group(pairs.rows - share * capped)
        chance = per_group(share * (1 - share) * capped**2)
        noise = 2 * (most_groups * most_rows / epsilon) ** 2
        return float(np.sqrt(np.mean(bias**2 + chance + noise)))

    words = []
    for epsilon in (10.0, 1.0):
        _, most_groups, most_rows = min(
            (error(l0, rows, epsilon), l0, rows) for l0 in range(1, 31) for rows in range(1, 13)
        )
        words.append((most_groups, most_rows))
    (l0, rows), (l0_now, rows_now) = words
    answer_text = answer_at("per_group")
    assert answer_text.startswith(
        f"**Both**: from {l0} products with {rows} rows each to {l0_now} products with {rows_now} rows each."
    )
    assert answer_at("per_group", 0.01).startswith("At ε = 0.01 no pair is worth its noise")


@pytest.mark.long
def test_plan_names_the_line_that_needs_most_and_more_lines_are_as_wanted_with_more_budget() -> None:
    answer_texts = [answer_at("plan", epsilon) for epsilon in (1.0, 10.0, 100.0)]
    assert all(text.startswith("**Rows per group**") for text in answer_texts)
    reached = [int(re.findall(r"(\d) of 5 meet", text)[0]) for text in answer_texts]
    assert reached == sorted(reached)
    assert reached[0] < reached[-1]


def test_learning_says_that_the_cap_rises_as_soon_as_it_is_asked() -> None:
    (question,) = [q for q in STOPS if q.name == "learning"]
    step = tour.import_step(question)
    for variance in (0.05, 0.1, 0.25):
        assert step.is_far_enough(variance)
        assert answer_at("learning", variance).startswith("**It rises**")
    assert answer_at("learning", 0.0).startswith("**It stays**")


# --- What is put aside ------------------------------------------------------------------------------------------------


class State(dict[str, Any]):
    """Stands in for the session's state."""

    def to_dict(self) -> dict[str, Any]:
        return dict(self)


@pytest.fixture
def state() -> Iterator[dict[str, Any]]:
    """A session without widgets: private data in use, with settings and an account."""
    session_state = State()
    with unittest.mock.patch.object(st, "session_state", session_state):
        session.use_data(session.LoadedData(SECRET, UPLOAD))
        session.record_release(FACTS)
        session_state |= {
            keys.EPSILON: 0.7,
            "mean.lower": 17.0,
            "mean.upper": 89.0,
            "mean.own_bound": 3.0,
            "mean.tabs": "Weight of a row",
            "start.users": UserPreset.TWO_GROUPS,
            "regression.residual_variance": 5.0,
            "regression.spent": {"x": Ledger()},
        }
        yield session_state


def read_entries(state: dict[str, Any]) -> dict[str, Any]:
    """What a person entered and brought."""
    return {key: state.get(key) for key in ENTERED}


ENTERED = (
    keys.EPSILON, keys.LEDGERS, "mean.lower", "mean.upper", "mean.own_bound", "mean.tabs", "mean.proposed",
    "mean.variance_source", "start.users", "regression.residual_variance", "regression.spent",
)  # fmt: skip


def join_state(state: dict[str, Any]) -> str:
    """All that a step shows of the session, as text: but for the tour's own account of what was before."""
    return str({key: value for key, value in state.items() if key not in (keys.TOUR, keys.LEDGERS)})


def test_all_is_put_aside_for_the_tour_and_comes_back_at_its_end(state: dict[str, Any]) -> None:
    entries_before, loaded = read_entries(state), session.get_loaded()
    tour.begin_tour()
    for number in (*range(1, len(STOPS) + 1), 5):
        tour.go_to_step(number)
        step = tour.import_step(STOPS[number - 1])
        assert tour.has_step_data(step)
        assert state[keys.EPSILON] == step.parameters.epsilon
        assert state[keys.TOUR_DESTINATION] == STOPS[number - 1].page_path
        assert "secret" not in join_state(state)
        assert "89" not in {str(value) for value in state.values()}
        # What has data of its own, and what was spent, the tour does not touch.
        assert state["regression.residual_variance"] == 5.0
        assert state[keys.LEDGERS] == entries_before[keys.LEDGERS]
    state["learning.vc_dimension"] = 44  # What is entered on the tour does not stay.
    tour.end_tour()
    assert read_entries(state) == entries_before
    assert session.get_loaded() == loaded
    assert state["learning.vc_dimension"] != 44
    assert session.get_tour() is None
    tour.end_tour()  # A second click of a slow browser.
    tour.go_to_step(3)
    tour.request_answer()
    assert session.get_loaded() == loaded


def test_a_copy_drawn_on_the_tour_counts_and_the_data_from_before_still_come_back(
    state: dict[str, Any],
) -> None:
    tour.begin_tour()
    tour.go_to_step(len(STOPS))
    of_sample = session.get_dataset()
    copy = release_histogram(of_sample.histogram, HistogramParameters(5.0), charge=session.record_release)
    with unittest.mock.patch("pages.shared.base.cache.forget_session_results"):
        session.use_release(copy.to_dataset("sample"))
    assert session.get_dataset().release is not None
    assert not tour.has_step_data(tour.import_step(STOPS[-1]))
    assert session.get_tour() is not None
    tour.end_tour()
    assert session.get_dataset() is SECRET
    assert (state["mean.upper"], state[keys.EPSILON]) == (89.0, 0.7)
    spent = state[keys.LEDGERS]
    assert [facts.epsilon for facts in spent[SECRET.histogram.digest].releases] == [FACTS.epsilon]
    assert [facts.epsilon for facts in spent[of_sample.histogram.digest].releases] == [5.0]


def test_data_brought_on_the_tour_end_it_and_what_is_public_comes_back(state: dict[str, Any]) -> None:
    tour.begin_tour()
    other = replace(SECRET, name="other.csv")
    session.use_data(session.LoadedData(other, UPLOAD))
    assert session.get_dataset() is other
    assert session.get_tour() is None
    assert (state[keys.EPSILON], state["start.users"]) == (0.7, UserPreset.TWO_GROUPS)
    # New data clear the rest, as without a tour.
    assert (state["mean.lower"], state["mean.upper"], state["mean.own_bound"]) == (None, None, None)


def test_a_release_in_use_returns_with_the_data_behind_it(state: dict[str, Any]) -> None:
    copy = release_histogram(SECRET.histogram, HistogramParameters(1000.0), charge=session.record_release)
    with unittest.mock.patch("pages.shared.base.cache.forget_session_results"):
        session.use_release(copy.to_dataset("secret.csv"))
        loaded = session.get_loaded()
        tour.begin_tour()
        assert session.get_ledger().releases == ()  # Of the tour's data nothing was released.
        tour.end_tour()
        assert session.get_loaded() == loaded
        assert len(session.get_ledger().releases) == 2
        session.use_original()
    assert session.get_dataset() is SECRET
    assert state["mean.upper"] == 89.0


def test_a_session_saved_on_the_tour_is_the_persons_own(state: dict[str, Any]) -> None:
    saved = session_file.write_file(session_file.read_session())
    tour.begin_tour()
    tour.go_to_step(2)
    now = session_file.read_session()
    assert now.disclosure is Disclosure.PRIVATE
    assert json.loads(session_file.write_file(now)) | {"saved": ""} == json.loads(saved) | {"saved": ""}
    # One that is opened ends it: else its end would undo what the file says.
    session_file.apply_content(session_file.SessionContent(None, 2.0, {"mean.upper": 5.0}))
    assert session.get_tour() is None
    assert session.get_dataset() is SECRET
    assert (state[keys.EPSILON], state["mean.upper"], state["mean.lower"]) == (2.0, 5.0, 17.0)


def test_the_address_names_the_step_and_nothing_of_private_data(state: dict[str, Any]) -> None:
    tour.begin_tour()
    tour.go_to_step(2)
    state[keys.PAGE_PARAMETERS] = tour.import_step(STOPS[1]).parameters
    fields = dict(parse_qsl(links.write_current_link(STOPS[1])[1]))
    assert (fields["tour"], fields["before"], fields[links.UPLOAD_MARK]) == ("2", "upload", "1")
    assert not {"17", "89", "0.7", "3"} & set(fields.values())
    origin, _, problems = links.read_link(fields, STOPS[1])
    assert (origin, problems) == (tour.import_step(STOPS[1]).origin, [])


def test_a_reload_brings_the_data_back_that_an_address_can_name(state: dict[str, Any]) -> None:
    generated = session.Origin(
        "zipf", {"alpha": "1.5", "num_users": "50", "max_contributions": "9", "seed": "3"}
    )
    session.use_data(session.LoadedData(generated.load(), generated))
    tour.begin_tour()
    marks, problems = tour.list_address_fields(state[keys.TOUR]), Problems()
    state.clear()
    session.get_loaded()
    tour.resume_tour({**marks, links.UPLOAD_MARK: "1"}, False, problems)
    assert tour.has_step_data(tour.import_step(STOPS[0]))
    assert problems.entries == []
    tour.end_tour()
    assert session.get_loaded().origin == generated
    assert session.get_dataset().histogram.digest == generated.load().histogram.digest


@pytest.mark.parametrize("wanted", ["0", "7", "-1", "two", "1.0", "٢", "9" * 5000])
def test_a_step_that_is_none_is_refused_in_a_sentence(state: dict[str, Any], wanted: str) -> None:
    problems = Problems()
    tour.resume_tour({tour.MARK: wanted}, False, problems)
    (problem,) = problems.entries
    assert "the tour has 6 steps" in problem.sentence.lower()
    assert len(problem.sentence) < 120
    assert session.get_tour() is None
    assert session.get_dataset() is SECRET


@pytest.mark.parametrize("before", ["nonsense", "upload", "dp-release"])
def test_data_that_an_address_cannot_name_are_the_usual_sample(state: dict[str, Any], before: str) -> None:
    tour.resume_tour({tour.MARK: "1", tour.DATA_MARK: before}, False, Problems())
    tour.end_tour()
    assert session.get_loaded().origin == session.Origin(session.DEFAULT_SAMPLE)


def follow(app: AppTest) -> AppTest:
    """Stay on the page that the app itself went to: `AppTest` goes back to the one that was asked for last."""
    app._page_hash = ""
    return check(app.run())


@pytest.mark.long
def test_the_tour_on_the_real_pages() -> None:
    app = open_on_dataset(SECRET, "Mean")
    enter_range(app, 2.0, 40.0)
    check(go(app, "Home").button(key="tour_begin").click().run())
    for number, question in enumerate(STOPS, 1):
        step = tour.import_step(question)
        follow(app)
        assert [title.value for title in app.title] == [question.page_heading or question.title]
        assert f"step {number} of 6" in shown_texts(app)
        assert "brings back: secret.csv" in shown_texts(app)
        # As declared, or the answer would say that it is about other settings.
        assert app.session_state[keys.PAGE_PARAMETERS] == step.parameters
        assert read_address(app)["tour"] == str(number)
        assert tour_bar.ANSWER_HINT in shown_texts(app)
        widget = f"{question.widget_keys[step.field_name]}"
        if step.field_name == "epsilon":
            check(app.number_input(key=keys.EPSILON).set_value(step.goal_value).run())
        elif question.name == "start":
            check(app.number_input(key=widget).set_value(float(step.goal_value)).run())
        elif question.name == "learning":
            check(app.button(key="tour_answer").click().run())
            assert answer_at("learning") in shown_texts(app)
            check(app.slider(key=widget).set_value(step.goal_value).run())
        else:
            check(app.number_input(key=widget).set_value(step.goal_value).run())
        assert tour_bar.ANSWER_HINT not in shown_texts(app)
        assert answer_at(question.name) in shown_texts(app)
        assert tour.OTHER_SETTINGS_NOTE not in shown_texts(app)
        if number < len(STOPS):
            check(app.button(key="tour_next").click().run())
    go(release_copy(app), STOPS[-1].title)
    assert "Other data are in use than those of this step" in shown_texts(app)
    check(app.button(key="tour_again").click().run())
    assert data(app).release is None
    check(go(app, "Quantile"))
    assert "The tour waits on **Bias curves over τ₀**" in shown_texts(app)
    follow(check(app.button(key="tour_end").click().run()))
    assert app.title[0].value == STOPS[0].page_heading
    assert data(app) is SECRET
    go(app, "Mean")
    assert (app.number_input(key="mean.lower").value, app.number_input(key="mean.upper").value) == (2.0, 40.0)
    assert "tour" not in read_address(app)


@pytest.mark.long
def test_an_address_leads_to_a_step() -> None:
    app = build_app("Home")
    app.query_params["tour"] = "3"
    follow(check(app.run()))
    assert app.title[0].value == STOPS[2].title
    assert "step 3 of 6" in shown_texts(app)
    app = open_app(
        "Mean", link="1", data="online-retail-lines", epsilon="0.5", lower="0", upper="1", tour="2"
    )
    assert app.session_state[keys.EPSILON] == 0.5  # The step as it was left, not as it begins.
    assert "Step 2 of 6".lower() in shown_texts(app)
    assert tour_bar.ANSWER_HINT not in shown_texts(app)
    app = open_app("Home", tour="nine")
    assert "The tour has 6 steps" in errors(app)
