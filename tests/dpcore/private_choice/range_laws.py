"""The laws of the draws of a range, from their scores."""

import numpy as np
from scipy.special import softmax

from dpcore.dataset import Values
from dpcore.private_choice import private_range
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import RESOLUTION


def end_probabilities(problem: RangeProblem, values: Values | None, anchor: float) -> list[np.ndarray]:
    """Return the chance of every candidate of each draw beside an anchor."""
    slope = problem.epsilon_of_end / (2.0 * RESOLUTION)
    return [softmax(slope * np.array(s, float)) for s in private_range.score_ends(problem, values, anchor)]


def centre_probabilities(problem: RangeProblem, values: Values | None) -> np.ndarray:
    """Return the chance of every candidate for the centre."""
    slope = problem.epsilon_of_centre / (2.0 * problem.centre_sensitivity)
    return np.asarray(softmax(slope * np.array(private_range.score_centres(problem, values), float)))
