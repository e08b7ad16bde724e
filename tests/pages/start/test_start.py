"""Home: the picture moves with bound and epsilon, and the questions lead to a page."""

from __future__ import annotations

import dataclasses
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_count, format_percent
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.report import plotly_figures
from dpcore.start import parameters
from dpcore.start.answer import build_answer, solve
from dpcore.start.parameters import StartParameters, UserPreset
from pages.shared.base import catalogue, keys
from pages.shared.fields import setting
from pages.shared.session import session
from pages.start import contents
from tests.pages.driving import (
    chart,
    check,
    data,
    errors,
    find_page_path,
    go,
    open_app,
    read_number,
    read_shown_link,
    shown_texts,
    trace,
    use_dataset,
)

SECRET = dataclasses.replace(samples.load("shop-events"), disclosure=Disclosure.PRIVATE)


def off_by(histogram: ContributionHistogram, bounds, epsilon: float = setting.DEFAULT_EPSILON):
    """Mean distance of a count from the truth, as a share of it, by hand.

    Rows beyond the bound are lost. With Laplace noise of scale b beside what a count lacks, a,
    the density e^(-|x| / b) / (2 b) gives E|noise - a| = a + b e^(-a / b).
    """
    bounds = np.atleast_1d(np.asarray(bounds, dtype=float))
    kept = np.minimum(histogram.sizes, bounds[:, None]) @ histogram.users
    a, b = 1.0 - kept / histogram.num_rows, bounds / epsilon / histogram.num_rows
    return a, b, a + b * np.exp(-a / b)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_bound_is_the_one_that_sum_and_count_says(epsilon):
    app = open_app("Home", link="1", data=session.DEFAULT_SAMPLE, epsilon=f"{epsilon:g}")
    histogram = data(app).histogram
    every = off_by(histogram, np.arange(1, histogram.max_size + 1), epsilon)[2]
    rows = format_count(int(np.argmin(every)) + 1, "row")
    assert f"For one count, keep at most {rows} per user." in shown_texts(app)
    assert f"Keep at most {rows} per user." in shown_texts(go(app, "Sum and count"))


def test_the_figure_is_the_error_by_hand_and_the_sweet_spot_the_best_of_all_bounds():
    app = open_app("Home")
    histogram = samples.load(session.DEFAULT_SAMPLE).histogram
    figure = chart(app, "start_tradeoff")
    assert not [trace for trace in figure["data"] if trace["name"] == "Your own bound"]
    a, b, error = off_by(histogram, trace(figure, "Expected error")[0])
    for name, expected in (("Bias", a), ("Noise", b), ("Expected error", error)):
        # A log axis has no place for a bias of 0.
        assert trace(figure, name)[1] == pytest.approx(expected[expected > 0], rel=1e-9, abs=1e-12)
    # The trade-off is seen: the error falls from nearly everything to 2 %, and rises again.
    assert error[0] > 0.9
    assert error.min() < 0.02
    assert error[-1] > 4.0 * error.min()
    ((x,), (y,)) = trace(figure, "Sweet spot")
    every = off_by(histogram, np.arange(1, histogram.max_size + 1))[2]
    assert y == pytest.approx(every.min())
    assert every[int(x) - 1] == pytest.approx(every.min())
    card_answer = read_number(app, "start_card")
    assert (card_answer["copied"], card_answer["error"][1]) == (str(int(x)), format_percent(y))
    lost, noise, _ = off_by(histogram, x)
    said = [[name, text] for name, text, _ in card_answer["split"][1]]
    assert said == [["Bias", format_percent(lost[0])], ["Noise", format_percent(noise[0])]]
    # The handle lets go of a bound; any number may be entered.
    check(app.number_input(key="start.bound").set_value(137.0).run())
    ((x,), (y,)) = trace(chart(app, "start_tradeoff"), "Your own bound")
    assert (x, y) == (137.0, pytest.approx(off_by(histogram, 137)[2][0]))
    assert f"With **137 rows** the count is off by **{format_percent(y)}**" in shown_texts(app)


