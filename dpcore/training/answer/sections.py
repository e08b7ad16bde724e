"""The search of a page for the answer, and the tabs of the answer."""

from __future__ import annotations

import functools

import numpy as np

from dpcore.answer.answer import Answer
from dpcore.answer.section import (
    BEHIND,
    Cached,
    Choice,
    Label,
    Note,
    Parts,
    Search,
    SearchResult,
    Sections,
    Solver,
    Table,
)
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.noise_error import summarise_runs
from dpcore.training import bassily
from dpcore.training.account import Method
from dpcore.training.answer import plots, words
from dpcore.training.answer.solution import TrainingSolution, complete_runs, scale_rows
from dpcore.training.bassily import PaperTable, StepSize
from dpcore.training.experiment import MAX_RUNS, Experiment, Side
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import ClassifierRows, Measure, ScoreUnit
from dpcore.training.training_data import TrainingData

FIRST_SECONDS, SOON_SECONDS = 1.5, 0.25
"""How long a page waits for the first curve of all, and for that of new settings. On the sample it is there after
0.1 s of a free core."""
MAX_TABLES = 12
"""Tables of runs that are kept, so that a slider moved back has its answer: 300 kB each on the sample."""


def solve_beside_page(data: TrainingData, parameters: TrainingParameters, max_runs: int = MAX_RUNS) -> Solver:
    """Train beside a page: a first curve is there at once, and surer ones as more runs are made.

    Stopped work goes on where it was, and so does another session on the same sample.
    """
    rows: ClassifierRows = yield Cached(scale_rows, (data, parameters.positive_above), kept=4)
    question: Experiment = yield Cached(
        TrainingParameters.make_experiment, (parameters, rows, max_runs), kept=8
    )
    found: SearchResult = yield Search(
        "runs_job",
        question.key,
        lambda runs, tell, stop: complete_runs(
            question, runs, progress=tell, should_stop=stop, on_more=lambda more: tell(None, more)
        ),
        "Training",
        settings=parameters,
        resumes=True,
        is_complete=lambda runs: runs is not None and runs.is_complete,
        kept=MAX_TABLES,
        seconds=FIRST_SECONDS,
        soon=SOON_SECONDS,
        doing_at={Stage.EARLIER: "These are the settings before; training for the new ones"},
        heavy=True,
    )
    if found.value is None:
        return found
    solution: TrainingSolution = yield Cached(
        TrainingSolution, (data, found.settings, found.value, found.stage), kept=8
    )
    return SearchResult(None if solution.best is None else solution, found.stage)


def show_inputs(answer: Answer, data: TrainingData) -> Parts:
    """Show what was trained on, and every method at every bound."""
    yield Note(words.describe_inputs(answer.solution))
    yield "**Every method at every bound**"
    yield Table(
        tabulate_methods(answer.solution),
        "Loss, its interval, accuracy and the heaviest user's share, for every method at every bound",
        {
            **dict.fromkeys(("Loss", "Loss over users", "Loss, trained on"), "%.4g"),
            **dict.fromkeys(("± noise", "± users", "One run ±"), "%.2g"),
            **dict.fromkeys(("W", "Rows told right"), "%.3g %%"),
        },
        key="training_methods",
    )
    yield Note(
        "On the users held out. ± is half of a 95 % interval of the mean; one run ± is the standard deviation of a "
        "single training, by which a release varies."
    )


def tabulate_methods(solution: TrainingSolution) -> dict[str, object]:
    """Tabulate the scores of every method at every bound."""
    cells = solution.cells
    losses = solution.table.summarise(Measure.LOSS, ScoreUnit.ROWS)
    return {
        "Method": [cell.method.label for cell in cells],
        "h": [np.nan if cell.method is Method.FOLLOWED else cell.reach for cell in cells],
        "W": 100.0 * solution.largest_weight,
        "Runs": losses.runs,
        "Loss": losses.mean,
        "± noise": losses.half_width,
        "± users": losses.users_half_width,
        "One run ±": losses.spread,
        "Loss over users": solution.table.summarise(Measure.LOSS, ScoreUnit.USERS).mean,
        "Loss, trained on": solution.table.summarise(Measure.LOSS, ScoreUnit.ROWS, Side.TRAINED).mean,
        "Rows told right": 100.0 * solution.table.summarise(Measure.ACCURACY, ScoreUnit.ROWS).mean,
    }


def show_bounds(answer: Answer, data: TrainingData) -> Parts:
    """Show loss or accuracy against the bound."""
    scores = {
        (measure, unit): f"{plots.TITLES[measure]}, mean over {unit.value}"
        for measure in Measure
        for unit in ScoreUnit
    }
    measure, unit = yield Choice("bounds_score", "The figure shows", scores)
    yield plots.plot_bounds(answer.solution, measure, unit)


def show_sides(answer: Answer, data: TrainingData) -> Parts:
    """Show the means over rows and over users, trained on and held out."""
    yield (
        "**Look at** the two colours: bounds bring the target nearer to a mean over users. Where heavy users differ "
        "from light ones, the two means part, and you must know which one you want. Dotted lines: users trained on. "
        "Another seed holds out other users and moves the solid lines."
    )
    yield answer.plots["training-sides"]()


