"""The answer for data owners and its tabs, as all readers take them."""

from __future__ import annotations

import math

from dpcore.answer import standard
from dpcore.answer.answer import Answer, Number, Proof, add_choice
from dpcore.answer.methods import ChoiceSource, Methods
from dpcore.answer.section import Label, Link, Note, Parts, Sections, Table
from dpcore.code.choice import Choice, Code, Quantity
from dpcore.code.forms import CodeChoice, build_forms, fields_of_data
from dpcore.code.several import Several
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Neighbours, Provenance, write_file_name
from dpcore.common.strict_json import finite_or_none
from dpcore.data_owners import bounds
from dpcore.data_owners.answer import plots
from dpcore.data_owners.answer.solution import OwnersSolution, solve, tabulate_bounds
from dpcore.data_owners.bounds import (
    ProtectedPart,
    Unit,
    bound_together,
    bound_without_privacy,
    write_crossing_program,
)
from dpcore.data_owners.parameters import ASSUMPTIONS, OwnersParameters
from dpcore.data_owners.regimes import Regime
from dpcore.dataset import Dataset
from dpcore.report.content import Line

LEAKS = standard.warn_of_leak(
    "this decision and its cap were",
    remedy="Joint privacy does not cover it either. Decide without these data.",
)


def write_constants(parameters: OwnersParameters) -> str:
    """Write the constants of the bounds, in brackets."""
    constants = (parameters.alone_constant, parameters.sampling_constant, parameters.privacy_constant)
    if len(set(constants)) == 1:
        return f"(constants {wording.entered(constants[0])})"
    return f"(constants {', '.join(wording.entered(constant) for constant in constants)})"


def count_parameters(solution: OwnersSolution) -> str:
    """Count the parameters: ``7,850 shared and no personal parameters``."""
    shared, personal = solution.parameters.shared, solution.parameters.personal
    if personal == 0:
        return f"{wording.number(shared)} shared and no personal parameters"
    return f"{wording.number(shared)} shared and {wording.counted(personal, 'personal parameter')} each"


def describe_unit(solution: OwnersSolution) -> str:
    """Describe the unit of protection, beginning with a comma; empty for a record."""
    unit = solution.parameters.unit
    if unit is Unit.RECORD:
        return ""
    if unit is Unit.OWNER:
        return ", every owner protected"
    records = wording.counted(float(solution.collaboration.records_per_unit), "record")
    return f", every user's {records} protected as one"


def write_needed_owners(solution: OwnersSolution) -> str:
    """Write how many owners must join before sharing pays."""
    collaboration = solution.collaboration
    opening = f"By these bounds {write_constants(solution.parameters)},"
    setting_text = (
        f"at ε = {wording.entered(solution.parameters.epsilon)}, δ = {wording.entered(solution.parameters.delta)}, "
        f"{count_parameters(solution)}{describe_unit(solution)}"
    )
    records = wording.counted(float(collaboration.records), "record")
    records_text = f"{records} on average" if solution.is_of_data else f"{records} each"
    if solution.cap is not None:
        records_text = f"{records} kept on average"
    if solution.owners_joint is None:
        return f"{opening} sharing never pays for owners of {records_text} {setting_text}."
    owners = wording.counted(solution.owners_joint, "owner")
    return f"{opening} {owners} of {records_text} must join before sharing pays {setting_text}."


def write_headline(solution: OwnersSolution) -> str:
    """Write the instruction in one sentence."""
    owners = wording.counted(float(solution.collaboration.owners), "owner")
    if float(solution.collaboration.owners) == 1.0:
        return "One owner has nobody to join."
    if solution.cap is not None:
        records = wording.counted(solution.cap.cap, "record")
        if solution.regime is Regime.ALONE:
            return f"Work alone; if owners share, keep at most {records} of each."
        return f"Join, and keep at most {records} of each owner."
    if solution.regime is Regime.ALONE:
        if solution.owners_joint is None:
            return "Work alone: sharing never pays, however many join."
        return f"Work alone: for {owners} sharing does not pay."
    if solution.regime is Regime.JOINT_ONLY:
        return "Join, and keep the personal part private to its owner: with full privacy you would lose."
    return f"Join: sharing pays for {owners}."


def list_proofs(solution: OwnersSolution) -> tuple[Proof, ...]:
    """Return the certificate of the best cap, where there is one."""
    if solution.cap is None:
        return ()
    return (("Cap per owner", solution.cap.certificate, "The search for the best cap ended."),)


