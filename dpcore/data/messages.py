"""What is said of counts and totals that are contributions, in small tables and large ones alike."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.common.checks import Problems
from dpcore.contributions import MAX_SIZE
from dpcore.data.column_names import shown

NEGATIVE_TOTAL = "a negative number, where contributions are added up"
COUNT_REMEDY = "A count must be a whole number of contributions; if it is not one, choose another column"
SIZE_REMEDY = "It must be a whole number; if it is not one, choose another column"
SEVERAL_ROWS_REMEDY = (
    "A table of counts has one row per user; if every row is one contribution, read it as events, "
    "else add up the counts of each user first"
)
NEGATIVE_REMEDY = "Count rows instead, correct these cells, or choose another column"

PLACES = 3
"""How many places of one kind are named."""


def at_lines(what: str, lines: Sequence[int], count: int) -> str:
    """What is wrong with the first of some lines, which others it is wrong with, and with how many in all."""
    also = f"; also line {', '.join(f'{line:,}' for line in lines[1:PLACES])}" if len(lines) > 1 else ""
    return f"{what}{also}" + (f"; {count:,} lines in all" if count > PLACES else "")


PLACEHOLDERS = (
    *(
        "NA",
        "N/A",
        "n/a",
        "na",
        "<NA>",
        "#N/A",
        "NULL",
        "Null",
        "null",
        "(null)",
        "None",
        "none",
        "NaN",
        "nan",
        "NAN",
    ),
    *("nil", "\\N", "undefined", "-"),
)
"""What programs write where nobody is named. They stay users, as one may be called so, but it is said."""


def say_spelling(placeholders: int, with_point: bool, without: bool, notes: list[str]) -> None:
    """Say where users are written so that they may not be who they seem.

    Args:
        placeholders: Contributions of users that are called as one of `PLACEHOLDERS`.
        with_point: Whether some user is a whole number with decimals, such as 7.0.
        without: Whether some user is one without.
        notes: Takes the sentences.
    """
    if placeholders:
        are = (
            "1 contribution is of a user"
            if placeholders == 1
            else f"{placeholders:,} contributions are of users"
        )
        notes.append(
            f"{are} called NA, null, None or the like. If that means that nobody is named, empty these cells "
            "first."
        )
    if with_point and without:
        notes.append(
            "Some users are written like 7.0 and others like 7: who is written in both ways counts as two. Write all "
            "in one way first."
        )


SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Characters that look like a blank and are another one."""
INVISIBLE = "\u00ad\u180e\u200b\u200c\u200d\u2060\ufeff"
"""Characters that are not seen at all."""


def say_twins(number: int, notes: list[str]) -> None:
    """Say how many users look the same as another one and are none."""
    if number:
        users = "1 user differs" if number == 1 else f"{number:,} users differ"
        notes.append(
            f"{users} from another one only by a no-break, wide or zero-width space or by the Unicode form of a "
            "letter: who is written in both ways counts as two. Write all in one way first."
        )


UNIT_ROUNDING = 1.0 - 1e-12
"""An error of rounding in a sum is no further unit: 0.1 + 0.2 + 2.7 counts as 3."""


def say_units(
    column: str, largest: float, without: int, broken: bool, problems: Problems, notes: list[str]
) -> None:
    """Say what is wrong with, and what a person should know of, totals that count as contributions.

    Args:
        column: Where they come from.
        largest: The largest total, in whole units.
        without: Users whose total is 0.
        broken: Whether any total was rounded up.
        problems: Takes what is wrong.
        notes: Takes what a person should know.
    """
    where = f"column {shown(column)}"
    if not largest > 0:
        problems.add("all totals are 0", where, "Choose another column, or count rows")
    elif not largest <= MAX_SIZE:
        what = f"the total of one user is above {MAX_SIZE:,}"
        problems.add(what, where, "Write the column in a larger unit, or count rows")
    elif without:
        who = (
            "1 user has a total of 0 and is"
            if without == 1
            else f"{without:,} users have a total of 0 and are"
        )
        notes.append(f"{who} among the totals, not in the histogram.")
    if broken and not problems.found:
        notes.append(f"Totals of column {shown(column)} that are not whole count as the next whole number.")
