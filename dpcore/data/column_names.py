"""Names of columns: their words, their display, and the distinction between a header line and data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.checks import InvalidInput, Problems, quote, refuse
from dpcore.common.wording import format_count
from dpcore.contributions import IntArray

if TYPE_CHECKING:
    import pandas as pd

MAX_COLUMNS = 1_000
"""Most columns a table may have."""
MAX_TITLES = 10
"""Largest number of title lines above the column names."""
_INSPECTED_ROWS = 1_000
_NO_HEADER_MESSAGE = "there is no header row: the first line looks like data"
_ADD_HEADER_REMEDY = "Put a line of column names on top, such as user,value"
HEADER_AGAIN_MESSAGE = "the header row stands among the data again"
REMOVE_HEADER_REMEDY = "Remove it (were several files joined?)"


def split_words(words_text: str) -> frozenset[str]:
    """Return the distinct words of a text with blanks between them."""
    return frozenset(words_text.split())


def split_name(column_name: str) -> tuple[str, ...]:
    """Split a column name into words in lower case: ``CustomerID`` is ``customer``, ``id``."""
    return tuple(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column_name).lower()))


def shorten(long_name: str) -> str:
    """Shorten a name to at most 60 characters for a sentence."""
    return long_name if len(long_name) <= 60 else long_name[:57] + "..."


# Beginnings that a spreadsheet would run as a formula, also in full width; numbers with a sign are excluded.
_FORMULA_PATTERN = r"[=@\t\r\uff1d\uff20\uff0b\uff0d]|[+-](?![0-9.,]*(?:[eE][+-]?[0-9]+)?$)"


def escape_formula(cell_text: str) -> str:
    """Return a cell's text with a quote in front if a spreadsheet would run it as a formula; else unchanged."""
    return "'" + cell_text if re.match(_FORMULA_PATTERN, cell_text) else cell_text


def escape_formulas_in_line(line_text: str) -> str:
    """Escape formulas in all cells of an unquoted line, which a spreadsheet splits into cells."""
    line_pieces = re.split(r"([,;\t|] *)", line_text)
    return "".join(
        piece if piece_index % 2 else escape_formula(piece) for piece_index, piece in enumerate(line_pieces)
    )


def and_more(num_further: int) -> str:
    """Return " (and 3 more)" for 3 further entries; an empty text for none."""
    return f" (and {num_further:,} more)" if num_further > 0 else ""


def refuse_many_columns(num_columns: int, location: str = "") -> None:
    """Raise `InvalidInput` if a table has more than `MAX_COLUMNS` columns."""
    if num_columns > MAX_COLUMNS:
        columns_message = f"there are {num_columns:,} columns; at most {MAX_COLUMNS:,} are read"
        raise refuse(columns_message, location, "Keep the columns that say who, what and how much")


def check_names(header_cells: list[str], line_number: int, problems: Problems, notes: list[str]) -> list[str]:
    """Check the names of a header and return them, with made-up names for unnamed columns.

    Problems and notes are added to the lists. Line 0 means that the names stand in no line.
    """
    names = [" ".join(name.split()) for name in header_cells]
    refuse_many_columns(len(names), f"line {line_number}")
    data_flags = [looks_like_data(name) for name in names if name]
    has_header_word = any(is_header_word(name) for name in names)
    if not any(names) or (data_flags and (all(data_flags) or (any(data_flags) and not has_header_word))):
        if line_number:
            problems.add(_NO_HEADER_MESSAGE, f"line {line_number}", _ADD_HEADER_REMEDY)
        else:  # The names of Parquet, and of a table in memory, stand in no line.
            problems.add("the names of the columns look like data", "", "Name them, such as user and value")
    elif repeated_names := [name for name, num_columns in Counter(names).items() if num_columns > 1 and name]:
        repeated_position_texts = [str(k + 1) for k, name in enumerate(names) if name == repeated_names[0]]
        repeated_positions_text = " and ".join(repeated_position_texts[:3]) + and_more(
            len(repeated_position_texts) - 3
        )
        # Without a header word the line may be data with ids in its cells, which messages must not quote.
        quoted_text = f' ("{shorten(repeated_names[0])}")' if has_header_word else ""
        quoted_text += and_more(len(repeated_names) - 1)
        repeat_message = f"columns {repeated_positions_text} have the same name{quoted_text}"
        problems.add(repeat_message, f"line {line_number}", "Give every column its own name")
    unnamed_indices = [column_index for column_index, name in enumerate(names) if not name]
    used_names = set(names)
    for column_index in unnamed_indices:
        names[column_index] = f"column {column_index + 1}"
        while names[column_index] in used_names:
            names[column_index] += "'"
    if unnamed_indices and len(unnamed_indices) < len(names):
        noun_forms = "column without a name is", "columns without a name are"
        subject_text = format_count(len(unnamed_indices), *noun_forms)
        ending_text = " and so on" if len(unnamed_indices) > 1 else ""
        notes.append(f'{subject_text} called "{names[unnamed_indices[0]]}"{ending_text}.')
    return names


