"""The answer for a classifier with its tabs, programs and files, and the search of a page for it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd

from dpcore.answer import section
from dpcore.answer.answer import Answer, add_json_writer
from dpcore.code.forms import FILE_ROW_FIELDS, OfferedPrograms, build_forms, list_data_fields
from dpcore.code.release_spec import ClassifierTraining, DescentRule, Quantity
from dpcore.common.privacy import Provenance
from dpcore.common.progress import Stage
from dpcore.common.strict_json import finite_or_none
from dpcore.common.weights import find_best_cap, find_best_smooth
from dpcore.common.wording import format_number
from dpcore.data.design_matrix import FeatureKind
from dpcore.training import account, descent
from dpcore.training import mechanism as descent_rule
from dpcore.training.account import Cell, Method
from dpcore.training.answer import plots, words
from dpcore.training.answer.solution import TrainingSolution, complete_runs, scale_rows, solve
from dpcore.training.experiment import MAX_RUNS, Experiment, RunTable, Side
from dpcore.training.mechanism import LossKind, Mechanism, Pace, apply_rule, compute_faded_variance
from dpcore.training.parameters import DataSource, TrainingParameters, list_assumptions
from dpcore.training.rows import ClassifierRows, Measure, ScoreUnit
from dpcore.training.training_data import SAMPLE_FILE, TrainingData, describe_label_rule

SLOPE_CODE_BY_LOSS = {
    LossKind.LOGISTIC: "-1 / (1 + np.exp(np.minimum(margin, 700.0)))",
    LossKind.SQUARED: "margin - 1.0",
    LossKind.HINGE: f"np.clip((margin - 1.0) / {descent_rule.HINGE_WIDTH!r}, -1.0, 0.0)",
}


KEY_AND_NAME_BY_METHOD = {
    Method.FOLLOWED: ("followed", "Clipped sums, adaptive bound"),
    Method.CLIPPED_SUM: ("sums", "Clipped sums, h = {}"),
    Method.CAP: ("cap", "Cap, h = {}"),
    Method.SMOOTH: ("weights", "Smooth weights, h = {}"),
}
"""How a program bounds users, and its name, by the method."""


def choose_programs(solution: TrainingSolution) -> OfferedPrograms | None:
    """Build the programs for the answer's cell and the best cells of three methods; None for data without a design.

    The methods are followed clipped sums, smooth weights and clipped sums; each must have runs and a program.
    """
    best_by_method = solution.best_cell_by_method
    compared_methods = (Method.FOLLOWED, Method.SMOOTH, Method.CLIPPED_SUM)
    best_cells = [best_by_method[method] for method in compared_methods if method in best_by_method]
    chosen_cells = [solution.answer_cell, *(solution.cells[best_cell.cell_index] for best_cell in best_cells)]
    # If steps are entered, only weights have a program with them; a bound that follows always has its own steps.
    uses_rule = solution.parameters.pace is Pace.RULE
    methods_with_program = KEY_AND_NAME_BY_METHOD if uses_rule else (Method.FOLLOWED, Method.SMOOTH)
    # The mechanism of the question, not that of a first look, whose noise is for fewer users.
    data, mechanism = solution.data, solution.parameters.mechanism
    labelled_rows, scaling, design = data.dataset.table, data.scaling, data.design
    assert labelled_rows is not None
    assert scaling is not None
    if design is None and solution.parameters.source is not DataSource.GENERATED:
        return None
    feature_names = labelled_rows.feature_names
    numeric_ranges = tuple(
        (feature_name, value_range)
        for feature_name, value_range in zip(feature_names, scaling.feature_ranges, strict=True)
        if value_range is not None
    )
    design_features = () if design is None else design.features
    columns_with_levels = []
    for category_column in (f.column for f in design_features if f.encoding is FeatureKind.CATEGORIES):
        level_prefix = f"{category_column}: "
        category_levels = tuple(
            name.removeprefix(level_prefix) for name in feature_names if name.startswith(level_prefix)
        )
        columns_with_levels.append((category_column, category_levels))
    training_without_noise = ClassifierTraining(
        number_ranges=numeric_ranges,
        category_levels=tuple(columns_with_levels),
        has_intercept=True if design is None else design.intercept,  # Generated rows have one.
        max_feature_norm=scaling.norm,
        positive_above=solution.parameters.positive_above,
        positive_class="" if design is None else design.positive,
        slope_expression=SLOPE_CODE_BY_LOSS[mechanism.loss],
        num_steps=mechanism.steps,
        learning_rate=mechanism.learning_rate,
        first_averaged_step=mechanism.average.find_first_step(mechanism.steps),
        radius=mechanism.radius,
        gradient_noise_std=0.0,
        weight_noise_std=0.0,
        sampling_rate=mechanism.sampled,
    )
    shared_settings = list_data_fields(data.dataset) | {
        **FILE_ROW_FIELDS,
        "value_column": labelled_rows.label,
        "neighbours": mechanism.neighbours,
        "delta": mechanism.delta,
    }
    if solution.parameters.source is DataSource.SAMPLE:
        shared_settings |= {
            "file": f"sample_data/{SAMPLE_FILE}",
            "layout": None,
        }  # which knows its name alone
    forms = []
    for cell in dict.fromkeys(cell for cell in chosen_cells if cell.method in methods_with_program):
        training = _add_noise_settings(training_without_noise, mechanism, cell)
        program_name = KEY_AND_NAME_BY_METHOD[cell.method][1].format(format_number(cell.reach))
        forms.append((program_name, Quantity.CLASSIFIER, {"threshold": cell.bound, "training": training}))
    return build_forms(mechanism.epsilon, shared_settings, forms)


def _add_noise_settings(training: ClassifierTraining, mechanism: Mechanism, cell: Cell) -> ClassifierTraining:
    """Return the program's training with the noise of a cell and, unless steps are entered, the rule."""
    if mechanism.pace is Pace.ENTERED and cell.method is Method.SMOOTH:
        noise_plan = account.plan_noise(mechanism, cell.bound)
        return replace(
            training,
            gradient_noise_std=noise_plan.gradient_noise_std,
            weight_noise_std=noise_plan.weight_noise_std,
        )
    bound_follows, mechanism = cell.method is Method.FOLLOWED, apply_rule(mechanism)
    rule_plan = account.plan_rule_noise(mechanism, bound_follows)
    faded_variance = compute_faded_variance(rule_plan.direction_noise_std)
    stable_step_share = 1.0 if bound_follows else min(cell.reach, 1.0)
    step_rule = DescentRule(
        bounding_method=KEY_AND_NAME_BY_METHOD[cell.method][0],
        clip=cell.clip,
        unit_noise=rule_plan.unit_noise,
        count_noise_std=rule_plan.count_noise_std,
        num_users_noise_std=rule_plan.num_users_noise_std,
        momentum=descent_rule.MOMENTUM,
        travel_limit=(1.0 - descent_rule.MOMENTUM) * descent_rule.MAX_NOISE_NORM / mechanism.steps,
        stable_limit=descent_rule.STABLE_STEP_SHARE / mechanism.loss.smoothness * stable_step_share,
        last_limited_step=math.floor(descent_rule.SHARE_BEFORE_GROWTH * mechanism.steps),
        fade_factor=descent_rule.FADING_FACTOR,
        growth_threshold=descent_rule.AGREEMENT_TO_GROW * faded_variance,
        forgetting_threshold=descent_rule.AGREEMENT_TO_FORGET * faded_variance,
        growth_factor=descent_rule.STEP_GROWTH,
        max_growth=descent_rule.MAX_STEP_GROWTH,
        first_bound_divisor=descent.START_DIVISOR,
        clipped_users_over_noise=descent.CLIPPED_USERS_FACTOR,
        bound_rate=descent.BOUND_ADAPTATION_RATE,
        max_log_change=descent.MAX_LOG_BOUND_CHANGE,
        bound_range=descent.BOUND_RANGE,
    )
    return replace(
        training,
        num_steps=mechanism.steps,
        first_averaged_step=1,
        gradient_noise_std=rule_plan.direction_noise_std,
        sampling_rate=1.0,
        rule=step_rule,
    )


