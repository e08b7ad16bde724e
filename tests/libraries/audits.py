"""The audit of `tests.dpcore.code.audit` with a library's own noise: what a program prints of neighbouring tables."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcore.code import ReleaseSpec, write
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from tests.dpcore.code import audit, together
from tests.libraries import truth

PRIVATE = {"file": audit.FILE, "disclosure": Disclosure.PRIVATE}
SEVERAL = "several releases"
Silenced = Callable[[audit.Run], Any]
"""A context in which a library's noise is a constant; it records what the noise is added to, where that is in reach."""


def programs(library: Program) -> list[str]:
    """List the names of the choices, and of several releases together."""
    return [*truth.list_programs(library), SEVERAL]


def check(
    name: str,
    library: Program,
    folder: Path,
    silenced: Silenced,
    lost: Callable[..., float],
    tables: Collection[str] = (*audit.FEW, *audit.EMPTY),
) -> None:
    """Run a program on the table, its neighbours and tables of at most one user.

    Args:
        name: Of the choice, or `SEVERAL`.
        library: Whose program.
        folder: The working folder.
        silenced: See `Silenced`.
        lost: What the recorded draws of two runs lose, as a share of the budget.
        tables: Those to run it on.
    """
    choice: Any = together.make_several(NoiseKind.LAPLACE, **PRIVATE)
    if name != SEVERAL:
        choice = replace(truth.CHOICES[name], **PRIVATE)
    reading_spec: ReleaseSpec = choice.reading_spec if name == SEVERAL else choice
    text = audit.fill_inputs(write(choice, library).text)
    base = audit.run(text, audit.join_rows(*audit.ROWS), folder, silenced)
    assert base.ending == "0"
    problems = {}
    for neighbour, content in audit.list_neighbours(reading_spec.has_public_counts).items():
        if neighbour not in tables:
            continue
        neighbour_run = audit.run(text, content, folder, silenced)
        problem = audit.describe_difference(base, neighbour_run)
        if not problem and neighbour not in audit.PRINTED_ONLY:
            share = lost(choice, base, neighbour_run)
            problem = "" if share <= 1.0 + 1e-6 else f"the draws lose {share} times the budget"
        problems[neighbour] = problem
    nobody = audit.run(text, audit.join_rows(), folder, silenced)
    problems["no row"] = "" if nobody.ending.startswith(("0", "SystemExit")) else nobody.ending
    for title, content in audit.EMPTY.items():
        if title not in tables:
            continue
        neighbour_run = audit.run(text, content, folder, silenced)
        problems[title] = (
            "" if reading_spec.has_public_counts else audit.describe_difference(nobody, neighbour_run)
        )
        if not neighbour_run.ending.startswith(
            "0" if not reading_spec.has_public_counts else ("0", "SystemExit")
        ):
            problems[title] = f"it ends with {neighbour_run.ending}"
    assert not any(problems.values()), "\n".join(
        f"{name_of_table}: {problem}" for name_of_table, problem in problems.items() if problem
    )
