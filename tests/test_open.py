"""The app that `answer.open()` starts: it answers, takes what is handed over, and ends with its Python."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import urllib.request
import dpcore as ss
answer = ss.count_bound([1, 2, 30], epsilon=1)
first, second = (answer.open(browser=False, wait=False) for _ in range(2))
assert first.partition("?")[0] == second.partition("?")[0] and first != second
assert urllib.request.urlopen(first).status == 200
print(first)
"""


def test_it_starts_once_and_ends_with_this_python():
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=root, check=True
    )
    host, port = done.stdout.split("/")[2].split(":")
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))):
                return
        time.sleep(0.1)
    raise AssertionError("the app still answers a minute after its Python has ended")
