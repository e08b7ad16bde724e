"""The programs of an answer: what to apply, for which library, and the program itself."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpcore.code import LIBRARIES, write
from dpcore.code.forms import OfferedPrograms
from dpcore.code.release_spec import Code, ReleaseSpec, read_name_table
from dpcore.code.several import ReleasePlan
from dpcore.common.privacy import write_file_name
from dpcore.common.programs import Program
from dpcore.common.wording import capitalise, escape_text
from pages.shared.base import keys
from pages.shared.fields import fields

PROGRAM_HEIGHT = 520


def draw_code(offered_programs: OfferedPrograms, card_key: str) -> None:
    """Draw the choices of what to apply and of the library, then the program; if there is none, why, and another.

    Args:
        offered_programs: What can be written, and for which library first.
        card_key: The card's, unique on the page.
    """
    form_index = 0
    if len(offered_programs.forms) > 1:
        # The names carry the bound, which moves: the position is what is remembered.
        name_by_index = {i: form_name for i, (form_name, _) in enumerate(offered_programs.forms)}
        form_index = fields.draw_choice("What to apply", name_by_index, keys.CODE_FORM_PREFIX + card_key) or 0
    release_or_code = offered_programs.forms[form_index][1]
    if isinstance(release_or_code, Code):
        _draw_program(release_or_code, release_or_code.file_name, card_key)
        return
    library = _draw_library_choice(card_key, release_or_code, offered_programs.library)
    code = write(release_or_code, library)
    if not code.text:
        for difference_sentence in code.differences:
            st.info(escape_text(difference_sentence, 2000), icon=":material/block:")
        for form_name, other_form in offered_programs.forms:
            if not isinstance(other_form, Code) and (other_code := write(other_form, library)).text:
                release_or_code, code = other_form, other_code
                st.caption(
                    f"The program below is for **{escape_text(form_name, 200)}**, which {library.value} has."
                )
                break
    if code.text:
        file_stem, _, file_ending = code.file_name.rpartition(".")
        note_sentences = [escape_text(difference_sentence, 2000) for difference_sentence in code.differences]
        if not release_or_code.has_known_columns:
            note_sentences.insert(0, "File and columns are placeholders.")
        _draw_program(
            code,
            f"{write_file_name(file_stem, release_or_code.disclosure)}.{file_ending}",
            card_key,
            note_sentences,
        )
    # Not a dialog of its own: the panel stands in one, and Streamlit refuses a dialog inside another.
    with st.expander("The same thing is called …", icon=":material/translate:"):
        st.markdown(read_name_table())
        st.caption("After an em dash stands what comes nearest. Read on 2026-11-21.")


def _draw_program(code: Code, file_name: str, card_key: str, note_sentences: Sequence[str] = ()) -> None:
    """Draw a program, notes on how the program differs from the page if there are any, and its download button."""
    st.code(code.text, language=code.language, height=PROGRAM_HEIGHT, wrap_lines=True)
    if note_sentences:
        st.markdown("**What differs**\n" + "\n".join(f"- {note}" for note in note_sentences))
    fields.draw_download_button("Download", file_name, lambda: code.text, f"{card_key}_code_file")


def _draw_library_choice(
    card_key: str, release: ReleaseSpec | ReleasePlan, page_library: Program | None
) -> Program:
    """Draw the choice of a library and return it; all cards share the choice, although each has its own widget.

    It is the program of the page, until another is chosen here; of pages without one the first that has such a release.
    """
    widget_key, state = f"{keys.CODE_LIBRARY}_{card_key}", st.session_state
    if page_library is not None and state.get(keys.CODE_PAGE_LIBRARY) is not page_library:
        state[keys.CODE_PAGE_LIBRARY], state[keys.CODE_LIBRARY] = page_library, page_library.name
    if (current_name := state.get(keys.CODE_LIBRARY)) is None:
        able_libraries = (library for library in LIBRARIES if write(release, library).text)
        current_name = next(able_libraries, Program.OPENDP).name
    if state.get(widget_key) != current_name:
        state[widget_key] = current_name
    st.segmented_control(
        "Library",
        [library.name for library in LIBRARIES],
        format_func=lambda name: capitalise(Program[name].value),
        key=widget_key,
        required=True,
        on_change=lambda: state.update({keys.CODE_LIBRARY: state.get(widget_key)}),
    )
    return Program[state[widget_key]]
