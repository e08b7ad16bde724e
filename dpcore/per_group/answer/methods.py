"""The methods section for a release per group."""

from __future__ import annotations

from fractions import Fraction

from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import round_up_to_float
from dpcore.dataset import Dataset
from dpcore.per_group.answer.error_map import Pair
from dpcore.per_group.answer.found import MIN_SAVING, PerGroupSolution
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.words import OBJECTIVES, error_words, round_up

STATISTICS = {
    Statistic.ROWS: "The number of rows of every group was released",
    Statistic.USERS: "The number of distinct users of every group was released",
    Statistic.SUM: "The sum of a column in every group was released",
    Statistic.SIGNED_SUM: "The sum of a column in every group was released",
    Statistic.MEAN: "The mean of a column in every group was released",
}


def write_methods(solution: PerGroupSolution, data: Dataset) -> Methods:
    """Write the methods section for the bound of the headline: the best pair, or a bound on whole vectors."""
    rule = (
        f"The bound was chosen to minimise the {OBJECTIVES[solution.parameters.objective]}, averaged over the noise "
        "and the random choice of a user's groups."
    )
    proved = solution.choice.settled and solution.choice.certificate is not None
    return _build_methods(solution.parameters, data, _describe_bound(solution), rule, proved)


def write_distribution_methods(p: PerGroupParameters, pair: Pair | None, data: Dataset) -> Methods:
    """Write the methods section if only the distribution of pairs is known; ``pair`` is None to release nothing."""
    rule = (
        f"The bounds have the least {OBJECTIVES[p.objective]} that was found from how many groups users have and how "
        "many rows lie in a pair of user and group, as if every group held the same mixture of pairs."
    )
    return _build_methods(p, data, "" if pair is None else _describe_pair(p, pair, "about "), rule)


def _build_methods(
    p: PerGroupParameters, data: Dataset, sentences: str, rule: str, proved: bool = False
) -> Methods:
    delta = round_up_to_float(Fraction(p.delta or 0.0) + Fraction(p.selection_delta or 0.0))
    return Methods(
        guarantee=write_guarantee(STATISTICS[p.statistic], p.epsilon, p.neighbours, delta)
        + f" {_describe_selection(p)}",
        sentences=sentences,
        public_sentences=f"What one user contributes to all groups was bounded, and {cite_noise(p.noise.value)} "
        "was added "
        "in every group.",
        disclosure=data.provenance,
        empty_sentence="" if sentences else _describe_no_release(p, proved),
        rule=rule,
    )


def _describe_no_release(p: PerGroupParameters, proved: bool) -> str:
    has = "has" if proved else "was found that has"
    return (
        f"At ε = {wording.entered(p.epsilon)} no bound on what a user adds {has} a smaller "
        f"{OBJECTIVES[p.objective]} than releasing nothing, and nothing was released."
    )


def _describe_selection(p: PerGroupParameters) -> str:
    if not p.selection.private:
        return "The list of groups is public, and the budget is for all groups together."
    rule = {
        "truncated geometric": "the truncated geometric rule [@desfontaines2022]",
        "Laplace threshold": "a threshold on noisy numbers of users, with Laplace noise",
        "Gaussian threshold": "a threshold on noisy numbers of users, with Gaussian noise",
    }[p.selection.value]
    assert p.selection_delta is not None
    budget = f"ε = {wording.entered(p.selection_epsilon)} and δ = {wording.entered(p.selection_delta)}"
    return f"Groups were selected privately by {rule}, which spent {budget} of that budget."


def _describe_bound(solution: PerGroupSolution) -> str:
    p, pair = solution.parameters, solution.pair
    vector = solution.scaled if solution.selected is None else solution.selected.vector
    objective = OBJECTIVES[p.objective]
    if vector is not None and solution.saved_share >= MIN_SAVING:
        norm = "L1" if p.noise is NoiseKind.LAPLACE else "L2"
        sample_sentence = ""
        if solution.selected is not None and solution.selected.vector is not None:
            groups = wording.counted(solution.selected.vector.max_groups, "group")
            sample_sentence = f"For the selection each user counted in at most {groups}, drawn at random. "
        return (
            f"{sample_sentence}What one user contributes to all groups was bounded in {norm} norm by "
            f"{wording.number(round_up(vector.max_norm), 6)}, and {cite_noise(p.noise.value)} was added in every "
            f"group. The {objective} is {error_words(p, vector.error)}."
        )
    return "" if pair is None else _describe_pair(p, pair)


def _describe_pair(p: PerGroupParameters, pair: Pair, prefix: str = "") -> str:
    groups = wording.counted(pair.max_groups, "group")
    sentence = f"Each user contributed to at most {groups}, drawn at random"
    if p.statistic is not Statistic.USERS:
        unit = " rows" if p.statistic in (Statistic.ROWS, Statistic.MEAN) else ""
        unit = unit.rstrip("s") if pair.max_amount == 1 else unit
        sentence += f", and at most {wording.number(pair.max_amount, 6)}{unit} to each"
    if p.statistic is Statistic.SIGNED_SUM:
        sentence += ", in absolute value"
    return (
        f"{sentence}, and {cite_noise(p.noise.value)} was added in every group. The {OBJECTIVES[p.objective]} is "
        f"{prefix}{error_words(p, pair.error)}."
    )
