"""Which share of one epsilon the private choice of a bound should take, for a learner's bound and a pair per group.

    python benchmarks/shares.py

The expected error of the release at (1 - share) epsilon, with the bound of a selection at share epsilon, over the
least error at epsilon; exact, by the probabilities of the selection. Three samples with 100, 1,000 and 10,000
users, epsilon of 0.3, 1 and 3: the geometric mean of the 27 cases, and the worst case over its own best share.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from dpcore.answer.answer import ReleaseSetting
from dpcore.code.release_spec import Quantity
from dpcore.common.privacy import Neighbours
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.learning import optimal_cap
from dpcore.learning.parameters import LearningParameters
from dpcore.per_group import private_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.private_choice import choice, release_bounds

ROOT = Path(__file__).resolve().parent.parent
SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
EPSILONS, USERS = (0.3, 1.0, 3.0), (100, 1_000, 10_000)
LARGEST = 10_000


def compute_learner_error(histogram: ContributionHistogram, epsilon: float, share: float) -> float:
    """Compute the expected limit on the excess risk of a learner whose bound takes this share of epsilon."""
    parameters, num_rows = LearningParameters((1.0 - share) * epsilon), int(histogram.num_rows)
    setting = ReleaseSetting(Quantity.MODEL, parameters.epsilon, Neighbours.ADD_OR_REMOVE_USER)
    request = release_bounds.request_learner_bound(parameters, setting, num_rows, share * epsilon)
    assert isinstance(request.problem, choice.ChoiceProblem)
    fractions = np.minimum(request.problem.bounds / num_rows, 1.0)
    errors = optimal_cap.compute_error_parts(parameters.build_problem(histogram), fractions).total
    return float(choice.compute_probabilities(request.problem, histogram) @ errors)


def measure_learner() -> Iterator[list[float]]:
    """Yield the relative error at each share, a list for each case of a learner's bound."""
    for name in ("online-retail-lines", "shop-events", "requests-commits"):
        histogram = samples.load(name).histogram
        sizes = np.sort(np.repeat(histogram.sizes, histogram.users))
        for num_users in USERS:
            user_indices = ((np.arange(num_users) + 0.5) / num_users * sizes.size).astype(int)
            scaled = ContributionHistogram.from_counts(sizes[user_indices])
            for epsilon in EPSILONS:
                least_error = optimal_cap.find_best_cap(
                    LearningParameters(epsilon).build_problem(scaled)
                ).total
                yield [compute_learner_error(scaled, epsilon, share) / least_error for share in SHARES]


def build_pair_problem(
    num_groups: int, release_epsilon: float, epsilon: float
) -> private_pair.PrivatePairProblem:
    """Build the problem of a pair for rows per group, with the epsilons of the release and of the selection."""
    release = PerGroupParameters(release_epsilon, Statistic.ROWS, num_groups=num_groups)
    return private_pair.PrivatePairProblem(release, epsilon, LARGEST)


def compute_pair_error(pairs: UserGroupPairs, epsilon: float, share: float) -> float:
    """Compute the expected error of rows per group whose pair takes this share of epsilon."""
    problem = build_pair_problem(pairs.num_groups, (1.0 - share) * epsilon, share * epsilon)
    errors = private_pair.compute_errors(problem, pairs)
    return float(private_pair.compute_probabilities(problem, pairs) @ errors)


def measure_pair() -> Iterator[list[float]]:
    """Yield the relative error at each share, a list for each case of a pair of bounds for rows per group."""
    tickets = ROOT / "sample_data" / "support_tickets.csv"
    tickets_dataset = to_dataset(tickets, user="customer", group="channel", disclosure="public")
    for dataset in (samples.load("shop-events"), samples.load("item-ratings"), tickets_dataset):
        facet = dataset.pairs
        assert facet is not None
        assert facet.rows is not None
        users, groups = (np.repeat(codes, facet.rows) for codes in (facet.user_codes, facet.task_codes))
        order = np.argsort(users, kind="stable")
        starts = np.searchsorted(users[order], np.arange(users.max() + 2))
        for num_users in USERS:
            user_indices = np.resize(np.random.default_rng(1).permutation(starts.size - 1), num_users)
            rows_of_users = [order[starts[user] : starts[user + 1]] for user in user_indices]
            user_codes = np.repeat(np.arange(num_users), [rows.size for rows in rows_of_users])
            pairs = UserGroupPairs.from_arrays(
                user_codes, groups[np.concatenate(rows_of_users)], facet.num_tasks
            )
            for epsilon in EPSILONS:
                problem = build_pair_problem(facet.num_tasks, epsilon, epsilon)
                least_error = float(private_pair.compute_errors(problem, pairs).min())
                yield [compute_pair_error(pairs, epsilon, share) / least_error for share in SHARES]


def main() -> None:
    """Print a line for each kind of choice."""
    print("share".ljust(26), *(f"{share:6.2f}" for share in SHARES))
    for name, cases in (("learner", measure_learner()), ("pair per group", measure_pair())):
        errors: FloatArray = np.array(list(cases))
        means = np.exp(np.log(errors).mean(axis=0))
        worst_excess = (errors / errors.min(axis=1, keepdims=True)).max(axis=0)
        print(name.ljust(26), *(f"{value:6.2f}" for value in means))
        print("  worst, over its best".ljust(26), *(f"{value:6.2f}" for value in worst_excess))


if __name__ == "__main__":
    main()
