"""The choice carried away: runnable code for the person's library.

`write(choice, library)` turns a `Choice` into a `Code`. One module per library (`with_opendp`, `with_pipelinedp`,
`with_tumult`, `with_bigquery`, `with_python`); `common` makes names from the data safe in each language; `choice` holds
the table "the same thing is called"; `several` has releases that share one budget.
"""

from __future__ import annotations

import enum

from dpcore.code import several, with_bigquery, with_opendp, with_pipelinedp, with_python, with_tumult
from dpcore.code.choice import Choice, Code, Quantity, Training, markdown_table
from dpcore.code.several import ReleaseShare, Several


class Library(enum.Enum):
    """For whom code is written; the value is what a person calls it."""

    OPENDP = "OpenDP"
    PIPELINEDP = "PipelineDP"
    TUMULT = "Tumult"
    BIGQUERY = "BigQuery"
    PYTHON = "Plain Python"


_WRITERS = {
    Library.OPENDP: with_opendp.write,
    Library.PIPELINEDP: with_pipelinedp.write,
    Library.TUMULT: with_tumult.write,
    Library.BIGQUERY: with_bigquery.write,
    Library.PYTHON: with_python.write,
}


_WRITERS_OF_SEVERAL = {
    Library.OPENDP: several.for_opendp,
    Library.PIPELINEDP: several.for_pipelinedp,
    Library.TUMULT: several.for_tumult,
    Library.BIGQUERY: several.for_bigquery,
    Library.PYTHON: several.for_python,
}


def write(choice: Choice | Several, library: Library) -> Code:
    """Return the choice, or several releases from one budget, in one library's words; same input, same text."""
    if isinstance(choice, Several):
        return _WRITERS_OF_SEVERAL[library](choice)
    return _WRITERS[library](choice)
