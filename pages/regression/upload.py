"""The Regression page's own upload: which column is the label, the user, a feature; one-hot with a reference level."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import streamlit as st

from dpcore import counting
from dpcore.common import wording
from dpcore.common.errors import InputProblem, InvalidInput, problems_of
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray
from dpcore.data import tables
from dpcore.dataset import Dataset
from dpcore.regression import design_matrix
from dpcore.regression.design_matrix import Design, Feature, FeatureKind
from pages.regression.question import QUESTION
from pages.shared import bringing, demo, fields
from pages.shared.text import plain

PUBLIC = {
    Disclosure.PRIVATE: "No: numbers computed from them must not be published",
    Disclosure.PUBLIC: "Yes: anybody may see them",
}
LABEL, USER, FEATURES = (QUESTION.key("role_") + role for role in ("label", "user", "features"))
CATEGORIES, INTERCEPT = (QUESTION.key("role_") + role for role in ("categories", "intercept"))


@dataclass(frozen=True, eq=False)
class RegressionData:
    """The page's data.

    Attributes:
        dataset: With the facet `table`.
        account: Whose labels they are: draws from the same labels add up, whatever was made of them.
        coefficients: The true ones, where the data were generated.
        design: What the columns of the file meant, where they come from one.
    """

    dataset: Dataset
    account: str
    coefficients: FloatArray | None = None
    design: Design | None = None


@dataclass(frozen=True, eq=False)
class _Opened:
    """A file that was read and not used yet; what is costly to know of it is kept."""

    table: tables.Table
    account: str
    levels: dict[str, tuple[str, ...]]

    def levels_of(self, column: str) -> tuple[str, ...]:
        if column not in self.levels:
            self.levels[column] = design_matrix.levels(self.table, column)
        return self.levels[column]


def show_uploader() -> None:
    """Where a file is given."""
    if demo.is_served():
        bringing.say_served()
        return
    state = st.session_state
    times = state.setdefault(QUESTION.key("round"), 0)
    key = f"{QUESTION.key('file_')}{times}"
    st.file_uploader(
        "A table with one row per observation, a label, features, and a column that says whose it is (CSV)",
        key=key,
        on_change=_read,
        args=(key,),
        help="Up to 200 MB. The file is read on this computer, reduced to numbers and dropped. Nothing is sent "
        "anywhere.",
    )


def waits() -> bool:
    """Whether a file was read and is not used yet."""
    return st.session_state.get(QUESTION.key("table")) is not None


def show_choices() -> None:
    """What was wrong with the last file; of one that waits, what its columns mean, and the way to use it."""
    _show_problems(st.session_state.get(QUESTION.key("problems"), ()))
    opened: _Opened | None = st.session_state.get(QUESTION.key("table"))
    if opened is not None:
        _show_columns(opened)


def _read(key: str) -> None:
    state, file = st.session_state, st.session_state.get(key)
    if file is None:
        return
    state[QUESTION.key("problems")], state[QUESTION.key("table")] = (), None
    content = file.getvalue()
    try:
        table = counting.read_table(content, file.name)
        if len(table.columns) < 2:
            raise InvalidInput(["one column is not enough: a label and a user are needed"])
    except Exception as error:  # Whatever it is, the page stays usable.
        name = InputProblem(f"the file {file.name} was not read")
        state[QUESTION.key("problems")] = (name, *problems_of(error))
    else:
        state[QUESTION.key("table")] = _Opened(table, hashlib.sha256(content).hexdigest(), {})
        design = design_matrix.guess(table)
        state[LABEL], state[USER], state[INTERCEPT] = design.label, design.user, design.intercept
        state[FEATURES] = [feature.column for feature in design.features]
        state[CATEGORIES] = [f.column for f in design.features if f.kind is FeatureKind.CATEGORIES]
        state[QUESTION.key("public")] = Disclosure.PRIVATE
    bringing.drop([file])
    state[QUESTION.key("round")] += 1  # a new uploader: the file of the old one is gone


def _show_problems(problems: tuple[InputProblem, ...]) -> None:
    if problems:
        lines = "\n".join(f"- {plain(p.sentence, 400)}" for p in problems)
        st.error(f"{lines}\n\nThe data in use stay as they were.", icon=":material/error:")


def _show_columns(opened: _Opened) -> None:
    table, columns = opened.table, opened.table.columns
    size = f"{wording.counted(len(table.frame), 'row')}, {wording.counted(len(columns), 'column')}"
    st.markdown(f"**{plain(table.name)}**: {size}")
    for note in table.notes:
        st.caption(plain(note, 300))
    st.dataframe(bringing.preview(table), hide_index=True, alt="The first rows of the file", height="content")
    with st.grid(3):
        st.selectbox("Label: what is predicted (private)", columns, key=LABEL, persist_state="session")
        st.selectbox("User: whose row it is", columns, key=USER, persist_state="session")
        st.multiselect("Features: what it is predicted from", columns, key=FEATURES, persist_state="session")
        _show_categories(opened)
    design = _design()
    st.caption(plain(design_matrix.explain(design), 600))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.radio(
            "Are these data public?",
            list(PUBLIC),
            key=QUESTION.key("public"),
            format_func=PUBLIC.__getitem__,
            persist_state="session",
            help="The method takes features and owners as public in any case; this is about the labels.",
        )
    with st.container(horizontal=True):
        used = st.button(
            "Use these data", type=fields.main_button(), icon=":material/check:", key="regression_use"
        )
        st.button("Discard the file", key="regression_discard", on_click=_discard, icon=":material/delete:")
    if used:
        _use(opened, design)


def _show_categories(opened: _Opened) -> None:
    """Which features are categories, and the level of each that is left out."""
    state = st.session_state
    chosen: list[str] = state[FEATURES]
    state[CATEGORIES] = [column for column in state.get(CATEGORIES, []) if column in chosen]
    st.multiselect(
        "Of these, as categories (one-hot)",
        chosen,
        key=CATEGORIES,
        persist_state="session",
        help="A column with k levels becomes k − 1 features of 0 and 1. The others are read as numbers.",
    )
    for column in state[CATEGORIES]:
        options, key = opened.levels_of(column)[: design_matrix.MAX_LEVELS + 1], _reference_key(column)
        if not options:
            continue
        if state.get(key) not in options:
            state[key] = options[0]
        st.selectbox(
            f"Reference level of {plain(column, 30)}",
            options,
            key=key,
            persist_state="session",
            help="The level that gets no feature: the others' coefficients are differences from it.",
        )
    st.toggle(
        "Intercept",
        key=INTERCEPT,
        persist_state="session",
        help="A feature that is 1 in every row. Without it, a row at all reference levels is predicted as 0.",
    )


def _reference_key(column: str) -> str:
    return QUESTION.key("reference_") + column


def _design() -> Design:
    state = st.session_state
    features = [
        Feature(column, FeatureKind.CATEGORIES, state.get(_reference_key(column), ""))
        if column in state[CATEGORIES]
        else Feature(column)
        for column in state[FEATURES]
    ]
    return Design(state[LABEL], state[USER], tuple(features), state[INTERCEPT])


def _use(opened: _Opened, design: Design) -> None:
    try:
        with st.spinner("Reading the columns…"):
            data = design_matrix.build(opened.table, design, st.session_state[QUESTION.key("public")])
    except Exception as error:  # Whatever it is, the page stays usable.
        _show_problems(problems_of(error))
        return
    st.session_state[QUESTION.key("loaded")] = RegressionData(data, opened.account, design=design)
    _discard()
    st.rerun()


def _discard() -> None:
    st.session_state[QUESTION.key("table")] = None
    st.session_state[QUESTION.key("problems")] = ()
