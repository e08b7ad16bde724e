"""The answer for examples per user and its tabs, as all readers take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcore.answer import section
from dpcore.answer.answer import Answer, Number, add_choice
from dpcore.common import wording
from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Stage
from dpcore.common.text_fields import to_fields
from dpcore.contributions import MAX_SIZE
from dpcore.dataset import Dataset
from dpcore.examples_per_user import owners
from dpcore.examples_per_user.answer import plots
from dpcore.examples_per_user.answer import solution as words
from dpcore.examples_per_user.answer.solution import ExamplesSolution, round_up, solve, solve_quickly
from dpcore.examples_per_user.candidates import collect_values, write_owners_program
from dpcore.examples_per_user.noise import bound_multiplier, find_multiplier
from dpcore.examples_per_user.parameters import ASSUMPTIONS, NEIGHBOURS, NOT_COVERED, ExamplesParameters
from dpcore.report.content import list_public_inputs, write_columns

PROTECTS = (
    "**This does not protect that somebody is there.** Which records are kept depends on all users, so who owns which "
    "record is public. Only the contents of one user's records are protected, zeroed or replaced by others."
)
FAIRNESS = (
    "The most records are not the best training: those of few owners are kept more often, and the model learns them "
    "more than others."
)


def read_ownership(dataset: Dataset) -> owners.Ownership | None:
    """Read the groups of the data as records, and their users as owners; None if there are no groups.

    Raises:
        InvalidInput: More pairs than are searched.
    """
    if dataset.pairs is None:
        return None
    if dataset.pairs.user_codes.size > owners.MAX_PAIRS:
        raise refuse(
            f"the data have {dataset.pairs.user_codes.size:,} pairs; at most {owners.MAX_PAIRS:,} are searched"
        )
    return owners.Ownership.from_pairs(dataset.pairs.task_codes, dataset.pairs.user_codes)


def build_numbers(selection: owners.RecordSelection, parameters: ExamplesParameters) -> tuple[Number, ...]:
    """Build the records kept and the proved bound on them; with their noise, if they are at least B."""
    numbers = [
        Number(
            "Records kept",
            wording.number(selection.count),
            f"of {wording.number(selection.ownership.num_records)}; at most {wording.number(selection.bound)} of a "
            "user",
            value=selection.count,
        ),
        Number(
            "No choice keeps more than",
            wording.number(selection.at_most),
            "proved" if selection.gap else "proved: this is the most",
            "By the prices of a linear program, added up in whole numbers.",
            selection.at_most,
            key="at_most",
        ),
    ]
    if parameters.batch_size <= selection.count:
        rate = min(float(f"{parameters.batch_size / selection.count:.3g}"), 1.0)
        zeroed_multiplier, replaced_multiplier = (
            bound_multiplier(
                selection.bound, rate, parameters.epsilon, parameters.delta, parameters.steps, is_replaced
            )
            for is_replaced in (False, True)
        )
        numbers += [
            Number(
                "Noise multiplier, contents zeroed",
                f"at most {zeroed_multiplier:.4g}",
                f"records drawn at rate {wording.number(rate)}",
                value=zeroed_multiplier,
            ),
            Number(
                "Noise multiplier, contents replaced",
                f"at most {replaced_multiplier:.4g}",
                wording.change(replaced_multiplier, zeroed_multiplier),
                "A replaced content turns a gradient around: k clip norms one way against k the other.",
                replaced_multiplier,
            ),
        ]
    return tuple(numbers)


def tabulate_owners(selection: owners.RecordSelection) -> dict[str, list[Any]]:
    """Tabulate the records by number of owners."""
    num_owners = selection.ownership.owners
    record_counts = np.bincount(num_owners)
    kept_counts = np.bincount(num_owners[selection.is_kept], minlength=record_counts.size)
    distinct = np.flatnonzero(record_counts)
    columns = {"Owners": distinct, "Records": record_counts[distinct], "Kept": kept_counts[distinct]}
    columns["Share kept"] = columns["Kept"] / columns["Records"]
    return {name: values.tolist() for name, values in columns.items()}


def solve_beside_page(dataset: Dataset, parameters: ExamplesParameters) -> section.Solver:
    """Solve with the quick bound on the noise, and search for the exact noise of the chosen bound."""
    quick: ExamplesSolution = yield section.Cached(solve_quickly, (dataset.histogram, parameters), kept=32)
    arguments = quick.noise_arguments
    if arguments is None:
        return section.SearchResult(quick)
    noise: section.SearchResult = yield section.Search(
        "exact_job",
        arguments,
        lambda tell, stop: find_multiplier(*arguments, stop),
        "Searching the least noise multiplier",
        is_complete=lambda sigma: sigma is not None,
        kept=32,
        seconds=0.05,
        soon=0.05,
        measured=False,
    )
    if noise.stage is not Stage.FINAL:
        return section.SearchResult(quick.with_noise(None), noise.stage)
    # Stopped or failed: the quick bound is what there is.
    return section.SearchResult(quick if noise.value is None else quick.with_noise(noise.value))


def show_noise(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the noise on the mean gradient."""
    yield (
        "Noise on a step's mean gradient, in norms of one example's gradient, is exact for the noise multiplier. If "
        "users are drawn, it depends on r, as a mean of diverse gradients is short and may be clipped to that. The "
        "shaded band reaches from diverse (below) to alike (above)."
    )
    yield section.Figures((answer.plots["examples-noise"](),), "xy")


