"""Sentences and numbers on data owners. Pure functions of the solution."""

from __future__ import annotations

import math

from dpcore.answer import Number, Proof, standard
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.data_owners import crossings
from dpcore.data_owners.answer.found import OwnersSolution
from dpcore.data_owners.bounds import ProtectedPart, Unit, bound_together
from dpcore.data_owners.parameters import ASSUMPTIONS, OwnersParameters
from dpcore.data_owners.regimes import Regime
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
        and solution.parameters.own_cap is not None
        and solution.cap is not None
    ):
        name = f"Your bound on records, {wording.counted(solution.parameters.own_cap, 'record')}"
        change = wording.change(solution.own_bound, solution.cap.bound)
        sentences[name] = standard.compare_own_bound("bound", wording.number(solution.own_bound), change)
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
