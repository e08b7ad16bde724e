"""What a plan has to say in words. Pure: what was found in, sentences out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Number
from dpcore.answer.answer import Proof
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import rounded_up
from dpcore.dataset import Dataset
from dpcore.plan.answer.found import PlanFound, exact_epsilon
from dpcore.plan.drawn import DrawnLine, covered, weighted_sum
from dpcore.plan.lines import Released
from dpcore.plan.one_truncation import OneTruncation
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import NEIGHBOURS

LEAKS = (
    "Your data are private, and shares, bounds and relative errors read off them are too: using them in a release "
    "reveals something about the data. Plan on public or older data, or on a private copy."
)
ON_RELEASE = "The DP release is treated as the true data; errors on the original data are unknown."


def headline(found: PlanFound) -> str:
    """For how many lines the budget is enough."""
    count = len(found.lines)
    epsilon = rounded_up(found.budget.epsilon, 4)
    if count == 1:
        verb = "is enough" if found.reached else "is not enough"
        return f"All of ε = {epsilon} goes to {found.lines[0].planned.line.what}, and it {verb}."
    which = f"{found.reached or 'none'} of {count} numbers"
    if found.reached == count:
        which = "both numbers" if count == 2 else f"all {count} numbers"
    return f"ε = {epsilon} is enough for {which}."


def detail(found: PlanFound, data: Dataset) -> str:
    """What changes how the headline is to be read."""
    said = [_shares(found), _eaten(found)]
    dropped = [line for line in found.lines if line.dropped]
    if dropped:
        which = " and ".join(line.planned.line.what for line in dropped)
        said.append(f"**Dropped:** {which}. 0 is published there: noise would cost more.")
    if data.is_private:
        said.append(LEAKS)
    if data.release is not None:
        said.append(ON_RELEASE)
    return " ".join(filter(None, said))


MOST_SAID = 3
"""Lines whose shares are said beside the figure; those of more stand in a table."""


def _shares(found: PlanFound) -> str:
    """Who gets how much, under which bound."""
    if not 1 < len(found.lines) <= MOST_SAID:
        return ""
    each = (
        f"**{wording.capital(line.planned.line.what)}** {_share(line)}, {_bound(line)}"
        for line in found.lines
    )
    return "; ".join(each) + "."


def _eaten(found: PlanFound) -> str:
    if len(found.lines) == 1:
        return ""
    line = found.lines[found.eater].planned.line
    if math.isinf(found.needed[found.eater]):
        return f"**Never reached:** {line.what}. More than its wanted error stays without any noise."
    total = float(found.needed.sum())
    if total == 0.0:
        return "Publishing 0 has every wanted error already."
    share = wording.percent(float(found.needed[found.eater]) / total)
    return f"**Dearest:** {line.what}, {share} of what all wanted errors need."


def numbers(found: PlanFound, parameters: PlanParameters) -> tuple[Number, ...]:
    """The least epsilon for all wanted errors, the size of the errors, and each line."""
    enough, largest = found.enough, parameters.objective is not Objective.SUM
    size, of_equal = found.size(found.lines, largest), found.size(found.equal, largest)
    return (
        Number(
            "ε for all wanted errors",
            "none is enough" if math.isinf(enough) else rounded_up(enough, 4),
            "",
            "The least ε of the whole plan at which every line has its wanted error, each with just what it needs.",
            None if math.isinf(enough) else enough,
            "ε",
            "enough",
        ),
        Number(
            "Largest error" if largest else "Errors",
            wording.number(size),
            f"times the wanted {'one' if largest else 'ones'} (equal split {wording.number(of_equal)})",
            "Of error over wanted error: the largest one."
            if largest
            else "Root of the weighted mean square of error over wanted error.",
            size,
            "wanted errors",
            "size",
        ),
        *(_of_line(line, i) for i, line in enumerate(found.lines, start=1)),
    )


def _of_line(line: DrawnLine, number: int) -> Number:
    return Number(
        wording.capital(line.planned.line.what),
        amount(line, line.error),
        f"{_bound(line)}, {_share(line)} of the budget",
        f"Root mean squared error; wanted: {amount(line, line.planned.wanted)}.",
        line.error,
        line.planned.unit,
        f"error_{number}",
    )


def _share(line: DrawnLine) -> str:
    """Its share of the budget; a quantile that errs least with nearly nothing has a millionth."""
    return f"< {wording.percent(LITTLE, 1)}" if 0.0 < line.share < LITTLE else wording.percent(line.share)


LITTLE = 1e-4


def amount(line: DrawnLine, value: float) -> str:
    """An error of a line with its unit."""
    if line.planned.line.released is Released.QUANTILE:
        return f"{wording.percent(value)} of rows"
    number = wording.number(value)
    counted = line.planned.unit in ("rows", "users")
    return f"{number} {line.planned.unit}" if counted else number


def _bound(line: DrawnLine) -> str:
    """The bound of a line in words."""
    if line.dropped:
        return "dropped"
    kind, bound = line.planned.line.released, wording.number(line.bound, 4)
    match kind:
        case Released.USERS:
            return "each user once"
        case Released.SUM:
            return f"totals up to {bound}"
        case Released.GROUP_USERS:
            return f"{wording.counted(line.bound, 'group')} per user"
        case Released.GROUP_ROWS:
            return f"{wording.counted(line.bound, 'group')} per user, {wording.counted(line.second, 'row')} in each"
        case Released.GROUP_SUMS:
            return f"{wording.counted(line.bound, 'group')} per user, up to {wording.number(line.second, 4)} in each"
        case _:
            return f"{bound} {wording.agreeing(line.bound, 'row', 'rows')} per user"


def table(found: PlanFound) -> dict[str, list[str]]:
    """The plan as columns of a table, a row per line."""
    takes = "ρ" if found.budget.noise is NoiseKind.GAUSSIAN else "ε"
    lines = found.lines
    return {
        "release": [line.planned.line.what for line in lines],
        "share": [_share(line) for line in lines],
        takes: [wording.number(line.amount) for line in lines],
        "bound": [_bound(line) for line in lines],
        "error": [("✓ " if line.reached else "") + amount(line, line.error) for line in lines],
        "wanted": [amount(line, line.planned.wanted) for line in lines],
        "equal split": [amount(line, line.error) for line in found.equal],
        "reached at ε =": [
            "never" if math.isinf(at) else rounded_up(at, 3) if at else "any" for at in found.reached_at
        ],
    }


TABLE_NOTE = (
    "Errors are root mean squared; of a quantile, the share of rows between release and truth. *Reached at*: ε of the "
    "whole plan at which the line has its wanted error, its share kept."
)


def facts(found: PlanFound, parameters: PlanParameters) -> dict[str, str]:
    """What stands behind the plan, a sentence each."""
    said: dict[str, str] = {}
    if len(found.lines) > 1:
        said["Equal split"] = _equal(found)
        if math.isfinite(found.enough):
            said["All wanted errors"] = _all_wanted(found)
    for line in found.lines:
        if line.dropped:
            said[f"{wording.capital(line.planned.line.what)} is dropped"] = (
                f"0 is published, which is wrong by {amount(line, line.error)}; noise and cut together would err by "
                "more at any share of this budget."
            )
    for of in found.planned:
        floor = math.sqrt(max(of.curve.floor, 0.0))
        if floor > of.wanted:
            said[f"{wording.capital(of.line.what)} never has its wanted error"] = (
                f"{wording.number(floor)} stays without any noise, and {wording.number(of.wanted)} is wanted."
            )
    said["Program"] = (
        f"errors are those of the noise that the program for {parameters.program.value} draws; "
        "*More settings* chooses another."
    )
    if found.budget.noise is NoiseKind.GAUSSIAN:
        said["What adds up"] = (
            "with Gaussian noise it is ρ, the square of sensitivity over σ by two, and not ε: the ε of the lines do "
            "not add up."
        )
        if (spent := exact_epsilon(found)) is not None:
            said["ε really spent"] = (
                f"{wording.number(spent, 4)} by an exact account of this noise; the program's account says "
                f"{wording.number(found.budget.epsilon, 4)}."
            )
    return said


def _equal(found: PlanFound) -> str:
    times = found.more_by_equal
    enough = sum(line.reached for line in found.equal)
    more = "no larger" if times <= 1.0 + 1e-9 else f"{wording.percent(times - 1.0)} larger"
    return (
        f"with the best bound for each line its errors over wanted errors are {more} (root of the sum of squares), "
        f"and {enough} of {len(found.lines)} lines have their wanted error."
    )


def _all_wanted(found: PlanFound) -> str:
    total = float(found.needed.sum())
    order = np.argsort(-found.needed, kind="stable")[:3]
    parts = [
        f"{found.planned[i].line.what} {wording.percent(float(found.needed[i]) / total) if total else '0'}"
        for i in order.tolist()
    ]
    return f"at ε = {rounded_up(found.enough, 4)} every line has its own; of that need {', '.join(parts)}."


def proofs(found: PlanFound, parameters: PlanParameters) -> tuple[Proof, ...]:
    """What is proved of the split; nothing where a quantile is among the lines or the objective is no sum."""
    if parameters.objective is not Objective.SUM or found.split is None or found.split.certificate is None:
        return ()
    return (("Plan", found.split.certificate, f"{covered(found.planned)}."),)


def best_found(found: PlanFound, parameters: PlanParameters) -> str:
    """How sure it is where nothing is proved, a sentence; empty where something is."""
    if parameters.objective is not Objective.SUM or proofs(found, parameters):
        return ""
    return (
        "Best found, and not proved: the error of a quantile need not fall with its budget, so that no bound on all "
        "plans is known."
    )


def assumptions(found: PlanFound) -> tuple[str, ...]:
    """What the plan rests on; sentences without their full stop."""
    kinds = {line.line.released for line in found.planned}
    said = [
        f"Neighbouring data sets differ thus: {NEIGHBOURS.value}. All lines have this one relation",
        "The budget is for all lines of the plan together; every further release needs its own",
        "The plan is best among these bounds, these mechanisms and independent noise; one mechanism for several "
        "numbers at once can be better",
        "Shares and bounds are taken as public. Read off private data they are not, and ε does not cover them",
        "Errors are root mean squared, so that squares of bias and of noise add up",
    ]
    for line in found.planned:
        said += [f"Mean: {one[0].lower()}{one[1:]}" for one in line.assumes]
    if Released.MEAN in kinds:
        said.append(
            "The error of a mean is the delta-method approximation, which is good while the noise is small beside the "
            "rows that count"
        )
    if any(kind.per_group for kind in kinds):
        said.append(
            "The list of groups is public; an error per group is the root mean square over the groups"
        )
    return tuple(said)


def one_bound(one: OneTruncation, found: PlanFound) -> str:
    """What one bound on rows for all lines costs, and what of it bounding rows costs, in sentences."""
    own = {
        Objective.SUM: weighted_sum(found.lines),
        Objective.LARGEST: found.size(found.lines, largest=True),
        Objective.REACH: found.budget.epsilon,
    }[one.objective]
    times = wording.number(one.cost(own))
    if one.objective is Objective.SUM:
        cost = (
            f"Errors over wanted errors are then **{times} times** as large as with a bound for each number (root of "
            "the sum of squares)."
        )
    elif one.objective is Objective.LARGEST:
        cost = f"The largest error over wanted error is then **{times} times** that with a bound for each number."
    else:
        cost = f"All wanted errors then need ε = {rounded_up(one.value, 4)}, **{times} times** as much as with a bound "
        cost += "for each number."
    sharing, rows = wording.number(one.of_sharing), wording.number(one.of_rows(own))
    looked = "" if one.every else " of those looked at"
    return (
        f"Libraries can bound the rows of each user once, for all queries. The best such bound{looked} is "
        f"**{wording.counted(one.max_rows, 'row')} of each user**. {cost} That is a product: sharing one bound makes "
        f"{sharing} times, and bounding rows in place of totals and of groups {rows} times."
    )


def rows_in_all_groups(line: DrawnLine, bound: int, error: float) -> str:
    """What one bound on all rows of a user would make of rows per group at its share; empty where that is no better."""
    less = 1.0 - error / line.error
    if less < LEAST_GAIN:
        return ""
    return (
        f"**{wording.capital(line.planned.line.what)}** would err {wording.percent(less)} less at its share, "
        f"{amount(line, error)} instead of {amount(line, line.error)}, with one bound of "
        f"{wording.counted(bound, 'row')} of each user in all groups together than with {_bound(line)}. No program "
        "here writes it: in OpenDP it is `truncate_per_group` before the query, in Tumult `MaxRowsPerID`."
    )


LEAST_GAIN = 0.01
"""Of an error: what is less is not worth a sentence."""


def one_bound_table(one: OneTruncation, found: PlanFound) -> dict[str, list[str]]:
    """Shares and errors under one bound, as columns of a table, a row per line."""
    lines = found.lines
    return {
        "release": [line.planned.line.what for line in lines],
        "share": [wording.percent(share) for share in one.shares.tolist()],
        "error": [amount(line, error) for line, error in zip(lines, one.errors.tolist(), strict=True)],
        "with its own bound": [amount(line, line.error) for line in lines],
    }
