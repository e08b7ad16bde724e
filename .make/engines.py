"""Test counting on a PostgreSQL server and on Spark, both started here and ended afterwards.

    .venv/engines/bin/python .make/engines.py

Needs Java 17 or newer and PostgreSQL; where one is missing and this is a Debian or Ubuntu on which packages may be
installed, it is installed with apt. PostgreSQL refuses to run as root, so there it runs as its own account.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APT_LIMIT = 900.0
START_LIMIT = 60.0
JAVA_PACKAGE = "openjdk-17-jre-headless"
OLDEST_JAVA = 17


class SetUpError(Exception):
    """Something is missing; the message says what to do."""


def java_version() -> int:
    """The major version of the Java that Spark would use; 0 where there is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not program:
        return 0
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60).stderr
        if found := re.search(r'version "(?:1\.)?([0-9]+)', said):
            return int(found[1])
    return 0


def postgres_folder() -> Path | None:
    """The folder with initdb and pg_ctl of the newest PostgreSQL here."""
    folders = [
        Path(found).resolve().parent for name in ("pg_ctl", "postgres") if (found := shutil.which(name))
    ]
    folders += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0),
        reverse=True,
    )
    return next(
        (folder for folder in folders if all((folder / name).exists() for name in ("initdb", "pg_ctl"))), None
    )


def install(packages: list[str]) -> None:
    """Install Debian packages, where that can be done without asking for a password."""
    how = f"install them yourself: {' '.join(packages)}"
    if not shutil.which("apt-get"):
        raise SetUpError(f"the tests of engines need packages that only apt can install here; {how}")
    front = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if front and (
        not shutil.which("sudo") or subprocess.run([*front, "true"], capture_output=True).returncode
    ):
        raise SetUpError(f"the tests of engines need packages and may not install them; {how}")
    print(f"Installing {' '.join(packages)} ...", flush=True)
    setting = ["env", "DEBIAN_FRONTEND=noninteractive"]
    quiet = ["-y", "-qq", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300"]
    for words in (["update"], ["install", "--no-install-recommends", *packages]):
        done = subprocess.run(
            [*front, *setting, "apt-get", *quiet, *words], capture_output=True, text=True, timeout=APT_LIMIT
        )
        if done.returncode and words[0] == "install":
            raise SetUpError(f"apt-get install failed; {how}\n{done.stderr[-2000:]}")


def free_port() -> int:
    """A port that nothing listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def account() -> str | None:
    """The account PostgreSQL is to run as; None for our own."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise SetUpError("PostgreSQL refuses to run as root, and there is no account postgres or nobody")


@contextlib.contextmanager
def postgres(programs: Path) -> Iterator[dict[str, str]]:
    """A fresh PostgreSQL server; yields the environment in which libpq finds it."""
    folder = Path(tempfile.mkdtemp(prefix="sweetspot-pg-"))
    who = account()
    as_account: dict[str, object] = {"cwd": folder}
    if who is not None:
        entry = pwd.getpwnam(who)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        as_account |= {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    password, port = secrets.token_urlsafe(24), str(free_port())
    secret = folder / "password"
    secret.write_text(password + "\n")
    secret.chmod(0o600)
    if who is not None:
        os.chown(secret, entry.pw_uid, entry.pw_gid)
    data, log = folder / "data", folder / "log"

    def run(*words: str) -> None:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_LIMIT * 2,
            **as_account,
        )  # type: ignore[call-overload]
        if done.returncode:
            said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise SetUpError(f"{Path(words[0]).name} failed:\n{done.stderr[-2000:]}\n{said}")

    try:
        run(str(programs / "initdb"), "-D", str(data), "-U", "analyst", "-E", "UTF8", "--no-locale", "-A",
            "scram-sha-256", f"--pwfile={secret}", "--no-sync")  # fmt: skip
        options = (
            f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories='{folder}' -c fsync=off"
        )
        # Its output goes to the log: with a pipe, pg_ctl would be waited for as long as the server runs.
        started = time.monotonic()
        with (folder / "start").open("w") as out:
            code = subprocess.run(
                [str(programs / "pg_ctl"), "-D", str(data), "-l", str(log), "-o", options, "-w", "-t",
                 str(int(START_LIMIT)), "start"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, **as_account,
            ).returncode  # type: ignore[call-overload]  # fmt: skip
        if code:
            raise SetUpError(f"PostgreSQL did not start:\n{log.read_text(errors='replace')[-2000:]}")
        print(f"PostgreSQL is up after {time.monotonic() - started:.1f} s.", flush=True)
        yield {"PGHOST": "127.0.0.1", "PGPORT": port, "PGUSER": "analyst", "PGPASSWORD": password}
    finally:
        if data.exists():
            with contextlib.suppress(SetUpError, subprocess.SubprocessError):
                run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Set up, test, clean up; the exit code of pytest."""
    try:
        missing = [] if java_version() >= OLDEST_JAVA else [JAVA_PACKAGE]
        missing += [] if postgres_folder() is not None else ["postgresql"]
        if missing:
            install(missing)
        programs = postgres_folder()
        if programs is None or java_version() < OLDEST_JAVA:
            raise SetUpError(f"Java {OLDEST_JAVA} or PostgreSQL is still not found; set JAVA_HOME, or PATH")
        with postgres(programs) as where:
            environment = {
                **os.environ, **where, "SWEETSPOT_ENGINES": "1", "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
            }  # fmt: skip
            # The warnings of the drivers are theirs.
            words = [
                sys.executable,
                "-m",
                "pytest",
                "-W",
                "default",
                "-p",
                "no:cacheprovider",
                "tests/engines",
            ]
            words += sys.argv[1:]
            return subprocess.run(words, cwd=ROOT, env=environment).returncode
    except (SetUpError, subprocess.SubprocessError, OSError) as error:
        print(f"The engines could not be tested: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
