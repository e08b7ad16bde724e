"""Sweet Spot: how much may one user contribute to a differentially private release?

The server: the script that draws the pages, with our routes and checks around it.
"""

import streamlit as st

from pages.shared.server import server

# Streamlit looks for this very call in the text of the file; without it, it would run this file as a page.
app = st.App(
    server.MAIN_SCRIPT, routes=server.ROUTES, middleware=server.build_middleware(), lifespan=server.lifespan
)
