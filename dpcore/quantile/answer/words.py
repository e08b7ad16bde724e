"""The answer for quantiles in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Number, Proof
from dpcore.answer.axes import ROWS_UNIT
from dpcore.answer.value_range import OutsideCounts
from dpcore.common import alike, wording
from dpcore.common.privacy import format_rounded_up
from dpcore.dataset import Dataset
from dpcore.quantile import WeightKind, optimal_bound
from dpcore.quantile.answer.found import GOOD_ENOUGH, Poorer, QuantileFound, mean_error
from dpcore.quantile.parameters import BaseKind, BoundFrom, QuantileParameters, Weighting
from dpcore.quantile.several import SampledAnswers, split

KIND_NAMES = {WeightKind.SMOOTH: "smooth weights", WeightKind.CAP: "bounded rows"}


def asked_for(parameters: QuantileParameters) -> str:
    """Say what is asked for, in words: the median, the 0.9-quantile, 3 quantiles."""
    quantiles = parameters.asked
    if len(quantiles) > 1:
        return f"{len(quantiles)} quantiles"
    return "median" if quantiles[0] == 0.5 else f"{wording.entered(quantiles[0])}-quantile"


def true_one(parameters: QuantileParameters) -> str:
    """Say what the answer is compared with."""
    return "the true ones" if len(parameters.asked) > 1 else "the true one"


def name_of(q: float) -> str:
    """Name of one quantile in legends."""
    return "Median" if q == 0.5 else f"{wording.entered(q)}-quantile"


def with_spread(error: float, standard_error: float) -> str:
    """Return a rank error, followed by the standard error of its average over subsamples where there is one."""
    spread = f" ± {wording.percent(standard_error)}" if standard_error > 0.0 else ""
    return f"{wording.percent(error, 3)}{spread}"


def headline(solution: QuantileFound) -> str:
    """Say what to do."""
    p = solution.parameters
    if p.weighting is Weighting.NONE:
        return f"Set a bound: let no user weigh more than {wording.counted(solution.choices.smooth.bound, 'row')}."
    rows = wording.counted(solution.bound, "row")
    if solution.kind is WeightKind.CAP:
        return f"Keep at most {rows} of each user."
    return f"Let no user weigh more than {rows}."


def numbers(solution: QuantileFound) -> tuple[Number, ...]:
    """Return the bound, its rank error, and that without a bound."""
    p = solution.parameters
    note = expected = "of rows, expected"
    if solution.standard_error > 0.0:
        subsamples = wording.counted(solution.subsample_errors.size, "subsample")
        note = f"± {wording.percent(solution.standard_error)} ({subsamples})"
    if p.weighting is Weighting.NONE:
        name, bound, error = "Best bound", solution.choices.smooth.bound, solution.choices.smooth.rank_error
        note = expected
    else:
        name = "Best bound" if p.bound_from is BoundFrom.VALUES else "Bound from counts"
        bound, error = solution.bound, solution.rank_error

    def error_of(label: str, value: float, note: str, key: str) -> Number:
        return Number(label, wording.percent(value), note, _RANK_ERROR, value, "share of rows", key)

    return (
        Number(name, wording.counted(bound, "row"), "", _BOUND, bound, ROWS_UNIT, "bound"),
        error_of("Rank error", error, note, "rank_error"),
        error_of(_unbounded(p), solution.unbounded_error, expected, "rank_error_without_a_bound"),
    )


def good_enough(solution: QuantileFound) -> str:
    """From where to where the bound costs little; empty where the bound was not chosen by its error."""
    p = solution.parameters
    if p.weighting is Weighting.NONE or p.bound_from is BoundFrom.COUNTS:
        return ""
    low, high = solution.good_enough
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


def detail(solution: QuantileFound, dataset: Dataset, brief: bool = False) -> str:
    """Say what changes how the headline is to be read, most important first; ``brief`` where more stands before it."""
    p, sentences = solution.parameters, []
    from_values = p.bound_from is BoundFrom.VALUES and p.weighting is not Weighting.NONE
    if dataset.is_private:
        sentences.append(LEAKS_COUNTS if p.protects_users else LEAKS_VALUES if from_values else LEAKS)
    if solution.choices.cancelled:
        sentences.append("**The search was stopped early**: the best bound is the best of those tried.")
    sentences.append(
        f"{_unbounded(p)} it is {wording.percent(solution.unbounded_error)}."
        if brief
        else f"The rank error is the share of all rows between the released {asked_for(p)} and {true_one(p)}. "
        f"{_unbounded(p)} it is {wording.percent(solution.unbounded_error)}."
    )
    if solution.ties and solution.least_error > 0.2 * solution.rank_error:
        sentences.append(
            f"Much of this error is not noise: with these ties and this base no answer comes closer than "
            f"{wording.percent(solution.least_error)}."
        )
    return " ".join(sentences)


def facts(solution: QuantileFound) -> dict[str, str]:
    """Say what stands behind the choice, a sentence each."""
    entries: dict[str, str] = {}
    choice = solution.choices.of(solution.kind)
    for output, true in zip(solution.outputs, solution.exact, strict=True):
        low, high = output.interval()
        entries[name_of(output.quantile)] = (
            f"95{wording.PERCENT} of answers from {wording.number(low)} to {wording.number(high)}, mean "
            f"{wording.number(output.mean)}; true {wording.number(true)}; rank error "
            f"{wording.percent(output.expected_rank_error)}."
        )
    alternative = solution.choices.of(
        WeightKind.CAP if solution.kind is WeightKind.SMOOTH else WeightKind.SMOOTH
    )
    entries["Best for the values"] = (
        f"{KIND_NAMES[choice.kind]} with a bound of {wording.number(choice.bound)}: "
        f"{with_spread(choice.rank_error, choice.standard_error)}; {KIND_NAMES[alternative.kind]} with a bound of "
        f"{wording.number(alternative.bound)}: "
        f"{with_spread(alternative.rank_error, alternative.standard_error)}.{_near(solution)}"
    )
    if solution.own is not None and solution.parameters.own_bound is not None:
        error = mean_error(solution.own)
        entries[f"Your own bound, {wording.counted(solution.parameters.own_bound, 'row')}"] = (
            f"rank error {wording.percent(error)}, {wording.change(error, solution.rank_error)} compared with the "
            "bound above."
        )
    entries |= _subsamples(solution)
    entries["From counts alone"] = (
        f"a bound of {wording.number(solution.counts_bound)}, with an error of "
        f"{with_spread(solution.counts_error, solution.counts_standard_error)} here. It was "
        "chosen without the values and leaks nothing of them."
        f"{' It leaks the counts, which are private here.' if solution.parameters.protects_users else ''}"
    )
    entries |= _guarantees(solution)
    histogram = solution.problem.histogram
    times = math.sqrt(alike.design_effect(histogram.sizes, histogram.users))
    entries[alike.NAME] = (
        "nothing is assumed of them for the rows at hand. As an estimate for people like these, the quantile of these "
        f"rows is off by {wording.number(times)} times as much as that of independent rows, if a share ρ = "
        f"{alike.ASSUMED_SHARE} of the variance of lying below it lies between users."
    )
    if solution.ties:
        entries["Least possible"] = (
            f"no answer under this base comes closer than {wording.percent(solution.least_error)}: values tie, or the "
            "base has no mass there."
        )
    if solution.kind is WeightKind.CAP and solution.parameters.weighting is Weighting.CAP:
        histogram = solution.problem.histogram
        lost = histogram.num_rows - float(histogram.kept_rows(solution.bound))
        affected = histogram.users_above(int(solution.bound))
        entries["Who is affected"] = (
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / histogram.num_users)}) "
            f"{wording.agreeing(affected, 'lies', 'lie')} over the bound; "
            f"{wording.percent(lost / histogram.num_rows)} of all rows are left out."
        )
    return entries


def _unbounded(parameters: QuantileParameters) -> str:
    """Name of the error where all rows weigh the same; a user who comes needs some bound all the same."""
    return "With all rows kept" if parameters.protects_users else "Without a bound"


def _guarantees(solution: QuantileFound) -> dict[str, str]:
    """Say what the same draws guarantee under the other relation."""
    p, bound = solution.parameters, solution.bound
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


def _near(solution: QuantileFound) -> str:
    """Return a sentence where cap and smooth weights differ by at most two standard errors; empty elsewhere."""
    smooth, cap = solution.choices.smooth, solution.choices.cap
    close = abs(smooth.rank_error - cap.rank_error) <= 2.0 * cap.standard_error
    return (
        " The two are too close to tell apart over these subsamples."
        if close and cap.standard_error > 0.0
        else ""
    )


def _subsamples(solution: QuantileFound) -> dict[str, str]:
    """Say what the figures of a cap are averages of, and how far single subsamples differ."""
    cap = solution.choices.cap
    if not max(cap.standard_error, solution.standard_error) > 0.0:
        return {}
    text = (
        f"bounded rows are a random subsample, and the release draws its own. Their errors are averages "
        f"over {wording.number(max(cap.subsamples, solution.subsample_errors.size))} subsamples, ± their "
        "standard error. "
    )
    if solution.subsample_errors.size > 1:
        low, high = (
            wording.percent(float(end))
            for end in (solution.subsample_errors.min(), solution.subsample_errors.max())
        )
        return {"Random subsamples": f"{text}At the bound in use single subsamples go from {low} to {high}."}
    single = wording.percent(cap.standard_error * math.sqrt(cap.subsamples))
    return {
        "Random subsamples": f"{text}At the best bound single subsamples differ by a standard deviation of {single}."
    }


def proofs(solution: QuantileFound) -> tuple[Proof, ...]:
    """Say what is proved of the best bounds, and how their searches ended."""
    return (
        ("Smooth weights", solution.choices.smooth.certificate, solution.choices.smooth.ended),
        ("Bounded rows", solution.choices.cap.certificate, solution.choices.cap.ended),
        ("From counts", solution.counts_certificate, "Exact, for the trade-off form of the paper's bound."),
    )


def base(solution: QuantileFound) -> str:
    """Say what assumption 1 of the paper comes to on these values."""
    alpha, items = solution.parameters.alpha, []
    for problem in split(solution.problem, solution.parameters.asked):
        beta = optimal_bound.base_mass(problem, alpha)
        if beta > 0.0:
            w = solution.outputs[0].largest_user_weight
            cost = 2.0 * w / solution.parameters.drawn_epsilon(problem.quantile) * -math.log(beta)
            items.append(
                f"{name_of(problem.quantile)}: ν gives β = {wording.percent(beta)} to the values within α = "
                f"{wording.entered(alpha)} in rank, "
                f"which costs up to (2W/ε) ln(1/β) = {wording.percent(cost)} of rank"
            )
        else:
            items.append(
                f"{name_of(problem.quantile)}: ν gives **nothing** to the values within α = "
                f"{wording.entered(alpha)} in rank"
            )
    return "\n".join(f"- {item}." for item in items)


def paper(solution: QuantileFound) -> str:
    """Say what the paper's bound comes to, and what its best bound costs on these values."""
    bound = solution.parameters.rank_bound(solution.problem.histogram)
    value = float(bound.value(solution.kind, solution.counts_bound))
    beyond = " (a bound above 1 says nothing about the error, but the best bound by it can still be used)"
    return (
        f"Trade-off: least **W² + A Σ c²** with A = {wording.number(bound.trade_off)}. Best bound for "
        f"{KIND_NAMES[solution.kind]}: **{wording.counted(solution.counts_bound, 'row')}**, where the bound is "
        f"{wording.number(value)}{beyond if value > 1.0 else ''}. On these values the expected error there is "
        f"{with_spread(solution.counts_error, solution.counts_standard_error)}."
    )


