"""From how many users on a factorisation is worth it, in words."""

from __future__ import annotations

import numpy as np

from dpcore.common import wording
from dpcore.factorisation.growth import GrowthResult


def sentence(result: GrowthResult) -> str:
    """From how many users the factorisation is better."""
    epsilon = wording.entered(result.growth.study.epsilons[0])
    crossings = result.crossings()
    most = wording.number(result.growth.users[-1])
    if not crossings.size:
        return "No seed is complete, so nothing can be said of the number of users."
    reached = crossings[np.isfinite(crossings)]
    seeds = wording.counted(crossings.size, "seed")
    if not reached.size:
        return (
            f"At ε = {epsilon} a factorisation does not beat DP item means with own offsets, with up to {most} users "
            f"({seeds})."
        )
    typical = float(np.median(crossings))
    if not np.isfinite(typical):
        return (
            f"At ε = {epsilon} a factorisation beats DP item means with own offsets in {wording.number(reached.size)} "
            f"of {seeds} with up to {most} users."
        )
    low, high = float(crossings.min()), float(crossings.max())
    upper = wording.number(round(high, -2)) if np.isfinite(high) else f"more than {most}"
    below = "or fewer" if typical <= result.growth.users[0] else ""
    spread = (
        f", from {wording.number(round(low, -2))} to {upper} over {seeds}"
        if crossings.size > 1
        else ", one seed"
    )
    about = f"{wording.number(round(typical, -2))} users {below}".strip()
    return f"At ε = {epsilon} a factorisation beats DP item means with own offsets from **about {about}**{spread}."
