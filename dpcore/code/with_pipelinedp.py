"""The choice for PipelineDP, on its local backend.

Parameter names and rules from ``AggregateParams`` (pipeline_dp/aggregate_params.py) and the sensitivities in
pipeline_dp/dp_computations.py of github.com/OpenMined/PipelineDP, version 0.2.1 and main, and
https://pipelinedp.readthedocs.io (read 2026-11-21): ``max_contributions`` stands alone, or
``max_partitions_contributed`` and ``max_contributions_per_partition`` stand together; ``min_sum_per_partition`` and
``max_sum_per_partition`` bound the sum of a privacy unit in a partition and exclude ``min_value``;
``max_contributions`` is refused for percentiles (dp_engine.py). The tests check the syntax. Run by
hand with 0.2.1, which asks for Python below 3.12, on the sample events (2026-11-21): every program gave what plain
Python gives.
"""

from __future__ import annotations

from dpcore.code import classifier, common
from dpcore.code.choice import PER_GROUP, Choice, Code, Released
from dpcore.code.quote import python_text
from dpcore.common.noise_error import NoiseKind

LIBRARY = "PipelineDP 0.2"


def write(choice: Choice) -> Code:
    """The program, or sentences that say why there is none."""
    possible = choice.released in _METRICS and not (
        (choice.released is Released.QUANTILE and choice.threshold is not None) or choice.max_norm is not None
    )
    body = _program(choice) if possible else []
    if choice.released is Released.MODEL:
        body = _model(choice)
    return common.put_together(choice, LIBRARY, common.ADD_OR_REMOVE, _differences(choice), body)


_METRICS = {
    Released.MEAN: "SUM",
    Released.SUM: "SUM",
    Released.COUNT: "COUNT",
    Released.GROUP_COUNTS: "PRIVACY_ID_COUNT",
    Released.GROUP_ROWS: "COUNT",
    Released.GROUP_SUMS: "SUM",
    Released.GROUP_MEANS: "MEAN",
    Released.QUANTILE: "PERCENTILE",
}


def _differences(choice: Choice) -> list[str]:
    kind, smooth = choice.released, choice.threshold is not None
    if kind is Released.CLASSIFIER:
        return [classifier.NOWHERE.format(library="PipelineDP")]
    found = [common.public_counts_difference(choice)]
    if choice.noise is NoiseKind.GAUSSIAN:
        found.append(
            "PipelineDP calibrates Gaussian noise itself; with max_contributions it may take more than the page."
        )
    if kind is Released.MEAN and smooth:
        found.append(
            "PipelineDP has no weights per user. The rows are added up with their weights before, one row "
            "per user, and PipelineDP clamps that one row: its guarantee covers the result, since a user "
            "is one row."
        )
    if kind is Released.MEAN and not choice.public_counts:
        found.append(
            "The budget is split between a sum around the middle of the value bounds and a count; the page's pair of "
            "sums shares one epsilon and has less noise. Plain Python has that pair."
        )
    if kind is Released.QUANTILE and smooth:
        return [
            "PipelineDP's percentiles count all rows alike, so smooth weights cannot be expressed. What "
            "comes nearest is a cap on rows per user; plain Python has the smooth weights."
        ]
    if kind is Released.QUANTILE:
        found.append("PipelineDP finds percentiles in a tree of counts: its error is not the page's.")
    if kind is Released.MODEL:
        found.append(
            "PipelineDP trains no models. The code caps in Python; the privacy is that of the learner you "
            "hand the rows to, which must count a user's rows together."
        )
    if kind is Released.TASK_WEIGHTS:
        found.append(
            "PipelineDP has no weights per partition. What comes nearest is a bound on tasks per user, "
            "max_partitions_contributed; plain Python has the task weights."
        )
    if kind is Released.COEFFICIENTS:
        found.append(
            "PipelineDP has no weights per row and coefficient; plain Python has them, with OpenDP's noise."
        )
    if choice.max_norm is not None:
        return [
            "PipelineDP has no bound on the norm of what a user adds to all partitions. What comes nearest is the pair "
            "of bounds, max_partitions_contributed with max_contributions_per_partition; plain Python has the norm."
        ]
    if kind in PER_GROUP:
        found += [common.PUBLIC_GROUPS, common.replaced_difference(choice)]
    if kind is Released.GROUP_MEANS:
        found.append(
            "PipelineDP clamps no mean into the range of values; the page's errors are those of clamped means."
        )
    return found


