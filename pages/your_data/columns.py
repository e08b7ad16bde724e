"""The columns of an upload: what each of them is, who a row belongs to, and whether the data are public."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpcore import counting
from dpcore.common.checks import InputProblem, InvalidInput, Problems
from dpcore.common.privacy import Disclosure, ReleaseFacts
from dpcore.common.wording import escape_text, format_count
from dpcore.contributions import ContributionHistogram
from dpcore.data.column_roles import (
    ROLES_BY_KIND,
    MissingUsers,
    Roles,
    TableKind,
    describe_two_people,
    explain_roles,
    write_user_hint,
)
from dpcore.data.guessed_roles import says_yes_and_no
from dpcore.data.periods import build_periods
from dpcore.data.row_filter import parse_filters
from dpcore.data.user_names import find_other_person
from dpcore.dataset import Contribution
from pages.shared.data import uploads
from pages.shared.fields import fields
from pages.shared.session import own_tables
from pages.your_data.question import QUESTION


def build_key(entry_name: str) -> str:
    """Return the session key of an entry of the upload."""
    return QUESTION.get_key(f"upload_{entry_name}")


def _get_role_key(role: str) -> str:
    """Return the session key of the column that has a role."""
    return QUESTION.get_key("upload_role_") + role


NO_COLUMN = "(none)"
LABEL_BY_ROLE = {
    "user": "User ID: the column that identifies a user",
    "count": "Rows per user",
    "size": "Rows per user (size)",
    "users": "Number of users of that size",
    "value": "Value to average or add up (optional)",
    "task": "Task, product or group (optional)",
}
LABEL_BY_KIND = {
    TableKind.EVENTS: "A contribution",
    TableKind.COUNTS: "A user, with a count",
    TableKind.HISTOGRAM: "A size, with its number of users",
    TableKind.PAIRS: "A pair of user and group",
}
LABEL_BY_DISCLOSURE = {
    Disclosure.PRIVATE: "No",
    Disclosure.PUBLIC: "Yes: anybody may see them",
    Disclosure.DP_RELEASE: "They are a DP release, as the file says",
}
CONSEQUENCE_BY_DISCLOSURE = {
    Disclosure.PRIVATE: "Do not publish what is computed from them; a bound is drawn with noise.",
    Disclosure.PUBLIC: "You may publish every number and plot; a bound costs no ε.",
    Disclosure.DP_RELEASE: "You may publish what is computed from them; their ε is spent.",
}
LABEL_BY_MISSING_USERS = {
    MissingUsers.LEAVE_OUT: "Leave them out",
    MissingUsers.ONE_USER: "Count them as one user",
}
LABEL_BY_CONTRIBUTION = {
    Contribution.ROWS: "A row",
    Contribution.DISTINCT_TASKS: "A distinct task of a user (repeats count once)",
    Contribution.TOTAL: "The total of the value (must not be negative)",
}


class BlankRule(enum.Enum):
    """The treatment of values that are missing or no number."""

    REFUSE = "Refuse the file"
    DROP = "Leave these rows out"
    REPLACE = "Replace by a public number"


RULE_HELP = (
    "Leaving rows out makes numbers of rows depend on values: counts are then private, and a user is added or removed. "
    "For public counts, replace. Set the rule before you open a private file: a rule that is chosen because a blank "
    "was seen is a look at the data, and no ε covers it."
)


def choose_to_drop() -> None:
    """Choose the rule that leaves rows without a value out."""
    st.session_state[build_key("rule")] = BlankRule.DROP


def draw_rule_choice() -> None:
    """Draw the choice of what happens to values that are missing or no number, and of the number that replaces them."""
    state = st.session_state
    is_private = state.get(build_key("public"), Disclosure.PRIVATE) is Disclosure.PRIVATE
    # Of private data the default holds for every file, so that no blank has to be seen before the rule is chosen.
    default_rule = BlankRule.DROP if is_private else BlankRule.REFUSE
    if state.get(build_key("rule")) is state.get(build_key("rule_default")):
        state[build_key("rule")] = default_rule
    state[build_key("rule_default")] = default_rule
    state.setdefault(build_key("constant"), 0.0)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        texts_by_rule = {rule: rule.value for rule in BlankRule}
        fields.draw_select_box(
            "Values that are missing or no number", texts_by_rule, build_key("rule"), RULE_HELP, 300
        )
        if state[build_key("rule")] is BlankRule.REPLACE:
            fields.draw_number("The public number", build_key("constant"))
    if state[build_key("rule")] is BlankRule.REPLACE and state.get(build_key("constant")) is None:
        st.caption("Enter the number; until then the file is refused if a value is missing.")
    if (
        state.get(build_key("saw_missing"))
        and is_private
        and state[build_key("rule")] is not BlankRule.REFUSE
    ):
        st.caption(
            "You choose this rule after the app found a blank. So the choice depends on private data, and ε does not "
            "cover it. Next time, choose the rule before you open the file."
        )


YES_HELP = "The text of a cell, such as Y. It counts as 1 and every other as 0, so that the mean is a share."
PERIODS_HELP = (
    "Less noise, less protection: a whole person pays for all periods. Of no use with rows in most of them."
)


class PeopleAnswer(enum.Enum):
    """What two columns that both name people say together."""

    ONE = "No, only the first column says who"
    PAIR = "Yes, only both together say who"
    EACH = "No, each of the two is a person"


def set_roles(roles: Roles) -> None:
    """Set the widgets to these roles: guessed ones, or those of a known file with the same columns."""
    state = st.session_state
    for role in LABEL_BY_ROLE:
        state[_get_role_key(role)] = getattr(roles, role) or NO_COLUMN
    state[build_key("further")] = list(roles.further_user)
    state[build_key("further_task")] = list(roles.further_task)
    state[build_key("further_values")] = list(roles.further_values)
    state[build_key("kind")], state[build_key("contribution")] = roles.kind, roles.contribution
    state[build_key("missing")], state[build_key("people")] = roles.missing_users, PeopleAnswer.ONE
    state[build_key("share")] = roles.is_share
    state[build_key("yes")], periods = roles.yes_text, roles.periods
    state[build_key("filters")] = "; ".join(row_filter.text for row_filter in roles.filters)
    state[build_key("date")] = NO_COLUMN if periods is None else periods.column
    state[build_key("span")] = "" if periods is None else periods.span
    state[build_key("releases")] = 1 if periods is None else periods.num_releases
    state[build_key("person_epsilon")] = None if periods is None else periods.person_epsilon
    # Of a known file; else the rule from before the upload stays.
    if roles.drops_missing or roles.missing_constant is not None:
        state[build_key("rule")] = BlankRule.DROP if roles.drops_missing else BlankRule.REPLACE
        state[build_key("constant")] = roles.missing_constant or 0.0


def find_stated_release(source: counting.Source, roles: Roles) -> ReleaseFacts | None:
    """Return the DP release that the file claims to be, when read with these roles; None if it claims none."""
    return source.stated_release if roles.kind is TableKind.HISTOGRAM else None


def draw_role_choices(source: counting.Source) -> Roles:
    """Draw the first rows and the widgets; return the roles that the person has chosen."""
    head_table = source.head
    rows_text = format_count(len(head_table.frame), "row")
    size_text = rows_text if source.is_complete else f"{source.num_bytes / 1e6:,.1f} MB, not yet counted"
    uploads.show_file_head(source.name, size_text, len(source.columns), head_table)
    if source.lacks_column_names:
        widget_label, widget_key = "Names of the columns, with commas between", build_key("names")
        names_text = st.text_input(
            widget_label, key=widget_key, on_change=_apply_names, persist_state="session"
        )
        try:
            source.with_names(names_text.split(","))
        except InvalidInput as error:
            fields.show_problems(error.problems)
    st.session_state.setdefault(build_key("kind"), TableKind.EVENTS)
    table_kind = fields.draw_radio(
        "**1.** What is one row?", LABEL_BY_KIND, build_key("kind"), is_horizontal=True
    )
    st.markdown(":small[**2.** Which column is what?]")
    with st.grid(3):
        for role in ROLES_BY_KIND[table_kind]:
            text_by_column = {column: column for column in source.columns}
            if role in ("value", "task") or (role == "user" and table_kind is not TableKind.PAIRS):
                is_needed = role == "user" and table_kind is TableKind.EVENTS
                text_by_column = {NO_COLUMN: "Choose a column" if is_needed else NO_COLUMN, **text_by_column}
            if st.session_state.get(_get_role_key(role)) not in text_by_column:
                st.session_state[_get_role_key(role)] = next(iter(text_by_column))
            fields.draw_select_box(LABEL_BY_ROLE[role], text_by_column, _get_role_key(role))
    if table_kind is TableKind.EVENTS:
        _ask_for_user(source)
        with st.expander("More about users, groups and rows"):
            _show_event_choices(source)
        if st.session_state[_get_role_key("value")] != NO_COLUMN:
            st.text_input("Count as yes", key=build_key("yes"), help=YES_HELP, persist_state="session")
            if _may_be_share(source):
                widget_label = (
                    "The value says yes or no (1 or 0): its mean is a share, from 0 to 1 in any such file"
                )
                st.checkbox(widget_label, key=build_key("share"), persist_state="session")
            draw_rule_choice()
    roles = _read_roles(table_kind, source)
    known_file = own_tables.find_known_file(source.columns)
    roles_text = explain_roles(roles)
    if known_file and known_file.roles == roles:
        roles_text += f" As in {known_file.name}, which has the same columns."
    st.caption(escape_text(roles_text, 400))
    stated_release = find_stated_release(source, roles)
    draw_disclosure_choice(
        "**3.** Are these data public?", list(LABEL_BY_DISCLOSURE)[: 2 if stated_release is None else 3]
    )
    if stated_release is not None:
        st.caption(f"The file states *{stated_release.label}*. Nothing here can check it.")
    return roles


def draw_disclosure_choice(question_text: str, disclosures: Sequence[Disclosure]) -> Any:
    """Draw the choice among these disclosures of the data, private at first, and return the chosen one."""
    if st.session_state.get(build_key("public")) not in disclosures:
        st.session_state[build_key("public")] = Disclosure.PRIVATE
    texts_by_disclosure = {disclosure: LABEL_BY_DISCLOSURE[disclosure] for disclosure in disclosures}
    radio_options: dict[str, Any] = {"is_horizontal": True, "caption_by_option": CONSEQUENCE_BY_DISCLOSURE}
    return fields.draw_radio(question_text, texts_by_disclosure, build_key("public"), **radio_options)


def _apply_names() -> None:
    """Apply the entered names to the columns of a file without a header, and propose roles anew; nothing if refused."""
    state = st.session_state
    source: counting.Source | None = state.get(build_key("table"))
    names_text: str | None = state.get(build_key("names"))
    if source is None or names_text is None:  # The file was discarded before the press came.
        return
    with contextlib.suppress(InvalidInput):  # Said below the field.
        source = source.with_names(names_text.split(","))
        state[build_key("table")], state[build_key("problems")] = source, ()
        set_roles(source.roles)


def _may_be_share(source: counting.Source) -> bool:
    """Return True if the value column seems to say yes and no, and its type does not declare it."""
    column = st.session_state[_get_role_key("value")]
    return column not in {NO_COLUMN, *source.head.booleans} and says_yes_and_no(source.head, column)


def _find_second_person(source: counting.Source) -> str | None:
    """Return another column that may name people besides the chosen one; None if there is none."""
    used_columns = {st.session_state.get(_get_role_key(role)) for role in ("value", "task")}
    used_columns |= set(st.session_state.get(build_key("further"), ()))
    free_columns = [column for column in source.columns if column not in used_columns]
    return find_other_person(free_columns, str(st.session_state.get(_get_role_key("user"))))


def _list_paired_columns(source: counting.Source) -> list[str]:
    """Return the second column that names people if the pair is the person; else no column."""
    second_column = _find_second_person(source)
    is_pair = st.session_state.get(build_key("people")) is PeopleAnswer.PAIR
    return [second_column] if is_pair and second_column else []


def _ask_for_user(source: counting.Source) -> None:
    """Ask for the user where no column is chosen, and about two columns that name people; show doubts about them."""
    if st.session_state[_get_role_key("user")] == NO_COLUMN:
        st.info(
            "No name says who a row belongs to. Choose the column that does.", icon=":material/person_search:"
        )
        return
    if second_column := _find_second_person(source):
        question_text = f"Is the pair with {escape_text(second_column, 60)} the person?"
        fields.draw_radio(
            question_text,
            {answer: answer.value for answer in PeopleAnswer},
            build_key("people"),
            is_horizontal=True,
        )
    user_columns = list(_read_roles(TableKind.EVENTS, source).privacy_unit)
    if is_each_a_person(source):
        fields.show_problems([describe_two_people([*user_columns, second_column or ""])])
    elif source.is_complete:
        user_cells = source.head.frame[user_columns]
        sizes = user_cells[(user_cells != "").all(axis=1)].groupby(user_columns).size()
        if len(sizes):
            histogram = ContributionHistogram.from_counts(sizes.to_numpy())
            hint_text = write_user_hint(_read_roles(TableKind.EVENTS, source), source.columns, histogram)
            st.caption(escape_text(hint_text, 400))


def is_each_a_person(source: counting.Source) -> bool:
    """Return True if a person has answered that the two columns of people name two different people."""
    is_each = st.session_state.get(build_key("people")) is PeopleAnswer.EACH
    return is_each and _find_second_person(source) is not None


def _show_event_choices(source: counting.Source) -> None:
    """Draw further columns of users and groups, what a contribution is, and what happens to rows without a user."""
    state = st.session_state
    used_columns = {state[_get_role_key(role)] for role in ROLES_BY_KIND[TableKind.EVENTS]}
    used_columns |= set(_list_paired_columns(source))
    widget_label = "Further columns that only together with it identify a user"
    help_text = "Say, shop and customer number, if each shop numbers its own customers."
    _show_further_columns("further", source.columns, used_columns, widget_label, help_text)
    if state[_get_role_key("task")] != NO_COLUMN:
        used_columns |= set(state.get(build_key("further"), ()))
        widget_label = "Further columns that together with it make a group"
        _show_further_columns(
            "further_task", source.columns, used_columns, widget_label, "Say, product and day."
        )
    if state[_get_role_key("value")] != NO_COLUMN:
        taken_columns = {*used_columns, *state.get(build_key("further"), ())}
        taken_columns |= set(state.get(build_key("further_task"), ()))
        widget_label, help_text = "Further columns of values", "Budget plan releases them from the same ε."
        _show_further_columns("further_values", source.columns, taken_columns, widget_label, help_text)
    _draw_row_rules([column for column in source.columns if column not in used_columns])
    state.setdefault(build_key("contribution"), Contribution.ROWS)
    fields.draw_select_box("What is a contribution?", LABEL_BY_CONTRIBUTION, build_key("contribution"))
    fields.draw_radio("Rows without a user", LABEL_BY_MISSING_USERS, build_key("missing"), is_horizontal=True)
    if not source.is_complete and len(source.columns) > 2:
        widget_label, help_text = "Also find duplicate rows", "This takes another pass over the file."
        st.checkbox(widget_label, key=build_key("copies"), persist_state="session", help=help_text)


def _draw_row_rules(column_names: Sequence[str]) -> None:
    """Draw the filters of rows, and the column of dates and the periods that make a user several units."""
    state, date_key = st.session_state, build_key("date")
    filter_example, periods_example = "quantity > 0; country = France", "2025-01-01 to 2026-01-01 by month"
    st.text_input(
        "Only rows with", key=build_key("filters"), placeholder=filter_example, persist_state="session"
    )
    text_by_column = {NO_COLUMN: "(none: a user is the unit)"} | {column: column for column in column_names}
    if state.get(date_key) not in text_by_column:
        state[date_key] = NO_COLUMN
    fields.draw_select_box("Dates, for a unit of user and period", text_by_column, date_key, PERIODS_HELP)
    if state[date_key] != NO_COLUMN:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            widget_key = build_key("span")
            st.text_input(
                "Public periods", key=widget_key, placeholder=periods_example, persist_state="session"
            )
            fields.draw_number("Releases, one every period", build_key("releases"), is_integer=True)
            fields.draw_number("Largest ε for a person", build_key("person_epsilon"))
    rule_by_field, problems = read_row_rules()
    if problems:
        fields.show_problems(problems)
    elif "periods" in rule_by_field and not rule_by_field["periods"].is_filter:
        price = rule_by_field["periods"].price_person(1.0, 0.0)
        st.caption("At ε = 1: " + "".join(rule_by_field["periods"].describe_price(price)[1:]))


def read_row_rules() -> tuple[dict[str, Any], tuple[InputProblem, ...]]:
    """Return the filters and periods that the widgets hold, as fields of roles, and what is wrong with them."""
    state, problems, rule_by_field = st.session_state, Problems(), dict[str, Any]()
    with problems.collecting():
        rule_by_field["filters"] = parse_filters(state.get(build_key("filters")))
    if (column := state.get(build_key("date"), NO_COLUMN)) != NO_COLUMN:
        release_numbers = (state.get(build_key(rule_name)) for rule_name in ("releases", "person_epsilon"))
        with problems.collecting():
            rule_by_field["periods"] = build_periods(column, state.get(build_key("span")), *release_numbers)
    return rule_by_field, tuple(problems.entries)


def has_wrong_row_rules(roles: Roles) -> bool:
    """Return True if filters or periods of rows of events are wrong."""
    return roles.kind is TableKind.EVENTS and bool(read_row_rules()[1])


def _show_further_columns(
    entry_name: str, column_names: Sequence[str], used_columns: set[str], widget_label: str, help_text: str
) -> None:
    """Draw the choice of further columns among those that have no role yet."""
    widget_key, offered_columns = (
        build_key(entry_name),
        [column for column in column_names if column not in used_columns],
    )
    st.session_state[widget_key] = [
        column for column in st.session_state.get(widget_key, []) if column in offered_columns
    ]
    if offered_columns:
        st.multiselect(
            widget_label,
            offered_columns,
            key=widget_key,
            placeholder="None",
            persist_state="session",
            help=help_text,
        )


def _read_roles(table_kind: TableKind, source: counting.Source) -> Roles:
    """Return the roles that the widgets hold, without filters or periods that are wrong."""
    state = st.session_state
    column_by_role = {role: state[_get_role_key(role)] for role in ROLES_BY_KIND[table_kind]}
    values_by_field: dict[str, Any] = {
        role: None if c == NO_COLUMN else c for role, c in column_by_role.items()
    }
    if table_kind is TableKind.EVENTS:
        paired_columns = _list_paired_columns(source)
        values_by_field["further_user"] = (*paired_columns, *state.get(build_key("further"), ()))
        if values_by_field["task"] is not None:
            values_by_field["further_task"] = tuple(state.get(build_key("further_task"), ()))
        if values_by_field["value"] is not None:
            values_by_field["further_values"] = tuple(state.get(build_key("further_values"), ()))
        values_by_field["contribution"] = state.get(build_key("contribution"), Contribution.ROWS)
        value_rule = (
            BlankRule.REFUSE
            if values_by_field["value"] is None
            else state.get(build_key("rule"), BlankRule.REFUSE)
        )
        values_by_field["drops_missing"] = value_rule is BlankRule.DROP
        if values_by_field["value"] is not None:
            values_by_field["yes_text"] = (state.get(build_key("yes")) or "").strip()
            values_by_field["is_share"] = _may_be_share(source) and bool(state.get(build_key("share")))
        values_by_field |= read_row_rules()[0]
        if value_rule is BlankRule.REPLACE:
            values_by_field["missing_constant"] = state.get(build_key("constant"))
    missing_users = state.get(build_key("missing"), MissingUsers.LEAVE_OUT)
    return Roles(table_kind, missing_users=missing_users, **values_by_field)