FIRST_WAIT_SECONDS, LATER_WAIT_SECONDS = 1.5, 0.25
"""How long a page waits for the first curve of all, and for that of new settings."""
MAX_CACHED_TABLES = 12
"""Tables of runs that are kept: 300 kB each on the sample."""


def solve_beside_page(
    data: TrainingData, parameters: TrainingParameters, max_runs: int = MAX_RUNS
) -> section.Solver:
    """Train beside a page; return the solution so far, surer as more runs are made, or None before the first run.

    Stopped work goes on where it was, and so does another session on the same sample.
    """
    rows: ClassifierRows = yield section.Cached(scale_rows, (data, parameters.positive_above), num_kept=4)
    full_experiment: Experiment = yield section.Cached(
        TrainingParameters.make_experiment, (parameters, rows, max_runs), num_kept=8
    )
    search_result: section.SearchResult = yield section.Search(
        "runs_job",
        full_experiment.key,
        lambda runs, tell, stop: complete_runs(
            full_experiment, runs, progress=tell, should_stop=stop, on_runs=lambda more: tell(None, more)
        ),
        "Training",
        settings=parameters,
        resumes=True,
        is_complete=lambda runs: runs is not None and runs.is_complete,
        num_kept=MAX_CACHED_TABLES,
        first_wait_seconds=FIRST_WAIT_SECONDS,
        later_wait_seconds=LATER_WAIT_SECONDS,
        progress_texts_by_stage={Stage.EARLIER: "Training for the new settings"},
        is_heavy=True,
    )
    if search_result.value is None:
        return search_result
    solution: TrainingSolution = yield section.Cached(
        TrainingSolution, (data, search_result.settings, search_result.value, search_result.stage), num_kept=8
    )
    return section.SearchResult(None if solution.best_cell is None else solution, search_result.stage)


