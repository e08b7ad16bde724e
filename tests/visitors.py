"""Visitors of a real server, one after the other in two halves; prints as JSON what is left of them in memory.

Server and visitors share this process, so that it can look at its own memory. Run as
``python -m tests.visitors <port> <visitors of each half>``. Nothing is warmed: memory is frozen while the first visitor
is there.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import uvicorn
import websockets
from google.protobuf.message import Message
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state import SessionState
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from dpcore.counting.duck import Duck
from dpcore.counting.formats import MemoryFile
from pages.shared.fields.jobs import Job
from pages.shared.session.session import LoadedData

KEPT_SECONDS, PATIENCE = 2, 300.0
MOST_FILES = 4
"""Visitors of each half who bring a file, at most: every second one of few does."""
CLASSES = (AppSession, SessionState, LoadedData, Job, Duck, MemoryFile)
PLANTED = re.compile(r"planted-[0-9]")
Fill = Callable[[WidgetState], None]


class Tab:
    """A browser's tab, as far as the server can tell."""

    def __init__(self, port: int) -> None:
        self._address = f"ws://127.0.0.1:{port}/_stcore/stream"
        self._widgets: dict[str, str] = {}
        self.session = ""

    async def __aenter__(self) -> Tab:
        """Connect."""
        self._socket = await websockets.connect(
            self._address, subprotocols=[websockets.Subprotocol("streamlit")], max_size=None
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._socket.close()

    async def run(self, page: str, *fills: Fill) -> None:
        """Run a page with these values of widgets, and read what it sends to its end."""
        request = BackMsg()
        request.rerun_script.page_name = page
        for fill in fills:
            fill(request.rerun_script.widget_states.widgets.add())
        await self._socket.send(request.SerializeToString())
        while True:
            message = ForwardMsg.FromString(await asyncio.wait_for(self._socket.recv(), 120.0))
            match message.WhichOneof("type"):
                case "new_session":
                    self.session = message.new_session.initialize.session_id
                case "delta" if message.delta.WhichOneof("type") == "new_element":
                    element_type = message.delta.new_element.WhichOneof("type")
                    assert element_type != "exception", message
                    widget = getattr(getattr(message.delta.new_element, element_type), "id", "")
                    self._widgets[widget.rpartition("-")[2]] = widget
                    self.record(message)
                case "script_finished" if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    return

    def record(self, message: ForwardMsg) -> None:
        """Read an element; this tab reads none."""

    def has(self, key: str) -> bool:
        """Return True if a widget with this key was drawn."""
        return key in self._widgets

    def widget(self, key: str) -> str:
        """Return Streamlit's name of the widget with this key."""
        return self._widgets[key]


@dataclass
class Visits:
    """What is known of visitors who left, without holding anything of them."""

    port: int
    upload_interval: int
    names: set[str] = field(default_factory=set)
    found_while_open: int = 0

    async def come_and_go(self, number: int) -> None:
        """Open a page and leave; one in `upload_interval` brings a file, and half of these put it to use."""
        async with Tab(self.port) as tab:
            await tab.run("your-data" if number % self.upload_interval == 0 else "reproduce")
            self.names.add(tab.session)
            if number % self.upload_interval == 0:
                await bring_file(tab, number, puts_to_use=number % (2 * self.upload_interval) == 0)
                # A search misses what was frozen since the upload, so each of these visitors counts.
                self.found_while_open += len(find_planted())

    async def wait(self) -> None:
        """Wait until nothing is left of them, or until patience ends: `main` says what is left."""
        deadline = time.monotonic() + PATIENCE
        while self.remains(gc.get_objects()) and time.monotonic() < deadline:
            await asyncio.sleep(0.5)

    def remains(self, objects: list[Any]) -> list[str]:
        """Return the names of the classes of the visitors' objects among these."""
        # By type: a weak proxy whose object is gone raises when it is asked for its class.
        foreign = [item for item in objects if type(item) is AppSession and item.id not in self.names]
        spared = {id(session) for session in foreign} | {id(session.session_state) for session in foreign}
        return [type(item).__name__ for item in objects if type(item) in CLASSES and id(item) not in spared]


async def bring_file(tab: Tab, number: int, puts_to_use: bool) -> None:
    """Bring a file with planted user ids, and put it to use, or leave while it waits."""

    def source(widget: WidgetState) -> None:
        widget.id = tab.widget("your_data.data_source")
        widget.string_array_value.data.append("Upload a file")

    def file(widget: WidgetState) -> None:
        widget.id = tab.widget("your_data.upload_file_0")
        info = widget.file_uploader_state_value.uploaded_file_info.add()
        info.file_id, info.name, info.size = name, name, len(content)

    def use(widget: WidgetState) -> None:
        widget.id, widget.trigger_value = tab.widget("use_upload"), True

    name = f"planted-{number}.csv"
    rows = "".join(f"planted-{number}-{user},{user}\n" for user in range(200) for _ in range(3))
    content = f"user,planted-{number}-value\n{rows}".encode()
    await tab.run("your-data", source)
    Runtime.instance().uploaded_file_mgr.add_file(
        tab.session, UploadedFileRec(name, name, "text/csv", content)
    )
    await tab.run("your-data", source, file)
    if puts_to_use:
        while not tab.has("use_upload"):  # On a busy machine the file is still looked at when the run ends.
            await asyncio.sleep(0.2)
            await tab.run("your-data", source, file)
        await tab.run("your-data", use)
        await tab.run("mean")


def find_planted() -> list[str]:
    """Return the planted texts that are alive, each with the class that holds it."""
    visited: set[int] = set()
    return [
        f"{type(holder).__module__}.{type(holder).__name__}: {match[0]}"
        for holder in gc.get_objects()
        for text in list_texts(holder, visited)
        if (match := re.search(PLANTED.pattern + ".{0,30}", text)) is not None
    ]


def list_texts(holder: Any, visited: set[int]) -> Iterator[str]:
    """Return the texts that an object holds, through whatever Python does not track itself."""
    for referent in gc.get_referents(holder):
        if gc.is_tracked(referent) or id(referent) in visited:
            continue
        if isinstance(referent, str):
            yield referent
        elif isinstance(referent, bytes | bytearray):
            yield referent.decode("latin-1")
        elif isinstance(referent, np.ndarray):
            yield from map(str, referent.ravel().tolist() if referent.dtype.kind in "OSUT" else [])
        elif isinstance(referent, pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table):
            yield str(referent.to_pylist())
        elif isinstance(referent, pa.Buffer):
            yield referent.to_pybytes().decode("latin-1")
        elif isinstance(referent, Message):
            yield referent.SerializeToString().decode("latin-1")
        else:
            visited.add(id(referent))
            yield from list_texts(referent, visited)


async def main(port: int, num_visitors: int) -> dict[str, Any]:
    """Let all visitors come and go; return what is left."""
    from app import app

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    megabytes, visits = [], Visits(port, max(2, num_visitors // MOST_FILES))
    for round_number in range(2):
        for number in range(round_number * num_visitors, (round_number + 1) * num_visitors):
            await visits.come_and_go(number)
        await visits.wait()
        megabytes.append(psutil.Process().memory_info().rss / 1e6)
    gc.unfreeze()  # Python does not name objects that were frozen.
    remains = {
        "visitors": len(visits.names),
        "found while open": visits.found_while_open,
        "megabytes": megabytes,
        "remains": visits.remains(gc.get_objects()),
        "planted": find_planted(),
    }
    server.should_exit = True
    await serving
    return remains


if __name__ == "__main__":
    os.environ["SWEETSPOT_TOKEN"] = ""
    config.set_option("server.disconnectedSessionTTL", KEPT_SECONDS)
    print(json.dumps(asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))))
