"""The result of a reduction, and notes on its rows and totals."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common import wording
from dpcore.common.checks import Problems
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.data.column_names import shorten
from dpcore.dataset import Pairs, PairSizes, TaskSizes, Totals, Values

NO_COPIES = "Exact copies of rows were not looked for: that takes another pass over all columns, on request."
RowPlaces = list[tuple[str, str]]
"""Locations of rows as text, each with a detail for the message."""


def describe_first(row_places: RowPlaces, count: int) -> str:
    """Return the location of the first row, as the end of a note; empty if it is unknown."""
    return f" ({'first: ' if count > 1 else ''}{row_places[0][0]})" if row_places else ""


def note_copies(number: int, notes: list[str], row_places: RowPlaces | None = None) -> None:
    """Add a note on the number of copies and the location of the first one."""
    if number:
        rows = wording.counted(number, "row is an exact copy", "rows are exact copies")
        notes.append(f"{rows} of an earlier one{describe_first(row_places or [], 2)}.")


def note_units(
    value_column: str, largest: float, without: int, broken: bool, problems: Problems, notes: list[str]
) -> None:
    """Add problems and notes on totals that count as contributions.

    Args:
        value_column: The column that is added up.
        largest: The largest total, in units.
        without: Number of users with a total of 0.
        broken: True if any total was rounded up.
        problems: Collection to which problems are added.
        notes: List to which notes are added.
    """
    location = f"column {shorten(value_column)}"
    if not largest > 0:
        problems.add("all totals are 0", location, "Choose another column, or count rows")
    elif not largest <= MAX_SIZE:
        message = f"the total of one user is above {MAX_SIZE:,}"
        problems.add(message, location, "Write the column in a larger unit, or count rows")
    elif without:
        users = wording.counted(without, "user has a total of 0 and is", "users have a total of 0 and are")
        notes.append(f"{users} among the totals, not in the histogram.")
    if broken and not problems.entries:
        notes.append(f"Totals of {location} that are not whole count as the next whole number.")


@dataclass
class Reduced:
    """The results of the queries."""

    histogram: ContributionHistogram
    values: Values | None = None
    totals: Totals | None = None
    pairs: Pairs | None = None
    tasks: TaskSizes | None = None
    pair_sizes: PairSizes | None = None
    task_names: tuple[str, ...] = ()
    sizes_repeat: bool = False
