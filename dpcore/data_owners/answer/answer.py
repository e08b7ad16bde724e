"""The answer for data owners and its tabs, as all readers take them."""

from __future__ import annotations

import math

from dpcore.answer import standard
from dpcore.answer.answer import Answer, Number, add_json_writer
from dpcore.answer.methods import ChoiceSource, Methods
from dpcore.answer.section import Label, Link, Note, Parts, Sections, Table
from dpcore.code.forms import OfferedPrograms, build_forms, list_data_fields
from dpcore.code.release_spec import Quantity
from dpcore.common.privacy import Disclosure, Neighbours, Provenance
from dpcore.common.strict_json import finite_or_none
from dpcore.common.wording import describe_change, format_count, format_entered, format_number, format_percent
from dpcore.data_owners import bounds
from dpcore.data_owners.answer import plots
from dpcore.data_owners.answer.solution import OwnersSolution, solve, tabulate_bounds
from dpcore.data_owners.bounds import ProtectedPart, Unit
from dpcore.data_owners.network_parts import PersonalPart
from dpcore.data_owners.paper import ACCURACY_2_BY_PART
from dpcore.data_owners.parameters import ASSUMPTIONS, OwnersParameters
from dpcore.data_owners.regimes import Regime
from dpcore.dataset import Dataset
from dpcore.report.content import Line

LEAK_WARNING = standard.warn_of_leak(
    "this decision and its cap were",
    remedy_text="Joint privacy does not cover it either. Decide without these data.",
)
CAVEAT = (
    "The paper's algorithm 1 **does not keep this ε**: an audit shows more than 5 at a claimed 1. The tab *Accuracy* "
    "trains a form that does."
)
"""Stands at the headline where there is a personal part: without one algorithm 1 is noisy gradient descent."""
CLAUSE_BY_UNIT = {
    Unit.RECORD: "one record is replaced",
    Unit.USER: "all records of one user are replaced",
    Unit.OWNER: "all records of one data owner are replaced",
}


def write_needed_owners(solution: OwnersSolution) -> str:
    """Write one sentence: how many owners must join before joining has the smaller bound, by which constants."""
    parameters = solution.parameters
    bound_constants = (parameters.alone_constant, parameters.sampling_constant, parameters.privacy_constant)
    shown_constants = bound_constants if len({*bound_constants}) > 1 else bound_constants[:1]
    constants_phrase = ", ".join(format_entered(constant) for constant in shown_constants)
    records_phrase = format_count(float(solution.collaboration.records), "record")
    records_phrase += " on average" if solution.is_of_data else " each"
    needed_clause = f"sharing never pays for owners of {records_phrase}"
    if solution.owners_needed_joint is not None:
        owners_phrase = format_count(solution.owners_needed_joint, "owner")
        needed_clause = f"{owners_phrase} of {records_phrase} must join before sharing pays"
    return f"By these bounds (constants {constants_phrase}), {needed_clause}."


def write_headline(solution: OwnersSolution) -> str:
    """Write one sentence: whether to join, and how many records of each owner to keep if a whole owner is protected."""
    num_owners = float(solution.collaboration.owners)
    owners_phrase = format_count(num_owners, "owner")
    if num_owners == 1.0:
        return "One owner has nobody to join."
    if solution.cap_choice is not None:
        records_phrase = format_count(solution.cap_choice.cap, "record")
        if solution.regime is Regime.ALONE:
            return f"Train alone; if owners join, keep at most {records_phrase} of each."
        return f"Join, and keep at most {records_phrase} of each owner."
    if solution.regime is Regime.ALONE:
        if solution.owners_needed_joint is None:
            return "Train alone: joining never pays, however many join."
        return f"Train alone: joining does not pay for {owners_phrase}."
    if solution.regime is Regime.JOINT_ONLY:
        return "Join, and keep the personal part with its owner: full privacy would lose."
    return f"Join: {owners_phrase} do better together."


