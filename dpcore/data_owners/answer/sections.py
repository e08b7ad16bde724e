"""The tabs of data owners but the training."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.answer.section import Label, Link, Note, Parts, Sections, Table
from dpcore.data_owners.answer.found import tabulate_bounds


def show_bounds(answer: Answer, data: object) -> Parts:
    """Show every setting's bound, at both levels, beside what is printed."""
    yield answer.plots["owners-bounds"]()
    yield Table(
        tabulate_bounds(answer.solution),
        "Each setting's bound for one record and for the unit that is protected, beside the printed one",
        dict.fromkeys(("One record", "The unit protected", "As printed"), "%.4g"),
    )
    yield Note(
        "*As printed* stands only where the print is corrected. Constants are those entered; a map of orders, no "
        "forecast."
    )
    yield Label()


def show_unequal(answer: Answer, data: object) -> Parts:
    """Show what cap per owner is best, for the owners of the data."""
    yield (
        "Owners have unequal numbers of records. Where **a whole owner** is protected, one with many records sets the "
        "noise for all: keep at most τ records of each."
    )
    if not answer.solution.is_of_data:
        yield Note(
            "Set *Owners* under *More settings* to *Of the data in use*: then each user of those data is an owner. For "
            "a file, choose the column that names the owner as its user column.",
            "info",
        )
        yield Link("Your data", "Bring owners", "upload")
        return
    yield answer.plots["owners-cap"]()
    if answer.solution.cap is None:
        yield Note(
            "The question protects less than a whole owner, so that no cap is needed: it takes all records. Choose *A "
            "whole owner* under *More settings* for the best cap."
        )
    yield Label()


SECTIONS: Sections = {"Theory": {"Bounds": show_bounds, "Unequal owners": show_unequal}}
