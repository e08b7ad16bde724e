"""Releases that pages have drawn, as a session file carries them.

A page with such releases has a ``saved.py`` with ``ENTRY``, the name under which the session holds them, and

    def to_json(held) -> Any                                  # the JSON for the file
    def from_json(part: Part, accounts: Mapping[str, Ledger]) -> held     # problems are added to the part
    def joined(now, more) -> held                             # those of the session and of a file together

``accounts`` are the file's ledgers of the page's data, those of its own data if it has some.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import streamlit as st

from dpcore.common.privacy import Ledger
from dpcore.common.strict_json import JsonValue
from pages.shared.base import catalogue
from pages.shared.base.question import Question

_MODULES: dict[str, Any | None] = {}
"""Modules by page, None without one: looking for a file in every run of every page would take as long as a figure."""


def _import_saved(name: str) -> Any | None:
    if name not in _MODULES:
        module = f"pages.{name}.saved"
        _MODULES[name] = None if find_spec(module) is None else importlib.import_module(module)
    return _MODULES[name]


def _list_pages() -> list[tuple[Question, Any]]:
    return [(page, saved) for page in catalogue.PAGES if (saved := _import_saved(page.name)) is not None]


def list_releases(state: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the releases in a session, by name of the page."""
    return {
        page.name: releases for page, saved in _list_pages() if (releases := state.get(page.key(saved.ENTRY)))
    }


def to_json(releases: Mapping[str, Any]) -> dict[str, Any]:
    """Return the releases as they stand in a file, by name of the page."""
    return {
        page.name: saved.to_json(releases[page.name])
        for page, saved in _list_pages()
        if page.name in releases
    }


def from_json(node: JsonValue, accounts: Mapping[str, Mapping[str, Ledger]]) -> dict[str, Any]:
    """Return the releases of a file, by name of the page; problems are added to ``node``."""
    pages = {page.name: (page, saved) for page, saved in _list_pages()}
    releases = {}
    for name, entry in (node.get_members((), tuple(pages)) or {}).items():
        page, saved = pages[name]
        releases[name] = saved.from_json(entry, accounts.get(name if page.own_account else "", {}))
    return {name: release for name, release in releases.items() if release}


def apply(releases: Mapping[str, Any]) -> None:
    """Add the releases of a file to those of the session."""
    for page, saved in _list_pages():
        if page.name in releases:
            key = page.key(saved.ENTRY)
            st.session_state[key] = saved.joined(st.session_state.get(key, {}), releases[page.name])
