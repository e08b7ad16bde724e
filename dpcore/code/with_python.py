"""The choice in plain Python: pandas and NumPy for weights and caps, OpenDP for every released draw.

OpenDP's constructors (``make_laplace``, ``make_gaussian``, ``make_noisy_max``, ``binary_search_param``) were checked
against opendp 0.16.0, which the tests run (2026-11-21):
https://docs.opendp.org/en/v0.16.0/api/python/opendp.measurements.html
"""

from __future__ import annotations

from dpcore.code import classifier, common
from dpcore.code.choice import PER_GROUP, Choice, Code, Released
from dpcore.code.quote import python_text
from dpcore.common.noise_error import NoiseKind

LIBRARY = "plain Python (pandas, NumPy; noise by OpenDP 0.16)"
REPLACE = "neighbouring data differ in one user's values; everybody's number of rows is public"
CANDIDATES = 2000

_LAPLACE = '''
def add_noise(values, sensitivity):
    """Laplace noise by OpenDP, whose sampler withstands attacks on floating point; SLACK covers rounding in sums."""
    values = [float(value) for value in values]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(values)), dp.l1_distance(T=float)
    scale = dp.binary_search_param(
        lambda scale: dp.m.make_laplace(*space, scale=scale), d_in=sensitivity * SLACK, d_out=EPSILON
    )
    return dp.m.make_laplace(*space, scale=scale)(values)
'''
_GAUSSIAN = '''
def add_noise(values, sensitivity):
    """Gaussian noise by OpenDP, whose sampler withstands attacks on floating point; SLACK covers rounding in sums."""
    values = [float(value) for value in values]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(values)), dp.l2_distance(T=float)
    scale = dp.binary_search_param(
        lambda scale: dp.m.make_gaussian(*space, scale=scale), d_in=sensitivity * SLACK, d_out=RHO
    )
    return dp.m.make_gaussian(*space, scale=scale)(values)
'''
_PICK = '''
def pick(scores, sensitivity, epsilon):
    """Index of a high score: the exponential mechanism, drawn by OpenDP."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    scale = dp.binary_search_param(
        lambda scale: dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale),
        d_in=sensitivity * SLACK,
        d_out=epsilon,
    )
    return dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)([float(score) for score in scores])
'''


def write(choice: Choice) -> Code:
    """The program."""
    if choice.released is Released.CLASSIFIER:
        relation = classifier.RELATIONS[choice.neighbours]
        return common.put_together(
            choice, "plain Python (pandas, NumPy)", relation, classifier.DIFFERENCES, classifier.body(choice)
        )
    relation = REPLACE if choice.public_counts else common.ADD_OR_REMOVE
    differences = [common.gaussian_difference(choice) if choice.released is not Released.TASK_WEIGHTS else ""]
    if choice.released is Released.MODEL:
        differences.append(
            "The code caps; the privacy is that of the learner you hand the rows to, which must count a user's rows "
            "together (user-level DP, or group privacy for MAX_ROWS)."
        )
    if choice.released is Released.QUANTILE:
        differences.append(
            f"The answer is picked from {CANDIDATES:,} values laid evenly between the ends of the base; the page draws "
            "from the whole line, under the base that is chosen there."
        )
    if choice.released in PER_GROUP:
        differences += [common.PUBLIC_GROUPS, common.replaced_difference(choice)]
    if choice.released is Released.TASK_WEIGHTS:
        differences.append(
            "Task sizes and the number of users are taken as public, as on the page. The noise covers weighted sums "
            "whose entries lie in [-1, 1]; here every entry is 1, which counts users."
        )
    if choice.released is Released.COEFFICIENTS:
        differences.append(
            "The weights C are a file: Downloads, Weights C. It holds the rows that had no missing value, in the order "
            "of the data."
        )
    return common.put_together(choice, LIBRARY, relation, differences, _BODIES[choice.released](choice))


