"""The choice for BigQuery (GoogleSQL): ``SELECT WITH DIFFERENTIAL_PRIVACY``.

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

from dpcore.code import common
from dpcore.code.choice import Choice, Code, Released
from dpcore.code.quote import sql_name, sql_table
from dpcore.common.noise_error import NoiseKind

LIBRARY = "BigQuery"
RELATION = "neighbouring data differ by one privacy unit, added or removed with all its rows"
_SAMPLED = (
    "BigQuery has no bound on rows per user. The first statement draws the rows at random; what BigQuery's guarantee "
    "rests on is contribution_bounds_per_group in the second, which clamps what a user adds, whatever the first does."
)


def write(choice: Choice) -> Code:
    """The statements, or sentences that say why there are none."""
    quantile_of_weights = choice.released is Released.QUANTILE and choice.threshold is not None
    body = [] if quantile_of_weights or choice.released not in _BODIES else _BODIES[choice.released](choice)
    return common.put_together(choice, LIBRARY, RELATION, _differences(choice), body, language="sql")


def _differences(choice: Choice) -> list[str]:
    kind, smooth = choice.released, choice.threshold is not None
    if kind is Released.QUANTILE and smooth:
        return [
            "PERCENTILE_CONT counts all rows alike, so smooth weights cannot be expressed. What comes "
            "nearest is a cap on rows per user in a statement before; plain Python has the smooth weights."
        ]
    if kind is Released.TASK_WEIGHTS:
        return [
            "BigQuery has no weights per group. What comes nearest is a bound on tasks per user, "
            "max_groups_contributed; plain Python has the task weights."
        ]
    if kind is Released.COEFFICIENTS:
        return [
            "BigQuery bounds each sum by itself, while here all coefficients share one bound on a user's weight. Plain "
            "Python has the weights, with OpenDP's noise."
        ]
    if kind is Released.MODEL:
        return [
            "BigQuery ML trains without differential privacy. The statement caps; the privacy is that of "
            "the learner you hand the rows to, which must count a user's rows together.",
        ]
    found = [common.public_counts_difference(choice)]
    found += _about_bounds(choice)
    if choice.delta is None:
        found.append(
            f"BigQuery asks for a delta, which this question does not have: {common.DELTA_WHERE_NONE!r} stands in "
            "its place. Set it yourself, far below 1 / (number of users)."
        )
    if choice.noise is NoiseKind.GAUSSIAN:
        found.append("BigQuery chooses the noise itself; the bound was chosen for Gaussian noise.")
    found.append(
        "BigQuery also leaves out groups with few users, which costs part of the budget: more noise than here."
    )
    return found


def _about_bounds(choice: Choice) -> list[str]:
    kind = choice.released
    if kind is Released.MEAN and choice.threshold is not None:
        return [
            "BigQuery has no weights per user. The first statement adds up each user's rows with their weights; the "
            "guarantee rests on contribution_bounds_per_group, which clamps the result."
        ]
    if kind is Released.MEAN:
        average = "AVG is not used: in BigQuery it averages users' averages, which is another quantity."
        return [_SAMPLED, average]
    if kind is Released.COUNT:
        return [
            "BigQuery has no bound on rows per user, but clamping a user's count at it gives the same count. "
            "max_groups_contributed is about groups, of which there is one here."
        ]
    if kind is Released.GROUP_COUNTS:
        return ["BigQuery finds the groups itself, privately; the page takes the list of groups as public."]
    if kind is Released.QUANTILE:
        return [
            "BigQuery has no bound on rows per user, and PERCENTILE_CONT takes bounds on values only: how "
            "many rows of a user it uses is its own affair and not documented. The first statement caps "
            "them, which its guarantee does not know of."
        ]
    return []


def _unit(choice: Choice) -> str:
    names = [sql_name(name) for name in choice.privacy_unit]
    return names[0] if len(names) == 1 else f"TO_JSON_STRING(STRUCT({', '.join(names)}))"


def _whose(choice: Choice) -> str:
    return " AND ".join(f"{sql_name(name)} IS NOT NULL" for name in choice.privacy_unit)


def _private(choice: Choice, groups: int, columns: list[str], source: str, end: str = "") -> list[str]:
    delta = choice.delta if choice.delta is not None else common.DELTA_WHERE_NONE
    return [
        "SELECT",
        "  WITH DIFFERENTIAL_PRIVACY OPTIONS(",
        f"    epsilon = {choice.epsilon!r},",
        f"    delta = {delta!r},",
        f"    max_groups_contributed = {groups},",
        "    privacy_unit_column = privacy_unit",
        "  )",
        *(f"  {column}{',' if column is not columns[-1] else ''}" for column in columns),
        f"FROM {source}{end};",
    ]


def _as_unit(choice: Choice, columns: list[str], where: str = "") -> list[str]:
    listed = ", ".join([f"{_unit(choice)} AS privacy_unit", *columns])
    return [f"SELECT {listed}", f"FROM {sql_table(choice.table)}", f"WHERE {_whose(choice)}{where}"]


def _lot(choice: Choice) -> str:
    unit = ", ".join(sql_name(name) for name in choice.privacy_unit)
    return f"QUALIFY ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY RAND()) <= {choice.max_rows!r}"


def _number(choice: Choice) -> str:
    return f"CAST({sql_name(choice.value_column)} AS FLOAT64)"


def _shifted(choice: Choice, start: float) -> str:
    inside = f"LEAST(GREATEST({_number(choice)}, {choice.lower!r}), {choice.upper!r})"
    return inside if start == 0.0 else f"{inside} - {_signed(start)}"


def _signed(value: float) -> str:
    return f"({value!r})" if value < 0.0 else repr(value)


def _mean(choice: Choice) -> list[str]:
    assert choice.lower is not None
    assert choice.upper is not None
    start = choice.lower if choice.public_counts else choice.lower + (choice.upper - choice.lower) / 2.0
    value, moved = _shifted(choice, start), f"{start!r} + " if start else ""
    bound: float | int = choice.max_rows if choice.max_rows is not None else choice.threshold or 0.0
    low, high = bound * (choice.lower - start), bound * (choice.upper - start)
    present = f" AND {sql_name(choice.value_column)} IS NOT NULL"
    if choice.max_rows is not None:
        made = ["CREATE TEMP TABLE kept AS", *_as_unit(choice, [f"{value} AS value"], present)]
        made.append(f"{_lot(choice)};")
        rows, weight = (
            "COUNT(*)",
            f"COUNT(*, contribution_bounds_per_group => (0, {choice.max_rows!r})) AS kept_rows",
        )
    else:
        weight_of = f"LEAST(1.0, {choice.threshold!r} / COUNT(*))"
        made = [
            "CREATE TEMP TABLE kept AS",
            "SELECT",
            "  privacy_unit,",
            f"  {weight_of} * SUM(value) AS value,",
            f"  {weight_of} * COUNT(*) AS weight",
            "FROM (",
            *(f"  {line}" for line in _as_unit(choice, [f"{value} AS value"], present)),
            ")",
            "GROUP BY privacy_unit;",
        ]
        rows = "SUM(weight)"
        weight = f"SUM(weight, contribution_bounds_per_group => (0.0, {choice.threshold!r})) AS kept_rows"
    total = f"SUM(value, contribution_bounds_per_group => ({low + 0.0!r}, {high!r})) AS total"
    if choice.public_counts:
        lines = [*made, "", *_private(choice, 1, [total], "kept"), ""]
        lines += [f"-- {common.PUBLIC_ROWS}"]
        lines += [f"SELECT {rows} AS kept_rows FROM kept;", f"-- The mean is {moved}total / kept_rows."]
    else:
        lines = [*made, "", *_private(choice, 1, [total, weight], "kept")]
        lines += [f"-- The mean is {moved}total / kept_rows."]
    return lines


def _sum(choice: Choice) -> list[str]:
    bounds = f"contribution_bounds_per_group => ({choice.min_total!r}, {choice.max_total!r})"
    source = ["(", *(f"  {line}" for line in _as_unit(choice, [f"{_number(choice)} AS value"])), ")"]
    return _private(choice, 1, [f"SUM(value, {bounds}) AS total"], "\n".join(source))


def _count(choice: Choice) -> list[str]:
    bounds = f"contribution_bounds_per_group => (0, {choice.max_rows!r})"
    source = ["(", *(f"  {line}" for line in _as_unit(choice, [])), ")"]
    return _private(choice, 1, [f"COUNT(*, {bounds}) AS row_count"], "\n".join(source))


def _group_counts(choice: Choice) -> list[str]:
    assert choice.max_groups is not None
    group = f"{sql_name(choice.group_column)} AS group_of"
    selected = _as_unit(choice, [group], f" AND {sql_name(choice.group_column)} IS NOT NULL")
    selected[0] = selected[0].replace("SELECT ", "SELECT DISTINCT ", 1)
    source = ["(", *(f"  {line}" for line in selected), ")"]
    columns = ["group_of", "COUNT(*, contribution_bounds_per_group => (0, 1)) AS users"]
    return _private(choice, choice.max_groups, columns, "\n".join(source), "\nGROUP BY group_of")


def _quantile(choice: Choice) -> list[str]:
    present = f" AND {sql_name(choice.value_column)} IS NOT NULL"
    made = ["CREATE TEMP TABLE kept AS", *_as_unit(choice, [f"{_number(choice)} AS value"], present)]
    bounds = f"contribution_bounds_per_row => ({choice.lower!r}, {choice.upper!r})"
    columns = [
        f"PERCENTILE_CONT(value, {q!r}, {bounds}) AS quantile_{i}"
        for i, q in enumerate(choice.quantiles, start=1)
    ]
    return [*made, f"{_lot(choice)};", "", *_private(choice, 1, columns, "kept")]


def _model(choice: Choice) -> list[str]:
    return [
        "CREATE TEMP TABLE kept AS",
        "SELECT *",
        f"FROM {sql_table(choice.table)}",
        f"WHERE {_whose(choice)}",
        f"{_lot(choice)};",
    ]


_BODIES = {
    Released.MEAN: _mean,
    Released.SUM: _sum,
    Released.COUNT: _count,
    Released.GROUP_COUNTS: _group_counts,
    Released.QUANTILE: _quantile,
    Released.MODEL: _model,
}
