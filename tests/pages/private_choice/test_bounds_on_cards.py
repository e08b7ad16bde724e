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

import dpcore
from dpcore.common.checks import Problems
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Ledger, ReleaseFacts
from dpcore.common.strict_json import JsonValue
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Totals, Values
from dpcore.mean.parameters import Counts
from dpcore.private_choice.parameters import OtherBound
from dpcore.quantile.parameters import Weighting
from dpcore.total.parameters import Summed
from pages.private_choice import saved
from pages.shared.base import keys
from pages.shared.session import session_file
from tests.pages.driving import (
    chart,
    check,
    confirm,
    errors,
    go,
    open_app,
    read_address,
    read_number,
    read_shown_link,
    shown_texts,
    trace,
    use_dataset,
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


def buttons(app: Any, name: str) -> list[str]:
    return [button.label for button in app.button if button.key == f"{name}_card_draw"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("title", "name", "state", "number", "wanted", "says"),
    [
        ("Quantile", "quantile", RANGE, None, OtherBound.QUANTILE_CAP, "Keep at most {} row"),
        (
            "Bias curves over τ₀",
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
    app = use_dataset(open_app(title), SMALL if title == "Quantile" else SECRET)
    for key, value in state.items():
        app.session_state[key] = value
    check(app.run())
    assert buttons(app, name) == ["Choose with DP…"]
    if number is not None:
        key, value, lacking = number
        check(app.button(key=f"{name}_card_draw").click().run())
        assert not [button for button in app.button if button.key == f"{name}_card_draw_confirm"]
        assert lacking in shown_texts(app)
        check(app.number_input(key=key).set_value(value).run())
        # Links, the browser's address and session files carry it, as what is public by what it is.
        field = key.partition(".")[2]
        assert f"{field}={value:.0f}" in read_shown_link(app)
        assert read_address(app)[field] == f"{value:.0f}"
        with unittest.mock.patch.object(st, "session_state", app.session_state):
            kept = session_file.read_file(
                session_file.write_file(session_file.read_session()).encode()
            ).content
        assert kept.values_by_key[key] == value
    confirm(app, f"{name}_card_draw")
    ((digest, choices),) = app.session_state["private_choice.choices"].items()
    ((of, drawn),) = choices
    assert of is wanted
    text = f"{drawn.value:,.12g}"
    assert says.format(text) in shown_texts(app)
    assert drawn.facts.label in shown_texts(app)
    assert "about the bound read off the private data" in shown_texts(app)
    # The figure marks what was drawn, on its own curve, and nothing else as in use.
    figure = chart(
        app, {"quantile": "quantile_error", "learning": "learning_bound", "total": "total_error"}[name]
    )
    (across,), (upwards,) = trace(figure, "Chosen with DP")
    assert across == drawn.value
    assert upwards > 0.0
    # Its owner is told what it costs on these data, and nobody else.
    assert "on these data this bound errs" in shown_texts(app)
    assert "In use" not in {item.get("name") for item in figure["data"]}
    # What the error consists of is computed from the private data.
    assert not read_number(app, f"{name}_card")["split"][1]
    delta = ", δ = 0.000001" if "total.delta" in state else ""
    assert f"the release adds ε = 1{delta}: ε = 1.1{delta} in all" in shown_texts(app)
    app.session_state[keys.CODE_LIBRARY] = "PYTHON"
    program = check(app.button(key=f"{name}_card_code").click().run()).code[-1].value
    assert f"{drawn.value:.12g}" in program
    assert "In all epsilon = 0.1 (bound) + 1 (this" in program
    # It comes back from a file beside what it cost, and not without.
    content = json.loads(json.dumps(saved.to_json({digest: choices})))
    problems = Problems()
    paid = {digest: Ledger((drawn.facts,))}
    assert saved.from_json(JsonValue(content, "choices", problems), paid) == {digest: choices}
    assert not problems.entries
    assert saved.from_json(JsonValue(content, "choices", problems), {}) == {digest: ()}
    assert problems.entries


def test_where_no_draw_is_sound_a_sentence_says_why() -> None:
    """Bins of totals; counts that are public need none."""
    binned = dataclasses.replace(
        SECRET, values=None, totals=Totals([1.5, 40.0, 300.0], "amount", [200, 150, 50])
    )
    app = use_dataset(open_app("Sum and count"), binned)
    app.session_state["total.summed"] = Summed.VALUES
    check(app.run())
    assert not buttons(app, "total")
    assert "one user can move a whole bin" in shown_texts(app)


@pytest.mark.long
def test_a_total_is_divided_shown_and_never_exceeded_however_often_somebody_draws() -> None:
    app = check(use_dataset(open_app("Sum and count"), SECRET).run())
    check(app.button(key="total_card_draw").click().run())
    check(app.toggle(key="private_choice.is_total_epsilon").set_value(True).run())
    assert app.button(key="total_card_draw_confirm").label == "Spend ε = 0.3"
    text = "Of ε = 1 in all, a draw takes 0.3; 0.7 is left for the release."
    assert shown_texts(app).count(text) == 2
    # Nothing is spent, and what would be spent follows the settings.
    check(app.toggle(key="private_choice.is_total_epsilon").set_value(False).run())
    check(app.number_input(key="private_choice.selection_epsilon").set_value(None).run())
    assert not [button for button in app.button if button.key == "total_card_draw_confirm"]
    check(app.number_input(key="private_choice.selection_epsilon").set_value(0.1).run())
    assert "A release at ε = 1 makes it **ε = 1.1** in all." in shown_texts(app)
    check(app.button(key="total_card_draw_cancel").click().run())
    assert "private_choice.choices" not in app.session_state
    check(app.button(key="total_card_draw").click().run())
    check(app.toggle(key="private_choice.is_total_epsilon").set_value(True).run())
    assert text in shown_texts(check(app.button(key="total_card_draw_cancel").click().run()))
    for number in (1, 2, 3):
        assert not [button for button in app.button if button.key == "total_card_draw_confirm"], (
            "each draw is asked for"
        )
        confirm(app, "total_card_draw")
        ((_, choices),) = app.session_state["private_choice.choices"].items()
        assert len(choices) == number
        (ledger,) = app.session_state[keys.LEDGERS].values()
        assert ledger.releases == tuple(drawn.facts for _, drawn in choices)
        (release,) = re.findall(r"the release adds ε = ([0-9.]+): ε = 1 in all", shown_texts(app))
        check(app.button(key="total_card_code").click().run())
        assert any(re.search(rf"(?i)epsilon ?= ?{release}\b", block.value) for block in app.code)
        facts = ReleaseFacts(float(release), 0.0, ledger.releases[0].neighbours, "release")
        assert 0.9999 <= ledger.add(facts).total.epsilon <= 1.0
        check(app.run())


@pytest.mark.long
def test_a_page_is_computed_for_what_a_total_leaves_for_its_release() -> None:
    """The figure of the card is that of the call at the release's part, before a draw and after it, on every page."""

    def error_on_card() -> str:
        return str(read_number(app, "total_card")["error"][1])

    def call_error(epsilon: float) -> str:
        return str(dpcore.count_bound(SECRET, epsilon=epsilon).answer.numbers[1].text)

    app = check(use_dataset(open_app("Sum and count"), SECRET).run())
    whole = error_on_card()
    assert whole == call_error(1.0)
    app.session_state["private_choice.is_total_epsilon"] = True
    check(app.run())
    assert error_on_card() == call_error(0.7) != whole
    # A link holds what was entered.
    assert "epsilon=1&" in read_shown_link(app) + "&"
    confirm(app, "total_card_draw")
    (ledger,) = app.session_state[keys.LEDGERS].values()
    assert ledger.total.epsilon == 0.3
    curve_name = "Expected error"
    bounds, errors_by_bound = trace(chart(app, "total_error"), curve_name)
    solution = dpcore.count_bound(SECRET, epsilon=0.7).answer.solution
    drawn = np.isfinite(errors_by_bound)
    expected_errors = [solution.compute_error(bound) for bound in bounds[drawn]]
    np.testing.assert_allclose(errors_by_bound[drawn], expected_errors, rtol=1e-3)
    # A mean with public counts needs no draw: all that is left is its release's.
    go(app, "Mean")
    for name, value in {"lower": 0.0, "upper": 100.0, "counts": Counts.PUBLIC}.items():
        app.session_state[f"mean.{name}"] = value
    check(app.run())
    assert "Of ε = 1 in all, ε = 0.7 is left for the release." in shown_texts(app)
    app.session_state[keys.EPSILON] = 0.2
    check(app.run())
    assert "oo little is left of ε = 0.2 in all: ε = 0.3 was spent" in errors(app)