def _start(choice: Choice, helper: str = "", *, draws: bool = True) -> list[str]:
    gaussian = choice.noise is NoiseKind.GAUSSIAN and choice.released is not Released.TASK_WEIGHTS
    lines = ["import math", ""]
    lines += ["import numpy as np"] if choice.released in _WITH_NUMPY else []
    lines += ["import opendp.prelude as dp"] if draws else []
    lines += ["import pandas as pd", ""]
    if not draws:
        lines = lines[2:]
    if draws:
        lines += ['dp.enable_features("contrib")', "", *common.groups_to_write(choice)]
        if gaussian:
            lines += common.rho_lines(choice)
        elif choice.released is not Released.TASK_WEIGHTS:
            lines.append(f"EPSILON = {choice.epsilon!r}")
        lines.append("SLACK = 1 + 1e-6  # rounding in sums over up to a billion users")
    lines += [*common.value_lines(choice), *common.bound_lines(choice), common.unit_line(choice)]
    if draws:
        lines += ["", *helper.splitlines(), "", ""]
    return lines


_WITH_NUMPY = (
    Released.QUANTILE,
    Released.TASK_WEIGHTS,
    Released.GROUP_COUNTS,
    Released.GROUP_ROWS,
    Released.GROUP_SUMS,
)


def _values(choice: Choice) -> list[str]:
    return [
        f"VALUE = {python_text(choice.value_column)}",
        f"events = {common.read_with_pandas(choice)}",
        "events = events.assign(**{VALUE: pd.to_numeric(events[VALUE])}).dropna(subset=[*UNIT, VALUE])",
    ]


_SAMPLED = [common.DRAWN, "events = events.sample(frac=1.0).groupby(UNIT, sort=False).head(MAX_ROWS)"]


def _mean(choice: Choice) -> list[str]:
    lines = [*_start(choice, _LAPLACE), *_values(choice)]
    bound = "MAX_ROWS" if choice.max_rows is not None else "THRESHOLD"
    lines += _SAMPLED if choice.max_rows is not None else []
    lines += [
        "above = events[VALUE].clip(LOWER, UPPER) - LOWER",
        'users = above.groupby([events[name] for name in UNIT]).agg(["sum", "count"])',
    ]
    if choice.threshold is not None:
        lines.append(
            "# Rows of a user with more than THRESHOLD rows weigh THRESHOLD / rows each, all others 1.\n"
            'users["weight"] = (THRESHOLD / users["count"]).clip(upper=1.0)'
        )
    else:
        lines.append('users["weight"] = 1.0')
    lines += [
        "# What one user adds: at most the bound times the length of the value range.",
        f"SENSITIVITY = {bound} * (UPPER - LOWER)",
        'total = math.fsum((users["weight"] * users["sum"]).clip(0.0, SENSITIVITY))',
        f'rows = math.fsum((users["weight"] * users["count"]).clip(0.0, {bound}))',
    ]
    if choice.public_counts:
        lines += [
            "# `rows` is not protected: everybody's number of rows is taken as public.",
            "mean = LOWER + add_noise([total], SENSITIVITY)[0] / rows",
        ]
    else:
        lines += [
            "# Both sums together change by at most SENSITIVITY when one user comes or goes: one epsilon for both.",
            "above_lower, below_upper = add_noise([total, (UPPER - LOWER) * rows - total], SENSITIVITY)",
            "mean = LOWER + (UPPER - LOWER) * above_lower / (above_lower + below_upper)",
        ]
    return [*lines, "print(mean)"]


def _sum(choice: Choice) -> list[str]:
    helper = _GAUSSIAN if choice.noise is NoiseKind.GAUSSIAN else _LAPLACE
    return [
        *_start(choice, helper),
        f"LOW, HIGH = {choice.min_total!r}, {choice.max_total!r}  # what one user's total is clamped to",
        *_values(choice),
        "totals = events.groupby(UNIT)[VALUE].sum().clip(LOW, HIGH)",
        "total = add_noise([math.fsum(totals)], max(abs(LOW), abs(HIGH)))[0]",
        "print(total)",
    ]


def _count(choice: Choice) -> list[str]:
    helper = _GAUSSIAN if choice.noise is NoiseKind.GAUSSIAN else _LAPLACE
    return [
        *_start(choice, helper),
        f"events = {common.read_with_pandas(choice)}",
        "rows = events.groupby(UNIT).size().clip(upper=MAX_ROWS)",
        "count = add_noise([math.fsum(rows)], MAX_ROWS)[0]",
        "print(count)",
    ]