def build_numbers(solution: OwnersSolution) -> tuple[Number, ...]:
    """Build the owners needed or the best cap, the bound, and the ε from which joining pays."""
    needed_owners = solution.owners_joint
    bound: tuple[Number, ...] = (
        Number(
            "Bound on excess loss",
            wording.number(solution.bound_joint),
            f"jointly ({wording.number(solution.bound_alone)} alone)",
            "With joint privacy: the most by which the average loss of the models exceeds that of the best ones; "
            "orders only.",
            solution.bound_joint,
        ),
    )
    first_number = Number(
        "Owners needed",
        "none suffice" if needed_owners is None else wording.number(needed_owners),
        "",
        "The fewest owners like these for whom the bound of joint privacy is below that of working alone.",
        needed_owners,
        "owners",
    )
    if solution.cap is not None:
        first_number, bound = (
            Number(
                "Best bound on records",
                wording.counted(solution.cap.cap, "record"),
                "per owner",
                "The most records kept of an owner, where a whole owner is protected.",
                solution.cap.cap,
                "records per owner",
            ),
            (*bound, first_number),
        )
    needed_owners_full = solution.owners_full
    return (
        first_number,
        *bound,
        Number(
            "ε from which joining pays",
            wording.number(solution.epsilon_joint),
            f"({wording.number(solution.epsilon_full)} with full privacy)",
            value=solution.epsilon_joint,
            key="epsilon_star",
        ),
        Number(
            "Owners needed, full privacy",
            "none suffice" if needed_owners_full is None else wording.number(needed_owners_full),
            value=needed_owners_full,
            unit="owners",
        ),
    )


def write_detail(solution: OwnersSolution) -> str:
    """Write the sentences that qualify the headline, most important first."""
    sentences = [write_needed_owners(solution)]
    if solution.is_vacuous:
        sentences.append(
            "**The bound of joint privacy says nothing here**: no model has a larger excess loss."
        )
    sentences.extend(f"**{sentence}**" for sentence in solution.unmet_conditions)
    if solution.disclosure is Disclosure.PRIVATE:
        sentences.append(LEAKS)
    return " ".join(sentences)


def describe_near_optimal(solution: OwnersSolution) -> str:
    """Write which caps cost little, or from where on joining pays; empty if it never does."""
    if solution.cap is not None:
        return standard.write_range(*solution.cap.near_optimal, "record", objective="the least bound")
    if solution.owners_joint is None or not math.isfinite(solution.epsilon_joint):
        return ""
    return (
        f"it pays from {wording.counted(solution.owners_joint, 'owner')}, ε = "
        f"{wording.number(solution.epsilon_joint)}, or {_write_record_limit(solution)}."
    )


def _write_record_limit(solution: OwnersSolution) -> str:
    """Write from, or up to, how many records per owner joining pays."""
    if solution.parameters.whole_owner:
        largest_records = float(bounds.find_records_limit(solution.collaboration, ProtectedPart.JOINT))
        if math.isinf(largest_records):
            return "any number of records each"
        return f"up to {wording.counted(max(math.floor(largest_records), 0), 'record')} each"
    smallest_records = math.ceil(float(bounds.find_records_star(solution.collaboration, ProtectedPart.JOINT)))
    return f"{wording.counted(max(smallest_records, 1), 'record')} each"


def build_facts(solution: OwnersSolution) -> dict[str, str]:
    """Build the facts behind the answer, sentences by name."""
    collaboration = solution.collaboration
    sentences = {
        "What full privacy would cost": (
            "the same as joint privacy, as there is no personal part. Give it parameters and a diameter in *More "
            "settings* to see what joint privacy gains."
            if solution.parameters.personal == 0
            else f"a bound of {wording.number(solution.bound_full)}, "
            f"{wording.change(solution.bound_full, solution.bound_joint)} compared with joint privacy."
        ),
        "Half or double the owners": (
            ", ".join(
                f"{wording.number(owners)}: {wording.number(_joint_bound(solution, owners))}"
                for owners in (
                    max(math.floor(float(collaboration.owners) / 2), 1),
                    2 * float(collaboration.owners),
                )
            )
            + f" (bound of joint privacy; {wording.number(solution.bound_joint)} now)."
        ),
    }
    if solution.parameters.whole_owner:
        sentences["More records"] = (
            "if a whole owner is protected, noise grows with the records per owner, which favours working alone."
        )
    if solution.gaining_owners is not None:
        limit, count = solution.gaining_owners
        sentences["Who gains by joining"] = (
            f"{wording.counted(count, 'owner')} of {wording.number(float(collaboration.owners))} "
            f"{wording.agreeing(count, 'has', 'have')} fewer than {wording.number(limit)} records, so a larger bound "
            "alone. The joint bound holds for the average owner, not for each."
        )
    if (
        solution.own_bound is not None
        and solution.parameters.own_bound is not None
        and solution.cap is not None
    ):
        name = f"Your bound on records, {wording.counted(solution.parameters.own_bound, 'record')}"
        sentences[name] = standard.compare_own_bound(
            "bound", solution.own_bound, solution.cap.bound, wording.number
        )
    return sentences


