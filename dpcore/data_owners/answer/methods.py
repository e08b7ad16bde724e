"""What data owners have to say in a methods section."""

from __future__ import annotations

from dpcore.answer.methods import Chosen, Methods
from dpcore.common import wording
from dpcore.data_owners.answer.found import OwnersFound
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.regimes import Regime

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


def methods(found: OwnersFound) -> Methods:
    """What the bounds say of joining, and the best cap per owner where there is one."""
    p, of = found.parameters, found.of
    said = REGIMES.get(found.regime, PAYS)
    owners, records = (
        wording.counted(float(n), name) for n, name in ((of.owners, "owner"), (of.records, "record"))
    )
    said = f"There are {owners} with {records} each{' on average' if found.of_data else ''}. {said}"
    if found.cap is not None:
        said += f" At most {wording.counted(found.cap.cap, 'record')} of each owner were used."
    return Methods(
        guarantee="Whether data owners should train together was decided under joint differential privacy at "
        f"ε = {wording.entered(p.epsilon)} and δ = {wording.entered(p.delta)}, where two data sets are "
        f"neighbours if {UNITS[p.unit]}. Models have {wording.number(p.shared)} shared and "
        f"{wording.number(p.personal)} personal parameters.",
        found=said,
        withheld="Records per owner were bounded." if p.whole_owner else "",
        disclosure=found.disclosure,
        rule="The decision compares upper bounds on the excess loss of training alone, with joint privacy and "
        "with full privacy [@huang2023, theorem 3.1], whose hidden constants were taken as "
        f"{wording.entered(p.alone_constant)}, {wording.entered(p.sampling_constant)} and "
        f"{wording.entered(p.privacy_constant)}; it compares orders and promises no accuracy.",
        what="The comparison",
        chosen=Chosen.ON_DATA if found.of_data else Chosen.ENTERED,
    )
