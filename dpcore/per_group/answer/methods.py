"""What a release per group has to say in a methods section."""

from __future__ import annotations

from fractions import Fraction

from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import round_up_to_float
from dpcore.dataset import Dataset
from dpcore.per_group.answer.error_map import Pair
from dpcore.per_group.answer.found import WORTH, PerGroupFound
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.words import OBJECTIVES, error_words, short

STATISTICS = {
    Statistic.ROWS: "The number of rows of every group was released",
    Statistic.USERS: "The number of distinct users of every group was released",
    Statistic.SUM: "The sum of a column in every group was released",
    Statistic.SIGNED_SUM: "The sum of a column in every group was released",
    Statistic.MEAN: "The mean of a column in every group was released",
}


def methods(view: PerGroupFound, data: Dataset) -> Methods:
    """Say what the headline says: the best pair of bounds, or a bound on users' whole vectors, with its error."""
    rule = (
        f"The bound was chosen to minimise the {OBJECTIVES[view.parameters.objective]}, averaged over the noise and "
        "the random choice of a user's groups."
    )
    proved = view.choice.settled and view.choice.certificate is not None
    return _methods(view.parameters, data, _found(view), rule, proved)


def of_distribution(p: PerGroupParameters, pair: Pair | None, data: Dataset) -> Methods:
    """The same where only the distribution of pairs is known; None for the pair where releasing nothing is better."""
    rule = (
        f"The bounds have the least {OBJECTIVES[p.objective]} that was found from how many groups users have and how "
        "many rows lie in a pair of user and group, as if every group held the same mixture of pairs."
    )
    return _methods(p, data, "" if pair is None else _pair_found(p, pair, "about "), rule)


def _methods(p: PerGroupParameters, data: Dataset, found: str, rule: str, proved: bool = False) -> Methods:
    delta = round_up_to_float(Fraction(p.delta or 0.0) + Fraction(p.selection_delta or 0.0))
    return Methods(
        guarantee=write_guarantee(STATISTICS[p.statistic], p.epsilon, p.neighbours, delta) + f" {_groups(p)}",
        sentences=found,
        public_sentences=f"What one user contributes to all groups was bounded, and {cite_noise(p.noise.value)} "
        "was added "
        "in every group.",
        disclosure=data.provenance,
        empty_sentence="" if found else _nothing(p, proved),
        rule=rule,
    )


def _nothing(p: PerGroupParameters, proved: bool) -> str:
    has = "has" if proved else "was found that has"
    return (
        f"At ε = {wording.entered(p.epsilon)} no bound on what a user adds {has} a smaller "
        f"{OBJECTIVES[p.objective]} than releasing nothing, and nothing was released."
    )


def _groups(p: PerGroupParameters) -> str:
    if not p.selection.private:
        return "The list of groups is public, and the budget is for all groups together."
    rule = {
        "truncated geometric": "the truncated geometric rule [@desfontaines2022]",
        "Laplace threshold": "a threshold on noisy numbers of users, with Laplace noise",
        "Gaussian threshold": "a threshold on noisy numbers of users, with Gaussian noise",
    }[p.selection.value]
    assert p.selection_delta is not None
    spent = f"ε = {wording.entered(p.selection_epsilon)} and δ = {wording.entered(p.selection_delta)}"
    return f"Groups were selected privately by {rule}, which spent {spent} of that budget."


def _found(view: PerGroupFound) -> str:
    p, pair = view.parameters, view.pair
    vector = view.scaled if view.selected is None else view.selected.vector
    what = OBJECTIVES[p.objective]
    if vector is not None and view.saved >= WORTH:
        norm = "L1" if p.noise is NoiseKind.LAPLACE else "L2"
        sampled = ""
        if view.selected is not None and view.selected.vector is not None:
            groups = wording.counted(view.selected.vector.max_groups, "group")
            sampled = f"For the selection each user counted in at most {groups}, drawn at random. "
        return (
            f"{sampled}What one user contributes to all groups was bounded in {norm} norm by "
            f"{wording.number(short(vector.max_norm), 6)}, and {cite_noise(p.noise.value)} was added in every "
            f"group. The {what} is {error_words(p, vector.error)}."
        )
    return "" if pair is None else _pair_found(p, pair)


def _pair_found(p: PerGroupParameters, pair: Pair, about: str = "") -> str:
    groups = wording.counted(pair.max_groups, "group")
    kept = f"Each user contributed to at most {groups}, drawn at random"
    if p.statistic is not Statistic.USERS:
        unit = " rows" if p.statistic in (Statistic.ROWS, Statistic.MEAN) else ""
        unit = unit.rstrip("s") if pair.max_amount == 1 else unit
        kept += f", and at most {wording.number(pair.max_amount, 6)}{unit} to each"
    if p.statistic is Statistic.SIGNED_SUM:
        kept += ", in absolute value"
    return (
        f"{kept}, and {cite_noise(p.noise.value)} was added in every group. The {OBJECTIVES[p.objective]} is "
        f"{about}{error_words(p, pair.error)}."
    )
