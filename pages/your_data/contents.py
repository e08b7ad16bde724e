"""The parts of the page *Data* but uploads: samples, generators, engines, sessions, and what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore import counting
from dpcore.common.checks import InputProblem, InvalidInput, describe_error
from dpcore.common.parameters import declared_fields
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import escape_text
from dpcore.data import samples
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.value_bins import ValueBins
from dpcore.dataset import Dataset
from pages.shared.base import cache, catalogue
from pages.shared.base.question import Facet, Question
from pages.shared.data import uploads
from pages.shared.fields import field_values, fields
from pages.shared.server import access
from pages.shared.session import session, session_file
from pages.your_data.question import QUESTION

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def show_samples() -> None:
    """Draw the choice of a sample, which is loaded at once: samples are public and small."""
    sample_key = session.get_loaded().origin.name
    st.session_state[QUESTION.get_key("sample")] = sample_key if sample_key in samples.SAMPLES else None
    titles_by_key = {key: sample.title for key, sample in samples.SAMPLES.items()}
    widget_options: dict[str, Any] = {"on_change": _load_sample, "placeholder": "Choose a sample"}
    st.selectbox(
        "Sample", titles_by_key, None, titles_by_key.__getitem__, QUESTION.get_key("sample"), **widget_options
    )


def _load_sample() -> None:
    """Use the selected sample, if one is selected."""
    sample_key = st.session_state.get(QUESTION.get_key("sample"))
    if sample_key is not None:
        sample_origin = session.Origin(sample_key)
        session.use_data(session.LoadedData(sample_origin.load(), sample_origin))


def show_generators() -> None:
    """Draw the choice of a generator, its parameters, and the button that generates the data."""
    titles_by_key = {key: generator.title for key, generator in samples.GENERATORS.items()}
    generator_key: str = fields.draw_select_box(
        "Kind of distribution", titles_by_key, QUESTION.get_key("generator")
    )
    with st.grid(4):
        for field_name, field in declared_fields(samples.GENERATORS[generator_key]).items():
            session_key = _build_field_key(generator_key, field_name)
            st.session_state.setdefault(session_key, field.initial)
            fields.draw_number(field.label, session_key, field.help, is_integer=field.is_integer)
    fields.draw_button("Generate", "generate", "casino", _use_generated_data, generator_key, is_main=True)
    if problems := st.session_state.get(QUESTION.get_key("generator_problems"), ()):
        fields.show_problems(problems)


def _build_field_key(generator_key: str, field_name: str) -> str:
    """Return the session key of a field of a generator."""
    return f"{QUESTION.get_key('generator_field_')}{generator_key}_{field_name}"


def _use_generated_data(generator_key: str) -> None:
    """Generate data from the entered parameters and put them in use, or store the problems for which that failed."""
    session_state, generator_type = st.session_state, samples.GENERATORS[generator_key]
    declared_items = declared_fields(generator_type).items()
    labels_by_field = {field_name: f"“{field.label}”" for field_name, field in declared_items}
    key_by_field = {field_name: _build_field_key(generator_key, field_name) for field_name in labels_by_field}
    if any(session_key not in session_state for session_key in key_by_field.values()):
        return  # A late press: the page shows another generator by now.
    values_by_field = {field_name: session_state[field_key] for field_name, field_key in key_by_field.items()}
    generator, input_problems = field_values.build_parameters(
        generator_type, values_by_field, labels_by_field
    )
    if generator is not None:
        try:
            origin = session.Origin(generator_key, to_fields(generator))
            session.use_data(session.LoadedData(samples.generate_dataset(generator), origin))
        except InvalidInput as error:
            input_problems += error.problems
    session_state[QUESTION.get_key("generator_problems")] = tuple(input_problems)


DEFAULT_TABLE = "events"
_DEFAULT_ROLES = Roles(TableKind.EVENTS, user="user_id")


def show_recipes(roles: Roles | None) -> None:
    """Show the recipe for the columns chosen above, or for a default user column if there is no file."""
    expander_title = "Count in your own database or on a cluster"
    with st.expander(expander_title, icon=":material/dns:", key=QUESTION.get_key("engine_open")):
        st.markdown("Run this where your data are; only counts come back, and you open them here.")
        with st.grid(2):
            titles_by_key = {key: engine.title for key, engine in counting.ENGINES.items()}
            engine_key: str = fields.draw_select_box("Engine", titles_by_key, QUESTION.get_key("engine"))
            st.session_state.setdefault(QUESTION.get_key("engine_table"), DEFAULT_TABLE)
            table_name = st.text_input("Table", key=QUESTION.get_key("engine_table"), persist_state="session")
        engine = counting.ENGINES[engine_key]
        if roles is None or roles.kind is not TableKind.EVENTS or not roles.user:
            roles = _DEFAULT_ROLES
            st.caption("Replace user_id by the name of your column.")
        value_bins = _draw_bin_fields() if counting.can_bin_values(roles) else None
        recipe_arguments = engine_key, roles, table_name or DEFAULT_TABLE, value_bins
        shell_code, python_code, sql_code = _write_recipe(*recipe_arguments)
        st.caption(f"Credentials come from {engine.credentials_text}.")
        command_tab, python_tab, sql_tab = st.tabs(["Shell", "Python", "SQL that runs"])
        command_tab.code(shell_code, language="bash", wrap_lines=True)
        install_command = f"pip install 'ibis-framework[{engine.key}]'"
        instruction_text = f"Run it in the folder of Sweet Spot, after {install_command}."
        command_tab.caption(f"{instruction_text} Upload the file that it writes here.")
        python_tab.code(python_code, language="python")
        sql_tab.code(sql_code, language="sql")
        sql_tab.caption("Columns are taken for text, and the value for a number.")


def _draw_bin_fields() -> ValueBins | None:
    """Draw the fields of public bins for values by user, and return the bins; None if no or wrong ones are entered."""
    st.caption(
        "For means and quantiles, enter bins that you know without the data. Otherwise leave the fields empty."
    )
    labels_by_name = {"lower": "Lowest edge", "upper": "Highest edge", "bins": "Number of bins"}
    with st.grid(3):
        entered_numbers = [
            fields.draw_number(field_label, QUESTION.get_key(f"engine_{field_name}"))
            for field_name, field_label in labels_by_name.items()
        ]
    try:
        return None if None in entered_numbers else ValueBins(*entered_numbers)  # type: ignore[arg-type]
    except InvalidInput as refused:
        fields.show_problems(refused.problems)
        return None


@cache.cache_for_session(max_entries=4)
def _write_recipe(
    engine_key: str, roles: Roles, table_name: str, value_bins: ValueBins | None
) -> tuple[str, str, str]:
    """Return shell code, Python code and SQL that count a table in an engine, cached: every run draws them."""
    return counting.write_recipe(counting.ENGINES[engine_key], roles, table_name, value_bins)


SESSION_UPLOADER = uploads.Uploader(QUESTION, "session_")


def show_session_upload() -> None:
    """Show the uploader for a session file, and the outcome of the last file."""
    if access.is_served():
        uploads.show_demo_notice()
        return
    help_text = "It replaces the data and settings in use. The ledger keeps all releases so far."
    SESSION_UPLOADER.show("A file that *Save session* has made", help_text, _open_file)
    content_or_problems = st.session_state.get(QUESTION.get_key("session_opened"))
    if isinstance(content_or_problems, session_file.FileContent):
        _show_opened_session(content_or_problems)
    elif content_or_problems is not None:
        bullets_text = "\n".join(f"- {escape_text(problem.sentence, 400)}" for problem in content_or_problems)
        st.error(f"{bullets_text}\n\nNothing was changed.", icon=":material/error:")


def _open_file(files: list[UploadedFile]) -> None:
    """Make the file's content the session's, or store the problems for which it is refused."""
    content_or_problems: session_file.FileContent | tuple[InputProblem, ...]
    try:
        content_or_problems = session_file.read_file(files[0].getvalue())
    except Exception as error:  # Whatever it is, the page stays usable.
        file_problem = InputProblem(f"the file {files[0].name} was not opened")
        content_or_problems = file_problem, *describe_error(error)
    else:
        session_file.apply_content(content_or_problems.content)
    st.session_state[QUESTION.get_key("session_opened")] = content_or_problems
    SESSION_UPLOADER.drop_files(files)


def _show_opened_session(file_content: session_file.FileContent) -> None:
    """Show when the opened session was saved, what its file left out, and settings that were refused."""
    in_use_text = f"In use: {escape_text(session.get_dataset().name)}."
    saved_text = f"The session of {escape_text(file_content.saved_at_text)} is open."
    st.success(f"{saved_text} {in_use_text}", icon=":material/check:")
    if file_content.omission_sentences:
        bullets_text = "\n".join(
            f"- {escape_text(sentence, 400)}" for sentence in file_content.omission_sentences
        )
        st.info(f"The file does not hold:\n{bullets_text}", icon=":material/info:")
        for known_file in file_content.content.known_files:
            if session.get_dataset().name != known_file.name:
                st.caption(
                    f"Bring {escape_text(known_file.name)} again, and its columns are read as they were."
                )
    if file_content.setting_problems:
        st.warning("These settings of the file were not followed.", icon=":material/warning:")
        fields.show_problems(file_content.setting_problems)


def list_offers(dataset: Dataset) -> list[tuple[str, list[Question]]]:
    """Return pairs of a heading and pages: a column of the data, or *Rows per user*, and the pages that answer from it.

    A page stands under its first heading only. Headings without pages, and pages that need no data, are left out.
    """
    heading_by_facet = {}
    if dataset.values is not None:
        share_text = " (a share)" if dataset.has_shares else ""
        heading_by_facet[Facet.VALUES] = f"{dataset.values.column}{share_text}"
    if group_facet := dataset.pairs or dataset.tasks:
        heading_by_facet[Facet.GROUPS] = group_facet.label
    heading_by_facet[Facet.ROWS] = "Rows per user"
    offers: list[tuple[str, list[Question]]] = []
    offered_names: set[str] = set()
    for facet, offer_heading in heading_by_facet.items():
        new_questions = [question for question in catalogue.PAGES if question.name not in offered_names]
        questions = [question for question in new_questions if facet in question.answering_facets]
        offered_names |= {question.name for question in questions}
        offers += [(offer_heading, questions)] if questions else []
    return offers