def show_kept(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the share kept with the rate, and the noise multipliers."""
    yield section.Figures(
        (answer.plots["examples-kept"](), answer.plots["examples-multiplier"]()), titled=True
    )
    yield section.Note(
        "The noise multipliers are those of Rényi accounting, 6 to 12 % more than is needed; for the chosen bound the "
        "card has the exact one."
    )


def show_owners(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show which records to keep if a record has several owners, of the groups of the data or of invented ones."""
    yield (
        "A message has a sender and receivers, a photograph several people: a record may have **several owners**, and "
        "counts for each of them. How many records can be kept with at most k of each user?"
    )
    yield section.Note(
        "The data in use name no groups, so this is an invented table of 20,000 records. Load a table with a column "
        "that names the record (as group) and one that names its owners (as user) to see yours."
        if dataset.pairs is None
        else f"Each {dataset.pairs.label} of the data in use is taken as a record, its users as the owners."
    )
    ownership = yield section.Cached(read_ownership, (dataset,), kept=1)
    k = yield section.Integer("owners_bound", "Records per user k", (1, MAX_SIZE), 5)
    if k is None:
        return
    selection: owners.RecordSelection | None = yield section.Search(
        "owners_job",
        k,
        lambda tell, stop: owners.select_most(ownership or owners.generate_ownership(), k),
        "Choosing records",
        kept=8,
        seconds=0.3,
        soon=0.3,
        measured=False,
    )
    if selection is None:
        return
    yield section.Numbers(build_numbers(selection, answer.parameters))
    if answer.parameters.batch_size > selection.count:
        yield section.Note(
            "B is more than the records kept: no step can draw so many, and there is no noise to compute."
        )
    yield PROTECTS
    alt = "Records and records kept, by number of owners"
    yield section.Table(
        tabulate_owners(selection), alt, {"Share kept": "percent"}, key="examples_per_user_owners"
    )
    yield section.Note(f"{FAIRNESS} Found by {selection.order_name}.")
    yield section.Label(Disclosure.PUBLIC if dataset.pairs is None else dataset.provenance)
    yield section.Note(
        "The program keeps the records of a table of your own, with columns record and user, and proves it too."
    )
    program = write_owners_program(selection.bound).text
    yield section.File("Program for your table", "keep_records.py", lambda: program, Disclosure.PUBLIC)


SECTIONS: section.Sections = {
    "Studies": {"Noise": show_noise, "Examples kept": show_kept, "Several owners": show_owners},
}


def build_answer(
    dataset: Dataset, parameters: ExamplesParameters, solution: ExamplesSolution | None = None
) -> Answer:
    """Choose the examples per user of a private training, by the better of two ways of sampling.

    Args:
        dataset: How many examples users have.
        parameters: The settings.
        solution: Result of `solve` or `solve_quickly` for both; with the exact noise by default, which takes
            seconds.

    Returns:
        The answer; its ``solution`` is an `ExamplesSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The expected batch is more than all examples.

    Examples:
        >>> import dpcore as ss
        >>> answer = ss.examples_bound([1] * 90 + [10] * 10, epsilon=1)
        >>> answer.headline
        'Draw users, not examples, and average the gradients of at most 10 examples of each.'

    Source: Charles et al. 2024, arXiv 2407.07737, for the two ways; Choquette-Choo et al. 2023, arXiv 2310.15526, for
        the accounting; the estimate is derived in `dpcore.examples_per_user.candidates`.
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
        code=words.write_programs(solution, disclosure),
        near_optimal=words.write_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        error=solution.best.error,
        plots={
            "examples-error": lambda: plots.plot_error(solution, disclosure),
            "examples-noise": lambda: plots.plot_noise(solution, disclosure),
            "examples-kept": lambda: plots.plot_kept_share(solution, disclosure),
            "examples-multiplier": lambda: plots.plot_multipliers(solution, disclosure),
        },
        make_methods=lambda: words.write_methods(solution, dataset),
        sections=SECTIONS,
        files={"examples_per_user.csv": lambda: _write_candidates(solution, dataset)},
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
        left_out=words.NOT_COMPARED,
    )


def _write_candidates(solution: ExamplesSolution, dataset: Dataset) -> str:
    """Write the table of all bounds, both ways."""
    columns = {}
    for sampling, candidates in solution.comparison.candidates.items():
        columns["bound"] = collect_values(candidates, "bound")
        for name in ("kept_share", "rate", "multiplier", "noise", "error"):
            columns[f"{sampling.value}_{name}"] = collect_values(candidates, name)
    return write_columns(columns, dataset.provenance, list_public_inputs(to_fields(solution.parameters)))


def _list_details(solution: ExamplesSolution) -> dict[str, object]:
    best = solution.best
    return {
        "way": best.sampling.value,
        "noise_multiplier": round_up(best.multiplier),
        "noise_multiplier_is_at_most": best.is_upper_bound,
        "estimated_error": best.error,
        "bounds_within_5_percent": list(solution.comparison.find_near_optimal()),
        "proof": "none: the error is an estimate",
    }
