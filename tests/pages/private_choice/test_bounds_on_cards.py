"""Bounds that are drawn on the pages that ask for them: from the button to number, account, code and session file."""

from __future__ import annotations

import dataclasses
import json
import re
import unittest.mock
from typing import Any

import numpy as np
import pytest
import streamlit as st

from dpcore.common.checks import Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Ledger, ReleaseFacts
from dpcore.common.strict_json import JsonValue
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Totals, Values
from dpcore.private_choice.parameters import OtherBound
from dpcore.quantile.parameters import Weighting
from dpcore.total.parameters import Summed
from pages.private_choice import saved
from pages.shared.base import keys
from pages.shared.session import session_file
from tests.pages.driving import (
    address_of,
    answer_of,
    chart,
    check,
    confirm,
    link_of,
    open_app,
    shown_texts,
    trace,
    with_data,
)

SECRET = dataclasses.replace(samples.load("shop-events"), name="secret.csv", disclosure=Disclosure.PRIVATE)
VALUES_OF = SECRET.values
assert VALUES_OF is not None
FEW = VALUES_OF.user_codes < 20  # Of so few rows the page finds its own bound at once.
SMALL = dataclasses.replace(
    SECRET,
    histogram=ContributionHistogram.from_counts(np.bincount(VALUES_OF.user_codes[FEW])),
    values=Values(VALUES_OF.user_codes[FEW], VALUES_OF.values[FEW], "amount"),
)
RANGE = {"quantile.low": 0.0, "quantile.high": 100.0, "quantile.weighting": Weighting.CAP}
VALUES = {"total.summed": Summed.VALUES, "total.mechanism": NoiseKind.GAUSSIAN, "total.delta": 1e-6}


def buttons(at: Any, name: str) -> list[str]:
    return [one.label for one in at.button if one.key == f"{name}_card_draw"]


@pytest.mark.parametrize(
    ("title", "name", "state", "number", "wanted", "says"),
    [
        ("Quantile", "quantile", RANGE, None, OtherBound.QUANTILE_CAP, "Keep at most {} row"),
        (
            "Learning under a bound",
            "learning",
            {},
            ("learning.public_rows", 3000.0, "a public number of rows"),
            OtherBound.MODEL,
            "Keep at most {} row",
        ),
        (
            "Sum and count",
            "total",
            VALUES,
            ("total.highest_total", 10_000.0, "a highest total of one user"),
            OtherBound.TOTAL,
            "total of amount at {}.",
        ),
    ],
    ids=["quantile", "learner", "sum row by row, Gaussian"],
)
def test_from_the_button_to_number_code_and_session_file(
    title: str, name: str, state: dict[str, Any], number: Any, wanted: OtherBound, says: str
) -> None:
    at = with_data(open_app(title), SMALL if title == "Quantile" else SECRET)
    for key, value in state.items():
        at.session_state[key] = value
    check(at.run())
    if number is not None:
        key, value, lacking = number
        assert not buttons(at, name)
        assert lacking in shown_texts(at)
        # The strip leads to the field that the draw waits for, and nowhere else.
        (told,) = [e.proto.json for e in at.get("bidi_component") if e.proto.id.endswith("-strip")]
        (step,) = [one for one in json.loads(told)["steps"] if one["name"] == "Private?"]
        (waits,) = [one for one in at.number_input if one.key == key]
        assert step["selector"] == f'input[aria-label="{waits.label}"]'
        check(at.number_input(key=key).set_value(value).run())
        # Links, the browser's address and session files carry it, as what is public by what it is.
        field = key.partition(".")[2]
        assert f"{field}={value:.0f}" in link_of(at)
        assert address_of(at)[field] == f"{value:.0f}"
        with unittest.mock.patch.object(st, "session_state", at.session_state):
            kept = session_file.read_file(
                session_file.write_file(session_file.read_session()).encode()
            ).content
        assert kept.values_by_key[key] == value
    assert buttons(at, name) == ["Draw it privately (ε = 0.1)"]
    confirm(at, f"{name}_card_draw")
    ((digest, choices),) = at.session_state["private_choice.choices"].items()
    ((of, drawn),) = choices
    assert of is wanted
    shown = f"{drawn.value:,.12g}"
    assert says.format(shown) in shown_texts(at)
    assert drawn.facts.label in shown_texts(at)
    assert "about the bound read off the private data" in shown_texts(at)
    # The figure marks what was drawn, on its own curve, and nothing else as in use.
    figure = chart(
        at, {"quantile": "quantile_error", "learning": "learning_bound", "total": "total_error"}[name]
    )
    (across,), (upwards,) = trace(figure, "Drawn privately")
    assert across == drawn.value
    assert upwards > 0.0
    assert "In use" not in {one.get("name") for one in figure["data"]}
    # What the error consists of is computed from the private data.
    assert not answer_of(at, f"{name}_card")["parts"]
    delta = ", δ = 0.000001" if "total.delta" in state else ""
    assert f"the release adds ε = 1{delta}: ε = 1.1{delta} in all" in shown_texts(at)
    at.session_state[keys.CODE_LIBRARY] = "PYTHON"
    program = check(at.button(key=f"{name}_card_code").click().run()).code[-1].value
    assert f"{drawn.value:.12g}" in program
    assert "In all epsilon = 0.1 (bound) + 1 (this" in program
    # It comes back from a file beside what it cost, and not without.
    part = json.loads(json.dumps(saved.to_json({digest: choices})))
    problems = Problems()
    paid = {digest: Ledger((drawn.facts,))}
    assert saved.from_json(JsonValue(part, "choices", problems), paid) == {digest: choices}
    assert not problems.entries
    assert saved.from_json(JsonValue(part, "choices", problems), {}) == {digest: ()}
    assert problems.entries


