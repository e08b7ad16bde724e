"""The solution for a classifier in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math

from dpcore.answer import standard
from dpcore.answer.answer import Number, RelativeError
from dpcore.answer.methods import ChoiceSource, Methods, write_guarantee
from dpcore.common.progress import Stage
from dpcore.common.wording import (
    choose_word,
    escape_text,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.training.account import Cell, Method
from dpcore.training.answer.solution import TrainingSolution
from dpcore.training.mechanism import Average, Pace, apply_rule
from dpcore.training.parameters import TrainingParameters
from dpcore.training.release import Model, ReleaseRecord
from dpcore.training.rows import Measure

WEAK_EPSILON, WEAK_DELTA = 20.0, 0.01
"""From these on the card says that there is hardly any protection."""


def describe_cell(cell: Cell) -> str:
    """Describe a cell: ``smooth weights of at most one row per user``, ``a cap: at most 3 rows per user``."""
    rows_phrase = "one row" if cell.bound == 1.0 else f"{format_entered(cell.bound)} rows"
    clipping_phrase = f" with gradients shortened to {format_number(cell.clip)}" if cell.clip < 1.0 else ""
    return {
        Method.FOLLOWED: "each user's gradient sum clipped to a bound that adapts",
        Method.CAP: f"a cap: at most {rows_phrase} per user, drawn at random{clipping_phrase}",
        Method.CLIPPED_SUM: f"each user's gradient sum clipped to the size of {rows_phrase}",
        Method.OUTPUT: f"output perturbation, smooth weights of at most {rows_phrase} per user",
        Method.SMOOTH: f"smooth weights of at most {rows_phrase} per user{clipping_phrase}",
    }[cell.method]


def build_numbers(solution: TrainingSolution) -> tuple[Number, ...]:
    """Build the card's numbers: loss, references, 95 % intervals, accuracy, and the bound if a fixed one is best."""
    cell, interval_text = solution.answer_cell, format_uncertainty(solution)
    mean_loss, mean_accuracy = solution.average(Measure.LOSS), solution.average(Measure.ACCURACY)
    loss_without_privacy, guessing_loss, *_ = solution.average_references()
    reference_accuracies = solution.average_references(Measure.ACCURACY)
    loss_help = "Mean over rows. The 95 % intervals are for the noise, and for other users held out."
    private_text, guessing_text = format_number(loss_without_privacy), format_number(guessing_loss)
    numbers = [
        Number(
            "Loss on users held out",
            format_number(mean_loss),
            help=loss_help,
            value=mean_loss,
            key="loss_users_held_out",
        ),
        Number("Without privacy", private_text, f"(guessing {guessing_text})", value=loss_without_privacy),
        Number("Guessing", guessing_text, "one score for all rows", value=guessing_loss),
        Number("95 % intervals", interval_text),
        Number(
            "Rows told right",
            format_percent(mean_accuracy, 3),
            f"{format_percent(reference_accuracies.without_privacy, 3)} without privacy",
            f"Guessing: {format_percent(reference_accuracies.guessing, 3)}.",
            mean_accuracy,
        ),
    ]
    if has_fixed_bound(solution):
        bound_unit, bound_help = "rows per user", "The most by which one user moves the sum of gradients."
        bound_note = choose_word(cell.reach, "row per user", bound_unit)
        numbers.append(
            Number("Bound h", format_number(cell.reach), bound_note, bound_help, cell.reach, bound_unit)
        )
    return tuple(numbers)


def has_fixed_bound(solution: TrainingSolution) -> bool:
    """Return True if the answer is a fixed bound; False if no method is useful, or if the bound adapts."""
    return not solution.is_useless and solution.answer_cell.method is not Method.FOLLOWED


def measure_relative_error(solution: TrainingSolution) -> RelativeError:
    """Return how much of the gain over guessing that training without privacy has is lost to privacy."""
    loss_without_privacy, guessing_loss, *_ = solution.average_references()
    gain_without_privacy = guessing_loss - loss_without_privacy
    lost_gain = solution.average(Measure.LOSS) - loss_without_privacy
    return RelativeError(
        max(lost_gain, 0.0) / gain_without_privacy if gain_without_privacy > 0.0 else math.inf,
        "the gain over guessing",
        error_phrase="privacy costs",
    )


