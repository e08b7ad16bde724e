"""The solution for quantiles in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcore.answer import standard
from dpcore.answer.answer import Number, Proof
from dpcore.answer.axes import ROWS_UNIT
from dpcore.answer.distribution import OutsideCounts
from dpcore.answer.methods import ChoiceSource, Methods, write_guarantee
from dpcore.code.choice import Quantity
from dpcore.code.forms import CodeChoice, Form, build_forms, cap_form, fields_of_data, smooth_form
from dpcore.common import noise_error, wording
from dpcore.common.privacy import Disclosure, format_rounded_up
from dpcore.dataset import Dataset
from dpcore.quantile import optimal_bound
from dpcore.quantile.answer.solution import Poorer, QuantileSolution, mean_error
from dpcore.quantile.parameters import BaseKind, BoundFrom, QuantileParameters, Weighting
from dpcore.quantile.rows import WeightKind
from dpcore.quantile.several import SampledAnswers, split

KIND_NAMES = {WeightKind.SMOOTH: "smooth weights", WeightKind.CAP: "bounded rows"}


def name_of(q: float) -> str:
    """Name a quantile."""
    return "Median" if q == 0.5 else f"{wording.entered(q)}-quantile"


def with_spread(error: float, standard_error: float) -> str:
    """Format a rank error, with the standard error of its average over subsamples if there is one."""
    spread = f" ± {wording.percent(standard_error)}" if standard_error > 0.0 else ""
    return f"{wording.percent(error, 3)}{spread}"


def write_headline(solution: QuantileSolution) -> str:
    """Write the instruction."""
    if solution.parameters.weighting is Weighting.NONE:
        rows = wording.counted(solution.choices.smooth.bound, "row")
        return f"Set a bound: cap each user's total weight at {rows}."
    instruct = standard.instruct_to_cap if solution.kind is WeightKind.CAP else standard.instruct_to_weight
    return instruct(wording.counted(solution.bound, "row"))


def build_numbers(solution: QuantileSolution) -> tuple[Number, ...]:
    """Build the bound, its rank error, and the rank error without a bound."""
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

    def build_error(label: str, value: float, note: str, key: str) -> Number:
        return Number(label, wording.percent(value), note, _RANK_ERROR, value, "share of rows", key)

    return (
        Number(name, wording.counted(bound, "row"), "", _BOUND, bound, ROWS_UNIT, "bound"),
        build_error("Rank error", error, note, "rank_error"),
        build_error(_name_unbounded(p), solution.unbounded_error, expected, "rank_error_without_a_bound"),
    )


def describe_near_optimal(solution: QuantileSolution) -> str:
    """Write the near-optimal range of bounds; empty if the bound was not chosen by its error."""
    p = solution.parameters
    if p.weighting is Weighting.NONE or p.bound_from is BoundFrom.COUNTS:
        return ""
    low, high = solution.near_optimal
    return standard.write_range(low, high, "row", others="the next bounds tried")


_BOUND = (
    "Smooth weights: the rows of a user who has more rows than the bound weigh together as much as that many rows. "
    "Every other row has weight 1. Bounded rows: at most that many rows of each user are kept, at random."
)
_RANK_ERROR = (
    "The expected share of all rows between the answer and the quantile, E|F(answer) − q|. It is exact, not simulated. "
    "For bounded rows it is the mean over random subsamples, for several quantiles the mean of their errors."
)
LEAKS_VALUES = standard.warn_of_leak(
    "this bound was",
    "the values",
    "*From counts* uses only the rows per user, which are public in this setting.",
)
LEAKS_COUNTS = standard.warn_of_leak("this bound was")
LEAKS = "Your data are private: the figures here are computed from the values. Do not publish them."


def write_detail(solution: QuantileSolution, dataset: Dataset) -> str:
    """Write the sentences that qualify the headline, most important first."""
    p, sentences = solution.parameters, []
    from_values = p.bound_from is BoundFrom.VALUES and p.weighting is not Weighting.NONE
    if dataset.is_private:
        sentences.append(LEAKS_COUNTS if p.protects_users else LEAKS_VALUES if from_values else LEAKS)
    if solution.choices.cancelled:
        sentences.append("**The search was stopped early**: this is the best of the bounds tried.")
    sentences.append(f"{_name_unbounded(p)} the rank error is {wording.percent(solution.unbounded_error)}.")
    if solution.ties and solution.least_error > 0.2 * solution.rank_error:
        sentences.append(
            "Much of this error is not noise: with these ties and this base no answer comes closer than "
            f"{wording.percent(solution.least_error)}."
        )
    return " ".join(sentences)


def build_facts(solution: QuantileSolution) -> dict[str, str]:
    """Build the facts behind the choice, sentences by name."""
    entries: dict[str, str] = {}
    for output, true in zip(solution.outputs, solution.exact, strict=True):
        low, high = output.interval()
        entries[name_of(output.quantile)] = (
            f"95{wording.PERCENT} of answers lie from {wording.number(low)} to {wording.number(high)}, mean "
            f"{wording.number(output.mean)}; true {wording.number(true)}; rank error "
            f"{wording.percent(output.expected_rank_error)}."
        )
    entries["Best for the values"] = _compare_weights(solution)
    if solution.own is not None and solution.parameters.own_bound is not None:
        error = mean_error(solution.own)
        name = f"Your own bound, {wording.counted(solution.parameters.own_bound, 'row')}"
        change = wording.change(error, solution.rank_error)
        entries[name] = standard.compare_own_bound("rank error", wording.percent(error), change)
    entries |= _describe_subsamples(solution)
    counts_error = with_spread(solution.counts_error, solution.counts_standard_error)
    but_counts = ", only the counts, which are private" if solution.parameters.protects_users else ""
    entries["From counts alone"] = (
        f"a bound of {wording.number(solution.counts_bound)}, with an error of {counts_error} here. It reveals nothing "
        f"about the values{but_counts}."
    )
    entries |= _describe_other_relation(solution)
    histogram = solution.problem.histogram
    factor = wording.number(math.sqrt(noise_error.design_effect(histogram.sizes, histogram.users)))
    entries[noise_error.NAME] = (
        "for these rows nothing is assumed about users. As an estimate for the population, the standard error is "
        f"{factor} times that of independent rows if the intra-class correlation ρ is {noise_error.ASSUMED_SHARE}."
    )
    if solution.ties:
        entries["Least possible"] = (
            f"{wording.percent(solution.least_error)} under this base: values tie, or the base has no mass there."
        )
    if solution.kind is WeightKind.CAP and solution.parameters.weighting is Weighting.CAP:
        affected = histogram.users_above(int(solution.bound))
        lost_share = 1.0 - float(histogram.kept_rows(solution.bound)) / histogram.num_rows
        entries["Who is affected"] = (
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / histogram.num_users)}) "
            f"{wording.agreeing(affected, 'lies', 'lie')} over the bound; {wording.percent(lost_share)} of all rows "
            "are left out."
        )
    return entries


def _name_unbounded(parameters: QuantileParameters) -> str:
    """Name the error where all rows weigh the same; a user who is added needs some bound all the same."""
    return "With all rows kept" if parameters.protects_users else "Without a bound"


def _compare_weights(solution: QuantileSolution) -> str:
    """Compare the best bounds of both kinds, first the kind in use."""
    first = solution.choices.of(solution.kind)
    choices = (
        first,
        *(choice for choice in (solution.choices.smooth, solution.choices.cap) if choice is not first),
    )
    texts = (
        f"{KIND_NAMES[choice.kind]} with a bound of {wording.number(choice.bound)}: "
        f"{with_spread(choice.rank_error, choice.standard_error)}"
        for choice in choices
    )
    smooth, cap = solution.choices.smooth, solution.choices.cap
    is_close = (
        abs(smooth.rank_error - cap.rank_error) <= 2.0 * cap.standard_error and cap.standard_error > 0.0
    )
    doubt = " The two are too close to tell apart over these subsamples." if is_close else ""
    return f"{'; '.join(texts)}.{doubt}"


def _describe_other_relation(solution: QuantileSolution) -> dict[str, str]:
    """Describe the guarantee of the same release under the other neighbouring relation."""
    p = solution.parameters
    opening = f"the same release is {format_rounded_up(p.epsilon_of_other)}-DP if"
    if p.protects_users:
        return {
            "If only values change": f"{opening} one user's values change and the rows per user are public."
        }
    if p.weighting is Weighting.NONE:
        return {}
    return {
        "If a user comes or goes": f"{opening} one user is added or removed with all their rows, for a bound of "
        f"{wording.counted(solution.bound, 'row')} that was not computed from these data. Such a user moves the score "
        "by at most max(q, 1 − q) times the bound. See *What ε protects* in *More settings*."
    }


def _describe_subsamples(solution: QuantileSolution) -> dict[str, str]:
    """Describe the averages over subsamples of a cap, and how far single subsamples differ."""
    cap = solution.choices.cap
    if not max(cap.standard_error, solution.standard_error) > 0.0:
        return {}
    count = wording.number(max(cap.subsamples, solution.subsample_errors.size))
    text = f"errors are averages over {count} subsamples ± their standard error."
    if solution.subsample_errors.size > 1:
        low, high = (
            wording.percent(float(end))
            for end in (solution.subsample_errors.min(), solution.subsample_errors.max())
        )
        return {"Random subsamples": f"{text} At the bound in use single subsamples go from {low} to {high}."}
    deviation = wording.percent(cap.standard_error * math.sqrt(cap.subsamples))
    return {"Random subsamples": f"{text} At the best bound their standard deviation is {deviation}."}


def list_proofs(solution: QuantileSolution) -> tuple[Proof, ...]:
    """List the certificates of the best bounds, and how their searches ended."""
    return (
        ("Smooth weights", solution.choices.smooth.certificate, solution.choices.smooth.ended),
        ("Bounded rows", solution.choices.cap.certificate, solution.choices.cap.ended),
        ("From counts", solution.counts_certificate, "Exact, for the trade-off form of the paper's bound."),
    )


def base(solution: QuantileSolution) -> str:
    """Describe what assumption 1 of the paper amounts to on these values."""
    alpha, items = solution.parameters.alpha, []
    for problem in split(solution.problem, solution.parameters.asked):
        beta = optimal_bound.base_mass(problem, alpha)
        mass_text, cost_text = "**no mass**", ""
        if beta > 0.0:
            epsilon = solution.parameters.drawn_epsilon(problem.quantile)
            cost = 2.0 * solution.outputs[0].largest_user_weight / epsilon * -math.log(beta)
            mass_text = f"β = {wording.percent(beta)}"
            cost_text = f", which costs up to (2W/ε) ln(1/β) = {wording.percent(cost)} of rank"
        items.append(
            f"- {name_of(problem.quantile)}: ν gives {mass_text} to the values within α = {wording.entered(alpha)} in "
            f"rank{cost_text}."
        )
    return "\n".join(items)


def paper(solution: QuantileSolution) -> str:
    """Describe the paper's bound, and the error of its best bound on these values."""
    bound = solution.parameters.rank_bound(solution.problem.histogram)
    value = float(bound.value(solution.kind, solution.counts_bound))
    vacuous = " (above 1 it is vacuous, but its minimiser can still be used)" if value > 1.0 else ""
    return (
        f"Trade-off: least **W² + A Σ c²** with A = {wording.number(bound.trade_off)}. Best bound for "
        f"{KIND_NAMES[solution.kind]}: **{wording.counted(solution.counts_bound, 'row')}**, where the paper's bound is "
        f"{wording.number(value)}{vacuous}. On these values the expected error there is "
        f"{with_spread(solution.counts_error, solution.counts_standard_error)}."
    )


