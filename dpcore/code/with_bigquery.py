"""The release for BigQuery (GoogleSQL): ``SELECT WITH DIFFERENTIAL_PRIVACY``, written by ``with_bigquery.sql.jinja``.

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
from dpcore.code.common import quote_sql_name
from dpcore.code.release_spec import GROUP_QUANTITIES, VALUE_QUANTITIES, Code, Quantity, ReleaseSpec
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from dpcore.data.row_filter import fold_text

LIBRARY_NAME = "BigQuery"
RELATION_SENTENCE = "Neighbouring data differ by one privacy unit, added or removed with all its rows."
_LARGEST_VALUE = 1e100
"""Larger amounts, infinities and NaN are not counted as numbers: their sums and squares would not be finite."""
_SAMPLED_ROWS_SENTENCE = (
    "BigQuery has no bound on rows per user. The first statement draws the rows at random; what BigQuery's guarantee "
    "rests on is contribution_bounds_per_group in the second, which clamps what a user adds, whatever the first does."
)

NO_BINS_SENTENCE = (
    "BigQuery's statements make no bins, periods and filters; plain Python does. Or add a column with the bin or the "
    "period of each row, filter the rows in a view, and list the names of the bins."
)
_FINDS_GROUPS_SENTENCE = (
    "BigQuery finds the groups itself, privately; the page takes the list of groups as public. If the page has the "
    "list, rows of other groups are left out first."
)


def makes_bins(spec: ReleaseSpec) -> bool:
    """Return True if groups are bins of numbers or dates, rows are filtered, or the unit has a period of time."""
    return (bool(spec.edges) and spec.quantity in GROUP_QUANTITIES) or bool(
        spec.reading_layout.periods or spec.reading_layout.filters
    )


def is_of_one_column(spec: ReleaseSpec) -> bool:
    """Return True if one column holds the values and names the groups."""
    is_named_twice = spec.value_column == spec.group_column
    return is_named_twice and spec.quantity in GROUP_QUANTITIES and spec.quantity in VALUE_QUANTITIES


def write_program(spec: ReleaseSpec) -> Code:
    """Write the statements of a release, or only the sentences on why there are none."""
    refusals = with_selection.list_refusals(spec, Program.BIGQUERY)
    if spec.selection is not None and not refusals:
        # One budget for the query, which gives half of it to a hidden count of users.
        total_epsilon = spec.epsilon + spec.selection.epsilon
        spec = replace(spec, epsilon=total_epsilon, delta=spec.selection.delta, selection=None)
    has_query = spec.is_in_every_library and not (makes_bins(spec) or is_of_one_column(spec) or refusals)
    body_text = write_statements(spec) if has_query else ""
    sentences = refusals or list_differences(spec)
    return common.assemble_code(spec, LIBRARY_NAME, RELATION_SENTENCE, sentences, body_text, language="sql")


def list_differences(spec: ReleaseSpec) -> list[str]:
    """List sentences on what differs from the page, or on why there are no statements."""
    quantity, is_smooth = spec.quantity, spec.threshold is not None
    if quantity is Quantity.CLASSIFIER:
        return [common.NO_TRAINING_SENTENCE.format(library="BigQuery")]
    if spec.clamps_users:
        return [common.CLAMPS_ROWS_SENTENCE.format(library="BigQuery")]
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
    if spec.max_norm is not None:
        return [
            "BigQuery bounds groups and amounts one by one, not the norm of a user's whole vector. The closest "
            "option is the pair of bounds; plain Python has the norm."
        ]
    if makes_bins(spec):
        return [NO_BINS_SENTENCE]
    if is_of_one_column(spec):
        return ["BigQuery's statements need a column of groups beside that of the values: add a copy of it."]
    differences = [common.describe_public_counts(spec, has_tree=True), common.describe_replacement(spec)]
    differences += [*_list_reading_sentences(spec), *_list_bound_sentences(spec)]
    if spec.delta is None:
        differences.append(
            f"BigQuery asks for a delta, which this question does not have: {common.DELTA_WHERE_NONE!r} stands in "
            "its place. Set it yourself, far below 1 / (number of users)."
        )
    if spec.noise is NoiseKind.GAUSSIAN:
        differences.append("BigQuery chooses the noise itself; the bound was chosen for Gaussian noise.")
    split_cost_text = "which costs part of the budget: more noise than here"
    return [*differences, f"BigQuery also leaves out groups with few users, {split_cost_text}."]


def _list_reading_sentences(spec: ReleaseSpec) -> list[str]:
    """List sentences on how the statements read rows and values."""
    notes = ["The statements were checked for their syntax and their options; nobody ran them in BigQuery."]
    if spec.reading_layout.missing_is_a_user:
        notes.append("Rows that name no user are left out here; in Sweet Spot they count as one user.")
    if spec.reading_layout.dropped_column:
        notes.append(
            "Rows whose value is no number up to ±1e100 are left out, as on the page. Load the column as numbers."
        )
    elif spec.quantity in VALUE_QUANTITIES:
        notes.append(
            f"A value that is no number up to ±1e100 (NULL, other text than yes or no, marks between thousands) counts "
            f"as {_choose_replacement(spec)!r}, so that no cell stops the query. Load the column as numbers."
        )
    return notes


def _list_bound_sentences(spec: ReleaseSpec) -> list[str]:
    """List sentences on how the statements bound what a user adds."""
    quantity = spec.quantity
    if quantity is Quantity.MEAN and spec.threshold is not None:
        return [
            "BigQuery has no weights per user. The first statement adds up each user's rows with their weights; the "
            "guarantee rests on contribution_bounds_per_group, which clamps the result."
        ]
    if quantity is Quantity.MEAN:
        average_sentence_part = "in BigQuery it averages users' averages, which is another quantity"
        return [_SAMPLED_ROWS_SENTENCE, f"AVG is not used: {average_sentence_part}."]
    if quantity is Quantity.COUNT:
        return [
            "BigQuery has no bound on rows per user, but clamping a user's count at it gives the same count. "
            "max_groups_contributed is about groups, of which there is one here."
        ]
    if quantity is Quantity.GROUP_MEANS:
        return [
            _FINDS_GROUPS_SENTENCE,
            common.SPLIT_MEANS_SENTENCE,
            "AVG is not used: in BigQuery it averages users' averages, which is another quantity. The first statement "
            "draws the rows; the guarantee rests on contribution_bounds_per_group, which clamps what a user adds.",
        ]
    if quantity in GROUP_QUANTITIES:
        return [_FINDS_GROUPS_SENTENCE]
    if quantity is Quantity.QUANTILE:
        return [
            "You cannot choose a bound on rows. ZetaSQL, whose language BigQuery has, keeps at most 5 rows per user "
            "at random. It adds noise for 5 rows even if the first statement leaves fewer. Each percentile gets ε / "
            "(percentiles + 1); the rest goes to a hidden count of users."
        ]
    return []


def write_statements(spec: ReleaseSpec) -> str:
    """Write the statements of a release that BigQuery has."""
    unit_columns_sql = [quote_sql_name(name) for name in spec.privacy_unit]
    yes_text = spec.reading_layout.yes_text if spec.value_column == spec.reading_layout.share_column else ""
    group_sql = quote_sql_name(spec.group_column)
    columns_sql = [*unit_columns_sql, group_sql] if spec.quantity in GROUP_QUANTITIES else unit_columns_sql
    value_sql = quote_sql_name(spec.value_column)
    groups_sql = ", ".join(quote_sql_name(name, '"') for name in spec.groups)
    needs_values, dropped_column = spec.quantity in VALUE_QUANTITIES, spec.reading_layout.dropped_column
    is_mean = spec.quantity in (Quantity.MEAN, Quantity.GROUP_MEANS)
    mean_template_values = _list_mean_values(spec) if is_mean else {}
    return common.render_program(
        "with_bigquery.sql",
        spec,
        delta=spec.delta if spec.delta is not None else common.DELTA_WHERE_NONE,
        unit=unit_columns_sql[0]
        if len(unit_columns_sql) == 1
        else f"TO_JSON_STRING(STRUCT({', '.join(unit_columns_sql)}))",
        unit_columns=", ".join(unit_columns_sql),
        has_unit=" AND ".join(f"{name} IS NOT NULL" for name in unit_columns_sql),
        table=quote_sql_name(spec.bigquery_table),
        named=[name for name in dict.fromkeys(columns_sql) if not (needs_values and name == value_sql)],
        value=value_sql,
        largest=_LARGEST_VALUE,
        dropped=bool(dropped_column),
        yes=quote_sql_name(fold_text(yes_text), '"') if yes_text else "",
        # Rows without a number are dropped by the column of the values, so there is one column of numbers.
        number_column=quote_sql_name(dropped_column) if dropped_column else value_sql if needs_values else "",
        unread=_choose_replacement(spec),
        group=group_sql,
        in_list=f" AND {group_sql} IN ({groups_sql})" if spec.groups else "",
        public_rows=common.PUBLIC_ROWS_SENTENCE,
        **mean_template_values,
    )


def _choose_replacement(spec: ReleaseSpec) -> float:
    """Return the number that replaces a value that is no number: the page's constant, the lower end, or 0."""
    if spec.reading_layout.missing_constant is not None:
        return spec.reading_layout.missing_constant
    return 0.0 if spec.lower is None or spec.max_total is not None else spec.lower


def _list_mean_values(spec: ReleaseSpec) -> dict[str, float | str]:
    """Return the template's values of a mean, by name: what is subtracted from values, and limits of the rest.

    The lower end is subtracted if counts are public; else the middle, which halves the sensitivity.
    """
    assert spec.lower is not None
    assert spec.upper is not None
    origin = spec.lower if spec.has_public_counts else spec.lower + (spec.upper - spec.lower) / 2.0
    value_sql = quote_sql_name(spec.value_column)
    clamped_sql = f"LEAST(GREATEST({value_sql}, {spec.lower!r}), {spec.upper!r})"
    max_weight: float | int = spec.max_rows if spec.max_rows is not None else spec.threshold or 0.0
    return {
        "start": origin,
        "shifted": clamped_sql
        if origin == 0.0
        else f"{clamped_sql} - {f'({origin!r})' if origin < 0.0 else repr(origin)}",
        "low": max_weight * (spec.lower - origin) + 0.0,  # No negative zero.
        "high": max_weight * (spec.upper - origin),
    }
