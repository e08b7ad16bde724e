"""The two buttons of Choose privately, what each spends, and what was released."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.value_range import RANGE_SOURCE
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from dpcore.per_group.answer import code as pair_code
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.private_choice import choice
from dpcore.private_choice.answer import code, drawing
from dpcore.private_choice.answer.drawing import Beside
from dpcore.private_choice.answer.words import NUMBER_NAMES, Drawn, Kind, shown
from dpcore.private_choice.choice import ChoiceProblem, PrivateChoice
from dpcore.private_choice.parameters import PrivateParameters, Several, Wanted
from dpcore.private_choice.private_histogram import (
    NOTHING_LEFT,
    PrivateCopy,
    PrivateCopyParameters,
    release_histogram,
)
from dpcore.private_choice.private_range import PrivateRange
from dpcore.private_choice.release_bounds import BoundDraw
from dpcore.report import csv_files
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import cached
from pages.private_choice.question import QUESTION
from pages.shared.base import dialogs, keys, page_run
from pages.shared.card import cards, code_panel
from pages.shared.fields import fields, setting
from pages.shared.session import session

DEMONSTRATION = "These data are public: nothing needs protecting."

FROM_FILE = (
    "The data in use are a DP release from a file, and the data behind it are not here: there is nothing to draw "
    "from. Whatever you choose on the release, here or on the other pages, spends nothing more and may be published "
    "under its label."
)

Choices = tuple[tuple[Kind, Drawn], ...]


def choices() -> Choices:
    """Return what was drawn in this session from the data behind what is in use, oldest first."""
    kept: dict[str, Choices] = st.session_state.get(QUESTION.key("choices"), {})
    return kept.get(session.original().dataset.histogram.digest, ())


def numbers() -> tuple[tuple[Wanted, PrivateChoice], ...]:
    """Those of `choices` that are one number."""
    return tuple(
        (kind, one) for kind, one in choices() if isinstance(kind, Wanted) and isinstance(one, PrivateChoice)
    )


def draw_choice(problem: ChoiceProblem, wanted: Wanted) -> None:
    """Draw a number from the original data, note what it costs, and keep it."""
    keep(wanted, lambda: choice.choose(problem, session.original().dataset.histogram, charge=session.record))


def draw_asked(asked: PrivateParameters | BoundDraw | PrivatePairProblem) -> None:
    """Draw the bound of another page's release, note what it costs, and keep it."""
    data = session.original().dataset
    kind = Several.PAIR if isinstance(asked, PrivatePairProblem) else asked.wanted
    keep(kind, lambda: drawing.draw(asked, data, charge=session.record))


def dropped(asked: drawing.Asked) -> str:
    """Return what a draw leaves out of the original data or counts as 0, for their owner alone; empty for nothing."""
    data = session.original().dataset
    if not data.is_private:
        return ""
    counts = drawing.dropped_cells(asked, cached.dropped_cells(data.digest, data))
    told = "; ".join(f"{name}: {count:,}" for name, count in counts.items() if count)
    notes = " ".join(wording.plain(note, 200) for note in data.notes)
    if not told and not notes:
        return ""
    zero = f"a draw leaves out, or counts as 0, these: {told}. " if told else ""
    return f":small[:orange[:material/lock: **Private, do not publish:**] {zero}{notes}]"


def beside() -> Beside:
    """Return what a draw takes besides the settings of the release: as on this page."""

    def held(name: str) -> float | None:
        value = st.session_state.get(QUESTION.key(name))
        return QUESTION.first(name) if value is None else float(value)

    epsilon, largest, margin = (held(name) or 0.0 for name in ("epsilon_choice", "largest", "margin"))
    return Beside(epsilon, int(largest), margin, held("pair_unit"), held("pair_largest"))


