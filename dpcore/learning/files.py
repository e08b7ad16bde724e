"""Files a person takes away. Every file carries the label of what it was computed from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpcore import learning
from dpcore.common.documents import certificate_fields, write_choice_document
from dpcore.common.text_fields import to_values
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.learning.error_bound import NEIGHBOURS, LearningCap


def learning_curves(problem: optimal_cap.BiasProblem, fractions: npt.ArrayLike) -> dict[str, FloatArray]:
    """Return the bound of a capped learner in its parts, and every bound on the bias (twice), as columns.

    Columns: ``cap_rows``, ``tau_0``, ``kept_share``, ``largest_share``, ``users_capped``, ``bias_twice``,
    ``finite_sample``, ``privacy_noise``, ``bound``, and ``twice_`` and its name for every bound on the bias. What
    does not apply is infinite.

    Args:
        problem: The question.
        fractions: tau_0 in (0, 1], shape (q,).
    """
    tau_0 = np.asarray(fractions, dtype=np.float64)
    at, parts = optimal_cap.statistics(problem.histogram, tau_0), optimal_cap.error_parts(problem, tau_0)
    return {
        "cap_rows": tau_0 * problem.histogram.num_rows,
        "tau_0": tau_0,
        "kept_share": at.kept_share,
        "largest_share": at.max_share,
        "users_capped": at.users_capped,
        "bias_twice": parts.bias,
        "finite_sample": parts.finite_sample,
        "privacy_noise": parts.privacy,
        "bound": parts.total,
        **{
            f"twice_{term.value}": 2.0 * values
            for term, values in optimal_cap.bias_terms(problem, tau_0).items()
        },
    }


def learning_choice_json(
    dataset: Dataset, parameters: learning.LearningParameters, choice: LearningCap, within: tuple[int, int]
) -> str:
    """Return the question of a capped learner and its answer as JSON; sections as in `mean_choice_json`.

    Args:
        dataset: The data.
        parameters: What was entered.
        choice: The best whole cap.
        within: (smallest, largest) cap within 5 % of the best bound.
    """
    privacy = parameters.privacy
    question = {
        **{k: v for k, v in to_values(parameters).items() if k not in learning.NOT_ABOUT_DATA},
        "bias_bound": parameters.bias.title,
        "bias_needs": parameters.bias.needs,
        "privacy_term": {
            "constant": privacy.constant,
            "power": privacy.power,
            "log_power": privacy.log_power,
        },
        "neighbours": NEIGHBOURS.value,
        "source": "Amin et al. 2019, Bounding User Contributions, theorem 1 and section 6",
    }
    answer = {
        "max_contributions": choice.max_contributions,
        "tau_0": choice.fraction,
        "bound": choice.total,
        "bias_twice": choice.bias,
        "finite_sample": choice.finite_sample,
        "privacy_noise": choice.privacy,
        "promises_something": choice.total < 1.0,
        "kept_share": choice.kept_share,
        "users_capped": choice.users_capped,
        "caps_within_5_percent": list(within),
        **certificate_fields(choice.certificate),
    }
    return write_choice_document(
        dataset, "learning under a bound", question, {}, answer, learning.ASSUMPTIONS
    )
