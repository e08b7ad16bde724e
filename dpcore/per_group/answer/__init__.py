"""The answer for a release per group as data. It imports the mathematics of `dpcore.per_group`, not the other way."""

from dpcore.per_group.answer.answer import answered, refused_answer
from dpcore.per_group.answer.distribution import DistributionFound
from dpcore.per_group.answer.found import NOT_COMPARED, PerGroupFound, against_epsilon, check, find