def with_drawn(card: Answer, drawn: Answer, what: str = "bound") -> Answer:
    """Return the card of a page on private data with what was drawn in place of its own number."""
    return replace(
        card,
        headline=drawn.headline,
        numbers=drawn.numbers,
        error_parts=(),
        near_optimal="",
        detail=f"{drawn.detail} This {what} may be published. The figure may not: it shows private data.",
        disclosure=drawn.disclosure,
        code=drawn.code,
        bound=drawn.bound,
    )


def keep(kind: Kind, draw: Callable[[], Drawn]) -> Drawn | None:
    """Draw from the original data and keep what was drawn; ``draw`` notes what it costs. None where it was refused."""
    _ask_for_the_app()
    try:
        drawn = draw()
    except InvalidInput as refused:
        st.session_state[QUESTION.key("refused")] = refused
        return None
    st.session_state[QUESTION.key("choices")] = {
        **st.session_state.get(QUESTION.key("choices"), {}),
        session.original().dataset.histogram.digest: (*choices(), (kind, drawn)),
    }
    return drawn


def _ask_for_the_app() -> None:
    """Let the next run of the page start the whole app: the account stands in the sidebar, outside of the page."""
    st.session_state[QUESTION.key("drew")] = True


def show_account() -> None:
    """Run the whole app again where a button has changed the data in use or what was spent on them."""
    if st.session_state.pop(QUESTION.key("drew"), False):
        st.rerun()


def release(parameters: PrivateCopyParameters) -> PrivateCopy:
    """Draw a private copy of the original data, note what it costs, and make it the session's data.

    A copy in which no user is left is noted too, since it was drawn, but the data in use stay.

    Raises:
        InvalidInput: The data are beyond what a copy can hold; nothing was drawn or noted.
    """
    behind = session.original().dataset
    copy = release_histogram(behind.histogram, parameters, charge=session.record)
    if copy.histogram is not None:
        session.use_release(copy.dataset(behind.name, behind.contribution))
    return copy


def draw_copy(parameters: PrivateParameters) -> None:
    """Draw a private copy; one without users is said to be so."""
    _ask_for_the_app()
    try:
        copy = release(parameters.copy)
    except InvalidInput as refused:
        st.session_state[QUESTION.key("refused")] = refused
        return
    empty = session.original().dataset.histogram.digest if copy.histogram is None else None
    st.session_state[QUESTION.key("empty_copy")] = empty


def back() -> None:
    """From a copy to the data that it was drawn from."""
    _ask_for_the_app()
    session.use_original()


def spending(parameters: PrivateParameters | BoundDraw, copy: bool, alone: bool = False) -> str:
    """Return what a draw now would spend, and what it would come to with everything before unless it is said
    ``alone``.
    """
    delta = parameters.delta if copy and parameters.delta is not None else 0.0
    return would_spend(
        ReleaseFacts(parameters.epsilon_choice, delta, parameters.relation.neighbours, "not yet drawn"),
        alone,
    )


def would_spend(facts: ReleaseFacts, alone: bool = False) -> str:
    """Return what a draw with this guarantee would spend, and what it would come to with everything before.

    Args:
        facts: Of the draw.
        alone: Whether the sum is left out, as beside a bound whose own sum with its release stands there.
    """
    delta = facts.delta
    cost = f"ε = {format_rounded_up(facts.epsilon)}" + (f", δ = {format_rounded_up(delta)}" if delta else "")
    before, after = session.ledger(), session.ledger().add(facts)
    if alone:
        return f"**Spends {cost}** more ({facts.neighbours.short}); the sidebar adds up what was spent."
    if not before.releases:
        return f"**Spends {cost}**, the first on these data in this window ({facts.neighbours.short})."
    assert after.total is not None
    total = f"ε = {format_rounded_up(after.total.epsilon)}"
    total += f", δ = {format_rounded_up(after.total.delta)}" if after.total.delta else ""
    made = f"{len(after.releases)} releases"
    return (
        f"**Spends {cost}.** With what was spent before in this window, **{total}** in {made} "
        f"({after.total.neighbours.short})."
    )


