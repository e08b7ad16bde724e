"""Examples, bounds and proofs of how much smaller the variance of smooth weights is than that of the best cap.

Source: Epasto et al. 2020, section 3.3, appendices A and D.4. docs/gap.md has the argument beyond the paper:
the paper's factor 4 becomes 25/16 for real caps and 1.56493 for whole ones, both best possible.
"""
