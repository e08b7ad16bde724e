"""A bound or a range of values selected privately straight from the data, without the private answer.

The question is asked of a made-up table with the names of the data's columns. So every refusal and every word depends
on what the person entered, and on nothing that a user did. The data are read once, by public rules
(`dpcore.counting.user_amounts`), and only the selection sees them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpcore import call_description, questions
from dpcore.common.checks import EPSILON_RANGE, InvalidInput, Problems, refuse, refuse_seed
from dpcore.common.privacy import Charge, Disclosure, Ledger, check_provenance
from dpcore.common.text_fields import find_option, list_options
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.counting.count import list_counts, to_dataset
from dpcore.counting.files import is_table, list_paths, read_if_summary
from dpcore.counting.formats import File, MemoryFile
from dpcore.counting.frames import FRAME_FILE, write_parquet
from dpcore.counting.user_amounts import read_user_amounts
from dpcore.data.binned_values import expand_rows
from dpcore.data.column_names import list_columns
from dpcore.data.column_roles import MissingRule, Roles
from dpcore.data.group_list import find_groups, write_groups
from dpcore.data.periods import build_periods
from dpcore.data.row_filter import parse_filters
from dpcore.data.totals_per_user import UserAmounts, build_dummy_dataset, get_role_columns, get_user_amounts
from dpcore.dataset import Contribution, Dataset, Values
from dpcore.mean import Clamp
from dpcore.per_group.parameters import Statistic
from dpcore.per_group.private_pair import PrivatePairProblem
from dpcore.private_choice.answer import selection
from dpcore.private_choice.answer.range_selection import build_range_answer
from dpcore.private_choice.answer.selection import MissingInput, SelectionSettings
from dpcore.private_choice.budget import divide_budget
from dpcore.private_choice.parameters import (
    QUANTILE_NUMBER_KINDS,
    NumberPair,
    OtherBound,
    PrivateParameters,
    Relation,
    find_share,
)
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.private_range import choose as choose_range
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.reply import DrawnReply, Reply
from dpcore.report.markup import to_plain_text

READING_ARGUMENTS = ("missing", "sheet", "separator", "yes", *call_description.PERIOD_ARGUMENTS)
"""Arguments of a call that say how the columns are read."""
SELECTABLE_CALLS = (*questions.SELECTABLE_CALLS, "private_bound")
"""Calls whose bound can be selected."""


def select_privately(
    question: str,
    data: Any,
    settings: Mapping[str, Any],
    epsilon: float | None = None,
    *,
    total_epsilon: float | None = None,
    largest: int = 10_000,
    margin: float = 0.0,
    unit: float | None = None,
    highest_amount: float | None = None,
    charge: Charge | None = None,
    **further_options: Any,
) -> DrawnReply:
    """Select the bound of a question privately: a DP release, fresh at every call.

    The answer on the private data is not computed, so no user's numbers decide whether there is one. Rows that name no
    user are left out, cells that hold no number count as 0, and negative totals count as 0. In a list of rows per user,
    entries that are no number of at least 1 are left out. Data without rows are allowed. Each row of text and JSON is
    read by itself: fields beyond those of the header are left out, and so are lines of JSON that hold no object. A list
    in a cell of a DataFrame is a missing cell. `docs/privacy.md` names the files that are refused.

    Args:
        question: Name of the call, such as ``"sum_bound"``.
        data: As the call takes it.
        settings: Those of the call by name, its columns and its epsilon among them.
        epsilon: Of the selection, on top of that of the release; 0.1 by default. For ``"private_bound"`` its own
            settings hold.
        total_epsilon: Epsilon of selection and release together, in place of both. It is divided by what is selected:
            15 % for the bound of a mean, a quantile or a learner, 30 % for that of a sum, a count or per group.
        largest: Public maximum of rows per user; no bound above it is selected.
        margin: Of sums and counts: how many users more than 1/epsilon to leave above the bound.
        unit: Of sums per group: what amounts are rounded to, public.
        highest_amount: Of sums per group: public maximum of one user's amount in a group.
        charge: Told what the selection guarantees before anything is drawn.
        further_options: None; a seed is refused by a sentence.

    Returns:
        What was selected, with its label and its program, and with nothing else of the data.

    Raises:
        InvalidInput: A setting or a column is missing or wrong, or the data are no table. No sentence quotes a cell.
    """
    refuse_seed("select_privately", further_options)
    options: dict[str, Any] = {"largest": largest, "margin": margin, "unit": unit}
    options["highest_amount"] = highest_amount
    if total_epsilon is not None:
        if epsilon is not None:
            raise refuse("a total epsilon is divided, and the selection has no epsilon of its own beside it")
        settings = {**settings, "epsilon": total_epsilon}
        options["is_total_epsilon"] = True
    reply, request, user_amounts, dummy_dataset = _pose_question(question, data, settings, epsilon, options)
    drawn_selection = selection.select(request, dummy_dataset, charge, user_amounts)
    answer = selection.build_answer(reply.answer, drawn_selection, request, dummy_dataset)
    column_arguments = questions.QUESTIONS[question].column_arguments
    column_settings = {name: settings[name] for name in column_arguments if settings.get(name) is not None}
    call_and_arguments = question, {**reply.call[1], **column_settings}
    return DrawnReply(answer, call_and_arguments, reply.package_name, reply.purpose_sentence)


def select_range(
    data: Any,
    *,
    user: Any = None,
    value: str | None = None,
    epsilon: float,
    unit: float,
    largest: float,
    selection_epsilon: float = 0.25,
    is_total_epsilon: bool = False,
    centre: float | None = None,
    lower: float | None = None,
    users: float | None = None,
    max_contributions: int = 1,
    clamp: Clamp | str = "rows",
    neighbours: Relation | str = "add-or-remove",
    charge: Charge | None = None,
    missing: MissingRule = None,
    sheet: str = "",
    separator: str = "",
    **further_options: Any,
) -> DrawnReply:
    """Select privately the range that a mean clamps values to: a DP release, fresh at every call.

    A range that you know costs nothing, and is the first choice. All settings are public: take none from the data. Rows
    that name no user are left out. Without a rule, cells that hold no number count as 0. Data without rows are allowed.

    Args:
        data: A table, or paths of files.
        user: Column that names the user, or several.
        value: Column of the values.
        epsilon: Of the release that will use the range.
        unit: Smallest distance of an end from the value that you know, in the values' unit.
        largest: Largest distance of an end from it.
        selection_epsilon: Of the selection, on top of ``epsilon``.
        is_total_epsilon: ``epsilon`` covers the selection, too, which takes 20 % of it.
        centre: A typical value that you know; L and U are drawn on its two sides.
        lower: The lowest value that you know; U alone is drawn. Without both the centre is drawn, too.
        users: About how many users have so many rows, from what you know.
        max_contributions: Bound on rows per user of the release.
        clamp: What the release clamps: rows or users. For users the range suits this bound alone.
        neighbours: Neighbouring data sets differ in one user: add-or-remove or replace.
        charge: Told what the selection guarantees before anything is drawn.
        missing: ``"drop"`` leaves out rows whose value is missing or beyond 1e100; a public number replaces it.
        sheet: Sheet of workbooks; empty for the first.
        separator: Separator of fields of text files; empty to detect it.
        further_options: None; a seed is refused by a sentence.

    Returns:
        The range, with its label and the program of a mean that uses it, and with nothing else of the data. Its
        ``bound`` has ``lower`` and ``upper``.

    Raises:
        InvalidInput: A setting or a column is missing or wrong, or the data are no table. No sentence quotes a cell.
    """
    arguments = {name: argument for name, argument in locals().items() if name in _RANGE_DEFAULTS}
    refuse_seed("select_range", further_options)
    data = read_if_summary(data)
    options = {"clamp": find_option(Clamp, clamp), "neighbours": find_option(Relation, neighbours)}
    with Problems() as problems:
        for argument_name, options_type in (("clamp", Clamp), ("neighbours", Relation)):
            if options[argument_name] is None:
                problems.add(f"{argument_name} must be one of {list_options(options_type)}")
        if not isinstance(data, Dataset) and None in (user, value):
            column_remedy = "Say which columns name the user and the value: user=…, value=…"
            problems.add("a range is drawn from one value in each row of a user", remedy=column_remedy)
        problems.between(*EPSILON_RANGE, epsilon=epsilon)
    relation = options["neighbours"]
    assert isinstance(relation, Relation)
    total_epsilon = float(epsilon) if is_total_epsilon else None
    if total_epsilon is not None:
        selection_share = find_share(NumberPair.RANGE)
        epsilon_shares = divide_budget(total_epsilon, selection_share, relation.neighbours, Ledger())
        epsilon, selection_epsilon = epsilon_shares.release_epsilon, epsilon_shares.selection_epsilon
    range_arguments = unit, largest, centre, lower, relation.neighbours, users, max_contributions
    problem = RangeProblem(epsilon, selection_epsilon, *range_arguments, options["clamp"] is Clamp.USERS)
    request = SelectionRequest(NumberPair.RANGE, problem, epsilon, total_epsilon=total_epsilon)
    columns: dict[str, Any] = {"user": tuple(list_columns(user)), "group": (), "value": value}
    columns |= {"missing": missing, "sheet": sheet, "separator": separator}
    if isinstance(data, Dataset):
        columns, row_values = get_role_columns(data), data.values and expand_rows(data.values)
        user_amounts = UserAmounts(data.histogram, name=data.name)
    else:
        user_amounts = _read_amounts(data, columns, request)
        row_values = None
        if user_amounts.pair_user_codes is not None and user_amounts.pair_user_codes.size:
            assert user_amounts.pair_sums is not None
            row_values = Values(user_amounts.pair_user_codes, user_amounts.pair_sums, str(value))
    if row_values is None and user_amounts.pair_user_codes is None:
        raise refuse("the data have no values to choose a range from")
    private_range = choose_range(problem, row_values, charge, str(columns["value"]))
    dummy_dataset = build_dummy_dataset(columns, Disclosure.PRIVATE, Contribution.ROWS, user_amounts)
    answer = build_range_answer(private_range, request, dummy_dataset)
    settings = {name: arguments[name] for name in arguments if arguments[name] != _RANGE_DEFAULTS[name]}
    return DrawnReply(answer, ("select_range", settings), "dpcore.private_choice.answer", answer.headline)


_RANGE_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(select_range).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name != "charge"
}
"""Default of each public setting of a range, by name; `inspect.Parameter.empty` where there is none."""


def dropped_cells(question: str, data: Any, settings: Mapping[str, Any], **options: Any) -> dict[str, int]:
    """Count the cells that `select_privately` would leave out or count as 0.

    The counts are private: they are for the owner of the data alone.

    Args:
        question: As for `select_privately`.
        data: Likewise.
        settings: Likewise.
        options: Its further public settings, such as ``unit``.

    Returns:
        Counts by name. Rows without a user are not counted in a `Dataset`, whose notes tell of them.

    Raises:
        InvalidInput: As `select_privately`.
    """
    _, request, user_amounts, _ = _pose_question(question, data, settings, None, options)
    return selection.count_dropped(request, user_amounts.dropped_counts_by_name)


def _pose_question(
    call_name: str, data: Any, settings: Mapping[str, Any], epsilon: float | None, options: Mapping[str, Any]
) -> tuple[Reply, SelectionRequest, UserAmounts, Dataset]:
    """Ask on a made-up table; return its reply, the selection request, the amounts to select from, and the table."""
    if call_name not in SELECTABLE_CALLS:
        raise refuse(f"a bound is selected privately for {', '.join(SELECTABLE_CALLS)}; got {call_name!r}")
    if call_name == "sum_bound" and (settings.get("lower"), settings.get("upper")) != (None, None):
        range_remedy = "Leave out lower and upper"
        raise refuse(
            "the bound of a sum is selected from 0 up, without a range of totals", remedy=range_remedy
        )
    columns: dict[str, Any] = {name: tuple(list_columns(settings.get(name))) for name in ("user", "group")}
    columns |= {name: settings.get(name) for name in ("value", *READING_ARGUMENTS)}
    entered_provenance = check_provenance(settings.get("disclosure", Disclosure.PRIVATE))
    data = read_if_summary(data, entered_provenance)
    if isinstance(data, Dataset):
        columns = get_role_columns(data)
    provenance = data.provenance if isinstance(data, Dataset) else entered_provenance
    if not isinstance(provenance, Disclosure):
        raise refuse("a bound that is read off a DP release may be published, and needs no draw")
    contribution = data.contribution if isinstance(data, Dataset) else Contribution.ROWS
    # A pair is not selected by objective and floor, and no group of a made-up table is large.
    unused_settings = ("objective", "floor") if call_name == "group_bounds" else ()
    call_settings = {name: settings[name] for name in settings if name not in (*columns, *unused_settings)}
    column_arguments = questions.QUESTIONS[call_name].column_arguments
    call_settings |= {name: column for name, column in columns.items() if name in column_arguments and column}
    # The settings are checked before any row is read.
    listed_groups, bin_edges = find_groups(write_groups(settings.get("groups")), settings.get("edges"))
    dummy_dataset = build_dummy_dataset(
        columns, provenance, contribution, task_names=(bin_edges or listed_groups)[:1]
    )
    reply = questions.build_reply(call_name, dummy_dataset, call_settings)
    request = _build_request(reply, epsilon, options)
    user_amounts = _read_amounts(data, columns, request)
    dummy_dataset = build_dummy_dataset(
        columns, provenance, contribution, user_amounts, dummy_dataset.task_names
    )
    if request.number in QUANTILE_NUMBER_KINDS:
        # Its program is that of the answer, which names the file.
        reply = questions.build_reply(call_name, dummy_dataset, call_settings)
    return reply, request, user_amounts, dummy_dataset


def _build_request(reply: Reply, epsilon: float | None, options: Mapping[str, Any]) -> SelectionRequest:
    """Build the request for the bound of a reply on a made-up table.

    Raises:
        InvalidInput: Nothing needs to be selected, or a public number is missing.
    """
    has_private_parameters = isinstance(reply.parameters, PrivateParameters)
    if reply.data is None or (reply.answer.setting is None and not has_private_parameters):
        raise refuse("there is no private draw for this answer")
    if epsilon is None and isinstance(reply.parameters, PrivateParameters):
        epsilon = reply.parameters.selection_epsilon
        options = {"is_total_epsilon": reply.parameters.is_total_epsilon, **options}
    selection_settings = SelectionSettings(**options if epsilon is None else {"epsilon": epsilon, **options})
    request = selection.build_request(reply.answer, reply.data, selection_settings)
    if request is None:
        no_draw_remedy = "A bound that is read off these numbers alone needs no draw"
        raise refuse("how many rows users have is public here", remedy=no_draw_remedy)
    if isinstance(request, MissingInput):
        missing_settings_text = " ".join(f"{setting_name}=…" for setting_name in request.setting_names)
        raise refuse(to_plain_text(request.sentence).rstrip("."), remedy=missing_settings_text)
    return request


def _read_amounts(data: Any, columns: dict[str, Any], request: SelectionRequest) -> UserAmounts:
    """Read the rows or amounts of each user that a private selection is made from, out of any accepted kind of data.

    ``columns`` has the columns by argument, and how the data are read: ``missing``, ``sheet`` and ``separator``. With
    a `Dataset` or a histogram it is not used.
    """
    pair_problem = request.problem if isinstance(request.problem, PrivatePairProblem) else None
    is_sum_per_group = pair_problem is not None and pair_problem.parameters.statistic is Statistic.SUM
    is_range = request.number is NumberPair.RANGE
    if isinstance(data, Dataset):
        return get_user_amounts(data)
    if isinstance(data, ContributionHistogram):
        return UserAmounts(data)
    user_columns, group_columns, value_column = columns["user"], columns["group"], columns["value"]
    periods = build_periods(*(columns.get(name) for name in call_description.PERIOD_ARGUMENTS[1:]))
    filters = parse_filters(columns.get("filters"))
    named_columns = [*user_columns, *group_columns, *([value_column] if value_column is not None else [])]
    named_columns += [*([] if periods is None else [periods.column]), *(f.column for f in filters)]
    files: list[File] = [Path(path) for path in list_paths(data) or ()]
    file_names: list[str] | None = None
    if is_table(data):
        frame_bytes = write_parquet(data, named_columns, empties_cells=True)
        files, file_names = [MemoryFile(frame_bytes)], [FRAME_FILE]
    if not files:
        if (
            isinstance(data, Mapping) and named_columns
        ):  # Read entry by entry, lists of cells would be no users.
            table_remedy = "Take a table, such as pandas.DataFrame(…), or name no column"
            raise refuse(
                "a dict holds the number of rows of each user, and has no columns", remedy=table_remedy
            )
        return UserAmounts(_build_from_counts(data))
    if not user_columns:
        try:
            return get_user_amounts(to_dataset(data, value=value_column, group=group_columns or None))
        except InvalidInput:
            no_user_message = "the data cannot be read without a column of users"
            raise refuse(no_user_message, remedy="Say which column names the user: user=…") from None
    missing = columns.get("missing")
    reads_values = is_sum_per_group or is_range or request.number is OtherBound.TOTAL or missing is not None
    roles = Roles.of_events(
        user_columns,
        value_column if reads_values else None,
        () if pair_problem is None else group_columns,
        missing=missing,
        yes=columns.get("yes") if reads_values else None,
        periods=periods,
        filters=filters,
    )
    options: dict[str, Any] = {name: columns.get(name) or "" for name in ("sheet", "separator")}
    user_amounts = read_user_amounts(files, file_names, roles, named_columns, keeps_rows=is_range, **options)
    return get_user_amounts(user_amounts) if isinstance(user_amounts, Dataset) else user_amounts


def _build_from_counts(entered_counts: Any) -> ContributionHistogram:
    """Build the histogram from numbers of rows per user, in order or by user.

    Entries below 1 and those that are no number are left out, and others are rounded down; without any it is the
    histogram of no users. Every entry is read by itself, so that no user decides about another one's.

    Raises:
        InvalidInput: The data are neither a list, nor a dict, nor an array of one dimension.
    """
    entries = list_counts(entered_counts)
    counts = np.fromiter(map(_read_count, entries), np.float64, len(entries))
    counts = np.floor(np.minimum(counts[counts >= 1.0], MAX_SIZE))  # NaN is not.
    return ContributionHistogram.from_counts(counts) if counts.size else ContributionHistogram.nobody()


def _read_count(entry: Any) -> float:
    """Return an entry of a list of counts as a number, infinite beyond float64; NaN if it is none."""
    try:
        return float(entry)
    except OverflowError:
        return math.inf if entry > 0 else math.nan
    except (TypeError, ValueError):
        return math.nan
