"""Private selections and DP histograms: their buttons, what each spends, and what was released."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import ReleaseFacts
from dpcore.common.wording import capitalise, escape_text
from dpcore.data.tables import FileLayout, TableLayout
from dpcore.data.totals_per_user import get_user_amounts
from dpcore.dataset import Dataset
from dpcore.private_choice import private_histogram
from dpcore.private_choice.answer import selection as selections
from dpcore.private_choice.answer.words import Selection, format_cost, format_selection
from dpcore.private_choice.choice import DrawnNumber
from dpcore.private_choice.parameters import NAME_BY_NUMBER, BoundPurpose, NumberKind, PrivateParameters
from dpcore.private_choice.private_histogram import HistogramNoise, HistogramParameters
from dpcore.private_choice.private_range import DrawnRange
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.report import content as report_content
from pages.private_choice.question import QUESTION
from pages.shared.base.cache import cache_for_session
from pages.shared.card import cards
from pages.shared.fields import field_values, fields, setting
from pages.shared.session import session

Selections = tuple[tuple[NumberKind, Selection], ...]


def list_selections() -> Selections:
    """Return what was selected privately from the original data in this session, oldest first.

    Each entry is which number was selected (`NumberKind`), and the selection. Nothing selected: an empty tuple.
    """
    selections_by_digest: dict[str, Selections] = st.session_state.get(QUESTION.get_key("choices"), {})
    return selections_by_digest.get(session.get_original().dataset.histogram.digest, ())


def list_number_selections() -> tuple[tuple[BoundPurpose, DrawnNumber], ...]:
    """Return (purpose, selection) of each number drawn for a `BoundPurpose`, oldest first: no pairs, no ranges."""
    selections = list_selections()
    return tuple((n, s) for n, s in selections if isinstance(n, BoundPurpose) and isinstance(s, DrawnNumber))


def select_privately(request: SelectionRequest) -> None:
    """Select from the original data, note the cost, keep the selection or refusal; pages clamp to a selected range."""
    st.session_state[QUESTION.get_key("drew")] = True
    original = session.get_original().dataset
    try:
        selection = selections.select(request, original, charge=session.record_release)
    except InvalidInput as refusal:
        st.session_state[QUESTION.get_key("refused")] = refusal
        return
    st.session_state[QUESTION.get_key("choices")] = {
        **st.session_state.get(QUESTION.get_key("choices"), {}),
        original.histogram.digest: (*list_selections(), (request.number, selection)),
    }
    if isinstance(selection, DrawnRange):
        setting.enter_values({"lower": selection.lower, "upper": selection.upper})


@cache_for_session(max_entries=16)
def _count_dropped(digest: str, _dataset: Dataset) -> dict[str, int]:
    """Count by name: rows without a user, cells without a number, negative totals and amounts, groups; cached."""
    return get_user_amounts(_dataset).dropped_counts_by_name


def describe_dropped(request: SelectionRequest) -> str:
    """Describe, for the owner alone, cells that a selection drops or counts as 0, and the data's notes; or empty."""
    original = session.get_original().dataset
    if not original.is_private:
        return ""
    counts_by_name = selections.count_dropped(request, _count_dropped(original.digest, original))
    counts_text = "; ".join(
        f"{counted_name}: {num_dropped:,}"
        for counted_name, num_dropped in counts_by_name.items()
        if num_dropped
    )
    notes_text = " ".join(escape_text(note_text, 200) for note_text in original.notes)
    if not counts_text and not notes_text:
        return ""
    dropped_text = f"a draw leaves out, or counts as 0, these: {counts_text}. " if counts_text else ""
    return f":small[:orange[:material/lock: **Private, do not publish:**] {dropped_text}{notes_text}]"


def rerun_after_draw() -> None:
    """Run the whole app again if a draw or a change of data was made: the sidebar has the account."""
    if st.session_state.pop(QUESTION.get_key("drew"), False):
        st.rerun()


def release_dp_histogram(parameters: HistogramParameters) -> None:
    """Draw a DP histogram of the original data, note what it costs, and make it the session's data.

    A copy in which no user is left costs as much, since it was drawn, but the data in use stay. A refusal is kept for
    `show_refusal_once`.
    """
    st.session_state[QUESTION.get_key("drew")] = True
    original = session.get_original().dataset
    try:
        release = private_histogram.release_histogram(
            original.histogram, parameters, charge=session.record_release
        )
    except InvalidInput as refusal:
        st.session_state[QUESTION.get_key("refused")] = refusal
        return
    is_empty = release.histogram is None
    st.session_state[QUESTION.get_key("empty_copy")] = original.histogram.digest if is_empty else None
    if not is_empty:
        released_dataset = release.to_dataset(original.name, original.contribution)
        if (histogram_layout := original.layout) is not None and (
            histogram_layout.periods or histogram_layout.filters
        ):
            # Both are public, and rules of every release under a bound that is read off this histogram.
            rule_fields: dict[str, Any] = {
                "periods": histogram_layout.periods,
                "filters": histogram_layout.filters,
            }
            histogram_layout = TableLayout((FileLayout.by_name("events.csv"),), **rule_fields)
            released_dataset = replace(
                released_dataset, privacy_unit=original.privacy_unit, layout=histogram_layout
            )
        session.use_release(released_dataset)


