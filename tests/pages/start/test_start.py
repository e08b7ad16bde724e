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
from pages.shared import axes, catalogue, keys, ranges, session
from pages.start import advice, answer, card
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
        noise = answer.CELLS * bound / ranges.DEFAULT_EPSILON
        assert y == pytest.approx((lost + noise) / histogram.num_rows)


def test_the_sweet_spot_is_the_best_of_all_bounds():
    at = open_app("Start")
    histogram = samples.load(session.DEFAULT_SAMPLE).histogram
    bounds = np.arange(1, histogram.max_size + 1)
    lost = histogram.num_rows - np.array([np.minimum(histogram.sizes, b) @ histogram.users for b in bounds])
    error = (lost + answer.CELLS * bounds / ranges.DEFAULT_EPSILON) / histogram.num_rows
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
    assert "Outside the axes, which end at 100\N{NO-BREAK SPACE}%: your bound." in shown_texts(at)


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
    assert at.select_slider(key="start.bound").value in axes.bound_steps(data(at).histogram)
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
    view = answer.tradeoff(ContributionHistogram([1, 4, 20], [3, 2, 1]), 1.0)
    said = card.sentence(view, 1.0, 4)
    assert "With **4 rows per user** and ε = 1" in said
    for share in (16 / 31, 48 / 31, 64 / 31):
        assert wording.percent(share) in said
    shown = card.card(view, 1.0, 4, Disclosure.PUBLIC)
    assert "every bound gives more noise than count" in shown.headline
    assert shown.figures == ()


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
    steps = axes.bound_steps(data(at).histogram)
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
    assert other.session_state["start.bound"] == axes.first_bound(data(other).histogram)
    bad = open_app("Start", link="1", bound="0", epsilon="7")
    assert "bound" in str(bad.session_state[keys.LINK_PROBLEMS])
    assert bad.session_state[keys.EPSILON] == 7.0


def test_advice_on_several_columns_is_what_the_upload_offers():
    at = upload(open_app("Your data"), b"customer_id,branch,amount\n1,a,2\n1,b,3\n")
    label = at.multiselect(key="your_data.upload_further").label
    assert f"*{label}*" in advice.WHO["Several together identify a person"]