def _joint_bound(solution: OwnersSolution, owners: float) -> float:
    """Compute the joint bound for another number of owners."""
    return float(bound_together(solution.collaboration.replace(owners=float(owners)), ProtectedPart.JOINT))


def list_assumptions(solution: OwnersSolution) -> tuple[str, ...]:
    """List the assumptions of the answer."""
    data_assumptions = []
    if solution.is_of_data:
        data_assumptions.append(
            "Every user of the data is one owner. The bounds hold for the mean loss over the records kept, so a cap "
            "also decides whose loss counts"
        )
    return (*ASSUMPTIONS, *data_assumptions)


def summarise_owners(solution: OwnersSolution) -> tuple[Line, ...]:
    """Summarise entered owners for a report."""
    return (
        Line("Owners", wording.number(solution.parameters.owners), solution.disclosure),
        Line("Records per owner", wording.number(solution.parameters.records), solution.disclosure),
    )


UNITS = {
    Unit.RECORD: "one record is replaced",
    Unit.USER: "all records of one user are replaced",
    Unit.OWNER: "all records of one data owner are replaced",
}
REGIMES = {
    Regime.ALONE: "By these bounds owners who work alone have the smaller error.",
    Regime.JOINT_ONLY: "By these bounds joint privacy pays for them, and full privacy does not.",
}
PAYS = "By these bounds training together pays for them."


def write_methods(solution: OwnersSolution) -> Methods:
    """Write the comparison of the bounds, and the best cap per owner where there is one."""
    parameters, collaboration = solution.parameters, solution.collaboration
    text = REGIMES.get(solution.regime, PAYS)
    owners, records = (
        wording.counted(float(n), name)
        for n, name in ((collaboration.owners, "owner"), (collaboration.records, "record"))
    )
    text = f"There are {owners} with {records} each{' on average' if solution.is_of_data else ''}. {text}"
    if solution.cap is not None:
        text += f" At most {wording.counted(solution.cap.cap, 'record')} of each owner were used."
    return Methods(
        guarantee="Whether data owners should train together was decided under joint differential privacy at "
        f"ε = {wording.entered(parameters.epsilon)} and δ = {wording.entered(parameters.delta)}. Two data sets are "
        f"neighbours if {UNITS[parameters.unit]}. Models have {wording.number(parameters.shared)} shared and "
        f"{wording.number(parameters.personal)} personal parameters.",
        sentences=text,
        public_sentences="Records per owner were bounded." if parameters.whole_owner else "",
        disclosure=solution.disclosure,
        rule="The decision compares upper bounds on the excess loss of training alone, with joint privacy and with "
        "full privacy [@huang2023, theorem 3.1]. It compares orders and promises no accuracy: the hidden constants "
        f"were taken as {wording.entered(parameters.alone_constant)}, {wording.entered(parameters.sampling_constant)} "
        f"and {wording.entered(parameters.privacy_constant)}.",
        subject="The comparison",
        choice_source=ChoiceSource.COMPUTED if solution.is_of_data else ChoiceSource.ENTERED,
    )


def choose_programs(solution: OwnersSolution, dataset: Dataset | None) -> CodeChoice:
    """Return the crossing as a program, and before it the cap where there is one."""
    programs: list[tuple[str, Choice | Several | Code]] = []
    if solution.cap is not None and dataset is not None:
        base = fields_of_data(dataset) | {"neighbours": Neighbours.REPLACE_USER}
        cap = build_forms(
            solution.parameters.epsilon,
            base,
            [
                (
                    f"Cap per owner, {wording.counted(solution.cap.cap, 'record')}",
                    Quantity.MODEL,
                    {"max_rows": solution.cap.cap},
                )
            ],
        )
        programs += [] if cap is None else list(cap.forms)
    label = f"Label of the numbers that it holds: {solution.disclosure.label}."
    program = write_crossing_program(solution.collaboration, label)
    file_name_with_label = f"{write_file_name(program.file_name.removesuffix('.py'), solution.disclosure)}.py"
    programs.append(
        ("When joining pays", Code(program.text, program.language, file_name_with_label, program.differences))
    )
    return CodeChoice(tuple(programs))