_CAPPED = '''
def capped(amounts):
    """min(amount, level) with the largest level for which the norm is at most MAX_NORM."""
    values = np.sort(amounts.to_numpy(float)){power}
    before = np.cumsum(values) - values
    left = np.arange(len(values), 0, -1)
    if values.sum() <= {bound}:
        return amounts
    # The smallest values stay whole as long as all others, brought down to the next of them, exceed the bound.
    whole = int(np.argmax(before + left * values > {bound}))
    level = max(({bound} - before[whole]) / left[whole], 0.0){root}
    return amounts.clip(upper=level * (1 - 1e-12))
'''
_SCALED = '''
def scaled(amounts):
    """All amounts times one factor of at most 1, so that the norm is at most MAX_NORM."""
    norm = {norm}
    return amounts * min(1.0, MAX_NORM / norm) if norm > 0.0 else amounts
'''


def _group_amounts(choice: Choice) -> list[str]:
    """From the events to ``pairs``: one line per user and group, with what is added up there."""
    what = {
        Released.GROUP_COUNTS: "size().clip(upper=1)",
        Released.GROUP_ROWS: "size()",
        Released.GROUP_SUMS: "[VALUE].sum()",
    }[choice.released]
    dot = "" if what.startswith("[") else "."
    values = choice.released is Released.GROUP_SUMS
    columns = "[*UNIT, GROUP, VALUE]" if values else "[*UNIT, GROUP]"
    lines = [f"VALUE = {python_text(choice.value_column)}"] if values else []
    lines.append(f"events = {common.read_with_pandas(choice)}")
    if values:
        lines.append('events = events.assign(**{VALUE: pd.to_numeric(events[VALUE], errors="coerce")})')
    return [
        *lines,
        f"events = events.dropna(subset={columns})",
        f'pairs = events.groupby([*UNIT, GROUP]){dot}{what}.rename("amount").reset_index()',
    ]


def _group_end(choice: Choice, sensitivity: str) -> list[str]:
    groups = "sorted(events[GROUP].unique())  # public data" if choice.of_public_data else "GROUPS"
    return [
        f"groups = {groups}",
        'totals = pairs.groupby(GROUP)["amount"].sum().reindex(groups, fill_value=0)',
        f"noisy = add_noise(totals, {sensitivity})",
        "print(dict(zip(groups, noisy)))",
    ]


def _group_totals(choice: Choice) -> list[str]:
    """Rows or sums per group, under a pair of bounds or a bound on each user's whole vector."""
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    helper = _GAUSSIAN if gaussian else _LAPLACE
    if choice.max_norm is not None:
        return _group_vectors(choice, helper)
    lines = [*_start(choice, helper), f"GROUP = {python_text(choice.group_column)}"]
    each = "MAX_ROWS"
    if choice.released is Released.GROUP_SUMS:
        lines.append(
            f"LOW, HIGH = {choice.min_total!r}, {choice.max_total!r}  # what a user's total in a group is clamped to"
        )
        each = "max(abs(LOW), abs(HIGH))"
    clip = "clip(LOW, HIGH)" if choice.released is Released.GROUP_SUMS else "clip(upper=MAX_ROWS)"
    return [
        *lines,
        *_group_amounts(choice),
        f'pairs["amount"] = pairs["amount"].{clip}',
        "# At most MAX_GROUPS groups of each user, drawn at random.",
        "pairs = pairs.sample(frac=1.0).groupby(UNIT, sort=False).head(MAX_GROUPS)",
        *_group_end(choice, f"{'math.sqrt(MAX_GROUPS)' if gaussian else 'MAX_GROUPS'} * {each}"),
    ]


def _group_vectors(choice: Choice, helper: str) -> list[str]:
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    if choice.scaled:
        rule, name = (
            _SCALED.format(norm="np.sqrt((amounts**2).sum())" if gaussian else "amounts.sum()"),
            "scaled",
        )
    else:
        bound, root = ("MAX_NORM**2", " ** 0.5") if gaussian else ("MAX_NORM", "")
        rule, name = _CAPPED.format(power=" ** 2" if gaussian else "", bound=bound, root=root), "capped"
    return [
        *_start(choice, f"{helper}\n{rule}"),
        f"GROUP = {python_text(choice.group_column)}",
        *_group_amounts(choice),
        'pairs["amount"] = pairs["amount"].clip(lower=0.0)  # the bound is for amounts of at least 0',
        "# No group is dropped: each user's vector of amounts is brought to a norm of at most MAX_NORM.",
        f'pairs["amount"] = pairs.groupby(UNIT)["amount"].transform({name})',
        *_group_end(choice, "MAX_NORM"),
    ]


