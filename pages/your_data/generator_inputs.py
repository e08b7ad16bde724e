"""The inputs that generate a distribution, for each generator."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dpcore.common.checks import InvalidInput
from dpcore.data import generators
from pages.shared.fields import fields
from pages.shared.session import session
from pages.your_data.question import QUESTION


@dataclass(frozen=True)
class GeneratorField:
    """One parameter of a generator: its name, label, default and help."""

    name: str
    label: str
    default: float | int
    help: str = ""


SEED = GeneratorField("seed", "Seed", 1, "The same seed gives the same distribution.")
FIELDS: dict[str, tuple[GeneratorField, ...]] = {
    "zipf": (
        GeneratorField("alpha", "Exponent α", 1.5, "Smaller is heavier-tailed; the paper uses 1 < α ≤ 2."),
        GeneratorField("num_users", "Users", 10_000),
        GeneratorField("max_contributions", "Largest number of rows per user", 1_000),
        SEED,
    ),
    "participation": (
        GeneratorField(
            "alpha",
            "Exponent α",
            1.0,
            "A row comes from user $j$ with probability $\\propto j^{-(1+\\alpha)}$.",
        ),
        GeneratorField("num_rows", "Rows drawn", 100_000),
        SEED,
    ),
    "lognormal": (
        GeneratorField("log_mean", "Mean of log rows", 1.5, "The median user has about exp of this."),
        GeneratorField("log_sigma", "Standard deviation of log rows", 1.2),
        GeneratorField("num_users", "Users", 10_000),
        SEED,
    ),
    "two-groups": (
        GeneratorField("light_users", "Light users", 1_000),
        GeneratorField("light_rows", "Rows of a light user", 1),
        GeneratorField("heavy_users", "Heavy users", 1_000),
        GeneratorField("heavy_rows", "Rows of a heavy user", 1_000),
    ),
}


def show_panel() -> None:
    """Draw the choice of a generator, its parameters, and the button that generates the data."""
    titles = {name: generators.GENERATORS[name].title for name in FIELDS}
    name: str = fields.pick("Kind of distribution", titles, QUESTION.key("generator"))
    with st.grid(4):
        for field in FIELDS[name]:
            key = _key(name, field)
            st.session_state.setdefault(key, field.default)
            fields.number(field.label, key, field.help, is_integer=isinstance(field.default, int))
    fields.button("Generate", "generate", "casino", _generate, name, is_main=True)
    problems = st.session_state.get(QUESTION.key("generator_problems"), ())
    if problems:
        fields.say(problems)


def _key(name: str, field: GeneratorField) -> str:
    return f"{QUESTION.key('generator_field_')}{name}_{field.name}"


def _generate(name: str) -> None:
    """Generate data from the entered parameters, or store their problems."""
    session_keys = {field.name: _key(name, field) for field in FIELDS[name]}
    if any(key not in st.session_state for key in session_keys.values()):
        return  # A late press: the page shows another generator by now.
    values = {field_name: st.session_state[key] for field_name, key in session_keys.items()}
    labels = {field.name: f"“{field.label}”" for field in FIELDS[name]}
    generator, problems = fields.build_parameters(generators.GENERATORS[name], values, labels)
    if generator is not None:
        try:
            session.use_generator(generator)
        except InvalidInput as refused:
            problems += refused.problems
    st.session_state[QUESTION.key("generator_problems")] = tuple(problems)