def show_bounds(answer: Answer, data: object) -> Parts:
    """Show every setting's bound, at both levels, beside what is printed."""
    yield answer.plots["owners-bounds"]()
    yield Table(
        tabulate_bounds(answer.solution),
        "Each setting's bound for one record and for the unit that is protected, beside the printed one",
        dict.fromkeys(("One record", "The unit protected", "As printed"), "%.4g"),
    )
    yield Note(
        "*As printed* stands only where the print is corrected. Constants are those entered; a map of orders, no "
        "forecast."
    )
    yield Label()


def show_unequal(answer: Answer, data: object) -> Parts:
    """Show what cap per owner is best, for the owners of the data."""
    yield (
        "Owners have unequal numbers of records. Where **a whole owner** is protected, one with many records sets the "
        "noise for all: keep at most τ records of each."
    )
    if not answer.solution.is_of_data:
        yield Note(
            "Set *Owners* under *More settings* to *Of the data in use*: then each user of those data is an owner. For "
            "a file, choose the column that names the owner as its user column.",
            "info",
        )
        yield Link("Your data", "Bring owners", "upload")
        return
    yield answer.plots["owners-cap"]()
    if answer.solution.cap is None:
        yield Note(
            "The question protects less than a whole owner, so that no cap is needed: it takes all records. Choose *A "
            "whole owner* under *More settings* for the best cap."
        )
    yield Label()


SECTIONS: Sections = {"Theory": {"Bounds": show_bounds, "Unequal owners": show_unequal}}


def build_answer(
    data: Dataset | Provenance, parameters: OwnersParameters, solution: OwnersSolution | None = None
) -> Answer:
    """Decide, by the bounds, who should train together.

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
        >>> answer = ss.owners(epsilon=1, owners=64, records=100)
        >>> print(answer.headline, answer.bound)
        Join: sharing pays for 64 owners. 37

    Source: Huang et al. 2023, theorem 3.1 and appendix A.
    """
    solution = solve(data, parameters) if solution is None else solution
    plot_makers = {
        "owners-map": lambda: plots.plot_regime_map(solution),
        "owners-bounds": lambda: plots.plot_bounds(solution),
    }
    owner_dataset = data if solution.is_of_data and isinstance(data, Dataset) else None
    if owner_dataset is not None:
        plot_makers["owners-cap"] = lambda: plots.plot_cap(solution, owner_dataset)
    answer = Answer(
        headline=write_headline(solution),
        detail=write_detail(solution),
        numbers=build_numbers(solution),
        assumptions=list_assumptions(solution),
        disclosure=solution.disclosure,
        facts=build_facts(solution),
        proofs=list_proofs(solution),
        code=choose_programs(solution, owner_dataset),
        near_optimal=describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots=plot_makers,
        sections=SECTIONS,
        make_methods=lambda: write_methods(solution),
    )
    owners = solution.collaboration
    return add_choice(
        answer,
        owner_dataset,
        "training across data owners",
        lambda: _list_details(solution),
        question={
            "source_of_bounds": "Huang et al. 2023, Learning across data owners with joint DP, theorem 3.1, appendix A"
        },
        data={"num_owners": float(owners.owners), "mean_records_kept": float(owners.records)},
        schema="sweetspot/data-owners/1",
    )


def _list_details(solution: OwnersSolution) -> dict[str, object]:
    details: dict[str, object] = {
        "regime": solution.regime.name.lower(),
        "bound_alone": solution.bound_alone,
        "bound_without_privacy": float(bound_without_privacy(solution.collaboration)),
        "bound_that_says_nothing": solution.trivial_bound,
        "bound_joint": solution.bound_joint,
        "epsilon_star_joint": finite_or_none(solution.epsilon_joint),
        "owners_needed_joint": solution.owners_joint,
        "bound_full": solution.bound_full,
        "epsilon_star_full": finite_or_none(solution.epsilon_full),
        "owners_needed_full": solution.owners_full,
    }
    if (cap := solution.cap) is not None:
        details |= {
            "max_records_per_owner": cap.cap,
            "caps_within_5_percent": list(cap.near_optimal),
            "proved_relative_gap": finite_or_none(cap.certificate.relative_gap),
        }
    return details
