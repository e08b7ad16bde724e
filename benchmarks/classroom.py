"""A class on one server: 100 people move their sliders every two seconds, on a public demo as docs/hosting.md has it.

    python benchmarks/classroom.py [--people 100] [--servers 2] [--moves 10] [--pages mean sum-and-count]

A browser shows once what a page's slider sends; clients without a browser, in a process of their own, send the same at
times of their own. People are spread over the servers as the proxy of docs/hosting.md does it. For each page:
milliseconds from a move to its finished run, how many were within half a second, exceptions, what processor time a move
takes at the servers, and memory of all servers: with everybody there, and once all have left and their sessions are
over. On one machine with two cores the clients take their share: their time is said, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import psutil
from playwright.sync_api import sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from tests.browser import browser as helpers

ROOT = Path(__file__).resolve().parent.parent
ASKED_MS = 500.0
PAUSE = 2.0
LIMIT = 120.0
SESSION_ENDS = 125.0
"""Seconds after which Streamlit lets a session go that nobody came back to."""
EARLY = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN


async def time_answer(socket: ClientConnection, payload: bytes) -> tuple[float, int]:
    """Send a message; return the milliseconds until its run has finished, and the number of exceptions."""
    began, num_exceptions = time.perf_counter(), 0
    await socket.send(payload)
    async with asyncio.timeout(LIMIT):
        while True:
            raw = bytes(await socket.recv(decode=False))
            # Figures and long texts: what is looked for is short, and reading all takes its time.
            if len(raw) > 2_000:
                continue
            message = ForwardMsg.FromString(raw)
            num_exceptions += message.delta.new_element.WhichOneof("type") == "exception"
            if message.WhichOneof("type") == "script_finished" and message.script_finished != EARLY:
                return 1000 * (time.perf_counter() - began), num_exceptions


async def run_person(
    url: str,
    opening_message: bytes,
    slider_messages: list[bytes],
    moves: int,
    gate: asyncio.Event,
    ready: list[int],
) -> tuple[list[float], int]:
    """Open the page, wait for the others, then move; return milliseconds of the moves and the number of exceptions."""
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    async with connect(address, subprotocols=["streamlit"], max_size=None) as socket:  # type: ignore[list-item]
        _, num_exceptions = await time_answer(socket, opening_message)
        ready.append(1)
        await gate.wait()
        await asyncio.sleep(random.random() * PAUSE)
        times = []
        for number in range(moves + 1):
            took, new_exceptions = await time_answer(socket, slider_messages[number % len(slider_messages)])
            num_exceptions += new_exceptions
            if number:  # The first step computes what later ones find.
                times.append(took)
            await asyncio.sleep(max(0.0, PAUSE - took / 1000))
        print("left", flush=True)
        return times, num_exceptions


async def run_class(urls: list[str], recorded: dict[str, object], people: int, moves: int) -> None:
    """Run all sessions, and print times, exceptions and CPU seconds as JSON in the last line."""
    gate, ready = asyncio.Event(), list[int]()
    opening_message = bytes.fromhex(str(recorded["opened"]))
    slider_messages = [bytes.fromhex(text) for text in recorded["moved"]]  # type: ignore[attr-defined]
    tasks = []
    for number in range(people):
        url = urls[number % len(urls)]
        tasks.append(
            asyncio.create_task(run_person(url, opening_message, slider_messages, moves, gate, ready))
        )
        await asyncio.sleep(0.1)  # Nobody opens a page at the very same moment.
    while len(ready) < people and not any(task.done() for task in tasks):
        await asyncio.sleep(0.1)
    print("there", flush=True)
    gate.set()
    results = await asyncio.gather(*tasks)
    client_seconds = time.process_time()
    print(
        json.dumps(
            [
                [took for times, _ in results for took in times],
                sum(num_exceptions for _, num_exceptions in results),
                client_seconds,
            ]
        )
    )


def record_page(url: str, path: str | None, page_name: str) -> dict[str, object]:
    """Return what a browser sends when it opens a page, and when its slider moves up and down, as hexadecimal texts."""
    from benchmarks.app import RecordedMessages

    recorded_messages = RecordedMessages()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = helpers.listen(chromium.new_context(viewport={"width": 1280, "height": 800}).new_page())
        page.set_default_timeout(1000 * LIMIT)
        page.on("websocket", lambda socket: socket.on("framesent", recorded_messages.record))
        page.goto(f"{url}/{page_name}?link=1&epsilon=1&data=shop-events")
        helpers.settle(page, LIMIT)
        slider = page.locator(".st-key-epsilon_slider").get_by_role("slider")
        recorded_messages.slider_messages.clear()
        for key in ("ArrowRight", "ArrowLeft"):
            slider.focus()
            page.keyboard.press(key)
            page.wait_for_timeout(500)
            helpers.settle(page, LIMIT)
        chromium.close()
    return {
        "opened": recorded_messages.opening_message.hex(),
        "moved": [payload.hex() for payload in recorded_messages.slider_messages[-2:]],
    }


@dataclass(frozen=True)
class Classroom:
    """The servers, and who comes.

    Attributes:
        apps: That are running.
        people: How many there are.
        moves: Of each, that are timed.
    """

    apps: list[helpers.RunningApp]
    people: int
    moves: int

    @property
    def busy(self) -> float:
        """Return the seconds of processor time that the servers have taken."""
        return sum(sum(psutil.Process(app.process.pid).cpu_times()[:2]) for app in self.apps)

    @property
    def memory(self) -> float:
        """Return the megabytes that the servers hold."""
        return sum(psutil.Process(app.process.pid).memory_info().rss for app in self.apps) / 1e6

    def run(self, name: str, recorded: dict[str, object]) -> None:
        """Run one page, and print its line."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(recorded, file)
            file.flush()
            command = [sys.executable, __file__, "--client", file.name, "--people", str(self.people)]
            command += ["--moves", str(self.moves), "--urls", *(app.url for app in self.apps)]
            memory_before = largest_memory = self.memory
            busy, last_line = 0.0, ""
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as client:
                assert client.stdout is not None
                for line in client.stdout:
                    if line == "there\n":
                        busy = self.busy
                    largest_memory = max(largest_memory, self.memory)
                    last_line = line
        busy = self.busy - busy
        times, num_exceptions, client_seconds = json.loads(last_line)
        in_time = 100 * np.mean(np.array(times) <= ASKED_MS)
        print(
            f"{name:14s}{len(times):7,}{np.median(times):8.0f}{np.quantile(times, 0.99):8.0f}{max(times):8.0f}"
            f"{in_time:9.1f} %{num_exceptions:7d}{1000 * busy / (self.people * (self.moves + 1)):13.1f}"
            f"{(largest_memory - memory_before) / self.people:13.2f}{largest_memory:10.0f}{client_seconds:10.1f}",
            flush=True,
        )