# Below this share of the answers inside the values shown, the page says so.
MOST = 0.95


def outside(share: float) -> str:
    """Return a sentence saying that the figure leaves much of the distribution out."""
    return f"{wording.percent(share)} of the answers fall outside the values shown: widen them under *Values shown*."


def poorer(solution: QuantileFound, how: Poorer) -> str:
    """Say what the figure of poorer bases shows, and where the error becomes large."""
    if how is Poorer.MOVED:
        return (
            "ν is moved by a share of its own width; everything else stays as above. Once the quantile lies outside ν "
            "(or far in its tail), no answer can come near it, **whatever ε**."
        )
    w, quantiles = solution.outputs[0].largest_user_weight, solution.parameters.asked
    margin = min(min(q, 1.0 - q) * solution.parameters.drawn_epsilon(q) for q in quantiles) / (2.0 * w)
    factor = wording.number(math.exp(margin), 2) if margin < 600.0 else "more than 1e260"
    return (
        "ν is made wider about its own middle; everything else stays as above. An answer at distance $d$ in rank is "
        "$e^{\\varepsilon d/(2W)}$ times less likely, so extra width costs only its logarithm until ν is about that "
        f"many times as wide (here **{factor}**). Beyond that, most answers lie far from the quantile. The smaller ε, "
        "the earlier this happens."
    )


