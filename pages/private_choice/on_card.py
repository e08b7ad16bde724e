"""Private selection on the pages of other questions: the bound of a card, a pair of bounds, and the range of a value.

The machinery finds this module by `Question.selects_bounds_privately` of its question; no question knows it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.answer import build_without_numbers
from dpcore.code import ReleaseSpec
from dpcore.code.forms import OfferedPrograms
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.parameters import TAB
from dpcore.common.privacy import Ledger, ReleaseFacts, format_rounded_up
from dpcore.common.wording import capitalise, choose_word, escape_text, format_number
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.mean import Clamp
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import DrawnPair, PrivatePairProblem
from dpcore.private_choice import choice
from dpcore.private_choice.answer import selection as selections
from dpcore.private_choice.answer import words
from dpcore.private_choice.answer.selection import MissingInput, SelectionSettings
from dpcore.private_choice.budget import divide_budget, find_release_epsilon, require_release_epsilon
from dpcore.private_choice.choice import DrawnNumber
from dpcore.private_choice.parameters import (
    NAME_BY_NUMBER,
    BoundPurpose,
    NumberKind,
    NumberPair,
    OtherBound,
    Relation,
    find_share,
)
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.private_choice.scores import check_users
from dpcore.report.content import Line
from dpcore.total.parameters import TotalParameters
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import actions
from pages.private_choice.question import QUESTION, KnownValue
from pages.shared.base import catalogue, keys, page_run
from pages.shared.base.cache import cache_for_session
from pages.shared.base.question import Question
from pages.shared.card.releases import list_spent_lines
from pages.shared.fields import fields, setting
from pages.shared.session import session

PUBLIC_FIELD_BY_TYPE: dict[type, str] = {LearningParameters: "public_rows", TotalParameters: "highest_total"}
"""The field of a public number that the selection of a page's bound needs, by the page's parameters."""
QuestionFields = tuple[Question, tuple[str, ...]]
NO_FIELDS: QuestionFields = (QUESTION, ())
STEP_HELP = "Chooses the bound with an ε of its own, so that it may be published. You confirm before anything is spent."
LEAST_ERROR_SENTENCE = "The draw aims at the least bias plus mean noise."
_forecast = cache_for_session(max_entries=16)(choice.forecast)


@dataclass(frozen=True)
class BoundSelection:
    """How the bound of a card, or its pair of bounds, is selected privately.

    Attributes:
        request: What is selected; None if something is missing.
        card: The card with what was selected for it last; None before.
        missing_input: What must be entered before, or why no bound can be selected; None if nothing is missing.
        aim_sentence: What the selection takes otherwise than the card, a sentence; empty for nothing.
        public_fields: The question of the fields of public numbers that are drawn beside the button, and their names.
    """

    request: SelectionRequest | None
    card: Answer | None = None
    missing_input: MissingInput | None = None
    aim_sentence: str = ""
    public_fields: QuestionFields = NO_FIELDS

    @property
    def cost_text(self) -> str:
        """Write how much error a selection usually adds, from public figures alone; empty without a request."""
        if self.request is None:
            return ""
        problem, num_rows = self.request.problem, self.request.public_rows
        if isinstance(problem, PrivatePairProblem):
            return words.describe_pair_cost(problem)
        assert not isinstance(problem, RangeProblem)
        forecasts_text = words.describe_forecasts(_forecast(problem, num_rows), num_rows)
        return f"{self.aim_sentence} {forecasts_text}".strip()

    @property
    def dropped_text(self) -> str:
        """Write what a selection leaves out or counts as 0, for the owner of the data alone; empty for nothing."""
        return "" if self.request is None else actions.describe_dropped(self.request)

    @property
    def plot_position(self) -> tuple[float | dict[str, float], str]:
        """Return what was selected and its curve's name; for a pair a dict by the figure's columns and no name."""
        assert self.card is not None
        if isinstance(pair := self.card.bound, DrawnPair):
            return {"max_groups": float(pair.max_groups), "max_amount": float(pair.max_amount)}, ""
        is_smooth = self.request is not None and self.request.number is OtherBound.QUANTILE_SMOOTH
        return float(self.card.numbers[0].value or 0.0), "Smooth weights" if is_smooth else "Bounded rows"

    def write_excess(self, excess_share: float) -> str:
        """Write, for the owner of the data alone, how much more the selected bound errs than the best one."""
        subject_text = "pair" if self.card is not None and isinstance(self.card.bound, DrawnPair) else "bound"
        excess_text = f"{words.format_share(excess_share)} more than"
        if excess_share >= 1.0:
            excess_text = f"{format_number(1.0 + excess_share, 2)} times as much as"
        return (
            f":small[:orange[:material/lock: **Private, do not publish:**] on these data this {subject_text} errs "
            f"{excess_text} the best one.]"
        )

    def is_open(self, button_key: str) -> bool:
        """Return True if the choice of the button with this key is open."""
        return actions.is_choice_open(button_key)

    def draw_step(self, button_key: str, button_type: str) -> None:
        """Show the button that opens the choice; while it is open, its fields, its expected cost and confirmation.

        If no field of the page supplies what is missing, show only what that is.
        """
        if self.missing_input is not None and not self.missing_input.setting_names:
            st.markdown(f":small[{self.missing_input.sentence}]")
            return
        button_label = "Choose with DP…" if self.card is None else "Choose again with DP…"
        is_open = actions.draw_opening_button(button_label, button_key, type=button_type, help=STEP_HELP)
        actions.show_refusal_once()
        request = self.request
        if request is not None and request.total_epsilon is not None and self.card is None:
            st.markdown(f":small[{request.describe_budget()}.]")
        if not is_open:
            return
        with st.container(border=True, key=f"{button_key}_step"):
            question, field_names = self.public_fields
            with st.container(horizontal=True, vertical_alignment="bottom"):
                if not is_total_epsilon():
                    fields.draw_field(QUESTION, "selection_epsilon")
                fields.draw_field(QUESTION, "is_total_epsilon")
                fields.draw_fields(question, *field_names)
                with st.popover("More", icon=":material/tune:"):
                    fields.draw_fields(QUESTION, "largest", "margin")
            expected_text = self.cost_text if self.missing_input is None else self.missing_input.sentence
            st.markdown("\n\n".join(filter(None, (f":small[{expected_text}]", self.dropped_text))))
            if request is not None:
                actions.draw_confirmation(
                    button_key, actions.select_privately, request, request, request.facts
                )


def read_selection_settings() -> SelectionSettings:
    """Read the settings of a selection beside those of the release."""

    def read_number(field_name: str) -> Any:
        """Return the number in a field; its initial value if it is empty."""
        entered_number = st.session_state.get(QUESTION.get_key(field_name))
        return QUESTION.get_initial_value(field_name) if entered_number is None else float(entered_number)

    epsilon = QUESTION.get_initial_value("selection_epsilon")
    epsilon = st.session_state.get(QUESTION.get_key("selection_epsilon"), epsilon)  # None is refused.
    largest, margin = int(read_number("largest")), read_number("margin")
    unit_and_largest, ledger = (read_number("pair_unit"), read_number("pair_largest")), session.get_ledger()
    return SelectionSettings(epsilon, largest, margin, *unit_and_largest, is_total_epsilon(), ledger)


def is_total_epsilon() -> bool:
    """Return True if the user entered ε as the total of choices and release."""
    return bool(st.session_state.get(QUESTION.get_key("is_total_epsilon")))


def divide_total(question: Question, dataset: Any, parameters: Any) -> tuple[Any, str]:
    """Return a page's parameters with what a total epsilon leaves for the release, and a sentence that says so.

    The sentence is empty where the card's selection says it. Nothing changes without a total, or for other data.

    Raises:
        InvalidInput: Too little is left of the total.
    """
    releases_session_data = question.chooses_bound or question is catalogue.PLAN_PAGE
    is_total = is_total_epsilon() and session.get_original().dataset.is_private
    if not (releases_session_data and is_total and dataset is session.get_dataset()):
        return parameters, ""
    ledger = session.get_ledger()
    answer_module: Any = importlib.import_module(f"dpcore.{question.name}.answer")
    if dataset.is_private and hasattr(answer_module, "build_setting"):
        card = build_without_numbers(
            parameters, dataset.provenance, answer_module.build_setting(dataset, parameters)
        )
        request = _build_request(card, dataset)
        if isinstance(request, SelectionRequest):
            _, answered_request = _find_selection(card, request, dataset) or (None, request)
            return replace(parameters, epsilon=answered_request.release_epsilon), ""
    release_epsilon = require_release_epsilon(parameters.epsilon, ledger)
    total_text, release_text = format_rounded_up(parameters.epsilon), format_rounded_up(release_epsilon)
    total_sentence = f"Of ε = {total_text} in all, ε = {release_text} is left for the release."
    return replace(parameters, epsilon=release_epsilon), total_sentence


def _restore_total_epsilon(card: Answer) -> Answer:
    """Return the card with the entered total in place of its epsilon, the release's part; unchanged without a total."""
    if not is_total_epsilon():
        return card
    epsilon = float(st.session_state[keys.EPSILON])
    release_setting = None if card.setting is None else replace(card.setting, epsilon=epsilon)
    return replace(card, parameters=replace(card.parameters, epsilon=epsilon), setting=release_setting)


