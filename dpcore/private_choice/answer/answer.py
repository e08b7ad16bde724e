"""What a number that was chosen privately has to say in a methods section.

The answer on choosing privately: one object that page, report, files, script and notebook read.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.answer import Answer
from dpcore.answer.methods import NEIGHBOUR_TEXTS, ChoiceSource, Methods
from dpcore.common import wording
from dpcore.common.ledger import Ledger
from dpcore.common.privacy import format_rounded_up
from dpcore.dataset import Dataset
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.answer import plots, words
from dpcore.private_choice.answer.solution import PrivateSolution, solve
from dpcore.private_choice.answer.words import NUMBER_NAMES
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.parameters import PrivateParameters, Wanted


def methods(
    solution: PrivateSolution,
    selections: Sequence[tuple[Wanted, PrivateChoice]] = (),
    ledger: Ledger | None = None,
) -> Methods | None:
    """The latest number that was drawn for this question, which may be printed, or the best one on a release in use.

    None where neither is there: the best number on private data is no choice of this page.

    Args:
        solution: What was found.
        selections: Numbers drawn so far from the data behind it, oldest first.
        ledger: What all draws on these cost.
    """
    wanted = solution.parameters.wanted
    latest = next((choice for statistic, choice in reversed(selections) if statistic is wanted), None)
    if latest is not None:
        return _describe_draw(NUMBER_NAMES[wanted], latest, _rule(solution), ledger or Ledger())
    if solution.data.release is None:
        return None
    number = NUMBER_NAMES[wanted]
    return Methods(
        guarantee=f"The {number} was taken from a differentially private release of how many users have how many "
        f"rows. It is meant for a release at ε = {wording.entered(solution.parameters.epsilon)}.",
        sentences=f"The {number} is {wording.number(solution.best, 6)}.",
        public_sentences="",
        disclosure=solution.data.provenance,
        rule=f"It {_rule(solution)}",
        subject="The number",
    )


def _describe_draw(number: str, latest: PrivateChoice, rule: str, ledger: Ledger) -> Methods:
    facts, ledger_text = latest.facts, ""
    if ledger.total is not None and len(ledger.releases) > 1:
        delta = f" and δ = {format_rounded_up(ledger.total.delta)}" if ledger.total.delta else ""
        all_of_it = f"ε = {format_rounded_up(ledger.total.epsilon)}{delta}"
        ledger_text = f" All that was drawn from these data so far spent {all_of_it} together."
    return Methods(
        guarantee=f"The {number} was itself chosen with user-level ε-differential privacy at "
        f"ε = {format_rounded_up(facts.epsilon)}. Two data sets are neighbours {NEIGHBOUR_TEXTS[facts.neighbours]}.",
        sentences=f"The {number} is {choice.shown(latest)}. It was drawn by the exponential mechanism "
        "[@mcsherry2007] of "
        f"the [@opendp] from public candidates of at most {wording.number(latest.problem.largest)} rows. By basic "
        f"composition [@dwork2014] its budget and that of the release that uses it add up.{ledger_text}",
        public_sentences="",
        disclosure=facts,
        rule=f"The exact optimum, which the choice aims at, {rule}",
        subject="The number",
        choice_source=ChoiceSource.DRAWN,
    )


def _rule(solution: PrivateSolution) -> str:
    parameters = solution.parameters
    if parameters.user_share and parameters.wanted in (Wanted.SMOOTH, Wanted.CAP):
        weights = "plain smooth weights" if parameters.wanted is Wanted.SMOOTH else "a bound on rows"
        return (
            f"minimises the expected squared error of a release under {weights} about the mean of the rows at hand, "
            f"where a share of {wording.entered(parameters.user_share)} of the variance lies between users."
        )
    return RULES[parameters.wanted]


RULES = {
    Wanted.SMOOTH: "minimises the expected squared error of a released mean under smooth weights "
    "[@epasto2020, section 3].",
    Wanted.CAP: "minimises the expected squared error of a released mean [@epasto2020, section 3].",
    Wanted.SUM: "minimises the bias of a released sum plus the mean size of its noise [@amin2019, section 3].",
    Wanted.QUANTILE: "is the quantile of rows per user that was asked for.",
}


def build_answer(
    data: Dataset, parameters: PrivateParameters, solution: PrivateSolution | None = None
) -> Answer:
    """Compute what it costs to choose a bound with an epsilon of its own, directly or on a private copy.

    Nothing is drawn: `dpcore.private_choice.choice.choose` and `private_histogram.release_histogram` do that.

    Args:
        data: How many users have how many rows.
        parameters: The question.
        solution: What `solve` returns for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `PrivateSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have more users than the mechanisms can hold.

    Source: McSherry and Talwar 2007 for the draw; Epasto et al. 2020, section 3, and Amin et al. 2019, section 3, for
        what it aims at.
    """
    solution = solve(data, parameters) if solution is None else solution
    return Answer(
        headline=words.headline(solution),
        detail=words.detail(solution),
        numbers=words.numbers(solution),
        assumptions=words.assumptions(data.disclosure, parameters),
        disclosure=data.provenance,
        facts=words.facts(solution),
        parameters=parameters,
        solution=solution,
        plots={
            "private-cost-epsilon": lambda: plots.over_epsilon(solution),
            "private-cost-users": lambda: plots.over_users(
                solution, comparison.direct_over_users(parameters, data.histogram), solution.copies
            ),
            "private-leak": lambda: plots.leak(comparison.leak(data.histogram, parameters), data),
        },
        make_methods=lambda: methods(solution),
        setting=parameters.setting,
        # The number itself is drawn, and costs; here it is only said what that would cost.
        bound=lambda: None,
    )
