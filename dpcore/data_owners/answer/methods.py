"""The methods section of data owners."""

from __future__ import annotations

from dpcore.answer.methods import ChoiceSource, Methods
from dpcore.common import wording
from dpcore.data_owners.answer.found import OwnersSolution
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
