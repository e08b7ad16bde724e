"""The declaration of a question, and what its fields begin with for new data.

The declaration of a question: its place in the app, its parameters, and what else its page keeps.

Widgets, session keys, links, resets, reports and the sentences on empty fields follow from it.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from dpcore.common.checks import VALUE_BOUND_RANGE
from dpcore.common.parameters import EPSILON, Field, Parameters, Place, declared_fields
from dpcore.common.parameters import FieldOrigin as FieldOrigin
from dpcore.common.text_fields import list_former_names
from dpcore.dataset import Dataset

SIMULATION = "Simulation"
"""Stands on the badge of pages that release nothing."""
DEFAULT_VALUE_BOUNDS = (0.0, 1.0)
"""Values in [0, 1], as shares and answers of yes or no are."""


def round_range_outward(lowest_value: float, highest_value: float) -> tuple[float, float]:
    """Return bounds around [low, high] and 0, each 0 or ±1, 2 or 5 times a power of ten; (0, 1) if both would be 0.

    Ends whose magnitude is below the least of `VALUE_BOUND_RANGE` become 0. Half of its largest is the most.
    """
    smallest_magnitude, largest_magnitude = VALUE_BOUND_RANGE
    lower = (
        0.0 if lowest_value > -smallest_magnitude else -round_up(min(-lowest_value, largest_magnitude / 2.0))
    )
    upper = (
        0.0 if highest_value < smallest_magnitude else round_up(min(highest_value, largest_magnitude / 2.0))
    )
    return (lower, upper) if lower < upper else (lower, lower + 1.0)


def round_up(value: float) -> float:
    """Return the smallest number of the form 1, 2 or 5 times a power of ten that is at least ``value`` > 0."""
    power_of_ten = 10.0 ** math.floor(math.log10(value))
    return next(
        (power_of_ten * factor for factor in (1.0, 2.0, 5.0) if power_of_ten * factor >= value),
        10.0 * power_of_ten,
    )


def propose_settings(
    current_values: Mapping[str, Any], proposals: Mapping[str, Any], reset_names: Collection[str] = ()
) -> dict[str, Any]:
    """Return the proposals for settings that the user has not changed, each also under ``…_proposed``, by name.

    A setting that the user changed is left out, unless it is one of ``reset_names``: it was chosen for other data.
    """
    return {
        proposed_name: proposed_value
        for field_name, proposed_value in proposals.items()
        if field_name in reset_names or current_values[field_name] == current_values[f"{field_name}_proposed"]
        for proposed_name in (field_name, f"{field_name}_proposed")
    }


def propose_range(
    dataset: Dataset,
    current_values: Mapping[str, Any],
    field_names: tuple[str, str],
    initial_ends: tuple[float | None, float | None] = (None, None),
    value_limits: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Return new values, by name, of the two fields of a range and of ``proposed``; empty if all stay.

    Public values propose their rounded range, answers of yes and no 0 to 1, and binned values the range of the public
    bins; a range that the user entered stays.

    For other private values there is no range, and the page asks for one: a range that nobody chose would clamp values
    without a word and stand in programs. For a release nothing is proposed.

    Args:
        dataset: The new data.
        current_values: Present values of the fields.
        field_names: Names of the two fields, of the lower end and of the upper.
        initial_ends: The range for data without values; fields that hold it count as untouched.
        value_limits: Least and largest value; None for those of the facet of values.
    """
    current_ends = current_values[field_names[0]], current_values[field_names[1]]
    replaceable_ranges = current_values["proposed"] or initial_ends, (None, None)
    if dataset.release is not None or current_ends not in replaceable_ranges:
        return {}
    if value_limits is None and dataset.values is not None:
        value_limits = dataset.values.limits
    new_ends = (
        (None, None)
        if dataset.is_private
        else initial_ends
        if value_limits is None
        else round_range_outward(*value_limits)
    )
    new_ends = DEFAULT_VALUE_BOUNDS if dataset.has_shares else new_ends
    if dataset.values is not None and dataset.values.bins is not None:
        new_ends = dataset.values.limits  # Whoever counted the values knew them without looking.
    return {field_names[0]: new_ends[0], field_names[1]: new_ends[1], "proposed": new_ends}


T = TypeVar("T")


class Facet(enum.Enum):
    """The facet of the data in use that a question answers from."""

    ROWS = "how many rows each user has"
    VALUES = "a value in each row"
    GROUPS = "a group, product or task in each row"


