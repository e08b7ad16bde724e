"""The crossing as a short program: plain Python that needs nothing but its standard library."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from dpcore.code import Code
from dpcore.code.common import render
from dpcore.common import wording
from dpcore.data_owners.bounds import Collaboration


def write_crossing_program(collaboration: Collaboration, label: str) -> Code:
    """Write a program that computes the bounds and their crossings, for these owners.

    Args:
        collaboration: The owners; numbers, no arrays.
        label: What kind of numbers it holds, a sentence.
    """
    numbers = {
        collaboration_field.name: wording.digits(float(getattr(collaboration, collaboration_field.name)))
        for collaboration_field in fields(collaboration)
    }
    text = render(Path(__file__).with_name("crossing.py"), label=label, **numbers)
    return Code(text, "python", "data_owners_crossing.py", ())
