"""The answer for examples per user, its plots and its tabs, as all readers take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import section, standard
from dpcore.answer.answer import Answer, Number, add_json_writer
from dpcore.answer.plot import Axis, Band, Column, Curve, Item, Mark, Plot, Style, share_axis
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.progress import Stage
from dpcore.common.text_fields import to_fields
from dpcore.common.wording import (
    PERCENT,
    capitalise,
    describe_change,
    format_count,
    format_number,
    format_percent,
)
from dpcore.contributions import MAX_SIZE
from dpcore.dataset import Dataset
from dpcore.examples_per_user import owners
from dpcore.examples_per_user.answer import solution as words
from dpcore.examples_per_user.answer.solution import ExamplesSolution, round_up, solve, solve_quickly
from dpcore.examples_per_user.candidates import (
    Candidate,
    collect_values,
    replace_similarity,
    write_owners_program,
)
from dpcore.examples_per_user.noise import bound_multiplier, find_multiplier
from dpcore.examples_per_user.parameters import ASSUMPTIONS, NEIGHBOURS, ExamplesParameters, Sampling
from dpcore.report.content import list_public_inputs, write_columns

STYLE_BY_SAMPLING = {Sampling.EXAMPLES: Style.CAP, Sampling.USERS: Style.SMOOTH}
SHADE_ENDS = ("low_ends", "diverse", 0.0), ("high_ends", "alike", 1.0)
"""Each end of a shade: the option of `Curve` that takes it, the suffix of its column's name, and its r."""


