"""The solution for quantiles in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math

from dpcore.answer import standard
from dpcore.answer.answer import Number, Proof
from dpcore.answer.axes import ROWS_UNIT, OutsideCounts
from dpcore.answer.methods import ChoiceSource, Methods, write_guarantee
from dpcore.code import with_opendp, with_python
from dpcore.code.forms import (
    Form,
    OfferedPrograms,
    build_forms,
    list_data_fields,
    name_cap_form,
    name_smooth_form,
)
from dpcore.code.release_spec import Quantity
from dpcore.common import noise_error
from dpcore.common.privacy import Disclosure, format_rounded_up
from dpcore.common.programs import Program
from dpcore.common.wording import (
    PERCENT,
    capitalise,
    choose_word,
    escape_text,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.data import binned_values
from dpcore.dataset import Dataset
from dpcore.quantile import optimal_bound
from dpcore.quantile.answer import solution as core
from dpcore.quantile.answer.solution import BaseChange, QuantileSolution, compute_mean_error
from dpcore.quantile.mechanism import split_epsilon
from dpcore.quantile.parameters import BaseKind, BoundFrom, QuantileParameters, Weighting
from dpcore.quantile.rows import WeightKind

NAME_BY_KIND = {WeightKind.SMOOTH: "smooth weights", WeightKind.CAP: "bounded rows"}


def name_quantile(q: float) -> str:
    """Return the name of a quantile: "Median", or for example "0.9-quantile"."""
    return "Median" if q == 0.5 else f"{format_entered(q)}-quantile"


def format_error(rank_error: float, standard_error: float) -> str:
    """Format a rank error, with the standard error of its average over subsamples if there is one."""
    spread_text = f" ± {format_percent(standard_error)}" if standard_error > 0.0 else ""
    return f"{format_percent(rank_error, 3)}{spread_text}"


def write_headline(solution: QuantileSolution) -> str:
    """Write the instruction: which bound to use, to set one, or that the program has its own."""
    if solution.parameters.fixed_bound is not None:
        return core.NO_BOUND_SENTENCE
    if solution.parameters.weighting is Weighting.NONE:
        smooth_bound_text = format_count(solution.choices.get(WeightKind.SMOOTH).bound, "row")
        return f"Set a bound: cap each user's total weight at {smooth_bound_text}."
    is_cap = solution.weight_kind is WeightKind.CAP
    write_instruction = standard.instruct_to_cap if is_cap else standard.instruct_to_weight
    return write_instruction(format_count(solution.bound, "row"))


def build_numbers(solution: QuantileSolution) -> tuple[Number, ...]:
    """Build the numbers: bound, rank error, and rank error without a bound."""
    parameters, error_help = solution.parameters, _RANK_ERROR_HELP
    quantile_noun = "median" if parameters.quantile_levels == (0.5,) else "quantile"
    error_note = f"of rows away from the {quantile_noun}"
    bound_label, shown_bound, rank_error = "Best bound", solution.bound, solution.rank_error
    if solution.standard_error > 0.0:
        trials_text = format_count(solution.subsample_errors.size, solution.problem.trial_name)
        error_help += f" ± {format_percent(solution.standard_error)} over {trials_text}."
    if parameters.fixed_bound is not None:
        bound_label = "Rows counted"
    elif parameters.weighting is Weighting.NONE:
        smooth_choice = solution.choices.get(WeightKind.SMOOTH)
        shown_bound, rank_error, error_help = smooth_choice.bound, smooth_choice.rank_error, _RANK_ERROR_HELP
    elif parameters.bound_from is BoundFrom.COUNTS:
        bound_label = "Bound from counts"

    def build_error(number_label: str, number_value: float, number_help: str, number_key: str) -> Number:
        """Build the number of a rank error, formatted in per cent."""
        return Number(
            number_label,
            format_percent(number_value),
            error_note,
            number_help,
            number_value,
            "share of rows",
            number_key,
        )

    # A user who is added needs some bound all the same.
    unbounded_name = "With all rows kept" if parameters.protects_users else "Without a bound"
    return (
        Number(
            bound_label,
            format_count(shown_bound, "row"),
            "",
            _BOUND_HELP,
            shown_bound,
            ROWS_UNIT,
            "bound",
        ),
        build_error("Rank error", rank_error, error_help, "rank_error"),
        build_error(unbounded_name, solution.unbounded_error, _RANK_ERROR_HELP, "rank_error_without_a_bound"),
    )


def list_proofs(solution: QuantileSolution) -> tuple[Proof, ...]:
    """Return name, certificate and stop reason of the best bound of each kind, and of the best from counts alone."""
    proofs = [
        (capitalise(NAME_BY_KIND[choice.weight_kind]), choice.certificate, choice.stop_reason)
        for choice in solution.choices.each_choice
    ]
    return (*proofs, ("From counts", solution.counts_certificate, "Exact, for the paper's trade-off form."))


def describe_near_optimal(solution: QuantileSolution) -> str:
    """Write the near-optimal range of bounds; empty if the bound was not chosen by its error."""
    parameters = solution.parameters
    if (
        parameters.weighting is Weighting.NONE
        or parameters.bound_from is BoundFrom.COUNTS
        or parameters.fixed_bound is not None
    ):
        return ""
    smallest_bound, largest_bound = solution.near_optimal_bounds
    return standard.write_near_optimal_range(
        smallest_bound, largest_bound, "row", worse_choices_phrase="the next bounds tried"
    )


_BOUND_HELP = "The most that one user's rows weigh together, in rows."
_RANK_ERROR_HELP = "The expected share of all rows between the answer and the quantile."
LEAKS_VALUES_SENTENCE = standard.warn_of_leak(
    "this bound was", "the values", "*From counts* uses only the rows per user."
)
LEAKS_COUNTS_SENTENCE = standard.warn_of_leak("this bound was")
LEAKS_SENTENCE = "Your data are private. Do not publish the figures: they are computed from the values."


def write_detail(solution: QuantileSolution, dataset: Dataset) -> str:
    """Write the sentences that qualify the headline: that private data leak, and that the search was stopped."""
    parameters, sentences = solution.parameters, []
    is_from_values = parameters.bound_from is BoundFrom.VALUES and parameters.weighting is not Weighting.NONE
    if dataset.is_private:
        sentences.append(
            LEAKS_COUNTS_SENTENCE
            if parameters.protects_users
            else LEAKS_VALUES_SENTENCE
            if is_from_values
            else LEAKS_SENTENCE
        )
    if solution.choices.is_cancelled:
        sentences.append("**Stopped early**: this is the best of the bounds tried.")
    return " ".join(sentences)


def build_facts(solution: QuantileSolution) -> dict[str, str]:
    """Build the facts behind the choice: sentences by heading."""
    parameters, histogram = solution.parameters, solution.problem.histogram
    facts, cap_choice = describe_answers(solution), solution.choices.cap_choice
    facts["Best for the values"] = "; ".join(
        f"{NAME_BY_KIND[quantile_choice.weight_kind]} with a bound of {format_number(quantile_choice.bound)}, error "
        f"{format_error(quantile_choice.rank_error, quantile_choice.standard_error)}"
        for quantile_choice in solution.choices.each_choice
    )
    facts["Mechanism"] = describe_mechanism(solution)
    if parameters.own_bound is not None:
        own_and_used_errors = compute_mean_error(solution.own_outputs), solution.rank_error
        own_bound_sentence = standard.compare_own_bound("rank error", *own_and_used_errors, format_percent)
        facts[f"Your own bound, {format_count(parameters.own_bound, 'row')}"] = own_bound_sentence
    if max(cap_choice.standard_error, solution.standard_error) > 0.0:
        num_trials_text = format_number(max(cap_choice.num_subsamples, solution.subsample_errors.size))
        trials_noun = f"{solution.problem.trial_name}s"
        facts["Bounded rows"] = (
            f"errors are averages over {num_trials_text} random {trials_noun}, ± their standard error."
        )
    counts_error_text = format_error(solution.counts_error, solution.counts_standard_error)
    facts["From counts alone"] = (
        f"a bound of {format_number(solution.counts_bound)}, error {counts_error_text}. It reveals only rows per user."
    )
    other_guarantee_phrase = f"the same release is {format_rounded_up(parameters.other_relation_epsilon)}-DP"
    if parameters.protects_users:
        if not solution.is_simulated:
            facts["If only values change"] = f"{other_guarantee_phrase} if rows per user are public."
    elif parameters.weighting is not Weighting.NONE:
        facts["If a user comes or goes"] = (
            f"{other_guarantee_phrase} if the bound was not computed from these data."
        )
    noise_factor_text = format_number(
        math.sqrt(noise_error.compute_design_effect(histogram.sizes, histogram.users))
    )
    facts[noise_error.ASSUMPTION_LABEL] = (
        f"for the population, the standard error is {noise_factor_text} times that of independent rows at an "
        "intra-class "
        f"correlation of {noise_error.ASSUMED_USER_SHARE}."
    )
    if solution.has_unavoidable_error:
        least_error_text = format_percent(solution.least_error)
        facts["Least possible"] = f"{least_error_text} with these ties and this base."
    if parameters.weighting is Weighting.CAP:
        lost_share_of_rows = 1.0 - float(histogram.count_kept_rows(solution.bound)) / histogram.num_rows
        affected_and_all_users = histogram.count_users_above(int(solution.bound)), histogram.num_users
        facts["Who is affected"] = standard.describe_affected(*affected_and_all_users, lost_share_of_rows)
    return facts


MECHANISM_TEXT_BY_PROGRAM = {
    Program.BEST: "of those compared, the one with the least error on the values",
    Program.PYTHON: f"exponential mechanism on the weighted rank, {with_python.NUM_CANDIDATES:,} candidates",
    Program.OPENDP: f"permute-and-flip on the rank, {with_opendp.NUM_CANDIDATES:,} candidates",
    Program.TUMULT: "exponential mechanism on the rank",
    Program.PIPELINEDP: "tree of 65,536 leaves with Laplace noise on every node",
    Program.BIGQUERY: "tree of 65,536 leaves with Laplace noise on every node",
}
"""What draws an answer."""
_TREE_CLAUSE = (
    "walks down a tree of 16⁴ leaves between L and U, with noise on every node; nodes below 0.5 % count as empty. Its "
    "errors are simulated"
)
_DRAW_SENTENCES_BY_PROGRAM = {
    Program.BEST: "exponential, on the whole line under ν. No library draws it; plain Python comes nearest.",
    Program.PYTHON: f"exponential, on {with_python.NUM_CANDIDATES:,} values laid evenly between the ends of ν, as "
    "plain Python draws it.",
    Program.OPENDP: f"permute-and-flip, on {with_opendp.NUM_CANDIDATES:,} values laid evenly between the ends of ν, as "
    "OpenDP draws it.",
    Program.TUMULT: "exponential, uniform between L and U, as Tumult draws it.",
    Program.PIPELINEDP: f"PipelineDP {_TREE_CLAUSE}. One tree serves all quantiles.",
    Program.BIGQUERY: f"BigQuery {_TREE_CLAUSE}. It draws at most 5 rows per user, and gives a share of ε to a "
    "hidden count of users. This is ZetaSQL's tree: nobody ran BigQuery.",
}


SHORT_NAME_BY_PROGRAM = {
    Program.BEST: "exponential",
    Program.OPENDP: "permute-and-flip",
    Program.PIPELINEDP: "tree of counts",
    Program.BIGQUERY: "tree of counts",
    Program.PYTHON: "exponential",
    Program.TUMULT: "exponential",
}


def describe_mechanism(solution: QuantileSolution) -> str:
    """Describe what draws the answer, what is peculiar to it, and which mechanisms it is the best of."""
    parameters = solution.parameters
    draw_sentences = _DRAW_SENTENCES_BY_PROGRAM[solution.mechanism]
    if solution.is_simulated and not all(0.005 <= q <= 0.995 for q in parameters.quantile_levels):
        draw_sentences += " It holds quantiles between 0.005 and 0.995."
    if len(solution.errors_by_mechanism) > 1:
        error_texts = (
            f"{SHORT_NAME_BY_PROGRAM[program]} {format_percent(rank_error, 3)}"
            for program, rank_error in solution.errors_by_mechanism.items()
        )
        draw_sentences += f" It errs least of those compared, on these values: {', '.join(error_texts)}."
    return draw_sentences


def describe_answers(solution: QuantileSolution) -> dict[str, str]:
    """Write a sentence per quantile on where its answers fall: a dict of texts by the quantile's name."""
    sentence_by_quantile_name = {}
    for output, quantile in zip(solution.outputs, solution.exact_quantiles, strict=True):
        interval_lower, interval_upper = output.find_interval()
        sentence_by_quantile_name[name_quantile(output.quantile)] = (
            f"95{PERCENT} of answers lie from {format_number(interval_lower)} to "
            f"{format_number(interval_upper)}, mean "
            f"{format_number(output.mean)}; true {format_number(quantile)}; rank error "
            f"{format_percent(output.expected_rank_error)}."
        )
    return sentence_by_quantile_name