MOST = 0.95
"""If fewer of the answers lie among the values shown, the page says so."""


def outside(share: float) -> str:
    """Write that the figure leaves out many answers."""
    return f"{wording.percent(share)} of the answers fall outside the values shown: widen them under *Values shown*."


def poorer(solution: QuantileSolution, how: Poorer) -> str:
    """Describe the figure of poorer bases, and where the error becomes large."""
    if how is Poorer.MOVED:
        return (
            "ν is moved by a share of its own width. Once the quantile lies outside ν, or far in its tail, no answer "
            "can come near it, **whatever ε**."
        )
    w, quantiles = solution.outputs[0].largest_user_weight, solution.parameters.asked
    margin = min(min(q, 1.0 - q) * solution.parameters.drawn_epsilon(q) for q in quantiles) / (2.0 * w)
    factor = wording.number(math.exp(margin), 2) if margin < 600.0 else "more than 1e260"
    return (
        "ν is made wider about its own middle. An answer at distance $d$ in rank is $e^{\\varepsilon d/(2W)}$ times "
        f"less likely, so extra width costs only its logarithm until ν is about **{factor}** times as wide. Beyond "
        "that, most answers lie far from the quantile. The smaller ε, the earlier this happens."
    )


def samples(solution: QuantileSolution, sampled: SampledAnswers) -> tuple[str, ...]:
    """Compare the mean of the simulated answers with the exact mean, per quantile."""
    order = " The answers are sorted, which the exact mean ignores." if len(solution.outputs) > 1 else ""
    sentences = []
    for output, answers in zip(solution.outputs, sampled.answers.T, strict=True):
        deviation = float(np.std(answers, ddof=1)) if answers.size > 1 else math.nan
        sentences.append(
            f"{name_of(output.quantile)}: mean of {wording.counted(answers.size, 'simulated answer')} "
            f"{wording.number(float(answers.mean()), 4)} (standard error "
            f"{wording.number(deviation / math.sqrt(answers.size), 2)}), exact mean "
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


def methods(solution: QuantileSolution, data: Dataset) -> Methods:
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


def of_quantile(solution: QuantileSolution, dataset: Dataset) -> CodeChoice | None:
    """List the bound in use, the best bound of the other kind, and the entered bound."""
    p = solution.parameters
    low, high = _ends(solution)
    base = fields_of_data(dataset) | {
        "lower": low,
        "upper": high,
        "quantiles": p.asked,
        "neighbours": p.neighbours,
    }
    alternative = WeightKind.CAP if solution.kind is WeightKind.SMOOTH else WeightKind.SMOOTH
    none = p.weighting is Weighting.NONE
    bounds: list[tuple[WeightKind, float, dict[str, Any]]] = [
        (solution.kind, solution.choices.of(solution.kind).bound if none else solution.bound, {}),
        (alternative, solution.choices.of(alternative).bound, {}),
    ]
    if p.own_bound is not None:
        bounds.append((solution.kind, p.own_bound, {"disclosure": Disclosure.PUBLIC}))
    programs: list[Form] = []
    for weighting, bound, whose in bounds:
        if weighting is WeightKind.CAP:
            programs.append((cap_form(bound), Quantity.QUANTILE, {"max_rows": bound, **whose}))
        else:
            programs.append((smooth_form(bound), Quantity.QUANTILE, {"threshold": bound, **whose}))
    return build_forms(p.epsilon, base, programs)


def _ends(solution: QuantileSolution) -> tuple[float, float]:
    """Return the range of the answer: the ends of the base, or four standard deviations around a normal base."""
    breaks, spread = solution.problem.base.breaks, 4.0 * (solution.parameters.spread or 0.0)
    return float(breaks[0]) - spread, float(breaks[-1]) + spread
