"""The choice for Tumult Analytics, on Spark.

Names from the API reference of tmlt.analytics 0.20 (https://docs.tmlt.dev/analytics/latest/reference/) and from
github.com/opendp/tumult-analytics, src/tmlt/analytics/constraints/_truncation.py (``MaxRowsPerID(max)``,
``MaxGroupsPerID(grouping_column, max)``, ``MaxRowsPerGroupPerID(grouping_column, max)``), protected_change.py
(``AddRowsWithID``), session.py and query_builder.py (read 2026-11-21); compared with the wheel
of tmlt.analytics 0.21.0 as well, with which the programs were run by hand on the sample events.
"""

from __future__ import annotations

from dpcore.code import classifier, common
from dpcore.code.choice import PER_GROUP, Choice, Code, Released
from dpcore.code.quote import python_text, spark_name
from dpcore.common.noise_error import NoiseKind

LIBRARY = "Tumult Analytics 0.20"
RELATION = "neighbouring data differ by one user, added or removed with all their rows (AddRowsWithID)"


def write(choice: Choice) -> Code:
    """The program, or sentences that say why there is none."""
    possible = choice.released in _QUERIES and not (
        (choice.released is Released.QUANTILE and choice.threshold is not None) or choice.max_norm is not None
    )
    body = _program(choice) if possible else []
    if choice.released is Released.MODEL:
        body = _model(choice)
    return common.put_together(choice, LIBRARY, RELATION, _differences(choice), body)


def _differences(choice: Choice) -> list[str]:
    kind, smooth = choice.released, choice.threshold is not None
    if kind is Released.CLASSIFIER:
        return [classifier.NOWHERE.format(library="Tumult")]
    found = [common.public_counts_difference(choice), common.gaussian_difference(choice)]
    before = (
        "before the session, one row per user. The session then bounds that one row: its guarantee covers the result, "
        "since adding or removing a user adds or removes their one row."
    )
    if kind is Released.SUM:
        found.append(f"Tumult has no clamp for a user's total. Totals are added up {before}")
    if kind is Released.MEAN and smooth:
        found.append(f"Tumult has no weights per user. Rows are added up with their weights {before}")
    if kind is Released.MEAN and not choice.public_counts:
        found.append(
            "The budget is split between a sum and a count; the page's pair of sums shares one epsilon and "
            "has less noise. Plain Python has that pair."
        )
    if kind is Released.QUANTILE and smooth:
        return [
            "Tumult's quantile counts all rows alike, so smooth weights cannot be expressed. What comes "
            "nearest is a cap on rows per user, MaxRowsPerID; plain Python has the smooth weights."
        ]
    if kind is Released.QUANTILE:
        found.append(
            "Tumult has a quantile mechanism of its own: its error is of the page's order, not the same."
        )
    if kind is Released.MODEL:
        found.append(
            "Tumult trains no models. The code caps in Spark; the privacy is that of the learner you hand the rows to, "
            "which must count a user's rows together."
        )
    if kind is Released.TASK_WEIGHTS:
        found.append(
            "Tumult has no weights per group. What comes nearest is a bound on tasks per user, MaxGroupsPerID; plain "
            "Python has the task weights."
        )
    if kind is Released.COEFFICIENTS:
        found.append(
            "Tumult has no weights per row and coefficient; plain Python has them, with OpenDP's noise."
        )
    if choice.max_norm is not None:
        return [
            "Tumult has no bound on the norm of what a user adds to all groups. What comes nearest is the pair of "
            "bounds, MaxGroupsPerID with MaxRowsPerGroupPerID; plain Python has the norm."
        ]
    if kind in PER_GROUP:
        found += [common.PUBLIC_GROUPS, common.replaced_difference(choice)]
    if kind is Released.GROUP_SUMS:
        found.append(
            "Tumult has no clamp for a user's total in a group. Totals are added up before the session, one row per "
            "user and group, which it then bounds: adding or removing a user adds or removes their rows."
        )
    if kind is Released.GROUP_MEANS:
        found.append(
            "Tumult clamps no mean into the range of values; the page's errors are those of clamped means."
        )
    return found


def _read(choice: Choice) -> str:
    file = python_text(choice.file)
    if common.is_parquet(choice):
        return f"spark.read.parquet({file})"
    return f"spark.read.csv({file}, header=True{common.separator(choice, 'sep')})"


