"""Permanent links: a version, where the data come from, and every field of the page's parameters object.

A link never contains a number computed from private data: uploads and DP releases are named only as such, and
sigma^2 taken from values is carried as the word "values", not as its figure. A link is read once, before any widget
exists; what is wrong with it is said, and the app goes on with its defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from dpcore.checks import EPSILON_RANGE, Problems
from dpcore.errors import InvalidInput
from dpcore.parameters import from_fields, to_fields
from pages.parts import keys, session
from pages.parts.registry import PageSpec

VERSION = "1"
VERSION_FIELD = "link"
DATA_FIELD = "data"
GENERATOR_PREFIX = "data."
MAX_FIELDS = 40


def link(
    address: str, url_path: str, origin: session.Origin, parameters: Any | None, epsilon: float | None
) -> str:
    """The permanent link of a page.

    Args:
        address: Any address of this app; only its scheme and host are used.
        url_path: Of the page.
        origin: Where the data come from.
        parameters: The page's parameters object; None for pages without.
        epsilon: The shared epsilon, for pages without a parameters object; None where its field is empty.
    """
    fields = {VERSION_FIELD: VERSION, DATA_FIELD: origin.kind}
    fields.update({GENERATOR_PREFIX + name: text for name, text in origin.fields.items()})
    if parameters is not None:
        fields.update(to_fields(parameters))
    elif epsilon is not None:
        fields["epsilon"] = str(epsilon).removesuffix(".0")
    scheme, host, *_ = urlsplit(address)
    return urlunsplit((scheme, host, "/" + url_path, urlencode(fields), ""))


def read(fields: Mapping[str, str], spec: PageSpec) -> tuple[session.Origin, dict[str, Any]]:
    """What a link says.

    Args:
        fields: Its query fields.
        spec: The page it points to.

    Returns:
        Where the data come from, and session key to value of every widget it sets.

    Raises:
        InvalidInput: Another version, too many fields, or a field that is unknown, missing or out of range.
    """
    problems = Problems()
    if fields.get(VERSION_FIELD) != VERSION:
        problems.add("this link was made by another version of the app", remedy="Ask for a new one")
    if len(fields) > MAX_FIELDS:
        problems.add(f"a link has at most {MAX_FIELDS} fields; this one has {len(fields)}")
    problems.raise_if_any()
    generator = {
        name.removeprefix(GENERATOR_PREFIX): text
        for name, text in fields.items()
        if name.startswith(GENERATOR_PREFIX)
    }
    own = {
        name: text
        for name, text in fields.items()
        if name not in (VERSION_FIELD, DATA_FIELD) and not name.startswith(GENERATOR_PREFIX)
    }
    origin = session.Origin(fields.get(DATA_FIELD, session.DEFAULT_SAMPLE), generator)
    if spec.parameters is None:
        return origin, _read_epsilon(own)
    parameters = from_fields(spec.parameters, own)
    return origin, {key: getattr(parameters, name) for name, key in spec.widgets.items()}


def _read_epsilon(own: Mapping[str, str]) -> dict[str, Any]:
    problems = Problems()
    for name in own:
        if name != "epsilon":
            problems.add(f"{name[:40]} is not a parameter of this page")
    values: dict[str, Any] = {}
    if "epsilon" in own:
        try:
            epsilon = float(own["epsilon"])
        except ValueError:
            epsilon = float("nan")
        if problems.between(*EPSILON_RANGE, epsilon=epsilon):
            values[keys.EPSILON] = epsilon
    problems.raise_if_any()
    return values


def apply_once(spec: PageSpec) -> None:
    """Read this session's link, if there is one, into the session state. To be called before any widget.

    The data come first: what the link says of widgets overrides what loading data proposes.
    """
    if st.session_state.get(keys.LINK_READ):
        return
    st.session_state[keys.LINK_READ] = True
    fields = st.query_params.to_dict()
    if VERSION_FIELD not in fields:
        return
    session.loaded()  # First: loading data resets widgets and problems, and must not undo what the link sets.
    problems = Problems()
    try:
        origin, values = read(fields, spec)
        try:
            session.use(origin.load(), origin)
        except InvalidInput as refused:
            problems.extend(refused.problems)
        for key, value in values.items():
            st.session_state[key] = value
        if problems.found:
            problems.add(f"shown instead: {session.dataset().name}")
    except InvalidInput as refused:
        problems.extend(refused.problems)
    st.session_state[keys.LINK_PROBLEMS] = tuple(problems.found)


def current_link(spec: PageSpec) -> str:
    """The permanent link of the page as it stands."""
    return link(
        st.context.url or "http://127.0.0.1:8501",
        spec.url_path,
        session.loaded().origin,
        st.session_state.get(keys.PAGE_PARAMETERS),
        st.session_state[keys.EPSILON],
    )