def build_numbers(solution: OwnersSolution) -> tuple[Number, ...]:
    """Build the answer's numbers: owners needed, bound, least ε at which joining is better, best cap if any."""
    joint_count, full_count = (
        "none suffice" if num_owners is None else format_number(num_owners)
        for num_owners in (solution.owners_needed_joint, solution.owners_needed_full)
    )
    numbers = [
        Number(
            "Owners needed", joint_count, "so that joining pays", "", solution.owners_needed_joint, "owners"
        ),
        Number(
            "Excess loss, at most",
            format_number(solution.bound_joint),
            f"together, {format_number(solution.bound_alone)} alone",
            "How much the models' average loss may exceed the least possible one. It gives the order, not the size.",
            solution.bound_joint,
        ),
    ]
    if (cap_choice := solution.cap_choice) is not None:
        records_text, cap = format_count(cap_choice.cap, "record"), cap_choice.cap
        cap_entry = Number("Best bound on records", records_text, "per owner", "", cap, "records per owner")
        numbers = [cap_entry, *reversed(numbers)]
    return (
        *numbers,
        Number(
            "ε from which joining pays",
            format_number(solution.joint_paying_epsilon),
            f"({format_number(solution.full_paying_epsilon)} with full privacy)",
            value=solution.joint_paying_epsilon,
            key="epsilon_star",
        ),
        Number("Owners needed, full privacy", full_count, "", "", solution.owners_needed_full, "owners"),
    )


def write_detail(solution: OwnersSolution) -> str:
    """Write the sentences that qualify the headline, most important first."""
    detail_sentences = [write_needed_owners(solution)]
    if solution.is_vacuous:
        detail_sentences.append("**The bound says nothing here**: no model has a larger excess loss.")
    detail_sentences += [f"**{sentence}**" for sentence in solution.unmet_conditions]
    if solution.disclosure is Disclosure.PRIVATE:
        detail_sentences.append(LEAK_WARNING)
    return " ".join(detail_sentences)


def describe_paying_records(solution: OwnersSolution) -> str:
    """Write with how many records per owner joining has the smaller bound.

    Return "" if joining never has, and if a best cap was computed.
    """
    if solution.cap_choice is not None:
        return ""
    if solution.owners_needed_joint is None or not math.isfinite(solution.joint_paying_epsilon):
        return ""
    collaboration = solution.collaboration
    if solution.parameters.protects_owner:
        largest_num_records = float(bounds.find_records_limit(collaboration, ProtectedPart.JOINT))
        if not math.isfinite(largest_num_records):
            return "with any number of records each."
        return f"up to {format_count(max(math.floor(largest_num_records), 0), 'record')} each."
    least_records = math.ceil(float(bounds.find_records_star(collaboration, ProtectedPart.JOINT)))
    return f"from {format_count(max(least_records, 1), 'record')} each."


def build_facts(solution: OwnersSolution) -> dict[str, str]:
    """Build the facts beside the answer: texts by heading."""
    parameters, cap_choice = solution.parameters, solution.cap_choice
    facts = {
        "What full privacy would cost": (
            f"a bound of {format_number(solution.bound_full)}, "
            f"{describe_change(solution.bound_full, solution.bound_joint)}."
            if solution.has_personal_part
            else "the same as joint privacy: there is no personal part."
        )
    }
    if parameters.is_of_network:
        facts["What the paper measured"] = write_measured_accuracy(parameters.personal_part)
    if paying_records_phrase := describe_paying_records(solution):
        facts["When joining pays"] = paying_records_phrase
    if solution.gaining_limit_and_count is not None:
        record_limit, num_gaining_owners = solution.gaining_limit_and_count
        facts["Who gains by joining"] = (
            f"{format_count(num_gaining_owners, 'owner')} with fewer than {format_number(record_limit)} "
            "records. The joint bound holds for the average owner, not for each."
        )
    if solution.bound_at_own_cap is not None and parameters.own_bound is not None and cap_choice is not None:
        own_bound_name = f"Your bound on records, {format_count(parameters.own_bound, 'record')}"
        own_and_best_bounds = solution.bound_at_own_cap, cap_choice.joint_bound
        facts[own_bound_name] = standard.compare_own_bound("bound", *own_and_best_bounds, format_number)
    return facts


