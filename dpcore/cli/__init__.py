"""The command ``sweet-spot``, which asks the questions of `dpcore.questions`, counts, and starts the app."""

WIDTH = 79
"""Columns of its help."""
