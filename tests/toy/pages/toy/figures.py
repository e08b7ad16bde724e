"""Two figures, for page and report."""

from __future__ import annotations

import plotly.graph_objects as go

from dpcore.common.privacy import Provenance
from dpcore.report import charts
from pages.shared.report.report_content import Picture
from pages.toy.answer import ToyAnswer


def pictures(view: ToyAnswer, kind: Provenance) -> list[Picture]:
    """Users, and their share."""
    return [
        Picture("toy-users", "Heavy users", lambda: _curve(view, view.users, "Users"), "Fewer users have more rows.",
                {"rows": view.sizes, "users": view.users}, kind),
        Picture("toy-share", "Their share", lambda: _curve(view, view.shares, "Share"), "The share falls, too.",
                {"rows": view.sizes, "share": view.shares}, kind),
    ]  # fmt: skip


def _curve(view: ToyAnswer, over: object, name: str) -> go.Figure:
    fig = charts.figure(
        charts.linear_axis("Rows", (0, float(view.sizes[-1]))), charts.linear_axis(name, (0, 1))
    )
    return fig.add_scatter(x=view.sizes, y=over, name=name)
