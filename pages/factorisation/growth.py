"""How many users would be needed, on the page Factorisation: the simulation, its figure, its sentence."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.factorisation.growth import Growth, GrowthResult, run
from dpcore.factorisation.parameters import GROWTH_USERS, FactorisationParameters
from dpcore.report import charts
from pages.factorisation.question import QUESTION
from pages.shared.base import demo
from pages.shared.card import cards
from pages.shared.fields import jobs
from pages.shared.figures import figures
from pages.shared.figures.figures import Picture

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
        f"**How many users would you need** until a factorisation with adaptive weights beats DP item means at "
        f"ε = {wording.entered(parameters.epsilon)}? More and more users are drawn, with "
        f"{wording.number(of.num_items)} items and {wording.number(of.ratings_per_user)} ratings per user. These "
        "ratings are generated, whatever data are in use."
    )
    if jobs.watch(JOB, "Simulating growth"):
        held = jobs.so_far_of(JOB)
    else:
        seeds = wording.counted(growth.study.repeats, "seed")
        st.button(
            f"Simulate up to {wording.number(growth.users[-1])} users, {seeds}",
            icon=":material/play_arrow:",
            key="factorisation_grow",
            on_click=_start,
            args=(growth,),
            help="About 5 seconds of processor time for each seed.",
        )
        held = jobs.result_of(JOB)
    if held is None:
        return
    question, result = held
    if question != growth:
        st.caption(":material/history: This is for earlier settings; simulate again for the new ones.")
    if not np.isfinite(result.advantage).any():
        st.info("Stopped before the first number of users was done.", icon=":material/stop_circle:")
        return
    st.markdown(sentence(result))
    figures.show_picture(picture(result))
    cards.label(Disclosure.PUBLIC)


def _start(growth: Growth) -> None:
    jobs.start(JOB, growth, lambda tell, stop: run(growth, tell, stop), heavy=True)


def sentence(result: GrowthResult) -> str:
    """From how many users the factorisation is better."""
    epsilon = wording.entered(result.growth.study.epsilons[0])
    crossings = result.crossings()
    most = wording.number(result.growth.users[-1])
    if not crossings.size:
        return "No seed is complete, so nothing can be said of the number of users."
    reached = crossings[np.isfinite(crossings)]
    seeds = wording.counted(crossings.size, "seed")
    if not reached.size:
        return (
            f"At ε = {epsilon} a factorisation does not beat DP item means with up to {most} users ({seeds})."
        )
    typical = float(np.median(crossings))
    if not np.isfinite(typical):
        return (
            f"At ε = {epsilon} a factorisation beats DP item means in {wording.number(reached.size)} of {seeds} with "
            f"up to {most} users."
        )
    low, high = float(crossings.min()), float(crossings.max())
    upper = wording.number(round(high, -2)) if np.isfinite(high) else f"more than {most}"
    below = "or fewer" if typical <= result.growth.users[0] else ""
    spread = (
        f", from {wording.number(round(low, -2))} to {upper} over {seeds}"
        if crossings.size > 1
        else ", one seed"
    )
    about = f"{wording.number(round(typical, -2))} users {below}".strip()
    return f"At ε = {epsilon} a factorisation beats DP item means from **about {about}**{spread}."


def picture(result: GrowthResult) -> Picture:
    """By how much the factorisation's error is below that of item means, over the number of users."""
    gain = result.advantage
    there = np.isfinite(gain).any(axis=1)
    with np.errstate(all="ignore"):
        mean = np.where(there, np.nansum(gain, axis=1) / np.maximum(np.isfinite(gain).sum(axis=1), 1), np.nan)
    low = np.where(there, np.where(np.isfinite(gain), gain, np.inf).min(axis=1), np.nan)
    high = np.where(there, np.where(np.isfinite(gain), gain, -np.inf).max(axis=1), np.nan)
    users = np.array(result.growth.users)
    return Picture(
        "factorisation-growth",
        "What a factorisation gains over item means, by users",
        lambda: _figure(users[there], mean[there], low[there], high[there]),
        f"{sentence(result).replace('**', '')}",
        {"users": users, "gain": mean, "least_over_seeds": low, "most_over_seeds": high},
        Disclosure.PUBLIC,
    )


def _figure(users: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> go.Figure:
    least, most = min(float(low.min()), 0.0), max(float(high.max()), 0.0)
    room = max(0.08 * (most - least), 1e-4)
    across = charts.log_axis("Users", (GROWTH_USERS[0] / 1.2, GROWTH_USERS[-1] * 1.2))
    upwards = charts.linear_axis("RMSE below that of DP item means", (least - room, most + room))
    fig = charts.figure(across, upwards, 340)
    fig.update_xaxes(
        tickmode="array",
        tickvals=list(GROWTH_USERS),
        ticktext=[wording.number(one) for one in GROWTH_USERS],
        minor={"ticks": ""},
    )
    charts.add_area(fig, users, low, high, charts.BAND, name="Range over seeds", mode="lines")
    charts.add_curve(
        fig,
        "DP adaptive weights, mean over seeds",
        users.tolist(),
        mean.tolist(),
        charts.CAP,
        "%{x:,} users: %{y:+.4f}",
        mode="lines+markers",
        marker={"size": 8},
    )
    charts.line_across(fig, 0, "As good as item means")
    return fig
