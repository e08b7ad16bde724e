"""Private selection on the pages of other questions: the bound of a card, and the range of a value.

The machinery finds this module by `Question.draws` of the question that it belongs to; no question knows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.code import Choice
from dpcore.code.forms import CodeChoice
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.parameters import TAB
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.private_choice.answer import selection as selections
from dpcore.private_choice.answer import words
from dpcore.private_choice.answer.selection import MissingInput
from dpcore.private_choice.parameters import OF_MEAN, Bounded, PrivateParameters, Relation, Several, Wanted
from dpcore.private_choice.private_range import PrivateRange, RangeProblem
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.private_choice.scores import checked_users
from dpcore.total.parameters import TotalParameters
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import actions, work
from pages.private_choice.question import QUESTION, KnownValue
from pages.shared.base import keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import fields, setting
from pages.shared.session import session

PUBLIC_NUMBERS: dict[type, str] = {LearningParameters: "public_rows", TotalParameters: "highest_total"}
"""The field of a public number that the selection of a page's bound needs, by the page's parameters."""
Fields = tuple[Question, tuple[str, ...]]
NO_FIELDS: Fields = (QUESTION, ())
find_range = actions.find_range


@dataclass(frozen=True)
class BoundSelection:
    """How the bound of a card, or its pair of bounds, is selected privately.

    Attributes:
        request: What is selected; None if something is missing.
        card: The card with what was selected for it last; None before.
        has_button: True if the card has the button; the page that compares ways has its own.
        lacking: What must be entered before, a sentence; empty if nothing is missing.
        aim: What the selection takes otherwise than the card, a sentence; empty for nothing.
        fields: The fields of public numbers that are drawn beside the button, and their question.
        waits_for: Label of the field that is to be filled before; empty for none.
    """

    request: SelectionRequest | None
    card: Answer | None = None
    has_button: bool = True
    lacking: str = ""
    aim: str = ""
    fields: Fields = NO_FIELDS
    waits_for: str = ""

    @property
    def name(self) -> str:
        """Return the label of the button."""
        assert self.request is not None
        verb = "Draw it privately" if self.card is None else "Draw another"
        return f"{verb} (ε = {format_rounded_up(self.request.problem.epsilon)})"

    @property
    def help(self) -> str:
        """Return what a press does and spends."""
        assert self.request is not None
        spending = actions.would_spend(self.request.facts)
        if self.request.number is Several.PAIR:
            return f"Draws both bounds for these settings, with one ε. {spending} {words.PAIR_AIM}"
        compared = " *Choose privately* compares it with other ways."
        return (
            f"Draws one bound for these settings, with an ε of its own. {spending}"
            f"{compared if isinstance(self.request.number, Wanted) else ''}"
        )

    @property
    def cost(self) -> str:
        """Return what it usually costs, from public figures: these data are not looked at before."""
        if self.request is None:
            return ""
        problem, rows = self.request.problem, self.request.rows
        if isinstance(problem, PrivatePairProblem):
            return words.usual_cost(problem)
        assert not isinstance(problem, RangeProblem)
        return f"{self.aim} {words.expected(work.forecasts(problem, rows), rows)}".strip()

    @property
    def dropped(self) -> str:
        """Return what a selection leaves out or counts as 0, for the owner of the data alone."""
        return "" if self.request is None else actions.describe_dropped(self.request)

    @property
    def value(self) -> tuple[float | dict[str, float], str]:
        """Return what was selected, a pair by the columns of its figure, and the name of its curve."""
        assert self.card is not None
        if isinstance(pair := self.card.bound, PrivatePair):
            return {"max_groups": float(pair.max_groups), "max_amount": float(pair.max_amount)}, ""
        smooth = self.request is not None and self.request.number is Bounded.QUANTILE_SMOOTH
        return float(self.card.numbers[0].value or 0.0), "Smooth weights" if smooth else "Bounded rows"

    def ask(self) -> None:
        """Draw the fields of the public numbers that the selection needs."""
        question, names = self.fields
        if names:
            with st.container(horizontal=True):
                fields.draw_all(question, *names)

    def draw(self) -> None:
        """Select it; for callbacks."""
        assert self.request is not None
        actions.choose(self.request)


def build_selection(card: Answer) -> BoundSelection | None:
    """Return how the bound of a card is selected on the data in use; None if it cannot be, or need not."""
    data, run = session.dataset(), page_run.CURRENT_RUN.get()
    if not data.is_private:
        return None
    public_fields: Fields = NO_FIELDS
    own_page = isinstance(card.parameters, PrivateParameters)
    if isinstance(card.parameters, PerGroupParameters):
        if data.pairs is None and data.pair_sizes is None:
            return None  # The card is of invented data.
        if card.parameters.statistic is Statistic.SUM:
            public_fields = QUESTION, ("pair_unit", "pair_largest")
    elif run is not None and (field := PUBLIC_NUMBERS.get(type(card.parameters))):
        public_fields = run.question, (field,)
    try:
        request = selections.build_request(card, data, actions.selection_settings())
        if request is None or isinstance(request, MissingInput):
            return None if request is None else _missing(card, request, public_fields)
        checked_users(data.histogram)
    except InvalidInput as refusal:
        # On the page that compares ways they have been said to be wrong.
        missing = MissingInput(" ".join(problem.sentence for problem in refusal.problems), public_fields[1])
        return None if own_page else _missing(card, missing, public_fields)
    actions.show_account()
    key = request.number, request.problem, selections.column_of(request, data)
    fitting = [
        selection
        for number, selection in actions.choices()
        if (number, selection.problem, selection.column) == key
    ]
    if own_page and not fitting:
        return None
    released_card = _build_card(card, fitting[-1], request, data) if fitting else None
    needs_no_number = isinstance(request.number, Wanted)
    public_fields = NO_FIELDS if needs_no_number else public_fields
    return BoundSelection(
        request, released_card, has_button=not own_page, aim=_aim(card, request), fields=public_fields
    )


def _missing(card: Answer, missing: MissingInput, public_fields: Fields) -> BoundSelection | None:
    run, is_pair = page_run.CURRENT_RUN.get(), isinstance(card.parameters, PerGroupParameters)
    if missing is selections.NO_PAIR or (card.setting is None and not is_pair):
        return None
    question, names = public_fields
    waits_for = ""
    if run is not None and "num_groups" in missing.settings:
        waits_for = run.question.field("num_groups").label
    elif names and (is_pair or set(names) & set(missing.settings)):
        waits_for = question.field(names[0]).label
    elif not is_pair:
        public_fields = NO_FIELDS
    return BoundSelection(None, lacking=missing.sentence, fields=public_fields, waits_for=waits_for)


def _aim(card: Answer, request: SelectionRequest) -> str:
    """Return what the selection takes otherwise than the card's own bound, on purpose."""
    number, release = request.number, request.setting
    if release is None or card.setting is None:
        return ""
    if number is Bounded.MODEL:
        return "For the bias the draw takes twice the share of rows cut."
    if number is Bounded.TOTAL:
        aim = "" if release.measure is Measure.BOUND else "The draw aims at the least bias plus mean noise. "
        return f"{aim}It counts a total below 0 as 0, and so does its program."
    if isinstance(number, Bounded):
        return "The draw aims at the bound that is best from counts." if release.uses_values else ""
    differing = card.setting.list_differences(release)
    if {"user_share", "is_table_mean"} & set(differing):
        return "The draw takes rows as independent."
    return "The draw aims at the least bias plus mean noise." if "measure" in differing else ""


