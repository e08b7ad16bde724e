"""Start Sweet Spot on this computer and open it in the browser.

    sweet-spot                       where the package is installed
    .venv/bin/python -m dpcore       in a checkout

The server listens on 127.0.0.1 only, on ``--port``, or on 8501 or the next free one. It answers only a browser that was
given the token of this start: SWEETSPOT_TOKEN, or a random one; with ``--no-token`` it answers all. With
SWEETSPOT_NO_BROWSER set, the link with the token is only printed. Ctrl-C stops the server. With ``--hosted`` it is a
public demo that listens on all addresses, for a container.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from dpcore.common.workspace import Workspace

_PARENT = Path(__file__).resolve().parents[2]
ROOT = _PARENT / "sweet_spot" if (_PARENT / "sweet_spot" / "app.py").is_file() else _PARENT
"""Folder of the app and its settings: ``sweet_spot`` where the package is installed, else the top of the checkout."""
HOST = "127.0.0.1"
FIRST_PORT = 8501
MAX_PORTS_TRIED = 50
START_SECONDS = 90.0
FIRST_RUN_SECONDS = 180.0
STOP_SECONDS = 5.0
PORT_TAKEN_TEXT = "is not available"
"""Part of Streamlit's message about a port that is in use, before it ends."""

# A proxy set for the outside world must not be asked for an address on this computer.
_url_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class StartError(Exception):
    """The server did not come up; the message says why in words."""


def is_free(port: int) -> bool:
    """Return True if nothing on this computer listens on the port."""
    with socket.socket() as probe_socket:
        probe_socket.settimeout(1.0)
        # Asked first: on macOS, binding to 127.0.0.1 succeeds beside a server that listens on every address.
        if probe_socket.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket() as probe_socket:
        if os.name == "posix":
            # Without it, a port stays "taken" for a minute after its last server has stopped.
            probe_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe_socket.bind((HOST, port))
        except OSError:
            return False
    return True


def choose_port(first_port: int = FIRST_PORT) -> int:
    """Return the first free port from `first_port` on; raise StartError if there is none."""
    for port in range(first_port, first_port + MAX_PORTS_TRIED):
        if is_free(port):
            return port
    raise StartError(f"no port from {first_port} to {port} is free on this computer")


def build_server_command(port: int, bind_address: str = HOST) -> list[str]:
    """Build the words of the command that starts the server.

    Its flags override a person's own STREAMLIT_* settings.
    """
    address_flags = ["--server.address", bind_address, "--server.port", str(port)]
    server_flags = ["--server.headless", "true", "--server.scriptHealthCheckEnabled", "true"]
    return [sys.executable, "-m", "streamlit", "run", "app.py", *address_flags, *server_flags]


def choose_token() -> str:
    """Return the access token of this start: the environment's, or 192 random bits.

    It is empty for a public demo.
    """
    # As `pages.shared.server.access.is_served` has it, whose package is not imported here.
    if os.environ.get("SWEETSPOT_SERVED", "").strip() not in {"", "0"}:
        return ""
    return os.environ.get("SWEETSPOT_TOKEN", secrets.token_urlsafe(24))


def build_server_environment(token: str = "") -> dict[str, str]:
    """Build the environment of the server: this process's, with the current folder, the token and one thread.

    The token stands here, as everybody on this computer can read the arguments of a process.

    Matrices here are tall and narrow, and searches run in parallel, so threads inside the linear algebra only delay
    each other. On two busy cores they made it five times slower.
    """
    own_variables = {"SWEETSPOT_LOCAL": "1", "SWEETSPOT_FOLDER": os.getcwd(), "PYTHONUNBUFFERED": "1"}
    own_variables["SWEETSPOT_TOKEN"] = token
    return {"OPENBLAS_NUM_THREADS": "1", **os.environ, **own_variables}