def describe_base(solution: QuantileSolution) -> str:
    """Write a line per quantile: the mass that the base has near it on these values, and what that costs in rank."""
    alpha, base_lines = solution.parameters.alpha, []
    for problem in split_epsilon(solution.problem, solution.parameters.quantile_levels):
        beta, mass_text = optimal_bound.compute_base_mass(problem, alpha), "**no mass**"
        if beta > 0.0:
            epsilon = solution.parameters.compute_drawn_epsilon(problem.quantile)
            rank_cost_text = format_percent(
                -2.0 * solution.outputs[0].largest_user_weight / epsilon * math.log(beta)
            )
            mass_text = (
                f"β = {format_percent(beta)}, which costs up to (2W/ε) ln(1/β) = {rank_cost_text} of rank"
            )
        quantile_text = f"{name_quantile(problem.quantile)}, within α = {format_entered(alpha)}"
        base_lines.append(f"- {quantile_text}: {mass_text}.")
    return "\n".join(base_lines)


def describe_paper_bound(solution: QuantileSolution) -> str:
    """Describe the paper's bound, and the error of its best bound on these values."""
    rank_bound = solution.parameters.build_rank_bound(solution.problem.histogram)
    paper_bound_text = format_number(float(rank_bound.compute(solution.weight_kind, solution.counts_bound)))
    return (
        f"**W² + A Σ c²** with A = {format_number(rank_bound.trade_off)} is least for "
        f"{NAME_BY_KIND[solution.weight_kind]} at **{format_count(solution.counts_bound, 'row')}**: "
        f"paper's bound {paper_bound_text} (vacuous above 1), expected error "
        f"{format_error(solution.counts_error, solution.counts_standard_error)}."
    )