def show_inputs(answer: Answer, data: TrainingData) -> section.Parts:
    """Yield what was trained on, and a table of every method at every bound."""
    yield section.Note(words.describe_inputs(answer.solution))
    yield "**Every method at every bound**"
    yield section.Table(
        tabulate_methods(answer.solution),
        "Loss and accuracy of every method at every bound",
        {
            **dict.fromkeys(("Loss", "Loss over users", "Loss, trained on"), "%.4g"),
            **dict.fromkeys(("± noise", "± users", "One run ±"), "%.2g"),
            **dict.fromkeys(("W", "Rows told right"), "%.3g %%"),
        },
        key="training_methods",
    )
    yield section.Note(
        "± is half of a 95 % interval of the mean; *One run ±* is the standard deviation of one training."
    )


def tabulate_methods(solution: TrainingSolution) -> dict[str, object]:
    """Tabulate the scores of every method at every bound: a dict of columns by heading."""
    cells = solution.cells
    loss_summary = solution.table.summarise()
    return {
        "Method": [cell.method.label for cell in cells],
        "h": [np.nan if cell.method is Method.FOLLOWED else cell.reach for cell in cells],
        "W": 100.0 * solution.largest_weights,
        "Runs": loss_summary.run_counts,
        "Loss": loss_summary.means,
        "± noise": loss_summary.half_widths,
        "± users": loss_summary.users_half_widths,
        "One run ±": loss_summary.spreads,
        "Loss over users": solution.table.summarise(score_unit=ScoreUnit.USERS).means,
        "Loss, trained on": solution.table.summarise(side=Side.TRAINED).means,
        "Rows told right": 100.0 * solution.table.summarise(Measure.ACCURACY).means,
    }


def show_bounds(answer: Answer, data: TrainingData) -> section.Parts:
    """Yield a choice of score, and the plot of that score against the bound."""
    label_by_score = {
        (measure, score_unit): f"{plots.TITLE_BY_MEASURE[measure]}, mean over {score_unit.value}"
        for measure in Measure
        for score_unit in ScoreUnit
    }
    measure, score_unit = yield section.Choice("bounds_score", "The figure shows", label_by_score)
    yield plots.plot_bounds(answer.solution, measure, score_unit)


