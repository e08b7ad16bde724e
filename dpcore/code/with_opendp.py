"""The choice for OpenDP: its Polars context.

Names and behaviour were checked against opendp 0.16.0 with polars 1.36.1, which the tests run (2026-11-21):
https://docs.opendp.org/en/v0.16.0/api/python/opendp.extras.polars.html (``truncate_per_group``,
``Margin.max_length``, ``dp.sum``, ``dp.quantile``, ``dp.len``) and
https://docs.opendp.org/en/v0.16.0/api/python/opendp.context.html (``Context.compositor``, ``unit_of``,
``loss_of``). ``truncate_num_groups`` is not used: in 0.16.0 it keeps one group fewer than asked for (ranks start
at 1 and are compared with ``< k``), and with ``keep="sample"`` it fails on a grouping column.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.code import classifier, common
from dpcore.code.choice import PER_GROUP, Choice, Code, Released
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
    if kind is Released.CLASSIFIER:
        return [classifier.NOWHERE.format(library="OpenDP")]
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
    if kind in PER_GROUP:
        found += [common.PUBLIC_GROUPS, common.replaced_difference(choice)]
    if kind in PER_GROUP and choice.max_norm is not None:
        found.append(
            "OpenDP's context bounds groups and rows one by one, not the norm of a user's whole vector. Polars brings "
            "the vectors to it, and OpenDP's mechanism adds the noise for that norm: that no vector exceeds it rests "
            "on this program."
        )
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


def _context(choice: Choice, length: bool, queries: int = 1, data: str = "events") -> list[str]:
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    lines = ["context = dp.Context.compositor("]
    lines.append(f"    data={data},")
    lines.append('    privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("privacy_unit")),')
    lines.append(f"    privacy_loss=dp.loss_of({'rho=RHO' if gaussian else f'epsilon={choice.epsilon!r}'}),")
    lines.append(f"    split_evenly_over={queries},")
    if length:
        lines.append("    margins=[dp.polars.Margin(by=(), max_length=MAX_LENGTH)],")
    return [*lines, ")"]


def _start(
    choice: Choice,
    *,
    value: bool = False,
    group: bool = False,
    length: bool = False,
    pairs: Sequence[str] = (),
) -> list[str]:
    """Up to the context; ``pairs`` is what is added up per user and group before it, where something is."""
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
    lines += ["", *_events(choice, value, group)]
    if not pairs:
        return [*lines, *_context(choice, length)]
    return [
        *lines,
        "# One line per user and group, before the context: adding or removing a user adds or removes their lines.",
        'pairs = events.group_by("privacy_unit", "group").agg(',
        *(f"    {one}," for one in pairs),
        ").collect().lazy()",
        *_context(choice, length, data="pairs"),
    ]


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


def _groups(choice: Choice) -> str:
    if not choice.of_public_data:
        return 'groups = pl.DataFrame({"group": GROUPS})'
    return 'groups = events.select("group").unique().sort("group").collect()  # public data'


def _of_pairs(choice: Choice, sums: list[str]) -> list[str]:
    """The query on one line per user and group."""
    return [
        _groups(choice),
        "query = (",
        "    context.query()",
        '    .truncate_per_group(1, by=["group"])  # there is one line already, which OpenDP cannot know',
        "    .truncate_per_group(MAX_GROUPS)",
        '    .group_by("group")',
        "    .agg(",
        *(f"        {one}," for one in sums),
        "    )",
        "    .with_keys(groups)",
        ")",
    ]


def _clean(name: str) -> str:
    return f'pl.col("{name}").fill_null(0.0).fill_nan(0.0)'


def _group_rows(choice: Choice) -> list[str]:
    """A line per user and group with its rows: then groups are lines, and rows a number that is clamped."""
    if choice.max_norm is not None:
        return _group_vectors(choice)
    return [
        *_start(choice, group=True, length=True, pairs=['pl.len().cast(pl.Float64).alias("rows")']),
        *_of_pairs(choice, [f"{_clean('rows')}.dp.sum((0.0, MAX_ROWS))"]),
        "totals = query.release().collect()",
        "print(totals)",
    ]


def _group_sums(choice: Choice) -> list[str]:
    if choice.max_norm is not None:
        return _group_vectors(choice)
    return [
        *_start(choice, value=True, group=True, length=True, pairs=['pl.col("value").sum().alias("total")']),
        f"LOW, HIGH = {choice.min_total!r}, {choice.max_total!r}  # what a user's total in a group is clamped to",
        *_of_pairs(choice, [f"{_clean('total')}.dp.sum((LOW, HIGH))"]),
        "totals = query.release().collect()",
        "print(totals)",
    ]


def _group_means(choice: Choice) -> list[str]:
    drawn = 'pl.col("value").clip(LOWER, UPPER).shuffle().head(MAX_ROWS) - (LOWER + UPPER) / 2'
    pairs = [
        f'({drawn}).sum().alias("total")',
        'pl.len().clip(upper_bound=MAX_ROWS).cast(pl.Float64).alias("rows")',
    ]
    return [
        *_start(choice, value=True, group=True, length=True, pairs=pairs),
        "HALF = (UPPER - LOWER) / 2",
        *_of_pairs(
            choice,
            [
                f"{_clean('total')}.dp.sum((-MAX_ROWS * HALF, MAX_ROWS * HALF))",
                f"{_clean('rows')}.dp.sum((0.0, MAX_ROWS))",
            ],
        ),
        "released = query.release().collect()",
        'ratio = LOWER + HALF + pl.col("total") / pl.col("rows").clip(lower_bound=1.0)',
        'means = released.select("group", ratio.clip(LOWER, UPPER).alias("mean"))',
        "print(means)",
    ]


def _group_vectors(choice: Choice) -> list[str]:
    """Each user's vector of amounts brought to the norm by Polars, and noise on the vector of totals."""
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    values = choice.released is Released.GROUP_SUMS
    amount = {
        Released.GROUP_COUNTS: "pl.lit(1.0)",
        Released.GROUP_ROWS: "pl.len().cast(pl.Float64)",
        Released.GROUP_SUMS: 'pl.col("value").sum().clip(lower_bound=0.0)',
    }[choice.released]
    power = '(pl.col("amount") ** 2)' if gaussian else 'pl.col("amount")'
    bound = "MAX_NORM**2" if gaussian else "MAX_NORM"
    root = ".sqrt()" if gaussian else ""
    if choice.scaled:
        kept = [
            f'norm = {power}.sum(){root}.over("privacy_unit")',
            "factor = pl.when(norm > MAX_NORM).then(MAX_NORM / norm).otherwise(1.0)",
            'pairs = pairs.with_columns(pl.col("amount") * factor)',
        ]
    else:
        kept = [
            "# min(amount, level), with the largest level of each user for which the norm is at most MAX_NORM.",
            'pairs = pairs.sort("privacy_unit", "amount").with_columns(',
            f'    {power}.alias("power"),',
            '    pl.int_range(pl.len(), 0, -1).over("privacy_unit").alias("left"),',
            ")",
            'before = pl.col("power").cum_sum().over("privacy_unit") - pl.col("power")',
            'pairs = pairs.with_columns(before.alias("before"))',
            f'whole = pl.col("before") + pl.col("left") * pl.col("power") <= {bound}',
            f'room = (({bound} - pl.col("before")) / pl.col("left")).clip(lower_bound=0.0)',
            f"level = room{root} * (1 - 1e-12)",
            'level = pl.when(whole).then(None).otherwise(level).drop_nulls().first().over("privacy_unit")',
            'pairs = pairs.with_columns(pl.min_horizontal("amount", level))',
        ]
    distance, measure, budget = (
        ("l2_distance", "make_gaussian", "RHO") if gaussian else ("l1_distance", "make_laplace", "EPSILON")
    )
    return [
        *_imports(choice),
        'dp.enable_features("contrib")',
        "",
        *common.groups_to_write(choice),
        *(common.rho_lines(choice) if gaussian else [f"EPSILON = {choice.epsilon!r}"]),
        *common.bound_lines(choice),
        "SLACK = 1 + 1e-6  # rounding in sums over up to a billion users",
        "",
        *_events(choice, values, group=True),
        f'amount = {amount}.alias("amount")',
        'pairs = events.group_by("privacy_unit", "group").agg(amount).collect()',
        _groups(choice),
        *kept,
        'totals = pairs.group_by("group").agg(pl.col("amount").sum())',
        'totals = groups.join(totals, on="group", how="left").with_columns(pl.col("amount").fill_null(0.0))',
        "domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=totals.height)",
        f"space = domain, dp.{distance}(T=float)",
        "scale = dp.binary_search_param(",
        f"    lambda scale: dp.m.{measure}(*space, scale=scale), d_in=MAX_NORM * SLACK, d_out={budget}",
        ")",
        f'noisy = dp.m.{measure}(*space, scale=scale)(totals["amount"].to_list())',
        'print(dict(zip(totals["group"], noisy)))',
    ]


def _group_counts(choice: Choice) -> list[str]:
    if choice.max_norm is not None:
        return _group_vectors(choice)
    lines = _start(choice, group=True)
    return [
        *lines,
        _groups(choice),
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
    Released.GROUP_ROWS: _group_rows,
    Released.GROUP_SUMS: _group_sums,
    Released.GROUP_MEANS: _group_means,
    Released.QUANTILE: _quantile,
    Released.MODEL: _model,
}