def _build_request(card: Answer, dataset: Dataset) -> SelectionRequest | MissingInput | None:
    """Build the request for a card, or the input that it lacks, refused settings included; None if it has no bound."""
    try:
        return selections.build_request(card, dataset, read_selection_settings())
    except InvalidInput as refusal:
        return MissingInput(" ".join(problem.sentence for problem in refusal.problems))


def build_selection(card: Answer) -> BoundSelection | None:
    """Build the selection of a card's bound on the data in use; None if they are public or no bound can be drawn."""
    dataset, current_run = session.get_dataset(), page_run.CURRENT_RUN.get()
    if not dataset.is_private:
        return None
    card_with_total = _restore_total_epsilon(card)
    public_fields: QuestionFields = NO_FIELDS
    if isinstance(card.parameters, PerGroupParameters):
        if dataset.pairs is None and dataset.pair_sizes is None:
            return None  # The card is of invented data.
        if card.parameters.statistic is Statistic.SUM:
            public_fields = QUESTION, ("pair_unit", "pair_largest")
    elif current_run is not None and (field_name := PUBLIC_FIELD_BY_TYPE.get(type(card.parameters))):
        public_fields = current_run.question, (field_name,)
    try:
        request = selections.build_request(card_with_total, dataset, read_selection_settings())
        if request is None or isinstance(request, MissingInput):
            return None if request is None else _ask_for_missing(card, request, public_fields)
        check_users(dataset.histogram)
    except InvalidInput as refusal:
        refusal_text = " ".join(problem.sentence for problem in refusal.problems)
        missing_input = MissingInput(refusal_text, ("selection_epsilon", *public_fields[1]))
        return _ask_for_missing(card, missing_input, public_fields)
    actions.rerun_after_draw()
    latest_with_request = _find_selection(card_with_total, request, dataset)
    released_card = (
        None if latest_with_request is None else _build_selection_card(card, *latest_with_request, dataset)
    )
    public_fields = NO_FIELDS if isinstance(request.number, BoundPurpose) else public_fields
    aim_sentence = _describe_aim(card, request)
    return BoundSelection(request, released_card, None, aim_sentence, public_fields)


