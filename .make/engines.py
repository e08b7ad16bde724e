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
    """An error for something that is missing; its message says what to do."""


def find_java_version() -> int:
    """Return the major version of the Java that Spark would use; 0 where there is none."""
    home = os.environ.get("JAVA_HOME")
    java_path = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java_path:
        return 0
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        output_text = subprocess.run(
            [java_path, "-version"], capture_output=True, text=True, timeout=60
        ).stderr
        if version_match := re.search(r'version "(?:1\.)?([0-9]+)', output_text):
            return int(version_match[1])
    return 0


def find_postgres_folder() -> Path | None:
    """Return the folder with initdb and pg_ctl of the newest PostgreSQL here; None if there is none."""
    folders = [
        Path(program_path).resolve().parent
        for name in ("pg_ctl", "postgres")
        if (program_path := shutil.which(name))
    ]
    folders += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0),
        reverse=True,
    )
    return next(
        (folder for folder in folders if all((folder / name).exists() for name in ("initdb", "pg_ctl"))), None
    )


def install_packages(packages: list[str]) -> None:
    """Install Debian packages, where that can be done without asking for a password."""
    remedy = f"install them yourself: {' '.join(packages)}"
    if not shutil.which("apt-get"):
        raise SetUpError(f"the tests of engines need packages that only apt can install here; {remedy}")
    sudo_words = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if sudo_words and (
        not shutil.which("sudo") or subprocess.run([*sudo_words, "true"], capture_output=True).returncode
    ):
        raise SetUpError(f"the tests of engines need packages and may not install them; {remedy}")
    print(f"Installing {' '.join(packages)} ...", flush=True)
    environment_words = ["env", "DEBIAN_FRONTEND=noninteractive"]
    apt_options = ["-y", "-qq", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300"]
    for words in (["update"], ["install", "--no-install-recommends", *packages]):
        process = subprocess.run(
            [*sudo_words, *environment_words, "apt-get", *apt_options, *words],
            capture_output=True,
            text=True,
            timeout=APT_LIMIT,
        )
        if process.returncode and words[0] == "install":
            raise SetUpError(f"apt-get install failed; {remedy}\n{process.stderr[-2000:]}")


def find_free_port() -> int:
    """Return a port that nothing listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def find_account() -> str | None:
    """Return the name of the account that PostgreSQL is to run as; None for our own."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise SetUpError("PostgreSQL refuses to run as root, and there is no account postgres or nobody")


@contextlib.contextmanager
def run_postgres(programs_folder: Path) -> Iterator[dict[str, str]]:
    """Run a fresh PostgreSQL server; yield the environment variables by which libpq finds it."""
    folder = Path(tempfile.mkdtemp(prefix="sweetspot-pg-"))
    account_name = find_account()
    account_options: dict[str, object] = {"cwd": folder}
    if account_name is not None:
        account = pwd.getpwnam(account_name)
        os.chown(folder, account.pw_uid, account.pw_gid)
        account_options |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    password, port = secrets.token_urlsafe(24), str(find_free_port())
    password_path = folder / "password"
    password_path.write_text(password + "\n")
    password_path.chmod(0o600)
    if account_name is not None:
        os.chown(password_path, account.pw_uid, account.pw_gid)
    data_folder, log_path = folder / "data", folder / "log"

    def run_program(*words: str) -> None:
        """Run a program as the account; raise `SetUpError` with its output and the log if it fails."""
        process = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_LIMIT * 2,
            **account_options,
        )  # type: ignore[call-overload]
        if process.returncode:
            log_text = log_path.read_text(errors="replace")[-2000:] if log_path.exists() else ""
            raise SetUpError(f"{Path(words[0]).name} failed:\n{process.stderr[-2000:]}\n{log_text}")

    try:
        run_program(str(programs_folder / "initdb"), "-D", str(data_folder), "-U", "analyst", "-E", "UTF8",
            "--no-locale", "-A", "scram-sha-256", f"--pwfile={password_path}", "--no-sync")  # fmt: skip
        server_options = (
            f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories='{folder}' -c fsync=off"
        )
        # Its output goes to the log: with a pipe, pg_ctl would be waited for as long as the server runs.
        start_time = time.monotonic()
        with (folder / "start").open("w") as output_stream:
            exit_code = subprocess.run(
                [str(programs_folder / "pg_ctl"), "-D", str(data_folder), "-l", str(log_path), "-o",
                 server_options, "-w", "-t", str(int(START_LIMIT)), "start"],
                stdin=subprocess.DEVNULL, stdout=output_stream, stderr=output_stream, **account_options,
            ).returncode  # type: ignore[call-overload]  # fmt: skip
        if exit_code:
            raise SetUpError(f"PostgreSQL did not start:\n{log_path.read_text(errors='replace')[-2000:]}")
        print(f"PostgreSQL is up after {time.monotonic() - start_time:.1f} s.", flush=True)
        yield {"PGHOST": "127.0.0.1", "PGPORT": port, "PGUSER": "analyst", "PGPASSWORD": password}
    finally:
        if data_folder.exists():
            with contextlib.suppress(SetUpError, subprocess.SubprocessError):
                run_program(
                    str(programs_folder / "pg_ctl"), "-D", str(data_folder), "-m", "immediate", "-w", "stop"
                )
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Set up, test and clean up; return the exit code of pytest."""
    try:
        missing_packages = [] if find_java_version() >= OLDEST_JAVA else [JAVA_PACKAGE]
        missing_packages += [] if find_postgres_folder() is not None else ["postgresql"]
        if missing_packages:
            install_packages(missing_packages)
        programs_folder = find_postgres_folder()
        if programs_folder is None or find_java_version() < OLDEST_JAVA:
            raise SetUpError(f"Java {OLDEST_JAVA} or PostgreSQL is still not found; set JAVA_HOME, or PATH")
        with run_postgres(programs_folder) as postgres_variables:
            environment = {
                **os.environ, **postgres_variables, "SWEETSPOT_ENGINES": "1", "SPARK_LOCAL_IP": "127.0.0.1",
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
