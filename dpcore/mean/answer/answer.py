"""The answer for a mean: one object that page, report, files, script and notebook read."""

from __future__ import annotations

import functools
from collections.abc import Callable

from dpcore.answer import Answer, Plot, ReleaseSetting
from dpcore.code import Released
from dpcore.code.forms import CodeChoice
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean import files, private_counts
from dpcore.mean.answer import beside, code, methods, plots, ranges, words
from dpcore.mean.answer.found import MeanFound, find, read_values
from dpcore.mean.parameters import MeanParameters, assumptions


def answered(data: Dataset, parameters: MeanParameters, found: MeanFound | None = None) -> Answer:
    """The best bound on rows per user for a mean, and the best smooth weights.

    Args:
        data: How many rows users have; values, where there are some, give the variance that is asked for from them.
        parameters: The question.
        found: What `find` found for both; computed here by default.

    Returns:
        The answer; its ``found`` is a `MeanFound`. Plots are computed when they are asked for.

    Source: Epasto et al. 2020, section 3; where counts are private, `dpcore.mean.private_counts`; where users differ,
    `dpcore.mean.population`, `dpcore.mean.counts_only` and `dpcore.mean.this_table`.
    """
    of = find(data, parameters, read_values(data, parameters)) if found is None else found
    clamped, most = of.clamped, beside.whatever(of)
    figures: dict[str, Callable[[], Plot]] = {
        "mean-error": lambda: plots.errors(of, data, parameters.own_cap),
        "mean-weights": lambda: plots.weights(of, data),
    }
    if clamped is not None:
        figures["mean-shift"] = lambda: plots.shift(of, data, clamped)
    if data.values is not None and ranges.offered(data):
        at = functools.cache(lambda: ranges.ranges(data, of, parameters))
        figures["mean-range-upper"] = lambda: ranges.over_upper(at(), data)
        figures["mean-range-lower"] = lambda: ranges.over_lower(at(), data)
        figures["mean-range-map"] = lambda: ranges.over_both(at(), data)
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of, data, parameters),
        numbers=(*words.numbers(of), *beside.numbers(of, most)),
        assumptions=assumptions(of.problem),
        disclosure=data.provenance,
        facts=words.facts(of, data, parameters) | beside.facts(of, most),
        proofs=(
            ("Bound", of.cap.certificate, of.cap.ended),
            ("Smooth weights", of.smooth.certificate, of.smooth.ended),
        ),
        code=CodeChoice(lambda: code.of_mean(of, data, parameters)),
        good_enough=words.good_enough(of),
        parameters=parameters,
        found=of,
        plots=figures,
        written=lambda: methods.methods(of, data, parameters),
        choice=lambda: files.mean_choice_json(data, parameters, of.problem, of.cap, of.smooth),
        files={"mean_weights.csv": lambda: _weights_csv(of, data)},
        setting=setting(of, data, parameters),
        parts=words.error_parts(of),
    )


def setting(found: MeanFound, data: Dataset, parameters: MeanParameters) -> ReleaseSetting:
    """What the release is that the bound is for, with what is known of its values."""
    problem, width = found.problem, parameters.value_bound
    read = found.clamped is not None and words.looks(parameters)
    around = problem.value_mean if isinstance(problem, private_counts.PrivateCountsProblem) else None
    return ReleaseSetting(
        Released.MEAN,
        parameters.epsilon,
        Neighbours.ADD_OR_REMOVE_USER if found.private_counts else Neighbours.REPLACE_VALUES,
        column="" if data.values is None else data.values.column,
        lower=parameters.lower,
        upper=parameters.upper,
        variance_share=problem.value_variance / width**2,
        mean_share=None if around is None else around / width,
        values_read=read,
        of_table=found.of_table,
        on_values=problem.table is not None,
        user_share=problem.user_share,
    )


def _weights_csv(found: MeanFound, data: Dataset) -> str:
    """Weights per size for both choices, in the form of the setting."""
    arguments = (found.smooth.threshold, found.cap.max_contributions, data.provenance)
    if isinstance(found.problem, private_counts.PrivateCountsProblem):
        return files.pair_weights_csv(found.problem, *arguments)
    return files.weights_csv(found.problem, *arguments)
