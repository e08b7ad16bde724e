"""The private selections that a session file carries (`pages.shared.session.own_tables`).

A selection comes back only beside what it cost: its release must stand on the file's account of the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from operator import attrgetter
from typing import Any

from dpcore.common.checks import Problems
from dpcore.common.privacy import Ledger, ReleaseFacts
from dpcore.common.strict_json import JsonValue, Reader
from dpcore.common.text_fields import list_field_types
from dpcore.contributions import MAX_SIZE
from dpcore.data.saved_dataset import CODEC, FACTS, build_facts
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.private_choice.answer.words import Selection
from dpcore.private_choice.choice import MECHANISM, ChoiceProblem, Prior, PrivateChoice, SmallFirst
from dpcore.private_choice.parameters import Bounded, NumberKind, Several, Wanted
from dpcore.private_choice.private_range import PrivateRange, RangeProblem
from dpcore.private_choice.scores import CapMean, RankedSum, RisingPrice, SizeQuantile, SmoothMean
from dpcore.private_choice.table_scores import TableCap, TableSmooth
from pages.private_choice.actions import Choices

MAX_ENTRIES, MAX_DIGEST = 1_000, 64
"""Selections of one set of data, and sets of data, and characters of the digest of a set, at most."""
_CONDITIONS: dict[NumberKind, type[Any]] = {
    Wanted.SMOOTH: SmoothMean,
    Wanted.CAP: CapMean,
    Wanted.SUM: RankedSum,
    Wanted.QUANTILE: SizeQuantile,
    Bounded.QUANTILE_SMOOTH: SmoothMean,
    Bounded.QUANTILE_CAP: CapMean,
    Bounded.MODEL: RisingPrice,
    Bounded.TOTAL: RankedSum,
}
_OF_TABLE: dict[NumberKind, type[Any]] = {Wanted.SMOOTH: TableSmooth, Wanted.CAP: TableCap}
USER_SHARE = "user_share"
"""Key of the condition for a mean of a table whose users differ; independent rows have none."""
SMALL_FIRST = "small_first"
"""The power by which small candidates weigh more; files of before, and selections without it, have none."""
UNIT, COLUMN = "unit", "column"
"""Of the bound on a total; a bound on rows has neither."""
_NUMBERS: dict[str, NumberKind] = {number.value: number for number in (*_CONDITIONS, *Several)}
_PATHS: dict[type[Any], dict[str, str]] = {
    PrivateChoice: {"value": "value", "asked_epsilon": "problem.epsilon", "largest": "problem.largest"},
    PrivatePair: {
        "epsilon_release": "problem.parameters.epsilon",
        "statistic": "problem.parameters.statistic",
        "noise": "problem.parameters.mechanism",
        "release_delta": "problem.parameters.delta",
        "num_groups": "problem.parameters.num_groups",
        "asked_epsilon": "problem.epsilon",
        "largest": "problem.largest",
        "unit": "problem.unit",
        "max_groups": "max_groups",
        "max_amount": "max_amount",
        "column": "column",
    },
    PrivateRange: {
        "epsilon_release": "problem.epsilon_release",
        "asked_epsilon": "problem.epsilon",
        "unit": "problem.unit",
        "largest": "problem.largest",
        "centre": "problem.centre",
        "known_lower": "problem.lower",
        "users": "problem.users",
        "max_contributions": "problem.max_contributions",
        "lower": "lower",
        "upper": "upper",
        "column": "column",
    },
}
"""The attribute that each member holds; its type says how the member is read."""
_CODEC = replace(CODEC, integers=(1, MAX_SIZE))
_read_number = _CODEC.reader(float)
_read_optional = _CODEC.reader(float | None)
_SOMETIMES: dict[str, Reader] = {SMALL_FIRST: _read_number, UNIT: _read_number, COLUMN: _CODEC.reader(str)}


def _list_readers(selection_type: type[Any]) -> dict[str, Reader]:
    """Return the readers of the members of a selection, by name."""
    readers = {}
    for name, path in _PATHS[selection_type].items():
        attribute_type: Any = selection_type
        for attribute in path.split("."):
            attribute_type = list_field_types(attribute_type)[attribute]
        readers[name] = _CODEC.reader(attribute_type)
    return readers


def to_json(choices: Mapping[str, Choices]) -> dict[str, Any]:
    """Return the selections by digest of the data behind them, the latest `MAX_ENTRIES` of each.

    All of it is public or released.
    """
    return {
        digest: [_write(*entry) for entry in entries[-MAX_ENTRIES:]]
        for digest, entries in choices.items()
        if entries
    }


def _write(number: NumberKind, selection: Selection) -> dict[str, Any]:
    values = {name: attrgetter(path)(selection) for name, path in _PATHS[type(selection)].items()}
    if isinstance(selection, PrivateChoice):
        prior = selection.problem.prior
        guess = (prior.guess, prior.factor) if isinstance(prior, Prior) else (None, None)
        values |= {"condition": asdict(selection.problem.condition), "guess": guess[0], "factor": guess[1]}
        if isinstance(prior, SmallFirst):
            values[SMALL_FIRST] = prior.power
        if selection.column:
            values |= {UNIT: selection.problem.unit, COLUMN: selection.column}
    json_values = {name: _CODEC.write(value) for name, value in values.items()}
    return {"number": number.value, **json_values, **_CODEC.write(selection.facts)}


def from_json(node: JsonValue, accounts: Mapping[str, Ledger]) -> dict[str, Choices]:
    """Return the selections of a file; problems are noted.

    Args:
        node: What `to_json` wrote.
        accounts: What the file says was released, by digest of the data.
    """
    choices: dict[str, Choices] = {}
    for digest, entries in (node.get_named(MAX_ENTRIES) or {}).items():
        if JsonValue(digest, entries.location, entries.problems).get_text(MAX_DIGEST) is None:
            continue
        paid = list(accounts.get(digest, Ledger()).releases)
        selections = []
        for entry in entries.get_entries(MAX_ENTRIES) or ():
            selection = _read_entry(entry)
            if selection is None:
                continue
            if selection[1].facts in paid:
                paid.remove(selection[1].facts)
                selections.append(selection)
            else:
                entry.refuse("what this number cost does not stand on the account of its data")
        choices[digest] = tuple(selections)
    return choices


def _read_entry(node: JsonValue) -> tuple[NumberKind, Selection] | None:
    """Return what the file has written; None, with the problems noted, if nobody could have selected it so."""
    name = node.value.get("number") if isinstance(node.value, dict) else None
    selection_type: type[Any] = PrivateChoice
    build: Callable[[dict[str, Any], ReleaseFacts], Selection | None] = _build_choice
    if name == Several.PAIR.value:
        selection_type, build = PrivatePair, _build_pair
    elif name == Several.RANGE.value:
        selection_type, build = PrivateRange, _build_range
    readers, sometimes = _list_readers(selection_type), {}
    if selection_type is PrivateChoice:
        readers |= {
            "condition": lambda condition: condition,
            "guess": _read_optional,
            "factor": _read_optional,
        }
        sometimes = _SOMETIMES
    kind_reader = {"number": lambda number: number.choose(_NUMBERS)}
    members = node.read_members({**kind_reader, **readers, **FACTS}, sometimes)
    facts = build_facts(node, members)
    if members is None or facts is None:
        return None
    num_problems = len(node.problems.entries)
    selection = node.build(build, members, facts)
    if selection is None:
        if len(node.problems.entries) == num_problems:
            node.refuse("this cannot be drawn for its question")
        return None
    pure = facts.delta == 0.0 and facts.mechanism == MECHANISM
    if not (pure and 0.0 < facts.epsilon <= selection.problem.epsilon):
        node.refuse("this is not what drawing it guarantees")
        return None
    return members["number"], selection


def _build_choice(members: dict[str, Any], facts: ReleaseFacts) -> PrivateChoice | None:
    number, column, value = members["number"], members.get(COLUMN, ""), members["value"]
    guess, factor, power = members["guess"], members["factor"], members.get(SMALL_FIRST)
    with Problems() as problems:
        if (number is Bounded.TOTAL) != bool(column):
            problems.add("a unit and a column go with the bound on a total")
        if (guess is None) != (factor is None):
            problems.add("a guess goes with a factor that says how good it is")
        if guess is not None and power is not None:
            problems.add("where there is a guess, small bounds do not weigh more")
    condition_type, settings = _CONDITIONS[number], members["condition"]
    if isinstance(settings.value, dict) and USER_SHARE in settings.value:
        condition_type = _OF_TABLE.get(number, condition_type)
    condition = _CODEC.read(settings, condition_type)
    if condition is None:
        return None
    prior: Prior | SmallFirst | None = None if power is None else SmallFirst(power)
    if guess is not None:
        prior = Prior(guess, factor)
    unit = members.get(UNIT, 1.0)
    epsilon, largest = members["asked_epsilon"], members["largest"]
    problem = ChoiceProblem(condition, epsilon, largest, facts.neighbours, prior, unit)
    return PrivateChoice(value, facts, problem, column) if value in problem.bounds else None


def _build_pair(members: dict[str, Any], facts: ReleaseFacts) -> PrivatePair | None:
    noise, delta, num_groups = members["noise"], members["release_delta"], members["num_groups"]
    settings = members["epsilon_release"], members["statistic"], noise, delta, facts.neighbours
    release = PerGroupParameters(*settings, num_groups=num_groups)
    problem = PrivatePairProblem(release, members["asked_epsilon"], members["largest"], members["unit"])
    candidates = {(int(g), float(c * problem.unit)) for g, c in zip(*problem.candidates, strict=True)}
    pair = members["max_groups"], members["max_amount"]
    return PrivatePair(*pair, facts, problem, members["column"]) if pair in candidates else None


def _build_range(members: dict[str, Any], facts: ReleaseFacts) -> PrivateRange | None:
    names = "unit", "largest", "centre", "users", "max_contributions"
    problem = RangeProblem(
        members["epsilon_release"],
        members["asked_epsilon"],
        lower=members["known_lower"],
        neighbours=facts.neighbours,
        **{name: members[name] for name in names},
    )
    ends = members["lower"], members["upper"]
    return PrivateRange(*ends, facts, problem, members["column"]) if problem.may_draw(*ends) else None


def merge(choices: Mapping[str, Choices], added: Mapping[str, Choices]) -> dict[str, Choices]:
    """Return all selections of both, each as often as the one that holds it more often."""
    union = dict(choices)
    for digest, entries in added.items():
        entries_of_both, unmatched = list(union.get(digest, ())), list(union.get(digest, ()))
        for entry in entries:
            if entry in unmatched:
                unmatched.remove(entry)
            else:
                entries_of_both.append(entry)
        union[digest] = tuple(entries_of_both)
    return union
