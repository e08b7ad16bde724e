"""How many examples of one user a private training may see: DP-SGD that protects users, by two ways of sampling."""

from dpcore.examples_per_user.parameters import ASSUMPTIONS, NEIGHBOURS, NOT_COVERED, ExamplesParameters, Way
