"""Temporary folders, and secret links in the browser of the person who runs this Python."""

from __future__ import annotations

import contextlib
import html
import json
import os
import platform
import secrets
import shutil
import sys
import tempfile
import time
import weakref
import webbrowser
from pathlib import Path

from dpcore.common.checks import FULL_DISK_PROBLEM, InvalidInput, is_full_disk, refuse

_FOLDER_PREFIX = "sweetspot-"
_LOCK_NAME = "in-use"
_UNLOCKED_SECONDS = 3600.0
"""Age from which a folder without a lock goes: its process died before it could take one, or knew of none."""
_MAX_TRIES = 10


class Workspace:
    """A temporary folder that goes when it is closed, when nothing refers to it, and when Python ends.

    The operating system holds its lock as long as the process lives, and frees it however that ends. So the next
    workspace, or the next start, removes what a killed process left. A number of a process would not tell: in
    containers that share the folder the same numbers are in use.

    Raises:
        InvalidInput: The temporary folder is full, or there is none.
    """

    def __init__(self) -> None:
        """Remove abandoned folders, and create this one with its lock; raise `InvalidInput` if none can be."""
        try:
            remove_abandoned()
            self.folder, lock_handle = _create_locked_folder()
        except OSError as error:
            if is_full_disk(error):
                raise InvalidInput([FULL_DISK_PROBLEM]) from None
            message = "no temporary folder can be written to"
            raise refuse(message, remedy="Name one in TMPDIR and start again") from None
        self._remove_folder = weakref.finalize(self, _remove_folder, self.folder, lock_handle)
        _open_workspaces.add(self)

    def close(self) -> None:
        """Remove the folder and all that is in it."""
        self._remove_folder()

    def has_room(self, num_bytes: int) -> bool:
        """Return True if the disk has room for so many bytes more."""
        return shutil.disk_usage(self.folder).free >= num_bytes


_open_workspaces: weakref.WeakSet[Workspace] = weakref.WeakSet()


def close_all() -> None:
    """Remove the folders of all workspaces of this process: for a process that ends without Python's own end."""
    for workspace in list(_open_workspaces):
        workspace.close()


def remove_abandoned() -> None:
    """Remove the workspaces of killed processes: at once if their lock is free, after an hour if they have none."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*-*"):
        with contextlib.suppress(OSError):
            folder_status = folder.lstat()
            # Others may put anything there; only what is ours is looked at.
            if hasattr(os, "getuid") and folder_status.st_uid != os.getuid():
                continue
            try:
                lock_handle = os.open(folder / _LOCK_NAME, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            except FileNotFoundError:
                if time.time() - folder_status.st_mtime > _UNLOCKED_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            if _take_lock(lock_handle):
                _remove_folder(folder, lock_handle)
            else:
                os.close(lock_handle)


def _create_locked_folder() -> tuple[Path, int]:
    """Create a folder with a lock; return (folder, handle of the lock).

    It tries again if another process removed the folder before it was locked.
    """
    for _ in range(_MAX_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))
        try:
            lock_handle = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # Where a file system knows no locks, nobody else can take one either, and the folder is left alone.
        _take_lock(lock_handle)
        with contextlib.suppress(FileNotFoundError):
            if os.path.sameopenfile(
                lock_handle, second_lock_handle := os.open(folder / _LOCK_NAME, os.O_RDONLY)
            ):
                os.close(second_lock_handle)
                return folder, lock_handle
            os.close(second_lock_handle)
        os.close(lock_handle)
    raise FileNotFoundError(f"no folder in {tempfile.gettempdir()} stays")


def _take_lock(lock_handle: int) -> bool:
    """Take the lock of an open file; return False if another handle holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock_handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock_handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_folder(folder: Path, lock_handle: int) -> None:
    """Remove a folder with all that is in it, and close its lock."""
    # On Windows an open file cannot be removed. Elsewhere nobody shall see the folder unlocked.
    if sys.platform == "win32":
        os.close(lock_handle)
    shutil.rmtree(folder, ignore_errors=True)
    if sys.platform != "win32":
        os.close(lock_handle)


def open_link(link: str, workspace: Workspace) -> bool:
    """Open a secret link in a browser; return False if none opens it or can read the file that leads to it.

    Every account of a computer can read the arguments of a process. So the browser is given the name of a file that
    leads to the link. The file is readable for its owner alone and goes with the workspace.
    """
    if not _may_read_files():
        return False
    page_path = workspace.folder / f"{secrets.token_hex(8)}.html"
    page_text = f"""<!doctype html><meta charset="utf-8"><title>Sweet Spot</title>
<script>location.replace({json.dumps(link)})</script><a href="{html.escape(link)}">Open Sweet Spot</a>"""
    page_handle = os.open(page_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(page_handle, "w", encoding="utf-8") as page_stream:
        page_stream.write(page_text)
    return webbrowser.open(page_path.as_uri())


def _may_read_files() -> bool:
    """Return True if a browser can open files in the temporary folder.

    It cannot under WSL, nor if Firefox or Chromium is installed as a snap.
    """
    return not sys.platform.startswith("linux") or not (
        "microsoft" in platform.release().lower()
        or any(os.path.exists(f"/snap/bin/{browser_name}") for browser_name in ("firefox", "chromium"))
    )
