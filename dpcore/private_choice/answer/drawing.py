"""The bound of an answer, drawn privately: what a draw asks, the draw, and what was drawn as an answer of its own.

Pages, calls and the command draw by this module, so that all of them ask the same and say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcore.answer import Answer, Number, ReleaseSetting
from dpcore.code import Quantity
from dpcore.code.forms import CodeChoice, summed_column
from dpcore.common import wording
from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.errors import refuse
from dpcore.common.privacy import Charge, ReleaseFacts, format_rounded_up
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


def asked_for(card: Answer, data: Dataset, context: Beside) -> Asked | Lacking | None:
    """Return the question of the draw of an answer's bound.

    Args:
        card: The answer.
        data: What it is about.
        context: What the draw takes besides.

    Returns:
        The question; what it lacks; None where nothing is to be hidden, or nothing is released under the bound.

    Raises:
        InvalidInput: Something that was entered is out of its range, or one bound is best whatever the data.
    """
    question, release = card.parameters, card.setting
    if isinstance(question, PrivateParameters):
        # The same object where it may be: a page knows its own question by that.
        same = context.epsilon == question.epsilon_choice
        return question if same else replace(question, epsilon_choice=context.epsilon)
    if isinstance(question, PerGroupParameters):
        return pair_asked_for(question, context)
    if release is None:
        return None
    # Where the contributions are a column's total, a row is a unit of it, and its sum is a count of them.
    if release.statistic is Quantity.SUM and data.contribution is Contribution.TOTAL:
        release = replace(release, statistic=Quantity.COUNT)
    draw_problem: Asked | None
    if isinstance(question, QuantileParameters):
        draw_problem = release_bounds.of_quantile(question, release, context.epsilon, context.largest)
    elif isinstance(question, LearningParameters):
        if question.public_rows is None:
            return Lacking(ROWS_MISSING, ("public_rows",))
        draw_problem = release_bounds.of_learner(
            question, release, question.public_rows, context.epsilon, context.largest
        )
    elif isinstance(question, TotalParameters) and release.statistic is Quantity.SUM:
        if not has_totals(data):
            return Lacking(BINS.format(wording.plain(release.column)))
        if question.highest_total is None:
            return Lacking(HIGHEST_MISSING, ("highest_total",))
        draw_problem = release_bounds.of_total(
            release, question.highest_total, context.epsilon, context.margin
        )
    else:
        setting = {"epsilon_choice": context.epsilon, "largest": context.largest, "margin": context.margin}
        draw_problem = PrivateParameters.of_release(release, **setting)
    return _no_draw(release) if draw_problem is None else draw_problem


def _no_draw(release: ReleaseSetting) -> Lacking | None:
    """Return what to do where no draw aims at a bound that was read off private data, or None if it leaks nothing.

    A mean and a quantile whose counts are taken as public have nothing to hide in a bound that is read off them.
    """
    if release.uses_values and release.statistic is Quantity.QUANTILE:
        return Lacking(FROM_COUNTS)
    if not release.protects_counts:
        return None
    return Lacking(NO_DRAW)


def pair_asked_for(parameters: PerGroupParameters, context: Beside) -> PrivatePairProblem | Lacking:
    """Return the question of a draw of a pair per group, or what it lacks.

    Raises:
        InvalidInput: Something that was entered is out of its range.
    """
    if parameters.statistic not in COVERED or parameters.selection.private:
        return NO_PAIR
    if parameters.num_groups is None:
        return Lacking(LIST_MISSING, ("num_groups",))
    of_sum = parameters.statistic is Statistic.SUM
    if of_sum and (context.unit is None or context.highest_amount is None):
        return Lacking(UNIT_MISSING, ("unit", "highest_amount"))
    unit = float(context.unit or 0.0) if of_sum else 1.0
    limit = float(context.highest_amount or 0.0) if of_sum else float(context.largest)
    # What the choice does not depend on is left out, so that a pair drawn before is known again.
    release = PerGroupParameters(
        parameters.epsilon,
        parameters.statistic,
        parameters.noise,
        parameters.delta,
        parameters.neighbours,
        num_groups=parameters.num_groups,
    )
    units = int(min(limit / unit, private_pair.MAX_AMOUNT)) if unit > 0.0 else 1
    return PrivatePairProblem(release, context.epsilon, units, unit)


def draw(
    draw_problem: Asked, data: Dataset, charge: Charge | None = None, amounts: UserAmounts | None = None
) -> PrivateChoice | PrivatePair:
    """Select the bound: a DP release, fresh at every call.

    Args:
        draw_problem: The question.
        data: Give the names of the columns.
        charge: Told what the selection guarantees before anything is drawn.
        amounts: What is selected from, private; by default the amounts of ``data``.

    Raises:
        InvalidInput: The data hold no amounts of the kind that is asked for, or are beyond what a selection can hold;
            nothing was drawn.
    """
    amounts = amounts_of(data) if amounts is None else amounts
    column = column_of(draw_problem, data)
    if isinstance(draw_problem, PrivatePairProblem):
        return private_pair.choose(draw_problem, _pairs_of(draw_problem, amounts), charge, column)
    if isinstance(draw_problem, BoundDraw) and draw_problem.wanted is Bounded.TOTAL:
        if amounts.totals is None:
            raise refuse("there is no total for each user to draw a bound from")
        units = release_bounds.in_units(amounts.totals, draw_problem.unit, draw_problem.largest)
        return choice.choose(draw_problem.choice, units, charge, column)
    return choice.choose(draw_problem.choice, amounts.histogram, charge)


def _pairs_of(pair_problem: PrivatePairProblem, amounts: UserAmounts) -> UserGroupPairs | PairSizes | None:
    """Return the pairs with made-up codes of groups: a selection asks only how many groups each user is in."""
    of_sum = pair_problem.parameters.statistic is Statistic.SUM
    if of_sum and amounts.sums is None:
        raise refuse("the pairs hold no sums", remedy="Choose rows or distinct users, or add a column up")
    users = amounts.user_codes
    if users is None or amounts.rows is None or not users.size:
        return amounts.pair_sizes
    starts = np.flatnonzero(np.r_[True, np.diff(users) != 0])
    groups = np.arange(users.size) - np.repeat(starts, np.diff(np.r_[starts, users.size]))
    return UserGroupPairs(
        users, groups, amounts.rows, int(groups.max()) + 1, amounts.sums if of_sum else None
    )


def dropped_cells(draw_problem: Asked, counts: Mapping[str, int]) -> dict[str, int]:
    """Return what a selection leaves out or counts as 0; as private as the data, and for their owner alone.

    Args:
        draw_problem: The question.
        counts: `UserAmounts.dropped`.
    """
    of_pairs = isinstance(draw_problem, PrivatePairProblem)
    dropped = {"rows without a user": counts.get("rows without a user", 0)}
    if of_pairs and draw_problem.parameters.statistic is Statistic.SUM:  # type: ignore[union-attr]
        dropped["cells without a number"] = counts.get("cells without a number", 0)
        dropped["amounts below 0"] = counts.get("amounts below 0", 0)
    elif isinstance(draw_problem, BoundDraw) and draw_problem.wanted is Bounded.TOTAL:
        dropped["cells without a number"] = counts.get("cells without a number", 0)
        dropped["totals below 0"] = counts.get("totals below 0", 0)
    if of_pairs:
        dropped["groups beyond the list"] = max(counts.get("groups", 0) - draw_problem.num_groups, 0)  # type: ignore[union-attr]
    return dropped


def column_of(draw_problem: Asked, data: Dataset) -> str:
    """Return what groups are of, or whose totals are bounded; empty for rows."""
    if isinstance(draw_problem, PrivatePairProblem):
        facet: Pairs | PairSizes | None = data.pairs or data.pair_sizes
        return "" if facet is None else facet.label
    if not isinstance(draw_problem, BoundDraw) or draw_problem.wanted is not Bounded.TOTAL:
        return ""
    if data.totals is not None and data.totals.column:
        return data.totals.column
    return "" if data.values is None else data.values.column


def build_answer(
    card: Answer,
    selection: PrivateChoice | PrivatePair,
    draw_problem: Asked,
    data: Dataset,
    ends: Ends | None = None,
    range_drawn: ReleaseFacts | None = None,
) -> Answer:
    """Return what was drawn in place of a bound that is read off private data: nothing else of the data is in it.

    Args:
        card: The answer whose bound was drawn; its settings and its program are taken up.
        selection: What was drawn.
        draw_problem: The question of the draw.
        data: Give the names of file and columns.
        ends: The range of the release, where the answer does not say it.
        range_drawn: What the draw of the range guarantees, where that was drawn, too.

    Returns:
        An answer that may be published under the label that it carries. It has no figures, and not the setting of the
        release, which has numbers that were read off private values.
    """
    if isinstance(selection, PrivatePair):
        headline, number, bound = _of_pair(selection)
        program = pair_code.write_private_forms(selection, data)
    else:
        assert not isinstance(draw_problem, PrivatePairProblem)
        headline, number = (
            _of_bound(selection, draw_problem)
            if isinstance(draw_problem, BoundDraw)
            else _of_choice(selection, draw_problem, data)
        )
        bound = None
        program = _code(card, selection, draw_problem, data, ends or ends_of(card, draw_problem), range_drawn)
    return Answer(
        headline=headline,
        detail=spent(selection, draw_problem, range_drawn),
        numbers=(number,),
        assumptions=(
            f"Neighbouring data sets differ thus: {selection.facts.neighbours.value}",
            "The settings of the draw are public: none was read off these data",
            "ε of the draw and ε of the release add up",
        ),
        disclosure=selection.facts,
        parameters=card.parameters,
        code=program,
        choice=lambda: _as_json(selection, draw_problem),
        bound=bound,
    )


def _as_json(selection: PrivateChoice | PrivatePair, draw_problem: Asked) -> str:
    if isinstance(selection, PrivatePair):
        return code.several_json(selection)
    assert not isinstance(draw_problem, PrivatePairProblem)
    return code.choice_json(selection, draw_problem.wanted)


def spent(
    selection: PrivateChoice | PrivatePair, draw_problem: Asked, range_drawn: ReleaseFacts | None = None
) -> str:
    """Return what was spent on the bound, and on the range where that was drawn, and what it is with the release."""
    release = draw_problem.parameters if isinstance(draw_problem, PrivatePairProblem) else draw_problem
    epsilon = release.epsilon
    of_release = release.delta if isinstance(release, PerGroupParameters) else release.release_delta
    on_range = 0.0 if range_drawn is None else range_drawn.epsilon
    total = format_rounded_up(selection.facts.epsilon + epsilon + on_range)
    sentence = f"The draw has spent ε = {format_rounded_up(selection.facts.epsilon)}"
    if range_drawn is not None:
        sentence += f", that of the range ε = {format_rounded_up(on_range)}"
    delta = f", δ = {format_rounded_up(of_release)}" if of_release is not None else ""
    return f"{sentence}; the release adds ε = {format_rounded_up(epsilon)}{delta}: ε = {total}{delta} in all."


def _of_pair(selection: PrivatePair) -> tuple[str, Number, Any]:
    parameters = selection.problem.parameters
    counts_users = parameters.statistic is Statistic.USERS
    each = "" if counts_users else f", and at most {amount_words(parameters, selection.max_amount)} in each"
    groups = wording.counted(selection.max_groups, "group")
    headline = (
        f"Count each user in at most {groups}."
        if counts_users
        else f"Keep at most {groups} of each user{each}."
    )
    number = Number(
        "Bound, drawn privately" if counts_users else "Pair, drawn privately",
        pair_words(parameters, selection.max_groups, selection.max_amount),
        clipboard_text=f"{selection.max_groups}"
        if counts_users
        else f"{selection.max_groups}, {selection.max_amount:.12g}",
    )
    return headline, number, selection


def _of_bound(selection: PrivateChoice, draw_problem: BoundDraw) -> tuple[str, Number]:
    """Headline and number of a bound that was drawn for a quantile, a learner or a column's sum."""
    name, text = "Bound, drawn privately", choice.shown(selection)
    if draw_problem.wanted is Bounded.TOTAL:
        sentence = f"Clamp each user's total of {wording.plain(selection.column)} at {text}."
        return sentence, Number(name, text, "", value=selection.value, unit=f"{selection.column} per user")
    text = wording.counted(selection.value, "row")
    smooth = draw_problem.wanted is Bounded.QUANTILE_SMOOTH
    sentence = f"Let no user weigh more than {text}." if smooth else f"Keep at most {text} of each user."
    return sentence, Number(name, text, "per user", value=selection.value, unit="rows per user")


