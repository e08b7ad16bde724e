"""The choice of bounds for a release per group, as JSON that a person takes away, and what it rests on."""

from __future__ import annotations

from typing import Any

from dpcore.common.documents import certificate_fields, write_choice_document
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset
from dpcore.per_group.means import MeanChoice
from dpcore.per_group.pair_of_bounds import PairChoice
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem, Statistic
from dpcore.per_group.selection import SelectedVector
from dpcore.per_group.summary import APPROXIMATE, SummaryChoice, SummaryProblem
from dpcore.per_group.whole_vector import VectorChoice

OWN = ("own_groups", "own_amount")


def assumptions(parameters: PerGroupParameters) -> tuple[str, ...]:
    """Return what the answers rest on, sentences without their full stop."""
    mean, private = parameters.statistic is Statistic.MEAN, parameters.selection.private
    found = [
        f"Neighbouring data sets differ thus: {parameters.neighbours.value}",
        "The list of groups is public and does not depend on the data; groups without rows are released, too",
        "The budget is for all groups together; every further release needs its own",
        "Under a pair of bounds each user keeps at most so many of their groups, drawn at random, and in each at "
        "most the other bound",
        "The errors are those on the very data given, averaged over the noise and the random choice of groups",
        "The bounds themselves are taken as public. Read off private data they are not, and ε does not cover them",
    ]
    if private:
        found[1] = (
            "Groups are selected by how many users keep them in their sample; a group that is not released "
            "counts as 0, so that its error is its size"
        )
        found[2] = (
            "Selection and noise each have their share of ε and δ, which add up; the budget is for all groups together"
        )
        found[3] += (
            ", the same for selection and sum; where users are scaled, only the selection has a sample"
        )
    if mean:
        found[3:5] = [
            "Under a pair of bounds each user keeps at most so many of their groups, and in each at most so many rows, "
            "all drawn at random",
            "For every group the rows' distances from the lower and from the upper end of the range are added up, and "
            "released as one vector with the whole of ε and δ; from both follows the mean, brought into the range",
            "In the errors the noise is exact, and the random choice of groups and rows stands by its moments up to "
            "the third",
        ]
    return tuple(found)


def per_group_choice_json(
    dataset: Dataset,
    problem: PerGroupProblem,
    choice: PairChoice | MeanChoice,
    rounded: tuple[int, float, float] | None,
    cap: VectorChoice | None,
    radial: VectorChoice | None,
    selected: tuple[float, SelectedVector | None] | None = None,
) -> str:
    """Return the best pair and the best bounds on whole vectors, as JSON, indented, with a schema version.

    Args:
        dataset: The data; their label stands at every number computed from them.
        problem: The question.
        choice: The best pair.
        rounded: L0, L-infinity in few digits and the error there; None where nothing is released.
        cap: The best cap, where the statistic has one.
        radial: The best radial clip likewise.
        selected: Where groups are selected privately: how many are released on average at the pair, and the best bounds
            on whole vectors that were found.
    """
    parameters = problem.parameters
    answer: dict[str, Any] = {
        "max_groups_contributed": choice.max_groups,
        "max_contributions_per_group" if parameters.statistic.whole else "max_amount_per_group": (
            int(choice.max_amount) if parameters.statistic.whole else choice.max_amount
        ),
        "error": choice.error,
        "error_of_publishing_nothing": choice.error_of_nothing,
        "ended": choice.stop_reason,
        **certificate_fields(choice.certificate),
    }
    if rounded is not None and not parameters.statistic.whole:
        answer |= {"max_amount_per_group_rounded": rounded[1], "error_rounded": rounded[2]}
    for name, found in (("cap", cap), ("scaling", radial)):
        if found is not None:
            answer[name] = {
                "norm": "L1" if parameters.delta is None else "L2",
                "max_norm": found.max_norm,
                "error": found.error,
                "ended": found.stop_reason,
                **certificate_fields(found.certificate),
            }
    if selected is not None:
        released, vector = selected
        answer["groups_released_on_average"] = released
        if vector is not None:
            answer["scaled_users"] = {
                "rule": vector.rule.value,
                "norm": "L1" if parameters.delta is None else "L2",
                "max_norm": vector.max_norm,
                "max_groups_of_the_selection": vector.max_groups,
                "error": vector.error,
                "proof": "none",
            }
    question = {name: text for name, text in to_values(parameters).items() if name not in OWN}
    pairs = problem.pairs
    data = {
        "column": dataset.pairs.label if dataset.pairs is not None else "",
        "value_column": dataset.pairs.value_column if dataset.pairs is not None else "",
        "num_users": int(pairs.groups_per_user.size),
        "num_pairs": pairs.num_pairs,
        "num_groups": pairs.num_groups,
    }
    release = f"{parameters.statistic.value} per group"
    return write_choice_document(dataset, release, question, data, answer, assumptions(parameters))


def summary_choice_json(dataset: Dataset, problem: SummaryProblem, choice: SummaryChoice) -> str:
    """Return the best pair that was found on a distribution of pairs, as JSON, indented, with a schema version.

    Args:
        dataset: The data; their label stands at every number computed from them.
        problem: The question.
        choice: The best pair found.
    """
    parameters = problem.parameters
    answer = {
        "max_groups_contributed": choice.max_groups,
        "max_contributions_per_group": int(choice.max_amount),
        "error_about": choice.error,
        "error_at_least": choice.lower,
        "error_at_most": choice.upper,
        "error_of_publishing_nothing": choice.error_of_nothing,
        "ended": choice.stop_reason,
        "approximate": APPROXIMATE,
        **certificate_fields(None),
    }
    question = {name: text for name, text in to_values(parameters).items() if name not in OWN}
    data = {
        "column": problem.sizes.label,
        "num_pairs": int(problem.sizes.pairs.sum()),
        "num_groups": problem.num_groups,
    }
    release = f"{parameters.statistic.value} per group"
    return write_choice_document(dataset, release, question, data, answer, summary_assumptions(parameters))


def summary_assumptions(parameters: PerGroupParameters) -> tuple[str, ...]:
    """Return what the answers rest on where only the distribution of pairs is known."""
    return (*assumptions(parameters), "Every group holds the same mixture of pairs")
