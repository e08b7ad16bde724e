"""The error of a sum whose totals per user have both signs.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset, Values
from dpcore.report.scaffold import BLUE, GREEN, ORANGE, PURPLE, figure, keep, line, say
from dpcore.total.parameters import Summed, TotalParameters, user_totals
from dpcore.total.signed import clipped_sum, proposed_bound, symmetric_errors

# %% The question, as it was entered
parameters = TotalParameters(epsilon=1.0, summed=Summed.VALUES)

# %% The data
gains = Values(np.array([0, 0, 1, 2]), np.array([3.0, 4.0, -2.0, 1.0]), "gain")
histogram = ContributionHistogram.from_counts([2, 1, 1])
data = Dataset("gains", "an example", Disclosure.PUBLIC, histogram, values=gains)

# %% The answer
held = user_totals(data, parameters.summed)
assert held.signed is not None  # Some total is below 0.
how = (parameters.epsilon, parameters.mechanism, parameters.delta)
low, high = parameters.lower, parameters.upper
if low is None or high is None:  # The proposal: [-T, T], read off the data, in few digits.
    high = proposed_bound(held.signed, *how)
    low = -high
clipped = clipped_sum(held.signed, low, high, *how)

rmse = parameters.measure is Measure.RMSE
say("Range", f"[{wording.number(clipped.low, 4)}, {wording.number(clipped.high, 4)}]")
say("Largest change by one user", wording.number(clipped.sensitivity, 4))
say("RMSE" if rmse else "Expected error", wording.number(clipped.rmse if rmse else clipped.absolute_error))
say("Bias", wording.number(abs(clipped.bias)))
say("Noise", wording.number(clipped.noise))

# %% Figures
amounts = Amounts.from_totals(np.abs(held.signed))
values = amounts.values[amounts.values > 0.0]
bounds = log_spaced(max(float(values[0]), amounts.largest / 1e6), 2.0 * amounts.largest, 240)
errors = symmetric_errors(held.signed, bounds, *how)
fig = figure("Error when totals are clipped to [-T, T]", "T", "Error of the released sum")
line(fig, "Expected absolute error", bounds, errors.absolute_error, BLUE)
line(fig, "Root mean squared error", bounds, errors.rmse, ORANGE)
line(fig, "Size of the bias", bounds, errors.bias, GREEN, dash="dot")
line(fig, "Noise", bounds, errors.noise, PURPLE, dash="dash")
keep(fig, "total-signed")
