"""Start: the picture moves with bound and epsilon, and the questions lead to a page."""

from __future__ import annotations

import dataclasses
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.report import plotly_figures
from dpcore.start import presets
from dpcore.start.answer import CELLS, answered, find, plots
from dpcore.start.answer.answer import dots_said
from dpcore.start.answer.found import rows_of_users
from dpcore.start.parameters import StartParameters
from dpcore.start.presets import Users
from pages.shared.base import catalogue, keys
from pages.shared.fields import ranges
from pages.shared.session import session
from pages.start import advice, play
from tests.pages.driving import (
    answer_of,
    chart,
    data,
    errors,
    fine,
    go,
    link_of,
    open_app,
    page_path,
    shown_texts,
    trace,
    upload,
    with_data,
)

SECRET = dataclasses.replace(samples.load("shop-events"), disclosure=Disclosure.PRIVATE)


def test_the_picture_moves_with_the_bound():
    at = open_app("Start")
    histogram = samples.load(session.DEFAULT_SAMPLE).histogram
    for bound in (1, 100, histogram.max_size):
        fine(at.select_slider(key="start.bound").set_value(bound).run())
        ((x,), (y,)) = trace(chart(at, "start_tradeoff"), "Your bound")
        # By hand: rows beyond the bound, and the mean absolute value of Laplace noise, which is its scale.
        lost = float(np.sum(histogram.users * np.maximum(histogram.sizes - bound, 0.0)))
        assert x == bound
        noise = CELLS * bound / ranges.DEFAULT_EPSILON
        assert y == pytest.approx((lost + noise) / histogram.num_rows)


def test_the_sweet_spot_is_the_best_of_all_bounds():
    at = open_app("Start")
    histogram = samples.load(session.DEFAULT_SAMPLE).histogram
    bounds = np.arange(1, histogram.max_size + 1)
    lost = histogram.num_rows - np.array([np.minimum(histogram.sizes, b) @ histogram.users for b in bounds])
    error = (lost + CELLS * bounds / ranges.DEFAULT_EPSILON) / histogram.num_rows
    ((x,), (y,)) = trace(chart(at, "start_tradeoff"), "Sweet spot")
    assert y == pytest.approx(error.min())
    assert error[int(x) - 1] == pytest.approx(error.min())
    shown = answer_of(at, "start_card")
    assert (shown["copied"], shown["error"][1]) == (str(int(x)), wording.percent(y))


def test_the_picture_moves_with_epsilon_and_its_axes_do_not():
    at = open_app("Start")
    before = chart(at, "start_tradeoff")
    fine(at.select_slider(key=keys.EPSILON_SLIDER).set_value(10.0).run())
    after = chart(at, "start_tradeoff")
    ratio = ranges.DEFAULT_EPSILON / 10.0
    assert trace(after, "Privacy noise")[1] == pytest.approx(trace(before, "Privacy noise")[1] * ratio)
    assert after["layout"]["yaxis"]["range"] == before["layout"]["yaxis"]["range"] == [0.0, 1.0]
    assert after["layout"]["xaxis"]["range"] == before["layout"]["xaxis"]["range"]


def test_a_bound_whose_error_is_above_the_axis_is_said():
    at = open_app("Start")
    assert "Outside the axes" not in shown_texts(at)
    fine(at.select_slider(key=keys.EPSILON_SLIDER).set_value(0.001).run())
    ((_,), (error,)) = trace(chart(at, "start_tradeoff"), "Your bound")
    assert error > 1.0
    assert "Outside the axes: your bound." in shown_texts(at)
    assert "Axis range* widens" not in shown_texts(at)  # Of the error, the axis ends where it does.


def test_an_empty_epsilon_gives_a_sentence_and_the_link_goes_without():
    at = open_app("Start")
    fine(at.number_input(key=keys.EPSILON).set_value(None).run())
    assert "ε is empty. Enter a number" in errors(at)
    assert "epsilon" not in link_of(at)
    assert at.radio(key="start.who").options  # The way to a page stays.
    fine(at.number_input(key=keys.EPSILON).set_value(2.0).run())
    assert not errors(at)
    assert chart(at, "start_tradeoff")["data"]


def test_slider_and_field_of_epsilon_are_kept_in_step():
    at = open_app("Start")
    fine(at.select_slider(key=keys.EPSILON_SLIDER).set_value(5.0).run())
    assert at.number_input(key=keys.EPSILON).value == 5.0
    fine(at.number_input(key=keys.EPSILON).set_value(0.0123).run())
    assert at.select_slider(key=keys.EPSILON_SLIDER).value == 0.01
    assert at.number_input(key=keys.EPSILON).value == 0.0123


def test_epsilon_is_there_on_the_first_run_of_the_next_page():
    at = open_app("Start")
    fine(at.number_input(key=keys.EPSILON).set_value(0.37).run())
    for title in ("Mean", "Sum and count", "Start"):
        at.switch_page(page_path(title))
        fine(at.run())  # Once: on the second run Streamlit has brought the value over by itself.
        assert at.number_input(key=keys.EPSILON).value == 0.37
        assert at.select_slider(key=keys.EPSILON_SLIDER).value == 0.3
        assert not errors(at)


