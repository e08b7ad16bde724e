"""The symbols of a paper in the place of words on a plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpcore.answer.plot import Axis, Plot


def relabel_plot(plot: Plot, symbols_by_name: Mapping[str, str]) -> Plot:
    """Return the plot with symbols for its title, titles of axes and names of items, also in its lower plot.

    Args:
        plot: The plot.
        symbols_by_name: The symbol of a title, heading or name of an axis, or name of an item; others stay in words.
    """

    def relabel_axis(axis: Axis) -> Axis:
        """Return the axis titled with the symbol of its heading or name; unchanged without one."""
        return replace(
            axis, title=symbols_by_name.get(axis.heading, symbols_by_name.get(axis.name, axis.title))
        )

    def relabel_item(item: Any) -> Any:
        """Return the item named by its symbol, without a label of its own; unchanged without one."""
        if (symbol := symbols_by_name.get(getattr(item, "name", ""))) is None:
            return item
        return replace(item, name=symbol, **({"label": ""} if hasattr(item, "label") else {}))

    relabelled_toggles = [
        replace(toggle, item_names=tuple(symbols_by_name.get(name, name) for name in toggle.item_names))
        for toggle in plot.toggles
    ]
    return replace(
        plot,
        title=symbols_by_name.get(plot.title, plot.title),
        x=relabel_axis(plot.x),
        y=relabel_axis(plot.y),
        items=[relabel_item(item) for item in plot.items],
        toggles=tuple(relabelled_toggles),
        lower_plot=plot.lower_plot and relabel_plot(plot.lower_plot, symbols_by_name),
    )
