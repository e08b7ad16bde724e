"""Who gets the budget, and whether a factorisation beats item means.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import math

import numpy as np

from dpcore.common import wording
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.parameters import FactorisationParameters, load_ratings
from dpcore.factorisation.shares import budget_shares
from dpcore.factorisation.study import SCHEMES, Kind, run
from dpcore.report.scaffold import BLUE, GREEN, GREY, ORANGE, PURPLE, figure, keep, line, say

# %% The question, as it was entered
parameters = FactorisationParameters(1.0, num_users=600, num_items=120, ratings_per_user=20.0, repeats=2)

# %% The data
ratings = load_ratings(parameters)
assert ratings is not None

# %% The answer
shares = {
    scheme: budget_shares(ratings, scheme, parameters.spending, parameters.exponent) for scheme in Scheme
}
over_signal = shares[Scheme.ADAPTIVE].noise_to_signal
say("Noise s on each sum", wording.number(shares[Scheme.ADAPTIVE].noise))
say("Noise on the rarest items", f"{wording.number(float(over_signal[0]), 2)}\u00d7")
say("Noise on popular items", f"{wording.number(float(over_signal[-1]), 2)}\u00d7")
say("Noise on each count", wording.number(parameters.spending.count_noise))

# Every model on the same splits and noise; what follows is at the epsilon of the question.
result = run(ratings, parameters.study)
at = result.study.epsilons.index(parameters.epsilon)
errors = {kind: float(result.mean(kind)[0][at, 0]) for kind in Kind}
best = min(SCHEMES, key=errors.__getitem__)
gain, half = (float(x[at, 0]) for x in result.difference(Kind.PRIVATE_MEAN, best))
worth_it = gain - (half if math.isfinite(half) else 0.0) > 0.0
chosen = best if worth_it else Kind.PRIVATE_MEAN
say("A factorisation beats DP item means", "yes" if worth_it else "no")
say(f"Test error (RMSE), {chosen.value}", f"{errors[chosen]:.4f}")
error_half = float(result.mean(chosen)[1][at, 0])
if math.isfinite(error_half):
    say(f"Interval, 95{wording.PERCENT}", f"\u00b1 {error_half:.4f}")
else:
    say("Seeds", "only one")
say("Best factorisation", f"{errors[best]:.4f}")

# %% Figures
fifths = np.arange(1, 6)
colors = {Scheme.UNIFORM: GREY, Scheme.TAIL: GREEN, Scheme.ADAPTIVE: BLUE}
fig = figure("Who gets the budget", "Fifths of the items, rarest first", "Share of the budget", log="")
for scheme, found in shares.items():
    line(fig, scheme.value, fifths, found.shares, colors[scheme])
keep(fig, "factorisation-shares")

fig = figure("Test error over \u03b5", "Privacy budget \u03b5", "Test error (RMSE)", log="x")
for kind in (*SCHEMES, Kind.PRIVATE_MEAN, Kind.ITEM_MEAN, Kind.NO_PRIVACY):
    color = {Kind.PRIVATE_MEAN: ORANGE, Kind.ITEM_MEAN: ORANGE, Kind.NO_PRIVACY: PURPLE}.get(kind)
    dash = "solid" if kind.is_private else "dash"
    means = result.mean(kind)[0][:, 0]
    line(fig, kind.value, result.study.epsilons, means, color or colors[SCHEMES[kind]], dash)
keep(fig, "factorisation-errors")

fig = figure(
    "Error against uniform sampling", "Fifths of the items, rarest first", "Difference of RMSE", log=""
)
for kind in (Kind.TAIL, Kind.ADAPTIVE):
    line(fig, kind.value, fifths, result.difference(kind, Kind.UNIFORM)[0][at, 1:], colors[SCHEMES[kind]])
keep(fig, "factorisation-buckets")