def show_sides(answer: Answer, data: TrainingData) -> section.Parts:
    """Yield the plot of the loss of clipped sums, over rows and over users, trained on and held out."""
    yield (
        "**Look at** the two colours: where heavy users differ from light ones, a bound moves the model from the mean "
        "over rows toward that over users."
    )
    yield answer.plots["training-sides"]()


def show_theory(answer: Answer, data: TrainingData) -> section.Parts:
    """Yield a table of A by two theories, with the best threshold and the best cap by each, and a note."""
    histogram, trade_offs = answer.solution.table.experiment.train.histogram, answer.solution.trade_offs
    table_columns = {
        "Trade-off": ["Plain descent", "Theorem 4, constant 1"],
        "A": trade_offs,
        "Best h, smooth weights": [find_best_smooth(histogram, trade_off).bound for trade_off in trade_offs],
        "Best cap": [find_best_cap(histogram, trade_off).bound for trade_off in trade_offs],
    }
    column_formats = dict.fromkeys(("A", "Best h, smooth weights"), "%.3g")
    yield section.Table(
        table_columns, "Best bound and cap by two theories", column_formats, key="training_theory"
    )
    yield (
        "The two bounds minimise $(\\max_j W_j)^2 + A \\sum_i c_i^2$ over weights $c$, proved best. *Plain "
        "descent* computes A from the features, which ε does not cover, and the steps under *More settings*. *Theorem "
        "4* is the paper's: $A = \\log d\\, \\log n\\, \\varepsilon^2 / \\log^4(m/\\delta)$, with an open constant. "
        "They ignore clipping, too few steps and heavy users who differ."
    )
    yield section.Label()


SECTIONS: section.Sections = {
    section.BEHIND: show_inputs,
    "Studies": {"Against the bound": show_bounds, "Rows and users": show_sides, "Theory": show_theory},
}


def build_answer(
    data: TrainingData | None, parameters: TrainingParameters, solution: TrainingSolution | None = None
) -> Answer:
    """Find how much a user may weigh when a private classifier is trained.

    Args:
        data: A table with the public ranges of its features; None where the parameters name the sample, or say how the
            data are generated.
        parameters: The question.
        solution: What `solve` found for both, with at least the first runs; by default all runs are made here.

    Returns:
        The answer; its ``solution`` is a `TrainingSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels, features or ranges, or do not fit the question.

    Examples:
        >>> import dpcore as ss
        >>> few = {"source": "generated", "num_users": 30, "runs": 2, "splits": 1}
        >>> ss.training_bound(epsilon=0.001, **few).headline
        'Not clear whether training beats guessing with this budget.'

    Source: Epasto et al. 2020, section 4.
    """
    solution = solve(data, parameters) if solution is None else solution
    label_rule = describe_label_rule(solution.data, solution.parameters.positive_above)
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution),
        numbers=words.build_numbers(solution),
        assumptions=(*((label_rule,) if label_rule else ()), *list_assumptions(solution.parameters)),
        disclosure=solution.data.provenance,
        facts=words.build_facts(solution),
        proofs=(("Model without privacy", solution.runs.references.certificate, "Newton's method."),),
        code=choose_programs(solution),
        near_optimal=words.describe_near_optimal(solution),
        parameters=solution.parameters,
        solution=solution,
        plots={
            "training-methods-loss": lambda: plots.plot_methods(solution, Measure.LOSS, ScoreUnit.ROWS),
            "training-loss": lambda: plots.plot_bounds(solution, Measure.LOSS, ScoreUnit.ROWS),
            "training-accuracy": lambda: plots.plot_bounds(solution, Measure.ACCURACY, ScoreUnit.ROWS),
            "training-sides": lambda: plots.plot_sides(solution),
        },
        make_methods=lambda: words.write_methods(solution),
        files={"training_runs.csv": lambda: write_runs(solution.table, solution.data.provenance)},
        sections=SECTIONS,
        bound=solution.answer_cell.reach if words.has_fixed_bound(solution) else None,
        error=solution.average(Measure.LOSS),
        relative_error=words.measure_relative_error(solution),
    )
    return add_json_writer(
        answer,
        solution.data.dataset,
        "private linear classifier",
        lambda: _list_choice_entries(solution),
        question_entries={
            "data_source": solution.parameters.source.value,  # In every choice, ``source`` is the work with the method.
            "mechanism": "noisy full-batch gradient descent",
            "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 4 and appendix E.2",
        },
        data_entries={"users_held_out": solution.table.experiment.test.num_users},
        schema="sweetspot/training/2",
    )


