"""The figures of the gain of weights over caps as data: on the person's data, and on instances. Pure."""

from __future__ import annotations

import functools

import numpy as np

from dpcore.answer import Axis, Curve, Level, Look, Mark, Plot, Scale
from dpcore.answer.axes import ROWS, bound_axis
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.gap_examples.answer.found import GapFound
from dpcore.gap_examples.batch import ratios
from dpcore.gap_examples.compare import PAPER_BOUND
from dpcore.gap_examples.parameters import THEOREM_G
from dpcore.gap_examples.two_groups import WorstNoise, fine_cap_limit, supremum, whole_cap_limit, worst_noise
from dpcore.gap_examples.two_groups import theorem_2 as theorem_2_at
from dpcore.mean.answer.found import bound_limits

RATIO = Axis(
    "ratio", "", (1.0, 1.62), Scale.LINEAR, "Variance with the best bound : best weights", number=".4f"
)
VARIANCE = Axis("variance", "1 = with the best weights", (0.9, 10.0), number=".4g")
SHARES = np.linspace(0.005, 0.995, 199)


def _most() -> Level:
    most = supremum().ratio
    return Level(f"At most {most:.5f}", most, dash="longdash")


def _shares(title: str) -> Axis:
    return Axis("share of light users", "", (0.0, 1.0), Scale.PERCENT, title, number=".1%")


# --- the person's data --------------------------------------------------------------------------------------


def variances(found: GapFound, data: Dataset) -> Plot:
    """The main figure: both variances in units of the best weights', with the proof's cap h'."""
    both, proof, paper = found.comparison, found.proof, PAPER_BOUND
    bounds = bound_limits(both.problem.histogram)
    return Plot(
        "gap-data",
        "Variance against the bound",
        f"The best bound has {both.ratio:.4f} times the variance of the best weights; the paper's proof takes "
        f"the bound {wording.number(proof.max_contributions)} with {proof.ratio:.3f} times, at most 4.",
        bound_axis(bounds),
        VARIANCE,
        {
            "bound": found.bounds,
            "cap_variance_over_best_weights": found.capped,
            "smooth_variance_over_best_weights": found.smoothed,
        },
        (
            Curve("Bounded rows", "bound", "cap_variance_over_best_weights", Look.CAP),
            Curve("Smooth weights", "bound", "smooth_variance_over_best_weights", Look.SMOOTH),
            _most(),
            Level(f"Paper: at most {wording.entered(paper)}", paper),
            Mark(f"Proof's h′ (case {proof.case})", proof.max_contributions, proof.ratio, Look.OWN, "square"),
            Mark("Best bound", both.cap.max_contributions, both.ratio, Look.CAP),
            Mark("Best weights, h*", both.smooth.threshold, 1.0, Look.SMOOTH, "circle"),
        ),
        data.provenance,
        main=True,
    )


# --- the steps on instances ---------------------------------------------------------------------------------


def theorem_2(g: int) -> Plot:
    """The ratio of the paper's example over g, on its way to 3/2."""
    over = np.unique(np.rint(np.geomspace(THEOREM_G[0], THEOREM_G[-1], 150)))
    here = theorem_2_at(g).ratio
    return Plot(
        "gap-theorem-2",
        "The paper's example",
        f"The ratio approaches 3/2; at g = {g:,} it is {here:.4f}.",
        Axis(
            "rows of a heavy user g",
            ROWS,
            (THEOREM_G[0] * 0.9, THEOREM_G[-1] * 1.05),
            title="g: rows of a heavy user (rows per user)",
            number=",",
        ),
        RATIO,
        {"g": over, "ratio": np.array([theorem_2_at(int(x)).ratio for x in over])},
        (
            Curve("3g / (2g + 1)", "g", "ratio", Look.CAP),
            Level("3/2", 1.5, dash="longdash"),
            Mark("Here", g, here, Look.CAP),
        ),
        Disclosure.PUBLIC,
        height=420,
    )


def two_groups(light_users: int, heavy_size: int, light_size: int) -> Plot:
    """The ratio over the share of light users, at rho = q m / s: two limits, and what these numbers of rows give."""
    sizes = [light_size, light_size * heavy_size]
    shares, here = np.stack((SHARES, 1.0 - SHARES), axis=-1), light_users / 100.0
    whole, fine = whole_cap_limit(SHARES), fine_cap_limit(SHARES)
    marks = [
        Mark(name, share, float(whole_cap_limit(share).ratio), look, symbol)
        for name, share, look, symbol in (
            ("The paper's, 3/2", 0.5, Look.OWN, "square"),
            ("Maximum, 25/16", 0.4, Look.USUAL, "star"),
        )
    ]
    finite = float(ratios(sizes, [here, 1.0 - here], (1.0 - here) / light_size).ratio)
    return Plot(
        "gap-two-groups",
        "Two groups",
        "Two groups of users: the ratio is largest, 25/16, where 40 % of the users are light.",
        _shares("Share p of light users"),
        RATIO,
        {
            "light_share": SHARES,
            "ratio_limit_whole_caps": whole.ratio,
            "best_cap_of_that_limit": whole.cap,
            "ratio_limit_finely_scaled_caps": fine.ratio,
            "ratio_with_these_rows": ratios(sizes, shares, (1.0 - SHARES) / light_size).ratio,
        },
        (
            Curve("R → ∞, s = 1", "light_share", "ratio_limit_whole_caps", Look.CAP),
            Curve(
                "R → ∞, s → ∞",
                "light_share",
                "ratio_limit_finely_scaled_caps",
                Look.USUAL,
                dash="dash",
                width=2,
            ),
            Curve(
                f"R = {heavy_size:,}, s = {light_size:,}",
                "light_share",
                "ratio_with_these_rows",
                Look.CAP,
                dash="dot",
                width=2,
            ),
            _most(),
            *marks,
            Mark("Here", here, finite, Look.CAP),
        ),
        Disclosure.PUBLIC,
        height=460,
    )


@functools.cache
def _worst() -> WorstNoise:
    return worst_noise(SHARES)


def worst_share(noise: float) -> float:
    """The share of light users at which the ratio is largest for this noise, to a thousandth."""
    shares = np.linspace(0.001, 0.999, 999)
    return float(shares[int(whole_cap_limit(shares, noise).ratio.argmax())])


def any_noise(noise: float) -> Plot:
    """The limit over the share of light users at the chosen noise, under the envelope of all noises."""
    best, limit, worst = supremum(), whole_cap_limit(SHARES, noise), _worst()
    share = worst_share(noise)
    return Plot(
        "gap-any-noise",
        "Any noise",
        f"Over all shares of light users and all noises the ratio stays below {best.ratio:.5f}.",
        _shares("Share p of light users"),
        RATIO,
        {
            "light_share": SHARES,
            "ratio_at_this_noise": limit.ratio,
            "best_cap": limit.cap,
            "ratio_at_worst_noise": worst.ratio,
            "worst_noise_per_user": worst.noise_per_user,
        },
        (
            Curve(f"t = {wording.entered(noise)}", "light_share", "ratio_at_this_noise", Look.CAP),
            Curve(
                "Worst t for each p",
                "light_share",
                "ratio_at_worst_noise",
                Look.USUAL,
                dash="dash",
                width=2,
                also=("t", "worst_noise_per_user"),
            ),
            Mark("Worst p at this t", share, float(whole_cap_limit(share, noise).ratio), Look.CAP),
            Mark(f"Largest of all: {best.ratio:.5f}", best.light_share, best.ratio, Look.USUAL, "star"),
        ),
        Disclosure.PUBLIC,
        height=460,
    )
