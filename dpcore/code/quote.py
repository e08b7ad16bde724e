"""Escaping of external names and numbers for each language: no name can end a literal, a comment or a line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

WIDTH = 92


def make_printable(text: str, max_length: int = 200) -> str:
    """Return the text on one line, with non-printable characters (line ends, controls, direction marks) escaped."""
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return escaped if len(escaped) <= max_length else escaped[: max_length - 1] + "…"


def comment(sentence: str, prefix: str) -> list[str]:
    """Write a sentence as comment lines; ``prefix`` is ``#`` or ``--``."""
    lines = textwrap.wrap(
        make_printable(sentence, 4000), WIDTH, break_long_words=False, break_on_hyphens=False
    )
    return [f"{prefix} {line}" for line in lines]


def python_text(text: str) -> str:
    """Return a Python string literal, in double quotes if that needs no escapes."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal else literal


def python_literal(name: str | Sequence[str] | Mapping[str, str]) -> str:
    """Return a name as a Python string literal, several as a list, and a mapping as a dictionary."""
    if isinstance(name, str):
        return python_text(name)
    if isinstance(name, Mapping):
        return "{" + ", ".join(f"{python_text(a)}: {python_text(b)}" for a, b in name.items()) + "}"
    return "[" + ", ".join(python_text(entry) for entry in name) + "]"


def sql_name(name: str) -> str:
    """Return a GoogleSQL quoted identifier. Escapes are those of string literals.

    Source: GoogleSQL lexical structure, "Quoted identifiers",
    https://cloud.google.com/bigquery/docs/reference/standard-sql/lexical (read 2026-11-21).
    """
    escaped = []
    for c in name:
        if c in "\\`":
            escaped.append("\\" + c)
        elif c.isprintable():
            escaped.append(c)
        else:
            escaped.append(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}")
    return "`" + "".join(escaped) + "`"


def sql_table(path: str) -> str:
    """Return a table's path as one quoted identifier, which BigQuery reads as project, dataset and table."""
    return sql_name(path)


def in_sentence(names: tuple[str, ...]) -> str:
    """Return column names for a comment."""
    return " and ".join(make_printable(name, 60) for name in names)
