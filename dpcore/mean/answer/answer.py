"""The answer for a mean: one object that page, report, files, script and notebook read.

Beside the error it says the most that that can be whatever the values, and the mean over users.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from dpcore import mean
from dpcore.answer import Answer, Number, Plot, ReleaseSetting
from dpcore.answer.choice import add_choice
from dpcore.code import Released
from dpcore.code.forms import CodeChoice
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Dataset
from dpcore.mean import files, private_counts, worst_values
from dpcore.mean.answer import code, methods, plots, ranges, words
from dpcore.mean.answer.found import MeanFound, find, read_values
from dpcore.mean.answer.sections import SECTIONS
from dpcore.mean.answer.words import MEAN_OVER_USERS, UNIT
from dpcore.mean.parameters import MeanParameters, assumptions
from dpcore.mean.user_effects import bounded_mean


def build_answer(data: Dataset, parameters: MeanParameters, found: MeanFound | None = None) -> Answer:
    """Find the best bound on rows per user for a mean, and the best smooth weights.

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
    clamped, most = of.clamped, whatever(of)
    figures: dict[str, Callable[[], Plot]] = {
        "mean-error": lambda: plots.plot_errors(of, data, parameters.own_cap),
        "mean-weights": lambda: plots.plot_weights(of, data),
    }
    if clamped is not None:
        figures["mean-shift"] = lambda: plots.plot_shift(of, data, clamped)
    if data.values is not None and ranges.offered(data):
        at = functools.cache(lambda: ranges.ranges(data, of, parameters))
        figures["mean-range-upper"] = lambda: ranges.plot_upper(at(), data)
        figures["mean-range-lower"] = lambda: ranges.plot_lower(at(), data)
    answer = Answer(
        headline=words.headline(of),
        detail=words.detail(of, data, parameters),
        numbers=(*words.numbers(of), *_number_beside(of, most)),
        assumptions=assumptions(of.problem),
        disclosure=data.provenance,
        facts=words.facts(of, data, parameters) | _facts_beside(of, most),
        proofs=(
            ("Bound", of.cap.certificate, of.cap.ended),
            ("Smooth weights", of.smooth.certificate, of.smooth.ended),
        ),
        code=CodeChoice(lambda: code.of_mean(of, data, parameters)),
        near_optimal=words.good_enough(of),
        parameters=parameters,
        solution=of,
        plots=figures,
        make_methods=lambda: methods.methods(of, data, parameters),
        files={"mean_weights.csv": lambda: _weights_csv(of, data)},
        setting=setting(of, data, parameters),
        error_parts=words.error_parts(of),
        sections=SECTIONS,
    )
    return add_choice(
        answer,
        data,
        "mean",
        lambda: {
            "rows_kept_at_cap": float(data.histogram.kept_rows(of.cap.max_contributions)),
            "cap": files.error_parts(of.cap),
            "smooth": files.error_parts(of.smooth),
        },
        number_keys=("max_contributions", "threshold"),
        question=_PRIVATE_COUNTS if of.private_counts else _PUBLIC_COUNTS,
        data=_describe_values(of, data, parameters),
    )


_PUBLIC_COUNTS = {
    "neighbours": mean.NEIGHBOURS.value,
    "mechanism": "Laplace",
    "errors_are": "exact",
    "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 3",
}
_PRIVATE_COUNTS = {
    "neighbours": private_counts.NEIGHBOURS.value,
    "mechanism": "Laplace, on the pair of sums of w (y - L) and w (U - y)",
    "errors_are": private_counts.ERROR_IS,
    "source": "Sweet Spot; Epasto et al. 2020 has public counts only",
}


def _describe_values(solution: MeanFound, data: Dataset, parameters: MeanParameters) -> dict[str, object]:
    """Return the variance and the user share that the choice file states, each with its label."""
    problem, has_values = solution.problem, data.values is not None
    labels = {True: data.provenance.label, False: "public input"}
    source = parameters.variance_source
    reads_variance = has_values and source is mean.VarianceSource.FROM_VALUES
    # Without values the worst case, a public figure, stands in for them.
    is_worst_case = not has_values and source is mean.VarianceSource.FROM_VALUES
    description = {
        "value_variance": problem.value_variance,
        "value_variance_from": (mean.VarianceSource.WORST_CASE if is_worst_case else source).value,
        "value_variance_label": labels[reads_variance],
    }
    if problem.table is None:
        reads_share = has_values and parameters.likeness is mean.Likeness.FROM_VALUES
        description |= {"user_share": problem.user_share, "user_share_label": labels[reads_share]}
    return description


def setting(found: MeanFound, data: Dataset, parameters: MeanParameters) -> ReleaseSetting:
    """Return what the release is that the bound is for, with what is known of its values."""
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
        uses_values=read,
        is_table_mean=found.of_table,
        is_exact_for_values=problem.table is not None,
        user_share=problem.user_share,
    )


def _weights_csv(found: MeanFound, data: Dataset) -> str:
    """Return the weights per size for both choices, in the form of the setting."""
    arguments = (found.smooth.threshold, found.cap.max_contributions, data.provenance)
    if isinstance(found.problem, private_counts.PrivateCountsProblem):
        return files.pair_weights_csv(found.problem, *arguments)
    return files.weights_csv(found.problem, *arguments)


