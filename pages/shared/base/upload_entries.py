"""Session entries of uploads, which the question of a page with an upload declares beside its own.

They stand apart from the uploads, which need all questions.
"""

from __future__ import annotations

from dpcore.common.parameters import FieldOrigin

ITEM_NAMES_PREFIX, GROUP_LIST_PREFIX = "items_", "groups_"
"""The beginnings of the names of the entries of a list of items and of a list of groups."""
ITEM_NAMES_ORIGINS, GROUP_LIST_ORIGINS = (
    FieldOrigin.DATA.each(*(f"{prefix}{name}" for name in ("file_", "round", "problems")))
    for prefix in (ITEM_NAMES_PREFIX, GROUP_LIST_PREFIX)
)
TABLE_ORIGINS = FieldOrigin.OWN_DATA.each(
    "loaded", "file_", "round", "table", "problems", "role_", "reference_", "levels_", "public"
)
"""Origins of the entries of a list of items, a list of groups and a table, by the entry's name under the question."""
