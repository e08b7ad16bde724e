"""What the tests of Classifier share: all runs, few generated users, and the opened page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from dpcore.answer import Answer
from dpcore.training import experiment
from dpcore.training.answer import TrainingSolution, build_answer
from dpcore.training.experiment import Experiment
from dpcore.training.parameters import DataSource, TrainingParameters
from dpcore.training.rows import prepare_rows
from tests.pages.driving import begin, check, finish

FILL, REFERENCES = experiment.fill_table, experiment.compute_references
TITLE = "Classifier"
# As many runs as are made at once; nobody has more than six rows, so that there are few bounds to try.
SMALL = {"source": "generated", "num_users": "60", "informative": "2", "runs": "9", "splits": "3"}
LINK = {"link": "1", "epsilon": "1"} | SMALL
PARAMETERS = TrainingParameters(
    1.0, source=DataSource.GENERATED, num_users=60, informative=2, runs=9, splits=3
)
MADE = PARAMETERS.generator.generate()
JOB = "training.runs_job"


@pytest.fixture(scope="module", autouse=True)
def all_runs() -> Iterator[None]:
    """Make as many runs as on the page; tests of other pages stop at the first curve."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "fill_table", FILL)
        patch.setattr(experiment, "compute_references", REFERENCES)
        yield


def wait_for_runs(app: AppTest) -> AppTest:
    """Wait for the runs beside the page, as the polling fragment does in a browser."""
    return finish(app, JOB)


def open_tab(app: AppTest, tab: str) -> AppTest:
    app.session_state["training.tabs"] = tab
    return wait_for_runs(check(app.run()))


def release_model(app: AppTest) -> AppTest:
    check(app.button(key="training_release").click().run())
    return finish(app, "training.release_job")


def open_small(**changes: str) -> AppTest:
    return wait_for_runs(begin(TITLE, **(LINK | changes)))


def make_experiment(parameters: TrainingParameters = PARAMETERS) -> Experiment:
    return parameters.make_experiment(
        prepare_rows(MADE.dataset.table, MADE.scaling, parameters.positive_above)
    )


def answer_for(solution: TrainingSolution) -> Answer:
    return build_answer(solution.data, solution.parameters, solution)
