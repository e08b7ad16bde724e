"""The bound of an answer, selected privately: the request, the selection, and its answer, program and file.

Pages, calls and the command select by this module, so that all of them make the same requests and give the same
sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcore.answer import Answer
from dpcore.answer.unit import state_unit
from dpcore.code import Quantity, ReleaseSpec, forms
from dpcore.code.forms import OfferedPrograms
from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Charge, Ledger, ReleaseFacts
from dpcore.common.strict_json import CHOICE_SCHEMA, write_document
from dpcore.common.text_fields import to_values
from dpcore.common.wording import escape_text
from dpcore.contributions import MAX_SIZE
from dpcore.data.binned_values import expand_rows
from dpcore.data.group_list import code_cells
from dpcore.data.task_facets import Pairs, PairSizes
from dpcore.data.totals_per_user import UserAmounts, get_user_amounts, has_totals
from dpcore.dataset import Contribution, Dataset
from dpcore.learning import LearningParameters
from dpcore.mean import MeanParameters
from dpcore.per_group import private_pair
from dpcore.per_group.answer.answer import write_private_forms
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import DrawnPair, PrivatePairProblem
from dpcore.private_choice import choice, private_range, release_bounds
from dpcore.private_choice.answer.words import (
    Selection,
    describe_spending,
    write_number_texts,
    write_pair_texts,
)
from dpcore.private_choice.budget import divide_budget
from dpcore.private_choice.choice import DrawnNumber
from dpcore.private_choice.parameters import (
    DEFAULT_LARGEST_BOUND,
    MEAN_PURPOSES,
    NAME_BY_NUMBER,
    QUANTILE_NUMBER_KINDS,
    BoundPurpose,
    NumberKind,
    OtherBound,
    PrivateParameters,
    find_share,
)
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.quantile.parameters import QuantileParameters
from dpcore.total.parameters import TotalParameters

RangeEnds = tuple[float | None, float | None]
"""L and U of the release; None and None for one without a range."""

NO_SELECTION_TEXT = "No draw aims at this bound. *Data* releases a DP histogram of the counts to answer on."


@dataclass(frozen=True)
class MissingInput:
    """The reason why a bound cannot be selected yet.

    Attributes:
        sentence: The reason, for the page.
        setting_names: Names of the settings to enter; empty if entering something does not help.
    """

    sentence: str
    setting_names: tuple[str, ...] = ()


PAIR_NOT_POSSIBLE = MissingInput(
    "A pair can be chosen for counts, and for sums of amounts of at least 0, on a public list of groups. For others, "
    "enter bounds that you know."
)
LIST_MISSING = MissingInput(
    "To choose the pair with DP, paste your public list of groups, or enter how many it has.", ("num_groups",)
)
UNIT_MISSING = MissingInput(
    "To choose the pair with DP, enter the public unit and highest of the amounts.",
    ("unit", "highest_amount"),
)
HIGHEST_MISSING = MissingInput(
    "To choose it with DP, enter a highest total of one user, not from the data.", ("highest_total",)
)
ROWS_MISSING = MissingInput(
    "To choose it with DP, enter a public number of rows: about, rather too few.", ("public_rows",)
)


@dataclass(frozen=True)
class SelectionSettings:
    """The settings of a selection beside those of the release; all of them public.

    Attributes:
        epsilon: Budget of the selection, on top of that of the release.
        largest: Public maximum of rows per user; no bound above it is drawn.
        margin: Of sums and counts, as for `PrivateParameters`.
        unit: What amounts per group are rounded to; None if it is not entered. Counts need none.
        highest_amount: Public maximum of an amount per group; likewise.
        is_total_epsilon: True to take both budgets from the epsilon of the release, as `find_share` says; ``epsilon``
            then has no meaning.
        ledger: What was released from the data before, which takes from that total.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float = PrivateParameters(1.0).selection_epsilon
    largest: int = DEFAULT_LARGEST_BOUND
    margin: float = 0.0
    unit: float | None = None
    highest_amount: float | None = None
    is_total_epsilon: bool = False
    ledger: Ledger | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with all problems of the attributes."""
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, **{"epsilon of the draw": self.epsilon})
            problems.whole(1, MAX_SIZE, largest=self.largest)
            problems.between(0.0, 1e12, margin=self.margin)
            for setting_name, setting_value in (("unit", self.unit), ("highest_amount", self.highest_amount)):
                if setting_value is not None:
                    problems.between(1e-12, 1e15, **{setting_name: setting_value})


def build_request(
    card: Answer, dataset: Dataset, settings: SelectionSettings
) -> SelectionRequest | MissingInput | None:
    """Build the request for a private selection of an answer's bound, or say what it lacks.

    Args:
        card: The answer.
        dataset: The data that it is about.
        settings: The further settings of the selection.

    Returns:
        The request; what it lacks; None if nothing is to be hidden, or nothing is released under the bound.

    Raises:
        InvalidInput: Something that was entered is out of its range, one bound is best whatever the data, or too little
            is left of a total epsilon.
    """
    request = _build_request(card, dataset, settings)
    if not settings.is_total_epsilon or not isinstance(request, SelectionRequest):
        return request
    total_epsilon, neighbours = request.release_epsilon, request.problem.neighbours
    selection_share, ledger = find_share(request.number), settings.ledger or Ledger()
    epsilon_shares = divide_budget(total_epsilon, selection_share, neighbours, ledger)
    divided_card = replace(
        card,
        parameters=replace(card.parameters, epsilon=epsilon_shares.release_epsilon),
        setting=card.setting and replace(card.setting, epsilon=epsilon_shares.release_epsilon),
    )
    settings = replace(settings, epsilon=epsilon_shares.selection_epsilon)
    request = _build_request(divided_card, dataset, settings)
    assert isinstance(request, SelectionRequest)
    return replace(request, total_epsilon=total_epsilon, spent_epsilon=epsilon_shares.spent_epsilon)


def _build_request(
    card: Answer, dataset: Dataset, settings: SelectionSettings
) -> SelectionRequest | MissingInput | None:
    """Build the request with the epsilons of card and settings as they are, not as shares of a total."""
    card_parameters, release_setting = card.parameters, card.setting
    epsilon, largest_bound = settings.epsilon, settings.largest
    if isinstance(card_parameters, PrivateParameters):
        parameters = replace(card_parameters, selection_epsilon=epsilon, is_total_epsilon=False)
        return SelectionRequest.from_parameters(parameters)
    if isinstance(card_parameters, PerGroupParameters):
        return build_pair_request(card_parameters, settings)
    if release_setting is None:
        return None
    # If the contributions are a column's total, a row is a unit of it, and its sum is a count of them.
    if release_setting.statistic is Quantity.SUM and dataset.contribution is Contribution.TOTAL:
        release_setting = replace(release_setting, statistic=Quantity.COUNT)
    request: SelectionRequest | None
    if isinstance(card_parameters, QuantileParameters):
        request = release_bounds.request_quantile_bound(
            card_parameters, release_setting, epsilon, largest_bound
        )
    elif isinstance(card_parameters, LearningParameters):
        if card_parameters.public_rows is None:
            return ROWS_MISSING
        request = release_bounds.request_learner_bound(
            card_parameters, release_setting, card_parameters.public_rows, epsilon, largest_bound
        )
    elif isinstance(card_parameters, TotalParameters) and release_setting.statistic is Quantity.SUM:
        if not has_totals(dataset):
            return MissingInput(
                "For so many users only bins of totals are kept, and one user can move a whole bin. Bring the file "
                f"again (*Data*) with the total of {escape_text(release_setting.column_name)} as the "
                "contribution (*More about users*)."
            )
        if card_parameters.highest_total is None:
            return HIGHEST_MISSING
        request = release_bounds.request_total_bound(
            release_setting, card_parameters.highest_total, epsilon, settings.margin
        )
    else:
        choice_parameters = PrivateParameters.from_release(
            release_setting, selection_epsilon=epsilon, largest=largest_bound, margin=settings.margin
        )
        request = None if choice_parameters is None else SelectionRequest.from_parameters(choice_parameters)
    if request is not None:
        return request
    if release_setting.uses_values and release_setting.statistic is Quantity.QUANTILE:
        return MissingInput(
            "No ε covers a look at the values. A bound *from counts* needs none where counts are public."
        )
    # Where counts are taken as public, a bound that is read off them has nothing to hide.
    return MissingInput(NO_SELECTION_TEXT) if release_setting.protects_counts else None


def build_pair_request(
    parameters: PerGroupParameters, settings: SelectionSettings
) -> SelectionRequest | MissingInput:
    """Build the request for a pair of bounds per group, or say what it lacks.

    Raises:
        InvalidInput: Something that was entered is out of its range.
    """
    if not parameters.statistic.is_non_negative or parameters.selection.is_private:
        return PAIR_NOT_POSSIBLE
    if parameters.num_listed_groups is None:
        return LIST_MISSING
    amount_unit, largest_amount = 1.0, float(settings.largest)
    if parameters.statistic is Statistic.SUM:
        if settings.unit is None or settings.highest_amount is None:
            return UNIT_MISSING
        amount_unit, largest_amount = float(settings.unit), float(settings.highest_amount)
    # What the choice does not depend on is left out, so that a pair drawn before is known again.
    field_names = ["epsilon", "statistic", "mechanism", "delta", "program", "neighbours"]
    field_names += ["num_groups", "groups", "edges"]
    release_parameters = PerGroupParameters(**{name: getattr(parameters, name) for name in field_names})
    num_units = int(min(largest_amount / amount_unit, private_pair.MAX_AMOUNT))
    problem = PrivatePairProblem(release_parameters, settings.epsilon, num_units, amount_unit)
    return SelectionRequest.from_pair_problem(problem)


def select(
    request: SelectionRequest,
    dataset: Dataset,
    charge: Charge | None = None,
    user_amounts: UserAmounts | None = None,
) -> Selection:
    """Draw what was requested: a DP release, fresh at every call.

    Args:
        request: What to select.
        dataset: Gives the names of the columns, and the values for a range.
        charge: Told what the selection guarantees before anything is drawn.
        user_amounts: What is selected from, private; by default the amounts of ``dataset``.

    Raises:
        InvalidInput: The data hold no amounts of the kind that is asked for, or are beyond what a selection can hold;
            nothing was drawn.
    """
    problem = request.problem
    if isinstance(problem, RangeProblem):
        if dataset.values is None:
            raise refuse("the data have no values to choose a range from")
        return private_range.choose(problem, expand_rows(dataset.values), charge)
    user_amounts = get_user_amounts(dataset) if user_amounts is None else user_amounts
    column_name = find_column(request, dataset)
    if isinstance(problem, PrivatePairProblem):
        return private_pair.choose_pair(problem, _build_pairs(problem, user_amounts), charge, column_name)
    histogram = user_amounts.histogram
    if request.number is OtherBound.TOTAL:
        if user_amounts.totals is None:
            raise refuse("there is no total for each user to draw a bound from")
        histogram = release_bounds.convert_to_units(user_amounts.totals, problem.unit, problem.largest)
    return choice.choose(problem, histogram, charge, column_name)


def _build_pairs(problem: PrivatePairProblem, user_amounts: UserAmounts) -> UserGroupPairs | PairSizes | None:
    """Build the pairs of user and group that a draw reads.

    Only listed groups are kept, and None is returned if there are none. Without names on the list, codes of groups
    are made up, as only their number matters. Without codes of users, the distribution of pairs is returned.
    """
    needs_sums = problem.parameters.statistic is Statistic.SUM
    if needs_sums and user_amounts.pair_sums is None:
        raise refuse("the pairs hold no sums", remedy="Choose rows or distinct users, or add a column up")
    user_codes = user_amounts.pair_user_codes
    if user_codes is None or user_amounts.pair_rows is None or not user_codes.size:
        return user_amounts.pair_sizes
    pair_sums = user_amounts.pair_sums if needs_sums else None
    list_names, listed_edges = problem.parameters.listed_groups
    if list_names:
        if user_amounts.pair_group_codes is None or not user_amounts.group_names:
            remedy_sentence = "Enter how many groups are on the list instead"
            raise refuse("these data hold no names of groups to compare a list with", remedy=remedy_sentence)
        listed_codes = code_cells(user_amounts.group_names, list_names, listed_edges)
        if not (listed_codes >= 0).any():
            return None
        rows_groups_sums = user_amounts.pair_rows, len(listed_codes), pair_sums
        return UserGroupPairs(user_codes, user_amounts.pair_group_codes, *rows_groups_sums).regroup(
            listed_codes, len(list_names)
        )
    starts = np.flatnonzero(np.r_[True, np.diff(user_codes) != 0])
    group_codes = np.arange(user_codes.size) - np.repeat(starts, np.diff(np.r_[starts, user_codes.size]))
    return UserGroupPairs(
        user_codes, group_codes, user_amounts.pair_rows, int(group_codes.max()) + 1, pair_sums
    )


def count_dropped(request: SelectionRequest, num_rows_by_name: Mapping[str, int]) -> dict[str, int]:
    """Count what a selection leaves out or takes as 0, by name; as private as the data, for their owner alone.

    Args:
        request: What is selected.
        num_rows_by_name: `UserAmounts.dropped_counts_by_name`.
    """
    dropped_names, problem = ["rows without a user"], request.problem
    if isinstance(problem, PrivatePairProblem) and problem.parameters.statistic is Statistic.SUM:
        dropped_names += ["cells without a number", "amounts below 0"]
    elif request.number is OtherBound.TOTAL:
        dropped_names += ["cells without a number", "totals below 0"]
    dropped_counts_by_name = {
        dropped_name: num_rows_by_name.get(dropped_name, 0) for dropped_name in dropped_names
    }
    if isinstance(problem, PrivatePairProblem):
        num_groups = num_rows_by_name.get("groups", 0)
        dropped_counts_by_name["groups beyond the list"] = max(num_groups - problem.num_groups, 0)
    return dropped_counts_by_name


def find_column(request: SelectionRequest, dataset: Dataset) -> str:
    """Return the column of groups, or the column whose totals are bounded; empty if rows are."""
    if isinstance(request.problem, PrivatePairProblem):
        facet: Pairs | PairSizes | None = dataset.pairs or dataset.pair_sizes
        return "" if facet is None else facet.label
    if request.number is not OtherBound.TOTAL:
        return ""
    if dataset.totals is not None and dataset.totals.column:
        return dataset.totals.column
    return "" if dataset.values is None else dataset.values.column


def build_answer(
    card: Answer,
    selection: Selection,
    request: SelectionRequest,
    dataset: Dataset,
    value_range: RangeEnds | None = None,
    range_facts: ReleaseFacts | None = None,
) -> Answer:
    """Build the answer on a bound that was drawn, in place of one that is read off private data.

    Args:
        card: The answer whose bound was selected; its settings and its program are taken up.
        selection: The released bound.
        request: What was selected.
        dataset: Gives the names of file and columns.
        value_range: The range of the release, if the answer does not say it.
        range_facts: The guarantee of the range, if that was selected, too.

    Returns:
        An answer that may be published under the label that it carries. It has no figures, and not the setting of the
        release, which has numbers that were read off private values.
    """
    if isinstance(selection, DrawnPair):
        headline, answer_number = write_pair_texts(selection)
    else:
        assert isinstance(selection, DrawnNumber)
        headline, answer_number = write_number_texts(selection, request.number, dataset)
    release_arguments = request.number, dataset, request.release_epsilon, request.release_delta
    value_range = value_range or find_value_range(card, request.number)
    answer = Answer(
        headline=headline,
        detail=describe_spending(selection.facts, request, range_facts),
        numbers=(answer_number,),
        assumptions=(
            f"Neighbouring data sets differ thus: {selection.facts.neighbours.value}",
            "The settings of the draw are public: none was read off these data",
            request.describe_budget(),
        ),
        disclosure=selection.facts,
        parameters=card.parameters,
        code=build_code(selection, *release_arguments, value_range, range_facts, card.code),
        write_json=lambda: write_json(selection, request.number, request),
        bound=selection if isinstance(selection, DrawnPair) else None,
    )
    selections = [facts for facts in (selection.facts, range_facts) if facts is not None]
    unit_answer: Answer = state_unit(answer, dataset, request.release_epsilon, selections)
    return unit_answer


def find_value_range(card: Answer, number_kind: NumberKind) -> RangeEnds:
    """Return L and U of the release that an answer is about; (None, None) if it has no range."""
    if isinstance(card.parameters, MeanParameters):
        return card.parameters.lower, card.parameters.upper
    if number_kind in QUANTILE_NUMBER_KINDS and card.setting is not None:
        return card.setting.lower, card.setting.upper
    return None, None


def build_code(
    selection: Selection,
    number_kind: NumberKind,
    dataset: Dataset,
    epsilon: float,
    delta: float | None = None,
    value_range: RangeEnds = (None, None),
    range_facts: ReleaseFacts | None = None,
    card_code: OfferedPrograms | None = None,
) -> OfferedPrograms | None:
    """Build the program that releases with what was drawn; None if no release uses it.

    Args:
        selection: The released bound, with its label.
        number_kind: What was selected.
        dataset: Gives the names of file and columns.
        epsilon: Of the release.
        delta: Of a release with Gaussian noise; None for Laplace noise.
        value_range: Lowest and highest value of a mean.
        range_facts: The guarantee of that range, if it was selected.
        card_code: The program of the card, whose library opens, and which a quantile's bound takes up.

    Returns:
        The program; None for a range, for a mean without a range, and for a quantile of rows per user.
    """
    if isinstance(selection, DrawnPair):
        return write_private_forms(selection, dataset, epsilon)
    has_no_program = number_kind is BoundPurpose.QUANTILE or (
        number_kind in MEAN_PURPOSES and None in value_range
    )
    if not isinstance(selection, DrawnNumber) or has_no_program:
        return None
    facts, drawn_number = selection.facts, selection.value
    form_name, bound_fields = forms.name_cap_form(drawn_number), dict[str, Any](max_rows=int(drawn_number))
    if number_kind in (BoundPurpose.SMOOTH, OtherBound.QUANTILE_SMOOTH):
        form_name, bound_fields = forms.name_smooth_form(drawn_number), {"threshold": drawn_number}
    if number_kind in QUANTILE_NUMBER_KINDS:
        if card_code is None:
            return None
        card_choice = card_code.forms[0][1]
        assert isinstance(card_choice, ReleaseSpec)
        choice_with_bound = replace(card_choice, epsilon=epsilon, disclosure=facts, **bound_fields)
        return OfferedPrograms(((form_name, choice_with_bound),))
    base_fields = forms.list_data_fields(dataset) | {"disclosure": facts, "neighbours": facts.neighbours}
    if delta is not None:
        base_fields |= {"noise": NoiseKind.GAUSSIAN, "delta": delta}
    quantity = Quantity.MODEL if number_kind is OtherBound.MODEL else Quantity.COUNT
    if number_kind in MEAN_PURPOSES:
        quantity = Quantity.MEAN
        bound_fields |= {"lower": value_range[0], "upper": value_range[1], "range_facts": range_facts}
    elif quantity is Quantity.COUNT and (
        column_name := selection.column or forms.find_summed_column(dataset)
    ):
        form_name, quantity = "Clamp", Quantity.SUM
        bound_fields = {"max_total": drawn_number, "value_column": column_name} | forms.FILE_ROW_FIELDS
    noise_library = None if card_code is None else card_code.library
    return forms.build_forms(epsilon, base_fields, [(form_name, quantity, bound_fields)], noise_library)


def write_json(selection: Selection, number_kind: NumberKind, request: SelectionRequest | None = None) -> str:
    """Return a selection with its guarantee as the text of a JSON file; nothing else in it depends on the data.

    Args:
        selection: What was selected.
        number_kind: What it is.
        request: Tells the budget of the release, and the total that both are of; None if the release is not known.
    """
    question: dict[str, Any]
    answer: dict[str, Any]
    if isinstance(selection, DrawnNumber):
        problem, column_name = selection.problem, selection.column
        question = {"condition": to_values(problem.condition), "largest": problem.largest}
        if column_name:
            question |= {"unit": problem.unit, "column": column_name}
        question["prior"] = None if problem.prior is None else to_values(problem.prior)
        answer = {"value": selection.value, "unit": f"{column_name or 'rows'} per user"}
    elif isinstance(selection, DrawnPair):
        question = to_values(selection.problem) | {"parameters": to_values(selection.problem.parameters)}
        answer = {"max_groups": selection.max_groups, "max_amount": selection.max_amount}
    else:
        question = to_values(selection.problem)
        answer = {"lower": selection.lower, "upper": selection.upper}
    if request is not None:
        question |= {"release_epsilon": request.release_epsilon, "total_epsilon": request.total_epsilon}
    return write_document(
        CHOICE_SCHEMA,
        question={"label": "public input", "number": NAME_BY_NUMBER[number_kind], **question},
        answer={"label": selection.facts.label, **answer, **to_values(selection.facts)},
    )
