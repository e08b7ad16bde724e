"""Every block of code in README and docs runs here, or is named in `ELSEWHERE` with where it runs."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpcore as ss
from dpcore.cli import command
from dpcore.common.privacy import Disclosure
from dpcore.data import samples
from tests.pages import driving

# Ibis 12.0 still calls what DuckDB 2.0 renames.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PATHS = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
TEXTS = {path.name if path.parent == DOCS else "../README.md": path.read_text("utf-8") for path in PATHS}
TESTED_LANGUAGES = {"python", "py", "sh", "toml", "dockerfile", "nginx"}
HAND = "by hand: "
ELSEWHERE = {
    ".venv/bin/python release.py": "`test_the_private_mean_is_released_by_its_own_section`",
    ".venv/bin/python -m pip install 'opendp[polars]": "requirements-dev.txt, whose versions tests have",
    ".venv/bin/python -m pip install 'ibis-framework[postgres]'": "make test-engines",
    "docker run": f"{HAND}no test builds an image; what it starts runs in `test_a_class_is_served`",
    "SWEETSPOT_SERVED=1 SWEETSPOT_ORIGINS=https://class.example.org": "tests/test_server.py",
    "py -3.11 -m venv .venv": f"{HAND}Windows",
    ".venv\\Scripts\\": f"{HAND}Windows",
    "$env:SWEETSPOT_ORIGINS": f"{HAND}Windows",
    "answer.to_opendp(context)": "tests/dpcore/code/test_read_program.py",
    "pip ": "make test-package",
}
"""Beginnings of the commands and snippets that need another system, and where they run."""
COMMAND = re.compile(r"(?:sweet-spot|\.venv/bin/python -m dpcore) ")
POSTGRES = "postgres://analyst@db.example.org/shop"


def list_blocks(*languages: str) -> list[tuple[str, str]]:
    """Return (file, text) of the fenced blocks in these languages."""
    return [
        (name, block)
        for name, text in TEXTS.items()
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
        if language in languages
    ]


def list_spans(pattern: str) -> list[tuple[str, str]]:
    """Return (file, text) of the pieces of code inside sentences that match; three dots make one a mention."""
    spans = [
        (name, " ".join(span.split()))
        for name, text in TEXTS.items()
        for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    ]
    return [
        (name, span) for name, span in spans if re.match(pattern, span) and not re.search(r"…|\.\.\.", span)
    ]


def runs_elsewhere(line: str) -> bool:
    return any(line.startswith(beginning) for beginning in ELSEWHERE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that commands and snippets name."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    events = pd.read_csv(ROOT / "sample_data" / "shop_events.csv")
    events.to_csv(folder / "events.csv", index=False)
    visits = events.rename(columns={"user_id": "client"}).assign(shop="a")
    with gzip.open(folder / "events.csv.gz", "wt", encoding="utf-8") as file:
        visits.to_csv(file, index=False)
    (folder / "logs").mkdir()
    events.to_parquet(folder / "logs" / "one.parquet", index=False)
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute("CREATE SCHEMA sales")
        connection.execute(
            "CREATE TABLE sales.orders AS SELECT user_id AS customer_id, amount FROM read_csv(?)",
            [str(folder / "events.csv")],
        )
    (folder / "ratings.dat").write_text("1::10::4::97\n1::20::3::98\n2::10::5::99\n" * 20, "utf-8")
    ((_, settings),) = list_blocks("toml")
    (folder / "plan.toml").write_text(settings, encoding="utf-8")
    return folder


@pytest.fixture
def _in_folder(folder: Path) -> Iterator[None]:
    with contextlib.chdir(folder):
        yield


def test_every_block_says_its_language_and_runs_or_is_listed() -> None:
    for name, text in TEXTS.items():
        fences = re.findall(r"^```(.*)$", text, flags=re.MULTILINE)
        assert set(fences[::2]) <= {*TESTED_LANGUAGES, "powershell", "math"}, name
        assert set(fences[1::2]) <= {""}, name
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        code = re.findall(
            r"^\n {4}(?=\S)(.+)", re.sub(r"^[-*\d].*\n(?:.+\n)*", "\n", prose, flags=re.M), re.M
        )
        assert name == "gap.md" or not code, f"{name}: {code}"  # its formulae are no code
    for _, block in list_blocks("powershell"):
        assert all(runs_elsewhere(line) for line in block.splitlines())
    lines = [line for _, block in list_blocks("sh", "powershell") for line in block.splitlines()]
    lines += [span for _, span in list_spans("")]
    assert all(any(line.startswith(beginning) for line in lines) for beginning in ELSEWHERE)


@pytest.mark.parametrize("name", sorted({name for name, _ in list_blocks("python")} - {"python.md"}))
@pytest.mark.usefixtures("_in_folder")
def test_the_python_of_a_file_runs(name: str) -> None:  # that of python.md is a notebook, in `test_notebook`
    names: dict[str, Any] = {"__name__": "__main__"}  # a file's blocks follow each other
    for file, block in list_blocks("python"):
        if file == name:
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(block, name, "exec"), names)
            said = output.getvalue()
            assert said.strip()
            # What a comment behind `print` says as a sentence is printed.
            assert all(sentence in said for sentence in re.findall(r"print\(.+\)  # ([A-Z].+)", block))


@pytest.mark.usefixtures("_in_folder")
def test_the_lines_of_a_program_are_those_that_its_example_writes() -> None:
    (name, excerpt), *others = list_blocks("py")
    assert (name, others) == ("../README.md", [])
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(next(block for file, block in list_blocks("python") if file == name), names)
    program, excerpt = (re.sub(r" +# .+", "", text) for text in (names["program"], excerpt))
    assert all(line in program.splitlines() for line in excerpt.splitlines())


@pytest.mark.long
@pytest.mark.usefixtures("_in_folder")
def test_the_private_mean_is_released_by_its_own_section() -> None:
    pytest.importorskip("opendp")
    (section,) = re.findall(r"^## A private mean, .+?(?=^## )", TEXTS["python.md"], re.MULTILINE | re.DOTALL)
    python, shell = re.findall(r"^```\w+\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(python, "python.md", "exec"), names)
    install, run = shell.splitlines()
    assert f"# Needed: {install.split(' -m ')[1]}." in names["program"]
    command_line = [sys.executable, *shlex.split(run)[1:]]
    printed = json.loads(subprocess.run(command_line, check=True, capture_output=True).stdout)
    (example,) = re.findall(r"`(\{.+?\})`", section)
    assert [*printed] == [*json.loads(example)]
    assert 0 <= printed["released"] <= 100
    # The account of the draw, in the program, says what the section says.
    assert "= 1.1." in names["program"]
    assert "1.1 in all" in section


def test_one_file_has_one_number_and_the_documents_say_why_they_differ() -> None:
    texts = {name: " ".join(text.split()) for name, text in TEXTS.items()}
    settings = {"user": "user_id", "value": "amount", "epsilon": 1, "lower": 0, "upper": 100}
    for disclosure, numbers, name in (
        ("public", ("8 rows", "0.965", "2.2 %"), "../README.md"),
        ("private", ("17 rows", "2.26", "9 to 28 rows"), "start.md"),
    ):
        answer = str(
            ss.mean_bound(ROOT / "sample_data" / "shop_events.csv", **settings, disclosure=disclosure)
        )
        said = " ".join(answer.split())  # some spaces do not break
        assert all(number in said and number in texts[name] for number in numbers)
    assert "17 rows" in texts["../README.md"]
    assert all("8 rows" in texts[name] for name in ("start.md", "python.md"))


@pytest.mark.long_for("True-8 rows-0.965")
@pytest.mark.parametrize(
    ("is_public", "bound", "error"), [(True, "8 rows", "0.965"), (False, "17 rows", "2.26")]
)
def test_the_steps_of_readme_and_tutorial_lead_to_their_numbers(
    is_public: bool, bound: str, error: str
) -> None:
    app = driving.upload(driving.open_app("Data"), driving.SHOP_EVENTS, "shop_events.csv")
    (asked,) = [radio for radio in app.radio if "Are these data public?" in radio.label]
    assert asked.value is Disclosure.PRIVATE
    if is_public:
        asked.set_value(Disclosure.PUBLIC).run()
    driving.enter_range(driving.go(driving.use(app), "Mean"), 0, 100)
    shown = driving.shown_texts(app)
    assert f"Keep at most {bound} per user." in shown
    assert f"Error {error}" in shown


def test_what_the_readme_says_of_the_retailer_follows_from_the_law_of_the_noise() -> None:
    """The expected distance of a count that lacks b rows, under Laplace noise of scale s, is b + s exp(−b/s)."""
    histogram = samples.load("online-retail-lines").histogram
    rows = np.sort(np.repeat(histogram.sizes, histogram.users))
    usual, best = int(rows[int(np.ceil(0.95 * rows.size)) - 1]), 5_376  # the picture has the best bound

    def compute_error(bound: int) -> float:
        bias = float(np.maximum(rows - bound, 0).sum())
        return (bias + bound * np.exp(-bias / bound)) / float(rows.sum())

    assert compute_error(best) == pytest.approx(
        min(compute_error(bound) for bound in range(4_000, 8_000)), rel=1e-3
    )
    assert f"off by {compute_error(usual):.0%}".replace("%", " %") in " ".join(TEXTS["../README.md"].split())
    assert f"off by {compute_error(best):.1%}".replace("%", " %") in " ".join(TEXTS["../README.md"].split())
    assert compute_error(usual) / compute_error(best) == pytest.approx(12, abs=0.5)  # a twelfth


def list_commands() -> list[str]:
    """Return the lines of shell blocks, and the whole commands inside sentences."""
    lines = [line for _, block in list_blocks("sh") for line in block.splitlines()]
    return lines + [span for _, span in list_spans(r"(sweet-spot [\w-]+ \S|pip install)")]


@pytest.mark.long
@pytest.mark.usefixtures("_in_folder")
def test_every_command_runs(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """PostgreSQL's run here on DuckDB, with the same words; `make test-engines` has PostgreSQL itself."""
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    num_run = 0
    for line in list_commands():
        if runs_elsewhere(line) or "--hosted" in line:  # `test_a_class_is_served`
            continue
        if line.startswith("make "):
            assert line.split()[1] in targets, line
            continue
        matched = COMMAND.match(line)
        assert matched, f"no test runs {line!r}"
        words = shlex.split(line[matched.end() :].replace(POSTGRES, f"duckdb://{folder / 'shop.duckdb'}"))
        try:
            code = command.main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        output = capsys.readouterr()
        assert code == 0, (line, output.err)
        assert output.out or "--to" in words, line
        num_run += 1
    assert num_run >= 14


