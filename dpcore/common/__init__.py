"""Tools of every question: errors, checks, certificates, privacy, noise, weights, wording. They know no question."""
