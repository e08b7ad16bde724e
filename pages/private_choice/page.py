"""Choose privately: a private copy or a direct choice, and what either costs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.code.forms import find_summed_column
from dpcore.common import wording
from dpcore.common.parameters import Place
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.answer import build_answer
from dpcore.private_choice.answer.answer import build_methods
from dpcore.private_choice.answer.words import Selection, format_selection
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.comparison import PrivateSolution
from dpcore.private_choice.parameters import NUMBER_NAMES, BoundPurpose, NumberKind, PrivateParameters
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.private_choice.scores import check_users
from dpcore.report.content import Line
from pages.mean import elsewhere
from pages.private_choice import actions, on_card
from pages.private_choice.question import QUESTION, PageParameters
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.card.releases import list_spent_lines
from pages.shared.fields import fields
from pages.shared.render import question_page
from pages.shared.render.question_page import Page
from pages.shared.screen import layout
from pages.shared.session import session

SUM_OF_A_COLUMN = (
    "This bound is for a **count of rows**; that of a **sum of a column** is drawn on *Sum and count*."
)
SUM_OF_THE_TOTAL = "A row is one unit of {} here: the bound is for its **sum**."


def solve_page(dataset: Dataset, parameters: PageParameters) -> PrivateSolution:
    """Solve for the data in use; refuse it if the original data have more users than a draw can hold."""
    check_users(session.get_original().dataset.histogram)
    return comparison.solve(dataset, parameters.question)


def build_page_answer(dataset: Dataset, parameters: PageParameters, solution: PrivateSolution) -> Answer:
    """Build the answer, with the methods section of what was drawn last."""
    question = parameters.question
    solution = replace(solution, parameters=question.divide())
    drawn_numbers, ledger = actions.list_numbers(), session.get_ledger()
    answer, total_epsilon = build_answer(dataset, question, solution), None
    entered_parameters: PrivateParameters = st.session_state[keys.PAGE_PARAMETERS]
    # The parameters are divided after the ledger.
    if entered_parameters.is_total_epsilon and not question.is_total_epsilon:
        total_epsilon = entered_parameters.epsilon
        budget_text = SelectionRequest.from_parameters(entered_parameters, ledger).describe_budget()
        answer = replace(answer, facts={**answer.facts, "In all": f"{budget_text}."})
    return replace(answer, make_methods=lambda: build_methods(solution, drawn_numbers, ledger, total_epsilon))


def follow_mean(dataset: Dataset) -> None:
    """Set the shares of the variance to those of *Mean* if these changed; of private values none is read."""
    user_share = elsewhere.find_user_share(dataset)
    _follow("user_share", "users_followed", user_share, QUESTION.get_initial_value("user_share"))
    mean_answer = elsewhere.build_answer(dataset)
    variance_share = worst_share = PrivateParameters(1.0).variance_share
    mean_setting = None if mean_answer is None else mean_answer.setting
    if mean_setting is not None and not (mean_setting.uses_values and dataset.is_private):
        # Where all values are the same, nothing is to be chosen: the page says so of an empty share.
        variance_share = min(mean_setting.variance_share or 0.0, worst_share) or worst_share
    _follow("variance_share", "variance_followed", variance_share, worst_share)


def _follow(field_name: str, followed_field: str, mean_value: float, first_value: float) -> None:
    """Set a field to the value of *Mean* if that changed, unless the user entered another one here."""
    state, key, followed_key = st.session_state, QUESTION.key(field_name), QUESTION.key(followed_field)
    previous_value = state.get(followed_key, first_value)
    if mean_value != previous_value and state[key] in (previous_value, None):
        state[key] = mean_value
    state[followed_key] = mean_value


def _write_line(number: NumberKind, selection: Selection) -> Line:
    """Write what was selected as a line of the report."""
    number_name, selection_text = wording.capital(NUMBER_NAMES[number]), format_selection(selection)
    if not isinstance(selection, PrivateChoice):
        return Line(number_name, selection_text, selection.facts)
    unit_text = wording.agreeing(selection.value, "row", "rows")
    return Line(number_name, f"{selection_text} {unit_text}", selection.facts, number=selection.value)


class PrivatePage(Page):
    """The page."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> PageParameters | None:
        """Show the inputs and read them; if they are refused, show what was drawn before and return None."""
        actions.rerun_after_draw()
        fields.start(QUESTION)
        follow_mean(dataset)
        has_no_guess = st.session_state[QUESTION.key("guess")] is None
        if has_no_guess and st.session_state[QUESTION.key("guess_factor")] is None:
            st.session_state[QUESTION.key("guess_factor")] = QUESTION.get_initial_value("guess_factor")

        def name_the_sum(unused: Collection[str]) -> bool:
            """Show which sum the bound is for, if it is for one; return False, as no field was drawn."""
            if "margin" not in unused:
                column = find_summed_column(dataset)
                st.caption(SUM_OF_THE_TOTAL.format(wording.plain(column)) if column else SUM_OF_A_COLUMN)
            return False

        own_epsilon = () if st.session_state[QUESTION.key("is_total_epsilon")] else ("selection_epsilon",)
        parameters: PageParameters | None = question_page.read_inputs(
            QUESTION,
            slots,
            is_hidden=lambda name: name == "guess_factor" and has_no_guess,
            # ε of the choice stands beside that of the release.
            widgets={
                "purpose": lambda: fields.draw_all(QUESTION, *own_epsilon, "purpose"),
                "selection_epsilon": lambda: None,
            },
            ask_first=name_the_sum,
        )
        if parameters is None:
            self.draw_refused(slots, dataset, None)
        return parameters

    def draw_refused(self, slots: layout.PageSlots, dataset: Dataset, parameters: object) -> None:
        """Show what was drawn before; nothing can be drawn now."""
        with slots.answer:
            actions.show(None, dataset)

    def draw_behind(self, answer: Answer) -> None:
        """Show what the two ways are, what either costs, what is assumed, and why *Mean* finds another bound."""
        solution, dataset = answer.solution, session.dataset()
        purpose = solution.parameters.purpose
        is_smooth = purpose is BoundPurpose.SMOOTH
        if reason := elsewhere.explain_difference(dataset, answer.setting, solution.best, is_smooth):
            st.caption(reason)
        choice_text = actions.CHOICE_HELP.format(NUMBER_NAMES[purpose])
        st.markdown(f"- **Private copy.** {actions.COPY_HELP}\n- **Direct choice.** {choice_text}")
        cards.draw_behind(answer)

    def list_tabs(self, answer: Answer) -> Mapping[str, layout.Content]:
        """Return the form of a range by the name of its tab."""
        return {"A value range": lambda: on_card.draw_range_form(session.get_original().dataset)}

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Show the buttons, and what was released."""
        with slots.answer:
            actions.show(st.session_state[keys.PAGE_PARAMETERS], session.dataset())

    def list_report_fields(self, answer: Answer) -> Sequence[str]:
        """List the names of the question's fields that apply, without those of the tab."""
        field_names = QUESTION.list_fields(Place.LINE, Place.MORE)
        return [name for name in field_names if name not in answer.parameters.unused_names]

    def list_releases(self, answer: Answer, data: Dataset) -> tuple[Line, ...]:
        """List what was selected, and what everything selected cost, as lines: the user's own doing, not the data's."""
        selection_lines = [_write_line(number, selection) for number, selection in actions.list_choices()]
        return (*selection_lines, *list_spent_lines(session.get_ledger()))


PrivatePage(QUESTION, solve_page, build_page_answer, stem="private").show()
