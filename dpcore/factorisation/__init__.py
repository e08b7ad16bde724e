"""Recommendations under user-level privacy: item vectors by least squares (Krichene et al. 2023, section 5).

Each item is a task of `dpcore.multitask`: its vector is learned from the users who rated it, and a user's budget is
divided over the items that they rated. One method per module:

    ratings     the table, one row of items per user         generator   planted low rank, Zipf items
    normal_equations  sums and solutions of all rows at once  model       item vectors, and what predicts
    allocation  who gets a user's budget                      budget      one Gaussian budget for counts and sweeps
    fit         with and without privacy (algorithms 1, 3)    descent     the same with algorithm 2
    baselines   item means with and without privacy           measures    RMSE, recall, buckets, neighbours
    study       all models on the same splits and noise       shares      who gets the budget, without training
    implicit    what users chose, without ratings             implicit_study  recall of all models over epsilon
    parameters  what a person chooses on the page

Nothing is imported here; ask for the module (``from dpcore.factorisation import fit``).
"""
