"""Code below an answer card: the choice as a program for the person's library."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpcore.code import Choice, Code, Library, Several, markdown_table, write
from dpcore.code.forms import CodeChoice
from dpcore.common.privacy import write_file_name
from dpcore.common.wording import plain
from pages.shared.base import keys

HEIGHT = 520


def show(code: CodeChoice, key: str) -> None:
    """Draw the choices and the program.

    Args:
        code: What to write.
        key: The card's, unique on the page.
    """
    choice = _choose_form(code, key)
    if isinstance(choice, Code):
        _draw_program(choice, choice.file_name, key)
        return
    library = _choose_library(key, choice)
    program = write(choice, library)
    if not program.text:
        for sentence in program.differences:
            st.info(plain(sentence, 2000), icon=":material/block:")
        others = ((name, other) for name, other in code.forms if not isinstance(other, Code))
        programs = ((name, other, write(other, library)) for name, other in others)
        if (nearest := next((entry for entry in programs if entry[2].text), None)) is not None:
            name, choice, program = nearest
            st.caption(f"The program below is for **{plain(name, 200)}**, which {library.value} has.")
    if program.text:
        stem, _, ending = program.file_name.rpartition(".")
        notes = [plain(sentence, 2000) for sentence in program.differences]
        if not choice.known_columns:
            notes.insert(
                0, "File and columns are placeholders: the data in use do not say what theirs are called."
            )
        _draw_program(program, f"{write_file_name(stem, choice.disclosure)}.{ending}", key, notes)
    # Not a dialog of its own: the panel stands in one, and Streamlit refuses a dialog inside another.
    with st.expander("The same thing is called …", icon=":material/translate:"):
        st.markdown(markdown_table())
        st.caption(
            "An em dash: there is no such thing; what follows comes nearest. Names were read in each library's "
            "documentation on 2026-11-21; docs/libraries.md has the addresses."
        )


def _draw_program(program: Code, file_name: str, key: str, notes: Sequence[str] = ()) -> None:
    """Draw a program, what it does otherwise than the page, and the button that downloads it."""
    st.code(program.text, language=program.language, height=HEIGHT, wrap_lines=True)
    if notes:
        st.markdown("**What differs**\n" + "\n".join(f"- {sentence}" for sentence in notes))
    st.download_button(
        "Download",
        lambda: program.text,
        file_name=file_name,
        mime="text/plain",
        key=f"{key}_code_file",
        on_click="ignore",
        icon=":material/download:",
    )


def _choose_form(code: CodeChoice, key: str) -> Choice | Several | Code:
    """Ask which form of the release the program is for, if there are several."""
    if len(code.forms) == 1:
        return code.forms[0][1]
    # The names carry the bound, which moves: the position is what is remembered.
    position = st.segmented_control(
        "What to apply",
        range(len(code.forms)),
        default=0,
        format_func=lambda i: code.forms[i][0],
        key=keys.CODE_FORM + key,
        required=True,
        persist_state="session",
    )
    return code.forms[min(position or 0, len(code.forms) - 1)][1]


def _choose_library(key: str, choice: Choice | Several) -> Library:
    """Return the person's library, which all cards share although each has a widget of its own.

    Until one is chosen, every card begins with the first that has such a release.
    """
    widget_key, state = f"{keys.CODE_LIBRARY}_{key}", st.session_state
    if (current := state.get(keys.CODE_LIBRARY)) is None:
        able = (library for library in Library if write(choice, library).text)
        current = next(able, Library.OPENDP).name
    if state.get(widget_key) != current:
        state[widget_key] = current
    st.segmented_control(
        "Library",
        list(Library.__members__),
        format_func=lambda name: Library[name].value,
        key=widget_key,
        required=True,
        on_change=lambda: state.update({keys.CODE_LIBRARY: state.get(widget_key)}),
    )
    return Library[state[widget_key]]