def test_the_bound_and_the_answers_survive_page_switches():
    at = open_app("Start")
    fine(at.select_slider(key="start.bound").set_value(50).run())
    fine(at.radio(key="start.several").set_value("Yes").run())
    go(at, "Mean")
    go(at, "Start")
    assert at.select_slider(key="start.bound").value == 50
    assert at.radio(key="start.several").value == "Yes"


def test_new_data_move_a_bound_that_they_do_not_offer():
    at = open_app("Start")
    heaviest = data(at).histogram.max_size
    fine(at.select_slider(key="start.bound").set_value(heaviest).run())
    go(with_data(go(at, "Mean"), SECRET), "Start")
    assert at.select_slider(key="start.bound").value in play.bound_steps(data(at).histogram)
    assert SECRET.name in shown_texts(at)


def test_data_of_one_size_are_drawn():
    at = open_app("Mean")
    for size, users in ((1, 1), (1, 7), (10**12, 3)):
        few = Dataset("few", "", Disclosure.PRIVATE, ContributionHistogram([size], [users]))
        go(with_data(go(at, "Mean"), few), "Start")
        assert chart(at, "start_tradeoff")["data"]


def test_numbers_from_private_data_say_so_and_so_does_the_figure():
    at = go(with_data(open_app("Mean"), SECRET), "Start")
    assert any("computed from private data" in element.value for element in at.main.markdown)
    notes = chart(at, "start_tradeoff")["layout"]["annotations"]
    assert [note["text"].replace("<br>", " ") for note in notes] == [data(at).disclosure.label]
    # Where the slider stands at first is read off the data.
    assert "bound" not in link_of(at)
    at = open_app("Start")
    assert not any("computed from private data" in element.value for element in at.main.markdown)
    assert "annotations" not in chart(at, "start_tradeoff")["layout"]


def test_the_card_says_what_the_bound_that_is_set_does():
    # 3 users of 1 row, 2 of 4 and 1 of 20: of 31 rows 16 are thrown away at a bound of 4, and 12 counts have
    # noise of 4 rows each at epsilon = 1.
    few = Dataset("few", "", Disclosure.PUBLIC, ContributionHistogram([1, 4, 20], [3, 2, 1]))
    shown = answered(few, StartParameters(1.0, 4))
    assert "With **4 rows per user** and ε = 1" in shown.detail
    for share in (16 / 31, 48 / 31, 64 / 31):
        assert wording.percent(share) in shown.detail
    assert "every bound gives more noise than count" in shown.headline
    assert shown.numbers == ()
    # Without a bound nothing is said or drawn of one.
    alone = answered(few, StartParameters(1.0))
    assert alone.detail == ""
    drawn = {trace.name for make in alone.plots.values() for trace in plotly_figures.figure(make()).data}
    assert drawn == {"Thrown away (bias)", "Privacy noise", "Both together", "Kept", "Cut"}


def test_answers_lead_to_advice_and_to_a_page():
    at = open_app("Start")
    assert not [button for button in at.get("page_link") if "Mean" in button.proto.label]
    fine(at.radio(key="start.several").set_value("No, each has one row").run())
    fine(at.radio(key="start.who").set_value("None").run())
    assert advice.SEVERAL["No, each has one row"] in shown_texts(at)
    assert advice.WHO["None"] in shown_texts(at)
    mean = catalogue.page("Mean")
    fine(at.radio(key="start.release").set_value(mean.release).run())
    assert [link.proto.label for link in at.get("page_link")][-1] == "Go to Mean"
    assert mean.sentence in shown_texts(at)


def test_only_what_there_is_a_page_for_is_offered():
    assert advice.releases()
    for release in advice.releases():
        assert advice.page_for(release).release == release
    assert advice.page_for(None) is None
    assert advice.page_for("a unicorn") is None


def test_a_link_keeps_the_bound_on_public_data_and_never_on_private():
    at = open_app("Start", link="1", data="online-retail-lines", epsilon="7")
    steps = play.bound_steps(data(at).histogram)
    bound = steps[-5]
    at.session_state["start.bound"] = bound
    fine(at.run())
    fields = dict(parse_qsl(urlsplit(link_of(at)).query))
    assert fields["bound"] == str(bound)
    again = open_app("Start", **fields)
    assert again.session_state["start.bound"] == bound
    assert again.session_state[keys.LINK_PROBLEMS] == ()
    # Of other data the page takes its own first bound.
    other = open_app("Start", link="1", data="shop-events", bound="123456789", epsilon="7")
    assert other.session_state["start.bound"] == play.first_bound(data(other).histogram)
    bad = open_app("Start", link="1", bound="0", epsilon="7")
    assert "bound" in str(bad.session_state[keys.LINK_PROBLEMS])
    assert bad.session_state[keys.EPSILON] == 7.0


