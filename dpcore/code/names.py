"""What the same thing is called in each library.

Sources, read 2026-11-21:

- OpenDP 0.16.0 (installed and run by the tests): https://docs.opendp.org/en/v0.16.0/api/python/opendp.context.html
  and https://docs.opendp.org/en/v0.16.0/api/python/opendp.extras.polars.html
- PipelineDP 0.3.1 (run by `make test-libraries`): https://pipelinedp.readthedocs.io/en/latest/pipeline_dp.html and
  github.com/OpenMined/PipelineDP, pipeline_dp/aggregate_params.py and pipeline_dp/data_extractors.py
- Tumult Analytics 0.21.0 (likewise): https://docs.tmlt.dev/analytics/latest/reference/ and
  github.com/opendp/tumult-analytics, src/tmlt/analytics/constraints/_truncation.py
- BigQuery: https://cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax#dp_clause and
  https://cloud.google.com/bigquery/docs/reference/standard-sql/aggregate-dp-functions
"""

from __future__ import annotations

from dataclasses import dataclass

COLUMNS = ("Sweet Spot", "OpenDP 0.16", "PipelineDP 0.3", "Tumult Analytics 0.21", "BigQuery")


@dataclass(frozen=True)
class Concept:
    """One row of the table.

    Attributes:
        name: What it is.
        called: Its name in each of `COLUMNS`, Markdown; an em dash and the nearest thing where there is none.
    """

    name: str
    called: tuple[str, str, str, str, str]


SAME_THING = (
    Concept(
        "rows per user",
        (
            "cap, *h* or *τ*",
            "`truncate_per_group(k)`",
            "`max_contributions`",
            "`MaxRowsPerID(max)`",
            "— clamp a user's count: `contribution_bounds_per_group => (0, h)`; else a sampling statement before",
        ),
    ),
    Concept(
        "groups per user",
        (
            "groups per user, *k*",
            "`truncate_per_group(1, by=[group])`, then `truncate_per_group(k)`",
            "`max_partitions_contributed`",
            "`MaxGroupsPerID(grouping_column, max)`",
            "`max_groups_contributed`",
        ),
    ),
    Concept(
        "rows per user per group",
        (
            "L∞ of *Per group*; 1 where users are counted",
            "`truncate_per_group(k, by=[group])`",
            "`max_contributions_per_partition`",
            "`MaxRowsPerGroupPerID(grouping_column, max)`",
            "— clamp a user's count per group: `contribution_bounds_per_group`",
        ),
    ),
    Concept(
        "total per user",
        (
            "bound *T*, or a range [*L*, *U*]",
            "sum per user with `group_by(identifier)`, then `dp.sum(bounds)`",
            "`min_sum_per_partition`, `max_sum_per_partition`",
            "— add up before, one row per user; `sum(low, high)`",
            "`SUM(…, contribution_bounds_per_group => (L, U))`",
        ),
    ),
    Concept(
        "value bounds",
        (
            "lower and upper value bound",
            "`dp.sum(bounds)`",
            "`min_value`, `max_value`",
            "`low`, `high`",
            "— clamp values with `LEAST` and `GREATEST`; `contribution_bounds_per_row` for percentiles",
        ),
    ),
    Concept(
        "weights of users",
        (
            "smooth weights, threshold *h*",
            "weigh per user with `group_by(identifier)`, then `dp.sum(bounds)`",
            "— add up with weights before",
            "— add up with weights before",
            "— add up with weights before",
        ),
    ),
    Concept(
        "privacy unit",
        (
            "user",
            "`unit_of(contributions=1, identifier=…)`",
            "`privacy_id_extractor`",
            "`AddRowsWithID(id_column)`",
            "`privacy_unit_column`",
        ),
    ),
    Concept(
        "neighbouring data",
        (
            "said on each page",
            "add or remove a user (`contributions=1`); replace a user (`changes=1`)",
            "add or remove a user",
            "add or remove a user",
            "add or remove a user",
        ),
    ),
)


def markdown_table() -> str:
    """The table in Markdown."""
    lines = [f"| | {' | '.join(COLUMNS)} |", "|" + "---|" * (len(COLUMNS) + 1)]
    lines += [f"| **{row.name}** | {' | '.join(row.called)} |" for row in SAME_THING]
    return "\n".join(lines)
