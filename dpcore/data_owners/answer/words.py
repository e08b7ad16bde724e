"""Sentences and numbers on data owners. Pure functions of the solution."""

from __future__ import annotations

import math

from dpcore.answer import Number, Proof
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.data_owners import crossings
from dpcore.data_owners.answer.found import OwnersSolution
from dpcore.data_owners.bounds import ProtectedPart, Unit, bound_together
from dpcore.data_owners.parameters import ASSUMPTIONS, OwnersParameters
from dpcore.data_owners.regimes import Regime
from dpcore.report.content import Line

LEAKS = (
    "Your data are private, and so is what is read off them: neither ε nor joint privacy covers a decision or a cap "
    "that was chosen with them."
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
    """Describe the unit of protection where it is more than a record; begins with a comma."""
    unit = solution.parameters.unit
    if unit is Unit.RECORD:
        return ""
    if unit is Unit.OWNER:
        return ", every owner protected as a whole"
    return (
        f", every user's {wording.counted(float(solution.collaboration.records_per_unit), 'record')} "
        "protected as one"
    )


def write_needed_owners(solution: OwnersSolution) -> str:
    """Write how many owners must join before sharing pays; the sentence of the card."""
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
        return f"{opening} no number of owners of {records_text} suffices for sharing to pay {setting_text}."
    owners = wording.counted(solution.owners_joint, "owner")
    return f"{opening} {owners} of {records_text} must join before sharing pays {setting_text}."


def write_headline(solution: OwnersSolution) -> str:
    """Write the instruction in one sentence."""
    owners = wording.counted(float(solution.collaboration.owners), "owner")
    if float(solution.collaboration.owners) == 1.0:
        return "One owner has nobody to join: alone and together are the same problem."
    if solution.cap is not None:
        records = wording.counted(solution.cap.cap, "record")
        if solution.regime is Regime.ALONE:
            return f"Work alone; those who share keep at most {records} of each owner."
        return f"Join, and keep at most {records} of each owner."
    if solution.regime is Regime.ALONE:
        if solution.owners_joint is None:
            return "Work alone: sharing never pays, however many join."
        return f"Work alone: for {owners} sharing does not pay."
    if solution.regime is Regime.JOINT_ONLY:
        return "Join, and keep the personal part to yourselves: with full privacy you would lose."
    return f"Join: sharing pays for {owners}."


def list_proofs(solution: OwnersSolution) -> tuple[Proof, ...]:
    """Return the certificate of the best cap, where there is one."""
    if solution.cap is None:
        return ()
    return (("Cap per owner", solution.cap.certificate, "The search for the best whole cap ended."),)


def build_numbers(solution: OwnersSolution) -> tuple[Number, ...]:
    """Build the owners needed or the best cap, the bound, and the ε from which joining pays."""
    needed_owners = solution.owners_joint
    bound: tuple[Number, ...] = (
        Number(
            "Bound on excess loss",
            wording.number(solution.bound_joint),
            f"jointly ({wording.number(solution.bound_alone)} alone)",
            "With joint privacy: by how much the average loss of the models found exceeds that of the best ones, at "
            "most; orders only.",
            solution.bound_joint,
        ),
    )
    first_number = Number(
        "Owners needed",
        "none suffice" if needed_owners is None else wording.number(needed_owners),
        "",
        "The smallest number of owners like these for whom the bound of joint privacy is below that of working alone.",
        needed_owners,
        "owners",
    )
    if solution.cap is not None:
        first_number, bound = (
            Number(
                "Best bound on records",
                wording.counted(solution.cap.cap, "record"),
                "per owner",
                "The upper bound on records per owner, where a whole owner is protected.",
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
            "**The bound of joint privacy says nothing here**: no model has a larger excess loss than that."
        )
    sentences.extend(f"**{sentence}**" for sentence in solution.unmet_conditions)
    if solution.disclosure is Disclosure.PRIVATE:
        sentences.append(LEAKS)
    return " ".join(sentences)


def describe_near_optimal(solution: OwnersSolution) -> str:
    """Write which caps cost little, or from where on joining pays; empty if it never does."""
    if solution.cap is not None:
        low, high = solution.cap.near_optimal
        caps_text = f"only {wording.counted(low, 'record')}"
        if low < high:
            caps_text = f"any cap from {wording.number(low)} to {wording.counted(high, 'record')}"
        return f"{caps_text} stays within 5{wording.PERCENT} of the best bound."
    if solution.owners_joint is None or not math.isfinite(solution.epsilon_joint):
        return ""
    return (
        f"it pays from {wording.counted(solution.owners_joint, 'owner')}, ε = "
        f"{wording.number(solution.epsilon_joint)}, "
        f"or {_write_record_limit(solution)}."
    )


def _write_record_limit(solution: OwnersSolution) -> str:
    """Write from, or up to, how many records per owner joining pays."""
    if solution.parameters.whole_owner:
        largest_records = float(crossings.find_records_limit(solution.collaboration, ProtectedPart.JOINT))
        if math.isinf(largest_records):
            return "any number of records each"
        return f"up to {wording.counted(max(math.floor(largest_records), 0), 'record')} each"
    smallest_records = math.ceil(
        float(crossings.find_records_star(solution.collaboration, ProtectedPart.JOINT))
    )
    return f"{wording.counted(max(smallest_records, 1), 'record')} each"


def build_facts(solution: OwnersSolution) -> dict[str, str]:
    """Build the facts behind the answer, sentences by name."""
    collaboration = solution.collaboration
    sentences = {
        "What full privacy would cost": (
            "there is no personal part that joint privacy could keep from noise, so both are the same. Give it "
            "parameters and a diameter under *More settings* to see what joint privacy buys."
            if solution.parameters.personal == 0
            else f"its bound is {wording.number(solution.bound_full)}, "
            f"{wording.change(solution.bound_full, solution.bound_joint)} compared with "
            "joint privacy."
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
            "where a whole owner is protected, noise grows as its records do, and more records per owner speak "
            "for working alone."
        )
    if solution.gaining_owners is not None:
        limit, count = solution.gaining_owners
        sentences["Who gains by joining"] = (
            f"{wording.counted(count, 'owner')} of {wording.number(float(collaboration.owners))} "
            f"{wording.agreeing(count, 'has', 'have')} fewer than {wording.number(limit)} records: alone they "
            "would have a larger bound. The joint bound holds for the average owner, not for each."
        )
    if (
        solution.own_bound is not None
        and solution.parameters.own_cap is not None
        and solution.cap is not None
    ):
        sentences[f"Your bound on records, {wording.counted(solution.parameters.own_cap, 'record')}"] = (
            f"bound {wording.number(solution.own_bound)}, {wording.change(solution.own_bound, solution.cap.bound)} "
            "compared with the best bound on records."
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
            "Every user of the data in use is one owner. The bounds hold for the loss averaged over the records that "
            "are kept, so that a cap also says whose loss counts"
        )
    return (*ASSUMPTIONS, *data_assumptions)


def summarise_owners(solution: OwnersSolution) -> tuple[Line, ...]:
    """Summarise entered owners for a report."""
    return (
        Line("Owners", wording.number(solution.parameters.owners), solution.disclosure),
        Line("Records per owner", wording.number(solution.parameters.records), solution.disclosure),
    )
