"""What the shell does for the whole process."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import streamlit as st
from streamlit.runtime.scriptrunner.exec_code import modified_sys_path
from streamlit.testing.v1 import AppTest

from dpcore.common.workspace import Workspace
from pages.shared.screen import layout
from pages.shared.server import server
from pages.your_data import columns, contents
from tests.pages.driving import ROOT, RUN_SECONDS

SETTLED = """
import duckdb
from pages.shared import shell
duckdb.connect().execute("SELECT 1").fetchnumpy()
shell.freeze_memory()
"""


@pytest.mark.long
def test_what_is_frozen_does_not_outlive_the_interpreter():
    # DuckDB's binding prints a page of what is alive when its module goes.
    result = subprocess.run(
        [sys.executable, "-c", SETTLED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "leaked" not in result.stdout + result.stderr


def test_the_end_of_the_server_leaves_no_folder():
    # Under SIGTERM the server ends its lifespan and then itself, without Python's own end.
    async def run() -> None:
        async with server.lifespan(None):
            folders.append(Workspace())
            assert folders[0].folder.is_dir()

    folders: list[Workspace] = []
    # In a thread of its own: where browser tests have run before, an event loop runs in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, run()).result()
    assert not folders[0].folder.exists()


def test_runs_leave_the_folders_alone_that_imports_of_other_threads_walk_over():
    before = list(sys.path)
    with modified_sys_path(str(server.MAIN_SCRIPT)):  # what Streamlit wraps each run in
        assert sys.path == before
    assert sys.path == before


def test_a_late_press_that_finds_no_widget_changes_nothing():
    generate = functools.partial(contents._use_generated_data, "zipf")
    for callback in (layout._apply_slider, contents._load_sample, columns._apply_names, generate):
        st.session_state.clear()
        callback()
        assert not st.session_state, callback


def test_an_exception_of_a_page_has_its_own_message() -> None:
    def raise_error() -> None:
        raise ValueError("the seventh row is odd")

    app = AppTest.from_function(raise_error).run(timeout=RUN_SECONDS)
    assert [error.message for error in app.exception] == ["the seventh row is odd"]
