"""Start: what this is, in a picture that moves, and which page answers a person's question."""

import streamlit as st

from dpcore.common import wording
from dpcore.start.parameters import StartParameters
from pages.shared import axes, cards, fields, figures, keys, ranges, session
from pages.shared.text import plain
from pages.start import advice, cached
from pages.start import figures as start_chart
from pages.start.question import QUESTION

data = session.dataset()
epsilon = st.session_state[keys.EPSILON]
st.title("How much may one user contribute?")
st.markdown(
    "Every differentially private release needs an **upper bound on contributions per user**. Too low, and data "
    "are thrown away; too high, and the noise that hides the heaviest user drowns the answer. "
    "Move the bound and watch."
)
steps = axes.bound_steps(data.histogram)
if st.session_state.get(QUESTION.key("bound")) not in steps:
    st.session_state[QUESTION.key("bound")] = axes.first_bound(data.histogram)
bound = st.select_slider(
    QUESTION.field("bound").label,
    steps,
    key=QUESTION.key("bound"),
    persist_state="session",
    format_func=wording.number,
)
problems = fields.epsilon_problems(epsilon)
if problems:
    fields.say(problems)
else:
    # Where the slider stands at first, and where it ends, is read off the data: on private data no public input.
    shown = None if data.is_private else bound
    st.session_state[keys.PAGE_PARAMETERS] = StartParameters(epsilon, shown)
    view = cached.start_tradeoff(data.digest, epsilon, data)
    st.markdown(start_chart.sentence(view, epsilon, bound))
    chart = st.container()
    below = st.container(horizontal=True, vertical_alignment="center")
    with below.popover("Axis range", icon=":material/straighten:", key="start_range"):
        limits = ranges.range_control(
            "Upper bound, rows per user",
            f"start_x_{session.data_version()}",
            *start_chart.axis_limits(data.histogram),
        )
    figures.show(
        start_chart.figure(view, bound, limits),
        "start_tradeoff",
        "As the bound grows, fewer rows are thrown away and more noise is needed; the sum is smallest in between.",
        start_chart.columns(view),
        data.provenance,
        place=chart,
        below=below,
    )
    if missing := start_chart.outside(view, bound, limits):
        chart.caption(missing)
st.caption(
    f"Drawn on: {plain(data.name)}. A table of {start_chart.CELLS} counts, such as rows per month, released "
    "at once with Laplace noise of scale bound/ε in each; neighbours add or remove one user "
    "(Amin et al. 2019, section 3). ε is set in the sidebar."
)
cards.label(data.provenance)

st.subheader("Which page is mine?")
several = st.radio(
    "1. Can one person have several rows?",
    list(advice.SEVERAL),
    index=None,
    key=QUESTION.key("several"),
    persist_state="session",
    horizontal=True,
)
who = st.radio(
    "2. Which column says who a row belongs to?",
    list(advice.WHO),
    index=None,
    key=QUESTION.key("who"),
    persist_state="session",
    horizontal=True,
)
release = st.radio(
    "3. What do you release?",
    advice.releases(),
    index=None,
    key=QUESTION.key("release"),
    persist_state="session",
    horizontal=True,
)
for sentence in advice.sentences(several, who):
    st.markdown(sentence)
with st.container(horizontal=True):
    st.page_link(session.page_file("Your data"), label="Bring your data", icon=":material/upload:")
    target = advice.page_for(release)
    if target is not None:
        st.page_link(target.path, label=f"Go to {target.title}", icon=target.icon)
        st.caption(target.sentence)
