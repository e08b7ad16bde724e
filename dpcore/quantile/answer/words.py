"""The answer for quantiles in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Number, Proof
from dpcore.answer.axes import ROWS_UNIT
from dpcore.common import alike, wording
from dpcore.common.privacy import format_rounded_up
from dpcore.dataset import Dataset
from dpcore.quantile import WeightKind, optimal_bound
from dpcore.quantile.answer.found import GOOD_ENOUGH, Poorer, QuantileFound, mean_error
from dpcore.quantile.parameters import BoundFrom, QuantileParameters, Weighting
from dpcore.quantile.several import SampledAnswers, split

KIND_NAMES = {WeightKind.SMOOTH: "smooth weights", WeightKind.CAP: "bounded rows"}


def asked_for(parameters: QuantileParameters) -> str:
    """What is asked for, in words: the median, the 0.9-quantile, 3 quantiles."""
    asked = parameters.asked
    if len(asked) > 1:
        return f"{len(asked)} quantiles"
    return "median" if asked[0] == 0.5 else f"{wording.entered(asked[0])}-quantile"


def true_one(parameters: QuantileParameters) -> str:
    """What the answer is compared with."""
    return "the true ones" if len(parameters.asked) > 1 else "the true one"


def name_of(q: float) -> str:
    """Name of one quantile in legends."""
    return "Median" if q == 0.5 else f"{wording.entered(q)}-quantile"


def with_spread(error: float, standard_error: float) -> str:
    """A rank error, followed by the standard error of its average over subsamples where there is one."""
    spread = f" ± {wording.percent(standard_error)}" if standard_error > 0.0 else ""
    return f"{wording.percent(error, 3)}{spread}"


def headline(found: QuantileFound) -> str:
    """What to do."""
    p = found.parameters
    if p.weighting is Weighting.NONE:
        return (
            f"Set a bound: let no user weigh more than {wording.counted(found.choices.smooth.bound, 'row')}."
        )
    rows = wording.counted(found.bound, "row")
    if found.kind is WeightKind.CAP:
        return f"Keep at most {rows} of each user."
    return f"Let no user weigh more than {rows}."


def numbers(found: QuantileFound) -> tuple[Number, ...]:
    """The bound, its rank error, and that without a bound."""
    p = found.parameters
    note = expected = "of rows, expected"
    if found.standard_error > 0.0:
        subsamples = wording.counted(found.subsample_errors.size, "subsample")
        note = f"± {wording.percent(found.standard_error)} ({subsamples})"
    if p.weighting is Weighting.NONE:
        name, bound, error = "Best bound", found.choices.smooth.bound, found.choices.smooth.rank_error
        note = expected
    else:
        name = "Best bound" if p.bound_from is BoundFrom.VALUES else "Bound from counts"
        bound, error = found.bound, found.rank_error

    def error_of(label: str, value: float, note: str, key: str) -> Number:
        return Number(label, wording.percent(value), note, _RANK_ERROR, value, "share of rows", key)

    return (
        Number(name, wording.counted(bound, "row"), "", _BOUND, bound, ROWS_UNIT, "bound"),
        error_of("Rank error", error, note, "rank_error"),
        error_of(_unbounded(p), found.unbounded_error, expected, "rank_error_without_a_bound"),
    )


def good_enough(found: QuantileFound) -> str:
    """From where to where the bound costs little; empty where the bound was not chosen by its error."""
    p = found.parameters
    if p.weighting is Weighting.NONE or p.bound_from is BoundFrom.COUNTS:
        return ""
    low, high = found.good_enough
    share = wording.percent(GOOD_ENOUGH - 1.0, 1)
    if low == high:
        return f"only {wording.counted(low, 'row')}; the next bounds tried are more than {share} worse."
    return (
        f"any bound from {wording.number(low)} to {wording.counted(high, 'row')} costs at most {share} more."
    )


_BOUND = (
    "With smooth weights every row of a user with at most so many rows weighs the same, and the rows of a heavier user "
    "together weigh as much as so many rows. With bounded rows at most so many of each user are kept, chosen at random."
)
_RANK_ERROR = (
    "E|F(answer) − q|: the share of all rows that lie between the answer and the quantile, on average over the "
    "noise. Exact, not simulated. The error of bounded rows is averaged over random subsamples (± standard error); "
    "the release draws its own. For several quantiles this is the mean of their errors."
)
LEAKS_VALUES = (
    "Your data are private, and **this bound was read off the values: it leaks**. *From counts* uses only how many "
    "rows users have, which is public in this setting."
)
LEAKS_COUNTS = (
    "Your data are private, and so is how many rows users have: **this bound was read off them and leaks**. Draw it, "
    "or choose it without these data."
)
LEAKS = "Your data are private: the figures here are computed from the values. Do not publish them."


def detail(found: QuantileFound, dataset: Dataset, brief: bool = False) -> str:
    """What changes how the headline is to be read, most important first; ``brief`` where more stands before it."""
    p, said = found.parameters, []
    from_values = p.bound_from is BoundFrom.VALUES and p.weighting is not Weighting.NONE
    if dataset.is_private:
        said.append(LEAKS_COUNTS if p.protects_users else LEAKS_VALUES if from_values else LEAKS)
    if found.choices.cancelled:
        said.append("**The search was stopped early**: the best bound is the best of those tried.")
    said.append(
        f"{_unbounded(p)} it is {wording.percent(found.unbounded_error)}."
        if brief
        else f"The rank error is the share of all rows between the released {asked_for(p)} and {true_one(p)}. "
        f"{_unbounded(p)} it is {wording.percent(found.unbounded_error)}."
    )
    if found.ties and found.least_error > 0.2 * found.rank_error:
        said.append(
            f"Much of this error is not noise: with these ties and this base no answer comes closer than "
            f"{wording.percent(found.least_error)}."
        )
    return " ".join(said)


def facts(found: QuantileFound) -> dict[str, str]:
    """What stands behind the choice, a sentence each."""
    said: dict[str, str] = {}
    choice = found.choices.of(found.kind)
    for one, true in zip(found.outputs, found.exact, strict=True):
        low, high = one.interval()
        said[name_of(one.quantile)] = (
            f"95{wording.PERCENT} of answers from {wording.number(low)} to {wording.number(high)}, mean "
            f"{wording.number(one.mean)}; true {wording.number(true)}; rank error "
            f"{wording.percent(one.expected_rank_error)}."
        )
    other = found.choices.of(WeightKind.CAP if found.kind is WeightKind.SMOOTH else WeightKind.SMOOTH)
    said["Best for the values"] = (
        f"{KIND_NAMES[choice.kind]} with a bound of {wording.number(choice.bound)}: "
        f"{with_spread(choice.rank_error, choice.standard_error)}; {KIND_NAMES[other.kind]} with a bound of "
        f"{wording.number(other.bound)}: {with_spread(other.rank_error, other.standard_error)}.{_near(found)}"
    )
    if found.own is not None and found.parameters.own_bound is not None:
        error = mean_error(found.own)
        said[f"Your own bound, {wording.counted(found.parameters.own_bound, 'row')}"] = (
            f"rank error {wording.percent(error)}, {wording.change(error, found.rank_error)} compared with the "
            "bound above."
        )
    said |= _subsamples(found)
    said["From counts alone"] = (
        f"a bound of {wording.number(found.counts_bound)}, with an error of "
        f"{with_spread(found.counts_error, found.counts_standard_error)} here. It was "
        "chosen without the values and leaks nothing of them."
        f"{' It leaks the counts, which are private here.' if found.parameters.protects_users else ''}"
    )
    said |= _guarantees(found)
    histogram = found.problem.histogram
    times = math.sqrt(alike.design_effect(histogram.sizes, histogram.users))
    said[alike.NAME] = (
        "nothing is assumed of them for the rows at hand. As an estimate for people like these, the quantile of these "
        f"rows is off by {wording.number(times)} times as much as that of independent rows, if a share ρ = "
        f"{alike.ASSUMED_SHARE} of the variance of lying below it lies between users."
    )
    if found.ties:
        said["Least possible"] = (
            f"no answer under this base comes closer than {wording.percent(found.least_error)}: values tie, or the "
            "base has no mass there."
        )
    if found.kind is WeightKind.CAP and found.parameters.weighting is Weighting.CAP:
        histogram = found.problem.histogram
        lost = histogram.num_rows - float(histogram.kept_rows(found.bound))
        affected = histogram.users_above(int(found.bound))
        said["Who is affected"] = (
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / histogram.num_users)}) "
            f"{wording.agreeing(affected, 'lies', 'lie')} over the bound; "
            f"{wording.percent(lost / histogram.num_rows)} of all rows are left out."
        )
    return said


def _unbounded(parameters: QuantileParameters) -> str:
    """Name of the error where all rows weigh the same; a user who comes needs some bound all the same."""
    return "With all rows kept" if parameters.protects_users else "Without a bound"


def _guarantees(found: QuantileFound) -> dict[str, str]:
    """What the same draws guarantee under the other relation."""
    p, bound = found.parameters, found.bound
    other = format_rounded_up(p.epsilon_of_other)
    if p.protects_users:
        return {
            "If only values change": f"the same draws are {other}-DP where one user's values change and everybody's "
            "number of rows is public. It is the same answer with another guarantee, not a better one."
        }
    if p.weighting is Weighting.NONE:
        return {}
    return {
        "If a user comes or goes": f"the same draws are {other}-DP where one user is added or removed with all their "
        f"rows, for a bound of {wording.counted(bound, 'row')} that was not read off these data: such a user moves the "
        "score by at most max(q, 1 − q) times the bound. *What ε protects*, in *More settings*, computes with that."
    }


def _near(found: QuantileFound) -> str:
    """A sentence where cap and smooth weights differ by at most two standard errors; empty elsewhere."""
    smooth, cap = found.choices.smooth, found.choices.cap
    close = abs(smooth.rank_error - cap.rank_error) <= 2.0 * cap.standard_error
    return (
        " The two are too close to tell apart over these subsamples."
        if close and cap.standard_error > 0.0
        else ""
    )


def _subsamples(found: QuantileFound) -> dict[str, str]:
    """What the figures of a cap are averages of, and how far single subsamples differ."""
    cap = found.choices.cap
    if not max(cap.standard_error, found.standard_error) > 0.0:
        return {}
    text = (
        f"bounded rows are a random subsample, and the release draws its own. Their errors are averages "
        f"over {wording.number(max(cap.subsamples, found.subsample_errors.size))} subsamples, ± their standard error. "
    )
    if found.subsample_errors.size > 1:
        low, high = (
            wording.percent(float(end))
            for end in (found.subsample_errors.min(), found.subsample_errors.max())
        )
        return {"Random subsamples": f"{text}At the bound in use single subsamples go from {low} to {high}."}
    single = wording.percent(cap.standard_error * math.sqrt(cap.subsamples))
    return {
        "Random subsamples": f"{text}At the best bound single subsamples differ by a standard deviation of {single}."
    }


def proofs(found: QuantileFound) -> tuple[Proof, ...]:
    """What is proved of the best bounds, and how their searches ended."""
    return (
        ("Smooth weights", found.choices.smooth.certificate, found.choices.smooth.ended),
        ("Bounded rows", found.choices.cap.certificate, found.choices.cap.ended),
        ("From counts", found.counts_certificate, "Exact, for the trade-off form of the paper's bound."),
    )


def base(found: QuantileFound) -> str:
    """What assumption 1 of the paper comes to on these values."""
    alpha, parts = found.parameters.alpha, []
    for one in split(found.problem, found.parameters.asked):
        beta = optimal_bound.base_mass(one, alpha)
        if beta > 0.0:
            w = found.outputs[0].largest_user_weight
            cost = 2.0 * w / found.parameters.drawn_epsilon(one.quantile) * -math.log(beta)
            parts.append(
                f"{name_of(one.quantile)}: ν gives β = {wording.percent(beta)} to the values within α = "
                f"{wording.entered(alpha)} in rank, "
                f"which costs up to (2W/ε) ln(1/β) = {wording.percent(cost)} of rank"
            )
        else:
            parts.append(
                f"{name_of(one.quantile)}: ν gives **nothing** to the values within α = "
                f"{wording.entered(alpha)} in rank"
            )
    return "\n".join(f"- {part}." for part in parts)


def paper(found: QuantileFound) -> str:
    """What the paper's bound comes to, and what its best bound costs on these values."""
    bound = found.parameters.rank_bound(found.problem.histogram)
    value = float(bound.value(found.kind, found.counts_bound))
    beyond = " (a bound above 1 says nothing about the error, but the best bound by it can still be used)"
    return (
        f"Trade-off: least **W² + A Σ c²** with A = {wording.number(bound.trade_off)}. Best bound for "
        f"{KIND_NAMES[found.kind]}: **{wording.counted(found.counts_bound, 'row')}**, where the bound is "
        f"{wording.number(value)}{beyond if value > 1.0 else ''}. On these values the expected error there is "
        f"{with_spread(found.counts_error, found.counts_standard_error)}."
    )


