"""The edges of public bins of numbers or dates, as a person writes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from dpcore.common.checks import refuse

MAX_EDGE_CHARACTERS = 20_000
MAX_BINS = 10_000
DATE_FORMAT = "%Y-%m-%d"
_NUM_MONTHS = {"month": 1, "year": 12}
_NUM_DAYS = {"day": 1, "week": 7}


def parse_edges(text: str | None) -> tuple[str, ...]:
    """Parse the edges of bins from numbers or dates with commas, or from two ends with a step; empty for no text.

    A step is a number, or a day, week, month or year: ``0 to 100 by 10``, ``2025-01-01 to 2026-01-01 by month``.

    Returns:
        The edges as texts, ascending: numbers as Python writes them, dates as 2025-01-31.

    Raises:
        InvalidInput: They cannot be read, do not ascend, or are too few or too many.
    """
    if text is None or not text.strip():
        return ()
    edge_words = text.replace(";", ",").replace(",", " ").split()
    try:
        if len(edge_words) == 5 and (edge_words[1].lower(), edge_words[3].lower()) == ("to", "by"):
            edges = _space_edges(edge_words[0], edge_words[2], edge_words[4].lower())
        else:
            edges = [_write_edge(edge_word) for edge_word in edge_words]
    except (ValueError, InvalidOperation, OverflowError):
        edges_remedy = "Write 0, 10, 20 or 0 to 100 by 10 or 2025-01-01 to 2026-01-01 by month"
        raise refuse(f"the edges of bins cannot be read; got {text[:60]!r}", remedy=edges_remedy) from None
    if not 2 <= len(edges) <= MAX_BINS + 1:
        raise refuse(f"there can be 2 to {MAX_BINS + 1:,} edges of bins; got {len(edges):,}")
    if len({are_dates([edge]) for edge in edges}) > 1:
        raise refuse("the edges of bins are all numbers, or all dates")
    if any(
        not edge_value < next_key
        for edge_value, next_key in itertools.pairwise(map(find_reader(edges), edges))
    ):
        raise refuse("the edges of bins must ascend, each once")
    return tuple(edges)


def _space_edges(first_word: str, last_word: str, step_word: str) -> list[str]:
    """Return edges from the first to at least the last by a step, as texts; the last bin may end beyond."""
    edges: list[str] = []
    if step_word in _NUM_DAYS or step_word in _NUM_MONTHS:
        edge_date, end_date = (datetime.strptime(word, DATE_FORMAT) for word in (first_word, last_word))
        start_date = edge_date
        while (not edges or edge_date < end_date) and len(edges) <= MAX_BINS + 1:
            edges.append(edge_date.strftime(DATE_FORMAT))
            if step_word in _NUM_DAYS:
                edge_date += timedelta(days=_NUM_DAYS[step_word])
            else:
                years, month_index = divmod(start_date.month - 1 + len(edges) * _NUM_MONTHS[step_word], 12)
                # A month that begins on the 31st has no such day everywhere: ValueError, as for what cannot be read.
                edge_date = start_date.replace(year=start_date.year + years, month=month_index + 1)
        return [*edges, edge_date.strftime(DATE_FORMAT)]
    edge_number, end_number, step_number = Decimal(first_word), Decimal(last_word), Decimal(step_word)
    if not (step_number > 0 and edge_number.is_finite() and end_number.is_finite()):
        raise ValueError(step_word)
    start_number = edge_number
    while (not edges or edge_number < end_number) and len(edges) <= MAX_BINS + 1:
        edges.append(_write_edge(str(edge_number)))
        edge_number = start_number + len(edges) * step_number
    return [*edges, _write_edge(str(edge_number))]


def _write_edge(edge_word: str) -> str:
    """Return a number as Python writes it, or a date as 2025-01-31; raise ValueError if the word is neither."""
    try:
        edge_number = float(edge_word)
    except ValueError:
        return datetime.strptime(edge_word, DATE_FORMAT).strftime(DATE_FORMAT)
    if math.isnan(edge_number):
        raise ValueError(edge_word)
    return repr(edge_number + 0.0).removesuffix(".0")


def are_dates(edges: Sequence[str]) -> bool:
    """Return True if edges are dates, not numbers."""
    return edges[0].count("-") == 2 and "e" not in edges[0]


def find_reader(edges: Sequence[str]) -> Callable[[str], Any]:
    """Return the function that converts an edge or a cell to a number, or to a date without the time of day."""
    if are_dates(edges):
        return lambda cell: datetime.strptime(cell[:10].strip(), DATE_FORMAT)
    return float


def name_bins(edges: Sequence[str]) -> tuple[str, ...]:
    """Return the name of each bin, which holds its left edge and not its right one."""
    return tuple(f"[{left_edge}, {right_edge})" for left_edge, right_edge in itertools.pairwise(edges))