def describe_poorer_bases(solution: QuantileSolution, base_change: BaseChange) -> str:
    """Write the caption of the figure on base distributions that are moved or widened.

    For moved ones it is a fixed sentence. For widened ones it says up to which width the answers stay good at this
    epsilon.
    """
    if base_change is BaseChange.MOVED:
        return "Once the quantile lies outside ν or far in its tail, no answer comes near it, **whatever ε**."
    w, quantiles = solution.outputs[0].largest_user_weight, solution.parameters.quantile_levels
    weighted_epsilon = min(min(q, 1.0 - q) * solution.parameters.compute_drawn_epsilon(q) for q in quantiles)
    log_stretch = weighted_epsilon / (2.0 * w)
    factor_text = format_number(math.exp(log_stretch), 2) if log_stretch < 600.0 else "more than 1e260"
    return f"Extra width costs only its logarithm until ν is about **{factor_text}** times as wide."


RANGE_NAME_BY_BASE = {
    BaseKind.UNIFORM: "[L, U]",
    BaseKind.HISTOGRAM: "the bins of ν",
    BaseKind.NORMAL: "four standard deviations around the mean of ν",
}
"""Names of the range of answers."""


def describe_inputs(dataset: Dataset, solution: QuantileSolution) -> str:
    """Write which values and which part of epsilon the answer uses, and how many values lie outside its range."""
    assert dataset.values is not None
    values, parameters = solution.problem.values.values, solution.parameters
    sentences = [f"Column {escape_text(dataset.values.column)}: {format_count(values.size, 'value')}."]
    sentences += [
        f"{assumption}." for assumption in binned_values.list_assumptions(dataset, is_quantile=True)
    ]
    if len(parameters.quantile_levels) > 1:
        sentences.append(
            f"{format_count(len(parameters.quantile_levels), 'quantile')}: "
            f"ε = {format_rounded_up(solution.epsilon_each)} for each."
        )
    if parameters.answer_range is not None:
        lower, upper = parameters.answer_range
        outside_counts = OutsideCounts(int((values < lower).sum()), int((values > upper).sum()), values.size)
        sentences.append(outside_counts.write_sentence(RANGE_NAME_BY_BASE[parameters.base]))
    return " ".join(sentences)


