"""A search beside the page: its result; until then a first answer, or the one for earlier settings.

Work of a session runs by `jobs`. This module is for searches that pages start by themselves whenever an input changes.
Known answers are there at once, and so are quick ones. Until there is an answer, the last one stays and says that it is
for earlier settings. A search that failed or was stopped has ended, too: `jobs.watch` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

from dpcore.answer.stage import Stage
from pages.shared.base import cache
from pages.shared.fields import jobs

R = TypeVar("R")
LOOK_SECONDS = 0.005


@dataclass(frozen=True)
class SearchState(Generic[R]):
    """The answer of a search as it stands now.

    Attributes:
        value: The answer; None if there is none yet, or if the search failed.
        stage: Whether it is final, a first answer, or for earlier settings.
    """

    value: R | None
    stage: Stage


class Search(Generic[R]):
    """One search of a page.

    Args:
        key: Of its work, in the session; also the name under which answers are kept.
        max_entries: How many answers are kept.
    """

    def __init__(self, key: str, max_entries: int = 32) -> None:
        self.key, self._earlier, self._max_entries = key, f"{key}_earlier", max_entries

    @property
    def job(self) -> jobs.Job | None:
        """Return its work; None before the first question, and after `forget`."""
        job: jobs.Job | None = st.session_state.get(self.key)
        return job

    @property
    def running(self) -> bool:
        """Return True if it works now."""
        return self.job is not None and self.job.running

    def is_working_on(self, question: Hashable) -> bool:
        """Return True if this was its last question; False after a lost connection, so that it begins anew."""
        return self.job is not None and self.job.question == question and not self.job.cut_off

    def answers(self, for_all: bool) -> cache.Answers[R]:
        """Return its known answers, of this session or, for data that are the same for everybody, of all sessions."""
        return cache.answers(self.key, for_all, self._max_entries)

    def ask(
        self,
        question: Hashable,
        work: Callable[[jobs.Progress, Callable[[], bool]], R],
        is_complete: Callable[[R], bool] | None = None,
        for_all: bool = False,
        seconds: float = 0.0,
        **turn: bool,
    ) -> None:
        """Start the search unless this was its last question; a known answer replaces the work.

        Args:
            question: What it works on, with the digest of its data.
            work: What to do.
            is_complete: Returns True if an answer is complete, so that it may be kept; None to keep none.
            for_all: True if all sessions share the answers, as in `cache.answers`.
            seconds: How long to wait for it.
            **turn: ``heavy`` or ``light``, as of `jobs.start`.
        """
        if self.is_working_on(question):
            return
        if is_complete is None:
            jobs.start(self.key, question, work, seconds, **turn)
            return
        answers = self.answers(for_all)
        if (known_answer := answers.get(question)) is not None:
            jobs.put(self.key, question, known_answer)
            return

        def search_and_keep(progress: jobs.Progress, should_stop: Callable[[], bool]) -> R:
            return answers.compute(question, lambda: work(progress, should_stop), is_complete)

        jobs.start(self.key, question, search_and_keep, seconds, **turn)

    def get_state(
        self, same: Callable[[Any], bool] | None = None, first: Callable[[], R | None] = lambda: None
    ) -> SearchState[R]:
        """Return the answer to the last question as it stands now.

        Args:
            same: Returns True if the answer to an earlier question may stand in: mostly, if it is about the same
                data. None if none may; then none is kept.
            first: Computes a quick answer that may stand in before that; without one, the last reported result
                stands in.
        """
        done = jobs.result_of(self.key)
        if done is not None:
            if same is not None:
                st.session_state[self._earlier] = done
            return SearchState(done[1], Stage.FINAL)
        so_far = jobs.so_far_of(self.key)
        if (quick := so_far[1] if so_far is not None else first()) is not None:
            return SearchState(quick, Stage.FIRST)
        previous = None if same is None else st.session_state.get(self._earlier)
        if previous is not None and same is not None and same(previous[0]):
            return SearchState(previous[1], Stage.EARLIER)
        return SearchState(None, Stage.FIRST)

    def get_last_result(self) -> tuple[Any, R] | None:
        """Return (question, answer) of the last search that ended, whatever was asked since; None if there is none."""
        self.get_state(lambda question: False)
        last_result: tuple[Any, R] | None = st.session_state.get(self._earlier)
        return last_result

    def forget(self) -> None:
        """Let the next run search anew."""
        if self.job is not None:
            self.job.drop()
        st.session_state[self.key] = None


def wait(*searches: Search[Any], enough: Callable[[float], bool]) -> None:
    """Wait until the searches have ended, or until ``enough`` accepts the seconds that were waited."""
    began = time.monotonic()
    while at_work := [search.job for search in searches if search.job is not None and search.job.running]:
        if enough(time.monotonic() - began):
            return
        at_work[0].wait(LOOK_SECONDS)
