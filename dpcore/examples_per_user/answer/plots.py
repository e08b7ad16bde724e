"""The figures of examples per user as data. Pure: what was found in, plots out."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Axis, Band, Curve, Item, Look, Mark, Plot, Scale
from dpcore.common import wording
from dpcore.common.privacy import Provenance
from dpcore.contributions import FloatArray
from dpcore.examples_per_user import options
from dpcore.examples_per_user.answer.found import ExamplesFound
from dpcore.examples_per_user.options import Option
from dpcore.examples_per_user.parameters import Way

NAMES = {Way.EXAMPLES: "Draw examples", Way.USERS: "Draw users"}
LOOKS = {Way.EXAMPLES: Look.CAP, Way.USERS: Look.SMOOTH}


def error(found: ExamplesFound, provenance: Provenance) -> Plot:
    """The main figure: the estimated error over G, both ways, with the band from diverse to alike."""
    best, own = found.best, found.own
    columns = _over_bounds(found, "error")
    items: list[Item] = [*_curves("error")]
    low, high = found.options.within()
    if low < high:
        items.insert(0, Band(f"Within 5{wording.PERCENT} of the best", low, high))
    items.append(Mark("Best bound", best.bound, best.error, LOOKS[best.way], "diamond"))
    if own is not None:
        items.append(Mark("Your bound", own.bound, own.error, Look.OWN, "square"))
    return Plot(
        "examples-error",
        "Estimated error of the training over examples per user",
        f"By this estimate the error is least at {wording.counted(best.bound, 'example')} per user "
        f"({NAMES[best.way].lower()}): {wording.number(best.error)} gradient norms. Shaded: from a user's "
        "examples being diverse to being alike.",
        _across(found),
        Axis("estimated error", "gradient norms"),
        columns,
        tuple(items),
        provenance,
        main=True,
    )


def noise(found: ExamplesFound, provenance: Provenance) -> Plot:
    """Noise on a step's mean gradient over G, both ways."""
    columns = _over_bounds(found, "noise")
    return Plot(
        "examples-noise",
        "Noise on the mean gradient",
        "Noise per parameter and step over examples per user. Where users are drawn it depends on how alike a user's "
        "examples are.",
        _across(found),
        Axis("noise per parameter", "gradient norms"),
        columns,
        tuple(_curves("noise")),
        provenance,
    )


def kept(found: ExamplesFound, provenance: Provenance) -> Plot:
    """Share of examples kept, and sampling rate, over G."""
    tried = found.options.tried[Way.EXAMPLES]
    columns = {
        name: values
        for name, values in options.columns_of(tried).items()
        if name in ("bound", "kept_share", "rate")
    }
    return Plot(
        "examples-kept",
        "Examples kept, and sampling rate",
        "The more examples of a user are kept, the more stay in all, and the smaller is the rate that draws B.",
        _across(found),
        Axis("share", "", (0.0, 1.0), Scale.PERCENT),
        columns,
        (
            Curve("Examples kept", "bound", "kept_share", Look.TOTAL, symbol="circle"),
            Curve("Sampling rate q", "bound", "rate", Look.SAMPLING, symbol="circle"),
        ),
        provenance,
        height=360,
    )


def multipliers(found: ExamplesFound, provenance: Provenance) -> Plot:
    """The noise multiplier over G, both ways."""
    columns: dict[str, FloatArray] = {}
    for way, tried in found.options.tried.items():
        of = options.columns_of(tried)
        columns |= {"bound": of["bound"], f"{way.value}_multiplier": of["multiplier"]}
    return Plot(
        "examples-multiplier",
        "Noise multiplier, at most",
        "Where examples are drawn the noise multiplier grows with G; where users are drawn it falls.",
        _across(found),
        Axis("noise multiplier", "clip norms"),
        columns,
        tuple(
            Curve(NAMES[way], "bound", f"{way.value}_multiplier", LOOKS[way], symbol="circle")
            for way in NAMES
        ),
        provenance,
        height=360,
    )


def _over_bounds(found: ExamplesFound, name: str) -> dict[str, FloatArray]:
    """One quantity of both ways, at r as entered, 0 and 1."""
    columns: dict[str, FloatArray] = {}
    for way, tried in found.options.tried.items():
        columns["bound"] = np.array([float(one.bound) for one in tried])
        columns[f"{way.value}_{name}"] = _of(tried, name)
        ends = [
            _of(tuple(options.with_alike(found.histogram, found.parameters, one, r) for one in tried), name)
            for r in (0.0, 1.0)
        ]
        columns[f"{way.value}_{name}_diverse"], columns[f"{way.value}_{name}_alike"] = ends
    return columns


def _of(tried: tuple[Option, ...], name: str) -> FloatArray:
    return np.array([float(getattr(one, name)) for one in tried])


def _curves(name: str) -> list[Curve]:
    return [
        Curve(
            NAMES[way],
            "bound",
            f"{way.value}_{name}",
            LOOKS[way],
            symbol="circle",
            low=f"{way.value}_{name}_diverse",
            high=f"{way.value}_{name}_alike",
            shaded=True,
        )
        for way in NAMES
    ]


def _across(found: ExamplesFound) -> Axis:
    most = float(found.histogram.max_size)
    return Axis(
        "bound",
        "examples per user",
        (0.9, max(1.1 * most, 2.0)),
        title="Bound G (examples per user)",
        number=",",
    )
