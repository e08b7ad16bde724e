"""The forms of a chosen bound, with the names of the data's columns, from which programs are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpcore.code.release_spec import Code, Quantity, ReleaseSpec
from dpcore.code.several import ReleasePlan
from dpcore.common.checks import InvalidInput
from dpcore.common.programs import Program
from dpcore.common.wording import format_count, format_number
from dpcore.data import samples
from dpcore.data.tables import FileLayout, TableLayout
from dpcore.dataset import Contribution, Dataset

FILE_ROW_FIELDS = {"row_description": ""}
"""Field for programs that read the rows of the file for any unit of contributions: they sum a column themselves, or
count a user once in a group."""
Form = tuple[str, Quantity, Mapping[str, Any]]


Forms = tuple[tuple[str, ReleaseSpec | ReleasePlan | Code], ...]


@dataclass(frozen=True)
class OfferedPrograms:
    """The releases that an answer offers programs for, by form; the programs are written later.

    Attributes:
        source: Its `forms`, or a function that builds them on first use.
        library: The library that the answer's errors are for; None for answers without that setting.
    """

    source: Forms | Callable[[], Forms]
    library: Program | None = None

    @cached_property
    def forms(self) -> Forms:
        """Return (name, release) of each form, at least one, such as the cap, smooth weights, or several releases.

        In place of a release there may be a `Code`: a program that is no release, and the same for every library.
        """
        return self.source() if callable(self.source) else self.source


def list_data_fields(dataset: Dataset) -> dict[str, Any]:
    """Return the fields of a `ReleaseSpec` that come from the data, by name; unknown ones are left out."""
    spec_fields: dict[str, Any] = {"disclosure": dataset.provenance}
    if dataset.privacy_unit:
        spec_fields["privacy_unit"] = dataset.privacy_unit
        # A file of counts is not the table of rows that a program bounds: that one is not known.
        if dataset.layout is None or not dataset.layout.count_column:
            spec_fields |= {"has_known_columns": True, "file": name_file(dataset), "layout": dataset.layout}
    elif dataset.periods is not None:  # A histogram of users in periods: the file of rows is not known.
        rows_layout = TableLayout((FileLayout.by_name("events.csv"),), periods=dataset.periods)
        spec_fields |= {"privacy_unit": ("user_id", dataset.periods.unit_column), "layout": rows_layout}
    if dataset.values is not None:
        spec_fields["value_column"] = dataset.values.column
    pairs_or_tasks = dataset.pairs or dataset.tasks
    if pairs_or_tasks is not None:
        spec_fields["group_column"] = pairs_or_tasks.label
    if dataset.contribution is Contribution.DISTINCT_TASKS:
        spec_fields["row_description"] = (
            "one distinct task of a user, whatever its number of rows in the file"
        )
    elif dataset.contribution is Contribution.TOTAL:
        spec_fields["row_description"] = "one unit of the column that was added up, not a row of the file"
    return {field_name: field_value for field_name, field_value in spec_fields.items() if field_value}


def find_summed_column(dataset: Dataset) -> str:
    """Return the name of the column whose total counts a user's contributions; empty if contributions are rows."""
    if dataset.contribution is not Contribution.TOTAL or dataset.totals is None:
        return ""
    return dataset.totals.column


def mark_combined_groups(dataset: Dataset) -> dict[str, Any]:
    """Return ``{"has_known_columns": False}`` if several columns name a group, else an empty dictionary."""
    group_facet = dataset.pairs or dataset.tasks
    return {"has_known_columns": False} if group_facet is not None and group_facet.further_columns else {}


def name_file(dataset: Dataset) -> str:
    """Return the path of the data's file: a sample's in its folder, else the name of the data, else a placeholder."""
    sample_paths_by_title = {
        sample.title: f"sample_data/{sample.file_name}" for sample in samples.SAMPLES.values()
    }
    return sample_paths_by_title.get(dataset.name, dataset.name) or "events.csv"


def build_forms(
    epsilon: float, shared_fields: Mapping[str, Any], forms: Iterable[Form], library: Program | None = None
) -> OfferedPrograms | None:
    """Build the forms that are valid; None if none is."""
    named_specs = []
    for form_name, quantity, form_fields in forms:
        try:
            named_specs.append(
                (form_name, ReleaseSpec(quantity, epsilon, **{**shared_fields, **form_fields}))
            )
        except InvalidInput:  # A bound of 0 rows or an empty range, for which there is no program.
            continue
    return OfferedPrograms(tuple(named_specs), library) if named_specs else None


def name_cap_form(max_rows: float) -> str:
    """Return the name of the form with a bound on rows."""
    return f"Bound, {format_count(max_rows, 'row')}"


def name_smooth_form(threshold: float) -> str:
    """Return the name of the form with smooth weights."""
    return f"Smooth weights, bound {format_number(threshold)}"
