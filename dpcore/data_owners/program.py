"""The crossing as a short program of its own: plain Python that needs nothing but its standard library."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from dpcore.code import Code
from dpcore.code.templates import render
from dpcore.common import wording
from dpcore.data_owners.bounds import Collaboration


def crossing_program(of: Collaboration, label: str) -> Code:
    """A program that computes the bounds and where they cross, for these owners.

    Args:
        of: The owners; numbers, no arrays.
        label: What kind of numbers it holds, a sentence.
    """
    numbers = {f.name: wording.digits(float(getattr(of, f.name))) for f in fields(of)}
    text = render(Path(__file__).with_name("crossing.py"), label=label, **numbers)
    return Code(text, "python", "data_owners_crossing.py", ())
