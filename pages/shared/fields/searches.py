"""The searches of a question, run as jobs beside the page.

A search that starts by itself keeps its complete results. Until there is a result the first answer stands, or that for
the settings before. Results on samples and generated data are kept for everybody, all others per session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from dpcore.answer.section import Cached, Search, SearchResult, Solver
from dpcore.common.progress import Stage
from pages.shared.base import cache
from pages.shared.base.question import Question
from pages.shared.fields import jobs


@dataclass(frozen=True)
class SearchRun:
    """One search on the data of a page, with its work and its result in the session.

    Attributes:
        question: The question of the page.
        search: The search.
        data: The data.
        is_shared: True if all sessions share the results.
    """

    question: Question
    search: Search
    data: Any
    is_shared: bool = False

    @property
    def job_key(self) -> str:
        """Return the session key of the work."""
        return self.question.get_key(self.search.key)

    @property
    def request(self) -> tuple[str, Hashable]:
        """Return the request: the digest of the data, empty if the search needs none, and the search's question."""
        return (self.data.digest if self.search.depends_on_data else "", self.search.question)

    @property
    def job(self) -> jobs.Job | None:
        """Return the work; None before it was first started."""
        job: jobs.Job | None = st.session_state.get(self.job_key)
        return job

    def start_if_needed(self) -> None:
        """Start the work unless the last one is of the same request and was not cut off by a lost connection."""
        if self.job is None or self.job.request != self.request or self.job.was_cut_off:
            self.start()

    def start(self) -> None:
        """Start the work, or store the known result in its place if there is a complete one."""
        search = self.search
        wait_seconds = search.first_wait_seconds if self.job is None else search.later_wait_seconds
        known_result = self._results.get_result(self.request)
        if known_result is not None and (not search.resumes or search.is_complete(known_result)):
            jobs.store_result(self.job_key, self.request, known_result)
            return
        jobs.start_job(
            self.job_key,
            self.request,
            self._build_work(),
            wait_seconds,
            search.is_heavy,
            search.follows_slider,
        )

    @property
    def _results(self) -> cache.ResultStore[Any]:
        """Return the store of the results of this search."""
        store_name = f"{self.question.name}.{self.search.key}"
        return cache.get_result_store(store_name, self.is_shared, self.search.num_kept)

    @property
    def _preceding_run(self) -> SearchRun | None:
        """Return the run of the search whose result this one begins with; None without one."""
        search = self.search.preceding_search
        return None if search is None else replace(self, search=search)

    def _build_work(self) -> Callable[..., Any]:
        """Return the work as a function, which keeps its complete result; to be called in the thread of the page."""
        search, request, known_results = self.search, self.request, self._results
        preceding_run = self._preceding_run
        preceding_work = None if preceding_run is None else preceding_run._build_work()

        def resume_search(progress: jobs.Progress, should_stop: Callable[[], bool]) -> Any:
            """Go on from the stored result, and store each result that is reported."""
            # Read now: while this work waited, that of another session may have gone on.
            known_result = known_results.get_result(request)
            if known_result is not None and (should_stop() or search.is_complete(known_result)):
                return known_result

            def report_result(share: float | None, partial_result: Any = None) -> None:
                """Store a partial result, and report it to the job."""
                if partial_result is not None:
                    known_results.store_result(request, partial_result)
                progress(share, partial_result)

            result = search.work(known_result, report_result, should_stop)
            if result is not None:
                known_results.store_result(request, result)
            return result

        def run_search(progress: jobs.Progress, should_stop: Callable[[], bool]) -> Any:
            """Return the stored result, or run the preceding search, if there is one, and then this one."""
            preceding_results = () if preceding_work is None else (preceding_work(progress, should_stop),)
            compute_result = partial(search.work, *preceding_results, progress, should_stop)
            return known_results.get_or_compute(request, compute_result, search.is_complete)

        return resume_search if search.resumes else run_search

    def forget(self) -> None:
        """Drop the work and its result, so that the next run of the page searches anew."""
        if self.job is not None:
            self.job.drop()
        st.session_state[self.job_key] = None

    @property
    def has_failed(self) -> bool:
        """Return True if the work ended in an error."""
        return bool(jobs.list_failures(self.job_key))

    @property
    def is_cut_short(self) -> bool:
        """Return True if the search has ended with a result that is not complete."""
        search_result = self.get_result()
        has_final_value = search_result.stage is Stage.FINAL and search_result.value is not None
        return has_final_value and not self.search.is_complete(search_result.value)

    def get_result(self) -> SearchResult:
        """Return the result for this request: the final one, else a partial one, else a first answer.

        Without any, return the last result for earlier settings on these data, which the session keeps; else no value.
        """
        earlier_key, setting_texts = f"{self.job_key}_earlier", self.search.settings
        earlier_triple = st.session_state.get(earlier_key)
        is_complete, final_pair = self.search.is_complete, jobs.find_result(self.job_key)
        if final_pair is not None and (
            earlier_triple is None or is_complete(final_pair[1]) or not is_complete(earlier_triple[1])
        ):
            # What was stopped does not take the place of a complete result.
            st.session_state[earlier_key] = earlier_triple = (*final_pair, setting_texts)
        if (partial_pair := jobs.find_partial_result(self.job_key)) is not None and partial_pair[
            0
        ] == self.request:
            if self.search.resumes:
                st.session_state[earlier_key] = (*partial_pair, setting_texts)
            return SearchResult(partial_pair[1], Stage.FIRST, setting_texts)
        for request_and_result in (earlier_triple, final_pair):
            if (
                request_and_result
                and request_and_result[0] == self.request
                and (request_and_result is final_pair or is_complete(request_and_result[1]))
            ):
                return SearchResult(request_and_result[1], Stage.FINAL, setting_texts)
        if self.search.resumes and (known_result := self._results.get_result(self.request)) is not None:
            return SearchResult(known_result, Stage.FIRST, setting_texts)
        if self.search.compute_first is not None:
            preceding_run = self._preceding_run
            preceding_results = (
                () if preceding_run is None else (preceding_run._results.get_result(preceding_run.request),)
            )
            if (first_answer := self.search.compute_first(*preceding_results)) is not None:
                return SearchResult(first_answer, Stage.FIRST)
        if earlier_triple is not None and earlier_triple[0][0] == self.request[0]:
            return SearchResult(earlier_triple[1], Stage.EARLIER, earlier_triple[2])
        return SearchResult(None, Stage.FINAL if self.has_failed else Stage.FIRST)


def run_solver(
    solver: Solver, question: Question, data: Any, is_shared: bool
) -> tuple[SearchResult, list[SearchRun]]:
    """Run a solver and start its searches that need no button; return its result so far, and these searches."""
    solver_reply, search_runs = None, list[SearchRun]()
    try:
        while True:
            solver_request = solver.send(solver_reply)
            if isinstance(solver_request, Cached):
                solver_reply = cache.compute_cached(solver_request)
                continue
            search_run = SearchRun(question, solver_request, data, is_shared)
            if not solver_request.button_text:
                search_runs.append(search_run)
                search_run.start_if_needed()
            solver_reply = search_run.get_result()
    except StopIteration as end:
        return end.value, search_runs


def forget_results(search_runs: Sequence[SearchRun]) -> None:
    """Drop the work and the results of these searches, so that the next run of the page searches anew."""
    for search_run in search_runs:
        search_run.forget()