def write_methods(solution: QuantileSolution, dataset: Dataset) -> Methods:
    """Write the methods text: guarantee, bound in use, mechanism and rank error.

    If rows are not bounded, it says nothing of a bound.
    """
    parameters = solution.parameters
    draw_sentences = _describe_draw(solution)
    if parameters.base is BaseKind.UNIFORM:
        base_lower, base_upper = solution.base_range
        draw_sentences += f" Answers lie in [{format_entered(base_lower)}, {format_entered(base_upper)}]."
    if len(parameters.quantile_levels) > 1:
        is_one_tree = solution.mechanism is Program.PIPELINEDP
        epsilon_phrase = "came from one tree" if is_one_tree else "shared ε evenly"
        draw_sentences += f" The {len(parameters.quantile_levels)} quantiles {epsilon_phrase}."
    public_draw_sentences = draw_sentences
    if len(solution.errors_by_mechanism) > 1:
        mechanism_names_text = ", ".join(
            SHORT_NAME_BY_PROGRAM[program] for program in solution.errors_by_mechanism
        )
        public_draw_sentences = (
            f"The mechanism with the smallest error on the values was used, out of {mechanism_names_text}."
        )
    is_bounded = parameters.weighting is not Weighting.NONE
    sentence_template = "Rows were weighted such that no user weighs more than {}."
    if not is_bounded:
        sentence_template = "All rows had the same weight."
    elif parameters.weighting is Weighting.CAP:
        sentence_template = "At most {} per user, drawn at random, were kept."
    bound_text = f"{format_number(solution.bound, 6)} {choose_word(solution.bound, 'row', 'rows')}"
    error_sentence = (
        "The expected rank error, |F(answer) − q| with F the empirical distribution of the rows, is "
        f"{format_percent(solution.rank_error)} of the rows."
    )
    rule_sentence = "The bound has the smallest expected rank error of those tried."
    if not is_bounded:
        rule_sentence = ""
    elif parameters.fixed_bound is not None:
        rule_sentence = "The program has this bound built in."
    elif parameters.bound_from is BoundFrom.COUNTS:
        rule_sentence = (
            "The bound minimises theorem 9 of the same work, an upper bound that depends on rows "
            "per user alone."
        )
    return Methods(
        guarantee_text=write_guarantee(
            _describe_release(parameters), parameters.epsilon, parameters.neighbours
        ),
        procedure=f"{sentence_template.format(bound_text)} {draw_sentences} {error_sentence}",
        public_procedure=f"{sentence_template.format('a fixed number of rows')} {public_draw_sentences}",
        disclosure=dataset.provenance,
        rule_sentence=rule_sentence,
        subject_phrase="The bound" if is_bounded else "The error",
        choice_source=ChoiceSource.COMPUTED if is_bounded else ChoiceSource.ENTERED,
    )


