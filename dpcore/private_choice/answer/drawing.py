"""The bound of an answer, drawn privately: what a draw asks, the draw, and what was drawn as an answer of its own.

Pages, calls and the command draw by this module, so that all of them ask the same and say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcore.answer import Answer, Number, ReleaseSetting
from dpcore.code import Released
from dpcore.code.forms import CodeChoice, summed_column
from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import refusal
from dpcore.common.privacy import Charge, ReleaseFacts, rounded_up
from dpcore.contributions import MAX_SIZE
from dpcore.data.user_amounts import UserAmounts, amounts_of, has_totals
from dpcore.dataset import Contribution, Dataset, Pairs, PairSizes
from dpcore.learning import LearningParameters
from dpcore.mean import MeanParameters
from dpcore.per_group import private_pair
from dpcore.per_group.answer import code as pair_code
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import COVERED, PrivatePair, PrivatePairProblem
from dpcore.per_group.words import amount_words, pair_words
from dpcore.private_choice import choice, release_bounds
from dpcore.private_choice.answer import code, words
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import DEFAULT_LARGEST, PrivateParameters, Wanted
from dpcore.private_choice.release_bounds import BoundDraw, Bounded
from dpcore.quantile.parameters import QuantileParameters
from dpcore.total.parameters import TotalParameters

Asked = PrivateParameters | BoundDraw | PrivatePairProblem
"""The question of a draw."""
Ends = tuple[float | None, float | None]
"""L and U of the release; of one without a range, nothing."""

FROM_COUNTS = "No ε covers a look at the values. A bound *from counts* needs none where counts are public."
BINS = (
    "For so many users only bins of totals are kept, and one user can move a whole bin: no draw from them would keep "
    "its ε. Bring the file again (*Your data*) with the total of {} as the contribution (*More about users*)."
)
NO_DRAW = (
    "No draw aims at this bound. *Choose privately* releases a private copy of the counts, on which this page "
    "answers."
)
HIGHEST_MISSING = (
    "To draw it privately, a highest total of one user is needed. Take it from what the quantity is, not from the "
    "data."
)
ROWS_MISSING = (
    "To draw it privately, a number of rows that may be public is needed. About is enough; rather too few than too "
    "many."
)
LIST_MISSING = (
    "To draw the pair privately, enter how many groups are on your public list. Take it from the list, not from the "
    "data."
)
UNIT_MISSING = (
    "To draw the pair privately, the unit and the highest of the amounts are needed. Both are public."
)


@dataclass(frozen=True)
class Lacking:
    """Why a bound cannot be drawn as things stand.

    Attributes:
        said: A sentence for the page.
        settings: Names of the settings that are to be entered; empty where entering something does not help.
    """

    said: str
    settings: tuple[str, ...] = ()


NO_PAIR = Lacking(
    "A pair is drawn for counts, and sums of amounts of at least 0, on a public list of groups. For means, sums of any "
    "sign and groups that are selected privately, enter bounds that you know."
)


@dataclass(frozen=True)
class Beside:
    """What a draw takes besides the settings of the release; all of it public.

    Attributes:
        epsilon: Budget of the draw, on top of that of the release.
        largest: Public maximum of rows per user; no bound above it is drawn.
        margin: Of sums and counts, as for `PrivateParameters`.
        unit: What amounts per group are rounded to; None where that is not entered. Counts need none.
        highest_amount: Public maximum of an amount per group; likewise.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float = PrivateParameters(1.0).epsilon_choice
    largest: int = DEFAULT_LARGEST
    margin: float = 0.0
    unit: float | None = None
    highest_amount: float | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, **{"epsilon of the draw": self.epsilon})
            problems.whole(1, MAX_SIZE, largest=self.largest)
            problems.between(0.0, 1e12, margin=self.margin)
            for name, value in (("unit", self.unit), ("highest_amount", self.highest_amount)):
                if value is not None:
                    problems.between(1e-12, 1e15, **{name: value})


