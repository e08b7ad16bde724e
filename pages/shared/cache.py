"""Calls of the core that a rerun repeats, cached by content. Every cache of the app is made here.

Streamlit hashes only a sample of a large array, and heavy tails are exactly what a sample misses: so the key is
the data's digest and the frozen question, and the data themselves pass by as ``_argument``. What depends on data is
kept per session, since uploads are private to the person who made them, and as a resource, since answers are frozen
and pickling millions of users on every rerun would cost more than the answer.

A private copy takes the place of the data it was drawn from, and nothing computed from those may stay: a cache that
this module does not know could not be forgotten. A test looks for others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import streamlit as st

P = ParamSpec("P")
R = TypeVar("R")

_ABOUT_DATA: list[Any] = []


def cached(
    max_entries: int = 16, spinner: str = "", own_data: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache a function of this session's data.

    Args:
        max_entries: Answers that are kept.
        spinner: What is said while one is computed; empty for nothing.
        own_data: Whether it is about data that its page has for itself, which a private copy does not concern.
    """

    def of(function: Callable[P, R]) -> Callable[P, R]:
        found = st.cache_resource(max_entries=max_entries, scope="session", show_spinner=spinner or False)(
            function
        )
        if not own_data:
            _ABOUT_DATA.append(found)
        return found

    return of


def cached_for_all(max_entries: int = 16, spinner: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache a function that depends on no data, for all sessions; arguments as in `cached`."""
    return st.cache_resource(max_entries=max_entries, show_spinner=spinner or False)


def forget() -> None:
    """Drop every answer that was computed from this session's data."""
    for function in _ABOUT_DATA:
        function.clear()
