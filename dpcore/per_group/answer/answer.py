"""The answer for a release per group: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from collections.abc import Callable

from dpcore.answer import Answer, Plot, ReleaseSetting, without_numbers
from dpcore.answer.section import BEHIND
from dpcore.common.errors import refuse
from dpcore.dataset import Dataset
from dpcore.per_group import files
from dpcore.per_group.answer import code, distribution, methods, plots, words
from dpcore.per_group.answer.distribution import DistributionFound
from dpcore.per_group.answer.found import PerGroupFound, find
from dpcore.per_group.answer.sections import build_sections, describe_inputs
from dpcore.per_group.parameters import PerGroupParameters, Statistic


def build_answer(
    data: Dataset, parameters: PerGroupParameters, found: PerGroupFound | DistributionFound | None = None
) -> Answer:
    """Find the best pair of bounds for a release per group, and the best bound on a user's whole vector.

    Args:
        data: Pairs of users and groups, or how these are distributed.
        parameters: The question.
        found: What `find`, or `distribution.find`, found for both; computed here by default.

    Returns:
        The answer; its ``found`` is a `PerGroupFound`, or a `DistributionFound` where only the distribution of pairs is
        known. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no groups, or do not fit the question.
    """
    if found is None:
        if data.pairs is None and data.pair_sizes is None:
            raise refuse("this needs a group in each row, and these data have none")
        found = distribution.find(data, parameters) if data.pairs is None else find(data, parameters)
    return _about(data, found) if isinstance(found, DistributionFound) else _answered(data, found)


def _answered(data: Dataset, of: PerGroupFound) -> Answer:
    kind, selected = data.provenance, of.selected
    drawn: dict[str, Callable[[], Plot]] = {
        "per-group-error": lambda: plots.over_both(of, kind),
        "per-group-sizes": lambda: plots.of_groups(of, kind),
    }
    if of.scaled is not None:
        drawn["per-group-norm"] = lambda: plots.over_norm(of, kind)
    if selected is not None and (selected.pair or selected.vector):
        drawn["per-group-survival"] = lambda: plots.survival(of, kind)
    if selected is not None and (selected.over_epsilon or selected.vector_over_epsilon):
        drawn["per-group-kept-over-epsilon"] = lambda: plots.over_epsilon(of, kind)[0]
        drawn["per-group-error-over-epsilon"] = lambda: plots.over_epsilon(of, kind)[1]
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of, data),
        numbers=words.numbers(of),
        assumptions=files.assumptions(of.parameters),
        disclosure=kind,
        facts=words.facts(of, data),
        proofs=words.proofs(of),
        code=code.of_found(of, data),
        near_optimal=words.good_enough(of),
        parameters=of.parameters,
        solution=of,
        plots=drawn,
        make_methods=lambda: methods.methods(of, data),
        choice=lambda: _choice(of, data),
        bound=of.pair,
        setting=_setting(of.parameters, of.value_column),
        error_parts=words.error_parts(of),
        sections=build_sections(of),
    )


def refused_answer(data: Dataset, parameters: PerGroupParameters) -> Answer:
    """Return what is said where the data refuse the question."""
    column = "" if data.pairs is None else data.pairs.value_column
    return without_numbers(parameters, data.provenance, _setting(parameters, column))


def _setting(asked: PerGroupParameters, column: str) -> ReleaseSetting:
    summed = asked.statistic not in (Statistic.ROWS, Statistic.USERS)
    return ReleaseSetting(
        code.RELEASED[asked.statistic],
        asked.epsilon,
        asked.neighbours,
        column if summed else "",
        asked.lower,
        asked.upper,
        noise=asked.noise,
        delta=asked.delta,
    )


def _choice(of: PerGroupFound, data: Dataset) -> str:
    pair, selected = of.pair, None
    rounded = None if pair is None else (pair.max_groups, pair.max_amount, pair.error)
    if of.selected is not None:
        released = 0.0 if of.selected.pair is None else of.selected.pair.expected_groups
        selected = released, of.selected.vector
    return files.per_group_choice_json(data, of.problem, of.choice, rounded, of.cap, of.radial, selected)


def _about(data: Dataset, of: DistributionFound) -> Answer:
    title = "Error over both bounds, about"
    return Answer(
        headline=distribution.headline(of),
        detail=distribution.detail(of),
        numbers=distribution.numbers(of),
        assumptions=files.summary_assumptions(of.parameters),
        disclosure=data.provenance,
        facts=distribution.facts(of),
        parameters=of.parameters,
        solution=of,
        plots={"per-group-error": lambda: plots.over_both(of, data.provenance, title)},
        make_methods=lambda: methods.of_distribution(of.parameters, of.pair, data),
        choice=lambda: files.summary_choice_json(data, of.problem, of.choice),
        setting=_setting(of.parameters, ""),
        sections={BEHIND: describe_inputs},
    )
