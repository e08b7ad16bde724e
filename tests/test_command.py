"""The command `sweet-spot`: the answers of the calls, their sentences, and nothing else on standard output."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import dpcore as ss
from dpcore import questions
from dpcore.cli import ask, command
from dpcore.common.checks import InvalidInput
from dpcore.counting.__main__ import main as count
from dpcore.data import samples

ROOT = Path(__file__).resolve().parent.parent
EVENTS = str(samples.FOLDER / "shop_events.csv")
MEAN = {"user": "user_id", "value": "amount", "epsilon": 1, "lower": 0, "upper": 100}
OPTIONS = [word for key, value in MEAN.items() for word in (f"--{key}", str(value))]


@pytest.fixture
def run(capsys):
    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = command.main([*map(str, arguments)])
        except SystemExit as ended:  # argparse ends the program itself
            code = int(ended.code or 0)
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


@pytest.mark.long
def test_a_file_of_any_kind_has_the_answer_of_the_call_and_nothing_else(run, tmp_path):
    answer = ss.mean_bound(EVENTS, **MEAN)
    assert "exact copies" in str(answer)
    frame = pd.read_csv(EVENTS)
    frame.to_parquet(tmp_path / "events.parquet", index=False)
    frame.to_excel(tmp_path / "events.xlsx", index=False)
    for file in (EVENTS, tmp_path / "events.parquet", tmp_path / "events.xlsx"):
        code, out, err = run("mean", file, *OPTIONS)
        rows = "row 1,060" if Path(file).suffix == ".parquet" else "line 1,061"
        assert (code, out, err) == (0, f"{answer}\n".replace("line 1,061", rows), "")
    code, out, err = run("mean", EVENTS, *OPTIONS, "--json")
    answer_json = json.loads(out)
    assert code == 0
    assert answer_json["choice"] == json.loads(answer.write_json())
    digits = [number.value for number in answer.answer.numbers if number.value is not None]
    assert [
        number["number"] for number in answer_json["answers"][0]["numbers"] if "number" in number
    ] == digits
    # Nobody said of what was entered beside private data that it was not read off them.
    assert set(answer_json["question"]["entered_beside_private_data"]) == {
        "counts",
        "epsilon",
        "likeness",
        "target",
        "upper",
    }
    assert "exact copies" in err
    mean_bound = ss.mean_bound(EVENTS, **{**MEAN, "lower": -1e3})
    assert run("mean", EVENTS, *OPTIONS, "--lower", "-1e3")[1] == f"{mean_bound}\n"
    code, out, err = run("mean", EVENTS, *OPTIONS, "--code", "opendp")
    assert (code, out) == (0, answer.code("opendp"))
    assert "The program is for: Bound" in err
    report = tmp_path / "report.html"
    code, out, err = run("mean", EVENTS, *OPTIONS, "--report", report)
    assert (code, out) == (0, f"{answer}\n")
    assert "do not publish" in err
    page = report.read_text(encoding="utf-8")
    assert page.count("<h1") == 1
    assert all(f"figure-{make().key}" in page for make in answer.plots.values())


def test_what_cannot_be_gets_the_sentences_of_the_call_all_at_once(run, tmp_path, monkeypatch):
    with pytest.raises(InvalidInput) as refused:
        ss.mean_bound(EVENTS, user="userid", lowr="", counts="privat", upper="x")
    command_line = ("mean", EVENTS, "--user", "userid", "--lowr", "3", "--counts", "privat", "--upper", "x")
    code, out, err = run(*command_line)
    assert (code, out) == (2, "")
    assert sorted(err.splitlines()) == sorted(str(refused.value).splitlines())
    assert len(err.splitlines()) >= 5
    code, out, err = run("quantile", EVENTS, "--epsilon", "-1")
    assert (code, out) == (2, "")
    for text in ("Epsilon must", "--user …"):
        assert text in err
    events = tmp_path / "events.csv"
    events.write_bytes(Path(EVENTS).read_bytes())
    code, _, err = run("mean", events, *OPTIONS, "--report", events)
    assert (code, events.read_bytes()) == (2, Path(EVENTS).read_bytes())
    assert "which is to be read" in err
    for wrong in (
        ("mean", EVENTS, "extra.csv", "--epsilon"),
        ("maen",),
        ("--epsilon", "1"),
        ("mean", "--json", "--code", "x"),
    ):
        assert run(*wrong)[:2] == (2, "")
    code, _, err = run("weights-gain", EVENTS, "--user", "user_id", "--epsilon", "1", "--code", "opendp")
    assert (code, "There is no program" in err) == (2, True)
    code, _, err = run("training", EVENTS, "--epsilon", "1", "--user", "user_id", "--ranges", "amount=0")
    assert (code, "--ranges must be like" in err) == (2, True)
    code, _, err = run("mean", EVENTS, *OPTIONS, "--report", tmp_path / "no folder" / "report.html")
    assert (code, "cannot be written" in err) == (1, True)

    def fails(*arguments):
        raise KeyError("s3cr3t")

    monkeypatch.setattr(ask.questions, "build_reply", fails)
    code, out, err = run("mean", EVENTS, *OPTIONS)
    assert (code, out) == (1, "")
    assert "nobody foresaw" in err
    assert "s3cr3t" not in err


@pytest.mark.long
def test_a_table_with_labels_is_trained_on_as_it_is_in_python(run):
    tickets = str(samples.FOLDER / "support_tickets.csv")
    settings = {"user": "customer", "label": "escalated", "features": ["words", "channel"], "epsilon": 1}
    short = {"runs": 2, "splits": 1, "pace": "entered", "steps": 2}
    answer = ss.training_bound(
        tickets, **settings, levels={"channel": ["email", "phone"]}, ranges={"words": (0, 400)}, **short
    )
    words = "--user customer --label escalated --features words --features channel --epsilon 1"
    text = "--levels channel=email,phone --ranges words=0,400 --runs 2 --splits 1 --pace entered --steps 2"
    assert run("training", tickets, *words.split(), *text.split())[:2] == (0, f"{answer}\n")
    code, out, err = run("training", tickets, *words.split())
    assert (code, out) == (2, "")
    for message in ("levels of column channel must be listed", "range of words is missing"):
        assert message in err


def test_a_file_of_settings_asks_the_same_and_options_overrule_it(run, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(
        'user = "user_id"\nvalue = "amount"\nepsilon = 1\nlines = [\n  "users",\n  "sum within 2%",\n]\n',
        encoding="utf-8",
    )
    settings = {"user": "user_id", "value": "amount", "lines": ["users", "sum within 2%"]}
    answer = ss.plan_bounds(EVENTS, **settings, epsilon=1)
    assert run("plan", file, EVENTS)[:2] == (0, f"{answer}\n")
    assert (
        run("plan", EVENTS, file, "--epsilon", "3")[1] == f"{ss.plan_bounds(EVENTS, **settings, epsilon=3)}\n"
    )
    code, out, err = run("plan", file)
    assert (code, out) == (2, "")
    assert "DATA" in err
    code, out, err = run("plan", file, file, EVENTS)
    assert (code, f"2 files of settings, and one is read: {file}, {file}." in err) == (2, True)
    text_before = file.read_text(encoding="utf-8")
    assert run("plan", file, EVENTS, "--report", file)[0] == 2
    assert file.read_text(encoding="utf-8") == text_before
    file.write_text(
        'usr = "user_id"\nepsilon = "one"\nlines = "rows; rows"\nmechanism = "loud"\n', encoding="utf-8"
    )
    code, out, err = run("plan", file, EVENTS)
    assert (code, out) == (2, "")
    for text in ("'usr'", "Mechanism must be one of", "--user …"):
        assert text in err


def test_a_bound_is_drawn_from_the_shell_and_nothing_else_of_the_data_is_written(run, tmp_path):
    learner = ("learning", EVENTS, "--user", "user_id", "--epsilon", "1", "--public-rows", "3000")
    code, out, _ = run(*learner, "--draw", "0.5", "--largest", "500")
    assert code == 0
    assert "the release adds ε = 1: ε = 1.5 in all" in out
    assert out.splitlines()[-1].startswith("DP release (epsilon = 0.5, add or remove one user")
    answer_json = json.loads(run(*learner, "--draw", "0.5", "--json")[1])
    assert answer_json["question"]["label"] == "public input"
    assert "epsilon = 0.5 (bound) + 1 (this" in run(*learner, "--draw", "0.5", "--code", "python")[1]
    for wrong, text in (
        ((*learner, "--draw", "0.5", "--report", tmp_path / "x.html"), "without --draw"),
        ((*learner, "--largest", "5"), "goes with --draw"),
        ((*learner[:-2], "--draw", "0.5"), "--public-rows …"),
        ((*learner, "--draw", "x"), "psilon of the draw"),
        (("mean", EVENTS, *OPTIONS, "--counts", "public", "--draw", "1"), "needs no draw"),
    ):
        code, out, err = run(*wrong)
        assert (code, out) == (2, "")
        assert text in err
    assert not (tmp_path / "x.html").exists()
    # Nor are the notes on the data; and a column is called what it is called.
    small_file = tmp_path / "few.csv"
    small_file.write_text("who,order_value (€)\na,1.5\na,1.5\n,2\nb,2\n", encoding="utf-8")
    few = (
        "sum",
        small_file,
        "--user",
        "who",
        "--value",
        "order_value (€)",
        "--epsilon",
        "1",
        "--highest-total",
        "9",
    )
    assert "without a user" in run(*few)[1]
    code, out, err = run(*few, "--draw", "1")
    assert (code, err) == (0, "")
    assert "total of order_value (€) at" in out


class Said(str):
    """An answer of which nothing but its text is read."""

    notes = ()


@pytest.mark.parametrize(
    ("called", "name"), [item for item in command.COMMANDS.items() if item[1] in questions.QUESTIONS]
)
def test_every_setting_of_every_call_is_an_option_and_help_fits_in_80_columns(run, monkeypatch, called, name):
    signature = inspect.signature(getattr(ss, name))
    settings = {one.name: one.default for one in signature.parameters.values() if one.name != "data"}
    code, out, err = run(called, "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) < 80
    assert "`" not in out
    for key in settings:
        assert len(re.findall(rf"^  --{key.replace('_', '-')}[ ,]", out, re.MULTILINE)) == 1, key
    # Each option takes the text of its default to the very parameters that it has by default.
    options = []
    monkeypatch.setattr(
        ask.questions, "build_reply", lambda *given: (options.append(given), Said("an answer"))[1]
    )
    words = []
    for key, default in settings.items():
        flag = f"--{key.replace('_', '-')}"
        if isinstance(default, bool):
            words.append(flag if default else f"--no-{flag[2:]}")
        elif default is not None:
            words += [flag, "1" if default is inspect.Parameter.empty else str(default)]
    assert run(called, EVENTS, *words)[:2] == (0, "an answer\n")
    ((_, paths, given),) = options
    assert paths == [EVENTS]
    for key, default in settings.items():
        if default is inspect.Parameter.empty:
            assert given[key] in (1, ["1"], "1")
        elif default is not None:
            assert given[key] == default, key
            assert type(given[key]) is type(default) or {type(given[key]), type(default)} == {int, float}


def test_counting_is_the_command_that_it_was(run, capsys):
    words = ["--from", EVENTS, "--user", "user_id"]
    assert count(words) == 0
    before = capsys.readouterr().out
    assert run("count", *words)[:2] == (0, before)
    code, out, _ = run("count", "--help")
    assert code == 0
    assert out.startswith("usage: sweet-spot count ")


def test_the_help_on_all_commands_comes_at_once():
    program = (
        "import sys\nfrom dpcore.cli import command\n"
        "try:\n    command.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print({'numpy', 'pandas', 'streamlit', 'plotly'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *lines, loaded = done.stdout.splitlines()
    assert loaded == "set()"
    assert max(map(len, lines)) < 80
    text = " ".join(" ".join(lines).split())
    for called, name in command.COMMANDS.items():
        assert f" {called} {inspect.getdoc(getattr(ss, name)).splitlines()[0]}" in text
    assert {*command.COMMANDS} >= {"mean", "sum", "quantile", "group", "learning", "owners"}
    assert sorted(command.COMMANDS.values()) == sorted([*questions.QUESTIONS, "select_range"])


def test_without_the_app_it_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    code, out, err = run()
    assert (code, out) == (1, "")
    assert "Install the extra `app`" in err


@pytest.mark.long
def test_a_library_that_lacks_the_form_gets_the_nearest_and_standard_error_says_so(run) -> None:
    answer = ss.quantile_bound(EVENTS, program="plain Python", **MEAN)
    smooth, bounded = answer.forms
    options = (*OPTIONS, "--program", "plain Python")
    code, out, err = run("quantile", EVENTS, *options, "--code", "opendp")
    assert (code, out) == (0, answer.code("opendp"))
    assert f"The program is for: {bounded}. The app also writes: {smooth}." in err
