"""The answer of *Join or train alone* as a JSON file."""

from __future__ import annotations

from dpcore.common.documents import finite_or_none, write_choice_document, write_document
from dpcore.common.privacy import Provenance
from dpcore.common.text_fields import to_values
from dpcore.data_owners import crossings
from dpcore.data_owners.bounds import (
    Collaboration,
    ProtectedPart,
    bound_alone,
    bound_together,
    bound_trivially,
    bound_without_privacy,
)
from dpcore.data_owners.parameters import ASSUMPTIONS, OwnersParameters
from dpcore.data_owners.regimes import find_regime
from dpcore.data_owners.unequal import CapChoice
from dpcore.dataset import Dataset

SCHEMA = "sweetspot/data-owners/1"


def owners_choice_json(
    dataset: Dataset | None,
    parameters: OwnersParameters,
    collaboration: Collaboration,
    cap: CapChoice | None,
    disclosure: Provenance,
) -> str:
    """Write the question, the bounds and the crossings as JSON.

    Args:
        dataset: Whose users are the owners; None where owners were entered.
        parameters: What was entered.
        collaboration: The owners, as entered or as in the data.
        cap: The best cap per owner, where one was asked for.
        disclosure: Of owners who were entered, and of what follows from them.
    """
    question = {
        **to_values(parameters),
        "source_of_bounds": "Huang et al. 2023, Learning across data owners with joint DP, theorem 3.1, appendix A",
    }
    answer: dict[str, object] = {
        "regime": find_regime(collaboration).name.lower(),
        "bound_alone": float(bound_alone(collaboration)),
        "bound_without_privacy": float(bound_without_privacy(collaboration)),
        "bound_that_says_nothing": float(bound_trivially(collaboration)),
    }
    for protected_part in ProtectedPart:
        answer |= {
            f"bound_{protected_part.value}": float(bound_together(collaboration, protected_part)),
            f"epsilon_star_{protected_part.value}": finite_or_none(
                float(crossings.find_epsilon_star(collaboration, protected_part))
            ),
            f"owners_needed_{protected_part.value}": crossings.find_owners_needed(
                collaboration, protected_part
            ),
        }
    if cap is not None:
        answer |= {
            "max_records_per_owner": cap.cap,
            "caps_within_5_percent": list(cap.near_optimal),
            "proved_relative_gap": finite_or_none(cap.certificate.relative_gap),
        }
    if dataset is not None:
        data = {"num_owners": float(collaboration.owners), "mean_records_kept": float(collaboration.records)}
        return write_choice_document(
            dataset, "training across data owners", question, data, answer, ASSUMPTIONS, SCHEMA
        )
    label = disclosure.label
    return write_document(
        SCHEMA,
        question={"release": "training across data owners", "label": label, **question},
        answer={"label": label, **answer},
        assumptions=list(ASSUMPTIONS),
    )
