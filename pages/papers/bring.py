"""The papers' own data, brought for the figures that use them: files as their makers publish them."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from dpcore.answer.paper_figure import PaperFigure
from dpcore.common.errors import describe_error
from dpcore.common.wording import plain
from dpcore.data.published import File
from dpcore.papers import FIGURES
from pages.papers.question import QUESTION
from pages.shared.base import demo
from pages.shared.data import uploads
from pages.shared.screen import paper

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

ENTRY = uploads.Entry(QUESTION, "bring_")


def show(of: PaperFigure) -> None:
    """Where the files are given, and what of them is there; nothing for a figure that needs none."""
    if of.own_data is None:
        return
    brought = paper.brought_for(of)
    with st.expander("Bring the paper's data", icon=":material/upload_file:", expanded=bool(ENTRY.problems)):
        if demo.is_served():
            uploads.say_served()
            return
        st.markdown(
            f"{of.own_data.description}. *Bring the papers' data* in the documentation says where their makers "
            "publish them."
        )
        ENTRY.show(
            "Files as they come",
            "Up to 200 MB. They are read on this computer, what the figure needs is kept, and they are dropped. "
            "Nothing is sent away.",
            functools.partial(_read, of),
            many=True,
        )
        ENTRY.say()
        if brought is not None:
            st.caption(
                f"Read: {plain(brought.dataset_name)}. *Compute it on {plain(brought.dataset_name)}*, beside "
                "the figure, draws it."
            )


def _read(of: PaperFigure, given: list[UploadedFile]) -> None:
    """Make all figures that use these data."""
    assert of.own_data is not None
    files = tuple(File(one.name, one.getvalue()) for one in given)
    digest = hashlib.sha256(b"".join(hashlib.sha256(file.content).digest() for file in files)).hexdigest()
    try:
        for figure in FIGURES:
            if figure.own_data is not None and figure.own_data.description == of.own_data.description:
                made = figure.own_data.build_figure(files)
                paper.bring(figure, replace(made, key=f"{figure.key}-{digest[:8]}"))
    except Exception as error:  # Whatever it is, the page stays usable.
        ENTRY.refuse(describe_error(error), [file.name for file in files])
    else:
        ENTRY.refuse(())
    ENTRY.drop(given)
