"""The app in a browser, beside a bare Streamlit page with one slider and one chart, in one run.

    .venv/bin/python benchmarks/app.py [--pages mean learning] [--data "shop purchases"] [--moves 6] [--sessions 20]

Four tables. *Moves*: from the key press on the slider to the new curves, as the browser sees it, and from the
message received to the script finished, as a client without a browser sees it that sends the browser's own messages.
*Drags*: the script of one frame while the bound of a figure is dragged, of which the server hears nothing.
*Sessions*: the second number where many people move their sliders at once. *Cold start*: from starting the server to
the first figure in a browser that has stored nothing.

Only ratios and differences within one run are to be compared; they hold on a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, Error, Page, sync_playwright
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from tests.browser import browser as helpers

BARE = """
import numpy as np
import plotly.graph_objects as go
import streamlit as st

epsilon = st.slider("epsilon", 0.1, 10.0, 1.0, 0.1, key="epsilon_slider")
x = np.geomspace(1.0, 1000.0, 200)
st.plotly_chart(go.Figure(go.Scatter(x=x, y=x / epsilon)))
"""
PAGES = (
    "", "mean", "sum-and-count", "per-group", "quantile", "plan", "learning", "examples-per-user", "training",
    "regression", "many-tasks", "factorisation", "data-owners", "gap",
)  # fmt: skip
LINKS = {
    "shop purchases": "link=1&epsilon=1&data=shop-events",
    "a million users": "link=1&epsilon=1&data=zipf&data.alpha=1.5&data.num_users=1000000"
    "&data.max_contributions=10000&data.seed=1",
}
DRAGGED_PAGES = ("", "mean", "sum-and-count", "per-group", "learning")
"""Pages whose figures have a handle."""
FRAMES = 100
LIMIT = 30.0
PAUSE = 2.0

# Counts from the key press, not from when it was asked for, to the frame after the one with the new curves.
WATCH = """([limit]) => new Promise(done => {
    const sum = () => {
        const plot = document.querySelector("[data-testid='stMain'] .js-plotly-plot");
        if (!plot || !plot._fullData) return null;
        // Names too: on Multi-task weights only the number β in a name depends on ε.
        // And x: on Recommender a line at ε moves.
        const total = all => all ? Array.from(all).reduce((a, b) => a + (+b || 0), 0) : 0;
        return JSON.stringify(plot._fullData.map(t => [t.name, total(t.x), total(t.y)]));
    };
    const before = sum();
    addEventListener('keydown', () => {
        const began = performance.now();
        const look = () => {
            const now = sum(), took = performance.now() - began;
            if (now !== null && now !== before) done(took);
            else if (took > 1000 * limit) done(null);
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    }, {once: true, capture: true});
    window.watching = true;
})"""


@dataclass
class RecordedMessages:
    """Messages that a browser has sent to the server: the one that opened the session, and those of the slider."""

    opening_message: bytes = b""
    slider_messages: list[bytes] = field(default_factory=list)

    def record(self, payload: str | bytes) -> None:
        """Record a message of the web socket, if it opens the session or moves the slider."""
        if isinstance(payload, str):
            return
        message = BackMsg.FromString(payload)
        # Fragments that look every half second how work goes on are no moves.
        if message.WhichOneof("type") == "rerun_script" and not message.rerun_script.is_auto_rerun:
            if self.opening_message:
                self.slider_messages.append(payload)
            else:
                self.opening_message = payload


@contextmanager
def start_bare_app(folder: Path) -> Iterator[str]:
    """Start a server of the bare page, yield its address, and stop it."""
    script = folder / "bare.py"
    script.write_text(BARE, encoding="utf-8")
    port = helpers.launcher.choose_port(19000)
    command = [
        str(script) if word == "app.py" else word for word in helpers.launcher.build_server_command(port)
    ]
    command += ["--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none"]
    with (folder / "bare.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        url = f"http://{helpers.launcher.HOST}:{port}"
        helpers.launcher.wait_until_up(process, url)
        yield url
    finally:
        helpers.launcher.stop(process)


@contextmanager
def start_our_app(folder: Path) -> Iterator[str]:
    """Start a server of the app, yield its address, and stop it."""
    app = helpers.start_app(folder / "ours.log")
    try:
        yield app.url
    finally:
        app.stop()


def open_empty_page(chromium: Browser) -> Page:
    """Open a page in a browser that has stored nothing."""
    page = chromium.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.set_default_timeout(1000 * LIMIT)
    return helpers.listen(page)


def time_moves(page: Page, url: str, count: int) -> tuple[list[float], RecordedMessages]:
    """Return the milliseconds from key press to new curves, empty without a figure; and the messages that were sent."""
    recorded = RecordedMessages()
    page.on("websocket", lambda socket: socket.on("framesent", recorded.record))
    page.goto(url)
    helpers.settle(page, 4 * LIMIT)
    slider = page.locator(".st-key-epsilon_slider").get_by_role("slider")
    if not slider.count() or not page.locator("[data-testid='stMain'] .js-plotly-plot").count():
        return [], recorded
    recorded.slider_messages.clear()  # A page may ask for more runs while it opens.
    times: list[float] = []
    for number in range(count + 1):
        page.evaluate("window.watching = false")
        slider.focus()
        page.evaluate(f"() => {{ window.watched = ({WATCH})([{LIMIT}]); }}")
        page.keyboard.press("ArrowRight" if number % 2 else "ArrowLeft")
        took = page.evaluate("() => window.watched")
        helpers.settle(page, 4 * LIMIT)
        if number and took is not None:  # The first step computes what later ones find.
            times.append(took)
    return times, recorded


async def time_answer(socket: ClientConnection, payload: bytes) -> tuple[float, int]:
    """Send a message; return the milliseconds until the script has finished, and the number of exceptions."""
    began, num_exceptions = time.perf_counter(), 0
    await socket.send(payload)
    early = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN
    async with asyncio.timeout(4 * LIMIT):
        while True:
            message = ForwardMsg.FromString(bytes(await socket.recv(decode=False)))
            num_exceptions += message.delta.new_element.WhichOneof("type") == "exception"
            if message.WhichOneof("type") == "script_finished" and message.script_finished != early:
                return 1000 * (time.perf_counter() - began), num_exceptions


async def run_session(
    url: str, recorded: RecordedMessages, count: int, pause: float
) -> tuple[list[float], int]:
    """Run one session without a browser; return the milliseconds of every move, and the number of exceptions."""
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    async with connect(address, subprotocols=["streamlit"], max_size=None) as socket:  # type: ignore[list-item]
        _, num_exceptions = await time_answer(socket, recorded.opening_message)
        await asyncio.sleep(random.random() * pause)
        times = []
        for number in range(count + 1):
            took, new_exceptions = await time_answer(socket, recorded.slider_messages[number % 2])
            num_exceptions += new_exceptions
            if number:
                times.append(took)
            await asyncio.sleep(max(0.0, pause - took / 1000))
        return times, num_exceptions


Result = TypeVar("Result")


def run_in_thread(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of the work; in a thread of its own, as Playwright's event loop runs in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def compute_median(times: list[float]) -> float:
    """Return the median; NaN of none."""
    return statistics.median(times) if times else float("nan")


def time_at_server(url: str, recorded: RecordedMessages, count: int) -> float:
    """Return median milliseconds from message to finished script, one session alone; NaN if nothing was recorded."""
    if len(recorded.slider_messages) < 2:
        return float("nan")
    return compute_median(run_in_thread(run_session(url, recorded, count, 0.0))[0])


def time_bare_moves(chromium: Browser, bare: str, count: int) -> tuple[float, float]:
    """Return median milliseconds to new curves, and of the script at the server, of the bare page."""
    page = open_empty_page(chromium)
    times, recorded = time_moves(page, bare, count)
    page.context.close()
    return compute_median(times), time_at_server(bare, recorded, count)


def print_moves(
    chromium: Browser, url: str, bare: str, pages: list[str], data: list[str], count: int
) -> dict[str, RecordedMessages]:
    """Print the first table; return the messages of every page on the first of the data, by page."""
    reference, server = time_bare_moves(chromium, bare, count)
    print("\nA move of the slider, ms, medians     new curves   of bare    script at the server")
    print(f"{'bare Streamlit, one chart':36s} {reference:10.0f} {1:9.2f} {server:16.0f}", flush=True)
    recorded_by_page: dict[str, RecordedMessages] = {}
    for words in data:
        link = LINKS[words]
        for name in pages:
            page = open_empty_page(chromium)
            try:
                times, recorded = time_moves(page, f"{url}/{name}?{link}", count)
            except (Error, AssertionError) as error:
                print(f"{name or 'start'}, {words}: {str(error).splitlines()[0]}")
                continue
            finally:
                page.context.close()
            if not times:
                print(f"{name or 'start':18s} {words:17s}  no slider and figure")
                continue
            recorded_by_page.setdefault(name, recorded)
            took, server = compute_median(times), time_at_server(url, recorded, count)
            # Beside every row: what else runs on the machine changes from minute to minute.
            reference, _ = time_bare_moves(chromium, bare, count)
            print(
                f"{name or 'start':18s} {words:17s} {took:10.0f} {took / reference:9.2f} {server:16.0f}",
                flush=True,
            )
    return recorded_by_page


# Moves of the pointer, one a frame, over the whole figure and back; script alone, without what the browser draws.
DRAG = """frames => new Promise(done => {
    const handle = document.querySelector(".sweetspot-handle");
    const figure = handle.parentElement.querySelector(".js-plotly-plot").getBoundingClientRect();
    const took = [], said = new Set();
    const step = () => {
        const share = 0.5 + 0.4 * Math.sin(took.length / 8);
        const at = {clientX: figure.x + share * figure.width, clientY: figure.y + share * 0.6 * figure.height};
        const began = performance.now();
        handle.dispatchEvent(new PointerEvent("pointermove", at));
        took.push(performance.now() - began);
        said.add(handle.getAttribute("aria-valuetext"));
        if (took.length < frames) requestAnimationFrame(step);
        else done([took, said.size]);
    };
    requestAnimationFrame(step);
})"""


def print_drags(chromium: Browser, url: str, pages: list[str]) -> None:
    """Print what a frame takes while a handle is dragged, on each page that has one."""
    print(f"\nDragging a bound, {FRAMES} frames: ms of script a frame   median   largest   places")
    for name in (name for name in DRAGGED_PAGES if name in pages):
        page = open_empty_page(chromium)
        page.goto(f"{url}/{name}?{LINKS['shop purchases']}")
        helpers.settle(page)
        handle = page.locator(".sweetspot-handle")
        box = handle.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        took, num_positions = page.evaluate(DRAG, FRAMES)
        page.mouse.up()
        print(
            f"{name or 'start':52s} {compute_median(took):8.2f} {max(took):9.2f} {num_positions:8d}",
            flush=True,
        )
        page.context.close()


def print_sessions(url: str, recorded_by_page: dict[str, RecordedMessages], sessions: int) -> None:
    """Print the second table: everybody on one page, a move every two seconds."""
    print(f"\n{sessions} sessions, a move every {PAUSE:g} s each: ms from message to finished script")

    async def all_of(recorded: RecordedMessages) -> list[tuple[list[float], int]]:
        """Run all sessions of a page at once."""
        return await asyncio.gather(*(run_session(url, recorded, 5, PAUSE) for _ in range(sessions)))

    for name, recorded in recorded_by_page.items():
        answers = run_in_thread(all_of(recorded))
        times = [took for session_times, _ in answers for took in session_times]
        print(
            f"{name or 'start':18s} median {compute_median(times):6.0f}   largest {max(times):6.0f}   "
            f"exceptions {sum(num_exceptions for _, num_exceptions in answers)}",
            flush=True,
        )


def print_cold(
    chromium: Browser, start: dict[str, Callable[[Path], AbstractContextManager[str]]], repeats: int
) -> None:
    """Print the third table: cold starts, the apps in turns."""
    times: dict[str, list[float]] = {words: [] for words in start}
    for _ in range(repeats):
        for words, app in start.items():
            with tempfile.TemporaryDirectory() as folder:
                began = time.perf_counter()
                with app(Path(folder)) as url:
                    page = open_empty_page(chromium)
                    page.goto(url)
                    selector = "[data-testid='stMain'] .js-plotly-plot .scatterlayer .trace"
                    page.wait_for_selector(selector, state="attached", timeout=4000 * LIMIT)
                    times[words].append(time.perf_counter() - began)
                    page.context.close()
    print("\nCold start: from starting the server to the first figure, s, median")
    for words, app_times in times.items():
        print(
            f"{words:36s} {compute_median(app_times):8.2f}   ({', '.join(f'{seconds:.2f}' for seconds in app_times)})"
        )
    our_median, bare_median = (compute_median(app_times) for app_times in times.values())
    print(f"{'difference':36s} {our_median - bare_median:8.2f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", nargs="*", default=list(PAGES))
    parser.add_argument("--data", nargs="*", default=list(LINKS), choices=LINKS)
    parser.add_argument("--moves", type=int, default=6)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--starts", type=int, default=3)
    flags = parser.parse_args()
    try:
        path = helpers.find_browser()
    except helpers.BrowserMissingError as missing:
        print(missing)
        return
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        if flags.starts:
            print_cold(
                chromium,
                {"Sweet Spot": start_our_app, "bare Streamlit, one chart": start_bare_app},
                flags.starts,
            )
        with start_our_app(Path(folder)) as url, start_bare_app(Path(folder)) as bare:
            helpers.launcher.is_answering(f"{url}/_stcore/script-health-check", helpers.START_LIMIT)
            print_drags(chromium, url, flags.pages)
            recorded_by_page = {}
            if flags.moves:
                recorded_by_page = print_moves(chromium, url, bare, flags.pages, flags.data, flags.moves)
            if flags.sessions and recorded_by_page:
                print_sessions(url, recorded_by_page, flags.sessions)
        chromium.close()


if __name__ == "__main__":
    main()
