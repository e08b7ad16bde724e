"""The sentences on a linear regression for a methods section."""

from __future__ import annotations

import math

from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import format_rounded_up
from dpcore.regression.answer.found import PROVED, RegressionSolution

NEIGHBOURS = (
    "if they differ in the labels of one user's rows; the features, and whose rows they are, are treated as "
    "public"
)


def write_methods(solution: RegressionSolution) -> Methods:
    """State the best weights with their noise, and the error of the coefficients."""
    p, estimate = solution.parameters, solution.best_estimate
    clipped = (
        f"Labels were clipped to [{wording.entered(p.lower)}, {wording.entered(p.upper)}], which is treated as "
        "public. The coefficients are the product of a matrix C with the labels, where C times the features "
        f"is the identity [@epasto2020, section 5], and {cite_noise('Laplace')} was added to each of them"
    )
    # A search that goes on, or was stopped, has not reached the minimum.
    proved = "" if estimate.certificate.proves(PROVED) else f" {estimate.certificate.sentence}"
    return Methods(
        guarantee=write_guarantee("The coefficients of a linear model were released", p.epsilon, NEIGHBOURS),
        sentences=f"{clipped}, of scale {format_rounded_up(estimate.noise.scale)}. The root of the total variance of "
        f"the coefficients, privacy noise included, is {wording.number(math.sqrt(estimate.variance))}.{proved}",
        public_sentences=f"{clipped}.",
        disclosure=solution.data.provenance,
        rule="C was chosen to minimise the total variance of the released coefficients under the linear "
        "model, over all "
        "such matrices; no bound on rows per user was set.",
        subject="The matrix",
    )