def _build_card(card: Answer, selection: words.Selection, request: SelectionRequest, data: Dataset) -> Answer:
    """Return the card with what was selected in place of what was read off the data."""
    ends = selections.ends_of(card, request.number)
    if request.number in OF_MEAN and None in ends:  # On *Choose privately*.
        ends = setting.read_value(MEAN, "lower"), setting.read_value(MEAN, "upper")
    answer = selections.build_answer(card, selection, request, data, ends, actions.range_facts(*ends))
    return actions.with_selection(card, answer, "pair" if request.number is Several.PAIR else "bound")


def with_range(card: Answer) -> Answer:
    """Return the card with the cost of its range, if that was selected: in its programs, and in all in its detail."""
    release = card.setting
    facts = None if release is None else actions.range_facts(release.lower, release.upper)
    if facts is None or release is None or not session.dataset().is_private:
        return card
    code = card.code
    if code is not None:
        code = CodeChoice(
            tuple(
                (name, replace(program, range_drawn=facts) if isinstance(program, Choice) else program)
                for name, program in code.forms
            )
        )
    # If the bound was selected, too, the card has said what all of it is.
    if isinstance(card.disclosure, ReleaseFacts):
        return replace(card, code=code)
    total = format_rounded_up(facts.epsilon + release.epsilon)
    detail = f"{card.detail} With the draw of the range, ε = {total} in all.".strip()
    return replace(card, detail=detail, code=code)


