"""Bring files: look at them, let the person correct what they were taken for, count them, drop them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import streamlit as st

from dpcore import counting
from dpcore.common.errors import InvalidInput, Problem
from dpcore.common.privacy import Sensitivity
from dpcore.data.column_roles import MissingUsers, Roles
from pages.shared import demo, fields, jobs, keys, session
from pages.shared.text import plain
from pages.your_data import engine_inputs, upload_roles, uploads

LOCAL, SERVED = "SWEETSPOT_LOCAL", demo.SERVED


def is_local() -> bool:
    """Whether the app was started on the person's own computer (``make app``), so that it may read paths."""
    return os.environ.get(LOCAL) == "1" and not is_served()


def is_served() -> bool:
    """Whether the app is a public demo, where no data are to be brought."""
    return demo.is_served()


def say_served() -> None:
    """Say that a public demo takes no data."""
    st.info(
        "This is a public demo: uploads and paths are switched off, so that nobody's data come here. Samples "
        "and generators work as usual. To use data of your own, run Sweet Spot on your computer.",
        icon=":material/cloud_off:",
    )


def panel() -> None:
    """The whole way from files to a data set."""
    if is_served():
        say_served()
        return
    st.session_state.setdefault(keys.UPLOAD_STOPPED, "")
    if jobs.watch(keys.UPLOAD_JOB, "Counting"):
        st.caption("The data in use stay as they are until it has ended; the other pages go on working.")
        return
    _finish()
    _bring()
    _say(st.session_state.get(keys.UPLOAD_PROBLEMS, ()))
    if st.session_state[keys.UPLOAD_STOPPED]:
        st.info(st.session_state[keys.UPLOAD_STOPPED], icon=":material/stop_circle:")
    source: counting.Source | None = st.session_state.get(keys.UPLOAD_TABLE)
    roles: Roles | None = None
    if source is not None:
        roles = upload_roles.choose(source)
        with st.container(horizontal=True):
            used = st.button(
                "Use these data", type=fields.main_button(), icon=":material/check:", key="use_upload"
            )
            st.button("Discard the file", key="discard_upload", on_click=_discard, icon=":material/delete:")
        if used:
            _use(source, roles)
    engine_inputs.recipes(roles)


def _bring() -> None:
    round_ = st.session_state.setdefault(keys.UPLOAD_ROUND, 0)
    key = f"{keys.UPLOAD}{round_}"
    st.file_uploader(
        "A table: one row per contribution, or one per user with a count, or a histogram (up to 200 MB)",
        key=key,
        accept_multiple_files=True,
        on_change=_read_uploads,
        args=(key,),
        help="CSV or other delimited text, JSON Lines, Parquet or Excel; text and JSON may be compressed with gzip "
        "or Zstandard. Several files with the same columns count as one table. They are read on this computer, "
        "reduced to counts, and dropped. Nothing is sent anywhere.",
    )
    if is_local():
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "Or the path of a file on this computer, of any size",
                key=keys.UPLOAD_PATH,
                placeholder="/home/me/events.parquet",
                help="It is counted where it lies, not copied. Several paths: put a semicolon between them.",
                persist_state="session",
            )
            st.button("Look at it", key="look_at_path", on_click=_read_paths, icon=":material/folder_open:")


def _read_uploads(key: str) -> None:
    files = st.session_state.get(key)
    if not files:
        return
    workspace = counting.Workspace()
    names = [file.name for file in files]
    paths = []
    for at, file in enumerate(files):
        # The name is the person's; the file's own name is ours.
        path = workspace.folder / f"upload{at}"
        with path.open("wb") as target:
            shutil.copyfileobj(file, target)
        paths.append(path)
    uploads.drop(files)
    _look([str(path) for path in paths], names, workspace)
    st.session_state[keys.UPLOAD_ROUND] += 1  # a new uploader: the files of the old one are gone


def _read_paths() -> None:
    text = str(st.session_state.get(keys.UPLOAD_PATH) or "")
    paths = [os.path.expanduser(part.strip().strip('"')) for part in text.split(";") if part.strip()]
    _look(paths, [os.path.basename(path) or path for path in paths], None)


def _look(paths: Sequence[str], names: Sequence[str], workspace: counting.Workspace | None) -> None:
    state = st.session_state
    _discard()
    state[keys.UPLOAD_STOPPED] = ""
    try:
        source = counting.open_files(paths, names, owned=workspace)
        roles = source.roles
    except InvalidInput as refused:
        if workspace is not None:
            workspace.close()
        name = f"the file {names[0]} was not read" if len(names) == 1 else "the files were not read"
        state[keys.UPLOAD_PROBLEMS] = (*([Problem(name)] if names else []), *refused.problems)
        return
    if source.complete:
        source.close()  # every row is in memory
    state[keys.UPLOAD_TABLE] = source
    upload_roles.propose(roles)
    stated = upload_roles.stated_release(source, roles)
    state[keys.UPLOAD_PUBLIC] = Sensitivity.PRIVATE if stated is None else Sensitivity.DP_RELEASE
    state[keys.UPLOAD_MISSING] = MissingUsers.LEAVE_OUT
    state[keys.UPLOAD_COPIES] = False


def _say(problems: tuple[Problem, ...]) -> None:
    if problems:
        st.error(
            "\n".join(f"- {plain(p.sentence, 400)}" for p in problems)
            + "\n\nThe data in use stay as they were.",
            icon=":material/error:",
        )


def _use(source: counting.Source, roles: Roles) -> None:
    chosen: Sensitivity = st.session_state[keys.UPLOAD_PUBLIC]
    stated = upload_roles.stated_release(source, roles)
    provenance = stated if chosen is Sensitivity.DP_RELEASE and stated is not None else chosen
    st.session_state[keys.UPLOAD_STOPPED] = ""
    if not source.complete:
        copies = bool(st.session_state.get(keys.UPLOAD_COPIES))
        jobs.start(
            keys.UPLOAD_JOB,
            roles,
            lambda progress, should_stop: counting.count(
                source, roles, provenance, copies=copies, progress=progress, should_stop=should_stop
            ),
        )
        st.session_state[keys.UPLOAD_PROBLEMS] = ()
        st.rerun()
    try:
        with st.spinner("Counting…"):
            counted = counting.count(source, roles, provenance)
    except InvalidInput as refused:
        _say(refused.problems)
        return
    _take(counted)


def _finish() -> None:
    """Take what a count in the background has found."""
    try:
        found = jobs.result_of(keys.UPLOAD_JOB)
    except InvalidInput as refused:
        st.session_state[keys.UPLOAD_PROBLEMS] = refused.problems
        st.session_state[keys.UPLOAD_JOB] = None
        return
    if found is not None:
        st.session_state[keys.UPLOAD_JOB] = None
        _take(found[1])


def _take(counted: counting.Counted) -> None:
    if counted.dataset is None:
        st.session_state[keys.UPLOAD_STOPPED] = counted.ended
        return
    released = counted.dataset.release is not None
    session.use(counted.dataset, session.Origin(session.RELEASED if released else session.UPLOADED))
    _discard()
    st.rerun()


def _discard() -> None:
    source: counting.Source | None = st.session_state.get(keys.UPLOAD_TABLE)
    if source is not None:
        source.close()
    st.session_state[keys.UPLOAD_TABLE] = None
    st.session_state[keys.UPLOAD_PROBLEMS] = ()
