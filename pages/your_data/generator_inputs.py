"""What a person enters to generate a distribution, per kind of generator."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.data import generators
from pages.shared.fields import fields
from pages.shared.session import session
from pages.your_data.question import QUESTION


@dataclass(frozen=True)
class Entry:
    """One parameter: its field in the generator, label, default and help."""

    field: str
    label: str
    default: float | int
    help: str = ""


SEED = Entry("seed", "Seed", 1, "The same seed gives the same distribution.")
ENTRIES: dict[str, tuple[Entry, ...]] = {
    "zipf": (
        Entry("alpha", "Exponent α", 1.5, "Smaller is heavier-tailed; the paper uses 1 < α ≤ 2."),
        Entry("num_users", "Users", 10_000),
        Entry("max_contributions", "Largest number of rows per user", 1_000),
        SEED,
    ),
    "participation": (
        Entry(
            "alpha",
            "Exponent α",
            1.0,
            "A row comes from user $j$ with probability $\\propto j^{-(1+\\alpha)}$.",
        ),
        Entry("num_rows", "Rows drawn", 100_000),
        SEED,
    ),
    "lognormal": (
        Entry("log_mean", "Mean of log rows", 1.5, "The median user has about exp of this."),
        Entry("log_sigma", "Standard deviation of log rows", 1.2),
        Entry("num_users", "Users", 10_000),
        SEED,
    ),
    "two-groups": (
        Entry("light_users", "Light users", 1_000),
        Entry("light_rows", "Rows of a light user", 1),
        Entry("heavy_users", "Heavy users", 1_000),
        Entry("heavy_rows", "Rows of a heavy user", 1_000),
    ),
}


def panel() -> None:
    """Choose a kind, enter its parameters, generate."""
    kinds = {kind: generators.GENERATORS[kind].title for kind in ENTRIES}
    kind: str = fields.pick("Kind of distribution", kinds, QUESTION.key("generator"))
    entries = ENTRIES[kind]
    with st.grid(4):
        for entry in entries:
            key = _key(kind, entry)
            st.session_state.setdefault(key, entry.default)
            fields.number(entry.label, key, entry.help, whole=isinstance(entry.default, int))
    fields.button("Generate", "generate", "casino", _generate, kind, main=True)
    problems = st.session_state.get(QUESTION.key("generator_problems"), ())
    if problems:
        fields.say(problems)


def _key(kind: str, entry: Entry) -> str:
    return f"{QUESTION.key('generator_field_')}{kind}_{entry.field}"


def _generate(kind: str) -> None:
    session_keys = {entry.field: _key(kind, entry) for entry in ENTRIES[kind]}
    if any(key not in st.session_state for key in session_keys.values()):
        return  # A late press: the page shows another kind by now.
    values = {name: st.session_state[key] for name, key in session_keys.items()}
    labels = {entry.field: f"“{entry.label}”" for entry in ENTRIES[kind]}
    generator, problems = fields.made(generators.GENERATORS[kind], values, labels)
    if generator is not None:
        try:
            session.use_generator(generator)
        except InvalidInput as refused:
            problems += refused.problems
    st.session_state[QUESTION.key("generator_problems")] = tuple(problems)
