"""What a session file holds: all of it comes back, or what does not is named, and its label is the most private."""

from __future__ import annotations

import enum
import json
from dataclasses import replace
from typing import Any

import pytest
import streamlit
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.privacy import Disclosure, Ledger, ReleaseFacts
from dpcore.private_choice.choice import MECHANISM_NAME, DrawnNumber
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters, Relation
from dpcore.training.training_data import TrainingData
from pages.shared.base import catalogue
from pages.shared.base.question import Question
from pages.shared.fields import field_values
from pages.shared.session import own_tables, session, session_file
from pages.shared.session.own_tables import OwnTable
from pages.shared.session.session_file import SessionContent
from tests.pages.shared.session_contents import (
    ACCOUNT,
    CHOSEN,
    DESIGN,
    DRAWN,
    FACTS,
    FILES,
    LEDGER,
    PIN,
    RELEASE,
    SECRET,
    TABLE,
    build_content,
    read_json,
    reopen,
    tables,
    write_json,
)


def test_a_file_with_a_second_data_set_opens_and_says_that_it_is_left_out() -> None:
    before = json.loads(session_file.write_file(build_content())) | {
        "second": {"origin": "shop-events", "generator": {}}
    }
    session_read = read_json(before)
    assert session_read.content.loaded_data is not None
    assert [problem.message for problem in session_read.setting_problems] == [
        "the second data set of this file is left out: pages show one data set at a time"
    ]


def test_everything_comes_back() -> None:
    session_read = reopen(build_content())
    assert replace(session_read.content, pins=(), tables_by_page={}) == replace(
        build_content(), pins=(), tables_by_page={}
    )
    for name, table in tables().items():
        back = session_read.content.tables_by_page[name]
        assert type(back.table_entry) is type(table.table_entry)
        assert (back.dataset, back.table_entry.account, back.table_entry.design) == (TABLE, ACCOUNT, DESIGN)
        assert back.numbers_by_field == table.numbers_by_field
    assert [own_tables.PIN_CODEC.write(pin) for pin in session_read.content.pins] == [
        own_tables.PIN_CODEC.write(PIN)
    ]
    assert session_read.content.ledgers_by_question[""][SECRET.histogram.digest].marks == ("aa", "bb", "cc")
    assert (session_read.setting_problems, session_read.omission_sentences) == ((), ())
    for origin in (
        session.Origin("shop-events"),
        session.Origin("zipf", {"alpha": "1.5", "num_users": "50", "max_contributions": "9", "seed": "3"}),
    ):
        content = SessionContent(session.LoadedData(origin.load(), origin))
        assert "histogram" not in session_file.write_file(content)
        assert reopen(content).content == content


def test_the_label_of_the_file_is_the_most_private_of_what_it_holds() -> None:
    sample = session.Origin(session.DEFAULT_SAMPLE)
    public = SessionContent(session.LoadedData(sample.load(), sample))
    assert public.disclosure is Disclosure.PUBLIC
    assert SessionContent(session.LoadedData(RELEASE, session.Origin(session.DP_RELEASE))).disclosure == FACTS
    private = SessionContent(session.LoadedData(SECRET, session.Origin(session.UPLOADED)))
    accounts = SessionContent(public.loaded_data, ledgers_by_question={"": {"0" * 64: LEDGER}})
    own = SessionContent(public.loaded_data, tables_by_page=tables())
    for content in (
        build_content(),
        private,
        accounts,
        own,
        SessionContent(public.loaded_data, known_files=FILES),
    ):
        assert content.disclosure is Disclosure.PRIVATE
        assert write_json(content)["label"] == Disclosure.PRIVATE.label
    assert SessionContent(public.loaded_data, known_files=FILES[1:]).disclosure is Disclosure.PUBLIC
    of_all = replace(tables()["regression"].table_entry, dataset=replace(TABLE, disclosure=Disclosure.PUBLIC))
    assert (
        SessionContent(public.loaded_data, tables_by_page={"regression": OwnTable(of_all)}).disclosure
        is Disclosure.PUBLIC
    )