COPY_IS = (
    "Release how many users have how many rows, once, with noise; then explore it for ever: every question, every ε, "
    "every setting, and all of it may be shown. It becomes the data in use. Values, totals and tasks are not in it."
)


def choice_is(wanted: Wanted) -> str:
    """Return what the direct choice does."""
    return (
        f"Draw one number, the {NUMBER_NAMES[wanted]} for this question and these settings. The data in use stay as "
        "they are."
    )


def show(parameters: PrivateParameters | None, data: Dataset) -> None:
    """Both buttons, what a press spends, and below them what was drawn.

    Nothing above a button changes its height when it is pressed, so that it stays where it is.

    Args:
        parameters: The question; None where there is none, and then only what was drawn before is shown.
        data: In use.
    """
    if session.original().dataset.release is not None:
        st.info(FROM_FILE, icon=":material/verified_user:")
    elif parameters is not None:
        _buttons(parameters, data)
    refused: InvalidInput | None = st.session_state.pop(QUESTION.key("refused"), None)
    if refused is not None:
        fields.say(refused.problems)
    if choices():
        _chosen()
    if _copy_was_empty():
        st.warning(f"{NOTHING_LEFT}. The draw is spent.", icon=":material/warning:")
    if data.release is not None:
        _copy_in_use(data)


def _buttons(parameters: PrivateParameters, data: Dataset) -> None:
    run = page_run.now()
    drawn = run is not None and run.shown is not run.card and isinstance(run.shown.disclosure, ReleaseFacts)
    if told := dropped(parameters):
        st.markdown(told)
    copied, chosen = (spending(parameters, copy=copy, alone=drawn) for copy in (True, False))
    if not session.original().dataset.is_private:
        st.caption(DEMONSTRATION)
    elif data.release is not None:
        st.caption("Both draw on the private data behind the release in use, and both add to what was spent.")
    st.button(
        "Release another private copy" if data.release is not None else "Release a private copy",
        key="private_release",
        on_click=draw_copy,
        args=(parameters,),
        type=fields.main_button(),
        icon=":material/content_copy:",
        help=COPY_IS,
    )
    if copied != chosen:
        st.markdown(f":small[{copied}]")
    st.button(
        "Choose one number privately",
        key="private_choose",
        on_click=draw_choice,
        args=(parameters.choice, parameters.wanted),
        type=fields.main_button(),
        icon=":material/casino:",
        help=choice_is(parameters.wanted),
    )
    either = chosen.replace("Spends", "Either spends", 1) if copied == chosen else chosen
    st.markdown(f":small[{either}]")


def _copy_was_empty() -> bool:
    """Return whether no user was left in the last copy of these data."""
    empty: str | None = st.session_state.get(QUESTION.key("empty_copy"))
    return empty == session.original().dataset.histogram.digest


def _latest_first() -> list[tuple[int, tuple[Kind, Drawn]]]:
    """Return what was drawn, each with its place in the order of draws."""
    return list(reversed(list(enumerate(choices()))))


def _chosen() -> None:
    """What was drawn so far, each with its label in full."""
    with st.container(key="private_chosen"):
        st.markdown("**Chosen privately**")
        for at, (kind, drawn) in _latest_first():
            st.markdown(f"{wording.capital(NUMBER_NAMES[kind])}: **{shown(drawn)}**")
            cards.label(drawn.facts)
            with st.container(horizontal=True):
                # The others bound no release by themselves, or their own page has the program.
                if kind in (Wanted.SMOOTH, Wanted.CAP, Wanted.SUM, Several.PAIR):
                    st.button(
                        "Code for your library",
                        key=f"private_code_{at}",
                        icon=":material/code:",
                        on_click=dialogs.ask,
                        args=(show_code, drawn, kind, at),
                    )
                if isinstance(drawn, PrivateRange):
                    st.button(
                        "Clamp to it on all pages",
                        key=f"private_take_{at}",
                        icon=":material/straighten:",
                        on_click=setting.enter,
                        args=({"lower": drawn.lower, "upper": drawn.upper},),
                    )
                key = f"private_choice_file_{at}"
                cards.file_button(
                    "Choice (JSON)",
                    "private_choice.json",
                    drawn.facts,
                    _as_file(kind, drawn),
                    key=key,
                    quiet=True,
                )


