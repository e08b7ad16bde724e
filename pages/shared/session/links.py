"""Permanent links: a version, where the data come from, and the settings of the page that go with its choices.

A link never contains a number computed from private data: uploads and DP releases are named only as such, and
sigma^2 taken from values is carried as the word "values", not as its figure. A link is read once, before any widget
exists; what is wrong with it is said field by field, and what is good is followed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from dpcore.common.checks import Problems
from dpcore.common.errors import InputProblem, InvalidInput
from dpcore.common.parameters import Parameters
from dpcore.common.text_fields import read_good_fields, to_fields, to_text
from pages.shared.base import catalogue, keys, page_run
from pages.shared.base.question import FieldOrigin, Question
from pages.shared.fields import setting
from pages.shared.fields.fields import epsilon_problems
from pages.shared.session import session, shelf, tour

VERSION = "1"
VERSION_FIELD = "link"
DATA_FIELD = "data"
GENERATOR_PREFIX = "data."
MAX_FIELDS = 40
MAX_CHARACTERS = 100_000
UPLOAD_MARK = "upload"
"""Stands in the address while uploaded data are in use: a reload of the page loses them, and can say so."""
RELOADED = (
    "uploaded data were in use, and they are gone: they stay only until the page is loaded anew, and neither the "
    "address nor a link holds them"
)
KEPT_MARK = "kept"
"""Stands in the address while something is pinned: a reload loses that, too."""
KEPT_GONE = "what was pinned is gone: it stays only until the page is loaded anew"
SPENT_MARK = "spent"
"""Stands in the address once something was released: after a reload the account of it begins anew."""
SPENT_GONE = "what was spent before is no longer counted: the account holds for one window, and begins at 0"
ANEW = (RELOADED, KEPT_GONE, SPENT_GONE)
"""What a page says that was loaded anew."""
# For fields that every link has; the range of a label is one that nobody means.
STAND_INS = {"epsilon": setting.DEFAULT_EPSILON, "lower": 0.0, "upper": 1.0}


def link(
    address: str, url_path: str, origin: session.Origin, parameters: Any | None, epsilon: float | None
) -> str:
    """Return the permanent link of a page.

    Args:
        address: Any address of this app; only its scheme and host are used.
        url_path: Of the page.
        origin: Where the data come from.
        parameters: The page's parameters object; None for pages without.
        epsilon: The shared epsilon, for pages without a parameters object; None where its field is empty.
    """
    return _address(address, url_path, _origin_fields(origin) | _parameter_fields(parameters, epsilon))


def _address(address: str, url_path: str, fields: Mapping[str, str]) -> str:
    scheme, host, *_ = urlsplit(address)
    return urlunsplit((scheme, host, "/" + url_path, urlencode(fields), ""))


def _origin_fields(origin: session.Origin) -> dict[str, str]:
    """Return the fields of a link that say where the data come from."""
    generator = {GENERATOR_PREFIX + name: text for name, text in origin.fields.items()}
    return {VERSION_FIELD: VERSION, DATA_FIELD: origin.kind, **generator}


def _parameter_fields(parameters: Any | None, epsilon: float | None) -> dict[str, str]:
    """Return the fields of a link that carry the settings; those that do not go with the choices are left out."""
    if parameters is not None:
        unused = parameters.unused if isinstance(parameters, Parameters) else ()
        return {name: text for name, text in to_fields(parameters).items() if name not in unused}
    return {} if epsilon is None else {"epsilon": str(epsilon).removesuffix(".0")}


def read(
    fields: Mapping[str, str], spec: Question
) -> tuple[session.Origin, dict[str, Any], list[InputProblem]]:
    """Return what a link says.

    Args:
        fields: Its query fields.
        spec: The page it points to.

    Returns:
        Where the data come from, session key to value of every widget that it sets, and what is wrong with fields
        that are unknown, missing or out of range: those it does not set.

    Raises:
        InvalidInput: Another version, too many fields or too many characters: nothing can be made of it.
    """
    problems = Problems()
    if fields.get(VERSION_FIELD) != VERSION:
        problems.add("this link was made by another version of the app", remedy="Ask for a new one")
    if len(fields) > MAX_FIELDS:
        problems.add(f"a link has at most {MAX_FIELDS} fields; this one has {len(fields)}")
    if (length := sum(len(name) + len(text) for name, text in fields.items())) > MAX_CHARACTERS:
        message = f"this link has {length:,} characters; at most {MAX_CHARACTERS:,} are read"
        problems.add(message, remedy="It may have been damaged; ask for it again")
    problems.raise_if_any()
    generator = {
        name.removeprefix(GENERATOR_PREFIX): text
        for name, text in fields.items()
        if name.startswith(GENERATOR_PREFIX)
    }
    page_fields = {
        name: text
        for name, text in fields.items()
        if name not in (VERSION_FIELD, DATA_FIELD, UPLOAD_MARK, KEPT_MARK, SPENT_MARK, page_run.PRESENT_MARK)
        and not name.startswith(GENERATOR_PREFIX)
        and not tour.is_mark(name)
    }
    page_fields = spec.as_now(page_fields, to_text)
    origin = session.Origin(fields.get(DATA_FIELD, session.DEFAULT_SAMPLE), generator)
    silent: dict[str, str] = {}
    if UPLOAD_MARK in fields:
        # An address that was loaded anew. The data are gone, and it never held what may have been read off them.
        if origin.kind in (session.UPLOADED, session.RELEASED):
            origin = session.Origin(session.DEFAULT_SAMPLE)
        if spec.parameters is not None:
            field_names = {f.name for f in dataclasses.fields(spec.parameters)}
            silent = {n: str(v) for n, v in STAND_INS.items() if n in field_names and n not in page_fields}
    parameters_type, widgets = spec.parameters or Parameters, spec.widgets
    if spec.parameters is None:
        widgets = {"epsilon": keys.EPSILON}
        silent = {} if "epsilon" in page_fields else {"epsilon": str(setting.DEFAULT_EPSILON)}
    values, problems_of_fields = _widgets(parameters_type, widgets, silent | page_fields)
    nobodys = {widgets[name] for name in silent}
    return origin, {key: value for key, value in values.items() if key not in nobodys}, problems_of_fields


def _widgets(
    parameters_type: type[Any], widgets: Mapping[str, str], page_fields: Mapping[str, str]
) -> tuple[dict[str, Any], list[InputProblem]]:
    parameters, bad, problems = read_good_fields(parameters_type, page_fields, STAND_INS)
    if bad:
        consequence = (
            "all else is as it says" if len(bad) < len(page_fields) else "the app's own settings are shown"
        )
        problems.append(InputProblem(f"not followed: {', '.join(bad)}; {consequence}"))
    # A stand-in is nobody's setting: the page goes on with its own, and with both ends of a range.
    missing = {
        f.name
        for f in dataclasses.fields(parameters_type)
        if f.default is dataclasses.MISSING and f.name in bad
    }
    if missing & {"lower", "upper"}:
        missing |= {"lower", "upper"}
    return {key: getattr(parameters, name) for name, key in widgets.items() if name not in missing}, problems


def apply_once(spec: Question) -> None:
    """Read this session's link, if there is one, into the session state. To be called before any widget.

    The data come first: what the link says of widgets overrides what loading data proposes.
    """
    if st.session_state.get(keys.LINK_READ):
        return
    st.session_state[keys.LINK_READ] = True
    fields = st.query_params.to_dict()
    session.loaded()  # First: loading data resets widgets and problems, and must not undo what the link sets.
    problems = Problems()
    if VERSION_FIELD in fields:
        _follow(fields, spec, problems)
    tour.resume(fields, VERSION_FIELD in fields, problems)
    if UPLOAD_MARK in fields:
        problems.add(RELOADED, remedy=f"Load them again. Shown instead: {session.dataset().name}")
    if KEPT_MARK in fields:
        problems.add(KEPT_GONE, remedy="Save session, in the sidebar, keeps it as a file")
    if SPENT_MARK in fields:
        problems.add(
            SPENT_GONE, remedy="Open the session file that you saved, or add what you released to it yourself"
        )
    st.session_state[keys.LINK_PROBLEMS] = tuple(problems.entries)


def _follow(fields: Mapping[str, str], spec: Question, problems: Problems) -> None:
    """Load the link's data and set its widgets, as far as they are good."""
    try:
        origin, values, refused_fields = read(fields, spec)
    except InvalidInput as refused:
        problems.extend(refused.problems)
        return
    try:
        session.use(origin.load(), origin)
    except InvalidInput as refused:
        problems.extend(refused.problems)
        problems.add(f"shown instead: {session.dataset().name}")
    problems.extend(refused_fields)
    for key, value in values.items():
        st.session_state[key] = value
    choice_keys = {spec.key(name) for name, field in spec.fields.items() if field.options is not None}
    if origin.kind in (session.UPLOADED, session.RELEASED) or UPLOAD_MARK in fields or spec.own_data:
        st.session_state[keys.AWAITED] = values
    st.session_state[keys.LINK_SAID] = {key: value for key, value in values.items() if key in choice_keys}


