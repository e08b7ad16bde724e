"""Names of the same parameter in each library: the table in ``names.md``.

An em dash means that there is no name, followed by the nearest one.

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

from pathlib import Path


def markdown_table() -> str:
    """Return the table in Markdown."""
    return Path(__file__).with_suffix(".md").read_text(encoding="utf-8").rstrip("\n")
