"""The choice carried away: runnable code for the person's library.

`write(release, library)` turns a `ReleaseSpec` into a `Code`. One module per library (`with_opendp`, `with_pipelinedp`,
`with_tumult`, `with_bigquery`, `with_python`); `common` makes names from the data safe in each language; `release_spec`
has the table "the same thing is called"; `several` has releases that share one budget.
"""

from __future__ import annotations

from dpcore.code import several, with_bigquery, with_opendp, with_pipelinedp, with_python, with_tumult
from dpcore.code.release_noise import protect_replaced_user
from dpcore.code.release_spec import ClassifierTraining, Code, Quantity, ReleaseSpec, read_name_table
from dpcore.code.several import ReleasePlan, ReleaseShare
from dpcore.common.programs import Program

_WRITERS_BY_PROGRAM = {
    Program.OPENDP: (with_opendp.write_program, several.write_for_opendp),
    Program.PIPELINEDP: (with_pipelinedp.write_program, several.write_for_pipelinedp),
    Program.TUMULT: (with_tumult.write_program, several.write_for_tumult),
    Program.BIGQUERY: (with_bigquery.write_program, several.write_for_bigquery),
    Program.PYTHON: (with_python.write_program, several.write_for_python),
}
"""The writers of one release and of several, by program."""


LIBRARIES = tuple(_WRITERS_BY_PROGRAM)
"""For which code is written."""


def write(release: ReleaseSpec | ReleasePlan, library: Program) -> Code:
    """Write the program of a release, or of several from one budget, for one library.

    The same input gives the same text.
    """
    write_single, write_several = _WRITERS_BY_PROGRAM[library]
    if isinstance(release, ReleasePlan):
        return write_several(release)
    return write_single(protect_replaced_user(release, library))
