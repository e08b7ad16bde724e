"""How users are written, in SQL for DuckDB: who may not be who it seems is counted on the way, once per user.

Engines elsewhere are asked for users called NA and the like alone. There are as many users as rows at times, so that
what is quick is asked first.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.common import wording
from dpcore.counting.duck import literal

# What programs write where nobody is named. They stay users, as one may be called so, but it is said.
PLACEHOLDERS = (
    *("NA", "N/A", "n/a", "na", "<NA>", "#N/A", "NULL", "Null", "null", "(null)", "None", "none"),
    *("NaN", "nan", "NAN", "nil", "\\N", "undefined", "-"),
)
# Characters that look like a blank and are another one, and such as are not seen at all.
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u180e\u200b\u200c\u200d\u2060\ufeff"
_HIDDEN = literal(_SPACES + _INVISIBLE)


def say_placeholders(number: int, notes: list[str]) -> None:
    """Note how many contributions are of users called NA and the like; nothing where there are none."""
    if number:
        are = wording.counted(number, "contribution is of a user", "contributions are of users")
        notes.append(
            f"{are} called NA, null, None or the like. If that means that nobody is named, empty these cells first."
        )


def marks(who: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Return what is asked of each user, as SQL of a number that is added up over users.

    Args:
        who: The columns that say who.
        texts: Those that hold text.

    Returns:
        The contributions of users called NA and the like (``placeholders``), and whether a user is a number such as
        7.0 (``with_point``), is not written in ASCII (``beyond_ascii``), or holds a NUL byte (``nul``).
    """
    asked: dict[str, str] = {}
    if who[0] in texts:
        names = ", ".join(map(literal, PLACEHOLDERS))
        asked["placeholders"] = (
            f"CASE WHEN ({who[0]} < '0' OR {who[0]} > '9') AND {who[0]} IN ({names}) THEN size ELSE 0 END"
        )
        asked["with_point"] = when(f"suffix({who[0]}, '.0') AND {who[0]} >= '0' AND {who[0]} < ':'")
    if texts:
        asked["beyond_ascii"] = when(" OR ".join(map(_beyond_ascii, texts)))
        asked["nul"] = when(" OR ".join(f"contains({text}, chr(0))" for text in texts))
    return asked


def when(condition: str) -> str:
    """SQL of 1 where something holds, else 0."""
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def _beyond_ascii(text: str) -> str:
    return f"length({text}) < strlen({text})"


def without_point(rows: str, user: str) -> str:
    """SQL of how many rows name a user who is a whole number without decimals."""
    digits = " AND ".join(f"{end}({user}, 1) BETWEEN '0' AND '9'" for end in ("left", "right"))
    return f"SELECT count(*) FROM ({rows}) WHERE {digits} AND NOT contains({user}, '.')"


def twins(rows: str, who: Sequence[str], texts: Sequence[str], part: str) -> str:
    """SQL of how many users look the same as another one.

    A person sees every space as a plain one, nothing that is invisible, and letters in one Unicode form (NFC).

    Args:
        rows: SQL of the rows.
        who: The columns that say who.
        texts: Those that hold text.
        part: SQL of whether the looks of a user, of which ``{}`` stands for the columns, are in the part looked at.
    """
    looks = {
        name: f"CASE WHEN {_beyond_ascii(name)} "
        f"THEN trim(nfc_normalize(translate({name}, {_HIDDEN}, {literal(' ' * len(_SPACES))}))) ELSE {name} END"
        if name in texts
        else name
        for name in who
    }
    seen = ", ".join(f"{sql} AS seen_{name}" for name, sql in looks.items())
    alike = ", ".join(f"seen_{name}" for name in who)
    users = f"SELECT DISTINCT {', '.join(who)}, {seen} FROM ({rows}) WHERE {who[0]} IS NOT NULL"
    groups = f"SELECT count(*) AS n FROM ({users}) WHERE {part.format(alike)} GROUP BY {alike}"
    return f"SELECT coalesce(sum(n - 1), 0)::BIGINT FROM ({groups})"