def test_where_no_draw_is_sound_a_sentence_says_why() -> None:
    """Bins of totals; counts that are public need none."""
    binned = dataclasses.replace(
        SECRET, values=None, totals=Totals([1.5, 40.0, 300.0], "amount", [200, 150, 50])
    )
    at = with_data(open_app("Sum and count"), binned)
    at.session_state["total.summed"] = Summed.VALUES
    check(at.run())
    assert not buttons(at, "total")
    assert "one user can move a whole bin" in shown_texts(at)


def test_a_total_is_divided_shown_and_never_exceeded_however_often_somebody_draws() -> None:
    at = check(with_data(open_app("Sum and count"), SECRET).run())
    check(at.toggle(key="private_choice.is_total_epsilon").set_value(True).run())
    assert buttons(at, "total") == ["Draw it privately (ε = 0.3)"]
    told = "Of ε = 1 in all, a draw takes 0.3; 0.7 is left for the release."
    assert told in shown_texts(at)
    # A press asks; nothing is spent, and other settings take the question back.
    check(at.button(key="total_card_draw").click().run())
    assert shown_texts(at).count(told) == 2
    check(at.toggle(key="private_choice.is_total_epsilon").set_value(False).run())
    assert not [one for one in at.button if one.key == "total_card_draw_confirm"]
    check(at.button(key="total_card_draw").click().run())
    assert "A release at ε = 1 makes it **ε = 1.1** in all." in shown_texts(at)
    check(at.button(key="total_card_draw_cancel").click().run())
    assert "private_choice.choices" not in at.session_state
    check(at.toggle(key="private_choice.is_total_epsilon").set_value(True).run())
    for number in (1, 2, 3):
        assert not [one for one in at.button if one.key == "total_card_draw_confirm"], (
            "each draw is asked for"
        )
        confirm(at, "total_card_draw")
        ((_, choices),) = at.session_state["private_choice.choices"].items()
        assert len(choices) == number
        (ledger,) = at.session_state[keys.LEDGERS].values()
        assert ledger.releases == tuple(drawn.facts for _, drawn in choices)
        (release,) = re.findall(r"in all, ε = ([0-9.]+) is left for the release\.", shown_texts(at))
        check(at.button(key="total_card_code").click().run())
        assert any(re.search(rf"(?i)epsilon ?= ?{release}\b", block.value) for block in at.code)
        facts = ReleaseFacts(float(release), 0.0, ledger.releases[0].neighbours, "release")
        assert 0.9999 <= ledger.add(facts).total.epsilon <= 1.0
        check(at.run())
