"""The best bound on what one user adds to a sum or count.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
from dpcore import total
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.contributions import log_spaced
from dpcore.data import samples
from dpcore.report.scaffold import BLUE, GREEN, GREY, ORANGE, PURPLE, figure, keep, line, point, say
from dpcore.total.parameters import TotalParameters, user_totals

# %% The question, as it was entered
parameters = TotalParameters(epsilon=1.0)

# %% The data
data = samples.load("online-retail-lines")

# %% The answer
held = user_totals(data, parameters.summed)
assert held.amounts is not None  # No total is below 0.
problem = parameters.problem(held.amounts)
choice = total.best_bound(problem)
# The best bound on totals is handed over in few digits; the proof is about the exact one.
bound = total.short_bound(problem, choice.max_total)
at = total.errors(problem, bound)


def amount(value: float, digits: int = 3) -> str:
    """With its unit: rows, or bare for the total of a column."""
    text = wording.number(value, digits)
    return text if held.column else f"{text} {'row' if value == 1 else 'rows'}"


names = {Measure.ABSOLUTE: "Expected error", Measure.RMSE: "RMSE", Measure.BOUND: "Error, at most"}
say("Best bound T", amount(bound, 4))
say(names[problem.measure], amount(float(total.measured(problem, bound))))
say("Cut away (bias)", amount(float(at.bias)))
say("Noise", amount(float(at.noise)))
low, high = total.bounds_within(problem)
say("Bounds within 5 % of the best", f"{amount(low)} to {amount(high)}")
say("How sure", f"{choice.ended} {choice.certificate.sentence}")

# %% Figures
values = held.amounts.values[held.amounts.values > 0.0]
most = held.amounts.largest
bounds = log_spaced(max(float(values[0]), most / 1e6), 2.0 * most, 240)
errors = total.errors(problem, bounds)
fig = figure("Error against the bound", "Bound T on what one user adds", "Error")
line(fig, "Expected absolute error", bounds, errors.absolute_error, BLUE)
line(fig, "Root mean squared error", bounds, errors.rmse, ORANGE)
line(fig, "Bias + noise (the paper's bound)", bounds, errors.bound, GREY)
line(fig, "Bias", bounds, errors.bias, GREEN, dash="dot")
line(fig, "Noise", bounds, errors.noise, PURPLE, dash="dash")
if choice.max_total > 0.0:
    point(fig, "Best bound", choice.max_total, choice.certificate.value, BLUE)
keep(fig, "total-error")