def prepare_hosting() -> None:
    """Set the environment for a public demo in a container.

    Raise StartError for root, or without a public address.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        raise StartError("--hosted does not run as root: name another user in the container")
    if not os.environ.get("SWEETSPOT_ORIGINS", "").strip():
        raise StartError("--hosted needs SWEETSPOT_ORIGINS, the address that browsers show (docs/hosting.md)")
    os.environ.update(SWEETSPOT_SERVED="1", SWEETSPOT_NO_BROWSER="1")


def is_answering(url: str, timeout: float = 2.0, token: str = "") -> bool:
    """Return True if a GET of the address returns status 200; the token, unless empty, goes with it as a cookie."""
    url_request = urllib.request.Request(url, headers={"Cookie": f"sweetspot-start={token}"} if token else {})
    # ValueError covers the half-sent answers of a server that is going down.
    with contextlib.suppress(OSError, ValueError), _url_opener.open(url_request, timeout=timeout) as response:
        return bool(response.status == 200)
    return False


class ServerOutput:
    """The server's output: its last 40 lines are kept, and each is also shown once `is_echoing` is set."""

    def __init__(self, server_output: IO[str]) -> None:
        """Read the stream in the background until it ends."""
        self.is_echoing = False
        self._lines: collections.deque[str] = collections.deque(maxlen=40)
        self._reader = threading.Thread(target=self._read, args=(server_output,), daemon=True)
        self._reader.start()

    def _read(self, server_output: IO[str]) -> None:
        """Keep each line of the stream, and write it to standard error if `is_echoing` is set."""
        for output_line in server_output:
            self._lines.append(output_line)
            if self.is_echoing:
                sys.stderr.write(output_line)

    def wait(self) -> None:
        """Wait until the server has closed its output, as it does by ending.

        `Popen.wait` would stay a quarter of a second longer when interrupted, and show how the server takes Ctrl-C.
        """
        self._reader.join()

    def says(self, searched_text: str) -> bool:
        """Return True if the text stands in one of the kept lines."""
        return any(searched_text in output_line for output_line in tuple(self._lines))

    def read_last_lines(self) -> str:
        """Wait up to a second for the end of the output; return the kept lines as one text."""
        self._reader.join(timeout=1.0)
        return "".join(self._lines).strip()


def wait_until_up(server: subprocess.Popen[str], url: str, server_output: ServerOutput | None = None) -> None:
    """Wait until the server answers; raise StartError when it ends or takes too long.

    Two servers that start at the same moment both find the same port free, and the second would take the answers of the
    first for its own. With its ``server_output``, a server is up once it has written its address itself.
    """
    deadline_seconds = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline_seconds:
        if server.poll() is not None:
            raise StartError(f"the server ended while starting (exit code {server.returncode})")
        # It is up; its script need not have run yet.
        if (server_output is None or server_output.says(url)) and is_answering(f"{url}/_stcore/health"):
            return
        time.sleep(0.1)
    raise StartError(f"the server did not answer within {START_SECONDS:.0f} seconds")


def open_browser(app_link: str) -> Workspace | None:
    """Open the link in the person's browser, unless there is no window or SWEETSPOT_NO_BROWSER is set.

    Returns:
        The folder whose file leads the browser to the link; None if no browser was opened.
    """
    from dpcore.common.checks import InvalidInput
    from dpcore.common.workspace import Workspace, open_link

    window_variables = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    has_window = not sys.platform.startswith("linux") or any(map(os.environ.get, window_variables))
    # Without a window, `webbrowser` would take over the terminal with a text browser.
    if os.environ.get("SWEETSPOT_NO_BROWSER") or not has_window:
        return None
    with contextlib.suppress(InvalidInput):  # No room for a file.
        workspace = Workspace()
        if open_link(app_link, workspace):
            return workspace
        workspace.close()
    return None


def stop(server_process: subprocess.Popen[str]) -> None:
    """End the server; kill it if it does not end within `STOP_SECONDS` seconds."""
    if server_process.poll() is not None:
        return
    server_process.terminate()
    try:
        server_process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server_process.kill()
        server_process.wait()


