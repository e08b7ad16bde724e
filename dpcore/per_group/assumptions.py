"""What the answers for a release per group rest on."""

from __future__ import annotations

from dpcore.per_group.parameters import PerGroupParameters, Statistic


def list_assumptions(parameters: PerGroupParameters) -> tuple[str, ...]:
    """Return what the answers rest on, sentences without their full stop."""
    mean, private = parameters.statistic is Statistic.MEAN, parameters.selection.private
    sentences = [
        f"Neighbouring data sets differ thus: {parameters.neighbours.value}",
        "The list of groups is public and does not depend on the data; groups without rows are released, too",
        "The budget is for all groups together; every further release needs its own",
        "Under a pair of bounds each user keeps at most so many of their groups, drawn at random, and in each at "
        "most the other bound",
        "The errors are those on the very data given, averaged over the noise and the random choice of groups",
        "The bounds themselves are taken as public. Read off private data they are not, and ε does not cover them",
    ]
    if private:
        sentences[1] = (
            "Groups are selected by how many users keep them in their sample; a group that is not released "
            "counts as 0, so that its error is its size"
        )
        sentences[2] = (
            "Selection and noise each have their share of ε and δ, which add up; the budget is for all groups together"
        )
        sentences[3] += (
            ", the same for selection and sum; where users are scaled, only the selection has a sample"
        )
    if mean:
        sentences[3:5] = [
            "Under a pair of bounds each user keeps at most so many of their groups, and in each at most so many rows, "
            "all drawn at random",
            "For every group the rows' distances from the lower and from the upper end of the range are added up, and "
            "released as one vector with the whole of ε and δ; from both follows the mean, brought into the range",
            "In the errors the noise is exact, and the random choice of groups and rows stands by its moments up to "
            "the third",
        ]
    return tuple(sentences)


def list_summary_assumptions(parameters: PerGroupParameters) -> tuple[str, ...]:
    """Return what the answers rest on where only the distribution of pairs is known."""
    return (*list_assumptions(parameters), "Every group holds the same mixture of pairs")
