"""The upload of tables: open the files, let the person correct the roles of columns, count the rows, drop the files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from dpcore import counting
from dpcore.common.checks import InvalidInput, describe_error
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.data.column_roles import Roles
from dpcore.dataset import Dataset
from pages.shared.base import demo
from pages.shared.data import uploads
from pages.shared.fields import jobs
from pages.shared.session import own_tables, session
from pages.your_data import contents as your_data_contents
from pages.your_data import upload_roles
from pages.your_data.question import QUESTION

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

LOCAL, FOLDER = "SWEETSPOT_LOCAL", "SWEETSPOT_FOLDER"
ENTRY = uploads.Entry(QUESTION, "upload_")
_STOPPED = "Stopped; the data in use stay as they were."
_CUT_OFF = f"{jobs.CUT_OFF} The data in use stay as they were."
WAIT_SECONDS = 3.0
"""How long a look at files is waited for before the page goes on beside it."""


def is_local() -> bool:
    """Return True if the app runs on the person's own computer (``make app``), so that it may read paths."""
    return os.environ.get(LOCAL) == "1" and not demo.is_served()


def is_waiting() -> bool:
    """Return True if a file is being read or counted, or waits for *Use these data*."""
    names = ("upload_table", "upload_pairs", "look_job", "upload_job")
    return any(st.session_state.get(QUESTION.key(name)) is not None for name in names)


def show_panel() -> None:
    """Show all steps from files to a data set."""
    if demo.is_served():
        uploads.show_demo_notice()
        return
    st.session_state.setdefault(QUESTION.key("upload_stopped"), "")
    _use_finished_jobs()
    if jobs.watch(QUESTION.key("upload_job"), "Counting") or jobs.watch(
        QUESTION.key("look_job"), "Reading", measured=False
    ):
        st.caption("The data in use stay as they are until it has ended; the other pages go on working.")
        return
    # The screen belongs to the questions about a file, and then to what its data show.
    if is_waiting() or (session.is_file() and not ENTRY.problems):
        with st.expander("Bring another file", icon=":material/upload_file:"):
            _show_uploader()
    else:
        _show_uploader()
    if not is_waiting():
        _show_problems()
    source: counting.Source | None = st.session_state.get(QUESTION.key("upload_table"))
    distribution: Dataset | None = st.session_state.get(QUESTION.key("upload_pairs"))
    roles: Roles | None = None
    if (
        distribution is not None
        and (dataset := upload_roles.choose_distribution(distribution, _discard)) is not None
    ):
        _use_dataset(dataset)
    if source is not None:
        roles = upload_roles.choose_roles(source)
        if uploads.use_or_discard("use_upload", "discard_upload", _discard):
            _use(source, roles)
    if is_waiting():
        _show_problems()  # Next to the buttons of the file.
    your_data_contents.show_recipes(roles)


def _show_problems() -> None:
    """Show the problems of the last files, or that reading or counting them was stopped."""
    ENTRY.show_problems()
    if stopped := st.session_state[QUESTION.key("upload_stopped")]:
        st.info(stopped, icon=":material/stop_circle:")


def _show_uploader() -> None:
    ENTRY.show(
        "A table: one row per contribution, or one per user with a count, or a histogram; or a distribution of pairs "
        "(up to 200 MB)",
        "CSV or other delimited text, JSON Lines, Parquet or Excel; text and JSON may be compressed with gzip "
        "or Zstandard. Several files with the same columns count as one table. They are read on this computer, "
        "reduced to counts, and dropped. Nothing is sent anywhere. A distribution of pairs is the JSON file that "
        "`python -m dpcore.counting --distribution-to` writes, for *Per group*.",
        _read_uploads,
        multiple=True,
    )
    if is_local():
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "Or the path of a file on this computer, of any size",
                key=QUESTION.key("upload_path"),
                placeholder="/home/me/events.parquet",
                help="It is counted where it lies, not copied. Several paths: put a semicolon between them.",
                persist_state="session",
            )
            st.button("Look at it", key="look_at_path", on_click=_read_paths, icon=":material/folder_open:")


def _read_uploads(files: list[UploadedFile]) -> None:
    """Open uploaded files: small ones from memory, large ones from a temporary folder."""
    names = [file.name for file in files]
    if sum(file.size for file in files) <= counting.HELD_BYTES:  # these never touch a disk (server.py)
        contents = [counting.MemoryFile(file.getvalue()) for file in files]
        ENTRY.drop(files)
        _open_files(contents, names, None)
        return
    try:
        workspace = counting.Workspace()
        paths = []
        for index, file in enumerate(files):
            # The name is the person's; the file's own name is ours.
            path = workspace.folder / f"upload{index}"
            with path.open("wb") as target:
                shutil.copyfileobj(file, target)
            paths.append(path)
    except (InvalidInput, OSError) as error:  # the first where not even the folder could be made
        _discard()
        ENTRY.refuse(describe_error(error), names)
    else:
        _open_files([str(path) for path in paths], names, workspace)
    finally:
        ENTRY.drop(files)


def _read_paths() -> None:
    """Open the files at the paths that the person entered."""
    text = str(st.session_state.get(QUESTION.key("upload_path")) or "")
    folder = os.environ.get(FOLDER, "")  # the person's; the server runs in that of the app
    paths = [
        os.path.join(folder, os.path.expanduser(path.strip().strip('"')))
        for path in text.split(";")
        if path.strip()
    ]
    _open_files(paths, [os.path.basename(path) or path for path in paths], None)


