"""Linear regression with label privacy: the best unbiased estimator under DP, and what people use instead.

Setting (Epasto et al. 2020, section 5): features X (n rows, d columns) and who owns which row are public;
the labels y, in an interval of length B, are private; neighbours differ in the labels of one user. The
release is C y + Laplace noise with C X = I, so it is unbiased, and C minimises the total variance (theorem 6)

    sigma^2 sum_ij c_ij^2  +  2 d (B / epsilon)^2 (max_l sum_{i in S_l, j} |c_ij|)^2.

Layers: ``whitening`` -> ``problem`` (the question), ``dual`` (what no C can go below), ``estimate`` (the
answer) -> one method per file, called by ``solve(problem, ...)``: ``working_set`` (exact, fast),
``cvxpy_reference`` (the paper's), ``sample_limiting`` (caps), ``naive`` (what people use today); beside them
``prediction`` (errors), ``draw`` (one DP release) and ``examples`` (generators). This file does no work.
"""