def _as_file(kind: Kind, drawn: Drawn) -> str:
    if isinstance(drawn, PrivateChoice) and not isinstance(kind, Several):
        return code.choice_json(drawn, kind)
    assert not isinstance(drawn, PrivateChoice)
    return code.several_json(drawn)


def range_in_use(lower: float | None, upper: float | None) -> PrivateRange | None:
    """Return the draw that a range in use is, on the data behind what is in use; None where it is entered."""
    found = [one for _, one in choices() if isinstance(one, PrivateRange)]
    return next((one for one in reversed(found) if (one.lower, one.upper) == (lower, upper)), None)


def range_drawn(lower: float | None, upper: float | None) -> ReleaseFacts | None:
    """Return what that draw guarantees."""
    drawn = range_in_use(lower, upper)
    return None if drawn is None else drawn.facts


@st.dialog("Code for your library", width="large", icon=":material/code:", on_dismiss=dialogs.closed)
def show_code(drawn: PrivateChoice | PrivatePair, wanted: Kind, at: int) -> None:
    """What was chosen as a program, with the ε of the release; of a mean with value bounds from the page Mean."""
    epsilon, data = st.session_state[keys.EPSILON], session.original().dataset
    if isinstance(drawn, PrivatePair):
        st.markdown(f"**{wording.capital(NUMBER_NAMES[wanted])}: {shown(drawn)}**")
        cards.label(drawn.facts)
        if problems := fields.epsilon_problems(epsilon):
            fields.say(problems)
        elif (of_pair := pair_code.write_private_forms(drawn, data, epsilon)) is not None:
            st.caption("ε of the release as at the top of the page.")
            code_panel.show(of_pair, f"private_chosen_{at}")
        return
    assert isinstance(wanted, Wanted)
    lower, upper = setting.held(MEAN, "lower"), setting.held(MEAN, "upper")
    st.markdown(f"**{wording.capital(NUMBER_NAMES[wanted])}: {choice.shown(drawn)}**")
    cards.label(drawn.facts)
    if wanted is not Wanted.SUM and (lower is None or upper is None):
        # An invented one would clamp the values without a word.
        st.info(
            f"**What range can a value have?** Enter L and U on the page *Mean*, {RANGE_SOURCE} The program "
            "follows here.",
            icon=":material/straighten:",
        )
        st.page_link(session.page_file("Mean"), label="Mean", icon=":material/functions:")
        return
    delta = st.session_state.get(QUESTION.key("release_delta")) if wanted is Wanted.SUM else None
    written = code.of_private(drawn, wanted, epsilon, data, lower, upper, range_drawn(lower, upper), delta)
    if written is None:
        problems = fields.epsilon_problems(epsilon)
        fields.say(problems) if problems else st.info(
            "No program can be written: L must lie below U on the page *Mean*."
        )
        return
    if lower is not None and upper is not None:
        st.caption(
            f"Value bounds [{wording.entered(lower)}, {wording.entered(upper)}] as on the page *Mean*; ε of the "
            "release as at the top of the page."
        )
    code_panel.show(written, f"private_chosen_{at}")


def _copy_in_use(data: Dataset) -> None:
    assert data.release is not None
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
            content = csv_files.write_histogram(data)
            cards.file_button("Released histogram (CSV)", "private_copy.csv", data.provenance, content)
            st.page_link(session.page_file("Mean"), label="Mean on the release", icon=":material/functions:")
            st.page_link(
                session.page_file("Sum and count"),
                label="Sum and count on the release",
                icon=":material/add_circle:",
            )
            if session.original().dataset.release is None:
                kind = "private" if session.original().dataset.is_private else "original"
                fields.button(f"Back to the {kind} data", "private_back", "undo", back)
