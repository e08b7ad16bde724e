"""What a DP histogram leaves in the session: only what is declared public; and what returns with the original data."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dpcore.common.parameters import Parameters, of_data
from dpcore.common.privacy import Disclosure
from pages.shared.base import catalogue, keys
from pages.shared.base.question import FieldOrigin, Question
from pages.shared.fields import jobs, setting
from tests.pages.driving import (
    ROOT,
    SHOP_EVENTS,
    check,
    data,
    go,
    open_app,
    read_shown_link,
    release_copy,
    shown_texts,
    upload,
    use,
)

KEPT = (FieldOrigin.PUBLIC, FieldOrigin.OWN_DATA)


def everything_entered() -> None:
    """A session without widgets, so that every entry can hold anything: it is filled, a copy taken, and given back."""
    import streamlit as st

    from dpcore.common.privacy import Disclosure, ReleaseFacts
    from dpcore.contributions import ContributionHistogram
    from dpcore.dataset import Dataset, Values
    from dpcore.private_choice.private_histogram import HistogramParameters, release_histogram
    from pages.shared.base import cache, catalogue, keys
    from pages.shared.session import links, session

    state, seen = st.session_state, st.session_state["seen"]
    histogram = ContributionHistogram([1, 3], [200, 40])
    values = (
        Values([*range(200), *(200 + k // 3 for k in range(120))], [0.5] * 320)
        if state["with_values"]
        else None
    )
    secret = Dataset("secret.csv", "", Disclosure.PRIVATE, histogram, values=values)
    session.use_data(session.LoadedData(secret, session.Origin(session.UPLOADED)))
    session.record_release(ReleaseFacts(0.25, 0.0, HistogramParameters(1.0).neighbours, "before"))

    @cache.cache_for_session(16)
    def answer(digest: str) -> object:
        return object()

    entries = {
        question.get_key(name) + ("7" if name.endswith("_") else ""): question
        for question in catalogue.QUESTION_BY_NAME.values()
        for name in (*question.fields, *question.origins_by_entry)
    }
    shells = [
        value
        for name, value in vars(keys).items()
        if name.isupper() and isinstance(value, str) and name != "LOADED"
    ]
    made_up = ["mean.nowhere_declared", "nobody.field", "mean_card_code", "learning_ranges"]
    for key in (*entries, *made_up, *(k for k in shells if k not in keys.PRESERVED_KEYS)):
        state[key] = f"secret of {key}"
    answer_before = answer(secret.digest)
    copy = release_histogram(histogram, HistogramParameters(1000.0), charge=session.record_release)
    session.use_release(copy.to_dataset("secret.csv"))
    seen["copy"] = {key: state[key] for key in state if key != "seen"}
    seen["answer stays"] = answer(secret.digest) is answer_before
    seen["links"] = {
        q.title: links.write_link("http://a", q.url_path, session.get_loaded().origin, {})
        for q in catalogue.QUESTION_BY_NAME.values()
    }
    state["mean.upper"] = state["learning.loss_variance"] = 7.0
    session.use_release(copy.to_dataset("secret.csv"))
    seen["second copy"] = {key: state[key] for key in state if key != "seen"}
    session.use_original()
    seen["original"] = {key: state[key] for key in state if key != "seen"}


@pytest.fixture(scope="module", params=[True, False], ids=["values in sight", "counts only"])
def filled_session(request: pytest.FixtureRequest) -> tuple[bool, dict[str, Any]]:
    app = AppTest.from_function(everything_entered, default_timeout=600)
    app.session_state["with_values"] = request.param
    app.session_state["seen"] = seen = {}
    app.run()
    assert not app.exception, app.exception
    return request.param, seen


def declared(key: str) -> FieldOrigin:
    """Where what stands under a session key may have come from, by the declarations."""
    name, _, entry = key.partition(".")
    question = catalogue.QUESTION_BY_NAME[name]
    return FieldOrigin.DATA if question is None else question.get_origin(entry)


def entries() -> dict[str, Question]:
    return {
        question.get_key(name) + ("7" if name.endswith("_") else ""): question
        for question in catalogue.QUESTION_BY_NAME.values()
        for name in (*question.fields, *question.origins_by_entry)
    }


@pytest.mark.parametrize("when", ["copy", "second copy"])
def test_nothing_stays_beside_a_copy_that_is_not_declared_public(
    filled_session: tuple[bool, dict[str, Any]], when: str
) -> None:
    with_values, seen = filled_session
    state = seen[when]
    # Nothing but what fields hold.
    assert {key: state.get(key) for key in state[setting.LAST_VALUES_KEY]} == state[setting.LAST_VALUES_KEY]
    aside = (keys.LOADED_DATA, setting.LAST_VALUES_KEY)
    stayed = {key for key, value in state.items() if "secret of" in str(value) and key not in aside}
    kept = (*KEPT, *([] if with_values else [FieldOrigin.VALUES]))
    assert {key for key in stayed if declared(key) not in kept} == set()
    # The other way round: what is public was not lost, and the test did fill the session.
    # A public number that is about the data, such as how many rows there are, is asked for anew.
    anew = {
        q.get_key(name)
        for q in catalogue.QUESTION_BY_NAME.values()
        for name, field in q.fields.items()
        if field.is_renewed
    }
    should = {key for key in entries() if declared(key) in KEPT} - anew
    assert should <= stayed
    assert len(should) > 60
    assert len(entries()) - len(should) > 50


def test_no_answer_and_no_link_stays(filled_session: tuple[bool, dict[str, Any]]) -> None:
    _, seen = filled_session
    assert not seen["answer stays"]
    assert keys.PAGE_PARAMETERS not in seen["copy"]
    for question in catalogue.QUESTION_BY_NAME.values():  # what a link of the page could carry
        for key in question.widget_keys.values():
            value = seen["copy"].get(key)
            assert "secret of" not in str(value) or declared(key) in (*KEPT, FieldOrigin.VALUES), key
        assert "data=dp-release" in seen["links"][question.title]


def test_forgotten_fields_hold_what_they_begin_with(filled_session: tuple[bool, dict[str, Any]]) -> None:
    with_values, seen = filled_session
    for question in catalogue.QUESTION_BY_NAME.values():
        for name, field in question.fields.items():
            key = question.get_key(name)
            if field.origin is FieldOrigin.VALUES and with_values:
                assert seen["copy"][key] is None, key
            elif field.origin is FieldOrigin.DATA and not field.is_renewed:
                assert seen["copy"][key] == question.get_initial_value(name), key


def test_fields_return_with_the_original_data_even_after_two_copies(
    filled_session: tuple[bool, dict[str, Any]],
) -> None:
    _, seen = filled_session
    assert seen["second copy"]["learning.loss_variance"] != 7.0
    back = seen["original"]
    for question in catalogue.QUESTION_BY_NAME.values():
        for name in question.fields:
            key = question.get_key(name)
            if question.name != "mean" or name in ("value_variance", "own_bound", "counts"):
                expected = 7.0 if key == "mean.upper" else f"secret of {key}"
                assert back[key] == expected, key


def test_regression_s_own_data_and_account_are_untouched(filled_session: tuple[bool, dict[str, Any]]) -> None:
    _, seen = filled_session
    own = {key for key, question in entries().items() if question.has_own_data}
    assert {"regression.loaded", "regression.spent", "regression.upper"} <= own
    for when in ("copy", "second copy", "original"):
        assert {key: seen[when][key] for key in own} == {key: f"secret of {key}" for key in own}


@pytest.mark.long
def test_a_variance_entered_beside_private_data_is_in_neither_session_nor_link() -> None:
    app = go(use(upload(open_app("Data"), SHOP_EVENTS, "shop_events.csv")), "Weights vs. caps")
    assert data(app).is_private
    # So many digits that no figure has them by chance.
    key = "gap_examples.value_variance"
    check(app.segmented_control(key="gap_examples.variance_source").set_value("Entered").run())
    check(app.number_input(key=key).set_value(0.1371379).run())
    assert "0.1371379" in read_shown_link(app)
    release_copy(app)
    assert data(app).release is not None
    # What was set aside stands with the original data, where no widget or link looks; of files only a session does.
    state = dict(app.session_state.items())
    aside = (keys.LOADED_DATA, keys.SESSION_SNAPSHOT)
    assert state[keys.SESSION_SNAPSHOT].content.disclosure is Disclosure.PRIVATE
    assert not [key for key, value in state.items() if "0.1371379" in str(value) and key not in aside]
    app = go(app, "Weights vs. caps")
    assert "0.1371379" not in read_shown_link(app)
    assert "0.1371379" not in shown_texts(app)
    check(go(app, "Data").button(key="private_back").click().run())
    assert go(app, "Weights vs. caps").number_input(key=key).value == 0.1371379


@dataclass(frozen=True)
class Asked(Parameters):
    """A question's parameters."""

    size: float | None = of_data.number(None, "Size")


