"""The upload of tables: open the files, let the person correct the roles of columns, count the rows, drop the files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore import counting
from dpcore.common.checks import InputProblem, InvalidInput, describe_error
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.common.wording import escape_text, format_count
from dpcore.counting.files import MAX_HELD_BYTES, expand_patterns, find_summaries, name_file, read_summary
from dpcore.counting.reduce import MISSING_REMEDY
from dpcore.data.column_roles import Roles
from dpcore.dataset import Dataset
from pages.shared.data import uploads
from pages.shared.fields import jobs
from pages.shared.server import access
from pages.shared.session import own_tables, session
from pages.your_data import columns, contents
from pages.your_data.question import QUESTION

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

LOCAL, FOLDER = "SWEETSPOT_LOCAL", "SWEETSPOT_FOLDER"
TABLE_UPLOADER = uploads.Uploader(QUESTION, "upload_")
WAIT_SECONDS = 3.0
"""How long a look at files is waited for before the page goes on beside it."""
_CUT_OFF_TEXT = f"{jobs.CUT_OFF_SENTENCE} The data in use stay as they were."


Paths = Sequence[str | counting.MemoryFile]
"""Paths of files on this computer, or files in memory."""
_LOOK_JOB_KEY = QUESTION.get_key("look_job")


def has_waiting_file() -> bool:
    """Return True if a file is being read or counted, or waits for *Use these data*."""
    entry_names = ("upload_table", "upload_pairs", "look_job", "upload_job")
    return any(st.session_state.get(QUESTION.get_key(entry_name)) is not None for entry_name in entry_names)


def show_upload_panel() -> None:
    """Show all steps from files to a data set."""
    if access.is_served():
        uploads.show_demo_notice()
        return
    st.session_state.setdefault(columns.build_key("stopped"), "")
    _use_finished_jobs()
    if jobs.show_progress(columns.build_key("job"), "Counting") or jobs.show_progress(
        _LOOK_JOB_KEY, "Reading", False
    ):
        st.caption("Until it has ended, the data in use stay; the other pages go on working.")
        return
    # The screen belongs to the questions about a file, and then to what its data show.
    is_folded = has_waiting_file() or (session.came_from_file() and not TABLE_UPLOADER.problems)
    with st.expander("Bring another file", icon=":material/upload_file:") if is_folded else st.container():
        _show_uploader()
    if not has_waiting_file():
        _show_problems()
    source: counting.Source | None = st.session_state.get(columns.build_key("table"))
    summary_dataset: Dataset | None = st.session_state.get(columns.build_key("pairs"))
    roles: Roles | None = None
    if summary_dataset is not None:
        _draw_summary_choice(summary_dataset)
    if source is not None:
        if source.head.sheets:
            sheet_key, sheet_names = columns.build_key("sheet"), source.head.sheets
            st.selectbox(
                "Sheet", sheet_names, key=sheet_key, on_change=_change_sheet, persist_state="session"
            )
        roles = columns.draw_role_choices(source)
        if uploads.draw_use_and_discard("use_upload", "discard_upload", _discard_files):
            _use_source(source, roles)
    if has_waiting_file():
        _show_problems()  # Next to the buttons of the file.
        # Not of private data: whether to drop rows would then depend on them.
        is_public = st.session_state.get(columns.build_key("public")) is Disclosure.PUBLIC
        saw_missing = st.session_state.get(columns.build_key("saw_missing"))
        if source is not None and roles is not None and is_public and saw_missing:
            button_options: dict[str, Any] = {
                "on_click": columns.choose_to_drop,
                "icon": ":material/delete_sweep:",
            }
            if st.button("Leave these rows out", key="drop_missing", **button_options):
                _use_source(source, roles)
    contents.show_recipes(roles)


def _show_problems() -> None:
    """Show the problems of the last files, or that reading or counting them was stopped."""
    TABLE_UPLOADER.show_problems()
    if stop_text := st.session_state[columns.build_key("stopped")]:
        st.info(stop_text, icon=":material/stop_circle:")


# --- files --------------------------------------------------------------------------------------------------


def _show_uploader() -> None:
    """Show the uploader, and on a person's own computer the field for paths."""
    TABLE_UPLOADER.show(
        "A table of contributions, of counts per user or of a histogram, up to 200 MB",
        "CSV, JSON Lines, Parquet or Excel, or a file that `sweet-spot count` wrote. Several files with "
        "the same columns are one table. They are read on this computer, reduced to counts, and dropped.",
        _open_uploads,
        takes_several=True,
    )
    if not has_waiting_file():
        with st.expander("Missing values and separators"):
            columns.draw_rule_choice()
            separator_label, separator_key = (
                "Separator of fields (empty: detected)",
                columns.build_key("separator"),
            )
            st.text_input(
                separator_label,
                key=separator_key,
                persist_state="session",
                placeholder="; or tab or blank",
                width=300,
            )
    # On a person's own computer (``make app``) the app may read paths.
    if os.environ.get(LOCAL) == "1" and not access.is_served():
        with st.container(horizontal=True, vertical_alignment="bottom"):
            label_text = "Or the path of a file on this computer, of any size"
            example_path = "/home/me/events.parquet"
            help_text = (
                "It is not copied. Put a semicolon between paths, or write a pattern such as part*.csv. "
                "You can also enter a folder with partitions such as year=2024; all its files are read."
            )
            path_options: dict[str, Any] = {"placeholder": example_path, "help": help_text}
            st.text_input(label_text, key=columns.build_key("path"), persist_state="session", **path_options)
            st.button(
                "Look at it", key="look_at_path", on_click=_open_entered_paths, icon=":material/folder_open:"
            )