def format_uncertainty(solution: TrainingSolution) -> str:
    """Format the 95 % half-widths of the answer's loss, as in ``± 0.003 noise, ± 0.02 users``.

    Those that are NaN are left out.
    """
    loss_summary, answer_index = solution.table.summarise(), solution.answer_index
    return ", ".join(
        f"± {format_number(float(half_widths[answer_index]), 2)} {source_word}"
        for source_word, half_widths in (
            ("noise", loss_summary.half_widths),
            ("users", loss_summary.users_half_widths),
        )
        if math.isfinite(half_widths[answer_index])
    )


def write_headline(solution: TrainingSolution) -> str:
    """Write the headline: the method to train with, its best bound, or that guessing is better or as good."""
    if solution.is_useless:
        return "Do not train with this budget: guessing does better."
    if solution.is_unclear:
        return "Not clear whether training beats guessing with this budget."
    return f"Train with {describe_cell(solution.answer_cell)}."


def describe_near_optimal(solution: TrainingSolution) -> str:
    """Write the near-optimal bounds of the answer's method, or that it sets its own; empty if no method is useful."""
    assert solution.best_cell is not None
    method, highest_bound = solution.answer_cell.method, solution.best_cell.highest_near_optimal
    if solution.is_useless:
        return ""
    if method is Method.FOLLOWED:
        return "this method sets its own bound."
    is_unbounded = highest_bound == solution.reaches[solution.table.find_cell_indices(method)[-1]]
    objective_phrase = "the least loss; the upper end is no bound" if is_unbounded else "the least loss"
    return standard.write_near_optimal_range(
        solution.best_cell.lowest_near_optimal,
        highest_bound,
        symbol="h",
        objective_text=objective_phrase,
        worse_choices_phrase="the next bounds tried",
    )


def write_detail(solution: TrainingSolution) -> str:
    """Write the losses for comparison, and the sentences that qualify the headline."""
    loss_without_privacy_text, guessing_loss_text, *_ = map(format_number, solution.average_references())
    parameters = solution.parameters
    sentences = [
        f"The loss is {loss_without_privacy_text} without privacy, and {guessing_loss_text} for one constant score."
    ]
    if solution.runs.user_share < 1.0:
        user_share_text = format_percent(solution.runs.user_share)
        sentences.append(f"**A first look at {user_share_text} of the users, with the noise of all.**")
    if parameters.epsilon >= WEAK_EPSILON or parameters.delta >= WEAK_DELTA:
        sentences.append("**ε or δ of this size gives hardly any protection.**")
    if solution.is_useless or solution.is_unclear:
        sentences.append("Raise ε, add users, or use fewer features.")
    if solution.data.dataset.is_private and solution.answer_cell.method is not Method.FOLLOWED:
        remedy_text = "Choose it without these data."
        if Method.FOLLOWED in solution.best_cell_by_method:
            adaptive_loss_text = format_number(_average_loss(solution, Method.FOLLOWED))
            remedy_text = f"An adaptive bound needs no choice; its loss is {adaptive_loss_text}."
        sentences.append(standard.warn_of_leak("this bound was", remedy_text=remedy_text))
    # These sentences stand last, since they come and go while the runs are made.
    if not solution.table.is_finished:
        num_runs_done = int(solution.table.runs_done[solution.answer_index])
        sentences.append(f"**{num_runs_done} of {solution.table.experiment.num_runs} runs so far.**")
    if solution.stage is Stage.EARLIER:
        sentences.append("**This is the answer for the previous settings.**")
    return " ".join(sentences)


def build_facts(solution: TrainingSolution) -> dict[str, str]:
    """Build one fact, a sentence by its heading: what clipped sums with an adaptive bound lose, and by which part.

    Empty if they have no runs.
    """
    if Method.FOLLOWED not in solution.best_cell_by_method:
        return {}
    adaptive_loss, ref_losses = _average_loss(solution, Method.FOLLOWED), solution.average_references()
    loss_differences = (
        adaptive_loss - ref_losses.without_privacy,
        ref_losses.without_noise_and_clipping - ref_losses.without_privacy,
        ref_losses.without_noise - ref_losses.without_noise_and_clipping,
        adaptive_loss - ref_losses.without_noise,
    )
    excess_text, stopping_text, clipping_text, noise_text = (format_number(x, 2) for x in loss_differences)
    return {
        "Where the loss comes from": f"an adaptive bound loses {excess_text} to privacy: {stopping_text} by "
        f"stopping early, {clipping_text} by clipping, {noise_text} by noise."
    }


