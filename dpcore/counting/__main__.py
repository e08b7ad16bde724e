"""Count from the shell and write the histogram that the app opens.

python -m dpcore.counting --from events.parquet --user user_id --to histogram.csv
python -m dpcore.counting --from postgres://analyst@host/shop --table orders --user customer_id --value amount

``sweet-spot count`` is the same.
Exit codes: 0 counted, 1 refused (sentences on standard error), 130 stopped with Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from dpcore.common.checks import InvalidInput, convert_system_errors, refuse
from dpcore.common.privacy import LABEL_COLUMN, Disclosure
from dpcore.common.wording import format_number
from dpcore.counting import MEMORY_LIMIT, connect, count, count_table, open_files, open_table
from dpcore.counting.count import CountResult
from dpcore.counting.engines import COUNT_OPTIONS, is_address
from dpcore.counting.files import SUMMARIES, expand_patterns, find_summaries
from dpcore.counting.pair_tables import prefer_pair_roles
from dpcore.data import binned_values, group_pairs
from dpcore.data.column_names import shorten
from dpcore.data.column_roles import (
    PAIRS_HEADER,
    PAIRS_SUM,
    MissingUsers,
    Roles,
    name_size_column,
    name_users_column,
)
from dpcore.data.periods import build_periods
from dpcore.data.row_filter import parse_filters
from dpcore.data.task_facets import Pairs
from dpcore.data.value_bins import ValueBins
from dpcore.dataset import Dataset

_BYTES_BY_UNIT = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}


def _build_parser(program_name: str = "python -m dpcore.counting") -> argparse.ArgumentParser:
    """Build the parser of the command's arguments, which prints this program name in its help."""
    parser = argparse.ArgumentParser(
        prog=program_name,
        description="Count contributions per user and write the histogram, which Sweet Spot opens.",
        epilog="Credentials for an engine come from its environment or profiles; see docs/engines.md.",
    )
    add_argument = parser.add_argument
    from_help = "files, a pattern such as 'logs/*.csv', or one address such as postgres://user@host/db"
    add_argument("--from", nargs="+", required=True, dest="source", metavar="FILE_OR_ENGINE", help=from_help)
    add_argument("--table", help="table in the engine (schema.table), or files that it reads itself")
    add_argument("--user", action="append", required=True, help="column that says who; again for several")
    add_argument("--task", action="append", default=[], help="column of tasks or groups; again for several")
    add_argument("--pairs-to", type=Path, help="file for an engine's pairs of user and task, as codes")
    max_pairs_help = "most pairs that may come back; a run without it tells their number"
    add_argument("--max-pairs", type=int, help=max_pairs_help)
    distribution_help = "file for the distribution of pairs, for bounds per group"
    add_argument("--distribution-to", type=Path, help=distribution_help)
    add_argument("--value", help="column of values")
    values_help = "file for an engine's values by user in public bins, for means and quantiles"
    add_argument("--values-to", type=Path, help=values_help)
    bins_help = "lowest and highest edge of the bins, known without looking at the data, and their number"
    add_argument("--value-bins", type=float, nargs=3, metavar=("LOWEST", "HIGHEST", "NUMBER"), help=bins_help)
    add_argument("--sheet", default="", help="sheet of a workbook; by default the first")
    separator_help = (
        "what stands between fields of text, such as ';', tab or blank; by default it is detected"
    )
    add_argument("--separator", default="", help=separator_help)
    add_argument("--names", help="names of the columns, with commas between, where the files hold none")
    add_argument("--count", choices=[*COUNT_OPTIONS.values()], default="rows", help="what a contribution is")
    users_help = "rows that name no user: leave them out, or count them as one user"
    add_argument("--missing-users", choices=["leave-out", "one"], default="leave-out", help=users_help)
    missing_help = "values that are missing or no number: drop their rows, or a public number in their place"
    add_argument("--missing", metavar="drop|NUMBER", type=parse_missing_rule, help=missing_help)
    add_argument("--yes", metavar="TEXT", help="value that counts as 1; every other filled one counts as 0")
    add_argument("--filters", metavar="CONDITIONS", help="public conditions on rows, such as 'quantity > 0'")
    add_argument("--date", help="column of dates, for --periods")
    periods_help = "public periods that make the unit, such as '2025-01-01 to 2026-01-01 by month'"
    add_argument("--periods", help=periods_help)
    add_argument("--copies", action="store_true", help="also look for exact copies of rows: one more pass")
    add_argument("--public", action="store_true", help="the data are public; else they are taken as private")
    add_argument("--to", type=Path, help="file for the histogram; standard output by default")
    default_memory = f"{MEMORY_LIMIT // 10**6}MB"
    add_argument("--memory", default=default_memory, help="memory for files (default %(default)s)")
    return parser