def _open_uploads(files: list[UploadedFile]) -> None:
    """Open uploaded files: small ones from memory, large ones from a temporary folder."""
    file_names = [file.name for file in files]
    if sum(file.size for file in files) <= MAX_HELD_BYTES:  # these never touch a disk (server.py)
        memory_files = [counting.MemoryFile(file.getvalue()) for file in files]
        TABLE_UPLOADER.drop_files(files)
        _open_files(memory_files, file_names, None)
        return
    try:
        workspace = counting.Workspace()
        saved_paths = []
        for index, file in enumerate(files):
            # The name is the person's; the file's own name is ours.
            saved_path = workspace.folder / f"upload{index}"
            with saved_path.open("wb") as output_stream:
                shutil.copyfileobj(file, output_stream)
            saved_paths.append(str(saved_path))
    except (InvalidInput, OSError) as error:  # the first where not even the folder could be made
        _discard_files()
        TABLE_UPLOADER.store_problems(describe_error(error), file_names)
    else:
        _open_files(saved_paths, file_names, workspace)
    finally:
        TABLE_UPLOADER.drop_files(files)


def _open_entered_paths() -> None:
    """Open the files at the paths that the person entered."""
    paths_text = str(st.session_state.get(columns.build_key("path")) or "")
    base_folder = os.environ.get(FOLDER, "")  # the person's; the server runs in that of the app
    entered_paths = [
        entered_path.strip().strip('"') for entered_path in paths_text.split(";") if entered_path.strip()
    ]
    file_paths = [
        os.path.join(base_folder, os.path.expanduser(entered_path)) for entered_path in entered_paths
    ]
    try:
        file_paths = expand_patterns(file_paths)
    except InvalidInput as refused:
        _discard_files()
        TABLE_UPLOADER.store_problems(refused.problems)
        return
    _open_files(
        file_paths, [name_file(Path(entered_path)) or entered_path for entered_path in file_paths], None
    )


def _open_files(paths: Paths, file_names: Sequence[str], workspace: counting.Workspace | None) -> None:
    """Discard the files that wait, and open these beside the page; a file that holds a summary is read at once."""
    _discard_files()
    st.session_state[columns.build_key("sheet")] = None
    _look_at_files(paths, file_names, workspace)


