"""How much can weights gain? The paper's example and bound, the sharp bound beyond it, and ways to check both."""

import streamlit as st

from dpcore import gap
from pages.parts import gap_checks, gap_inputs, gap_steps, keys, session
from pages.parts.gap_formula import FORMULA

data = session.dataset()
st.title("How much can weights gain?")
st.markdown(
    "A cap throws rows of heavy users away; smooth weights keep all rows and let those count less. **How much "
    "smaller does that make the variance of a mean?** The paper shows a ratio of 3/2 and proves at most 4; this page "
    f"closes the gap at {gap.supremum().ratio:.5f}."
)
problems = st.container()
steps = {
    "Your data": lambda chosen: gap_steps.own_data(data, chosen),
    "Paper's example": gap_steps.theorem_2,
    "Two groups": gap_steps.two_groups,
    "Any noise": gap_steps.any_noise,
    "Try to break it": gap_checks.try_to_break,
    "Search": gap_checks.search,
    "Regression": gap_checks.regression,
    "Simulation": lambda chosen: gap_checks.simulation(chosen, data),
    "How computed": lambda chosen: st.markdown(FORMULA),
}
gap_inputs.defaults()
with problems:
    parameters = gap_inputs.parameters()
st.session_state[keys.PAGE_PARAMETERS] = parameters
for draw, tab in zip(steps.values(), st.tabs(list(steps), key=keys.GAP_TABS, on_change="rerun"), strict=True):
    if tab.open:
        with tab:
            draw(parameters)
if parameters is not None:
    st.session_state[keys.PAGE_PARAMETERS] = gap_inputs.with_table(parameters)
