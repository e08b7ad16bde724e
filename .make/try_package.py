"""Build the wheel, install it into an empty environment, and try import, command and app there, from a foreign folder.

.venv/bin/python .make/try_package.py
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 600.0
HOSTILE = """[server]
address = "0.0.0.0"
baseUrlPath = "elsewhere"
[client]
showErrorDetails = "full"
"""
"""Settings of another project, which lie where the app is started from and must not become its own."""


ASKED = [
    "mean",
    "events.csv",
    "--user",
    "who",
    "--value",
    "amount",
    "--epsilon",
    "1",
    "--lower",
    "0",
    "--upper",
    "100",
]
EXTRAS = {"plots": ["--report", "answer.html"], "release": ["--draw", "1", "--largest", "30"]}
"""What the command is asked besides, by the extra that it needs."""


def check(held: bool, what: str) -> None:
    """End with a sentence where something does not hold."""
    if not held:
        sys.exit(f"The package does not hold: {what}")


def run(command: list[str], folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder; it must end with this code."""
    outside = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True, timeout=LIMIT)
    said = f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    check(done.returncode == code, said)
    return done


def answer(url: str, path: str, host: str | None = None) -> tuple[int, str]:
    """Status and text of what the server answers."""
    request = urllib.request.Request(f"{url}{path}", headers={"Host": host} if host else {})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            request, timeout=60
        ) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def try_core(python: Path, command: Path, folder: Path) -> None:
    """What there is without the app."""
    program = (
        "import sys, dpcore as ss; loaded = sorted({'numpy', 'pandas', 'streamlit'} & set(sys.modules)); "
        "print(ss.__version__, loaded); print(ss.count_bound([1, 2, 30], epsilon=1)); "
        "from dpcore.data import samples; print(samples.load('shop-events').histogram.num_users)"
    )
    said = run([str(python), "-c", program], folder).stdout
    check(" []\n" in said and "Keep at most" in said, f"dpcore says {said!r}")
    check(
        said.split()[0] in run([str(command), "--version"], folder).stdout, "--version says another version"
    )
    (folder / "events.csv").write_text("who,amount\na,1\na,2\nb,30\n", encoding="utf-8")
    said = run([str(command), *ASKED], folder).stdout
    check(said.startswith("Keep at most"), f"sweet-spot mean says {said!r}")
    for extra, arguments in EXTRAS.items():
        refused = run([str(command), *ASKED, *arguments], folder, code=2)
        check(
            f"[{extra}]" in refused.stderr, f"without the extra {extra}, the command says {refused.stderr!r}"
        )
    said = run([str(command), "count", "--from", "events.csv", "--user", "who"], folder).stdout
    check(said.startswith("size,users,label\n1,1,"), f"sweet-spot count says {said!r}")
    refused = run([str(command)], folder, code=1)
    check("extra `app`" in refused.stderr and not refused.stdout, "without the app, sweet-spot must say so")


def try_extras(command: Path, folder: Path, install: list[str], wheel: Path) -> None:
    """Install one extra after the other; what was refused without it is answered with it."""
    for extra, arguments in EXTRAS.items():
        run([*install, f"{wheel}[{extra}]"], folder)
        run([str(command), *ASKED, *arguments], folder)
    check((folder / "answer.html").stat().st_size > 10**6, "its report has no figures")


def try_app(command: Path, folder: Path) -> None:
    """Start the app, ask it, and stop it as Ctrl-C does."""
    settings = folder / ".streamlit" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(HOSTILE, encoding="utf-8")
    (folder / "pages.py").write_text("raise SystemExit('the folder was imported from')", encoding="utf-8")
    with subprocess.Popen(
        [str(command), "--no-token"],
        cwd=folder,
        env={**os.environ, "SWEETSPOT_NO_BROWSER": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if " is at " in line:
                break
        said = "".join(lines)
        try:
            check(" is at http://127.0.0.1:" in said, f"the app does not start: {said}")
            check("did not succeed" not in said, f"the app's first run failed: {said}")
            url = lines[-1].split(" is at ")[1].split()[0]
            check(answer(url, "/_stcore/script-health-check") == (200, "ok"), "its health check fails")
            status, page = answer(url, "/")
            check(status == 200 and "<title>" in page, f"its page answers {status}: {page[:200]}")
            check(answer(url, "/", host="evil.example")[0] == 403, "it answers a foreign host")
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=60)[0]
        check(process.returncode == 0, f"it ended with {process.returncode}: {rest}")


def main() -> None:
    """Build, install, try."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
        run([sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], folder)
        (wheel,) = folder.glob("*.whl")
        names = {entry.split("/")[0] for entry in zipfile.ZipFile(wheel).namelist()}
        ours = {name for name in names if not name.endswith(".dist-info")}
        check(ours == {"dpcore", "sweet_spot"}, f"it installs {sorted(ours)}")
        venv.create(folder / "empty", with_pip=True)
        programs = folder / "empty" / ("Scripts" if os.name == "nt" else "bin")
        python, command = programs / "python", programs / "sweet-spot"
        elsewhere = folder / "else where"
        elsewhere.mkdir()
        install = [str(python), *pip, "install", "--no-compile"]
        run([*install, str(wheel)], folder)
        try_core(python, command, elsewhere)
        sizes = [path.stat().st_size for path in (folder / "empty").rglob("*") if path.is_file()]
        print(f"The core takes {sum(sizes) / 1e6:.0f} MB.")
        try_extras(command, elsewhere, install, wheel)
        run([*install, f"{wheel}[app]"], folder)
        try_app(command, elsewhere)
        print(f"{wheel.name}: import, command and app work in an empty environment.")


if __name__ == "__main__":
    main()
