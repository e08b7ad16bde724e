"""What was selected privately, as a session file carries it (`pages.shared.session.last_releases`).

A selection comes back only beside what it cost: its release must stand on the file's account of the same data.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from dpcore.common.checks import Problems
from dpcore.common.ledger import Ledger
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import ReleaseFacts
from dpcore.common.strict_json import JsonValue, Reader, read_enum, read_integer, read_optional, read_text
from dpcore.contributions import MAX_SIZE
from dpcore.data.saved_dataset import FACTS, NAME, facts_of, facts_to_json
from dpcore.per_group import private_pair
from dpcore.per_group.pairs import MAX_GROUPS
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.private_choice.answer.words import Selection
from dpcore.private_choice.choice import MECHANISM, ChoiceProblem, Prior, PrivateChoice, SmallFirst
from dpcore.private_choice.parameters import OF_MEAN, Bounded, Number, Several, Wanted
from dpcore.private_choice.private_range import PrivateRange, RangeProblem
from dpcore.private_choice.scores import CapMean, RankedSum, RisingPrice, SizeQuantile, SmoothMean
from dpcore.private_choice.table_scores import TableCap, TableSmooth
from pages.private_choice.actions import Choices

ENTRY = "choices"
MAX_ENTRIES, MAX_DIGEST = 1_000, 64
"""Selections of one set of data, and sets of data, and characters of the digest of a set, at most."""
_CONDITIONS: dict[Number, tuple[type[Any], tuple[str, ...]]] = {
    Wanted.SMOOTH: (SmoothMean, ("trade_off",)),
    Wanted.CAP: (CapMean, ("trade_off",)),
    Wanted.SUM: (RankedSum, ("price", "margin")),
    Wanted.QUANTILE: (SizeQuantile, ("share",)),
    Bounded.QUANTILE_SMOOTH: (SmoothMean, ("trade_off",)),
    Bounded.QUANTILE_CAP: (CapMean, ("trade_off",)),
    Bounded.MODEL: (RisingPrice, ("scale", "power")),
    Bounded.TOTAL: (RankedSum, ("price", "margin")),
}
_OF_TABLE: dict[Number, type[Any]] = {Wanted.SMOOTH: TableSmooth, Wanted.CAP: TableCap}
USER_SHARE = "user_share"
"""Key of the condition for a mean of a table whose users differ; independent rows have none."""
SMALL_FIRST = "small_first"
"""The power by which small candidates weigh more; files of before, and selections without it, have none."""
UNIT, COLUMN = "unit", "column"
"""Of the bound on a total; a bound on rows has neither."""
_NUMBERS: dict[str, Number] = {number.value: number for number in (*_CONDITIONS, *Several)}
_number, _optional, _name = JsonValue.get_number, read_optional(JsonValue.get_number), read_text(NAME)
_size = read_integer(1, MAX_SIZE)
_MEMBERS: dict[type[Any], dict[str, tuple[Reader, str]]] = {
    PrivateChoice: {
        "value": (_number, "value"),
        "asked_epsilon": (_number, "problem.epsilon"),
        "largest": (_size, "problem.largest"),
    },
    PrivatePair: {
        "epsilon_release": (_number, "problem.parameters.epsilon"),
        "statistic": (read_enum(Statistic), "problem.parameters.statistic"),
        "noise": (read_enum(NoiseKind), "problem.parameters.noise"),
        "release_delta": (_optional, "problem.parameters.delta"),
        "num_groups": (read_integer(1, MAX_GROUPS), "problem.parameters.num_groups"),
        "asked_epsilon": (_number, "problem.epsilon"),
        "largest": (read_integer(1, private_pair.MAX_AMOUNT), "problem.largest"),
        "unit": (_number, "problem.unit"),
        "max_groups": (read_integer(1, MAX_GROUPS), "max_groups"),
        "max_amount": (_number, "max_amount"),
        "column": (_name, "column"),
    },
    PrivateRange: {
        "epsilon_release": (_number, "problem.epsilon_release"),
        "asked_epsilon": (_number, "problem.epsilon"),
        "unit": (_number, "problem.unit"),
        "largest": (_number, "problem.largest"),
        "centre": (_optional, "problem.centre"),
        "known_lower": (_optional, "problem.lower"),
        "users": (_optional, "problem.users"),
        "max_contributions": (_size, "problem.max_contributions"),
        "lower": (_number, "lower"),
        "upper": (_number, "upper"),
        "column": (_name, "column"),
    },
}
"""How each member is read, and the attribute that it is written from."""
_OF_CHOICE: dict[str, Reader] = {"condition": lambda node: node, "guess": _optional, "factor": _optional}
_SOMETIMES: dict[str, Reader] = {SMALL_FIRST: _number, UNIT: _number, COLUMN: _name}


def to_json(choices: Mapping[str, Choices]) -> dict[str, Any]:
    """Return the selections by digest of the data behind them, the latest `MAX_ENTRIES` of each.

    All of it is public or released.
    """
    return {
        digest: [_write(*entry) for entry in entries[-MAX_ENTRIES:]]
        for digest, entries in choices.items()
        if entries
    }


def _write(number: Number, selection: Selection) -> dict[str, Any]:
    values = {name: attrgetter(path)(selection) for name, (_, path) in _MEMBERS[type(selection)].items()}
    if isinstance(selection, PrivateChoice):
        prior = selection.problem.prior
        known = (prior.guess, prior.factor) if isinstance(prior, Prior) else (None, None)
        values |= {"condition": asdict(selection.problem.condition), "guess": known[0], "factor": known[1]}
        if isinstance(prior, SmallFirst):
            values[SMALL_FIRST] = prior.power
        if selection.column:
            values |= {UNIT: selection.problem.unit, COLUMN: selection.column}
    plain = {name: value.value if isinstance(value, enum.Enum) else value for name, value in values.items()}
    return {"number": number.value, **plain, **facts_to_json(selection.facts)}


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
            selection = _read(entry)
            if selection is None:
                continue
            if selection[1].facts in paid:
                paid.remove(selection[1].facts)
                selections.append(selection)
            else:
                entry.refuse("what this number cost does not stand on the account of its data")
        choices[digest] = tuple(selections)
    return choices


def _read(node: JsonValue) -> tuple[Number, Selection] | None:
    """Return what the file has written; None, with the problems noted, if nobody could have selected it so."""
    written = node.value.get("number") if isinstance(node.value, dict) else None
    kind: type[Any] = PrivateChoice
    build: Callable[[dict[str, Any], ReleaseFacts], Selection | None] = _build_choice
    if written == Several.PAIR.value:
        kind, build = PrivatePair, _build_pair
    elif written == Several.RANGE.value:
        kind, build = PrivateRange, _build_range
    members = {name: reader for name, (reader, _) in _MEMBERS[kind].items()}
    of_choice, sometimes = (_OF_CHOICE, _SOMETIMES) if kind is PrivateChoice else ({}, {})
    given = node.read_members({"number": _read_number, **members, **of_choice, **FACTS}, sometimes)
    facts = facts_of(node, given)
    if given is None or facts is None:
        return None
    num_problems = len(node.problems.entries)
    selection = node.build(build, given, facts)
    if selection is None:
        if len(node.problems.entries) == num_problems:
            node.refuse("this cannot be drawn for its question")
        return None
    pure = facts.delta == 0.0 and facts.mechanism == MECHANISM
    if not (pure and 0.0 < facts.epsilon <= selection.problem.epsilon):
        node.refuse("this is not what drawing it guarantees")
        return None
    return given["number"], selection


def _read_number(node: JsonValue) -> Number | None:
    return node.choose(_NUMBERS)


def _build_choice(given: dict[str, Any], facts: ReleaseFacts) -> PrivateChoice | None:
    number, column, value = given["number"], given.get(COLUMN, ""), given["value"]
    guess, factor, power = given["guess"], given["factor"], given.get(SMALL_FIRST)
    with Problems() as problems:
        if (number is Bounded.TOTAL) != bool(column):
            problems.add("a unit and a column go with the bound on a total")
        if (guess is None) != (factor is None):
            problems.add("a guess goes with a factor that says how good it is")
        if guess is not None and power is not None:
            problems.add("where there is a guess, small bounds do not weigh more")
    kind, names = _CONDITIONS[number]
    optional = (USER_SHARE,) if number in OF_MEAN else ()
    members = given["condition"].read_members(dict.fromkeys(names, _number), dict.fromkeys(optional, _number))
    if members is None:
        return None
    if USER_SHARE in members:
        kind = _OF_TABLE[number]
    prior: Prior | SmallFirst | None = None if power is None else SmallFirst(power)
    if guess is not None:
        prior = Prior(guess, factor)
    unit = given.get(UNIT, 1.0)
    epsilon, largest = given["asked_epsilon"], given["largest"]
    problem = ChoiceProblem(kind(**members), epsilon, largest, facts.neighbours, prior, unit)
    return PrivateChoice(value, facts, problem, column) if value in problem.bounds else None


def _build_pair(given: dict[str, Any], facts: ReleaseFacts) -> PrivatePair | None:
    noise, delta, num_groups = given["noise"], given["release_delta"], given["num_groups"]
    settings = given["epsilon_release"], given["statistic"], noise, delta, facts.neighbours
    release = PerGroupParameters(*settings, num_groups=num_groups)
    problem = PrivatePairProblem(release, given["asked_epsilon"], given["largest"], given["unit"])
    candidates = {(int(g), float(c * problem.unit)) for g, c in zip(*problem.candidates, strict=True)}
    pair = given["max_groups"], given["max_amount"]
    return PrivatePair(*pair, facts, problem, given["column"]) if pair in candidates else None


def _build_range(given: dict[str, Any], facts: ReleaseFacts) -> PrivateRange | None:
    names = "unit", "largest", "centre", "users", "max_contributions"
    problem = RangeProblem(
        given["epsilon_release"],
        given["asked_epsilon"],
        lower=given["known_lower"],
        neighbours=facts.neighbours,
        **{name: given[name] for name in names},
    )
    ends = given["lower"], given["upper"]
    return PrivateRange(*ends, facts, problem, given["column"]) if problem.may_draw(*ends) else None


def joined(choices: Mapping[str, Choices], added: Mapping[str, Choices]) -> dict[str, Choices]:
    """Return all selections of both, each as often as the one that holds it more often."""
    union = dict(choices)
    for digest, entries in added.items():
        kept, unmatched = list(union.get(digest, ())), list(union.get(digest, ()))
        for entry in entries:
            if entry in unmatched:
                unmatched.remove(entry)
            else:
                kept.append(entry)
        union[digest] = tuple(kept)
    return union
