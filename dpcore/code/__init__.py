"""The choice carried away: runnable code for the person's library.

`write(choice, library)` turns a `Choice` into a `Code`. One module per library (`with_opendp`, `with_pipelinedp`,
`with_tumult`, `with_bigquery`, `with_python`); `quote` makes names from the data safe in each language; `names` holds
the table "the same thing is called".
"""

from __future__ import annotations

import enum

from dpcore.code import with_bigquery, with_opendp, with_pipelinedp, with_python, with_tumult
from dpcore.code.choice import Choice, Code, Released, Training
from dpcore.code.names import markdown_table


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


def write(choice: Choice, library: Library) -> Code:
    """The choice in one library's words; same input, same text."""
    return _WRITERS[library](choice)
