"""Measurements of methods and of the app; each module is a script."""