def _describe_draw(solution: QuantileSolution) -> str:
    """Write sentences for a methods section on how the program draws the answer."""
    parameters = solution.parameters
    if solution.is_simulated:
        kept_rows_text = "5 rows" if parameters.fixed_bound is not None else "rows up to the bound"
        epsilon_share_text = " with half of ε or less" if parameters.fixed_bound is not None else ""
        return (
            "The answer was found in a tree of 65,536 leaves over the public range, with Laplace noise for "
            f"{kept_rows_text} of a user on every node, as {solution.mechanism.value} draws it{epsilon_share_text}. "
            "Its error was simulated."
        )
    if solution.mechanism is Program.OPENDP:
        sensitivity_text = "max(q, 1 − q) times the bound" if parameters.protects_users else "the bound"
        return (
            f"The answer was picked from {with_opendp.NUM_CANDIDATES:,} candidates, laid evenly over the public range, "
            "by permute-and-flip [@mckenna2020] as OpenDP draws it. The score is the distance in rank from the "
            f"quantile, and one user moves it by {sensitivity_text}."
        )
    base_text = "the public base distribution"
    if parameters.program is Program.PYTHON:
        base_text = (
            f"the uniform distribution on {with_python.NUM_CANDIDATES:,} candidates over the public range"
        )
    draw_text = (
        f"The answer was drawn with a density proportional to {base_text} times exp(−ε d / (2W)) "
        "[@epasto2020, appendix B], with d the distance in weighted rank from the quantile and W the largest weight of "
        "a user."
    )
    if parameters.protects_users:
        draw_text += (
            " The score is not divided by the number of rows; max(q, 1 − q) times a user's weight replaces W."
        )
    return draw_text