def asked_for(card: Answer, data: Dataset, beside: Beside) -> Asked | Lacking | None:
    """The question of the draw of an answer's bound.

    Args:
        card: The answer.
        data: What it is about.
        beside: What the draw takes besides.

    Returns:
        The question; what it lacks; None where nothing is to be hidden, or nothing is released under the bound.

    Raises:
        InvalidInput: Something that was entered is out of its range, or one bound is best whatever the data.
    """
    question, release = card.parameters, card.setting
    if isinstance(question, PrivateParameters):
        # The same object where it may be: a page knows its own question by that.
        same = beside.epsilon == question.epsilon_choice
        return question if same else replace(question, epsilon_choice=beside.epsilon)
    if isinstance(question, PerGroupParameters):
        return pair_asked_for(question, beside)
    if release is None:
        return None
    # Where the contributions are a column's total, a row is a unit of it, and its sum is a count of them.
    if release.released is Released.SUM and data.contribution is Contribution.TOTAL:
        release = replace(release, released=Released.COUNT)
    found: Asked | None
    if isinstance(question, QuantileParameters):
        found = release_bounds.of_quantile(question, release, beside.epsilon, beside.largest)
    elif isinstance(question, LearningParameters):
        if question.public_rows is None:
            return Lacking(ROWS_MISSING, ("public_rows",))
        found = release_bounds.of_learner(
            question, release, question.public_rows, beside.epsilon, beside.largest
        )
    elif isinstance(question, TotalParameters) and release.released is Released.SUM:
        if not has_totals(data):
            return Lacking(BINS.format(wording.plain(release.column)))
        if question.highest_total is None:
            return Lacking(HIGHEST_MISSING, ("highest_total",))
        found = release_bounds.of_total(release, question.highest_total, beside.epsilon, beside.margin)
    else:
        of = {"epsilon_choice": beside.epsilon, "largest": beside.largest, "margin": beside.margin}
        found = PrivateParameters.of_release(release, **of)
    return _no_draw(release) if found is None else found


def _no_draw(release: ReleaseSetting) -> Lacking | None:
    """What to do where no draw aims at a bound that was read off private data; None where it leaks nothing.

    A mean and a quantile whose counts are taken as public have nothing to hide in a bound that is read off them.
    """
    if release.values_read and release.released is Released.QUANTILE:
        return Lacking(FROM_COUNTS)
    if not release.private_counts:
        return None
    return Lacking(NO_DRAW)


def pair_asked_for(parameters: PerGroupParameters, beside: Beside) -> PrivatePairProblem | Lacking:
    """Return the question of a draw of a pair per group, or what it lacks.

    Raises:
        InvalidInput: Something that was entered is out of its range.
    """
    if parameters.statistic not in COVERED or parameters.selection.private:
        return NO_PAIR
    if parameters.num_groups is None:
        return Lacking(LIST_MISSING, ("num_groups",))
    of_sum = parameters.statistic is Statistic.SUM
    if of_sum and (beside.unit is None or beside.highest_amount is None):
        return Lacking(UNIT_MISSING, ("unit", "highest_amount"))
    unit = float(beside.unit or 0.0) if of_sum else 1.0
    most = float(beside.highest_amount or 0.0) if of_sum else float(beside.largest)
    # What the choice does not depend on is left out, so that a pair drawn before is known again.
    release = PerGroupParameters(
        parameters.epsilon,
        parameters.statistic,
        parameters.noise,
        parameters.delta,
        parameters.neighbours,
        num_groups=parameters.num_groups,
    )
    whole = int(min(most / unit, private_pair.MAX_AMOUNT)) if unit > 0.0 else 1
    return PrivatePairProblem(release, beside.epsilon, whole, unit)


def draw(
    asked: Asked, data: Dataset, charge: Charge | None = None, amounts: UserAmounts | None = None
) -> PrivateChoice | PrivatePair:
    """Select the bound: a DP release, fresh at every call.

    Args:
        asked: The question.
        data: Give the names of the columns.
        charge: Told what the selection guarantees before anything is drawn.
        amounts: What is selected from, private; by default the amounts of ``data``.

    Raises:
        InvalidInput: The data hold no amounts of the kind that is asked for, or are beyond what a selection can hold;
            nothing was drawn.
    """
    amounts = amounts_of(data) if amounts is None else amounts
    column = column_of(asked, data)
    if isinstance(asked, PrivatePairProblem):
        return private_pair.choose(asked, _pairs_of(asked, amounts), charge, column)
    if isinstance(asked, BoundDraw) and asked.wanted is Bounded.TOTAL:
        if amounts.totals is None:
            raise refusal("there is no total for each user to draw a bound from")
        units = release_bounds.in_units(amounts.totals, asked.unit, asked.largest)
        return choice.choose(asked.choice, units, charge, column)
    return choice.choose(asked.choice, amounts.histogram, charge)


