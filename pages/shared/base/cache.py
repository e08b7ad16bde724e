"""Calls of the core that a rerun repeats, cached by content. Every cache of the app is made here.

Streamlit hashes only a sample of a large array, and heavy tails are exactly what a sample misses: so the key is
the data's digest and the frozen question, and the data themselves pass by as ``_argument``. What depends on data is
kept per session, since uploads are private to the person who made them, and as a resource, since answers are frozen
and pickling millions of users on every rerun would cost more than the answer.

A private copy takes the place of the data it was drawn from, and nothing computed from those may stay: a cache that
this module does not know could not be forgotten. A test looks for others.

What searches find is kept as `Answers`: those on samples and generated data for everybody, as a class that is shown one
sample asks the same twenty times; those on anything else per session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, Generic, ParamSpec, TypeVar

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
        kept = st.cache_resource(max_entries=max_entries, scope="session", show_spinner=spinner or False)(
            function
        )
        if not own_data:
            _ABOUT_DATA.append(kept)
        return kept

    return of


def cached_for_all(max_entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache a function that depends on no data, for all sessions; so many answers are kept."""
    return st.cache_resource(max_entries=max_entries, show_spinner=False)


class Answers(Generic[R]):
    """The last so many answers that searches have found, by question; threads may use it.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._most, self._kept = most, dict[Hashable, R]()

    def known(self, question: Hashable) -> R | None:
        """Return the answer; None where it is not known."""
        with self._lock:
            if question not in self._kept:
                return None
            self._kept[question] = answer = self._kept.pop(question)  # Now the last one used.
            return answer

    def found(self, question: Hashable, search: Callable[[], R], whole: Callable[[R], bool]) -> R:
        """Return the answer, searched for where it is not known; kept where it is ``whole``, not stopped
        early.
        """
        if (known := self.known(question)) is not None:
            return known
        if whole(answer := search()):
            self.keep(question, answer)
        return answer

    def keep(self, question: Hashable, answer: R) -> None:
        """Keep an answer, in place of the one before."""
        with self._lock:
            self._kept.pop(question, None)
            self._kept[question] = answer
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]


def answers(of: str, for_all: bool, most: int = 32) -> Answers[Any]:
    """Return what searches of one name have found; questions are to hold the digest of the data.

    Args:
        of: The name, of a page or of one of its searches.
        for_all: Whether all sessions share them: only where the data are the same for everybody by themselves, as
            samples and generators are. An upload stays with its session, whatever it was declared to be.
        most: How many are kept.
    """
    return _for_all(of, most) if for_all else _of_session(of, most)


@cached_for_all(max_entries=64)
def _for_all(of: str, most: int) -> Answers[Any]:
    return Answers(most)


@cached(max_entries=64)
def _of_session(of: str, most: int) -> Answers[Any]:
    return Answers(most)


def forget() -> None:
    """Drop every answer that was computed from this session's data."""
    for function in _ABOUT_DATA:
        function.clear()
