"""Plan: lines in a table are the text that links carry; the page says what the core answers; edges get sentences."""

from __future__ import annotations

from urllib.parse import unquote_plus

import pytest

from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.plan import PlanParameters, lines
from dpcore.plan.answer import answered
from dpcore.plan.budget import Program
from dpcore.plan.parameters import Objective
from pages.plan import inputs, question
from tests.pages.driving import errors, fine, go, link_of, metrics_of, open_app, shown_texts

SHOP = samples.load("shop-events")
TEXT = (
    "users; rows within 2%; sum within 12 weight 0.5; median within 3%; quantile 0.9; rows per group weight 2"
)


def opened(text, **more):
    return open_app(
        "Plan", link="1", data="shop-events", epsilon="1", lines=text, lower="0", upper="100", **more
    )


def test_a_table_of_lines_is_their_text_and_back():
    assert inputs.text_of(inputs.frame_of(TEXT)) == TEXT
    frame = inputs.frame_of("rows; sum; median")
    frame.loc[0, inputs.WANTED] = " 5 ;\n users"  # No second line comes out of a cell.
    frame.loc[1, inputs.RELEASE] = None
    frame.loc[2, inputs.QUANTILE] = 0.25
    assert inputs.text_of(frame) == "rows within 5 users; quantile 0.25"
    assert inputs.text_of(inputs.frame_of("")) == ""


def test_new_data_propose_lines_that_they_have_and_what_a_person_chose_stays():
    empty = {"lines": "users; rows", "lines_proposed": None, "lower": None, "upper": None, "proposed": None}
    held = question.propose(SHOP, empty)
    assert held["lines"] == "users; rows; sum; mean; rows per group"
    assert held["lower"] <= SHOP.values.values.min()
    assert held["upper"] >= SHOP.values.values.max()
    answered(SHOP, PlanParameters(1.0, held["lines"], lower=held["lower"], upper=held["upper"]))
    # No range is read off private values, and so no mean is proposed of them.
    private = Dataset("mine", "", Disclosure.PRIVATE, SHOP.histogram, values=SHOP.values, pairs=SHOP.pairs)
    of_private = question.propose(private, empty)
    assert of_private["lines"] == "users; rows; sum; rows per group"
    assert of_private["lower"] is None
    counts = Dataset("few", "", Disclosure.PUBLIC, ContributionHistogram.from_counts([1, 4]))
    assert question.propose(counts, {**empty, **held})["lines"] == "users; rows"
    assert "lines" not in question.propose(counts, {**empty, **held, "lines": "rows"})


def test_the_page_says_what_the_core_answers_and_every_edge_in_a_sentence():
    text = "users within 1%; rows within 2%; sum; rows per group within 20%"
    at = opened(text, program=Program.OPENDP.value)
    asked = PlanParameters(1.0, text, lower=None, upper=None, program=Program.OPENDP)
    said = answered(SHOP, asked)
    assert said.headline in shown_texts(at)
    assert metrics_of(at)[0].value == said.numbers[0].text
    assert said.found.planned[said.found.eater].line.what.lower() in said.detail.lower()
    assert text in unquote_plus(link_of(at))
    at = fine(at.segmented_control(key="plan.objective").set_value(Objective.REACH).run())
    least = answered(SHOP, PlanParameters(1.0, text, Objective.REACH, program=Program.OPENDP))
    assert least.headline in shown_texts(at)
    at = fine(at.segmented_control(key="plan.objective").set_value(Objective.LARGEST).run())
    assert "needs a wanted error in every line; sum has none" in errors(at)
    assert not metrics_of(at)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rows; rows within 3", "rows stands there twice"),
        ("mean within 0.0001", "no ε is enough"),
        ("mean weight 0", "Weight"),
    ],
)
def test_what_cannot_be_is_said(text, sentence):
    problems = Problems()
    lines.read(text, problems)
    if problems.found:
        assert sentence.lower() in problems.found[0].sentence.lower()
        return
    at = opened(text, objective=Objective.REACH.value)
    assert sentence in errors(at).replace("No ε", "no ε")
    assert not metrics_of(at)


def test_a_release_of_another_page_becomes_a_line_with_its_range():
    at = open_app(
        "Quantile", link="1", data="shop-events", epsilon="1", quantiles="0.5, 0.9", low="0", high="250"
    )
    at = fine(at.button(key="quantile_card_plan").click().run())
    assert not [one for one in at.button if one.key == "quantile_card_plan"]  # They are there now.
    at = go(at, "Plan")
    said = unquote_plus(link_of(at))
    assert "median; quantile 0.9" in said
    assert "upper=250" in said
    assert metrics_of(at)
