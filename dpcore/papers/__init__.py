"""The four papers: all their figures that can be made again, and the list of all their items."""

from dpcore.papers.figures import FIGURES, named
