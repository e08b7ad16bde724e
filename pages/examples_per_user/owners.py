"""The tab for records with several owners: which to keep, with a proof, and what the noise then protects."""

from __future__ import annotations

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.examples_per_user import ExamplesParameters
from dpcore.examples_per_user.answer import owners as told
from dpcore.examples_per_user.owners import RecordSelection, generate_ownership, select_most
from pages.examples_per_user.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards, number_elements
from pages.shared.fields import fields, jobs
from pages.shared.fields.search import Search

KEY, BOUND = QUESTION.key("owners_job"), QUESTION.key("owners_bound")
SOON_SECONDS = 0.3
KEPT = Search[RecordSelection](KEY, 8)


def show(parameters: ExamplesParameters, data: Dataset) -> None:
    """Which records to keep, of the groups of the data or of invented ones."""
    st.markdown(
        "A message has a sender and receivers, a photograph several people: a record may have **several owners**, and "
        "counts for each of them. How many records can be kept with at most k of each user?"
    )
    if data.pairs is None:
        st.caption(
            "The data in use name no groups, so this is an invented table of 20,000 records. Load a table with a "
            "column that names the record (as group) and one that names its owners (as user) to see yours."
        )
    else:
        st.caption(
            f"Each {data.pairs.label} of the data in use is taken as a record, its users as the owners."
        )
    st.session_state.setdefault(BOUND, 5.0)
    with fields.row():
        bound = fields.number("Records per user k", BOUND, is_integer=True, width=150)
    try:
        kept = _kept(data, bound)
    except InvalidInput as refused:
        fields.say(refused.problems)
        return
    jobs.rerun_if_ended(KEY)
    if jobs.watch(KEY, "Choosing records", measured=False) or jobs.say_failure(KEY) or kept is None:
        return
    disclosure = Disclosure.PUBLIC if data.pairs is None else data.provenance
    noise = told.compute_noise(kept, parameters)
    with st.container(horizontal=True):
        for number in told.build_numbers(kept, noise):
            number_elements.single(number.label, number.text, number.note, number.help)
    if noise is None:
        st.caption(
            "B is more than the records kept: no step can draw so many, and there is no noise to compute."
        )
    st.markdown(told.PROTECTS)
    tables.show(
        told.tabulate_owners(kept),
        "Records and records kept, by number of owners",
        "examples_per_user_owners",
        {"Share kept": "percent"},
    )
    st.caption(f"{told.FAIRNESS} Found by {kept.order_name}.")
    cards.label(disclosure)
    st.caption(
        "The program keeps the records of a table of your own, with columns record and user, and proves it too."
    )
    st.download_button(
        "Program for your table",
        told.write_owners_program(kept.bound).text,
        file_name="keep_records.py",
        mime="text/plain",
        key="examples_per_user_owners_program",
        on_click="ignore",
        icon=":material/download:",
    )


def _kept(data: Dataset, bound: float | None) -> RecordSelection | None:
    """Return what is kept, once it is found.

    Raises:
        InvalidInput: No bound, or too many pairs.
    """
    found = told.read_ownership(data)
    k = told.require_bound(bound)
    digest = "" if found is None else data.digest
    KEPT.ask(
        (digest, k),
        lambda tell, stop: select_most(generate_ownership() if found is None else found, k),
        whole=lambda kept: True,
        seconds=SOON_SECONDS,
    )
    jobs.rerun_if_ended(KEY)
    return KEPT.found().value