def test_the_picture_moves_with_epsilon_and_its_axes_do_not():
    app = open_app("Home")
    figure_before = chart(app, "start_tradeoff")
    check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(10.0).run())
    figure_after = chart(app, "start_tradeoff")
    ratio = setting.DEFAULT_EPSILON / 10.0
    slopes = [np.divide(*trace(figure, "Noise")[::-1]) for figure in (figure_before, figure_after)]
    assert slopes[1] == pytest.approx(slopes[0] * ratio)
    assert figure_after["layout"]["yaxis"]["range"] == figure_before["layout"]["yaxis"]["range"]
    assert figure_after["layout"]["xaxis"]["range"] == figure_before["layout"]["xaxis"]["range"]
    # A bound whose error is above the axis is said.
    app.number_input(key="start.bound").set_value(50_000.0)
    check(app.select_slider(key=keys.EPSILON_SLIDER).set_value(0.001).run())
    ((_,), (error,)) = trace(chart(app, "start_tradeoff"), "Your own bound")
    assert error > 10.0
    assert "your own bound" in shown_texts(app).partition("Outside the axes: ")[2]
    assert "Axis range* widens" not in shown_texts(app)  # Of the error, the axis ends where it does.


@pytest.mark.long
def test_epsilon_is_there_on_the_first_run_of_the_next_page():
    app = open_app("Home")
    check(app.number_input(key=keys.EPSILON).set_value(0.37).run())
    for title in ("Mean", "Sum and count", "Home"):
        app.switch_page(find_page_path(title))
        check(app.run())  # Once: on the second run Streamlit has brought the value over by itself.
        assert app.number_input(key=keys.EPSILON).value == 0.37
        assert app.select_slider(key=keys.EPSILON_SLIDER).value == 0.3
        assert not errors(app)


@pytest.mark.long
def test_the_bound_and_the_answers_survive_page_switches_and_new_data_clear_the_bound():
    app = open_app("Home")
    check(app.number_input(key="start.bound").set_value(50.0).run())
    check(app.get_by_key("start.several").set_value("Yes").run())
    go(app, "Mean")
    go(app, "Home")
    assert app.number_input(key="start.bound").value == 50.0
    assert app.get_by_key("start.several").value == "Yes"
    go(use_dataset(go(app, "Mean"), SECRET), "Home")
    assert app.number_input(key="start.bound").value is None
    assert SECRET.name in shown_texts(app)


def test_numbers_from_private_data_say_so_and_so_does_the_figure():
    app = go(use_dataset(open_app("Mean"), SECRET), "Home")
    assert any("do not publish" in element.value for element in app.main.markdown)
    notes = chart(app, "start_tradeoff")["layout"]["annotations"]
    assert [note["text"].replace("<br>", " ") for note in notes] == [data(app).disclosure.label]
    # A bound that is dragged along its curve may be read off it.
    check(app.number_input(key="start.bound").set_value(7.0).run())
    assert "With **7 rows**" in shown_texts(app)
    assert "bound" not in read_shown_link(app)
    app = open_app("Home")
    assert not any("do not publish" in element.value for element in app.main.markdown)
    assert "annotations" not in chart(app, "start_tradeoff")["layout"]


def test_the_card_says_what_the_bound_that_is_set_does():
    # 3 users of 1 row, 2 of 4 and 1 of 20: of 31 rows 16 are thrown away at a bound of 4, and noise of 4 rows is
    # added at epsilon = 1.
    few = Dataset("few", "", Disclosure.PUBLIC, ContributionHistogram([1, 4, 20], [3, 2, 1]))
    answer = build_answer(few, StartParameters(1.0, 4))
    for share in (16 / 31, 4 / 31, (16 + 4 * np.exp(-16 / 4)) / 31):
        assert format_percent(share) in answer.detail
    # Without a bound nothing is said or drawn of one. At so small a budget nothing plays, as there is no best one.
    lone_answer = build_answer(few, StartParameters(0.01))
    assert "every bound adds more noise than there is to count" in lone_answer.headline
    assert (lone_answer.numbers, lone_answer.error_parts) == ((), ())
    assert "With **" not in lone_answer.detail
    plot = lone_answer.plots["start-tradeoff"]()
    assert {t.name for t in plotly_figures.draw_plot(plot).data if t.mode != "text"} == {
        "Bias",
        "Noise",
        "Expected error",
    }
    assert plot.handle.best_bound is None