def parse_missing_rule(text: str) -> str | float:
    """Return the rule for missing values of a command: a number, or the text for `Roles.of_events` to check."""
    try:
        return float(text)
    except ValueError:
        return text


def write_histogram_csv(dataset: Dataset) -> str:
    """Write the histogram as CSV for the app: size, users, and the label of the numbers.

    Of totals the first name says of which column, so that the file answers as totals (`name_size_column`). The second
    name says which periods make the unit.
    """
    sizes_with_users = zip(dataset.histogram.sizes.tolist(), dataset.histogram.users.tolist(), strict=True)
    size_name, csv_stream = name_size_column(dataset.contribution, dataset.value_column), io.StringIO()
    writer = csv.writer(csv_stream, lineterminator="\n")
    writer.writerow((size_name, name_users_column(dataset.periods), LABEL_COLUMN))
    writer.writerows((*sizes, dataset.provenance.label) for sizes in sizes_with_users)
    return csv_stream.getvalue()


def main(arguments: list[str] | None = None, program_name: str = "python -m dpcore.counting") -> int:
    """Count contributions per user, and write the files that the options name.

    Without a file for the histogram, it goes to standard output.

    Args:
        arguments: Arguments of the command; None for the shell's.
        program_name: Name of the command in its help.

    Returns:
        Exit code: 0, 1 if the data or arguments are refused or a file cannot be written, 130 if counting was stopped.
    """
    command_options = _build_parser(program_name).parse_args(arguments)
    try:
        with convert_system_errors():
            count_result = _count_source(command_options)
        if (dataset := count_result.dataset) is None:
            return 130
        histogram_text = write_histogram_csv(dataset)
        if command_options.to is None:
            sys.stdout.write(histogram_text)
        else:
            command_options.to.write_text(histogram_text, encoding="utf-8")
        if command_options.pairs_to is not None and dataset.pairs is not None:
            command_options.pairs_to.write_text(write_pairs_csv(dataset.pairs), encoding="utf-8")
        if command_options.distribution_to is not None:
            distribution_json = group_pairs.write_distribution(dataset)
            command_options.distribution_to.write_text(distribution_json, encoding="utf-8")
        if command_options.values_to is not None:
            command_options.values_to.write_text(binned_values.write_values(dataset), encoding="utf-8")
        _print_report(dataset, count_result.summary_sentence)
    except InvalidInput as refused:
        for problem in refused.problems:
            print(problem.sentence, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or command_options.to} cannot be written: {error.strerror}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; nothing was written.", file=sys.stderr)
        return 130
    return 0


def _count_source(command_options: argparse.Namespace) -> CountResult:
    """Count the files or the engine's table that the arguments name; raise InvalidInput if they do not fit together."""
    (contribution,) = [unit for unit, option in COUNT_OPTIONS.items() if option == command_options.count]
    unnamed_rule = MissingUsers.ONE_USER if command_options.missing_users == "one" else MissingUsers.LEAVE_OUT
    user_value_task = command_options.user, command_options.value, command_options.task
    periods = build_periods(command_options.date, command_options.periods)
    value_rules: dict[str, Any] = {"missing": command_options.missing, "yes": command_options.yes}
    value_rules |= {"periods": periods, "filters": parse_filters(command_options.filters)}
    roles = Roles.of_events(*user_value_task, contribution, unnamed_rule, **value_rules)
    if command_options.distribution_to is not None and not command_options.task:
        raise refuse("--distribution-to needs --task, the column of groups")
    disclosure = Disclosure.PUBLIC if command_options.public else Disclosure.PRIVATE
    counting_options: dict[str, Any] = {"counts_copies": command_options.copies}
    counting_options["progress"] = _print_progress if sys.stderr.isatty() else None
    path_or_address, *further_paths = command_options.source
    if not further_paths and is_address(path_or_address) and not os.path.exists(path_or_address):
        if not command_options.table:
            raise refuse("an engine needs --table, the name of the table to count")
        engine_table = open_table(connect(path_or_address), command_options.table)
        if (command_options.values_to is None) != (command_options.value_bins is None):
            raise refuse("--values-to and --value-bins go together")
        value_bins = None if command_options.value_bins is None else ValueBins(*command_options.value_bins)
        max_pairs = command_options.max_pairs if command_options.pairs_to is not None else None
        table_options = {"name": command_options.table, "max_pairs": max_pairs, **counting_options}
        table_options["value_bins"] = value_bins
        return count_table(engine_table, roles, disclosure, **table_options)
    if command_options.pairs_to is not None:
        raise refuse("--pairs-to is for engines; the app reads the pairs of files itself")
    if command_options.values_to is not None or command_options.value_bins is not None:
        raise refuse("--values-to is for engines; the app reads the values of files itself")
    if command_options.table:
        raise refuse("--table is for engines; files are one table")
    source_paths = expand_patterns(command_options.source)
    refuse_to_overwrite(source_paths, "--to", command_options.to)
    refuse_to_overwrite(source_paths, "--distribution-to", command_options.distribution_to)
    for _, summary_schema in find_summaries(source_paths):
        summary_name, _, command_name = SUMMARIES[summary_schema]
        raise refuse(f"{summary_name} is counted already", remedy=f"Ask: sweet-spot {command_name} FILE")
    file_source = open_files(source_paths, sheet=command_options.sheet, separator=command_options.separator)
    if command_options.names is not None:
        file_source = file_source.with_names(command_options.names.split(","))
    memory_limit = _parse_bytes(command_options.memory)
    roles = prefer_pair_roles(file_source.roles, roles)
    return count(file_source, roles, disclosure, memory_limit=memory_limit, **counting_options)


