"""The text of the programs: one Jinja2 template per library, next to this file, and `shared.jinja` with shared parts.

A template is the program itself and reads from top to bottom. Its conditions depend on the choice; quoting of names is
a filter.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jinja2

from dpcore.code.choice import OF_VALUES, PER_GROUP, Choice
from dpcore.code.quote import python_literal, sql_name
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.data.delimited_text import SPACED


@functools.cache
def _environment(folder: Path) -> jinja2.Environment:
    settings = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=False,  # Programs are not HTML; external names pass through the filters below.
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # A number is written with all its digits.
        finalize=lambda value: value if isinstance(value, str | jinja2.Undefined) else repr(value),
    )
    settings.filters.update(literal=python_literal, sql=sql_name)
    return settings


def render(path: Path, **values: Any) -> str:
    """Render a template to text that ends with a newline.

    Args:
        path: Path of the file without ``.jinja``.
        **values: Values of the template.
    """
    return _environment(path.parent).get_template(f"{path.name}.jinja").render(**values).rstrip("\n") + "\n"


def render_program(library: str, choice: Choice, **further_values: Any) -> str:
    """Render the program without its head.

    Args:
        library: Name of the file without ``.jinja``.
        choice: The choice of the program; its name in the template is ``choice``.
        further_values: Further values of the template, which override those of the choice.
    """
    layout, private = choice.read_as, not choice.of_public_data
    decimals = {name: mark for name in choice.number_columns if (mark := layout.decimal(name))}
    values = {
        "choice": choice,
        "released": choice.quantity.name,
        "gaussian": choice.noise is NoiseKind.GAUSSIAN,
        "smooth": choice.threshold is not None,
        "per_group": choice.quantity in PER_GROUP,
        "of_values": choice.quantity in OF_VALUES,
        "groups_are_written": choice.quantity in PER_GROUP and not choice.of_public_data,
        "layout": layout,
        "kinds": [file.kind.name for file in layout.files],
        "spaced": [file for file in layout.files if file.separator in SPACED or file.names],
        "private": private,
        # One cell can decide the mark of a column, so programs for private data read every cell separately.
        "marks": bool(choice.number_columns if private else decimals),
        "keeps_rows": private and choice.neighbours is not Neighbours.ADD_OR_REMOVE_USER,
        "decimals": decimals,
        "number_columns": choice.number_columns,
    }
    return render(Path(__file__).with_name(library), **(values | further_values)).rstrip("\n")
