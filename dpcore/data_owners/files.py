"""The answer of Data owners as JSON that a person takes away."""

from __future__ import annotations

from dpcore.common.documents import choice_document, document, finite
from dpcore.common.privacy import Provenance
from dpcore.common.text_fields import to_values
from dpcore.data_owners import crossings
from dpcore.data_owners.bounds import Collaboration, Private, alone, together, trivial, without_privacy
from dpcore.data_owners.parameters import ASSUMPTIONS, OwnersParameters
from dpcore.data_owners.regimes import regime_of
from dpcore.data_owners.unequal import CapChoice
from dpcore.dataset import Dataset

SCHEMA = "sweetspot/data-owners/1"


def owners_choice_json(
    dataset: Dataset | None,
    parameters: OwnersParameters,
    of: Collaboration,
    cap: CapChoice | None,
    disclosure: Provenance,
) -> str:
    """The question, the bounds and the crossings.

    Args:
        dataset: Whose users are the owners; None where owners were entered.
        parameters: What was entered.
        of: The owners, as entered or as in the data.
        cap: The best cap per owner, where one was asked for.
        disclosure: Of owners who were entered, and of what follows from them.
    """
    question = {
        **to_values(parameters),
        "source_of_bounds": "Huang et al. 2023, Learning across data owners with joint DP, theorem 3.1, appendix A",
    }
    answer: dict[str, object] = {
        "regime": regime_of(of).name.lower(),
        "bound_alone": float(alone(of)),
        "bound_without_privacy": float(without_privacy(of)),
        "bound_that_says_nothing": float(trivial(of)),
    }
    for private in Private:
        answer |= {
            f"bound_{private.value}": float(together(of, private)),
            f"epsilon_star_{private.value}": finite(float(crossings.epsilon_star(of, private))),
            f"owners_needed_{private.value}": crossings.owners_needed(of, private),
        }
    if cap is not None:
        answer |= {
            "max_records_per_owner": cap.cap,
            "caps_within_5_percent": list(cap.within),
            "proved_relative_gap": finite(cap.certificate.relative_gap),
        }
    if dataset is not None:
        data = {"num_owners": float(of.owners), "mean_records_kept": float(of.records)}
        return choice_document(
            dataset, "training across data owners", question, data, answer, ASSUMPTIONS, SCHEMA
        )
    label = disclosure.label
    return document(
        SCHEMA,
        question={"release": "training across data owners", "label": label, **question},
        answer={"label": label, **answer},
        assumptions=list(ASSUMPTIONS),
    )
