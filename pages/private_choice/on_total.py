"""What *Sum and count* finds for the same count, where that is another number on purpose."""

from __future__ import annotations

import streamlit as st

from dpcore.answer.section import Cached
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.dataset import Dataset
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from dpcore.total.answer import find
from dpcore.total.parameters import TotalParameters
from pages.shared.fields import fields, runner, setting
from pages.total.question import QUESTION

AIMS = {
    Measure.ABSOLUTE: "it minimises the expected error",
    Measure.RMSE: "it minimises the root mean squared error",
    Measure.BOUND: "it minimises bias plus mean noise",
}


def differing(data: Dataset, asked: PrivateParameters, number: float) -> str:
    """Both numbers and why they differ, one sentence; empty where *Sum and count* finds the same."""
    if asked.wanted is not Wanted.SUM:
        return ""
    fields.start(QUESTION, shares=False)
    measure = st.session_state[QUESTION.key("measure")]
    noise = setting.held(QUESTION, "mechanism")
    delta = setting.held(QUESTION, "delta") if noise is NoiseKind.GAUSSIAN else None
    try:
        there = TotalParameters(asked.epsilon, mechanism=noise, delta=delta, measure=measure)
    except InvalidInput:
        return ""
    found = runner.compute(Cached(find, (data, there))).bound
    same = measure is Measure.BOUND and not asked.margin
    same &= (noise, delta) == (asked.release_noise, asked.release_delta)
    if same or found == number:  # Of two bounds with the same error either is best.
        return ""
    of = f" with {noise.value} noise" if noise is not asked.release_noise else ""
    if noise is asked.release_noise and delta != asked.release_delta:
        of = f" with δ = {wording.entered(delta or 0.0)}"
    margin = f" and keeps a margin of {wording.counted(asked.margin, 'user')}" if asked.margin else ""
    return (
        f"*Sum and count* finds {wording.number(found)} for this release, this page {wording.number(number)}: "
        f"{AIMS[measure]}{of}, this page bias plus mean {asked.release_noise.value} noise{margin}."
    )