def _change_sheet() -> None:
    """Read the workbook again, from the sheet that the person chose."""
    if (opened_files := st.session_state.get(columns.build_key("files"))) is not None:
        _look_at_files(*opened_files)


def _look_at_files(paths: Paths, file_names: Sequence[str], workspace: counting.Workspace | None) -> None:
    """Open files beside the page, with the chosen sheet and separator; read a summary of pairs or values at once."""
    st.session_state[columns.build_key("stopped")] = ""
    reading_options: dict[str, Any] = {
        option_name: str(st.session_state.get(columns.build_key(option_name)) or "")
        for option_name in ("sheet", "separator")
    }
    if find_summaries(paths):
        try:
            st.session_state[columns.build_key("pairs")] = read_summary(paths, file_names)
        except (InvalidInput, OSError) as refused:
            TABLE_UPLOADER.store_problems(describe_error(refused), file_names)
        finally:
            if workspace is not None:
                workspace.close()
        return

    def open_and_guess_roles(
        _progress: Progress, should_stop: ShouldStop
    ) -> tuple[counting.Source, Roles] | None:
        """Open the files and guess roles; None if stopped. The workspace is closed on any failure."""
        try:
            source = counting.open_files(
                paths, file_names, owned_folder=workspace, should_stop=should_stop, **reading_options
            )
            return source, source.roles
        except BaseException as error:
            if workspace is not None:
                workspace.close()
            if isinstance(error, counting.StoppedError):
                return None
            raise

    st.session_state[columns.build_key("files")] = paths, file_names, workspace
    # Nearly every file is read within this time; a workbook of a million rows is not, and then Stop is there.
    jobs.start_job(_LOOK_JOB_KEY, tuple(file_names), open_and_guess_roles, WAIT_SECONDS)
    _use_opened_files()


def _use_opened_files() -> None:
    """Store the opened files and propose their roles, or store why that failed or stopped; do nothing while it runs."""
    session_state = st.session_state
    job: jobs.Job | None = session_state.get(_LOOK_JOB_KEY)
    if job is None or job.is_running:
        return
    session_state[_LOOK_JOB_KEY] = None
    if job.has_failed:
        _discard_files()
        TABLE_UPLOADER.store_problems(job.input_problems, job.request)
        return
    if job.result is None:
        stopped_text = "Stopped; the data in use stay as they were."
        session_state[columns.build_key("stopped")] = _CUT_OFF_TEXT if job.was_cut_off else stopped_text
        return
    source, roles = job.result
    if source.head.sheets:
        sheet_key = columns.build_key("sheet")
        session_state[sheet_key] = (
            session_state.get(sheet_key) or source.head.layouts[0].sheet or source.head.sheets[0]
        )
    else:
        session_state[columns.build_key("files")] = None
        if source.is_complete:
            source.close()  # every row is in memory
    known_file = own_tables.find_known_file(source.columns)
    columns.set_roles(roles if known_file is None else known_file.roles)
    stated_release = columns.find_stated_release(source, roles)
    session_state[columns.build_key("table")], session_state[columns.build_key("copies")] = source, False
    disclosure = Disclosure.PRIVATE if stated_release is None else Disclosure.DP_RELEASE
    session_state[columns.build_key("public")] = disclosure
    session_state[columns.build_key("names")] = ", ".join(source.columns)


def _discard_files() -> None:
    """Close and forget the files that wait, with their problems."""
    source: counting.Source | None = st.session_state.get(columns.build_key("table"))
    if source is not None:
        source.close()
    st.session_state[columns.build_key("table")] = st.session_state[columns.build_key("pairs")] = None
    st.session_state[columns.build_key("saw_missing")] = False
    st.session_state[columns.build_key("files")] = None
    TABLE_UPLOADER.store_problems(())