def test_what_is_not_declared_public_counts_as_read_off_the_data() -> None:
    question = Question(
        "toy", "Toy", "", "toy", "", "?", parameters_type=Asked,
        origins_by_entry={"tabs": FieldOrigin.PUBLIC, "file_": FieldOrigin.OWN_DATA, "file_names": FieldOrigin.DATA},
    )  # fmt: skip
    assert question.get_origin("size") is FieldOrigin.DATA
    assert question.get_origin("anything") is FieldOrigin.DATA
    # A public name lends its freedom to what stands behind an underscore, not to every longer word.
    assert question.get_origin("tabs") is FieldOrigin.PUBLIC
    assert question.get_origin("tabs_2") is FieldOrigin.PUBLIC
    assert question.get_origin("tabsize") is FieldOrigin.DATA
    assert question.get_origin("file_3") is FieldOrigin.OWN_DATA
    assert question.get_origin("file_names") is FieldOrigin.DATA


def test_jobs_are_stopped_wherever_they_are_dropped() -> None:
    # A field or an entry that is typed returns; work, counters, buttons and editors do not.
    from pages.shared.session.session import _can_return

    assert _can_return(0.137)
    assert _can_return("26x1")
    assert not any(map(_can_return, (jobs.Job("?"), 3, True, {"edited_rows": {}}, None, ())))


def test_caches_are_made_in_one_room() -> None:
    """Every way to keep an answer beyond a run, however it is imported."""
    makers = {"cache_resource", "cache_data", "lru_cache", "cache", "experimental_memo"}
    files = set()
    for path in (ROOT / "pages").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            of_module = isinstance(node, ast.ImportFrom) and node.module in ("functools", "streamlit")
            named = {alias.name for alias in node.names} if of_module else set()
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                named = {node.attr} if node.value.id in ("st", "streamlit", "functools") else set()
            if named & makers:
                files.add(str(path.relative_to(ROOT)))
    # The shell settles memory once per process; the files of Streamlit's page are no data.
    assert files == {
        "pages/shared/base/cache.py",
        "pages/shared/shell/__init__.py",
        "pages/shared/speed/__init__.py",
    }