def _list_choice_entries(solution: TrainingSolution) -> dict[str, object]:
    """Return the JSON entries of the answer: method and bound (None if there is none), references, theory, cells."""
    best_cell, (plain_trade_off, _) = solution.best_cell, solution.trade_offs
    answer_cell = None if best_cell is None else solution.answer_cell
    bound_follows = answer_cell is not None and answer_cell.method is Method.FOLLOWED
    ref_losses = solution.average_references()
    return {
        "method": None if answer_cell is None else answer_cell.method.value,
        "bound": None if answer_cell is None or bound_follows else answer_cell.reach,
        "good_enough": None
        if best_cell is None or bound_follows
        else [best_cell.lowest_near_optimal, best_cell.highest_near_optimal],
        "loss_without_privacy": ref_losses.without_privacy,
        "loss_of_guessing": ref_losses.guessing,
        "loss_without_noise": ref_losses.without_noise,
        "loss_without_noise_and_clipping": ref_losses.without_noise_and_clipping,
        "proved_relative_gap": finite_or_none(solution.runs.references.certificate.relative_gap),
        "trade_off_of_theory": finite_or_none(plain_trade_off),
        "bound_of_theory": find_best_smooth(solution.table.experiment.train.histogram, plain_trade_off).bound,
        "methods": _list_method_entries(solution),
    }


def _list_method_entries(solution: TrainingSolution) -> list[dict[str, object]]:
    """List the JSON entries of every method at every bound, with its scores on the users held out."""
    loss_summary = solution.table.summarise()
    scores_by_key = {
        "loss": loss_summary.means,
        "half_width_95": loss_summary.half_widths,
        "half_width_95_users": loss_summary.users_half_widths,
        "loss_over_users": solution.table.summarise(score_unit=ScoreUnit.USERS).means,
        "rows_told_right": solution.table.summarise(Measure.ACCURACY).means,
    }
    return [
        {
            "method": cell.method.value,
            "bound": None if cell.method is Method.FOLLOWED else cell.reach,
            "row_clip": cell.clip,
            "largest_user_weight": finite_or_none(float(solution.largest_weights[i])),
            "runs": int(loss_summary.run_counts[i]),
            **{
                score_key: finite_or_none(float(cell_scores[i]))
                for score_key, cell_scores in scores_by_key.items()
            },
        }
        for i, cell in enumerate(solution.cells)
    ]


def write_runs(run_table: RunTable, provenance: Provenance) -> str:
    """Write every finished run as CSV: ``method``, ``bound``, ``row_clip``, ``run``, ``split``, eight scores.

    Scores are named after their side, what they are a mean over, and the measure: ``held_out_rows_loss``.
    """
    run_cell_indices, run_numbers = np.nonzero(np.isfinite(run_table.scores[:, :, 0, 0, 0]))
    run_cells = [run_table.experiment.cells[cell_index] for cell_index in run_cell_indices]
    columns_by_name: dict[str, object] = {
        "method": [cell.method.value for cell in run_cells],
        "bound": [cell.reach for cell in run_cells],
        "row_clip": [cell.clip for cell in run_cells],
        "run": run_numbers,
        "split": run_numbers % len(run_table.experiment.splits),
    }
    score_triples = itertools.product(("trained_on", "held_out"), ScoreUnit, Measure)
    for (side_name, score_unit, measure), run_scores in zip(
        score_triples, run_table.scores[run_cell_indices, run_numbers].reshape(-1, 8).T, strict=True
    ):
        columns_by_name[f"{side_name}_{score_unit.value}_{measure.value}"] = run_scores
    columns_by_name["label"] = provenance.label
    return pd.DataFrame(columns_by_name).to_csv(index=False, lineterminator="\n")