def use_original() -> None:
    """Go back from a copy to the data that it was drawn from."""
    st.session_state[QUESTION.get_key("drew")] = True
    session.use_original()


def is_choice_open(button_key: str) -> bool:
    """Return True if the private choice that the button with this key opens is open on the original data."""
    key_and_digest = button_key, session.get_original().dataset.histogram.digest
    return bool(st.session_state.get(QUESTION.get_key("pending")) == key_and_digest)


def draw_opening_button(button_label: str, button_key: str, **button_options: Any) -> bool:
    """Draw the button that opens a private choice on these data; return True while the choice is open."""
    pending_entries = {
        QUESTION.get_key("pending"): (button_key, session.get_original().dataset.histogram.digest)
    }
    fields.draw_button(
        button_label, button_key, "casino", st.session_state.update, pending_entries, **button_options
    )
    return is_choice_open(button_key)


def draw_confirmation(
    button_key: str,
    callback: Callable[[Any], object],
    callback_argument: Any,
    request: SelectionRequest | None,
    facts: ReleaseFacts,
) -> bool:
    """Say what the open choice spends, and draw its buttons; return True if *Spend* was just pressed.

    The press calls ``callback`` if the choice is still open, which may also refuse to draw.

    Args:
        button_key: Of the button that opened it.
        callback: Draws; called with ``callback_argument`` once a person has confirmed.
        callback_argument: What is drawn, public. The button that confirms names its cost, and draws this alone.
        request: Tells what is left for the release; None where no release is named.
        facts: What the draw costs.
    """
    session_state, pending_key = st.session_state, QUESTION.get_key("pending")

    def draw_confirmed() -> None:
        """Call the callback if the choice is still open."""
        # Two presses in one browser's turn: the first has drawn what was confirmed, the second confirms nothing.
        if session_state.pop(pending_key, None) is not None:
            callback(callback_argument)

    remainder_text = "" if request is None else f" {describe_remainder(facts, request)}"
    st.markdown(f":small[{describe_spending(facts)}{remainder_text} It cannot be undone.]")
    with st.container(horizontal=True):
        cost_text = format_cost(facts.epsilon, facts.delta)
        button_options: dict[str, Any] = {"is_main": True}
        is_confirmed = fields.draw_button(
            f"Spend {cost_text}", f"{button_key}_confirm", "check", draw_confirmed, **button_options
        )
        fields.draw_button("Cancel", f"{button_key}_cancel", "close", session_state.pop, pending_key, None)
    return is_confirmed


def show_refusal_once() -> None:
    """Show once why nothing was drawn."""
    refusal: InvalidInput | None = st.session_state.pop(QUESTION.get_key("refused"), None)
    if refusal is not None:
        fields.show_problems(refusal.problems)


def describe_remainder(draw_facts: ReleaseFacts, request: SelectionRequest) -> str:
    """Write what a draw leaves of the total for the release, or what draws and release add up to without a total."""
    if request.total_epsilon is not None:
        return f"{request.describe_budget()}."
    total_facts = session.get_ledger().add(draw_facts).add(request.release_facts).total
    assert total_facts is not None
    release_text = format_cost(request.release_epsilon, request.release_delta)
    return f"A release at {release_text} makes it **{format_cost(total_facts.epsilon, total_facts.delta)}** in all."


def describe_spending(draw_facts: ReleaseFacts) -> str:
    """Write what a release with this guarantee would spend, and the sum with everything before."""
    cost_text, ledger = format_cost(draw_facts.epsilon, draw_facts.delta), session.get_ledger()
    total_facts = ledger.add(draw_facts).total
    assert total_facts is not None
    if not ledger.releases:
        return (
            f"**Spends {cost_text}**, the first on these data in this window ({draw_facts.neighbours.short})."
        )
    return (
        f"**Spends {cost_text}.** With what was spent before in this window, "
        f"**{format_cost(total_facts.epsilon, total_facts.delta)}** in {len(ledger.releases) + 1} releases "
        f"({total_facts.neighbours.short})."
    )


def find_range_facts(lower: float | None, upper: float | None) -> ReleaseFacts | None:
    """Return the guarantee of the latest private selection that gave exactly this range; None if none did."""
    range_selections = [selection for _, selection in list_selections() if isinstance(selection, DrawnRange)]
    return next((r.facts for r in reversed(range_selections) if (r.lower, r.upper) == (lower, upper)), None)


HISTOGRAM_KEY = "private_release"
PUBLIC_DATA_TEXT = "These data are public: nothing needs protecting."
RELEASED_DATA_TEXT = "The data in use are a DP release. Choices on it cost no more ε and may be published."

