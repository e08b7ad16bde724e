"""A figure that is updated in place: it keeps its element, its zoom and its size while a slider moves."""

from pages.shared.figure.component import build_message, draw
from pages.shared.figure.serving import MIDDLEWARE, ROUTES

__all__ = ["MIDDLEWARE", "ROUTES", "build_message", "draw"]
