"""The Quantile page's answer in words."""

from __future__ import annotations

import math

from dpcore import quantile
from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.dataset import Dataset
from dpcore.quantile import WeightKind, optimal_bound
from dpcore.quantile.optimal_bound import QuantileChoice
from dpcore.quantile.parameters import BoundFrom, QuantileParameters, Weighting
from dpcore.quantile.several import split
from pages.quantile import code
from pages.quantile.answer import GOOD_ENOUGH, Poorer, QuantileView, mean_error
from pages.shared import missing

KIND_NAMES = {WeightKind.SMOOTH: "smooth weights", WeightKind.CAP: "a cap"}
"""On figures and card, where the data in use have no values."""


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


def card(view: QuantileView, dataset: Dataset, demonstration: bool = False) -> Answer:
    """The answer in words.

    Args:
        view: The answer.
        dataset: The data that it is about.
        demonstration: Whether these are invented data that stand in for data without values.
    """
    return Answer(
        headline=_headline(view),
        detail=_detail(view, dataset, demonstration),
        numbers=_figures(view),
        facts=_facts(view, view.choices.of(view.kind)),
        assumptions=quantile.ASSUMPTIONS,
        proofs=_proofs(view),
        disclosure=dataset.provenance,
        code=code.of_quantile(view, dataset),
        good_enough=_good_enough(view),
    )


def _headline(view: QuantileView) -> str:
    p = view.parameters
    if p.weighting is Weighting.NONE:
        return (
            f"Set a bound: let no user weigh more than {wording.counted(view.choices.smooth.bound, 'row')}."
        )
    rows = wording.counted(view.bound, "row")
    if view.kind is WeightKind.CAP:
        return f"Keep at most {rows} of each user."
    return f"Let no user weigh more than {rows}."


def _figures(view: QuantileView) -> tuple[Number, ...]:
    p = view.parameters
    note = expected = "of rows, expected"
    if view.standard_error > 0.0:
        subsamples = wording.counted(view.subsample_errors.size, "subsample")
        note = f"± {wording.percent(view.standard_error)} ({subsamples})"
    if p.weighting is Weighting.NONE:
        name, bound, error = "Best bound h", view.choices.smooth.bound, view.choices.smooth.rank_error
        note = expected
    else:
        name = "Best bound h" if p.bound_from is BoundFrom.VALUES else "Bound h from counts"
        bound, error = view.bound, view.rank_error
    return (
        Number(name, wording.counted(bound, "row"), help=_BOUND, copied=wording.digits(bound)),
        Number("Rank error", wording.percent(error), note, _RANK_ERROR),
        Number("Without a bound", wording.percent(view.unbounded_error), expected, _RANK_ERROR),
    )


def _good_enough(view: QuantileView) -> str:
    """From where to where the bound costs little; empty where the bound was not chosen by its error."""
    p = view.parameters
    if p.weighting is Weighting.NONE or p.bound_from is BoundFrom.COUNTS:
        return ""
    low, high = view.good_enough
    share = wording.percent(GOOD_ENOUGH - 1.0, 1)
    if low == high:
        return f"only {wording.counted(low, 'row')}; the next bounds tried are more than {share} worse."
    return (
        f"any bound from {wording.number(low)} to {wording.counted(high, 'row')} costs at most {share} more."
    )


_BOUND = (
    "With smooth weights every row of a user with at most h rows weighs the same, and the rows of a heavier user "
    "together weigh as much as h rows. With a cap at most h rows of each user are kept, chosen at random."
)
_RANK_ERROR = (
    "E|F(answer) − q|: the share of all rows that lie between the answer and the quantile, on average over the noise. "
    "Exact, not simulated. A cap's error is averaged over random subsamples (± standard error); the release draws its "
    "own. For several quantiles this is the mean of their errors."
)
LEAKS_VALUES = (
    "Your data are private, and **this bound was read off the values: it leaks**. *From counts* uses only how many "
    "rows users have, which is public in this setting."
)
LEAKS = "Your data are private: the figures here are computed from the values. Do not publish them."


