"""The tab *Why not the paper's algorithm?* of Data owners: what its audit shows, and no more."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.data_owners.answer import audited
from dpcore.data_owners.audit import accounted_noise
from pages.data_owners.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots

WORDS = """
**What a step of algorithm 1 gives away.** It moves the personal part of an owner by the record that it draws, without
noise, and takes later shared gradients of the owner's other records there. These are released. Joint privacy hides the
personal part from the others, not what the shared part learned through it; the noise of line 2 is that of a record that
enters only the step that draws it.

With the noise of algorithm 1, line 2 (accounted at one record in mn), joint privacy as claimed in theorem 3.1 fails in
the worst case: on a constructed convex, Lipschitz example (n = 2, m = 50, D_X = 5,000 D_U) an audit of the shared
output alone, with 20,000 runs of each of two neighbours, finds **ε ≥ 5.3** (95 % confidence, δ = 0.00001) **where 1 is
claimed**. At D_X = 100 D_U it finds nothing above the claim: this is a worst case, not a typical one. Lemma 3.2's
printed noise is m times larger and was not tested. This says nothing about the paper's experiments.

Nor does drawing one owner per step amplify privacy against the other owners: they see when they were not drawn.

**What is trained here instead:** *share, then personalise* (the shared part at a public personal part; then every
owner fits its own, and nothing comes back), the same with every owner in each step and the owner's whole gradient
clipped, and full privacy. Their noise is that of one Gaussian mechanism; audits of them stay below ε.
"""


def show() -> None:
    """The tab."""
    st.markdown(WORDS)
    key = QUESTION.key("audit_job")
    if st.button(
        "Run the audit", type=fields.main_button(), icon=":material/troubleshoot:", key="owners_audit_run"
    ):
        jobs.start(key, audited.INSTANCE, audited.run, heavy=True)
    if jobs.watch(key, "Running algorithm 1"):
        return
    done = jobs.result_of(key)
    if done is None or done[1] is None:
        st.caption(
            f"Here it runs with {audited.RUNS:,} of each, in a few seconds, and so shows less; `python -m "
            "benchmarks.data_owners` has the whole."
        )
        return
    found: audited.Audit = done[1]
    st.markdown(f"**Here:** {audited.sentence(found)}")
    plots.draw(audited.plot(found))
    st.caption(
        "The threshold, dashed, is chosen on the first half of the runs and judged on the other; probabilities are "
        f"bounded after Clopper and Pearson. The noise is the least that RDP accounting accepts: "
        f"{wording.number(accounted_noise(audited.INSTANCE), 4)} L."
    )
    cards.label(Disclosure.PUBLIC)
