"""A session file that somebody changed is refused in a sentence, or does no harm."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import streamlit
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from pages.shared.base import catalogue, keys
from pages.shared.session import session_file
from tests.pages.shared.session_contents import (
    ACCOUNT,
    LEDGER,
    RELEASE,
    SECRET,
    TABLE,
    build_content,
    read_json,
    write_json,
)


def get_number(content: Any) -> Any:
    """The number drawn, as the file holds it."""
    return content["drawn"]["private_choice"][SECRET.histogram.digest][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update(schema="sweetspot/session/9"), "no session file of this version"),
        (lambda f: f.update(schema=[]), "no session file of this version"),
        (lambda f: f.update(more=1, yet_more=2), "'yet_more' is not known here"),
        (lambda f: f.pop("accounts"), "accounts is missing"),
        (lambda f: f["data"].update(origin="nowhere"), "nothing beside its name"),
        (lambda f: f.update(data={"origin": "nowhere", "generator": {}}), "no sample or generator"),
        (lambda f: f.update(data={"origin": "zipf", "generator": {"alpha": "-1"}}), "alpha must lie"),
        (lambda f: f["data"].update(origin="upload"), "exactly where they say"),
        (lambda f: f["data"]["made_of"].update(f["data"] | {"made_of": {}}), "only a release in use"),
        (lambda f: f["data"]["content"]["histogram"].update(users=[1, 10**30]), "users must be"),
        (lambda f: f["data"]["content"]["histogram"].update(users=[190.0, 44]), "whole numbers"),
        (lambda f: f["data"]["content"]["histogram"].update(users=[190, 45]), "not those that were saved"),
        (lambda f: f["data"]["content"]["release"].update(epsilon=0.01), "not those that were saved"),
        (lambda f: f["data"]["content"]["release"].update(mechanism="[a](http://b)"), "letters, digits"),
        (lambda f: f["accounts"].update({"x": {}}), "'x' is not known here"),
        (lambda f: f["accounts"][""].update({"x" * 201: []}), "text of at most 200 characters"),
        (lambda f: f["accounts"]["regression"]["0" * 64][0].update(epsilon=-1), "epsilon must be"),
        (lambda f: f["accounts"]["regression"]["0" * 64][0].update(mark="bb"), "a mark stands at two"),
        (lambda f: f["own"].update(mean={}), "'mean' is not known here"),
        (lambda f: f["own"]["training"].update(account="cd" * 32), "not the account of these data"),
        (lambda f: f["own"]["training"].update(design=None), "not the account of these data"),
        (lambda f: f["own"]["training"]["design"].update(intercept=1), "true or false"),
        (lambda f: f["own"]["training"]["entered"].update(runs=3), "no such field on the page Classifier"),
        (lambda f: f["own"]["training"]["entered"].update(range_low_age="x"), "must be a number"),
        (lambda f: f["own"]["regression"]["entered"].update(range_low_age=1), "no such field on the page Linear"),
        (lambda f: f["own"]["regression"]["content"]["facets"].pop("table"), "not those that were saved"),
        (lambda f: f["files"][0].update(user="nobody"), "no column nobody"),
        (lambda f: f["files"][0].update(further_user=[1]), "text"),
        (lambda f: f["files"][0].update(kind="rows"), "one of"),
        (lambda f: f["files"][0].pop("columns"), "columns is missing"),
        (lambda f: f.update(files=[f["files"][0]] * 21), "20"),
        (lambda f: f["accounts"][""].clear(), "does not stand on the account"),
        (lambda f: get_number(f).update(value=17.5), "cannot be drawn"),
        (lambda f: get_number(f).update(epsilon=0.5), "guarantees"),
        (lambda f: get_number(f).update(mechanism="discrete Laplace"), "guarantees"),
        (lambda f: get_number(f).update(largest=0), "whole number from 1"),
        (lambda f: get_number(f).update(factor=None), "a guess goes with a factor"),
        (lambda f: get_number(f)["condition"].update(price=-1), "price must lie"),
        (lambda f: get_number(f).update(number="mode"), "one of smooth"),
        (lambda f: get_number(f).update(number=[]), "one of smooth"),
        (lambda f: f["drawn"]["private_choice"].update({SECRET.histogram.digest: 2 * [get_number(f)]}),
         "does not stand on the account"),
    ],
)  # fmt: skip
def test_a_changed_file_is_refused_in_a_sentence(change: Callable[[Any], Any], words: str) -> None:
    content = write_json(build_content())
    change(content)
    with pytest.raises(InvalidInput) as refused:
        read_json(content)
    assert words.lower() in str(refused.value).lower()


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """A good file with one place changed: another value, a value gone, or a piece of text."""
    content = write_json(build_content())
    here, above, name = content, content, ""
    while isinstance(here, dict | list) and here and (here is content or draw(st.integers(0, 4))):
        above, name = (
            here,
            draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here)))),
        )  # type: ignore[assignment]
        here = here[name]
    odd = st.one_of(
        st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False), st.text(max_size=4),
        st.sampled_from([[], {}, [[]], {"": {}}, 1e-9, 10**400]),
    )  # fmt: skip
    if draw(st.booleans()):
        above[name] = draw(odd)
    else:
        del above[name]
    text = json.dumps(content)
    if draw(st.integers(0, 3)) == 0:
        app = draw(st.integers(0, len(text) - 1))
        text = text[:app] + draw(st.sampled_from(['"', "}", "NaN", "9" * 30, ""])) + text[app + 1 :]
    return text.encode()


@pytest.mark.long
@settings(max_examples=250, deadline=None)
@given(hostile())
def test_whatever_is_changed_a_file_is_refused_or_harmless(content: bytes) -> None:
    try:
        session_read = session_file.read_file(content)
    except InvalidInput:
        return
    if (
        session_read.content.loaded_data is not None
    ):  # The data are whole, or another sample that the file names.
        assert session_read.content.loaded_data.dataset.digest == RELEASE.digest
    for table in session_read.content.tables_by_page.values():
        assert (table.dataset.digest, table.table_entry.account) == (TABLE.digest, ACCOUNT)
    digest = SECRET.histogram.digest
    # A number drawn comes back only where the file says what it cost.
    for selections in session_read.content.releases_by_page.get("private_choice", {}).values():
        for _, one in selections:
            assert one.facts in session_read.content.ledgers_by_question[""][digest].releases
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamlit, "session_state", state := {keys.LEDGERS: {digest: LEDGER}})
        session_file.apply_content(session_read.content)
        total = state[keys.LEDGERS][digest].total
    assert total.epsilon >= LEDGER.total.epsilon  # type: ignore[union-attr]
    for key, value in session_read.content.values_by_key.items():
        name, _, entry = key.partition(".")
        assert entry in catalogue.QUESTION_BY_NAME[name].fields
        assert not isinstance(value, float) or math.isfinite(value)