def test_a_table_that_is_too_large_is_named_and_the_other_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_json(SessionContent(None, tables_by_page=tables()))
    assert (sorted(content["own"]), content["left_out"]) == (["regression", "training"], [])
    # Room for one of them: four rows of two features, a label and a code, and two sizes.
    monkeypatch.setattr(session_file.saved_dataset, "ROOM", 4 * 4 * 8 + 2 * 16 + 8)
    content = write_json(SessionContent(None, tables_by_page=tables()))
    assert list(content["own"]) == ["regression"]
    assert content["left_out"] == ["Classifier: its own table is too large for a file"]
    assert read_json(content).content.tables_by_page["regression"].dataset == TABLE


def entered(question: Question, name: str) -> st.SearchStrategy[Any]:
    """What a person may enter into a field."""
    names, first = question.fields[name].options, question.get_initial_value(name)
    if names is not None:
        return st.sampled_from(list(names))
    if isinstance(first, bool | str | enum.Enum):
        return st.just(first)
    around = [0.0, 1.0, 2.5, -3.0, 1e-7, 40.0, 1e12] + ([] if first is None else [first, first * 2])
    return st.sampled_from([None, *around])


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Question, dict[str, Any]]:
    question = draw(
        st.sampled_from([q for q in catalogue.QUESTION_BY_NAME.values() if q.parameters_type is not None])
    )
    return question, {name: draw(entered(question, name)) for name in question.fields}


@settings(max_examples=150, deadline=None)
@given(sessions(), st.floats(1e-6, 1e3))
def test_settings_come_back_or_are_said_and_a_good_question_comes_back_whole(
    entered_fields: tuple[Question, dict[str, Any]], epsilon: float
) -> None:
    question, values = entered_fields
    content = SessionContent(None, epsilon, {question.get_key(name): value for name, value in values.items()})
    session_read = reopen(content)
    assert session_read.content.epsilon == epsilon
    back = session_read.content.values_by_key
    assert all(back[key] == content.values_by_key[key] for key in back)
    assert len(back) + len(session_read.setting_problems) == len(values)
    labels = {name: "it" for name in question.fields if question.fields[name].is_required}
    assert question.parameters_type is not None
    parameters, _ = field_values.build_parameters(
        question.parameters_type, {"epsilon": epsilon} | values, labels
    )
    if parameters is not None:
        assert session_read.setting_problems == ()
        again = {name: back[question.get_key(name)] for name in question.fields}
        assert (
            field_values.build_parameters(question.parameters_type, {"epsilon": epsilon} | again, labels)[0]
            == parameters
        )


def test_the_apps_own_first_values_of_all_pages_come_back() -> None:
    first_values = {
        question.get_key(name): question.get_initial_value(name)
        for question in catalogue.QUESTION_BY_NAME.values()
        if question.parameters_type is not None
        for name in question.widget_keys
        if name != "epsilon"
    }
    session_read = reopen(SessionContent(None, 1.0, first_values))
    assert session_read.setting_problems == ()
    assert {key: session_read.content.values_by_key[key] for key in first_values} == first_values


def test_what_does_not_apply_now_and_what_is_half_entered_comes_back() -> None:
    settings_saved = {"mean.value_variance": 0.3, "mean.lower": 7.0, "mean.upper": None}
    session_read = reopen(SessionContent(None, None, settings_saved))
    assert {key: session_read.content.values_by_key[key] for key in settings_saved} == settings_saved
    assert session_read.setting_problems == ()