def write_measured_accuracy(personal_part: PersonalPart) -> str:
    """Write the accuracy that the paper measured with this personal part, and what the bounds do not see."""
    accuracy, without_part = (ACCURACY_2_BY_PART[part] for part in (personal_part, PersonalPart.NOTHING))
    if personal_part is PersonalPart.NOTHING:
        return f"on MNIST its network was right for {format_percent(accuracy)} with nothing personal (table 2, ε = 1)."
    return (
        f"on MNIST its network was right for {format_percent(accuracy)} with this part personal, for "
        f"{format_percent(without_part)} with nothing personal (table 2, ε = 1). The bounds count parameters and do "
        "not see which layer comes first."
    )


def summarise_owners(solution: OwnersSolution) -> tuple[Line, ...]:
    """Return two lines for a report: the entered numbers of owners and of records per owner."""
    return (
        Line("Owners", format_number(solution.parameters.owners), solution.disclosure),
        Line("Records per owner", format_number(solution.parameters.records), solution.disclosure),
    )


def write_methods(solution: OwnersSolution) -> Methods:
    """Write the methods text: the comparison of the bounds, and the cap per owner where there is one."""
    parameters, collaboration = solution.parameters, solution.collaboration
    owners_phrase = format_count(float(collaboration.owners), "owner")
    records_phrase = format_count(float(collaboration.records), "record")
    average_phrase = " on average" if solution.is_of_data else ""
    regime_clause = plots.CLAUSE_BY_REGIME[solution.regime]
    comparison_sentences = f"For {owners_phrase} with {records_phrase} each{average_phrase}, {regime_clause}."
    if solution.cap_choice is not None:
        cap_phrase = format_count(solution.cap_choice.cap, "record")
        comparison_sentences += f" At most {cap_phrase} of each owner were used."
    return Methods(
        guarantee_text="Training together was to satisfy joint differential privacy at ε = "
        f"{format_entered(parameters.epsilon)} and δ = {format_entered(parameters.delta)}. Two data sets are "
        f"neighbours if {CLAUSE_BY_UNIT[parameters.unit]}.",
        procedure=comparison_sentences,
        public_procedure="Records per owner were bounded." if parameters.protects_owner else "",
        disclosure=solution.disclosure,
        rule_sentence="Upper bounds on the excess loss were compared [@huang2023, theorem 3.1], with the hidden "
        f"constants {format_entered(parameters.alone_constant)}, {format_entered(parameters.sampling_constant)} and "
        f"{format_entered(parameters.privacy_constant)}. They are orders and promise no accuracy.",
        subject_phrase="The comparison",
        choice_source=ChoiceSource.COMPUTED if solution.is_of_data else ChoiceSource.ENTERED,
    )


def build_programs(solution: OwnersSolution, dataset: Dataset | None) -> OfferedPrograms | None:
    """Build the program that caps each owner's records; None if there is no cap or no data."""
    if solution.cap_choice is None or dataset is None:
        return None
    data_fields = list_data_fields(dataset) | {"neighbours": Neighbours.REPLACE_USER}
    cap = solution.cap_choice.cap
    program_form = f"Cap per owner, {format_count(cap, 'record')}", Quantity.MODEL, {"max_rows": cap}
    return build_forms(solution.parameters.epsilon, data_fields, [program_form])


def show_bounds(answer: Answer, dataset: object) -> Parts:
    """Yield the "Bounds" tab: the plot and a table of each setting's bound, beside the bound as the paper prints it."""
    yield answer.plots["owners-bounds"]()
    yield Table(
        tabulate_bounds(answer.solution),
        "Each setting's bound",
        dict.fromkeys(("One record", "The unit protected", "As printed"), "%.4g"),
    )
    yield Note("*As printed* shows the paper's formula where this page corrects it.")
    yield Label()


def show_unequal(answer: Answer, dataset: object) -> Parts:
    """Yield the "Unequal owners" tab: the plot over the cap per owner, or what to set to get it."""
    yield "If **a whole owner** is protected, noise grows with the largest owner. Keep at most τ records of each."
    if not answer.solution.is_of_data:
        yield Note("Set *Owners* under *More settings* to *Of the data in use*.", "info")
        yield Link("Data", "Bring owners", "upload")
        return
    yield answer.plots["owners-cap"]()
    if answer.solution.cap_choice is None:
        yield Note("Choose *A whole owner* under *More settings* for the best cap.")
    yield Label()