def count_titles(cell_frame: pd.DataFrame) -> int:
    """Count the title rows above the row that names the columns; 0 if none is recognised.

    A title row has at most one filled cell. The row of names has a name for every column, half of them with a header
    word, and none of them is repeated below it.
    """
    # Objects, as a NumPy array of texts reserves the longest length for every cell.
    for row_index, cells in enumerate(cell_frame.head(MAX_TITLES + 1).to_numpy(object).tolist()):
        filled_cells = [row_cell for row_cell in cells if row_cell]
        if len(filled_cells) <= 1:
            if any(is_header_word(row_cell) and len(split_name(row_cell)) <= 2 for row_cell in filled_cells):
                return 0  # The name of one column; the other columns have none.
            continue
        num_header_words = sum(map(is_header_word, cells))
        if not all(cells) or any(map(looks_like_data, cells)) or 2 * num_header_words < len(cells):
            return 0
        rows_below = cell_frame.iloc[row_index + 1 : row_index + 1 + _INSPECTED_ROWS]
        is_repeated = any((rows_below.iloc[:, k] == row_cell).any() for k, row_cell in enumerate(cells))
        return 0 if is_repeated else row_index
    return 0


def refuse_title(names_line_number: int, title_line_number: int) -> InvalidInput:
    """Return the error that a title stands above the column names, with the lines of both."""
    message = f"a title stands above the names of the columns, which are in line {names_line_number:,}"
    return refuse(message, f"line {title_line_number}", "Remove the lines above them")


def check_header_row(
    names: list[str],
    cell_frame: pd.DataFrame,
    line_of_row: IntArray,
    line_number: int,
    problems: Problems,
    table_notes: list[str],
) -> None:
    """Add a problem if the header is a title, is repeated among the rows, or looks like a row of data.

    Add a note if only some of its names are repeated. Headers of more than 20 names are not checked.
    """
    import pandas as pd

    if len(names) > 20:
        return
    if len(names) > 1 and all(re.fullmatch(r"column [0-9]+'*", name) for name in names[1:]):
        first_row_cells = cell_frame.head(MAX_TITLES + _INSPECTED_ROWS).to_numpy(object).tolist()
        header_cells = [names[0], *[""] * (len(names) - 1)]
        if num_titles := count_titles(pd.DataFrame([header_cells, *first_row_cells], dtype=str)):
            problems.extend(refuse_title(int(line_of_row[num_titles - 1]), line_number).problems)
            return
    match_masks = [(cell_frame.iloc[:, index] == name).to_numpy(bool) for index, name in enumerate(names)]
    header_mask = np.logical_and.reduce(match_masks)
    if header_mask.any() and len(names) > 1:
        header_row_indices = np.flatnonzero(header_mask)
        repeat_message = HEADER_AGAIN_MESSAGE + and_more(header_row_indices.size - 1)
        problems.add(repeat_message, f"line {line_of_row[header_row_indices[0]]:,}", REMOVE_HEADER_REMEDY)
        return
    if any(is_header_word(name) for name in names):
        return
    repeat_flags = [bool(match_mask.any()) for match_mask in match_masks]
    shape_flags = [_has_shape_of(name, cell_frame.iloc[:50, index]) for index, name in enumerate(names)]
    if any(shape_flags) or all(repeat_flags):
        repeat_message = f"{_NO_HEADER_MESSAGE}, as the same cells stand below it"
        problems.add(repeat_message, f"line {line_number}", _ADD_HEADER_REMEDY)
    elif any(repeat_flags):
        subject_text = f"The name of column {repeat_flags.index(True) + 1}"
        table_notes.append(f"{subject_text} also stands among its rows: is the first line a header?")


