"""The figures of an answer by key, for replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpcore.answer import Answer
from dpcore.common.extras import import_extra


class Figures(Mapping[str, Any]):
    """The figures of an answer by key, the main one first; each is drawn when it is asked for."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __getitem__(self, figure_key: str) -> Any:
        import_extra("plotly")
        from dpcore.report import plotly_figures

        return plotly_figures.draw_on_white(self._answer.plots[figure_key]())

    def __iter__(self) -> Iterator[str]:
        return iter(self._answer.plots)

    def __len__(self) -> int:
        return len(self._answer.plots)

    def __repr__(self) -> str:
        return f"Figures({', '.join(self)})"
