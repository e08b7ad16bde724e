"""One question from the shell: its options are those of the call in `dpcore`, with its words and its checks."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
import typing
from pathlib import Path
from typing import Any

import dpcore
from dpcore import questions
from dpcore.common.checks import Problems
from dpcore.common.errors import refuse
from dpcore.counting.__main__ import refuse_to_overwrite
from dpcore.reply import LIBRARIES, Reply
from dpcore.report import settings_file
from sweet_spot.command import WIDTH

DATA = (
    "a table as the app takes it: CSV or other text, JSON Lines, Parquet or Excel; several files with the same columns "
    "are one table"
)
SETTINGS = f"; a file *{settings_file.SUFFIX} holds settings by the names below, which options overrule"


LABELLED = "a text table with a label and features in each row"
SEVERAL = ("user", "group", "features")
"""Arguments that several columns may be."""
BY_COLUMN = {"levels": "EMAIL,PHONE", "ranges": "0,400"}
"""Settings with an entry for each column, and what one may be."""


OF_GROUPS = ("unit", "highest_amount")
BESIDE_A_DRAW = ("largest", "margin", *OF_GROUPS)
"""Options of a draw beside its epsilon, called as `dpcore.reply.Reply.draw` calls them."""


class NotWrittenError(Exception):
    """The report could not be written; the message is a sentence."""


def ask(command: str, name: str, arguments: list[str]) -> None:
    """Ask a question as a command line says, and write the answer to standard output.

    Args:
        command: What it is called there.
        name: The call of `dpcore`.
        arguments: What follows it.

    Raises:
        InvalidInput: Everything that is wrong.
        NotWrittenError: The report could not be written.
    """
    parser = _parser(command, name)
    given, unknown = parser.parse_known_args(_joined(arguments))
    settings = vars(given)
    paths, report = settings.pop("data"), settings.pop("report")
    as_json, library = settings.pop("json"), settings.pop("code")
    # Other calls have settings of these names.
    beside = ("draw", *BESIDE_A_DRAW) if name in questions.SELECTABLE else ()
    to_draw = {key: settings.pop(key) for key in beside if key in settings}
    if to_draw:
        _check_draw(parser, to_draw, report)
    if unknown and not unknown[0].startswith("--"):
        parser.error(f"unrecognized arguments: {unknown[0]}")
    # The call says which setting may be meant; what stands behind it goes with it.
    settings |= {
        word[2:].partition("=")[0].replace("-", "_"): "" for word in unknown if word.startswith("--")
    }
    settings |= {key: _by_column(key, settings[key]) for key in BY_COLUMN if key in settings}
    refuse_to_overwrite(paths, "--report", report)
    held = [path for path in paths if path.lower().endswith(settings_file.SUFFIX)]
    paths = [path for path in paths if path not in held]
    if (
        not paths
        and inspect.signature(getattr(dpcore, name)).parameters["data"].default is inspect.Parameter.empty
    ):
        parser.error("the following arguments are required: DATA, beside the settings")
    settings = _held(held) | settings
    if to_draw:
        reply: Reply = dpcore.select_privately(name, paths, settings, to_draw.pop("draw"), **to_draw)
    else:
        reply = questions.reply_of(name, paths or None, settings)
    # A draw has no notes: they tell of the data more than its epsilon covers.
    for note in () if reply.data is None else reply.data.notes:
        print(note, file=sys.stderr)
    if library is not None:
        sys.stdout.write(reply.code(library))
        _, written_form = reply.program(library)
        first, *_ = reply.forms
        if written_form != first:
            print(f"{library} has no program for: {first}.", file=sys.stderr)
        if others := [form for form in reply.forms if form != written_form]:
            print(
                f"The program is for: {written_form}. The app also writes: {', '.join(others)}.",
                file=sys.stderr,
            )
    elif as_json:
        sys.stdout.write(reply.to_json())
    else:
        print(reply)
        if report is not None:
            try:
                reply.report(report)
            except OSError as error:
                raise NotWrittenError(f"{report} cannot be written: {error.strerror}.") from None
            print(f"The report is in {report} ({reply.disclosure.label}).", file=sys.stderr)
    sys.stdout.flush()


def _parser(command: str, name: str) -> argparse.ArgumentParser:
    call = getattr(dpcore, name)
    signature, doc = inspect.signature(call), inspect.getdoc(call) or ""
    told = dict(re.findall(r"^    (\w+): (.*)$", doc.partition("\nReturns:")[0], flags=re.MULTILINE))
    hints = questions.types_of(name)
    asked = {one.name: one for one in signature.parameters.values() if one.name != "data"}
    must = {key: one.default is one.empty for key, one in asked.items()}
    optional = signature.parameters["data"].default is None
    parser = argparse.ArgumentParser(
        prog=f"sweet-spot {command}",
        usage=_usage(command, f"[FILE.toml] {'[DATA ...]' if optional else 'DATA [DATA ...]'}", must, hints),
        description=doc.partition("\n")[0],
        epilog="The same question in a notebook: help(dpcore."
        + name
        + "). Exit codes: 0 answered, 2 input that cannot "
        "be, 1 anything else.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=26, width=WIDTH),
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    of = LABELLED if "label" in asked else DATA
    parser.add_argument(
        "data", nargs="*" if optional else "+", metavar="DATA", help=of + SETTINGS, default=[]
    )
    for key, one in asked.items():
        _add(parser, key, one.default, hints.get(key), told[key])
    if name in questions.SELECTABLE:
        _add_draw(parser, name)
    written = parser.add_argument_group("what is written").add_mutually_exclusive_group()
    written.add_argument(
        "--json", action="store_true", default=False, help="the whole answer as JSON (docs/report.md)"
    )
    written.add_argument(
        "--report", type=Path, metavar="FILE", default=None, help="write a report as HTML into this file, too"
    )
    written.add_argument(
        "--code", choices=LIBRARIES, default=None, help="the program that releases with this bound"
    )
    return parser


def _held(paths: list[str]) -> dict[str, Any]:
    """The settings in a file."""
    if len(paths) > 1:
        raise refuse(f"{' and '.join(paths)} are {len(paths)} files of settings, and one is read")
    return settings_file.read_settings(paths[0]) if paths else {}


def _add_draw(parser: argparse.ArgumentParser, name: str) -> None:
    """The options of a private draw of the bound, with the words of `Reply.draw`."""
    doc = inspect.getdoc(Reply.draw) or ""
    told = dict(
        re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)$", doc.partition("\nReturns:")[0], flags=re.MULTILINE)
    )
    of = parser.add_argument_group(
        "a private draw",
        "The bound is drawn from the data with an ε of its own, a release: it costs at every call.",
    )
    of.add_argument(
        "--draw",
        type=_number,
        metavar="EPSILON",
        default=argparse.SUPPRESS,
        help="draw the bound with this epsilon, on top of that of the release; nothing else of the data is written, no "
        "notes on them either",
    )
    for key in BESIDE_A_DRAW:
        if (name == "group_bounds") or key not in OF_GROUPS:
            text = " ".join(told[key].split()).rstrip(".").replace("%", "%%")
            of.add_argument(_flag(key), type=_number, metavar="NUMBER", default=argparse.SUPPRESS, help=text)


def _check_draw(parser: argparse.ArgumentParser, to_draw: dict[str, Any], report: Path | None) -> None:
    if "draw" not in to_draw:
        parser.error(f"{_flag(next(iter(to_draw)))} goes with --draw")
    if report is not None:
        parser.error(
            "--report shows the data, which a bound that is drawn does not: ask for it without --draw"
        )


def _joined(arguments: list[str]) -> list[str]:
    """The words with negative numbers joined to their options: argparse takes -1e3 for an option."""
    found: list[str] = []
    for word in arguments:
        if re.match(r"-\.?\d", word) and found and found[-1].startswith("--") and "=" not in found[-1]:
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _usage(command: str, data: str, must: dict[str, bool], hints: dict[str, Any]) -> str:
    words = [data]
    for key, said in must.items():
        option = f"{_flag(key)} {_metavar(hints.get(key))}"
        words += [option] if said else [f"[{option}]"] if key in ("user", "value", "group", "label") else []
    whole = " ".join((f"sweet-spot {command}", *(word.replace(" ", "\0") for word in words), "[settings]"))
    indent = " " * len("usage: sweet-spot ")
    lines = textwrap.fill(whole, WIDTH - len("usage: "), subsequent_indent=indent, break_on_hyphens=False)
    return f"{lines}\n{indent}[--json | --report FILE | --code LIBRARY]".replace("\0", " ")


def _by_column(key: str, words: list[str]) -> dict[str, list[Any]]:
    """What is said of columns: ``column=entry,entry``."""
    found = {}
    with Problems() as problems:
        for word in words:
            column, _, text = word.rpartition("=")
            entries = [_number(entry) if key == "ranges" else entry for entry in text.split(",")]
            if not column or (
                key == "ranges" and (len(entries) != 2 or any(isinstance(entry, str) for entry in entries))
            ):
                problems.add(f"{_flag(key)} must be like COLUMN={BY_COLUMN[key]}; got {word[:60]!r}")
            found[column] = entries
    return found


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _kinds(hint: Any) -> tuple[Any, ...]:
    return tuple(one for one in typing.get_args(hint) or (hint,) if one is not type(None))


def _metavar(hint: Any) -> str:
    kinds = _kinds(hint)
    if hint is None:
        return "COLUMN"
    return "NUMBER" if int in kinds or float in kinds else "TEXT" if str in kinds else "NAME"


def _add(parser: argparse.ArgumentParser, key: str, default: Any, hint: Any, told: str) -> None:
    """The option of one setting."""
    text = re.sub(r"``?([^`]+)``?", r"\1", told).rstrip(".").replace("%", "%%")
    if default not in (None, inspect.Parameter.empty, ""):
        text += f" (default {'yes' if default is True else 'no' if default is False else default})"
    kinds = _kinds(hint)
    if bool in kinds:
        parser.add_argument(_flag(key), action=argparse.BooleanOptionalAction, help=text)
    elif key in BY_COLUMN:
        parser.add_argument(
            _flag(key), action="append", metavar=f"COLUMN={BY_COLUMN[key]}", help=f"{text}: again for each"
        )
    elif key in SEVERAL:
        parser.add_argument(_flag(key), action="append", metavar="COLUMN", help=f"{text}: again for each")
    elif key == "disclosure":
        # A release brings its facts along as an object, which no command line can hold.
        text = text.replace(", or the facts of a DP release", "")
        parser.add_argument(_flag(key), choices=["private", "public"], help=text)
    else:
        number = int in kinds or float in kinds
        parser.add_argument(_flag(key), type=_number if number else str, metavar=_metavar(hint), help=text)


def _number(text: str) -> Any:
    """The number; what is none stays as it is, and the question says so in its own words."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