def _pairs_of(asked: PrivatePairProblem, amounts: UserAmounts) -> UserGroupPairs | PairSizes | None:
    """Return the pairs with made-up codes of groups: a selection asks only how many groups each user is in."""
    of_sum = asked.parameters.statistic is Statistic.SUM
    if of_sum and amounts.sums is None:
        raise refusal("the pairs hold no sums", remedy="Choose rows or distinct users, or add a column up")
    users = amounts.user_codes
    if users is None or amounts.rows is None or not users.size:
        return amounts.pair_sizes
    starts = np.flatnonzero(np.r_[True, np.diff(users) != 0])
    groups = np.arange(users.size) - np.repeat(starts, np.diff(np.r_[starts, users.size]))
    return UserGroupPairs(
        users, groups, amounts.rows, int(groups.max()) + 1, amounts.sums if of_sum else None
    )


def dropped_cells(asked: Asked, counts: Mapping[str, int]) -> dict[str, int]:
    """Return what a selection leaves out or counts as 0; as private as the data, and for their owner alone.

    Args:
        asked: The question.
        counts: `UserAmounts.dropped`.
    """
    of_pairs = isinstance(asked, PrivatePairProblem)
    found = {"rows without a user": counts.get("rows without a user", 0)}
    if of_pairs and asked.parameters.statistic is Statistic.SUM:  # type: ignore[union-attr]
        found["cells without a number"] = counts.get("cells without a number", 0)
        found["amounts below 0"] = counts.get("amounts below 0", 0)
    elif isinstance(asked, BoundDraw) and asked.wanted is Bounded.TOTAL:
        found["cells without a number"] = counts.get("cells without a number", 0)
        found["totals below 0"] = counts.get("totals below 0", 0)
    if of_pairs:
        found["groups beyond the list"] = max(counts.get("groups", 0) - asked.num_groups, 0)  # type: ignore[union-attr]
    return found


def column_of(asked: Asked, data: Dataset) -> str:
    """Return what groups are of, or whose totals are bounded; empty for rows."""
    if isinstance(asked, PrivatePairProblem):
        facet: Pairs | PairSizes | None = data.pairs or data.pair_sizes
        return "" if facet is None else facet.label
    if not isinstance(asked, BoundDraw) or asked.wanted is not Bounded.TOTAL:
        return ""
    if data.totals is not None and data.totals.column:
        return data.totals.column
    return "" if data.values is None else data.values.column


def answered(
    card: Answer,
    drawn: PrivateChoice | PrivatePair,
    asked: Asked,
    data: Dataset,
    ends: Ends | None = None,
    range_drawn: ReleaseFacts | None = None,
) -> Answer:
    """What was drawn in place of a bound that is read off private data: nothing else of the data is in it.

    Args:
        card: The answer whose bound was drawn; its settings and its program are taken up.
        drawn: What was drawn.
        asked: The question of the draw.
        data: Give the names of file and columns.
        ends: The range of the release, where the answer does not say it.
        range_drawn: What the draw of the range guarantees, where that was drawn, too.

    Returns:
        An answer that may be published under the label that it carries. It has no figures, and not the setting of the
        release, which has numbers that were read off private values.
    """
    if isinstance(drawn, PrivatePair):
        headline, number, bound = _of_pair(drawn)
        written = pair_code.of_private(drawn, data)
    else:
        assert not isinstance(asked, PrivatePairProblem)
        headline, number = (
            _of_bound(drawn, asked) if isinstance(asked, BoundDraw) else _of_choice(drawn, asked, data)
        )
        bound = None
        written = _code(card, drawn, asked, data, ends or ends_of(card, asked), range_drawn)
    return Answer(
        headline=headline,
        detail=spent(drawn, asked, range_drawn),
        numbers=(number,),
        assumptions=(
            f"Neighbouring data sets differ thus: {drawn.facts.neighbours.value}",
            "The settings of the draw are public: none was read off these data",
            "ε of the draw and ε of the release add up",
        ),
        disclosure=drawn.facts,
        parameters=card.parameters,
        code=written,
        choice=lambda: _as_json(drawn, asked),
        bound=bound,
    )


def _as_json(drawn: PrivateChoice | PrivatePair, asked: Asked) -> str:
    if isinstance(drawn, PrivatePair):
        return code.several_json(drawn)
    assert not isinstance(asked, PrivatePairProblem)
    return code.choice_json(drawn, asked.wanted)