def offer_range(data: Dataset) -> None:
    """Draw the button that leads to the form, on a page that asks for the range of private values."""
    if data.values is None or data.release is not None or not data.is_private:
        return
    help_text = (
        "Draws L and U from the data with an ε of its own. What you know of the quantity costs nothing."
    )
    fields.button(
        "Choose it privately",
        "private_range_ask",
        "casino",
        page_run.ask,
        _range_dialog,
        data,
        help=help_text,
    )


@st.dialog(
    "A value range, chosen privately", width="large", icon=":material/casino:", on_dismiss=page_run.closed
)
def _range_dialog(data: Dataset) -> None:
    if range_form(data):
        page_run.closed()
        st.rerun()


def range_form(data: Dataset) -> bool:
    """Draw what is known, what a selection costs, and its button; return True if it was pressed just now."""
    if data.values is None:
        st.info("A range is drawn from values, and the data in use have none.")
        return False
    st.markdown(
        "L and U from what you know of the quantity cost nothing, and are the first choice. Where you do not know "
        "them, they can be drawn, with an ε of their own."
    )
    problem = _read_range_problem()
    if isinstance(problem, InvalidInput):
        fields.show_problems(problem.problems)
        return False
    if problem is None:
        st.caption("Fill in the fields to see what a draw spends and what it is good for.")
        return False
    request = SelectionRequest(Several.RANGE, problem, problem.epsilon_release)
    st.markdown(f"{words.range_costs(problem)} {actions.would_spend(request.facts)}")
    if problem.users is not None:
        st.markdown(words.tabulate_ways(work.range_costs(problem, min(max(problem.users, 10.0), 1e6))))
    ends = "L and U" if problem.lower is None else "U"
    label = f"Draw {ends} (ε = {format_rounded_up(problem.epsilon)})"
    return fields.button(label, "private_range_draw", "casino", select_range, request, is_main=True)


def select_range(request: SelectionRequest) -> None:
    """Select the range and let all pages clamp to it; for callbacks."""
    selection = actions.select(request)
    if isinstance(selection, PrivateRange):
        setting.enter({"lower": selection.lower, "upper": selection.upper})


def selected_bound() -> int:
    """Return h: the bound on rows of a mean that was selected last, which is paid for; 1 if none was."""
    bounds = [selection.value for number, selection in actions.numbers() if number is Wanted.CAP]
    return int(bounds[-1]) if bounds else 1


def _read_range_problem() -> RangeProblem | InvalidInput | None:
    state, key = st.session_state, QUESTION.key
    bound = int(state.get(key("range_bound")) or selected_bound())  # The field holds a float.
    with st.container(horizontal=True, vertical_alignment="bottom"):
        knowledge = fields.draw(QUESTION, "range_known")
        centre = fields.draw(QUESTION, "range_centre") if knowledge is KnownValue.TYPICAL else None
        lower = fields.draw(QUESTION, "range_lower") if knowledge is KnownValue.LOWEST else None
        epsilon = fields.draw(QUESTION, "range_epsilon")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        unit, largest = (fields.draw(QUESTION, name) for name in ("range_unit", "range_largest"))
        fields.draw(QUESTION, "range_bound")
        # A user with fewer rows than the bound counts in part.
        label = "" if bound == 1 else f"Users with {bound:,} rows or more, about"
        users = fields.draw(QUESTION, "range_users", label)
    anchor = {KnownValue.TYPICAL: centre, KnownValue.LOWEST: lower, KnownValue.NEITHER: 0.0}[knowledge]
    release = state.get(keys.EPSILON)
    if epsilon is None or unit is None or largest is None or anchor is None or release is None:
        return None
    if any(key(name) in state.get(keys.ASIDE, {}) for name in QUESTION.list_fields(TAB)):
        return None  # Said below its field.
    relation: Relation = state.get(key("relation")) or QUESTION.first("relation")
    try:
        return RangeProblem(
            float(release), epsilon, unit, largest, centre, lower, relation.neighbours, users, bound
        )
    except InvalidInput as refusal:
        return refusal
