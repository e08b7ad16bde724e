"""The answer for data owners in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

from dpcore.answer import Number, Proof
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.data_owners import crossings
from dpcore.data_owners.answer.found import OwnersFound
from dpcore.data_owners.bounds import Private, Unit, together
from dpcore.data_owners.parameters import ASSUMPTIONS, OwnersParameters
from dpcore.data_owners.regimes import Regime
from dpcore.report.content import Line

LEAKS = (
    "Your data are private, and so is what is read off them: neither ε nor joint privacy covers a decision or a cap "
    "that was chosen with them."
)


def constants_words(parameters: OwnersParameters) -> str:
    """Which constants the bounds have, in brackets."""
    constants = (parameters.alone_constant, parameters.sampling_constant, parameters.privacy_constant)
    if len(set(constants)) == 1:
        return f"(constants {wording.entered(constants[0])})"
    return f"(constants {', '.join(wording.entered(c) for c in constants)})"


def parameters_words(found: OwnersFound) -> str:
    """``7,850 shared and no personal parameters``."""
    shared, personal = found.parameters.shared, found.parameters.personal
    if personal == 0:
        return f"{wording.number(shared)} shared and no personal parameters"
    return f"{wording.number(shared)} shared and {wording.counted(personal, 'personal parameter')} each"


def unit_words(found: OwnersFound) -> str:
    """What is protected as one, where it is more than a record; begins with a comma."""
    unit = found.parameters.unit
    if unit is Unit.RECORD:
        return ""
    if unit is Unit.OWNER:
        return ", every owner protected as a whole"
    return f", every user's {wording.counted(float(found.of.records_per_unit), 'record')} protected as one"


def needed_sentence(found: OwnersFound) -> str:
    """How many owners must join before sharing pays; the sentence of the card."""
    of = found.of
    begin = f"By these bounds {constants_words(found.parameters)},"
    at = (
        f"at ε = {wording.entered(found.parameters.epsilon)}, δ = {wording.entered(found.parameters.delta)}, "
        f"{parameters_words(found)}{unit_words(found)}"
    )
    records = wording.counted(float(of.records), "record")
    each = f"{records} on average" if found.of_data else f"{records} each"
    if found.cap is not None:
        each = f"{records} kept on average"
    if found.owners_joint is None:
        return f"{begin} no number of owners of {each} suffices for sharing to pay {at}."
    owners = wording.counted(found.owners_joint, "owner")
    return f"{begin} {owners} of {each} must join before sharing pays {at}."


def headline(found: OwnersFound) -> str:
    """What to do, one sentence."""
    owners = wording.counted(float(found.of.owners), "owner")
    if float(found.of.owners) == 1.0:
        return "One owner has nobody to join: alone and together are the same problem."
    if found.cap is not None:
        records = wording.counted(found.cap.cap, "record")
        if found.regime is Regime.ALONE:
            return f"Work alone; those who share keep at most {records} of each owner."
        return f"Join, and keep at most {records} of each owner."
    if found.regime is Regime.ALONE:
        if found.owners_joint is None:
            return "Work alone: sharing never pays, however many join."
        return f"Work alone: for {owners} sharing does not pay."
    if found.regime is Regime.JOINT_ONLY:
        return "Join, and keep the personal part to yourselves: with full privacy you would lose."
    return f"Join: sharing pays for {owners}."


def proofs(found: OwnersFound) -> tuple[Proof, ...]:
    """What is said of the best cap, where there is one."""
    if found.cap is None:
        return ()
    return (("Cap per owner", found.cap.certificate, "The search for the best whole cap ended."),)


def numbers(found: OwnersFound) -> tuple[Number, ...]:
    """How many owners must join, or the best cap; the bound; and where joining begins to pay."""
    needed = found.owners_joint
    bound: tuple[Number, ...] = (
        Number(
            "Bound on excess loss",
            wording.number(found.joint),
            f"jointly ({wording.number(found.alone)} alone)",
            "With joint privacy: by how much the average loss of the models found exceeds that of the best ones, at "
            "most; orders only.",
            found.joint,
        ),
    )
    first = Number(
        "Owners needed",
        "none suffice" if needed is None else wording.number(needed),
        "",
        "The smallest number of owners like these for whom the bound of joint privacy is below that of working alone.",
        needed,
        "owners",
    )
    if found.cap is not None:
        first, bound = (
            Number(
                "Best bound on records",
                wording.counted(found.cap.cap, "record"),
                "per owner",
                "The upper bound on records per owner, where a whole owner is protected.",
                found.cap.cap,
                "records per owner",
            ),
            (*bound, first),
        )
    full = found.owners_full
    return (
        first,
        *bound,
        Number(
            "ε from which joining pays",
            wording.number(found.epsilon_joint),
            f"({wording.number(found.epsilon_full)} with full privacy)",
            value=found.epsilon_joint,
            key="epsilon_star",
        ),
        Number(
            "Owners needed, full privacy",
            "none suffice" if full is None else wording.number(full),
            value=full,
            unit="owners",
        ),
    )


def detail(found: OwnersFound) -> str:
    """What changes how the headline is to be read, most important first."""
    said = [needed_sentence(found)]
    if found.says_nothing:
        said.append(
            "**The bound of joint privacy says nothing here**: no model has a larger excess loss than that."
        )
    said.extend(f"**{sentence}**" for sentence in found.outside)
    if found.disclosure is Disclosure.PRIVATE:
        said.append(LEAKS)
    return " ".join(said)


def good_enough(found: OwnersFound) -> str:
    """Which caps cost little, or from where on joining pays; empty where it never does."""
    if found.cap is not None:
        low, high = found.cap.within
        which = f"only {wording.counted(low, 'record')}"
        if low < high:
            which = f"any cap from {wording.number(low)} to {wording.counted(high, 'record')}"
        return f"{which} stays within 5{wording.PERCENT} of the best bound."
    if found.owners_joint is None or not math.isfinite(found.epsilon_joint):
        return ""
    return (
        f"it pays from {wording.counted(found.owners_joint, 'owner')}, ε = {wording.number(found.epsilon_joint)}, "
        f"or {_records_words(found)}."
    )


def _records_words(found: OwnersFound) -> str:
    """From, or up to, how many records per owner joining pays."""
    if found.parameters.whole_owner:
        most = float(crossings.records_limit(found.of, Private.JOINT))
        if math.isinf(most):
            return "any number of records each"
        return f"up to {wording.counted(max(math.floor(most), 0), 'record')} each"
    least = math.ceil(float(crossings.records_star(found.of, Private.JOINT)))
    return f"{wording.counted(max(least, 1), 'record')} each"


def facts(found: OwnersFound) -> dict[str, str]:
    """What stands behind the answer, sentences by name."""
    of = found.of
    said = {
        "What full privacy would cost": (
            "there is no personal part that joint privacy could keep from noise, so both are the same. Give it "
            "parameters and a diameter under *More settings* to see what joint privacy buys."
            if found.parameters.personal == 0
            else f"its bound is {wording.number(found.full)}, {wording.change(found.full, found.joint)} compared with "
            "joint privacy."
        ),
        "Half or double the owners": (
            ", ".join(
                f"{wording.number(owners)}: {wording.number(_joint_of(found, owners))}"
                for owners in (max(math.floor(float(of.owners) / 2), 1), 2 * float(of.owners))
            )
            + f" (bound of joint privacy; {wording.number(found.joint)} now)."
        ),
    }
    if found.parameters.whole_owner:
        said["More records"] = (
            "where a whole owner is protected, noise grows as its records do, and more records per owner speak "
            "for working alone."
        )
    if found.smaller is not None:
        limit, count = found.smaller
        said["Who gains by joining"] = (
            f"{wording.counted(count, 'owner')} of {wording.number(float(of.owners))} "
            f"{wording.agreeing(count, 'has', 'have')} fewer than {wording.number(limit)} records: alone they "
            "would have a larger bound. The joint bound holds for the average owner, not for each."
        )
    if found.own_bound is not None and found.parameters.own_cap is not None and found.cap is not None:
        said[f"Your bound on records, {wording.counted(found.parameters.own_cap, 'record')}"] = (
            f"bound {wording.number(found.own_bound)}, {wording.change(found.own_bound, found.cap.bound)} "
            "compared with the best bound on records."
        )
    return said


def _joint_of(found: OwnersFound, owners: float) -> float:
    return float(together(found.of.having(owners=float(owners)), Private.JOINT))


def assumptions(found: OwnersFound) -> tuple[str, ...]:
    """What the answer rests on."""
    more = []
    if found.of_data:
        more.append(
            "Every user of the data in use is one owner. The bounds hold for the loss averaged over the records that "
            "are kept, so that a cap also says whose loss counts"
        )
    return (*ASSUMPTIONS, *more)


def summary(found: OwnersFound) -> tuple[Line, ...]:
    """Owners who were entered, as a report has them."""
    return (
        Line("Owners", wording.number(found.parameters.owners), found.disclosure),
        Line("Records per owner", wording.number(found.parameters.records), found.disclosure),
    )
