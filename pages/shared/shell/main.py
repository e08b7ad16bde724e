"""The script that Streamlit runs for every session: page settings, the shell, and the page that was asked for."""

import streamlit as st

from pages.shared import shell
from pages.shared.base.catalogue import QUESTION_BY_NAME
from pages.shared.server import server

SIDEBAR_WIDTH = 240
"""Pixels; what is left of the width is for the figure and its answer."""

server.watch_session()
st.set_page_config(
    page_title="Sweet Spot",
    page_icon="⚖️",
    layout="wide",
    initial_sidebar_state="collapsed" if shell.is_presented() else SIDEBAR_WIDTH,
)

pages = [
    st.Page(q.page_path, title=q.title, icon=q.icon, url_path=q.url_path, default=not q.url_path)
    for q in QUESTION_BY_NAME.values()
]
questions_by_path = {q.url_path: q for q in QUESTION_BY_NAME.values()}
# The shell draws the links: Streamlit's own would stand above the data in use, and no group of them starts closed.
current_page = st.navigation(pages, position="hidden")
shell.show_shell(questions_by_path[current_page.url_path])
current_page.run()
# Last: it takes 0.3 s once, for which nobody needs to wait before the first figure.
shell.freeze_memory()
