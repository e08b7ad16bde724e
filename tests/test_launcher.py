"""The launcher: its options, the port that it takes, and what ends with it."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dpcore.cli import launch
from tests.browser import browser as helpers
from tests.http_answers import ask

# One worker runs all that starts servers.
pytestmark = pytest.mark.xdist_group("server")

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (["--port", "70000"], {}, "a port is a number from 1 to 65,535; got 70000"),
        (["--hosted"], {"SWEETSPOT_ORIGINS": ""}, "--hosted needs SWEETSPOT_ORIGINS"),
    ],
)
def test_the_launcher_says_what_is_wrong_with_its_options(
    arguments, environment, sentence, monkeypatch, capsys
):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert launch.main(arguments) == 1
    assert sentence in capsys.readouterr().err


def test_the_launcher_fails_on_a_taken_port_and_hosts_for_others_only_as_another_user(monkeypatch, capsys):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as first:
        assert launch.main(["--port", str(first.server_address[1])]) == 1
        assert "is taken" in capsys.readouterr().err
    monkeypatch.setenv("SWEETSPOT_ORIGINS", "https://class.example.org")
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    assert launch.main(["--hosted"]) == 1
    assert "does not run as root" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    started = []
    monkeypatch.setattr(launch, "serve", lambda *settings: started.append(settings) or 0)
    for name in ("SWEETSPOT_SERVED", "SWEETSPOT_NO_BROWSER"):
        monkeypatch.setenv(name, "")  # Set anew by the launcher, and taken back after the test.
    assert launch.main(["--hosted", "--port", "8601"]) == 0
    assert started == [("", 8601, "0.0.0.0")]


SECOND = """
import sys
sys.path[:0] = ["{root}"]
from dpcore.cli import launch
real = launch.choose_port
launch.choose_port = lambda first=launch.FIRST_PORT: {taken} if first == launch.FIRST_PORT else real(first)
sys.exit(launch.main())
"""


@pytest.mark.long
def test_of_two_launchers_the_second_takes_the_next_port_and_its_server_ends_with_it(tmp_path):
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as first:
        threading.Thread(target=first.serve_forever, daemon=True).start()
        taken = first.server_address[1]
        with subprocess.Popen(
            [sys.executable, "-c", SECOND.format(root=ROOT, taken=taken)],
            cwd=tmp_path,
            env={**os.environ, "SWEETSPOT_NO_BROWSER": "1", "SWEETSPOT_TOKEN": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout
            address_line = next((line for line in process.stdout if " is at " in line), "")
            try:
                (url,) = re.findall(r"http://127\.0\.0\.1:\d+", address_line)
                assert url != f"http://127.0.0.1:{taken}"
                assert ask(url, "/").headers["x-frame-options"] == "DENY"
                process.kill()  # The launcher alone, which cannot stop its server any more.
                deadline = time.monotonic() + 600
                while not helpers.launcher.is_free(int(url.rpartition(":")[2])):
                    assert time.monotonic() < deadline, "the server outlives its launcher"
                    time.sleep(0.1)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate(timeout=600)
        first.shutdown()
