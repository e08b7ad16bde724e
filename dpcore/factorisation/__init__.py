"""Recommendations under user-level privacy: item vectors by least squares (Krichene et al. 2023, section 5).

Each item is a task of `dpcore.multitask`: its vector is learned from the users who rated it, and a user's budget is
divided over the items that they rated. One method per module:

    ratings     tables of ratings, generated too              model      item vectors, and what predicts
    allocation  who gets a user's budget                      fit        with and without privacy (algorithms 1 to 3)
    implicit    what users chose, without ratings             study      all models on the same splits, and measures
    studies     of ratings and of choices                     paper      the paper's figures
    parameters  what a person chooses on the page

Nothing is imported here; ask for the module (``from dpcore.factorisation import fit``).
"""
