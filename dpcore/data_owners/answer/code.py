"""The programs of the answer: the crossing, and a cap per owner for the person's library."""

from __future__ import annotations

from dpcore.code import Choice, Code, Quantity, Several
from dpcore.code.forms import CodeChoice, build_forms, fields_of_data
from dpcore.common import wording
from dpcore.common.privacy import Neighbours, write_file_name
from dpcore.data_owners.answer.found import OwnersSolution
from dpcore.data_owners.program import write_crossing_program
from dpcore.dataset import Dataset


def choose_programs(solution: OwnersSolution, dataset: Dataset | None) -> CodeChoice:
    """Return the crossing as a program, and before it the cap where there is one."""
    programs: list[tuple[str, Choice | Several | Code]] = []
    if solution.cap is not None and dataset is not None:
        base = fields_of_data(dataset) | {"neighbours": Neighbours.REPLACE_USER}
        cap = build_forms(
            solution.parameters.epsilon,
            base,
            [
                (
                    f"Cap per owner, {wording.counted(solution.cap.cap, 'record')}",
                    Quantity.MODEL,
                    {"max_rows": solution.cap.cap},
                )
            ],
        )
        programs += [] if cap is None else list(cap.forms)
    label = f"Label of the numbers that it holds: {solution.disclosure.label}."
    program = write_crossing_program(solution.collaboration, label)
    file_name_with_label = f"{write_file_name(program.file_name.removesuffix('.py'), solution.disclosure)}.py"
    programs.append(
        ("When joining pays", Code(program.text, program.language, file_name_with_label, program.differences))
    )
    return CodeChoice(tuple(programs))