def refuse_to_overwrite(source_paths: list[str], option_name: str, output_path: Path | None) -> None:
    """Raise InvalidInput if the output file of this option is one of the files to read; not if there is none (None)."""
    for source_path in filter(os.path.exists, source_paths):
        if output_path is not None and os.path.exists(output_path) and output_path.samefile(source_path):
            overwrite_message = f"{option_name} names {shorten(str(output_path))}, which is to be read"
            raise refuse(overwrite_message, remedy="Name another")


def _parse_bytes(size_text: str) -> int:
    """Convert a memory size such as 500MB to bytes; raise InvalidInput for any other text."""
    size_match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmg]b|)\s*", size_text.lower())
    if size_match is None or float(size_match[1]) <= 0:
        raise refuse(f"--memory must be a size such as 500MB or 2GB; got {size_text[:20]!r}")
    return int(float(size_match[1]) * _BYTES_BY_UNIT[size_match[2]])


def _print_progress(fraction_done: float) -> None:
    """Print the fraction done as a percentage on standard error, over the line before."""
    line_end = "\n" if fraction_done >= 1.0 else "\r"
    print(f"counting {100.0 * fraction_done:3.0f} %", end=line_end, file=sys.stderr, flush=True)


def write_pairs_csv(pairs: Pairs) -> str:
    """Write the pairs as CSV, one line each: codes of user and group, rows, and the sum if there is a value column.

    App, call and command recognise the file by its header (`dpcore.data.column_roles.PAIRS_HEADER`).
    """
    assert pairs.rows is not None
    cell_lists = [pairs.user_codes.tolist(), pairs.task_codes.tolist(), pairs.rows.tolist()]
    cell_lists += [pairs.sums.tolist()] if pairs.sums is not None else []
    header_text = ",".join([*PAIRS_HEADER, *([PAIRS_SUM] if pairs.sums is not None else [])])
    csv_lines = [",".join(map(str, line_cells)) for line_cells in zip(*cell_lists, strict=True)]
    return "\n".join([header_text, *csv_lines, ""])


def _print_report(dataset: Dataset, summary_sentence: str) -> None:
    """Print the summary, the contributions of the three heaviest users, the notes and the label on standard error."""
    sizes_text = ", ".join(format_number(size) for size in dataset.histogram.list_heaviest_sizes(3).tolist())
    label_sentence = f"What was written is {dataset.provenance.label}."
    heaviest_sentence = f"Contributions of the heaviest users: {sizes_text}."
    print("\n".join([summary_sentence, heaviest_sentence, *dataset.notes, label_sentence]), file=sys.stderr)


def end_on_signals() -> None:
    """Let SIGTERM and a closed terminal end the program as Ctrl-C does, so that temporary files are removed."""
    for signal_name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, signal_name):
            signal.signal(getattr(signal, signal_name), _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, whatever the signal."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    end_on_signals()
    sys.exit(main())