def _start_server(port: int, token: str, bind_address: str) -> tuple[subprocess.Popen[str], ServerOutput]:
    """Start the server and return its process and its output."""
    server_process = subprocess.Popen(
        build_server_command(port, bind_address),
        cwd=ROOT,  # Streamlit takes the settings of the folder it is started in, and Python that folder's modules.
        env={**build_server_environment(token), "SWEETSPOT_ENDS_WITH_INPUT": "1"},
        stdin=subprocess.PIPE,  # The server ends when this is closed, even if this process is killed.
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert server_process.stdout is not None
    return server_process, ServerOutput(server_process.stdout)


def serve(token: str, fixed_port: int | None = None, bind_address: str = HOST) -> int:
    """Start the server, let the app run once, open the browser, and wait until the server ends; return 1.

    Raise StartError if it does not come up.

    Args:
        token: What a browser must bring; empty for none.
        fixed_port: The port; None for the first free one from 8501 on.
        bind_address: What the server listens on.
    """
    if fixed_port is not None and not is_free(fixed_port):
        raise StartError(f"port {fixed_port} is taken: stop what listens there, or choose another")
    port = fixed_port or choose_port()
    print("Starting Sweet Spot ...", flush=True)
    server_process, server_output = _start_server(port, token, bind_address)
    workspace: Workspace | None = None
    try:
        while True:
            url = f"http://{HOST}:{port}"
            try:
                wait_until_up(server_process, url, server_output)
                break
            except StartError as error:
                stop(server_process)
                last_output = server_output.read_last_lines()
                # Somebody else took it in the meantime.
                if fixed_port is not None or PORT_TAKEN_TEXT not in last_output:
                    raise StartError(f"{error}. Its last output:\n\n{last_output or '(nothing)'}") from None
                port = choose_port(port + 1)
                server_process, server_output = _start_server(port, token, bind_address)
        # The first run imports everything and registers the pages; before it, a deep link finds no page.
        if not is_answering(f"{url}/_stcore/script-health-check", FIRST_RUN_SECONDS, token):
            print("The first run of the app did not succeed; the server's output so far:", file=sys.stderr)
            print(server_output.read_last_lines(), file=sys.stderr)
        server_output.is_echoing = True
        app_link = f"{url}/?token={token}" if token else url
        workspace = open_browser(app_link)
        print(f"Sweet Spot is at {app_link if workspace is None else url} (Ctrl-C stops it).", flush=True)
        if workspace is not None and token:
            print("If no page opens, start it with SWEETSPOT_NO_BROWSER=1: it prints the link.", flush=True)
        server_output.wait()
        exit_code = server_process.wait()
        print(f"The server ended by itself (exit code {exit_code}).", file=sys.stderr)
        return 1
    finally:
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, signal.SIG_IGN)
        server_output.is_echoing = False
        stop(server_process)
        if workspace is not None:
            workspace.close()
        # What a server that had to be killed left in the temporary folder.
        importlib.import_module("dpcore.common.workspace").remove_abandoned()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, whatever the signal."""
    raise KeyboardInterrupt


def main(arguments: Sequence[str] = ()) -> int:
    """Serve the app until it is stopped; return 0 if a person stopped it, 1 if it could not start or ended."""
    parser = argparse.ArgumentParser(prog="sweet-spot")
    parser.add_argument("--no-token", action="store_true")
    parser.add_argument("--port", type=int)
    parser.add_argument("--hosted", action="store_true")
    options = parser.parse_args(arguments)
    for signal_name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, signal_name):
            signal.signal(getattr(signal, signal_name), _interrupt)
    try:
        if options.port is not None and not 1 <= options.port <= 65_535:
            raise StartError(f"a port is a number from 1 to 65,535; got {options.port}")
        if options.hosted:
            prepare_hosting()
        token, address = "" if options.no_token else choose_token(), "0.0.0.0" if options.hosted else HOST
        return serve(token, options.port, address)
    except StartError as error:
        print(f"Sweet Spot could not start: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nSweet Spot has stopped.", flush=True)
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