def _draw_summary_choice(dataset: Dataset) -> None:
    """Show a distribution of pairs or binned values, the choice of their label, and the buttons."""
    users_text = format_count(dataset.histogram.num_users, "user")
    st.markdown(f"**{users_text}.** {escape_text(dataset.source, 300)}")
    page_text = "*Mean* and *Quantile* answer" if dataset.pair_sizes is None else "*Group by* answers"
    st.caption(f"{page_text} from these numbers. The app cannot check that they are true.")
    disclosure = columns.draw_disclosure_choice(
        "Are these data public?", [Disclosure.PRIVATE, Disclosure.PUBLIC]
    )
    if uploads.draw_use_and_discard("use_distribution", "discard_distribution", _discard_files):
        _use_dataset(replace(dataset, disclosure=disclosure))


# --- counting -----------------------------------------------------------------------------------------------


def _use_source(source: counting.Source, roles: Roles) -> None:
    """Remember the roles of the files' columns, count the rows, and use the data; do nothing if answers forbid it.

    Files that are not wholly in memory are counted beside the page.
    """
    if columns.is_each_a_person(source) or columns.has_wrong_row_rules(roles):
        return  # Said next to that answer.
    disclosure: Disclosure = st.session_state[columns.build_key("public")]
    stated_release = columns.find_stated_release(source, roles)
    provenance = (stated_release or disclosure) if disclosure is Disclosure.DP_RELEASE else disclosure
    remembered_disclosure = Disclosure.PRIVATE if disclosure is Disclosure.PRIVATE else Disclosure.PUBLIC
    known_file = own_tables.KnownFile(source.name, tuple(source.columns), roles, remembered_disclosure)
    own_tables.add_known_files([known_file])
    st.session_state[columns.build_key("stopped")] = ""
    if not source.is_complete:
        counts_copies = bool(st.session_state.get(columns.build_key("copies")))

        def count_rows(progress: Progress, should_stop: ShouldStop) -> counting.CountResult:
            """Count the rows of the files."""
            callbacks: dict[str, Any] = {"progress": progress, "should_stop": should_stop}
            return counting.count(source, roles, provenance, counts_copies=counts_copies, **callbacks)

        jobs.start_job(columns.build_key("job"), roles, count_rows)
        TABLE_UPLOADER.store_problems(())
        st.rerun()
    try:
        with st.spinner("Counting…"):
            count_result = counting.count(source, roles, provenance)
    except Exception as error:  # Whatever it is, the panel stays usable.
        _refuse_count(describe_error(error))
        st.rerun()
    TABLE_UPLOADER.store_problems(())
    _use_count_result(count_result)


def _refuse_count(problems: Sequence[InputProblem]) -> None:
    """Store why files were not counted, and whether missing values were among the reasons."""
    TABLE_UPLOADER.store_problems(problems)
    st.session_state[columns.build_key("saw_missing")] = any(p.remedy == MISSING_REMEDY for p in problems)


def _use_finished_jobs() -> None:
    """Use what ended work has found, or store why it failed, and remove the work; leave work that still runs."""
    _use_opened_files()
    if input_problems := jobs.list_failures(columns.build_key("job")):
        _refuse_count(input_problems)
        st.session_state[columns.build_key("job")] = None
    elif (request_and_result := jobs.find_result(columns.build_key("job"))) is not None:
        job: jobs.Job = st.session_state[columns.build_key("job")]
        st.session_state[columns.build_key("job")] = None
        _use_count_result(request_and_result[1])
        if job.was_cut_off:
            st.session_state[columns.build_key("stopped")] = _CUT_OFF_TEXT


def _use_count_result(count_result: counting.CountResult) -> None:
    """Use the counted data; if counting was stopped, store why."""
    if count_result.dataset is None:
        st.session_state[columns.build_key("stopped")] = count_result.summary_sentence
    else:
        _use_dataset(count_result.dataset)


def _use_dataset(dataset: Dataset) -> None:
    """Make a dataset the session's, drop the files, and run the app again."""
    origin_name = session.UPLOADED if dataset.release is None else session.DP_RELEASE
    session.use_data(session.LoadedData(dataset, session.Origin(origin_name)))
    _discard_files()
    st.rerun()