def _detail(view: QuantileView, dataset: Dataset, demonstration: bool) -> str:
    """What changes how the headline is to be read, most important first."""
    found = [f"**{missing.DEMONSTRATION}.**"] if demonstration else []
    p = view.parameters
    from_values = p.bound_from is BoundFrom.VALUES and p.weighting is not Weighting.NONE
    if dataset.is_private:
        found.append(LEAKS_VALUES if from_values else LEAKS)
    if view.choices.cancelled:
        found.append("**The search was stopped early**: the best bound is the best of those tried.")
    found.append(
        f"Without a bound it is {wording.percent(view.unbounded_error)}."
        if demonstration
        else f"So many rows lie between the released {asked_for(p)} and {true_one(p)} on average; without a bound, "
        f"{wording.percent(view.unbounded_error)}."
    )
    if view.ties and view.least_error > 0.2 * view.rank_error:
        found.append(
            f"Much of the error is not noise: ties or the base keep every answer at least "
            f"{wording.percent(view.least_error)} away."
        )
    return " ".join(found)


def _facts(view: QuantileView, choice: QuantileChoice) -> dict[str, str]:
    facts: dict[str, str] = {}
    for one, true in zip(view.outputs, view.exact, strict=True):
        low, high = one.interval()
        facts[name_of(one.quantile)] = (
            f"95{wording.PERCENT} of answers from {wording.number(low)} to {wording.number(high)}, mean "
            f"{wording.number(one.mean)}; true {wording.number(true)}; rank error "
            f"{wording.percent(one.expected_rank_error)}."
        )
    other = view.choices.of(WeightKind.CAP if view.kind is WeightKind.SMOOTH else WeightKind.SMOOTH)
    facts["Best for the values"] = (
        f"{KIND_NAMES[choice.kind]} with h = {wording.number(choice.bound)}: "
        f"{with_spread(choice.rank_error, choice.standard_error)}; {KIND_NAMES[other.kind]} with h = "
        f"{wording.number(other.bound)}: {with_spread(other.rank_error, other.standard_error)}.{_near(view)}"
    )
    if view.own is not None and view.parameters.own_bound is not None:
        error = mean_error(view.own)
        facts[f"Your own bound, {wording.counted(view.parameters.own_bound, 'row')}"] = (
            f"rank error {wording.percent(error)}, {wording.change(error, view.rank_error)} compared with the "
            "bound above."
        )
    facts |= _subsamples(view)
    facts["From counts alone"] = (
        f"h = {wording.number(view.counts_bound)}, with an error of "
        f"{with_spread(view.counts_error, view.counts_standard_error)} here. It was "
        "chosen without the values, so it leaks nothing of them."
    )
    if view.ties:
        facts["Least possible"] = (
            f"no answer under this base comes closer than {wording.percent(view.least_error)}: values tie, or the "
            "base has no mass there."
        )
    if view.kind is WeightKind.CAP and view.parameters.weighting is Weighting.CAP:
        histogram = view.problem.histogram
        lost = histogram.num_rows - float(histogram.kept_rows(view.bound))
        affected = histogram.users_above(int(view.bound))
        facts["Who is affected"] = (
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / histogram.num_users)}) "
            f"{wording.agreeing(affected, 'lies', 'lie')} over the cap; "
            f"{wording.percent(lost / histogram.num_rows)} of all rows are left out."
        )
    return facts


def _near(view: QuantileView) -> str:
    """A sentence where cap and smooth weights differ by at most two standard errors; empty elsewhere."""
    smooth, cap = view.choices.smooth, view.choices.cap
    close = abs(smooth.rank_error - cap.rank_error) <= 2.0 * cap.standard_error
    return (
        " The two are too close to tell apart over these subsamples."
        if close and cap.standard_error > 0.0
        else ""
    )