def plot_error(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the main figure: the estimated error over G, of drawing examples and of drawing users.

    Each curve is shaded from r = 0 to r = 1.
    """
    candidate, own_candidate = solution.best_candidate, solution.own_candidate
    items: list[Item] = [*_make_curves(solution, "error")]
    smallest_bound, largest_bound = solution.comparison.find_near_optimal()
    if smallest_bound < largest_bound:
        items.insert(0, Band(f"Within 5{PERCENT} of the best", smallest_bound, largest_bound))
    items.append(Mark("Best bound", candidate.bound, candidate.error, STYLE_BY_SAMPLING[candidate.sampling]))
    if own_candidate is not None:
        items.append(Mark("Your bound", own_candidate.bound, own_candidate.error, Style.ENTERED, "square"))
    return Plot(
        "examples-error",
        "Estimated error over examples per user",
        f"The error is least at {format_count(candidate.bound, 'example')} per user "
        f"({words.PHRASE_BY_SAMPLING[candidate.sampling]}). Shaded: from diverse to alike examples.",
        _make_bound_axis(solution),
        Axis("estimated error", "share of a gradient's norm"),
        items,
        provenance,
        is_main=True,
    )


def plot_noise(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the standard deviation of the noise on a step's mean gradient over G, for both ways of sampling."""
    noise_description = "Noise per parameter and step over examples per user."
    x_axis, y_axis = _make_bound_axis(solution), Axis("noise per parameter", "gradient norms")
    noise_curves, noise_title = _make_curves(solution, "noise"), "Noise on the mean gradient"
    return Plot("examples-noise", noise_title, noise_description, x_axis, y_axis, noise_curves, provenance)


def plot_kept_share(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot the share of examples kept, and the sampling rate, over G; both are the same for either way of sampling."""
    candidates = solution.comparison.candidates_by_sampling[Sampling.EXAMPLES]
    attribute_names = ("bound", "kept_share", "rate")
    bound_column, share_column, rate_column = (_make_column(candidates, name) for name in attribute_names)
    return Plot(
        "examples-kept",
        "Examples kept, and sampling rate",
        "The more examples are kept, the smaller is the rate that draws B.",
        _make_bound_axis(solution),
        share_axis("share", (0.0, 1.0)),
        (
            Curve("Examples kept", bound_column, share_column, Style.TOTAL, symbol="circle"),
            Curve("Sampling rate q", bound_column, rate_column, Style.SAMPLING, symbol="circle"),
        ),
        provenance,
        height=360,
    )


def plot_multipliers(solution: ExamplesSolution, provenance: Provenance) -> Plot:
    """Plot an upper bound on the noise multiplier over G, for both ways of sampling."""
    description = "It grows with G if examples are sampled, and falls if users are sampled."
    x_axis, y_axis = _make_bound_axis(solution), Axis("noise multiplier", "clip norms")
    curves = _make_curves(solution, "multiplier", shades_between_ends=False)
    title = "Noise multiplier, at most"
    return Plot("examples-multiplier", title, description, x_axis, y_axis, curves, provenance, height=360)


def _make_column(candidates: Sequence[Candidate], attribute_name: str, column_name: str = "") -> Column:
    """Build the column of one attribute of the candidates, named after the attribute by default."""
    return Column(column_name or attribute_name, collect_values(candidates, attribute_name))


def _make_curves(
    solution: ExamplesSolution, attribute_name: str, shades_between_ends: bool = True
) -> list[Curve]:
    """Build the curve of one attribute of the candidates for each way of sampling.

    It is shaded from r = 0 to r = 1 if asked.
    """
    attribute_curves = []
    for sampling, candidates in solution.comparison.candidates_by_sampling.items():
        column_name = f"{sampling.value}_{attribute_name}"
        shade_options: dict[str, Any] = {"shades_between_ends": shades_between_ends}
        for end_option, column_suffix, similarity in SHADE_ENDS if shades_between_ends else ():
            changed_candidates = [
                replace_similarity(solution.histogram, solution.parameters, c, similarity) for c in candidates
            ]
            end_column_name = f"{column_name}_{column_suffix}"
            shade_options[end_option] = _make_column(changed_candidates, attribute_name, end_column_name)
        attribute_curves.append(
            Curve(
                capitalise(words.PHRASE_BY_SAMPLING[sampling]),
                _make_column(candidates, "bound"),
                _make_column(candidates, attribute_name, column_name),
                STYLE_BY_SAMPLING[sampling],
                symbol="circle",
                **shade_options,
            )
        )
    return attribute_curves


def _make_bound_axis(solution: ExamplesSolution) -> Axis:
    """Build the axis of the bound G, from 1 to a little beyond the heaviest user."""
    limits, bound_title = (0.9, max(1.1 * solution.histogram.max_size, 2.0)), "Bound G (examples per user)"
    return Axis("bound", "examples per user", limits, title=bound_title, number_format=",")


PRESENCE_CAVEAT = (
    "**This does not protect that somebody is there.** Which records are kept depends on all users, so who owns which "
    "record is public. The guarantee covers the contents of one user's records, zeroed or replaced."
)
UNEQUAL_CAVEAT = (
    "The most records are not the best training: the model learns those of few owners more than others."
)


PROOF_HELP = "By the prices of a linear program, in whole numbers."


def read_ownership(dataset: Dataset) -> owners.Ownership | None:
    """Build the ownership of the data's groups, each a record, by their users; None if there are no groups."""
    if dataset.pairs is None:
        return None
    return owners.Ownership.from_pairs(dataset.pairs.task_codes, dataset.pairs.user_codes)


def build_numbers(selection: owners.RecordSelection, parameters: ExamplesParameters) -> tuple[Number, ...]:
    """Build the numbers of a selection: records kept, and the most that can be kept.

    If at least B are kept, also two noise multipliers.
    """
    num_kept, max_records = selection.num_kept, selection.max_records
    all_records_text = f"of {format_number(selection.ownership.num_records)}"
    max_text = format_number(max_records)
    record_numbers = [
        Number("Records kept", format_number(num_kept), all_records_text, value=num_kept),
        Number("No choice keeps more than", max_text, "proved", PROOF_HELP, max_records, key="at_most"),
    ]
    if parameters.batch_size <= num_kept:
        rate = min(float(f"{parameters.batch_size / num_kept:.3g}"), 1.0)
        arguments = selection.bound, rate, parameters.epsilon, parameters.delta, parameters.steps
        zeroed_multiplier, replaced_multiplier = (bound_multiplier(*arguments, r) for r in (False, True))
        zeroed_text, rate_text = f"at most {zeroed_multiplier:.4g}", f"drawn at rate {format_number(rate)}"
        record_numbers += [
            Number("Noise multiplier, contents zeroed", zeroed_text, rate_text, value=zeroed_multiplier),
            Number(
                "Noise multiplier, contents replaced",
                f"at most {replaced_multiplier:.4g}",
                describe_change(replaced_multiplier, zeroed_multiplier),
                "Replacing can turn a gradient around.",
                replaced_multiplier,
            ),
        ]
    return tuple(record_numbers)


def tabulate_owners(selection: owners.RecordSelection) -> dict[str, list[Any]]:
    """Build the columns of a table by heading: records, kept records and their share, for each number of owners."""
    owner_counts = selection.ownership.owner_counts
    records_by_num_owners = np.bincount(owner_counts)
    kept_by_num_owners = np.bincount(owner_counts[selection.kept_mask], minlength=records_by_num_owners.size)
    columns: dict[str, npt.NDArray[Any]] = {"Owners": np.flatnonzero(records_by_num_owners)}
    columns["Records"], columns["Kept"] = (
        records_by_num_owners[columns["Owners"]],
        kept_by_num_owners[columns["Owners"]],
    )
    columns["Share kept"] = columns["Kept"] / columns["Records"]
    return {heading: column_values.tolist() for heading, column_values in columns.items()}


def solve_beside_page(dataset: Dataset, parameters: ExamplesParameters) -> section.Solver:
    """Solve with a quick bound on the noise, then search for the exact noise of the best bound.

    A generator for `Solver`. There is no search if it would take minutes.
    """
    solve_arguments = (dataset.histogram, parameters)
    quick_solution: ExamplesSolution = yield section.Cached(solve_quickly, solve_arguments, num_kept=32)
    noise_arguments = quick_solution.noise_arguments
    if noise_arguments is None:
        return section.SearchResult(quick_solution)
    noise_search: section.SearchResult = yield section.Search(
        "exact_job",
        noise_arguments,
        lambda tell, stop: find_multiplier(*noise_arguments, stop),
        "Searching the least noise multiplier",
        is_complete=lambda sigma: sigma is not None,
        num_kept=32,
        first_wait_seconds=0.05,
        later_wait_seconds=0.05,
        is_measured=False,
    )
    if noise_search.stage is not Stage.FINAL:
        return section.SearchResult(quick_solution.with_noise(None), noise_search.stage)
    # Stopped or failed: the quick bound is what there is.
    if noise_search.value is None:
        return section.SearchResult(quick_solution)
    return section.SearchResult(quick_solution.with_noise(noise_search.value))


def show_noise(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab with the noise on the mean gradient over the bound."""
    yield (
        "Noise in norms of one example's gradient. If users are sampled, it depends on r: the band goes from diverse "
        "to alike examples."
    )
    yield section.Figures((answer.plots["examples-noise"](),), "xy")


def show_kept(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab with the share of examples kept, the rate, and the noise multipliers over the bound."""
    kept_plot, multiplier_plot = answer.plots["examples-kept"](), answer.plots["examples-multiplier"]()
    yield section.Figures((kept_plot, multiplier_plot), has_titles=True)
    yield section.Note("Noise multipliers by Rényi accounting: 6 to 12 % more than is needed.")


def show_owners(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab on records with several owners: which to keep with at most k of each owner.

    The records are the data's groups, or simulated ones.
    """
    yield "A record may have **several owners**, as messages have. How many can be kept with at most k of each?"
    yield section.Note(
        "The data in use have no groups: these 20,000 records are simulated. A group is a record, its users are owners."
        if dataset.pairs is None
        else f"Each {dataset.pairs.label} is a record, its users are owners."
    )
    ownership = yield section.Cached(read_ownership, (dataset,), num_kept=1)
    records_per_user = yield section.Integer("owners_bound", "Records per user k", (1, MAX_SIZE), 5)
    if records_per_user is None:
        return
    selection: owners.RecordSelection | None = yield section.Search(
        "owners_job",
        records_per_user,
        lambda tell, stop: owners.select_most_records(
            ownership or owners.generate_ownership(), records_per_user
        ),
        "Choosing records",
        num_kept=8,
        first_wait_seconds=0.3,
        later_wait_seconds=0.3,
        is_measured=False,
    )
    if selection is None:
        return
    yield section.Numbers(build_numbers(selection, answer.parameters))
    if answer.parameters.batch_size > selection.num_kept:
        yield section.Note("B is more than the records kept.")
    yield PRESENCE_CAVEAT
    columns_by_heading, alt = tabulate_owners(selection), "Records by number of owners"
    yield section.Table(columns_by_heading, alt, {"Share kept": "percent"}, key="examples_per_user_owners")
    yield section.Note(f"{UNEQUAL_CAVEAT} Found by {selection.order_name}.")
    yield section.Label(Disclosure.PUBLIC if dataset.pairs is None else dataset.provenance)
    yield section.Note("The program reads a table with columns record and user.")
    program_text = write_owners_program(selection.bound).text
    yield section.File("Program for your table", "keep_records.py", lambda: program_text, Disclosure.PUBLIC)


SECTIONS: section.Sections = {
    "Studies": {"Noise": show_noise, "Examples kept": show_kept, "Several owners": show_owners}
}


def build_answer(
    dataset: Dataset, parameters: ExamplesParameters, solution: ExamplesSolution | None = None
) -> Answer:
    """Choose how many examples of a user a private training keeps, and whether it draws examples or users.

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
        'Sample users, and average the gradients of at most 10 examples per user.'

    Source: Charles et al. 2024, arXiv 2407.07737, for the two ways; Choquette-Choo et al. 2023, arXiv 2310.15526, for
        the accounting; the estimate is derived in `dpcore.examples_per_user.candidates`.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    disclosure, own_candidate = dataset.provenance, solution.own_candidate
    own_error = None if own_candidate is None else own_candidate.error
    own_note = "at most" if own_candidate is not None and own_candidate.is_upper_bound else ""
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, dataset),
        numbers=standard.add_own_error(words.build_numbers(solution), own_error, format_percent, own_note),
        assumptions=ASSUMPTIONS,
        disclosure=disclosure,
        facts=words.build_facts(solution),
        code=words.write_programs(solution, disclosure),
        near_optimal=words.write_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        error=solution.best_candidate.error,
        plots={
            "examples-error": lambda: plot_error(solution, disclosure),
            "examples-noise": lambda: plot_noise(solution, disclosure),
            "examples-kept": lambda: plot_kept_share(solution, disclosure),
            "examples-multiplier": lambda: plot_multipliers(solution, disclosure),
        },
        make_methods=lambda: words.write_methods(solution, dataset),
        sections=SECTIONS,
        files={"examples_per_user.csv": lambda: _write_candidates(solution, dataset)},
    )
    return add_json_writer(
        answer,
        dataset,
        "training with a bounded number of examples per user",
        lambda: _list_details(solution),
        number_keys=("bound", "sampling_rate", "divisor", "kept_share", "noise"),
        question_entries={"neighbours": NEIGHBOURS.value, "source": "arXiv 2407.07737; arXiv 2310.15526"},
    )


def _write_candidates(solution: ExamplesSolution, dataset: Dataset) -> str:
    """Return the text of a CSV file of all bounds that keep at least B examples.

    It has columns for each way of sampling.
    """
    columns = {}
    for sampling, candidates in solution.comparison.candidates_by_sampling.items():
        columns["bound"] = collect_values(candidates, "bound")
        for attribute_name in ("kept_share", "rate", "multiplier", "noise", "error"):
            columns[f"{sampling.value}_{attribute_name}"] = collect_values(candidates, attribute_name)
    return write_columns(columns, dataset.provenance, list_public_inputs(to_fields(solution.parameters)))


def _list_details(solution: ExamplesSolution) -> dict[str, object]:
    """Return the JSON entries of the answer, by key, that are no numbers of the card."""
    best_candidate = solution.best_candidate
    return {
        "way": best_candidate.sampling.value,
        "noise_multiplier": round_up(best_candidate.multiplier),
        "noise_multiplier_is_at_most": best_candidate.is_upper_bound,
        "estimated_error": best_candidate.error,
        "bounds_within_5_percent": list(solution.comparison.find_near_optimal()),
        "proof": "none: the error is an estimate",
        "estimated_error_at_own_bound": None
        if solution.own_candidate is None
        else solution.own_candidate.error,
    }
