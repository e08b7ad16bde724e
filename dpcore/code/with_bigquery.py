"""The choice for BigQuery (GoogleSQL): ``SELECT WITH DIFFERENTIAL_PRIVACY``, written by ``with_bigquery.sql.jinja``.

Names and meanings from https://cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax#dp_clause (options
``epsilon``, ``delta``, ``max_groups_contributed``, ``privacy_unit_column``),
https://cloud.google.com/bigquery/docs/reference/standard-sql/aggregate-dp-functions (``COUNT`` and ``SUM`` take
``contribution_bounds_per_group``, which clamps what a privacy unit adds to a group; ``PERCENTILE_CONT`` takes
``contribution_bounds_per_row``; ``AVG`` averages users' averages) and
https://cloud.google.com/bigquery/docs/differential-privacy (all read 2026-11-21; BigQuery has no versions).
Checked for syntax, not run.

A bound on rows is never ``max_groups_contributed``: that counts groups. BigQuery has no bound on rows; it clamps what
a user adds to a group, which for a count is the same thing. The analyser behind GoogleSQL knows an option
``max_rows_contributed`` behind a language feature of its own (DIFFERENTIAL_PRIVACY_MAX_ROWS_CONTRIBUTED;
github.com/google/zetasql, zetasql/analyzer/rewriters/anonymization_rewriter.cc), where it excludes
``max_groups_contributed``. BigQuery's pages above do not name it, so no program uses it.
"""

from __future__ import annotations

from dataclasses import replace

from dpcore.code import common, with_selection
from dpcore.code.choice import OF_VALUES, PER_GROUP, Choice, Code, Quantity
from dpcore.code.common import quote_sql_name
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from dpcore.data.row_filter import fold_text

LIBRARY = "BigQuery"
RELATION = "Neighbouring data differ by one privacy unit, added or removed with all its rows."
_LARGEST = 1e100
"""Larger amounts, infinities and NaN are not counted as numbers: their sums and squares would not be finite."""
_SAMPLED = (
    "BigQuery has no bound on rows per user. The first statement draws the rows at random; what BigQuery's guarantee "
    "rests on is contribution_bounds_per_group in the second, which clamps what a user adds, whatever the first does."
)

NO_BINS = (
    "BigQuery's statements make no bins, periods and filters; plain Python does. Or add a column with the bin or the "
    "period of each row, filter the rows in a view, and list the names of the bins."
)
_FINDS_GROUPS = (
    "BigQuery finds the groups itself, privately; the page takes the list of groups as public. If the page has the "
    "list, rows of other groups are left out first."
)


def makes_bins(choice: Choice) -> bool:
    """Return True if groups are bins of numbers or dates, rows are filtered, or the unit has a period of time."""
    return (bool(choice.edges) and choice.quantity in PER_GROUP) or bool(
        choice.read_as.periods or choice.read_as.filters
    )


def is_of_one_column(choice: Choice) -> bool:
    """Return True if one column holds the values and names the groups."""
    is_named_twice = choice.value_column == choice.group_column
    return is_named_twice and choice.quantity in PER_GROUP and choice.quantity in OF_VALUES


def write(choice: Choice) -> Code:
    """Write the statements of a release, or only the sentences on why there are none."""
    refusals = with_selection.list_refusals(choice, Program.BIGQUERY)
    if choice.selection is not None and not refusals:
        # One budget for the query, which gives half of it to a hidden count of users.
        total_epsilon = choice.epsilon + choice.selection.epsilon
        choice = replace(choice, epsilon=total_epsilon, delta=choice.selection.delta, selection=None)
    has_query = choice.is_in_every_library and not (
        makes_bins(choice) or is_of_one_column(choice) or refusals
    )
    body_text = write_statements(choice) if has_query else ""
    sentences = refusals or list_differences(choice)
    return common.assemble(choice, LIBRARY, RELATION, sentences, body_text, language="sql")


