"""The answer of Data owners in words."""

from __future__ import annotations

import math

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.data_owners import crossings
from dpcore.data_owners.bounds import Private, Unit, together
from dpcore.data_owners.parameters import ASSUMPTIONS, OwnersParameters
from dpcore.data_owners.regimes import Regime
from dpcore.dataset import Dataset
from pages.data_owners import code
from pages.data_owners.answer import OwnersView

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


def parameters_words(view: OwnersView) -> str:
    """``7,850 shared and no personal parameters``."""
    shared, personal = view.parameters.shared, view.parameters.personal
    if personal == 0:
        return f"{wording.number(shared)} shared and no personal parameters"
    return f"{wording.number(shared)} shared and {wording.counted(personal, 'personal parameter')} each"


def unit_words(view: OwnersView) -> str:
    """What is protected as one, where it is more than a record; begins with a comma."""
    unit = view.parameters.unit
    if unit is Unit.RECORD:
        return ""
    if unit is Unit.OWNER:
        return ", every owner protected as a whole"
    return f", every user's {wording.counted(float(view.of.records_per_unit), 'record')} protected as one"


def needed_sentence(view: OwnersView) -> str:
    """How many owners must join before sharing pays; the sentence of the card."""
    of = view.of
    begin = f"By these bounds {constants_words(view.parameters)},"
    at = (
        f"at ε = {wording.entered(view.parameters.epsilon)}, δ = {wording.entered(view.parameters.delta)}, "
        f"{parameters_words(view)}{unit_words(view)}"
    )
    records = wording.counted(float(of.records), "record")
    each = f"{records} on average" if view.of_data else f"{records} each"
    if view.cap is not None:
        each = f"{records} kept on average"
    if view.owners_joint is None:
        return f"{begin} no number of owners of {each} suffices for sharing to pay {at}."
    owners = wording.counted(view.owners_joint, "owner")
    return f"{begin} {owners} of {each} must join before sharing pays {at}."


def headline(view: OwnersView) -> str:
    """What to do, one sentence."""
    owners = wording.counted(float(view.of.owners), "owner")
    if view.cap is not None:
        records = wording.counted(view.cap.cap, "record")
        if view.regime is Regime.ALONE:
            return f"Work alone; those who share keep at most {records} of each owner."
        return f"Join, and keep at most {records} of each owner."
    if view.regime is Regime.ALONE:
        if view.owners_joint is None:
            return "Work alone: sharing never pays, however many join."
        return f"Work alone: for {owners} sharing does not pay."
    if view.regime is Regime.JOINT_ONLY:
        return "Join, and keep the personal part to yourselves: with full privacy you would lose."
    return f"Join: sharing pays for {owners}."


def card(view: OwnersView, data: Dataset) -> Answer:
    """The answer in words."""
    return Answer(
        headline=headline(view),
        detail=_detail(view),
        numbers=_figures(view),
        facts=_facts(view),
        assumptions=_assumptions(view),
        proofs=()
        if view.cap is None
        else (("Cap per owner", view.cap.certificate, "The search for the best whole cap ended."),),
        disclosure=view.disclosure,
        code=code.of_owners(view, data),
        good_enough=_good_enough(view),
    )


def _figures(view: OwnersView) -> tuple[Number, ...]:
    needed = view.owners_joint
    bound: tuple[Number, ...] = (
        Number(
            "Bound on excess loss",
            wording.number(view.joint),
            f"jointly ({wording.number(view.alone)} alone)",
            "With joint privacy: by how much the average loss of the models found exceeds that of the best ones, at "
            "most; orders only.",
        ),
    )
    first = Number(
        "Owners needed",
        "none suffice" if needed is None else wording.number(needed),
        "",
        "The smallest number of owners like these for whom the bound of joint privacy is below that of working alone.",
        copied="" if needed is None else str(needed),
    )
    if view.cap is not None:
        first, bound = (
            Number(
                "Best cap",
                wording.counted(view.cap.cap, "record"),
                "per owner",
                "The upper bound on records per owner, where a whole owner is protected.",
                copied=str(view.cap.cap),
            ),
            (*bound, first),
        )
    full = view.owners_full
    return (
        first,
        *bound,
        Number(
            "ε from which joining pays",
            wording.number(view.epsilon_joint),
            f"({wording.number(view.epsilon_full)} with full privacy)",
        ),
        Number("Owners needed, full privacy", "none suffice" if full is None else wording.number(full)),
    )