SECTIONS: Sections = {"Theory": {"Bounds": show_bounds, "Unequal owners": show_unequal}}


def build_answer(
    data: Dataset | Provenance, parameters: OwnersParameters, solution: OwnersSolution | None = None
) -> Answer:
    """Decide by the bounds who should train together: the users of the data as owners, or entered owners.

    Args:
        data: Whose users are the owners; where owners are entered, what kind of numbers these are.
        parameters: The question.
        solution: What `solve` found for both; computed here by default.

    Returns:
        The answer; its ``solution`` is an `OwnersSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data do not fit the question.

    Examples:
        >>> import dpcore as ss
        >>> answer = ss.owners(epsilon=1, owners=1000, records=1000, personal_part="fc1")
        >>> print(answer.headline, answer.bound)
        Join, and keep the personal part with its owner: full privacy would lose. 802

    Source: Huang et al. 2023, theorem 3.1 and appendix A.
    """
    solution = solve(data, parameters) if solution is None else solution
    plot_makers_by_key = {
        "owners-map": lambda: plots.plot_regime_map(solution),
        "owners-bounds": lambda: plots.plot_bounds(solution),
    }
    owner_dataset = data if solution.is_of_data and isinstance(data, Dataset) else None
    if owner_dataset is not None:
        plot_makers_by_key["owners-cap"] = lambda: plots.plot_cap(solution, owner_dataset)
    answer_assumptions: tuple[str, ...] = ASSUMPTIONS
    if solution.is_of_data:
        answer_assumptions += (
            "Every user is one owner. Bounds are for the mean loss over the records kept: a cap weighs the owners",
        )
    cap_choice = solution.cap_choice
    answer = Answer(
        headline=write_headline(solution),
        detail=write_detail(solution),
        numbers=standard.add_own_error(build_numbers(solution), solution.bound_at_own_cap, format_number),
        caveat=CAVEAT if solution.has_personal_part else "",
        assumptions=answer_assumptions,
        disclosure=solution.disclosure,
        facts=build_facts(solution),
        proofs=()
        if cap_choice is None
        else (("Cap per owner", cap_choice.certificate, "The search for the best cap ended."),),
        code=build_programs(solution, owner_dataset),
        near_optimal=""
        if cap_choice is None
        else standard.write_near_optimal_range(
            *cap_choice.near_optimal, "record", objective_text="the least bound on the loss"
        ),
        parameters=parameters,
        solution=solution,
        plots=plot_makers_by_key,
        sections=SECTIONS,
        make_methods=lambda: write_methods(solution),
    )
    collaboration = solution.collaboration
    num_owners, mean_records = float(collaboration.owners), float(collaboration.records)
    return add_json_writer(
        answer,
        owner_dataset,
        "training across data owners",
        lambda: _list_details(solution),
        question_entries={"source_of_bounds": "Huang et al. 2023, theorem 3.1 and appendix A"},
        data_entries={"num_owners": num_owners, "mean_records_kept": mean_records},
        schema="sweetspot/data-owners/1",
    )


def _list_details(solution: OwnersSolution) -> dict[str, object]:
    """Return the JSON entries of the answer by key: bounds, crossings, and the best cap if there is one."""
    entries_by_key: dict[str, object] = {
        **solution.parameters.model_sizes,
        "regime": solution.regime.name.lower(),
        "bound_alone": solution.bound_alone,
        "bound_without_privacy": float(bounds.bound_without_privacy(solution.collaboration)),
        "bound_that_says_nothing": solution.trivial_bound,
        "bound_joint": solution.bound_joint,
        "epsilon_star_joint": finite_or_none(solution.joint_paying_epsilon),
        "owners_needed_joint": solution.owners_needed_joint,
        "bound_full": solution.bound_full,
        "epsilon_star_full": finite_or_none(solution.full_paying_epsilon),
        "owners_needed_full": solution.owners_needed_full,
    }
    if (cap_choice := solution.cap_choice) is not None:
        entries_by_key |= {
            "max_records_per_owner": cap_choice.cap,
            "caps_within_5_percent": list(cap_choice.near_optimal),
            "proved_relative_gap": finite_or_none(cap_choice.certificate.relative_gap),
        }
    return entries_by_key
