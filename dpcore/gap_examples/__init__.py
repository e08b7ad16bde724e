"""How much better can smooth weights be than a cap? Instances, limits, proofs and checks.

Source: Epasto et al. 2020, section 3.3, appendices A and D.4. docs/gap.md has the argument beyond the paper:
the paper's factor 4 becomes 25/16 for real caps and 1.56493 for whole ones, both best possible.
"""