HISTOGRAM_TEXT = (
    "Releases how many users have how many rows, with noise. It takes the place of the data on every page, at any ε, "
    "without values, totals and groups."
)


def draw_histogram_step(dataset: Dataset) -> None:
    """Show the step that releases a DP histogram, the one in use, and choices so far; of a released file a note."""
    rerun_after_draw()
    original = session.get_original().dataset
    if original.release is not None:
        st.info(RELEASED_DATA_TEXT, icon=":material/verified_user:")
        return
    is_empty = st.session_state.get(QUESTION.get_key("empty_copy")) == original.histogram.digest
    is_copy_in_use = dataset.release is not None
    is_expanded = is_copy_in_use or is_empty or is_choice_open(HISTOGRAM_KEY)
    with st.expander(
        "DP histogram of rows per user", is_expanded, icon=":material/shield_lock:", key="dp_histogram"
    ):
        st.markdown(f":small[{HISTOGRAM_TEXT if original.is_private else PUBLIC_DATA_TEXT}]")
        show_refusal_once()
        if is_empty:
            st.warning(
                f"{private_histogram.NOTHING_LEFT_MESSAGE}. The draw is spent.", icon=":material/warning:"
            )
        parameters = _read_parameters()
        button_label = f"Release {'another' if is_copy_in_use else 'it'}…"
        if parameters is not None and draw_opening_button(
            button_label, HISTOGRAM_KEY, is_main=not is_copy_in_use
        ):
            epsilon, delta = parameters.epsilon_choice, parameters.delta or 0.0
            facts = ReleaseFacts(epsilon, delta, parameters.neighbours, parameters.noise.value)
            draw_confirmation(HISTOGRAM_KEY, release_dp_histogram, parameters, None, facts)
        if is_copy_in_use:
            _show_histogram(dataset, original)
    if list_selections():
        _show_selections()


def _read_parameters() -> HistogramParameters | None:
    """Show the fields of the histogram and return its settings; None, with sentences, if a field is refused."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        epsilon = fields.draw_field(QUESTION, "histogram_epsilon")
        with st.popover("More", icon=":material/tune:"):
            largest_bound = fields.draw_field(QUESTION, "largest")
            relation, mechanism = (
                fields.draw_field(QUESTION, field_name) for field_name in ("relation", "mechanism")
            )
            delta = fields.draw_field(QUESTION, "delta") if mechanism is HistogramNoise.GAUSSIAN else None
    values_by_field = {"epsilon": 1.0, "selection_epsilon": epsilon, "largest": largest_bound}
    values_by_field |= {"relation": relation, "mechanism": mechanism, "delta": delta}
    labels_by_field = {
        "selection_epsilon": "ε of the histogram",
        "largest": QUESTION.subjects_by_field["largest"],
    }
    labels_by_field |= {"delta": "δ"} if mechanism is HistogramNoise.GAUSSIAN else {}
    parameters, problems = field_values.build_parameters(PrivateParameters, values_by_field, labels_by_field)
    if parameters is None:
        fields.show_problems(problems)
        return None
    return parameters.histogram_parameters


def _show_histogram(dataset: Dataset, original: Dataset) -> None:
    """Show the DP histogram in use, with its file and a way back."""
    st.markdown(f"{escape_text(dataset.source, 500)} You may publish all results from it under this label.")
    cards.draw_label(dataset.provenance)
    with st.container(horizontal=True, vertical_alignment="center"):
        csv_text = report_content.write_histogram(dataset)
        cards.draw_file_button("DP histogram (CSV)", "dp_histogram.csv", dataset.provenance, csv_text)
        data_adjective = "private" if original.is_private else "original"
        fields.draw_button(f"Back to the {data_adjective} data", "private_back", "undo", use_original)


def _show_selections() -> None:
    """Show what was chosen with DP so far, latest first, each with its label in full."""
    with st.expander("Chosen with DP", icon=":material/casino:", key="private_chosen"):
        for selection_index, (number_kind, selection) in reversed(list(enumerate(list_selections()))):
            st.markdown(f"{capitalise(NAME_BY_NUMBER[number_kind])}: **{format_selection(selection)}**")
            cards.draw_label(selection.facts)
            with st.container(horizontal=True):
                if isinstance(selection, DrawnRange):
                    ends_by_name = {"lower": selection.lower, "upper": selection.upper}
                    button_key = f"private_take_{selection_index}"
                    fields.draw_button(
                        "Clamp to it on all pages",
                        button_key,
                        "straighten",
                        setting.enter_values,
                        ends_by_name,
                    )
                json_text, button_key = (
                    selections.write_json(selection, number_kind),
                    f"private_choice_file_{selection_index}",
                )
                cards.draw_file_button(
                    "Choice (JSON)",
                    "private_choice.json",
                    selection.facts,
                    json_text,
                    button_key=button_key,
                    is_quiet=True,
                )
