"""Who computes now: of light work so many pieces at a time, and runs of pages before all of them.

The interpreter runs one thread at a time: twenty searches at once leave a run of a page a twentieth of it, and none of
them ends soon. So light work stands in a line. At each of its steps it lets pages go first, and after a while it hands
its turn to whoever has waited longer.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AT_ONCE = max(1, min((os.cpu_count() or 1) - 1, 2))
"""Pieces of light work that compute at once. More do not end sooner, as most of their steps are too short for them to
run beside each other in one interpreter, and one processor stays free for the pages."""
TURN_SECONDS = 0.25
"""How long a turn lasts where others wait. Most searches on the samples take 0.05 to 0.25 s: they end in one turn."""
LATER_SECONDS = 2.0
"""By how much work that has had its turn stands behind work that has had none; whatever comes later is behind it, so
that long work goes on under any load."""
PATIENCE_SECONDS = 0.5
"""How long one piece of work stands back for pages in all: a page that computes for seconds shall not hold it up."""
_LOOK_SECONDS = 0.5


class Place:
    """The place of one piece of work in a line.

    Attributes:
        since: When it asked, in seconds of the line's clock: who asked first is first. Work that replaces other work
            takes its place, so that a slider that moves on does not send its session to the end.
        began: When its turn began.
        patience: Seconds that it will still stand back for pages.
        waiting: Whether it waits for its turn now.
    """

    def __init__(self, since: float) -> None:
        self.since = since
        self.began = 0.0
        self.patience = PATIENCE_SECONDS
        self.waiting = False


class Pages:
    """How many runs of pages compute now; those that only wait for work do not count."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at_work = 0
        self._mine = threading.local()

    @contextmanager
    def run(self) -> Iterator[None]:
        """A run of a page, in its own thread."""
        if self._runs_here():
            yield
            return
        self._mine.runs = True
        self._count(1)
        try:
            yield
        finally:
            self._mine.runs = False
            self._count(-1)

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Here the run of this thread only waits, where there is one."""
        if not self._runs_here():
            yield
            return
        self._mine.runs = False
        self._count(-1)
        try:
            yield
        finally:
            self._mine.runs = True
            self._count(1)

    def let_go_first(self, place: Place) -> None:
        """Return when no page computes, or when the patience of this work is at its end."""
        if not self._at_work or place.patience <= 0.0:
            return
        began = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work, place.patience)
        place.patience -= time.monotonic() - began

    def _runs_here(self) -> bool:
        return getattr(self._mine, "runs", False)

    def _count(self, change: int) -> None:
        with self._changed:
            self._at_work += change
            self._changed.notify_all()


class Line:
    """So many compute at once, the others wait.

    Args:
        at_once: How many.
        pages: The runs of pages that go first; kept under this name.
        clock: Seconds; never goes back.
    """

    def __init__(self, at_once: int, pages: Pages, clock: Callable[[], float] = time.monotonic) -> None:
        self._changed = threading.Condition()
        self._free = at_once
        self.pages, self._clock = pages, clock
        self._waiting: list[Place] = []

    def place(self, before: Place | None = None) -> Place:
        """Return a new place: at the end, or that of the work before where it is still in the line."""
        with self._changed:
            return Place(before.since if before is not None and before.waiting else self._clock())

    def enter(self, place: Place, stopped: Callable[[], bool]) -> bool:
        """Wait for a turn; False where it was stopped before it came."""
        with self._changed:
            self._waiting.append(place)
            place.waiting = True
            try:
                while not stopped():
                    if self._free and place is min(self._waiting, key=lambda one: one.since):
                        self._free -= 1
                        place.began = self._clock()
                        return True
                    self._changed.wait(_LOOK_SECONDS)
                return False
            finally:
                place.waiting = False
                self._waiting.remove(place)
                self._changed.notify_all()

    def look_again(self) -> None:
        """Let whoever was stopped while it waited find out."""
        with self._changed:
            self._changed.notify_all()

    def leave(self) -> None:
        """Give the turn back."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def step(self, place: Place, stopped: Callable[[], bool]) -> bool:
        """Between two steps of work that has its turn: let pages go first, and after a while others of the line.

        Returns:
            Whether it still has its turn; not where it was stopped while it waited for the next one.
        """
        self.pages.let_go_first(place)
        with self._changed:
            now = self._clock()
            if not self._waiting or now - place.began < TURN_SECONDS:
                return True
        place.since = now + LATER_SECONDS
        self.leave()
        return self.enter(place, stopped)


PAGES = Pages()
LIGHT = Line(AT_ONCE, PAGES)
