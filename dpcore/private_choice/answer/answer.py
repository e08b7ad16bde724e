"""The answer on choosing privately: its texts for a methods section, and its figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcore.answer.answer import Answer
from dpcore.answer.methods import TEXT_BY_NEIGHBOURS, ChoiceSource, Methods
from dpcore.answer.plot import Axis, Column, Curve, Item, Level, Plot, Style
from dpcore.common.privacy import Ledger, format_rounded_up
from dpcore.common.wording import format_entered, format_number
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.answer import words
from dpcore.private_choice.answer.words import name_error
from dpcore.private_choice.choice import DrawnNumber
from dpcore.private_choice.comparison import EPSILON_AXIS_RANGE, PrivateSolution, solve
from dpcore.private_choice.parameters import MEAN_PURPOSES, NAME_BY_NUMBER, BoundPurpose, PrivateParameters
from dpcore.private_choice.release_bounds import SelectionRequest

MIN_PLOTTED_COST = 1e-5
"""Lower costs are shown as this one."""


def plot_over_epsilon(solution: PrivateSolution) -> Plot:
    """Plot the direct choice's cost over its epsilon, median and 95th percentile, at least `MIN_PLOTTED_COST`."""
    parameters, epsilon_axis = solution.parameters, Axis("ε of the choice", "", EPSILON_AXIS_RANGE)
    regret = comparison.compute_regret_over_epsilon(parameters, solution.dataset.histogram)
    epsilon_column = Column("selection_epsilon", regret.epsilons)
    median_costs, percentile_95_costs = (
        np.maximum(regrets[0], MIN_PLOTTED_COST)
        for regrets in (regret.median_regrets, regret.percentile_95_regrets)
    )
    percentile_95_name = "Direct choice, 95th percentile"
    percentile_95_column = Column("percentile_95", percentile_95_costs)
    items: list[Item] = [
        Curve("Direct choice, median", epsilon_column, Column("median", median_costs), Style.CAP),
        Curve(percentile_95_name, epsilon_column, percentile_95_column, Style.CAP, dash="dot", width=1.5),
    ]
    if epsilon_axis.contains(parameters.selection_epsilon):
        items.append(Level("ε as chosen", parameters.selection_epsilon, is_vertical=True, dash="longdash"))
    cost_axis_name = f"extra {name_error(parameters)}"
    if solution.is_rank_error:
        cost_axis_name = "rank error, share of users"
    return Plot(
        "private-cost-epsilon",
        "Cost over ε of the choice",
        "Choosing privately costs less the larger its budget: median and 95th percentile of the cost.",
        epsilon_axis,
        Axis(cost_axis_name, number_format=".2%"),
        items,
        solution.dataset.provenance,
        is_main=True,
    )


def build_methods(
    solution: PrivateSolution,
    selections: Sequence[tuple[BoundPurpose, DrawnNumber]] = (),
    ledger: Ledger | None = None,
    total_epsilon: float | None = None,
) -> Methods | None:
    """Build the methods text of the latest number that was drawn, or of the best number on a DP release.

    None if nothing was drawn and the data are no release: the best number on private data is no choice of this page.
    The rule is that of the present parameters, also of a number that was drawn with others.

    Args:
        solution: What either way costs.
        selections: Numbers drawn so far from the data behind it, oldest first.
        ledger: What all draws on these cost.
        total_epsilon: The total that the budgets of choice and release are shares of; None if none was entered.
    """
    current_parameters, number_name = solution.parameters, NAME_BY_NUMBER[solution.parameters.purpose]
    choices_of_this_number = [
        drawn_choice for purpose, drawn_choice in selections if purpose is current_parameters.purpose
    ]
    if choices_of_this_number:
        rule_clause = _describe_rule(current_parameters)
        return _describe_draw(
            number_name, choices_of_this_number[-1], rule_clause, ledger or Ledger(), total_epsilon
        )
    if solution.dataset.release is None:
        return None
    return Methods(
        guarantee_text=f"The {number_name} for a release at ε = {format_entered(current_parameters.epsilon)} was "
        "taken from a differentially private release of how many users have how many rows.",
        procedure=f"The {number_name} is {format_number(solution.best, 6)}.",
        public_procedure="",
        disclosure=solution.dataset.provenance,
        rule_sentence=f"It {_describe_rule(current_parameters)}",
        subject_phrase="The number",
    )