def _find_selection(
    card: Answer, request: SelectionRequest, dataset: Dataset
) -> tuple[words.Selection, SelectionRequest] | None:
    """Return the latest selection for a card with the request that it answers; None if nothing was selected for it.

    Every release takes its share of the part of the total that earlier releases left. The selection may be of a request
    that was made before any of them, and the release gets the part that all of them leave.
    """
    settings, column_name = read_selection_settings(), selections.find_column(request, dataset)
    ledger, possible_requests = session.get_ledger(), [request]
    if settings.is_total_epsilon:
        for k in range(len(ledger.releases) - 1, -1, -1):
            earlier_settings = replace(settings, ledger=Ledger(ledger.releases[:k]))
            earlier_request = selections.build_request(card, dataset, earlier_settings)
            assert isinstance(earlier_request, SelectionRequest)
            possible_requests.append(earlier_request)
    for earlier_request in possible_requests:
        sought_key = earlier_request.number, earlier_request.problem, column_name
        # A choice is for this release at whatever ε of its own.
        matching_selections = [
            selection
            for number_kind, selection in actions.list_selections()
            if number_kind is earlier_request.number
            and (
                number_kind,
                replace(selection.problem, epsilon=earlier_request.problem.epsilon),
                selection.column,
            )
            == sought_key
        ]
        if matching_selections:
            if earlier_request.total_epsilon is not None:
                neighbours = earlier_request.problem.neighbours
                remaining_epsilon = find_release_epsilon(earlier_request.total_epsilon, ledger, neighbours)
                earlier_request = replace(earlier_request, release_epsilon=remaining_epsilon)
            return matching_selections[-1], earlier_request
    return None


