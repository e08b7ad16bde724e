"""`make test`, `make test-engines`, `make test-libraries` where something is missing: programs note their calls."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def engines():
    spec = importlib.util.spec_from_file_location("engines_setup", ROOT / ".make" / "engines.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["engines_setup"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["engines_setup"]


class Computer:
    """A PATH with nothing on it but what is put there; every call is written down."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.log = folder / "programs", folder / "calls"
        self.programs.mkdir()
        (self.programs / "env").symlink_to(shutil.which("env"))

    def put(self, name: str, then: str = "", code: int = 0) -> Path:
        program = self.programs / name
        program.write_text(f"#!/bin/sh\necho {name} \"$@\" >> '{self.log}'\n{then}\nexit {code}\n")
        program.chmod(0o755)
        return program

    def put_java(self, version: str) -> Path:
        return self.put("java", f"echo 'openjdk version \"{version}\" 2024' >&2")

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def computer(tmp_path, monkeypatch, engines):
    made = Computer(tmp_path)
    monkeypatch.setenv("PATH", str(made.programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # Debian keeps the server's programs off the PATH; this computer's own are not to be found.
    real = engines.Path
    monkeypatch.setattr(engines, "Path", lambda *arguments: real(*(tmp_path / "usr" if p == "/usr/lib/postgresql" else p
                                                               for p in arguments)))  # fmt: skip
    return made


def test_what_is_missing_is_installed_with_apt(engines, computer, monkeypatch, capsys, tmp_path):
    # What apt brings: a Java, and PostgreSQL where Debian puts it.
    ready = computer.put_java("17.0.1").rename(tmp_path / "java")
    bin_ = tmp_path / "usr" / "16" / "bin"
    brings = f"mkdir -p '{bin_}'; touch '{bin_}/initdb' '{bin_}/pg_ctl'; cp '{ready}' '{computer.programs}'"
    computer.put("apt-get", f'PATH=/bin:/usr/bin; case "$*" in *install*) {brings};; esac')

    def postgres(programs):
        raise engines.SetUpError(f"started from {programs}")

    monkeypatch.setattr(engines, "run_postgres", postgres)
    assert engines.main() == 1
    update, install = [call for call in computer.calls if call.startswith("apt-get")]
    assert update.startswith("apt-get -y ")
    assert update.endswith(" update")
    assert install.endswith(" install --no-install-recommends openjdk-17-jre-headless postgresql")
    output = capsys.readouterr()
    assert "Installing openjdk-17-jre-headless postgresql" in output.out
    assert f"started from {bin_}" in output.err


@pytest.mark.parametrize(
    ("version", "missing"), [("17.0.1", False), ("21", False), ("1.8.0_402", True), ("11.0.2", True)]
)
def test_an_old_java_counts_as_none(engines, computer, version, missing):
    computer.put_java(version)
    assert (engines.find_java_version() < engines.OLDEST_JAVA) is missing


def test_the_newest_postgresql_is_taken(engines, computer, tmp_path):
    for version in ("9", "15", "100"):
        folder = tmp_path / "usr" / version / "bin"
        folder.mkdir(parents=True)
        for name in ("initdb", "pg_ctl"):
            (folder / name).touch()
    assert engines.find_postgres_folder() == tmp_path / "usr" / "100" / "bin"


def test_without_apt_the_packages_are_named(engines, computer, capsys):
    assert engines.main() == 1
    output = capsys.readouterr().err
    assert "install them yourself: openjdk-17-jre-headless postgresql" in output
    assert computer.calls == []


def test_another_account_asks_sudo_without_a_password(engines, computer, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    computer.put("apt-get")
    with pytest.raises(engines.SetUpError, match="may not install them"):  # no sudo
        engines.install_packages(["postgresql"])
    computer.put("sudo", code=1)
    with pytest.raises(engines.SetUpError, match="may not install them"):  # it would ask for a password
        engines.install_packages(["postgresql"])
    assert computer.calls == ["sudo -n true"]
    computer.put("sudo", 'shift; PATH="$PATH:/bin"; "$@"')
    engines.install_packages(["postgresql"])
    assert computer.calls[-1].endswith("install --no-install-recommends postgresql")
    assert any(
        call.startswith("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get") for call in computer.calls
    )


def test_a_failed_installation_says_what_apt_said(engines, computer):
    computer.put("apt-get", 'case "$*" in *install*) echo no such package >&2; exit 100;; esac')
    with pytest.raises(engines.SetUpError, match=r"(?s)install them yourself: postgresql.*no such package"):
        engines.install_packages(["postgresql"])


@pytest.fixture
def libraries(engines, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "engines", engines)
    spec = importlib.util.spec_from_file_location("libraries_setup", ROOT / ".make" / "libraries.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["libraries.py", "-k", "count"])
    return module


@pytest.mark.parametrize(
    ("fails", "run"), [("", ["pipelinedp", "tumult", "opacus", "jaxprivacy"]), ("pipelinedp", ["pipelinedp"])]
)
def test_each_library_is_tested_in_its_environment(libraries, computer, tmp_path, fails, run):
    computer.put_java("17.0.1")
    for library in ("pipelinedp", "tumult", "opacus", "jaxprivacy"):
        python = computer.put(
            library, f"echo $SWEETSPOT_LIBRARY >> '{computer.log}'", code=2 * (library == fails)
        )
        home = tmp_path / ".venv" / library / "bin"
        home.mkdir(parents=True)
        python.rename(home / "python")
    assert libraries.main() == (2 if fails else 0)
    calls = [call for call in computer.calls if not call.startswith("java")]
    assert [call for call in calls if " " not in call] == run
    assert all(call.endswith("tests/libraries -k count") for call in calls if " " in call)


@pytest.mark.skipif(shutil.which("make") is None, reason="this computer has no make")
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("browser", [False, True])
def test_without_a_browser_all_other_tests_run_and_it_is_said(tmp_path, browser, fails):
    stub = tmp_path / "python"
    stub.write_text(
        f"""#!/bin/sh
echo "$@" >> '{tmp_path}/calls'
case "$1" in
  tests/browser/browser.py) exit {0 if browser else 1};;
  -m) exit {1 if fails else 0};;
esac
"""
    )
    stub.chmod(0o755)
    arguments = [f"PY={stub}", "TEST_WORKERS=2", "PYTEST_ARGS=-k some", "-o", ".venv/.stamp-dev", "test"]
    done = subprocess.run(["make", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=600)
    calls = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("-m pytest")]
    assert len(calls) == 1
    assert "-k some" in calls[0]
    assert ("-m not browser" in calls[0]) is not browser
    assert ("Error 3" in done.stderr) is (not browser and not fails)
    assert ("browser did not run" in done.stderr) is (not browser and not fails)
    assert (done.returncode == 0) is (browser and not fails)


@pytest.mark.skipif(shutil.which("make") is None, reason="this computer has no make")
def test_what_one_target_leaves_out_another_runs_and_both_are_required(tmp_path):
    stub = tmp_path / "python"
    stub.write_text(f"#!/bin/sh\necho \"$SWEETSPOT_SEARCH:$@\" >> '{tmp_path}/calls'\n")
    stub.chmod(0o755)
    arguments = [f"PY={stub}", "TEST_WORKERS=2", "SEARCH_TIMES=3", "-o", ".venv/.stamp-dev"]
    subprocess.run(
        ["make", "-C", str(ROOT), *arguments, "test-long", "test-search"],
        check=True,
        capture_output=True,
        timeout=600,
    )
    long, search = (line for line in (tmp_path / "calls").read_text().splitlines() if "-m pytest" in line)
    assert long.startswith(":")
    assert long.endswith("-m long")
    assert search.startswith("3:")
    assert search.endswith("-m hypothesis tests/dpcore")
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["tool"]["pytest"]["ini_options"]["addopts"][-2:] == ["-m", "not long"]
    required = re.findall(r"^make (\S+)$", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE)
    assert required[:3] == ["lint", "test", "test-long"]


def test_every_target_is_made_by_one_rule():
    # A phony target without a rule does nothing, and succeeds.
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (named,) = re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    rules = re.findall(r"^([a-z-]+):(?!=)", text, re.MULTILINE)
    assert sorted(rules) == sorted(named.split())
    assert set(
        re.findall(r"^ *make ([a-z-]+)", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE)
    ) <= set(rules)


def test_polars_is_the_one_that_opendp_asks_for():
    # requirements-dev.txt names it, as OpenDP's own extra brings scikit-learn.
    requirements = [
        line.partition(";")[0].strip() for line in importlib.metadata.requires("opendp") if "polars==" in line
    ]
    (pinned,) = re.findall(
        r"^polars==\S+$", (ROOT / "requirements-dev.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(requirements) == {pinned}


def test_the_constraints_hold_a_version_and_a_licence_of_all_that_the_app_needs():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    versions = dict(re.findall(r"^([a-z0-9-]+)==(\S+)  # \S.*$", text, re.MULTILINE))
    assert len(versions) == len(text.splitlines()) - 2
    needed = [
        Requirement(line)
        for name in ("requirements-core.txt", "requirements.txt")
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if re.match("[a-z]", line)
    ]
    for requirement in needed:
        assert requirement.specifier.contains(versions[requirement.name]), requirement
        # What it brings itself is listed, too.
        for line in importlib.metadata.requires(requirement.name) or ():
            brought = Requirement(line)
            if not brought.marker or brought.marker.evaluate({"extra": ""}):
                assert brought.specifier.contains(versions[canonicalize_name(brought.name)]), line


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("Bound rows per user\n\nBecause.\n", ""),
        ("# A comment of git\nBound rows per user\n", ""),
        ("x" * 72, ""),
        ("x" * 73, "has 73 characters"),
        ("Bound rows per user.", "full stop"),
        ("Bound rows\nper user", "blank line"),
        ("\n\n", "is empty"),
    ],
)
def test_the_subject_of_a_commit_is_checked(message, problem, tmp_path):
    (tmp_path / "message").write_text(message)
    checked = subprocess.run(
        [sys.executable, ROOT / ".make" / "subject.py", tmp_path / "message"], capture_output=True, text=True
    )
    assert (checked.returncode == 0) == (not problem)
    assert problem in checked.stderr
