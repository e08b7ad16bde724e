"""The programs as text: one Jinja2 template per library, beside this file, and `shared.jinja` with what several use.

A template is the program itself and is read from top to bottom. What depends on the choice stands in its conditions;
what depends on the language of a name (quoting) is a filter.
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
        autoescape=False,  # Programs know nothing of HTML; names from outside pass through the filters below.
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # A number is written with all its digits.
        finalize=lambda value: value if isinstance(value, str | jinja2.Undefined) else repr(value),
    )
    settings.filters.update(literal=python_literal, sql=sql_name)
    return settings


def render(path: Path, **values: Any) -> str:
    """Return the text of a template, its lines ended.

    Args:
        path: Of the file, up to ``.jinja``.
        **values: What the template needs.
    """
    return _environment(path.parent).get_template(f"{path.name}.jinja").render(**values).rstrip("\n") + "\n"


def program(library: str, choice: Choice, **more: Any) -> str:
    """Return the program without its head.

    Args:
        library: The file's name up to ``.jinja``.
        choice: What is carried away; the template sees it under this name.
        more: What else the template needs, or sees in place of the choice's own.
    """
    layout, private = choice.read_as, not choice.of_public_data
    decimals = {name: mark for name in choice.number_columns if (mark := layout.decimal(name))}
    usual = {
        "choice": choice,
        "released": choice.released.name,
        "gaussian": choice.noise is NoiseKind.GAUSSIAN,
        "smooth": choice.threshold is not None,
        "per_group": choice.released in PER_GROUP,
        "of_values": choice.released in OF_VALUES,
        "groups_are_written": choice.released in PER_GROUP and not choice.of_public_data,
        "layout": layout,
        "kinds": [file.kind.name for file in layout.files],
        "spaced": [file for file in layout.files if file.separator in SPACED or file.names],
        "private": private,
        # One cell settles the mark of a column: programs for private data read every cell by itself.
        "marks": bool(choice.number_columns if private else decimals),
        "keeps_rows": private and choice.neighbours is not Neighbours.ADD_OR_REMOVE_USER,
        "decimals": decimals,
        "number_columns": choice.number_columns,
    }
    return render(Path(__file__).with_name(library), **(usual | more)).rstrip("\n")
