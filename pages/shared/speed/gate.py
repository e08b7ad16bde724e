"""A gate in a web socket, behind which messages wait for a figure."""

from __future__ import annotations

import asyncio

MAX_WAIT = 0.1
"""Seconds for which messages wait at most. With no other load a figure is drawn some 60 ms after the run began."""
MIN_OPEN = 0.05
"""Seconds for which a gate that was opened stays open: while a slider is held, all that waited gets out in between."""


class Gate:
    """A gate that holds back a web socket's messages while it is closed; for the socket's event loop only."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._opened = -MIN_OPEN
        self._limit: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Hold messages back until `open`, for `MAX_WAIT` at most; do nothing if it is closed or was just opened."""
        if self._is_open.is_set() and self._loop.time() - self._opened >= MIN_OPEN:
            self._is_open.clear()
            self._limit = self._loop.call_later(MAX_WAIT, self.open)

    def open(self) -> None:
        """Let messages go on."""
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
            self._opened = self._loop.time()
            self._is_open.set()

    async def wait(self) -> None:
        """Wait until it is open."""
        await self._is_open.wait()
