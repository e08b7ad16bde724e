"""Calls of the core that a rerun repeats, cached by content, and the queue of light work.

Every cache of the app is made here. Streamlit hashes only a sample of a large array, and a sample misses heavy tails.
So the key is the data's digest and the frozen question, and the data themselves pass by as ``_argument``. Results that
depend on data are kept per session, since uploads are private to the person who made them. They are kept as a resource:
answers are frozen, and pickling millions of users on every rerun would cost more than the answer. A DP histogram takes
the place of the data it was drawn from, and no result computed from those may stay. This module must know every cache
to clear it. A test looks for others.

A few pieces of light work compute at a time, and runs of pages go before all of them. The interpreter runs one thread
at a time: twenty searches at once leave a run of a page a twentieth of it, and none of them ends soon. So light work
stands in a line. At each of its steps it lets pages go first, and after a while it hands its turn to whoever has waited
longer. A `ResultStore` keeps the results of searches. Those on samples and generated data are kept for everybody, as a
class that is shown one sample asks the same twenty times. All others are kept per session.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import streamlit as st

if TYPE_CHECKING:
    from dpcore.answer.section import Cached

MAX_LIGHT_TURNS = max(1, min((os.cpu_count() or 1) - 1, 2))
"""Pieces of light work that compute at once. More would not end sooner: most of their steps are too short to run in
parallel in one interpreter. One processor stays free for the pages."""
TURN_SECONDS = 0.25
"""How long a turn lasts where others wait. Most searches on the samples take 0.05 to 0.25 s: they end in one turn."""
REQUEUE_DELAY_SECONDS = 2.0
"""Delay of work that has had its turn, against work that has had none. Work that arrives after this delay comes later,
so long work continues under any load."""
PATIENCE_SECONDS = 0.5
"""How long one piece of work stands back for pages in all: a page that computes for seconds shall not hold it up."""
_CHECK_SECONDS = 0.5


@dataclass(eq=False)
class QueueEntry:
    """The place of one piece of work in a line.

    Attributes:
        rank_time: Seconds of the line's clock; the least is first. It is when the work asked, or
            `REQUEUE_DELAY_SECONDS` after the end of its last turn. Work that replaces other work takes its place, so
            that a slider that moves on does not send its session to the end.
        turn_started_at: When its last turn began, in seconds of the line's clock; 0 before the first.
        patience_seconds: Seconds that it will still stand back for pages.
        is_waiting: True while it waits for a turn; False before that, during a turn, and after it.
    """

    rank_time: float
    turn_started_at: float = 0.0
    patience_seconds: float = PATIENCE_SECONDS
    is_waiting: bool = False


class RunningPages:
    """A counter of the runs of pages that compute now; those that only wait for work do not count."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._num_runs = 0
        self._thread_state = threading.local()

    @contextmanager
    def count_run(self, is_counted: bool = True) -> Iterator[None]:
        """Count this thread's run of a page within the context; with ``is_counted`` False, stop counting it there.

        Nothing changes if the run is counted, or not counted, already.
        """
        if getattr(self._thread_state, "is_counted", False) == is_counted:
            yield
            return
        self._note_run(is_counted)
        try:
            yield
        finally:
            self._note_run(not is_counted)

    def stop_counting(self) -> AbstractContextManager[None]:
        """Do not count this thread's run of a page within the context, as that run only waits there."""
        return self.count_run(is_counted=False)

    def wait_until_idle(self, queue_entry: QueueEntry) -> None:
        """Wait until no page computes, at most for the work's patience, which the wait shortens."""
        if not self._num_runs or queue_entry.patience_seconds <= 0.0:
            return
        start_time = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: not self._num_runs, queue_entry.patience_seconds)
        queue_entry.patience_seconds -= time.monotonic() - start_time

    def _note_run(self, is_counted: bool) -> None:
        """Add this thread's run to the count or take it off, and wake all work that waits for pages."""
        self._thread_state.is_counted = is_counted
        with self._changed:
            self._num_runs += 1 if is_counted else -1
            self._changed.notify_all()


