"""The answer to a question as data: what is said, its numbers, its plots. Page, report, script and notebook read it."""

from dpcore.answer.answer import Answer, Number, Proof, without_numbers
from dpcore.answer.plot import (
    Axis,
    Band,
    Bars,
    Border,
    Cells,
    Curve,
    Hatched,
    Item,
    Level,
    Look,
    Mark,
    Plot,
    Points,
    Regions,
    Scale,
    Shares,
)
from dpcore.answer.setting import ReleaseSetting
