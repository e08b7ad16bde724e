"""The lines of a plan as a person writes them: ``rows; mean within 2%; quantile 0.9 weight 2``."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from dpcore.common import wording
from dpcore.common.checks import Problems

MAX_LINES = 50
"""Lines of one plan."""
USUAL_SHARE = 0.05
"""Wanted error of a line that names none: 5 % of its value; of a quantile, 5 % of the rows."""


class Released(enum.Enum):
    """What one line releases; the value is how it is written."""

    USERS = "users"
    ROWS = "rows"
    SUM = "sum"
    MEAN = "mean"
    QUANTILE = "quantile"
    GROUP_USERS = "users per group"
    GROUP_ROWS = "rows per group"
    GROUP_SUMS = "sums per group"

    @property
    def per_group(self) -> bool:
        """Whether it is one number per group."""
        return self in (Released.GROUP_USERS, Released.GROUP_ROWS, Released.GROUP_SUMS)

    @property
    def of_values(self) -> bool:
        """Whether it needs the column of values."""
        return self in (Released.SUM, Released.MEAN, Released.QUANTILE, Released.GROUP_SUMS)

    @property
    def ranged(self) -> bool:
        """Whether it needs the range of a value."""
        return self in (Released.MEAN, Released.QUANTILE)


@dataclass(frozen=True)
class Line:
    """One number, or one number per group, of a plan.

    Attributes:
        released: What.
        quantile: q, strictly between 0 and 1, of a quantile; None of all others.
        wanted: The wanted error, above 0; None for `USUAL_SHARE` of the value.
        relative: Whether ``wanted`` is a share of the value (of a quantile: of the rows), else it is in its own unit.
        weight: How much its squared error counts, above 0.

    Raises:
        InvalidInput: All problems at once.
    """

    released: Released
    quantile: float | None = None
    wanted: float | None = None
    relative: bool = True
    weight: float = 1.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.of_kind(Released, released=self.released)
            if (self.released is Released.QUANTILE) != (self.quantile is not None):
                problems.add("a quantile, and no other line, says which one: quantile 0.5 is the median")
            elif self.quantile is not None:
                problems.inside(0.0, 1.0, quantile=self.quantile)
            of = f" of {self.what}" if isinstance(self.released, Released) else ""
            if self.wanted is not None:
                problems.between(1e-12, 1e15, **{f"the wanted error{of}": self.wanted})
            problems.between(1e-6, 1e6, **{f"the weight{of}": self.weight})

    @property
    def what(self) -> str:
        """What it releases, as it is written."""
        if self.quantile is None:
            return self.released.value
        return "median" if self.quantile == 0.5 else f"quantile {wording.digits(self.quantile)}"

    @property
    def text(self) -> str:
        """The line as it is written."""
        said = [self.what]
        if self.wanted is not None:
            amount = f"{wording.digits(float(f'{100.0 * self.wanted:.12g}'))}%" if self.relative else ""
            said.append(f"within {amount or wording.digits(self.wanted)}")
        if self.weight != 1.0:
            said.append(f"weight {wording.digits(self.weight)}")
        return " ".join(said)


_LINE = re.compile(
    r"(?P<what>median|quantile|[a-z]+(?: per group)?)(?: (?P<q>[0-9.e+-]+))?"
    r"(?: within (?P<wanted>[0-9.e+-]+) ?(?P<share>%)?)?(?: weight (?P<weight>[0-9.e+-]+))?"
)
KINDS = {one.value: one for one in Released} | {
    "median": Released.QUANTILE,
    "sum per group": Released.GROUP_SUMS,
}
"""By what may be written."""
EXAMPLE = "rows; sum within 2%; quantile 0.9 within 1% weight 2; rows per group"


def read(text: str, problems: Problems) -> tuple[Line, ...]:
    """The lines of a text, parted by semicolons or line breaks.

    Args:
        text: As a person writes it.
        problems: Takes what is wrong, with the number of the line.
    """
    found: list[Line] = []
    pieces = _pieces(text)
    for number, piece in enumerate(pieces[: MAX_LINES + 1], start=1):
        before = len(problems.found)
        with problems.collecting():
            line = _line(piece, number, problems)
            if line is not None and len(problems.found) == before:
                found.append(line)
    if not pieces:
        problems.add("there is no line", remedy=f"Write what you release, such as: {EXAMPLE}")
    if len(pieces) > MAX_LINES:
        problems.add(f"a plan has at most {MAX_LINES} lines; there are {len(pieces)}")
    for what in dict.fromkeys(line.what for line in found):
        if sum(line.what == what for line in found) > 1:
            problems.add(
                f"{what} stands there twice",
                remedy="One release answers both; give it the smaller wanted error",
            )
    return tuple(found)


def cells(text: str) -> list[tuple[str, float | None, str, float | None]]:
    """The lines of a text as a table shows them, those too that cannot be read: what, q, wanted error, weight.

    What has no place among the cells stands whole in the first one.
    """
    found: list[tuple[str, float | None, str, float | None]] = []
    for piece in _pieces(text):
        match = _LINE.fullmatch(piece)
        try:
            if match is None or match["what"] not in KINDS:
                raise ValueError
            kind = KINDS[match["what"]]
            q = 0.5 if match["what"] == "median" else None if match["q"] is None else float(match["q"])
            weight = None if match["weight"] is None else float(match["weight"])
            found.append((kind.value, q, (match["wanted"] or "") + (match["share"] or ""), weight))
        except ValueError:
            found.append((piece, None, "", None))
    return found


def _pieces(text: str) -> list[str]:
    return [" ".join(piece.lower().split()) for piece in re.split(r"[;\n]", text) if piece.strip()]


def _line(text: str, number: int, problems: Problems) -> Line | None:
    match = _LINE.fullmatch(text)
    if match is None or match["what"] not in KINDS:
        problems.add(
            f"line {number} cannot be read; got {text[:40]!r}",
            remedy=f"A line is one of {', '.join(one.value for one in Released)}, as in: {EXAMPLE}",
        )
        return None
    numbers: dict[str, float | None] = {}
    for name in ("q", "wanted", "weight"):
        try:
            numbers[name] = None if match[name] is None else float(match[name])
        except ValueError:
            problems.add(f"line {number} holds {match[name][:20]!r}, which is no number")
            return None
    share = match["share"] is not None
    wanted = numbers["wanted"]
    return Line(
        KINDS[match["what"]],
        0.5 if match["what"] == "median" else numbers["q"],
        wanted / 100.0 if wanted is not None and share else wanted,
        share or wanted is None,
        1.0 if numbers["weight"] is None else numbers["weight"],
    )
