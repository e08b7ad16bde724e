"""What the app's server has besides Streamlit's own: routes, and checks that every request passes first."""

from __future__ import annotations

from pathlib import Path

from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from pages.shared.figure import serving

# Not beside a folder named `pages`: Streamlit would take that for automatic pages.
SCRIPT = Path(__file__).resolve().parent / "shell" / "main.py"

# Answered before Streamlit's own; none may begin with /_stcore, /media, /component or /static.
ROUTES: list[BaseRoute] = [*serving.ROUTES]

# The first is outermost; all are outside Streamlit's own.
MIDDLEWARE: list[Middleware] = [*serving.MIDDLEWARE]
