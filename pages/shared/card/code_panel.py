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
    written = write(choice, library)
    for sentence in written.differences if not written.text else ():
        st.info(plain(sentence, 2000), icon=":material/block:")
    if not written.text and (nearest := _nearest(code, library)) is not None:
        name, choice, written = nearest
        st.caption(f"The program below is for **{plain(name, 200)}**, which {library.value} has.")
    if written.text:
        _draw(written, choice)
    if written.text:
        _download(written, _file_name(written, choice), key)
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
        if not isinstance(choice, Code) and (written := write(choice, library)).text:
            return name, choice, written
    return None


def _download(written: Code, file_name: str, key: str) -> None:
    st.download_button(
        "Download",
        lambda: written.text,
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
    kept = keys.CODE_FORM + key
    at = st.segmented_control(
        "What to apply",
        range(len(forms)),
        default=0,
        format_func=lambda i: code.forms[i][0],
        key=kept,
        required=True,
        persist_state="session",
    )
    return code.forms[min(at or 0, len(forms) - 1)][1]


def _library(key: str, choice: Choice | Several) -> Library:
    """Return the person's library, one for all cards: several may be drawn at once, each with a widget of its
    own.

    Until one is chosen, every card begins with the first that has such a release.
    """
    own, state = f"{keys.CODE_LIBRARY}_{key}", st.session_state
    begin = state.get(keys.CODE_LIBRARY)
    if begin is None:
        able = (library for library in Library if write(choice, library).text)
        begin = next(able, Library.OPENDP).name
    if state.get(own) != begin:
        state[own] = begin

    def chosen() -> None:
        state[keys.CODE_LIBRARY] = state.get(own)

    st.segmented_control(
        "Library",
        [library.name for library in Library],
        format_func=lambda name: Library[name].value,
        key=own,
        required=True,
        on_change=chosen,
    )
    return Library[state[own]]


def _draw(written: Code, choice: Choice | Several) -> None:
    st.code(written.text, language=written.language, height=HEIGHT, wrap_lines=True)
    told = [plain(sentence, 2000) for sentence in written.differences]
    if not choice.known_columns:
        told.insert(
            0, "File and columns are placeholders: the data in use do not say what theirs are called."
        )
    if told:
        st.markdown("**What differs**\n" + "\n".join(f"- {sentence}" for sentence in told))


def _file_name(written: Code, choice: Choice | Several) -> str:
    stem, _, ending = written.file_name.rpartition(".")
    return f"{figures.write_file_name(stem, choice.disclosure)}.{ending}"
