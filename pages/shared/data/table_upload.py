"""An upload of rows with a label, features and a user, for pages that have data of their own.

The person says which column is the label, the user, a feature; categories are one-hot with a reference level. A page
that uses it declares in its question the entries of `TABLE_ORIGINS` beside its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore import counting
from dpcore.common.checks import InvalidInput, describe_error, refuse
from dpcore.common.parameters import FieldOrigin
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import escape_text, format_count
from dpcore.data import design_matrix, tables
from dpcore.data.design_matrix import Design, Feature, FeatureKind
from dpcore.data.guessed_roles import guess_roles
from dpcore.dataset import Dataset
from pages.shared.base import keys
from pages.shared.base.question import Question
from pages.shared.data import uploads
from pages.shared.fields import fields
from pages.shared.server import access

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


TEXT_BY_DISCLOSURE = {
    Disclosure.PRIVATE: "No: numbers computed from them must not be published",
    Disclosure.PUBLIC: "Yes: anybody may see them",
}
MAX_LISTED_CLASSES = 200
"""Up to so many classes are offered as a list."""


@dataclass(frozen=True, eq=False)
class _WaitingFile:
    """A file that was read and is not in use yet; facts that are costly to compute are cached.

    Attributes:
        table: Its rows.
        account: The SHA-256 digest of its content.
        levels_by_column: Distinct texts of the columns that were asked for, by name.
        is_numeric_by_column: Whether the columns that were asked for hold numbers, by name.
    """

    table: tables.Table
    account: str
    levels_by_column: dict[str, tuple[str, ...]]
    is_numeric_by_column: dict[str, bool]

    def is_numeric(self, column: str) -> bool:
        """Return True if a column holds numbers."""
        if column not in self.is_numeric_by_column:
            self.is_numeric_by_column[column] = design_matrix.is_numeric(self.table, column)
        return self.is_numeric_by_column[column]

    def list_levels(self, column: str) -> tuple[str, ...]:
        """List the distinct texts of a column."""
        if column not in self.levels_by_column:
            self.levels_by_column[column] = design_matrix.list_levels(self.table, column)
        return self.levels_by_column[column]


@dataclass(frozen=True)
class TableUpload:
    """The upload of one page: its texts, and the functions that check and build what it keeps.

    Attributes:
        question: The page's question; ``loaded`` under it holds what ``build_entry`` makes.
        uploader_label: What the table must hold, on the uploader.
        label_prompt: Label of the widget that chooses the column to predict.
        public_help: Help on the choice whether the data are public.
        build_dataset: Makes the data from table, design and disclosure; raises `InvalidInput`.
        build_entry: Makes the object that the page keeps, from the data, the description of the file's content, and the
            design. The object has ``dataset`` and ``account``, and ``design`` if the page needs it. A session file has
            these too, with None for a missing design.
        check_dataset: Raises `InvalidInput` for data of a session file that the page cannot use.
        allows_classes: True if the label may be words, of which one counts as 1.
        must_list_levels: True if the levels of private categories must be listed, as a release names them.
        column_field_prefix: Beginning of the names of fields about single columns; empty if there are none.
        list_extra_state: Returns what the session holds beside the entry, by name, when it is opened from a file.
    """

    question: Question
    uploader_label: str
    label_prompt: str
    public_help: str
    build_dataset: Callable[[tables.Table, Design, Disclosure], Dataset]
    build_entry: Callable[[Dataset, str, Design | None], Any]
    check_dataset: Callable[[Dataset], object] = lambda data: None
    allows_classes: bool = False
    must_list_levels: bool = False
    column_field_prefix: str = ""
    list_extra_state: Callable[[Any], Mapping[str, Any]] = lambda entry: {}

    @property
    def uploader(self) -> uploads.Uploader:
        """Return the uploader."""
        return uploads.Uploader(self.question)

    def get_role_key(self, role: str, column: str = "") -> str:
        """Return the session key of a choice about columns.

        Args:
            role: "label", "user", "features", "categories", "intercept", or "positive", the class that counts as 1,
                which is empty for numeric labels; for one category "reference" or "levels".
            column: The category.
        """
        return (
            f"{self.question.get_key(f'{role}_')}{column}"
            if column
            else self.question.get_key("role_") + role
        )

    def show_uploader(self) -> None:
        """Show the uploader; on a public demo, a notice."""
        if access.is_served():
            uploads.show_demo_notice()
            return
        help_text = "Up to 200 MB. The file is read on this computer; nothing is sent away."
        self.uploader.show(self.uploader_label, help_text, self._read_file)

    def has_waiting_file(self) -> bool:
        """Return True if a file was read and is not in use yet."""
        return st.session_state.get(self.question.get_key("table")) is not None

    def show_choices(self) -> None:
        """Ask what the columns of a waiting file mean; below, show the problems of the last file."""
        waiting_file: _WaitingFile | None = st.session_state.get(self.question.get_key("table"))
        if waiting_file is not None:
            self._show_columns(waiting_file)
        self.uploader.show_problems()

    def _read_file(self, files: list[UploadedFile]) -> None:
        """Read the first file and guess the roles of its columns, or store why it cannot be read; then drop it."""
        state, uploaded_file = st.session_state, files[0]
        self._discard_file()
        file_bytes = uploaded_file.getvalue()
        try:
            table = counting.read_table(file_bytes, uploaded_file.name)
            if len(table.columns) < 2:
                raise refuse("one column is not enough: a label and a user are needed")
        except Exception as error:  # Whatever it is, the page stays usable.
            self.uploader.store_problems(describe_error(error), [uploaded_file.name])
        else:
            file_digest = hashlib.sha256(file_bytes).hexdigest()
            state[self.question.get_key("table")] = _WaitingFile(table, file_digest, {}, {})
            design = design_matrix.guess_design(table, self.allows_classes)
            category_columns = [f.column for f in design.features if f.encoding is FeatureKind.CATEGORIES]
            guesses_by_role: dict[str, Any] = {"label": design.label, "user": guess_roles(table).user}
            guesses_by_role |= {"intercept": design.intercept, "categories": category_columns}
            guesses_by_role |= {"positive": "", "features": [f.column for f in design.features]}
            for role, guessed_choice in guesses_by_role.items():
                state[self.get_role_key(role)] = guessed_choice
            state[self.question.get_key("public")] = Disclosure.PRIVATE
        self.uploader.drop_files(files)

    def _show_columns(self, waiting_file: _WaitingFile) -> None:
        """Show the file, the choice of roles, and the buttons to use or discard it."""
        table, column_names = waiting_file.table, waiting_file.table.columns
        uploads.show_file_head(table.name, format_count(len(table.frame), "row"), len(column_names), table)
        with st.grid(3):
            self._draw_role_widget(st.selectbox, self.label_prompt, "label", column_names)
            self._show_classes(waiting_file)
            placeholder = "Choose a column"
            self._draw_role_widget(
                st.selectbox, "User: whose row it is", "user", column_names, None, placeholder=placeholder
            )
            self._draw_role_widget(
                st.multiselect, "Features: what it is predicted from", "features", column_names
            )
            self._show_categories(waiting_file)
        design: Design | None = None
        try:
            design = self._build_design()
            st.caption(escape_text(design_matrix.explain_design(design), 600))
        except InvalidInput as error:
            fields.show_problems(error.problems)
        question = self.question
        fields.draw_radio(
            "Are these data public?", TEXT_BY_DISCLOSURE, question.get_key("public"), self.public_help
        )
        button_keys = f"{question.name}_use", f"{question.name}_discard"
        is_confirmed = uploads.draw_use_and_discard(*button_keys, self._discard_file)
        if is_confirmed and design is not None:
            self._use_file(waiting_file, design)

    def _draw_role_widget(
        self,
        draw_widget: Callable[..., Any],
        widget_label: str,
        role: str,
        *widget_arguments: Any,
        column: str = "",
        **widget_options: Any,
    ) -> None:
        """Draw the widget that chooses for a role, or for a role of one column, by calling ``draw_widget``."""
        draw_widget(
            widget_label,
            *widget_arguments,
            key=self.get_role_key(role, column),
            persist_state="session",
            **widget_options,
        )

    def _show_classes(self, waiting_file: _WaitingFile) -> None:
        """Ask which class counts as 1 if classes are allowed and labels are words or over 2 numbers; else set none."""
        state, class_key = st.session_state, self.get_role_key("positive")
        label_column = state[self.get_role_key("label")]
        label_has_words = not waiting_file.is_numeric(label_column)
        levels = waiting_file.list_levels(label_column) if self.allows_classes else ()
        if not self.allows_classes or (not label_has_words and len(levels) <= 2):
            state[class_key] = ""
            return
        question_text, help_text = "Which one is 1?", "Empty: labels above a threshold count as 1."
        if label_has_words:
            help_text = "This class against all others; a model for another class is one more release."
        if label_has_words and not self._is_private() and len(levels) <= MAX_LISTED_CLASSES:
            if state.get(class_key) not in levels:
                state[class_key] = None
            self._draw_role_widget(st.selectbox, question_text, "positive", levels, help=help_text)
            return
        state[class_key] = state.get(class_key) or ""
        help_text += " A release names it, so take it from what the column can be, as it stands in the file."
        self._draw_role_widget(st.text_input, question_text, "positive", max_chars=200, help=help_text)

    def _show_categories(self, waiting_file: _WaitingFile) -> None:
        """Ask which features are categories, for the reference or the levels of each, and if there is an intercept."""
        state, categories_key = st.session_state, self.get_role_key("categories")
        feature_columns: list[str] = state[self.get_role_key("features")]
        state[categories_key] = [
            column for column in state.get(categories_key, []) if column in feature_columns
        ]
        help_text = (
            "A column with k levels becomes k − 1 features of 0 and 1. The others are read as numbers."
        )
        self._draw_role_widget(
            st.multiselect, "Of these, as categories (one-hot)", "categories", feature_columns, help=help_text
        )
        for column in state[categories_key]:
            column_text = escape_text(column, 30)
            if self._asks_for_levels():
                help_text = (
                    "Public: what the column can be, not what these rows hold, as a release names every level. The "
                    "first is the reference; unlisted levels count as it."
                )
                widget_label = f"Levels of {column_text}, one in each line"
                self._draw_role_widget(st.text_area, widget_label, "levels", column=column, help=help_text)
            elif levels := waiting_file.list_levels(column)[: design_matrix.MAX_LEVELS + 1]:
                reference_key = self.get_role_key("reference", column)
                if state.get(reference_key) not in levels:
                    state[reference_key] = levels[0]
                help_text = "It gets no feature: the others' coefficients are differences from it."
                widget_label = f"Reference level of {column_text}"
                self._draw_role_widget(
                    st.selectbox, widget_label, "reference", levels, column=column, help=help_text
                )
        self._draw_role_widget(st.toggle, "Intercept", "intercept", help="A feature that is 1 in every row.")

    def _is_private(self) -> bool:
        """Return True unless the person has said that the data are public."""
        return st.session_state.get(self.question.get_key("public"), Disclosure.PRIVATE) is Disclosure.PRIVATE

    def _asks_for_levels(self) -> bool:
        """Return True if a person must list the levels of categories: a release of private data names them."""
        return self.must_list_levels and self._is_private()

    def _build_design(self) -> Design:
        """Build the design that the widgets hold: columns, categories, intercept, class.

        Raises:
            InvalidInput: No user is chosen, or the design is refused.
        """
        role_names = ("label", "user", "features", "categories", "intercept", "positive")
        choice_by_role: dict[str, Any] = {
            role: st.session_state.get(self.get_role_key(role)) for role in role_names
        }
        if choice_by_role["user"] is None:
            raise refuse("no name says who a row belongs to", remedy="Choose the column of the user")
        category_columns = choice_by_role["categories"]
        features = (
            self._build_category(c) if c in category_columns else Feature(c)
            for c in choice_by_role["features"]
        )
        positive_class = str(choice_by_role["positive"] or "").strip()
        return Design(
            choice_by_role["label"],
            choice_by_role["user"],
            tuple(features),
            choice_by_role["intercept"],
            positive_class,
        )

    def _build_category(self, column: str) -> Feature:
        """Return a feature that is a category, with its reference level or its listed levels."""
        role = "levels" if self._asks_for_levels() else "reference"
        entered_text = st.session_state.get(self.get_role_key(role, column)) or ""
        if role == "levels" and str(entered_text).strip():
            return design_matrix.read_levels(column, entered_text)
        # Of listed levels nothing is written yet: `build_dataset` says that it must be.
        return Feature(column, FeatureKind.CATEGORIES, entered_text if role == "reference" else "")

    def _use_file(self, waiting_file: _WaitingFile, design: Design) -> None:
        """Put the file's data to use on the page, or store why they are refused."""
        try:
            with st.spinner("Reading the columns…"):
                dataset = self.build_dataset(
                    waiting_file.table, design, st.session_state[self.question.get_key("public")]
                )
        except Exception as error:  # Whatever it is, the page stays usable.
            self.uploader.store_problems(describe_error(error))
            return
        self._clear_settings()
        st.session_state[self.question.get_key("loaded")] = self.build_entry(
            dataset, waiting_file.account, design
        )
        self._discard_file()
        st.rerun()

    def _clear_settings(self) -> None:
        """Reset the page's settings for earlier data, such as a range; what a link or session file set stays."""
        state = st.session_state
        awaited_by_key = state.get(keys.AWAITED_VALUES, {})
        for field_name, field in self.question.fields.items():
            widget_key = self.question.get_key(field_name)
            if (
                field.is_renewed
                and field.origin is FieldOrigin.OWN_DATA
                and awaited_by_key.get(widget_key) != state.get(widget_key)
            ):
                state[widget_key] = field.initial
        state[keys.AWAITED_VALUES] = {}
        if "proposed" in self.question.origins_by_entry:
            state.pop(self.question.get_key("proposed"), None)

    def _discard_file(self) -> None:
        """Forget the waiting file and the problems of the last one."""
        st.session_state[self.question.get_key("table")] = None
        self.uploader.store_problems(())


