"""The programs of an answer: what to apply, for which library, and the program itself."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpcore.code import LIBRARIES, write
from dpcore.code.choice import Code, ReleaseSpec, read_name_table
from dpcore.code.forms import OfferedPrograms
from dpcore.code.several import ReleasePlan
from dpcore.common import wording
from dpcore.common.privacy import write_file_name
from dpcore.common.programs import Program
from dpcore.common.wording import plain
from pages.shared.base import keys
from pages.shared.fields import fields

HEIGHT = 520


def show_code(code_choice: OfferedPrograms, key: str) -> None:
    """Draw the choices of what to apply and of the library, then the program; if there is none, why, and another.

    Args:
        code_choice: What can be written, and for which library first.
        key: The card's, unique on the page.
    """
    form_index = 0
    if len(code_choice.forms) > 1:
        # The names carry the bound, which moves: the position is what is remembered.
        name_by_index = {i: name for i, (name, _) in enumerate(code_choice.forms)}
        form_index = fields.choice("What to apply", name_by_index, keys.CODE_FORM + key) or 0
    choice = code_choice.forms[form_index][1]
    if isinstance(choice, Code):
        _draw_program(choice, choice.file_name, key)
        return
    library = _choose_library(key, choice, code_choice.library)
    code = write(choice, library)
    if not code.text:
        for sentence in code.differences:
            st.info(plain(sentence, 2000), icon=":material/block:")
        for name, other_choice in code_choice.forms:
            if not isinstance(other_choice, Code) and (other_code := write(other_choice, library)).text:
                choice, code = other_choice, other_code
                st.caption(f"The program below is for **{plain(name, 200)}**, which {library.value} has.")
                break
    if code.text:
        stem, _, ending = code.file_name.rpartition(".")
        notes = [plain(sentence, 2000) for sentence in code.differences]
        if not choice.has_known_columns:
            notes.insert(0, "File and columns are placeholders.")
        _draw_program(code, f"{write_file_name(stem, choice.disclosure)}.{ending}", key, notes)
    # Not a dialog of its own: the panel stands in one, and Streamlit refuses a dialog inside another.
    with st.expander("The same thing is called …", icon=":material/translate:"):
        st.markdown(read_name_table())
        st.caption("After an em dash stands what comes nearest. Read on 2026-11-21.")


def _draw_program(code: Code, file_name: str, key: str, notes: Sequence[str] = ()) -> None:
    """Draw a program, notes on how the program differs from the page if there are any, and its download button."""
    st.code(code.text, language=code.language, height=HEIGHT, wrap_lines=True)
    if notes:
        st.markdown("**What differs**\n" + "\n".join(f"- {sentence}" for sentence in notes))
    fields.download_button("Download", file_name, lambda: code.text, f"{key}_code_file")


def _choose_library(key: str, choice: ReleaseSpec | ReleasePlan, page_library: Program | None) -> Program:
    """Draw the choice of a library and return it; all cards share the choice, although each has its own widget.

    It is the program of the page, until another is chosen here; of pages without one the first that has such a release.
    """
    widget_key, state = f"{keys.CODE_LIBRARY}_{key}", st.session_state
    if page_library is not None and state.get(keys.CODE_PROGRAM) is not page_library:
        state[keys.CODE_PROGRAM], state[keys.CODE_LIBRARY] = page_library, page_library.name
    if (current_name := state.get(keys.CODE_LIBRARY)) is None:
        able_libraries = (library for library in LIBRARIES if write(choice, library).text)
        current_name = next(able_libraries, Program.OPENDP).name
    if state.get(widget_key) != current_name:
        state[widget_key] = current_name
    st.segmented_control(
        "Library",
        [library.name for library in LIBRARIES],
        format_func=lambda name: wording.capital(Program[name].value),
        key=widget_key,
        required=True,
        on_change=lambda: state.update({keys.CODE_LIBRARY: state.get(widget_key)}),
    )
    return Program[state[widget_key]]
