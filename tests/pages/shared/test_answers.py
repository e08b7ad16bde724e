"""What searches have found: kept where it is whole, shared only where the data are the same for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.runtime.caching import cache_resource_api
from streamlit.testing.v1 import AppTest

from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Dataset
from dpcore.examples_per_user.answer import answer
from pages.shared.base import cache
from pages.shared.session import session
from tests.pages.driving import finish, open_on_dataset

SMALL = Dataset("small", "", Disclosure.PUBLIC, ContributionHistogram([1, 3, 9], [200, 40, 5]))
JOB = "examples_per_user.exact_job"


def test_an_answer_is_searched_for_once_and_the_one_used_longest_ago_is_dropped() -> None:
    answers, searched = cache.ResultStore[str](2), []

    def ask(question: str, is_complete: bool = True) -> str:
        def search() -> str:
            searched.append(question)
            return f"answer to {question}"

        return answers.get_or_compute(
            question, search, lambda found: is_complete and found.endswith(question)
        )

    assert ask("a") == ask("a") == "answer to a"
    assert searched == ["a"]
    ask("b", is_complete=False)  # Stopped early: it is the answer now, and no answer later.
    assert answers.get_result("b") is None
    assert ask("b") == "answer to b"
    ask("a")
    ask("c")
    assert searched == ["a", "b", "b", "c"]
    assert [answers.get_result(item) is not None for item in "abc"] == [True, False, True]


@pytest.fixture
def enter(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """To say which session the next one is: to `AppTest` all are the same, and share caches."""
    now = [""]
    monkeypatch.setattr(cache_resource_api, "get_session_id_or_throw", lambda: now[0])
    return lambda name: now.__setitem__(0, name)


def keep_two_answers() -> None:
    """A session without widgets: it keeps an answer for all and one of its own."""
    import streamlit as st

    from pages.shared.base import cache

    for for_all in (True, False):
        st.session_state[f"of {for_all}"] = cache.get_result_store("test", for_all).get_or_compute(
            "question", object, lambda found: True
        )
    if st.session_state["forgets"]:
        cache.forget_session_results()
        st.session_state["left"] = [
            cache.get_result_store("test", f).get_result("question") for f in (True, False)
        ]


def session_that_asks(forgets: bool = False) -> AppTest:
    app = AppTest.from_function(keep_two_answers, default_timeout=600)
    app.session_state["forgets"] = forgets
    app.run()
    assert not app.exception, app.exception
    return app


def test_sessions_share_what_is_for_all_and_nothing_else(enter: Callable[[str], None]) -> None:
    enter("one")
    one = session_that_asks()
    enter("other")
    other = session_that_asks(forgets=True)
    assert one.session_state["of True"] is other.session_state["of True"]
    own, others_own = one.session_state["of False"], other.session_state["of False"]
    assert own is not others_own
    assert other.session_state["left"] == [other.session_state["of True"], None]
    enter("one")
    assert one.run().session_state["of False"] is own


@pytest.mark.parametrize("kind", [session.DEFAULT_SAMPLE, session.UPLOADED])
def test_a_second_session_finds_what_the_first_has_searched_on_a_sample_only(
    monkeypatch: pytest.MonkeyPatch, enter: Callable[[str], None], kind: str
) -> None:
    searched: list[Any] = []

    def find_multiplier(*arguments: Any) -> float:
        searched.append(arguments)
        return float("1.5")

    monkeypatch.setattr(answer, "find_multiplier", find_multiplier)
    jobs_of = []
    for name in ("one", "other"):
        enter(name)
        app = finish(open_on_dataset(SMALL, "User-level DP-SGD", kind), JOB)
        jobs_of.append(app.session_state[JOB])
        app.run()
        assert app.session_state[JOB] is jobs_of[-1]  # A run that changes nothing asks nothing.
    one, other = jobs_of
    assert one.request == other.request
    assert (one.result is other.result) == (kind == session.DEFAULT_SAMPLE)
    assert len(searched) == (1 if kind == session.DEFAULT_SAMPLE else 2)


@pytest.mark.parametrize(
    ("kind", "same"),
    [(session.DEFAULT_SAMPLE, True), ("zipf", True), (session.UPLOADED, False), (session.DP_RELEASE, False)],
)
def test_samples_and_generated_data_are_the_same_for_all(
    monkeypatch: pytest.MonkeyPatch, kind: str, same: bool
) -> None:
    loaded = session.LoadedData(SMALL, session.Origin(kind))  # Declared public, which makes no difference.
    monkeypatch.setattr(session, "get_loaded", lambda: loaded)
    assert session.is_same_for_all() is same
