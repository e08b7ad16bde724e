"""The app beside this Python, on this computer: started once, it opens what is handed over to it.

What is handed over lies in a temporary folder that only this account may read, as a file with a random name. The name
stands in the address, the data do not; the app removes the file as it reads it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

from dpcore.common.browser import open_link
from dpcore.common.errors import refusal
from dpcore.common.workspace import Workspace

FOLDER = "SWEETSPOT_HANDED_OVER"
"""Environment variable: in which folder the app finds what is handed over. Its standard input is held open beside."""
FIELD = "open"
"""Of the address."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_CHECKOUT = Path(__file__).resolve().parents[2] / ".make"


def open_page(content: str, browser: bool, wait: bool) -> str:
    """Open what a session file holds in the app; returns the address, which works once.

    Args:
        content: The file.
        browser: Whether to open it in the browser here.
        wait: Whether to stay until the app has ended, or Ctrl-C is pressed.

    Raises:
        InvalidInput: The app is not installed here, or does not start.
    """
    app = _started()
    token = secrets.token_urlsafe(32)
    file = os.open(app.workspace.folder / token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(content)
    address = f"{app.link}{'&' if '?' in app.link else '/?'}{FIELD}={token}"
    if browser and not os.environ.get("SWEETSPOT_NO_BROWSER"):
        open_link(address, app.workspace)
    if wait:
        app.stay(address)
    return address


def handed_over(token: str, folder: str | None) -> bytes | None:
    """What was handed over under a token, which is gone then; None where there is nothing, or nobody hands over.

    Args:
        token: From the address: whatever somebody wrote there.
        folder: What `FOLDER` names.
    """
    if not folder or not _TOKEN.fullmatch(token):
        return None
    path = Path(folder) / token
    try:
        content = path.read_bytes()
        path.unlink()
    except OSError:
        return None
    return content


class _App:
    """The app in a process of its own, which ends with this Python: its standard input is closed then."""

    def __init__(self, command: list[str]) -> None:
        self.workspace = Workspace()
        own = {FOLDER: str(self.workspace.folder), "SWEETSPOT_NO_BROWSER": "1"}
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C in a notebook stops a cell, not the app.
        )
        assert self._process.stdout is not None
        said: list[str] = []
        for line in self._process.stdout:
            said.append(line)
            if found := re.search(r" is at (http://\S+)", line):
                self.link = found[1]
                break
        else:
            raise refusal("the app does not start: " + " ".join("".join(said).split())[-1000:])
        # Else it would stand still once nobody reads what it says.
        threading.Thread(target=self._process.stdout.read, daemon=True).start()

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def stay(self, address: str) -> None:
        print(f"Sweet Spot is at {address} (Ctrl-C stops it).", flush=True)
        try:
            self._process.wait()
        except KeyboardInterrupt:
            self._process.terminate()
            self._process.wait()


_apps: list[_App] = []


def _started() -> _App:
    if not (_apps and _apps[-1].runs):
        _apps.append(_App(_command()))
    return _apps[-1]


@cache
def _command() -> list[str]:
    if importlib.util.find_spec("streamlit") is None:
        remedy = "Install the extra `app` as well: pip install '.[app]' in a checkout, or '<wheel>[app]'"
        raise refusal("the app is not installed here, only the core", remedy=remedy)
    # In a checkout what is installed may be another version.
    if (_CHECKOUT / "__main__.py").is_file():
        return [sys.executable, str(_CHECKOUT)]
    return [sys.executable, "-m", "sweet_spot"]
