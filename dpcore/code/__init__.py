"""The choice carried away: runnable code for the person's library.

`write(choice, library)` turns a `Choice` into a `Code`. One module per library (`with_opendp`, `with_pipelinedp`,
`with_tumult`, `with_bigquery`, `with_python`); `common` makes names from the data safe in each language; `choice` holds
the table "the same thing is called"; `several` has releases that share one budget.
"""

from __future__ import annotations

from dpcore.code import several, with_bigquery, with_opendp, with_pipelinedp, with_python, with_tumult
from dpcore.code.choice import Choice, Code, Quantity, Training, markdown_table
from dpcore.code.release_noise import protect_replaced_user
from dpcore.code.several import ReleaseShare, Several
from dpcore.common.programs import Program

_WRITERS = {
    Program.OPENDP: with_opendp.write,
    Program.PIPELINEDP: with_pipelinedp.write,
    Program.TUMULT: with_tumult.write,
    Program.BIGQUERY: with_bigquery.write,
    Program.PYTHON: with_python.write,
}


LIBRARIES = tuple(_WRITERS)
"""For which code is written."""
_WRITERS_OF_SEVERAL = {
    Program.OPENDP: several.for_opendp,
    Program.PIPELINEDP: several.for_pipelinedp,
    Program.TUMULT: several.for_tumult,
    Program.BIGQUERY: several.for_bigquery,
    Program.PYTHON: several.for_python,
}


def write(choice: Choice | Several, library: Program) -> Code:
    """Return the choice, or several releases from one budget, in one library's words; same input, same text."""
    if isinstance(choice, Several):
        return _WRITERS_OF_SEVERAL[library](choice)
    return _WRITERS[library](protect_replaced_user(choice, library))
