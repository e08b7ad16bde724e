"""The script that Streamlit runs for every session: page settings, the shell, and the page that was asked for."""

import streamlit as st

from pages.shared import shell
from pages.shared.base.catalogue import PAGES
from pages.shared.server import server

SIDEBAR_WIDTH = 240
"""Pixels; what is left of the width is for the figure and its answer."""

server.watch()
st.set_page_config(
    page_title="Sweet Spot",
    page_icon="⚖️",
    layout="wide",
    initial_sidebar_state="collapsed" if shell.is_presented() else SIDEBAR_WIDTH,
)

pages_by_group: dict[str, list[st.Page]] = {}
questions = {q.url_path: q for q in PAGES}
for q in PAGES:
    page = st.Page(
        q.path, title=q.title, icon=q.icon, url_path=q.url_path, default=not q.url_path, help=q.sentence
    )
    pages_by_group.setdefault(q.group, []).append(page)

# More than a dozen pages would be folded up by themselves.
current_page = st.navigation(pages_by_group, expanded=True)
shell.show(questions[current_page.url_path])
current_page.run()
# Last: it takes 0.3 s once, for which nobody needs to wait before the first figure.
shell.freeze_memory()