def _events(choice: Choice) -> list[str]:
    units = [f"F.col({spark_name(name)})" for name in choice.privacy_unit]
    unit = units[0]
    if len(units) > 1:
        # A struct is never null, whatever is missing in it.
        named = " & ".join(f"{one}.isNotNull()" for one in units)
        unit = f"F.when({named}, F.to_json(F.struct({', '.join(units)})))"
    lines = [f"events = {_read(choice)}.select(", f'    {unit}.alias("privacy_unit"),']
    value = f'F.col({spark_name(choice.value_column)}).cast("double")'
    if choice.released in _OF_VALUES:
        lines.append(f'    {value}.alias("value"),')
    if choice.released in PER_GROUP:
        lines.append(f'    F.col({spark_name(choice.group_column)}).alias("group"),')
    lines.append(").dropna()")
    if choice.released is Released.MEAN:
        # After dropna: least and greatest skip what is missing, and would put a bound in its place.
        start = "LOWER" if choice.public_counts else "MIDDLE"
        inside = 'F.least(F.greatest(F.col("value"), F.lit(LOWER)), F.lit(UPPER))'
        lines.append(f'events = events.withColumn("value", {inside} - F.lit({start}))')
    if choice.released is Released.SUM:
        lines.append('events = events.groupBy("privacy_unit").agg(F.sum("value").alias("value"))')
    if choice.released is Released.GROUP_SUMS:
        lines.append('events = events.groupBy("privacy_unit", "group").agg(F.sum("value").alias("value"))')
    if choice.threshold is not None:
        lines += [
            'users = events.groupBy("privacy_unit").agg(',
            '    F.least(F.lit(1.0), F.lit(THRESHOLD) / F.count("value")).alias("weight"),',
            '    F.sum("value").alias("total"),',
            '    F.count("value").alias("rows"),',
            ")",
            "# All rows of a user together weigh at most THRESHOLD rows.",
            "events = users.select(",
            '    "privacy_unit",',
            '    (F.col("weight") * F.col("total")).alias("value"),',
            '    (F.col("weight") * F.col("rows")).alias("weight"),',
            ")",
        ]
    return lines


_OF_VALUES = (
    Released.MEAN,
    Released.SUM,
    Released.QUANTILE,
    Released.GROUP_SUMS,
    Released.GROUP_MEANS,
)
_QUERIES = {
    Released.MEAN: "sum",
    Released.SUM: "sum",
    Released.COUNT: "count",
    Released.GROUP_COUNTS: "count",
    Released.GROUP_ROWS: "count",
    Released.GROUP_SUMS: "sum",
    Released.GROUP_MEANS: "average",
    Released.QUANTILE: "quantile",
}


def _constraints(choice: Choice) -> list[tuple[str, str]]:
    """(name, call) of what is enforced."""
    if choice.max_groups is not None:
        return [
            ("MaxGroupsPerID", f'MaxGroupsPerID("group", {choice.max_groups!r})'),
            ("MaxRowsPerGroupPerID", f'MaxRowsPerGroupPerID("group", {choice.max_rows or 1!r})'),
        ]
    rows = choice.max_rows if choice.max_rows is not None else 1
    return [("MaxRowsPerID", f"MaxRowsPerID({rows!r})")]


def _program(choice: Choice) -> list[str]:
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    budget = "RhoZCDPBudget" if gaussian else "PureDPBudget"
    constraints = _constraints(choice)
    names = {"AddRowsWithID", "QueryBuilder", "Session", budget, *(name for name, _ in constraints)}
    if choice.max_groups is not None:
        names.add("KeySet")
    lines = ["import math", ""] if gaussian else []
    lines += [
        "from pyspark.sql import SparkSession",
        "from pyspark.sql import functions as F",
        "from tmlt.analytics import (",
        *(f"    {name}," for name in sorted(names)),
        ")",
        "",
    ]
    lines += [*common.groups_to_write(choice), *common.value_lines(choice)]
    lines += common.rho_lines(choice) if gaussian else []
    lines += common.bound_lines(choice) if choice.threshold is not None else []
    if choice.released is Released.MEAN and not choice.public_counts:
        lines.append("MIDDLE = (LOWER + UPPER) / 2  # values around 0 need the least noise on their sum")
    lines += ["spark = SparkSession.builder.getOrCreate()", *_events(choice)]
    whole = "RhoZCDPBudget(RHO)" if gaussian else f"PureDPBudget({choice.epsilon!r})"
    lines += [
        "session = Session.from_dataframe(",
        f"    privacy_budget={whole},",
        '    source_id="events",',
        "    dataframe=events,",
        '    protected_change=AddRowsWithID("privacy_unit"),',
        ")",
        f'bounded = QueryBuilder("events"){"".join(f".enforce({call})" for _, call in constraints)}',
    ]
    return [*lines, *_queries(choice)]