def show_theory(answer: Answer, data: TrainingData) -> Parts:
    """Show the bounds that theory calls for, beside the measured one."""
    solution: TrainingSolution = answer.solution
    theories = {
        "Constants computed": (solution.calibrated_bound, "from features and the descent's own constants"),
        "Theorem 4, constant 1": (solution.theorem_bound, "log d log n ε² / log⁴(m/δ)"),
    }
    columns = {
        "Trade-off": [*theories],
        "A": [theory.trade_off for theory, _ in theories.values()],
        "Best h, smooth weights": [theory.threshold.bound for theory, _ in theories.values()],
        "Best cap": [theory.cap.bound for theory, _ in theories.values()],
        "A is": [meaning for _, meaning in theories.values()],
    }
    formats = dict.fromkeys(("A", "Best h, smooth weights"), "%.3g")
    yield Table(columns, "Trade-off, best bound and best cap by two theories", formats, key="training_theory")
    best = solution.best_by_method.get(Method.SMOOTH)
    measured = (
        ""
        if best is None
        else f" The runs have it at h = {wording.number(solution.cells[best.cell_index].reach)}."
    )
    yield (
        f"Both minimise $(\\max_j W_j)^2 + A \\sum_i c_i^2$ over weights $c$, proved best.{measured} The first has "
        "the constants of plain descent with the steps under *More settings*. It looks at features (no labels), which "
        "ε does not cover. The second is the paper's bound, whose constant it leaves open. Neither knows of clipping, "
        "too few steps or heavy users who differ."
    )
    yield Label()


PAPER_EPSILONS = {30.0: "30", 40.0: "40", 50.0: "50"}
STEP_SIZES = {
    StepSize.PRINTED: "As recalled",
    StepSize.WITHOUT_NOISE: "Free of the noise",
    StepSize.DIAMETER: "Twice that",
}
PAPER_RUNS = 10


def show_paper_learner(answer: Answer, data: TrainingData, max_users: int = bassily.MAX_USERS) -> Parts:
    """Show the losses of the paper's learner on the users trained on, if there are at most ``max_users`` of them."""
    solution: TrainingSolution = answer.solution
    rows, seed = solution.table.experiment.train, solution.parameters.seed
    yield (
        "**Replication, no protection.** The paper's appendix E.2 trains by algorithm 1 of Bassily, Smith and Thakurta "
        "(2014): one random user a step, $m^2$ steps, noise for each, the last iterate; ε = 30 to 50 with δ = 0.1. "
        "The formulae are recalled, not checked against their source. Here it runs on the users trained on, and the "
        "loss is that of their rows."
    )
    epsilon = yield Choice("paper_epsilon", "ε", PAPER_EPSILONS)
    step_size = yield Choice("paper_steps", "Step size", STEP_SIZES)
    yield Note(
        "The paper does not say the step size. As recalled: ‖C‖ / √(t (m² L² + d σ²)). Free of the noise: ‖C‖ / √t, or "
        "twice that; they come nearer to the paper's table, and were picked after seeing it."
    )
    num_steps = f"{rows.num_users**2:,} steps"
    if rows.num_users > max_users:
        yield Note(
            f"{wording.counted(rows.num_users, 'user')} take {num_steps}; at most "
            f"{wording.counted(max_users, 'user')} are run here.",
            "info",
        )
        return
    table: PaperTable | None = yield Search(
        "paper_job",
        (rows.digest, seed, epsilon, step_size),
        lambda tell, stop: bassily.fill_paper_table(
            rows,
            epsilon,
            step_size,
            PAPER_RUNS,
            seed,
            progress=tell,
            should_stop=stop,
            on_more=lambda table: tell(None, table),
        ),
        "Running",
        f"Run {num_steps} for each of 9 columns",
        shows_outdated=True,
        heavy=True,
    )
    if table is None:
        return
    if not table.losses.size:
        yield Note("No column is done yet.")
        return
    cells, losses = table.cells[: len(table.losses)], summarise_runs(table.losses, axis=1)
    yield Table(
        {
            "Method": ["No bound" if cell is table.cells[-1] else cell.method.label for cell in cells],
            "h": [cell.bound for cell in cells],
            "Loss": losses.mean,
            "Standard error": losses.standard_error,
        },
        "Loss of the paper's learner for smooth weights, caps and no bound",
        dict.fromkeys(("Loss", "Standard error"), "%.3f"),
        key="training_paper",
    )
    without_privacy, guessing = (
        wording.number(float(scores[0, 0, 0, 0]))
        for scores in (solution.runs.references.no_privacy, solution.runs.references.guessing)
    )
    yield Note(
        f"ε = {wording.entered(table.epsilon)}, δ = {wording.entered(bassily.DELTA)}, step size "
        f"{STEP_SIZES[table.step_size].lower()}; {PAPER_RUNS} runs, last iterate, θ in [−10, 10]ᵈ, caps drawn "
        f"anew in every run. On the same rows {without_privacy} without privacy, {guessing} guessing. The paper's "
        "table 2 itself, on its own data, is in benchmarks/training.py."
    )
    yield Label()


def list_sections(max_paper_users: int = bassily.MAX_USERS) -> Sections:
    """List the tabs; the paper's learner runs on at most so many users."""
    return {
        BEHIND: show_inputs,
        "Studies": {
            "Against the bound": show_bounds,
            "Rows and users": show_sides,
            "Theory": show_theory,
            "The paper's learner": functools.partial(show_paper_learner, max_users=max_paper_users),
        },
    }
