"""Long work beside the page: threads with progress and Stop.

The work runs in a thread, so sliders stay live, and a fragment polls it. Its result stays in the session until the next
start, whatever the person does meanwhile; stopped work has a result, too. Work that fails says why in sentences, and
can be started again. Work of a session that nobody is connected to any more is told to stop. Heavy work runs one piece
at a time in the process, whichever session started it, as memory is shared. Light work, a search that a moved slider
starts, waits in a queue (`pages.shared.base.cache`) in which pages go first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import streamlit as st

from dpcore.common.checks import InputProblem, InvalidInput, describe_error
from dpcore.common.progress import ShouldStop
from pages.shared import streamlit_internals
from pages.shared.base import cache, page_run
from pages.shared.fields import fields


class Progress(Protocol):
    """The callback by which work reports; a `dpcore.common.progress.Progress`, too."""

    def __call__(self, share: float | None, partial_result: Any = None) -> None:
        """Report the share done, from 0 to 1, and a partial result; None keeps what was reported last of either."""


Work = Callable[[Progress, ShouldStop], Any]
POLL_SECONDS = 0.4
LOST_SECONDS = 5.0
"""How long work goes on after the last connection of its session was lost: a short drop shall cost nothing."""
CUT_OFF_SENTENCE = "The connection to this page was lost, so the work was stopped."
_CHECK_SECONDS = 0.5


@dataclass(eq=False)
class Job:
    """One piece of work in a thread beside the page, with its progress and result.

    Attributes:
        request: What it works on, compared by ==: tells whether its result is of what the page asks for now.
        is_heavy: True if it waits until no other heavy work runs in this process.
        is_light: True if it waits in the queue of light work; work that is neither begins at once.
        progress_share: Share done, 0 to 1; 0 until it reports one.
        partial_result: The last result that the work reported; never changed, only replaced; None before.
        result: What the work returned; None while it runs, and if it failed.
        input_problems: Why it failed; empty if it did not.
        was_read_early: True if the page last asked for the result while it worked.
        retry_work: The work, if it failed and may be tried again; else None.
        was_cut_off: True if it was stopped because the connection of its session was lost.
    """

    request: Any
    is_heavy: bool = False
    is_light: bool = False
    progress_share: float = 0.0
    partial_result: Any = None
    was_read_early: bool = False
    result: Any = None
    input_problems: tuple[InputProblem, ...] = ()
    retry_work: Work | None = None
    was_cut_off: bool = False
    _stop_event: threading.Event = field(default_factory=threading.Event)
    _done_event: threading.Event = field(default_factory=threading.Event)
    _first_event: threading.Event = field(default_factory=threading.Event)
    _is_dropped: bool = False
    _has_turn: bool = False
    _queue: cache.WorkQueue = field(init=False)
    _queue_entry: cache.QueueEntry = field(init=False)

    def __post_init__(self) -> None:
        self._queue = cache.HEAVY_QUEUE if self.is_heavy else cache.LIGHT_QUEUE
        self._queue_entry = self._queue.create_entry()

    @property
    def is_running(self) -> bool:
        """Return True until the work has ended, also while it waits for its turn."""
        return not self._done_event.is_set()

    @property
    def is_waiting(self) -> bool:
        """Return True if the work waits for a turn now."""
        return self._queue_entry.is_waiting

    @property
    def has_failed(self) -> bool:
        """Return True if the work ended in an error, and so has no result."""
        return not self.is_running and bool(self.input_problems)

    def stop(self) -> None:
        """Ask the work to end; what it has found until then becomes its result."""
        self._stop_event.set()
        self._queue.wake_waiting()

    def drop(self) -> None:
        """Stop the work and discard its result: work that still waits for its turn does not even begin."""
        self._is_dropped = True
        self.stop()

    def take_place_of(self, previous_job: Job) -> None:
        """Take the place of other work in the queue, if that still waits, and drop that work."""
        self._queue_entry = self._queue.create_entry(previous_job._queue_entry)
        previous_job.drop()

    def wait(self, max_seconds: float) -> None:
        """Wait until the work is done, for so many seconds at most."""
        with cache.RUNNING_PAGES.stop_counting():
            self._done_event.wait(max_seconds)

    def wait_for_first_result(self, max_seconds: float) -> None:
        """Wait until the work has a partial result, is done or stands behind heavy work, at most ``max_seconds``."""
        with cache.RUNNING_PAGES.stop_counting():
            self._first_event.wait(max_seconds)

    def run(self, work: Work) -> None:
        """Do the work in this thread once it has its turn; store its result, or why it failed.

        Work that is stopped while it waits is still called, so that it can return a result; dropped work is not.
        """
        _running_jobs.add(self)
        if self.is_heavy and self._queue.has_no_free_turn:
            self._first_event.set()
        if self.is_light:
            self._queue.pages.wait_until_idle(self._queue_entry)
        if self.is_heavy or self.is_light:
            self._has_turn = self._queue.wait_for_turn(self._queue_entry, self._stop_event.is_set)
        try:
            if not self._is_dropped:
                self.result = work(self._report, self._should_stop)
        except Exception as error:  # Whatever it is, the page says it in words and goes on.
            self.input_problems = describe_error(error)
            self.retry_work = None if isinstance(error, InvalidInput) else work
        finally:
            if self._has_turn:
                self._queue.end_turn()
            self._done_event.set()
            self._first_event.set()
            _running_jobs.discard(self)

    def _should_stop(self) -> bool:
        """Return True if the work should stop; light work may first give its turn to others."""
        if self.is_light and self._has_turn and not self._stop_event.is_set():
            self._has_turn = self._queue.give_way(self._queue_entry, self._stop_event.is_set)
        return self._stop_event.is_set()

    def stop_when_lost(self, is_lost: Callable[[], bool], lost_seconds: float) -> None:
        """Wait until the work is done; ask it to end once ``is_lost`` has returned True for ``lost_seconds``."""
        lost_since: float | None = None
        while self.is_running:
            lost_since = (lost_since or time.monotonic()) if is_lost() else None
            if lost_since is not None and time.monotonic() - lost_since >= lost_seconds:
                self.was_cut_off = True
                self.stop()
                return
            self.wait(min(_CHECK_SECONDS, lost_seconds))

    def _report(self, share: float | None, partial_result: Any = None) -> None:
        """Store the share done and a partial result, each if it is given."""
        if share is not None:
            self.progress_share = min(max(share, 0.0), 1.0)
        if partial_result is not None:
            self.partial_result = partial_result
            self._first_event.set()


_running_jobs: set[Job] = set()


def drop_all_jobs() -> None:
    """Drop all work of this process, which ends: Python would wait for the threads of a pool."""
    for job in _running_jobs.copy():
        job.drop()


def start_job(
    job_key: str,
    request: Any,
    work: Work,
    wait_seconds: float = POLL_SECONDS,
    is_heavy: bool = False,
    is_light: bool = False,
) -> Job:
    """Drop the work under this session key and start new work; wait a moment, as short work is done then.

    Args:
        job_key: In the session.
        request: What it works on.
        work: What to do.
        wait_seconds: How long to wait for its first result.
        is_heavy: True if it waits until no other heavy work runs.
        is_light: True if it waits in the queue of light work; it must ask often if it should stop.
    """
    previous_job: Job | None = st.session_state.get(job_key)
    job = Job(request, is_heavy, is_light)
    if previous_job is not None:
        job.take_place_of(previous_job)
    st.session_state[job_key] = job
    # A daemon: a server that is told to end does not wait for work.
    threading.Thread(target=job.run, args=(work,), daemon=True).start()
    # Short work is done then, and the page shows its result in this very run.
    job.wait_for_first_result(wait_seconds)
    # Asked in the page's own thread: that of the work belongs to no session. In tests there is no server.
    session_id = streamlit_internals.get_session_id()
    if job.is_running and session_id and streamlit_internals.find_runtime() is not None:
        watch_arguments = (lambda: not streamlit_internals.is_connected(session_id), LOST_SECONDS)
        threading.Thread(target=job.stop_when_lost, args=watch_arguments, daemon=True).start()
    return job


def store_result(job_key: str, request: Any, result: Any) -> Job:
    """Drop the work under this session key and store a known result in its place."""
    previous_job: Job | None = st.session_state.get(job_key)
    if previous_job is not None:
        previous_job.drop()
    job = st.session_state[job_key] = Job(request)
    job.run(lambda progress, should_stop: result)
    return job


def find_result(job_key: str) -> tuple[Any, Any] | None:
    """Return (request, result) of the work that is done under this key; None if it runs or failed, or without work.

    If it runs, the job notes that its result was asked for, so that `rerun_if_ended` draws the page again.
    """
    job: Job | None = st.session_state.get(job_key)
    if job is not None:
        job.was_read_early = job.is_running
    return None if job is None or job.was_read_early or job.has_failed else (job.request, job.result)


def find_partial_result(job_key: str) -> tuple[Any, Any] | None:
    """Return (request, partial result) of the work that runs under this key; None if none runs or has reported one."""
    jobs = [job for job in list_running_jobs(job_key) if job.partial_result is not None]
    return (jobs[0].request, jobs[0].partial_result) if jobs else None


def list_failures(job_key: str) -> tuple[InputProblem, ...]:
    """Return the problems for which the work under this key failed; empty if it runs or succeeded, or without work."""
    job: Job | None = st.session_state.get(job_key)
    return job.input_problems if job is not None and job.has_failed else ()


def show_progress(
    job_keys: str | Sequence[str], work_text: str | Callable[[], str], is_measured: bool = True
) -> bool:
    """Show a progress bar and Stop while work runs; the page is drawn again when work reports a result or ends.

    If work failed, show why, with a button to try again if that makes sense. If its connection was lost for a
    while, say so.

    Args:
        job_keys: In the session; several keys are work for one answer.
        work_text: What is done; a function if that changes meanwhile.
        is_measured: True if the work reports how far it is.

    Returns:
        True if work runs.
    """
    job_keys = (job_keys,) if isinstance(job_keys, str) else tuple(job_keys)
    for job_key in job_keys:
        rerun_if_ended(job_key)
        job: Job | None = st.session_state.get(job_key)
        if job is not None and job.has_failed:
            fields.show_problems(job.input_problems)
            if job.retry_work is not None:
                retry_arguments = (
                    job_key,
                    job.request,
                    job.retry_work,
                    POLL_SECONDS,
                    job.is_heavy,
                    job.is_light,
                )
                fields.draw_button("Try again", f"{job_key}_retry", "refresh", start_job, *retry_arguments)
    running_jobs = list_running_jobs(*job_keys)
    if running_jobs:
        _draw_progress_bar(
            job_keys, work_text, is_measured, [(job, job.partial_result) for job in running_jobs]
        )
    elif any(job is not None and job.was_cut_off for job in map(st.session_state.get, job_keys)):
        st.info(CUT_OFF_SENTENCE, icon=":material/stop_circle:")
    return bool(running_jobs)


def list_running_jobs(*job_keys: str) -> list[Job]:
    """Return the work under these keys that runs now."""
    return [job for job in map(st.session_state.get, job_keys) if job is not None and job.is_running]


def rerun_if_ended(job_key: str) -> None:
    """Run the page again if the work under this key has ended since this run asked for its result.

    If not, the result so far would stand as the final one, as nothing polls work that has ended.
    """
    job: Job | None = st.session_state.get(job_key)
    if (
        job is not None
        and job.was_read_early
        and not job.is_running
        and not page_run.is_dialog_open_or_requested()
    ):
        job.was_read_early = False
        st.rerun()


@st.fragment(run_every=POLL_SECONDS)
def _draw_progress_bar(
    job_keys: Sequence[str],
    work_text: str | Callable[[], str],
    is_measured: bool,
    drawn_results: list[tuple[Job, Any]],
) -> None:
    """Draw the bar; run the page again if running jobs or their partial results are not those that were drawn."""
    running_jobs = list_running_jobs(*job_keys)
    has_changed = [(job, job.partial_result) for job in running_jobs] != drawn_results
    if has_changed and not page_run.is_dialog_open_or_requested():
        st.rerun()
    if not running_jobs:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        current_text = work_text if isinstance(work_text, str) else work_text()
        # Several for one answer take turns, and each waits for the other now and then.
        if len(job_keys) == 1 and running_jobs[0].is_waiting:
            st.markdown("Waiting for other work in this app…")
        elif is_measured:
            progress_share = min(job.progress_share for job in running_jobs)
            st.progress(progress_share, f"{current_text}: {progress_share:.0%}")
        else:
            st.markdown(f"{current_text}…")
        fields.draw_button("Stop", f"{job_keys[0]}_stop", "stop", _stop_jobs, job_keys)


def _stop_jobs(job_keys: Sequence[str]) -> None:
    """Stop the work under these keys; what was found until then becomes the result."""
    for job in list_running_jobs(*job_keys):
        job.stop()
