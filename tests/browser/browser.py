"""Finding a browser, starting the app for it, and waiting until a page has settled.

    python tests/browser/browser.py

prints the path of the browser that the tests use, and installs one where there is none.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, WebSocket

ROOT = Path(__file__).resolve().parents[2]

# First the one without a window: of tests/browser/test_total.py it takes 17 s of processor time, Chromium 24 s.
SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
USUAL_PATHS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "~/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"%ProgramFiles%\Google\Chrome\Application\chrome.exe",
    r"%ProgramFiles(x86)%\Google\Chrome\Application\chrome.exe",
    r"%LocalAppData%\Google\Chrome\Application\chrome.exe",
)
INSTALL_ADVICE = (
    "The browser tests need Chromium or Chrome: install one, or name its path in SWEETSPOT_BROWSER, "
    "or run `.venv/bin/python -m playwright install --with-deps chromium`."
)
PLAYWRIGHT_LIMIT = 180.0
APT_LIMIT = 600.0
# Far more than anything takes on a machine that others keep busy.
START_LIMIT = 300.0
SETTLE_LIMIT = 300.0


class BrowserMissingError(RuntimeError):
    """No browser is there and none could be installed."""


def find_browser() -> str:
    """Return the path of a Chromium or Chrome that starts, installed first if need be.

    Raises:
        BrowserMissingError: With one line that says how to get one.
    """
    named_path = os.environ.get("SWEETSPOT_BROWSER")
    if named_path:
        if _starts(named_path):
            return named_path
        raise BrowserMissingError(f"SWEETSPOT_BROWSER is {named_path!r}, and no browser starts from there.")
    path = _find_installed() or _find_installed_by_playwright()
    if path is None and _run_quietly(
        "No Chromium or Chrome found; downloading one for the tests ...",
        [sys.executable, "-m", "playwright", "install", "chromium"],
        PLAYWRIGHT_LIMIT,
    ):
        path = _find_installed_by_playwright()
    if path is None and _install_by_apt():
        path = _find_installed()
    if path is None:
        raise BrowserMissingError(INSTALL_ADVICE)
    return path


def _find_installed() -> str | None:
    on_path = [shutil.which(name) for name in NAMES]
    usual_paths = [os.path.expanduser(os.path.expandvars(path_pattern)) for path_pattern in USUAL_PATHS]
    return next((path for path in [*on_path, *usual_paths] if path and _starts(path)), None)


def _find_installed_by_playwright() -> str | None:
    # In a process of its own: Playwright cannot be started twice in one.
    ask = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
    )
    try:
        answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    path = answer.stdout.strip()
    return path if path and _starts(path) else None


def _starts(path: str) -> bool:
    """Return True if it runs: a placeholder of Ubuntu's, or a download without its libraries, does not."""
    if not os.access(path, os.X_OK):
        return False
    if os.name == "nt":
        return True  # Chrome for Windows answers --version by opening a window
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _install_by_apt() -> bool:
    if shutil.which("apt-get") is None:
        return False
    if os.geteuid() == 0:
        prefix = []
    elif shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        prefix = ["sudo", "-n"]
    else:
        return False
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    # Debian has the shell as a package of its own; elsewhere there is the whole browser only.
    return _run_quietly("Installing Chromium with apt-get ...", [*apt, "update"], APT_LIMIT) and any(
        _run_quietly(None, [*apt, "install", "-y", package], APT_LIMIT) for package in (SHELL, "chromium")
    )


def _run_quietly(message: str | None, command: list[str], limit: float) -> bool:
    if message:
        print(message, file=sys.stderr, flush=True)
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        print(f"... gave up after {limit:.0f} seconds.", file=sys.stderr, flush=True)
        return False
    if done.returncode != 0:
        last_line = (done.stdout.strip().splitlines() or ["no output"])[-1]
        print(f"... did not work: {last_line}", file=sys.stderr, flush=True)
    return done.returncode == 0


def _load_launcher() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sweetspot_launch", ROOT / "dpcore" / "cli" / "launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The tests start the server by the same command as `make app` does.
launcher = _load_launcher()