def _subsamples(view: QuantileView) -> dict[str, str]:
    """What the figures of a cap are averages of, and how far single subsamples differ."""
    cap = view.choices.cap
    if not max(cap.standard_error, view.standard_error) > 0.0:
        return {}
    text = (
        f"a cap keeps a random subsample of the rows, and the release draws its own. The errors of caps are averages "
        f"over {wording.number(max(cap.subsamples, view.subsample_errors.size))} subsamples, ± their standard error. "
    )
    if view.subsample_errors.size > 1:
        low, high = (
            wording.percent(float(end)) for end in (view.subsample_errors.min(), view.subsample_errors.max())
        )
        return {"Random subsamples": f"{text}At the cap in use single subsamples go from {low} to {high}."}
    single = wording.percent(cap.standard_error * math.sqrt(cap.subsamples))
    return {
        "Random subsamples": f"{text}At the best cap single subsamples differ by a standard deviation of {single}."
    }


def _proofs(view: QuantileView) -> tuple[tuple[str, Certificate, str], ...]:
    return (
        ("Smooth weights", view.choices.smooth.certificate, view.choices.smooth.ended),
        ("Cap", view.choices.cap.certificate, view.choices.cap.ended),
        ("From counts", view.counts_certificate, "Exact, for the trade-off form of the paper's bound."),
    )


def base_sentence(view: QuantileView) -> str:
    """What assumption 1 of the paper comes to on these values."""
    alpha, parts = view.parameters.alpha, []
    for one in split(view.problem, view.parameters.asked):
        beta = optimal_bound.base_mass(one, alpha)
        if beta > 0.0:
            w = view.outputs[0].largest_user_weight
            cost = 2.0 * w / view.parameters.epsilon_each * -math.log(beta)
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


def paper_sentence(view: QuantileView) -> str:
    """What the paper's bound comes to, and what its best bound costs on these values."""
    bound = view.parameters.rank_bound(view.problem.histogram)
    value = float(bound.value(view.kind, view.counts_bound))
    beyond = " (a bound above 1 says nothing about the error, but its best h can still be used)"
    return (
        f"Trade-off: least **W² + A Σ c²** with A = {wording.number(bound.trade_off)}. Best h for "
        f"{KIND_NAMES[view.kind]}: **{wording.counted(view.counts_bound, 'row')}**, where the bound is "
        f"{wording.number(value)}{beyond if value > 1.0 else ''}. On these values the expected error there is "
        f"{with_spread(view.counts_error, view.counts_standard_error)}."
    )


# Below this share of the answers inside the values shown, the page says so.
MOST = 0.95


def outside_sentence(share: float) -> str:
    """A sentence saying that the figure leaves much of the distribution out."""
    return f"{wording.percent(share)} of the answers fall outside the values shown: widen them under *Values shown*."


def poorer_sentence(view: QuantileView, how: Poorer) -> str:
    """What the figure of poorer bases shows, and where the error becomes large."""
    if how is Poorer.MOVED:
        return (
            "ν is moved by a share of its own width; everything else stays as above. Once the quantile lies outside ν "
            "(or far in its tail), no answer can come near it, **whatever ε**."
        )
    w, asked = view.outputs[0].largest_user_weight, view.parameters.asked
    margin = min(min(q, 1.0 - q) for q in asked) * view.parameters.epsilon_each / (2.0 * w)
    factor = wording.number(math.exp(margin), 2) if margin < 600.0 else "more than 1e260"
    return (
        "ν is made wider about its own middle; everything else stays as above. An answer at distance $d$ in rank is "
        "$e^{\\varepsilon d/(2W)}$ times less likely, so extra width costs only its logarithm until ν is about that "
        f"many times as wide (here **{factor}**). Beyond that, most answers lie far from the quantile. The smaller ε, "
        "the earlier this happens."
    )