def _average_loss(solution: TrainingSolution, method: Method) -> float:
    """Return the mean loss over rows held out of a method at its best bound."""
    return solution.average(Measure.LOSS, cell_index=solution.best_cell_by_method[method].cell_index)


def describe_inputs(solution: TrainingSolution) -> str:
    """Describe the rows on the first split: users and rows on both sides, features, and the share of label 1."""
    experiment = solution.table.experiment
    train_phrase, test_phrase = (
        f"{format_count(side_rows.num_users, 'user')} with {format_count(side_rows.num_rows, 'row')}"
        for side_rows in (experiment.train, experiment.test)
    )
    return (
        f"{escape_text(solution.data.dataset.source, 600)} {train_phrase} to train on, {test_phrase} held out; "
        f"{format_count(experiment.train.num_features, 'feature')} with the intercept; "
        f"{format_percent(float((experiment.train.signs > 0).mean()))} of the labels are 1."
    )


def describe_runs(solution: TrainingSolution) -> str:
    """Describe how many runs are done, with an icon: a first look, stopped after some, or all of every method."""
    if solution.runs.user_share < 1.0:
        return ":material/pan_tool: Stopped after a first look at some of the users."
    num_runs = solution.table.experiment.num_runs
    if not solution.table.is_finished:
        return f":material/pan_tool: Stopped after {solution.table.runs_done.min()} of {num_runs} runs."
    return f":material/check: {format_count(num_runs, 'run')} of every method at every bound."


def describe_model(record: ReleaseRecord) -> str:
    """Describe how a released model is applied, how it was trained, and its noise."""
    model, noise_unit_text = record.model, "rows on each coordinate of a step's summed gradient"
    bound_text = ""
    if model.cell.method is Method.OUTPUT:
        noise_unit_text = "on each coordinate of θ"
    elif model.cell.method is Method.FOLLOWED:
        bound_text = f" The last bound was {format_count(model.last_bound, 'row')}."
    return (
        "Clip features to their ranges and map these to [−1, 1]; divide a row by "
        f"{format_number(record.scaling.norm)}, or by its norm if that is larger. A score θ·x above 0 says "
        f"**{escape_text(record.positive_meaning, 120)}**. Trained with {describe_cell(model.cell)}. Noise: standard "
        f"deviation {format_number(model.noise_std)} {noise_unit_text}.{bound_text}"
    )


RELEASED_SENTENCE_START = "A linear classifier was released"
PHRASE_BY_AVERAGE = {
    Average.ALL: "the average of all iterates",
    Average.LAST_HALF: "the average of the last half of the iterates",
    Average.LAST: "the last iterate",
}


def write_methods(solution: TrainingSolution, model: Model | None = None) -> Methods | None:
    """Write the methods text of a released model, else of the program for the answer's cell; None if there is neither.

    The two differ in bound and mechanism: the page releases with the entered settings, all users in every step
    and OpenDP's discrete noise; the program has the method that answers, and may sample users.

    Args:
        solution: What was simulated.
        model: The page's own release for these settings; None where there is none.

    Returns:
        The sentences; None where nothing was released and no run is finished.
    """
    parameters = solution.parameters
    if model is not None:
        return _describe_release(parameters, model)
    if solution.best_cell is None:
        return None
    cell, is_adaptive = solution.answer_cell, solution.answer_cell.method is Method.FOLLOWED
    bound_sentence, fit_sentences = _describe_bound(cell), _describe_training(parameters, cell, "Gaussian")
    public_bound_sentence = bound_sentence if is_adaptive else "Users were bounded by a fixed number of rows."
    if parameters.mechanism.sampled == 1.0 or is_adaptive:
        fit_sentences += (
            " The noise of all steps is that of one Gaussian mechanism, calibrated exactly [@balle2018]."
        )
    else:
        fit_sentences += (
            f" Each user took part in a step with probability {format_entered(parameters.sampled)}; the privacy "
            "losses of all steps were composed numerically [@doroshenko2022] with [@dpaccounting]."
        )
    num_runs = int(solution.table.runs_done[solution.answer_index])
    splits_phrase = format_count(len(solution.table.experiment.splits), "split")
    return Methods(
        guarantee_text=write_guarantee(
            RELEASED_SENTENCE_START, parameters.epsilon, parameters.neighbours, parameters.delta
        ),
        procedure=f"{bound_sentence} {fit_sentences} On users held out the mean loss of a row is "
        f"{format_number(solution.average(Measure.LOSS))} ({format_uncertainty(solution)}; 95 % intervals over "
        f"{format_count(num_runs, 'simulated run')} on {splits_phrase} of the users).",
        public_procedure=f"{public_bound_sentence} {fit_sentences}",
        disclosure=solution.data.dataset.provenance,
        rule_sentence="The method has the smallest mean loss on users held out, within one standard error; the bound "
        "follows the users, within the guarantee."
        if is_adaptive
        else "Method and bound have the smallest mean loss on users held out.",
        no_release_sentence=f"At ε = {format_entered(parameters.epsilon)} and δ = {format_entered(parameters.delta)} "
        "no method trained a classifier better than guessing, and nothing was released."
        if solution.is_useless
        else "",
    )


