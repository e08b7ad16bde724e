"""The parts of the page *Your data* but uploads: samples, generators, engines, sessions, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from dpcore import counting
from dpcore.common.checks import InputProblem, InvalidInput, describe_error
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import plain
from dpcore.counting.engines import Recipe
from dpcore.data import generators, samples
from dpcore.data.column_roles import Roles, TableKind
from dpcore.dataset import Dataset
from pages.shared.base import cache, catalogue, demo
from pages.shared.base.question import Facet, Question
from pages.shared.data import uploads
from pages.shared.fields import fields
from pages.shared.session import session, session_file
from pages.your_data.question import QUESTION

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def show_samples() -> None:
    """Draw the choice of a sample, which is loaded at once: samples are public and small."""
    sample = session.get_loaded().origin.name
    st.session_state[QUESTION.key("sample")] = sample if sample in samples.SAMPLES else None
    st.selectbox(
        "Sample",
        list(samples.SAMPLES),
        index=None,
        key=QUESTION.key("sample"),
        on_change=_load_sample,
        format_func=lambda key: samples.SAMPLES[key].title,
        placeholder="Choose a sample",
    )


def _load_sample() -> None:
    sample = st.session_state.get(QUESTION.key("sample"))
    if sample is not None:
        origin = session.Origin(sample)
        session.use(session.LoadedData(origin.load(), origin))


@dataclass(frozen=True)
class GeneratorField:
    """One parameter of a generator: its name, label, default and help."""

    name: str
    label: str
    default: float | int
    help: str = ""


SEED = GeneratorField("seed", "Seed", 1, "The same seed gives the same distribution.")
FIELDS: dict[str, tuple[GeneratorField, ...]] = {
    "zipf": (
        GeneratorField("alpha", "Exponent α", 1.5, "Smaller is heavier-tailed; the paper uses 1 < α ≤ 2."),
        GeneratorField("num_users", "Users", 10_000),
        GeneratorField("max_contributions", "Largest number of rows per user", 1_000),
        SEED,
    ),
    "participation": (
        GeneratorField(
            "alpha",
            "Exponent α",
            1.0,
            "A row comes from user $j$ with probability $\\propto j^{-(1+\\alpha)}$.",
        ),
        GeneratorField("num_rows", "Rows drawn", 100_000),
        SEED,
    ),
    "lognormal": (
        GeneratorField("log_mean", "Mean of log rows", 1.5, "The median user has about exp of this."),
        GeneratorField("log_sigma", "Standard deviation of log rows", 1.2),
        GeneratorField("num_users", "Users", 10_000),
        SEED,
    ),
    "two-groups": (
        GeneratorField("light_users", "Light users", 1_000),
        GeneratorField("light_rows", "Rows of a light user", 1),
        GeneratorField("heavy_users", "Heavy users", 1_000),
        GeneratorField("heavy_rows", "Rows of a heavy user", 1_000),
    ),
}


def show_generators() -> None:
    """Draw the choice of a generator, its parameters, and the button that generates the data."""
    titles = {name: generators.GENERATORS[name].title for name in FIELDS}
    name: str = fields.pick("Kind of distribution", titles, QUESTION.key("generator"))
    with st.grid(4):
        for field in FIELDS[name]:
            key = _key(name, field)
            st.session_state.setdefault(key, field.default)
            fields.number(field.label, key, field.help, is_integer=isinstance(field.default, int))
    fields.button("Generate", "generate", "casino", _generate, name, is_main=True)
    problems = st.session_state.get(QUESTION.key("generator_problems"), ())
    if problems:
        fields.show_problems(problems)


def _key(name: str, field: GeneratorField) -> str:
    return f"{QUESTION.key('generator_field_')}{name}_{field.name}"


def _generate(name: str) -> None:
    """Generate data from the entered parameters, or store their problems."""
    session_keys = {field.name: _key(name, field) for field in FIELDS[name]}
    if any(key not in st.session_state for key in session_keys.values()):
        return  # A late press: the page shows another generator by now.
    values = {field_name: st.session_state[key] for field_name, key in session_keys.items()}
    labels = {field.name: f"“{field.label}”" for field in FIELDS[name]}
    generator, problems = fields.build_parameters(generators.GENERATORS[name], values, labels)
    if generator is not None:
        try:
            origin = session.Origin(generator.key, to_fields(generator))
            session.use(session.LoadedData(generators.dataset(generator), origin))
        except InvalidInput as refused:
            problems += refused.problems
    st.session_state[QUESTION.key("generator_problems")] = tuple(problems)


DEFAULT_TABLE = "events"
_DEFAULT_ROLES = Roles(TableKind.EVENTS, user="user_id")


def show_recipes(roles: Roles | None) -> None:
    """Show the recipe for the columns chosen above, or for a default user column if there is no file."""
    with st.expander(
        "Count in your own database or on a cluster", icon=":material/dns:", key=QUESTION.key("engine_open")
    ):
        st.markdown(
            "Run this where your data are; only the histogram comes back, and you open it here. Nothing is typed "
            "into this page: credentials come from the engine's own settings."
        )
        with st.grid(2):
            titles = {name: engine.title for name, engine in counting.ENGINES.items()}
            key: str = fields.pick("Engine", titles, QUESTION.key("engine"))
            st.session_state.setdefault(QUESTION.key("engine_table"), DEFAULT_TABLE)
            table = (
                st.text_input("Table", key=QUESTION.key("engine_table"), persist_state="session")
                or DEFAULT_TABLE
            )
        engine = counting.ENGINES[key]
        if roles is None or roles.kind is not TableKind.EVENTS or not roles.user:
            roles = _DEFAULT_ROLES
            st.caption("Put the name of your own column in the place of user_id.")
        recipe = _write_recipe(key, roles, table)
        st.caption(f"Credentials come from {engine.credentials}.")
        command, python, sql = st.tabs(["Shell", "Python", "SQL that runs"])
        command.code(recipe.command, language="bash", wrap_lines=True)
        command.caption(
            f"Run it in the folder of Sweet Spot, after: pip install 'ibis-framework[{engine.key}]'. "
            "Then upload histogram.csv here."
        )
        python.code(recipe.python, language="python")
        sql.code(recipe.sql, language="sql")
        sql.caption("For the histogram. Columns are taken for text, and the value for a number.")


@cache.cached(max_entries=4)
def _write_recipe(engine: str, roles: Roles, table: str) -> Recipe:
    """Return the recipe, cached: every run draws it, and writing the SQL takes as long as the rest."""
    return counting.recipe(counting.ENGINES[engine], roles, table)


ENTRY = uploads.Entry(QUESTION, "session_")


@dataclass(frozen=True)
class _OpenedFile:
    """The outcome of opening the last file.

    Attributes:
        problems: Why nothing of it was used; empty if it was opened.
        content: Its content; None if nothing was used.
    """

    problems: tuple[InputProblem, ...]
    content: session_file.FileContent | None


def show_session_upload() -> None:
    """Show the uploader for a session file, and the outcome of the last file."""
    if demo.is_served():
        uploads.show_demo_notice()
        return
    ENTRY.show(
        "A file that *Save session*, in the sidebar, has made",
        "Data and settings take the place of those in use. What was released of any data stays on the account, here "
        "and in the file.",
        _open_file,
    )
    _show_outcome(st.session_state.get(QUESTION.key("session_opened")))


def _open_file(files: list[UploadedFile]) -> None:
    """Make the file's content the session's, or store why it is refused."""
    state, file = st.session_state, files[0]
    try:
        content = session_file.read_file(file.getvalue())
    except Exception as error:  # Whatever it is, the page stays usable.
        name = InputProblem(f"the file {file.name} was not opened")
        state[QUESTION.key("session_opened")] = _OpenedFile((name, *describe_error(error)), None)
    else:
        session_file.apply(content.content)
        state[QUESTION.key("session_opened")] = _OpenedFile((), content)
    ENTRY.drop(files)


def _show_outcome(opened: _OpenedFile | None) -> None:
    if opened is None:
        return
    if opened.content is None:
        lines = "\n".join(f"- {plain(p.sentence, 400)}" for p in opened.problems)
        st.error(f"{lines}\n\nNothing was changed.", icon=":material/error:")
        return
    st.success(
        f"The session of {plain(opened.content.saved)} is open. In use: {plain(session.dataset().name)}.",
        icon=":material/check:",
    )
    if opened.content.left_out:
        lines = "\n".join(f"- {plain(words, 400)}" for words in opened.content.left_out)
        st.info(f"The file does not hold:\n{lines}", icon=":material/info:")
        for file in opened.content.content.files:
            if session.dataset().name != file.name:
                st.caption(f"Bring {plain(file.name)} again, and its columns are read as they were.")
    if opened.content.not_followed:
        st.warning(
            "These settings of the file were not followed; all others were.", icon=":material/warning:"
        )
        fields.show_problems(opened.content.not_followed)


@dataclass(frozen=True)
class Offer:
    """A column, and the pages that answer from it.

    Attributes:
        column: Its name; "Rows per user" if no column is needed.
        pages: In the order of the sidebar, at least one.
    """

    column: str
    pages: tuple[Question, ...]


def list_offers(data: Dataset) -> list[Offer]:
    """Return every page that the data can answer, once, under the column that it needs."""
    columns = {}
    if data.values is not None:
        columns[Facet.VALUES] = data.values.column
    if data.pairs is not None:
        columns[Facet.GROUPS] = data.pairs.label
    elif data.tasks is not None:
        columns[Facet.GROUPS] = data.tasks.label
    columns[Facet.ROWS] = "Rows per user"
    offers: list[Offer] = []
    offered_names: set[str] = set()
    for facet, column in columns.items():
        pages = tuple(q for q in catalogue.PAGES if facet in q.answers_from and q.name not in offered_names)
        offered_names |= {q.name for q in pages}
        if pages:
            offers.append(Offer(column, pages))
    return offers