@dataclass(frozen=True)
class Question:
    """One page as it is declared, without the values of its fields.

    Attributes:
        name: Name of its folders in the core and in the pages.
        title: Title in the sidebar.
        icon: Material icon.
        url_path: Path in the address; empty for the first page.
        navigation_group: Heading in the sidebar; empty for none.
        question_sentence: The question that the page answers, in one sentence, for Home and the sidebar.
        lead_text: The sentence under the page's title, Markdown.
        chooses_bound: True if the page chooses the bound of a release about the data in use.
        is_quick_to_answer: True if its bound is found fast enough to stand on the cards of other pages, too.
        shown_data_name: Name in the sidebar of the data that the page shows if it never shows those in use.
        result_noun: The thing on the card that its badge is about; `SIMULATION` if the page releases nothing.
        page_heading: The page's title, if that is not the title in the sidebar.
        release_phrase: What users say they want to release if this page is the answer; empty for none.
        answering_facets: Facets of the data that it answers from: one suffices, and no facet means any data. *Data*
            leads to it if the data have one.
        has_own_data: True if the page brings data of its own and leaves the session's alone.
        own_file_entry_name: Name in the session of a file of the page's own while that is in use; empty for none.
        parameters_type: Class of the page's parameters object, which declares the fields; None if it has none.
        origins_by_entry: The origin of each other value that the page keeps in the session, by name: tabs, runs, jobs.
        propose_values: Returns values of fields for new data, by name, given the data and the present values.
        proposed_field_names: Fields that ``propose_values`` may set. A page that nobody has seen has these alone.
        selects_bounds_privately: True if its folder has ``on_card.py``, which does so on the cards of other pages.
        is_budget_plan: True if its folder has ``on_card.py``, which takes the releases of other cards into a plan.
        is_release_sheet: True if it states what the cards of other pages release.
        replacements_by_former_name: For each field of earlier links and session files: its new name, or the values that
            later fields have if a link or file lacks them, by name. A field that has only another name says so in its
            declaration.
        symbols_by_phrase: The paper's symbols by the words on the page's plots, for the switch *Paper notation*.
    """

    name: str
    title: str
    icon: str
    url_path: str
    navigation_group: str
    question_sentence: str
    lead_text: str = ""
    chooses_bound: bool = False
    is_quick_to_answer: bool = False
    shown_data_name: str = ""
    result_noun: str = "Bound"
    page_heading: str = ""
    release_phrase: str = ""
    answering_facets: tuple[Facet, ...] = ()
    has_own_data: bool = False
    own_file_entry_name: str = ""
    parameters_type: type[Parameters] | None = None
    origins_by_entry: Mapping[str, FieldOrigin] = field(default_factory=dict)
    propose_values: Callable[[Dataset, Mapping[str, Any]], Mapping[str, Any]] | None = None
    proposed_field_names: tuple[str, ...] = ()
    selects_bounds_privately: bool = False
    is_budget_plan: bool = False
    is_release_sheet: bool = False
    replacements_by_former_name: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)
    symbols_by_phrase: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if repeated_names := set(self.fields) & set(self.origins_by_entry):
            raise ValueError(f"{self.name} declares twice: {sorted(repeated_names)}")

    @functools.cached_property
    def fields(self) -> Mapping[str, Field]:
        """Return the declarations of the fields, by name, without the shared epsilon.

        On a page with data of its own, values that may have been read off data belong to these.
        """
        declarations = {} if self.parameters_type is None else declared_fields(self.parameters_type)
        if not self.has_own_data:
            return declarations
        return {
            field_name: replace(field, origin=FieldOrigin.OWN_DATA)
            if field.origin is FieldOrigin.DATA
            else field
            for field_name, field in declarations.items()
        }

    def list_fields(self, *places: Place) -> list[str]:
        """Return the names of the fields that stand in these places."""
        return [field_name for field_name, field in self.fields.items() if field.place in places]

    @functools.cached_property
    def ledgers_key(self) -> str:
        """Return the session key of the ledgers of the page's own data, ``spent``; empty for none.

        There is one ledger per set of data, and session files carry them.
        """
        return self.get_key("spent") if self.has_own_data and "spent" in self.origins_by_entry else ""

    @functools.cached_property
    def own_file_key(self) -> str:
        """Return the session key of the page's own file, ``own_file_entry_name``; empty for none."""
        return self.get_key(self.own_file_entry_name) if self.own_file_entry_name else ""

    @functools.cached_property
    def page_path(self) -> str:
        """Return the absolute path of the page's file, from a cache: every run of the app names all pages."""
        module_spec = find_spec(f"pages.{self.name}.page")  # It looks for the file and runs nothing.
        if module_spec is None or module_spec.origin is None:
            raise FileNotFoundError(f"the folder of {self.name} has no page.py")
        return module_spec.origin

    def rename_former_fields(
        self, values_by_field: Mapping[str, T], convert_value: Callable[[Any], T]
    ) -> dict[str, T]:
        """Return the values of an earlier link or session file by today's names; a value under today's name stays.

        Args:
            values_by_field: Values by the names of then. A field that is gone stays among them: the app can say so.
            convert_value: Returns a value as such a link or file has it.
        """
        current_values = dict(values_by_field)
        new_name_by_former_name = (
            {} if self.parameters_type is None else list_former_names(self.parameters_type)
        )
        for former_name, replacement in {
            **self.replacements_by_former_name,
            **new_name_by_former_name,
        }.items():
            if former_name not in values_by_field:
                continue
            if isinstance(replacement, str):
                current_values.setdefault(replacement, current_values.pop(former_name))
            else:
                current_values = {
                    later_name: convert_value(value) for later_name, value in replacement.items()
                } | current_values
        return current_values

    def list_newer_defaults(self, stored_names: Iterable[str]) -> dict[str, Any]:
        """Return the defaults of fields that an earlier session file lacks because they came later.

        Args:
            stored_names: Names of the fields that the file has. A page that was seen has all fields of its time. A page
                that nobody saw has only proposed fields, and these meant nothing yet.
        """
        assert self.parameters_type is not None
        known_names = set(stored_names)
        lasting_names = {name for name in known_names & set(self.fields) if not self.fields[name].is_renewed}
        if not lasting_names - set(self.proposed_field_names):
            return {}
        newer_names = self.fields.keys() - known_names
        newer_fields = [f for f in fields(self.parameters_type) if f.name in newer_names]
        return {f.name: f.default for f in newer_fields if f.default is not MISSING}

    def get_key(self, entry_name: str) -> str:
        """Return the session key of a declared entry: a field, or a name in ``origins_by_entry``.

        Raises:
            KeyError: The question declares no such entry.
        """
        return self._session_keys[entry_name]

    @functools.cached_property
    def _session_keys(self) -> dict[str, str]:
        """Return the session key of each entry by its name."""
        entry_names = *self.fields, *self.origins_by_entry, "against_job"
        return _SessionKeys({entry_name: f"{self.name}.{entry_name}" for entry_name in entry_names})

    @functools.cached_property
    def widget_keys(self) -> dict[str, str]:
        """Return the session key of each field by name, with the shared epsilon if the page has parameters."""
        epsilon_key_by_name = {"epsilon": "epsilon"} if self.parameters_type is not None else {}
        return epsilon_key_by_name | {field_name: self.get_key(field_name) for field_name in self.fields}

    @functools.cached_property
    def declarations(self) -> dict[str, Field]:
        """Return the declarations of the fields, by name, after that of the shared epsilon, which every page gets."""
        return {"epsilon": EPSILON, **self.fields}

    @functools.cached_property
    def subjects_by_field(self) -> dict[str, str]:
        """Return what each field is called in a sentence, by name of the field, fields that may stay empty included."""
        return {field_name: self.declarations[field_name].subject for field_name in self.widget_keys}

    def can_answer(self, dataset: Dataset) -> bool:
        """Return True if the data have one of the facets in ``answering_facets``, or if the question needs none."""
        content_by_facet = {
            Facet.ROWS: dataset,
            Facet.VALUES: dataset.values,
            Facet.GROUPS: dataset.task_sizes,
        }
        return not self.answering_facets or any(
            content_by_facet[facet] is not None for facet in self.answering_facets
        )

    def read_formula(self, file_stem: str = "formula") -> str:
        """Return the text of a Markdown file in the page's folder, which says how the page computes."""
        return Path(self.page_path).with_name(f"{file_stem}.md").read_text(encoding="utf-8")

    def get_report_labels(self, *field_names: str) -> dict[str, str]:
        """Return the labels in a report of these fields, or of all, by name; the shared epsilon comes first."""
        listed_fields = {
            field_name: self.declarations[field_name]
            for field_name in ("epsilon", *(field_names or self.fields))
        }
        return {field_name: field.report_label or field.label for field_name, field in listed_fields.items()}

    def get_origin(self, entry_name: str) -> FieldOrigin:
        """Return the origin of the value under this name.

        A longer name, such as that of a widget in each round, has the origin of a declared name up to an underscore. A
        value that is declared nowhere counts as read off the data.
        """
        if entry_name in self.fields:
            return self.fields[entry_name].origin
        matching_entries = [
            n
            for n in self.origins_by_entry
            if entry_name == n or entry_name.startswith(n.removesuffix("_") + "_")
        ]
        return self.origins_by_entry[max(matching_entries, key=len)] if matching_entries else FieldOrigin.DATA

    def get_initial_value(self, field_name: str) -> Any:
        """Return the initial value of a field."""
        return self.declarations[field_name].initial

    def get_emptied_value(self, field_name: str) -> Any:
        """Return the value of a field that was emptied: None if it may be read off values, else its initial value.

        A default range of values would look like a choice that somebody made.
        """
        return (
            None
            if self.declarations[field_name].origin is FieldOrigin.VALUES
            else self.get_initial_value(field_name)
        )


class _SessionKeys(dict[str, str]):
    """Session keys by name."""

    def __missing__(self, entry_name: str) -> str:
        """Raise KeyError with a sentence for a name that the question does not declare."""
        raise KeyError(f"this question declares no {entry_name}")
