"""Quantile on the page: searches in the background, private values, and sentences for what cannot be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpcore import quantile
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program
from dpcore.common.progress import Stage
from dpcore.common.wording import format_count, format_percent
from dpcore.quantile import WeightKind, optimal_bound
from dpcore.quantile.answer import answer as answer_answer
from dpcore.quantile.answer import plots
from dpcore.quantile.answer import solution as core
from dpcore.quantile.answer import words as sentences
from dpcore.quantile.base_distribution import build_uniform_base
from pages.shared.base import keys
from pages.shared.session import session
from tests.pages.driving import (
    begin,
    chart,
    check,
    data,
    errors,
    finish,
    go,
    list_metrics,
    open_app,
    open_tab,
    read_shown_link,
    shown_texts,
    trace,
    use_dataset,
    work_waits_for_stop,
)
from tests.pages.quantile.conftest import SHOP, answer_for, problem, render

LINK = {
    "link": "1",
    "data": "shop-events",
    "epsilon": "1",
    "low": "0",
    "high": "100",
    "program": "best known mechanism",
}
JOBS = ("quantile.search_job", "quantile.poorer_job", "quantile.draws_job")


def finish_searches(app):
    """Wait for the searches: a test has no browser that polls."""
    return finish(app, *JOBS)


def open_quantile_page(**link):
    return finish_searches(begin("Quantile", **{**LINK, **link}))


PRIVATE = dataclasses.replace(SHOP, name="mine.csv", disclosure=Disclosure.PRIVATE)


@pytest.mark.long
def test_the_first_answer_stands_until_the_exact_one_is_there(monkeypatch):
    app = open_quantile_page()
    work_waits_for_stop(monkeypatch)
    check(app.number_input(key=keys.EPSILON).set_value(0.5).run())
    job = app.session_state["quantile.search_job"]
    assert job.is_running
    assert answer_answer.SENTENCE_BY_STAGE[Stage.FIRST] in app.get("progress")[0].proto.text
    smooth = optimal_bound.find_best_bound(problem(0.5), WeightKind.SMOOTH, core.NUM_SEARCH_BOUNDS)
    assert list_metrics(app)[0].value == format_count(smooth.bound, "row")
    monkeypatch.undo()
    job.stop()
    finish_searches(app)
    # Stopped: it says so, and can be searched again.
    assert "Stopped early" in shown_texts(app)
    finish_searches(check(app.button(key="quantile_again").click().run()))
    assert "Stopped early" not in shown_texts(app)
    assert not app.get("progress")
    exact = optimal_bound.find_best_bound(problem(0.5), WeightKind.CAP)
    ((x,), (y,)) = trace(chart(app, "quantile_error"), "Best bound")
    assert (x, y) == (exact.bound, pytest.approx(exact.rank_error))


@pytest.mark.long
def test_of_many_rows_the_answer_before_stands_until_the_exact_one_is_there(monkeypatch):
    monkeypatch.setattr(answer_answer, "MAX_FIRST_ROWS", 0)
    app = open_quantile_page()
    figure_before, before_epsilon = chart(app, "quantile_error"), app.session_state[keys.EPSILON]
    with monkeypatch.context() as patch:
        work_waits_for_stop(patch)
        check(app.number_input(key=keys.EPSILON).set_value(0.5).run())
        assert answer_answer.SENTENCE_BY_STAGE[Stage.EARLIER] in app.get("progress")[0].proto.text
        assert chart(app, "quantile_error") == figure_before
        assert app.session_state[keys.PIN_BUILDER]().epsilon == before_epsilon != 0.5
        job = app.session_state["quantile.search_job"]
        job.stop()
        job.wait(60.0)
    check(app.run())
    finish_searches(check(app.button(key="quantile_again").click().run()))
    assert chart(app, "quantile_error") != figure_before


@pytest.mark.long
def test_without_values_it_shows_invented_data_and_leaves_those_in_use():
    app = finish_searches(open_app("Quantile"))
    assert app.session_state["quantile.program"] is Program.OPENDP
    finish_searches(check(app.selectbox(key="quantile.program").set_value(Program.BEST.value).run()))
    texts = shown_texts(app)
    assert "This page needs values, one per row" in texts
    assert session.INVENTED_BADGE in texts
    notes = [
        note["text"].replace("<br>", " ") for note in chart(app, "quantile_error")["layout"]["annotations"]
    ]
    assert session.DEMONSTRATION_LABEL in notes
    assert data(app).values is None
    assert f"data={session.DEFAULT_SAMPLE}" in read_shown_link(app)
    # The ends of the base come from the invented values, rounded out; the answer is that on these values.
    assert [app.number_input(key=k).value for k in ("quantile.low", "quantile.high")] == [0.0, 100.0]
    assert list_metrics(app)[0].value == answer_for().numbers[0].text
    open_tab(app, "quantile", "Where the answer falls")
    for key in ("quantile_density", "quantile_near"):
        notes = [note["text"].replace("<br>", " ") for note in chart(app, key)["layout"]["annotations"]]
        assert session.DEMONSTRATION_LABEL in notes


def test_private_values_are_asked_for_their_range_and_labelled():
    app = check(use_dataset(open_app("Quantile"), PRIVATE).run())
    app = check(app.selectbox(key="quantile.program").set_value(Program.BEST.value).run())
    assert "What range can a value have?" in shown_texts(app)
    assert "Enter L and U" in shown_texts(app)
    assert not list_metrics(app)
    app.number_input(key="quantile.low").set_value(0.0)
    finish_searches(check(app.number_input(key="quantile.high").set_value(1.0).run()))
    texts = shown_texts(app)
    # Of private data the bound is drawn, and that of the counts stands aside, until it is wanted off the values.
    assert app.session_state["quantile.neighbours"] is Neighbours.ADD_OR_REMOVE_USER
    assert sentences.LEAKS_VALUES_SENTENCE not in texts
    assert app.button(key="quantile_card_draw").label == "Choose with DP…"
    assert app.button(key="quantile_card_code").label == "Use the number as it is"
    assert "Do not publish" in texts
    assert "public input" not in texts
    outside = int((SHOP.values.values > 1.0).sum())
    share = format_percent(outside / SHOP.values.values.size)
    assert f"{outside:,} values of {SHOP.values.values.size:,} ({share}) lie outside [L, U]" in texts
    assert f"{share} of the values lie outside the base distribution" in errors(app)
    helps = [button.proto.help for button in app.get("download_button") if button.proto.help]
    assert helps
    assert all("do not publish" in text for text in helps)
    finish_searches(
        check(app.segmented_control(key="quantile.bound_from").set_value("Best for the values").run())
    )
    assert sentences.LEAKS_COUNTS_SENTENCE in shown_texts(app)
    assert app.button(key="quantile_card_code").label == "Use the number as it is"
    finish_searches(
        check(app.segmented_control(key="quantile.neighbours").set_value("One user's values").run())
    )
    texts = shown_texts(app)
    assert sentences.LEAKS_VALUES_SENTENCE in texts
    assert "No ε covers a look at the values" in texts
    assert app.button(key="quantile_card_code").label == "Use the number as it is"
    # The other bases are asked for, too, where nothing was entered that they could come from.
    for name in ("low", "high", "center", "spread", "edges"):
        app.session_state[f"quantile.{name}"] = None
    check(app.segmented_control(key="quantile.base").set_value("Normal").run())
    assert "Enter the mean of ν and its standard deviation" in shown_texts(app)
    check(app.segmented_control(key="quantile.base").set_value("Histogram").run())
    assert "Enter the edges of the bins" in shown_texts(app)


@pytest.mark.long
def test_what_cannot_be_gets_a_sentence_and_nothing_is_lost():
    app = open_quantile_page()
    for key, value, before, sentence in [
        ("quantile.low", None, 0.0, "Lowest value L is empty. Enter a number"),
        ("quantile.low", 200.0, 0.0, "Lowest value L must lie below highest value U; got 200 and 100"),
        ("quantile.quantiles", "0.5, 7", "0.5", "got 7"),
        ("quantile.quantiles", "", "0.5", "Quantiles is empty"),
        ("quantile.own_bound", 0.0, None, "Your own bound must lie between"),
        (keys.EPSILON, None, 1.0, "ε is empty"),
    ]:
        widget = app.text_input(key=key) if isinstance(before, str) else app.number_input(key=key)
        check(widget.set_value(value).run())
        assert sentence in errors(app)
        # Without a bound to compare with, the best one is what it was.
        assert bool(list_metrics(app)) is (key == "quantile.own_bound")
        widget = app.text_input(key=key) if isinstance(before, str) else app.number_input(key=key)
        if sentence == "got 7":
            go(app, "Data")
            go(app, "Quantile")
            assert sentence in errors(app)
            assert app.number_input(key="quantile.high").value == 100.0
            widget = app.text_input(key=key)
        check(widget.set_value(before).run())
    assert not errors(app)


@pytest.mark.long
def test_a_field_that_a_link_left_out_has_a_proposal_when_it_comes_into_use():
    app = open_quantile_page()
    finish_searches(check(app.segmented_control(key="quantile.base").set_value("Normal").run()))
    assert not errors(app)
    assert app.number_input(key="quantile.center").value == 50.0
    assert "outside" not in sentences.describe_inputs(
        SHOP, core.solve(SHOP, app.session_state[keys.PAGE_PARAMETERS])
    )
    finish_searches(check(app.segmented_control(key="quantile.base").set_value("Histogram").run()))
    finish_searches(check(app.text_input(key="quantile.edges").set_value("0, 5, 10").run()))
    above = int((SHOP.values.values > 10.0).sum())
    assert f"outside the bins of ν: 0 below, {above:,} above." in shown_texts(app)
    assert "Set the bins from what you know" in errors(app)


@pytest.mark.long
def test_a_program_answers_within_four_standard_deviations_of_a_normal_base():
    app = open_quantile_page(program="OpenDP")
    check(app.segmented_control(key="quantile.base").set_value("Normal").run())
    finish_searches(check(app.number_input(key="quantile.spread").set_value(2.0).run()))
    total_below, above = (SHOP.values.values < 42.0).sum(), (SHOP.values.values > 58.0).sum()
    range_text = "outside four standard deviations around the mean of ν"
    assert f"{range_text}: {total_below:,} below, {above:,} above." in shown_texts(app)
    assert "Set the mean of ν and its standard deviation from what you know" in errors(app)


@pytest.mark.long
def test_a_poor_base_is_drawn_and_said():
    app = open_quantile_page()
    app.session_state["quantile.tabs"] = "Base distribution"
    finish_searches(check(app.run()))
    assert "β = " in shown_texts(app)
    bound = answer_for().solution.bound
    x, curve_values = trace(chart(app, "quantile_poorer"), "Expected rank error")
    for k in (0, 10, 14):
        moved = build_uniform_base(100.0 * x[k], 100.0 + 100.0 * x[k])
        expected = quantile.compute_output(problem(base=moved), WeightKind.SMOOTH, bound).expected_rank_error
        assert curve_values[k] == pytest.approx(expected)
    assert curve_values[0] > 20.0 * curve_values[10]
    finish_searches(
        check(app.segmented_control(key="quantile.poorer").set_value(core.BaseChange.WIDER).run())
    )
    x, curve_values = trace(chart(app, "quantile_poorer"), "Expected rank error")
    wide = build_uniform_base(50.0 - 50.0 * x[-1], 50.0 + 50.0 * x[-1])
    expected = quantile.compute_output(problem(base=wide), WeightKind.SMOOTH, bound).expected_rank_error
    assert curve_values[-1] == pytest.approx(expected)


@pytest.mark.long
def test_sampled_answers_are_called_a_simulation_and_lie_on_the_exact_probabilities():
    view = answer_for().solution
    sampled = core.simulate_answers(view.outputs, 5000)
    drawn = render(plots.plot_samples(view, sampled, SHOP, core.find_shown_ranges(view)[0]))
    _, exact = trace(drawn, "Median, exact")
    _, simulated = trace(drawn, "Median, simulated")
    # Counts of 5,000 draws in 40 bins: each within five standard deviations.
    assert np.all(np.abs(simulated - exact) <= 5.0 * np.sqrt(exact * (1.0 - exact) / 5000.0) + 1.0 / 5000.0)
    app = open_quantile_page()
    open_tab(app, "quantile", "Sampled answers")
    check(app.number_input(key="quantile.draws").set_value(5000).run())
    finish_searches(check(app.button(key="quantile_draws_job_start").click().run()))
    assert trace(chart(app, "quantile_samples"), "Median, simulated")[1] == pytest.approx(simulated)
    texts = shown_texts(app)
    assert "not a release" in texts
    check(app.number_input(key="quantile.draws").set_value(100).run())
    assert "These results are for earlier settings" in shown_texts(app)
