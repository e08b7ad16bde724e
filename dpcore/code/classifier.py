"""A linear classifier under a bound, trained in NumPy: the body of the program, and what other libraries say instead.

Names of Opacus and jax-privacy were read in their documentation and source on 2026-11-22:
https://opacus.ai/api/privacy_engine.html, github.com/google-deepmind/jax_privacy (clipping.py, batch_selection.py).
"""

from __future__ import annotations

from dpcore.code import common
from dpcore.code.choice import Choice
from dpcore.code.quote import python_list, python_text
from dpcore.common.privacy import Neighbours

RELATIONS = {
    Neighbours.ADD_OR_REMOVE_USER: common.ADD_OR_REMOVE,
    Neighbours.REPLACE_USER: "neighbouring data differ by one user, replaced by another with all their rows",
    Neighbours.REPLACE_VALUES: "neighbouring data differ in one user's values; everybody's number of rows is public",
}
DIFFERENCES = (
    "The noise comes from NumPy's floating-point generator: right for trying out, but open to attacks on floating "
    "point. To publish a model take the page's tab Release, which draws it with OpenDP, or a library below.",
    "Opacus: a row's gradient is clipped by max_grad_norm, and noise_multiplier is the noise over that norm; it knows "
    "no users. It protects a user where every user has one row, or where a user's rows are collated into one sample, "
    "whose gradient is then the user's mean: smooth weights with a threshold of 1.",
    "jax-privacy: clipped_grad(l2_clip_norm=..., keep_batch_dim=False) clips the gradient of a user whose rows stand "
    "along a second axis, and batch_selection.UserSelectionStrategy(examples_per_user_per_batch=h) caps them. Neither "
    "weights rows by min(h, s) / s; multiply the losses by that.",
)
NOWHERE = "{library} trains no models; plain Python does, in NumPy."


def body(choice: Choice) -> list[str]:
    """Lines of the program."""
    of = choice.training
    assert of is not None
    numbers = ", ".join(f"{python_text(name)}: ({low!r}, {high!r})" for name, (low, high) in of.numbers)
    levels = ", ".join(f"{python_text(name)}: {python_list(found)}" for name, found in of.levels)
    return [
        "import numpy as np",
        "import pandas as pd",
        "",
        f"EPSILON, DELTA = {choice.epsilon!r}, {choice.delta!r}  # of the whole training",
        *common.bound_lines(choice),
        common.unit_line(choice),
        f"LABEL, POSITIVE_ABOVE = {python_text(choice.value_column)}, {of.positive_above!r}",
        f"NUMBERS = {{{numbers}}}  # public ranges: not read off the data",
        f"LEVELS = {{{levels}}}  # a feature of 0 and 1 for each of these",
        f"INTERCEPT, NORM = {of.intercept!r}, {of.norm!r}",
        f"STEPS, RATE, FIRST, RADIUS = {of.steps!r}, {of.rate!r}, {of.first!r}, {of.radius!r}",
        "# All steps together, and the sum of weights where it is private, are one Gaussian mechanism of this budget:",
        "# the noise of a step is that of one release times the root of the number of steps.",
        f"GRADIENT_NOISE, WEIGHT_NOISE = {of.gradient_noise!r}, {of.weight_noise!r}",
        "",
        f"events = {common.read_with_pandas(choice)}",
        "events = events.dropna(subset=[*UNIT, LABEL, *NUMBERS, *LEVELS])",
        "features = {'intercept': np.ones(len(events))} if INTERCEPT else {}".replace("'", '"'),
        "for name, (low, high) in NUMBERS.items():",
        "    value = pd.to_numeric(events[name]).clip(low, high).to_numpy(float)",
        "    features[name] = (value - (low + high) / 2) / ((high - low) / 2)",
        "for name, levels in LEVELS.items():",
        "    for level in levels:",
        '        features[f"{name}: {level}"] = (events[name].astype(str) == level).to_numpy(float)',
        "x = np.column_stack(list(features.values())) / NORM",
        "x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)",
        "y = np.where(pd.to_numeric(events[LABEL]) > POSITIVE_ABOVE, 1.0, -1.0)",
        "",
        "# A user's rows weigh min(THRESHOLD, rows) in all: no user moves a sum of gradients by more than THRESHOLD.",
        'size = events.groupby(UNIT)[LABEL].transform("size").to_numpy(float)',
        "weight = np.minimum(THRESHOLD / size, 1.0)",
        "rng = np.random.default_rng()",
        "total = max(weight.sum() + WEIGHT_NOISE * rng.standard_normal(), THRESHOLD)",
        "theta, kept = np.zeros(x.shape[1]), np.zeros(x.shape[1])",
        "for step in range(1, STEPS + 1):",
        "    margin = y * (x @ theta)",
        f"    slope = {of.slope}",
        "    slope = np.clip(slope, -1.0, 1.0)  # rows have norm 1 at most, so that gradients have, too",
        "    gradient = x.T @ (weight * slope * y) + GRADIENT_NOISE * rng.standard_normal(x.shape[1])",
        "    theta = theta - RATE * gradient / total",
        "    theta /= max(np.linalg.norm(theta) / RADIUS, 1.0)",
        "    kept += theta if step >= FIRST else 0.0",
        "theta = kept / (STEPS - FIRST + 1)",
        "print(dict(zip(features, theta)))",
    ]
