"""Shows the command, the code and the SQL that count the rows in the person's own database or cluster."""

from __future__ import annotations

import streamlit as st

from dpcore import counting
from dpcore.counting.engines import Recipe
from dpcore.data.column_roles import Roles, TableKind
from pages.shared.base import cache
from pages.shared.fields import fields
from pages.your_data.question import QUESTION

DEFAULT_TABLE = "events"
_DEFAULT_ROLES = Roles(TableKind.EVENTS, user="user_id")


def show_recipes(roles: Roles | None) -> None:
    """Show the recipe for the columns chosen above, or for a default user column if there is no file."""
    with st.expander(
        "Count in your own database or on a cluster", icon=":material/dns:", key=QUESTION.key("engine_open")
    ):
        st.markdown(
            "Run this where your data are; only the histogram comes back, and you open it here. Nothing is typed "
            "into this page: credentials come from the engine's own settings."
        )
        with st.grid(2):
            titles = {name: engine.title for name, engine in counting.ENGINES.items()}
            key: str = fields.pick("Engine", titles, QUESTION.key("engine"))
            st.session_state.setdefault(QUESTION.key("engine_table"), DEFAULT_TABLE)
            table = (
                st.text_input("Table", key=QUESTION.key("engine_table"), persist_state="session")
                or DEFAULT_TABLE
            )
        engine = counting.ENGINES[key]
        if roles is None or roles.kind is not TableKind.EVENTS or not roles.user:
            roles = _DEFAULT_ROLES
            st.caption("Put the name of your own column in the place of user_id.")
        recipe = _write_recipe(key, roles, table)
        st.caption(f"Credentials come from {engine.credentials}.")
        command, python, sql = st.tabs(["Shell", "Python", "SQL that runs"])
        command.code(recipe.command, language="bash", wrap_lines=True)
        command.caption(
            f"Run it in the folder of Sweet Spot, after: pip install 'ibis-framework[{engine.key}]'. "
            "Then upload histogram.csv here."
        )
        python.code(recipe.python, language="python")
        sql.code(recipe.sql, language="sql")
        sql.caption("For the histogram. Columns are taken for text, and the value for a number.")


@cache.cached(max_entries=4)
def _write_recipe(engine: str, roles: Roles, table: str) -> Recipe:
    """Return the recipe, cached: every run draws it, and writing the SQL takes as long as the rest."""
    return counting.recipe(counting.ENGINES[engine], roles, table)
