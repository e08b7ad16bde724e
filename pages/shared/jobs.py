"""Long work beside the page: a thread with progress and Stop, kept in the session; cancelled is a result.

The work runs in a thread, so that sliders stay live, and a fragment polls it. Its result stays in the session until the
next start, whatever the person does meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from dpcore.common.progress import Progress, ShouldStop

Work = Callable[[Progress, ShouldStop], Any]
POLL_SECONDS = 0.4


@dataclass(eq=False)
class Job:
    """One piece of work.

    Attributes:
        question: What it works on, to tell whether its result still answers what is asked.
        progress: Share done, 0 to 1.
        result: What the work returned; None while it runs.
        error: What it raised, if anything.
    """

    question: Any
    progress: float = 0.0
    result: Any = None
    error: Exception | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return not self._done.is_set()

    def stop(self) -> None:
        """Ask it to end; what it has found until then becomes its result."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Return when it is done, or after so many seconds."""
        self._done.wait(seconds)

    def run(self, work: Work) -> None:
        """Do the work in this thread."""
        try:
            self.result = work(self._report, self._stop.is_set)
        except Exception as error:  # raised again on the page, in `result_of`
            self.error = error
        finally:
            self._done.set()

    def _report(self, share: float) -> None:
        self.progress = min(max(share, 0.0), 1.0)


def start(key: str, question: Any, work: Work) -> Job:
    """Stop what runs under this session key, and start anew. Short work is waited for."""
    before: Job | None = st.session_state.get(key)
    if before is not None:
        before.stop()
    job = Job(question)
    st.session_state[key] = job
    threading.Thread(target=job.run, args=(work,), daemon=True).start()
    job.wait(POLL_SECONDS)
    return job


def result_of(key: str) -> tuple[Any, Any] | None:
    """(question, result) of the work that is done under this key; None where there is none."""
    job: Job | None = st.session_state.get(key)
    if job is None or job.running:
        return None
    if job.error is not None:
        raise job.error
    return job.question, job.result


def watch(key: str, doing: str) -> bool:
    """While work runs under this key: a progress bar and Stop. The page is drawn anew when it ends.

    Returns:
        Whether it runs.
    """
    job: Job | None = st.session_state.get(key)
    if job is None or not job.running:
        return False
    _bar(key, doing)
    return True


@st.fragment(run_every=POLL_SECONDS)
def _bar(key: str, doing: str) -> None:
    job: Job | None = st.session_state.get(key)
    if job is None or not job.running:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(job.progress, f"{doing}: {job.progress:.0%}")
        st.button("Stop", key=f"{key}_stop", on_click=job.stop, icon=":material/stop:")
