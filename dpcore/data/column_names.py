"""Names of columns: their words, how they are shown, and whether a line holds names or data."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.errors import InvalidInput, refuse
from dpcore.contributions import IntArray

if TYPE_CHECKING:
    import pandas as pd

MAX_COLUMNS = 1_000
"""Most columns a table may have."""
MOST_TITLES = 10
"""Most lines of a title that are looked for above the names of the columns."""
_LOOKED_AT = 1_000
_NO_HEADER = "there is no header row: the first line looks like data"
_ADD_HEADER = "Put a line of column names on top, such as user,value"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a column name in lower case: ``CustomerID`` is ``customer``, ``id``."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(re.findall(r"[^\W_]+", split.lower()))


def shown(name: str) -> str:
    """Return a column name short enough for a sentence."""
    return name if len(name) <= 60 else name[:57] + "..."


# What a spreadsheet would run as a formula, in full width too; numbers with a sign are none.
_FORMULA = r"[=@\t\r\uff1d\uff20\uff0b\uff0d]|[+-](?![0-9.,]*(?:[eE][+-]?[0-9]+)?$)"


def harmless(text: str) -> str:
    """Return the text of a file that goes into a table again, as no spreadsheet runs it."""
    return "'" + text if re.match(_FORMULA, text) else text


def harmless_line(text: str) -> str:
    """Return the same for a line without quotation marks around it, which a spreadsheet cuts into cells."""
    return "".join(
        piece if at % 2 else harmless(piece) for at, piece in enumerate(re.split(r"([,;\t|] *)", text))
    )


def and_more(count: int) -> str:
    """Return how many more there are, in brackets; nothing where there are none."""
    return f" (and {count:,} more)" if count > 0 else ""


def refuse_many_columns(count: int, where: str = "") -> None:
    """Raise `InvalidInput` if a table has more than `MAX_COLUMNS` columns."""
    if count > MAX_COLUMNS:
        what = f"there are {count:,} columns; at most {MAX_COLUMNS:,} are read"
        raise refuse(what, where, "Keep the columns that say who, what and how much")


def checked_names(header: list[str], line: int, problems: Problems, notes: list[str]) -> list[str]:
    """Return the names in a header, with one for every column that has none."""
    names = [" ".join(cell.split()) for cell in header]
    refuse_many_columns(len(names), f"line {line}")
    kinds = [looks_like_data(cell) for cell in names if cell]
    strong = any(is_header_word(cell) for cell in names)
    if not any(names) or (kinds and (all(kinds) or (any(kinds) and not strong))):
        if line:
            problems.add(_NO_HEADER, f"line {line}", _ADD_HEADER)
        else:  # The names of Parquet, and of a table in memory, stand in no line.
            problems.add(
                "the names of the columns look like data", "", "Name the columns, such as user and value"
            )
    elif twice := [cell for cell, times in Counter(names).items() if times > 1 and cell]:
        places = [str(k + 1) for k, cell in enumerate(names) if cell == twice[0]]
        which = " and ".join(places[:3]) + and_more(len(places) - 3)
        # Without a usual word the line may be no header, and its cells ids, which are not to be quoted.
        quoted = f' ("{shown(twice[0])}")' if strong else ""
        what = f"columns {which} have the same name{quoted}{and_more(len(twice) - 1)}"
        problems.add(what, f"line {line}", "Give every column its own name")
    unnamed = [at for at, cell in enumerate(names) if not cell]
    taken = set(names)
    for at in unnamed:
        names[at] = next(c for c in (f"column {at + 1}" + "'" * k for k in range(99)) if c not in taken)
    if unnamed and len(unnamed) < len(names):
        first = names[unnamed[0]]
        notes.append(
            f'A column without a name is called "{first}".' if len(unnamed) == 1 else
            f'{len(unnamed)} columns without a name are called "{first}" and so on.'
        )  # fmt: skip
    return names


def titles_above(rows: pd.DataFrame) -> int:
    """How many of the first rows are titles of one cell each above the row that names the columns; 0 for none.

    That row has a name for every column, half of them with a usual word in it, and no name stands below it again.
    """
    # An array of texts that NumPy makes has room for the longest in every cell.
    for at, cells in enumerate(rows.head(MOST_TITLES + 1).to_numpy(object).tolist()):
        filled = [cell for cell in cells if cell]
        if len(filled) <= 1:
            if any(is_header_word(cell) and len(name_words(cell)) <= 2 for cell in filled):
                return 0  # The name of a column, beside others that have none.
            continue
        usual = sum(map(is_header_word, cells))
        if not all(cells) or any(map(looks_like_data, cells)) or 2 * usual < len(cells):
            return 0
        below = rows.iloc[at + 1 : at + 1 + _LOOKED_AT]
        return 0 if any((below.iloc[:, k] == cell).any() for k, cell in enumerate(cells)) else at
    return 0


def title_above(names_in: int, line: int) -> InvalidInput:
    """Return the sentence for a title above the names of the columns: their line, and that of the title."""
    what = f"a title stands above the names of the columns, which are in line {names_in:,}"
    return refuse(what, f"line {line}", "Remove the lines above them")


def check_header_row(
    names: list[str], frame: pd.DataFrame, starts: IntArray, line: int, problems: Problems, notes: list[str]
) -> None:
    """Say where the header comes again among the rows, or looks like a row itself."""
    if len(names) > 20:
        return
    if len(names) > 1 and all(re.fullmatch(r"column [0-9]+'*", name) for name in names[1:]):
        first = [names[0], *[""] * (len(names) - 1)]
        above = titles_above(_on_top(first, frame))
        if above:
            problems.extend(title_above(int(starts[above - 1]), line).problems)
            return
    again = [(frame.iloc[:, at] == name).to_numpy(bool) for at, name in enumerate(names)]
    whole = np.logical_and.reduce(again)
    strong = any(is_header_word(name) for name in names)
    if whole.any() and len(names) > 1:
        rows = np.flatnonzero(whole)
        what = f"the header row stands among the data again{and_more(rows.size - 1)}"
        remedy = "Remove it (were several files joined, or is there no header?)"
        problems.add(what, f"line {starts[rows[0]]:,}", remedy)
        return
    if strong:
        return
    seen = [bool(rows.any()) for rows in again]
    numbered = [_same_shape(name, frame.iloc[:50, at]) for at, name in enumerate(names)]
    if all(s or n for s, n in zip(seen, numbered, strict=True)) or any(numbered):
        problems.add(f"{_NO_HEADER}, as the same cells stand below it", f"line {line}", _ADD_HEADER)
    elif any(seen):
        notes.append(
            f"The name of column {seen.index(True) + 1} also stands among its rows: "
            "check that the first line holds column names."
        )


def _on_top(first: list[str], frame: pd.DataFrame) -> pd.DataFrame:
    """Return the first rows of a table below one more."""
    import pandas as pd

    head = frame.head(MOST_TITLES + _LOOKED_AT)
    return pd.DataFrame([first, *head.to_numpy(object).tolist()], dtype=str)


def _same_shape(name: str, cells: pd.Series) -> bool:
    """Return True if a name with digits, such as u17, is built like nearly all cells below it, such as u203."""
    if not re.search(r"[0-9]", name) or name.startswith("column "):
        return False
    shape = re.sub(r"[0-9]+", "0", name)
    alike = [re.sub(r"[0-9]+", "0", str(cell)) == shape for cell in cells]
    return bool(alike) and sum(alike) >= 0.8 * len(alike)


_DATA_LIKE = re.compile(
    r"[+-]?[0-9][0-9.,' ]*(?:[eE][+-]?[0-9]+)?|[+-]?[.,][0-9]+|nan|-?inf"  # numbers
    r"|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}(?:[ T].*)?"  # dates
    r"|[^@\s]+@[^@\s]+\.[a-z]+"  # mail addresses
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    re.IGNORECASE,
)
_HEADER_WORDS = word_set(
    """
    id uid user users customer customers client clients author authors account session member patient person
    email count counts n rows size sizes contributions value values amount price rating score total task tasks
    product item category group date time timestamp day month year name country index
    """
)


def looks_like_data(cell: str) -> bool:
    """Return True if a cell is built like a number, a date, a mail address or a UUID."""
    return _DATA_LIKE.fullmatch(cell) is not None


def is_header_word(cell: str) -> bool:
    """Return True if a cell reads like a column name, by a usual word in it."""
    return not re.search(r"[0-9]", cell) and any(word in _HEADER_WORDS for word in name_words(cell))
