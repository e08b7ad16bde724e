"""Shared pieces of the pages: shell, inputs, charts, answer cards, cached calls, links, session keys."""