def current(spec: Question) -> tuple[str, str]:
    """Return the permanent link of the page as it stands, and the query of the browser's address.

    A reload of the page comes back to that query. Nobody chooses to share an address, but it is seen and kept by
    browsers. So of private data, and of releases, it holds only fields that are declared public, and the ends of a
    range, which are public by what they are; of uploads, of what is kept and of what was spent it says only that there
    was some. While a file of the page's own is in use, whatever was entered may have been read off it; a page with data
    of its own goes by those alone.
    """
    data, parameter_fields, state = session.loaded(), _parameter_fields(*_state(spec)), st.session_state
    guarded = bool(spec.file_key) and spec.file_key in state
    if not spec.own_data:
        guarded = guarded or (data.made_of or data).dataset.is_private
    has_own_table = any(q.file_key and q.file_key in state for q in catalogue.PAGES)
    touring: shelf.Tour | None = state.get(keys.TOUR)
    loaded: session.Loaded = data if touring is None else touring.saved_state.loaded
    marks = {UPLOAD_MARK: "1"} if has_own_table or session.is_file(loaded.made_of or loaded) else {}
    if touring is not None:
        marks |= tour.marks(touring)
    if state.get(keys.PINS) or (touring is not None and touring.saved_state.pinned):
        marks[KEPT_MARK] = "1"
    if _has_spent():
        marks[SPENT_MARK] = "1"
    if state.get(keys.PRESENTING):
        marks[page_run.PRESENT_MARK] = "1"
    origin_fields, shown_fields = _origin_fields(data.origin), parameter_fields
    if guarded:
        secret = {
            name
            for name, field in spec.fields.items()
            if field.origin is not FieldOrigin.PUBLIC and not field.published
        }
        shown_fields = {name: text for name, text in parameter_fields.items() if name not in secret}
    link_of = _address(
        st.context.url or "http://127.0.0.1:8501", spec.url_path, origin_fields | parameter_fields
    )
    return link_of, urlencode(origin_fields | shown_fields | marks)


def _has_spent() -> bool:
    """Return whether anything was released in this session, from the data in use or a page's own."""
    account_keys = [q.account_key for q in catalogue.PAGES if q.account_key]
    accounts = [st.session_state.get(key) or {} for key in (keys.LEDGERS, *account_keys)]
    return any(ledger.releases for account in accounts for ledger in account.values())


def _state(spec: Question) -> tuple[Any | None, float | None]:
    """Return the page's parameters object; where it has none, the shared epsilon if that is a good one."""
    if (parameters := st.session_state.get(keys.PAGE_PARAMETERS)) is not None:
        return parameters, None
    epsilon = st.session_state.get(keys.EPSILON)
    return None, None if epsilon_problems(epsilon) else epsilon
