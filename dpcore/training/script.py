"""Loss of a private classifier against the bound on a user's weight, over many runs.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore.common import wording
from dpcore.report.scaffold import BLUE, GREEN, GREY, ORANGE, figure, keep, line, say
from dpcore.training import experiment
from dpcore.training.parameters import TrainingParameters
from dpcore.training.rows import prepare
from dpcore.training.sample import ticket_data
from dpcore.training.scores import Measure, Over
from dpcore.training.weighting import Method

# %% The question, as it was entered
parameters = TrainingParameters(epsilon=1.0)

# %% The data
data, scaling = ticket_data()
assert data.table is not None

# %% The answer
question = parameters.experiment(prepare(data.table, scaling, parameters.positive_above))
table = experiment.fill(question.empty())
known = experiment.references(question)
best = experiment.best(table, Method.SMOOTH)
assert best is not None
loss = table.summary(Measure.LOSS, Over.ROWS)
accuracy = table.summary(Measure.ACCURACY, Over.ROWS)

say("Bound h", wording.number(question.cells[best.at].bound))
say("Loss on users held out", wording.number(float(loss.mean[best.at])))
say("95 % interval over the runs", f"± {wording.number(float(loss.half_width[best.at]), 2)}")
say("Without privacy", wording.number(float(known.no_privacy[1, 0, 0])))
say("Guessing", wording.number(float(known.guessing[1, 0, 0])))
say("Rows told right", wording.percent(float(accuracy.mean[best.at]), 3))

# %% Figures
fig = figure("Loss against the bound", "Bound h (rows per user)", "Loss on users held out", log="x")
colors = {Method.SMOOTH: ORANGE, Method.CAP: BLUE}
for method in parameters.methods:
    cells = table.cells_of(method)
    h = np.array([question.cells[at].bound for at in cells])
    line(fig, method.value.capitalize(), h, loss.mean[cells], colors.get(method, GREY))
ends = np.array([1.0, question.train.sizes.max()])
line(fig, "No privacy", ends, np.full(2, known.no_privacy[1, 0, 0]), GREEN, dash="dot")
line(fig, "Guessing", ends, np.full(2, known.guessing[1, 0, 0]), GREY, dash="dash")
keep(fig, "training-loss")