def main() -> None:
    """Serve, record, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--moves", type=int, default=10)
    parser.add_argument("--pages", nargs="*", default=["mean", "sum-and-count", "quantile", "learning"])
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--urls", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        recorded = json.loads(Path(arguments.client).read_text(encoding="utf-8"))
        asyncio.run(run_class(arguments.urls, recorded, arguments.people, arguments.moves))
        return
    try:
        path = helpers.find_browser()
    except helpers.BrowserMissingError as missing:
        print(missing)
        return
    with tempfile.TemporaryDirectory() as folder:
        apps: list[helpers.RunningApp] = []
        try:
            for number in range(arguments.servers):
                port = helpers.launcher.choose_port(21000 + number)
                log = Path(folder) / f"{number}.log"
                apps.append(helpers.start_app(log, port=port, SWEETSPOT_SERVED="1"))
                helpers.launcher.is_answering(
                    f"{apps[-1].url}/_stcore/script-health-check", helpers.START_LIMIT
                )
            classroom = Classroom(apps, arguments.people, arguments.moves)
            print(
                f"{arguments.people} people on {len(apps)} servers, a move every {PAUSE:g} s each; "
                f"{classroom.memory:.0f} MB"
            )
            print(
                f"{'page':14s}{'moves':>7s}{'median':>8s}{'99 %':>8s}{'most':>8s}{'in time':>11s}{'wrong':>7s}"
                f"{'CPU ms/move':>13s}{'MB a person':>13s}{'MB in all':>10s}{'clients s':>10s}"
            )
            for name in arguments.pages:
                classroom.run(name, record_page(apps[0].url, path, name))
            time.sleep(SESSION_ENDS)
            for app in apps:  # A session whose time is over goes when the next one comes.
                asyncio.run(visit(app.url))
            print(f"{classroom.memory:.0f} MB once all sessions are over")
        finally:
            for app in apps:
                app.stop()


async def visit(url: str) -> None:
    """Open a session and leave."""
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    async with connect(address, subprotocols=["streamlit"], max_size=None):  # type: ignore[list-item]
        await asyncio.sleep(1.0)


if __name__ == "__main__":
    main()
