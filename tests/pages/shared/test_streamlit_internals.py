"""Streamlit's private names: the app starts and works where a later version has them no longer."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pages.shared import speed, streamlit_internals
from tests import missing_names
from tests.browser import browser as helpers

ROOT = Path(__file__).resolve().parents[3]
FALLBACKS = {
    "get_session_id": "",
    "is_fragment_run": False,
    "find_runtime": None,
    "is_connected": True,
    "find_session": None,
    "build_heartbeat": None,
    "free_files": None,
    "asks_for_run": False,
    "read_session_id": "",
    "find_static_folder": None,
}
ARGUMENTS = {
    "is_connected": ("a",),
    "find_session": ("a",),
    "asks_for_run": (b"",),
    "read_session_id": (b"",),
}
ARGUMENTS["free_files"] = ((SimpleNamespace(file_id="a"),),)


@pytest.mark.long
@pytest.mark.parametrize("names", [(), pytest.param(missing_names.NAMES, marks=pytest.mark.long)])
def test_the_app_starts_and_its_slider_moves_without_any_private_name(names: tuple[str, ...]) -> None:
    port = str(helpers.launcher.choose_port(46000))
    command = [sys.executable, "-m", "tests.missing_names", port, *names]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert process.returncode == 0, process.stderr
    moved_content = json.loads(process.stdout.splitlines()[-1])
    assert moved_content == dict.fromkeys(("all", *names), True)
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("name", FALLBACKS)
def test_a_missing_name_gives_the_fallback(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.__import__", missing_names.import_incomplete)
    assert getattr(streamlit_internals, name)(*ARGUMENTS.get(name, ())) == FALLBACKS[name]


def test_every_function_has_its_fallback_in_the_test() -> None:
    functions = inspect.getmembers(streamlit_internals, inspect.isfunction)
    public = {name for name, function in functions if hasattr(function, "__wrapped__")}
    assert public == set(FALLBACKS)
    assert {name for name, _ in functions} - public == {"_get_context", "with_fallback"}


@pytest.mark.long
@pytest.mark.parametrize(("setting", "is_on"), [("", True), ("0", True), ("1", False)])
def test_one_switch_turns_off_the_socket_its_gate_and_our_serving_of_scripts(
    setting: str, is_on: bool
) -> None:
    program = (
        "from pages.shared.server import server; from pages.shared import speed; "
        "print([m.cls.__name__ for m in server.build_middleware()], [r.path for r in server.ROUTES], speed.IS_ON)"
    )
    environment = {**helpers.os.environ, "SWEETSPOT_PLAIN": setting, "SWEETSPOT_TOKEN": ""}
    command = [sys.executable, "-c", program]
    printed = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    for name in ("Frontend", "FiguresFirst", f"'{speed.SOCKET_PATH}'", str(True)):
        assert (name in printed) == is_on, name
    assert speed.SESSION_PATH in printed
