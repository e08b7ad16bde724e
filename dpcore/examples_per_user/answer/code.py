"""What can be carried away of examples per user: programs with the values, each with their check of ε."""

from __future__ import annotations

from dpcore.code import Code
from dpcore.code.forms import CodeChoice
from dpcore.common.privacy import Provenance, file_name
from dpcore.examples_per_user.answer.found import ExamplesFound
from dpcore.examples_per_user.answer.words import above
from dpcore.examples_per_user.programs import PROGRAMS, Training, program


def of_examples(found: ExamplesFound, provenance: Provenance) -> CodeChoice:
    """The programs; those of private data say so, and so do their names."""
    of, asked = found.best, found.parameters
    training = Training(
        of.way, of.bound, of.rate, of.divisor, above(of.multiplier), asked.epsilon, asked.delta, asked.steps
    )
    label = f"Label of the numbers that it holds: {provenance.label}."
    made = []
    for name in PROGRAMS:
        code = program(name, training, label)
        named = f"{file_name(code.file_name.removesuffix('.py'), provenance)}.py"
        made.append((name, Code(code.text, code.language, named, code.differences)))
    return CodeChoice(tuple(made))
