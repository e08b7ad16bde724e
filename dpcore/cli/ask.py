"""One question from the shell: its options are those of the call in `dpcore`, with its words and its checks."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
import typing
import warnings
from collections.abc import Callable
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
from dpcore.report import settings_file

DATA_HELP = (
    "a table: CSV or other text, JSON Lines, Parquet or Excel; several files with the same columns are one"
)
SETTINGS_HELP = f"; a file *{settings_file.SETTINGS_SUFFIX} holds settings, which options overrule"
LABELLED_HELP = "a text table with a label and features in each row"
SEVERAL_COLUMN_ARGUMENTS = ("user", "group", "features")
"""Arguments that several columns may be."""
EXAMPLES_BY_SETTING = {"levels": "EMAIL,PHONE", "ranges": "0,400"}
"""Settings with an entry for each column, and what one may be."""
GROUP_DRAW_OPTIONS = ("unit", "highest_amount")
DRAW_OPTIONS = ("total_epsilon", "largest", "margin", *GROUP_DRAW_OPTIONS)
"""Options of a draw besides its epsilon, with the names of `dpcore.reply.Reply.draw`."""


class NotWrittenError(Exception):
    """The report could not be written; the message is a sentence."""


def ask(command: str, call_name: str, arguments: list[str]) -> None:
    """Run the command of a question and write what it asks for: the answer, its JSON or its program, and a report.

    Answer, JSON and program go to standard output, the report to the file that ``--report`` names.

    Args:
        command: Name of the command.
        call_name: Name of the call of `dpcore`.
        arguments: The words behind the command.

    Raises:
        InvalidInput: Everything that is wrong.
        NotWrittenError: The report could not be written.
    """
    parser = _build_parser(command, call_name)
    arguments = _rename_former_options(call_name, _join_negative_numbers(arguments))
    parsed_arguments, unknown_words = parser.parse_known_args(arguments)
    settings = vars(parsed_arguments)
    data_paths, report_path = settings.pop("data"), settings.pop("report")
    writes_json, program_library_name = settings.pop("json"), settings.pop("code")
    # Other calls have settings of these names.
    draw_option_names = ("draw", *DRAW_OPTIONS) if call_name in questions.SELECTABLE_CALLS else ()
    draw_settings = {key: settings.pop(key) for key in draw_option_names if key in settings}
    if draw_settings or call_name not in questions.QUESTIONS:
        _check_draw(parser, draw_settings or {"draw": None}, report_path)
    if unknown_words and not unknown_words[0].startswith("--"):
        parser.error(f"unrecognized arguments: {unknown_words[0]}")
    # The call refuses unknown settings, and names the nearest; the words behind them are dropped.
    unknown_options = [word[2:].partition("=")[0] for word in unknown_words if word.startswith("--")]
    settings |= {unknown_option.replace("-", "_"): "" for unknown_option in unknown_options}
    settings |= {key: _parse_by_column(key, settings[key]) for key in EXAMPLES_BY_SETTING if key in settings}
    data_paths = expand_patterns(data_paths)
    refuse_to_overwrite(data_paths, "--report", report_path)
    settings_paths = [path for path in data_paths if path.lower().endswith(settings_file.SETTINGS_SUFFIX)]
    data_paths = [path for path in data_paths if path not in settings_paths]
    data_parameter = inspect.signature(getattr(dpcore, call_name)).parameters["data"]
    if not data_paths and data_parameter.default is inspect.Parameter.empty:
        parser.error("the following arguments are required: DATA, beside the settings")
    if (num_files := len(settings_paths)) > 1:
        raise refuse(f"there are {num_files} files of settings, and one is read: {', '.join(settings_paths)}")
    file_settings = settings_file.read_settings(settings_paths[0]) if settings_paths else {}
    settings = _rename_settings(call_name, file_settings) | _rename_settings(call_name, settings)
    if call_name not in questions.QUESTIONS:
        call_parameters = _list_parameters(getattr(dpcore, call_name))
        if unknown_names := settings.keys() - call_parameters.keys():
            raise refuse(f"there is no setting {min(unknown_names)[:40]!r} of {call_name}")
        # The call refuses what is missing in its own words.
        required_settings_as_none = {key: None for key, p in call_parameters.items() if p.default is p.empty}
        required_settings_as_none.pop("data")
        reply: Reply = getattr(dpcore, call_name)(data_paths, **required_settings_as_none | settings)
    elif draw_settings:
        draw_epsilon = draw_settings.pop("draw", None)
        reply = dpcore.select_privately(call_name, data_paths, settings, draw_epsilon, **draw_settings)
    else:
        reply = questions.build_reply(call_name, data_paths or None, settings)
    # A private selection has no notes: they would say more about the data than its epsilon covers.
    for note in reply.notes if writes_json or program_library_name is not None else ():
        print(note, file=sys.stderr)
    if program_library_name is not None:
        sys.stdout.write(reply.code(program_library_name))
        _, written_form_name = reply.program(program_library_name)
        if other_form_names := [form_name for form_name in reply.forms if form_name != written_form_name]:
            other_forms_text = ", ".join(other_form_names)
            message = f"The program is for: {written_form_name}. The app also writes: {other_forms_text}."
            print(message, file=sys.stderr)
    elif writes_json:
        sys.stdout.write(reply.to_json())
    else:
        print(reply)
        if report_path is not None:
            try:
                reply.report(report_path)
            except OSError as error:
                raise NotWrittenError(f"{report_path} cannot be written: {error.strerror}.") from None
            print(f"The report is in {report_path} ({reply.disclosure.label}).", file=sys.stderr)
    sys.stdout.flush()


def _list_parameters(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """List the named parameters of a call, by name."""
    parameters = inspect.signature(call).parameters
    return {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    }


def _build_parser(command: str, call_name: str) -> argparse.ArgumentParser:
    """Build the parser of a question's command: data, an option for each setting of the call, forms of output."""
    call = getattr(dpcore, call_name)
    call_parameters, call_docstring = _list_parameters(call), inspect.getdoc(call) or ""
    call_parameters.pop("charge", None)
    arguments_text = call_docstring.partition("\nReturns:")[0]
    descriptions_by_setting = dict(re.findall(r"^    (\w+): (.*)$", arguments_text, flags=re.MULTILINE))
    if call_name in questions.QUESTIONS:
        types_by_setting = questions.find_setting_types(call_name)
    else:
        hints = typing.get_type_hints(call)
        types_by_setting = {key: hints[key] for key in call_parameters.keys() - {"data", "user", "value"}}
    is_data_optional = call_parameters.pop("data").default is None
    is_required_by_setting = {key: p.default is p.empty for key, p in call_parameters.items()}
    data_usage = f"[FILE.toml] {'[DATA ...]' if is_data_optional else 'DATA [DATA ...]'}"
    parser = argparse.ArgumentParser(
        prog=f"sweet-spot {command}",
        usage=_build_usage(command, data_usage, is_required_by_setting, types_by_setting),
        description=call_docstring.partition("\n")[0],
        epilog=f"In a notebook: help(dpcore.{call_name}). Exit codes: 0 answered, 2 wrong input, 1 anything else.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=26, width=WIDTH),
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    data_help = (LABELLED_HELP if "label" in call_parameters else DATA_HELP) + SETTINGS_HELP
    data_nargs = "*" if is_data_optional else "+"
    parser.add_argument("data", nargs=data_nargs, metavar="DATA", help=data_help, default=[])
    for key, parameter in call_parameters.items():
        _add_setting(parser, key, parameter.default, types_by_setting.get(key), descriptions_by_setting[key])
    if call_name in questions.SELECTABLE_CALLS:
        _add_draw_options(parser, call_name)
    output_group = parser.add_argument_group("what is written").add_mutually_exclusive_group()
    report_help = "write an HTML report into this file, too"
    code_help = "the program that releases with this bound"
    json_help = "the whole answer (docs/report.md)"
    output_group.add_argument("--json", action="store_true", default=False, help=json_help)
    output_group.add_argument("--report", type=Path, metavar="FILE", default=None, help=report_help)
    output_group.add_argument("--code", choices=LIBRARY_BY_NAME, default=None, help=code_help)
    return parser


def _add_draw_options(parser: argparse.ArgumentParser, call_name: str) -> None:
    """Add the options of a private draw of the bound, described as in `Reply.draw`."""
    draw_docstring = (inspect.getdoc(Reply.draw) or "").partition("\nReturns:")[0]
    help_by_option = dict(re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)$", draw_docstring, flags=re.MULTILINE))
    group_help = "The bound is drawn from the data with an ε of its own: it costs at every call."
    draw_help = (
        "draw the bound with this epsilon, on top of that of the release; nothing else of the data is written"
    )
    draw_group = parser.add_argument_group("a private draw", group_help)
    draw_group.add_argument("--draw", type=_parse_number, metavar="EPSILON", help=draw_help)
    for option_name in DRAW_OPTIONS:
        if (call_name == "group_bounds") or option_name not in GROUP_DRAW_OPTIONS:
            help_text = " ".join(help_by_option[option_name].split()).rstrip(".").replace("%", "%%")
            draw_group.add_argument(
                _write_flag(option_name), type=_parse_number, metavar="NUMBER", help=help_text
            )


def _check_draw(parser: argparse.ArgumentParser, options: dict[str, Any], report_path: Path | None) -> None:
    """End the program with a message if options of a draw lack its epsilon, or come with ``--report``."""
    if not {"draw", "total_epsilon"} & options.keys():
        parser.error(f"{_write_flag(next(iter(options)))} goes with --draw or --total-epsilon")
    if report_path is not None:
        parser.error("--report shows the data, which a draw does not: ask for an answer without --draw")


def _join_negative_numbers(arguments: list[str]) -> list[str]:
    """Return the words with each negative number joined to its option by ``=``.

    Otherwise argparse takes -1e3 for an option.
    """
    words: list[str] = []
    for argument in arguments:
        if re.match(r"-\.?\d", argument) and words and words[-1].startswith("--") and "=" not in words[-1]:
            words[-1] += f"={argument}"
        else:
            words.append(argument)
    return words


def _rename_former_options(call_name: str, arguments: list[str]) -> list[str]:
    """Return the arguments with today's names of options.

    One line on standard error for each renamed option.
    """
    if call_name not in questions.QUESTIONS:
        return arguments
    former_and_current_names = list_former_names(questions.find_parameters_type(call_name)).items()
    flags_by_former_flag = {
        _write_flag(former): _write_flag(current_name) for former, current_name in former_and_current_names
    }
    renamed_words = []
    for argument in arguments:
        option_flag, equals_sign, value_text = argument.partition("=")
        if option_flag in flags_by_former_flag:
            print(f"{option_flag} is now called {flags_by_former_flag[option_flag]}.", file=sys.stderr)
        renamed_words.append(flags_by_former_flag.get(option_flag, option_flag) + equals_sign + value_text)
    return renamed_words


def _rename_settings(call_name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings under today's names and values; one line on standard error for each renamed one."""
    if call_name not in questions.QUESTIONS:
        return settings
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        current_settings_by_name = rename_former(
            call_name, questions.find_parameters_type(call_name), settings
        )
    for caught_warning in caught_warnings:
        print(f"{caught_warning.message}.", file=sys.stderr)
    return current_settings_by_name


def _build_usage(
    command: str, data_usage: str, is_required_by_setting: dict[str, bool], types_by_setting: dict[str, Any]
) -> str:
    """Write the usage text: data, options that are required or name columns, and the forms of output.

    Optional ones stand in brackets.
    """
    usage_parts = [f"sweet-spot {command}", data_usage.replace(" ", "\0")]
    for setting_name, is_required in is_required_by_setting.items():
        if is_required or setting_name in ("user", "value", "group", "label"):
            option_usage = (
                f"{_write_flag(setting_name)}\0{_choose_metavar(types_by_setting.get(setting_name))}"
            )
            usage_parts.append(option_usage if is_required else f"[{option_usage}]")
    usage_line = " ".join((*usage_parts, "[settings]"))
    indent_text = " " * len("usage: sweet-spot ")
    usage_width = WIDTH - len("usage: ")
    usage_text = textwrap.fill(usage_line, usage_width, subsequent_indent=indent_text, break_on_hyphens=False)
    return f"{usage_text}\n{indent_text}[--json | --report FILE | --code LIBRARY]".replace("\0", " ")


def _parse_by_column(setting_name: str, column_words: list[str]) -> dict[str, list[Any]]:
    """Parse words like ``column=entry,entry``; return the entries of each column by its name.

    Those of ``ranges`` are two numbers, others are texts. All malformed words are refused at once.
    """
    entries_by_column = {}
    with Problems() as problems:
        for word in column_words:
            column, _, entries_text = word.rpartition("=")
            entry_texts, are_ranges = entries_text.split(","), setting_name == "ranges"
            entries = [_parse_number(entry_text) for entry_text in entry_texts] if are_ranges else []
            if not column or (
                are_ranges and [isinstance(number, str) for number in entries] != [False, False]
            ):
                example_text = f"COLUMN={EXAMPLES_BY_SETTING[setting_name]}"
                problems.add(f"{_write_flag(setting_name)} must be like {example_text}; got {word[:60]!r}")
            entries_by_column[column] = entries if are_ranges else entry_texts
    return entries_by_column


def _write_flag(setting_name: str) -> str:
    """Return the command's option for a setting, such as ``--total-epsilon``."""
    return f"--{setting_name.replace('_', '-')}"


def _list_types(type_hint: Any) -> tuple[Any, ...]:
    """Return the types that an annotation allows, without None."""
    allowed_types = typing.get_args(type_hint) or (type_hint,)
    return tuple(allowed_type for allowed_type in allowed_types if allowed_type is not type(None))


def _choose_metavar(type_hint: Any) -> str:
    """Return the word for an option's value in the help, such as NUMBER; COLUMN without an annotation."""
    types = _list_types(type_hint)
    if type_hint is None:
        return "COLUMN"
    if str in types and float in types:
        return "drop|NUMBER"
    return "NUMBER" if int in types or float in types else "TEXT" if str in types else "NAME"


def _add_setting(
    parser: argparse.ArgumentParser, setting_name: str, default: Any, setting_type: Any, description: str
) -> None:
    """Add the option of one setting to the parser, with its help text."""
    help_text = re.sub(r"``?([^`]+)``?", r"\1", description).rstrip(".").replace("%", "%%")
    if default not in (None, inspect.Parameter.empty, ""):
        help_text += f" (default {'yes' if default is True else 'no' if default is False else default})"
    allowed_types, flag = _list_types(setting_type), _write_flag(setting_name)
    if bool in allowed_types:
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=help_text)
    elif setting_name in (*EXAMPLES_BY_SETTING, *SEVERAL_COLUMN_ARGUMENTS):
        example_text = EXAMPLES_BY_SETTING.get(setting_name)
        metavar = f"COLUMN={example_text}" if example_text else "COLUMN"
        parser.add_argument(flag, action="append", metavar=metavar, help=f"{help_text}: again for each")
    elif setting_name == "disclosure":
        # A release brings its facts along as an object, which no command line can hold.
        help_text = help_text.replace(", or the facts of a DP release", "")
        parser.add_argument(flag, choices=["private", "public"], help=help_text)
    elif setting_name == "groups":
        parser.add_argument(flag, type=Path, metavar="FILE", help=help_text)
    else:
        parse_word = _parse_number if int in allowed_types or float in allowed_types else str
        parser.add_argument(flag, type=parse_word, metavar=_choose_metavar(setting_type), help=help_text)


def _parse_number(word: str) -> Any:
    """Convert a text to an integer, else to a float, else return it as it is.

    The question refuses what is no number.
    """
    for number_type in (int, float):
        try:
            return number_type(word)
        except ValueError:
            continue
    return word
