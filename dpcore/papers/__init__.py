"""The figures of the four papers that can be made again, and the list of all their items."""

from dpcore.papers.items import FIGURES, find_figure
