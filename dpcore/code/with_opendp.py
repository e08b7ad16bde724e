"""The choice for OpenDP: its Polars context.

Names and behaviour were checked against opendp 0.16.0 with polars 1.36.1, which the tests run (2026-11-21):
https://docs.opendp.org/en/v0.16.0/api/python/opendp.extras.polars.html (``truncate_per_group``,
``Margin.max_length``, ``dp.sum``, ``dp.quantile``, ``dp.len``) and
https://docs.opendp.org/en/v0.16.0/api/python/opendp.context.html (``Context.compositor``, ``unit_of``,
``loss_of``). ``truncate_num_groups`` is not used: in 0.16.0 it keeps one group fewer than asked for (ranks start
at 1 and are compared with ``< k``), and with ``keep="sample"`` it fails on a grouping column.
"""

from __future__ import annotations

from dpcore.code import common
from dpcore.code.choice import Choice, Code, Released
from dpcore.code.quote import polars_column, python_text
from dpcore.common.noise_error import NoiseKind

LIBRARY = "OpenDP 0.16"
RELATION = (
    "neighbouring data differ by one user, added or removed with all their rows (unit_of(contributions=1, "
    "identifier=...)); changes=1 in its place would mean replacing one user"
)
CANDIDATES = 1001
_ONCE = "Run it once: every run spends epsilon again. Needed: pip install 'opendp[polars]>=0.16,<0.17'."


def write(choice: Choice) -> Code:
    """The program, or sentences that say why there is none."""
    body = _BODIES[choice.released](choice) if choice.released in _BODIES else []
    if body and choice.released is not Released.MODEL:
        body.append(f"# {_ONCE}")
    return common.put_together(choice, LIBRARY, RELATION, _differences(choice), body)


def _differences(choice: Choice) -> list[str]:
    kind, smooth = choice.released, choice.threshold is not None
    found = [common.public_counts_difference(choice), common.gaussian_difference(choice)]
    if kind is Released.MEAN and not choice.public_counts:
        found.append(
            "OpenDP splits epsilon between the sum and the number of rows; the page's pair of sums shares "
            "one epsilon and has less noise. Plain Python has that pair."
        )
    if kind is Released.QUANTILE and smooth:
        return [
            "OpenDP's quantile counts all rows alike, so smooth weights cannot be expressed. What comes nearest is a "
            "cap on rows per user, for which this library has code; plain Python has the smooth weights.",
        ]
    if kind is Released.QUANTILE:
        found.append(
            "OpenDP picks from a grid of candidates, laid evenly here, and scores them in its own way: its error is of "
            "the page's order, not the same."
        )
    if kind is Released.MODEL:
        found.append(
            "OpenDP has no learner with a cap on rows per user. The code caps; the privacy is that of the learner you "
            "hand the rows to, which must count a user's rows together (user-level DP, or group privacy for MAX_ROWS)."
        )
    if kind in (Released.TASK_WEIGHTS, Released.COEFFICIENTS):
        found.append(_SEPARATE[kind])
    if kind is Released.GROUP_COUNTS:
        found.append(common.PUBLIC_GROUPS)
    return found


_SEPARATE = {
    Released.TASK_WEIGHTS: "OpenDP's context cannot bound a user's squared weights over all tasks together. What comes "
    "nearest is a bound on tasks per user, truncate_per_group; plain Python has the task weights.",
    Released.COEFFICIENTS: "OpenDP's context bounds each sum by itself, while here all coefficients share one bound on "
    "a user's weight. Nothing in the context comes near; plain Python adds OpenDP's noise to the vector.",
}


def _imports(choice: Choice) -> list[str]:
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    return [
        *(["import math", ""] if gaussian else []),
        "import opendp.prelude as dp",
        "import polars as pl",
        "",
    ]


def _scan(choice: Choice) -> str:
    file = python_text(choice.file)
    if common.is_parquet(choice):
        return f"pl.scan_parquet({file})"
    how = common.separator(choice, "separator")
    if any('"' in name for name in (*choice.privacy_unit, choice.value_column, choice.group_column)):
        # Polars 1.36 leaves the doubled quotation marks of a CSV header as they are.
        how += """, with_column_names=lambda names: [name.replace('""', '"') for name in names]"""
    return f"pl.scan_csv({file}, infer_schema=False{how})"


