"""Long work beside the page: threads with progress and Stop, and the searches of a question.

The work runs in a thread, so sliders stay live, and a fragment polls it. Its result stays in the session until the next
start, whatever the person does meanwhile; stopped work has a result, too. Work that fails says why in sentences, and
can be started again. Work of a session that nobody is connected to any more is told to stop. Heavy work runs one piece
at a time in the process, whichever session started it: two at once would each take twice as long, and twice the memory.
Light work, a search that a moved slider starts, waits in a queue (`pages.shared.base.cache`) in which pages go first.

A search that starts by itself keeps its complete results, so that earlier ones are known at once. Until there is a
result the first answer stands, or the answer for the settings before. Results on samples and generated data are kept
for everybody, as a class that is shown one sample asks the same twenty times; all others are kept per session.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import streamlit as st

from dpcore.answer.section import Cached, Search, SearchResult, Solver
from dpcore.common.checks import InputProblem, InvalidInput, describe_error
from dpcore.common.progress import ShouldStop, Stage
from pages.shared import streamlit_internals
from pages.shared.base import cache, page_run
from pages.shared.base.question import Question
from pages.shared.fields import fields


class Progress(Protocol):
    """The callback by which work reports; a `dpcore.common.progress.Progress`, too."""

    def __call__(self, share: float | None, so_far: Any = None) -> None:
        """Report the share done, from 0 to 1, and a first result if there is one; None keeps the last share."""


Work = Callable[[Progress, ShouldStop], Any]
POLL_SECONDS = 0.4
LOST_SECONDS = 5.0
"""How long work goes on after the last connection of its session was lost: a short drop shall cost nothing."""
CUT_OFF = "The connection to this page was lost, so the work was stopped."
_LOOK_SECONDS = 0.5


@dataclass(eq=False)
class Job:
    """One piece of work.

    Attributes:
        question: What it works on; tells whether its result still answers the present question.
        heavy: True if it waits until no other heavy work runs in this process.
        light: True if it waits in the queue of light work.
        progress: Share done, 0 to 1.
        so_far: The last result that the work reported; never changed afterwards, only replaced.
        result: What the work returned; None while it runs, and if it failed.
        problems: Why it failed; empty if it did not.
        read_early: True if the page last asked for the result while it worked.
        retry_work: The work, if it may be tried again after it failed.
        cut_off: True if it was stopped because the connection of its session was lost.
    """

    question: Any
    heavy: bool = False
    light: bool = False
    progress: float = 0.0
    so_far: Any = None
    read_early: bool = False
    result: Any = None
    problems: tuple[InputProblem, ...] = ()
    retry_work: Work | None = None
    cut_off: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _first: threading.Event = field(default_factory=threading.Event)
    _dropped: bool = False
    _has_turn: bool = False
    _queue: cache.WorkQueue = field(init=False)
    _queue_entry: cache.QueueEntry = field(init=False)

    def __post_init__(self) -> None:
        self._queue = cache.HEAVY if self.heavy else cache.LIGHT
        self._queue_entry = self._queue.create_entry()

    @property
    def running(self) -> bool:
        """Return True if it still works."""
        return not self._done.is_set()

    @property
    def waiting(self) -> bool:
        """Return True if it waits for other work now."""
        return self._queue_entry.waiting

    @property
    def failed(self) -> bool:
        """Return True if it ended in an error and has no result."""
        return not self.running and bool(self.problems)

    def stop(self) -> None:
        """Ask it to end; what it has found until then becomes its result."""
        self._stop.set()
        self._queue.look_again()

    def drop(self) -> None:
        """Stop it and discard its result: if it still waits for other work, it does not even begin."""
        self._dropped = True
        self.stop()

    def take_place_of(self, previous: Job) -> None:
        """Take the place of other work in the queue, if that still waits, and drop that work."""
        self._queue_entry = self._queue.create_entry(previous._queue_entry)
        previous.drop()

    def wait(self, seconds: float) -> None:
        """Wait until it is done, for so many seconds at most."""
        with cache.PAGES.wait():
            self._done.wait(seconds)

    def wait_for_first(self, seconds: float) -> None:
        """Wait until it has reported a result, is done, or waits for other heavy work, for so many seconds at most."""
        with cache.PAGES.wait():
            self._first.wait(seconds)

    def run(self, work: Work) -> None:
        """Do the work in this thread.

        Work that is stopped while it waits is still called, so that it can return a result; dropped work is not.
        """
        _running.add(self)
        if self.heavy and self._queue.is_full:
            self._first.set()
        if self.light:
            self._queue.pages.let_go_first(self._queue_entry)
        if self.heavy or self.light:
            self._has_turn = self._queue.enter(self._queue_entry, self._stop.is_set)
        try:
            if not self._dropped:
                self.result = work(self._report, self._should_stop)
        except Exception as error:  # Whatever it is, the page says it in words and goes on.
            self.problems = describe_error(error)
            self.retry_work = None if isinstance(error, InvalidInput) else work
        finally:
            if self._has_turn:
                self._queue.leave()
            self._done.set()
            self._first.set()
            _running.discard(self)

    def _should_stop(self) -> bool:
        if self.light and self._has_turn and not self._stop.is_set():
            self._has_turn = self._queue.step(self._queue_entry, self._stop.is_set)
        return self._stop.is_set()

    def stop_when(self, is_lost: Callable[[], bool], lost_seconds: float) -> None:
        """Wait until it is done; ask it to end once ``is_lost`` has held for so many seconds."""
        since: float | None = None
        while self.running:
            since = (since or time.monotonic()) if is_lost() else None
            if since is not None and time.monotonic() - since >= lost_seconds:
                self.cut_off = True
                self.stop()
                return
            self.wait(min(_LOOK_SECONDS, lost_seconds))

    def _report(self, share: float | None, so_far: Any = None) -> None:
        if share is not None:
            self.progress = min(max(share, 0.0), 1.0)
        if so_far is not None:
            self.so_far = so_far
            self._first.set()


_running: set[Job] = set()


def drop_all() -> None:
    """Drop all work of this process, which ends: Python would wait for the threads of a pool."""
    for job in _running.copy():
        job.drop()


def start(
    key: str,
    question: Any,
    work: Work,
    seconds: float = POLL_SECONDS,
    *,
    heavy: bool = False,
    light: bool = False,
) -> Job:
    """Drop the work under this session key and start new work; wait a moment, as short work is done then.

    Args:
        key: In the session.
        question: What it works on.
        work: What to do.
        seconds: How long to wait for its first result.
        heavy: True if it waits until no other heavy work runs.
        light: True if it waits in the queue of light work; it must ask often whether it should stop.
    """
    previous: Job | None = st.session_state.get(key)
    job = Job(question, heavy, light)
    if previous is not None:
        job.take_place_of(previous)
    st.session_state[key] = job
    # A daemon: a server that is told to end does not wait for work.
    threading.Thread(target=job.run, args=(work,), daemon=True).start()
    job.wait_for_first(seconds)  # Short work is done then, and the page shows its result in this very run.
    # Asked in the page's own thread: that of the work belongs to no session. In tests there is no server.
    session = streamlit_internals.session_id()
    if job.running and session and streamlit_internals.find_runtime() is not None:
        arguments = (lambda: not streamlit_internals.is_connected(session), LOST_SECONDS)
        threading.Thread(target=job.stop_when, args=arguments, daemon=True).start()
    return job


def put(key: str, question: Any, result: Any) -> Job:
    """Drop the work under this session key and store a known result in its place."""
    previous: Job | None = st.session_state.get(key)
    if previous is not None:
        previous.drop()
    job = st.session_state[key] = Job(question)
    job.run(lambda progress, should_stop: result)
    return job


def result_of(key: str) -> tuple[Any, Any] | None:
    """Return (question, result) of the work that is done under this key; None if there is none, or if it failed."""
    job: Job | None = st.session_state.get(key)
    if job is not None:
        job.read_early = job.running
    return None if job is None or job.read_early or job.failed else (job.question, job.result)


def so_far_of(key: str) -> tuple[Any, Any] | None:
    """Return (question, last reported result) of the work that runs under this key; None if it has reported none."""
    reported = ((job.question, job.so_far) for job in working(key) if job.so_far is not None)
    return next(reported, None)


def failure_of(key: str) -> tuple[InputProblem, ...]:
    """Return why the work under this key failed; empty if it did not."""
    job: Job | None = st.session_state.get(key)
    return job.problems if job is not None and job.failed else ()


def watch(keys: str | Sequence[str], doing: str | Callable[[], str], measured: bool = True) -> bool:
    """Show a progress bar and Stop while work runs; the page is drawn again when work reports a result or ends.

    If work failed, show why, with a button to try again if that makes sense. If its connection was lost for a
    while, say so.

    Args:
        keys: In the session; several keys are work for one answer.
        doing: What is done; a function if that changes meanwhile.
        measured: True if the work reports how far it is.

    Returns:
        True if work runs.
    """
    keys = (keys,) if isinstance(keys, str) else tuple(keys)
    for key in keys:
        rerun_if_ended(key)
        job: Job | None = st.session_state.get(key)
        if job is not None and job.failed:
            fields.show_problems(job.problems)
            if job.retry_work is not None:
                again = partial(start, key, job.question, job.retry_work, heavy=job.heavy, light=job.light)
                fields.button("Try again", f"{key}_retry", "refresh", again)
    at_work = working(*keys)
    if at_work:
        _bar(keys, doing, measured, [(job, job.so_far) for job in at_work])
    elif any(job is not None and job.cut_off for job in map(st.session_state.get, keys)):
        st.info(CUT_OFF, icon=":material/stop_circle:")
    return bool(at_work)


def working(*keys: str) -> list[Job]:
    """Return the work under these keys that runs now."""
    return [job for job in map(st.session_state.get, keys) if job is not None and job.running]


def rerun_if_ended(key: str) -> None:
    """Run the page again if the work under this key has ended since this run asked for its result.

    If not, the result so far would stand as the final one, as nothing polls work that has ended.
    """
    job: Job | None = st.session_state.get(key)
    if job is not None and job.read_early and not job.running and not page_run.in_sight():
        job.read_early = False
        st.rerun()


@st.fragment(run_every=POLL_SECONDS)
def _bar(
    keys: Sequence[str], doing: str | Callable[[], str], measured: bool, drawn_jobs: list[tuple[Job, Any]]
) -> None:
    """Draw the bar; run the page again if the work or its results differ from ``drawn_jobs``."""
    at_work = working(*keys)
    if [(job, job.so_far) for job in at_work] != drawn_jobs and not page_run.in_sight():
        st.rerun()
    if not at_work:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        words = doing if isinstance(doing, str) else doing()
        # Several for one answer take turns, and each waits for the other now and then.
        if len(keys) == 1 and at_work[0].waiting:
            st.markdown("Waiting for other work in this app…")
        elif measured:
            share = min(job.progress for job in at_work)
            st.progress(share, f"{words}: {share:.0%}")
        else:
            st.markdown(f"{words}…")
        fields.button("Stop", f"{keys[0]}_stop", "stop", _stop, keys)


def _stop(keys: Sequence[str]) -> None:
    """Stop the work under these keys; what was found until then becomes the result."""
    for job in working(*keys):
        job.stop()


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
    def job(self) -> Job | None:
        """Return the work; None before it was first started."""
        job: Job | None = st.session_state.get(self.key)
        return job

    def ask(self) -> None:
        """Start the work unless it works on this question; work that a lost connection cut off starts anew."""
        if self.job is None or self.job.question != self.request or self.job.cut_off:
            self.start()

    def start(self) -> None:
        """Start the work; a result that is known takes its place."""
        search, seconds = self.search, self.search.seconds if self.job is None else self.search.later_seconds
        known_result = self._results.get(self.request)
        if known_result is not None and (not search.resumes or search.is_complete(known_result)):
            put(self.key, self.request, known_result)
            return
        start(self.key, self.request, self._work(), seconds, heavy=search.is_heavy, light=search.is_light)

    @property
    def _results(self) -> cache.Answers[Any]:
        return cache.answers(f"{self.question.name}.{self.search.key}", self.for_all, self.search.num_kept)

    @property
    def _prior(self) -> Run | None:
        return None if self.search.search_before is None else replace(self, search=self.search.search_before)

    def _work(self) -> Callable[..., Any]:
        """Return the work, which keeps its result if it is complete; to be called in the thread of the page."""
        search, request, results, prior = (self.search, self.request, self._results, self._prior)
        begin = None if prior is None else prior._work()

        def resume(progress: Progress, stop: Callable[[], bool]) -> Any:
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

        def work(progress: Progress, stop: Callable[[], bool]) -> Any:
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
        return bool(failure_of(self.key))

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
        is_complete, done = self.search.is_complete, result_of(self.key)
        if done is not None and (previous is None or is_complete(done[1]) or not is_complete(previous[1])):
            # What was stopped does not take the place of a complete result.
            st.session_state[earlier] = previous = (*done, settings)
        if (partial := so_far_of(self.key)) is not None and partial[0] == self.request:
            if self.search.resumes:
                st.session_state[earlier] = (*partial, settings)
            return SearchResult(partial[1], Stage.FIRST, settings)
        for result in (previous, done):
            if result and result[0] == self.request and (result is done or is_complete(result[1])):
                return SearchResult(result[1], Stage.FINAL, settings)
        if self.search.resumes and (known_result := self._results.get(self.request)) is not None:
            return SearchResult(known_result, Stage.FIRST, settings)
        if self.search.compute_first is not None:
            begun = () if self._prior is None else (self._prior._results.get(self._prior.request),)
            if (first := self.search.compute_first(*begun)) is not None:
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
                reply = cache.compute(step)
                continue
            run = Run(question, step, data, for_all)
            if not step.button_text:
                runs.append(run)
                run.ask()
            reply = run.get_state()
    except StopIteration as end:
        return end.value, runs


def forget(runs: Sequence[Run]) -> None:
    """Let the next run of the page search anew."""
    for run in runs:
        run.forget()
