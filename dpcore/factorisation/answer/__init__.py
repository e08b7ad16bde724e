"""The answer for a recommender as data. It imports the mathematics of `dpcore.factorisation`, never the other way."""

from dpcore.factorisation.answer.answer import build_answer
from dpcore.factorisation.answer.solution import (
    IGNORED_FIELD_NAMES,
    FactorisationSolution,
    compare_over_epsilon,
    solve,
)
