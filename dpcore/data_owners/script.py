"""The bounds of data owners who train alone or together, and where they cross.

A program that a person takes away (`dpcore.report.script`), here with an example of a question and data.
"""

# %% What it uses
import numpy as np

from dpcore.common import wording
from dpcore.data import samples
from dpcore.data_owners import crossings, unequal
from dpcore.data_owners.bounds import Private, alone, together, without_privacy
from dpcore.data_owners.parameters import OwnersParameters
from dpcore.report.scaffold import BLUE, GREEN, GREY, ORANGE, figure, keep, line, say

# %% The question, as it was entered
parameters = OwnersParameters(epsilon=1.0)

# %% The data
data = samples.load("online-retail-lines")
histogram = data.histogram

# %% The answer
of, cap = parameters.collaboration(), None
if histogram is not None:
    if parameters.whole_owner:
        cap = unequal.best_cap(histogram, of)
        say("Best cap", wording.counted(cap.cap, "record"))
        say("Best cap, how sure", cap.certificate.sentence)
    of = parameters.of_histogram(histogram, None if cap is None else cap.cap)
needed = {private: crossings.owners_needed(of, private) for private in Private}
words = {private: "none suffice" if n is None else wording.number(n) for private, n in needed.items()}
say("Owners needed", words[Private.JOINT])
say("Owners needed, full privacy", words[Private.FULL])
say("Bound on excess loss", wording.number(float(together(of, Private.JOINT))))
say("Bound with full privacy", wording.number(float(together(of, Private.FULL))))
say("Bound without privacy", wording.number(float(without_privacy(of))))
say("Bound alone", wording.number(float(alone(of))))
say("ε from which joining pays", wording.number(float(crossings.epsilon_star(of, Private.JOINT))))

# %% Figures
owners = np.geomspace(1.0, 1e4, 200)
many = of.having(owners=owners)
fig = figure("Bounds on the excess loss", "Owners, n", "Bound")
line(fig, "Alone", owners, np.broadcast_to(alone(many), owners.shape), GREY)
line(fig, "Together, no privacy", owners, without_privacy(many), GREEN)
line(fig, "Together, joint privacy", owners, together(many, Private.JOINT), BLUE)
line(fig, "Together, full privacy", owners, together(many, Private.FULL), ORANGE)
keep(fig, "data-owners-bounds")
