"""Runs the searches of a question beside the page, and keeps what a rerun repeats.

A search that starts by itself keeps its complete results, so that earlier ones are known at once. Until there is a
result the first answer stands, or the answer for the settings before. Results on samples and generated data are kept
for everybody, as a class that is shown one sample asks the same twenty times; all others are kept per session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from dpcore.answer.section import Cached, Search, SearchResult, Solver
from dpcore.answer.stage import Stage
from pages.shared.base import cache
from pages.shared.base.question import Question
from pages.shared.fields import jobs


def compute(call: Cached) -> Any:
    """Return the result of a call of the core, kept for this session."""
    name, question = call.name, call.question
    return cache.answers(name, False, call.kept).compute(question, partial(call.function, *call.arguments))


@dataclass(frozen=True)
class Run:
    """One search on the data of a page.

    Attributes:
        question: The question of the page.
        search: The search.
        data: The data.
        for_all: True if all sessions share the results.
    """

    question: Question
    search: Search
    data: Any
    for_all: bool = False

    @property
    def key(self) -> str:
        """Return the session key of the work."""
        return self.question.key(self.search.key)

    @property
    def request(self) -> tuple[str, Hashable]:
        """Return the key of the work."""
        return (self.data.digest if self.search.of_data else "", self.search.question)

    @property
    def job(self) -> jobs.Job | None:
        """Return the work; None before it was first started."""
        job: jobs.Job | None = st.session_state.get(self.key)
        return job

    def ask(self) -> None:
        """Start the work unless it works on this question; work that a lost connection cut off starts anew."""
        if self.job is None or self.job.question != self.request or self.job.cut_off:
            self.start()

    def start(self) -> None:
        """Start the work; a result that is known takes its place."""
        search, seconds = self.search, self.search.seconds if self.job is None else self.search.soon
        known_result = self._results.get(self.request)
        if known_result is not None and (not search.resumes or search.is_complete(known_result)):
            jobs.put(self.key, self.request, known_result)
            return
        jobs.start(self.key, self.request, self._work(), seconds, heavy=search.heavy, light=search.light)

    @property
    def _results(self) -> cache.Answers[Any]:
        return cache.answers(f"{self.question.name}.{self.search.key}", self.for_all, self.search.kept)

    @property
    def _prior(self) -> Run | None:
        return None if self.search.before is None else replace(self, search=self.search.before)

    def _work(self) -> Callable[..., Any]:
        """Return the work, which keeps its result if it is complete; to be called in the thread of the page."""
        search, request, results, prior = (self.search, self.request, self._results, self._prior)
        begin = None if prior is None else prior._work()

        def resume(progress: jobs.Progress, stop: Callable[[], bool]) -> Any:
            # Read now: while this work waited, that of another session may have gone on.
            known_result = results.get(request)
            if known_result is not None and (stop() or search.is_complete(known_result)):
                return known_result

            def report(share: float | None, so_far: Any = None) -> None:
                if so_far is not None:
                    results.keep(request, so_far)
                progress(share, so_far)

            result = search.work(known_result, report, stop)
            if result is not None:
                results.keep(request, result)
            return result

        def work(progress: jobs.Progress, stop: Callable[[], bool]) -> Any:
            begun = () if begin is None else (begin(progress, stop),)
            return results.compute(request, lambda: search.work(*begun, progress, stop), search.is_complete)

        return resume if search.resumes else work

    def forget(self) -> None:
        """Let the next run of the page search anew."""
        if self.job is not None:
            self.job.drop()
        st.session_state[self.key] = None

    @property
    def failed(self) -> bool:
        """Return True if it ended in an error."""
        return bool(jobs.failure_of(self.key))

    @property
    def is_cut_short(self) -> bool:
        """Return True if it has ended with a result that is not complete."""
        state = self.get_state()
        is_final = state.stage is Stage.FINAL and state.value is not None
        return is_final and not self.search.is_complete(state.value)

    def get_state(self) -> SearchResult:
        """Return what there is: the result, a first answer, or the result for earlier settings on the same data."""
        earlier, settings = f"{self.key}_earlier", self.search.settings
        previous = st.session_state.get(earlier)
        is_complete, done = self.search.is_complete, jobs.result_of(self.key)
        if done is not None and (previous is None or is_complete(done[1]) or not is_complete(previous[1])):
            # What was stopped does not take the place of a complete result.
            st.session_state[earlier] = previous = (*done, settings)
        if (partial := jobs.so_far_of(self.key)) is not None and partial[0] == self.request:
            if self.search.resumes:
                st.session_state[earlier] = (*partial, settings)
            return SearchResult(partial[1], Stage.FIRST, settings)
        for result in (previous, done):
            if (
                result is not None
                and result[0] == self.request
                and (result is done or is_complete(result[1]))
            ):
                return SearchResult(result[1], Stage.FINAL, settings)
        if self.search.resumes and (known_result := self._results.get(self.request)) is not None:
            return SearchResult(known_result, Stage.FIRST, settings)
        if self.search.first is not None:
            begun = () if self._prior is None else (self._prior._results.get(self._prior.request),)
            if (first := self.search.first(*begun)) is not None:
                return SearchResult(first, Stage.FIRST)
        if previous is not None and previous[0][0] == self.request[0]:
            return SearchResult(previous[1], Stage.EARLIER, previous[2])
        return SearchResult(None, Stage.FINAL if self.failed else Stage.FIRST)


def solve(solver: Solver, question: Question, data: Any, for_all: bool) -> tuple[SearchResult, Sequence[Run]]:
    """Return the solution as it stands, and the searches that it has started."""
    reply, runs = None, list[Run]()
    try:
        while True:
            step = solver.send(reply)
            if isinstance(step, Cached):
                reply = compute(step)
                continue
            run = Run(question, step, data, for_all)
            if not step.button:
                runs.append(run)
                run.ask()
            reply = run.get_state()
    except StopIteration as end:
        return end.value, runs


def forget(runs: Sequence[Run]) -> None:
    """Let the next run of the page search anew."""
    for run in runs:
        run.forget()
