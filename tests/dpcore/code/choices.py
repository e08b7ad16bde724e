"""Choices to write: one of every kind that any library can write."""

from __future__ import annotations

from dpcore.code import Choice, Quantity, Training
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours

REPLACE = Neighbours.REPLACE_VALUES
GAUSSIAN = NoiseKind.GAUSSIAN


def choice(released: Quantity, **fields: object) -> Choice:
    """A choice on the sample events with these fields."""
    usual: dict[str, object] = {
        "epsilon": 1.0,
        "disclosure": Disclosure.PUBLIC,
        "file": "shop_events.csv",
        "known_columns": True,
        "value_column": "amount",
        "group_column": "product",
    }
    return Choice(released, **{**usual, **fields})  # type: ignore[arg-type]


# One of every kind that any library can write, by name.
VALUES = {"lower": 5.0, "upper": 100.0}
EVERY: dict[str, Choice] = {
    "mean, cap": choice(Quantity.MEAN, max_rows=7, neighbours=REPLACE, **VALUES),
    "mean, cap, private counts": choice(Quantity.MEAN, max_rows=7, **VALUES),
    "mean, smooth": choice(Quantity.MEAN, threshold=7.3, neighbours=REPLACE, **VALUES),
    "mean, smooth, private counts": choice(Quantity.MEAN, threshold=7.3, **VALUES),
    "sum": choice(Quantity.SUM, max_total=150.25),
    "sum, both signs": choice(Quantity.SUM, max_total=80.5, min_total=-20.0),
    "sum, Gaussian": choice(Quantity.SUM, max_total=150.25, noise=GAUSSIAN, delta=1e-6),
    "count": choice(Quantity.COUNT, max_rows=7),
    "count, Gaussian": choice(Quantity.COUNT, max_rows=7, noise=GAUSSIAN, delta=1e-6),
    "groups": choice(Quantity.GROUP_COUNTS, max_groups=3),
    "groups, Gaussian": choice(Quantity.GROUP_COUNTS, max_groups=3, noise=GAUSSIAN, delta=1e-6),
    "groups, scaled": choice(Quantity.GROUP_COUNTS, max_norm=5.5, scaled=True),
    "rows per group": choice(Quantity.GROUP_ROWS, max_groups=9, max_rows=3),
    "rows per group, capped": choice(Quantity.GROUP_ROWS, max_norm=24.5),
    "sums per group": choice(Quantity.GROUP_SUMS, max_groups=9, max_total=133.5),
    "sums per group, any sign": choice(Quantity.GROUP_SUMS, max_groups=9, max_total=133.5, min_total=-133.5),
    "sums per group, capped, Gaussian": choice(
        Quantity.GROUP_SUMS, max_norm=210.5, noise=GAUSSIAN, delta=1e-6
    ),
    "sums per group, scaled, Gaussian": choice(
        Quantity.GROUP_SUMS, max_norm=210.5, scaled=True, noise=GAUSSIAN, delta=1e-6
    ),
    "means per group": choice(Quantity.GROUP_MEANS, max_groups=9, max_rows=3, **VALUES),
    "means per group, Gaussian": choice(
        Quantity.GROUP_MEANS, max_groups=9, max_rows=3, noise=GAUSSIAN, delta=1e-6, **VALUES
    ),
    "quantile, cap": choice(
        Quantity.QUANTILE, max_rows=7, quantiles=(0.25, 0.5), neighbours=REPLACE, **VALUES
    ),
    "quantile, smooth": choice(
        Quantity.QUANTILE, threshold=7.3, quantiles=(0.5,), neighbours=REPLACE, **VALUES
    ),
    "model": choice(Quantity.MODEL, max_rows=7),
    "task weights": choice(Quantity.TASK_WEIGHTS, exponent=0.25, budget=0.01, delta=1e-6),
    "coefficients": choice(
        Quantity.COEFFICIENTS, largest_user_weight=0.125, coefficients=3, neighbours=REPLACE, **VALUES
    ),
    "classifier": choice(
        Quantity.CLASSIFIER,
        threshold=2.5,
        delta=1e-5,
        training=Training(
            numbers=(),
            levels=(("product", ("p01", "p02", "p03")),),
            intercept=True,
            norm=2.0**0.5,
            positive_above=45.0,
            slope="-1 / (1 + np.exp(margin))",
            steps=60,
            rate=6.0,
            first=31,
            radius=20.0,
            gradient_noise=80.0,
            weight_noise=40.0,
        ),
    ),
}