def samples(solution: QuantileFound, sampled: SampledAnswers) -> tuple[str, ...]:
    """Return the mean and spread of the simulated answers beside the exact mean, per quantile."""
    several = len(solution.outputs) > 1
    order = " The answers are put in order, which the exact mean does not count." if several else ""
    sentences = []
    for output, answers in zip(solution.outputs, sampled.answers.T, strict=True):
        sampling_error = (
            float(np.std(answers, ddof=1)) / math.sqrt(answers.size) if answers.size > 1 else math.nan
        )
        sentences.append(
            f"{name_of(output.quantile)}: mean of {wording.counted(answers.size, 'simulated answer')} "
            f"{wording.number(float(answers.mean()), 4)} (standard error {wording.number(sampling_error, 2)}), "
            "exact mean "
            f"{wording.number(output.mean, 4)}.{order}"
        )
    return tuple(sentences)


RANGE_NAMES = {BaseKind.UNIFORM: "[L, U]", BaseKind.HISTOGRAM: "the bins of ν"}
"""Where answers can fall, of bases that end somewhere."""


def inputs(dataset: Dataset, parameters: QuantileParameters) -> str:
    """Say which values and which part of epsilon the answer is computed with."""
    assert dataset.values is not None
    values = dataset.values.values
    sentences = [f"Column {wording.plain(dataset.values.column)}: {wording.counted(values.size, 'value')}."]
    if len(parameters.asked) > 1:
        sentences.append(
            f"{wording.counted(len(parameters.asked), 'quantile')} share ε evenly: "
            f"{format_rounded_up(parameters.epsilon_each)} each."
        )
    if (limits := parameters.answer_range) is not None:
        outside = OutsideCounts(int((values < limits[0]).sum()), int((values > limits[1]).sum()), values.size)
        sentences.append(outside.write_sentence(RANGE_NAMES[parameters.base]))
    return " ".join(sentences)