def test_settings_that_no_field_holds_are_said_and_the_others_followed() -> None:
    content = write_json(build_content()) | {"epsilon": -1}
    content["settings"] = {
        "mean": {"lower": 2, "upper": "x", "nowhere": 1, "counts": "nobody's", "own_bound": -5},
        "start": {"bound": True},
        "nobody": {},
        "total": [],
    }
    session_read = read_json(content)
    assert session_read.content.values_by_key == {"mean.lower": 2.0}
    assert session_read.content.epsilon is None
    sentences = [problem.sentence for problem in session_read.setting_problems]
    for words in (
        "ε must",
        "Highest value U",
        "nowhere: there is no",
        "Contribution counts",
        "own bound cannot be this: -5",
    ):
        assert any(words in sentence for sentence in sentences), words
    assert len(sentences) == 8


def test_a_table_of_a_pages_own_stands_there_with_its_ranges() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamlit, "session_state", state := {})
        session_file.apply_content(reopen(SessionContent(None, tables_by_page=tables())).content)
        assert state["training.loaded"].dataset == state["regression.loaded"].dataset == TABLE
        # Not to be proposed once more, in place of what was entered.
        assert state["training.proposed"] == ACCOUNT
        assert (state["training.range_low_age"], state["training.range_high_age"]) == (0.0, 120.0)
        again = own_tables.list_tables(state)
        assert {name: table.numbers_by_field for name, table in again.items()} == {
            name: table.numbers_by_field for name, table in tables().items()
        }


def test_numbers_drawn_are_joined_and_none_is_lost_or_doubled() -> None:
    key = catalogue.QUESTION_BY_NAME["private_choice"].get_key("choices")
    other = replace(CHOSEN, value=18.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamlit, "session_state", state := {key: {"x": ((BoundPurpose.SUM, other),)}})
        for _ in range(2):  # The same file twice.
            session_file.apply_content(reopen(replace(build_content(), loaded_data=None)).content)
        assert state[key] == {"x": ((BoundPurpose.SUM, other),), **DRAWN}
        state[key] = {
            SECRET.histogram.digest: (
                (BoundPurpose.SUM, other),
                (BoundPurpose.SUM, CHOSEN),
                (BoundPurpose.SUM, CHOSEN),
            )
        }
        own_tables.apply_releases({"private_choice": DRAWN})
        assert len(state[key][SECRET.histogram.digest]) == 3


conditions = st.one_of(
    st.builds(
        PrivateParameters, st.floats(0.01, 10.0), st.sampled_from(BoundPurpose), st.floats(0.01, 5.0),
        relation=st.sampled_from(Relation), largest=st.integers(1, 10**12), variance_share=st.floats(1e-3, 0.25),
        quantile=st.floats(0.01, 0.99), margin=st.floats(0.0, 1e6), user_share=st.sampled_from([0.0, 0.2, 1.0]),
    ),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(conditions, st.floats(0.0, 1.0)), min_size=1, max_size=4), st.text(max_size=20))
def test_whatever_was_drawn_and_entered_of_a_table_comes_back(
    draws: list[tuple[PrivateParameters, float]], name: str
) -> None:
    drawn, ledger = [], Ledger()
    for parameters, at in draws:
        problem = parameters.choice
        facts = ReleaseFacts(problem.epsilon * (1.0 - at / 8.0), 0.0, problem.neighbours, MECHANISM_NAME)
        value = float(problem.candidates[int(at * (problem.candidates.size - 1))])
        drawn.append((parameters.purpose, DrawnNumber(value, facts, problem)))
        ledger = ledger.add(facts)
    table = OwnTable(TrainingData(replace(TABLE, name=name), ACCOUNT, DESIGN), {"range_low_" + name: 1.5})
    releases = {"private_choice": {"0" * 64: tuple(drawn)}}
    content = SessionContent(
        None,
        ledgers_by_question={"": {"0" * 64: ledger}},
        tables_by_page={"training": table},
        releases_by_page=releases,
    )
    session_read = reopen(content).content
    assert session_read.releases_by_page == releases
    assert session_read.tables_by_page["training"].numbers_by_field == table.numbers_by_field
    assert session_read.tables_by_page["training"].dataset == table.dataset