def _queries(choice: Choice) -> list[str]:
    kind = choice.released
    if kind is Released.SUM:
        query = f'bounded.sum("value", low={choice.min_total!r}, high={choice.max_total!r})'
        return [f"session.evaluate({query}, session.remaining_privacy_budget).show()"]
    if kind is Released.COUNT:
        return ["session.evaluate(bounded.count(), session.remaining_privacy_budget).show()"]
    if kind in PER_GROUP:
        groups = 'groups = KeySet.from_dict({"group": GROUPS})'
        if choice.of_public_data:
            groups = 'groups = KeySet.from_dataframe(events.select("group").distinct())  # public data'
        asked = {
            Released.GROUP_SUMS: f'sum("value", low={choice.min_total!r}, high={choice.max_total!r})',
            Released.GROUP_MEANS: 'average("value", low=LOWER, high=UPPER)',
        }.get(kind, "count()")
        name = {Released.GROUP_SUMS: "totals", Released.GROUP_MEANS: "means"}.get(kind, "counts")
        return [
            groups,
            f"{name} = bounded.groupby(groups).{asked}",
            f'session.evaluate({name}, session.remaining_privacy_budget).orderBy("group").show(1_000, truncate=False)',
        ]
    if kind is Released.QUANTILE:
        lines = []
        for q in choice.quantiles:
            query = f'bounded.quantile("value", quantile={q!r}, low=LOWER, high=UPPER)'
            cost = f"PureDPBudget({choice.per_quantile!r})"
            lines.append(f"session.evaluate({query}, {cost}).show()")
        return lines
    return _mean(choice)


def _mean(choice: Choice) -> list[str]:
    times = "THRESHOLD * " if choice.threshold is not None else ""
    if choice.public_counts:
        kept = (
            f'events.groupBy("privacy_unit").count().select(F.sum(F.least("count", F.lit({choice.max_rows!r}))))'
            if choice.max_rows is not None
            else 'events.select(F.sum("weight"))'
        )
        return [
            f'query = bounded.sum("value", low=0.0, high={times}(UPPER - LOWER), name="total")',
            'total = session.evaluate(query, session.remaining_privacy_budget).first()["total"]',
            f"# {common.PUBLIC_ROWS}",
            f"kept = {kept}.first()[0]",
            "print(LOWER + total / kept)",
        ]
    half = repr(choice.epsilon / 2.0)
    count = (
        "bounded.count(name='rows')"
        if choice.max_rows is not None
        else ('bounded.sum("weight", low=0.0, high=THRESHOLD, name="rows")')
    )
    low, high = f"{times}(LOWER - MIDDLE)", f"{times}(UPPER - MIDDLE)"
    return [
        f'query = bounded.sum("value", low={low}, high={high}, name="total")',
        f'total = session.evaluate(query, PureDPBudget({half})).first()["total"]',
        f'rows = session.evaluate({count}, PureDPBudget({half})).first()["rows"]',
        "print(MIDDLE + total / rows)",
    ]


def _model(choice: Choice) -> list[str]:
    unit = ", ".join(f"F.col({spark_name(name)})" for name in choice.privacy_unit)
    return [
        "from pyspark.sql import SparkSession, Window",
        "from pyspark.sql import functions as F",
        "",
        *common.bound_lines(choice),
        "spark = SparkSession.builder.getOrCreate()",
        f"events = {_read(choice)}",
        common.DRAWN,
        f"random_order = F.row_number().over(Window.partitionBy({unit}).orderBy(F.rand()))",
        'kept = events.withColumn("random_order", random_order).where(F.col("random_order") <= MAX_ROWS)',
        'kept = kept.drop("random_order")',
        "# Train on `kept` with a learner that is private for users.",
        "print(kept.count())",
    ]