def test_three_answers_lead_to_a_page_with_the_data_in_use():
    app = open_app("Home")
    links = [button.proto.label for button in app.get("page_link")]
    assert "Upload data" in links
    assert not [label for label in links if label.startswith("Go to")]
    check(app.get_by_key("start.several").set_value("No").run())
    assert contents.ADVICE_BY_ANSWER["No"] in shown_texts(app)
    check(app.get_by_key("start.kind").set_value("A model").run())
    assert app.selectbox(key="start.release").options == contents.list_release_phrases("A model")
    check(app.get_by_key("start.kind").set_value("Numbers").run())
    mean, groups = catalogue.find_page("Mean"), catalogue.find_page("Group by")
    check(app.selectbox(key="start.release").set_value(mean.release_phrase).run())
    assert "Go to Mean" in [link.proto.label for link in app.get("page_link")]
    assert f"**Mean:** {mean.question_sentence}" in shown_texts(app)
    # The data in use have no groups.
    check(app.selectbox(key="start.release").set_value(groups.release_phrase).run())
    assert f"{groups.question_sentence} The data in use lack what it needs" in shown_texts(app)
    # What is no number is not offered once models are asked for.
    check(app.get_by_key("start.kind").set_value("A model").run())
    assert app.selectbox(key="start.release").value is None


def test_what_invented_users_teach_is_so():
    def best(users, epsilon=1.0):
        return solve(SECRET, StartParameters(epsilon, users=users))

    assert best(UserPreset.EQUAL_SIZES).best_choice.max_total == 20
    heavy = best(UserPreset.ONE_HEAVY, 0.1)
    assert heavy.best_choice.max_total < 20_000 / 10
    assert heavy.evaluate(20_000).mean_noise == pytest.approx(1000 * heavy.evaluate(20).mean_noise)
    much, little = (best(UserPreset.TWO_GROUPS, epsilon).best_choice.max_total for epsilon in (1.0, 0.003))
    assert 0.9 * 300 < much <= 300
    assert little < 300 / 2
    power = parameters.make_dataset(UserPreset.POWER_LAW).histogram
    assert power.users[:-1].tolist() == (3 * power.users[1:]).tolist()
    best_power = best(UserPreset.POWER_LAW).best_choice.max_total
    assert 1 < best_power < power.max_size


def test_invented_users_are_shown_and_the_data_in_use_stay():
    app = go(use_dataset(open_app("Mean"), SECRET), "Home")
    check(app.selectbox(key="start.users").set_value(UserPreset.ONE_HEAVY).run())
    assert parameters.DESCRIPTION_BY_PRESET[UserPreset.ONE_HEAVY] in shown_texts(app)
    assert any("**Data:** Invented users" in element.value for element in app.sidebar.markdown)
    expected = solve(SECRET, StartParameters(1.0, users=UserPreset.ONE_HEAVY)).best_choice.max_total
    assert read_number(app, "start_card")["copied"] == f"{expected:g}"
    assert not any("do not publish" in element.value for element in app.main.markdown)
    assert data(app).digest == SECRET.digest
    # Their bound is in the link, and that of private data comes not with it.
    check(app.number_input(key="start.bound").set_value(21.0).run())
    fields = dict(parse_qsl(urlsplit(read_shown_link(app)).query))
    assert (fields["users"], fields["bound"]) == ("one heavy user", "21")
    check(app.selectbox(key="start.users").set_value(UserPreset.IN_USE).run())
    assert any("do not publish" in element.value for element in app.main.markdown)
