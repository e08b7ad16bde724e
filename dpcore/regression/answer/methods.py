"""What a linear regression has to say in a methods section."""

from __future__ import annotations

import math

from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import format_rounded_up
from dpcore.regression.answer.found import PROVED, RegressionFound

NEIGHBOURS = (
    "if they differ in the labels of one user's rows; the features, and whose rows they are, are treated as "
    "public"
)


def methods(found: RegressionFound) -> Methods:
    """Return the best weights with their noise, and the error of the coefficients."""
    p, ours = found.parameters, found.ours
    clipped = (
        f"Labels were clipped to [{wording.entered(p.lower)}, {wording.entered(p.upper)}], which is treated as "
        "public. The coefficients are the product of a matrix C with the labels, where C times the features "
        f"is the identity [@epasto2020, section 5], and {cite_noise('Laplace')} was added to each of them"
    )
    # A search that goes on, or was stopped, has not reached the minimum.
    proved = "" if ours.certificate.proves(PROVED) else f" {ours.certificate.sentence}"
    return Methods(
        guarantee=write_guarantee("The coefficients of a linear model were released", p.epsilon, NEIGHBOURS),
        sentences=f"{clipped}, of scale {format_rounded_up(ours.noise.scale)}. The root of the total variance of the "
        f"coefficients, privacy noise included, is {wording.number(math.sqrt(ours.variance))}.{proved}",
        public_sentences=f"{clipped}.",
        disclosure=found.data.provenance,
        rule="C was chosen to minimise the total variance of the released coefficients under the linear "
        "model, over all "
        "such matrices; no bound on rows per user was set.",
        subject="The matrix",
    )
