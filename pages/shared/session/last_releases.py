"""What pages have drawn with noise, as a session file carries it.

A page that keeps such things has a ``saved.py`` with ``ENTRY``, the name under which the session holds them, and

    def to_json(held) -> Any                                  # what is written
    def from_json(part: Part, accounts: Mapping[str, Ledger]) -> held     # problems are noted in the part
    def joined(now, more) -> held                             # of the session and of a file, nothing lost

``accounts`` is what the file says was released of the page's data, the account of its own where it has one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import streamlit as st

from dpcore.common.ledger import Ledger
from dpcore.common.strict_json import JsonValue
from pages.shared.base import catalogue
from pages.shared.base.question import Question

_MODULES: dict[str, Any | None] = {}
"""What was found, by page: looking for a file in every run of every page would take as long as a figure."""


def _saved_by(name: str) -> Any | None:
    if name not in _MODULES:
        module = f"pages.{name}.saved"
        _MODULES[name] = None if find_spec(module) is None else importlib.import_module(module)
    return _MODULES[name]


def _pages() -> list[tuple[Question, Any]]:
    return [(page, saved) for page in catalogue.PAGES if (saved := _saved_by(page.name)) is not None]


def take(state: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what a session of this state holds, by name of the page."""
    return {page.name: releases for page, saved in _pages() if (releases := state.get(page.key(saved.ENTRY)))}


def to_json(releases: Mapping[str, Any]) -> dict[str, Any]:
    """As a file holds it, by name of the page."""
    return {
        page.name: saved.to_json(releases[page.name]) for page, saved in _pages() if page.name in releases
    }


def from_json(node: JsonValue, accounts: Mapping[str, Mapping[str, Ledger]]) -> dict[str, Any]:
    """Return what a file holds, by name of the page; problems are noted."""
    pages = {page.name: (page, saved) for page, saved in _pages()}
    releases = {}
    for name, entry in (node.get_members((), tuple(pages)) or {}).items():
        page, saved = pages[name]
        releases[name] = saved.from_json(entry, accounts.get(name if page.own_account else "", {}))
    return {name: release for name, release in releases.items() if release}


def apply(releases: Mapping[str, Any]) -> None:
    """Put what a file holds beside what the session holds."""
    for page, saved in _pages():
        if page.name in releases:
            key = page.key(saved.ENTRY)
            st.session_state[key] = saved.joined(st.session_state.get(key, {}), releases[page.name])
