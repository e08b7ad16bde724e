"""What can be carried away: the crossing as a program, and a cap per owner for the person's library."""

from __future__ import annotations

from dpcore.code import Choice, Code, Released
from dpcore.code.forms import CodeChoice, forms, of_data
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.data_owners.program import crossing_program
from dpcore.dataset import Dataset
from pages.data_owners.answer import OwnersView
from pages.shared.figures import file_name


def of_owners(view: OwnersView, data: Dataset) -> CodeChoice:
    """The program, and before it the cap where there is one."""
    found: list[tuple[str, Choice | Code]] = []
    if view.cap is not None:
        base = of_data(data) | {"neighbours": Neighbours.REPLACE_USER}
        cap = forms(
            view.parameters.epsilon,
            base,
            [
                (
                    f"Cap per owner, {wording.counted(view.cap.cap, 'record')}",
                    Released.MODEL,
                    {"max_rows": view.cap.cap},
                )
            ],
        )
        found += [] if cap is None else list(cap.forms)
    label = f"Label of the numbers that it holds: {view.disclosure.label}."
    program = crossing_program(view.of, label)
    named = f"{file_name(program.file_name.removesuffix('.py'), view.disclosure)}.py"
    found.append(("When joining pays", Code(program.text, program.language, named, program.differences)))
    return CodeChoice(tuple(found))
