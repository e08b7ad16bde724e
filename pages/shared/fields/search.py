"""A search beside the page: its result; until then a first answer, or the one for the settings before.

Work of a session runs by `jobs`. Here is what pages share that search on their own whenever an input changes: what was
found before is known at once, what is found soon is shown at once, and until there is something the answer of before
stands, and says so. What failed or was stopped ends the search, too: the line of `jobs.watch` says it.
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
class Found(Generic[R]):
    """What there is to show.

    Attributes:
        value: The answer; None where there is none yet, or the search failed.
        stage: How it stands to what is asked.
    """

    value: R | None
    stage: Stage


class Search(Generic[R]):
    """One search of a page.

    Args:
        key: Of its work, in the session; also the name under which answers are kept.
        kept: How many answers are kept.
    """

    def __init__(self, key: str, kept: int = 32) -> None:
        self.key, self._earlier, self._kept = key, f"{key}_earlier", kept

    @property
    def job(self) -> jobs.Job | None:
        """Return its work; None before it was first asked, and after `forget`."""
        job: jobs.Job | None = st.session_state.get(self.key)
        return job

    @property
    def running(self) -> bool:
        """Return whether it is at work."""
        return self.job is not None and self.job.running

    def asks(self, question: Hashable) -> bool:
        """Return whether this is what it was asked last. A search that a lost connection cut off begins
        anew.
        """
        return self.job is not None and self.job.question == question and not self.job.cut_off

    def answers(self, for_all: bool) -> cache.Answers[R]:
        """Return what it has found until now, in this session or, where data are the same for everybody, in
        all sessions.
        """
        return cache.answers(self.key, for_all, self._kept)

    def ask(
        self,
        question: Hashable,
        work: Callable[[jobs.Tell, Callable[[], bool]], R],
        whole: Callable[[R], bool] | None = None,
        for_all: bool = False,
        seconds: float = 0.0,
        **turn: bool,
    ) -> None:
        """Start it where this is not what it was asked last; an answer that is known takes the place of the work.

        Args:
            question: What it works on, with the digest of its data.
            work: What to do.
            whole: Whether an answer is one to keep, and not what there was when it was stopped; None to keep none.
            for_all: Whether all sessions share the answers, as in `cache.answers`.
            seconds: How long it is waited for.
            **turn: ``heavy`` or ``light``, as of `jobs.start`.
        """
        if self.asks(question):
            return
        if whole is None:
            jobs.start(self.key, question, work, seconds, **turn)
            return
        answers = self.answers(for_all)
        if (known := answers.known(question)) is not None:
            jobs.put(self.key, question, known)
            return

        def kept(tell: jobs.Tell, stop: Callable[[], bool]) -> R:
            return answers.found(question, lambda: work(tell, stop), whole)

        jobs.start(self.key, question, kept, seconds, **turn)

    def found(
        self, same: Callable[[Any], bool] | None = None, first: Callable[[], R | None] = lambda: None
    ) -> Found[R]:
        """Return what there is to show for what was asked last.

        Args:
            same: Whether the answer to an earlier question may stand in: mostly, whether it is about the same data.
                None where none may; then none is kept.
            first: What may stand in before that: a quick answer; else what the work told of what it found so far.
        """
        done = jobs.result_of(self.key)
        if done is not None:
            if same is not None:
                st.session_state[self._earlier] = done
            return Found(done[1], Stage.FINAL)
        so_far = jobs.so_far_of(self.key)
        if (quick := so_far[1] if so_far is not None else first()) is not None:
            return Found(quick, Stage.FIRST)
        before = None if same is None else st.session_state.get(self._earlier)
        if before is not None and same is not None and same(before[0]):
            return Found(before[1], Stage.EARLIER)
        return Found(None, Stage.FIRST)

    def last(self) -> tuple[Any, R] | None:
        """(question, answer) of the last search that ended, whatever has been asked since; None where there is none."""
        self.found(lambda question: False)
        last: tuple[Any, R] | None = st.session_state.get(self._earlier)
        return last

    def forget(self) -> None:
        """Let the next run search anew."""
        if self.job is not None:
            self.job.drop()
        st.session_state[self.key] = None


def wait(*searches: Search[Any], enough: Callable[[float], bool]) -> None:
    """Wait until searches have ended, or ``enough`` says so of the seconds that were waited."""
    began = time.monotonic()
    while at_work := [one.job for one in searches if one.job is not None and one.job.running]:
        if enough(time.monotonic() - began):
            return
        at_work[0].wait(LOOK_SECONDS)
