"""Code below an answer card: the choice as a program for the person's library."""

from __future__ import annotations

import streamlit as st

from dpcore.code import Choice, Code, Library, Several, markdown_table, write
from dpcore.code.forms import CodeChoice
from dpcore.common.wording import plain
from pages.shared.base import keys
from pages.shared.figures import figures

HEIGHT = 520


def show(code: CodeChoice, key: str) -> None:
    """Draw the choices and the program.

    Args:
        code: What to write.
        key: The card's, unique on the page.
    """
    choice = _form(code, key)
    if isinstance(choice, Code):
        st.code(choice.text, language=choice.language, height=HEIGHT, wrap_lines=True)
        _download(choice, choice.file_name, key)
        return
    library = _library(key, choice)
    program = write(choice, library)
    for sentence in program.differences if not program.text else ():
        st.info(plain(sentence, 2000), icon=":material/block:")
    if not program.text and (nearest := _nearest(code, library)) is not None:
        name, choice, program = nearest
        st.caption(f"The program below is for **{plain(name, 200)}**, which {library.value} has.")
    if program.text:
        _draw(program, choice)
    if program.text:
        _download(program, _file_name(program, choice), key)
    # Not a dialog of its own: the panel stands in one, and Streamlit refuses a dialog inside another.
    with st.expander("The same thing is called …", icon=":material/translate:"):
        st.markdown(markdown_table())
        st.caption(
            "An em dash: there is no such thing; what follows comes nearest. Names were read in each library's "
            "documentation on 2026-11-21; docs/libraries.md has the addresses."
        )


def _nearest(code: CodeChoice, library: Library) -> tuple[str, Choice | Several, Code] | None:
    """Return the first form that the library has, its name and its program; None where it has none."""
    for name, choice in code.forms:
        if not isinstance(choice, Code) and (program := write(choice, library)).text:
            return name, choice, program
    return None


def _download(program: Code, file_name: str, key: str) -> None:
    st.download_button(
        "Download",
        lambda: program.text,
        file_name=file_name,
        mime="text/plain",
        key=f"{key}_code_file",
        on_click="ignore",
        icon=":material/download:",
    )


def _form(code: CodeChoice, key: str) -> Choice | Several | Code:
    forms = dict(code.forms)
    if len(forms) == 1:
        return code.forms[0][1]
    # The names carry the bound, which moves: the position is what is remembered.
    state_key = keys.CODE_FORM + key
    position = st.segmented_control(
        "What to apply",
        range(len(forms)),
        default=0,
        format_func=lambda i: code.forms[i][0],
        key=state_key,
        required=True,
        persist_state="session",
    )
    return code.forms[min(position or 0, len(forms) - 1)][1]


def _library(key: str, choice: Choice | Several) -> Library:
    """Return the person's library, which all cards share although each has a widget of its own.

    Until one is chosen, every card begins with the first that has such a release.
    """
    widget_key, state = f"{keys.CODE_LIBRARY}_{key}", st.session_state
    begin = state.get(keys.CODE_LIBRARY)
    if begin is None:
        able = (library for library in Library if write(choice, library).text)
        begin = next(able, Library.OPENDP).name
    if state.get(widget_key) != begin:
        state[widget_key] = begin

    def remember_choice() -> None:
        state[keys.CODE_LIBRARY] = state.get(widget_key)

    st.segmented_control(
        "Library",
        [library.name for library in Library],
        format_func=lambda name: Library[name].value,
        key=widget_key,
        required=True,
        on_change=remember_choice,
    )
    return Library[state[widget_key]]


def _draw(program: Code, choice: Choice | Several) -> None:
    st.code(program.text, language=program.language, height=HEIGHT, wrap_lines=True)
    notes = [plain(sentence, 2000) for sentence in program.differences]
    if not choice.known_columns:
        notes.insert(
            0, "File and columns are placeholders: the data in use do not say what theirs are called."
        )
    if notes:
        st.markdown("**What differs**\n" + "\n".join(f"- {sentence}" for sentence in notes))


def _file_name(program: Code, choice: Choice | Several) -> str:
    stem, _, ending = program.file_name.rpartition(".")
    return f"{figures.write_file_name(stem, choice.disclosure)}.{ending}"
