"""The answer for a learner under a cap and its tabs, as all readers take them."""

from __future__ import annotations

from dataclasses import asdict

from dpcore.answer import section, standard
from dpcore.answer.answer import Answer, ReleaseSetting, add_json_writer, build_error_parts
from dpcore.code.forms import build_forms, list_data_fields, name_cap_form
from dpcore.code.release_spec import Quantity
from dpcore.common.strict_json import convert_certificate, finite_or_none
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import format_count, format_number
from dpcore.dataset import Dataset
from dpcore.learning.answer import population
from dpcore.learning.answer import solution as words
from dpcore.learning.answer.solution import (
    LearningSolution,
    find_choices_by_term,
    list_risk_parts,
    plot_bound,
    solve,
)
from dpcore.learning.optimal_cap import NEIGHBOURS
from dpcore.learning.parameters import ASSUMPTIONS, FIELDS_BESIDE_DATA, LearningParameters
from dpcore.report.content import list_public_inputs, write_columns


def describe_inputs(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield a note with the formulae by which the bias and the privacy noise are bounded."""
    yield section.Note(words.describe_formulae(answer.parameters))


def show_bias_bounds(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield a table of all bounds on the bias, ours and the paper's, each with the best cap under it."""
    yield (
        "Always **worst case ≤ share of rows cut ≤ log form**; the forms with Var(H) can be larger or smaller. The "
        "share of rows cut beats Corollary 1 everywhere and needs nothing more."
    )
    choices_by_term = yield section.Cached(find_choices_by_term, (answer.solution.problem,))
    table_rows = words.list_bias_bound_rows(answer.solution, choices_by_term, answer.parameters.own_bound)
    yield section.Table(table_rows, "All bounds", has_formulae=True)
    yield section.Label()


SECTIONS: section.Sections = {
    section.BEHIND: describe_inputs,
    "All bounds on the bias": show_bias_bounds,
    "The paper": {
        "Figure 2": population.show_mass,
        "Figure 3": population.show_cost_over_caps,
        "Cost of privacy": population.show_cost_over_rows,
    },
}


def build_setting(dataset: Dataset, parameters: LearningParameters) -> ReleaseSetting:
    """Build the `ReleaseSetting` of a private model at this epsilon; the dataset is not used."""
    return ReleaseSetting(Quantity.MODEL, parameters.epsilon, NEIGHBOURS)


def build_answer(
    dataset: Dataset, parameters: LearningParameters, solution: LearningSolution | None = None
) -> Answer:
    """Find the best bound on rows per user for a private learner.

    Args:
        dataset: How many rows users have.
        parameters: The question.
        solution: The solution of `solve` for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `LearningSolution`. Plots are computed when they are asked for.

    Examples:
        >>> import dpcore as ss
        >>> answer = ss.learning_bound([1] * 90 + [10] * 10, epsilon=1)
        >>> print(answer.headline, round(answer.error, 2))
        Keep at most 1 row per user. 1.93

    Source: Amin et al. 2019, theorem 1.
    """
    final_solution = solve(dataset, parameters) if solution is None else solution
    best_choice = final_solution.best_choice
    cap = best_choice.max_contributions
    program_form = (name_cap_form(cap), Quantity.MODEL, {"max_rows": cap})
    answer = Answer(
        headline=standard.instruct_to_cap(format_count(cap, "row")),
        detail=words.write_detail(final_solution, dataset),
        numbers=standard.add_own_error(
            words.build_numbers(final_solution),
            None
            if parameters.own_bound is None
            else float(final_solution.compute_error_parts_at(parameters.own_bound).total),
            format_number,
        ),
        assumptions=ASSUMPTIONS,
        disclosure=dataset.provenance,
        facts=words.write_facts(final_solution, parameters.own_bound),
        proofs=(("Bound", best_choice.certificate, best_choice.stop_reason),),
        code=build_forms(parameters.epsilon, list_data_fields(dataset), [program_form]),
        near_optimal=words.describe_near_optimal(final_solution),
        parameters=parameters,
        solution=final_solution,
        plots={"learning-bound": lambda: plot_bound(final_solution, dataset, parameters)},
        make_methods=lambda: words.write_methods(final_solution, dataset, parameters),
        files={
            "learning_curves.csv": lambda: write_columns(
                final_solution.curve_columns, dataset.provenance, list_public_inputs(to_fields(parameters))
            )
        },
        setting=build_setting(dataset, parameters),
        error_parts=build_error_parts(list_risk_parts(best_choice), format_number),
        relative_error=words.measure_relative_error(best_choice),
        sections=SECTIONS,
    )
    own_bound_risk = None
    if parameters.own_bound is not None:
        own_bound_risk = finite_or_none(
            float(final_solution.compute_error_parts_at(parameters.own_bound).total)
        )
    return add_json_writer(
        answer,
        dataset,
        "learning under a bound",
        lambda: {
            "promises_something": best_choice.total < 1.0,
            "kept_share": best_choice.kept_share,
            "users_capped": best_choice.users_capped,
            "caps_within_5_percent": list(final_solution.near_optimal),
            "bound_at_own_bound": own_bound_risk,
            **convert_certificate(best_choice.certificate),
        },
        number_keys=("max_contributions", "tau_0", "bound", "bias_twice", "finite_sample", "privacy_noise"),
        question_entries={
            "bias_bound": parameters.bias.title,
            "bias_needs": parameters.bias.needs_text,
            "privacy_term": asdict(parameters.privacy),
            "neighbours": NEIGHBOURS.value,
            "source": "Amin et al. 2019, Bounding User Contributions, theorem 1 and section 6",
        },
        omitted_parameter_names=set(FIELDS_BESIDE_DATA) - {"own_bound"},
    )
