"""The best pair of bounds for a release per group, and the best bound on a user's whole vector.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore.common import wording
from dpcore.data import samples
from dpcore.per_group import (
    PerGroupParameters,
    PerGroupProblem,
    Selection,
    Statistic,
    UserGroupPairs,
    best_cap,
    best_mean_pair,
    best_pair,
    best_radial,
    best_selected_pair,
    best_selected_vector,
    errors_by_groups,
    mean_error,
    pair_error,
    words,
)
from dpcore.report.scaffold import BLUE, figure, keep, line, say

# %% The question, as it was entered
parameters = PerGroupParameters(epsilon=1.0)

# %% The data
data = samples.load("shop-events")

# %% The answer
assert data.pairs is not None
problem = PerGroupProblem(UserGroupPairs.from_facet(data.pairs, parameters.num_groups), parameters)
mean = parameters.statistic is Statistic.MEAN
selection = Selection(problem) if parameters.selection.private else None
best = (
    best_selected_pair(selection)
    if selection is not None
    else best_mean_pair(problem)
    if mean
    else best_pair(problem)
)
error = best.error_of_nothing
if not best.releases_nothing:
    # Real bounds are handed over in few digits; the proof is about the exact one.
    amount = best.max_amount if parameters.statistic.whole else words.short(best.max_amount)
    groups = best.max_groups
    if selection is not None:
        error = selection.error(groups, amount)
        released = selection.groups(groups, amount).expected_groups
        say("Groups released on average", wording.number(released))
    else:
        error = mean_error(problem, groups, int(amount)) if mean else pair_error(problem, groups, amount)
    say(words.pair_label(parameters), words.pair_words(parameters, groups, amount))
    say("Error of the pair", words.error_words(parameters, error))
else:
    say("Best pair", "none" if best.settled else "none found")
    say("Error of publishing nothing", words.error_words(parameters, error))
proof = "" if best.certificate is None else best.certificate.sentence
say("Pair, how sure", f"{best.ended} {proof}")
if selection is not None:
    vector = best_selected_vector(selection)
    if vector is not None:
        say("T where users are scaled", wording.number(words.short(vector.max_norm)))
        say("L0 of the selection then", wording.number(vector.max_groups))
        say("Error of scaling", words.error_words(parameters, vector.error))
elif parameters.statistic.non_negative:
    cap, radial = best_cap(problem), best_radial(problem)
    for name, found in (("Cap", cap), ("Scaling", radial)):
        say(f"{name}, how sure", f"{found.ended} {found.certificate.sentence}")
    better = radial if radial.error < cap.error else cap
    say("T of the cap" if better is cap else "T of the scaling", wording.number(words.short(better.max_norm)))
    say("Error of scaling", words.error_words(parameters, better.error))

# %% Figures
most = int(problem.pairs.groups_per_user.max())
at = best.max_amount or float(np.abs(problem.amounts).max())
if mean or selection is not None:
    # Each L0 is a look at all pairs: some, evenly spread over their ratios.
    every = np.unique(np.rint(np.geomspace(1, most, 24)))
    error_at = selection.error if selection is not None else (lambda l0, c: mean_error(problem, l0, int(c)))
    errors = np.array([error_at(int(l0), at) for l0 in every])
else:
    errors = errors_by_groups(problem, at)
    every = np.arange(1.0, errors.size + 1.0)
fig = figure("Error at the best L-infinity", "L0, groups per user", "Error")
line(fig, "Error of the pair", every, errors, BLUE)
keep(fig, "per-group-error")