def draw_data_choice(
    upload: TableUpload,
    loaders_by_source: Mapping[Any, Callable[[], Any]],
    generator_source: Any,
    model_sentence: str,
    generator_fields: Sequence[str],
    describe_size: Callable[[Dataset], str],
) -> Any | None:
    """Show which data the page uses and offer others; return the data, or None if there are none yet.

    Args:
        upload: Of the page; its question has the field ``selected_source``.
        loaders_by_source: Loads the data of each source, or returns None if there are none; the last is the upload.
        generator_source: The source that generates data, whose fields are shown if it is chosen.
        model_sentence: What its data are generated from, a sentence.
        generator_fields: Names of its fields.
        describe_size: Writes how many users or rows there are.
    """
    question = upload.question
    with st.container(horizontal=True, vertical_alignment="center", key=f"{question.name}_data"):
        summary_container = st.container(width="content")
        with st.popover("Other data", icon=":material/table:", key=f"{question.name}_settings"):
            selected_source = fields.draw_field(question, "source")
            if selected_source is generator_source:
                st.markdown(model_sentence)
                with st.grid(2):
                    fields.draw_fields(question, *generator_fields)
            elif (
                selected_source is list(loaders_by_source)[-1]
                and st.session_state.get(question.get_key("loaded")) is not None
            ):
                upload.show_uploader()
    source_data = loaders_by_source[selected_source]()
    if source_data is not None:
        name_text, size_text = escape_text(source_data.dataset.name), describe_size(source_data.dataset)
        summary_container.markdown(f"Data of this page: **{name_text}**, {size_text}")
    return source_data


def show_table_upload(upload: TableUpload) -> Any | None:
    """Show the upload, and return the entry of the page's own table; None, with the uploader, if there is none."""
    table_entry = st.session_state.get(upload.question.get_key("loaded"))
    if table_entry is None:
        upload.show_uploader()
    upload.show_choices()
    if table_entry is not None:
        for note in table_entry.dataset.notes:
            st.caption(escape_text(note, 600))
    elif not upload.has_waiting_file() and not access.is_served():
        st.caption("For example a table of ratings. A link does not carry uploaded data.")
    return table_entry