def _has_shape_of(column_name: str, cells_below: pd.Series) -> bool:
    """Return True if a name with digits, such as u17, has the same form as 80 % of the cells below it, such as u203."""
    if not re.search(r"[0-9]", column_name) or column_name.startswith("column "):
        return False
    shape_mask = cells_below.str.replace(r"[0-9]+", "0", regex=True) == re.sub(r"[0-9]+", "0", column_name)
    return len(cells_below) > 0 and shape_mask.sum() >= 0.8 * len(cells_below)


_DATA_PATTERN = re.compile(
    r"[+-]?[0-9][0-9.,' ]*(?:[eE][+-]?[0-9]+)?|[+-]?[.,][0-9]+|nan|-?inf"  # numbers
    r"|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}(?:[ T].*)?"  # dates
    r"|[^@\s]+@[^@\s]+\.[a-z]+"  # mail addresses
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    re.IGNORECASE,
)
_HEADER_WORDS = split_words(
    "id uid user users customer customers client clients author authors account session member patient person email "
    "count counts n rows size sizes contributions value values amount price rating score total task tasks product "
    "item category group date time timestamp day month year name country index"
)


def looks_like_data(cell_text: str) -> bool:
    """Return True if a cell has the form of a number, a date, a mail address or a UUID, or says nan or inf."""
    return _DATA_PATTERN.fullmatch(cell_text) is not None


def is_header_word(cell: str) -> bool:
    """Return True if a cell contains a common word of column names, and no digits."""
    return not re.search(r"[0-9]", cell) and any(name_word in _HEADER_WORDS for name_word in split_name(cell))


def refuse_other_columns(columns_of_files: list[tuple[str, tuple[str, ...]]]) -> None:
    """Raise InvalidInput for every file whose columns differ from those of the first file, but for their order."""
    (first_file_name, first_columns), *other_files = columns_of_files
    with Problems() as problems:
        for file_name, other_columns in other_files:
            difference_phrases: list[str] = []
            comparisons = ("lacks", first_columns, other_columns), ("has", other_columns, first_columns)
            for verb, columns_of_one, compared_columns in comparisons:
                extra_columns = [column for column in columns_of_one if column not in compared_columns]
                # Without a header word a line may be data, as in pieces of one file, with ids in its cells.
                if extra_columns and any(map(is_header_word, columns_of_one)):
                    further_text = and_more(len(extra_columns) - 1)
                    difference_phrases.append(f"{verb} column {shorten(extra_columns[0])}{further_text}")
            if not difference_phrases and set(first_columns) != set(other_columns):
                difference_phrases = ["begins with other cells, which may be no names"]
            if difference_phrases:
                message = f"unlike {shorten(first_file_name)}, this file {' and '.join(difference_phrases)}"
                problems.add(message, f"file {shorten(file_name)}", "Choose files with the same columns")


# --- columns that a person names ----------------------------------------------------------------------------

Columns = str | Sequence[str] | None
"""A column, or columns that together name something; None for none."""
MAX_LISTED = 20
"""Largest number of columns that a sentence lists."""


def list_columns(column_or_columns: Columns) -> list[str]:
    """Return one column name, or several, as a list; None gives an empty list."""
    if column_or_columns is None:
        return []
    return [column_or_columns] if isinstance(column_or_columns, str) else list(column_or_columns)


def list_names(columns: Sequence[str]) -> str:
    """Write up to 20 column names, each shortened, and how many more there are; "none" if there are none."""
    return ", ".join(map(shorten, columns[:MAX_LISTED])) + and_more(len(columns) - MAX_LISTED) or "none"


def refuse_wrong_names(**arguments: object) -> None:
    """Raise InvalidInput unless each argument is None, a name, or (but for value and label) a list of names."""
    with Problems() as problems:
        for argument_name, argument in arguments.items():
            may_be_list = argument_name not in ("value", "label", "date") and not isinstance(argument, str)
            column_names = argument if may_be_list and isinstance(argument, Iterable) else [argument]
            if argument is not None and not all(isinstance(column_name, str) for column_name in column_names):
                problems.add(f"{argument_name} must be the name of a column; got {quote(argument)}")


def refuse_missing(problems: Problems, columns: Sequence[str], named_columns: Sequence[str]) -> None:
    """Add a problem for every name that is not a column."""
    for column_name in named_columns:
        if column_name not in columns:
            problems.add(f"there is no column {shorten(str(column_name))}; there are {list_names(columns)}")


def add_missing_arguments(problems: Problems, missing_names: Sequence[str]) -> None:
    """Add a problem for each argument, value or group, that a question needs and that was not given."""
    for argument_name in missing_names:
        problems.add(f"this question needs the column of the {argument_name}s: {argument_name}=…")