def _ask_for_missing(
    card: Answer, missing: MissingInput, public_fields: QuestionFields
) -> BoundSelection | None:
    """Build the selection that names what must be entered first, with those of ``public_fields`` among it; or None.

    None if entering something does not help.
    """
    is_pair = isinstance(card.parameters, PerGroupParameters)
    if missing is selections.PAIR_NOT_POSSIBLE or (card.setting is None and not is_pair):
        return None
    if not is_pair and not {"num_groups", *public_fields[1]} & set(missing.setting_names):
        public_fields = NO_FIELDS
    return BoundSelection(None, missing_input=missing, public_fields=public_fields)


def _describe_aim(card: Answer, request: SelectionRequest) -> str:
    """Write what the selection takes otherwise than the card's own bound, on purpose; empty for nothing."""
    number_kind, release_setting = request.number, request.setting
    if release_setting is None or card.setting is None:
        return ""
    if number_kind is OtherBound.MODEL:
        return "For the bias the draw takes twice the share of rows cut."
    if number_kind is OtherBound.TOTAL:
        aim_text = "" if release_setting.measure is Measure.BOUND else f"{LEAST_ERROR_SENTENCE} "
        return f"{aim_text}It counts a total below 0 as 0, and so does its program."
    if isinstance(number_kind, OtherBound):
        return "The draw aims at the bound that is best from counts." if release_setting.uses_values else ""
    differing_names = card.setting.list_differences(release_setting)
    if {"user_share", "targets_table_mean"} & set(differing_names):
        return "The draw takes rows as independent."
    return LEAST_ERROR_SENTENCE if "measure" in differing_names else ""


def _build_selection_card(
    card: Answer, selection: words.Selection, request: SelectionRequest, dataset: Dataset
) -> Answer:
    """Return the card with what was selected in place of what was read off the data; its parts of the error go."""
    value_range = selections.find_value_range(card, request.number)
    range_facts = actions.find_range_facts(*value_range)
    released_card = selections.build_answer(card, selection, request, dataset, value_range, range_facts)
    subject_text = "pair" if request.number is NumberPair.PAIR else "bound"
    field_names = "headline", "numbers", "disclosure", "code", "bound"
    released_fields: dict[str, Any] = {
        field_name: getattr(released_card, field_name) for field_name in field_names
    }
    detail_text = f"{released_card.detail} This {subject_text} may be published, but not the figure: "
    detail_text += "it shows private data."
    return replace(
        card,
        **released_fields,
        detail=detail_text,
        error_parts=(),
        near_optimal="",
        relative_error=None,
        alternative=None,
    )


def add_range_cost(card: Answer) -> Answer:
    """Return the card with the cost of its range in programs and detail if the range was drawn; else unchanged."""
    card_setting = card.setting
    range_facts = (
        None if card_setting is None else actions.find_range_facts(card_setting.lower, card_setting.upper)
    )
    if range_facts is None or card_setting is None or not session.get_dataset().is_private:
        return card
    code_choice = card.code
    if code_choice is not None:
        named_forms = code_choice.forms
        new_forms = (
            (n, replace(f, range_facts=range_facts) if isinstance(f, ReleaseSpec) else f)
            for n, f in named_forms
        )
        code_choice = OfferedPrograms(tuple(new_forms))
    # If the bound was selected, too, the card has said what all of it is.
    if isinstance(card.disclosure, ReleaseFacts):
        return replace(card, code=code_choice)
    spent_epsilon = range_facts.epsilon + card_setting.epsilon
    cost_sentence = f"With the draw of the range, ε = {format_rounded_up(spent_epsilon)} in all."
    if is_total_epsilon():
        cost_sentence = f"The draw of the range took ε = {format_rounded_up(range_facts.epsilon)}."
    return replace(card, detail=f"{card.detail} {cost_sentence}".strip(), code=code_choice)


def draw_range_button(dataset: Dataset) -> None:
    """Show the button that leads to the form of a range, if the data are private and have values."""
    if dataset.values is not None and dataset.release is None and dataset.is_private:
        help_text, request_dialog = "Draws L and U with an ε of its own.", page_run.request_dialog
        fields.draw_button(
            "Choose the range with DP…",
            "private_range_ask",
            "casino",
            request_dialog,
            _show_range_dialog,
            help=help_text,
        )


