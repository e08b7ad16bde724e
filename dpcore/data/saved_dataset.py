"""A data set as JSON and back, and the meaning of its columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpcore.common.parameters import fields_by_name
from dpcore.common.privacy import Neighbours, ReleaseFacts, is_mechanism
from dpcore.common.strict_json import Codec, JsonValue, Reader, cut, read_text, read_texts
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray, IntArray
from dpcore.data.design_matrix import MAX_LEVELS, Design, Feature, FeatureKind
from dpcore.data.task_facets import Pairs, PairSizes, TaskSizes
from dpcore.dataset import MAX_VALUES, Dataset, LabelledRows, Totals, Values

ROOM = 32_000_000
"""Largest number of bytes of the arrays of one file, about two million rows with values; encoded, a third more."""
MAX_SIZES = 1_000_000
"""Largest number of distinct sizes in a file."""
NAME, SENTENCE, NOTES = 500, 4_000, 100
"""Longest name and sentence, and largest number of notes."""
MAX_NAMES = 10_000
"""Largest number of names of features, and of files."""

_TYPES_BY_FACET: dict[str, type[Any]] = {
    "values": Values,
    "totals": Totals,
    "pairs": Pairs,
    "tasks": TaskSizes,
    "pair_sizes": PairSizes,
    "table": LabelledRows,
}
"""The facets of `Dataset`."""
_CODE_ATTRIBUTES = ("user_codes", "task_codes")


@dataclass(frozen=True)
class SavedDataset:
    """A dataset as JSON.

    Attributes:
        dataset_json: The dataset as a JSON object; None if not even the histogram has room.
        left_out_phrases: Facets that were left out, a phrase each, with dataset and size.
        remaining_bytes: Bytes that remain for another dataset; negative if not even the histogram has room.
    """

    dataset_json: dict[str, Any] | None
    left_out_phrases: tuple[str, ...]
    remaining_bytes: int


def to_json(dataset: Dataset, remaining_bytes: int = ROOM) -> SavedDataset:
    """Convert a dataset to JSON with as many facets as fit, smallest first.

    Facets and further value columns that do not fit are left out, with a note. Names of groups are always left out.

    Args:
        dataset: The data.
        remaining_bytes: Largest number of bytes of its arrays.
    """
    histogram = dataset.histogram
    remaining_bytes -= 16 * histogram.sizes.size
    if remaining_bytes < 0 or histogram.sizes.size > MAX_SIZES:
        return SavedDataset(None, (f"{dataset.name}: too many different numbers of rows",), remaining_bytes)
    facets_by_name: dict[str, Any] = {
        facet_name: getattr(dataset, facet_name) for facet_name in _TYPES_BY_FACET
    }
    left_out_phrases = []
    filled_facets = [(facet_name, facet) for facet_name, facet in facets_by_name.items() if facet is not None]
    for facet_name, facet in sorted(
        filled_facets, key=lambda name_and_facet: _count_bytes(name_and_facet[1])
    ):
        num_bytes = _count_bytes(facet)
        if num_bytes <= remaining_bytes and _is_readable(facet):
            remaining_bytes -= num_bytes
        else:
            facets_by_name[facet_name] = None
            facet_text = f"the {facet_name.replace('_', ' ')} ({num_bytes / 1e6:,.1f} MB)"
            left_out_phrases.append(f"{dataset.name}: {facet_text}")
    further_datasets, further_jsons = [], []
    for further_dataset in dataset.further_datasets:
        saved_column = to_json(further_dataset, remaining_bytes)
        if saved_column.dataset_json is None or saved_column.left_out_phrases:
            left_out_phrases.append(f"{dataset.name}: column {further_dataset.value_column}")
        else:
            further_datasets.append(further_dataset)
            further_jsons.append(saved_column.dataset_json)
            remaining_bytes = saved_column.remaining_bytes
    notes = (*dataset.notes, *(f"Left out of the session file: {phrase}." for phrase in left_out_phrases))
    # Names of tasks are left out, as they are contents of rows, not counts.
    further_fields: dict[str, Any] = {"task_names": (), "further_datasets": tuple(further_datasets)}
    dataset_json = _convert_dataset(replace(dataset, notes=notes, **further_fields, **facets_by_name))
    dataset_json |= {"further": further_jsons} if further_jsons else {}
    return SavedDataset(dataset_json, tuple(left_out_phrases), remaining_bytes)


def _count_bytes(facet: Any) -> int:
    """Return the number of bytes of the arrays of a facet."""
    field_values = [getattr(facet, facet_field.name) for facet_field in fields(facet)]
    return sum(field_value.nbytes for field_value in field_values if isinstance(field_value, np.ndarray))


def _is_readable(facet: Any) -> bool:
    """Return True if the codes and texts of a facet are within the limits of reading a file."""
    field_values = [getattr(facet, f.name) for f in fields(facet)]
    tuples_of_values = [value if isinstance(value, tuple) else (value,) for value in field_values]
    all_values = [value for tuple_of_values in tuples_of_values for value in tuple_of_values]
    return (
        all(
            int(getattr(facet, code_attribute).max()) < MAX_VALUES
            for code_attribute in _CODE_ATTRIBUTES
            if hasattr(facet, code_attribute)
        )
        and getattr(facet, "num_tasks", 0) <= MAX_VALUES
        and all(cut(value, NAME) == value for value in all_values if isinstance(value, str))
        and len(all_values) <= MAX_NAMES
    )


def _convert_dataset(dataset: Dataset) -> dict[str, Any]:
    """Convert a dataset to a JSON object; long texts and lists are cut."""
    facets_by_name = {name: getattr(dataset, name) for name in _TYPES_BY_FACET}
    members_by_name = {
        "name": dataset.name,
        "source": cut(dataset.source, SENTENCE),
        "disclosure": dataset.disclosure,
        "privacy_unit": dataset.privacy_unit[:NOTES],
        "contribution": dataset.contribution,
        "notes": [cut(dataset_note, SENTENCE) for dataset_note in dataset.notes[:NOTES]],
        "digest": dataset.digest,
        "histogram": {"sizes": dataset.histogram.sizes.tolist(), "users": dataset.histogram.users.tolist()},
        "facets": {
            name: CODEC.write_fields(facet) for name, facet in facets_by_name.items() if facet is not None
        },
        "release": dataset.release,
        "layout": dataset.layout,
    }
    return {name: CODEC.write(member) for name, member in members_by_name.items() if member is not None}


# --- Reading ----------------------------------------------------------------------------------------------------------


def _read_mechanism(node: JsonValue) -> str | None:
    """Read the name of a mechanism; None, with a problem, if it is not one."""
    mechanism_text = node.get_text(80)
    if mechanism_text is not None and not is_mechanism(mechanism_text):
        node.refuse("a mechanism is named in letters, digits, blanks and hyphens")
    return mechanism_text


def _read_integers(node: JsonValue, max_integer: int = MAX_SIZE) -> IntArray | None:
    """Read an array of integers; None, with a problem, if it is not one.

    An integer outside 0 .. ``max_integer`` is added as a problem, too.
    """
    integers = node.get_array("int64")
    if integers is not None and integers.size and not 0 <= integers.min() <= integers.max() <= max_integer:
        node.refuse(f"these must be whole numbers from 0 to {max_integer:,}")
    return integers


def _read_codes(node: JsonValue) -> IntArray | None:
    """Read an array of codes below `MAX_VALUES`; None, with a problem, if it is not one."""
    # Arrays have an entry for every code up to the largest, so a huge code would take all memory.
    return _read_integers(node, MAX_VALUES - 1)


def _read_feature(node: JsonValue) -> Feature | None:
    """Read a feature: its column, kind, reference and levels; None, with a problem, if it is not one."""
    entry_nodes = node.get_entries(3 + MAX_LEVELS) or []
    if len(entry_nodes) < 3:
        node.refuse("a feature is a column, its kind, a reference level and further levels")
        return None
    text_nodes = entry_nodes[0], *entry_nodes[2:]
    column_name, reference_level, *levels = (text_node.get_text(NAME) or "" for text_node in text_nodes)
    encoding: FeatureKind | None = CODEC.read(entry_nodes[1], FeatureKind)
    return None if encoding is None else Feature(column_name, encoding, reference_level, tuple(levels))


_CODE_FIELDS = [
    (facet, name)
    for facet in _TYPES_BY_FACET.values()
    for name in _CODE_ATTRIBUTES
    if name in fields_by_name(facet)
]
_NEIGHBOURS_BY_NAME = {relation.short: relation for relation in Neighbours}
CODEC = Codec(
    NAME,
    MAX_NAMES,
    readers_by_type={
        Feature: _read_feature,
        Neighbours: lambda node: node.choose(_NEIGHBOURS_BY_NAME),
        (ReleaseFacts, "mechanism"): _read_mechanism,
        IntArray: _read_integers,
        FloatArray: lambda node: node.get_array("float64"),
        (LabelledRows, "features"): lambda node: node.get_array("float64", num_dimensions=2),
        (Pairs, "num_tasks"): lambda node: node.get_integer(1, MAX_VALUES),
        **dict.fromkeys(_CODE_FIELDS, _read_codes),
    },
    writers_by_type={
        Feature: lambda f: [f.column, f.encoding.value, f.reference, *f.further_levels],
        Neighbours: lambda relation: relation.short,
    },
)
"""The form of data, of releases and of designs in a session file."""
FACT_READERS: Mapping[str, Reader] = CODEC.list_readers(ReleaseFacts)[0]
"""Readers of the facts of a release."""


def build_facts(node: JsonValue, values_by_member: Mapping[str, Any] | None) -> ReleaseFacts | None:
    """Build the facts of a release from members that were read; None if there are problems, which are added."""
    if values_by_member is None:
        return None
    return node.build(
        ReleaseFacts, **{member_name: values_by_member[member_name] for member_name in FACT_READERS}
    )


def from_json(node: JsonValue, is_further: bool = False) -> Dataset | None:
    """Build the dataset that `to_json` wrote; None if there are problems, which are added.

    Every facet is checked like one from an upload, and the dataset by the digest that it had when it was saved.

    Args:
        node: The JSON.
        is_further: True for a further value column, which has none itself.
    """
    needed_readers, optional_readers = CODEC.list_readers(Dataset)
    all_readers = needed_readers | optional_readers
    facet_readers = {member_name: optional_readers[member_name] for member_name in _TYPES_BY_FACET}
    column_readers: dict[str, Reader] = {} if is_further else {"further": _read_further}
    values_by_member = node.read_members(
        {
            **{
                member_name: all_readers[member_name]
                for member_name in ("name", "disclosure", "contribution")
            },
            "source": read_text(SENTENCE),
            "privacy_unit": read_texts(NOTES, NAME),
            "notes": read_texts(NOTES, SENTENCE + NAME),
            "digest": read_text(64),
            "histogram": _read_histogram,
            "facets": lambda facets_node: facets_node.read_members({}, facet_readers),
        },
        {member_name: optional_readers[member_name] for member_name in ("release", "layout")}
        | column_readers,
    )
    if values_by_member is None:
        return None
    stored_digest, facets_by_name = values_by_member.pop("digest"), values_by_member.pop("facets")
    further_datasets = values_by_member.pop("further", ())
    dataset = node.build(Dataset, **values_by_member, **facets_by_name, further_datasets=further_datasets)
    if dataset is not None and dataset.digest != stored_digest:
        node.refuse("these data are not those that were saved: the file was changed or damaged")
        return None
    return dataset


def _read_further(node: JsonValue) -> tuple[Dataset, ...]:
    """Read the further value columns of a dataset; problems are added."""
    entry_nodes = node.get_entries(NOTES) or []
    return tuple(filter(None, [from_json(entry_node, is_further=True) for entry_node in entry_nodes]))


def _read_histogram(node: JsonValue) -> ContributionHistogram | None:
    """Read a histogram from its sizes and users; None, with problems, if it is not one."""
    members_by_name = node.get_members(["sizes", "users"])
    if members_by_name is None:
        return None
    size_nodes, user_nodes = (
        members_by_name[list_name].get_entries(MAX_SIZES) for list_name in ("sizes", "users")
    )
    if size_nodes is None or user_nodes is None:
        return None
    if not all(type(entry_node.value) is int for entry_node in (*size_nodes, *user_nodes)):
        node.refuse("sizes and users must be whole numbers")
        return None
    return node.build(ContributionHistogram, [e.value for e in size_nodes], [e.value for e in user_nodes])


def compute_seal(account: str, dataset_digest: str, design_json: Mapping[str, Any] | None) -> str:
    """Compute the SHA-256 of account, data and design, hexadecimal; it differs if the account is of other data."""
    return hashlib.sha256(json.dumps([account, dataset_digest, design_json]).encode()).hexdigest()


def table_to_json(
    dataset_json: Mapping[str, Any], account: str, design: Design | None, settings: Mapping[str, float]
) -> dict[str, Any]:
    """Build the JSON object of a page's own table: data, account, design, settings, and their seal.

    Args:
        dataset_json: The data, from `dpcore.data.saved_dataset.to_json`.
        account: Privacy account of the rows.
        design: Roles of its columns.
        settings: Entries of the user about its columns, by session key.
    """
    design_json = CODEC.write(design)
    return {
        "content": dataset_json,
        "account": account,
        "design": design_json,
        "entered": dict(settings),
        "seal": compute_seal(account, dataset_json["digest"], design_json),
    }
