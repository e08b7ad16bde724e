import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from dpcore.common import mechanisms
from dpcore.common.errors import InvalidInput


@settings(max_examples=40, deadline=None)
@given(sensitivity=st.floats(1e-6, 1e6), epsilon=st.floats(1e-3, 100.0))
def test_never_less_private_than_asked(sensitivity, epsilon):
    drawn = mechanisms.laplace([0.0], sensitivity, epsilon)
    assert drawn.epsilon <= epsilon
    assert drawn.scale >= sensitivity / epsilon
    assert drawn.scale == pytest.approx(sensitivity / epsilon, rel=1e-12)


def test_noise_is_laplace_of_the_stated_scale():
    # Kolmogorov-Smirnov on 4,000 independent entries; a false alarm once in a million runs.
    drawn = mechanisms.laplace(np.zeros(4000), sensitivity=3.0, epsilon=2.0)
    assert kstest(drawn.values, "laplace", args=(0.0, 1.5)).pvalue > 1e-6
    assert drawn.label == "DP release, epsilon = 2"


def test_the_label_never_rounds_epsilon_down():
    drawn = mechanisms.laplace([0.0], sensitivity=1.0, epsilon=0.1234564)
    assert drawn.label == "DP release, epsilon = 0.123457"


def test_refusals_come_together():
    with pytest.raises(InvalidInput, match=r"(?si)vector.*sensitivity.*epsilon"):
        mechanisms.laplace([[math.nan]], 0.0, 0.0)