def list_differences(choice: Choice) -> list[str]:
    """List sentences on what differs from the page, or on why there are no statements."""
    quantity, is_smooth = choice.quantity, choice.threshold is not None
    if quantity is Quantity.CLASSIFIER:
        return [common.NOWHERE.format(library="BigQuery")]
    if choice.clamps_users:
        return [common.CLAMPS_ROWS.format(library="BigQuery")]
    if quantity is Quantity.QUANTILE and is_smooth:
        return [
            "PERCENTILE_CONT counts all rows alike, so smooth weights cannot be expressed. The closest "
            "option is a bound on rows per user in a statement before; plain Python has the smooth weights."
        ]
    if quantity is Quantity.TASK_WEIGHTS:
        return [
            "BigQuery has no weights per group. The closest option is a bound on tasks per user, "
            "max_groups_contributed; plain Python has the task weights."
        ]
    if quantity is Quantity.COEFFICIENTS:
        return [
            "BigQuery bounds each sum by itself, while here all coefficients share one bound on a user's weight. Plain "
            "Python has the weights, with OpenDP's noise."
        ]
    if quantity is Quantity.MODEL:
        return [
            "BigQuery ML trains without differential privacy. The statement keeps the bound; the privacy is that of "
            "the learner you hand the rows to, which must count a user's rows together."
        ]
    if choice.max_norm is not None:
        return [
            "BigQuery bounds groups and amounts one by one, not the norm of a user's whole vector. The closest "
            "option is the pair of bounds; plain Python has the norm."
        ]
    if makes_bins(choice):
        return [NO_BINS]
    if is_of_one_column(choice):
        return ["BigQuery's statements need a column of groups beside that of the values: add a copy of it."]
    differences = [common.describe_public_counts(choice), common.describe_replacement(choice)]
    differences += [*_describe_reading(choice), *_describe_bounds(choice)]
    if choice.delta is None:
        differences.append(
            f"BigQuery asks for a delta, which this question does not have: {common.DELTA_WHERE_NONE!r} stands in "
            "its place. Set it yourself, far below 1 / (number of users)."
        )
    if choice.noise is NoiseKind.GAUSSIAN:
        differences.append("BigQuery chooses the noise itself; the bound was chosen for Gaussian noise.")
    cost_text = "which costs part of the budget: more noise than here"
    return [*differences, f"BigQuery also leaves out groups with few users, {cost_text}."]


def _describe_reading(choice: Choice) -> list[str]:
    """List sentences on how the statements read rows and values."""
    notes = ["The statements were checked for their syntax and their options; nobody ran them in BigQuery."]
    if choice.read_as.missing_is_a_user:
        notes.append("Rows that name no user are left out here; in Sweet Spot they count as one user.")
    if choice.read_as.dropped_column:
        notes.append(
            "Rows whose value is no number up to ±1e100 are left out, as on the page. Load the column as numbers."
        )
    elif choice.quantity in OF_VALUES:
        notes.append(
            f"A value that is no number up to ±1e100 (NULL, other text than yes or no, marks between thousands) counts "
            f"as {_choose_replacement(choice)!r}, so that no cell stops the query. Load the column as numbers."
        )
    return notes


def _describe_bounds(choice: Choice) -> list[str]:
    """List sentences on how the statements bound what a user adds."""
    quantity = choice.quantity
    if quantity is Quantity.MEAN and choice.threshold is not None:
        return [
            "BigQuery has no weights per user. The first statement adds up each user's rows with their weights; the "
            "guarantee rests on contribution_bounds_per_group, which clamps the result."
        ]
    if quantity is Quantity.MEAN:
        average_text = "in BigQuery it averages users' averages, which is another quantity"
        return [_SAMPLED, f"AVG is not used: {average_text}."]
    if quantity is Quantity.COUNT:
        return [
            "BigQuery has no bound on rows per user, but clamping a user's count at it gives the same count. "
            "max_groups_contributed is about groups, of which there is one here."
        ]
    if quantity is Quantity.GROUP_MEANS:
        return [
            _FINDS_GROUPS,
            common.SPLIT_MEANS,
            "AVG is not used: in BigQuery it averages users' averages, which is another quantity. The first statement "
            "draws the rows; the guarantee rests on contribution_bounds_per_group, which clamps what a user adds.",
        ]
    if quantity in PER_GROUP:
        return [_FINDS_GROUPS]
    if quantity is Quantity.QUANTILE:
        return [
            "You cannot choose a bound on rows. ZetaSQL, whose language BigQuery has, keeps at most 5 rows per user "
            "at random. It adds noise for 5 rows even if the first statement leaves fewer. Each percentile gets ε / "
            "(percentiles + 1); the rest goes to a hidden count of users."
        ]
    return []


