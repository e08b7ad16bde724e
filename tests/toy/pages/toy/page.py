"""Heavy users."""

import streamlit as st

from dpcore.toy.heavy import noisy_counts
from dpcore.toy.parameters import ToyParameters
from pages.shared import cards, fields, figures, jobs, keys, session, take_away
from pages.toy import cached
from pages.toy.card import card
from pages.toy.figures import pictures
from pages.toy.question import QUESTION
from pages.toy.report import report

data = session.dataset()
st.title(QUESTION.title)
fields.start(QUESTION)
for name in QUESTION.fields:
    fields.draw(QUESTION, name)
parameters: ToyParameters | None = fields.build(QUESTION)
if parameters is not None:
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    view = cached.toy_answer(data.digest, parameters, data)
    cards.show(card(view, data, parameters), key="toy_card", below=st.container())
    for one in pictures(view, data.provenance):
        figures.show(one.draw(), one.key, one.alt, one.columns, one.sensitivity)
    key, asked, heavy = QUESTION.key("job"), (data.digest, parameters), view.heavy
    if st.button("Simulate", key="toy_simulate"):
        epsilon = parameters.epsilon
        jobs.start(key, asked, lambda tell, stop: noisy_counts(heavy, epsilon, 50, tell, stop))
    if not jobs.watch(key, "Simulating") and (done := jobs.result_of(key)) is not None:
        st.markdown(f"{len(done[1])} runs.")
    source = take_away.source()
    take_away.draw("toy", data.provenance, data.digest, lambda: report(view, data, parameters, source))
