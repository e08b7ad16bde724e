"""Pairs and ranges that were drawn, as a session file carries them beside single numbers (`saved`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import ReleaseFacts
from dpcore.common.strict_json import Part
from dpcore.contributions import MAX_SIZE
from dpcore.data.saved_dataset import FACTS, NAME, facts_of, facts_to_json
from dpcore.per_group import PerGroupParameters, Statistic, private_pair
from dpcore.per_group.pairs import MAX_GROUPS
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.private_choice.choice import MECHANISM
from dpcore.private_choice.parameters import Several
from dpcore.private_choice.private_range import PrivateRange, RangeProblem

_PAIR = (
    "number", "epsilon_release", "statistic", "noise", "release_delta", "num_groups", "asked_epsilon", "largest",
    "unit", "max_groups", "max_amount", "column",
)  # fmt: skip
_RANGE = (
    "number", "epsilon_release", "asked_epsilon", "unit", "largest", "centre", "known_lower", "users",
    "max_contributions",
    "lower", "upper", "column",
)  # fmt: skip


def written(one: PrivatePair | PrivateRange) -> dict[str, Any]:
    """All of it is public or released."""
    if isinstance(one, PrivateRange):
        of = one.problem
        values: tuple[Any, ...] = (
            Several.RANGE.value, of.epsilon_release, of.epsilon, of.unit, of.largest, of.centre, of.lower, of.users,
            of.max_contributions, one.lower, one.upper, one.column,
        )  # fmt: skip
        return dict(zip(_RANGE, values, strict=True)) | facts_to_json(one.facts)
    asked, release = one.problem, one.problem.parameters
    values = (
        Several.PAIR.value, release.epsilon, release.statistic.value, release.noise.value, release.delta,
        release.num_groups, asked.epsilon, asked.largest, asked.unit, one.max_groups, one.max_amount, one.column,
    )  # fmt: skip
    return dict(zip(_PAIR, values, strict=True)) | facts_to_json(one.facts)


def is_one(part: Part) -> bool:
    """Whether an entry says that it is a pair or a range."""
    kinds = {kind.value for kind in Several}
    return isinstance(part.value, dict) and part.value.get("number") in kinds


def read(part: Part) -> tuple[Several, PrivatePair | PrivateRange] | None:
    """The pair or range of an entry; None, with the problems noted, where it is none."""
    kind = Several(part.value["number"])
    found = part.members([*(_PAIR if kind is Several.PAIR else _RANGE), *FACTS])
    if found is None:
        return None
    before = len(part.problems.found)
    facts = facts_of(found, part)
    of = (_pair if kind is Several.PAIR else _range)(found)
    column = found["column"].text(NAME)
    if len(part.problems.found) > before or facts is None or of is None or column is None:
        return None
    try:
        drawn = of(facts, column)
    except InvalidInput as refused:
        for one in refused.problems:
            part.refuse(one.what)
        return None
    if drawn is None:
        part.refuse("this cannot be drawn for its question")
    elif (
        not 0.0 < facts.epsilon <= drawn.problem.epsilon or facts.delta != 0.0 or facts.mechanism != MECHANISM
    ):
        part.refuse("this is not what drawing it guarantees")
    return None if len(part.problems.found) > before or drawn is None else (kind, drawn)


Made = Callable[[ReleaseFacts, str], PrivatePair | PrivateRange | None]


def _maybe(part: Part) -> float | None:
    return None if part.value is None else part.number()


def _pair(found: dict[str, Part]) -> Made | None:
    release, asked_epsilon, unit, amount = (
        found[name].number() for name in ("epsilon_release", "asked_epsilon", "unit", "max_amount")
    )
    delta = _maybe(found["release_delta"])
    statistic = found["statistic"].one_of({one.value: one for one in Statistic})
    noise = found["noise"].one_of({one.value: one for one in NoiseKind})
    groups, most = (found[name].whole(1, MAX_GROUPS) for name in ("num_groups", "max_groups"))
    largest = found["largest"].whole(1, private_pair.MAX_AMOUNT)
    if (
        release is None
        or asked_epsilon is None
        or unit is None
        or amount is None
        or statistic is None
        or noise is None
        or groups is None
        or most is None
        or largest is None
    ):
        return None

    def made(facts: ReleaseFacts, column: str) -> PrivatePair | None:
        of = PerGroupParameters(release, statistic, noise, delta, facts.neighbours, num_groups=groups)
        asked = PrivatePairProblem(of, asked_epsilon, largest, unit)
        candidates = {(int(g), float(c * asked.unit)) for g, c in zip(*asked.candidates, strict=True)}
        return PrivatePair(most, amount, facts, asked, column) if (most, amount) in candidates else None

    return made


def _range(found: dict[str, Part]) -> Made | None:
    names = ("epsilon_release", "asked_epsilon", "unit", "largest", "lower", "upper")
    numbers = {name: found[name].number() for name in names}
    centre, known, users = (_maybe(found[name]) for name in ("centre", "known_lower", "users"))
    cap = found["max_contributions"].whole(1, MAX_SIZE)
    if None in (*numbers.values(), cap):
        return None
    of = {name: value for name, value in numbers.items() if value is not None}

    def made(facts: ReleaseFacts, column: str) -> PrivateRange | None:
        asked = RangeProblem(
            of["epsilon_release"],
            of["asked_epsilon"],
            of["unit"],
            of["largest"],
            centre,
            known,
            facts.neighbours,
            users,
            cap or 1,
        )
        return (
            PrivateRange(of["lower"], of["upper"], facts, asked, column)
            if asked.may_draw(of["lower"], of["upper"])
            else None
        )

    return made
