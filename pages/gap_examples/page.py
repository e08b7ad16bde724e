"""How much can weights gain? The paper's example and bound, the sharp bound beyond it, and ways to check both."""

import streamlit as st

from dpcore import gap_examples
from pages.gap_examples import checks, inputs, proof
from pages.gap_examples.formula import FORMULA
from pages.shared import keys, lazy_tabs, session

data = session.dataset()
st.title("How much can weights gain?")
st.markdown(
    "A cap throws rows of heavy users away; smooth weights keep all rows and let those count less. **How much "
    "smaller does that make the variance of a mean?** The paper shows a ratio of 3/2 and proves at most 4; this page "
    f"closes the gap at {gap_examples.supremum().ratio:.5f}."
)
problems = st.container()
inputs.defaults()
with problems:
    parameters = inputs.parameters()
st.session_state[keys.PAGE_PARAMETERS] = parameters
steps = {
    "Your data": lambda: proof.own_data(data, parameters),
    "Paper's example": lambda: proof.theorem_2(parameters),
    "Two groups": lambda: proof.two_groups(parameters),
    "Any noise": lambda: proof.any_noise(parameters),
    "Try to break it": lambda: checks.try_to_break(parameters),
    "Search": lambda: checks.search(parameters),
    "Regression": lambda: checks.regression(parameters),
    "Simulation": lambda: checks.simulation(parameters, data),
    "How computed": lambda: st.markdown(FORMULA),
}
lazy_tabs.draw(steps, keys.GAP_TABS)
if parameters is not None:
    st.session_state[keys.PAGE_PARAMETERS] = inputs.with_table(parameters)