def write_statements(choice: Choice) -> str:
    """Write the statements of a release that BigQuery has."""
    unit_columns_sql = [quote_sql_name(name) for name in choice.privacy_unit]
    yes = choice.read_as.yes_text if choice.value_column == choice.read_as.share_column else ""
    group_sql = quote_sql_name(choice.group_column)
    columns_sql = [*unit_columns_sql, group_sql] if choice.quantity in PER_GROUP else unit_columns_sql
    value_sql = quote_sql_name(choice.value_column)
    groups_sql = ", ".join(quote_sql_name(name, '"') for name in choice.groups)
    needs_values, dropped_column = choice.quantity in OF_VALUES, choice.read_as.dropped_column
    is_mean = choice.quantity in (Quantity.MEAN, Quantity.GROUP_MEANS)
    mean_template_values = _list_mean_values(choice) if is_mean else {}
    return common.render_program(
        "with_bigquery.sql",
        choice,
        delta=choice.delta if choice.delta is not None else common.DELTA_WHERE_NONE,
        unit=unit_columns_sql[0]
        if len(unit_columns_sql) == 1
        else f"TO_JSON_STRING(STRUCT({', '.join(unit_columns_sql)}))",
        unit_columns=", ".join(unit_columns_sql),
        has_unit=" AND ".join(f"{name} IS NOT NULL" for name in unit_columns_sql),
        table=quote_sql_name(choice.bigquery_table),
        named=[name for name in dict.fromkeys(columns_sql) if not (needs_values and name == value_sql)],
        value=value_sql,
        largest=_LARGEST,
        dropped=bool(dropped_column),
        yes=quote_sql_name(fold_text(yes), '"') if yes else "",
        # Rows without a number are dropped by the column of the values, so there is one column of numbers.
        number_column=quote_sql_name(dropped_column) if dropped_column else value_sql if needs_values else "",
        unread=_choose_replacement(choice),
        group=group_sql,
        in_list=f" AND {group_sql} IN ({groups_sql})" if choice.groups else "",
        public_rows=common.PUBLIC_ROWS,
        **mean_template_values,
    )


def _choose_replacement(choice: Choice) -> float:
    """Return the number that replaces a value that is no number: the page's constant, the lower end, or 0."""
    if choice.read_as.missing_constant is not None:
        return choice.read_as.missing_constant
    return 0.0 if choice.lower is None or choice.max_total is not None else choice.lower


def _list_mean_values(choice: Choice) -> dict[str, float | str]:
    """Return the template's values of a mean, by name: what is subtracted from values, and limits of the rest.

    The lower end is subtracted if counts are public; else the middle, which halves the sensitivity.
    """
    assert choice.lower is not None
    assert choice.upper is not None
    start = choice.lower if choice.has_public_counts else choice.lower + (choice.upper - choice.lower) / 2.0
    value_sql = quote_sql_name(choice.value_column)
    clamped_sql = f"LEAST(GREATEST({value_sql}, {choice.lower!r}), {choice.upper!r})"
    max_weight: float | int = choice.max_rows if choice.max_rows is not None else choice.threshold or 0.0
    return {
        "start": start,
        "shifted": clamped_sql
        if start == 0.0
        else f"{clamped_sql} - {f'({start!r})' if start < 0.0 else repr(start)}",
        "low": max_weight * (choice.lower - start) + 0.0,  # No negative zero.
        "high": max_weight * (choice.upper - start),
    }
