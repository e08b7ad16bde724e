"""The answer for examples per user and its tabs, as all readers take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.answer.answer import Answer, Number, add_choice
from dpcore.answer.section import (
    Cached,
    Figures,
    File,
    Found,
    Integer,
    Label,
    Note,
    Numbers,
    Parts,
    Search,
    Sections,
    Solver,
    Table,
)
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.checks import refuse
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import to_fields
from dpcore.contributions import MAX_SIZE
from dpcore.dataset import Dataset
from dpcore.examples_per_user import options
from dpcore.examples_per_user.answer import plots
from dpcore.examples_per_user.answer import solution as answer_solution
from dpcore.examples_per_user.answer.solution import (
    NOT_COMPARED,
    ExamplesSolution,
    solve,
    solve_quickly,
    write_methods,
    write_programs,
)
from dpcore.examples_per_user.noise import bound_multiplier
from dpcore.examples_per_user.options import write_owners_program as write_owners_program
from dpcore.examples_per_user.owners import (
    MAX_PAIRS,
    Ownership,
    RecordSelection,
    generate_ownership,
    select_most,
)
from dpcore.examples_per_user.parameters import ASSUMPTIONS, NEIGHBOURS, NOT_COVERED, ExamplesParameters
from dpcore.report.document import list_public_inputs, write_columns

PROTECTS = (
    "**This does not protect that somebody is there.** Which records are kept depends on all users, so who owns which "
    "record is public. Only the contents of one user's records are protected, zeroed or replaced by others."
)
FAIRNESS = (
    "The most records are not the best training: those of few owners are kept more often, and the model learns them "
    "more than others."
)


def read_ownership(dataset: Dataset) -> Ownership | None:
    """Read the groups of the data as records, and their users as owners; None if there are no groups.

    Raises:
        InvalidInput: More pairs than are searched.
    """
    if dataset.pairs is None:
        return None
    if dataset.pairs.user_codes.size > MAX_PAIRS:
        raise refuse(
            f"the data have {dataset.pairs.user_codes.size:,} pairs; at most {MAX_PAIRS:,} are searched"
        )
    return Ownership.from_pairs(dataset.pairs.task_codes, dataset.pairs.user_codes)


@dataclass(frozen=True)
class OwnersNoise:
    """The noise multipliers of sampling the selected records.

    Attributes:
        rate: q.
        zeroed_multiplier: Where one user's contents are zeroed; at most, by Rényi accounting.
        replaced_multiplier: Where they are replaced by others; likewise.
    """

    rate: float
    zeroed_multiplier: float
    replaced_multiplier: float


def compute_noise(selection: RecordSelection, parameters: ExamplesParameters) -> OwnersNoise | None:
    """Compute the noise for these records; None if B is more than all of them."""
    if parameters.batch_size > selection.count:
        return None
    rate = min(float(f"{parameters.batch_size / selection.count:.3g}"), 1.0)
    zeroed_multiplier, replaced_multiplier = (
        bound_multiplier(
            selection.bound,
            rate,
            parameters.epsilon,
            parameters.delta,
            parameters.steps,
            is_replaced=is_replaced,
        )
        for is_replaced in (False, True)
    )
    return OwnersNoise(rate, zeroed_multiplier, replaced_multiplier)


def build_numbers(selection: RecordSelection, noise: OwnersNoise | None) -> tuple[Number, ...]:
    """Build the records kept, the proved bound on them, and the noise."""
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
    if noise is not None:
        numbers += [
            Number(
                "Noise multiplier, contents zeroed",
                f"at most {noise.zeroed_multiplier:.4g}",
                f"records drawn at rate {wording.number(noise.rate)}",
                value=noise.zeroed_multiplier,
            ),
            Number(
                "Noise multiplier, contents replaced",
                f"at most {noise.replaced_multiplier:.4g}",
                wording.change(noise.replaced_multiplier, noise.zeroed_multiplier),
                "A replaced content turns a gradient around: k clip norms one way against k the other.",
                noise.replaced_multiplier,
            ),
        ]
    return tuple(numbers)


def tabulate_owners(selection: RecordSelection) -> dict[str, list[object]]:
    """Tabulate the records by number of owners."""
    columns = selection.count_by_owners()
    kept_share = columns["kept"] / np.maximum(columns["records"], 1)
    return {
        "Owners": columns["owners"].tolist(),
        "Records": columns["records"].tolist(),
        "Kept": columns["kept"].tolist(),
        "Share kept": kept_share.tolist(),
    }


def solve_beside_page(data: Dataset, parameters: ExamplesParameters) -> Solver:
    """Solve with the quick bound on the noise, and search for the exact noise of the chosen bound."""
    quick = yield Cached(solve_quickly, (data.histogram, parameters), kept=32)
    exact = quick.exact_noise
    if exact is None:
        return Found(quick)
    noise: Found = yield Search(
        "exact_job",
        exact,
        lambda tell, stop: exact.search(stop),
        "Searching the least noise multiplier",
        is_complete=lambda sigma: sigma is not None,
        kept=32,
        seconds=0.05,
        soon=0.05,
        measured=False,
    )
    if (
        noise.stage is Stage.FINAL and noise.value is None
    ):  # Stopped or failed: the quick bound is what there is.
        return Found(quick)
    sigma = noise.value if noise.stage is Stage.FINAL else None
    return Found(quick.with_noise(sigma), noise.stage)


def show_noise(answer: Answer, data: Dataset) -> Parts:
    """Show the noise on the mean gradient."""
    yield (
        "Noise on a step's mean gradient is exact for the noise multiplier, in norms of one example's gradient. Where "
        "users are drawn it depends on r, as a mean of diverse gradients is short and may be clipped to that: the "
        "shaded band reaches from diverse (below) to alike (above)."
    )
    yield Figures((answer.plots["examples-noise"](),), "xy")


def show_kept(answer: Answer, data: Dataset) -> Parts:
    """Show the share kept with the rate, and the noise multipliers."""
    yield Figures((answer.plots["examples-kept"](), answer.plots["examples-multiplier"]()), titled=True)
    yield Note(
        "The noise multipliers are those of Rényi accounting, 6 to 12 % more than is needed; for the chosen bound the "
        "card has the exact one."
    )


def show_owners(answer: Answer, data: Dataset) -> Parts:
    """Show which records to keep if a record has several owners, of the groups of the data or of invented ones."""
    yield (
        "A message has a sender and receivers, a photograph several people: a record may have **several owners**, and "
        "counts for each of them. How many records can be kept with at most k of each user?"
    )
    is_invented = data.pairs is None
    yield Note(
        "The data in use name no groups, so this is an invented table of 20,000 records. Load a table with a "
        "column that names the record (as group) and one that names its owners (as user) to see yours."
        if data.pairs is None
        else f"Each {data.pairs.label} of the data in use is taken as a record, its users as the owners."
    )
    ownership = yield Cached(read_ownership, (data,), kept=1)
    k = yield Integer("owners_bound", "Records per user k", (1, MAX_SIZE), 5)
    if k is None:
        return
    selection: RecordSelection | None = yield Search(
        "owners_job",
        k,
        lambda tell, stop: select_most(ownership or generate_ownership(), k),
        "Choosing records",
        kept=8,
        seconds=0.3,
        soon=0.3,
        measured=False,
    )
    if selection is None:
        return
    noise = compute_noise(selection, answer.parameters)
    yield Numbers(build_numbers(selection, noise))
    if noise is None:
        yield Note(
            "B is more than the records kept: no step can draw so many, and there is no noise to compute."
        )
    yield PROTECTS
    alt = "Records and records kept, by number of owners"
    yield Table(tabulate_owners(selection), alt, {"Share kept": "percent"}, key="examples_per_user_owners")
    yield Note(f"{FAIRNESS} Found by {selection.order_name}.")
    yield Label(Disclosure.PUBLIC if is_invented else data.provenance)
    yield Note(
        "The program keeps the records of a table of your own, with columns record and user, and proves it too."
    )
    program = write_owners_program(selection.bound).text
    yield File("Program for your table", "keep_records.py", lambda: program, Disclosure.PUBLIC)


SECTIONS: Sections = {
    "Studies": {"Noise": show_noise, "Examples kept": show_kept, "Several owners": show_owners},
}


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

    Examples:
        >>> import dpcore as ss
        >>> answer = ss.examples_bound([1] * 90 + [10] * 10, epsilon=1)
        >>> answer.headline
        'Draw users, not examples, and average the gradients of at most 10 examples of each.'

    Source: Charles et al. 2024, arXiv 2407.07737, for the two ways; Choquette-Choo et al. 2023, arXiv 2310.15526, for
        the accounting; the estimate is derived in `dpcore.examples_per_user.options`.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    disclosure = dataset.provenance
    answer = Answer(
        headline=answer_solution.write_headline(solution),
        detail=answer_solution.write_detail(solution, dataset),
        numbers=answer_solution.build_numbers(solution),
        assumptions=(*ASSUMPTIONS, f"Not covered: {NOT_COVERED.removesuffix('.')}"),
        disclosure=disclosure,
        facts=answer_solution.build_facts(solution),
        code=write_programs(solution, disclosure),
        near_optimal=answer_solution.describe_near_optimal(solution),
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
        "noise_multiplier": answer_solution.round_up(best.multiplier),
        "noise_multiplier_is_at_most": best.at_most,
        "estimated_error": best.error,
        "bounds_within_5_percent": list(solution.options.find_near_optimal()),
        "proof": "none: the error is an estimate",
    }
