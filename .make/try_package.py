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
TIME_LIMIT = 600.0
FOREIGN_CONFIG = """[server]
address = "0.0.0.0"
baseUrlPath = "elsewhere"
[client]
showErrorDetails = "full"
"""
"""Settings of another project, which lie where the app is started from and must not become its own."""


MEAN_ARGUMENTS = [
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
ARGUMENTS_BY_EXTRA = {"plots": ["--report", "answer.html"], "release": ["--draw", "1", "--largest", "30"]}
"""Further arguments of the command, by the extra that they need."""


def check(is_true: bool, claim: str) -> None:
    """End with a sentence where something does not hold."""
    if not is_true:
        sys.exit(f"The package does not hold: {claim}")


def run_command(command: list[str], folder: Path, exit_code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder, and return the process; it must end with this exit code."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT
    )
    outcome_text = f"{' '.join(command)} ended with {process.returncode}:\n{process.stdout}{process.stderr}"
    check(process.returncode == exit_code, outcome_text)
    return process


def fetch(url: str, path: str, host: str | None = None) -> tuple[int, str]:
    """Return status and text of the server's response."""
    request = urllib.request.Request(f"{url}{path}", headers={"Host": host} if host else {})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            request, timeout=60
        ) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def try_core(python_path: Path, command_path: Path, folder: Path) -> None:
    """Try import and command without the app and without extras."""
    program = (
        "import sys, dpcore as ss; loaded = sorted({'numpy', 'pandas', 'streamlit'} & set(sys.modules)); "
        "print(ss.__version__, loaded); print(ss.count_bound([1, 2, 30], epsilon=1)); "
        "from dpcore.data import samples; print(samples.load('shop-events').histogram.num_users)"
    )
    output_text = run_command([str(python_path), "-c", program], folder).stdout
    check(" []\n" in output_text and "Keep at most" in output_text, f"dpcore says {output_text!r}")
    check(
        output_text.split()[0] in run_command([str(command_path), "--version"], folder).stdout,
        "--version says another version",
    )
    (folder / "events.csv").write_text("who,amount\na,1\na,2\nb,30\n", encoding="utf-8")
    output_text = run_command([str(command_path), *MEAN_ARGUMENTS], folder).stdout
    check(output_text.startswith("Keep at most"), f"sweet-spot mean says {output_text!r}")
    for extra, arguments in ARGUMENTS_BY_EXTRA.items():
        process = run_command([str(command_path), *MEAN_ARGUMENTS, *arguments], folder, exit_code=2)
        check(
            f"[{extra}]" in process.stderr, f"without the extra {extra}, the command says {process.stderr!r}"
        )
    output_text = run_command(
        [str(command_path), "count", "--from", "events.csv", "--user", "who"], folder
    ).stdout
    check(output_text.startswith("size,users,label\n1,1,"), f"sweet-spot count says {output_text!r}")
    process = run_command([str(command_path)], folder, exit_code=1)
    check("extra `app`" in process.stderr and not process.stdout, "without the app, sweet-spot must say so")


def try_extras(command_path: Path, folder: Path, install_command: list[str], wheel_path: Path) -> None:
    """Install one extra after the other; what was refused without it is answered with it."""
    for extra, arguments in ARGUMENTS_BY_EXTRA.items():
        run_command([*install_command, f"{wheel_path}[{extra}]"], folder)
        run_command([str(command_path), *MEAN_ARGUMENTS, *arguments], folder)
    check((folder / "answer.html").stat().st_size > 10**6, "its report has no figures")


def try_app(command_path: Path, folder: Path) -> None:
    """Start the app, ask it, and stop it as Ctrl-C does."""
    config_path = folder / ".streamlit" / "config.toml"
    config_path.parent.mkdir()
    config_path.write_text(FOREIGN_CONFIG, encoding="utf-8")
    (folder / "pages.py").write_text("raise SystemExit('the folder was imported from')", encoding="utf-8")
    with subprocess.Popen(
        [str(command_path), "--no-token"],
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
        output_text = "".join(lines)
        try:
            check(" is at http://127.0.0.1:" in output_text, f"the app does not start: {output_text}")
            check("did not succeed" not in output_text, f"the app's first run failed: {output_text}")
            url = lines[-1].split(" is at ")[1].split()[0]
            check(fetch(url, "/_stcore/script-health-check") == (200, "ok"), "its health check fails")
            status, page = fetch(url, "/")
            check(status == 200 and "<title>" in page, f"its page answers {status}: {page[:200]}")
            check(fetch(url, "/", host="evil.example")[0] == 403, "it answers a foreign host")
        finally:
            process.send_signal(signal.SIGINT)
            last_output = process.communicate(timeout=60)[0]
        check(process.returncode == 0, f"it ended with {process.returncode}: {last_output}")


def main() -> None:
    """Build the wheel, install it into an empty environment, and try it there."""
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        pip_words = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
        run_command(
            [sys.executable, *pip_words, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], folder
        )
        (wheel_path,) = folder.glob("*.whl")
        top_names = {entry.split("/")[0] for entry in zipfile.ZipFile(wheel_path).namelist()}
        package_names = {name for name in top_names if not name.endswith(".dist-info")}
        check(package_names == {"dpcore", "sweet_spot"}, f"it installs {sorted(package_names)}")
        venv.create(folder / "empty", with_pip=True)
        programs_folder = folder / "empty" / ("Scripts" if os.name == "nt" else "bin")
        python_path, command_path = programs_folder / "python", programs_folder / "sweet-spot"
        foreign_folder = folder / "else where"
        foreign_folder.mkdir()
        install_command = [str(python_path), *pip_words, "install", "--no-compile"]
        run_command([*install_command, str(wheel_path)], folder)
        try_core(python_path, command_path, foreign_folder)
        sizes = [path.stat().st_size for path in (folder / "empty").rglob("*") if path.is_file()]
        print(f"The core takes {sum(sizes) / 1e6:.0f} MB.")
        try_extras(command_path, foreign_folder, install_command, wheel_path)
        run_command([*install_command, f"{wheel_path}[app]"], folder)
        try_app(command_path, foreign_folder)
        print(f"{wheel_path.name}: import, command and app work in an empty environment.")


if __name__ == "__main__":
    main()
