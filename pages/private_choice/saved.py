"""The numbers that were drawn, as a session file carries them (`pages.shared.session.last_releases`).

A number comes back only beside what it cost: its release must stand on the file's account of the same data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dpcore.common.ledger import Ledger
from dpcore.common.strict_json import JsonValue, Reader, read_integer, read_optional, read_text
from dpcore.contributions import MAX_SIZE
from dpcore.data.saved_dataset import FACTS, NAME, build_facts, facts_to_json
from dpcore.private_choice.answer.words import Drawn, Kind
from dpcore.private_choice.choice import MECHANISM, ChoiceProblem, Prior, PrivateChoice, SmallFirst
from dpcore.private_choice.parameters import Wanted
from dpcore.private_choice.release_bounds import Bounded
from dpcore.private_choice.scores import CapMean, Condition, RankedSum, RisingPrice, SizeQuantile, SmoothMean
from dpcore.private_choice.table_scores import TableCap, TableSmooth
from pages.private_choice import saved_several

ENTRY = "choices"
Choices = tuple[tuple[Kind, Drawn], ...]
MOST, DIGEST = 1_000, 64
"""Numbers of one set of data, and of sets, and characters of what names a set, at most."""
_CONDITIONS: dict[Wanted | Bounded, tuple[type[Any], tuple[str, ...]]] = {
    Wanted.SMOOTH: (SmoothMean, ("trade_off",)),
    Wanted.CAP: (CapMean, ("trade_off",)),
    Wanted.SUM: (RankedSum, ("price", "margin")),
    Wanted.QUANTILE: (SizeQuantile, ("share",)),
    Bounded.QUANTILE_SMOOTH: (SmoothMean, ("trade_off",)),
    Bounded.QUANTILE_CAP: (CapMean, ("trade_off",)),
    Bounded.MODEL: (RisingPrice, ("scale", "power")),
    Bounded.TOTAL: (RankedSum, ("price", "margin")),
}
_OF_TABLE: dict[Wanted | Bounded, type[Any]] = {Wanted.SMOOTH: TableSmooth, Wanted.CAP: TableCap}
USER_SHARE = "user_share"
"""Key of the condition for a mean of a table whose users differ; independent rows have none."""
SMALL_FIRST = "small_first"
"""The power by which small candidates weigh more; files of before, and draws without it, have none."""
UNIT, COLUMN = "unit", "column"
"""Of the bound on a total; a bound on rows has neither."""
_KINDS = {one.value: one for one in _CONDITIONS}
_READ: dict[str, Reader] = {
    "number": lambda part: part.choose(_KINDS),
    "condition": lambda part: part,
    "value": JsonValue.get_number,
    "asked_epsilon": JsonValue.get_number,
    "largest": read_integer(1, MAX_SIZE),
    "guess": read_optional(JsonValue.get_number),
    "factor": read_optional(JsonValue.get_number),
}
_READ_SOMETIMES: dict[str, Reader] = {
    SMALL_FIRST: JsonValue.get_number,
    UNIT: JsonValue.get_number,
    COLUMN: read_text(NAME),
}


def to_json(held: Mapping[str, Choices]) -> dict[str, Any]:
    """Return the numbers by digest of the data behind them, the latest `MOST` of each; all of it public or
    released.
    """
    return {digest: [_written(*one) for one in drawn[-MOST:]] for digest, drawn in held.items() if drawn}


def _written(wanted: Kind, one: Drawn) -> dict[str, Any]:
    if not isinstance(one, PrivateChoice):
        return saved_several.written(one)
    asked = one.problem
    return {
        "number": wanted.value,
        "condition": asdict(asked.condition),
        "value": one.value,
        "asked_epsilon": asked.epsilon,
        "largest": asked.largest,
        "guess": asked.prior.guess if isinstance(asked.prior, Prior) else None,
        "factor": asked.prior.factor if isinstance(asked.prior, Prior) else None,
        **({SMALL_FIRST: asked.prior.power} if isinstance(asked.prior, SmallFirst) else {}),
        **({UNIT: asked.unit, COLUMN: one.column} if one.column else {}),
        **facts_to_json(one.facts),
    }


def from_json(part: JsonValue, accounts: Mapping[str, Ledger]) -> dict[str, Choices]:
    """Return the numbers of a file; problems are noted.

    Args:
        part: What `to_json` wrote.
        accounts: What the file says was released, by digest of the data.
    """
    found: dict[str, Choices] = {}
    for digest, entries in (part.get_named(MOST) or {}).items():
        if JsonValue(digest, entries.location, entries.problems).get_text(DIGEST) is None:
            continue
        paid = list(accounts.get(digest, Ledger()).releases)
        drawn = []
        for entry in entries.get_entries(MOST) or ():
            one = _read(entry)
            if one is None:
                continue
            if one[1].facts in paid:
                paid.remove(one[1].facts)
                drawn.append(one)
            else:
                entry.refuse("what this number cost does not stand on the account of its data")
        found[digest] = tuple(drawn)
    return found


def _read(part: JsonValue) -> tuple[Kind, Drawn] | None:
    if saved_several.is_one(part):
        return saved_several.read(part)
    given = part.read_members({**_READ, **FACTS}, _READ_SOMETIMES)
    facts = build_facts(part, given)
    if given is None or facts is None:
        return None
    wanted, column, epsilon = given["number"], given.get(COLUMN, ""), given["asked_epsilon"]
    guess, factor, power = given["guess"], given["factor"], given.get(SMALL_FIRST)
    if (wanted is Bounded.TOTAL) != bool(column):
        part.refuse("a unit and a column go with the bound on a total")
        return None
    kind, names = _CONDITIONS[wanted]
    numbers = given["condition"].read_members(
        dict.fromkeys(names, JsonValue.get_number),
        {USER_SHARE: JsonValue.get_number} if wanted in _OF_TABLE else {},
    )
    if numbers is None:
        return None
    if USER_SHARE in numbers:
        kind = _OF_TABLE[wanted]

    def asked() -> ChoiceProblem:
        prior: Prior | SmallFirst | None = None
        if guess is not None and factor is not None:
            prior = Prior(guess, factor)
        elif power is not None:
            prior = SmallFirst(power)
        condition: Condition = kind(**numbers)
        return ChoiceProblem(
            condition, epsilon, given["largest"], facts.neighbours, prior, given.get(UNIT, 1.0)
        )

    problem = part.build(asked)
    if problem is None:
        return None
    before = len(part.problems.entries)
    if given["value"] not in problem.bounds:
        part.refuse("this number cannot be drawn for its question")
    if not 0.0 < facts.epsilon <= epsilon or facts.delta != 0.0 or facts.mechanism != MECHANISM:
        part.refuse("this is not what drawing such a number guarantees")
    if (guess is None) != (factor is None):
        part.refuse("a guess goes with a factor that says how good it is")
    if guess is not None and power is not None:
        part.refuse("where there is a guess, small bounds do not weigh more")
    drawn = PrivateChoice(given["value"], facts, problem, column)
    return None if len(part.problems.entries) > before else (wanted, drawn)


def joined(now: Mapping[str, Choices], more: Mapping[str, Choices]) -> dict[str, Choices]:
    """Return all numbers of both; those that both hold once, and as often as the one that holds them more
    often.
    """
    found = dict(now)
    for digest, drawn in more.items():
        kept, rest = list(found.get(digest, ())), list(found.get(digest, ()))
        for one in drawn:
            if one in rest:
                rest.remove(one)
            else:
                kept.append(one)
        found[digest] = tuple(kept)
    return found