def _describe_draw(
    number_name: str,
    private_choice: DrawnNumber,
    rule_clause: str,
    ledger: Ledger,
    total_epsilon: float | None,
) -> Methods:
    """Build the methods text of a drawn number: how it was drawn, and what all draws have spent."""
    release_facts, spending_sentences = private_choice.facts, ""
    if total_epsilon is not None:
        spending_sentences = (
            f" These are shares of a total of ε = {format_rounded_up(total_epsilon)}, which was divided by public "
            "figures alone."
        )
    if ledger.total is not None and len(ledger.releases) > 1:
        ledger_cost_text = words.format_cost(ledger.total.epsilon, ledger.total.delta)
        spending_sentences += f" All that was drawn from these data so far spent {ledger_cost_text} together."
    return Methods(
        guarantee_text=f"The {number_name} was itself chosen with user-level ε-differential privacy at "
        f"ε = {format_rounded_up(release_facts.epsilon)}. Two data sets are neighbours "
        f"{TEXT_BY_NEIGHBOURS[release_facts.neighbours]}.",
        procedure=f"The {number_name} is {choice.format_drawn_number(private_choice)}. It was drawn by the exponential "
        "mechanism [@mcsherry2007] of the [@opendp] from public candidates of at most "
        f"{format_number(private_choice.problem.largest)} rows. By basic composition [@dwork2014] its budget and that "
        f"of the release that uses it add up.{spending_sentences}",
        public_procedure="",
        disclosure=release_facts,
        rule_sentence=f"The exact optimum, which the choice aims at, {rule_clause}",
        subject_phrase="The number",
        choice_source=ChoiceSource.DRAWN,
    )


def _describe_rule(parameters: PrivateParameters) -> str:
    """Write the predicate of a sentence, with full stop: what the best bound minimises, or that it is a quantile."""
    number_kind = parameters.purpose
    if parameters.user_share and number_kind in MEAN_PURPOSES:
        weights_phrase = "plain smooth weights" if number_kind is BoundPurpose.SMOOTH else "a bound on rows"
        return (
            f"minimises the expected squared error under {weights_phrase} about the mean of the rows at hand, where a "
            f"share of {format_entered(parameters.user_share)} of the variance lies between users."
        )
    mean_clause = "minimises the expected squared error of a released mean"
    return {
        BoundPurpose.SMOOTH: f"{mean_clause} under smooth weights [@epasto2020, section 3].",
        BoundPurpose.CAP: f"{mean_clause} [@epasto2020, section 3].",
        BoundPurpose.SUM: "minimises bias plus mean noise of a released sum [@amin2019, section 3].",
        BoundPurpose.QUANTILE: "is the quantile of rows per user that was asked for.",
    }[number_kind]


def build_answer(
    dataset: Dataset, parameters: PrivateParameters, solution: PrivateSolution | None = None
) -> Answer:
    """Compute what it costs to choose a bound with an epsilon of its own, directly or on a DP histogram.

    No number is drawn: `dpcore.private_choice.choice.choose` and `private_histogram.release_histogram` do that.

    Args:
        dataset: How many users have how many rows.
        parameters: The question.
        solution: What `solve` returns for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `PrivateSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have more users than the mechanisms can hold.

    Examples:
        >>> import dpcore as ss
        >>> ss.private_bound([1] * 90 + [10] * 10, epsilon=1).headline
        'Choose the number directly.'

    Source: McSherry and Talwar 2007 for the draw; Epasto et al. 2020, section 3, and Amin et al. 2019, section 3, for
        what it aims at.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    total_epsilon = parameters.epsilon if parameters.is_total_epsilon else None
    texts_by_heading = words.list_facts(solution)
    if total_epsilon is not None:
        texts_by_heading["Budget"] = f"{SelectionRequest.from_parameters(parameters).describe_budget()}."
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=words.list_assumptions(dataset.disclosure, parameters),
        disclosure=dataset.provenance,
        facts=texts_by_heading,
        parameters=parameters,
        solution=solution,
        plots={"private-cost-epsilon": lambda: plot_over_epsilon(solution)},
        make_methods=lambda: build_methods(solution, total_epsilon=total_epsilon),
        setting=solution.parameters.setting,
        # The number itself is drawn, and costs; here it is only said what that would cost.
        bound=lambda: None,
    )
