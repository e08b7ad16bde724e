"""Release specs: one of every kind that any library can write."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest

from dpcore.code import ClassifierTraining, Quantity, ReleasePlan, ReleaseSpec, write
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.programs import Program

MODULES = ("pyspark", "pyspark.sql", "tmlt", "tmlt.analytics", "pipeline_dp", "opendp", "opendp.prelude")
"""What programs import of libraries."""
REPLACE = Neighbours.REPLACE_VALUES
GAUSSIAN = NoiseKind.GAUSSIAN
SURE = math.log(1e9)
"""Laplace noise of scale b exceeds b times this with probability 1e-9, Gaussian noise 6.2 sigma with less."""
PYTHON_AND_OPENDP = pytest.mark.parametrize("library", [Program.OPENDP, Program.PYTHON])


def make_spec(quantity: Quantity, **fields: object) -> ReleaseSpec:
    """Make the spec of a release of the sample events, with these fields."""
    defaults: dict[str, object] = {
        "epsilon": 1.0,
        "disclosure": Disclosure.PUBLIC,
        "file": "shop_events.csv",
        "has_known_columns": True,
        "value_column": "amount",
        "group_column": "product",
    }
    return ReleaseSpec(quantity, **{**defaults, **fields})  # type: ignore[arg-type]


def run_program(
    spec: ReleaseSpec | ReleasePlan, library: Program, public: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Run the program in the working folder with these public numbers in it, and return what its names are bound to."""
    text = write(spec, library).text
    for name, value in (public or {}).items():
        text = re.sub(rf"^{name}\b.* = .*$", f"{name} = {value!r}", text, count=1, flags=re.MULTILINE)
    return run_text(text)


def run_text(text: str) -> dict[str, Any]:
    """Run a program, and return what its names are bound to; ``released`` has what a plan prints, by release."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, "program", "exec"), names)
    print(printed.getvalue(), end="")
    releases = [json.loads(line) for line in printed.getvalue().splitlines() if line.startswith('{"release"')]
    if releases:
        names["released"] = {line["release"]: line["released"] for line in releases}
    return names


# One of every kind that any library can write, by name.
VALUES = {"lower": 5.0, "upper": 100.0}
LOWER, UPPER = VALUES["lower"], VALUES["upper"]
SPEC_BY_NAME: dict[str, ReleaseSpec] = {
    "mean, cap": make_spec(Quantity.MEAN, max_rows=7, neighbours=REPLACE, **VALUES),
    "mean, cap, private counts": make_spec(Quantity.MEAN, max_rows=7, **VALUES),
    "mean, smooth": make_spec(Quantity.MEAN, threshold=7.3, neighbours=REPLACE, **VALUES),
    "mean, smooth, private counts": make_spec(Quantity.MEAN, threshold=7.3, **VALUES),
    "mean, cap, Gaussian": make_spec(
        Quantity.MEAN, max_rows=7, neighbours=REPLACE, noise=GAUSSIAN, delta=1e-6, **VALUES
    ),
    "mean, cap, private counts, Gaussian": make_spec(
        Quantity.MEAN, max_rows=7, noise=GAUSSIAN, delta=1e-6, **VALUES
    ),
    "mean, smooth, private counts, Gaussian": make_spec(
        Quantity.MEAN, threshold=7.3, noise=GAUSSIAN, delta=1e-6, **VALUES
    ),
    "mean, users": make_spec(Quantity.MEAN, threshold=7.3, clamps_users=True, neighbours=REPLACE, **VALUES),
    "mean, users, private counts": make_spec(Quantity.MEAN, threshold=7.3, clamps_users=True, **VALUES),
    "mean, users, private counts, Gaussian": make_spec(
        Quantity.MEAN, threshold=7.3, clamps_users=True, noise=GAUSSIAN, delta=1e-6, **VALUES
    ),
    "mean, users who grow, private counts": make_spec(
        Quantity.MEAN,
        threshold=2.3,
        clamps_users=True,
        weight_of_rows=0.2,
        weight_of_users=0.7,
        user_share=0.4,
        **VALUES,
    ),
    "sum": make_spec(Quantity.SUM, max_total=150.25),
    "sum, both signs": make_spec(Quantity.SUM, max_total=80.5, min_total=-20.0),
    "sum, Gaussian": make_spec(Quantity.SUM, max_total=150.25, noise=GAUSSIAN, delta=1e-6),
    "count": make_spec(Quantity.COUNT, max_rows=7),
    "count, Gaussian": make_spec(Quantity.COUNT, max_rows=7, noise=GAUSSIAN, delta=1e-6),
    "groups": make_spec(Quantity.GROUP_COUNTS, max_groups=3),
    "groups, Gaussian": make_spec(Quantity.GROUP_COUNTS, max_groups=3, noise=GAUSSIAN, delta=1e-6),
    "groups, scaled": make_spec(Quantity.GROUP_COUNTS, max_norm=5.5, scales_vector=True),
    "rows per group": make_spec(Quantity.GROUP_ROWS, max_groups=9, max_rows=3),
    "rows per group, capped": make_spec(Quantity.GROUP_ROWS, max_norm=24.5),
    "rows per bin": make_spec(
        Quantity.GROUP_ROWS,
        max_groups=2,
        max_rows=3,
        group_column="amount",
        groups=("[0, 20.5)", "[20.5, 50)"),
        edges=("0", "20.5", "50"),
    ),
    "sums per group": make_spec(Quantity.GROUP_SUMS, max_groups=9, max_total=133.5),
    "sums per group, any sign": make_spec(
        Quantity.GROUP_SUMS, max_groups=9, max_total=133.5, min_total=-133.5
    ),
    "sums per group, capped, Gaussian": make_spec(
        Quantity.GROUP_SUMS, max_norm=210.5, noise=GAUSSIAN, delta=1e-6
    ),
    "sums per group, scaled, Gaussian": make_spec(
        Quantity.GROUP_SUMS, max_norm=210.5, scales_vector=True, noise=GAUSSIAN, delta=1e-6
    ),
    "means per group": make_spec(Quantity.GROUP_MEANS, max_groups=9, max_rows=3, **VALUES),
    "means per group, Gaussian": make_spec(
        Quantity.GROUP_MEANS, max_groups=9, max_rows=3, noise=GAUSSIAN, delta=1e-6, **VALUES
    ),
    "quantile, cap": make_spec(
        Quantity.QUANTILE, max_rows=7, quantiles=(0.25, 0.5), neighbours=REPLACE, **VALUES
    ),
    "quantile, smooth": make_spec(
        Quantity.QUANTILE, threshold=7.3, quantiles=(0.5,), neighbours=REPLACE, **VALUES
    ),
    "model": make_spec(Quantity.MODEL, max_rows=7),
    "task weights": make_spec(Quantity.TASK_WEIGHTS, exponent=0.25, weight_budget=0.01, delta=1e-6),
    "coefficients": make_spec(
        Quantity.COEFFICIENTS, largest_user_weight=0.125, num_coefficients=3, neighbours=REPLACE, **VALUES
    ),
    "classifier": make_spec(
        Quantity.CLASSIFIER,
        threshold=2.5,
        delta=1e-5,
        training=ClassifierTraining(
            number_ranges=(),
            category_levels=(("product", ("p01", "p02", "p03")),),
            has_intercept=True,
            max_feature_norm=2.0**0.5,
            positive_above=45.0,
            slope_expression="-1 / (1 + np.exp(margin))",
            num_steps=60,
            learning_rate=6.0,
            first_averaged_step=31,
            radius=20.0,
            gradient_noise_std=80.0,
            weight_noise_std=40.0,
        ),
    ),
}
