"""Private selection: the rules beside PyDP, the moments beside the recursion, the whole beside runs of it."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import GaussianNoise, Neighbours
from dpcore.common.programs import Program, find_noise
from dpcore.contributions import FloatArray
from dpcore.per_group.moments import compute_moments
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.private_pair import list_tuner_candidates, pick_as_tuner
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.selection import SelectionProblem, find_best_selected_pair, find_best_selected_vector
from dpcore.per_group.selection_rules import (
    SelectionRule,
    compute_delta_per_group,
    compute_keep_probabilities,
)
from dpcore.per_group.users_kept import GroupedPairs, compute_kept_moments
from dpcore.per_group.whole_vector import keep_amounts
from tests.dpcore.per_group.conftest import random_pairs

PRIVATE_RULES = GEOMETRIC, LAPLACE, GAUSSIAN = tuple(rule for rule in SelectionRule if rule.is_private)
# probability_of_keep of PyDP 1.1.5: rule, epsilon, delta, L0, users, probability.
PRINTED = [
    ("TRUNCATED_GEOMETRIC", 0.5, 1e-08, 20, 1, 5.000000023750001e-10),
    ("TRUNCATED_GEOMETRIC", 0.5, 1e-08, 20, 20, 1.281292090147358e-08),
    ("TRUNCATED_GEOMETRIC", 0.5, 1e-08, 20, 1280, 0.999999859455124),
    ("LAPLACE", 0.5, 1e-08, 20, 1, 5.000000413701855e-10),
    ("LAPLACE", 0.5, 1e-08, 20, 20, 8.040070831327739e-10),
    ("LAPLACE", 0.5, 1e-08, 20, 1280, 0.9999935076198176),
    ("GAUSSIAN", 0.5, 1e-08, 20, 1, 2.5000002068509275e-10),
    ("GAUSSIAN", 0.5, 1e-08, 20, 13, 1.3092584794094364e-09),
    ("GAUSSIAN", 0.5, 1e-08, 20, 320, 0.7971063827095803),
    ("TRUNCATED_GEOMETRIC", 3, 0.01, 3, 1, 0.0033445065874036367),
    ("TRUNCATED_GEOMETRIC", 3, 0.01, 3, 3, 0.037148564866673096),
    ("TRUNCATED_GEOMETRIC", 3, 0.01, 3, 8, 0.9663477859788108),
    ("LAPLACE", 3, 0.01, 3, 1, 0.003344506587403595),
    ("LAPLACE", 3, 0.01, 3, 5, 0.18260387244590293),
    ("LAPLACE", 3, 0.01, 3, 20, 0.9999995811940946),
    ("GAUSSIAN", 3, 0.01, 3, 1, 0.0016694521863086509),
    ("GAUSSIAN", 3, 0.01, 3, 5, 0.36363543659047626),
    ("GAUSSIAN", 3, 0.01, 3, 13, 0.9999992932374933),
]


def build_parameters(
    rule: SelectionRule = GEOMETRIC,
    statistic: Statistic = Statistic.ROWS,
    noise: NoiseKind = NoiseKind.LAPLACE,
    objective: Objective = Objective.ROOT_MEAN_SQUARE,
    epsilon: float = 2.0,
) -> PerGroupParameters:
    return PerGroupParameters(
        epsilon,
        statistic,
        noise,
        1e-2 if noise is NoiseKind.GAUSSIAN else None,
        objective=objective,
        floor=2.0 if objective.needs_floor else None,
        selection=rule,
        selection_share=0.4,
        selection_delta=0.05,
    )


def many_users(seed: int = 3) -> UserGroupPairs:
    rng = np.random.default_rng(seed)
    who, what = rng.zipf(1.5, 900) % 120, rng.integers(0, 49, 900) ** 2 // 450
    return UserGroupPairs.from_arrays(who, what, 6, row_values=rng.gamma(0.8, 4.0, 900).round(2))


@pytest.mark.parametrize("rule", PRIVATE_RULES)
def test_rules_keep_groups_as_pydp_does(rule: SelectionRule) -> None:
    for name, epsilon, delta, max_groups, users, printed in PRINTED:
        if name == rule.name:
            found = compute_keep_probabilities(rule, epsilon, delta, max_groups, users)[users]
            # PyDP rounds the Gaussian noise up, in steps of about 1 part in 1,000.
            near = 2e-3 if rule is GAUSSIAN else 1e-13
            assert found == pytest.approx(printed, abs=near, rel=1e-9)


def test_the_geometric_rule_is_the_largest_that_its_recursion_allows() -> None:
    for epsilon, delta, max_groups in product((0.01, 0.7, 3.0, 900.0), (1e-9, 1e-3, 0.3), (1, 4)):
        e, d = epsilon / max_groups, 1.0 - (1.0 - delta) ** (1.0 / max_groups)
        truth = [0.0]
        for _ in range(300):
            last = truth[-1]
            # At most what (e, d) allows beside one user fewer, for being kept and for not being kept.
            up = math.exp(min(e, 600.0)) * last + d
            truth.append(min(up, 1.0 - math.exp(-e) * (1.0 - last - d), 1.0))
        keep_probabilities = compute_keep_probabilities(GEOMETRIC, epsilon, delta, max_groups, 300)
        assert keep_probabilities == pytest.approx(np.array(truth), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rule", PRIVATE_RULES)
def test_no_rule_tells_more_of_one_user_than_it_may(rule: SelectionRule) -> None:
    for epsilon, delta, max_groups in product((0.1, 1.0, 4.0), (1e-6, 1e-2), (1, 5)):
        pi = compute_keep_probabilities(rule, epsilon, delta, max_groups, 400)
        assert np.all(np.diff(pi) >= 0.0)
        # No group of a single user is kept but with probability delta, all of theirs together.
        assert 1.0 - (1.0 - pi[1]) ** max_groups <= delta * (1.0 + 1e-9)
        if max_groups == 1:
            for more, fewer in ((pi[1:], pi[:-1]), (pi[:-1], pi[1:])):
                assert np.all(more <= math.exp(epsilon) * fewer + delta + 1e-12)
                assert np.all(1.0 - more <= math.exp(epsilon) * (1.0 - fewer) + delta + 1e-12)


@pytest.mark.parametrize("delta", [1e-9, 0.3, 0.5, 0.8, 0.999999])
@pytest.mark.parametrize("max_groups", [1, 3])
def test_a_single_user_is_seen_with_the_delta_of_a_group(delta: float, max_groups: int) -> None:
    # Whatever delta is: beyond 1/2 the threshold lies below one user.
    share = 1.0 - (1.0 - delta) ** (1.0 / max_groups)
    half = 1.0 - (1.0 - delta / 2.0) ** (1.0 / max_groups)
    for rule, seen in ((GEOMETRIC, share), (LAPLACE, share), (GAUSSIAN, half)):
        keep_probabilities = compute_keep_probabilities(rule, 0.7, delta, max_groups, 4)
        assert keep_probabilities[1] == pytest.approx(seen, rel=1e-6), rule
        assert np.all(np.diff(keep_probabilities) >= 0.0)


def test_thresholds_are_those_of_their_noise() -> None:
    # The probability at n is that of noise above threshold - n: at the threshold it is one half.
    pi = compute_keep_probabilities(LAPLACE, 2.0, 1e-4, 3, 200)
    threshold = 1.0 + 1.5 * math.log(1.0 / (2.0 * compute_delta_per_group(1e-4, 3)))
    at = math.ceil(threshold)
    assert pi[at] == pytest.approx(1.0 - 0.5 * math.exp(-(at - threshold) / 1.5), rel=1e-12)
    pi = compute_keep_probabilities(GAUSSIAN, 2.0, 1e-4, 3, 200)
    scale = GaussianNoise.for_release(math.sqrt(3.0), 2.0, 5e-5).scale
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, scale, 400_000)
    # The threshold from the definition: three groups of one user all stay below it but with probability 5e-5.
    from scipy.stats import norm

    threshold = 1.0 + scale * norm.isf(1.0 - (1.0 - 5e-5) ** (1.0 / 3.0))
    for n in (5, 8, 11):
        share = float(np.mean(n + noise >= threshold))
        assert abs(pi[n] - share) < 5.0 * math.sqrt(share * (1.0 - share) / noise.size) + 1e-9


def by_recursion(
    sizes: FloatArray, amounts: FloatArray, l0: int, table: FloatArray, t: float
) -> tuple[float, float]:
    """P(kept) and E[(S - t)^2; kept] of one group, user by user."""
    joint = np.zeros((3, sizes.size + 1))
    joint[0, 0] = 1.0
    for k, m in zip(sizes, amounts, strict=True):
        p, (one, first, second) = min(1.0, l0 / k), joint
        shifted = [np.r_[0.0, x[:-1]] for x in joint]
        joint = np.array([
            (1.0 - p) * one + p * shifted[0],
            (1.0 - p) * first + p * (shifted[1] + m * shifted[0]),
            (1.0 - p) * second + p * (shifted[2] + 2.0 * m * shifted[1] + m * m * shifted[0]),
        ])  # fmt: skip
    held = joint @ table[: sizes.size + 1]
    return float(held[0]), float(held[2] - 2.0 * t * held[1] + t * t * held[0])


@pytest.mark.long
def test_moments_agree_with_the_recursion_over_users() -> None:
    for pairs, statistic in product(
        (random_pairs(1), many_users()), (Statistic.ROWS, Statistic.USERS, Statistic.SUM)
    ):
        problem = PerGroupProblem(pairs, build_parameters(statistic=statistic))
        grouped = GroupedPairs.from_problem(problem)
        most_users = int(np.bincount(grouped.group_codes).max())
        for l0, linf in product((1, 2, 4), (1.0, 2.5, 1e9)):
            tables = [compute_keep_probabilities(rule, 1.0, 0.05, l0, most_users) for rule in PRIVATE_RULES]
            kept_moments = compute_kept_moments(grouped, l0, tables, linf, problem.totals)
            alone = compute_kept_moments(grouped, l0, tables)
            for group, rule in product(range(pairs.num_groups), range(3)):
                own = grouped.group_codes == group
                chance, square = by_recursion(
                    grouped.num_groups_of_user[own],
                    np.minimum(grouped.amounts[own], linf),
                    l0,
                    tables[rule],
                    problem.totals[group],
                )
                assert kept_moments[rule].keep_probabilities[group] == pytest.approx(chance, abs=1e-13)
                assert alone[rule].keep_probabilities[group] == pytest.approx(chance, abs=1e-13)
                near = 1e-12 * (1.0 + problem.totals[group] ** 2)
                assert kept_moments[rule].kept_squares[group] == pytest.approx(square, abs=near)


@pytest.mark.parametrize("rule", PRIVATE_RULES)
def test_errors_agree_with_runs_of_the_mechanism(rule: SelectionRule) -> None:
    pairs, runs, l0 = random_pairs(2, users=25, rows=150), 6_000, 2
    rng = np.random.default_rng(5)
    per_user, number = pairs.groups_per_user, pairs.num_groups
    rank = np.arange(pairs.num_pairs) - np.repeat(pairs.user_starts, per_user)
    sample = np.zeros((runs, pairs.num_pairs), dtype=bool)
    for run in range(runs):
        order = np.lexsort((rng.random(pairs.num_pairs), pairs.user_codes))
        sample[run, order[rank < l0]] = True
    in_group = np.equal.outer(pairs.group_codes, np.arange(number)).astype(float)
    n = sample @ in_group
    for statistic, noise in ((Statistic.SUM, NoiseKind.LAPLACE), (Statistic.ROWS, NoiseKind.GAUSSIAN)):
        problem = PerGroupProblem(pairs, build_parameters(rule, statistic, noise))
        p = problem.parameters
        linf = 3.0
        # Thresholds by their noise, the geometric rule by its table: it is a table.
        if rule is GEOMETRIC:
            table = compute_keep_probabilities(rule, p.epsilon * 0.4, 0.05, l0, 100)
            chosen = rng.random(n.shape) < table[n.astype(int)]
        elif rule is LAPLACE:
            b = l0 / (p.epsilon * 0.4)
            chosen = n + rng.laplace(0.0, b, n.shape) >= 1.0 - b * math.log(
                2.0 * compute_delta_per_group(0.05, l0)
            )
        else:
            from scipy.stats import norm

            scale = GaussianNoise.for_release(math.sqrt(l0), p.epsilon * 0.4, 0.025).scale
            high = 1.0 + scale * norm.ppf((1.0 - 0.025) ** (1.0 / l0))
            chosen = n + rng.normal(0.0, scale, n.shape) >= high
        chosen &= n > 0.0
        total = sample @ (in_group * np.minimum(problem.amounts, linf)[:, None])
        if noise is NoiseKind.LAPLACE:
            total += rng.laplace(0.0, l0 * linf / (0.6 * p.epsilon), total.shape)
        else:
            total += rng.normal(
                0.0, GaussianNoise.for_release(math.sqrt(l0) * linf, 0.6 * p.epsilon, 1e-2).scale, total.shape
            )
        squares = np.where(chosen, total - problem.totals, -problem.totals) ** 2
        groups = SelectionProblem(problem).evaluate_groups(l0, linf)
        # Five standard errors, group by group: less than one false alarm in 10^5 runs of this test.
        near = 5.0 * np.std(squares, axis=0) / math.sqrt(runs)
        assert np.all(np.abs(squares.mean(axis=0) - groups.mean_squares) <= near + 1e-9)
        share = chosen.mean(axis=0)
        assert np.all(
            np.abs(share - groups.keep_probabilities)
            <= 5.0 * np.sqrt(groups.keep_probabilities * (1.0 - groups.keep_probabilities) / runs) + 1e-9
        )


@pytest.mark.long
@pytest.mark.parametrize("objective", Objective)
def test_the_best_pair_is_that_of_brute_force(objective: Objective) -> None:
    for (seed, rule), statistic, noise in product(
        enumerate(PRIVATE_RULES), (Statistic.ROWS, Statistic.USERS), NoiseKind
    ):
        problem = PerGroupProblem(
            random_pairs(seed, users=30, rows=250), build_parameters(rule, statistic, noise, objective)
        )
        selection = SelectionProblem(problem)
        best = find_best_selected_pair(selection, tolerance=0.0)
        every = {
            (l0, linf): selection.compute_error(l0, linf)
            for l0 in range(1, selection.max_groups_per_user + 1)
            for linf in range(1, int(selection.largest_amount) + 1)
        }
        smallest = min([*every.values(), problem.error_of_nothing])
        assert best.error == pytest.approx(smallest, rel=1e-12)
        assert best.certificate.relative_gap <= 1e-12
        assert best.releases_nothing == (smallest == problem.error_of_nothing)


@pytest.mark.long
def test_no_pair_in_a_box_goes_below_its_bound() -> None:
    rng = np.random.default_rng(0)
    tight = 0
    for rule, statistic in product(PRIVATE_RULES, (Statistic.ROWS, Statistic.SUM)):
        selection = SelectionProblem(
            PerGroupProblem(many_users(), build_parameters(rule, statistic, epsilon=4.0))
        )
        for _ in range(12):
            a, b = np.sort(rng.integers(1, selection.max_groups_per_user + 1, 2)).tolist()
            c, d = np.sort(rng.uniform(1.0, selection.largest_amount, 2)).tolist()
            bound = selection.compute_lower_bound((a, b), (c, d))
            inside = [
                selection.compute_error(int(rng.integers(a, b + 1)), float(rng.uniform(c, d)))
                for _ in range(4)
            ] + [selection.compute_error(l0, x) for l0 in (a, b) for x in (c, d)]
            assert bound <= min(inside) * (1.0 + 1e-12)
            tight += bound > 0.5 * min(inside)
            l0, x = int(rng.integers(a, b + 1)), float(rng.uniform(c, d))
            assert selection.compute_lower_bound((l0, l0), (x, x)) == pytest.approx(
                selection.compute_error(l0, x), rel=1e-10
            )
    assert tight > 20


def test_keeping_a_group_is_not_monotone_in_the_number_of_groups() -> None:
    # What the search's bound must hold up against: more users are kept, and each counts for less.
    pairs = many_users()
    selection = SelectionProblem(PerGroupProblem(pairs, build_parameters(GAUSSIAN)))
    steps = np.diff(
        [selection.compute_keep_probabilities(l0) for l0 in range(1, selection.max_groups_per_user + 1)],
        axis=0,
    )
    assert np.any((steps.min(axis=0) < -1e-6) & (steps.max(axis=0) > 1e-6))


@pytest.mark.long
def test_a_search_that_is_stopped_says_how_far_it_may_be_off() -> None:
    selection = SelectionProblem(PerGroupProblem(many_users(), build_parameters(statistic=Statistic.SUM)))
    told: list[float] = []
    selected_pair = find_best_selected_pair(selection, max_evaluations=60, progress=told.append)
    assert selected_pair.certificate.relative_gap > 1e-3
    assert selected_pair.stop_reason.startswith("Stopped")
    assert told[-1] == 1.0
    # Nothing was looked at: that there is nothing useful is not known.
    at_once = find_best_selected_pair(selection, should_stop=lambda: True)
    assert at_once.releases_nothing
    assert at_once.certificate.relative_gap > 1e-3
    assert at_once.stop_reason.startswith("Stopped after 1 evaluation;")
    assert (at_once.is_settled, selected_pair.is_settled) == (False, False)
    hopeless = SelectionProblem(
        PerGroupProblem(many_users(), build_parameters(statistic=Statistic.SUM, epsilon=1e-4))
    )
    for number in (5, 20):
        short = find_best_selected_pair(hopeless, max_evaluations=number)
        assert short.releases_nothing
        assert short.is_settled == short.certificate.proves(1e-3) == ("Nothing useful" in short.stop_reason)
    better = find_best_selected_pair(selection)
    assert better.error <= selected_pair.error
    assert selected_pair.certificate.lower_bound <= better.error
    assert better.certificate.relative_gap <= 1e-3
    assert better.is_settled
    nothing = find_best_selected_pair(hopeless)
    assert nothing.is_settled
    assert nothing.stop_reason.startswith("Nothing useful can be released")


def test_the_tuners_rule_lets_dropped_groups_cost_nothing() -> None:
    selection = SelectionProblem(PerGroupProblem(many_users(), build_parameters(epsilon=0.3)))

    def value(pair: tuple[int, int]) -> float:
        share = selection.compute_keep_probabilities(pair[0])
        return float(share @ np.sqrt(compute_moments(selection.problem, *pair).mean_squares) / share.sum())

    pick = pick_as_tuner(selection.problem, selection.compute_keep_probabilities)
    assert value(pick) == min(value(pair) for pair in list_tuner_candidates(selection.problem))
    assert selection.compute_error(*pick) >= find_best_selected_pair(selection, tolerance=0.0).error


@pytest.mark.long
def test_bounding_whole_vectors_keeps_every_amount() -> None:
    for noise in NoiseKind:
        problem = PerGroupProblem(many_users(), build_parameters(noise=noise, epsilon=4.0))
        selection = SelectionProblem(problem)
        best = find_best_selected_vector(selection)
        share = selection.compute_keep_probabilities(best.max_groups)
        missing = problem.sum_by_group(
            problem.amounts - keep_amounts(problem, best.vector_rule, best.max_norm)
        )
        scale = (
            best.max_norm / (0.6 * 4.0) * math.sqrt(2.0)
            if noise is NoiseKind.LAPLACE
            else best.max_norm * find_noise(Program.OPENDP, noise, 0.6 * 4.0, 1e-2).unit_scale
        )
        squares = share * (missing**2 + scale**2) + (1.0 - share) * problem.totals**2
        assert best.error == pytest.approx(math.sqrt(squares.mean()), rel=1e-12)
        assert best.error < find_best_selected_pair(selection).error


def test_scaling_with_a_selection_of_its_own_agrees_with_runs_of_it() -> None:
    pairs, runs = random_pairs(2, users=25, rows=150), 6_000
    problem = PerGroupProblem(pairs, build_parameters(epsilon=3.0))
    best = find_best_selected_vector(SelectionProblem(problem))
    rng = np.random.default_rng(7)
    rank = np.arange(pairs.num_pairs) - np.repeat(pairs.user_starts, pairs.groups_per_user)
    table = compute_keep_probabilities(GEOMETRIC, 3.0 * 0.4, 0.05, best.max_groups, 100)
    n = np.zeros((runs, pairs.num_groups), dtype=int)
    for run in range(runs):
        order = np.lexsort((rng.random(pairs.num_pairs), pairs.user_codes))
        sample = pairs.group_codes[order[rank < best.max_groups]]
        n[run] = np.bincount(sample, minlength=pairs.num_groups)
    total = problem.sum_by_group(keep_amounts(problem, best.vector_rule, best.max_norm))
    noisy = total + rng.laplace(0.0, best.max_norm / (3.0 * 0.6), n.shape)
    released = rng.random(n.shape) < table[n]
    squares = (np.where(released, noisy, 0.0) - problem.totals) ** 2
    means = squares.mean(axis=1)
    # Five standard errors of the mean over runs, each the mean over groups.
    assert abs(means.mean() - best.error**2) < 5.0 * means.std() / math.sqrt(runs)


def test_what_an_epsilon_buys_is_what_a_question_with_it_says() -> None:
    problem = PerGroupProblem(many_users(), build_parameters())
    epsilons = np.array([0.5, 2.0, 8.0])
    found = SelectionProblem(problem).evaluate_at(epsilons, 2, 3.0)
    for epsilon, groups in zip(epsilons, found, strict=True):
        alone = SelectionProblem(
            PerGroupProblem(many_users(), replace(build_parameters(), epsilon=float(epsilon)))
        ).evaluate_groups(2, 3.0)
        assert groups.keep_probabilities == pytest.approx(alone.keep_probabilities, rel=1e-12)
        assert groups.mean_squares == pytest.approx(alone.mean_squares, rel=1e-12)
    assert found[0].num_expected_groups < found[1].num_expected_groups < found[2].num_expected_groups


def test_what_does_not_go_with_private_groups_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        PerGroupParameters(
            1.0,
            Statistic.SIGNED_SUM,
            neighbours=Neighbours.REPLACE_USER,
            num_groups=4,
            selection=GEOMETRIC,
            selection_share=1.0,
            selection_delta=2.0,
        )
    assert len(refused.value.problems) == 5
    with pytest.raises(InvalidInput, match='can be set only with "Private, geometric"'):
        PerGroupParameters(1.0, selection_delta=1e-6)
    with pytest.raises(InvalidInput, match="public list"):
        SelectionProblem(PerGroupProblem(many_users(), PerGroupParameters(1.0)))