def _events(choice: Choice, value: bool = False, group: bool = False) -> list[str]:
    unit = [polars_column(name) for name in choice.privacy_unit]
    if len(unit) == 1:
        columns = [f'    {unit[0]}.alias("privacy_unit"),']
    else:
        # A struct is never null, whatever is missing in it.
        columns = [
            f"    pl.when(pl.all_horizontal({', '.join(f'{one}.is_not_null()' for one in unit)}))",
            f"    .then(pl.struct({', '.join(unit)}).struct.json_encode())",
            '    .alias("privacy_unit"),',
        ]
    if value:
        number = f"{polars_column(choice.value_column)}.cast(pl.Float64, strict=False).fill_nan(None)"
        columns.append(f'    {number}.alias("value"),')
    if group:
        columns.append(f'    {polars_column(choice.group_column)}.alias("group"),')
    return [f"events = {_scan(choice)}.select(", *columns, ").drop_nulls()"]


def _context(choice: Choice, length: bool, queries: int = 1) -> list[str]:
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    lines = ["context = dp.Context.compositor("]
    lines.append("    data=events,")
    lines.append('    privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("privacy_unit")),')
    lines.append(f"    privacy_loss=dp.loss_of({'rho=RHO' if gaussian else f'epsilon={choice.epsilon!r}'}),")
    lines.append(f"    split_evenly_over={queries},")
    if length:
        lines.append("    margins=[dp.polars.Margin(by=(), max_length=MAX_LENGTH)],")
    return [*lines, ")"]


def _start(choice: Choice, *, value: bool = False, group: bool = False, length: bool = False) -> list[str]:
    lines = [*_imports(choice), 'dp.enable_features("contrib")', ""]
    lines += common.groups_to_write(choice)
    lines += common.value_lines(choice)
    if choice.noise is NoiseKind.GAUSSIAN:
        lines += common.rho_lines(choice)
    lines += common.bound_lines(choice)
    if length:
        lines += [
            "# Public: a number of rows that the data cannot exceed. Set it yourself, without counting private rows;",
            "# the noise grows a little with it.",
            f"MAX_LENGTH = {choice.max_length!r}",
        ]
    return [*lines, "", *_events(choice, value, group), *_context(choice, length)]


def _mean(choice: Choice) -> list[str]:
    """Values are moved: to start at 0 where only the sum is noisy, around 0 where their number is noisy too."""
    public = choice.public_counts
    lines = _start(choice, value=True, length=True)
    start = "LOWER" if public else "MIDDLE"
    if not public:
        lines.append("MIDDLE = (LOWER + UPPER) / 2  # values around 0 need the least noise on their sum")
    lines.append(f'value = (pl.col("value").clip(LOWER, UPPER) - {start}).fill_null(0.0).fill_nan(0.0)')
    low, high = ("0.0", "UPPER - LOWER") if public else ("LOWER - MIDDLE", "UPPER - MIDDLE")
    if choice.max_rows is not None:
        columns = [f'value.alias("total").dp.sum(({low}, {high})),']
        columns += [] if public else ['dp.len(signed=True).alias("rows"),']
        steps = [".truncate_per_group(MAX_ROWS)", *_select(columns)]
    else:
        low, high = (part if part == "0.0" else f"THRESHOLD * ({part})" for part in (low, high))
        # What a user's rows weigh together is at most THRESHOLD; the clamp in dp.sum enforces it.
        lines += [
            'rows = pl.col("rows").cast(pl.Float64, strict=False)',
            'weighted = pl.col("total") * (THRESHOLD / rows).clip(0.0, 1.0)',
        ]
        lines.append(
            'total = weighted.fill_null(0.0).fill_nan(0.0).alias("total")  # a light user\'s rows weigh 1'
        )
        columns = [f"total.dp.sum(({low}, {high})),"]
        if not public:
            lines.append('weight = rows.clip(0.0, THRESHOLD).fill_null(0.0).fill_nan(0.0).alias("rows")')
            columns.append("weight.dp.sum((0.0, THRESHOLD)),")
        steps = [
            '.group_by("privacy_unit")',
            '.agg(value.sum().alias("total"), pl.len().alias("rows"))',
            *_select(columns),
        ]
    lines += ["query = (", "    context.query()", *(f"    {step}" for step in steps), ")"]
    lines.append("released = query.release().collect()")
    if public:
        bound = "MAX_ROWS" if choice.max_rows is not None else "THRESHOLD"
        lines += [
            f"# {common.PUBLIC_ROWS}",
            'counts = events.group_by("privacy_unit").len().collect()["len"]',
            f"kept = sum(min({bound}, count) for count in counts)",
            'mean = LOWER + released["total"].item() / kept',
        ]
    else:
        lines.append('mean = MIDDLE + released["total"].item() / released["rows"].item()')
    return [*lines, "print(mean)"]


