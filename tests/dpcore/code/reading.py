"""A reader of BigQuery's differential privacy clause, which sqlglot does not know."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.tokens import Token, TokenType


@dataclass
class Statement:
    """One SQL statement.

    Attributes:
        tree: What sqlglot makes of it, without the privacy clause and the bounds on contributions.
        options: Of the privacy clause, by name, as they are written; empty without a clause.
        bounds: (function, name of the bound, lower, upper) of every bound on contributions.
    """

    tree: exp.Expression
    options: dict[str, str] = field(default_factory=dict)
    bounds: list[tuple[str, str, float, float]] = field(default_factory=list)


def statements(sql: str) -> list[Statement]:
    """Parse; anything that GoogleSQL would not take, as far as sqlglot knows it, raises."""
    tokens = list(sqlglot.tokenize(sql, read="bigquery"))
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [_statement(sql, part) for part in parts if part]


def _statement(sql: str, tokens: list[Token]) -> Statement:
    cut: list[tuple[int, int]] = []
    options: dict[str, str] = {}
    bounds: list[tuple[str, str, float, float]] = []
    words = [token.text.upper() for token in tokens]
    for i, word in enumerate(words):
        if word == "DIFFERENTIAL_PRIVACY":
            assert words[i - 1] == "WITH"
            assert words[i - 2] == "SELECT"
            assert words[i + 1 : i + 3] == ["OPTIONS", "("]
            end = _closing(words, i + 2)
            options = _options([token.text for token in tokens[i + 3 : end]])
            cut.append((i - 1, end))
        if word.startswith("CONTRIBUTION_BOUNDS_PER_"):
            assert words[i - 1] == ","
            opening = i + 1 + words[i + 1 :].index("(")
            end = _closing(words, opening)
            low, high = "".join(words[opening + 1 : end]).split(",")
            bounds.append((_function(words, i), words[i].lower(), float(low), float(high)))
            cut.append((i - 1, end))
    kept = [
        sql[token.start : token.end + 1]
        for i, token in enumerate(tokens)
        if not any(first <= i <= last for first, last in cut)
    ]
    return Statement(sqlglot.parse_one(" ".join(kept), dialect="bigquery"), options, bounds)


def _closing(words: list[str], opening: int) -> int:
    depth = 0
    for i in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[i], 0)
        if depth == 0:
            return i
    raise ValueError("a parenthesis stays open")


def _function(words: list[str], at: int) -> str:
    """Name of the function whose argument stands at ``at``."""
    depth = 0
    for i in range(at, -1, -1):
        depth += {")": 1, "(": -1}.get(words[i], 0)
        if depth < 0:
            return words[i - 1]
    raise ValueError("a bound outside a function")


def _options(texts: list[str]) -> dict[str, str]:
    joined = "\0".join(texts).split("\0,\0")
    pairs = (part.strip("\0").split("\0=\0") for part in joined)
    return {name: value.replace("\0", "") for name, value in pairs}
