"""Classifier where a table is large or a public demo makes fewer runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpcore.training import account, experiment
from dpcore.training.answer import TrainingSolution
from dpcore.training.answer.solution import Runs
from dpcore.training.mechanism import Pace
from dpcore.training.parameters import DataSource
from dpcore.training.training_data import TrainingData
from pages.shared.server import access
from pages.training import question as limits
from tests.pages.driving import check, open_app, shown_texts, work_waits_for_stop
from tests.pages.training.conftest import (
    JOB,
    LINK,
    MADE,
    PARAMETERS,
    TITLE,
    answer_for,
    make_experiment,
    open_small,
    wait_for_runs,
)


@pytest.mark.long
def test_a_large_table_has_a_first_look(monkeypatch):
    # With a threshold of forty rows the small table is a large one; its whole runs wait until Stop.
    monkeypatch.setattr(experiment, "MAX_FIRST_LOOK_ROWS", 20)
    look = experiment.make_first_look(make_experiment())
    references = experiment.compute_references(look)
    table = experiment.fill_table(look.make_empty_table())
    training_data = TrainingData(MADE.dataset, "an account", scaling=MADE.scaling)
    solution = TrainingSolution(training_data, PARAMETERS, Runs(table, references))
    assert "A first look at" in answer_for(solution).detail
    assert solution.best_cell is not None
    # Its program has the noise of everybody, as that of the whole runs.
    for parameters in (PARAMETERS, replace(PARAMETERS, pace=Pace.ENTERED)):
        first_look = experiment.make_first_look(make_experiment(parameters))
        runs = Runs(
            experiment.fill_table(first_look.make_empty_table()), experiment.compute_references(first_look)
        )
        code = answer_for(TrainingSolution(training_data, parameters, runs)).code
        smooth = next(form for name, form in code.forms if name.startswith("Smooth"))
        mechanism = parameters.mechanism
        needed = (
            account.plan_rule_noise(mechanism, False).direction_noise_std
            if parameters.pace is Pace.RULE
            else account.plan_noise(mechanism, smooth.threshold).gradient_noise_std
        )
        assert smooth.training.gradient_noise_std == pytest.approx(needed)
    work_waits_for_stop(monkeypatch)
    app = open_app(TITLE, **LINK)
    app.session_state[JOB].stop()
    wait_for_runs(app)
    result = app.session_state[JOB].result
    assert result is None or result.user_share < 1.0
    monkeypatch.undo()
    if result is not None:
        assert "Stopped after a first look" in shown_texts(app)
        app.button(key="training_again").click()
        wait_for_runs(check(app.run()))
        assert "9 runs of every method at every bound" in shown_texts(app)


@pytest.mark.long
def test_a_public_demo_makes_fewer_runs_and_takes_no_table(monkeypatch):
    monkeypatch.setattr(access, "is_served", lambda: True)
    monkeypatch.setattr(limits, "MAX_DEMO_RUNS", 3)
    app = open_small(runs="60")
    assert "A public demo makes 3 runs of each" in shown_texts(app)
    assert "3 runs of every method" in shown_texts(app)
    wait_for_runs(check(app.number_input(key="training.num_users").set_value(40_000).run()))
    assert "A public demo generates at most 2,000 users" in shown_texts(app)
    check(app.segmented_control(key="training.source").set_value(DataSource.UPLOAD).run())
    assert "uploads and paths are switched off" in shown_texts(app)
    assert not app.file_uploader