def _of_choice(selection: PrivateChoice, parameters: PrivateParameters, data: Dataset) -> tuple[str, Number]:
    rows = parameters.wanted in (Wanted.CAP, Wanted.SUM)
    text = wording.counted(int(selection.value), "row") if rows else choice.shown(selection)
    name = words.NUMBER_NAMES[parameters.wanted]
    headline = f"Keep at most {text} of each user." if rows else f"Take {text} as the {name}."
    unit = "rows per user"
    if parameters.wanted is Wanted.SUM and (column := summed_column(data)):
        text, unit = wording.number(selection.value, 12), f"{column} per user"
        headline = f"Clamp each user's total of {wording.plain(column)} at {text}."
    return headline, Number(
        "Bound, drawn privately" if rows else f"{wording.capital(name)}, drawn privately",
        text,
        "per user" if rows else "",
        value=int(selection.value) if rows else selection.value,
        unit=unit,
    )


def ends_of(card: Answer, draw_problem: PrivateParameters | BoundDraw) -> Ends:
    """Return the range of the release that an answer is about; nothing where it has none, or does not say it."""
    question = card.parameters
    if isinstance(question, MeanParameters):
        return question.lower, question.upper
    if draw_problem.wanted in (Bounded.QUANTILE_SMOOTH, Bounded.QUANTILE_CAP) and card.setting is not None:
        return card.setting.lower, card.setting.upper
    return None, None


def _code(
    card: Answer,
    selection: PrivateChoice,
    draw_problem: PrivateParameters | BoundDraw,
    data: Dataset,
    ends: Ends,
    range_drawn: ReleaseFacts | None,
) -> CodeChoice | None:
    """Return the drawn number as a program, or None if a mean has no range yet, and for a quantile of rows per user."""
    if draw_problem.wanted is Wanted.QUANTILE:
        return None
    if draw_problem.wanted in (Bounded.QUANTILE_SMOOTH, Bounded.QUANTILE_CAP):
        return None if card.code is None else code.redrawn(card.code, selection, draw_problem.wanted)
    if draw_problem.wanted in (Wanted.CAP, Wanted.SMOOTH) and None in ends:
        return None
    delta = draw_problem.release_delta
    return code.of_private(
        selection, draw_problem.wanted, draw_problem.epsilon, data, *ends, range_drawn, delta
    )
