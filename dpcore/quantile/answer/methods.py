"""The methods section of a quantile."""

from __future__ import annotations

from dpcore.answer.methods import ChoiceSource, Methods, write_guarantee
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.quantile.answer.found import QuantileFound
from dpcore.quantile.parameters import BoundFrom, QuantileParameters, Weighting


def methods(solution: QuantileFound, data: Dataset) -> Methods:
    """Describe the bound in use and its rank error; of rows without a bound that error alone."""
    p = solution.parameters
    text = (
        "The answer was drawn with a density proportional to the public base distribution times exp(−ε d / (2W)) "
        "[@epasto2020, appendix B]. There d is the distance in weighted rank from the quantile, and W the largest "
        "weight of a user."
    )
    if p.protects_users:
        text += (
            " The score is not divided by the number of rows. A user who is added or removed moves it by at most "
            "max(q, 1 − q) times their weight, which replaces W."
        )
    if len(p.asked) > 1:
        text += f" Each of the {len(p.asked)} quantiles took an even part of ε."
    if p.weighting is Weighting.NONE:
        limited = without = "All rows had the same weight, and rows per user were not bounded."
    elif p.weighting is Weighting.CAP:
        template = "At most {} of each user, drawn at random, were kept."
        limited = template.format(wording.counted(solution.bound, "row"))
        without = template.format("a fixed number of rows")
    else:
        template = "Rows were weighted such that no user weighs more than {}."
        rows = wording.agreeing(solution.bound, "row", "rows")
        limited = template.format(f"{wording.number(solution.bound, 6)} {rows}")
        without = template.format("a fixed number of rows")
    error = (
        "The expected rank error, |F(answer) − q| with F the empirical distribution of the rows, is "
        f"{wording.percent(solution.rank_error)} of the rows."
    )
    unbounded = p.weighting is Weighting.NONE
    return Methods(
        guarantee=write_guarantee(_describe_release(p), p.epsilon, p.neighbours),
        sentences=f"{limited} {text} {error}",
        public_sentences=f"{without} {text}",
        disclosure=data.provenance,
        rule=_rule(p),
        subject="The error" if unbounded else "The bound",
        choice_source=ChoiceSource.ENTERED if unbounded else ChoiceSource.COMPUTED,
    )


def _describe_release(p: QuantileParameters) -> str:
    if len(p.asked) > 1:
        levels = [wording.entered(q) for q in p.asked]
        return f"The {', '.join(levels[:-1])} and {levels[-1]} quantiles were released"
    return (
        "The median was released"
        if p.asked[0] == 0.5
        else f"The {wording.entered(p.asked[0])}-quantile was released"
    )


def _rule(p: QuantileParameters) -> str:
    if p.weighting is Weighting.NONE:
        return ""
    if p.bound_from is BoundFrom.COUNTS:
        return (
            "The bound minimises the upper bound of theorem 9 of the same work on that error, which depends on how "
            "many rows each user has and not on their values."
        )
    return "The bound has the smallest expected rank error of those tried."