@dataclass(frozen=True)
class RunningApp:
    """A server of the app, at `url`, writing to the file `log`."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        launcher.stop(self.process)


# Every server of this session; what went wrong on a page stands in their output only.
started: list[RunningApp] = []


def start_app(
    log: Path,
    command: Callable[[int], list[str]] = launcher.build_server_command,
    cwd: Path = ROOT,
    port: int | None = None,
    **environment: str,
) -> RunningApp:
    """Start the app on a free port or on this one, healthy but not warmed: no page has run yet.

    As `make app` does, unless there is another command for a port; what else is named goes into its environment.
    """
    # Away from 8501, and by process id, so that workers and a running `make app` do not meet.
    port = launcher.choose_port(20000 + os.getpid() % 20000) if port is None else port
    with log.open("wb") as stream:  # a file: a pipe that nobody reads fills up and stops the server
        process = subprocess.Popen(
            command(port),
            cwd=cwd,
            env={**launcher.build_server_environment(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    app = RunningApp(f"http://{launcher.HOST}:{port}", process, log)
    started.append(app)
    try:
        launcher.wait_until_up(process, app.url)
    except launcher.StartError as error:
        app.stop()
        raise RuntimeError(f"{error}. Its output:\n{app.output()}") from None
    return app


@dataclass
class Traffic:
    """What a page and its server have told each other, as far as `settle` needs it.

    Attributes:
        waiting: Whether the page has asked for a run that no end of a run has followed.
        changed: When that was last so or no longer so, by the monotonic clock.
    """

    waiting: bool = False
    changed: float = 0.0

    def record_sent(self, payload: str | bytes) -> None:
        if isinstance(payload, bytes) and BackMsg.FromString(payload).WhichOneof("type") == "rerun_script":
            self.waiting, self.changed = True, time.monotonic()

    def record_received(self, payload: str | bytes) -> None:
        if isinstance(payload, bytes):
            message = ForwardMsg.FromString(payload)
            # A run that was cut short for the next one has not answered.
            early = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN
            if message.WhichOneof("type") == "script_finished" and message.script_finished != early:
                self.waiting, self.changed = False, time.monotonic()


_traffic: WeakKeyDictionary[Page, Traffic] = WeakKeyDictionary()


def listen(page: Page) -> Page:
    """Follow what the page and its server tell each other; call this before the page opens an address."""
    traffic = _traffic[page] = Traffic()

    def connected(socket: WebSocket) -> None:
        if not socket.url.endswith("/_stcore/stream"):
            return
        traffic.waiting = False
        socket.on("framesent", traffic.record_sent)
        socket.on("framereceived", traffic.record_received)

    page.on("websocket", connected)
    return page


# Whether the page was quiet for four looks in a row, within as many milliseconds as are given; before the last look the
# browser has nothing left to draw. After its window was resized, a headless Chromium calls no idle callbacks for as
# long as it likes, hence the limit on them. The page looks by itself: a look that is asked for from here goes through
# three more processes.
_QUIET = """limit => new Promise(done => {
    const late = performance.now() + limit;
    const connected = "[data-testid='stApp'][data-test-connection-state='CONNECTED']";
    const busy = "[data-test-script-state='running'], [data-testid='stSkeleton']";
    const drawn = then => requestIdleCallback(() => requestAnimationFrame(then), {timeout: 1500});
    let quiet = 0;
    const look = () => {
        quiet = document.querySelector(busy) || !document.querySelector(connected) ? 0 : quiet + 1;
        if (quiet === 4 || performance.now() > late) return done(quiet === 4);
        const again = () => setTimeout(look, 100);
        if (quiet === 3) drawn(again); else again();
    };
    setTimeout(look, 100);
})"""
# Seconds that four looks take at least: a changed widget asks for a run a moment later.
_LOOKS = 0.4


def settle(page: Page, limit: float = SETTLE_LIMIT) -> None:
    """Wait until the page is connected, no script runs and nothing is still being drawn."""
    deadline = time.monotonic() + limit
    traffic = _traffic.get(page, Traffic())
    while True:
        seconds_left = deadline - time.monotonic()
        try:
            quiet = seconds_left > 0 and page.evaluate(_QUIET, seconds_left * 1000)
        except Exception as error:
            if "context was destroyed" not in str(error):
                raise
            continue  # It was just being loaded anew.
        if not quiet:
            raise AssertionError(f"{page.url} did not settle within {limit:.0f} seconds")
        if not traffic.waiting and traffic.changed <= time.monotonic() - _LOOKS:
            return


def press(button: Locator) -> None:
    """Press a button, and wait until the page has settled."""
    button.click()
    settle(button.page)


def enter(field: Locator, text: str) -> None:
    """Enter a text into a field, and wait until the page has settled."""
    field.fill(text)
    field.press("Enter")
    settle(field.page)


def stop_button(page: Page) -> Locator:
    """Return the page's own Stop; Streamlit's header shows another of that name while a script runs."""
    return page.get_by_test_id("stMain").get_by_role("button", name="Stop")


if __name__ == "__main__":
    try:
        print(f"Browser for the tests: {find_browser()}")
    except BrowserMissingError as missing:
        sys.exit(str(missing))