def _bounds(choice: Choice) -> list[str]:
    """The bounds as keyword arguments of AggregateParams."""
    if choice.max_groups is not None:
        bounds = [
            f"max_partitions_contributed={choice.max_groups!r},",
            f"max_contributions_per_partition={choice.max_rows or 1!r},",
        ]
        if choice.released is Released.GROUP_SUMS:
            bounds[1] += "  # asked for, but not used with bounds on the sum"
            bounds += [
                "# They clamp what all rows of a user in a partition add up to: no max_contributions is needed.",
                f"min_sum_per_partition={choice.min_total!r},",
                f"max_sum_per_partition={choice.max_total!r},",
            ]
        return bounds
    if choice.max_rows is not None and choice.released is not Released.QUANTILE:
        return [f"max_contributions={choice.max_rows!r},"]
    if choice.max_rows is not None:
        # There is one partition, so rows per partition are rows per user; percentiles take no max_contributions.
        return ["max_partitions_contributed=1,", f"max_contributions_per_partition={choice.max_rows!r},"]
    if choice.threshold is not None:
        return ["max_contributions=1,  # one row per user is left"]
    return [
        "# The two bounds on the sum clamp what all rows of a user add up to: no max_contributions is needed.",
        "max_partitions_contributed=1,",
        "max_contributions_per_partition=1,  # asked for, but not used with bounds on the sum",
        f"min_sum_per_partition={choice.min_total!r},",
        f"max_sum_per_partition={choice.max_total!r},",
    ]


def _values(choice: Choice) -> list[str]:
    if choice.released in (Released.QUANTILE, Released.GROUP_MEANS) or (
        choice.released is Released.MEAN and not choice.public_counts and choice.threshold is None
    ):
        return ["min_value=LOWER,", "max_value=UPPER,"]
    if choice.released is not Released.MEAN:
        return []
    if choice.threshold is None:
        return ["min_value=0.0,", "max_value=UPPER - LOWER,"]
    if choice.public_counts:
        return ["min_value=0.0,", "max_value=THRESHOLD * (UPPER - LOWER),"]
    return ["min_value=THRESHOLD * (LOWER - MIDDLE),", "max_value=THRESHOLD * (UPPER - MIDDLE),"]


_OF_VALUES = (
    Released.MEAN,
    Released.SUM,
    Released.QUANTILE,
    Released.GROUP_SUMS,
    Released.GROUP_MEANS,
)


def _metric(choice: Choice) -> str:
    if choice.released is Released.QUANTILE:
        # round-trip exactly where q is a round number: 0.07 * 100 is 7.000000000000001
        asked = [f"pipeline_dp.Metrics.PERCENTILE({float(f'{100 * q:.13g}')!r})" for q in choice.quantiles]
        return f"[{', '.join(asked)}]"
    if choice.released is Released.MEAN and not choice.public_counts and choice.threshold is None:
        return "[pipeline_dp.Metrics.MEAN]"
    return f"[pipeline_dp.Metrics.{_METRICS[choice.released]}]"


def _rows(choice: Choice) -> list[str]:
    """From file to ``rows``: (privacy unit, partition, value)."""
    uses_value = choice.released in _OF_VALUES
    columns = [common.unit_line(choice)]
    if uses_value:
        columns.append(f"VALUE = {python_text(choice.value_column)}")
    if choice.released in PER_GROUP:
        columns.append(f"GROUP = {python_text(choice.group_column)}")
    names = "*UNIT" + (", VALUE" if uses_value else "") + (", GROUP" if choice.released in PER_GROUP else "")
    read = f"events = {common.read_with_pandas(choice)}"
    lines = [*columns, f"{read}.dropna(subset=[{names}])"]
    if choice.released in PER_GROUP and uses_value:  # Too long for one line.
        lines = [*columns, read, f"events = events.dropna(subset=[{names}])"]
    lines.append("units = list(zip(*(events[name] for name in UNIT)))")
    if choice.released in (Released.GROUP_COUNTS, Released.GROUP_ROWS):
        return [*lines, "rows = [(unit, group, 0) for unit, group in zip(units, events[GROUP])]"]
    if choice.released in PER_GROUP:
        return [*lines, "rows = list(zip(units, events[GROUP], events[VALUE].astype(float)))"]
    if choice.released is Released.COUNT:
        return [*lines, "rows = [(unit, 0, 0) for unit in units]"]
    if choice.released is Released.SUM or choice.released is Released.QUANTILE:
        return [*lines, "rows = [(unit, 0, float(value)) for unit, value in zip(units, events[VALUE])]"]
    start = "LOWER" if choice.public_counts else "MIDDLE"
    shifted = f"min(max(float(value), LOWER), UPPER) - {start}"
    if choice.threshold is None:
        if not choice.public_counts:
            shifted = "float(value)"
        return [*lines, f"rows = [(unit, 0, {shifted}) for unit, value in zip(units, events[VALUE])]"]
    return [
        *lines,
        "sizes = Counter(units)",
        "sums = Counter()",
        "for unit, value in zip(units, events[VALUE]):",
        f"    sums[unit] += {shifted}",
        "# All rows of a user together weigh at most THRESHOLD rows.",
        "rows = [(unit, 0, min(1.0, THRESHOLD / sizes[unit]) * sums[unit]) for unit in sizes]",
    ]