def test_advice_on_several_columns_is_what_the_upload_offers():
    at = upload(open_app("Your data"), b"customer_id,branch,amount\n1,a,2\n1,b,3\n")
    label = at.multiselect(key="your_data.upload_further").label
    assert f"*{label}*" in advice.WHO["Several together identify a person"]


def test_rows_of_users_are_dots_by_hand():
    # 40 of 100 users at even distances of rank: the last of them has 60 rows, two behind each dot.
    rows = rows_of_users(ContributionHistogram([1, 5, 60], [50, 49, 1]))
    assert rows.rows_per_dot == 2
    assert rows.sizes.tolist() == [1.0] * 20 + [5.0] * 19 + [60.0]
    assert np.bincount(rows.user).tolist() == [1] * 20 + [3] * 19 + [30]
    # Rows 1 and 2 of a user stand around 1, rows 3 and 4 around 3, and the fifth row around 4.5.
    assert rows.height[rows.user == 20].tolist() == [1.0, 3.0, 4.5]
    assert rows.height[rows.user == 0].tolist() == [0.5]
    cut = ~rows.is_kept(4)
    assert set(rows.user[cut]) == set(range(20, 40))
    assert cut[rows.user == 39].sum() == 28
    assert dots_said(rows) == "Each dot stands for up to 2 rows."
    plot = plots.rows(rows, 4, Disclosure.PUBLIC)
    assert plot.alt.startswith("A bound of 4 rows cuts rows of 20 of the 40 users shown")
    assert np.sum(plot.columns["cut"]) == 19 * 1 + 56
    drawn = {trace.name: len(trace.x) for trace in plotly_figures.figure(plot).data}
    assert drawn == {"Kept": 20 + 19 * 2 + 2, "Cut": 19 + 28, "Your bound": 2}


def test_what_invented_users_teach_is_so():
    def best(users, epsilon=1.0):
        return find(SECRET, StartParameters(epsilon, users=users))

    assert best(Users.ALIKE).best.max_total == 20
    heavy = best(Users.ONE_HEAVY)
    assert heavy.best.max_total == 20
    assert heavy.at(20_000).noise == pytest.approx(1000 * heavy.at(20).noise)
    assert [best(Users.TWO_GROUPS, epsilon).best.max_total for epsilon in (1.0, 0.1)] == [300, 5]
    power = presets.dataset(Users.POWER_LAW).histogram
    assert power.users[:-1].tolist() == (3 * power.users[1:]).tolist()
    best_power = best(Users.POWER_LAW).best.max_total
    assert 1 < best_power < power.max_size
    for users, sentence in presets.SENTENCES.items():
        of_each = presets.dataset(users).histogram
        if of_each.sizes.size < 3:
            for size, number in zip(of_each.sizes, of_each.users, strict=True):
                assert {wording.number(size), "one" if number == 1 else wording.number(number)} <= set(
                    sentence.replace(",", "@").replace("@", ",").replace(". ", " ").replace(", ", " ").split()
                )


def test_invented_users_are_shown_and_the_data_in_use_stay():
    at = go(with_data(open_app("Mean"), SECRET), "Start")
    fine(at.selectbox(key="start.users").set_value(Users.ONE_HEAVY).run())
    assert presets.SENTENCES[Users.ONE_HEAVY] in shown_texts(at)
    assert answer_of(at, "start_card")["copied"] == "20"
    assert not any("computed from private data" in element.value for element in at.main.markdown)
    assert data(at).digest == SECRET.digest
    # The bound is that of the invented users: where it stood before was read off private data.
    fields = dict(parse_qsl(urlsplit(link_of(at)).query))
    first = play.first_bound(presets.dataset(Users.ONE_HEAVY).histogram)
    assert (fields["users"], fields["bound"]) == ("one heavy user", str(first))
    fine(at.selectbox(key="start.users").set_value(Users.IN_USE).run())
    assert any("computed from private data" in element.value for element in at.main.markdown)


def test_play_moves_the_bound_over_all_steps_and_ends_at_the_best(monkeypatch):
    monkeypatch.setattr(play, "STEP_SECONDS", 0.0)  # Every run is due,
    monkeypatch.setattr(play, "_tick", lambda: None)  # and none asks for the next.
    at = open_app("Start", link="1", users="two groups", epsilon="1")
    steps = play.bound_steps(presets.dataset(Users.TWO_GROUPS).histogram)
    fine(at.button(key="start_play").click().run())
    seen = [at.select_slider(key="start.bound").value]
    while at.button(key="start_play").label == "Stop":
        seen.append(at.select_slider(key="start.bound").value)
        assert len(seen) < 3 * len(steps)
        fine(at.run())
    assert list(dict.fromkeys(seen)) == list(steps)  # The last of them is the best one.
    assert at.select_slider(key="start.bound").value == 300
    # Stop ends it where it is, and until then no other hand moves the slider.
    fine(at.button(key="start_play").click().run())
    assert at.select_slider(key="start.bound").disabled
    fine(at.button(key="start_play").click().run())
    assert at.button(key="start_play").label == "Play"
    fine(at.select_slider(key="start.bound").set_value(5).run())
    assert at.select_slider(key="start.bound").value == 5