def _select(columns: list[str]) -> list[str]:
    return [".select(", *(f"    {column}" for column in columns), ")"]


def _sum(choice: Choice) -> list[str]:
    lines = _start(choice, value=True, length=True)
    low, high = choice.min_total, choice.max_total
    return [
        *lines,
        f"LOW, HIGH = {low!r}, {high!r}  # what one user's total is clamped to",
        "query = (",
        "    context.query()",
        '    .group_by("privacy_unit")',
        '    .agg(pl.col("value").fill_null(0.0).fill_nan(0.0).sum().alias("total"))',
        '    .select(pl.col("total").fill_null(0.0).fill_nan(0.0).dp.sum((LOW, HIGH)))',
        ")",
        "total = query.release().collect().item()",
        "print(total)",
    ]


def _count(choice: Choice) -> list[str]:
    return [
        *_start(choice),
        "query = context.query().truncate_per_group(MAX_ROWS).select(dp.len(signed=True))",
        "count = query.release().collect().item()",
        "print(count)",
    ]


def _group_counts(choice: Choice) -> list[str]:
    lines = _start(choice, group=True)
    if not choice.of_public_data:
        groups = ['groups = pl.DataFrame({"group": GROUPS})']
    else:
        groups = ['groups = events.select("group").unique().sort("group").collect()  # public data']
    return [
        *lines,
        *groups,
        "query = (",
        "    context.query()",
        '    .truncate_per_group(1, by=["group"])  # a user counts once in a group',
        "    .truncate_per_group(MAX_GROUPS)  # one row per group is left, so this bounds groups per user",
        '    .group_by("group")',
        "    .agg(dp.len(signed=True))",
        "    .with_keys(groups)",
        ")",
        "counts = query.release().collect()",
        "print(counts)",
    ]


def _quantile(choice: Choice) -> list[str]:
    if choice.threshold is not None:
        return []
    lines = _start(choice, value=True, length=True)
    asked = list(choice.quantiles)
    return [
        *lines,
        f"STEPS = {CANDIDATES - 1}",
        "candidates = [LOWER + (UPPER - LOWER) * i / STEPS for i in range(STEPS + 1)]",
        'value = pl.col("value").fill_null(LOWER).fill_nan(LOWER)',
        "query = (",
        "    context.query()",
        "    .truncate_per_group(MAX_ROWS)",
        "    .select(",
        f'        value.alias(f"quantile {{q}}").dp.quantile(q, candidates=candidates) for q in {asked!r}',
        "    )",
        ")",
        "quantiles = query.release().collect()",
        "print(quantiles)",
    ]


def _model(choice: Choice) -> list[str]:
    unit = ", ".join(polars_column(name) for name in choice.privacy_unit)
    return [
        "import polars as pl",
        "",
        *common.bound_lines(choice),
        f"events = {_scan(choice)}.collect()",
        common.DRAWN,
        f"kept = events.filter(pl.int_range(pl.len()).shuffle().over({unit}) < MAX_ROWS)",
        "# Train on `kept` with a learner that is private for users.",
        "print(kept.height)",
    ]


_BODIES = {
    Released.MEAN: _mean,
    Released.SUM: _sum,
    Released.COUNT: _count,
    Released.GROUP_COUNTS: _group_counts,
    Released.QUANTILE: _quantile,
    Released.MODEL: _model,
}
