"""What can be carried away: the crossing as a program, and a cap per owner for the person's library."""

from __future__ import annotations

from dpcore.code import Choice, Code, Released, Several
from dpcore.code.forms import CodeChoice, forms, of_data
from dpcore.common import wording
from dpcore.common.privacy import Neighbours, file_name
from dpcore.data_owners.answer.found import OwnersFound
from dpcore.data_owners.program import crossing_program
from dpcore.dataset import Dataset


def of_owners(found: OwnersFound, data: Dataset | None) -> CodeChoice:
    """The program, and before it the cap where there is one."""
    made: list[tuple[str, Choice | Several | Code]] = []
    if found.cap is not None and data is not None:
        base = of_data(data) | {"neighbours": Neighbours.REPLACE_USER}
        cap = forms(
            found.parameters.epsilon,
            base,
            [
                (
                    f"Cap per owner, {wording.counted(found.cap.cap, 'record')}",
                    Released.MODEL,
                    {"max_rows": found.cap.cap},
                )
            ],
        )
        made += [] if cap is None else list(cap.forms)
    label = f"Label of the numbers that it holds: {found.disclosure.label}."
    program = crossing_program(found.of, label)
    named = f"{file_name(program.file_name.removesuffix('.py'), found.disclosure)}.py"
    made.append(("When joining pays", Code(program.text, program.language, named, program.differences)))
    return CodeChoice(tuple(made))
