"""The answer for examples per user: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.answer.answer import add_choice
from dpcore.common.text_fields import to_fields
from dpcore.dataset import Dataset
from dpcore.examples_per_user import options
from dpcore.examples_per_user.answer import plots, words
from dpcore.examples_per_user.answer.code import write_programs
from dpcore.examples_per_user.answer.found import NOT_COMPARED, ExamplesSolution, solve
from dpcore.examples_per_user.answer.methods import write_methods
from dpcore.examples_per_user.answer.sections import SECTIONS
from dpcore.examples_per_user.parameters import ASSUMPTIONS, NEIGHBOURS, NOT_COVERED, ExamplesParameters
from dpcore.report.csv_files import list_public_inputs, write_columns


def build_answer(
    dataset: Dataset, parameters: ExamplesParameters, solution: ExamplesSolution | None = None
) -> Answer:
    """Choose the examples per user of a private training, by the better of two ways of sampling.

    Args:
        dataset: How many examples users have.
        parameters: The question.
        solution: What `solve` or `solve_quickly` found for both; with the exact noise by default, which takes
            seconds.

    Returns:
        The answer; its ``solution`` is an `ExamplesSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The expected batch is more than all examples.

    Source: Charles et al. 2024, arXiv 2407.07737, for the two ways; Choquette-Choo et al. 2023, arXiv 2310.15526, for
        the accounting; the estimate is derived in `dpcore.examples_per_user.options`.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    disclosure = dataset.provenance
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, dataset),
        numbers=words.build_numbers(solution),
        assumptions=(*ASSUMPTIONS, f"Not covered: {NOT_COVERED.removesuffix('.')}"),
        disclosure=disclosure,
        facts=words.build_facts(solution),
        code=write_programs(solution, disclosure),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        error=solution.best.error,
        plots={
            "examples-error": lambda: plots.plot_error(solution, disclosure),
            "examples-noise": lambda: plots.plot_noise(solution, disclosure),
            "examples-kept": lambda: plots.plot_kept_share(solution, disclosure),
            "examples-multiplier": lambda: plots.plot_multipliers(solution, disclosure),
        },
        make_methods=lambda: write_methods(solution, dataset),
        sections=SECTIONS,
        files={
            "examples_per_user.csv": lambda: write_columns(
                {
                    f"{sampling.value}_{name}" if name != "bound" else name: values
                    for sampling, tried_options in solution.options.options_by_sampling.items()
                    for name, values in options.build_columns(tried_options).items()
                },
                disclosure,
                list_public_inputs(to_fields(parameters)),
            )
        },
    )
    return add_choice(
        answer,
        dataset,
        "training with a bounded number of examples per user",
        lambda: _list_details(solution),
        number_keys=("bound", "sampling_rate", "divisor", "kept_share", "noise"),
        question={
            "neighbours": NEIGHBOURS.value,
            "source": "Charles et al. 2024, arXiv 2407.07737; Choquette-Choo et al. 2023, arXiv 2310.15526",
        },
        left_out=NOT_COMPARED,
    )


def _list_details(solution: ExamplesSolution) -> dict[str, object]:
    best = solution.best
    return {
        "way": best.sampling.value,
        "noise_multiplier": words.round_up(best.multiplier),
        "noise_multiplier_is_at_most": best.at_most,
        "estimated_error": best.error,
        "bounds_within_5_percent": list(solution.options.find_near_optimal()),
        "proof": "none: the error is an estimate",
    }
