"""The lines of a plan as a person writes them: a statistic, its column, range, target error and weight."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

from dpcore.common.checks import Problems, refuse
from dpcore.common.wording import format_digits

MAX_LINES = 50
DEFAULT_TARGET_SHARE = 0.05
"""Target error of a line that names none, as a share of its value, or of the rows for a quantile."""


class LineStatistic(enum.Enum):
    """The statistic of one line; the value is how it is written."""

    USERS = "users"
    ROWS = "rows"
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"
    DEVIATION = "standard deviation"
    QUANTILE = "quantile"
    GROUP_USERS = "users per group"
    GROUP_ROWS = "rows per group"
    GROUP_SUMS = "sums per group"

    @property
    def takes_column(self) -> bool:
        """Return True if the line may name a value column of its own."""
        return self.has_mean_settings or self is LineStatistic.SUM

    @property
    def is_per_group(self) -> bool:
        """Return True if the line has one number per group."""
        return self in (LineStatistic.GROUP_USERS, LineStatistic.GROUP_ROWS, LineStatistic.GROUP_SUMS)

    @property
    def needs_values(self) -> bool:
        """Return True if the line needs the column of values."""
        return self.needs_range or self in (LineStatistic.SUM, LineStatistic.GROUP_SUMS)

    @property
    def needs_range(self) -> bool:
        """Return True if the line needs the range of a value."""
        return self in (LineStatistic.MEAN, LineStatistic.QUANTILE) or self.is_spread

    @property
    def is_spread(self) -> bool:
        """Return True for the variance and its root, which is the same release."""
        return self in (LineStatistic.VARIANCE, LineStatistic.DEVIATION)

    @property
    def has_mean_settings(self) -> bool:
        """Return True if the error goes by the settings of a mean."""
        return self is LineStatistic.MEAN or self.is_spread


@dataclass(frozen=True)
class Line:
    """One number, or one number per group, of a plan.

    Attributes:
        statistic: What.
        quantile: q, strictly between 0 and 1, of a quantile; None of all others.
        target_error: The target error, above 0; None for `DEFAULT_TARGET_SHARE` of the value.
        is_relative: Whether ``target_error`` is a share of the value (of a quantile: of the rows), else it is in its
            own unit.
        weight: How much its squared error counts, above 0.
        column: Its column of values; empty for the first one of the data.
        lower: L of these values; None for that of the plan.
        upper: U of these values; None for that of the plan.

    Raises:
        InvalidInput: All problems at once.
    """

    statistic: LineStatistic
    quantile: float | None = None
    target_error: float | None = None
    is_relative: bool = True
    weight: float = 1.0
    column: str = ""
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.column and not self.statistic.takes_column:
                problems.add(
                    f"{self.label}: only a sum, mean, variance or standard deviation names its column"
                )
            if self.lower is not None and not self.statistic.has_mean_settings:
                problems.add(f"{self.label}: only a mean, variance or standard deviation names its range")
            elif self.lower is not None:
                problems.ascending(**{f"lower end of {self.label}": self.lower, "the upper one": self.upper})
            elif self.column and self.statistic.needs_range:
                problems.add(f"{self.label} needs its range", remedy=f"Write {self.label} from 0 to 100")
            if (self.statistic is LineStatistic.QUANTILE) != (self.quantile is not None):
                problems.add("only a quantile names a share: quantile 0.5 is the median")
            elif self.quantile is not None:
                problems.inside(0.0, 1.0, quantile=self.quantile)
            if self.target_error is not None:
                problems.between(1e-12, 1e15, **{f"the target error of {self.label}": self.target_error})
            problems.between(1e-6, 1e6, **{f"the weight of {self.label}": self.weight})

    @property
    def label(self) -> str:
        """Return the statistic as a person writes it: ``median``, ``quantile 0.9`` or ``mean of tax``."""
        label = self.statistic.value
        if self.quantile is not None:
            label = "median" if self.quantile == 0.5 else f"quantile {format_digits(self.quantile)}"
        column = self.column if self.column.split() == [self.column] else f'"{self.column}"'
        return f"{label} of {column}" if self.column else label

    @property
    def text(self) -> str:
        """Return the line as a person writes it: also range, target error and weight if they are not the defaults."""
        text = self.label
        if self.lower is not None and self.upper is not None:
            text += f" from {format_digits(self.lower)} to {format_digits(self.upper)}"
        if self.target_error is not None and self.is_relative:
            text += f" within {format_digits(float(f'{100.0 * self.target_error:.12g}'))}%"
        elif self.target_error is not None:
            text += f" within {format_digits(self.target_error)}"
        return text if self.weight == 1.0 else f"{text} weight {format_digits(self.weight)}"


STATISTIC_BY_NAME = {statistic.value: statistic for statistic in LineStatistic} | {
    "median": LineStatistic.QUANTILE,
    "share": LineStatistic.MEAN,
    "sum per group": LineStatistic.GROUP_SUMS,
}
_LINE_PATTERN = re.compile(
    rf"(?P<statistic>{'|'.join(STATISTIC_BY_NAME)})(?: (?P<quantile>[0-9.e+-]+))?"
    r"(?: of (?P<column>\"[^\"]+\"|\S+))?(?: from (?P<lower>[0-9.e+-]+) to (?P<upper>[0-9.e+-]+))?"
    r"(?: within (?P<target>[0-9.e+-]+) ?(?P<percent>%)?)?(?: weight (?P<weight>[0-9.e+-]+))?"
)
EXAMPLE_LINES = "rows; sum within 2%; quantile 0.9 within 1% weight 2; rows per group"


def parse_lines(lines_text: str, problems: Problems) -> tuple[Line, ...]:
    """Parse the lines of a text, without unreadable ones; these, repeated lines and too many lines are problems.

    Args:
        lines_text: As a person writes it.
        problems: Takes what is wrong, with the number of the line.
    """
    parsed_lines: list[Line] = []
    line_texts = _split_text(lines_text)
    for line_number, line_text in enumerate(line_texts[: MAX_LINES + 1], start=1):
        with problems.collecting():
            line_match = _LINE_PATTERN.fullmatch(line_text)
            label, target_text = _split_line(line_text)
            if line_match is None and target_text and _LINE_PATTERN.fullmatch(label):
                raise refuse(
                    f"the target error of {label} cannot be read; got {target_text[:40]!r}",
                    remedy="Write a share, as within 5%, or a number in its own unit, as within 12",
                )
            if line_match is None:
                names_text = ", ".join(statistic.value for statistic in LineStatistic)
                raise refuse(
                    f"line {line_number} cannot be read; got {line_text[:40]!r}",
                    remedy=f"A line is one of {names_text}, as in: {EXAMPLE_LINES}",
                )
            quantile, target_error, weight, lower, upper = _read_numbers(line_match, line_number)
            is_relative = line_match["percent"] is not None or target_error is None
            if line_match["percent"] is not None and target_error is not None:
                target_error /= 100.0
            statistic = STATISTIC_BY_NAME[line_match["statistic"]]
            weight = 1.0 if weight is None else weight
            column = (line_match["column"] or "").strip('"')
            line_arguments = statistic, quantile, target_error, is_relative, weight, column, lower, upper
            parsed_lines.append(Line(*line_arguments))
    if len(line_texts) > MAX_LINES:
        problems.add(f"a plan has at most {MAX_LINES} lines; there are {len(line_texts)}")
    line_labels = [line.label for line in parsed_lines]
    for label in dict.fromkeys(line_labels):
        if line_labels.count(label) > 1:
            problems.add(f"{label} stands there twice", remedy="Keep the one with the smaller target error")
    return tuple(parsed_lines)


def split_lines(lines_text: str) -> list[tuple[str, str]]:
    """Split a text into its lines, also unreadable ones: statistic, and text of target error and weight."""
    lines = map(_split_line, _split_text(lines_text))
    return [
        (statistic_text, target_and_weight_text.removeprefix("within "))
        for statistic_text, target_and_weight_text in lines
    ]


def change_target(lines_text: str, line_index: int, new_target_text: str) -> str:
    """Return the text of lines with another target error in one of them, such as ``5%`` or ``12 weight 2``.

    An empty target text removes the target error and the weight of the line.
    """
    line_texts = _split_text(lines_text)
    new_target_text = " ".join(new_target_text.replace(";", " ").lower().split())
    statistic_text, _ = _split_line(line_texts[line_index])
    keyword = "" if not new_target_text or new_target_text.startswith("weight ") else "within "
    line_texts[line_index] = f"{statistic_text} {keyword}{new_target_text.removeprefix('within ')}".rstrip()
    return "; ".join(line_texts)


def remove_line(lines_text: str, line_index: int) -> str:
    """Return the text of a plan without the line at this index, its other lines joined by semicolons."""
    line_texts = _split_text(lines_text)
    return "; ".join(line_texts[:line_index] + line_texts[line_index + 1 :])


def _split_line(line_text: str) -> tuple[str, str]:
    """Split a written line into its statistic and its target error and weight as a text, empty for neither."""
    # Not between the quotation marks of a column.
    statistic_text, *target_text_if_any = re.split(r' (?=(?:within|weight)\b[^"]*$)', line_text, maxsplit=1)
    return statistic_text, " ".join(target_text_if_any)


def list_missing_lines(lines_text: str, new_lines: Iterable[str]) -> list[str]:
    """Return the new lines whose statistic no line of the text has."""
    present_labels = {line.label for line in parse_lines(lines_text, Problems())}
    present_labels |= {statistic_text for statistic_text, _ in split_lines(lines_text)}
    return [line for line in new_lines if line not in present_labels]


def _split_text(lines_text: str) -> list[str]:
    """Split a text at semicolons and line breaks into lines, and drop empty ones.

    Words are separated by single spaces and in lower case, but for the name of a column.
    """
    line_texts = [
        " ".join(line_text.split()) for line_text in re.split(r"[;\n]", lines_text) if line_text.strip()
    ]
    return [re.sub(r'(?i)( of )("[^"]+"|\S+)|.', _lower_unless_column, line_text) for line_text in line_texts]


def _lower_unless_column(match: re.Match[str]) -> str:
    """Return a character in lower case, or a column as it is."""
    return f" of {match[2]}" if match[2] else match[0].lower()


def _read_numbers(line_match: re.Match[str], line_number: int) -> list[float | None]:
    """Return quantile, target error, weight and range of a matched line as numbers; None for those not written.

    Raises:
        InvalidInput: One of them is no number.
    """
    quantile_text = "0.5" if line_match["statistic"] == "median" else line_match["quantile"]
    numbers: list[float | None] = []
    for number_text in (quantile_text, *line_match.group("target", "weight", "lower", "upper")):
        try:
            numbers.append(None if number_text is None else float(number_text))
        except ValueError as error:
            raise refuse(f"line {line_number} holds {number_text[:20]!r}, which is no number") from error
    return numbers
