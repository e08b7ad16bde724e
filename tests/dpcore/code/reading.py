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


def parse(sql: str) -> list[Statement]:
    """Parse; anything that GoogleSQL would not take, as far as sqlglot knows it, raises."""
    tokens = list(sqlglot.tokenize(sql, read="bigquery"))
    token_lists: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            token_lists.append([])
        else:
            token_lists[-1].append(token)
    return [_build_statement(sql, statement_tokens) for statement_tokens in token_lists if statement_tokens]


def _build_statement(sql: str, tokens: list[Token]) -> Statement:
    removed_spans: list[tuple[int, int]] = []
    options: dict[str, str] = {}
    bounds: list[tuple[str, str, float, float]] = []
    words = [token.text.upper() for token in tokens]
    for i, word in enumerate(words):
        if word == "DIFFERENTIAL_PRIVACY":
            assert words[i - 1] == "WITH"
            assert words[i - 2] == "SELECT"
            assert words[i + 1 : i + 3] == ["OPTIONS", "("]
            end = _find_closing(words, i + 2)
            options = _read_options([token.text for token in tokens[i + 3 : end]])
            removed_spans.append((i - 1, end))
        if word.startswith("CONTRIBUTION_BOUNDS_PER_"):
            assert words[i - 1] == ","
            opening = i + 1 + words[i + 1 :].index("(")
            end = _find_closing(words, opening)
            low, high = "".join(words[opening + 1 : end]).split(",")
            bounds.append((_find_function(words, i), words[i].lower(), float(low), float(high)))
            removed_spans.append((i - 1, end))
    remaining_texts = [
        sql[token.start : token.end + 1]
        for i, token in enumerate(tokens)
        if not any(first_index <= i <= last_index for first_index, last_index in removed_spans)
    ]
    return Statement(sqlglot.parse_one(" ".join(remaining_texts), dialect="bigquery"), options, bounds)


def _find_closing(words: list[str], opening: int) -> int:
    depth = 0
    for i in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[i], 0)
        if depth == 0:
            return i
    raise ValueError("a parenthesis stays open")


def _find_function(words: list[str], position: int) -> str:
    """Return the name of the function whose argument stands at ``position``."""
    depth = 0
    for i in range(position, -1, -1):
        depth += {")": 1, "(": -1}.get(words[i], 0)
        if depth < 0:
            return words[i - 1]
    raise ValueError("a bound outside a function")


def _read_options(texts: list[str]) -> dict[str, str]:
    option_texts = "\0".join(texts).split("\0,\0")
    pairs = (option_text.strip("\0").split("\0=\0") for option_text in option_texts)
    return {name: value.replace("\0", "") for name, value in pairs}
