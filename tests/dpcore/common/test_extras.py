"""A library that is not installed: one sentence that names its extra."""

from __future__ import annotations

import importlib
import sys

import pytest

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.common.extras import EXTRA_BY_MODULE, import_extra


@pytest.fixture(params=EXTRA_BY_MODULE)
def missing_library(request, monkeypatch):
    """A library of the extras that cannot be imported."""
    monkeypatch.setitem(sys.modules, request.param, None)
    return request.param


def test_a_missing_library_is_said_with_the_extra_that_brings_it(missing_library):
    with pytest.raises(
        InvalidInput,
        match=rf"{missing_library}, which is not installed.*\[{EXTRA_BY_MODULE[missing_library]}\]",
    ):
        import_extra(missing_library)


def test_a_library_that_is_there_is_imported():
    assert import_extra("openpyxl") is importlib.import_module("openpyxl")


def test_an_answer_without_plotly_refuses_figures_and_report_and_nothing_else(monkeypatch, tmp_path):
    answer = ss.count_bound([1, 2, 30], epsilon=1)
    monkeypatch.setitem(sys.modules, "plotly", None)
    for ask in (lambda: next(iter(answer.figures.values())), lambda: answer.report(tmp_path / "a.html")):
        with pytest.raises(InvalidInput, match=r"Install the extra `plots`"):
            ask()
    assert "Keep at most" in str(answer)
    assert answer.to_json()
