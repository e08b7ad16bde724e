"""A server of the app without Streamlit's private names; prints what a moved slider does there.

Run as ``python -m tests.missing_names <port> <name> ...``, by which it also runs without one name after the other. Only
the app lacks the names: Streamlit itself goes on as it is.
"""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

import uvicorn
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from tests.visitors import Tab

INTERNALS = "pages.shared.streamlit_internals"
IMPORTED = ("get_script_run_ctx", "Runtime", "BackMsg", "ForwardMsg", "file_util")
ATTRIBUTES = (
    "session_id",
    "fragment_ids_this_run",
    "uploaded_file_mgr",
    "is_active_session",
    "get_app_session",
)
NAMES = (*IMPORTED, *ATTRIBUTES)
import_really = builtins.__import__
missing: set[str] = set(NAMES)


class Incomplete:
    """An object that lacks the missing names."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name in missing:
            raise AttributeError(name)
        return getattr(self._module, name)


def import_incomplete(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """Import a module; of Streamlit's private ones the app gets what is not missing."""
    module = import_really(name, globals, locals, fromlist, level)
    if not globals or globals.get("__name__") != INTERNALS or not fromlist:
        return module
    if missing & set(fromlist):
        raise ImportError(fromlist)
    if fromlist == ("get_script_run_ctx",):
        return SimpleNamespace(get_script_run_ctx=lambda: Incomplete(get_script_run_ctx()))
    if fromlist == ("Runtime",):
        return SimpleNamespace(Runtime=SimpleNamespace(instance=lambda: Incomplete(Runtime.instance())))
    return module


class Watcher(Tab):
    """A browser's tab that keeps the newest message of the page's figure."""

    figure = ""

    def record(self, message: ForwardMsg) -> None:
        """Keep the figure of a message, if it has one."""
        component = message.delta.new_element.bidi_component
        if component.component_name.endswith("sweetspot_figure"):
            self.figure = component.bytes.decode()


async def move_slider(port: int) -> bool:
    """Open Mean, move the slider of ε, and return True if the figure is another one."""

    def move(widget: WidgetState) -> None:
        widget.id = tab.widget("epsilon_slider")
        widget.string_array_value.data.append("5")

    async with Watcher(port) as tab:
        await tab.run("mean")
        figure_before = tab.figure
        await tab.run("mean", move)
        return bool(figure_before) and tab.figure != figure_before


async def main(port: int, names: list[str]) -> dict[str, bool]:
    """Start the app without any of the names, and move its slider; then without one of these after the other."""
    builtins.__import__ = import_incomplete
    from app import app

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    moved_by_name = {"all": await move_slider(port)}
    for name in names:
        missing.clear()
        missing.add(name)
        moved_by_name[name] = await move_slider(port)
    server.should_exit = True
    await serving
    return moved_by_name


if __name__ == "__main__":
    os.environ["SWEETSPOT_TOKEN"] = ""
    print(json.dumps(asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))))