def _detail(view: OwnersView) -> str:
    found = [needed_sentence(view)]
    if view.says_nothing:
        found.append(
            "**The bound of joint privacy says nothing here**: no model has a larger excess loss than that."
        )
    found.extend(f"**{sentence}**" for sentence in view.outside)
    if view.disclosure is Disclosure.PRIVATE:
        found.append(LEAKS)
    return " ".join(found)


def _good_enough(view: OwnersView) -> str:
    if view.cap is not None:
        low, high = view.cap.within
        which = f"only {wording.counted(low, 'record')}"
        if low < high:
            which = f"any cap from {wording.number(low)} to {wording.counted(high, 'record')}"
        return f"{which} stays within 5{wording.PERCENT} of the best bound."
    if view.owners_joint is None or not math.isfinite(view.epsilon_joint):
        return ""
    return (
        f"it pays from {wording.counted(view.owners_joint, 'owner')}, ε = {wording.number(view.epsilon_joint)}, "
        f"or {_records_words(view)}."
    )


def _records_words(view: OwnersView) -> str:
    """From, or up to, how many records per owner joining pays."""
    if view.parameters.whole_owner:
        most = float(crossings.records_limit(view.of, Private.JOINT))
        if math.isinf(most):
            return "any number of records each"
        return f"up to {wording.counted(max(math.floor(most), 0), 'record')} each"
    least = math.ceil(float(crossings.records_star(view.of, Private.JOINT)))
    return f"{wording.counted(max(least, 1), 'record')} each"


def _facts(view: OwnersView) -> dict[str, str]:
    of = view.of
    facts = {
        "What full privacy would cost": (
            "there is no personal part that joint privacy could keep from noise, so both are the same. Give it "
            "parameters and a diameter under *More settings* to see what joint privacy buys."
            if view.parameters.personal == 0
            else f"its bound is {wording.number(view.full)}, {wording.change(view.full, view.joint)} compared with "
            "joint privacy."
        ),
        "Half or double the owners": (
            ", ".join(
                f"{wording.number(owners)}: {wording.number(_joint_of(view, owners))}"
                for owners in (max(math.floor(float(of.owners) / 2), 1), 2 * float(of.owners))
            )
            + f" (bound of joint privacy; {wording.number(view.joint)} now)."
        ),
    }
    if view.parameters.whole_owner:
        facts["More records"] = (
            "where a whole owner is protected, noise grows as its records do, and more records per owner speak "
            "for working alone."
        )
    if view.smaller is not None:
        limit, count = view.smaller
        facts["Who gains by joining"] = (
            f"{wording.counted(count, 'owner')} of {wording.number(float(of.owners))} "
            f"{wording.agreeing(count, 'has', 'have')} fewer than {wording.number(limit)} records: alone they "
            "would have a larger bound. The joint bound holds for the average owner, not for each."
        )
    if view.own_bound is not None and view.parameters.own_cap is not None and view.cap is not None:
        facts[f"Your cap, {wording.counted(view.parameters.own_cap, 'record')}"] = (
            f"bound {wording.number(view.own_bound)}, {wording.change(view.own_bound, view.cap.bound)} "
            "compared with the best cap."
        )
    return facts


def _joint_of(view: OwnersView, owners: float) -> float:
    return float(together(view.of.having(owners=float(owners)), Private.JOINT))


def _assumptions(view: OwnersView) -> tuple[str, ...]:
    more = []
    if view.of_data:
        more.append(
            "Every user of the data in use is one owner. The bounds hold for the loss averaged over the records that "
            "are kept, so that a cap also says whose loss counts"
        )
    return (*ASSUMPTIONS, *more)
