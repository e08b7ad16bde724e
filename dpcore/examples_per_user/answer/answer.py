"""The answer for examples per user: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.common.documents import choice_document
from dpcore.common.text_fields import to_fields, to_values
from dpcore.dataset import Dataset
from dpcore.examples_per_user import options
from dpcore.examples_per_user.answer import plots, words
from dpcore.examples_per_user.answer.code import of_examples
from dpcore.examples_per_user.answer.found import NOT_COMPARED, ExamplesFound, find
from dpcore.examples_per_user.answer.methods import methods
from dpcore.examples_per_user.parameters import ASSUMPTIONS, NEIGHBOURS, NOT_COVERED, ExamplesParameters
from dpcore.report.csv_files import columns_csv, public_inputs


def build_answer(data: Dataset, parameters: ExamplesParameters, found: ExamplesFound | None = None) -> Answer:
    """How many examples of one user a private training may see, by the better of two ways of sampling.

    Args:
        data: How many examples users have.
        parameters: The question.
        found: What `find` or `quick` found for both; with the exact noise by default, which takes seconds.

    Returns:
        The answer; its ``found`` is an `ExamplesFound`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The expected batch is more than all examples.

    Source: Charles et al. 2024, arXiv 2407.07737, for the two ways; Choquette-Choo et al. 2023, arXiv 2310.15526, for
        the accounting; the estimate is derived in `dpcore.examples_per_user.options`.
    """
    of = find(data, parameters) if found is None else found
    kind = data.provenance
    return Answer(
        headline=words.headline(of),
        detail=words.detail(of, data),
        numbers=words.numbers(of),
        assumptions=(*ASSUMPTIONS, f"Not covered: {NOT_COVERED.removesuffix('.')}"),
        disclosure=kind,
        facts=words.facts(of),
        code=of_examples(of, kind),
        good_enough=words.good_enough(of),
        parameters=parameters,
        found=of,
        error=of.best.error,
        plots={
            "examples-error": lambda: plots.error(of, kind),
            "examples-noise": lambda: plots.noise(of, kind),
            "examples-kept": lambda: plots.kept(of, kind),
            "examples-multiplier": lambda: plots.multipliers(of, kind),
        },
        written=lambda: methods(of, data),
        choice=lambda: choice_json(data, of),
        files={
            "examples_per_user.csv": lambda: columns_csv(
                {
                    f"{way.value}_{name}" if name != "bound" else name: values
                    for way, tried in of.options.tried.items()
                    for name, values in options.columns_of(tried).items()
                },
                kind,
                public_inputs(to_fields(parameters)),
            )
        },
    )


def choice_json(data: Dataset, found: ExamplesFound) -> str:
    """Question and answer as JSON with all digits."""
    asked, of = found.parameters, found.best
    low, high = found.options.within()
    question = {
        **{name: value for name, value in to_values(asked).items() if name not in NOT_COMPARED},
        "neighbours": NEIGHBOURS.value,
        "source": "Charles et al. 2024, arXiv 2407.07737; Choquette-Choo et al. 2023, arXiv 2310.15526",
    }
    answer = {
        "way": of.way.value,
        "bound": of.bound,
        "noise_multiplier": words.above(of.multiplier),
        "noise_multiplier_is_at_most": of.at_most,
        "sampling_rate": of.rate,
        "divisor": of.divisor,
        "kept_share": of.kept_share,
        "noise": of.noise,
        "estimated_error": of.error,
        "bounds_within_5_percent": [low, high],
        "proof": "none: the error is an estimate",
    }
    assumed = (*ASSUMPTIONS, f"Not covered: {NOT_COVERED}")
    return choice_document(
        data, "training with a bounded number of examples per user", question, {}, answer, assumed
    )
