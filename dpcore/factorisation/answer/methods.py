"""What a recommender has to say in a methods section."""

from __future__ import annotations

import math

from dpcore.answer.methods import Methods, guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.factorisation.answer.found import FactorisationFound
from dpcore.factorisation.parameters import Algorithm, FactorisationParameters
from dpcore.factorisation.study import BASELINE, FACTORISATION

HOW = {FACTORISATION: "all ratings, with weights that fall with the noisy number of ratings of an item"}


def methods(found: FactorisationFound) -> Methods | None:
    """What the training recommends, with its error; None before anything was trained."""
    p, verdict, result = found.parameters, found.verdict, found.result
    if result is None or verdict is None:
        return None
    learned = _learned(p)
    kind = FACTORISATION if verdict.is_worth_it else BASELINE
    mean, half = (float(part[result.study.epsilons.index(verdict.epsilon), 0]) for part in result.mean(kind))
    spread = f" ± {half:.4f}" if math.isfinite(half) else ""
    runs = wording.counted(result.study.repeats, "simulated run")
    done = (
        f"{learned} It used {HOW[kind]}."
        if kind in HOW
        else "Noisy means of the items' ratings were released; users add offsets of their own, computed at home."
    )
    said = f"{done} The root mean squared error on ratings held out is {mean:.4f}{spread} ({runs})."
    return Methods(
        # That of the training which the choice and its error come from, not the one entered since, if they differ.
        guarantee=guarantee(
            "A recommender was released", verdict.epsilon, Neighbours.ADD_OR_REMOVE_USER, p.delta
        ),
        found=said,
        withheld=f"{learned} It was compared with noisy item means and users' own offsets.",
        disclosure=found.table.disclosure,
        rule="A factorisation with adaptive weights was compared with noisy item means and users' own offsets, on "
        "ratings held out; it was preferred only where the difference is larger than its interval.",
        what="The choice",
    )


def _learned(p: FactorisationParameters) -> str:
    sweeps = wording.counted(p.sweeps, "sweep")
    how = (
        "least squares on noisy sums [@chien2021]"
        if p.algorithm is Algorithm.STATISTICS
        else "noisy gradient steps"
    )
    return (
        f"Vectors of {p.dimension} entries were learned in {sweeps} of alternating minimisation "
        f"[@krichene2023, algorithm 3] by {how}, with squared weights of a user that sum "
        f"to at most {p.max_items:,}. Counts and sweeps together are "
        "one Gaussian mechanism [@dong2022], calibrated exactly [@balle2018]."
    )