class WorkQueue:
    """The queue of light work: a few pieces compute at once, the others wait.

    Args:
        max_turns: How many pieces compute at once.
        pages: The count of the runs of pages, which go first; kept under this name.
        clock: Seconds; never goes back.
    """

    def __init__(
        self, max_turns: int, running_pages: RunningPages, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._changed = threading.Condition()
        self._num_free = max_turns
        self.pages, self._clock = running_pages, clock
        self._waiting: list[QueueEntry] = []

    @property
    def has_no_free_turn(self) -> bool:
        """Return True if all turns are taken, so that work that enters now has to wait."""
        return not self._num_free

    def create_entry(self, previous_entry: QueueEntry | None = None) -> QueueEntry:
        """Return a new entry: at the end, or at the place of the previous work if that waits (again)."""
        with self._changed:
            if previous_entry is not None and previous_entry.is_waiting:
                return QueueEntry(previous_entry.rank_time)
            return QueueEntry(self._clock())

    def wait_for_turn(self, queue_entry: QueueEntry, should_stop: Callable[[], bool]) -> bool:
        """Wait for a turn and return True; return False, without a turn, if the work was stopped before."""
        with self._changed:
            self._waiting.append(queue_entry)
            queue_entry.is_waiting = True
            try:
                while not should_stop():
                    first_entry = min(self._waiting, key=lambda other: other.rank_time)
                    if self._num_free and queue_entry is first_entry:
                        self._num_free -= 1
                        queue_entry.turn_started_at = self._clock()
                        return True
                    self._changed.wait(_CHECK_SECONDS)
                return False
            finally:
                queue_entry.is_waiting = False
                self._waiting.remove(queue_entry)
                self._changed.notify_all()

    def wake_waiting(self) -> None:
        """Wake all waiting work, so that work that was stopped finds out."""
        with self._changed:
            self._changed.notify_all()

    def end_turn(self) -> None:
        """Give the turn back."""
        with self._changed:
            self._num_free += 1
            self._changed.notify_all()

    def give_way(self, queue_entry: QueueEntry, should_stop: Callable[[], bool]) -> bool:
        """Let pages go first, and after a long turn other work of the line; return False if stopped while that works.

        It is called between two steps of work that has its turn. After False it has none.
        """
        self.pages.wait_until_idle(queue_entry)
        with self._changed:
            current_time = self._clock()
            if not self._waiting or current_time - queue_entry.turn_started_at < TURN_SECONDS:
                return True
        queue_entry.rank_time = current_time + REQUEUE_DELAY_SECONDS
        self.end_turn()
        return self.wait_for_turn(queue_entry, should_stop)


RUNNING_PAGES = RunningPages()
LIGHT_QUEUE = WorkQueue(MAX_LIGHT_TURNS, RUNNING_PAGES)
HEAVY_QUEUE = WorkQueue(1, RUNNING_PAGES)
"""Heavy work runs one piece at a time, and keeps its turn until it ends."""


P = ParamSpec("P")
R = TypeVar("R")

_CACHED_FUNCTIONS_OF_DATA: list[Any] = []


def cache_for_session(max_entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator that caches a function of this session's data; its last ``max_entries`` results are kept."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        """Return the function with a cache that `forget_session_results` empties."""
        cached_function = st.cache_resource(max_entries=max_entries, scope="session", show_spinner=False)(
            function
        )
        _CACHED_FUNCTIONS_OF_DATA.append(cached_function)
        return cached_function

    return decorate


def cache_for_everybody(max_entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a decorator that caches a function of no data for all sessions; the last ``max_entries`` are kept."""
    return st.cache_resource(max_entries=max_entries, show_spinner=False)


class ResultStore(Generic[R]):
    """The last so many results of searches, by question; threads may use it.

    Args:
        max_entries: How many are kept.
    """

    def __init__(self, max_entries: int) -> None:
        self._lock = threading.Lock()
        self._max_entries, self._answers = max_entries, dict[Hashable, R]()

    def get_result(self, request: Hashable) -> R | None:
        """Return the answer to a question, which then counts as the last one used; None if it is not stored."""
        with self._lock:
            if request not in self._answers:
                return None
            self._answers[request] = result = self._answers.pop(request)  # Now the last one used.
            return result

    def get_or_compute(
        self,
        request: Hashable,
        compute_result: Callable[[], R],
        is_complete: Callable[[R], bool] | None = None,
    ) -> R:
        """Return the stored answer; else compute one, and store it unless ``is_complete`` returns False for it."""
        if (known_result := self.get_result(request)) is not None:
            return known_result
        result = compute_result()
        if is_complete is None or is_complete(result):
            self.store_result(request, result)
        return result

    def store_result(self, request: Hashable, result: R) -> None:
        """Keep an answer to a question, in place of the one before; of too many the one longest unused is dropped."""
        with self._lock:
            self._answers.pop(request, None)
            self._answers[request] = result
            while len(self._answers) > self._max_entries:
                del self._answers[next(iter(self._answers))]


def get_result_store(store_name: str, is_shared: bool, max_entries: int = 32) -> ResultStore[Any]:
    """Return the store of the results of the searches of this name; questions are to hold the digest of the data.

    Args:
        store_name: Name of a page or of one of its searches.
        is_shared: Whether all sessions share them: only where the data are the same for everybody by themselves, as
            samples and generators are. An upload stays with its session, whatever it was declared to be.
        max_entries: How many are kept.
    """
    return (
        _get_shared_store(store_name, max_entries)
        if is_shared
        else _get_session_store(store_name, max_entries)
    )


def compute_cached(call: Cached) -> Any:
    """Return the result that this session has stored for a call of the core; else make the call and store it."""
    return get_result_store(call.name, False, call.num_kept).get_or_compute(call.question, call.compute)


@cache_for_everybody(max_entries=64)
def _get_shared_store(store_name: str, max_entries: int) -> ResultStore[Any]:
    """Return the store that all sessions share under this name."""
    return ResultStore(max_entries)


@cache_for_session(max_entries=64)
def _get_session_store(store_name: str, max_entries: int) -> ResultStore[Any]:
    """Return this session's store under this name."""
    return ResultStore(max_entries)


def forget_session_results() -> None:
    """Drop every answer that was computed from this session's data."""
    for cached_function in _CACHED_FUNCTIONS_OF_DATA:
        cached_function.clear()
