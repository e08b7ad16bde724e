"""The first rows of a file, the roles of its columns, and files that describe a distribution."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore import counting
from dpcore.common import wording
from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.privacy import Disclosure, ReleaseFacts
from dpcore.data import group_pairs
from dpcore.data.column_roles import MissingUsers, Roles, TableKind, explain_roles, explain_unused_values
from dpcore.dataset import Contribution, Dataset
from pages.shared.data import uploads
from pages.shared.fields import fields
from pages.shared.session import own_tables
from pages.your_data.question import QUESTION

NO_COLUMN = "(none)"
ROLE_LABELS = {
    "user": "Who: the column that identifies a user",
    "count": "Rows of each user",
    "size": "Rows per user (size)",
    "users": "Number of users of that size",
    "value": "Value to average or add up (optional)",
    "task": "Task, product or group (optional)",
}
ROLES_OF = {
    TableKind.EVENTS: ("user", "value", "task"),
    TableKind.COUNTS: ("user", "count"),
    TableKind.HISTOGRAM: ("size", "users"),
    TableKind.PAIRS: ("user", "task", "count", "value"),
}
OPTIONAL = ("value", "task")
TABLE_KINDS = {
    TableKind.EVENTS: "A contribution",
    TableKind.COUNTS: "A user, with a count",
    TableKind.HISTOGRAM: "A size, with its number of users",
    TableKind.PAIRS: "A pair of user and group",
}
KIND_FOLLOWS = {
    TableKind.EVENTS: "A user may have many rows.",
    TableKind.COUNTS: "A column says how many rows they have.",
    TableKind.HISTOGRAM: "So many users have so many rows each.",
    TableKind.PAIRS: "An engine counted the rows of each.",
}
PUBLIC = {
    Disclosure.PRIVATE: "No",
    Disclosure.PUBLIC: "Yes: anybody may see them",
    Disclosure.DP_RELEASE: "They are a DP release, as the file says",
}
PUBLIC_FOLLOWS = {
    Disclosure.PRIVATE: "What is computed from them is for your eyes only; a bound is drawn with noise.",
    Disclosure.PUBLIC: "Every number and plot may be published; a bound costs no ε.",
    Disclosure.DP_RELEASE: "What is computed from them may be published; its ε was spent when it was made.",
}
MISSING_USERS = {MissingUsers.LEAVE_OUT: "Leave them out", MissingUsers.ONE_USER: "Count them as one user"}
CONTRIBUTION = {
    Contribution.ROWS: "A row",
    Contribution.DISTINCT_TASKS: "A distinct task of a user (repeats count once)",
    Contribution.TOTAL: "The total of the value (must not be negative)",
}


def propose(roles: Roles) -> None:
    """Set the widgets to these roles: guessed ones, or those of a known file with the same columns."""
    state = st.session_state
    state[QUESTION.key("upload_kind")] = roles.kind
    for role in ROLE_LABELS:
        state[QUESTION.key("upload_role_") + role] = getattr(roles, role) or NO_COLUMN
    state[QUESTION.key("upload_further")] = list(roles.further_user)
    state[QUESTION.key("upload_further_task")] = list(roles.further_task)
    state[QUESTION.key("upload_contribution")] = roles.contribution
    state[QUESTION.key("upload_missing")] = roles.missing_users


def find_stated_release(source: counting.Source, roles: Roles) -> ReleaseFacts | None:
    """Return the DP release that the file claims to be, when read with these roles; None if it claims none."""
    return source.stated_release if roles.kind is TableKind.HISTOGRAM else None


def choose_roles(source: counting.Source) -> Roles:
    """Draw the first rows and the widgets; return the roles that the person has chosen."""
    head = source.head
    rows = wording.counted(len(head.frame), "row")
    size = rows if source.complete else f"{_write_size(source.num_bytes)}, not yet counted"
    uploads.show_file(source.name, size, len(source.columns), head)
    if source.unnamed:
        names = st.text_input(
            "Names of the columns, with commas between",
            key=QUESTION.key("upload_names"),
            on_change=_rename,
            persist_state="session",
            help="The file names none. From left to right, as many as there are; programs will have them, too.",
        )
        try:
            source.with_names(names.split(","))
        except InvalidInput as refused:
            fields.show_problems(refused.problems)
    st.session_state.setdefault(QUESTION.key("upload_kind"), TableKind.EVENTS)
    table_kind: TableKind = fields.radio(
        "**1.** What is one row?",
        TABLE_KINDS,
        QUESTION.key("upload_kind"),
        horizontal=True,
        captions=KIND_FOLLOWS,
    )
    st.markdown(":small[**2.** Which column is what?]")
    with st.grid(3):
        for role in ROLES_OF[table_kind]:
            _show_role(source, role)
    if table_kind is TableKind.EVENTS:
        with st.expander("More about users, groups and rows"):
            _show_event_choices(source)
    roles = read_roles(table_kind)
    known_file = own_tables.find_file(source.columns)
    explanation = explain_roles(roles)
    if known_file and known_file.roles == roles:
        explanation += f" As in {known_file.name}, which has the same columns."
    st.caption(wording.plain(explanation, 400))
    if passed_over := explain_unused_values(head, roles):
        st.caption(f":material/info: {wording.plain(passed_over, 400)}")
    release = find_stated_release(source, roles)
    options = {
        disclosure: text
        for disclosure, text in PUBLIC.items()
        if disclosure is not Disclosure.DP_RELEASE or release is not None
    }
    if st.session_state.get(QUESTION.key("upload_public")) not in options:
        st.session_state[QUESTION.key("upload_public")] = Disclosure.PRIVATE
    fields.radio(
        "**3.** Are these data public?",
        options,
        QUESTION.key("upload_public"),
        horizontal=True,
        captions=PUBLIC_FOLLOWS,
    )
    if release is not None:
        st.caption(
            f"Every line of the file is labelled *{release.label}*. That is the word of whoever wrote it: nothing here "
            "can check it."
        )
    return roles


def _rename() -> None:
    """Apply the entered column names to a file without a header."""
    state = st.session_state
    source: counting.Source | None = state.get(QUESTION.key("upload_table"))
    names: str | None = state.get(QUESTION.key("upload_names"))
    if source is None or names is None:  # The file was discarded before the press came.
        return
    with contextlib.suppress(InvalidInput):  # Said below the field.
        source = source.with_names(names.split(","))
        state[QUESTION.key("upload_table")], state[QUESTION.key("upload_problems")] = source, ()
        propose(source.roles)


def _write_size(num_bytes: int) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000 or unit == "GB":
            break
        num_bytes = round(num_bytes / 1000)
    return f"{wording.number(num_bytes)} {unit}"


def _show_role(source: counting.Source, role: str) -> None:
    options = [*([NO_COLUMN] if role in OPTIONAL else []), *source.columns]
    key = QUESTION.key("upload_role_") + role
    if st.session_state.get(key) not in options:
        st.session_state[key] = options[0]
    st.selectbox(ROLE_LABELS[role], options, key=key, persist_state="session")


def _show_event_choices(source: counting.Source) -> None:
    """Draw further columns of users and groups, what a contribution is, and what happens to rows without a user."""
    state = st.session_state
    used_columns = {state[QUESTION.key("upload_role_") + role] for role in ROLES_OF[TableKind.EVENTS]}
    _show_further_columns(
        "upload_further",
        [column for column in source.columns if column not in used_columns],
        "Further columns that only together with it identify a user",
        "Say, shop and customer number, where each shop numbers its own customers.",
    )
    if state[QUESTION.key("upload_role_") + "task"] != NO_COLUMN:
        used_columns |= set(state.get(QUESTION.key("upload_further"), ()))
        _show_further_columns(
            "upload_further_task",
            [column for column in source.columns if column not in used_columns],
            "Further columns that together with it make a group",
            "Say, product and day, for a release per product and day.",
        )
    st.session_state.setdefault(QUESTION.key("upload_contribution"), Contribution.ROWS)
    fields.pick("What is a contribution?", CONTRIBUTION, QUESTION.key("upload_contribution"))
    fields.radio("Rows without a user", MISSING_USERS, QUESTION.key("upload_missing"), horizontal=True)
    if not source.complete and len(source.columns) > 2:
        st.checkbox(
            "Also look for rows that are exact copies of others",
            key=QUESTION.key("upload_copies"),
            persist_state="session",
            help="In a file of this size that takes another pass over all its columns, so it is done on request only.",
        )


def _show_further_columns(name: str, options: list[str], label: str, help: str) -> None:
    key = QUESTION.key(name)
    st.session_state[key] = [column for column in st.session_state.get(key, []) if column in options]
    if options:
        st.multiselect(label, options, key=key, placeholder="None needed", persist_state="session", help=help)


def read_roles(table_kind: TableKind) -> Roles:
    """Return the roles that the widgets hold."""
    state = st.session_state
    roles_by_name: dict[str, Any] = {
        role: None
        if state[QUESTION.key("upload_role_") + role] == NO_COLUMN
        else state[QUESTION.key("upload_role_") + role]
        for role in ROLES_OF[table_kind]
    }
    roles = Roles(table_kind, missing_users=state.get(QUESTION.key("upload_missing"), MissingUsers.LEAVE_OUT))
    if table_kind is TableKind.EVENTS:
        roles_by_name["further_user"] = tuple(state.get(QUESTION.key("upload_further"), ()))
        if roles_by_name["task"] is not None:
            roles_by_name["further_task"] = tuple(state.get(QUESTION.key("upload_further_task"), ()))
        roles_by_name["contribution"] = state.get(QUESTION.key("upload_contribution"), Contribution.ROWS)
    return replace(roles, **roles_by_name)


def has_distribution(files: Sequence[str | counting.MemoryFile]) -> bool:
    """Return True if one of these files, by path or in memory, is marked as such a distribution."""
    return any(group_pairs.has_schema(_read_start(file, 2_000)) for file in files)


def read_distribution(files: Sequence[str | counting.MemoryFile], names: Sequence[str]) -> Dataset:
    """Return the data of the one file, labelled private until the person says otherwise.

    Raises:
        InvalidInput: There are several files, or the numbers in it fit no data.
    """
    if len(files) > 1:
        raise refuse("a distribution of pairs is one file, and is brought alone")
    content = _read_start(files[0], group_pairs.MAX_BYTES + 1)
    return group_pairs.read_distribution(content, names[0], Disclosure.PRIVATE)


def _read_start(file: str | counting.MemoryFile, max_bytes: int) -> bytes:
    """Return the first bytes of a file; empty for anything but a regular file."""
    if isinstance(file, counting.MemoryFile):
        return file.content[:max_bytes]
    if not os.path.isfile(file):
        return b""
    with open(file, "rb") as stream:
        return stream.read(max_bytes)


def choose_distribution(dataset: Dataset, on_discard: Callable[[], None]) -> Dataset | None:
    """Show the distribution, the choice of its label, and the buttons; return the data once they are to be used."""
    sizes = dataset.pair_sizes
    assert sizes is not None
    st.markdown(
        f"**{wording.plain(dataset.name)}**: {wording.counted(int(sizes.pairs.sum()), 'pair')} of "
        f"{wording.counted(dataset.histogram.num_users, 'user')} and "
        f"{wording.counted(sizes.task_rows.size, 'group')} of {wording.plain(sizes.label)}."
    )
    st.caption(
        "The file says how pairs of user and group are distributed, not which lie in which group. *Per group* answers "
        "from it, and says what is approximate. Nothing can check that its numbers are true."
    )
    key = QUESTION.key("upload_public")
    options = [Disclosure.PRIVATE, Disclosure.PUBLIC]
    if st.session_state.get(key) not in options:
        st.session_state[key] = Disclosure.PRIVATE
    disclosure = st.radio(
        "Are these data public?",
        options,
        key=key,
        format_func=PUBLIC.__getitem__,
        persist_state="session",
        horizontal=True,
    )
    with st.container(horizontal=True):
        is_confirmed = st.button(
            "Use these data", type=fields.main_button(), icon=":material/check:", key="use_distribution"
        )
        st.button(
            "Discard the file", key="discard_distribution", on_click=on_discard, icon=":material/delete:"
        )
    return replace(dataset, disclosure=disclosure) if is_confirmed else None
