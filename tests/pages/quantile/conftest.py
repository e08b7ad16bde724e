"""Quantiles of the shop purchases: the problem, its answer and its figures."""

from __future__ import annotations

import functools
import json
import unittest.mock

import pytest
from plotly.io import to_json

from dpcore.common.programs import Program
from dpcore.data import samples
from dpcore.quantile import QuantileProblem
from dpcore.quantile import parameters as quantile_parameters
from dpcore.quantile.answer import build_answer
from dpcore.quantile.base_distribution import build_uniform_base
from dpcore.quantile.parameters import QuantileParameters
from dpcore.report import plotly_figures

SHOP = samples.load("shop-events")
BASE = build_uniform_base(0.0, 100.0)
ENDS = {"low": 0.0, "high": 100.0, "program": Program.BEST}


@pytest.fixture(scope="module", autouse=True)
def exponential_mechanism_alone():
    """Keep the best known mechanism to the exponential one, whose law the tests here compute by hand."""
    with unittest.mock.patch.object(quantile_parameters, "BEST_OF", (Program.BEST,)):
        yield


def problem(epsilon=1.0, q=0.5, base=BASE):
    return QuantileProblem(SHOP.values, q, epsilon, base)


@functools.cache
def answer_for(**settings):
    """Return the answer on the shop purchases."""
    ends = {} if settings.get("base") else ENDS
    return build_answer(
        SHOP, QuantileParameters(**{"epsilon": 1.0, "program": Program.BEST, **ends, **settings})
    )


def render(plot) -> dict:
    """Return the plot as Plotly gets it."""
    return json.loads(to_json(plotly_figures.draw_plot(plot)))