def _describe_release(parameters: QuantileParameters) -> str:
    """Write the clause that says which quantiles were released."""
    *quantile_texts, last_quantile_text = (format_entered(q) for q in parameters.quantile_levels)
    if quantile_texts:
        return f"The {', '.join(quantile_texts)} and {last_quantile_text} quantiles were released"
    return f"The {'median' if parameters.quantile_levels == (0.5,) else f'{last_quantile_text}-quantile'} was released"


def write_forms(solution: QuantileSolution, dataset: Dataset) -> OfferedPrograms | None:
    """Write programs for the bound in use, the best bound of the other kind, and the entered bound.

    None if no program can be written.
    """
    parameters, choices, weight_kind = solution.parameters, solution.choices, solution.weight_kind
    base_lower, base_upper = solution.base_range
    settings_of_all_forms = list_data_fields(dataset) | {"lower": base_lower, "upper": base_upper}
    settings_of_all_forms |= {"quantiles": parameters.quantile_levels, "neighbours": parameters.neighbours}

    def build_form(weight_kind: WeightKind, bound: float, **disclosure_option: Disclosure) -> Form:
        """Build the form of a program for a bound: its name, quantity and settings."""
        if weight_kind is WeightKind.CAP:
            return name_cap_form(bound), Quantity.QUANTILE, {"max_rows": bound, **disclosure_option}
        return name_smooth_form(bound), Quantity.QUANTILE, {"threshold": bound, **disclosure_option}

    best_bound = choices.get(weight_kind).bound if parameters.weighting is Weighting.NONE else solution.bound
    program_forms = [build_form(weight_kind, best_bound)]
    program_forms += [
        build_form(quantile_choice.weight_kind, quantile_choice.bound)
        for quantile_choice in choices.each_choice
        if quantile_choice.weight_kind is not weight_kind
    ]
    if parameters.own_bound is not None:
        program_forms.append(build_form(weight_kind, parameters.own_bound, disclosure=Disclosure.PUBLIC))
    noise_library = parameters.program
    if noise_library is Program.BEST:
        # Which mechanism errs least was read off the values: of private ones no program may say it. Only bounded rows
        # of users who come and go have a program of another library.
        is_public_pick = (
            not dataset.is_private and parameters.protects_users and weight_kind is WeightKind.CAP
        )
        names_mechanism = is_public_pick and solution.mechanism is not Program.BEST
        noise_library = solution.mechanism if names_mechanism else Program.PYTHON
    return build_forms(parameters.epsilon, settings_of_all_forms, program_forms, noise_library)
