"""Settings that belong to data are cleared when other data come into use, on every page."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.shared.base import catalogue
from pages.shared.base.question import FieldOrigin
from tests.pages.driving import check, data, enter_range, go, open_app, shown_texts, upload, use


def two_files() -> None:
    """A session without widgets: every entry is filled beside one file, and another file is put in use."""
    import streamlit as st

    from dpcore.common.privacy import Disclosure
    from dpcore.contributions import ContributionHistogram
    from dpcore.dataset import Dataset, Values
    from pages.shared.base import catalogue, keys
    from pages.shared.fields import setting
    from pages.shared.session import session

    state, seen = st.session_state, st.session_state["seen"]

    def file(name: str, rows: int) -> Dataset:
        values = Values(sorted([*range(200)] * rows), [0.5] * 200 * rows)
        return Dataset(name, "", Disclosure.PRIVATE, ContributionHistogram([rows], [200]), values=values)

    def fill() -> None:
        session.use_data(session.LoadedData(file("first.csv", 2), session.Origin(session.UPLOADED)))
        for question in catalogue.QUESTION_BY_NAME.values():
            for name in (*question.fields, *question.origins_by_entry):
                state[question.get_key(name)] = f"of first.csv: {name}"
        setting.enter_values(
            {field.shared: f"of first.csv: {field.shared}"
             for question in catalogue.QUESTION_BY_NAME.values() for field in question.fields.values() if field.shared}
        )  # fmt: skip

    fill()
    session.use_data(session.LoadedData(file("second.csv", 3), session.Origin(session.UPLOADED)))
    seen["second"] = dict(state.items())
    fill()
    state[keys.AWAITED_VALUES] = {"mean.lower": "of first.csv: lower", "mean.upper": "something else"}
    session.use_data(session.LoadedData(file("second.csv", 3), session.Origin(session.UPLOADED)))
    seen["awaited"] = dict(state.items())
    session.use_data(session.LoadedData(file("third.csv", 4), session.Origin(session.UPLOADED)))
    seen["third"] = dict(state.items())


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    app = AppTest.from_function(two_files, default_timeout=600)
    app.session_state["seen"] = states = {}
    app.run()
    assert not app.exception, app.exception
    return states


def test_no_setting_that_is_not_declared_public_answers_for_other_data(seen: dict[str, Any]) -> None:
    state, cleared, kept = seen["second"], 0, 0
    for question in catalogue.QUESTION_BY_NAME.values():
        for name in (*question.fields, *question.origins_by_entry):
            value_text = str(state.get(question.get_key(name)))
            declared = question.fields.get(name)
            if question.get_origin(name) in (FieldOrigin.DATA, FieldOrigin.VALUES) or (
                declared and declared.is_renewed
            ):
                cleared += 1
                # What belongs to a page's own table goes with that table.
                assert "first.csv" not in value_text or question.get_origin(name) is FieldOrigin.OWN_DATA, (
                    question.name,
                    name,
                )
            elif declared and name not in question.proposed_field_names:
                kept += 1
                assert value_text == f"of first.csv: {name}", (question.name, name)
    assert cleared > 60
    assert kept > 100
    shared = state["release_setting"]
    assert "lower" not in shared
    assert "value_variance" not in shared
    assert shared["delta"] == "of first.csv: delta"


@pytest.mark.parametrize(
    "key",
    [
        "mean.lower", "mean.upper", "mean.value_variance", "quantile.low", "quantile.high", "quantile.center",
        "plan.lower", "plan.upper", "per_group.lower", "per_group.upper", "per_group.floor", "total.lower",
        "total.upper", "total.highest_total", "learning.public_rows", "factorisation.lowest",
        "private_choice.largest", "private_choice.pair_unit", "private_choice.pair_largest",
        "private_choice.range_centre", "private_choice.range_lower", "private_choice.range_unit",
        "private_choice.range_largest", "private_choice.range_users", "private_choice.range_bound",
    ],
)  # fmt: skip
def test_ranges_and_public_numbers_of_a_column_are_asked_anew(seen: dict[str, Any], key: str) -> None:
    """Named by hand: what a declaration forgets, this list does not."""
    assert "first.csv" not in str(seen["second"][key])


def test_what_a_link_said_of_data_to_come_stays_for_these_and_no_others(seen: dict[str, Any]) -> None:
    assert seen["awaited"]["mean.lower"] == "of first.csv: lower"
    assert "first.csv" not in str(seen["awaited"]["mean.upper"])
    assert "first.csv" not in str(seen["third"]["mean.lower"])


def table(*columns: str) -> bytes:
    lines = [",".join(("user_id", *columns))]
    lines += [",".join((f"u{i % 9}", *(str(i % 7 + at) for at in range(len(columns))))) for i in range(40)]
    return "\n".join(lines).encode()


@pytest.mark.long_but("Mean")
@pytest.mark.parametrize("page", ["Mean", "Quantile"])
def test_a_range_that_was_entered_for_one_file_is_asked_for_anew_with_the_next(page: str) -> None:
    low, high = {"Mean": ("mean.lower", "mean.upper"), "Quantile": ("quantile.low", "quantile.high")}[page]
    app = go(use(upload(open_app("Data"), table("amount"), "first.csv")), page)
    assert data(app).is_private
    assert "What range can a value have?" in shown_texts(app)
    app.number_input(key=low).set_value(3.0).run()
    check(app.number_input(key=high).set_value(977.0).run())
    assert "What range can a value have?" not in shown_texts(app)
    app = use(upload(go(app, "Data"), table("amount", "minutes"), "second.csv"))
    for next_page in (page, "Mean", "Quantile"):
        app = go(app, next_page)
        assert "What range can a value have?" in shown_texts(app), next_page
        assert "977" not in shown_texts(app)
    assert "977" not in shown_texts(go(app, "Budget plan"))
    assert app.session_state[low] is None
    assert app.session_state[high] is None


@pytest.mark.long
def test_a_range_of_one_column_is_asked_for_anew_with_another_column_of_the_file() -> None:
    app = upload(open_app("Data"), table("amount", "minutes"), "both.csv")
    key = "your_data.upload_role_value"
    assert app.selectbox(key=key).value == "amount"
    app = go(use(app), "Mean")
    enter_range(app, 3.0, 977.0)
    app = upload(go(app, "Data"), table("amount", "minutes"), "both.csv")
    app = go(use(app.selectbox(key=key).set_value("minutes").run()), "Mean")
    assert "What range can a value have?" in shown_texts(app)
    assert app.number_input(key="mean.upper").value is None


@pytest.mark.long
def test_the_range_of_a_link_on_an_upload_stays_for_the_file_that_it_waits_for() -> None:
    app = open_app("Mean", link="1", data="upload", epsilon="1", lower="3", upper="977", counts="private")
    app = go(use(upload(go(app, "Data"), table("amount"), "first.csv")), "Mean")
    assert (app.session_state["mean.lower"], app.session_state["mean.upper"]) == (3.0, 977.0)
    app = go(use(upload(go(app, "Data"), table("amount", "minutes"), "second.csv")), "Mean")
    assert (app.session_state["mean.lower"], app.session_state["mean.upper"]) == (None, None)
