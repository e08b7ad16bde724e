"""The tabs of examples per user, and how it is solved beside a page."""

from __future__ import annotations

from dpcore.answer import Answer
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
from dpcore.common.privacy import Disclosure
from dpcore.contributions import MAX_SIZE
from dpcore.dataset import Dataset
from dpcore.examples_per_user import ExamplesParameters
from dpcore.examples_per_user.answer import owners
from dpcore.examples_per_user.answer.found import solve_quickly
from dpcore.examples_per_user.owners import RecordSelection, generate_ownership, select_most


def solve(data: Dataset, parameters: ExamplesParameters) -> Solver:
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
    ownership = yield Cached(owners.read_ownership, (data,), kept=1)
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
    noise = owners.compute_noise(selection, answer.parameters)
    yield Numbers(owners.build_numbers(selection, noise))
    if noise is None:
        yield Note(
            "B is more than the records kept: no step can draw so many, and there is no noise to compute."
        )
    yield owners.PROTECTS
    alt = "Records and records kept, by number of owners"
    yield Table(
        owners.tabulate_owners(selection), alt, {"Share kept": "percent"}, key="examples_per_user_owners"
    )
    yield Note(f"{owners.FAIRNESS} Found by {selection.order_name}.")
    yield Label(Disclosure.PUBLIC if is_invented else data.provenance)
    yield Note(
        "The program keeps the records of a table of your own, with columns record and user, and proves it too."
    )
    program = owners.write_owners_program(selection.bound).text
    yield File("Program for your table", "keep_records.py", lambda: program, Disclosure.PUBLIC)


SECTIONS: Sections = {
    "Studies": {"Noise": show_noise, "Examples kept": show_kept, "Several owners": show_owners},
}
