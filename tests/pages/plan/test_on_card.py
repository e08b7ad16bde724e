"""The way of another page's release into the plan: which line it becomes, and what a plan takes otherwise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dpcore.answer import Answer
from dpcore.answer.answer import ReleaseSetting
from dpcore.code import Quantity
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.text_fields import from_fields
from dpcore.quantile.parameters import QuantileParameters
from pages.plan import on_card


@pytest.mark.parametrize(
    ("released", "neighbours", "share", "lines", "said"),
    [
        (Quantity.MEAN, Neighbours.REPLACE_VALUES, None, ("mean",), "all their rows"),
        (
            Quantity.GROUP_ROWS,
            Neighbours.ADD_OR_REMOVE_USER,
            0.5,
            ("rows per group",),
            "the list of groups is public",
        ),
        (Quantity.COUNT, Neighbours.ADD_OR_REMOVE_USER, None, ("rows",), ""),
        (Quantity.GROUP_MEANS, Neighbours.ADD_OR_REMOVE_USER, None, (), ""),
    ],
)
def test_the_way_into_the_plan_says_what_is_otherwise_there(released, neighbours, share, lines, said):
    asked = SimpleNamespace(selection_share=share)
    setting = ReleaseSetting(released, 1.0, neighbours)
    card = Answer("", "", (), (), Disclosure.PUBLIC, parameters=asked, setting=setting)
    assert on_card.list_line_texts(card) == lines
    text = " ".join(on_card.describe_differences(card))
    assert said in text
    assert bool(said) == bool(text)
    assert bool(lines) != (released in on_card.REFUSAL_BY_QUANTITY)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base": "normal", "center": 5.0, "spread": 2.0}, "the base distribution is uniform"),
        ({"weighting": "cap", "program": "plain Python"}, "rows of a user have smooth weights"),
        ({"weighting": "cap", "program": "OpenDP"}, ""),
        ({"weighting": "smooth", "program": "plain Python"}, ""),
    ],
)
def test_a_quantile_that_a_plan_draws_otherwise_is_said_so(settings, said):
    asked = from_fields(QuantileParameters, {"epsilon": "1"} | {name: str(v) for name, v in settings.items()})
    setting = ReleaseSetting(Quantity.QUANTILE, 1.0, Neighbours.ADD_OR_REMOVE_USER)
    card = Answer("", "", (), (), Disclosure.PUBLIC, parameters=asked, setting=setting)
    assert on_card.list_line_texts(card) == ("median",)
    text = " ".join(on_card.describe_differences(card))
    assert said in text
    assert bool(said) == bool(text)
