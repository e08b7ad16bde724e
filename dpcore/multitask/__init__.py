"""Division of each user's budget among many tasks (Krichene et al. 2023).

n users contribute to m tasks along a bipartite graph. User j's data in task i weigh w_ij, and the squared weights of a
user sum to at most beta, the user's budget.

    problem     the graph of users and tasks; (epsilon, delta) <-> beta; the allocation of weights
    weights     powers of the task size, fitted to users' budgets; their gains and their skew
    sampling    the baseline, k tasks per user; task sizes, released privately
    exact       optima on a graph: one weight per task, or per user and task
    learners    algorithms 1 and 2
    experiment  generated graphs, appendix C
    parameters  settings of the page
    answer      the answer as data, with its tabs and files

Nothing is imported here; ask for the module (``from dpcore.multitask import exact``).
"""