def _describe_bound(cell: Cell) -> str:
    """Write the sentence of a methods section on how users were bounded, with its source."""
    rows_phrase = f"{format_number(cell.bound, 6)} {choose_word(cell.bound, 'row', 'rows')}"
    clipping_sentence = (
        f" Gradients of rows were shortened to norm {format_number(cell.clip)}." if cell.clip < 1.0 else ""
    )
    limit_clause = f"no user weighs more than {rows_phrase}"
    weighting_sentence = f"Rows were weighted so that {limit_clause} [@epasto2020, section 4]."
    return {
        Method.FOLLOWED: "Each user's sum of gradients was clipped at a bound that follows a private quantile of their "
        "norms [@andrew2021].",
        Method.CLIPPED_SUM: f"Each user's sum of gradients was clipped to norm {format_number(cell.bound, 6)} "
        "[@mcmahan2018].",
        Method.CAP: f"At most {rows_phrase} per user, drawn once at random, were kept [@amin2019, algorithm 1]."
        f"{clipping_sentence}",
    }.get(cell.method, weighting_sentence + clipping_sentence)


def _describe_release(parameters: TrainingParameters, model: Model) -> Methods:
    """Write the methods text of the model that the page released, with the guarantee that was charged."""
    facts, cell = model.facts, model.cell
    training_sentences = (
        f"{_describe_bound(cell)} {_describe_training(parameters, cell, 'discrete Gaussian')} Contributions were "
        "rounded onto a public grid, and all users took part in every step. OpenDP drew the noise. The noise of all "
        "steps is one Gaussian mechanism, calibrated exactly [@balle2018]; its discreteness is counted."
    )
    return Methods(
        guarantee_text=write_guarantee(RELEASED_SENTENCE_START, facts.epsilon, facts.neighbours, facts.delta),
        procedure=training_sentences,
        public_procedure=training_sentences,
        disclosure=facts,
        rule_sentence="The bound followed the users, within the guarantee."
        if cell.method is Method.FOLLOWED
        else "The bound was chosen before the release; the guarantee does not cover its choice.",
        subject_phrase="The model",
        choice_source=ChoiceSource.DRAWN,
    )


def _describe_training(parameters: TrainingParameters, cell: Cell, noise_name: str) -> str:
    """Write how the model is trained: by noisy descent, or by output perturbation."""
    loss_phrase = f"the {parameters.loss.label.lower()} loss"
    if cell.method is Method.OUTPUT:
        return (
            f"The model is the minimiser of {loss_phrase} with a quadratic penalty and {noise_name} noise "
            "[@chaudhuri2011]."
        )
    mechanism = apply_rule(parameters.mechanism) if cell.method is Method.FOLLOWED else parameters.mechanism
    average_phrase, momentum_phrase = PHRASE_BY_AVERAGE[mechanism.average], ""
    if mechanism.pace is Pace.RULE:
        average_phrase, momentum_phrase = "a weighted average of the iterates", "with momentum "
    return (
        f"The model is {average_phrase} of {format_count(mechanism.steps, 'step')} of projected gradient descent "
        f"{momentum_phrase}on {loss_phrase}, with {noise_name} noise in every step [@bassily2014] and every row's "
        "gradient clipped to norm 1."
    )
