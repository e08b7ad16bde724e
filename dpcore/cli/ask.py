"""One question from the shell: its options are those of the call in `dpcore`, with its words and its checks."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
import typing
import warnings
from pathlib import Path
from typing import Any

import dpcore
from dpcore import questions
from dpcore.cli import WIDTH
from dpcore.common.checks import Problems, refuse
from dpcore.common.text_fields import list_former_names, rename_former
from dpcore.counting.__main__ import refuse_to_overwrite
from dpcore.counting.files import expand_patterns
from dpcore.reply import LIBRARY_BY_NAME, Reply
from dpcore.report import script

DATA = "a table: CSV or other text, JSON Lines, Parquet or Excel; several files with the same columns are one"
SETTINGS = f"; a file *{script.SUFFIX} holds settings, which options overrule"
LABELLED = "a text table with a label and features in each row"
SEVERAL = ("user", "group", "features")
"""Arguments that several columns may be."""
BY_COLUMN = {"levels": "EMAIL,PHONE", "ranges": "0,400"}
"""Settings with an entry for each column, and what one may be."""
OF_GROUPS = ("unit", "highest_amount")
DRAW_OPTIONS = ("total_epsilon", "largest", "margin", *OF_GROUPS)
"""Options of a draw besides its epsilon, with the names of `dpcore.reply.Reply.draw`."""


class NotWrittenError(Exception):
    """The report could not be written; the message is a sentence."""


def ask(command: str, name: str, arguments: list[str]) -> None:
    """Ask a question with the arguments of a command line, and write the answer to standard output.

    Args:
        command: Name of the command.
        name: Name of the call of `dpcore`.
        arguments: The words behind the command.

    Raises:
        InvalidInput: Everything that is wrong.
        NotWrittenError: The report could not be written.
    """
    parser = _build_parser(command, name)
    arguments = _rename_former_options(name, _join_negative_numbers(arguments))
    options, unknown = parser.parse_known_args(arguments)
    settings = vars(options)
    paths, report = settings.pop("data"), settings.pop("report")
    as_json, library = settings.pop("json"), settings.pop("code")
    # Other calls have settings of these names.
    draw_options = ("draw", *DRAW_OPTIONS) if name in questions.SELECTABLE else ()
    draw_settings = {key: settings.pop(key) for key in draw_options if key in settings}
    if draw_settings:
        _check_draw(parser, draw_settings, report)
    if unknown and not unknown[0].startswith("--"):
        parser.error(f"unrecognized arguments: {unknown[0]}")
    # The call refuses unknown settings, and names the nearest; the words behind them are dropped.
    settings |= {
        word[2:].partition("=")[0].replace("-", "_"): "" for word in unknown if word.startswith("--")
    }
    settings |= {key: _parse_by_column(key, settings[key]) for key in BY_COLUMN if key in settings}
    paths = expand_patterns(paths)
    refuse_to_overwrite(paths, "--report", report)
    settings_paths = [path for path in paths if path.lower().endswith(script.SUFFIX)]
    paths = [path for path in paths if path not in settings_paths]
    data = inspect.signature(getattr(dpcore, name)).parameters["data"]
    if not paths and data.default is inspect.Parameter.empty:
        parser.error("the following arguments are required: DATA, beside the settings")
    if len(settings_paths) > 1:
        raise refuse(
            f"{' and '.join(settings_paths)} are {len(settings_paths)} files of settings, and one is read"
        )
    from_file = script.read_settings(settings_paths[0]) if settings_paths else {}
    settings = _rename_former(name, from_file) | _rename_former(name, settings)
    if draw_settings:
        reply: Reply = dpcore.select_privately(
            name, paths, settings, draw_settings.pop("draw", None), **draw_settings
        )
    else:
        reply = questions.reply_of(name, paths or None, settings)
    # A private selection has no notes: they would say more about the data than its epsilon covers.
    for note in reply.notes if as_json or library is not None else ():
        print(note, file=sys.stderr)
    if library is not None:
        sys.stdout.write(reply.code(library))
        _, written_form = reply.program(library)
        if other_forms := ", ".join(form for form in reply.forms if form != written_form):
            message = f"The program is for: {written_form}. The app also writes: {other_forms}."
            print(message, file=sys.stderr)
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


def _build_parser(command: str, name: str) -> argparse.ArgumentParser:
    """Build the parser of a question's command, with an option for each setting of the call."""
    call = getattr(dpcore, name)
    parameters, doc = dict(inspect.signature(call).parameters), inspect.getdoc(call) or ""
    descriptions = dict(re.findall(r"^    (\w+): (.*)$", doc.partition("\nReturns:")[0], flags=re.MULTILINE))
    hints = questions.types_of(name)
    is_optional = parameters.pop("data").default is None
    is_required = {key: parameter.default is parameter.empty for key, parameter in parameters.items()}
    data = f"[FILE.toml] {'[DATA ...]' if is_optional else 'DATA [DATA ...]'}"
    parser = argparse.ArgumentParser(
        prog=f"sweet-spot {command}",
        usage=_build_usage(command, data, is_required, hints),
        description=doc.partition("\n")[0],
        epilog=f"In a notebook: help(dpcore.{name}). Exit codes: 0 answered, 2 wrong input, 1 anything else.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=26, width=WIDTH),
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    help_on_data = (LABELLED if "label" in parameters else DATA) + SETTINGS
    number = "*" if is_optional else "+"
    parser.add_argument("data", nargs=number, metavar="DATA", help=help_on_data, default=[])
    for key, parameter in parameters.items():
        _add_setting(parser, key, parameter.default, hints.get(key), descriptions[key])
    if name in questions.SELECTABLE:
        _add_draw(parser, name)
    output = parser.add_argument_group("what is written").add_mutually_exclusive_group()
    report_help = "write an HTML report into this file, too"
    code_help = "the program that releases with this bound"
    output.add_argument(
        "--json", action="store_true", default=False, help="the whole answer (docs/report.md)"
    )
    output.add_argument("--report", type=Path, metavar="FILE", default=None, help=report_help)
    output.add_argument("--code", choices=LIBRARY_BY_NAME, default=None, help=code_help)
    return parser


def _add_draw(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options of a private draw of the bound, with the words of `Reply.draw`."""
    doc = (inspect.getdoc(Reply.draw) or "").partition("\nReturns:")[0]
    descriptions = dict(re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)$", doc, flags=re.MULTILINE))
    group = parser.add_argument_group(
        "a private draw", "The bound is drawn from the data with an ε of its own: it costs at every call."
    )
    group.add_argument(
        "--draw",
        type=_number,
        metavar="EPSILON",
        help="draw the bound with this epsilon, on top of that of the release; nothing else of the data is written",
    )
    for key in DRAW_OPTIONS:
        if (name == "group_bounds") or key not in OF_GROUPS:
            text = " ".join(descriptions[key].split()).rstrip(".").replace("%", "%%")
            group.add_argument(_flag(key), type=_number, metavar="NUMBER", help=text)


def _check_draw(parser: argparse.ArgumentParser, settings: dict[str, Any], report: Path | None) -> None:
    """End the program with a message if options of a draw lack its epsilon, or go with a report."""
    if not {"draw", "total_epsilon"} & settings.keys():
        parser.error(f"{_flag(next(iter(settings)))} goes with --draw or --total-epsilon")
    if report is not None:
        parser.error("--report shows the data, which a drawn bound does not: ask for it without --draw")


def _join_negative_numbers(arguments: list[str]) -> list[str]:
    """Join negative numbers to their options: argparse takes -1e3 for an option."""
    words: list[str] = []
    for word in arguments:
        if re.match(r"-\.?\d", word) and words and words[-1].startswith("--") and "=" not in words[-1]:
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


def _rename_former_options(name: str, arguments: list[str]) -> list[str]:
    """Return the arguments with today's names of options; a line on standard error names each renamed one."""
    flags = {
        _flag(former): _flag(key) for former, key in list_former_names(questions.parameters_of(name)).items()
    }
    words = []
    for word in arguments:
        option, equals, value = word.partition("=")
        if option in flags:
            print(f"{option} is now called {flags[option]}.", file=sys.stderr)
        words.append(flags.get(option, option) + equals + value)
    return words


def _rename_former(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings under today's names and values; a line on standard error says which were renamed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        renamed = rename_former(name, questions.parameters_of(name), settings)
    for warning in caught:
        print(f"{warning.message}.", file=sys.stderr)
    return renamed


def _build_usage(command: str, data: str, is_required: dict[str, bool], hints: dict[str, Any]) -> str:
    """Write the usage of a command in lines, with required options and those of columns."""
    words = [data]
    for key, required in is_required.items():
        option = f"{_flag(key)} {_metavar(hints.get(key))}"
        words += (
            [option] if required else [f"[{option}]"] if key in ("user", "value", "group", "label") else []
        )
    usage = " ".join((f"sweet-spot {command}", *(word.replace(" ", "\0") for word in words), "[settings]"))
    indent = " " * len("usage: sweet-spot ")
    lines = textwrap.fill(usage, WIDTH - len("usage: "), subsequent_indent=indent, break_on_hyphens=False)
    return f"{lines}\n{indent}[--json | --report FILE | --code LIBRARY]".replace("\0", " ")


def _parse_by_column(key: str, words: list[str]) -> dict[str, list[Any]]:
    """Return the entries of each column by its name, parsed from texts like ``column=entry,entry``."""
    by_column = {}
    with Problems() as problems:
        for word in words:
            column, _, text = word.rpartition("=")
            entries = [_number(entry) if key == "ranges" else entry for entry in text.split(",")]
            if not column or (
                key == "ranges" and (len(entries) != 2 or any(isinstance(entry, str) for entry in entries))
            ):
                problems.add(f"{_flag(key)} must be like COLUMN={BY_COLUMN[key]}; got {word[:60]!r}")
            by_column[column] = entries
    return by_column


def _flag(key: str) -> str:
    """Return the option of a setting, such as ``--total-epsilon``."""
    return f"--{key.replace('_', '-')}"


def _types(hint: Any) -> tuple[Any, ...]:
    """Return the types of an annotation, without None."""
    return tuple(option for option in typing.get_args(hint) or (hint,) if option is not type(None))


def _metavar(hint: Any) -> str:
    """Return the word that stands for the value of an option in the help."""
    types = _types(hint)
    if hint is None:
        return "COLUMN"
    return "NUMBER" if int in types or float in types else "TEXT" if str in types else "NAME"


def _add_setting(
    parser: argparse.ArgumentParser, key: str, default: Any, hint: Any, description: str
) -> None:
    """Add the option of one setting to the parser, with its help text."""
    text = re.sub(r"``?([^`]+)``?", r"\1", description).rstrip(".").replace("%", "%%")
    if default not in (None, inspect.Parameter.empty, ""):
        text += f" (default {'yes' if default is True else 'no' if default is False else default})"
    types = _types(hint)
    if bool in types:
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
        is_number = int in types or float in types
        parser.add_argument(_flag(key), type=_number if is_number else str, metavar=_metavar(hint), help=text)


def _number(text: str) -> Any:
    """Convert a text to an integer or a float; other text stays as it is, for the question to refuse."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
