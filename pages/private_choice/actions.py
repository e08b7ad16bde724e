"""Private selections and private copies: their buttons, what each spends, and what was released."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.distribution import RANGE_SOURCE
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from dpcore.private_choice import private_histogram
from dpcore.private_choice.answer import selection as selections
from dpcore.private_choice.answer.selection import SelectionSettings
from dpcore.private_choice.answer.words import Selection, format_selection
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import (
    NUMBER_NAMES,
    OF_MEAN,
    NumberKind,
    PrivateParameters,
    Several,
    Wanted,
)
from dpcore.private_choice.private_histogram import PrivateCopy, PrivateCopyParameters
from dpcore.private_choice.private_range import PrivateRange
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.report import document
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import work
from pages.private_choice.question import QUESTION
from pages.shared.base import keys, page_run
from pages.shared.card import cards, code_panel
from pages.shared.fields import fields, setting
from pages.shared.session import session

DEMONSTRATION = "These data are public: nothing needs protecting."

FROM_FILE = (
    "The data in use are a DP release from a file, and the data behind it are not here: there is nothing to draw "
    "from. Whatever you choose on the release, here or on the other pages, spends nothing more and may be published "
    "under its label."
)

Choices = tuple[tuple[NumberKind, Selection], ...]


def choices() -> Choices:
    """Return the selections of this session from the original data, oldest first."""
    by_digest: dict[str, Choices] = st.session_state.get(QUESTION.key("choices"), {})
    return by_digest.get(session.get_original().dataset.histogram.digest, ())


def numbers() -> tuple[tuple[Wanted, PrivateChoice], ...]:
    """Return the `choices` that are one number for the question of this page."""
    return tuple(
        (number, selection)
        for number, selection in choices()
        if isinstance(number, Wanted) and isinstance(selection, PrivateChoice)
    )


def select(request: SelectionRequest) -> Selection | None:
    """Select from the original data, note what it costs, and keep the selection; None if it was refused."""
    _ask_for_the_app()
    data = session.get_original().dataset
    try:
        selection = selections.select(request, data, charge=session.record)
    except InvalidInput as refusal:
        st.session_state[QUESTION.key("refused")] = refusal
        return None
    st.session_state[QUESTION.key("choices")] = {
        **st.session_state.get(QUESTION.key("choices"), {}),
        data.histogram.digest: (*choices(), (request.number, selection)),
    }
    return selection


def choose(request: SelectionRequest) -> None:
    """Select; for callbacks."""
    select(request)


def describe_dropped(request: SelectionRequest) -> str:
    """Describe, for the owner of the data alone, the cells that a selection drops or counts as 0; empty for none."""
    data = session.get_original().dataset
    if not data.is_private:
        return ""
    counts = selections.dropped_cells(request, work.dropped_cells(data.digest, data))
    text = "; ".join(f"{name}: {count:,}" for name, count in counts.items() if count)
    notes = " ".join(wording.plain(note, 200) for note in data.notes)
    if not text and not notes:
        return ""
    zero = f"a draw leaves out, or counts as 0, these: {text}. " if text else ""
    return f":small[:orange[:material/lock: **Private, do not publish:**] {zero}{notes}]"


def selection_settings() -> SelectionSettings:
    """Return the settings of a selection beside those of the release, as on this page."""

    def read_field(name: str) -> float | None:
        value = st.session_state.get(QUESTION.key(name))
        return QUESTION.first(name) if value is None else float(value)

    epsilon, largest, margin = (
        read_field(name) or 0.0 for name in ("selection_epsilon", "largest", "margin")
    )
    return SelectionSettings(
        epsilon, int(largest), margin, read_field("pair_unit"), read_field("pair_largest")
    )


def with_selection(card: Answer, released_answer: Answer, subject: str = "bound") -> Answer:
    """Return the card of a page on private data with what was selected in place of its own number."""
    detail = f"{released_answer.detail} This {subject} may be published. The figure may not: it shows private data."
    names = "headline", "numbers", "disclosure", "code", "bound"
    changes: dict[str, Any] = {name: getattr(released_answer, name) for name in names}
    return replace(card, **changes, detail=detail, error_parts=(), near_optimal="")


def _ask_for_the_app() -> None:
    """Let the next run of the page start the whole app: the account stands in the sidebar, outside of the page."""
    st.session_state[QUESTION.key("drew")] = True


def show_account() -> None:
    """Run the whole app again if a button has changed the data in use or what was spent on them."""
    if st.session_state.pop(QUESTION.key("drew"), False):
        st.rerun()


def release(parameters: PrivateCopyParameters) -> PrivateCopy:
    """Draw a private copy of the original data, note what it costs, and make it the session's data.

    A copy in which no user is left is noted too, since it was drawn, but the data in use stay.

    Raises:
        InvalidInput: The data are beyond what a copy can hold; nothing was drawn or noted.
    """
    original = session.get_original().dataset
    copy = private_histogram.release_histogram(original.histogram, parameters, charge=session.record)
    if copy.histogram is not None:
        session.use_release(copy.dataset(original.name, original.contribution))
    return copy


def draw_copy(parameters: PrivateParameters) -> None:
    """Draw a private copy; remember it if it has no users."""
    _ask_for_the_app()
    try:
        copy = release(parameters.copy)
    except InvalidInput as refusal:
        st.session_state[QUESTION.key("refused")] = refusal
        return
    empty = session.get_original().dataset.histogram.digest if copy.histogram is None else None
    st.session_state[QUESTION.key("empty_copy")] = empty


def use_original() -> None:
    """Go back from a copy to the data that it was drawn from."""
    _ask_for_the_app()
    session.use_original()


def would_spend(facts: ReleaseFacts, is_sum_hidden: bool = False) -> str:
    """Return what a release with this guarantee would spend, and the sum with everything before.

    Args:
        facts: The guarantee.
        is_sum_hidden: True to leave the sum out, as beside a bound whose own sum with its release stands there.
    """
    delta = facts.delta
    cost = f"ε = {format_rounded_up(facts.epsilon)}" + (f", δ = {format_rounded_up(delta)}" if delta else "")
    ledger = session.get_ledger()
    sum_ledger = ledger.add(facts)
    if is_sum_hidden:
        return f"**Spends {cost}** more ({facts.neighbours.short}); the sidebar adds up what was spent."
    if not ledger.releases:
        return f"**Spends {cost}**, the first on these data in this window ({facts.neighbours.short})."
    assert sum_ledger.total is not None
    total = f"ε = {format_rounded_up(sum_ledger.total.epsilon)}"
    total += f", δ = {format_rounded_up(sum_ledger.total.delta)}" if sum_ledger.total.delta else ""
    return (
        f"**Spends {cost}.** With what was spent before in this window, **{total}** in {len(sum_ledger.releases)} "
        f"releases ({sum_ledger.total.neighbours.short})."
    )


COPY_IS = (
    "Release how many users have how many rows, once, with noise; then explore it for ever: every question, every ε, "
    "every setting, and all of it may be shown. It becomes the data in use. Values, totals and tasks are not in it."
)


def describe_choice(number: Wanted) -> str:
    """Describe the direct choice."""
    return (
        f"Draw one number, the {NUMBER_NAMES[number]} for this question and these settings. The data in use stay as "
        "they are."
    )


def show(parameters: PrivateParameters | None, data: Dataset) -> None:
    """Draw both buttons, what a press spends, and below them what was released.

    The parts above a button keep their height when it is pressed, so that it stays where it is.

    Args:
        parameters: The question; None if it was refused, and then only what was released before is shown.
        data: In use.
    """
    original = session.get_original().dataset
    if original.release is not None:
        st.info(FROM_FILE, icon=":material/verified_user:")
    elif parameters is not None:
        _buttons(parameters, data)
    refusal: InvalidInput | None = st.session_state.pop(QUESTION.key("refused"), None)
    if refusal is not None:
        fields.show_problems(refusal.problems)
    if choices():
        _show_choices()
    if st.session_state.get(QUESTION.key("empty_copy")) == original.histogram.digest:
        st.warning(f"{private_histogram.NOTHING_LEFT}. The draw is spent.", icon=":material/warning:")
    if data.release is not None:
        _copy_in_use(data)


def _buttons(parameters: PrivateParameters, data: Dataset) -> None:
    run, request = page_run.CURRENT_RUN.get(), SelectionRequest.from_parameters(parameters)
    is_sum_hidden = (
        run is not None
        and run.shown_card is not run.card
        and isinstance(run.shown_card.disclosure, ReleaseFacts)
    )
    if dropped := describe_dropped(request):
        st.markdown(dropped)
    copy_facts = replace(request.facts, delta=parameters.delta or 0.0)
    copy_text, choice_text = (would_spend(facts, is_sum_hidden) for facts in (copy_facts, request.facts))
    if not session.get_original().dataset.is_private:
        st.caption(DEMONSTRATION)
    elif data.release is not None:
        st.caption("Both draw on the private data behind the release in use, and both add to what was spent.")
    label = "Release another private copy" if data.release is not None else "Release a private copy"
    fields.button(label, "private_release", "content_copy", draw_copy, parameters, is_main=True, help=COPY_IS)
    if copy_text != choice_text:
        st.markdown(f":small[{copy_text}]")
    help_text = describe_choice(parameters.purpose)
    label = "Choose one number privately"
    fields.button(label, "private_choose", "casino", choose, request, is_main=True, help=help_text)
    text = choice_text.replace("Spends", "Either spends", 1) if copy_text == choice_text else choice_text
    st.markdown(f":small[{text}]")


def _show_choices() -> None:
    """Draw what was selected so far, latest first, each with its label in full."""
    with st.container(key="private_chosen"):
        st.markdown("**Chosen privately**")
        for index, (number, selection) in reversed(list(enumerate(choices()))):
            st.markdown(f"{wording.capital(NUMBER_NAMES[number])}: **{format_selection(selection)}**")
            cards.label(selection.facts)
            with st.container(horizontal=True):
                # The others bound no release by themselves, or their own page has the program.
                if number in (*OF_MEAN, Wanted.SUM, Several.PAIR):
                    shown_program = show_code, selection, number, index
                    fields.button(
                        "Code for your library", f"private_code_{index}", "code", page_run.ask, *shown_program
                    )
                if isinstance(selection, PrivateRange):
                    ends = {"lower": selection.lower, "upper": selection.upper}
                    key = f"private_take_{index}"
                    fields.button("Clamp to it on all pages", key, "straighten", setting.enter, ends)
                cards.file_button(
                    "Choice (JSON)",
                    "private_choice.json",
                    selection.facts,
                    selections.write_json(selection, number),
                    key=f"private_choice_file_{index}",
                    quiet=True,
                )


def find_range(lower: float | None, upper: float | None) -> PrivateRange | None:
    """Return the selection of the range in use, on the data behind what is in use; None if the range is entered."""
    ranges = [selection for _, selection in choices() if isinstance(selection, PrivateRange)]
    return next((r for r in reversed(ranges) if (r.lower, r.upper) == (lower, upper)), None)


def range_facts(lower: float | None, upper: float | None) -> ReleaseFacts | None:
    """Return the guarantee of the range in use; None if it is entered."""
    selection = find_range(lower, upper)
    return None if selection is None else selection.facts


@st.dialog("Code for your library", width="large", icon=":material/code:", on_dismiss=page_run.closed)
def show_code(selection: Selection, number: NumberKind, index: int) -> None:
    """Draw the program with what was selected, with the ε of the release; the range of a mean is that of *Mean*."""
    epsilon, data = st.session_state[keys.EPSILON], session.get_original().dataset
    ends = setting.read_value(MEAN, "lower"), setting.read_value(MEAN, "upper")
    st.markdown(f"**{wording.capital(NUMBER_NAMES[number])}: {format_selection(selection)}**")
    cards.label(selection.facts)
    if number in OF_MEAN and None in ends:
        # An invented one would clamp the values without a word.
        st.info(
            f"**What range can a value have?** Enter L and U on the page *Mean*, {RANGE_SOURCE} The program "
            "follows here.",
            icon=":material/straighten:",
        )
        st.page_link(session.page_file("Mean"), label="Mean", icon=":material/functions:")
        return
    delta = st.session_state.get(QUESTION.key("release_delta")) if number is Wanted.SUM else None
    program = selections.build_code(selection, number, data, epsilon, delta, ends, range_facts(*ends))
    if program is None:
        problems = fields.check_epsilon(epsilon)
        fields.show_problems(problems) if problems else st.info(
            "No program can be written: L must lie below U on the page *Mean*."
        )
        return
    if number is Several.PAIR:
        st.caption("ε of the release as at the top of the page.")
    elif None not in ends:
        lower, upper = (wording.entered(end or 0.0) for end in ends)
        st.caption(
            f"Value bounds [{lower}, {upper}] as on the page *Mean*; ε of the release as at the top of the page."
        )
    code_panel.show(program, f"private_chosen_{index}")


def _copy_in_use(data: Dataset) -> None:
    """Draw what was released and is in use now, with its file and a way back."""
    assert data.release is not None
    original = session.get_original().dataset
    with st.container(key="private_released"):
        st.markdown(f"**In use: {wording.plain(data.name)}**")
        st.markdown(
            f"{wording.plain(data.source, 500)} What is drawn on this page now is computed from the release, and so is "
            "every other page: it may be shown under this label."
        )
        cards.label(data.release)
        with st.container(horizontal=True, vertical_alignment="center"):
            # Not on request: the page reruns when simulated copies are done, and a file that is being made
            # at that moment is lost. A release has one line per bin at most.
            content = document.write_histogram(data)
            cards.file_button("Released histogram (CSV)", "private_copy.csv", data.provenance, content)
            st.page_link(session.page_file("Mean"), label="Mean on the release", icon=":material/functions:")
            st.page_link(
                session.page_file("Sum and count"),
                label="Sum and count on the release",
                icon=":material/add_circle:",
            )
            if original.release is None:
                name = "private" if original.is_private else "original"
                fields.button(f"Back to the {name} data", "private_back", "undo", use_original)
