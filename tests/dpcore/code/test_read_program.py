"""What a program passes to its library, as objects."""

from __future__ import annotations

import math

import opendp.prelude as dp
import polars as pl
import pytest

import dpcore as ss
from dpcore.code import write
from dpcore.code.read_program import build_query, read_parameters
from dpcore.common.checks import InvalidInput
from dpcore.common.programs import Program
from tests.dpcore.code.specs import SPEC_BY_NAME, run_program

dp.enable_features("contrib")


@pytest.mark.long_but("sum, Gaussian", "count", "mean, cap")
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "name",
    ["count", "count, Gaussian", "sum", "sum, both signs", "sum, Gaussian", "mean, cap", "mean, smooth"],
)
def test_a_query_has_the_noise_of_the_program(name: str) -> None:
    choice = SPEC_BY_NAME[name]
    ran = run_program(choice, Program.OPENDP)
    loss = {"rho": 0.01} if choice.delta else {"epsilon": 0.5}
    own_query = build_query(write(choice, Program.OPENDP).text, make_context(ran, **loss))
    written, own = (float(query.summarize()["scale"].item()) for query in (ran["query"], own_query))
    if not choice.delta:  # The own context has half of the budget.
        assert own == pytest.approx(2.0 * written, rel=1e-9)
    if name == "count":
        assert own == pytest.approx(7 / 0.5)
    if name == "count, Gaussian":
        assert own == pytest.approx(7 / math.sqrt(2 * 0.01), rel=1e-6)


def make_context(ran: dict[str, object], **loss: float) -> dp.Context:
    """Return a context on the lines of a program that ran."""
    lines: pl.LazyFrame = ran.get("lines", ran["events"])  # type: ignore[assignment]
    return dp.Context.compositor(
        data=lines.collect().lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("privacy_unit")),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=(), max_length=2**32 - 1)],
    )


def test_an_answer_gives_query_and_parameters() -> None:
    users = [f"u{index % 50}" for index in range(500)]
    reply = ss.count_bound([10] * 50, epsilon=1, disclosure="public")
    context = make_context({"events": pl.LazyFrame({"privacy_unit": users})}, epsilon=1.0)
    assert reply.to_opendp(context).summarize()["scale"].item() == pytest.approx(reply.bound)
    accountant, params = reply.parameters_for("pipelinedp").values()
    assert accountant == {"total_epsilon": 1.0, "total_delta": 0.0}
    assert params == {"noise_kind": "LAPLACE", "metrics": ["COUNT"], "max_contributions": reply.bound}
    tumult = reply.parameters_for("Tumult")
    assert tumult == {
        "PureDPBudget": {"epsilon": 1.0},
        "MaxRowsPerID": {"max": reply.bound},
        "count": {"name": "rows"},
    }


@pytest.mark.parametrize(
    "name", ["mean, cap, private counts", "groups", "means per group", "groups, scaled", "model"]
)
def test_what_is_no_query_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="Use its code"):
        build_query(write(SPEC_BY_NAME[name], Program.OPENDP).text, None)


def test_other_libraries_have_no_parameters() -> None:
    with pytest.raises(InvalidInput, match="pipelinedp and tumult"):
        read_parameters("", "bigquery")


@pytest.mark.parametrize("library", [Program.PIPELINEDP, Program.TUMULT])
def test_every_bound_stands_among_the_parameters(library: Program) -> None:
    for name, choice in SPEC_BY_NAME.items():
        if not (text := write(choice, library).text) or name == "model":
            continue
        values = [v for given in read_parameters(text, library.name.lower()).values() for v in given.values()]
        bounds = choice.max_rows, choice.max_groups, choice.max_total
        assert all(bound in values for bound in bounds if bound is not None), name
        assert not [v for v in values if isinstance(v, str) and any(c in v for c in "*-+/")], name