def _group_means(choice: Choice) -> list[str]:
    """Two noisy sums per group, each with half of the budget, and their ratio."""
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    root = "math.sqrt(MAX_GROUPS)" if gaussian else "MAX_GROUPS"
    half = (
        "RHO = RHO / 2  # half for the sums, half for the rows"
        if gaussian
        else "EPSILON = EPSILON / 2  # half for the sums, half for the rows"
    )
    return [
        *_start(choice, _GAUSSIAN if gaussian else _LAPLACE),
        half,
        f"GROUP = {python_text(choice.group_column)}",
        *_values(choice),
        "events = events.dropna(subset=[GROUP])",
        *(["all_groups = sorted(events[GROUP].unique())  # public data"] if choice.of_public_data else []),
        "MIDDLE = (LOWER + UPPER) / 2",
        'events["above"] = events[VALUE].clip(LOWER, UPPER) - MIDDLE',
        "# At most MAX_ROWS rows of a user in a group and MAX_GROUPS groups of a user, all drawn at random.",
        "events = events.sample(frac=1.0).groupby([*UNIT, GROUP], sort=False).head(MAX_ROWS)",
        "kept = events[[*UNIT, GROUP]].drop_duplicates().sample(frac=1.0)",
        "kept = kept.groupby(UNIT, sort=False).head(MAX_GROUPS)",
        "events = events.merge(kept, on=[*UNIT, GROUP])",
        f"groups = {'all_groups' if choice.of_public_data else 'GROUPS'}",
        'sums = events.groupby(GROUP)["above"].sum().reindex(groups, fill_value=0.0)',
        "rows = events.groupby(GROUP).size().reindex(groups, fill_value=0)",
        f"noisy_sums = add_noise(sums, {root} * MAX_ROWS * (UPPER - LOWER) / 2)",
        f"noisy_rows = add_noise(rows, {root} * MAX_ROWS)",
        "means = [MIDDLE + total / max(count, 1.0) for total, count in zip(noisy_sums, noisy_rows)]",
        "means = [min(max(mean, LOWER), UPPER) for mean in means]",
        "print(dict(zip(groups, means)))",
    ]


def _group_counts(choice: Choice) -> list[str]:
    gaussian = choice.noise is NoiseKind.GAUSSIAN
    if choice.max_norm is not None:
        return _group_vectors(choice, _GAUSSIAN if gaussian else _LAPLACE)
    groups = "sorted(events[GROUP].unique())  # public data" if choice.of_public_data else "GROUPS"
    return [
        *_start(choice, _GAUSSIAN if gaussian else _LAPLACE),
        f"GROUP = {python_text(choice.group_column)}",
        f"events = {common.read_with_pandas(choice)}.dropna(subset=[*UNIT, GROUP])",
        "# A user counts once in a group, and in at most MAX_GROUPS groups, drawn at random.",
        "pairs = events[[*UNIT, GROUP]].drop_duplicates()",
        "pairs = pairs.sample(frac=1.0).groupby(UNIT, sort=False).head(MAX_GROUPS)",
        f"groups = {groups}",
        "counts = pairs[GROUP].value_counts().reindex(groups, fill_value=0)",
        f"noisy = add_noise(counts, {'math.sqrt(MAX_GROUPS)' if gaussian else 'MAX_GROUPS'})",
        "print(dict(zip(groups, noisy)))",
    ]


def _quantile(choice: Choice) -> list[str]:
    smooth = choice.threshold is not None
    bound = "THRESHOLD" if smooth else "MAX_ROWS"
    lines = [*_start(choice, _PICK), *_values(choice), *([] if smooth else _SAMPLED)]
    return [
        *lines,
        "size = events.groupby(UNIT)[VALUE].transform('size')".replace("'", '"'),
        f"events = events.assign(weight=({bound} / size).clip(upper=1.0)).sort_values(VALUE)",
        'below = np.concatenate(([0.0], np.cumsum(events["weight"])))',
        f"candidates = LOWER + (UPPER - LOWER) * (np.arange({CANDIDATES}) + 0.5) / {CANDIDATES}",
        "# Weight of the rows up to each candidate; one user moves it, less q times the whole, by at most the bound.",
        'weight_below = below[np.searchsorted(events[VALUE], candidates, side="right")]',
        f"EPSILON_EACH = {choice.per_quantile!r}",
        f"for q in {list(choice.quantiles)!r}:",
        f"    chosen = pick(-np.abs(weight_below - q * below[-1]), {bound}, EPSILON_EACH)",
        "    print(q, candidates[chosen])",
    ]


