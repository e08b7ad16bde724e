"""An upload of rows with a label, features and an owner, for pages that have data of their own.

Which column is the label, the user, a feature; one-hot with a reference level. A page that uses it declares in its
question, beside its own entries, those of `ENTRIES`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore import counting
from dpcore.common import wording
from dpcore.common.errors import InvalidInput, describe_error, refuse
from dpcore.common.privacy import Disclosure
from dpcore.data import design_matrix, tables
from dpcore.data.design_matrix import Design, Feature, FeatureKind
from dpcore.dataset import Dataset
from pages.shared.base import demo, keys
from pages.shared.base.question import From, Question
from pages.shared.data import uploads
from pages.shared.fields import fields

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

PUBLIC = {
    Disclosure.PRIVATE: "No: numbers computed from them must not be published",
    Disclosure.PUBLIC: "Yes: anybody may see them",
}
MOST_CLASSES = 200
"""Up to so many classes are offered as a list."""
ENTRIES = dict.fromkeys(
    ("loaded", "file_", "round", "table", "problems", "role_", "reference_", "levels_", "public"),
    From.OWN_DATA,
)
"""What the upload keeps in the session under its question."""


@dataclass(frozen=True, eq=False)
class _Opened:
    """A file that was read and not used yet; what is costly to know of it is kept."""

    table: tables.Table
    account: str
    levels: dict[str, tuple[str, ...]]
    numeric: dict[str, bool]

    def is_numeric(self, column: str) -> bool:
        if column not in self.numeric:
            self.numeric[column] = design_matrix.is_numeric(self.table, column)
        return self.numeric[column]

    def levels_of(self, column: str) -> tuple[str, ...]:
        if column not in self.levels:
            self.levels[column] = design_matrix.levels(self.table, column)
        return self.levels[column]


@dataclass(frozen=True)
class TableUpload:
    """The upload of one page.

    Attributes:
        of: The page's question; ``loaded`` under it holds what ``used`` makes.
        asked: What the table is to hold, on the uploader.
        label: What the label's column is called.
        public_help: What the question is about whether the data are public.
        build: From table, design and disclosure to the data; raises `InvalidInput`.
        used: From the data, the account that the file's content has, and the design, to what the page keeps: it has
            ``dataset`` and ``account``, and ``design`` where the page needs it. A session file brings these, too.
        check: What the page asks of data that come from a session file; raises `InvalidInput`.
        classes: Whether the label may be words, of which one counts as 1.
        levels_are_listed: Whether the levels of private categories must be listed, as a release names them.
        about_columns: What the names of fields about single columns begin with; empty where there are none.
        beside: Of what the page keeps, what the session holds beside it, by name, once it is opened from a file.
    """

    of: Question
    asked: str
    label: str
    public_help: str
    build: Callable[[tables.Table, Design, Disclosure], Dataset]
    used: Callable[[Dataset, str, Design | None], Any]
    check: Callable[[Dataset], object] = lambda data: None
    classes: bool = False
    levels_are_listed: bool = False
    about_columns: str = ""
    beside: Callable[[Any], Mapping[str, Any]] = lambda used: {}

    @property
    def entry(self) -> uploads.Entry:
        """Return where the file is given."""
        return uploads.Entry(self.of)

    @property
    def label_key(self) -> str:
        """Session key of the label's column."""
        return self.of.key("role_") + "label"

    @property
    def user_key(self) -> str:
        """Session key of the user's column."""
        return self.of.key("role_") + "user"

    @property
    def features_key(self) -> str:
        """Session key of the features' columns."""
        return self.of.key("role_") + "features"

    @property
    def categories_key(self) -> str:
        """Session key of the features that are categories."""
        return self.of.key("role_") + "categories"

    @property
    def positive_key(self) -> str:
        """Session key of the class that counts as 1; empty where labels are numbers."""
        return self.of.key("role_") + "positive"

    @property
    def intercept_key(self) -> str:
        """Session key of whether there is an intercept."""
        return self.of.key("role_") + "intercept"

    def show_uploader(self) -> None:
        """Where a file is given."""
        if demo.is_served():
            uploads.say_served()
            return
        self.entry.show(
            self.asked,
            "Up to 200 MB. The file is read on this computer, reduced to numbers and dropped. Nothing is sent away.",
            self._read,
        )

    def waits(self) -> bool:
        """Return whether a file was read and is not used yet."""
        return st.session_state.get(self.of.key("table")) is not None

    def show_choices(self) -> None:
        """Ask what the columns of a file that waits mean; below, say what was wrong with the last file."""
        opened: _Opened | None = st.session_state.get(self.of.key("table"))
        if opened is not None:
            self._show_columns(opened)
        self.entry.say()

    def _read(self, files: list[UploadedFile]) -> None:
        state, file = st.session_state, files[0]
        self._discard()
        content = file.getvalue()
        try:
            table = counting.read_table(content, file.name)
            if len(table.columns) < 2:
                raise refuse("one column is not enough: a label and a user are needed")
        except Exception as error:  # Whatever it is, the page stays usable.
            self.entry.refuse(describe_error(error), [file.name])
        else:
            state[self.of.key("table")] = _Opened(table, hashlib.sha256(content).hexdigest(), {}, {})
            design = design_matrix.guess_design(table, self.classes)
            state[self.positive_key] = ""
            state[self.label_key], state[self.user_key], state[self.intercept_key] = (
                design.label,
                design.user,
                design.intercept,
            )
            state[self.features_key] = [feature.column for feature in design.features]
            state[self.categories_key] = [
                f.column for f in design.features if f.encoding is FeatureKind.CATEGORIES
            ]
            state[self.of.key("public")] = Disclosure.PRIVATE
        self.entry.drop(files)

    def _show_columns(self, opened: _Opened) -> None:
        table, columns = opened.table, opened.table.columns
        uploads.show_head(table.name, wording.counted(len(table.frame), "row"), len(columns), table)
        with st.grid(3):
            st.selectbox(self.label, columns, key=self.label_key, persist_state="session")
            self._show_classes(opened)
            st.selectbox("User: whose row it is", columns, key=self.user_key, persist_state="session")
            st.multiselect(
                "Features: what it is predicted from", columns, key=self.features_key, persist_state="session"
            )
            self._show_categories(opened)
        design: Design | None = None
        try:
            design = self._design()
            st.caption(wording.plain(design_matrix.explain_design(design), 600))
        except InvalidInput as refused:
            fields.say(refused.problems)
        with st.container(horizontal=True, vertical_alignment="center"):
            fields.radio("Are these data public?", PUBLIC, self.of.key("public"), self.public_help)
        used = uploads.use_or_discard(f"{self.of.name}_use", f"{self.of.name}_discard", self._discard)
        if used and design is not None:
            self._use(opened, design)

    def _show_classes(self, opened: _Opened) -> None:
        """Which class counts as 1, where the label has words, or more than two numbers."""
        state, key, label = st.session_state, self.positive_key, st.session_state[self.label_key]
        words = not opened.is_numeric(label)
        if not self.classes or (not words and len(opened.levels_of(label)) <= 2):
            state[key] = ""
            return
        about = (
            "This class against all others; a model for another class is one more release."
            if words
            else "Empty: labels above a threshold count as 1."
        )
        if words and not self._is_private() and len(levels := opened.levels_of(label)) <= MOST_CLASSES:
            if state.get(key) not in levels:
                state[key] = None
            st.selectbox("Which one is 1?", levels, key=key, persist_state="session", help=about)
            return
        state.setdefault(key, "")
        state[key] = state[key] or ""
        st.text_input(
            "Which one is 1?",
            key=key,
            persist_state="session",
            max_chars=200,
            help=f"{about} Write it as it stands in the file. A release names it, so take it from what the column can "
            "be.",
        )

    def _show_categories(self, opened: _Opened) -> None:
        """Which features are categories, and the level of each that is left out."""
        state = st.session_state
        chosen: list[str] = state[self.features_key]
        state[self.categories_key] = [
            column for column in state.get(self.categories_key, []) if column in chosen
        ]
        st.multiselect(
            "Of these, as categories (one-hot)",
            chosen,
            key=self.categories_key,
            persist_state="session",
            help="A column with k levels becomes k − 1 features of 0 and 1. The others are read as numbers.",
        )
        if self._lists_levels():
            for column in state[self.categories_key]:
                st.text_area(
                    f"Levels of {wording.plain(column, 30)}, one in each line",
                    key=self._levels_key(column),
                    persist_state="session",
                    help="The public list, from what the column can be and not from these rows, which are private: a "
                    "release names every level. The first one is the reference: it gets no feature, and any level "
                    "that is not listed counts as it.",
                )
        for column in () if self._lists_levels() else state[self.categories_key]:
            options, key = (
                opened.levels_of(column)[: design_matrix.MAX_LEVELS + 1],
                self._reference_key(column),
            )
            if not options:
                continue
            if state.get(key) not in options:
                state[key] = options[0]
            st.selectbox(
                f"Reference level of {wording.plain(column, 30)}",
                options,
                key=key,
                persist_state="session",
                help="The level that gets no feature: the others' coefficients are differences from it.",
            )
        st.toggle(
            "Intercept",
            key=self.intercept_key,
            persist_state="session",
            help="A feature that is 1 in every row. Without it, a row at all reference levels is predicted as 0.",
        )

    def _reference_key(self, column: str) -> str:
        return self.of.key("reference_") + column

    def _levels_key(self, column: str) -> str:
        return self.of.key("levels_") + column

    def _is_private(self) -> bool:
        return st.session_state.get(self.of.key("public"), Disclosure.PRIVATE) is Disclosure.PRIVATE

    def _lists_levels(self) -> bool:
        return self.levels_are_listed and self._is_private()

    def _design(self) -> Design:
        state = st.session_state
        features = tuple(
            self._category(column) if column in state[self.categories_key] else Feature(column)
            for column in state[self.features_key]
        )
        positive = str(state.get(self.positive_key) or "").strip()
        return Design(
            state[self.label_key], state[self.user_key], features, state[self.intercept_key], positive
        )

    def _category(self, column: str) -> Feature:
        state = st.session_state
        if not self._lists_levels():
            return Feature(column, FeatureKind.CATEGORIES, state.get(self._reference_key(column), ""))
        text = str(state.get(self._levels_key(column)) or "")
        # Nothing written yet: `build` says that it must be.
        return (
            design_matrix.read_levels(column, text)
            if text.strip()
            else Feature(column, FeatureKind.CATEGORIES)
        )

    def _use(self, opened: _Opened, design: Design) -> None:
        try:
            with st.spinner("Reading the columns…"):
                data = self.build(opened.table, design, st.session_state[self.of.key("public")])
        except Exception as error:  # Whatever it is, the page stays usable.
            self.entry.refuse(describe_error(error))
            return
        self._clear_settings()
        st.session_state[self.of.key("loaded")] = self.used(data, opened.account, design)
        self._discard()
        st.rerun()

    def _clear_settings(self) -> None:
        """Empty what was entered for other data; what a link or a session file said of data to come stays."""
        state = st.session_state
        awaited = state.get(keys.AWAITED, {})
        for name, field in self.of.fields.items():
            key = self.of.key(name)
            if field.renewed and field.origin is From.OWN_DATA and awaited.get(key) != state.get(key):
                state[key] = field.initial
        state[keys.AWAITED] = {}
        if "proposed" in self.of.also:
            state.pop(self.of.key("proposed"), None)

    def _discard(self) -> None:
        st.session_state[self.of.key("table")] = None
        self.entry.refuse(())
