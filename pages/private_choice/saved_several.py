"""Pairs and ranges that were drawn, as a session file carries them beside single numbers (`saved`)."""

from __future__ import annotations

from typing import Any

from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import ReleaseFacts
from dpcore.common.strict_json import JsonValue, Reader, read_enum, read_integer, read_optional, read_text
from dpcore.contributions import MAX_SIZE
from dpcore.data.saved_dataset import FACTS, NAME, build_facts, facts_to_json
from dpcore.per_group import private_pair
from dpcore.per_group.pairs import MAX_GROUPS
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.private_choice.choice import MECHANISM
from dpcore.private_choice.parameters import Several
from dpcore.private_choice.private_range import PrivateRange, RangeProblem

_number, _name = JsonValue.get_number, read_text(NAME)
_OF: dict[Several, dict[str, Reader]] = {
    Several.PAIR: {
        "number": read_enum(Several),
        "epsilon_release": _number,
        "statistic": read_enum(Statistic),
        "noise": read_enum(NoiseKind),
        "release_delta": read_optional(_number),
        "num_groups": read_integer(1, MAX_GROUPS),
        "asked_epsilon": _number,
        "largest": read_integer(1, private_pair.MAX_AMOUNT),
        "unit": _number,
        "max_groups": read_integer(1, MAX_GROUPS),
        "max_amount": _number,
        "column": _name,
    },
    Several.RANGE: {
        "number": read_enum(Several),
        **dict.fromkeys(("epsilon_release", "asked_epsilon", "unit", "largest"), _number),
        **dict.fromkeys(("centre", "known_lower", "users"), read_optional(_number)),
        "max_contributions": read_integer(1, MAX_SIZE),
        "lower": _number,
        "upper": _number,
        "column": _name,
    },
}
"""How each member is read, in the order of the file."""


def written(one: PrivatePair | PrivateRange) -> dict[str, Any]:
    """Return all of it is public or released."""
    if isinstance(one, PrivateRange):
        of = one.problem
        values: tuple[Any, ...] = (
            Several.RANGE.value, of.epsilon_release, of.epsilon, of.unit, of.largest, of.centre, of.lower, of.users,
            of.max_contributions, one.lower, one.upper, one.column,
        )  # fmt: skip
        return dict(zip(_OF[Several.RANGE], values, strict=True)) | facts_to_json(one.facts)
    asked, release = one.problem, one.problem.parameters
    values = (
        Several.PAIR.value, release.epsilon, release.statistic.value, release.noise.value, release.delta,
        release.num_groups, asked.epsilon, asked.largest, asked.unit, one.max_groups, one.max_amount, one.column,
    )  # fmt: skip
    return dict(zip(_OF[Several.PAIR], values, strict=True)) | facts_to_json(one.facts)


def is_one(part: JsonValue) -> bool:
    """Return whether an entry says that it is a pair or a range."""
    kinds = [kind.value for kind in Several]  # No set: what stands there may be a list.
    return isinstance(part.value, dict) and part.value.get("number") in kinds


def read(part: JsonValue) -> tuple[Several, PrivatePair | PrivateRange] | None:
    """Return what the file has written; None, with the problems noted, where nobody could have drawn it
    so.
    """
    asked = Several(part.value["number"])
    given = part.read_members({**_OF[asked], **FACTS})
    facts = build_facts(part, given)
    if given is None or facts is None:
        return None
    before = len(part.problems.entries)
    drawn = part.build(_pair if asked is Several.PAIR else _range, given, facts)
    if drawn is None:
        if len(part.problems.entries) == before:
            part.refuse("this cannot be drawn for its question")
        return None
    if not 0.0 < facts.epsilon <= drawn.problem.epsilon or facts.delta != 0.0 or facts.mechanism != MECHANISM:
        part.refuse("this is not what drawing it guarantees")
        return None
    return asked, drawn


def _pair(given: dict[str, Any], facts: ReleaseFacts) -> PrivatePair | None:
    release = PerGroupParameters(
        given["epsilon_release"], given["statistic"], given["noise"], given["release_delta"], facts.neighbours,
        num_groups=given["num_groups"],
    )  # fmt: skip
    asked = PrivatePairProblem(release, given["asked_epsilon"], given["largest"], given["unit"])
    candidates = {(int(g), float(c * asked.unit)) for g, c in zip(*asked.candidates, strict=True)}
    pair = given["max_groups"], given["max_amount"]
    return PrivatePair(*pair, facts, asked, given["column"]) if pair in candidates else None


def _range(given: dict[str, Any], facts: ReleaseFacts) -> PrivateRange | None:
    asked = RangeProblem(
        given["epsilon_release"], given["asked_epsilon"], given["unit"], given["largest"], given["centre"],
        given["known_lower"], facts.neighbours, given["users"], given["max_contributions"],
    )  # fmt: skip
    ends = given["lower"], given["upper"]
    return PrivateRange(*ends, facts, asked, given["column"]) if asked.may_draw(*ends) else None
