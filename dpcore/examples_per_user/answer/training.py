"""What was trained on the digits, beside the estimate: a figure, a table, and sentences. Simulated, on public data."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Level, Plot, Points, Scale
from dpcore.answer.plot import Curve, Item
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import FloatArray
from dpcore.examples_per_user.answer.plots import LOOKS, NAMES
from dpcore.examples_per_user.parameters import Way
from dpcore.examples_per_user.trained import BATCH, BOUNDS, CLASSES, SIZES, STEPS, Trained

ACROSS = Axis(
    "bound", "examples per user", (0.9, 1.1 * BOUNDS[-1]), title="Bound G (examples per user)", number=","
)


def _columns(trained: Trained) -> dict[str, FloatArray]:
    columns = {"bound": np.array(BOUNDS, dtype=np.float64)}
    mean, error = trained.mean, trained.standard_error
    for way in NAMES:
        at = [i for i, one in enumerate(trained.options) if one.way is way]
        columns |= {
            f"{way.value}_accuracy": mean[at],
            f"{way.value}_low": mean[at] - np.nan_to_num(error[at]),
            f"{way.value}_high": mean[at] + np.nan_to_num(error[at]),
            f"{way.value}_estimate": np.array([trained.options[i].error for i in at]),
        }
    return columns


def accuracy(trained: Trained) -> Plot:
    """Accuracy over G, both ways, with standard errors."""
    items: list[Item] = []
    for way in NAMES:
        of = f"{way.value}_accuracy"
        items.append(Curve(NAMES[way], "bound", of, LOOKS[way]))
        items.append(
            Points(
                NAMES[way],
                "bound",
                of,
                LOOKS[way],
                f"{way.value}_low",
                f"{way.value}_high",
                unnamed=True,
                nudge=0.985 if way is Way.EXAMPLES else 1.015,
            )
        )
    items += [Level("Without noise", trained.without), Level("Guessing", 1.0 / CLASSES)]
    return Plot(
        "examples-accuracy",
        "Accuracy on digits held out",
        f"Mean of {wording.counted(trained.seeds, 'training')} with its standard error, by bound and way of drawing.",
        ACROSS,
        Axis("accuracy", "", (0.0, 1.0), Scale.PERCENT),
        _columns(trained),
        tuple(items),
        Disclosure.PUBLIC,
        height=380,
    )


def estimate(trained: Trained) -> Plot:
    """The page's estimate for these very trainings."""
    columns = _columns(trained)
    values = np.concatenate([columns[f"{way.value}_estimate"] for way in NAMES])
    return Plot(
        "examples-digits-estimate",
        "Estimated error",
        "The page's estimate for these trainings: small where accuracy is to be high.",
        ACROSS,
        Axis("estimated error", "gradient norms", (0.8 * float(values.min()), 1.25 * float(values.max()))),
        columns,
        tuple(
            Curve(NAMES[way], "bound", f"{way.value}_estimate", LOOKS[way], symbol="circle") for way in NAMES
        ),
        Disclosure.PUBLIC,
        height=380,
    )


def best_sentence(trained: Trained) -> str:
    """Which bound and way came out best, beside what the estimate says; what the trainings do not tell apart."""
    mean, error = trained.mean, trained.standard_error
    best = int(mean.argmax())
    by_estimate = min(range(len(mean)), key=lambda i: trained.options[i].error)
    said = f"**Best accuracy**: {_named(trained, best)}, {_accuracy(mean[best], error[best])}. "
    if best == by_estimate:
        return f"{said}The estimate has the same one as best."
    apart = mean[best] - mean[by_estimate]
    both = float(np.hypot(error[best], error[by_estimate]))
    clear = "" if apart > 2.0 * both else ": the trainings do not tell the two apart"
    return (
        f"{said}**Best by the estimate**: {_named(trained, by_estimate)}, "
        f"{_accuracy(mean[by_estimate], error[by_estimate])}{clear}."
    )


def _named(trained: Trained, at: int) -> str:
    of = trained.options[at]
    return f"{NAMES[of.way].lower()}, G = {of.bound}"


def _accuracy(mean: float, error: float) -> str:
    told = wording.percent(float(mean), 3)
    return told if np.isnan(error) else f"{told} ± {wording.percent(float(error), 2)}"


def what_was_done(trained: Trained) -> str:
    """How it was trained."""
    users = wording.counted(len(SIZES), "invented user")
    return (
        f"Softmax regression, {users} with 1 to {BOUNDS[-1]} digits, {STEPS} steps, B = {BATCH:.0f}, ε and δ as above; "
        f"{wording.counted(trained.seeds, 'seed')}. Mean ± standard error over seeds, on digits held out; the better "
        f"of two learning rates was picked on others. r = {wording.number(trained.alike)}, computed from these public "
        "digits. Users' mean gradients are clipped to κ. Noise is simulated with NumPy: nothing is released."
    )


def rows(trained: Trained) -> list[dict[str, str]]:
    """A line per bound and way."""
    return [
        {
            "Drawn": "Examples" if one.way is Way.EXAMPLES else "Users",
            "G": str(one.bound),
            "Noise multiplier": wording.number(one.multiplier),
            "Estimated error": wording.number(one.error),
            "Accuracy": _accuracy(mean, error),
            "Learning rate": wording.number(rate),
        }
        for one, mean, error, rate in zip(
            trained.options, trained.mean, trained.standard_error, trained.rates.tolist(), strict=True
        )
    ]