@pytest.mark.long
@pytest.mark.usefixtures("_in_folder")
def test_every_snippet_inside_a_sentence_runs() -> None:
    Path("histogram.csv").write_text("size,users\n1,30\n40,9\n", encoding="utf-8")
    settings = {"user": "user_id", "value": "amount", "epsilon": 1, "lower": 0, "upper": 100}
    events = pd.read_csv("events.csv")
    answer = ss.mean_bound("events.csv", **settings)
    names = {"ss": ss, "Path": Path, "tomllib": tomllib, "df": events, "events": events, "answer": answer}
    names |= {"settings": settings, "private_range": answer}
    num_run = 0
    for name, span in list_spans(r"(ss|answer|private_range)\.\w+\("):
        if not runs_elsewhere(span):
            assert eval(compile(span, name, "eval"), dict(names)) is not NotImplemented
            num_run += 1
    assert num_run >= 8


def ask(url: str, host: str, method: str = "GET") -> int:
    """Return the status of what the server answers to a request under this name."""
    request = urllib.request.Request(url, headers={"Host": host}, method=method)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            request, timeout=600
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.long
def test_a_class_is_served() -> None:
    """The command for a classroom and that of the container are one; its server answers the network's name alone."""
    (line,) = [line for _, block in list_blocks("sh") for line in block.splitlines() if "--hosted" in line]
    ((_, dockerfile),) = list_blocks("dockerfile")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    origin, program, *words = shlex.split(line.replace("8501", str(port)))
    address = origin.removeprefix("SWEETSPOT_ORIGINS=http://")
    container = json.loads(re.findall(r"^CMD (.+)$", dockerfile, re.MULTILINE)[0].replace("8501", str(port)))
    assert container == ["python", *words]
    assert program == ".venv/bin/python"
    assert words[:2] == ["-m", "dpcore"]
    # Tests may run as root, as whom it does not host.
    start = f"import os, sys; os.geteuid = lambda: 1; from dpcore.cli import launch; sys.exit(launch.main({words[2:]}))"
    environment = {**os.environ, "SWEETSPOT_ORIGINS": f"http://{address}"}
    with subprocess.Popen(
        [sys.executable, "-c", start],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            said = next((line for line in process.stdout if " is at " in line), "")
            assert f" is at http://127.0.0.1:{port} " in said
            (health,) = re.findall(r"HEALTHCHECK .*CMD python -c \"(.+)\"", dockerfile)
            assert (
                subprocess.run(
                    [sys.executable, "-c", health.replace("8501", str(port))], timeout=600
                ).returncode
                == 0
            )
            assert ask(f"http://127.0.0.1:{port}", address) == 200
            assert ask(f"http://127.0.0.1:{port}", f"evil.example:{port}") == 403
            assert ask(f"http://127.0.0.1:{port}", address, "POST") in (403, 405)
        finally:
            process.terminate()
            process.communicate(timeout=600)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="there is no nginx")
def test_nginx_takes_the_settings(tmp_path: Path) -> None:
    (_, server), (_, seats), (_, cookie) = list_blocks("nginx")
    for name in ("pem", "key"):
        server = server.replace(f"/etc/ssl/class.{name}", str(tmp_path / f"class.{name}"))
    key, certificate = ("-keyout", tmp_path / "class.key"), ("-out", tmp_path / "class.pem")
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=class",
        *key,
        *certificate,
    ]
    subprocess.run([*map(str, made)], check=True, capture_output=True)
    many = server.replace(
        "proxy_pass http://127.0.0.1:8501;", f"proxy_pass http://127.0.0.1:$seat;\n{cookie}"
    )
    for text in (server, f"{seats}\n{many}"):
        own = f"pid {tmp_path}/nginx.pid;\nerror_log {tmp_path}/error.log;\nevents {{}}\n"
        (tmp_path / "nginx.conf").write_text(f"{own}http {{ access_log off; {text} }}", encoding="utf-8")
        done = subprocess.run(
            ["nginx", "-t", "-c", str(tmp_path / "nginx.conf")], capture_output=True, text=True
        )
        assert "syntax is ok" in done.stderr, done.stderr  # it may lack a folder of the system's
