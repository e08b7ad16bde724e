"""The command ``sweet-spot``: the app, the questions of `dpcore.questions`, and counting.

Exit codes: 0 where it did what was asked, 2 for input that cannot be (sentences on standard error), 1 for everything
else. Standard output holds the answer alone.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.util
import os
import re
import sys
import textwrap
from pathlib import Path

import dpcore
from dpcore import questions
from dpcore.cli import WIDTH
from dpcore.common.checks import InvalidInput, describe_error

_NO_APP_MESSAGE = (
    "The app is not installed here, only the core. Install the extra `app` as well: "
    "pip install '.[app]' in a checkout, or pip install '<wheel>[app]'."
)


COMMANDS = {questions.name_command(name): name for name in questions.QUESTIONS} | {"range": "select_range"}
"""Command to the call of `dpcore`."""


def run() -> int:
    """Run `main` with a garbage collector that seldom runs; return the exit code.

    The collector would look through all imports again and again, and once more at the end. The mean of a million rows
    took 2.0 seconds of processor time, 0.35 of them for that.
    """
    gc.set_threshold(50_000, 20, 100)
    try:
        return main()
    finally:
        gc.freeze()


def main(arguments: list[str] | None = None) -> int:
    """Run the command that the arguments name, or start the app if there is none; return the exit code."""
    first_word, *remaining_words = (sys.argv[1:] if arguments is None else arguments) or [""]
    try:
        if first_word in {"", "--no-token", "--port", "--hosted"}:
            return _start_app([first_word, *remaining_words] if first_word else [])
        if arguments is None and (first_word == "count" or first_word in COMMANDS):
            from dpcore.counting.__main__ import end_on_signals

            end_on_signals()
        if first_word == "count":
            from dpcore.counting.__main__ import main as count

            return count(remaining_words, "sweet-spot count")
        if first_word in COMMANDS:
            return _ask(first_word, remaining_words)
        return _print_help([first_word, *remaining_words])
    except BrokenPipeError:  # Whoever reads the answer has enough of it; Python must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _start_app(arguments: list[str]) -> int:
    """Start the app and serve it until it is stopped; return the exit code, 1 if Streamlit is missing."""
    from dpcore.cli import launch

    if importlib.util.find_spec("streamlit") is None:
        print(_NO_APP_MESSAGE, file=sys.stderr)
        return 1
    return launch.main(arguments)


def _ask(command_name: str, command_arguments: list[str]) -> int:
    """Run a question's command and write errors as sentences to standard error.

    Return the exit code: 0, 2 for wrong input, 1 for anything else.
    """
    from dpcore.cli import ask

    try:
        ask.ask(command_name, COMMANDS[command_name], command_arguments)
    except InvalidInput as error:
        for problem in error.problems:
            # A sentence about a call names its arguments as a call has them.
            sentence = re.sub(r"(\w+)=…", lambda match: f"--{match[1].replace('_', '-')} …", problem.sentence)
            print(sentence, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
    except ask.NotWrittenError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        raise
    except Exception as error:  # Whatever it is: a sentence, no traceback.
        for input_problem in describe_error(error):
            print(input_problem.sentence, file=sys.stderr)
    else:
        return 0
    return 1


def _print_help(arguments: list[str]) -> int:
    """Print the help on all commands, or the version.

    argparse ends the program itself, with 2 for an unknown command.
    """
    descriptions_by_command = {"count": "Count contributions on files of any size, or on an engine."}
    descriptions_by_command |= {command: _read_purpose(call_name) for command, call_name in COMMANDS.items()}
    indent_width = 2 + max(map(len, descriptions_by_command)) + 2
    wrap_paragraph = functools.partial(textwrap.fill, width=WIDTH, subsequent_indent=" " * indent_width)
    command_paragraphs = [
        wrap_paragraph(command_description, initial_indent=f"  {command}".ljust(indent_width))
        for command, command_description in descriptions_by_command.items()
    ]
    parser = argparse.ArgumentParser(
        prog="sweet-spot",
        usage="sweet-spot [--port PORT] [--no-token] [--hosted] | COMMAND ...",
        description="Without a command it starts the app here and opens it in the browser: on the\n"
        "port, or the first free one from 8501 on. With --no-token everybody who reaches\n"
        "the app on this computer can use it. --hosted listens on all addresses, for a\n"
        "public demo in a container (docs/hosting.md).\n\n"
        "commands:\n" + "\n".join(command_paragraphs),
        epilog="sweet-spot COMMAND --help says what a command takes.",
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=WIDTH),
    )
    parser.add_argument("--version", action="version", version=f"Sweet Spot {dpcore.__version__}")
    command_names = list(descriptions_by_command)
    parser.add_argument(
        "command", nargs="?", choices=command_names, metavar="COMMAND", help=argparse.SUPPRESS
    )
    parser.parse_args(arguments)
    return 0


def _read_purpose(call_name: str) -> str:
    """Read the first line of a call's docstring from its source file, as importing all answers takes seconds."""
    code_path, function_name = Path(dpcore.__file__).parent / "private_selection.py", call_name
    if call_name in questions.QUESTIONS:
        if purpose_sentence := questions.QUESTIONS[call_name].purpose_sentence:
            return purpose_sentence
        code_path = code_path.with_name(questions.QUESTIONS[call_name].package_name) / "answer" / "answer.py"
        function_name = "build_answer"
    source_text = code_path.read_text(encoding="utf-8")
    match = re.search(rf'^def {function_name}\(.*?"""(.*?)\n', source_text, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]