def _program(choice: Choice) -> list[str]:
    smooth = choice.threshold is not None
    delta = choice.delta if choice.delta is not None else 0.0
    twice = smooth and not choice.public_counts
    counts = choice.released is Released.MEAN and (smooth or choice.public_counts)
    lines = ["from collections import Counter", ""] if counts else []
    lines += ["import pandas as pd", "import pipeline_dp", ""]
    lines += [*common.groups_to_write(choice), *common.value_lines(choice)]
    lines += common.bound_lines(choice) if smooth else []
    if twice:
        lines.append("MIDDLE = (LOWER + UPPER) / 2")
    lines += [*_rows(choice), "", *_groups(choice)]
    noise = "GAUSSIAN" if choice.noise is NoiseKind.GAUSSIAN else "LAPLACE"
    lines += [
        "accountant = pipeline_dp.NaiveBudgetAccountant("
        f"total_epsilon={choice.epsilon!r}, total_delta={delta!r})",
        "engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())",
        "extractors = pipeline_dp.DataExtractors(",
        "    privacy_id_extractor=lambda row: row[0],",
        "    partition_extractor=lambda row: row[1],",
        "    value_extractor=lambda row: row[2],",
        ")",
        "params = pipeline_dp.AggregateParams(",
        f"    noise_kind=pipeline_dp.NoiseKind.{noise},",
        f"    metrics={_metric(choice)},",
        *(f"    {argument}" for argument in (*_bounds(choice), *_values(choice))),
        ")",
        "result = engine.aggregate(rows, params, extractors, public_partitions=PARTITIONS)",
    ]
    if twice:
        lines += [
            "weights = [(unit, 0, min(THRESHOLD, sizes[unit])) for unit in sizes]",
            "weight_params = pipeline_dp.AggregateParams(",
            f"    noise_kind=pipeline_dp.NoiseKind.{noise},",
            "    metrics=[pipeline_dp.Metrics.SUM],",
            "    max_contributions=1,",
            "    min_value=0.0,",
            "    max_value=THRESHOLD,",
            ")",
            "weight = engine.aggregate(weights, weight_params, extractors, public_partitions=PARTITIONS)",
        ]
    return [*lines, "accountant.compute_budgets()", *_end(choice, twice)]


def _groups(choice: Choice) -> list[str]:
    if choice.released not in PER_GROUP:
        return ["PARTITIONS = [0]  # one partition: everything together, and it is public"]
    if not choice.of_public_data:
        return ["PARTITIONS = GROUPS"]
    return ["PARTITIONS = sorted(set(events[GROUP]))  # public data"]


def _end(choice: Choice, twice: bool) -> list[str]:
    if choice.released is not Released.MEAN or (not choice.public_counts and not twice):
        return ["print(list(result))"]
    if twice:
        return [
            "(_, total), (_, rows_weight) = *result, *weight",
            "print(MIDDLE + total.sum / rows_weight.sum)",
        ]
    bound = choice.max_rows if choice.max_rows is not None else choice.threshold
    return [
        "(_, total), = result",
        f"# {common.PUBLIC_ROWS}",
        f"kept = sum(min({bound!r}, size) for size in Counter(units).values())",
        "print(LOWER + total.sum / kept)",
    ]


def _model(choice: Choice) -> list[str]:
    return [
        "import pandas as pd",
        "",
        *common.bound_lines(choice),
        common.unit_line(choice),
        f"events = {common.read_with_pandas(choice)}",
        common.DRAWN,
        "kept = events.sample(frac=1.0).groupby(UNIT, sort=False).head(MAX_ROWS)",
        "# Train on `kept` with a learner that is private for users.",
        "print(len(kept))",
    ]
