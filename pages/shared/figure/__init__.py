"""A figure that is updated in place: it keeps its element, its zoom and its size while a slider moves."""

from pages.shared.figure.component import MIDDLEWARE, ROUTES, build_message, draw

__all__ = ["MIDDLEWARE", "ROUTES", "build_message", "draw"]