def spent(drawn: PrivateChoice | PrivatePair, asked: Asked, range_drawn: ReleaseFacts | None = None) -> str:
    """What was spent on the bound, and on the range where that was drawn, and what it is with the release."""
    release = asked.parameters if isinstance(asked, PrivatePairProblem) else asked
    epsilon = release.epsilon
    of_release = release.delta if isinstance(release, PerGroupParameters) else release.release_delta
    on_range = 0.0 if range_drawn is None else range_drawn.epsilon
    total = rounded_up(drawn.facts.epsilon + epsilon + on_range)
    said = f"The draw has spent ε = {rounded_up(drawn.facts.epsilon)}"
    if range_drawn is not None:
        said += f", that of the range ε = {rounded_up(on_range)}"
    delta = f", δ = {rounded_up(of_release)}" if of_release is not None else ""
    return f"{said}; the release adds ε = {rounded_up(epsilon)}{delta}: ε = {total}{delta} in all."


def _of_pair(drawn: PrivatePair) -> tuple[str, Number, Any]:
    asked = drawn.problem.parameters
    alone = asked.statistic is Statistic.USERS
    each = "" if alone else f", and at most {amount_words(asked, drawn.max_amount)} in each"
    groups = wording.counted(drawn.max_groups, "group")
    headline = (
        f"Count each user in at most {groups}." if alone else f"Keep at most {groups} of each user{each}."
    )
    number = Number(
        "Bound, drawn privately" if alone else "Pair, drawn privately",
        pair_words(asked, drawn.max_groups, drawn.max_amount),
        copies=f"{drawn.max_groups}" if alone else f"{drawn.max_groups}, {drawn.max_amount:.12g}",
    )
    return headline, number, drawn


def _of_bound(drawn: PrivateChoice, asked: BoundDraw) -> tuple[str, Number]:
    """Headline and number of a bound that was drawn for a quantile, a learner or a column's sum."""
    name, text = "Bound, drawn privately", choice.shown(drawn)
    if asked.wanted is Bounded.TOTAL:
        said = f"Clamp each user's total of {wording.plain(drawn.column)} at {text}."
        return said, Number(name, text, "", value=drawn.value, unit=f"{drawn.column} per user")
    text = wording.counted(drawn.value, "row")
    smooth = asked.wanted is Bounded.QUANTILE_SMOOTH
    said = f"Let no user weigh more than {text}." if smooth else f"Keep at most {text} of each user."
    return said, Number(name, text, "per user", value=drawn.value, unit="rows per user")


def _of_choice(drawn: PrivateChoice, asked: PrivateParameters, data: Dataset) -> tuple[str, Number]:
    rows = asked.wanted in (Wanted.CAP, Wanted.SUM)
    text = wording.counted(int(drawn.value), "row") if rows else choice.shown(drawn)
    name = words.NUMBER_NAMES[asked.wanted]
    headline = f"Keep at most {text} of each user." if rows else f"Take {text} as the {name}."
    unit = "rows per user"
    if asked.wanted is Wanted.SUM and (column := summed_column(data)):
        text, unit = wording.number(drawn.value, 12), f"{column} per user"
        headline = f"Clamp each user's total of {wording.plain(column)} at {text}."
    return headline, Number(
        "Bound, drawn privately" if rows else f"{wording.capital(name)}, drawn privately",
        text,
        "per user" if rows else "",
        value=int(drawn.value) if rows else drawn.value,
        unit=unit,
    )


def ends_of(card: Answer, asked: PrivateParameters | BoundDraw) -> Ends:
    """The range of the release that an answer is about; nothing where it has none, or does not say it."""
    question = card.parameters
    if isinstance(question, MeanParameters):
        return question.lower, question.upper
    if asked.wanted in (Bounded.QUANTILE_SMOOTH, Bounded.QUANTILE_CAP) and card.setting is not None:
        return card.setting.lower, card.setting.upper
    return None, None


def _code(
    card: Answer,
    drawn: PrivateChoice,
    asked: PrivateParameters | BoundDraw,
    data: Dataset,
    ends: Ends,
    range_drawn: ReleaseFacts | None,
) -> CodeChoice | None:
    """The drawn number as a program; None where a mean has no range yet, and for a quantile of rows per user."""
    if asked.wanted is Wanted.QUANTILE:
        return None
    if asked.wanted in (Bounded.QUANTILE_SMOOTH, Bounded.QUANTILE_CAP):
        return None if card.code is None else code.redrawn(card.code, drawn, asked.wanted)
    if asked.wanted in (Wanted.CAP, Wanted.SMOOTH) and None in ends:
        return None
    delta = asked.release_delta
    return code.of_private(drawn, asked.wanted, asked.epsilon, data, *ends, range_drawn, delta)
