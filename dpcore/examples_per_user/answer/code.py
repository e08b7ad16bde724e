"""The programs of the answer, with the values and a check of ε."""

from __future__ import annotations

from dpcore.code import Code
from dpcore.code.forms import CodeChoice
from dpcore.common.privacy import Provenance, write_file_name
from dpcore.examples_per_user.answer.found import ExamplesSolution
from dpcore.examples_per_user.answer.words import round_up
from dpcore.examples_per_user.programs import PROGRAMS, Training, write_program


def write_programs(solution: ExamplesSolution, provenance: Provenance) -> CodeChoice:
    """Write the programs; the label of private data stands in them and in their names."""
    best, parameters = solution.best, solution.parameters
    training = Training(
        best.sampling,
        best.bound,
        best.rate,
        best.divisor,
        round_up(best.multiplier),
        parameters.epsilon,
        parameters.delta,
        parameters.steps,
    )
    label = f"Label of the numbers that it holds: {provenance.label}."
    programs = []
    for name in PROGRAMS:
        code = write_program(name, training, label)
        file_name_with_label = f"{write_file_name(code.file_name.removesuffix('.py'), provenance)}.py"
        programs.append((name, Code(code.text, code.language, file_name_with_label, code.differences)))
    return CodeChoice(tuple(programs))