# Below this share of the answers inside the values shown, the page says so.
MOST = 0.95


def outside(share: float) -> str:
    """A sentence saying that the figure leaves much of the distribution out."""
    return f"{wording.percent(share)} of the answers fall outside the values shown: widen them under *Values shown*."


def poorer(found: QuantileFound, how: Poorer) -> str:
    """What the figure of poorer bases shows, and where the error becomes large."""
    if how is Poorer.MOVED:
        return (
            "ν is moved by a share of its own width; everything else stays as above. Once the quantile lies outside ν "
            "(or far in its tail), no answer can come near it, **whatever ε**."
        )
    w, asked = found.outputs[0].largest_user_weight, found.parameters.asked
    margin = min(min(q, 1.0 - q) * found.parameters.drawn_epsilon(q) for q in asked) / (2.0 * w)
    factor = wording.number(math.exp(margin), 2) if margin < 600.0 else "more than 1e260"
    return (
        "ν is made wider about its own middle; everything else stays as above. An answer at distance $d$ in rank is "
        "$e^{\\varepsilon d/(2W)}$ times less likely, so extra width costs only its logarithm until ν is about that "
        f"many times as wide (here **{factor}**). Beyond that, most answers lie far from the quantile. The smaller ε, "
        "the earlier this happens."
    )


def samples(found: QuantileFound, sampled: SampledAnswers) -> tuple[str, ...]:
    """Mean and spread of the simulated answers beside the exact mean, per quantile."""
    several = len(found.outputs) > 1
    order = " The answers are put in order, which the exact mean does not count." if several else ""
    said = []
    for one, answers in zip(found.outputs, sampled.answers.T, strict=True):
        own = float(np.std(answers, ddof=1)) / math.sqrt(answers.size) if answers.size > 1 else math.nan
        said.append(
            f"{name_of(one.quantile)}: mean of {wording.counted(answers.size, 'simulated answer')} "
            f"{wording.number(float(answers.mean()), 4)} (standard error {wording.number(own, 2)}), exact mean "
            f"{wording.number(one.mean, 4)}.{order}"
        )
    return tuple(said)
