"""The answer to a question as data: texts, numbers and plots. Page, report, script and notebook read it."""

from dpcore.answer.answer import Answer, Number, ReleaseSetting
from dpcore.answer.plot import (
    Axis,
    Band,
    Bars,
    Border,
    Cells,
    Column,
    Curve,
    Hatching,
    Item,
    Level,
    Mark,
    Plot,
    Points,
    Regions,
    Scale,
    Style,
    Toggle,
    linear_axis,
    names_axis,
    share_axis,
)
