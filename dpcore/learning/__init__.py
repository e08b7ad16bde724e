"""The cap on rows per user for a private learner: error bounds, the best cap, and what a population tells."""

from dpcore.learning.parameters import LearningParameters, PrivacyForm