# --- What stands beside the error -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Whatever:
    """The most that the error about the mean of this table can be, whatever the values in [L, U]; root mean square.

    Attributes:
        cap: Of the best bound, its rows drawn at random.
        smooth: Of the best smooth weights.
        least: What no weights of users go below, and smooth weights of their own reach.
    """

    cap: float
    smooth: float
    least: float


def whatever(found: MeanFound) -> Whatever | None:
    """The figures of `dpcore.mean.worst_values`; None where the error is not that about the mean of this table.

    With private counts the ratio is linearised, and these are as good as its error.
    """
    if not found.of_table:
        return None
    problem = found.problem
    worst = worst_values.WorstProblem(problem.histogram, problem.epsilon, problem.value_bound)
    sizes = problem.histogram.sizes
    of_users = mean.user_weight(problem, found.smooth.threshold, sizes) * sizes
    return Whatever(
        float(worst_values.of_caps(worst, float(found.cap.max_contributions))),
        worst_values.of_weights(worst, of_users),
        worst_values.best_weights(worst).error,
    )


def _number_beside(found: MeanFound, most: Whatever | None) -> tuple[Number, ...]:
    """Return the one number that stands beside the error."""
    if most is None:
        return ()
    about = "The root mean square error of the best bound is at most this, whatever the values in [L, U]. No forecast."
    note = "at most, linearised" if found.private_counts else "at most"
    return (
        Number(
            "Error whatever the values",
            wording.number(most.cap),
            note,
            about,
            most.cap,
            UNIT,
            "error_whatever_the_values",
        ),
    )


def _facts_beside(found: MeanFound, most: Whatever | None) -> dict[str, str]:
    """Return the same in words, and what the mean over users takes."""
    said = {}
    if most is not None:
        cap, smooth, least = (wording.number(error) for error in (most.cap, most.smooth, most.least))
        about = (
            " between L and U" if found.clamped is None or not _clamped(found) else ", once they are clamped"
        )
        sentence = (
            f"the error about the mean of this table is not more than {cap} under the best bound and {smooth} under "
            f"its smooth weights, whatever the values{about}. Weights that are made for that reach {least}, and no "
            "weights of users go below. It is a limit and no forecast: it is met where heavy users have all their "
            "values at one end."
        )
        if isinstance(found.problem, private_counts.PrivateCountsProblem):
            share = wording.percent(found.problem.noise_share(found.cap.max_contributions))
            sentence += (
                " Counts are private: the ratio is linearised here too, and the noise on the sum of weights, "
                f"{share} of it, adds an error of its own."
            )
        said["Whatever the values"] = sentence
    said |= _at_which_mean(found)
    said[MEAN_OVER_USERS] = over_users_words(found)
    return said


def _at_which_mean(found: MeanFound) -> dict[str, str]:
    """Where counts are private the noise depends on the mean; the answer goes by that of all rows, whatever the bound.

    One factor for all bounds keeps the error a quadratic on every piece, so that the best bound is exact for it.
    """
    problem, clamped = found.problem, found.clamped
    if not isinstance(problem, private_counts.PrivateCountsProblem):
        return {}
    if problem.value_mean is None or clamped is None:
        return {"At which mean": "the noise is computed for the mean at which it is largest, L or U."}
    there = float(bounded_mean(clamped, float(found.cap.max_contributions)))
    moved = replace(problem, value_mean=min(max(there - clamped.lower, 0.0), problem.value_bound))
    change = wording.change(math.sqrt(moved.privacy_factor), math.sqrt(problem.privacy_factor))
    return {
        "At which mean": (
            f"the noise is computed at the mean of the rows, {wording.number(clamped.mean)}, for all bounds alike. At "
            f"that of the bounded rows, {wording.number(there)}, it is {change}."
        )
    }


def _clamped(found: MeanFound) -> bool:
    return found.clamped is not None and found.clamped.num_below + found.clamped.num_above > 0


def over_users(found: MeanFound) -> float:
    """The error of a release of the mean over users, in the values' unit: one value per user, their own mean.

    Nobody has more than one then, so that nothing is left out, and all of the error is noise: sqrt(2) B / (epsilon m)
    where counts are public. Clamping comes on top. With fewer rows of each user the noise is the same, as a user's mean
    may lie anywhere from L to U, and a draw of rows would only add to it.
    """
    # Everybody weighs 1 / m, of which the noise is that of a user who holds all the weight.
    return math.sqrt(found.problem._unit_noise) / found.problem.histogram.num_users


def over_users_words(found: MeanFound) -> str:
    """Return what is released for the mean over users, and its error."""
    error = wording.number(over_users(found))
    return (
        f"one value per user, the mean of the user's rows: nothing is left out, and the error is {error}, all of it "
        f"noise{', linearised' if found.private_counts else ''}; clamping comes on top. No bound on rows makes that "
        f"smaller. *Code for your library* writes it under *{MEAN_OVER_USERS}*."
    )
