"""Temporary folders: a full one is called so, and none outlives the process that it belongs to."""

import errno
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.counting import attempts, diagnose, duck, reduce_files
from dpcore.data.column_roles import Roles, TableKind
from tests.dpcore.counting.counts import LONG, count_files, sentences


@pytest.mark.long
def test_a_full_temporary_folder_is_called_so(put, monkeypatch):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no device here that is always full")
    full = "The temporary folder is full. Free space there"

    def to_full_disk(self, at, encoding):
        return diagnose.recode_file(
            self._relations[at], encoding, Path("/dev/full"), self._should_stop, self._steps
        )

    monkeypatch.setattr(reduce_files.FileReduction, "_recode", to_full_disk)
    assert full in sentences(put(LONG.encode("utf-16")))[0]
    monkeypatch.undo()

    class NoRoom(duck.Duck):
        """What does not fit into memory has nowhere to go."""

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.connection.execute("SET max_temp_directory_size = '1MB'")

    monkeypatch.setattr(attempts, "Duck", NoRoom)
    monkeypatch.setattr(attempts, "PASS_COUNTS", (1,))
    path = put("user_id,v\n" + "".join(f"{k},{k}\n" for k in range(600_000)))
    roles = Roles(TableKind.EVENTS, user="user_id", task="v")
    with pytest.raises(InvalidInput, match=full):
        count_files(path, roles, memory_limit=30_000_000)
    monkeypatch.undo()

    def no_room(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", no_room)
    with pytest.raises(InvalidInput, match=full):
        counting.Workspace()


def test_a_workspace_goes_when_nothing_refers_to_it():
    workspace = counting.Workspace()
    folder = workspace.folder
    (folder / "raw.csv").write_text("user\na\n")
    assert folder.is_dir()
    del workspace
    assert not folder.exists()


HOLDS_A_WORKSPACE = """
import sys, time
from dpcore import counting
from dpcore.counting import __main__ as shell
shell.end_on_signals()
workspace = counting.Workspace()
(workspace.folder / "raw.csv").write_text("user")
print(workspace.folder, flush=True)
time.sleep(300)
"""


@contextmanager
def another_process(folder):
    """A process with a workspace in this folder, and where that is."""
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder)}
    command = [sys.executable, "-c", HOLDS_A_WORKSPACE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_workspaces_of_killed_processes_go_and_those_of_the_living_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own_workspace = counting.Workspace()
    young, old = tmp_path / "sweetspot-1-young", tmp_path / "sweetspot-1-old"  # of no lock they say nothing
    for folder in (young, old):
        folder.mkdir()
    os.utime(old, (1, 1))
    with another_process(tmp_path) as (process, its):
        os.utime(its, (1, 1))  # a long count
        counting.Workspace().close()
        assert [folder.exists() for folder in (own_workspace.folder, its, young, old)] == [
            True,
            True,
            True,
            False,
        ]
        process.kill()
        process.wait()
        assert (its / "raw.csv").exists()  # it could not clean up
        os.utime(its)  # just made
        counting.Workspace().close()
        assert not its.exists()
    assert own_workspace.folder.exists()
    own_workspace.close()


COUNTS_IN_A_THREAD = """
import threading, time
from dpcore.counting import Workspace, duck
workspace, begun = Workspace(), threading.Event()
def work():
    session = duck.Duck([], workspace.folder, steps=duck.Steps(lambda share: begun.set(), 1))
    try:
        session.fetch_columns("SELECT count(*) AS n FROM range(100000000000) t(a) WHERE hash(a) % 17 = 3")
    finally:
        session.close()
threading.Thread(target=work, daemon=True).start()
assert begun.wait(60)
print(workspace.folder, end="")
"""


@pytest.mark.long
def test_a_program_ends_in_order_while_it_counts():
    process_ended = subprocess.run(
        [sys.executable, "-c", COUNTS_IN_A_THREAD],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert (process_ended.returncode, "terminate called" in process_ended.stderr) == (0, False)
    assert not os.path.exists(process_ended.stdout)


@pytest.mark.long
def test_a_program_that_is_told_to_end_leaves_no_files(tmp_path):
    with another_process(tmp_path) as (process, its):
        assert its.is_dir()
        process.terminate()
        process.wait()
        assert not its.exists()
