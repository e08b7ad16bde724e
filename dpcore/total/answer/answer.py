"""The answer for a sum or a count: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer, ReleaseSetting, without_numbers
from dpcore.answer.parts import BIAS, NOISE, build_error_parts
from dpcore.code import Quantity
from dpcore.code.forms import summed_column
from dpcore.dataset import Dataset
from dpcore.total import files
from dpcore.total.answer import code, methods, plots, signed_words, strategies, words
from dpcore.total.answer.found import SignedFound, TotalFound, find
from dpcore.total.nonnegative import NEIGHBOURS
from dpcore.total.parameters import ASSUMPTIONS, ASSUMPTIONS_ON_RELEASE, SIGNED_ASSUMPTIONS, TotalParameters


def build_answer(
    data: Dataset, parameters: TotalParameters, found: TotalFound | SignedFound | None = None
) -> Answer:
    """Find the best bound on what one user adds to a sum or a count; where totals have both signs, a range.

    Args:
        data: How many rows users have; where a column is added up, its total per user.
        parameters: The question.
        found: What `find` found for both; computed here by default.

    Returns:
        The answer; its ``found`` is a `TotalFound`, or a `SignedFound` where some total is negative. Plots are computed
        when they are asked for.

    Raises:
        InvalidInput: There is nothing to add up, or all of it is 0.

    Source: Amin et al. 2019, section 3.
    """
    of = find(data, parameters) if found is None else found
    return _signed(data, parameters, of) if isinstance(of, SignedFound) else _answered(data, parameters, of)


def _answered(data: Dataset, parameters: TotalParameters, of: TotalFound) -> Answer:
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of, data),
        numbers=words.numbers(of),
        assumptions=ASSUMPTIONS if data.release is None else ASSUMPTIONS_ON_RELEASE,
        disclosure=data.provenance,
        facts=words.facts(of, parameters.own_bound),
        proofs=(("Bound", of.choice.certificate, of.choice.ended),),
        code=code.of_total(of, data),
        near_optimal=words.good_enough(of),
        parameters=parameters,
        solution=of,
        plots={
            "total-error": lambda: plots.errors(of, data, parameters.own_bound),
            "total-measures": lambda: plots.measures(of, data),
            "total-strategies": lambda: strategies.plot(
                strategies.curves(of.problem, parameters.own_share), data, parameters.epsilon
            ),
        },
        make_methods=lambda: methods.methods(of, data, parameters),
        choice=lambda: files.total_choice_json(
            data, parameters, of.problem, of.choice, of.within, of.unit.column
        ),
        setting=_setting(parameters, of.unit.column or summed_column(data)),
        error_parts=build_error_parts(
            {BIAS: float(of.at_bound.bias), NOISE: float(of.at_bound.noise_by(parameters.measure))},
            of.unit.amount,
        )
        if of.choice.max_total > 0.0
        else (),
    )


def refused_answer(data: Dataset, parameters: TotalParameters, column: str) -> Answer:
    """Return what is said where the totals of a column refuse the question."""
    return without_numbers(parameters, data.provenance, _setting(parameters, column))


def _setting(parameters: TotalParameters, column: str) -> ReleaseSetting:
    return ReleaseSetting(
        Quantity.SUM if column else Quantity.COUNT,
        parameters.epsilon,
        NEIGHBOURS,
        column,
        noise=parameters.mechanism,
        delta=parameters.delta,
        measure=parameters.measure,
    )


def _signed(data: Dataset, parameters: TotalParameters, of: SignedFound) -> Answer:
    return Answer(
        headline=signed_words.headline(of),
        detail=signed_words.detail(of, data),
        numbers=signed_words.numbers(of),
        assumptions=SIGNED_ASSUMPTIONS,
        disclosure=data.provenance,
        facts=signed_words.facts(of, parameters),
        code=code.of_signed(of, data, parameters),
        parameters=parameters,
        solution=of,
        plots={"total-signed": lambda: plots.signed(of, data, parameters)},
        make_methods=lambda: methods.signed_methods(of, data, parameters),
        choice=lambda: files.signed_choice_json(data, parameters, of.held, of.clipped, of.entered),
        setting=_setting(parameters, of.unit.column),
    )