def _model(choice: Choice) -> list[str]:
    return [
        *_start(choice, draws=False),
        f"events = {common.read_with_pandas(choice)}",
        *_SAMPLED,
        "# Train on `events` with a learner that is private for users.",
        "print(len(events))",
    ]


_TASK_NOISE = '''
def add_noise(values):
    """Gaussian noise of scale 1 by OpenDP; entries must come from weights within BUDGET."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(values)), dp.l2_distance(T=float)
    return dp.m.make_gaussian(*space, scale=SLACK)([float(value) for value in values])
'''


def _task_weights(choice: Choice) -> list[str]:
    scales = "np.sqrt(BUDGET / used)" if choice.every_user_full else "np.sqrt(BUDGET / used).clip(upper=1.0)"
    return [
        *_start(choice, _TASK_NOISE),
        f"TASK = {python_text(choice.group_column)}",
        f"EXPONENT = {choice.exponent!r}  # mu",
        f"BUDGET = {choice.budget!r}  # beta: what a user may use",
        f"# ({choice.epsilon!r}, {choice.delta!r})-DP: noise of scale 1 for squared weights up to BUDGET.",
        f"INFLATION = {choice.inflation!r}  # c",
        f"events = {common.read_with_pandas(choice)}",
        "num_users = len(events.dropna(subset=UNIT).drop_duplicates(UNIT))",
        "pairs = events[[*UNIT, TASK]].dropna().drop_duplicates()",
        "sizes = pairs.groupby(TASK).size()  # users per task, public or released before",
        "# Krichene et al. 2023, equation 11: n_i^-mu, scaled so that the average user uses BUDGET / INFLATION.",
        "scale = (sizes ** (1 - 2 * EXPONENT)).sum() / (num_users * BUDGET / INFLATION)",
        "task_weights = sizes**-EXPONENT / math.sqrt(scale)",
        'pairs["weight"] = pairs[TASK].map(task_weights)',
        "# Equation 12: a user's squared weights sum to at most BUDGET.",
        'used = (pairs["weight"] ** 2).groupby([pairs[name] for name in UNIT]).transform("sum")',
        f'pairs["weight"] *= {scales} * (1 - 1e-12)',
        'totals = pairs.groupby(TASK)["weight"].sum()',
        "noisy = pd.Series(add_noise(totals), index=totals.index)  # noise of scale 1, however many tasks",
        "print(noisy)",
    ]


def _coefficients(choice: Choice) -> list[str]:
    return [
        *_start(choice, _LAPLACE),
        f"LARGEST_USER_WEIGHT = {choice.largest_user_weight!r}  # no user's labels weigh more, over all coefficients",
        f"LABEL = {python_text(choice.value_column)}",
        'weights = pd.read_parquet("regression_matrix.parquet").drop(columns=["row", "user_code"])',
        f"labels = {common.read_with_pandas(choice)}.dropna()[LABEL].clip(LOWER, UPPER)",
        "assert len(labels) == len(weights), 'the weights belong to other rows'",
        "exact = [math.fsum(weights[name].to_numpy() * labels.to_numpy()) for name in weights]",
        "released = add_noise(exact, LARGEST_USER_WEIGHT * (UPPER - LOWER))",
        "print(dict(zip(weights, released)))",
    ]


_BODIES = {
    Released.MEAN: _mean,
    Released.SUM: _sum,
    Released.COUNT: _count,
    Released.GROUP_COUNTS: _group_counts,
    Released.GROUP_ROWS: _group_totals,
    Released.GROUP_SUMS: _group_totals,
    Released.GROUP_MEANS: _group_means,
    Released.QUANTILE: _quantile,
    Released.MODEL: _model,
    Released.TASK_WEIGHTS: _task_weights,
    Released.COEFFICIENTS: _coefficients,
}