def _open_files(
    paths: Sequence[str | counting.MemoryFile], names: Sequence[str], workspace: counting.Workspace | None
) -> None:
    """Open files as work beside the page, or read them as a distribution of pairs."""
    _discard()
    st.session_state[QUESTION.key("upload_stopped")] = ""
    if upload_roles.has_distribution(paths):
        try:
            st.session_state[QUESTION.key("upload_pairs")] = upload_roles.read_distribution(paths, names)
        except (InvalidInput, OSError) as refused:
            ENTRY.refuse(describe_error(refused), names)
        finally:
            if workspace is not None:
                workspace.close()
        return

    def work(_progress: Progress, should_stop: ShouldStop) -> tuple[counting.Source, Roles] | None:
        try:
            source = counting.open_files(paths, names, owned=workspace, should_stop=should_stop)
            return source, source.roles
        except BaseException as error:
            if workspace is not None:
                workspace.close()
            if isinstance(error, counting.StoppedError):
                return None
            raise

    # Nearly every file is read within this time; a workbook of a million rows is not, and then Stop is there.
    jobs.start(QUESTION.key("look_job"), tuple(names), work, WAIT_SECONDS)
    _use_opened_files()


def _use_opened_files() -> None:
    """Show the columns of files that were opened, or why that failed."""
    state = st.session_state
    job: jobs.Job | None = state.get(QUESTION.key("look_job"))
    if job is None or job.running:
        return
    state[QUESTION.key("look_job")] = None
    if job.failed:
        ENTRY.refuse(job.problems, job.question)
        return
    if job.result is None:
        state[QUESTION.key("upload_stopped")] = _CUT_OFF if job.cut_off else _STOPPED
        return
    source, roles = job.result
    if source.complete:
        source.close()  # every row is in memory
    state[QUESTION.key("upload_table")] = source
    known_file = own_tables.find_file(source.columns)
    upload_roles.propose(roles if known_file is None else known_file.roles)
    stated_release = upload_roles.find_stated_release(source, roles)
    label = Disclosure.PRIVATE if stated_release is None else Disclosure.DP_RELEASE
    state[QUESTION.key("upload_public")] = label
    state[QUESTION.key("upload_copies")] = False
    state[QUESTION.key("upload_names")] = ", ".join(source.columns)


def _use(source: counting.Source, roles: Roles) -> None:
    """Count the rows of the files, as work beside the page if they are large, and use the data."""
    disclosure: Disclosure = st.session_state[QUESTION.key("upload_public")]
    stated_release = upload_roles.find_stated_release(source, roles)
    provenance = (stated_release or disclosure) if disclosure is Disclosure.DP_RELEASE else disclosure
    remembered = Disclosure.PRIVATE if disclosure is Disclosure.PRIVATE else Disclosure.PUBLIC
    own_tables.add_files([own_tables.KnownFile(source.name, tuple(source.columns), roles, remembered)])
    st.session_state[QUESTION.key("upload_stopped")] = ""
    if not source.complete:
        copies = bool(st.session_state.get(QUESTION.key("upload_copies")))
        jobs.start(
            QUESTION.key("upload_job"),
            roles,
            lambda progress, should_stop: counting.count(
                source, roles, provenance, copies=copies, progress=progress, should_stop=should_stop
            ),
        )
        ENTRY.refuse(())
        st.rerun()
    try:
        with st.spinner("Counting…"):
            result = counting.count(source, roles, provenance)
    except Exception as error:  # Whatever it is, the panel stays usable.
        ENTRY.refuse(describe_error(error))
        st.rerun()
    ENTRY.refuse(())
    _use_counted(result)


def _use_finished_jobs() -> None:
    """Use what work in the background has found, or store why it failed; either way the work is over."""
    _use_opened_files()
    if problems := jobs.failure_of(QUESTION.key("upload_job")):
        ENTRY.refuse(problems)
        st.session_state[QUESTION.key("upload_job")] = None
    elif (finished := jobs.result_of(QUESTION.key("upload_job"))) is not None:
        job: jobs.Job = st.session_state[QUESTION.key("upload_job")]
        st.session_state[QUESTION.key("upload_job")] = None
        _use_counted(finished[1])
        if job.cut_off:
            st.session_state[QUESTION.key("upload_stopped")] = _CUT_OFF


def _use_counted(result: counting.CountResult) -> None:
    """Use the counted data; if counting was stopped, store why."""
    if result.dataset is None:
        st.session_state[QUESTION.key("upload_stopped")] = result.summary
        return
    _use_dataset(result.dataset)


def _use_dataset(dataset: Dataset) -> None:
    is_release = dataset.release is not None
    session.use(
        session.LoadedData(dataset, session.Origin(session.DP_RELEASE if is_release else session.UPLOADED))
    )
    _discard()
    st.rerun()


def _discard() -> None:
    """Close and forget the file that waits."""
    source: counting.Source | None = st.session_state.get(QUESTION.key("upload_table"))
    if source is not None:
        source.close()
    st.session_state[QUESTION.key("upload_table")] = None
    st.session_state[QUESTION.key("upload_pairs")] = None
    ENTRY.refuse(())
