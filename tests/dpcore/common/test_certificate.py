"""Certificates: signed gaps, and refusals."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.certificate import Certificate
from dpcore.common.checks import CertificateError


def test_gap_is_relative_to_the_value() -> None:
    assert Certificate(4.0, 3.0, "").relative_gap == 0.25
    assert Certificate(4.0, 4.0, "").relative_gap == 0.0
    assert Certificate(0.0, 0.0, "").relative_gap == 0.0
    assert Certificate(-2.0, -3.0, "").relative_gap == 0.5


def test_undefined_counts_as_infinite() -> None:
    for value, bound in ((math.nan, 1.0), (1.0, math.nan), (1.0, -math.inf), (math.inf, 1.0), (0.0, -1.0)):
        certificate = Certificate(value, bound, "")
        assert certificate.relative_gap == math.inf
        assert not certificate.proves(1e9)
        assert certificate.sentence.startswith("Not proved")


def test_a_bound_above_the_value_raises() -> None:
    with pytest.raises(CertificateError, match="lies above the value"):
        Certificate(1.0, 1.1, "wrong")
    with pytest.raises(CertificateError):
        Certificate(1.0, 1.0 + 2e-9, "just beyond rounding")
    with pytest.raises(CertificateError):
        Certificate(0.0, 1e-300, "zero")


def test_rounding_is_let_pass_and_keeps_its_sign() -> None:
    certificate = Certificate(1.0, 1.0 + 1e-10, "")
    assert certificate.relative_gap == pytest.approx(-1e-10, rel=1e-5)
    assert certificate.proves(0.0)


@given(value=st.floats(1e-6, 1e6), gap=st.floats(2e-12, 0.99))
def test_the_sentence_never_claims_more_than_was_proved(value: float, gap: float) -> None:
    certificate = Certificate(value, value * (1.0 - gap), "because")
    match = re.search(r"more than ([\d.e−]+)\s(%|\(relative\))", certificate.sentence)
    assert match, certificate.sentence
    stated_gap = float(match[1].replace("−", "-")) / (100.0 if match[2] == "%" else 1.0)
    assert stated_gap >= certificate.relative_gap * (1.0 - 1e-9)
    assert stated_gap <= certificate.relative_gap * 1.11  # two digits, rounded up


def test_proved_best() -> None:
    assert Certificate(1.0, 1.0, "a dual bound").sentence == "Proved best to within rounding: a dual bound."
