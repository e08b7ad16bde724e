"""How much better can smooth weights be than a cap? Instances, limits, proofs and checks.

Source: Epasto et al. 2020, section 3.3, appendices A and D.4. docs/gap.md has the argument beyond the paper:
the paper's factor 4 becomes 25/16 for real caps and 1.56493 for whole ones, both best possible.
"""

from dpcore.gap_examples.batch import ratios, worst_noise_ratio
from dpcore.gap_examples.compare import (
    PAPER_BOUND,
    Comparison,
    FourfoldProof,
    compare,
    fourfold_proof,
    noise_ratio,
    with_noise_ratio,
)
from dpcore.gap_examples.domination import Domination, dominate, level_curve
from dpcore.gap_examples.parameters import GapParameters, InstanceKind, table_text
from dpcore.gap_examples.regression import RegressionInstance, enumerate_sample_limiting, weighted_variance
from dpcore.gap_examples.regression_examples import (
    Example,
    example_1,
    example_3,
    limit_example_1,
    limit_example_3,
)
from dpcore.gap_examples.search import GapSearch, SearchResult, search
from dpcore.gap_examples.simulation import Estimate, Simulation, SimulationResult, simulate, simulate_curve
from dpcore.gap_examples.two_groups import (
    REAL_CAPS_SUPREMUM,
    ROUNDING_BOUND,
    WorstNoise,
    fine_cap_limit,
    supremum,
    theorem_2,
    theorem_2_problem,
    two_group_problem,
    whole_cap_limit,
    worst_noise,
)
