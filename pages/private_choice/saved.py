"""The private selections that a session file carries (`pages.shared.session.own_tables`).

A selection comes back only beside what it cost: its release must stand on the file's account of the same data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any

from dpcore.common.checks import Problems
from dpcore.common.privacy import Ledger, ReleaseFacts
from dpcore.common.strict_json import JsonValue, Reader
from dpcore.common.text_fields import list_field_types
from dpcore.contributions import MAX_SIZE
from dpcore.data.saved_dataset import CODEC, FACT_READERS, build_facts
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.private_pair import DrawnPair, PrivatePairProblem
from dpcore.private_choice.answer.words import Selection
from dpcore.private_choice.choice import MECHANISM_NAME, ChoiceProblem, DrawnNumber, Prior, SmallFirst
from dpcore.private_choice.parameters import BoundPurpose, NumberKind, NumberPair, OtherBound
from dpcore.private_choice.private_range import DrawnRange, RangeProblem
from dpcore.private_choice.scores import CapMean, RankedSum, RisingPrice, SizeQuantile, SmoothMean
from dpcore.private_choice.table_scores import TableCap, TableSmooth
from pages.private_choice.actions import Selections

MAX_ENTRIES, MAX_DIGEST = 1_000, 64
"""Selections of one set of data, and sets of data, and characters of the digest of a set, at most."""
_CONDITION_BY_NUMBER: dict[NumberKind, type[Any]] = {
    BoundPurpose.SMOOTH: SmoothMean,
    BoundPurpose.CAP: CapMean,
    BoundPurpose.SUM: RankedSum,
    BoundPurpose.QUANTILE: SizeQuantile,
    OtherBound.QUANTILE_SMOOTH: SmoothMean,
    OtherBound.QUANTILE_CAP: CapMean,
    OtherBound.MODEL: RisingPrice,
    OtherBound.TOTAL: RankedSum,
}
_TABLE_CONDITION_BY_NUMBER: dict[NumberKind, Any] = {
    BoundPurpose.SMOOTH: TableSmooth,
    BoundPurpose.CAP: TableCap,
}
"""Those for a mean of a table whose users differ; they have a ``user_share``."""
_NUMBER_BY_VALUE: dict[str, NumberKind] = {
    number.value: number for number in (*_CONDITION_BY_NUMBER, *NumberPair)
}
_TYPE_BY_NUMBER: dict[Any, type[Any]] = {
    NumberPair.PAIR.value: DrawnPair,
    NumberPair.RANGE.value: DrawnRange,
}
_ATTRIBUTES_BY_TYPE: dict[type[Any], dict[str, tuple[str, ...]]] = {
    DrawnNumber: {"": ("value",), "problem.": ("epsilon", "largest")},
    DrawnPair: {
        "problem.parameters.": ("epsilon", "statistic", "mechanism", "delta", "program", "num_groups"),
        "problem.": ("epsilon", "largest", "unit"),
        "": ("max_groups", "max_amount", "column"),
    },
    DrawnRange: {
        "problem.": tuple(f.name for f in fields(RangeProblem) if f.name != "neighbours"),
        "": ("lower", "upper", "column"),
    },
}
"""The attributes that a file holds, by their owner; their types say how they are read."""
_FILE_NAMES_BY_PATH = {
    "problem.epsilon": "asked_epsilon",
    "problem.lower": "known_lower",
    "problem.parameters.epsilon": "epsilon_release",
    "problem.parameters.delta": "release_delta",
    "problem.parameters.mechanism": "noise",
}
"""The names of attributes in the file that are not their own."""
_CODEC = replace(CODEC, integer_range=(1, MAX_SIZE))
_OPTIONAL_READER_BY_NAME = dict.fromkeys(("small_first", "unit"), _CODEC.make_reader(float))
_OPTIONAL_READER_BY_NAME |= {"column": _CODEC.make_reader(str)}
"""Members that some numbers lack: the power by which small candidates weigh more, and those of the bound on a total."""


def _list_paths(selection_type: type[Any]) -> dict[str, str]:
    """Return the dotted path of each attribute that a file holds of such a selection, by its name in the file."""
    return {
        _FILE_NAMES_BY_PATH.get(owner_prefix + attribute_name, attribute_name): owner_prefix + attribute_name
        for owner_prefix, attribute_names in _ATTRIBUTES_BY_TYPE[selection_type].items()
        for attribute_name in attribute_names
    }


def to_json(selections_by_digest: Mapping[str, Selections]) -> dict[str, Any]:
    """Convert the selections to JSON, by digest of the data behind them, the latest `MAX_ENTRIES` of each.

    All of it is public or released.
    """
    return {
        digest: [
            _convert_selection(*number_and_selection)
            for number_and_selection in selections_of_data[-MAX_ENTRIES:]
        ]
        for digest, selections_of_data in selections_by_digest.items()
        if selections_of_data
    }


def _convert_selection(number_kind: NumberKind, selection: Selection) -> dict[str, Any]:
    """Convert a selection to a JSON object of its number, its attributes and its guarantee."""
    paths_by_name = _list_paths(type(selection))
    values_by_name = {
        attribute_name: attrgetter(attribute_path)(selection)
        for attribute_name, attribute_path in paths_by_name.items()
    }
    if isinstance(selection, DrawnNumber):
        prior = selection.problem.prior
        guess_members = asdict(prior) if isinstance(prior, Prior) else {"guess": None, "factor": None}
        values_by_name |= {"condition": asdict(selection.problem.condition), **guess_members}
        if isinstance(prior, SmallFirst):
            values_by_name["small_first"] = prior.power
        if selection.column:
            values_by_name |= {"unit": selection.problem.unit, "column": selection.column}
    json_by_name = {
        attribute_name: _CODEC.write(attribute_value)
        for attribute_name, attribute_value in values_by_name.items()
    }
    return {"number": number_kind.value, **json_by_name, **_CODEC.write(selection.facts)}


def from_json(node: JsonValue, accounts: Mapping[str, Ledger]) -> dict[str, Selections]:
    """Read the selections of a file that are on its accounts, by digest of their data; problems are noted.

    Args:
        node: What `to_json` wrote.
        accounts: What the file says was released, by digest of the data.
    """
    selections_by_digest: dict[str, Selections] = {}
    for digest, entries_node in (node.get_named(MAX_ENTRIES) or {}).items():
        if JsonValue(digest, entries_node.location, entries_node.problems).get_text(MAX_DIGEST) is None:
            continue
        paid_facts = list(accounts.get(digest, Ledger()).releases)
        numbers_and_selections = []
        for selection_node in entries_node.get_entries(MAX_ENTRIES) or ():
            number_and_selection = _read_entry(selection_node)
            if number_and_selection is None:
                continue
            if number_and_selection[1].facts in paid_facts:
                paid_facts.remove(number_and_selection[1].facts)
                numbers_and_selections.append(number_and_selection)
            else:
                selection_node.refuse("what this number cost does not stand on the account of its data")
        selections_by_digest[digest] = tuple(numbers_and_selections)
    return selections_by_digest


def _read_entry(node: JsonValue) -> tuple[NumberKind, Selection] | None:
    """Read a selection with its number; None, with the problems noted, if no private selection can have given it."""
    number_text = node.value.get("number") if isinstance(node.value, dict) else None
    selection_type = (
        _TYPE_BY_NUMBER.get(number_text, DrawnNumber) if isinstance(number_text, str) else DrawnNumber
    )
    reader_by_name: dict[str, Reader] = {"number": lambda node: node.choose(_NUMBER_BY_VALUE)}
    for attribute_name, attribute_path in _list_paths(selection_type).items():
        attribute_type: Any = selection_type
        for attribute in attribute_path.split("."):
            attribute_type = list_field_types(attribute_type)[attribute]
        reader_by_name[attribute_name] = _CODEC.make_reader(attribute_type)
    if selection_type is DrawnNumber:
        reader_by_name |= {"condition": lambda condition: condition}
        reader_by_name |= dict.fromkeys(("guess", "factor"), _CODEC.make_reader(float | None))
    optional_reader_by_name = dict(_OPTIONAL_READER_BY_NAME) if selection_type is DrawnNumber else {}
    # Files of earlier versions lack these.
    optional_reader_by_name |= {
        attribute_name: reader_by_name.pop(attribute_name)
        for attribute_name in ("program", "clamps_users")
        if attribute_name in reader_by_name
    }
    values_by_attribute = node.read_members({**reader_by_name, **FACT_READERS}, optional_reader_by_name)
    facts = build_facts(node, values_by_attribute)
    if values_by_attribute is None or facts is None:
        return None
    num_problems = len(node.problems.entries)
    selection = node.build(_build_selection, selection_type, values_by_attribute, facts)
    if selection is None:
        if len(node.problems.entries) == num_problems:
            node.refuse("this cannot be drawn for its question")
        return None
    is_exponential_draw = facts.delta == 0.0 and facts.mechanism == MECHANISM_NAME
    if not (is_exponential_draw and 0.0 < facts.epsilon <= selection.problem.epsilon):
        node.refuse("this is not what drawing it guarantees")
        return None
    return values_by_attribute["number"], selection


def _build_selection(
    selection_type: type[Any], values_by_attribute: dict[str, Any], facts: ReleaseFacts
) -> Selection | None:
    """Build a selection from the members of its JSON; None if no draw for its problem can give it."""
    if selection_type is DrawnNumber:
        return _build_choice(values_by_attribute, facts)
    fields_by_prefix = {
        owner_prefix: {
            attribute_name: values_by_attribute[file_name]
            for attribute_name in attribute_names
            if (file_name := _FILE_NAMES_BY_PATH.get(owner_prefix + attribute_name, attribute_name))
            in values_by_attribute
        }
        for owner_prefix, attribute_names in _ATTRIBUTES_BY_TYPE[selection_type].items()
    }
    if selection_type is DrawnRange:
        problem = RangeProblem(neighbours=facts.neighbours, **fields_by_prefix["problem."])
        private_range = DrawnRange(facts=facts, problem=problem, **fields_by_prefix[""])
        return private_range if problem.may_draw(private_range.lower, private_range.upper) else None
    parameters = PerGroupParameters(neighbours=facts.neighbours, **fields_by_prefix["problem.parameters."])
    pair_problem = PrivatePairProblem(parameters, **fields_by_prefix["problem."])
    pair = DrawnPair(facts=facts, problem=pair_problem, **fields_by_prefix[""])
    grid_pairs = zip(*pair_problem.candidates, strict=True)
    candidate_pairs = {(int(g), float(c * pair_problem.unit)) for g, c in grid_pairs}
    return pair if (pair.max_groups, pair.max_amount) in candidate_pairs else None


def _build_choice(values_by_attribute: dict[str, Any], facts: ReleaseFacts) -> DrawnNumber | None:
    """Build a selected number from the members of its JSON; None if no draw for its problem can give it."""
    number_kind, column_name, drawn_value = (
        values_by_attribute["number"],
        values_by_attribute.get("column", ""),
        values_by_attribute["value"],
    )
    guess, factor, small_first_power = (
        values_by_attribute["guess"],
        values_by_attribute["factor"],
        values_by_attribute.get("small_first"),
    )
    with Problems() as problems:
        if (number_kind is OtherBound.TOTAL) != bool(column_name):
            problems.add("a unit and a column go with the bound on a total")
        if (guess is None) != (factor is None):
            problems.add("a guess goes with a factor that says how good it is")
        if guess is not None and small_first_power is not None:
            problems.add("where there is a guess, small bounds do not weigh more")
    condition_type, condition_node = _CONDITION_BY_NUMBER[number_kind], values_by_attribute["condition"]
    if isinstance(condition_node.value, dict) and "user_share" in condition_node.value:
        condition_type = _TABLE_CONDITION_BY_NUMBER.get(number_kind, condition_type)
    condition = _CODEC.read(condition_node, condition_type)
    if condition is None:
        return None
    prior: Prior | SmallFirst | None = None if small_first_power is None else SmallFirst(small_first_power)
    if guess is not None:
        prior = Prior(guess, factor)
    epsilon, largest, unit_size = (
        values_by_attribute["asked_epsilon"],
        values_by_attribute["largest"],
        values_by_attribute.get("unit", 1.0),
    )
    problem = ChoiceProblem(condition, epsilon, largest, facts.neighbours, prior, unit_size)
    return DrawnNumber(drawn_value, facts, problem, column_name) if drawn_value in problem.bounds else None


def merge(
    selections_by_digest: Mapping[str, Selections], further_by_digest: Mapping[str, Selections]
) -> dict[str, Selections]:
    """Return the selections of both, by digest; one that both have stands there as often as in the one with more."""
    merged_by_digest = dict(selections_by_digest)
    for digest, further_selections in further_by_digest.items():
        unmatched_selections = list(merged_by_digest.get(digest, ()))
        for number_and_selection in further_selections:
            if number_and_selection in unmatched_selections:
                unmatched_selections.remove(number_and_selection)
            else:
                merged_by_digest[digest] = (*merged_by_digest.get(digest, ()), number_and_selection)
        merged_by_digest.setdefault(digest, ())
    return merged_by_digest
