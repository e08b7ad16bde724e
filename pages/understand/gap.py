"""How much can weights gain? The paper's example and bound, the sharp bound beyond it, and ways to check both."""

import streamlit as st

from dpcore import gap
from pages.parts import gap_checks, gap_inputs, gap_steps, keys, lazy_tabs, session
from pages.parts.gap_formula import FORMULA

data = session.dataset()
st.title("How much can weights gain?")
st.markdown(
    "A cap throws rows of heavy users away; smooth weights keep all rows and let those count less. **How much "
    "smaller does that make the variance of a mean?** The paper shows a ratio of 3/2 and proves at most 4; this page "
    f"closes the gap at {gap.supremum().ratio:.5f}."
)
problems = st.container()
gap_inputs.defaults()
with problems:
    parameters = gap_inputs.parameters()
st.session_state[keys.PAGE_PARAMETERS] = parameters
steps = {
    "Your data": lambda: gap_steps.own_data(data, parameters),
    "Paper's example": lambda: gap_steps.theorem_2(parameters),
    "Two groups": lambda: gap_steps.two_groups(parameters),
    "Any noise": lambda: gap_steps.any_noise(parameters),
    "Try to break it": lambda: gap_checks.try_to_break(parameters),
    "Search": lambda: gap_checks.search(parameters),
    "Regression": lambda: gap_checks.regression(parameters),
    "Simulation": lambda: gap_checks.simulation(parameters, data),
    "How computed": lambda: st.markdown(FORMULA),
}
lazy_tabs.draw(steps, keys.GAP_TABS)
if parameters is not None:
    st.session_state[keys.PAGE_PARAMETERS] = gap_inputs.with_table(parameters)
