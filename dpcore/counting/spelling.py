"""SQL for DuckDB that detects spellings of users which may hide that two of them are the same.

The checks run once per user while users are counted. Remote engines check only for users called NA and the like.
There may be as many users as rows, so cheap checks come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.common import wording
from dpcore.counting.duck import literal

# Texts that programs write for a missing user. They stay users, as one may have that name, but a note mentions them.
PLACEHOLDERS = (
    *("NA", "N/A", "n/a", "na", "<NA>", "#N/A", "NULL", "Null", "null", "(null)", "None", "none"),
    *("NaN", "nan", "NAN", "nil", "\\N", "undefined", "-"),
)
# Characters that look like a blank, and invisible ones.
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u180e\u200b\u200c\u200d\u2060\ufeff"
_HIDDEN = literal(_SPACES + _INVISIBLE)


def note_placeholders(number: int, notes: list[str]) -> None:
    """Add a note on contributions of users called NA and the like, if there are any."""
    if number:
        are = wording.counted(number, "contribution is of a user", "contributions are of users")
        notes.append(
            f"{are} called NA, null, None or the like. If that means that nobody is named, empty these cells first."
        )


def mask_users(who: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Return checks of each user, as SQL of numbers that are summed over users.

    Args:
        who: The user columns.
        texts: Those of them with text.

    Returns:
            By name: the contributions of users called NA and the like (``placeholders``), and flags of users that are a
            number such as 7.0 (``with_point``), are not ASCII (``beyond_ascii``), or contain a NUL byte (``nul``).
    """
    masks: dict[str, str] = {}
    if who[0] in texts:
        names = ", ".join(map(literal, PLACEHOLDERS))
        masks["placeholders"] = (
            f"CASE WHEN ({who[0]} < '0' OR {who[0]} > '9') AND {who[0]} IN ({names}) THEN size ELSE 0 END"
        )
        masks["with_point"] = flag_sql(f"suffix({who[0]}, '.0') AND {who[0]} >= '0' AND {who[0]} < ':'")
    if texts:
        masks["beyond_ascii"] = flag_sql(" OR ".join(map(_beyond_ascii, texts)))
        masks["nul"] = flag_sql(" OR ".join(f"contains({text}, chr(0))" for text in texts))
    return masks


def flag_sql(condition: str) -> str:
    """Return the SQL of 1 if the condition holds, else 0."""
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def _beyond_ascii(text: str) -> str:
    return f"length({text}) < strlen({text})"


def without_point(rows: str, user: str) -> str:
    """Return the SQL of the number of rows whose user is an integer without decimals."""
    digits = " AND ".join(f"{end}({user}, 1) BETWEEN '0' AND '9'" for end in ("left", "right"))
    return f"SELECT count(*) FROM ({rows}) WHERE {digits} AND NOT contains({user}, '.')"


def count_twins_sql(rows: str, who: Sequence[str], texts: Sequence[str], condition: str) -> str:
    """Return the SQL of the number of users who look the same as another one.

    The look of a user has plain blanks for all spaces, no invisible characters, and letters in one Unicode form (NFC).

    Args:
        rows: SQL of the rows.
        who: The user columns.
        texts: Those of them with text.
        condition: SQL condition on the look of a user, with ``{}`` for its columns, that selects a part.
    """
    looks = {
        name: f"CASE WHEN {_beyond_ascii(name)} "
        f"THEN trim(nfc_normalize(translate({name}, {_HIDDEN}, {literal(' ' * len(_SPACES))}))) ELSE {name} END"
        if name in texts
        else name
        for name in who
    }
    look_columns = ", ".join(f"{sql} AS seen_{name}" for name, sql in looks.items())
    look_names = ", ".join(f"seen_{name}" for name in who)
    users = f"SELECT DISTINCT {', '.join(who)}, {look_columns} FROM ({rows}) WHERE {who[0]} IS NOT NULL"
    groups = f"SELECT count(*) AS n FROM ({users}) WHERE {condition.format(look_names)} GROUP BY {look_names}"
    return f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM ({groups})"
