"""A session saved as a file and opened again: what comes back, what is refused, and what no file can lower."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import streamlit
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas import read_csv

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts
from dpcore.contributions import ContributionHistogram
from dpcore.counting.count import to_dataset
from dpcore.data import samples, saved_dataset
from dpcore.data.column_roles import MissingUsers, Roles, TableKind
from dpcore.data.design_matrix import Design, Feature
from dpcore.dataset import Contribution, Dataset, LabelledRows
from dpcore.private_choice.choice import MECHANISM_NAME, DrawnNumber
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters, Relation
from dpcore.training.parameters import DataSource
from dpcore.training.training_data import TrainingData
from pages.regression.upload import RegressionData
from pages.shared.base import catalogue, keys
from pages.shared.base.question import Question
from pages.shared.fields import field_values
from pages.shared.figures.figures import Pin
from pages.shared.session import own_tables, session, session_file
from pages.shared.session.own_tables import KnownFile, OwnTable
from pages.shared.session.session_file import SessionContent
from pages.your_data import columns
from tests.pages.driving import (
    SHOP_EVENTS,
    build_app,
    check,
    data,
    enter_range,
    errors,
    go,
    list_metrics,
    open_app,
    open_on_dataset,
    open_on_file,
    shown_texts,
    upload,
    use,
)

FACTS = ReleaseFacts(0.25, 0.0, Neighbours.REPLACE_USER, "discrete Laplace")
SECRET = Dataset("secret.csv", "", Disclosure.PRIVATE, ContributionHistogram([1, 3], [200, 40]))
RELEASE = Dataset("copy", "", Disclosure.DP_RELEASE, ContributionHistogram([1, 3], [190, 44]), release=FACTS)
LEDGER = Ledger((FACTS, FACTS), ("aa", "bb"))
ROWS = LabelledRows(
    np.array([[1.0, 2.0], [1.0, 5.0], [1.0, 3.5], [1.0, 7.0]]), np.array([3.0, 4.0, 5.0, 4.0]), np.array([0, 1, 1, 2]),
    ("intercept", "age"), "rating",
)  # fmt: skip
TABLE = Dataset(
    "rows.csv",
    "",
    Disclosure.PRIVATE,
    ContributionHistogram([1, 2], [2, 1]),
    table=ROWS,
    privacy_unit=("who",),
)
DESIGN = Design("rating", "who", (Feature("age"),), positive='a "good" one')
ACCOUNT = "ab" * 32
NUMBER = PrivateParameters(
    1.0, BoundPurpose.SUM, selection_epsilon=0.25, relation=Relation.REPLACE, guess=20.0, guess_factor=3.0
)
CHOSEN = DrawnNumber(17.0, ReleaseFacts(0.25, 0.0, Neighbours.REPLACE_USER, MECHANISM_NAME), NUMBER.choice)
DRAWN = {SECRET.histogram.digest: ((BoundPurpose.SUM, CHOSEN),)}
EVENTS = Roles(
    TableKind.EVENTS, user="shop", value="price", task="day", missing_users=MissingUsers.ONE_USER,
    further_user=("client",), contribution=Contribution.DISTINCT_TASKS,
)  # fmt: skip
FILES = (
    KnownFile("a.csv", ("shop", "client", "day", "price"), EVENTS, Disclosure.PRIVATE),
    KnownFile("b.csv", ("n", "k"), Roles(TableKind.HISTOGRAM, size="n", users="k"), Disclosure.PUBLIC),
)
PIN = Pin(
    "mean", "a", "a.csv", 1.0, ("Best cap", "3"), ("Error", "0.1"), 0.2, "", (("U", "7"),), FACTS
)  # fmt: skip


def build_content() -> SessionContent:
    """A release in use, what it was made of, an account, and fields of both sides."""
    behind = session.LoadedData(SECRET, session.Origin(session.UPLOADED))
    loaded_data = session.LoadedData(RELEASE, session.Origin(session.DP_RELEASE), behind, {"mean.upper": 9.0})
    paid = LEDGER.merge(Ledger((CHOSEN.facts,), ("cc",)))
    accounts = {
        "": {SECRET.histogram.digest: paid}, "regression": {"0" * 64: LEDGER}, "training": {"1" * 64: LEDGER},
    }  # fmt: skip
    settings = {"mean.lower": 1.0, "mean.upper": None}
    return SessionContent(
        loaded_data, 0.5, settings, accounts, (PIN,), tables(), {"private_choice": DRAWN}, FILES
    )  # fmt: skip


def test_a_file_with_a_second_data_set_opens_and_says_that_it_is_left_out() -> None:
    before = json.loads(session_file.write_file(build_content())) | {
        "second": {"origin": "shop-events", "generator": {}}
    }
    session_read = read_json(before)
    assert session_read.content.loaded_data is not None
    assert [problem.message for problem in session_read.setting_problems] == [
        "the second data set of this file is left out: pages show one data set at a time"
    ]


def tables() -> dict[str, OwnTable]:
    """The same rows on both pages."""
    trained = {"range_low_age": 0.0, "range_high_age": 120.0}
    return {
        "regression": OwnTable(RegressionData(TABLE, ACCOUNT, design=DESIGN)),
        "training": OwnTable(TrainingData(TABLE, ACCOUNT, DESIGN), trained),
    }


def write_json(content: SessionContent) -> Any:
    return json.loads(session_file.write_file(content))


def read_json(content: Any) -> session_file.FileContent:
    return session_file.read_file(json.dumps(content).encode())


def reopen(content: SessionContent) -> session_file.FileContent:
    return read_json(write_json(content))


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


def get_number(content: Any) -> Any:
    """The number drawn, as the file holds it."""
    return content["drawn"]["private_choice"][SECRET.histogram.digest][0]


# --- Hostile files ----------------------------------------------------------------------------------------------------


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


def write_session(app: Any) -> bytes:
    """What the button in the sidebar writes."""
    return session_file.write_file(app.session_state[keys.SESSION_SNAPSHOT].content).encode()


def open_session(app: Any, content: bytes) -> Any:
    app = go(app, "Data")
    check(app.segmented_control(key="your_data.data_source").set_value("Session").run())
    return check(app.file_uploader[0].upload("session.json", content).run())


def test_a_session_comes_back_in_another_and_its_account_never_shrinks() -> None:
    app = open_on_file(SHOP_EVENTS, "Mean", "shop_events.csv")
    enter_range(app, 3.0, 80.0)
    check(app.number_input(key="epsilon").set_value(0.37).run())
    session_before = write_session(app)
    assert json.loads(session_before)["label"] == Disclosure.PRIVATE.label
    digest = data(app).histogram.digest
    app.session_state[keys.LEDGERS] = {digest: Ledger().add(FACTS)}
    check(app.run())
    assert "Spent on these data: ε = 0.25" in shown_texts(app)
    session_after = write_session(app)

    new = open_session(open_app("Data"), session_after)
    assert data(new) == data(app)
    assert "In use: shop_events.csv" in shown_texts(new)
    assert "Spent on these data: ε = 0.25" in shown_texts(new)
    # The file that was saved before the release takes nothing off the account.
    new = open_session(new, session_before)
    assert "Spent on these data: ε = 0.25" in shown_texts(new)
    new = go(new, "Mean")
    assert [new.number_input(key=key).value for key in ("mean.lower", "mean.upper", "epsilon")] == [
        3.0,
        80.0,
        0.37,
    ]
    assert new.session_state["epsilon_slider"] == 0.3
    new = open_session(new, session_after.replace(b'"disclosure": "private"', b'"disclosure": "public"'))
    assert "not those that were saved" in errors(new)
    assert "Nothing was changed" in errors(new)
    assert data(new) == data(app)


@pytest.mark.long
def test_further_value_columns_and_the_lines_of_a_plan_come_back() -> None:
    frame = read_csv(samples.FOLDER / "support_tickets.csv")
    columns = {"user": "customer", "value": "words", "further_values": ("hours_waited", "years")}
    app = open_on_dataset(to_dataset(frame, **columns, disclosure="public"), "Budget plan")
    lines = "rows; mean of hours_waited from 0 to 72; sum of years"
    app.session_state["plan.lines"] = lines
    before = [metric.value for metric in list_metrics(check(app.run()))]
    assert not errors(app)
    new = open_session(open_app("Data"), write_session(app))
    assert data(new) == data(app)
    assert data(new).value_columns == ("words", "hours_waited", "years")
    new = go(new, "Budget plan")
    assert not errors(new)
    assert new.session_state["plan.lines"] == lines
    assert [metric.value for metric in list_metrics(new)] == before


@pytest.mark.long
def test_what_columns_were_taken_for_comes_back_where_the_data_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = upload(open_app("Data"), SHOP_EVENTS, "shop_events.csv")
    check(app.selectbox(key="your_data.upload_role_task").set_value(columns.NO_COLUMN).run())
    app = use(app)
    monkeypatch.setattr(saved_dataset, "ROOM", 100)
    new = open_session(open_app("Data"), write_session(app))
    assert data(new).name != "shop_events.csv"
    assert "Bring shop_events.csv again" in shown_texts(new)
    new = upload(new, SHOP_EVENTS, "shop_events.csv")
    assert new.selectbox(key="your_data.upload_role_task").value == columns.NO_COLUMN
    assert new.selectbox(key="your_data.upload_role_user").value == "user_id"


@pytest.mark.long
def test_a_page_goes_on_with_its_own_table_and_what_a_file_does_not_hold_is_named() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(40), 1 + np.arange(40) % 4)
    features = np.c_[np.ones(codes.size), rng.uniform(0.0, 10.0, codes.size)]
    rows = LabelledRows(features, rng.integers(0, 2, codes.size), codes, ("intercept", "age"), "rating")
    histogram = ContributionHistogram.from_counts(np.bincount(codes))
    table = Dataset("own.csv", "", Disclosure.PRIVATE, histogram, table=rows, privacy_unit=("who",))
    app = open_app("Classifier")
    app.session_state["training.loaded"] = TrainingData(table, ACCOUNT, DESIGN)
    app.session_state["training.source"], app.session_state["training.runs"] = DataSource.UPLOAD, 2
    check(app.run())
    app.number_input(key="training.range_low_age").set_value(0.0)
    app.number_input(key="training.range_high_age").set_value(10.0)
    check(app.run())
    app.session_state["training.draws"] = {ACCOUNT: [SimpleNamespace(question="another")]}
    check(app.run())
    new = open_session(open_app("Data"), write_session(app))
    assert "Classifier: 1 release, to be downloaded there" in shown_texts(new)
    new = go(new, "Classifier")
    assert "Data of this page: **own.csv**" in shown_texts(new)
    assert new.number_input(key="training.range_high_age").value == 10.0


def test_a_public_demo_opens_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEETSPOT_SERVED", "1")
    app = check(build_app("Data").run())
    check(app.segmented_control(key="your_data.data_source").set_value("Session").run())
    assert not app.file_uploader
    assert "public demo" in shown_texts(app)
