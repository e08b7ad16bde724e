"""Division of each user's budget among many tasks (Krichene et al. 2023).

n users contribute to m tasks along a bipartite graph; user j's data in task i weigh w_ij, and the squared
weights of a user sum to at most beta, the user's budget. One method per module:

    graph       the user-task graph and sums along it       budget      (epsilon, delta) <-> beta
    problem     the problem and the allocation of weights   weights     powers of the task size, clipped
    sampling    the baseline: k tasks per user              counts      task sizes, released privately
    exact       one weight per task, optimal on a graph     free        one weight per user and task, optimal
    bounds      gains in closed form, tasks sliced by size  weight_skew effect of user-dependent weights
    examples    features and labels on a graph              synthetic   graphs and examples, generated
    ridge       algorithm 1                                 descent     algorithm 2
    experiment  appendix C                                  files       weights as CSV, and code
    fit         rules that fit weights to budgets, by name  parameters  settings of the page
    search      progress and end of the optimisers

Nothing is imported here; ask for the module (``from dpcore.multitask import exact``).
"""
