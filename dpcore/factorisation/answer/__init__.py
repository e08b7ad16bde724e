"""The answer for a recommender as data. It imports the mathematics of `dpcore.factorisation`, which knows it not."""

from dpcore.factorisation.answer.answer import build_answer
from dpcore.factorisation.answer.found import NOT_COMPARED, FactorisationFound, against_epsilon, find
