"""The methods section for a mean."""

from __future__ import annotations

from dpcore import mean
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean.answer.found import MeanSolution


def write_methods(solution: MeanSolution, data: Dataset, parameters: mean.MeanParameters) -> Methods:
    """Write the sentences of a methods section: guarantee, best cap, released sums and expected error."""
    private = solution.has_private_counts
    relation = Neighbours.ADD_OR_REMOVE_USER if private else Neighbours.REPLACE_VALUES
    interval = f"[{wording.entered(parameters.lower)}, {wording.entered(parameters.upper)}]"
    sentences = f"Values were clamped to {interval}, which is treated as public, and "
    if private:
        sentences += (
            f"{cite_noise('Laplace')} was added to the sums of the kept values' distances from both ends of that "
            "interval; the mean is computed from these two noisy sums."
        )
    else:
        sentences += (
            f"{cite_noise('Laplace')} was added to the mean of the kept values [@epasto2020, section 3]."
        )
    rows = wording.counted(solution.cap.max_contributions, "row")
    error = wording.number(solution.cap.standard_error)
    approximately = " (by the delta method)" if private else ""
    error_name = "error, as root mean square," if solution.is_about_table else "standard error"
    verb = wording.agreeing(solution.cap.max_contributions, "was", "were")
    return Methods(
        guarantee=write_guarantee("The mean was released", parameters.epsilon, relation),
        sentences=f"At most {rows} of each user, drawn at random, {verb} kept. {sentences} The expected "
        f"{error_name} of the released mean is {error} in the unit of the values, privacy noise "
        f"included{approximately}.",
        public_sentences=f"At most a fixed number of rows of each user, drawn at random, were kept. {sentences}",
        disclosure=data.provenance,
        rule="The bound on rows per user minimises the expected squared error of the released mean"
        f"{_describe_rule(solution)}.",
    )


def _describe_rule(solution: MeanSolution) -> str:
    """Describe the target of the error, its parts, and the assumptions about users."""
    problem = solution.problem
    if problem.table is not None:
        return (
            " about the mean of the rows at hand before clamping: the shift by bounding and clamping, the draw of rows "
            "and privacy noise together"
        )
    error_phrase = ", sampling error and privacy noise together,"
    share = f"if a share of {wording.number(problem.user_share, 2)} of the variance lies between users"
    if solution.is_about_table:
        condition = f" and {share}" if problem.user_share else ""
        condition = f" if numbers of rows say nothing about the values{condition}"
        return f" about the mean of the rows at hand{error_phrase}{condition}"
    return (
        f"{error_phrase} for rows that are independent draws"
        if not problem.user_share
        else f"{error_phrase} {share}"
    )
