"""Implicit feedback on the page Factorisation: recall over epsilon, trained on what users chose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.common.progress import ShouldStop
from dpcore.factorisation.answer import FactorisationSolution
from dpcore.factorisation.answer import plots as core_plots
from dpcore.factorisation.implicit import select_choices
from dpcore.factorisation.implicit_study import RECOMMENDERS, ImplicitResult, run
from dpcore.factorisation.parameters import CHOICE_SPREAD, RatingSource
from pages.factorisation.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots

JOB = QUESTION.key("implicit_job")


def show(solution: FactorisationSolution) -> None:
    """Draw the tab: what counts as chosen, the button, recall over epsilon and by popularity."""
    parameters = solution.parameters
    uses_data = parameters.source is RatingSource.DATA
    st.markdown(
        "**What should be recommended?** It counts what users chose, not how they rate it; what they did not choose "
        "counts a little as *no*. Users are held out whole, and a fifth of what they chose is to be found among the "
        "first 20 recommended. "
        + (
            "Of your ratings, those from the number below on are choices."
            if uses_data
            else "These choices are generated as the settings say, and here taste decides what is chosen."
        )
    )
    fields.draw_row(QUESTION, *(("chosen_from", "unobserved") if uses_data else ("unobserved",)))
    if not jobs.working(JOB):
        study = parameters.implicit_study
        st.button(
            f"Train on choices, {wording.counted(study.repeats, 'seed')}",
            icon=":material/model_training:",
            key="factorisation_train_choices",
            on_click=_start,
            args=(solution,),
            help="About as long as a third of *Train*.",
        )
    question_and_result = jobs.outcome(JOB, "Training on choices", _question(solution), live=True)
    if question_and_result is None:
        return
    question, result = question_and_result
    # Of the ratings that it was trained on: those in use may be others by now.
    disclosure: Provenance = question[0]
    if not isinstance(result, ImplicitResult) or not np.isfinite(result.recall).any():
        st.info("Stopped before the first model was done.", icon=":material/stop_circle:")
        return
    st.markdown(core_plots.write_recommendation(result, parameters.epsilon))
    plots.draw_titled(core_plots.plot_recall(result, disclosure))
    _show_table(result)
    cards.label(disclosure)


def _question(solution: FactorisationSolution) -> tuple[Provenance, *tuple[object, ...]]:
    """Return the key of a training: the ratings, their provenance first, and the study without the page's epsilon."""
    parameters = solution.parameters
    study = replace(parameters.implicit_study, epsilons=(1.0,))
    return (
        solution.table.disclosure,
        solution.table.key,
        study,
        parameters.train_epsilons,
        parameters.chosen_from,
    )


def _start(solution: FactorisationSolution) -> None:
    parameters, ratings = solution.parameters, solution.table.ratings

    def work(progress: jobs.Progress, stop: ShouldStop) -> ImplicitResult:
        if parameters.source is RatingSource.DATA:
            choices = select_choices(ratings, parameters.chosen_from)
        else:
            population = replace(parameters.population, choice_spread=CHOICE_SPREAD)
            choices = select_choices(population.draw(np.random.default_rng(parameters.data_seed)))
        return run(choices, parameters.implicit_study, progress, stop)

    jobs.start(JOB, _question(solution), work, heavy=True)


def _show_table(result: ImplicitResult) -> None:
    """Draw the recall of each model by popularity, at the largest epsilon that is done."""
    done = np.isfinite(result.recall[:, :, 0, 0]).all(axis=0)
    if not done.any():
        return
    epsilon_index = int(np.flatnonzero(done)[-1])
    table: dict[str, list[object]] = {"Model": [model.value for model in RECOMMENDERS]}
    means = [result.summarise(model).mean[epsilon_index] for model in RECOMMENDERS]
    for bucket, name in enumerate(("All", *core_plots.BUCKET_NAMES)):
        table[name] = [float(mean[bucket]) for mean in means]
    epsilon = wording.entered(result.study.epsilons[epsilon_index])
    st.markdown(
        f"**By popularity, at ε = {epsilon}.** Recall at 20 over all items; by fifths of the items at 100 on the "
        "rarest to 20 on the most chosen."
    )
    tables.show(
        table,
        "Recall of each model, over all items and by popularity",
        "factorisation_recall_table",
        dict.fromkeys([name for name in table if name != "Model"], "%.3f"),
    )
