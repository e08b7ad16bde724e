"""How many users would be needed, on the page Factorisation: the simulation, and what it finds."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.factorisation.answer import plots as core_plots
from dpcore.factorisation.answer.growth import sentence
from dpcore.factorisation.growth import Growth, run
from dpcore.factorisation.parameters import GROWTH_USERS, FactorisationParameters
from pages.factorisation.question import QUESTION
from pages.shared.base import demo
from pages.shared.card import cards
from pages.shared.fields import jobs
from pages.shared.screen import plots

JOB = QUESTION.key("growth_job")
SERVED_USERS = 12_000
"""Most users that a public demo simulates."""


def asked(parameters: FactorisationParameters) -> Growth:
    """What is simulated; in a public demo no large numbers of users."""
    most = SERVED_USERS if demo.is_served() else max(GROWTH_USERS)
    return parameters.growth(tuple(users for users in GROWTH_USERS if users <= most))


def show(parameters: FactorisationParameters) -> None:
    """The tab: what it is, the button, the figure."""
    growth = asked(parameters)
    of = growth.population
    st.markdown(
        f"**How many users would you need** until a factorisation with adaptive weights beats DP item means with "
        f"users' own offsets at ε = {wording.entered(parameters.epsilon)}? More and more users are drawn, with "
        f"{wording.number(of.num_items)} items and {wording.number(of.ratings_per_user)} ratings per user. These "
        "ratings are generated, whatever data are in use. Fewer items bring the point nearer, as each then has more "
        "ratings, and so does a larger ε."
    )
    if not jobs.working(JOB):
        seeds = wording.counted(growth.study.repeats, "seed")
        st.button(
            f"Simulate up to {wording.number(growth.users[-1])} users, {seeds}",
            icon=":material/play_arrow:",
            key="factorisation_grow",
            on_click=_start,
            args=(growth,),
            help="About 5 seconds of processor time for each seed.",
        )
    held = jobs.outcome(JOB, "Simulating growth", growth, live=True)
    if held is None:
        return
    result = held[1]
    if not np.isfinite(result.advantage).any():
        st.info("Stopped before the first number of users was done.", icon=":material/stop_circle:")
        return
    st.markdown(sentence(result))
    plots.draw(core_plots.growth(result))
    cards.label(Disclosure.PUBLIC)


def _start(growth: Growth) -> None:
    jobs.start(JOB, growth, lambda tell, stop: run(growth, tell, stop), heavy=True)