@page_run.open_as_dialog("A value range, chosen with DP", "casino")
def _show_range_dialog() -> None:
    """Show what is known, what a selection costs, and its button; after a draw close the dialog and run the app."""
    st.markdown("L and U from what you know of the quantity cost nothing, and are the first choice.")
    try:
        problem = _read_range_problem()
    except InvalidInput as refusal:
        fields.show_problems(refusal.problems)
        return
    if problem is None:
        st.caption("Fill in the fields to see what a draw spends.")
        return
    total_epsilon = float(st.session_state[keys.EPSILON]) if is_total_epsilon() else None
    epsilon = problem.epsilon_release
    request = SelectionRequest(NumberPair.RANGE, problem, epsilon, total_epsilon=total_epsilon)
    st.markdown(words.describe_range_cost(problem))
    button_label = (
        f"Draw {'L and U' if problem.lower is None else 'U'} (ε = {format_rounded_up(problem.epsilon)})"
    )
    button_key = "private_range_draw"
    if actions.draw_opening_button(button_label, button_key, is_main=True) and actions.draw_confirmation(
        button_key, actions.select_privately, request, request, request.facts
    ):
        page_run.note_dialog_closed()
        st.rerun()


def _read_range_problem() -> RangeProblem | None:
    """Show the fields of a range, and build its problem; None if a needed field is empty or refused.

    Raises:
        InvalidInput: The fields do not fit together.
    """
    session_state, get_key = st.session_state, QUESTION.get_key
    # A bound on rows that was selected before is paid for. The field holds a float.
    selected_caps = [
        s.value for number_kind, s in actions.list_number_selections() if number_kind is BoundPurpose.CAP
    ]
    row_bound = int(session_state.get(get_key("range_bound")) or [1, *selected_caps][-1])
    is_total = is_total_epsilon()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        known_value = fields.draw_field(QUESTION, "range_known")
        centre = fields.draw_field(QUESTION, "range_centre") if known_value is KnownValue.TYPICAL else None
        lower = fields.draw_field(QUESTION, "range_lower") if known_value is KnownValue.LOWEST else None
        epsilon = None if is_total else fields.draw_field(QUESTION, "range_epsilon")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        min_distance, max_distance = (
            fields.draw_field(QUESTION, field_name) for field_name in ("range_unit", "range_largest")
        )
        fields.draw_field(QUESTION, "range_bound")
        # A user with fewer rows than the bound counts in part.
        users_label = "" if row_bound == 1 else f"Users with {row_bound:,} rows or more, about"
        users_guess = fields.draw_field(QUESTION, "range_users", users_label)
    anchor = {KnownValue.TYPICAL: centre, KnownValue.LOWEST: lower, KnownValue.NEITHER: 0.0}[known_value]
    release_epsilon = session_state.get(keys.EPSILON)
    relation: Relation = session_state.get(get_key("relation")) or QUESTION.get_initial_value("relation")
    if release_epsilon is not None and is_total:
        neighbours = relation.neighbours
        range_share, ledger = find_share(NumberPair.RANGE), session.get_ledger()
        epsilon_shares = divide_budget(float(release_epsilon), range_share, neighbours, ledger)
        epsilon, release_epsilon = epsilon_shares.selection_epsilon, epsilon_shares.release_epsilon
    if release_epsilon is None or epsilon is None or None in (min_distance, max_distance, anchor):
        return None
    if any(
        get_key(field_name) in session_state.get(keys.UNUSED_VALUE_PROBLEMS, {})
        for field_name in QUESTION.list_fields(TAB)
    ):
        return None  # Said below its field.
    range_arguments = min_distance, max_distance, centre, lower, relation.neighbours, users_guess, row_bound
    clamps_users = setting.read_value(MEAN, "clamp") is Clamp.USERS
    return RangeProblem(float(release_epsilon), epsilon, *range_arguments, clamps_users)


def list_selection_lines() -> tuple[Line, ...]:
    """List what was selected from these data, and what everything selected cost, as lines of the report.

    It is the user's own doing and may be published.
    """
    selection_lines = [
        _write_line(number_kind, selection) for number_kind, selection in actions.list_selections()
    ]
    return (*selection_lines, *list_spent_lines(session.get_ledger()))


def _write_line(number_kind: NumberKind, selection: words.Selection) -> Line:
    """Write what was selected as a line of the report."""
    number_name, selection_text = (
        capitalise(NAME_BY_NUMBER[number_kind]),
        words.format_selection(selection),
    )
    if not isinstance(selection, DrawnNumber):
        return Line(number_name, selection_text, selection.facts)
    unit_text = selection.column or choose_word(selection.value, "row", "rows")
    return Line(
        number_name, f"{selection_text} {escape_text(unit_text)}", selection.facts, number=selection.value
    )
